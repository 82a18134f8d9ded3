/* SPDX-License-Identifier: GPL-2.0 */
/* The mappings of a process, and sets of address ranges. */
#ifndef MATTXD_MAPS_H
#define MATTXD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE 4096ull
#define USER_END \
	0x7ffffffff000ull /* end of user space with four page table levels */

enum {
	/* what the other node has to know */
	VMA_FILE = 1 << 0, /* private, of a file: contents travel */
	VMA_VDSO = 1 << 1, /* vdso or its data pages */
	VMA_GROWSDOWN = 1 << 2,
	VMA_NORESERVE = 1 << 3,
	VMA_DONTFORK = 1 << 4,
	VMA_WIPEONFORK = 1 << 5,
	VMA_DONTDUMP = 1 << 6,
	VMA_HUGE = 1 << 7,
	VMA_NOHUGE = 1 << 8,
	VMA_MERGEABLE = 1 << 9,
	VMA_LOCKED = 1 << 10,
	VMA_ONFAULT = 1 << 11,
	VMA_SEQUENTIAL = 1 << 12,
	VMA_RANDOM = 1 << 13,
	VMA_SOLE = 1 << 14, /* shared, but with nobody: written back at home */
	VMA_KEPT = 1 << 15, /* the same, of a file that outlives the process */
	VMA_WIRE = (1 << 16) - 1,
	/* what stays here */
	VMA_SHARED = 1 << 16,
	VMA_MAYWRITE = 1 << 17,
	VMA_DEVICE = 1 << 18, /* memory of a device, or raw pages */
	VMA_HUGETLB = 1 << 19,
	VMA_UFFD = 1 << 20,
	VMA_SHADOW = 1 << 21,
	VMA_SEALED = 1 << 22,
	VMA_PKEY = 1 << 23,
	VMA_SOFTDIRTY = 1 << 24,
	VMA_GUARD = 1 << 25, /* madvise(MADV_GUARD_INSTALL) has made, or unmade, guards */
};

struct vma {
	uint64_t start, end;
	uint64_t dev, ino, off;
	uint64_t rss;	  /* bytes that are present or swapped */
	uint32_t prot;	  /* PROT_* */
	uint32_t flags;	  /* VMA_* */
	const char *name; /* "" or what /proc says */
};

struct maps {
	struct vma *vma; /* sorted */
	size_t n, cap;
	char *names; /* what the names point into */
};

/**
 * maps_read() - the mappings of process @pid, without [vsyscall]
 * @skip, @skip_len: a range that is left out: our stub
 * Return: 0 or a negative errno; then @maps is empty. maps_free() it.
 */
int maps_read(pid_t pid, uint64_t skip, uint64_t skip_len, struct maps *maps);
void maps_free(struct maps *maps);

/* The first mapping that ends behind @addr, or maps->n. */
size_t maps_at(const struct maps *maps, uint64_t addr);

/* Is nothing mapped in [start, end)? */
bool maps_hole(const struct maps *maps, uint64_t start, uint64_t end);

/**
 * maps_pick() - an address for @len bytes that neither layout uses
 * @a, @b: layouts, @b may be NULL
 * Return: the address, or 0.
 */
uint64_t maps_pick(const struct maps *a, const struct maps *b, uint64_t len);

/* "start-end name", for messages. Return: @buf. */
const char *vma_text(const struct vma *vma, char *buf, size_t len);

struct run {
	uint64_t start, end;
};

/* A set of addresses: runs in order, none touching the next. */
struct runs {
	struct run *run;
	size_t n, cap;
	bool bad; /* out of memory: the set is not complete */
};

/* Adds a run that begins at or behind the end of the last one. */
void runs_add(struct runs *runs, uint64_t start, uint64_t end);
void runs_free(struct runs *runs);

enum runs_op {
	RUNS_AND = 1 << 3,   /* in both */
	RUNS_MINUS = 1 << 1, /* in the first only */
	RUNS_OR = 1 << 1 | 1 << 2 | 1 << 3,
};

/* @to = @a op @b; @to may be one of the two. */
void runs_combine(struct runs *to, const struct runs *a, enum runs_op op,
		  const struct runs *b);

/* Is @addr in it? For calls in rising order of @addr; *@at starts as 0. */
static inline bool runs_has(const struct runs *runs, size_t *at, uint64_t addr)
{
	while (*at < runs->n && runs->run[*at].end <= addr)
		++*at;
	return *at < runs->n && runs->run[*at].start <= addr;
}

uint64_t runs_bytes(const struct runs *runs);

#endif
