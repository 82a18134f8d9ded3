// SPDX-License-Identifier: GPL-2.0
/*
 * The home side of a way home: the deputy's memory is brought up to date. Both
 * nodes had the same layout when the guest left, so what differs now is what the
 * guest did: ranges it unmapped, mapped, protected or dropped, pages it wrote.
 *
 * Nothing here is lost when it fails half-way: the guest goes on, and its next way
 * home brings all that changed since it left once more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault.h"
#include "memory.h"
#include "restore.h"
#include "returned.h"
#include "sharers.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

struct home {
	struct image image;
	struct body body;
	struct maps maps; /* the deputy's, as changed to the guest's layout */
	struct runs keep, data;
	int pagemap;
	char *buf; /* STREAM_BATCH bytes */
};

static int bad_range(struct home *h, const char *what, uint64_t start,
		     uint64_t end)
{
	return job_fail(h->image.job, EPROTO,
			"the guest %s %llx-%llx, which is a file here", what,
			(unsigned long long)start, (unsigned long long)end);
}

static int failed_at(struct home *h, long ret, const char *what, uint64_t start,
		     uint64_t end)
{
	if (ret >= 0)
		return 0;
	return job_fail(h->image.job, ret, "cannot %s %llx-%llx: %s", what,
			(unsigned long long)start, (unsigned long long)end,
			strerror(-ret));
}

/* ------------------------------------------------------------ the stub */

static int read_maps(struct home *h)
{
	int ret;

	maps_free(&h->maps);
	ret = maps_read(h->body.pid, h->body.stub, h->body.stub ? STUB_LEN : 0,
			&h->maps);
	if (!ret && !h->maps.n)
		ret = -ESRCH;
	if (ret)
		return job_fail(h->image.job, ret,
				"cannot read the deputy's mappings: %s",
				strerror(-ret));
	return 0;
}

/* Moves the stub, and takes away all else of ours, to where neither layout has anything. */
static int place_stub(struct home *h)
{
	struct mattx_ioc_body arg = { .stub_len = STUB_LEN };
	struct maps guest = { .n = h->image.n };
	size_t i;

	if (stream_fault(h->image.job, FAULT_HOME_STUB) || read_maps(h))
		return -h->image.job->result;
	guest.vma = calloc(guest.n, sizeof(*guest.vma));
	if (!guest.vma)
		return job_fail(h->image.job, ENOMEM, "out of memory");
	for (i = 0; i < guest.n; i++)
		guest.vma[i] = (struct vma){ .start = h->image.vma[i].start,
					     .end = h->image.vma[i].end };
	arg.stub = maps_pick(&h->maps, &guest, STUB_LEN);
	free(guest.vma);
	if (!arg.stub)
		return job_fail(h->image.job, ENOMEM, "no room for the stub");
	if (ioctl(h->body.handle, MATTX_IOC_STUB, &arg))
		return job_fail(h->image.job, errno, "cannot move the stub: %s",
				strerror(errno));
	h->body.stub = h->image.stub = arg.stub;
	h->image.stub_len = STUB_LEN;
	/*
	 * Once more, without its threads' buffers. When the other side gives up, the guest
	 * goes on before that is known here, and its calls need such buffers again: at the
	 * same place, which must not be unmapped as if it had been the process's.
	 */
	return read_maps(h);
}

/* ---------------------------------------------------------- the layout */

static int set_brk(struct home *h)
{
	struct body *body = &h->body;
	long now = body_call(body, body->tgid, SYS_brk, 0);

	if (now < 0)
		return job_fail(h->image.job, now,
				"cannot ask for its break: %s", strerror(-now));
	if ((uint64_t)now == h->image.process.brk)
		return 0;
	now = body_call(body, body->tgid, SYS_brk, h->image.process.brk);
	if ((uint64_t)now != h->image.process.brk)
		return job_fail(h->image.job, ENOMEM,
				"cannot move its break to %llx",
				(unsigned long long)h->image.process.brk);
	return 0;
}

/* Unmaps what the guest no longer has. */
static int unmap_gone(struct home *h)
{
	struct runs here = { 0 }, gone = { 0 };
	size_t i;
	int ret = 0;

	for (i = 0; i < h->maps.n; i++)
		if (!(h->maps.vma[i].flags & VMA_VDSO))
			runs_add(&here, h->maps.vma[i].start, h->maps.vma[i].end);
	runs_combine(&gone, &here, RUNS_MINUS, &h->image.mapped);
	for (i = 0; i < gone.n && !ret; i++) {
		size_t at = maps_at(&h->maps, gone.run[i].start);

		for (; at < h->maps.n && h->maps.vma[at].start < gone.run[i].end;
		     at++)
			if (h->maps.vma[at].flags & VMA_FILE)
				ret = bad_range(h, "unmapped", gone.run[i].start,
						gone.run[i].end);
		if (!ret)
			ret = body_range(&h->body, "unmap", 0, SYS_munmap,
					 gone.run[i].start, gone.run[i].end, 0,
					 0, 0, 0);
	}
	runs_free(&here);
	runs_free(&gone);
	return ret;
}

/* The part [start, end) of guest mapping @vma is mapped here as @have. */
static int adapt(struct home *h, const struct stream_vma *vma,
		 const struct vma *have, uint64_t start, uint64_t end)
{
	/* what cannot be seen of a file's copy on the host, or does not matter there */
	const uint32_t ignore = VMA_FILE | VMA_SOLE | VMA_KEPT | VMA_NORESERVE |
				VMA_GROWSDOWN;
	struct stream_vma want = *vma;
	int ret;

	if (have->flags & VMA_VDSO)
		return job_fail(h->image.job, EPROTO,
				"the guest mapped its vdso's place");
	want.flags = (vma->flags & ~ignore) | (have->flags & ignore);
	ret = body_protect(&h->body, &want, start, end, have->flags & VMA_WIRE);
	if (ret || vma->prot == have->prot)
		return ret;
	return body_range(&h->body, "protect", 0, SYS_mprotect, start, end,
			  vma->prot, 0, 0, 0);
}

static int map_new(struct home *h, const struct stream_vma *vma, uint64_t start,
		   uint64_t end)
{
	return body_map(&h->body, vma, start, end, vma->prot) ?:
		       body_protect(&h->body, vma, start, end, 0);
}

/* Maps what is new and changes what is other in one guest mapping. */
static int match(struct home *h, const struct stream_vma *vma)
{
	uint64_t at = vma->start, end;
	size_t i = maps_at(&h->maps, at);
	int ret = 0;

	while (at < vma->end && !ret) {
		const struct vma *have = i < h->maps.n ? &h->maps.vma[i] : NULL;

		if (have && have->start <= at) {
			end = have->end < vma->end ? have->end : vma->end;
			ret = adapt(h, vma, have, at, end);
			i++;
		} else {
			end = have && have->start < vma->end ? have->start :
							       vma->end;
			ret = map_new(h, vma, at, end);
		}
		at = end;
	}
	return ret;
}

/* Both have the vdso where they had it: the host put it there. */
static int check_vdso(struct home *h)
{
	size_t i, j = 0;

	for (i = 0; i < h->maps.n; i++) {
		const struct vma *vma = &h->maps.vma[i];

		if (!(vma->flags & VMA_VDSO))
			continue;
		while (j < h->image.n && !(h->image.vma[j].flags & VMA_VDSO))
			j++;
		if (j == h->image.n || h->image.vma[j].start != vma->start ||
		    h->image.vma[j].end != vma->end)
			return job_fail(h->image.job, EPROTO,
					"the guest moved its vdso");
		j++;
	}
	return 0;
}

static int on_layout(struct image *image)
{
	struct home *h = image->arg;
	size_t i;
	int ret;

	if (!image->last || !image->has_process || image->windows)
		return stream_bad(image->job, "a layout out of order");
	ret = place_stub(h);
	if (!ret)
		ret = stream_fault(image->job, FAULT_HOME_MAP);
	if (!ret)
		ret = set_brk(h);
	if (!ret)
		ret = read_maps(h);
	if (!ret)
		ret = check_vdso(h);
	if (!ret)
		ret = unmap_gone(h);
	for (i = 0; i < image->n && !ret; i++)
		if (!(image->vma[i].flags & VMA_VDSO))
			ret = match(h, &image->vma[i]);
	ret = ret ?: body_flush(&h->body);
	return ret ?: read_maps(h);
}

/* ------------------------------------------------------------ contents */

/* Has the file that is mapped shared at @addr become shorter? What is lost then is lost. */
static bool is_behind_end(struct home *h, uint64_t addr)
{
	size_t at = maps_at(&h->maps, addr);
	const struct vma *vma = &h->maps.vma[at];
	struct stat st;
	char path[96];

	if (at == h->maps.n || !vma_is_shared(vma))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx",
		 (int)h->body.pid, (unsigned long long)vma->start,
		 (unsigned long long)vma->end);
	return !stat(path, &st) &&
	       addr - vma->start + vma->off >= (uint64_t)st.st_size;
}

/* Pages that the process itself may not be able to write. */
static int write_pages(struct home *h, const char *buf, uint64_t addr,
		       uint64_t len)
{
	ssize_t done;

	while (len) {
		done = memory_move(h->body.handle, h->body.pid, true,
				   (void *)buf, len, addr);
		if (done < (ssize_t)PAGE) {
			if (!is_behind_end(h, addr))
				return failed_at(h, done < 0 ? done : -EFAULT,
						 "write its pages at", addr,
						 addr + len);
			done = PAGE;
		}
		done &= ~(PAGE - 1);
		buf += done;
		addr += done;
		len -= done;
	}
	return 0;
}

static int on_pages(struct image *image, struct stream_run *run, int n,
		    size_t bytes)
{
	struct home *h = image->arg;
	struct iovec local = { h->buf, bytes }, remote[STREAM_RUNS];
	struct runs come = { 0 };
	size_t at = 0;
	int i, ret;

	ret = stream_fault(image->job, FAULT_HOME_PAGES) ?:
		      stream_read(image->job, h->buf, bytes);
	if (ret)
		return ret;
	for (i = 0; i < n; i++) {
		remote[i] = (struct iovec){ (void *)run[i].addr, run[i].len };
		runs_add(&come, run[i].addr, run[i].addr + run[i].len);
	}
	runs_combine(&h->data, &h->data, RUNS_OR, &come);
	runs_free(&come);
	if (process_vm_writev(h->body.pid, &local, 1, remote, n, 0) ==
	    (ssize_t)bytes)
		return 0;
	for (i = 0; i < n && !ret; at += run[i++].len)
		ret = write_pages(h, h->buf + at, run[i].addr, run[i].len);
	return ret;
}

static int on_drop(struct image *image, const struct runs *runs)
{
	(void)runs;
	return stream_bad(image->job, "dropped pages");
}

static int on_keep(struct image *image, const struct runs *runs)
{
	struct home *h = image->arg;

	runs_combine(&h->keep, &h->keep, RUNS_OR, runs);
	return 0;
}

static int drop(struct home *h, uint64_t start, uint64_t end, bool locked)
{
	return body_range(&h->body, "drop", 0, SYS_madvise, start, end,
			  locked ? MADV_DONTNEED_LOCKED : MADV_DONTNEED, 0, 0, 0);
}

/*
 * All pages are there: what is here, but was neither sent nor kept, is gone. What was
 * kept, but is not here, is right: it has not changed since it left, and was absent
 * then. (The host has it, full of zeroes, as a part of a huge page.)
 */
static int on_rest(struct image *image)
{
	struct home *h = image->arg;
	struct runs here = { 0 }, stay = { 0 };
	size_t i, at = 0;
	int ret = 0;

	for (i = 0; i < h->maps.n && !ret; i++) {
		const struct vma *vma = &h->maps.vma[i];

		if (vma->flags & (VMA_FILE | VMA_VDSO))
			continue;
		if (vma->rss)
			ret = memory_present(image->job, h->pagemap, vma, &here);
	}
	runs_combine(&stay, &h->keep, RUNS_OR, &h->data);
	runs_combine(&here, &here, RUNS_MINUS, &stay);
	if (!ret && (here.bad || stay.bad))
		ret = job_fail(image->job, ENOMEM, "out of memory");
	/* by mapping, because a locked one is dropped otherwise */
	for (i = 0; i < here.n && !ret; i++) {
		uint64_t start = here.run[i].start, end = here.run[i].end;

		for (at = maps_at(&h->maps, start); start < end && !ret; at++) {
			const struct vma *vma = &h->maps.vma[at];
			uint64_t to = vma->end < end ? vma->end : end;

			ret = drop(h, start, to, vma->flags & VMA_LOCKED);
			start = to;
		}
	}
	runs_free(&here);
	runs_free(&stay);
	return ret ?: body_flush(&h->body);
}

/* ------------------------------------------------------------- threads */

static int compare_int(const void *a, const void *b)
{
	return *(const int32_t *)a < *(const int32_t *)b ?
		       -1 :
		       *(const int32_t *)a > *(const int32_t *)b;
}

/* The deputy has the guest's threads: the modules saw to that as they came and went. */
static int check_threads(struct home *h)
{
	size_t n = h->image.threads, i;
	struct mattx_ioc_buf arg = { .len = (n + 1) * sizeof(int32_t) };
	int32_t *here, *there;
	int ret = 0;

	here = calloc(2 * n + 1, sizeof(*here));
	if (!here)
		return job_fail(h->image.job, ENOMEM, "out of memory");
	there = here + n + 1;
	arg.ptr = (uintptr_t)here;
	if (ioctl(h->body.handle, MATTX_IOC_THREADS, &arg))
		arg.len = 0;
	for (i = 0; i < n; i++)
		there[i] = h->image.thread[i].tid;
	qsort(here, arg.len / sizeof(*here), sizeof(*here), compare_int);
	qsort(there, n, sizeof(*there), compare_int);
	if (arg.len != n * sizeof(*here) || memcmp(here, there, arg.len))
		ret = job_fail(h->image.job, EPROTO,
			       "the guest has %zu threads, the deputy %zu", n,
			       (size_t)arg.len / sizeof(*here));
	free(here);
	return ret;
}

/* Its own call may have changed these while it was away. */
static void set_attributes(struct home *h, const struct image_thread *t)
{
	struct body *body = &h->body;
	const struct stream_thread *a = t->attr;
	struct sched_param param = { .sched_priority = a->priority };

	if (!body_put(body, 0, a->comm, sizeof(a->comm)))
		body_call(body, t->tid, SYS_prctl, PR_SET_NAME,
			  body_scratch(body));
	body_call(body, t->tid, SYS_prctl, PR_SET_TIMERSLACK, a->timerslack);
	/* as the daemon, because the process may not be allowed to go back */
	if (sched_getscheduler(t->tid) != (int)a->policy)
		sched_setscheduler(t->tid, a->policy, &param);
	errno = 0;
	if (getpriority(PRIO_PROCESS, t->tid) != a->nice && !errno)
		setpriority(PRIO_PROCESS, t->tid, a->nice);
}

/* -------------------------------------------------------------- finish */

static int arm(struct home *h)
{
	struct job *job = h->image.job;
	struct mattx_ioc_commit arg = { .peer = job->node.id };
	int ret;

	ret = stream_fault(job, FAULT_HOME_ARM);
	if (!ret && ioctl(h->body.handle, MATTX_IOC_ARM, &arg))
		ret = job_fail(job, errno, "the module cannot arm the deputy: %s",
			       strerror(errno));
	return ret ?: stream_fault(job, FAULT_HOME_READY);
}

static int finish(struct home *h)
{
	struct job *job = h->image.job;
	struct stream_head head;
	size_t i;
	int ret;

	ret = check_threads(h);
	for (i = 0; i < h->image.threads && !ret; i++)
		set_attributes(h, &h->image.thread[i]);
	if (!ret)
		ret = body_states(&h->body, &h->image, FAULT_HOME_STATE);
	if (!ret)
		ret = arm(h);
	if (!ret)
		ret = stream_send(job, STREAM_READY, 0, NULL, 0);
	if (!ret)
		ret = stream_head(job, &head);
	if (!ret && head.type != STREAM_DONE)
		ret = stream_bad(job, "an unexpected message");
	return ret;
}

static int open_deputy(struct home *h, const struct stream_return *back)
{
	struct mattx_ioc_open arg = { .gang = back->gang,
				      .role = MATTX_ROLE_HOME };
	struct job *job = h->image.job;
	struct mattx_ioc_info info;
	char path[64];
	int ret;

	if (ioctl(h->body.handle, MATTX_IOC_OPEN, &arg))
		return job_fail(job, errno, "its deputy cannot be had: %s",
				strerror(errno));
	ret = body_info(&h->body, &info);
	if (ret)
		return ret;
	if (info.peer != job->node.id || info.state != MATTX_GANG_DEPUTY)
		return job_fail(job, EPERM, "is no guest of that node");
	ret = job_claim(job, info.pid, back->gang);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)info.pid);
	h->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	h->buf = malloc(STREAM_BATCH);
	if (h->pagemap < 0 || !h->buf)
		return job_fail(job, errno, "cannot open its page map: %s",
				strerror(errno));
	return 0;
}

/* For who asks later why it is here. */
static void note_return(struct home *h, const struct stream_return *back)
{
	char why[sizeof(back->why) + 1] = "";
	int pidfd;

	memcpy(why, back->why, sizeof(back->why));
	if (!why[0])
		return;
	pidfd = syscall(SYS_pidfd_open, h->body.pid, 0);
	if (pidfd >= 0)
		returned_add(h->body.pid, pidfd, h->image.job->node.name, why);
}

static int receive(struct home *h, const struct stream_return *back)
{
	int ret;

	ret = stream_fault(h->image.job, FAULT_HOME_OPEN) ?: open_deputy(h, back);
	if (!ret)
		ret = stream_send(h->image.job, STREAM_STARTED, 0, NULL, 0);
	if (!ret)
		ret = image_receive(&h->image);
	if (!ret)
		ret = finish(h);
	if (!ret)
		note_return(h, back);
	return ret;
}

int home_serve(struct job *job, const struct stream_return *back)
{
	struct home *h;
	int ret;

	if (back->version != STREAM_VERSION)
		return job_fail(job, EPROTO,
				"it speaks version %u of the protocol, not %u",
				back->version, STREAM_VERSION);
	h = calloc(1, sizeof(*h));
	if (!h)
		return job_fail(job, ENOMEM, "out of memory");
	h->image = (struct image){ .job = job,
				   .arg = h,
				   .layout = on_layout,
				   .pages = on_pages,
				   .drop = on_drop,
				   .keep = on_keep,
				   .rest = on_rest };
	h->pagemap = -1;
	h->body = (struct body){ .job = job };
	h->body.handle = open("/dev/mattx", O_RDWR | O_CLOEXEC);
	if (h->body.handle < 0)
		ret = job_fail(job, errno, "cannot open /dev/mattx: %s",
			       strerror(errno));
	else
		ret = receive(h, back);
	/* an armed deputy that was not committed is a plain deputy again */
	if (h->body.handle >= 0)
		close(h->body.handle);
	if (h->pagemap >= 0)
		close(h->pagemap);
	free(h->buf);
	image_free(&h->image);
	maps_free(&h->maps);
	runs_free(&h->keep);
	runs_free(&h->data);
	body_free(&h->body);
	free(h);
	return ret;
}
