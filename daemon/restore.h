/* SPDX-License-Identifier: GPL-2.0 */
/* A process is put together: from a fresh body (host), or in its deputy (home). */
#ifndef MATTXD_RESTORE_H
#define MATTXD_RESTORE_H

#include "image.h"
#include "job.h"
#include "maps.h"

/* One page of code, the rest for arguments. */
#define STUB_LEN    (PAGE + SCRATCH_LEN)
#define SCRATCH_LEN (8 * PAGE)

#define BODY_CALLS 512

/* Calls that are still to be made, and what to say if one fails. */
struct body_queue {
	struct mattx_ioc_call call[BODY_CALLS];
	struct {
		const char *what; /* "map", ... */
		int allow;	  /* this errno does not matter; 0: all do */
	} note[BODY_CALLS];
	unsigned int n;
};

/* A process whose threads make the calls that we want. */
struct body {
	struct job *job;
	int handle;   /* of /dev/mattx, bound to it */
	pid_t pid;    /* as this node sees it */
	int32_t tgid; /* as it sees itself */
	uint64_t stub;
	struct body_queue *queue; /* body_range()'s, NULL: none yet */
};

/**
 * body_call() - have thread @tid of a body make a system call
 * Return: what the call returned, or what kept it from being made: negative errno.
 */
#define body_call(body, tid, nr, ...) \
	body_call_args(body, tid, nr, (uint64_t[6]){ __VA_ARGS__ })
long body_call_args(struct body *body, int32_t tid, long nr,
		    const uint64_t args[6]);

/**
 * body_range() - have the leader make a call about the range [start, end), later
 * @what: for the message when it fails: "cannot what start-end: why"
 * @allow: errno that is no failure, or 0
 * @nr: a call with the arguments start, end - start, then @c to @f
 *
 * The calls are made in order, at the latest by body_flush(). Return: 0, or a negative
 * errno after job_fail(), perhaps for an earlier call.
 */
int body_range(struct body *body, const char *what, int allow, long nr,
	       uint64_t start, uint64_t end, uint64_t c, uint64_t d, uint64_t e,
	       uint64_t f);
int body_flush(struct body *body);
void body_free(struct body *body);

/* Where the scratch area begins, for body_call()'s arguments. */
static inline uint64_t body_scratch(const struct body *body)
{
	return body->stub + PAGE;
}

/* @len bytes to offset @at of the scratch area. Return: 0 or a negative errno. */
int body_put(struct body *body, size_t at, const void *buf, size_t len);

/* Who it is: fills pid and tgid. Return: 0, or a negative errno after job_fail(). */
int body_info(struct body *body, struct mattx_ioc_info *info);

/* The ioctls that take a struct mattx_ioc_buf. Return: 0, or after job_fail(). */
int body_set(struct body *body, unsigned long cmd, const char *what,
	     int32_t tid, const void *buf, size_t len);

/* By body_range(): a mapping's attributes from flags @from to those of @vma. */
int body_protect(struct body *body, const struct stream_vma *vma,
		 uint64_t start, uint64_t end, uint32_t from);

/* By body_range(): mmap(2) of [start, end) as @vma is, with protection @prot. */
int body_map(struct body *body, const struct stream_vma *vma, uint64_t start,
	     uint64_t end, uint32_t prot);

/* brk, arguments, environment, auxv. Return: 0, or after job_fail(). */
int body_mm(struct body *body, const struct stream_process *process);

/* Gives the module all threads, the process, the signals. @point: fault point. */
int body_states(struct body *body, const struct image *image, int point);

/* The process starts to be restored: all the host does. Runs until the end of the job. */
struct stream_start;
int restore_serve(struct job *job, const struct stream_start *start);

/* A guest comes home: all that home does. */
int home_serve(struct job *job, const struct stream_return *ret);

#endif
