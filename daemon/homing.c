// SPDX-License-Identifier: GPL-2.0
/* Guests that wait to be sent home. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "homing.h"
#include "job_main.h"
#include "kernel.h"
#include "log.h"
#include "mattxd.h"
#include "peer.h"

#define RETRY_MIN_MS 200
#define RETRY_MAX_MS 5000

struct errand {
	struct errand *next;
	uint64_t gang;
	uint32_t node;
	int reason;
	char why[64];
	struct job *job; /* under way, or NULL */
	struct event *retry;
	int delay_ms;
};

static struct errand *errands;

static const char *const syscall_names[] = {
#include "syscall_names.h"
};

const char *syscall_name(int nr)
{
	if (nr < 0 ||
	    (size_t)nr >= sizeof(syscall_names) / sizeof(syscall_names[0]))
		return NULL;
	return syscall_names[nr];
}

static struct errand *find(uint64_t gang)
{
	struct errand *e;

	for (e = errands; e && e->gang != gang; e = e->next)
		;
	return e;
}

static void errand_free(struct errand *e)
{
	struct errand **at;

	for (at = &errands; *at != e; at = &(*at)->next)
		;
	*at = e->next;
	if (e->job)
		job_unwatch(e->job);
	if (e->retry)
		event_free(e->retry);
	free(e);
}

static void try_later(struct errand *e)
{
	struct timeval tv = {
		.tv_sec = e->delay_ms / 1000,
		.tv_usec = e->delay_ms % 1000 * 1000,
	};

	e->delay_ms = e->delay_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS :
						       e->delay_ms * 2;
	evtimer_add(e->retry, &tv);
}

static void job_ended(struct job *job, void *arg)
{
	struct errand *e = arg;

	e->job = NULL;
	if (job->result)
		try_later(e);
	else
		errand_free(e);
}

static void attempt(evutil_socket_t fd, short what, void *arg)
{
	struct errand *e = arg;
	struct job_watch watch = { .end = job_ended, .arg = e };
	struct job_order order = {
		.kind = JOB_HOME,
		.pidfd = -1,
		.gang = e->gang,
		.reason = e->reason,
		.reason_name = e->why,
	};
	struct kernel_gang gang;
	char cause[256];
	int error;

	(void)fd;
	(void)what;
	error = kernel_gang_find(MATTX_ROLE_HOST, e->gang, 0, &gang);
	if (error == -ENOENT || error == -ENODEV) {
		errand_free(e);
		return;
	}
	order.pid = gang.pid;
	order.peer = error ? NULL : peer_by_id(gang.node);
	if (order.peer) {
		e->node = gang.node;
		e->job = job_start(&order, &watch, &error, cause, sizeof(cause));
	}
	if (!e->job)
		try_later(e);
}

void homing_want(uint64_t gang, int reason, const char *cause)
{
	const char *name = syscall_name(reason);
	struct errand *e = find(gang);

	if (e || !gang)
		return;
	e = calloc(1, sizeof(*e));
	if (!e) {
		log_err("gang %016llx wants home: out of memory",
			(unsigned long long)gang);
		return;
	}
	e->gang = gang;
	e->reason = reason;
	e->delay_ms = RETRY_MIN_MS;
	snprintf(e->why, sizeof(e->why), "%s",
		 cause && cause[0] ? cause :
		 name		   ? name :
				     "");
	log_info("gang %016llx wants home: %s", (unsigned long long)gang, e->why);
	e->retry = evtimer_new(self.base, attempt, e);
	if (!e->retry) {
		free(e);
		return;
	}
	e->next = errands;
	errands = e;
	attempt(-1, 0, e);
}

static void look_gang(const struct kernel_gang *gang, void *arg)
{
	(void)arg;
	/* also while an earlier daemon's handle is still being closed */
	if (gang->role == MATTX_ROLE_HOST && gang->state != MATTX_GANG_BODY &&
	    gang->state != MATTX_GANG_ARMED && gang->state != MATTX_GANG_DEAD &&
	    (gang->reason >= 0 || gang->cause[0]))
		homing_want(gang->id, gang->reason, gang->cause);
}

void homing_look(void)
{
	int ret = kernel_gangs(look_gang, NULL);

	if (ret)
		log_warn("module: gangs: %s", strerror(-ret));
}

void homing_again(uint32_t node)
{
	struct timeval now = { 0 };
	struct errand *e;

	for (e = errands; e; e = e->next) {
		if (e->node != node || e->job)
			continue;
		e->delay_ms = RETRY_MIN_MS;
		evtimer_add(e->retry, &now);
	}
}

void homing_exit(void)
{
	while (errands)
		errand_free(errands);
}
