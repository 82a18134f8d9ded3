/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_MEMORY_H
#define _MATTX_MEMORY_H

#include "uapi/mattx.h"

/**
 * mattx_memory_move() - read or write memory of a process, whatever its protection
 * @arg: len is what was moved, afterwards; less than was asked for is no error
 *
 * Context: process; sleeps. Return: 0; -ESRCH, -ENOMEM, -EFAULT, -EINTR; -EIO: nothing
 * is there, or it is neither private nor writable.
 */
int mattx_memory_move(struct mattx_ioc_memory *arg);

#endif
