// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a frozen process: from the module, from /proc, and by calls that it makes
 * itself where nothing else would tell.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "capture.h"

#define IOPRIO_WHO_PROCESS 1

/* ------------------------------------------------------ small files */

/* Reads a small file of /proc. Return: bytes, with a NUL behind; or a negative errno. */
static ssize_t slurp(pid_t pid, const char *name, char *buf, size_t len)
{
	char path[64];
	ssize_t n, at = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + at, len - 1 - at)) > 0)
		at += n;
	if (n < 0)
		at = -errno;
	else
		buf[at] = 0;
	close(fd);
	return at;
}

static int cannot(struct body *body, const char *what, long error)
{
	return job_fail(body->job, error, "cannot read its %s: %s", what,
			strerror(error < 0 ? -error : error));
}

/* The number behind "name:" of a status file, or -1. */
static long status_field(const char *status, const char *name)
{
	const char *s = strstr(status, name);

	return s ? strtol(s + strlen(name), NULL, 10) : -1;
}

/* An ioctl that fills a buffer, which is made as large as it has to be. */
static int get(struct body *body, unsigned long cmd, int32_t tid,
	       const char *what, void **buf, size_t *len)
{
	struct mattx_ioc_buf arg = { .tid = tid, .len = 65536 };
	void *more;

	*buf = NULL;
	for (;;) {
		more = realloc(*buf, arg.len + 8);
		if (!more) {
			free(*buf);
			*buf = NULL;
			return job_fail(body->job, ENOMEM, "out of memory");
		}
		*buf = more;
		arg.ptr = (uintptr_t)more;
		if (!ioctl(body->handle, cmd, &arg))
			break;
		if (errno != ENOSPC) {
			int error = errno;

			free(*buf);
			*buf = NULL;
			return cannot(body, what, error);
		}
	}
	*len = arg.len;
	return 0;
}

/* ------------------------------------------------------ the process */

/* Field @n of /proc/PID/stat, counted as in proc(5); @s: behind the name. */
static uint64_t stat_field(const char *s, int n)
{
	for (n -= 3; n > 0 && s; n--) {
		s = strchr(s, ' ');
		s = s ? s + 1 : NULL;
	}
	return s ? strtoull(s, NULL, 10) : 0;
}

static int read_places(struct body *body, struct stream_process *p)
{
	char buf[4096], *s;
	ssize_t n;
	long brk;

	n = slurp(body->pid, "stat", buf, sizeof(buf));
	s = n > 0 ? strrchr(buf, ')') : NULL;
	if (!s)
		return cannot(body, "stat", n < 0 ? n : EINVAL);
	s += 2;
	p->start_code = stat_field(s, 26);
	p->end_code = stat_field(s, 27);
	p->start_stack = stat_field(s, 28);
	p->start_data = stat_field(s, 45);
	p->end_data = stat_field(s, 46);
	p->start_brk = stat_field(s, 47);
	p->arg_start = stat_field(s, 48);
	p->arg_end = stat_field(s, 49);
	p->env_start = stat_field(s, 50);
	p->env_end = stat_field(s, 51);
	brk = body_call(body, body->tgid, SYS_brk, 0);
	if (brk < 0)
		return cannot(body, "break", brk);
	p->brk = brk;
	n = slurp(body->pid, "auxv", buf, sizeof(p->auxv) + 1);
	if (n < 0)
		return cannot(body, "auxv", n);
	p->auxv_len = n / 16 * 16;
	memcpy(p->auxv, buf, p->auxv_len);
	return 0;
}

static int read_attributes(struct body *body, struct stream_process *p)
{
	struct rlimit limit;
	char buf[8192];
	ssize_t n;
	int i;

	n = slurp(body->pid, "personality", buf, sizeof(buf));
	if (n < 0)
		return cannot(body, "personality", n);
	p->personality = strtoul(buf, NULL, 16);
	n = slurp(body->pid, "oom_score_adj", buf, sizeof(buf));
	if (n < 0)
		return cannot(body, "oom_score_adj", n);
	p->oom_score_adj = atoi(buf);
	n = slurp(body->pid, "status", buf, sizeof(buf));
	if (n < 0)
		return cannot(body, "status", n);
	p->no_new_privs = status_field(buf, "\nNoNewPrivs:") == 1;
	p->thp_disable =
		body_call(body, body->tgid, SYS_prctl, PR_GET_THP_DISABLE) == 1;
	p->dumpable = body_call(body, body->tgid, SYS_prctl, PR_GET_DUMPABLE);
	for (i = 0; i < RLIM_NLIMITS; i++) {
		if (prlimit(body->pid, i, NULL, &limit))
			return cannot(body, "resource limits", errno);
		p->limit[i][0] = limit.rlim_cur;
		p->limit[i][1] = limit.rlim_max;
	}
	return 0;
}

int capture_process(struct body *body, int point)
{
	struct {
		struct stream_process process;
		struct mattx_process_state state;
	} all;
	struct mattx_ioc_buf arg = { .len = sizeof(all.state),
				     .ptr = (uintptr_t)&all.state };
	int ret;

	memset(&all, 0, sizeof(all));
	ret = point ? stream_fault(body->job, point) : 0;
	if (!ret)
		ret = read_places(body, &all.process);
	if (!ret)
		ret = read_attributes(body, &all.process);
	if (!ret && ioctl(body->handle, MATTX_IOC_GET_PROCESS, &arg))
		ret = cannot(body, "process state", errno);
	return ret ?: stream_send(body->job, STREAM_PROCESS, 0, &all, sizeof(all));
}

int capture_check(struct body *body)
{
	long n;

	n = body_call(body, body->tgid, SYS_modify_ldt, 0, body_scratch(body),
		      SCRATCH_LEN);
	if (n > 0)
		return job_fail(body->job, EOPNOTSUPP, "has an LDT");
	return 0;
}

/* ---------------------------------------------------------- threads */

/* TIDs as the process sees them and as this node does; the guest's differ. */
struct tids {
	struct {
		int32_t own;
		pid_t here;
	} * tid;
	size_t n;
};

static int read_tids(struct body *body, struct tids *tids)
{
	char path[64], status[8192], *s, *end;
	struct dirent *entry;
	DIR *dir;

	*tids = (struct tids){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/task", (int)body->pid);
	dir = opendir(path);
	if (!dir)
		return cannot(body, "threads", errno);
	while ((entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);
		void *more;

		if (tid < 1 || slurp(tid, "status", status, sizeof(status)) < 0)
			continue;
		s = strstr(status, "\nNSpid:");
		end = s ? strchrnul(s + 1, '\n') : NULL;
		if (!s)
			continue;
		*end = 0;
		s = strrchr(s, '\t');
		more = realloc(tids->tid, (tids->n + 1) * sizeof(*tids->tid));
		if (!s || !more)
			continue;
		tids->tid = more;
		tids->tid[tids->n].own = atoi(s + 1);
		tids->tid[tids->n++].here = tid;
	}
	closedir(dir);
	return 0;
}

static pid_t tid_here(const struct tids *tids, int32_t own)
{
	size_t i;

	for (i = 0; i < tids->n; i++)
		if (tids->tid[i].own == own)
			return tids->tid[i].here;
	return 0;
}

/* Its CPUs. Return: bytes; 0 when it may use all that there are. */
static size_t read_affinity(pid_t tid, uint64_t mask[1024])
{
	long len = syscall(SYS_sched_getaffinity, tid, 8192, mask);
	int n = 0;
	long i;

	for (i = 0; i < len / 8; i++)
		n += __builtin_popcountll(mask[i]);
	return len <= 0 || n >= get_nprocs() ? 0 : len;
}

static int read_attr(struct body *body, pid_t tid, struct stream_thread *a)
{
	struct sched_param param = { 0 };
	char buf[64];
	ssize_t n;
	int policy;

	n = slurp(tid, "comm", buf, sizeof(buf));
	if (n < 0)
		return cannot(body, "thread's name", n);
	if (n && buf[n - 1] == '\n')
		buf[n - 1] = 0;
	snprintf(a->comm, sizeof(a->comm), "%.15s", buf);
	policy = sched_getscheduler(tid);
	if (policy < 0 || sched_getparam(tid, &param))
		return cannot(body, "scheduling policy", errno);
	a->policy = policy;
	a->priority = param.sched_priority;
	errno = 0;
	a->nice = getpriority(PRIO_PROCESS, tid);
	if (a->nice == -1 && errno)
		return cannot(body, "nice value", errno);
	n = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid);
	/* class none means: as the nice value says */
	a->ioprio = n > 0 && n >> 13 ? n : 0;
	n = slurp(tid, "timerslack_ns", buf, sizeof(buf));
	a->timerslack = n > 0 ? strtoull(buf, NULL, 10) : 50000;
	return 0;
}

static int send_thread(struct body *body, const struct tids *tids, int32_t own)
{
	struct stream_thread attr = { .pad = 0 };
	struct iovec iov[4];
	uint64_t mask[1024];
	pid_t tid = tid_here(tids, own);
	void *state;
	size_t len;
	int ret;

	if (!tid)
		return job_fail(body->job, ESRCH,
				"thread %d is not to be found", (int)own);
	ret = read_attr(body, tid, &attr);
	if (ret)
		return ret;
	attr.affinity_len = read_affinity(tid, mask);
	ret = get(body, MATTX_IOC_GET_THREAD, own, "thread state", &state, &len);
	if (ret)
		return ret;
	iov[1] = (struct iovec){ &attr, sizeof(attr) };
	iov[2] = (struct iovec){ mask, attr.affinity_len };
	iov[3] = (struct iovec){ state, len };
	ret = stream_sendv(body->job, STREAM_THREAD, own, iov, 4);
	free(state);
	return ret;
}

static int send_signals(struct body *body, int32_t tid)
{
	void *info;
	size_t len;
	int ret;

	ret = get(body, MATTX_IOC_GET_SIGNALS, tid, "pending signals", &info,
		  &len);
	if (!ret && len)
		ret = stream_send(body->job, STREAM_SIGNALS, tid, info, len);
	free(info);
	return ret;
}

int capture_threads(struct body *body, int thread_point, int signal_point)
{
	struct tids tids;
	void *list = NULL;
	int32_t *own;
	size_t len, i;
	int ret;

	ret = read_tids(body, &tids);
	if (!ret)
		ret = get(body, MATTX_IOC_THREADS, 0, "threads", &list, &len);
	own = list;
	for (i = 0; !ret && i < len / sizeof(*own); i++) {
		ret = thread_point ? stream_fault(body->job, thread_point) : 0;
		if (!ret)
			ret = send_thread(body, &tids, own[i]);
	}
	if (!ret && signal_point)
		ret = stream_fault(body->job, signal_point);
	if (!ret)
		ret = send_signals(body, 0);
	for (i = 0; !ret && i < len / sizeof(*own); i++)
		ret = send_signals(body, own[i]);
	free(tids.tid);
	free(list);
	return ret;
}
