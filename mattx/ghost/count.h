/* SPDX-License-Identifier: GPL-2.0 */
/* Statistics of ghosts: Documentation/debugging.md says what they mean. */
#ifndef _MATTX_GHOST_COUNT_H
#define _MATTX_GHOST_COUNT_H

#include <linux/types.h>

enum mattx_ghost_counter {
	/* home */
	MATTX_COUNT_READY, /* frames */
	MATTX_COUNT_WAKES, /* told in them */
	MATTX_COUNT_TAKEN,
	MATTX_COUNT_REFUSED,
	MATTX_COUNT_GIVEN,
	/* host */
	MATTX_COUNT_HEARD, /* frames READY */
	MATTX_COUNT_LOOKS,
	MATTX_COUNT_WAITS, /* of sets that are here */
	MATTX_COUNT_FETCHES,
	MATTX_COUNT_PAGES, /* of files that came with them */
	MATTX_NR_GHOST_COUNTERS,
};

/* Context: any. */
void mattx_ghost_count(enum mattx_ghost_counter what, unsigned int n);

/**
 * mattx_ghost_stat() - one of them, by index from 0
 * Context: any. Return: whether there is one.
 */
bool mattx_ghost_stat(unsigned long index, const char **name, u64 *value);

#endif
