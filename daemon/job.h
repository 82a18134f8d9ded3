/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A job: one migration, in one direction, at one of its two ends. It has a
 * thread of its own and does blocking I/O; the main loop is never held up by
 * it.
 *
 *   JOB_OUT    asked for by mattxctl, at the process's home: PID -> node
 *   JOB_HOME   at the host: a guest goes home. By "expel" here, by "home" at the
 *              owner's side (its daemon asks over the control connection), or
 *              because the module says that the guest cannot go on here
 *   JOB_SERVE  the other end of a JOB connection, of either kind
 *   JOB_CHECK  asked for by mattxctl: would PID move to node?
 *
 * Life: job.c makes it and starts its thread; the thread runs one of the four
 * functions below, which are the migration's own (migrate.c, check.c), and its
 * result goes back to the main loop, which tells those who wait and frees it.
 * While it lives, "pid" (and "gang", once job_claim() knows it) is busy: a second job
 * for the same process is refused as "already on its way".
 *
 * What only the job's thread writes needs no lock: sock, pid, gang, result,
 * cause. The functions named job_*() are for that thread.
 */
#ifndef MATTXD_JOB_H
#define MATTXD_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <mattx.h>
#include "facts.h"

#define JOB_CAUSE_MAX 256

enum job_kind {
	JOB_OUT,
	JOB_HOME,
	JOB_SERVE,
	JOB_CHECK,
};

/* A node as it was when the job began; constant for the job's life. */
struct node_info {
	uint32_t id;
	char name[MATTX_NAME_MAX];
	struct sockaddr_storage addr;
	socklen_t addr_len;
	uint64_t instance;  /* of its module, as of the last control HELLO */
	struct facts facts; /* as of that HELLO, or of the JOB connection's */
};

struct job_private;

struct job {
	enum job_kind kind;
	int sock;      /* the JOB connection: blocking, keyed by kTLS when
				 * encryption is on. -1 before job_connect(). Closed
				 * by job.c at the end */
	pid_t pid;     /* as this node sees it; 0: not known */
	int pidfd;     /* of that process, -1: none. Made before the caller's
				 * right to it was checked, so: still alive means it
				 * is still the process that was asked for */
	uint64_t gang; /* 0: none yet */
	uint32_t uid;  /* who asked; 0 also for the daemon itself */
	struct node_info self;
	struct node_info node; /* the other side; CHECK: id 0 when none was named */
	int reason; /* HOME: number of the system call that wants it, or -1 */
	char reason_name[64]; /* its name or the module's cause, or "" */
	bool verbose;
	int result;		   /* 0 or a positive errno, by job_fail() */
	char cause[JOB_CAUSE_MAX]; /* in words, by job_fail() */
	struct job_private *priv;  /* job.c's own */
};

/* ------------------------------------------ what the migration provides */

/**
 * mattx_migrate_out() - PID goes to job->node
 * At home. Calls job_connect() when it wants the JOB connection.
 * Return: 0, or a negative errno after job_fail().
 */
int mattx_migrate_out(struct job *job);

/**
 * mattx_migrate_home() - guest job->gang goes to job->node, its home
 * At the host; pid is the guest's as this node sees it. Return: as above.
 */
int mattx_migrate_home(struct job *job);

/**
 * mattx_job_serve() - the other end of either
 * job->sock is connected, the other side is authenticated and is job->node.
 * job->pid and job->gang are 0 until the migration has learned them and has called
 * job_claim(). The result is logged only; the other side is told by the
 * migration's own messages.
 */
void mattx_job_serve(struct job *job);

/**
 * mattx_migrate_check() - what would stop job->pid from going to job->node?
 * Freezes nothing, changes nothing. Reports every obstacle by job_obstacle(), not
 * only the first. Node id 0: only what concerns the process itself.
 * Return: 0 also when there are obstacles; a negative errno after job_fail() when
 * it could not find out.
 */
int mattx_migrate_check(struct job *job);

/* ------------------------------------------------- what the jobs may use */

/**
 * job_connect() - open the JOB connection to job->node
 * Connects, authenticates, encrypts, says HELLO; sets job->sock, job->node.facts
 * and job->node.instance. Blocks for 20 s at most.
 * Return: 0, or a negative errno after job_fail().
 */
int job_connect(struct job *job);

/**
 * job_fail() - note why the job failed
 * @error: errno, positive or negative
 * Only the first call counts, so causes can be noted where they occur. Text without
 * the process's PID or the node's name: they are put in front.
 * Return: -abs(error).
 */
int job_fail(struct job *job, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * job_obstacle() - CHECK: one thing that stands in the way
 */
void job_obstacle(struct job *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * job_progress() - how far it is; cheap, may be called for every block
 * @phase: constant string: "pre-copy", "frozen", ...
 * @done: bytes
 * @total: bytes, 0: not known
 */
void job_progress(struct job *job, const char *phase, uint64_t done,
		  uint64_t total);

/**
 * job_claim() - the process that this job is about is known (now)
 * @pid: as this node sees it, 0: none yet
 * @gang: 0: none yet
 * May be called again when more is known.
 * Return: 0, or -EALREADY after job_fail() when another job has either of them.
 */
int job_claim(struct job *job, pid_t pid, uint64_t gang);

/**
 * job_alive() - is job->pid still the process that was asked for?
 * To be asked once more after the freeze. True also without a pidfd.
 */
bool job_alive(struct job *job);

/**
 * job_cancelled() - the daemon is about to end: give up what can be given up
 * The connection has been shut down as well, so no I/O blocks. Not to be obeyed
 * after the commit was asked for.
 */
bool job_cancelled(struct job *job);

/**
 * job_adopt() - the daemon reaps this child when it ends
 * For children that outlive the job (the warden). Context: any thread.
 * Return: 0 or a negative errno; then the caller reaps it.
 */
int job_adopt(struct job *job, pid_t child);

/**
 * job_say() - one line to the log, with PID and node in front
 */
void job_say(struct job *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
