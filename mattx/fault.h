/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_FAULT_H
#define _MATTX_FAULT_H

#include <linux/types.h>
#include <uapi/mattx.h>

/**
 * mattx_fault() - is an error to be pretended here?
 * @point: where the caller is
 *
 * For tests: true exactly once, at the Nth pass after mattx_fault_set(point, N).
 * Context: any.
 */
bool mattx_fault(enum mattx_fault point);

/**
 * mattx_fault_set() - arm a fault point
 * @point: which
 * @count: at which pass from now it fires, 0: never
 * Return: 0, or -EINVAL for a point that the module does not have.
 */
int mattx_fault_set(u32 point, u32 count);

#endif
