// SPDX-License-Identifier: GPL-2.0
/*
 * Fault points: errors that a test asks for.  Each point counts down and fires
 * once; all are off until MATTX_CMD_FAULT_SET.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/nospec.h>

#include "fault.h"

static atomic_t countdown[__MATTX_FAULT_MODULE_MAX];

bool mattx_fault(enum mattx_fault point)
{
	if (likely(!atomic_read(&countdown[point])))
		return false;
	return atomic_dec_if_positive(&countdown[point]) == 0;
}

int mattx_fault_set(u32 point, u32 count)
{
	if (point <= MATTX_FAULT_NONE || point >= __MATTX_FAULT_MODULE_MAX)
		return -EINVAL;
	point = array_index_nospec(point, __MATTX_FAULT_MODULE_MAX);
	if (count > INT_MAX)
		return -EINVAL;
	atomic_set(&countdown[point], count);
	return 0;
}
