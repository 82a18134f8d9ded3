/* SPDX-License-Identifier: GPL-2.0 */
/* Who else has the memory of a process's shared mappings. */
#ifndef MATTXD_SHARERS_H
#define MATTXD_SHARERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "maps.h"

struct sharer {
	pid_t pid;   /* 0: nobody that could be seen */
	bool mapped; /* it has mapped the file; else it has it open */
};

/**
 * sharers_find() - look at all processes
 * @who: out: for each of @maps; only writable shared mappings are looked for
 * Return: 0 or -ENOMEM.
 */
int sharers_find(pid_t pid, const struct maps *maps, struct sharer *who);

/* Shared, and written to or may be. */
static inline bool vma_is_shared(const struct vma *vma)
{
	return vma->flags & VMA_SHARED && vma->flags & VMA_MAYWRITE;
}

#endif
