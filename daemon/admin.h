/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_ADMIN_H
#define MATTXD_ADMIN_H

#include <stdint.h>

/**
 * admin_order() - do what was written to /proc/mattx/admin, and tell the module
 * @order: its number
 * @verb: enum mattx_admin_verb
 * @node: a name, a number or "home"; "" with EXPEL
 * Context: main loop. The answer may be given before it returns, or much later.
 */
void admin_order(uint32_t order, uint32_t verb, int pid, const char *node);

#endif
