/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two daemons of a migration say to each other, on a JOB connection that
 * is already authenticated. Documentation/protocol.md describes the exchange.
 *
 * Every message is a struct stream_head and len bytes. Both ends are x86-64, so
 * all numbers are little-endian as they lie in memory. Nothing that
 * arrives is trusted: each receiver bounds len by what the type may carry and
 * checks each number against what was announced before.
 */
#ifndef MATTXD_STREAM_H
#define MATTXD_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "job.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the stream is little-endian"
#endif

#define STREAM_VERSION 1

enum stream_type {
	STREAM_PING = 1, /* home -> host; answered by STREAM_PONG */
	STREAM_PONG,	 /* struct stream_clocks */
	STREAM_START, /* home -> host: struct stream_start; answered by STARTED */
	STREAM_STARTED, /* there is a body */
	STREAM_RETURN, /* host -> home: struct stream_return; answered by STARTED */
	STREAM_LAYOUT,	/* struct stream_vma[], sorted; arg 1: the last one */
	STREAM_PAGES,	/* arg n: struct stream_run[n], then their contents */
	STREAM_DROP,	/* struct stream_run[]: no longer there, or all zero */
	STREAM_KEEP,	/* way home: struct stream_run[]: there, as they left */
	STREAM_MEMORY,	/* all pages have been sent */
	STREAM_PROCESS, /* struct stream_process, struct mattx_process_state */
	STREAM_THREAD,	/* arg tid: struct stream_thread, affinity, struct
				 * mattx_thread_state, xstate; the leader comes first */
	STREAM_SIGNALS, /* arg tid or 0: siginfo_t[] */
	STREAM_ARM,	/* arg: the gang's id; answered by READY */
	STREAM_READY,
	STREAM_DONE, /* the commit was answered: it runs there */
	STREAM_FAIL, /* arg errno: the cause in words; nothing follows */
	STREAM_WINDOWS, /* struct stream_window[], before the last LAYOUT, if any */
};

struct stream_head {
	uint32_t type;
	uint32_t zero;
	uint64_t arg;
	uint64_t len;
};

struct stream_clocks {
	uint64_t monotonic, boottime; /* ns */
};

struct stream_start {
	uint32_t version;
	int32_t tgid;
	int64_t monotonic, boottime; /* ns: home's clock minus the host's */
	uint64_t stub, stub_len;
	char hostname[MATTX_NAME_MAX + 1];
	char domainname[MATTX_NAME_MAX + 1];
	char pad[6];
};

struct stream_return {
	uint32_t version;
	uint32_t reason; /* system call number + 1, or 0 */
	uint64_t gang;
	char why[64]; /* it comes by itself, for this; "": it was called */
};

struct stream_vma {
	uint64_t start, end;
	uint32_t prot;	/* PROT_* */
	uint32_t flags; /* VMA_* of maps.h, those in VMA_WIRE */
};

struct stream_run {
	uint64_t addr, len;
};

/* A mapping through which the same memory is seen as through others. */
struct stream_window {
	uint64_t start, end;
	uint64_t object; /* number of the memory; they come in order */
	uint64_t pos;	 /* where in it this begins */
};

#define STREAM_AUXV 64

struct stream_process {
	/* in the order of struct prctl_mm_map */
	uint64_t start_code, end_code, start_data, end_data;
	uint64_t start_brk, brk, start_stack;
	uint64_t arg_start, arg_end, env_start, env_end;
	uint64_t auxv[STREAM_AUXV];
	uint32_t auxv_len; /* bytes */
	uint32_t personality;
	uint32_t no_new_privs, thp_disable, dumpable;
	int32_t oom_score_adj;
	uint64_t limit[16][2]; /* soft, hard; by RLIMIT_* */
};

struct stream_thread {
	char comm[16];
	uint32_t policy, priority;
	int32_t nice;
	uint32_t ioprio;
	uint64_t timerslack;
	uint32_t affinity_len; /* bytes that follow, a multiple of 8; 0: every CPU */
	uint32_t pad;
};

#define STREAM_BATCH	   (1u << 20) /* bytes of pages in one PAGES */
#define STREAM_RUNS	   (STREAM_BATCH / 4096)
#define STREAM_LIST_MAX	   (256u << 20) /* bytes of a LAYOUT, DROP or KEEP */
#define STREAM_THREAD_MAX  (1u << 20)
#define STREAM_SIGNALS_MAX (64u << 20)

/**
 * stream_send() - one message
 * Return: 0, or a negative errno after job_fail(); so for all functions here. When
 * the other side has sent STREAM_FAIL its cause is what is noted.
 */
int stream_send(struct job *job, uint32_t type, uint64_t arg, const void *buf,
		size_t len);

/* A message without payload that may get lost. */
void stream_tell(struct job *job, uint32_t type);

/* stream_send() of several pieces; @iov is used up, iov[0] is left for the head. */
int stream_sendv(struct job *job, uint32_t type, uint64_t arg,
		 struct iovec *iov, int n);

/* The next head; STREAM_FAIL is taken here. */
int stream_head(struct job *job, struct stream_head *head);

/* @len bytes of the payload. */
int stream_read(struct job *job, void *buf, size_t len);

/**
 * stream_payload() - all of a message's payload
 * @min, @unit: the length must be @min and a multiple of @unit more
 * @max: and not more than this
 * Return: memory to be freed, with a NUL behind it; NULL after job_fail().
 */
void *stream_payload(struct job *job, const struct stream_head *head,
		     size_t min, size_t unit, size_t max);

/* The next message must be of @type and have no payload. */
int stream_expect(struct job *job, uint32_t type);

/* Has the other side given up? Does not block. Return: 0, or after job_fail(). */
int stream_poll(struct job *job);

/**
 * stream_send_fail() - tell the other side why, if it can still be told
 * Waits until it has hung up, so that the cause is not lost in a reset.
 */
void stream_send_fail(struct job *job);

/* A message that does not belong here. Return: a negative errno after job_fail(). */
int stream_bad(struct job *job, const char *what);

/* For fault points. Return: 0, or after job_fail(). */
int stream_fault(struct job *job, int point);

#endif
