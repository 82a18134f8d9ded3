// SPDX-License-Identifier: GPL-2.0
/*
 * The host's side of a way out: a fresh body becomes the process, by system calls
 * that it makes itself. Pages go from the socket straight to their place.
 *
 *   body made -> emptied, vdso moved -> mapped, filled, in rounds
 *   -> all has arrived -> threads, protections, states -> armed -> READY
 *
 * Until it is armed everything is readable and writable. The body is root until
 * shortly before that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault.h"
#include "memory.h"
#include "restore.h"
#include "warden.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x10
#endif
#define PARK_ADDR   0x32d000000000ull /* where the vdso waits, if it must */
#define VDSO_PIECES 8

/* ----------------------------------------------------- calls of a body */

/*
 * A signal for a deputy interrupts the call that its thread makes, or is about to make,
 * so that it can be forwarded. The call has to be made again, as the kernel would.
 */
static bool interrupted(long ret)
{
	return ret == -512 || ret == -513 || ret == -514; /* -ERESTARTSYS... */
}

long body_call_args(struct body *body, int32_t tid, long nr,
		    const uint64_t args[6])
{
	struct mattx_ioc_call call = { .tid = tid, .nr = nr };

	memcpy(call.args, args, sizeof(call.args));
	do {
		if (ioctl(body->handle, MATTX_IOC_CALL, &call))
			return -errno;
	} while (interrupted(call.ret));
	return call.ret;
}

int body_put(struct body *body, size_t at, const void *buf, size_t len)
{
	struct iovec local = { (void *)buf, len };
	struct iovec remote = { (void *)(body_scratch(body) + at), len };
	ssize_t n;

	if (at > SCRATCH_LEN || len > SCRATCH_LEN - at)
		return -E2BIG;
	n = process_vm_writev(body->pid, &local, 1, &remote, 1, 0);
	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EFAULT;
}

int body_info(struct body *body, struct mattx_ioc_info *info)
{
	if (ioctl(body->handle, MATTX_IOC_INFO, info))
		return job_fail(body->job, errno,
				"cannot ask the module about it: %s",
				strerror(errno));
	body->pid = info->pid;
	body->tgid = info->tgid;
	return 0;
}

int body_set(struct body *body, unsigned long cmd, const char *what,
	     int32_t tid, const void *buf, size_t len)
{
	struct mattx_ioc_buf arg = { .tid = tid,
				     .len = len,
				     .ptr = (uintptr_t)buf };

	if (!ioctl(body->handle, cmd, &arg))
		return 0;
	if (tid)
		return job_fail(body->job, errno,
				"cannot set %s of thread %d: %s", what,
				(int)tid, strerror(errno));
	return job_fail(body->job, errno, "cannot set %s: %s", what,
			strerror(errno));
}

/* A call that must succeed. */
static int must(struct body *body, long ret, const char *what)
{
	if (ret >= 0)
		return 0;
	return job_fail(body->job, ret, "cannot %s: %s", what, strerror(-ret));
}

/* The same about a range. */
static int must_at(struct body *body, long ret, const char *what,
		   uint64_t start, uint64_t end)
{
	if (ret >= 0)
		return 0;
	return job_fail(body->job, ret, "cannot %s %llx-%llx: %s", what,
			(unsigned long long)start, (unsigned long long)end,
			strerror(-ret));
}

/* -------------------------------------------------------- calls in rows */

/* Makes queued calls from number @at on. Return: how many were made; negative errno. */
static int make_calls(struct body *body, unsigned int at)
{
	struct body_queue *q = body->queue;
	struct mattx_ioc_buf arg = { .tid = body->tgid,
				     .len = (q->n - at) * sizeof(q->call[0]),
				     .ptr = (uintptr_t)&q->call[at] };

	if (ioctl(body->handle, MATTX_IOC_CALLS, &arg))
		return -errno;
	return arg.len / sizeof(q->call[0]);
}

/* What is wrong with a call that was made? Return: 0 or a negative errno. */
static int verdict(const struct mattx_ioc_call *call, int allow)
{
	if (call->ret < 0 && call->ret >= -4095)
		return allow && call->ret == -allow ? 0 : (int)call->ret;
	/* a kernel that does not know MAP_FIXED_NOREPLACE goes elsewhere */
	return call->nr == SYS_mmap && (uint64_t)call->ret != call->args[0] ?
		       -EEXIST :
		       0;
}

/* Makes some of the queued calls, from *@at on, which moves behind those that are done. */
static int flush_some(struct body *body, unsigned int *at)
{
	struct body_queue *q = body->queue;
	int made = make_calls(body, *at), ret = 0;
	unsigned int last;

	if (made <= 0)
		return job_fail(body->job, made ? made : EIO,
				"cannot have it make calls: %s",
				strerror(made ? -made : EIO));
	/* only the last one can have failed; any may have mapped elsewhere */
	for (last = *at + made - 1; *at < last && !ret; ++*at)
		ret = verdict(&q->call[*at], 0);
	if (!ret) {
		if (interrupted(q->call[last].ret))
			return 0;
		ret = verdict(&q->call[last], q->note[last].allow);
	} else {
		--*at;
	}
	if (ret)
		return job_fail(body->job, ret, "cannot %s %llx-%llx: %s",
				q->note[*at].what,
				(unsigned long long)q->call[*at].args[0],
				(unsigned long long)(q->call[*at].args[0] +
						     q->call[*at].args[1]),
				strerror(-ret));
	++*at;
	return 0;
}

int body_flush(struct body *body)
{
	struct body_queue *q = body->queue;
	unsigned int at = 0;
	int ret = 0;

	while (q && at < q->n && !ret)
		ret = flush_some(body, &at);
	if (q)
		q->n = 0;
	return ret;
}

int body_range(struct body *body, const char *what, int allow, long nr,
	       uint64_t start, uint64_t end, uint64_t c, uint64_t d, uint64_t e,
	       uint64_t f)
{
	struct body_queue *q = body->queue;
	int ret = 0;

	if (!q) {
		q = body->queue = calloc(1, sizeof(*q));
		if (!q)
			return job_fail(body->job, ENOMEM, "out of memory");
	}
	if (q->n == BODY_CALLS)
		ret = body_flush(body);
	q->call[q->n] = (struct mattx_ioc_call){
		.nr = nr,
		.args = { start, end - start, c, d, e, f },
	};
	q->note[q->n].what = what;
	q->note[q->n++].allow = allow;
	return ret;
}

void body_free(struct body *body)
{
	free(body->queue);
	body->queue = NULL;
}

/* ------------------------------------------------------------- mappings */

int body_map(struct body *body, const struct stream_vma *vma, uint64_t start,
	     uint64_t end, uint32_t prot)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	if (vma->flags & VMA_GROWSDOWN)
		flags |= MAP_GROWSDOWN;
	/* what the process cannot write does not count as memory it may use up */
	if (vma->flags & VMA_NORESERVE || !(vma->prot & PROT_WRITE))
		flags |= MAP_NORESERVE;
	return body_range(body, "map", 0, SYS_mmap, start, end, prot, flags,
			  -1ull, 0);
}

int body_protect(struct body *body, const struct stream_vma *vma,
		 uint64_t start, uint64_t end, uint32_t from)
{
	int advice[8], n, i, ret = 0;

	n = image_advice(from, vma->flags, advice);
	for (i = 0; i < n && !ret; i++) {
		/* a kernel without KSM or huge pages does without */
		bool soft = advice[i] == MADV_MERGEABLE ||
			    advice[i] == MADV_UNMERGEABLE ||
			    advice[i] == MADV_HUGEPAGE ||
			    advice[i] == MADV_NOHUGEPAGE;

		ret = body_range(body, "advise about", soft ? EINVAL : 0,
				 SYS_madvise, start, end, advice[i], 0, 0, 0);
	}
	if (ret || !((from ^ vma->flags) & VMA_LOCKED))
		return ret;
	if (!(vma->flags & VMA_LOCKED))
		return body_range(body, "unlock", 0, SYS_munlock, start, end, 0,
				  0, 0, 0);
	/* what may not be touched is locked, but there is nothing to be had */
	return body_range(body, "lock", vma->prot ? 0 : ENOMEM, SYS_mlock2,
			  start, end,
			  vma->flags & VMA_ONFAULT ? MLOCK_ONFAULT : 0, 0, 0, 0);
}

/* ---------------------------------------------------------- the process */

int body_mm(struct body *body, const struct stream_process *p)
{
	struct prctl_mm_map map = {
		.start_code = p->start_code,
		.end_code = p->end_code,
		.start_data = p->start_data,
		.end_data = p->end_data,
		.start_brk = p->start_brk,
		.brk = p->brk,
		.start_stack = p->start_stack,
		.arg_start = p->arg_start,
		.arg_end = p->arg_end,
		.env_start = p->env_start,
		.env_end = p->env_end,
		.auxv_size = p->auxv_len,
		.exe_fd = -1,
	};
	long ret;

	if (p->auxv_len)
		map.auxv = (void *)(body_scratch(body) + sizeof(map));
	ret = body_put(body, 0, &map, sizeof(map));
	if (!ret)
		ret = body_put(body, sizeof(map), p->auxv, p->auxv_len);
	if (!ret)
		ret = body_call(body, body->tgid, SYS_prctl, PR_SET_MM,
				PR_SET_MM_MAP, body_scratch(body), sizeof(map));
	return must(body, ret, "set where its parts are (PR_SET_MM_MAP)");
}

/* Up, because a timer never fires early. */
static struct timeval ns_to_timeval(uint64_t ns)
{
	uint64_t us = (ns + 999) / 1000;

	return (struct timeval){ us / 1000000, us % 1000000 };
}

/*
 * CPU-time timers run where the process runs. Both are always set: the deputy still has
 * those that its guest may have ended long ago.
 */
static int set_cpu_timers(struct body *body, const struct mattx_process_state *s)
{
	const struct itimerval timers[] = {
		{ ns_to_timeval(s->virt_interval), ns_to_timeval(s->virt_value) },
		{ ns_to_timeval(s->prof_interval), ns_to_timeval(s->prof_value) },
	};
	static const int which[] = { ITIMER_VIRTUAL, ITIMER_PROF };
	const uint64_t base = body_scratch(body);
	size_t i;
	int ret = body_put(body, 0, timers, sizeof(timers));

	for (i = 0; i < 2 && !ret; i++)
		ret = body_call(body, body->tgid, SYS_setitimer, which[i],
				base + i * sizeof(*timers), 0);
	return must(body, ret, "set its CPU-time timers");
}

int body_states(struct body *body, const struct image *image, int point)
{
	size_t i;
	int ret;

	for (i = 0; i < image->threads; i++) {
		const struct image_thread *t = &image->thread[i];

		ret = stream_fault(body->job, point) ?:
			      body_set(body, MATTX_IOC_SET_THREAD, "the state",
				       t->tid, t->state, t->state_len);
		if (ret)
			return ret;
	}
	ret = body_set(body, MATTX_IOC_SET_PROCESS, "the process's state", 0,
		       &image->state, sizeof(image->state));
	if (!ret)
		ret = set_cpu_timers(body, &image->state);
	for (i = 0; i < image->nr_signals && !ret; i++)
		ret = body_set(body, MATTX_IOC_SET_SIGNALS, "pending signals",
			       image->signals[i].tid, image->signals[i].info,
			       image->signals[i].len);
	return ret;
}

/* ------------------------------------------------------------ the build */

struct restore {
	struct image image;
	struct body body;
	struct warden warden;
	struct runs mapped; /* in the body */
	bool emptied;
	struct vma vdso[VDSO_PIECES]; /* where the guest has it */
	size_t pieces;
};

static int move(struct body *body, const struct vma *piece, uint64_t to)
{
	uint64_t len = piece->end - piece->start;
	long ret;

	if (piece->start == to)
		return 0;
	ret = body_call(body, body->tgid, SYS_mremap, piece->start, len, len,
			MREMAP_MAYMOVE | MREMAP_FIXED, to);
	return must_at(body, ret, "move the vdso to", to, to + len);
}

/* Moves the body's vdso and its data pages to where the guest has its own. */
static int place_vdso(struct restore *r, struct vma *own, size_t n)
{
	uint64_t at = PARK_ADDR;
	size_t i;
	int ret = 0;

	if (n != r->pieces)
		return job_fail(r->image.job, ENOEXEC,
				"its vdso has another form here");
	for (i = 0; i < n; i++)
		if (own[i].end - own[i].start != r->vdso[i].end - r->vdso[i].start)
			return job_fail(r->image.job, ENOEXEC,
					"its vdso has another size here");
	/* out of each other's way, then to their places */
	for (i = 0; i < n && !ret; i++) {
		uint64_t len = own[i].end - own[i].start;

		ret = move(&r->body, &own[i], at);
		own[i].start = at;
		own[i].end = at + len;
		at += len;
	}
	for (i = 0; i < n && !ret; i++)
		ret = move(&r->body, &own[i], r->vdso[i].start);
	return ret;
}

/* Unmaps all that the body's own program had. */
static int empty(struct restore *r)
{
	struct body *body = &r->body;
	struct vma own[VDSO_PIECES];
	struct maps maps;
	size_t i, n = 0;
	int ret;

	ret = maps_read(body->pid, body->stub, STUB_LEN, &maps);
	if (ret)
		return job_fail(body->job, ret,
				"cannot read the body's mappings: %s",
				strerror(-ret));
	for (i = 0; i < maps.n && !ret; i++) {
		const struct vma *vma = &maps.vma[i];

		if (!(vma->flags & VMA_VDSO))
			ret = body_range(body, "unmap", 0, SYS_munmap,
					 vma->start, vma->end, 0, 0, 0, 0);
		else if (n < VDSO_PIECES)
			own[n++] = *vma;
	}
	maps_free(&maps);
	ret = ret ?: body_flush(body);
	if (!ret)
		ret = place_vdso(r, own, n);
	r->emptied = true;
	return ret;
}

/* The layout's vdso: noted the first time, and must stay then. */
static int note_vdso(struct restore *r)
{
	const struct image *image = &r->image;
	size_t i, n = 0;

	for (i = 0; i < image->n; i++) {
		const struct stream_vma *vma = &image->vma[i];

		if (!(vma->flags & VMA_VDSO))
			continue;
		if (n == VDSO_PIECES)
			return job_fail(image->job, E2BIG,
					"its vdso has too many parts");
		if (r->emptied &&
		    (n >= r->pieces || r->vdso[n].start != vma->start ||
		     r->vdso[n].end != vma->end))
			return job_fail(image->job, EBUSY,
					"its vdso has moved meanwhile");
		r->vdso[n++] =
			(struct vma){ .start = vma->start, .end = vma->end };
	}
	if (r->emptied && n != r->pieces)
		return job_fail(image->job, EBUSY,
				"its vdso has moved meanwhile");
	r->pieces = n;
	return 0;
}

static bool same_kind(const struct stream_vma *a, const struct stream_vma *b)
{
	return !((a->flags ^ b->flags) &
		 (VMA_GROWSDOWN | VMA_NORESERVE | VMA_VDSO)) &&
	       !((a->prot ^ b->prot) & PROT_WRITE);
}

/* Maps what of mapping @vma, which goes on to @end, is in @come. @at: a place in that. */
static int map_missing(struct restore *r, const struct stream_vma *vma,
		       uint64_t end, const struct runs *come, size_t *at)
{
	size_t i;
	int ret = 0;

	while (*at < come->n && come->run[*at].end <= vma->start)
		++*at;
	for (i = *at; i < come->n && come->run[i].start < end && !ret; i++) {
		uint64_t from = come->run[i].start, to = come->run[i].end;

		from = from > vma->start ? from : vma->start;
		to = to < end ? to : end;
		ret = stream_fault(r->image.job, FAULT_HOST_MAP) ?:
			      body_map(&r->body, vma, from, to,
				       PROT_READ | PROT_WRITE);
	}
	return ret;
}

/* Memory that is seen through windows @at to @end. Return: its descriptor in the body. */
static int make_object(struct restore *r, size_t at, size_t end)
{
	const struct stream_window *w = r->image.window;
	struct body *body = &r->body;
	uint64_t size = 0;
	long fd;

	for (; at < end; at++)
		if (size < w[at].pos + w[at].end - w[at].start)
			size = w[at].pos + w[at].end - w[at].start;
	fd = body_put(body, 0, "shared", 7);
	if (!fd)
		fd = body_call(body, body->tgid, SYS_memfd_create,
			       body_scratch(body), MFD_EXEC);
	if (fd == -EINVAL) /* before 6.3 */
		fd = body_call(body, body->tgid, SYS_memfd_create,
			       body_scratch(body), 0);
	if (fd >= 0) {
		long ret = body_call(body, body->tgid, SYS_ftruncate, fd, size);

		fd = ret < 0 ? ret : fd;
	}
	return must(body, fd, "make memory that is seen twice") ?: (int)fd;
}

/* What is mapped more than once is so here, too; it takes the place of private memory. */
static int map_windows(struct restore *r)
{
	const struct stream_window *w = r->image.window;
	size_t i, j, n = r->image.last ? r->image.windows : 0;
	int ret = 0, fd;

	for (i = 0; i < n && !ret; i = j) {
		for (j = i; j < n && w[j].object == w[i].object; j++)
			;
		fd = make_object(r, i, j);
		if (fd < 0)
			return fd;
		for (; i < j && !ret; i++)
			ret = body_range(&r->body, "map", 0, SYS_mmap, w[i].start,
					 w[i].end, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
					 fd, w[i].pos);
		ret = ret ?: body_flush(&r->body);
		body_call(&r->body, r->body.tgid, SYS_close, fd);
	}
	return ret;
}

/* Filling a sparse mapping must not make huge pages of it; set_process() ends this. */
static int only_small_pages(struct restore *r)
{
	return must(&r->body,
		    body_call(&r->body, r->body.tgid, SYS_prctl,
			      PR_SET_THP_DISABLE, 1, 0, 0, 0),
		    "disable huge pages");
}

/* The body's mappings become those of the layout; contents stay where both have one. */
static int on_layout(struct image *image)
{
	struct restore *r = image->arg;
	struct runs gone = { 0 }, come = { 0 };
	size_t i, j, at = 0;
	int ret;

	ret = note_vdso(r);
	if (!ret && !r->emptied)
		ret = empty(r) ?: only_small_pages(r);
	if (ret)
		return ret;
	runs_combine(&gone, &r->mapped, RUNS_MINUS, &image->mapped);
	runs_combine(&come, &image->mapped, RUNS_MINUS, &r->mapped);
	for (i = 0; i < gone.n && !ret; i++)
		ret = body_range(&r->body, "unmap", 0, SYS_munmap,
				 gone.run[i].start, gone.run[i].end, 0, 0, 0, 0);
	for (i = 0; i < image->n && !ret; i = j) {
		/* several in a row that differ only later are mapped as one */
		for (j = i + 1; j < image->n &&
				image->vma[j].start == image->vma[j - 1].end &&
				same_kind(&image->vma[i], &image->vma[j]);
		     j++)
			;
		if (!(image->vma[i].flags & VMA_VDSO))
			ret = map_missing(r, &image->vma[i],
					  image->vma[j - 1].end, &come, &at);
	}
	runs_combine(&r->mapped, &image->mapped, RUNS_OR, &come);
	runs_free(&gone);
	runs_free(&come);
	return (ret ?: body_flush(&r->body)) ?: map_windows(r);
}

/* Has the body read @bytes from the socket to where they belong. */
static int on_pages(struct image *image, struct stream_run *run, int n,
		    size_t bytes)
{
	struct restore *r = image->arg;
	struct {
		struct msghdr msg;
		struct iovec iov[STREAM_RUNS];
	} arg = { 0 };
	const uint64_t base = body_scratch(&r->body);
	int first = 0, i;
	long got;

	if (stream_fault(image->job, FAULT_HOST_PAGES))
		return -image->job->result;
	for (i = 0; i < n; i++)
		arg.iov[i] = (struct iovec){ (void *)run[i].addr, run[i].len };
	while (bytes) {
		arg.msg.msg_iov = (void *)(base + offsetof(typeof(arg), iov) +
					   first * sizeof(struct iovec));
		arg.msg.msg_iovlen = n - first;
		got = body_put(&r->body, 0, &arg,
			       offsetof(typeof(arg), iov) +
				       n * sizeof(struct iovec));
		if (!got)
			got = body_call(&r->body, r->body.tgid, SYS_recvmsg,
					WARDEN_SOCK, base, MSG_WAITALL);
		if (got == -EINTR)
			continue;
		if (got <= 0)
			return job_fail(image->job, got ? got : ECONNRESET,
					"cannot take its pages: %s",
					got ? strerror(-got) :
					      "the connection was closed");
		bytes -= got;
		for (; first < n && (size_t)got >= arg.iov[first].iov_len; first++)
			got -= arg.iov[first].iov_len;
		if (got) {
			arg.iov[first].iov_base =
				(char *)arg.iov[first].iov_base + got;
			arg.iov[first].iov_len -= got;
		}
	}
	return 0;
}

static int on_drop(struct image *image, const struct runs *runs)
{
	struct restore *r = image->arg;
	size_t i;
	int ret = 0;

	for (i = 0; i < runs->n && !ret; i++)
		ret = body_range(&r->body, "drop", 0, SYS_madvise,
				 runs->run[i].start, runs->run[i].end,
				 MADV_DONTNEED, 0, 0, 0);
	return ret ?: body_flush(&r->body);
}

static int on_keep(struct image *image, const struct runs *runs)
{
	(void)runs;
	return stream_bad(image->job, "pages that this node should have");
}

static int on_rest(struct image *image)
{
	(void)image;
	return 0;
}

/* -------------------------------------------------------------- threads */

static int make_thread(struct restore *r, int32_t tid)
{
	struct body *body = &r->body;
	struct {
		struct clone_args args;
		int32_t tid;
	} arg = { .tid = tid };
	long ret;

	arg.args.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			 CLONE_THREAD | CLONE_SYSVSEM;
	arg.args.set_tid = body_scratch(body) + offsetof(typeof(arg), tid);
	arg.args.set_tid_size = 1;
	ret = body_put(body, 0, &arg, sizeof(arg));
	if (!ret)
		ret = body_call(body, body->tgid, SYS_clone3,
				body_scratch(body), sizeof(arg.args));
	if (ret == tid)
		return 0;
	return job_fail(body->job, ret < 0 ? ret : EIO,
			"cannot make thread %d: %s", (int)tid,
			ret < 0 ? strerror(-ret) : "it has another TID");
}

/* Its CPUs, as far as this node has them; all if it has none of them. */
static int set_affinity(struct body *body, const struct image_thread *t)
{
	uint64_t here[128], mask[128];
	size_t n = t->attr->affinity_len / 8, i;
	bool any = false;
	long len, ret;

	len = syscall(SYS_sched_getaffinity, 0, sizeof(here), here);
	if (!n || len <= 0)
		return 0;
	for (i = 0; i < (size_t)len / 8; i++) {
		mask[i] = i < n ? ((uint64_t *)t->affinity)[i] & here[i] : 0;
		any |= mask[i];
	}
	if (!any)
		return 0;
	ret = body_put(body, 0, mask, len);
	if (!ret)
		ret = body_call(body, t->tid, SYS_sched_setaffinity, 0, len,
				body_scratch(body));
	return must(body, ret, "set its CPUs");
}

static int set_attributes(struct restore *r, const struct image_thread *t)
{
	struct body *body = &r->body;
	const struct stream_thread *a = t->attr;
	struct sched_param param = { .sched_priority = a->priority };
	const uint64_t base = body_scratch(body);
	int ret;

	ret = must(body,
		   body_put(body, 0, a->comm, sizeof(a->comm)) ?:
			   body_call(body, t->tid, SYS_prctl, PR_SET_NAME, base),
		   "set its name");
	if (!ret)
		ret = must(body,
			   body_call(body, t->tid, SYS_prctl, PR_SET_TIMERSLACK,
				     a->timerslack),
			   "set its timer slack");
	if (!ret)
		ret = must(body,
			   body_put(body, 0, &param, sizeof(param)) ?:
				   body_call(body, t->tid, SYS_sched_setscheduler,
					     0, a->policy, base),
			   "set its scheduling policy");
	if (!ret)
		ret = must(body,
			   body_call(body, t->tid, SYS_setpriority,
				     PRIO_PROCESS, 0, (int64_t)a->nice),
			   "set its nice value");
	if (!ret && a->ioprio)
		ret = must(body,
			   body_call(body, t->tid, SYS_ioprio_set, 1, 0,
				     a->ioprio),
			   "set its I/O priority");
	if (!ret)
		ret = set_affinity(body, t);
	if (!ret && r->image.process.no_new_privs)
		ret = must(body,
			   body_call(body, t->tid, SYS_prctl,
				     PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
			   "set no_new_privs");
	return ret;
}

/* -------------------------------------------------------------- finish */

/* Those limits that calls on this node obey; the others matter at home only. */
static int set_limits(struct body *body, const struct stream_process *p)
{
	static const int local[] = { RLIMIT_CPU,     RLIMIT_DATA,
				     RLIMIT_STACK,   RLIMIT_AS,
				     RLIMIT_MEMLOCK, RLIMIT_SIGPENDING,
				     RLIMIT_NICE,    RLIMIT_RTPRIO,
				     RLIMIT_RTTIME };
	struct rlimit none = { 0, 0 };
	size_t i;

	for (i = 0; i < sizeof(local) / sizeof(*local); i++) {
		struct rlimit limit = { p->limit[local[i]][0],
					p->limit[local[i]][1] };

		if (prlimit(body->pid, local[i], &limit, NULL))
			return job_fail(body->job, errno,
					"cannot set resource limit %d: %s",
					local[i], strerror(errno));
	}
	/* it dumps core at home */
	prlimit(body->pid, RLIMIT_CORE, &none, NULL);
	return 0;
}

static void set_oom(struct body *body, int adj)
{
	char path[64], text[16];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)body->pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	snprintf(text, sizeof(text), "%d", adj);
	if (write(fd, text, strlen(text)) < 0)
		job_say(body->job, "cannot set oom_score_adj to %d: %s", adj,
			strerror(errno));
	close(fd);
}

static int set_process(struct restore *r)
{
	const struct stream_process *p = &r->image.process;
	struct body *body = &r->body;
	int ret;

	ret = body_mm(body, p);
	if (!ret)
		ret = must(body,
			   body_call(body, body->tgid, SYS_personality,
				     p->personality),
			   "set its personality");
	if (!ret)
		ret = must(body,
			   body_call(body, body->tgid, SYS_prctl,
				     PR_SET_THP_DISABLE, !!p->thp_disable, 0, 0,
				     0),
			   "set its use of huge pages");
	if (ret)
		return ret;
	set_oom(body, p->oom_score_adj);
	return set_limits(body, p);
}

static int set_protections(struct restore *r)
{
	const struct stream_vma *vma = r->image.vma;
	struct body *body = &r->body;
	size_t i, j;
	int ret = 0;

	for (i = 0; i < r->image.n && !ret; i++)
		if (!(vma[i].flags & VMA_VDSO))
			ret = body_protect(body, &vma[i], vma[i].start,
					   vma[i].end, 0);
	for (i = 0; i < r->image.n && !ret; i = j) {
		for (j = i + 1; j < r->image.n && vma[j].start == vma[j - 1].end &&
				vma[j].prot == vma[i].prot &&
				!((vma[j].flags ^ vma[i].flags) & VMA_VDSO);
		     j++)
			;
		if (!(vma[i].flags & VMA_VDSO) &&
		    vma[i].prot != (PROT_READ | PROT_WRITE))
			ret = body_range(body, "protect", 0, SYS_mprotect,
					 vma[i].start, vma[j - 1].end,
					 vma[i].prot, 0, 0, 0);
	}
	return ret ?: body_flush(body);
}

static int set_ranges(struct restore *r)
{
	struct mattx_range *range;
	size_t i, n = 0;
	int ret;

	range = calloc(r->image.n, sizeof(*range));
	if (!range)
		return job_fail(r->image.job, ENOMEM, "out of memory");
	for (i = 0; i < r->image.n; i++) {
		const struct stream_vma *vma = &r->image.vma[i];
		uint32_t kind = vma->flags & VMA_VDSO ? MATTX_RANGE_VDSO :
				vma->flags & VMA_KEPT ? MATTX_RANGE_KEPT :
				vma->flags & VMA_SOLE ? MATTX_RANGE_SHARED :
				vma->flags & VMA_FILE ? MATTX_RANGE_FILE :
							0;

		if (!kind)
			continue;
		if (n && range[n - 1].end == vma->start &&
		    range[n - 1].kind == kind)
			range[n - 1].end = vma->end;
		else
			range[n++] = (struct mattx_range){ vma->start, vma->end,
							   kind, 0 };
	}
	ret = body_set(&r->body, MATTX_IOC_SET_RANGES, "the ranges of files", 0,
		       range, n * sizeof(*range));
	free(range);
	return ret;
}

/*
 * The body stops being root: a guest has its user's number here and no capabilities.
 * (What it is told of its ids comes from home.) Each thread has its own credentials.
 */
static int drop_privileges(struct restore *r, int32_t tid)
{
	struct {
		struct __user_cap_header_struct head;
		struct __user_cap_data_struct data[2];
	} caps = { .head.version = _LINUX_CAPABILITY_VERSION_3 };
	const uint32_t uid = r->image.state.uid, gid = r->image.state.gid;
	struct body *body = &r->body;
	const uint64_t at = body_scratch(body);
	long ret;

	ret = must(body, body_put(body, 0, &caps, sizeof(caps)),
		   "give up the body's privileges");
	if (ret)
		return ret;
	ret = body_call(body, tid, SYS_setgroups, 0, 0);
	if (!ret)
		ret = body_call(body, tid, SYS_setresgid, gid, gid, gid);
	if (!ret)
		ret = body_call(body, tid, SYS_setresuid, uid, uid, uid);
	if (!ret)
		ret = body_call(body, tid, SYS_capset, at,
				at + sizeof(caps.head));
	return must(body, ret, "give up the body's privileges");
}

static int arm(struct restore *r)
{
	struct mattx_ioc_commit arg = { .gang = r->image.gang,
					.peer = r->image.job->node.id };

	if (ioctl(r->body.handle, MATTX_IOC_ARM, &arg))
		return job_fail(r->image.job, errno,
				"the module cannot arm it: %s", strerror(errno));
	return 0;
}

static int finish(struct restore *r)
{
	struct job *job = r->image.job;
	size_t i;
	int ret;

	ret = stream_fault(job, FAULT_HOST_FINISH);
	if (!ret && r->image.thread[0].tid != r->body.tgid)
		ret = stream_bad(job, "another process's threads");
	for (i = 1; i < r->image.threads && !ret; i++)
		ret = stream_fault(job, FAULT_HOST_THREAD) ?:
			      make_thread(r, r->image.thread[i].tid);
	if (!ret)
		ret = set_protections(r);
	if (!ret)
		ret = set_process(r);
	for (i = 0; i < r->image.threads && !ret; i++)
		ret = set_attributes(r, &r->image.thread[i]);
	if (!ret)
		ret = body_states(&r->body, &r->image, FAULT_HOST_STATE);
	if (!ret)
		ret = set_ranges(r);
	if (!ret)
		ret = must(&r->body,
			   body_call(&r->body, r->body.tgid, SYS_close_range, 0,
				     ~0u, 0),
			   "close the body's descriptors");
	for (i = 0; i < r->image.threads && !ret; i++)
		ret = drop_privileges(r, r->image.thread[i].tid);
	if (!ret)
		ret = memory_forget(job, r->body.pid);
	if (!ret)
		ret = stream_fault(job, FAULT_HOST_ARM);
	return ret ?: arm(r);
}

/* Armed: the modules decide. Whatever the other daemon says, ours knows best. */
static int await_commit(struct restore *r, bool *kept)
{
	struct job *job = r->image.job;
	struct mattx_ioc_info info = { 0 };
	struct stream_head head;
	int ret;

	ret = stream_fault(job, FAULT_HOST_READY);
	if (!ret)
		ret = stream_send(job, STREAM_READY, 0, NULL, 0);
	if (!ret)
		ret = stream_head(job, &head);
	if (!ret && head.type != STREAM_DONE)
		ret = stream_bad(job, "an unexpected message");
	if (ioctl(r->body.handle, MATTX_IOC_INFO, &info))
		return ret   ?:
			       job_fail(job, errno, "the module has lost it: %s",
					strerror(errno));
	/* also when it has ended already, or wants home */
	*kept = info.state != MATTX_GANG_BODY && info.state != MATTX_GANG_ARMED &&
		!(ret && info.state == MATTX_GANG_DEAD);
	if (*kept)
		return 0;
	return ret ?: job_fail(job, EPROTO, "it was not committed");
}

static int build(struct restore *r, const struct stream_start *start)
{
	struct job *job = r->image.job;
	struct mattx_ioc_info info;
	int ret;

	ret = stream_fault(job, FAULT_HOST_START);
	if (!ret)
		ret = warden_start(&r->warden, job, r->body.handle, start);
	if (!ret)
		ret = body_info(&r->body, &info);
	if (!ret && info.tgid != start->tgid)
		ret = job_fail(job, EIO, "the body has another PID");
	if (!ret)
		ret = job_claim(job, info.pid, 0);
	if (!ret)
		ret = stream_fault(job, FAULT_HOST_BODY);
	if (!ret)
		ret = stream_send(job, STREAM_STARTED, 0, NULL, 0);
	if (!ret)
		ret = image_receive(&r->image);
	return ret ?: finish(r);
}

static bool text_sane(const char *s, size_t len)
{
	return memchr(s, 0, len) != NULL;
}

static int check_start(struct job *job, const struct stream_start *s)
{
	const int64_t ages = 1000000000ll * 3600 * 24 * 365 * 100;

	if (s->version != STREAM_VERSION)
		return job_fail(job, EPROTO,
				"it speaks version %u of the protocol, not %u",
				s->version, STREAM_VERSION);
	if (s->tgid < 2 || s->tgid > 0x3fffffff ||
	    !text_sane(s->hostname, sizeof(s->hostname)) ||
	    !text_sane(s->domainname, sizeof(s->domainname)) ||
	    s->monotonic > ages || s->monotonic < -ages || s->boottime > ages ||
	    s->boottime < -ages || s->stub % PAGE || s->stub < PAGE ||
	    s->stub_len != STUB_LEN || s->stub > USER_END - STUB_LEN)
		return stream_bad(job, "an impossible start");
	return 0;
}

int restore_serve(struct job *job, const struct stream_start *start)
{
	struct restore *r;
	bool kept = false;
	int ret;

	ret = check_start(job, start);
	if (ret)
		return ret;
	r = calloc(1, sizeof(*r));
	if (!r)
		return job_fail(job, ENOMEM, "out of memory");
	r->warden.line = -1;
	r->image = (struct image){ .job = job,
				   .stub = start->stub,
				   .stub_len = STUB_LEN,
				   .arg = r,
				   .layout = on_layout,
				   .pages = on_pages,
				   .drop = on_drop,
				   .keep = on_keep,
				   .rest = on_rest };
	r->body = (struct body){ .job = job, .stub = start->stub };
	r->body.handle = open("/dev/mattx", O_RDWR | O_CLOEXEC);
	if (r->body.handle < 0) {
		ret = job_fail(job, errno, "cannot open /dev/mattx: %s",
			       strerror(errno));
	} else {
		ret = build(r, start);
		if (!ret)
			ret = await_commit(r, &kept);
		if (!kept)
			ioctl(r->body.handle, MATTX_IOC_KILL);
		warden_end(&r->warden, job, kept);
		close(r->body.handle);
	}
	image_free(&r->image);
	runs_free(&r->mapped);
	body_free(&r->body);
	free(r);
	return ret;
}
