/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_HOOKS_H
#define _MATTX_HOOKS_H

#include <linux/types.h>

struct pt_regs;

int mattx_hooks_init(void);
void mattx_hooks_exit(void);

/**
 * mattx_hooks_get() - the first guest arms the hooks
 * Context: process, may sleep. Return: 0; an errno when not every call that has to be
 * diverted can be: then no guest may run.
 */
int mattx_hooks_get(void);
void mattx_hooks_put(void);

/**
 * mattx_native() - run the kernel's own function of a call that was diverted
 * @nr: number of the call that the current thread is in
 * Context: as a system call's function. Return: the function's result.
 */
long mattx_native(u32 nr, const struct pt_regs *regs);

#endif
