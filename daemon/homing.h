/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_HOMING_H
#define MATTXD_HOMING_H

#include <stdint.h>

/*
 * Guests that cannot go on here and wait to be sent home: by an event of the
 * module, or found waiting when the daemon starts. Each is tried until it is
 * gone; a home that is down is tried again and again.
 */

/**
 * homing_want() - the module says that @gang wants home
 * @reason: system call number or -1
 */
void homing_want(uint64_t gang, int reason, const char *cause);

/**
 * homing_look() - find those that wait: after the start, or when events were lost
 */
void homing_look(void);

/**
 * homing_again() - @node can be reached again: do not wait any longer
 */
void homing_again(uint32_t node);

void homing_exit(void);

/**
 * syscall_name() - name of a system call of x86-64, or NULL
 */
const char *syscall_name(int nr);

#endif
