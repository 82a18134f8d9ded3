// SPDX-License-Identifier: GPL-2.0
/*
 * A migration from end to end, where it is asked for; and where the other end
 * begins to serve it.
 *
 * Way out, at home:	 check, connect, compare clocks, START, send the memory while it
 *			 runs, freeze, send the rest, ARM, commit.
 * Way home, at the host: connect, RETURN, freeze, send what changed, ARM, commit.
 *
 * Up to the commit any failure leaves the process where it was: closing the handle
 * thaws it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "check.h"
#include "fault.h"
#include "memory.h"
#include "restore.h"
#include "returned.h"
#include "stream.h"

#define FREEZE_MS 10000
#define PINGS	  8

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* --------------------------------------------------- parts of both ways */

static int open_handle(struct job *job)
{
	int fd = open("/dev/mattx", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return job_fail(job, errno, "cannot open /dev/mattx: %s",
				strerror(errno));
	return fd;
}

/* @pid 0: the gang that the handle is bound to. */
static int freeze(struct job *job, int handle, pid_t pid)
{
	struct mattx_ioc_freeze arg = { .pid = pid, .timeout_ms = FREEZE_MS };
	int error;

	if (!ioctl(handle, MATTX_IOC_FREEZE, &arg))
		return 0;
	error = errno;
	arg.cause[sizeof(arg.cause) - 1] = 0;
	if (arg.cause[0])
		return job_fail(job, error, "%s", arg.cause);
	return job_fail(job, error, "cannot be frozen: %s", strerror(error));
}

/* For the pre-copy. Return: a handle that lets it go on when it is closed. */
static int stop_for_a_moment(struct job *job)
{
	int handle = open_handle(job), ret;

	if (handle < 0)
		return handle;
	ret = freeze(job, handle, job->pid);
	if (!ret && !job_alive(job))
		ret = job_fail(job, ESRCH, "has ended");
	if (!ret)
		return handle;
	close(handle);
	return ret;
}

/* Puts the stub into the frozen process. body->stub is where. */
static int put_stub(struct body *body)
{
	struct mattx_ioc_body arg = { .stub = body->stub, .stub_len = STUB_LEN };

	if (ioctl(body->handle, MATTX_IOC_STUB, &arg))
		return job_fail(body->job, errno,
				"cannot put the stub into it: %s",
				strerror(errno));
	return 0;
}

static int commit(struct body *body, uint64_t gang, uint32_t reason)
{
	struct mattx_ioc_commit arg = { .gang = gang,
					.peer = body->job->node.id,
					.reason = reason };
	int ret = ioctl(body->handle, MATTX_IOC_COMMIT, &arg);

	if (ret && errno == ETXTBSY)
		return job_fail(body->job, errno,
				"somebody opens a file whose memory it shares");
	if (ret)
		return job_fail(body->job, errno, "the commit failed: %s",
				strerror(errno));
	if (arg.result)
		return job_fail(body->job, arg.result,
				"the commit was refused: %s",
				strerror(arg.result));
	/* only for the other daemon's log; it may have gone meanwhile */
	stream_tell(body->job, STREAM_DONE);
	return 0;
}

/* Everything was sent: the other side arms it, or says why it cannot. */
static int arm_there(struct job *job, uint64_t gang)
{
	int ret = stream_send(job, STREAM_ARM, gang, NULL, 0);

	return ret ?: stream_expect(job, STREAM_READY);
}

/* A layout without the stub has room for it here. */
static int pick_stub(struct job *job, pid_t pid, uint64_t *stub)
{
	struct maps maps;
	int ret;

	ret = maps_read(pid, 0, 0, &maps);
	if (ret)
		return job_fail(job, ret, "cannot read its mappings: %s",
				strerror(-ret));
	*stub = maps_pick(&maps, NULL, STUB_LEN);
	maps_free(&maps);
	if (!*stub)
		return job_fail(job, ENOMEM, "no room for the stub");
	return 0;
}

struct ranges {
	struct mattx_range *range;
	size_t n;
};

/* Those of a gang. To be freed in any case. */
static int read_ranges(struct body *body, struct ranges *r)
{
	struct mattx_ioc_buf arg = { .len = 0 };
	int error;

	*r = (struct ranges){ 0 };
	while (ioctl(body->handle, MATTX_IOC_GET_RANGES, &arg)) {
		error = errno;
		free(r->range);
		r->range = NULL;
		if (error != ENOSPC)
			return job_fail(body->job, error,
					"cannot read its ranges: %s",
					strerror(error));
		r->range = malloc(arg.len);
		if (!r->range)
			return job_fail(body->job, ENOMEM, "out of memory");
		arg.ptr = (uintptr_t)r->range;
	}
	r->n = r->range ? arg.len / sizeof(*r->range) : 0;
	return 0;
}

/* Those of kinds @first to @last. */
static int pick_ranges(struct job *job, const struct ranges *r, uint32_t first,
		       uint32_t last, struct runs *runs)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->range[i].kind >= first && r->range[i].kind <= last)
			runs_add(runs, r->range[i].start, r->range[i].end);
	return runs->bad ? job_fail(job, ENOMEM, "out of memory") : 0;
}

/* What of its memory is shared at home, but with nobody. */
static int pick_shared(struct job *job, const struct ranges *r, struct memory *m)
{
	return pick_ranges(job, r, MATTX_RANGE_SHARED, MATTX_RANGE_KEPT, &m->shared) ?:
		       pick_ranges(job, r, MATTX_RANGE_KEPT, MATTX_RANGE_KEPT,
				   &m->kept);
}

/* At home, of a process that is guarded. */
static int read_shared(struct body *body, struct memory *m)
{
	struct ranges r;
	size_t i;
	int ret;

	ret = read_ranges(body, &r) ?: pick_shared(body->job, &r, m);
	m->window = calloc(r.n + 1, sizeof(*m->window));
	if (!ret && !m->window)
		ret = job_fail(body->job, ENOMEM, "out of memory");
	for (i = 0; i < r.n && !ret; i++)
		m->window[m->windows++] =
			(struct stream_window){ r.range[i].start, r.range[i].end,
						r.range[i].object, 0 };
	free(r.range);
	return ret;
}

/* ------------------------------------------------------------ the way out */

struct way_out {
	struct job *job;
	struct body body;
	struct memory memory;
	struct stream_start start;
	uint64_t gang;
};

/* How far this node's clocks are ahead of the other's, by the quickest answer. */
static int compare_clocks(struct way_out *w)
{
	struct stream_clocks *theirs;
	struct stream_head head;
	uint64_t best = UINT64_MAX, mono, boot, trip;
	int i, ret;

	for (i = 0; i < PINGS; i++) {
		mono = clock_ns(CLOCK_MONOTONIC);
		boot = clock_ns(CLOCK_BOOTTIME);
		ret = stream_send(w->job, STREAM_PING, 0, NULL, 0);
		if (!ret)
			ret = stream_head(w->job, &head);
		if (ret)
			return ret;
		if (head.type != STREAM_PONG)
			return stream_bad(w->job, "an unexpected message");
		theirs = stream_payload(w->job, &head, sizeof(*theirs), 0,
					sizeof(*theirs));
		if (!theirs)
			return -w->job->result;
		trip = clock_ns(CLOCK_MONOTONIC) - mono;
		if (trip < best) {
			best = trip;
			w->start.monotonic = mono + trip / 2 - theirs->monotonic;
			w->start.boottime = boot + trip / 2 - theirs->boottime;
		}
		free(theirs);
	}
	return 0;
}

/* Has the other side make a body. */
static int start_there(struct way_out *w)
{
	struct stream_start *s = &w->start;
	struct utsname uts;
	int ret;

	ret = compare_clocks(w);
	if (!ret)
		ret = stream_fault(w->job, FAULT_OUT_CLOCKS);
	if (!ret)
		ret = pick_stub(w->job, w->job->pid, &w->body.stub);
	if (ret)
		return ret;
	uname(&uts);
	s->version = STREAM_VERSION;
	s->tgid = w->job->pid; /* it is in our PID namespace */
	s->stub = w->body.stub;
	s->stub_len = STUB_LEN;
	snprintf(s->hostname, sizeof(s->hostname), "%.64s", uts.nodename);
	snprintf(s->domainname, sizeof(s->domainname), "%.64s", uts.domainname);
	ret = stream_send(w->job, STREAM_START, 0, s, sizeof(*s));
	if (!ret)
		ret = stream_expect(w->job, STREAM_STARTED);
	return ret ?: stream_fault(w->job, FAULT_OUT_STARTED);
}

/* It stands still: what was checked while it ran is checked again. */
static int check_frozen(struct way_out *w)
{
	struct maps maps;
	int ret;

	if (!job_alive(w->job))
		return job_fail(w->job, ESRCH, "has ended");
	ret = check_process(w->job, true);
	if (ret)
		return ret;
	ret = maps_read(w->job->pid, 0, 0, &maps);
	if (ret)
		return job_fail(w->job, ret, "cannot read its mappings: %s",
				strerror(-ret));
	if (!maps_hole(&maps, w->body.stub, w->body.stub + STUB_LEN))
		ret = job_fail(w->job, EBUSY,
			       "has mapped the stub's place meanwhile");
	maps_free(&maps);
	return ret;
}

static int send_frozen(struct way_out *w)
{
	struct job *job = w->job;
	int ret;

	ret = check_guard(job, w->body.handle);
	if (!ret)
		ret = read_shared(&w->body, &w->memory);
	if (!ret)
		ret = put_stub(&w->body);
	if (!ret)
		ret = stream_fault(job, FAULT_OUT_STUB);
	if (!ret)
		ret = capture_check(&w->body);
	if (!ret)
		ret = capture_process(&w->body, FAULT_OUT_PROCESS);
	if (!ret)
		ret = capture_threads(&w->body, FAULT_OUT_THREAD,
				      FAULT_OUT_SIGNALS);
	w->memory.handle = w->body.handle;
	w->memory.stub = w->body.stub;
	w->memory.stub_len = STUB_LEN;
	if (!ret)
		ret = memory_rest(&w->memory);
	if (!ret)
		ret = stream_fault(job, FAULT_OUT_ARM);
	return ret;
}

static int hand_over(struct way_out *w)
{
	struct job *job = w->job;
	struct mattx_ioc_info info;
	int ret;

	ret = stream_fault(job, FAULT_OUT_FREEZE);
	if (!ret)
		ret = freeze(job, w->body.handle, job->pid);
	if (!ret)
		ret = stream_fault(job, FAULT_OUT_FROZEN);
	if (!ret)
		ret = body_info(&w->body, &info);
	if (!ret)
		ret = check_frozen(w);
	if (!ret)
		ret = send_frozen(w);
	if (ret)
		return ret;
	while (!w->gang)
		if (getrandom(&w->gang, sizeof(w->gang), 0) != sizeof(w->gang))
			w->gang = 0;
	ret = arm_there(job, w->gang);
	if (!ret)
		ret = stream_fault(job, FAULT_OUT_COMMIT);
	if (!ret)
		ret = job_claim(job, job->pid, w->gang);
	return ret ?: commit(&w->body, w->gang, 0);
}

static int go_out(struct way_out *w)
{
	struct job *job = w->job;
	int ret;

	ret = check_process(job, false);
	if (!ret)
		ret = stream_fault(job, FAULT_OUT_CHECK);
	if (!ret)
		ret = job_connect(job);
	if (!ret)
		ret = check_nodes(job);
	if (!ret)
		ret = stream_fault(job, FAULT_OUT_CONNECTED);
	if (ret)
		return ret;
	w->body.handle = open_handle(job);
	if (w->body.handle < 0)
		return w->body.handle;
	ret = start_there(w);
	if (!ret)
		ret = memory_open(&w->memory, job, job->pid);
	if (!ret)
		ret = memory_precopy(&w->memory, stop_for_a_moment);
	return ret ?: hand_over(w);
}

int mattx_migrate_out(struct job *job)
{
	struct way_out w = { .job = job,
			     .body = { .job = job, .handle = -1 },
			     .memory = { .pagemap = -1, .device = -1 } };
	int ret;

	ret = go_out(&w);
	if (!ret)
		returned_drop(job->pid);
	if (w.body.handle >= 0)
		close(w.body.handle); /* thaws it, unless it was committed */
	if (ret)
		stream_send_fail(job);
	memory_close(&w.memory);
	return ret;
}

/* ----------------------------------------------------------- the way home */

static int send_back(struct body *body)
{
	struct ranges ranges = { 0 };
	struct runs files = { 0 };
	struct memory m;
	int ret;

	ret = pick_stub(body->job, body->pid, &body->stub);
	if (!ret)
		ret = put_stub(body);
	if (!ret)
		ret = capture_process(body, 0);
	if (!ret)
		ret = read_ranges(body, &ranges);
	if (!ret)
		ret = pick_ranges(body->job, &ranges, MATTX_RANGE_FILE,
				  MATTX_RANGE_FILE, &files);
	if (!ret) {
		ret = memory_open(&m, body->job, body->pid);
		m.stub = body->stub;
		m.stub_len = STUB_LEN;
		if (!ret)
			ret = pick_shared(body->job, &ranges, &m);
		runs_combine(&files, &files, RUNS_OR, &m.shared);
		if (!ret)
			ret = memory_changes(&m, &files);
		memory_close(&m);
	}
	if (!ret)
		ret = capture_threads(body, 0, 0);
	runs_free(&files);
	free(ranges.range);
	return ret;
}

static int go_home(struct body *body)
{
	struct job *job = body->job;
	struct mattx_ioc_open open_arg = { .gang = job->gang,
					   .role = MATTX_ROLE_HOST };
	struct stream_return back = { .version = STREAM_VERSION,
				      .gang = job->gang,
				      .reason = job->reason + 1 };
	struct mattx_ioc_info info;
	int ret;

	snprintf(back.why, sizeof(back.why), "%s", job->reason_name);
	if (ioctl(body->handle, MATTX_IOC_OPEN, &open_arg))
		return job_fail(job, errno, "is no guest here: %s",
				strerror(errno));
	ret = body_info(body, &info);
	if (!ret)
		ret = job_claim(job, info.pid, job->gang);
	if (!ret)
		ret = job_connect(job);
	if (!ret)
		ret = stream_fault(job, FAULT_BACK_CONNECTED);
	if (!ret)
		ret = stream_send(job, STREAM_RETURN, 0, &back, sizeof(back));
	if (!ret)
		ret = stream_expect(job, STREAM_STARTED);
	if (!ret)
		ret = stream_fault(job, FAULT_BACK_STARTED);
	if (!ret)
		ret = freeze(job, body->handle, 0);
	if (!ret)
		ret = stream_fault(job, FAULT_BACK_FROZEN);
	if (!ret)
		ret = send_back(body);
	if (!ret)
		ret = stream_fault(job, FAULT_BACK_ARM);
	if (!ret)
		ret = arm_there(job, 0);
	if (!ret)
		ret = stream_fault(job, FAULT_BACK_COMMIT);
	return ret ?: commit(body, 0, back.reason);
}

int mattx_migrate_home(struct job *job)
{
	struct body body = { .job = job };
	int ret;

	body.handle = open_handle(job);
	if (body.handle < 0)
		return body.handle;
	ret = go_home(&body);
	close(body.handle); /* it goes on here, unless it was committed */
	if (ret)
		stream_send_fail(job);
	return ret;
}

/* ------------------------------------------------------------ the other end */

static int serve(struct job *job)
{
	struct stream_clocks clocks;
	struct stream_return back;
	struct stream_start start;
	struct stream_head head;
	int ret;

	for (;;) {
		ret = stream_head(job, &head);
		if (ret)
			return ret;
		if (head.type != STREAM_PING || head.len)
			break;
		clocks.monotonic = clock_ns(CLOCK_MONOTONIC);
		clocks.boottime = clock_ns(CLOCK_BOOTTIME);
		ret = stream_send(job, STREAM_PONG, 0, &clocks, sizeof(clocks));
		if (ret)
			return ret;
	}
	if (head.type == STREAM_START && head.len == sizeof(start))
		return stream_read(job, &start, sizeof(start)) ?:
			       restore_serve(job, &start);
	if (head.type == STREAM_RETURN && head.len == sizeof(back))
		return stream_read(job, &back, sizeof(back)) ?:
			       home_serve(job, &back);
	return stream_bad(job, "an unexpected message");
}

void mattx_job_serve(struct job *job)
{
	if (serve(job))
		stream_send_fail(job);
}
