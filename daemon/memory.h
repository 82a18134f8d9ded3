/* SPDX-License-Identifier: GPL-2.0 */
/* The pages of a process: found, read and sent; received. */
#ifndef MATTXD_MEMORY_H
#define MATTXD_MEMORY_H

#include "job.h"
#include "maps.h"
#include "stream.h"
#include "sums.h"

/**
 * struct memory - the sending side of one migration
 *
 * The other side's memory is a function of what was sent: "there" holds the pages
 * that have contents there; every other page of an announced mapping is zero.
 */
struct memory {
	struct job *job;
	pid_t pid;
	int pagemap;		 /* of /proc/PID */
	int device;		 /* /dev/mattx, bound to nothing */
	uint64_t stub, stub_len; /* not part of the process */
	struct maps maps;  /* as announced last; n is 0 before the first */
	struct runs seen;  /* own (anonymous) pages that were looked at */
	struct runs fseen; /* pages of files that were looked at */
	struct runs there;
	struct sums sums; /* of shared pages, as sent by the pre-copy */
	int handle;	  /* of /dev/mattx, for what is shared; -1: none */
	struct runs shared,
		kept; /* MATTX_RANGE_SHARED or _KEPT; the latter only */
	struct stream_window *window; /* of a frozen process at home: all of shared; */
	size_t windows;		      /* pos is not known before the layout */
	uint64_t sent, total; /* bytes of this phase, for job_progress() */
	const char *phase;
};

/* Return of all: 0, or a negative errno after job_fail(). memory_close() in any case. */
int memory_open(struct memory *m, struct job *job, pid_t pid);
void memory_close(struct memory *m);

/**
 * memory_move() - read or write what the process itself may not
 * @device: an open /dev/mattx, bound or not
 * Return: bytes, perhaps fewer than @len, or a negative errno.
 */
ssize_t memory_move(int device, pid_t pid, bool write, void *buf, size_t len,
		    uint64_t addr);

/* Forget which pages were written: from now on the kernel notes it anew. */
int memory_forget(struct job *job, pid_t pid);

/**
 * memory_precopy() - send the pages of a process that runs
 * @freeze: stops it for a moment and returns a descriptor whose closing lets it go on;
 *	or a negative errno after job_fail()
 *
 * What was written meanwhile is sent again, in rounds, as long as that makes it less.
 * The kernel cannot tell and forget in one step what was written, so each round but
 * the first begins with such a moment.
 */
int memory_precopy(struct memory *m, int (*freeze)(struct job *job));

/**
 * memory_rest() - the process is frozen: send its layout and what is not there yet
 *
 * Of shared memory all is read that its files have: the kernel does not tell reliably
 * what of it was written. What has the sum that was sent before is not sent again.
 */
int memory_rest(struct memory *m);

/**
 * memory_changes() - the guest is frozen: send its layout and what changed since
 * memory_forget()
 * @files: ranges that are file mappings at home, those of m->shared too
 */
int memory_changes(struct memory *m, const struct runs *files);

/**
 * memory_runs() - take the list at the beginning of a STREAM_PAGES
 * Checks that the runs are whole pages in order, and that the payload is theirs.
 * Return: their number, or a negative errno after job_fail().
 */
int memory_runs(struct job *job, const struct stream_head *head,
		struct stream_run run[STREAM_RUNS]);

/* Takes a DROP or KEEP: a sorted list. Return: as all. */
int memory_list(struct job *job, const struct stream_head *head,
		struct runs *runs);

/* Own pages of @vma that are present, added to @runs. @pagemap: of /proc/PID. */
int memory_present(struct job *job, int pagemap, const struct vma *vma,
		   struct runs *runs);

#endif
