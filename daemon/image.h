/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a migration has received about a process: its layout, its threads, its
 * signals. Taken from the stream and checked here; restore.c and home.c use it.
 */
#ifndef MATTXD_IMAGE_H
#define MATTXD_IMAGE_H

#include "job.h"
#include "maps.h"
#include "stream.h"

struct image_thread {
	int32_t tid;
	char *buf; /* owns the following */
	struct stream_thread *attr;
	void *affinity;
	struct mattx_thread_state *state; /* followed by its xstate */
	size_t state_len;
};

struct image_signals {
	int32_t tid; /* 0: the process's */
	void *info;
	size_t len;
};

struct image {
	struct job *job;
	uint64_t stub, stub_len; /* no mapping may be here; 0: not known yet */
	struct stream_vma *vma;	 /* as announced last */
	size_t n;
	bool last;		      /* no other layout will come */
	struct stream_window *window; /* of the last one */
	size_t windows;
	struct runs mapped; /* of it, without vdso */
	bool memory;	    /* all pages have come */
	bool has_process;
	struct stream_process process;
	struct mattx_process_state state;
	struct image_thread *thread;
	size_t threads;
	struct image_signals *signals;
	size_t nr_signals;
	uint64_t gang; /* of ARM */
	/* what is done with them; each returns 0, or after job_fail() */
	void *arg;
	int (*layout)(struct image *image);
	int (*pages)(struct image *image, struct stream_run *run, int n,
		     size_t bytes);
	int (*drop)(struct image *image, const struct runs *runs);
	int (*keep)(struct image *image, const struct runs *runs);
	int (*rest)(struct image *image); /* after the last page */
};

/**
 * image_receive() - take messages up to and including STREAM_ARM
 * Return: 0, or a negative errno after job_fail(). image_free() in any case.
 */
int image_receive(struct image *image);
void image_free(struct image *image);

/* Is all of [start, start + len) mapped by the layout and not vdso? */
bool image_mapped(const struct image *image, uint64_t start, uint64_t len);

/* How madvise(2) and mlock2(2) are to be called to go from flags @from to @to. */
int image_advice(uint32_t from, uint32_t to, int advice[8]);

#endif
