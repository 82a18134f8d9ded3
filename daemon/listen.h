/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_LISTEN_H
#define MATTXD_LISTEN_H

#include <stddef.h>

/**
 * listen_init() - take connections at this node's address
 */
int listen_init(char *cause, size_t cause_len);
void listen_exit(void);

#endif
