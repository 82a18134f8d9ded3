// SPDX-License-Identifier: GPL-2.0
/* Takes a process's image from the stream and checks it: the sender is not trusted. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "image.h"
#include "memory.h"

#define SIGINFO_LEN 128

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#define MADV_KEEPONFORK 19
#endif

static bool vma_sane(const struct image *image, const struct stream_vma *vma,
		     uint64_t at)
{
	return !(vma->start % PAGE) && !(vma->end % PAGE) && vma->start >= at &&
	       vma->start < vma->end && vma->start >= PAGE &&
	       vma->end <= USER_END &&
	       !(vma->prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC)) &&
	       !(vma->flags & ~VMA_WIRE) &&
	       (vma->start >= image->stub + image->stub_len ||
		vma->end <= image->stub);
}

static bool window_sane(const struct stream_window *w, uint64_t object)
{
	const uint64_t far = 1ull << 62;

	return !(w->start % PAGE) && !(w->end % PAGE) && !(w->pos % PAGE) &&
	       w->start < w->end && w->end <= USER_END && w->pos < far &&
	       (w->object == object || w->object == object + 1);
}

/* Whether they are of mappings is seen when the layout has come. */
static int take_windows(struct image *image, const struct stream_head *head)
{
	struct stream_window *w;
	uint64_t object = 0;
	size_t n, i;

	if (image->last || image->window)
		return stream_bad(image->job, "windows out of order");
	w = stream_payload(image->job, head, sizeof(*w), sizeof(*w),
			   STREAM_LIST_MAX);
	if (!w)
		return -image->job->result;
	n = head->len / sizeof(*w);
	image->window = w;
	image->windows = n;
	for (i = 0; i < n; object = w[i++].object)
		if (!window_sane(&w[i], object))
			return stream_bad(image->job, "a damaged window");
	return 0;
}

static int check_windows(const struct image *image)
{
	size_t i;

	for (i = 0; i < image->windows; i++)
		if (!image_mapped(image, image->window[i].start,
				  image->window[i].end - image->window[i].start))
			return stream_bad(image->job, "a window of no mapping");
	return 0;
}

static int take_layout(struct image *image, const struct stream_head *head)
{
	struct stream_vma *vma;
	size_t n = head->len / sizeof(*vma), i;
	uint64_t at = 0;

	if (image->last || head->arg > 1)
		return stream_bad(image->job, "a layout after the last");
	vma = stream_payload(image->job, head, sizeof(*vma), sizeof(*vma),
			     STREAM_LIST_MAX);
	if (!vma)
		return -image->job->result;
	free(image->vma);
	image->vma = vma;
	image->n = n;
	image->last = head->arg;
	runs_free(&image->mapped);
	for (i = 0; i < n; i++) {
		if (!vma_sane(image, &vma[i], at))
			return job_fail(image->job, EINVAL,
					"mapping %llx-%llx has no place here",
					(unsigned long long)vma[i].start,
					(unsigned long long)vma[i].end);
		at = vma[i].end;
		if (!(vma[i].flags & VMA_VDSO))
			runs_add(&image->mapped, vma[i].start, vma[i].end);
	}
	if (image->mapped.bad)
		return job_fail(image->job, ENOMEM, "out of memory");
	return check_windows(image) ?: image->layout(image);
}

bool image_mapped(const struct image *image, uint64_t start, uint64_t len)
{
	size_t low = 0, high = image->mapped.n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (image->mapped.run[mid].end <= start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < image->mapped.n && image->mapped.run[low].start <= start &&
	       image->mapped.run[low].end - start >= len;
}

static int take_pages(struct image *image, const struct stream_head *head)
{
	struct stream_run run[STREAM_RUNS];
	int n, i;

	if (image->memory)
		return stream_bad(image->job, "pages after the last");
	n = memory_runs(image->job, head, run);
	if (n < 0)
		return n;
	for (i = 0; i < n; i++)
		if (!image_mapped(image, run[i].addr, run[i].len))
			return stream_bad(image->job, "pages of no mapping");
	return image->pages(image, run, n, head->len - n * sizeof(*run));
}

static int take_list(struct image *image, const struct stream_head *head)
{
	struct runs runs = { 0 };
	size_t i;
	int ret;

	if (image->memory || !image->vma)
		return stream_bad(image->job, "ranges out of order");
	ret = memory_list(image->job, head, &runs);
	for (i = 0; i < runs.n && !ret; i++)
		if (!image_mapped(image, runs.run[i].start,
				  runs.run[i].end - runs.run[i].start))
			ret = stream_bad(image->job, "ranges of no mapping");
	if (!ret)
		ret = (head->type == STREAM_DROP ? image->drop :
						   image->keep)(image, &runs);
	runs_free(&runs);
	return ret;
}

static int take_process(struct image *image, const struct stream_head *head)
{
	struct stream_process *p = &image->process;
	int ret;

	if (head->len != sizeof(*p) + sizeof(image->state) || image->has_process)
		return stream_bad(image->job, "a damaged process state");
	ret = stream_read(image->job, p, sizeof(*p));
	if (!ret)
		ret = stream_read(image->job, &image->state,
				  sizeof(image->state));
	if (ret)
		return ret;
	if (p->auxv_len > sizeof(p->auxv) || p->auxv_len % 16)
		return stream_bad(image->job, "a damaged process state");
	image->has_process = true;
	return 0;
}

static bool thread_known(const struct image *image, int32_t tid)
{
	size_t i;

	/* the sender's order is the kernel's; a wrong one only costs time */
	for (i = image->threads; i-- > 0;)
		if (image->thread[i].tid == tid)
			return true;
	return false;
}

static int take_thread(struct image *image, const struct stream_head *head)
{
	const size_t fixed = sizeof(struct stream_thread) +
			     sizeof(struct mattx_thread_state);
	struct image_thread *t, *more;
	size_t n = image->threads;

	if (!(n & (n - 1))) {
		more = realloc(image->thread, (n ? n * 2 : 1) * sizeof(*more));
		if (!more)
			return job_fail(image->job, ENOMEM, "out of memory");
		image->thread = more;
	}
	t = &image->thread[n];
	t->tid = head->arg;
	if (head->arg < 1 || head->arg > 0x3fffffff ||
	    thread_known(image, t->tid))
		return stream_bad(image->job, "a thread with an impossible TID");
	t->buf = stream_payload(image->job, head, fixed, 8, STREAM_THREAD_MAX);
	if (!t->buf)
		return -image->job->result;
	image->threads++;
	t->attr = (void *)t->buf;
	t->affinity = t->attr + 1;
	t->attr->comm[sizeof(t->attr->comm) - 1] = 0;
	if (t->attr->affinity_len % 8 || t->attr->affinity_len > head->len - fixed)
		return stream_bad(image->job, "a damaged thread state");
	t->state = (void *)((char *)t->affinity + t->attr->affinity_len);
	t->state_len = head->len - sizeof(*t->attr) - t->attr->affinity_len;
	if (t->state->tid != t->tid ||
	    t->state->xstate_len != t->state_len - sizeof(*t->state))
		return stream_bad(image->job, "a damaged thread state");
	return 0;
}

static int take_signals(struct image *image, const struct stream_head *head)
{
	struct image_signals *more, *s;

	if (head->arg && !thread_known(image, head->arg))
		return stream_bad(image->job, "signals of no thread");
	more = realloc(image->signals, (image->nr_signals + 1) * sizeof(*more));
	if (!more)
		return job_fail(image->job, ENOMEM, "out of memory");
	image->signals = more;
	s = &image->signals[image->nr_signals];
	s->tid = head->arg;
	s->len = head->len;
	s->info = stream_payload(image->job, head, SIGINFO_LEN, SIGINFO_LEN,
				 STREAM_SIGNALS_MAX);
	if (!s->info)
		return -image->job->result;
	image->nr_signals++;
	return 0;
}

static int take_memory(struct image *image, const struct stream_head *head)
{
	if (image->memory || !image->last || head->len)
		return stream_bad(image->job, "an end of memory out of order");
	image->memory = true;
	return image->rest(image);
}

static int take(struct image *image, const struct stream_head *head)
{
	switch (head->type) {
	case STREAM_LAYOUT:
		return take_layout(image, head);
	case STREAM_WINDOWS:
		return take_windows(image, head);
	case STREAM_PAGES:
		return take_pages(image, head);
	case STREAM_DROP:
	case STREAM_KEEP:
		return take_list(image, head);
	case STREAM_MEMORY:
		return take_memory(image, head);
	case STREAM_PROCESS:
		return take_process(image, head);
	case STREAM_THREAD:
		return take_thread(image, head);
	case STREAM_SIGNALS:
		return take_signals(image, head);
	}
	return stream_bad(image->job, "an unexpected message");
}

int image_receive(struct image *image)
{
	struct stream_head head;
	int ret;

	for (;;) {
		ret = stream_head(image->job, &head);
		if (ret)
			return ret;
		if (head.type == STREAM_ARM)
			break;
		ret = take(image, &head);
		if (ret)
			return ret;
	}
	if (head.len || !image->memory || !image->has_process || !image->threads)
		return stream_bad(image->job, "an incomplete process");
	image->gang = head.arg;
	return 0;
}

void image_free(struct image *image)
{
	size_t i;

	for (i = 0; i < image->threads; i++)
		free(image->thread[i].buf);
	for (i = 0; i < image->nr_signals; i++)
		free(image->signals[i].info);
	free(image->thread);
	free(image->signals);
	free(image->vma);
	free(image->window);
	runs_free(&image->mapped);
	*image = (struct image){ 0 };
}

int image_advice(uint32_t from, uint32_t to, int advice[8])
{
	static const struct {
		uint32_t flags; /* of these... */
		uint32_t on;	/* ...this one means: */
		int advice;
	} table[] = {
		{ VMA_DONTFORK, VMA_DONTFORK, MADV_DONTFORK },
		{ VMA_DONTFORK, 0, MADV_DOFORK },
		{ VMA_WIPEONFORK, VMA_WIPEONFORK, MADV_WIPEONFORK },
		{ VMA_WIPEONFORK, 0, MADV_KEEPONFORK },
		{ VMA_DONTDUMP, VMA_DONTDUMP, MADV_DONTDUMP },
		{ VMA_DONTDUMP, 0, MADV_DODUMP },
		{ VMA_HUGE | VMA_NOHUGE, VMA_HUGE, MADV_HUGEPAGE },
		{ VMA_HUGE | VMA_NOHUGE, VMA_NOHUGE, MADV_NOHUGEPAGE },
		{ VMA_MERGEABLE, VMA_MERGEABLE, MADV_MERGEABLE },
		{ VMA_MERGEABLE, 0, MADV_UNMERGEABLE },
		{ VMA_SEQUENTIAL | VMA_RANDOM, VMA_SEQUENTIAL, MADV_SEQUENTIAL },
		{ VMA_SEQUENTIAL | VMA_RANDOM, VMA_RANDOM, MADV_RANDOM },
		{ VMA_SEQUENTIAL | VMA_RANDOM, 0, MADV_NORMAL },
	};
	size_t i;
	int n = 0;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++)
		if ((from ^ to) & table[i].flags &&
		    (to & table[i].flags) == table[i].on)
			advice[n++] = table[i].advice;
	return n;
}
