/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two processes that mattxd starts for a guest, and the guest's body. All run
 * the small program of body.c, without libc:
 *
 *   mattxd -> keeper -> warden -> body
 *
 * The keeper makes the namespaces and lives until the guest has been committed; when
 * mattxd ends or gives up before that, it ends them all. The warden is PID 1 of the
 * guest's PID namespace; it serves the module as long as the guest lives. The body is
 * taken over by the module at once.
 */
#ifndef MATTXD_WARDEN_H
#define MATTXD_WARDEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of keeper, warden and body. */
enum {
	WARDEN_HANDLE = 3, /* /dev/mattx, shared with mattxd */
	WARDEN_SOCK = 4, /* the JOB connection: the body reads its pages from it */
	WARDEN_LINE = 5, /* a socket pair to mattxd */
};

/* mattxd -> keeper, on the line. */
struct warden_order {
	int32_t tgid;
	uint32_t pad;
	uint64_t stub, stub_len;
	char offsets[128]; /* for /proc/self/timens_offsets */
	char hostname[72], domainname[72];
};

/* What the line says when something failed, and which step it was. */
struct warden_word {
	uint32_t step; /* enum warden_step */
	int32_t error; /* positive errno */
};

enum warden_step {
	WARDEN_ORDER = 1, /* the order was not understood */
	WARDEN_UNSHARE,
	WARDEN_OFFSETS,
	WARDEN_NAMES,
	WARDEN_PID1,
	WARDEN_BODY,  /* clone3(set_tid) */
	WARDEN_IOCTL, /* MATTX_IOC_BODY */
};

#define WARDEN_LET_GO 'G' /* mattxd -> keeper: it was committed */

struct job;
struct stream_start;

struct warden {
	pid_t keeper;
	int line; /* -1: none */
};

/**
 * warden_start() - make a body for the process that @start describes
 * @handle: of /dev/mattx, unbound; it is bound to the body's gang afterwards
 * Return: 0, or a negative errno after job_fail(). warden_end() in any case.
 */
int warden_start(struct warden *w, struct job *job, int handle,
		 const struct stream_start *start);

/* @keep: the guest lives; else everything that was started is ended. */
void warden_end(struct warden *w, struct job *job, bool keep);

#endif
