/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The main loop's side of jobs. All of it is for the main loop only; what the
 * jobs' own threads may call is in job.h.
 */
#ifndef MATTXD_JOB_MAIN_H
#define MATTXD_JOB_MAIN_H

#include "job.h"
#include "message.h"

struct conn;
struct peer;

/*
 * Who wants to know. Called from the main loop, never from within job_start().
 * end: once, at last; @job is freed after it.
 */
struct job_watch {
	void (*progress)(struct job *job, const struct progress *progress,
			 void *arg);
	void (*obstacle)(struct job *job, const char *text, void *arg);
	void (*end)(struct job *job, void *arg);
	void *arg;
};

int jobs_init(char *cause, size_t cause_len);

/**
 * jobs_exit() - cancel all jobs and wait for them, for @timeout_ms at most
 */
void jobs_exit(int timeout_ms);

struct job_order {
	enum job_kind kind;
	pid_t pid;
	int pidfd; /* -1: none; the job's from then on, also on failure */
	uint64_t gang;
	uint32_t uid;
	struct peer *peer;	 /* CHECK: may be NULL */
	int reason;		 /* -1: none */
	const char *reason_name; /* may be NULL */
};

/**
 * job_start() - begin a job in a thread of its own
 * Return: the job, which lives until watch->end() has been called; NULL when it is
 * refused, with @error (positive errno) and @cause.
 */
struct job *job_start(const struct job_order *order,
		      const struct job_watch *watch, int *error, char *cause,
		      size_t cause_len);

/**
 * job_unwatch() - nobody wants to know any more; the job goes on
 */
void job_unwatch(struct job *job);

/**
 * job_serve() - a JOB connection from @peer is open; takes the conn
 */
void job_serve(struct peer *peer, struct conn *conn);

/**
 * job_busy() - is there a job (not a CHECK) for this process or gang?
 * @pid, @gang: 0: any is not meant
 */
bool job_busy(pid_t pid, uint64_t gang);

/**
 * job_settle() - call @fn as soon as no JOB_SERVE has this process or gang
 * For a process that has arrived: the job that received it has a few things to put
 * away still, and a job that follows it need not be refused for that. May call
 * at once.
 */
void job_settle(pid_t pid, uint64_t gang, void (*fn)(void *arg), void *arg);

/**
 * job_home_asked() - @node's daemon asks for one of its processes
 * @serial, @id: of the request, for peer_answer()
 */
void job_home_asked(uint32_t node, uint64_t serial, uint32_t id, uint64_t gang);

/* how many there are now and were so far, for "stats" */
struct job_counts {
	unsigned int running;
	uint64_t started, done, failed;
};

void jobs_count(struct job_counts *counts);

#endif
