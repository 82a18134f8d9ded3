// SPDX-License-Identifier: GPL-2.0
/* Statistics of ghosts. */
#include <linux/percpu.h>

#include "ghost/count.h"

static DEFINE_PER_CPU(u64[MATTX_NR_GHOST_COUNTERS], counts);

void mattx_ghost_count(enum mattx_ghost_counter what, unsigned int n)
{
	this_cpu_add(counts[what], n);
}

bool mattx_ghost_stat(unsigned long index, const char **name, u64 *value)
{
	static const char *const names[MATTX_NR_GHOST_COUNTERS] = {
		[MATTX_COUNT_READY] = "ready.frames",
		[MATTX_COUNT_WAKES] = "ready.told",
		[MATTX_COUNT_TAKEN] = "set.taken",
		[MATTX_COUNT_REFUSED] = "set.refused",
		[MATTX_COUNT_GIVEN] = "set.given",
		[MATTX_COUNT_HEARD] = "ready.heard",
		[MATTX_COUNT_LOOKS] = "ready.looks",
		[MATTX_COUNT_WAITS] = "set.waits",
		[MATTX_COUNT_FETCHES] = "file.fetches",
		[MATTX_COUNT_PAGES] = "file.pages",
	};
	int cpu;

	if (index >= MATTX_NR_GHOST_COUNTERS)
		return false;
	*name = names[index];
	*value = 0;
	for_each_possible_cpu(cpu)
		*value += per_cpu(counts, cpu)[index];
	return true;
}
