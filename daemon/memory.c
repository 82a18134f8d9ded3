// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of a process.
 *
 * One thread reads (process_vm_readv, or the module for what the process itself may
 * not read) and the job's own thread sends what the other has filled: so the
 * socket always has something to carry. Pages of zeroes are found by looking.
 *
 * What was written since it was sent is known by the kernel's soft-dirty bits.
 * Besides, a page can lose its contents without a trace: MADV_DONTNEED and a read
 * leave the shared page of zeroes, or the file's page, clean. Such pages are never
 * mapped by this process alone; so clean pages that are shared are read again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "memory.h"
#include "sharers.h"

#define PM_PRESENT (1ull << 63)
#define PM_SWAPPED (1ull << 62)
#define PM_FILE	   (1ull << 61)
#define PM_ALONE   (1ull << 56)
#define PM_DIRTY   (1ull << 55)

#define SLOTS	      4	    /* blocks between reader and sender */
#define PAGEMAP_CHUNK 65536 /* entries read at once */

#define ROUNDS 6	  /* of pre-copy at most */
#define ENOUGH (4u << 20) /* bytes that may be left for the freeze */

/* ---------------------------------------------------------- open, close */

static int open_proc(pid_t pid, const char *name, int mode)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, mode | O_CLOEXEC);
}

/* Does this kernel note which pages are written? A page just written must say so. */
static bool soft_dirty_works(void)
{
	volatile char *page;
	uint64_t entry = 0;
	int fd;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
	*page = 1;
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &entry, 8, (uintptr_t)page / PAGE * 8) != 8)
		entry = 0;
	if (fd >= 0)
		close(fd);
	munmap((void *)page, PAGE);
	return entry & PM_DIRTY;
}

int memory_open(struct memory *m, struct job *job, pid_t pid)
{
	*m = (struct memory){
		.job = job,
		.pid = pid,
		.pagemap = -1,
		.device = -1,
		.handle = -1,
		.phase = "pages",
	};
	if (!soft_dirty_works())
		return job_fail(job, ENOSYS,
				"this kernel has no CONFIG_MEM_SOFT_DIRTY");
	m->pagemap = open_proc(pid, "pagemap", O_RDONLY);
	if (m->pagemap < 0)
		return job_fail(job, errno, "cannot open its page map: %s",
				strerror(errno));
	m->device = open("/dev/mattx", O_RDWR | O_CLOEXEC);
	if (m->device < 0)
		return job_fail(job, errno, "cannot open /dev/mattx: %s",
				strerror(errno));
	return 0;
}

void memory_close(struct memory *m)
{
	if (m->pagemap >= 0)
		close(m->pagemap);
	if (m->device >= 0)
		close(m->device);
	maps_free(&m->maps);
	runs_free(&m->seen);
	runs_free(&m->fseen);
	runs_free(&m->there);
	runs_free(&m->shared);
	runs_free(&m->kept);
	free(m->window);
	sums_free(&m->sums);
	*m = (struct memory){ .pagemap = -1, .device = -1 };
}

ssize_t memory_move(int device, pid_t pid, bool write, void *buf, size_t len,
		    uint64_t addr)
{
	struct mattx_ioc_memory arg = { .pid = pid,
					.write = write,
					.addr = addr,
					.ptr = (uintptr_t)buf,
					.len = len };

	return ioctl(device, MATTX_IOC_MEMORY, &arg) ? -errno : (ssize_t)arg.len;
}

int memory_forget(struct job *job, pid_t pid)
{
	int fd = open_proc(pid, "clear_refs", O_WRONLY);
	int error = 0;

	if (fd < 0 || write(fd, "4", 1) != 1)
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error)
		return job_fail(job, error, "cannot watch what it writes: %s",
				strerror(error));
	return 0;
}

/* --------------------------------------------------- reader and sender */

struct slot {
	char *buf;			    /* STREAM_BATCH bytes */
	struct stream_run run[STREAM_RUNS]; /* what of it is sent */
	struct iovec iov[STREAM_RUNS + 2]; /* [0] head, [1] runs, then contents */
	unsigned int n;
	bool last;
};

/* How pages are judged. */
struct manner {
	const struct runs *whole; /* zeroes in here are sent too; or NULL */
	bool shared;		  /* pages of shared memory: m->sums */
	const struct runs *there; /* with shared: the other side has these; or NULL */
};

/* What to read, and where the two threads meet. Reader: head, sender: tail. */
struct pump {
	struct memory *m;
	const struct runs *todo;
	struct manner how;
	struct slot slot[SLOTS];
	unsigned int head, tail; /* under lock */
	bool stop;		 /* under lock: the sender has given up */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	/* of the reader: */
	struct runs data, zero, lost; /* what it found */
	size_t whole_at, there_at, sum_at;
	bool no_memory;
};

static bool is_zero(const char *page)
{
	const uint64_t *p = (const uint64_t *)page;
	size_t i;

	for (i = 0; i < PAGE / 8; i += 8)
		if (p[i] | p[i + 1] | p[i + 2] | p[i + 3] | p[i + 4] |
		    p[i + 5] | p[i + 6] | p[i + 7])
			return false;
	return true;
}

/* A page of shared memory. Return: whether the other side has just this. */
static bool judge_shared(struct pump *p, const char *buf, uint64_t addr)
{
	struct sum s = sum_page(buf, addr);

	if (!p->how.there) {
		p->no_memory |= !sums_add(&p->m->sums, &s);
		return false;
	}
	if (!runs_has(p->how.there, &p->there_at, addr) ||
	    !sums_has(&p->m->sums, &p->sum_at, &s))
		return false;
	runs_add(&p->data, addr, addr + PAGE);
	return true;
}

/* A page is in @slot at @buf: note whether it is to be sent. */
static void judge(struct pump *p, struct slot *slot, char *buf, uint64_t addr)
{
	struct stream_run *run = slot->n ? &slot->run[slot->n - 1] : NULL;

	if (is_zero(buf) &&
	    !(p->how.whole && runs_has(p->how.whole, &p->whole_at, addr))) {
		runs_add(&p->zero, addr, addr + PAGE);
		return;
	}
	if (p->how.shared && judge_shared(p, buf, addr))
		return;
	runs_add(&p->data, addr, addr + PAGE);
	if (run && run->addr + run->len == addr &&
	    (char *)slot->iov[slot->n + 1].iov_base + run->len == buf) {
		run->len += PAGE;
		slot->iov[slot->n + 1].iov_len += PAGE;
		return;
	}
	slot->run[slot->n] = (struct stream_run){ addr, PAGE };
	slot->iov[slot->n + 2] = (struct iovec){ buf, PAGE };
	slot->n++;
}

/*
 * Reads @n pieces of the process one behind the other into @buf. Pages that cannot be
 * read (beyond the end of a file, or unmapped meanwhile) are noted as lost.
 */
static void read_pieces(struct pump *p, struct slot *slot, struct iovec *piece,
			int n)
{
	char *buf = slot->buf;
	uint64_t addr, off;
	struct iovec local;
	ssize_t got;
	int i;

	while (n) {
		local = (struct iovec){ buf, 0 };
		for (i = 0; i < n; i++)
			local.iov_len += piece[i].iov_len;
		got = process_vm_readv(p->m->pid, &local, 1, piece, n, 0);
		if (got <= 0) {
			got = memory_move(p->m->device, p->m->pid, false, buf,
					  piece->iov_len,
					  (uintptr_t)piece->iov_base);
			if (got < (ssize_t)PAGE) {
				addr = (uint64_t)piece->iov_base;
				runs_add(&p->lost, addr, addr + PAGE);
				piece->iov_base = (char *)piece->iov_base + PAGE;
				piece->iov_len -= PAGE;
				if (!piece->iov_len) {
					piece++;
					n--;
				}
				continue;
			}
		}
		got &= ~(PAGE - 1);
		while (got > 0) {
			addr = (uint64_t)piece->iov_base;
			for (off = 0; off < piece->iov_len && (ssize_t)off < got;
			     off += PAGE)
				judge(p, slot, buf + off, addr + off);
			buf += off;
			got -= off;
			piece->iov_base = (char *)piece->iov_base + off;
			piece->iov_len -= off;
			if (!piece->iov_len) {
				piece++;
				n--;
			}
		}
	}
}

/* Waits for an empty slot. Return: NULL when the sender has given up. */
static struct slot *slot_get(struct pump *p)
{
	struct slot *slot = NULL;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && p->head - p->tail == SLOTS)
		pthread_cond_wait(&p->cond, &p->lock);
	if (!p->stop)
		slot = &p->slot[p->head % SLOTS];
	pthread_mutex_unlock(&p->lock);
	if (slot) {
		slot->n = 0;
		slot->last = false;
	}
	return slot;
}

static void slot_put(struct pump *p)
{
	pthread_mutex_lock(&p->lock);
	p->head++;
	pthread_cond_signal(&p->cond);
	pthread_mutex_unlock(&p->lock);
}

static void *reader(void *arg)
{
	struct pump *p = arg;
	struct iovec piece[STREAM_RUNS];
	const struct run *run = p->todo->run, *end = run + p->todo->n;
	uint64_t at = run < end ? run->start : 0;
	struct slot *slot;

	while ((slot = slot_get(p))) {
		size_t room = STREAM_BATCH;
		int n = 0;

		while (run < end && room && n < (int)STREAM_RUNS) {
			size_t len = run->end - at < room ? run->end - at : room;

			piece[n++] = (struct iovec){ (void *)at, len };
			room -= len;
			at += len;
			if (at == run->end && ++run < end)
				at = run->start;
		}
		if (n)
			read_pieces(p, slot, piece, n);
		slot->last = run == end;
		slot_put(p);
		if (run == end)
			break;
	}
	return NULL;
}

static int send_slot(struct memory *m, struct slot *slot)
{
	unsigned int i;
	int ret;

	if (!slot->n)
		return 0;
	slot->iov[1] =
		(struct iovec){ slot->run, slot->n * sizeof(slot->run[0]) };
	for (i = 0; i < slot->n; i++)
		m->sent += slot->run[i].len;
	ret = stream_sendv(m->job, STREAM_PAGES, slot->n, slot->iov, slot->n + 2);
	if (ret)
		return ret;
	job_progress(m->job, m->phase, m->sent, m->total);
	ret = stream_fault(m->job, FAULT_OUT_PAGES);
	return ret ?: stream_poll(m->job);
}

static int sender(struct pump *p)
{
	struct slot *slot;
	bool last = false;
	int ret = 0;

	while (!ret && !last) {
		pthread_mutex_lock(&p->lock);
		while (p->head == p->tail)
			pthread_cond_wait(&p->cond, &p->lock);
		slot = &p->slot[p->tail % SLOTS];
		pthread_mutex_unlock(&p->lock);
		last = slot->last;
		ret = send_slot(p->m, slot);
		pthread_mutex_lock(&p->lock);
		p->tail++;
		p->stop = ret;
		pthread_cond_signal(&p->cond);
		pthread_mutex_unlock(&p->lock);
	}
	return ret;
}

static int pump_run(struct pump *p)
{
	struct memory *m = p->m;
	pthread_t thread;
	int i, ret;

	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->cond, NULL);
	for (i = 0; i < SLOTS; i++) {
		p->slot[i].buf = mmap(NULL, STREAM_BATCH, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p->slot[i].buf == MAP_FAILED) {
			p->slot[i].buf = NULL;
			return job_fail(m->job, ENOMEM, "out of memory");
		}
	}
	ret = pthread_create(&thread, NULL, reader, p);
	if (ret)
		return job_fail(m->job, ret, "cannot create a thread: %s",
				strerror(ret));
	ret = sender(p);
	pthread_join(thread, NULL);
	if (!ret && (p->data.bad || p->zero.bad || p->lost.bad || p->no_memory))
		ret = job_fail(m->job, ENOMEM, "out of memory");
	return ret;
}

/* What a pump has found. */
struct found {
	struct runs data, zero, lost; /* sent; zero; could not be read */
};

static void found_free(struct found *f)
{
	runs_free(&f->data);
	runs_free(&f->zero);
	runs_free(&f->lost);
}

/* Sends the pages of @todo as @how says. @found: to be freed in any case. */
static int pump(struct memory *m, const struct runs *todo,
		const struct manner *how, struct found *found)
{
	struct pump *p;
	int i, ret;

	*found = (struct found){ 0 };
	p = calloc(1, sizeof(*p));
	if (!p)
		return job_fail(m->job, ENOMEM, "out of memory");
	p->how = *how;
	p->m = m;
	p->todo = todo;
	m->total += runs_bytes(todo);
	ret = todo->bad ? job_fail(m->job, ENOMEM, "out of memory") : pump_run(p);
	*found = (struct found){ p->data, p->zero, p->lost };
	for (i = 0; i < SLOTS; i++)
		if (p->slot[i].buf)
			munmap(p->slot[i].buf, STREAM_BATCH);
	free(p);
	return ret;
}

/* ----------------------------------------------------------- the scan */

/* Where of @vma there are pages: for a file, not behind its end. */
static uint64_t vma_end(pid_t pid, const struct vma *vma)
{
	char path[96];
	struct stat st;
	uint64_t len;

	if (!(vma->flags & VMA_FILE))
		return vma->rss ? vma->end : vma->start;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)vma->start, (unsigned long long)vma->end);
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return vma->end;
	if ((uint64_t)st.st_size <= vma->off)
		return vma->rss ? vma->end : vma->start;
	len = (st.st_size - vma->off + PAGE - 1) & ~(PAGE - 1);
	return len < vma->end - vma->start ? vma->start + len : vma->end;
}

/* Calls @page for every page of [start, end), with its page map entry. */
static int walk(struct job *job, int pagemap, uint64_t start, uint64_t end,
		void (*page)(void *arg, uint64_t addr, uint64_t entry), void *arg)
{
	uint64_t *map, n, i;
	ssize_t got;
	int ret = 0;

	if (start >= end)
		return 0;
	map = malloc(PAGEMAP_CHUNK * sizeof(*map));
	if (!map)
		return job_fail(job, ENOMEM, "out of memory");
	while (start < end && !ret) {
		n = (end - start) / PAGE;
		if (n > PAGEMAP_CHUNK)
			n = PAGEMAP_CHUNK;
		got = pread(pagemap, map, n * sizeof(*map),
			    start / PAGE * sizeof(*map));
		if (got < (ssize_t)sizeof(*map)) {
			ret = job_fail(job, got < 0 ? errno : ESRCH,
				       "cannot read its page map at %llx: %s",
				       (unsigned long long)start,
				       got < 0 ? strerror(errno) :
						 "it has ended");
			break;
		}
		n = got / sizeof(*map);
		for (i = 0; i < n; i++)
			page(arg, start + i * PAGE, map[i]);
		start += n * PAGE;
	}
	free(map);
	return ret;
}

/* One look at all pages; the sets are in address order because the walk is. */
struct scan {
	const struct memory *m;
	struct runs todo;	 /* to be read and sent */
	struct runs shared;	 /* the same, of shared memory */
	struct runs seen, fseen; /* become m's */
	size_t at_seen, at_fseen, at_there;
	bool file; /* the mapping that is walked is one of a file */
};

static void scan_own(struct scan *s, uint64_t addr, uint64_t entry)
{
	if (!runs_has(&s->m->seen, &s->at_seen, addr) || entry & PM_DIRTY ||
	    (entry & PM_PRESENT && !(entry & PM_ALONE) &&
	     runs_has(&s->m->there, &s->at_there, addr)))
		runs_add(&s->todo, addr, addr + PAGE);
	runs_add(&s->seen, addr, addr + PAGE);
}

static void scan_page(void *arg, uint64_t addr, uint64_t entry)
{
	struct scan *s = arg;

	if (entry & PM_SWAPPED || (entry & PM_PRESENT && !(entry & PM_FILE))) {
		scan_own(s, addr, entry);
	} else if (s->file) {
		/* dirty: a mapping that is new since may show something else */
		if (!runs_has(&s->m->fseen, &s->at_fseen, addr) ||
		    entry & PM_DIRTY)
			runs_add(&s->todo, addr, addr + PAGE);
		runs_add(&s->fseen, addr, addr + PAGE);
	} else if (entry & PM_PRESENT) {
		scan_own(s, addr, entry); /* the huge page of zeroes */
	}
}

/* Is all that this mapping shows seen through one that was looked at before? */
static bool is_seen(const struct memory *m, const struct vma *vma)
{
	const struct stream_window *w, *own = NULL;
	size_t i;

	for (i = 0; i < m->windows && !own; i++)
		if (m->window[i].start == vma->start)
			own = &m->window[i];
	for (i = 0; own && i < m->windows; i++) {
		w = &m->window[i];
		if (w->object == own->object && w->start < own->start &&
		    w->pos <= own->pos &&
		    w->pos + (w->end - w->start) >=
			    own->pos + (own->end - own->start))
			return true;
	}
	return false;
}

/* What the file has where it is mapped, whether this process has seen it or not. */
static int scan_shared(struct scan *s, const struct vma *vma)
{
	const struct memory *m = s->m;
	struct mattx_ioc_data data;
	uint64_t at = is_seen(m, vma) ? vma->end : vma->start;

	for (; at < vma->end; at = data.end) {
		data = (struct mattx_ioc_data){ at, vma->end };
		if (ioctl(m->handle, MATTX_IOC_DATA, &data)) {
			if (errno == ENXIO)
				break;
			return job_fail(m->job, errno,
					"cannot see what %llx-%llx has: %s",
					(unsigned long long)vma->start,
					(unsigned long long)vma->end,
					strerror(errno));
		}
		runs_add(&s->shared, data.start, data.end);
		runs_add(&s->fseen, data.start, data.end);
	}
	return 0;
}

/*
 * The same by a look at the file, where nobody minds that it is opened: of a process that
 * runs, and of a guest that sees memory through several windows.
 */
static int scan_file(struct memory *m, const struct vma *vma, struct runs *todo)
{
	off_t pos = vma->off, end = vma->off + (vma->end - vma->start), next;
	char path[96];
	int fd, error;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)m->pid,
		 (unsigned long long)vma->start, (unsigned long long)vma->end);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
	while (fd >= 0 && pos < end && (pos = lseek(fd, pos, SEEK_DATA)) >= 0 &&
	       pos < end && (next = lseek(fd, pos, SEEK_HOLE)) >= 0) {
		if (next > end)
			next = end;
		next = (next + PAGE - 1) & ~(PAGE - 1);
		pos &= ~(PAGE - 1);
		runs_add(todo, vma->start + (pos - vma->off),
			 vma->start + (next - vma->off));
		pos = next;
	}
	error = fd < 0 || (pos < 0 && errno != ENXIO) ? errno : 0;
	if (fd >= 0)
		close(fd);
	return -error;
}

/* What is shared: once while it runs, and when it is frozen. */
static int scan(struct memory *m, struct scan *s, bool frozen)
{
	size_t i;
	int ret = 0;

	*s = (struct scan){ .m = m };
	for (i = 0; i < m->maps.n && !ret; i++) {
		const struct vma *vma = &m->maps.vma[i];

		if (vma->flags & VMA_VDSO)
			continue;
		if (vma_is_shared(vma)) {
			if (frozen)
				ret = scan_shared(s, vma);
			else if (!m->sums.n) /* what fails here is sent later */
				scan_file(m, vma, &s->shared);
			continue;
		}
		s->file = vma->flags & VMA_FILE;
		ret = walk(m->job, m->pagemap, vma->start, vma_end(m->pid, vma),
			   scan_page, s);
	}
	return ret;
}

static void scan_free(struct scan *s)
{
	runs_free(&s->todo);
	runs_free(&s->shared);
	runs_free(&s->seen);
	runs_free(&s->fseen);
}

/* --------------------------------------------------- layout and lists */

static int send_runs(struct memory *m, uint32_t type, const struct runs *runs)
{
	struct stream_run *list;
	size_t i;
	int ret;

	if (runs->bad)
		return job_fail(m->job, ENOMEM, "out of memory");
	if (!runs->n)
		return 0;
	list = calloc(runs->n, sizeof(*list));
	if (!list)
		return job_fail(m->job, ENOMEM, "out of memory");
	for (i = 0; i < runs->n; i++)
		list[i] = (struct stream_run){ runs->run[i].start,
					       runs->run[i].end -
						       runs->run[i].start };
	ret = stream_send(m->job, type, 0, list, runs->n * sizeof(*list));
	free(list);
	return ret;
}

static int send_layout(struct memory *m, bool last)
{
	struct stream_vma *list;
	size_t i, at = 0;
	int ret;

	list = calloc(m->maps.n + 1, sizeof(*list));
	if (!list)
		return job_fail(m->job, ENOMEM, "out of memory");
	for (i = 0; i < m->maps.n; i++) {
		const struct vma *vma = &m->maps.vma[i];

		list[i] = (struct stream_vma){ vma->start, vma->end, vma->prot,
					       vma->flags & VMA_WIRE };
		if (!vma_is_shared(vma))
			continue;
		list[i].flags &= ~VMA_FILE;
		list[i].flags |= VMA_SOLE;
		if (runs_has(&m->kept, &at, vma->start))
			list[i].flags |= VMA_KEPT;
	}
	ret = stream_send(m->job, STREAM_LAYOUT, last, list,
			  m->maps.n * sizeof(*list));
	free(list);
	return ret;
}

static int compare_windows(const void *a, const void *b)
{
	const struct stream_window *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->pos < y->pos ? -1 : x->pos > y->pos;
}

/* The other side makes new memory for them. */
static void forget_windows(struct memory *m)
{
	struct runs one = { 0 };
	size_t i;

	for (i = 0; i < m->windows; i++) {
		one.n = 0;
		runs_add(&one, m->window[i].start, m->window[i].end);
		runs_combine(&m->there, &m->there, RUNS_MINUS, &one);
	}
	runs_free(&one);
}

/*
 * Those that show the same memory as others, each such group an object of its own; the
 * rest is as good as private memory there.
 */
static int send_windows(struct memory *m)
{
	struct stream_window *w = m->window;
	size_t i, j, k, n = 0;
	uint64_t end, object = 0;

	for (i = 0; i < m->windows; i++) {
		k = maps_at(&m->maps, w[i].start);
		if (k == m->maps.n || m->maps.vma[k].start != w[i].start ||
		    m->maps.vma[k].end != w[i].end)
			return job_fail(m->job, EBUSY,
					"its shared mappings have changed");
		w[i].pos = m->maps.vma[k].off;
	}
	if (m->windows)
		qsort(w, m->windows, sizeof(*w), compare_windows);
	for (i = 0; i < m->windows; i = j) {
		end = w[i].pos + (w[i].end - w[i].start);
		for (j = i + 1; j < m->windows && w[j].object == w[i].object &&
				w[j].pos < end;
		     j++)
			if (end < w[j].pos + (w[j].end - w[j].start))
				end = w[j].pos + (w[j].end - w[j].start);
		if (j == i + 1)
			continue;
		for (k = i; k < j; k++) {
			w[n] = w[k];
			w[n++].object = object;
		}
		object++;
	}
	m->windows = n;
	forget_windows(m);
	return n ? stream_send(m->job, STREAM_WINDOWS, 0, w, n * sizeof(*w)) : 0;
}

/* Ranges whose contents are of the same origin in both layouts. */
static void same_origin(const struct maps *a, const struct maps *b,
			struct runs *same)
{
	size_t i = 0, j = 0;

	while (i < a->n && j < b->n) {
		const struct vma *x = &a->vma[i], *y = &b->vma[j];
		uint64_t start = x->start > y->start ? x->start : y->start;
		uint64_t end = x->end < y->end ? x->end : y->end;

		if (start < end && !((x->flags ^ y->flags) & VMA_FILE) &&
		    (!(x->flags & VMA_FILE) ||
		     (x->dev == y->dev && x->ino == y->ino &&
		      x->start - x->off == y->start - y->off)))
			runs_add(same, start, end);
		if (x->end <= y->end)
			i++;
		if (y->end <= x->end)
			j++;
	}
}

/* Reads the layout and announces it; what was replaced since is not there any more. */
static int announce(struct memory *m, bool last)
{
	struct runs same = { 0 }, gone = { 0 };
	struct maps maps;
	int ret;

	ret = maps_read(m->pid, m->stub, m->stub_len, &maps);
	if (!ret && !maps.n)
		ret = -ESRCH;
	if (ret)
		return job_fail(m->job, ret, "cannot read its mappings: %s",
				strerror(-ret));
	same_origin(&m->maps, &maps, &same);
	maps_free(&m->maps);
	m->maps = maps;
	ret = last ? send_windows(m) : 0;
	if (!ret)
		ret = send_layout(m, last);
	if (!ret) {
		size_t i;
		struct runs mapped = { 0 };

		for (i = 0; i < maps.n; i++)
			runs_add(&mapped, maps.vma[i].start, maps.vma[i].end);
		runs_combine(&gone, &m->there, RUNS_MINUS, &same);
		runs_combine(&gone, &gone, RUNS_AND, &mapped);
		ret = send_runs(m, STREAM_DROP, &gone);
		runs_free(&mapped);
	}
	runs_combine(&m->there, &m->there, RUNS_AND, &same);
	runs_combine(&m->seen, &m->seen, RUNS_AND, &same);
	runs_combine(&m->fseen, &m->fseen, RUNS_AND, &same);
	runs_free(&same);
	runs_free(&gone);
	return ret;
}

/* ------------------------------------------------------------- rounds */

/* Of a frozen process everything can be read, but what is behind the end of a file. */
static int check_lost(struct memory *m, const struct runs *lost)
{
	size_t i;

	for (i = 0; i < lost->n; i++) {
		size_t at = maps_at(&m->maps, lost->run[i].start);

		if (at == m->maps.n || !(m->maps.vma[at].flags & VMA_FILE) ||
		    vma_is_shared(&m->maps.vma[at]) ||
		    m->maps.vma[at].end < lost->run[i].end)
			return job_fail(m->job, EFAULT,
					"cannot read its page at %llx",
					(unsigned long long)lost->run[i].start);
	}
	return 0;
}

/* Sends what the scan found; the other side then has what was read here. */
static int send_part(struct memory *m, struct scan *s, const struct runs *todo,
		     const struct manner *how, bool frozen)
{
	struct runs drop = { 0 };
	struct found f;
	int ret;

	ret = pump(m, todo, how, &f);
	if (!ret) {
		/* what is neither the process's own nor of a file is zero */
		runs_combine(&drop, &f.zero, RUNS_AND, &m->there);
		runs_combine(&m->there, &m->there, RUNS_MINUS, &f.zero);
		runs_combine(&m->there, &m->there, RUNS_OR, &f.data);
		runs_combine(&s->seen, &s->seen, RUNS_MINUS, &f.lost);
		runs_combine(&s->fseen, &s->fseen, RUNS_MINUS, &f.lost);
		ret = send_runs(m, STREAM_DROP, &drop);
	}
	if (!ret && frozen)
		ret = check_lost(m, &f.lost);
	found_free(&f);
	runs_free(&drop);
	return ret;
}

static int send_scan(struct memory *m, struct scan *s, bool frozen)
{
	const struct manner how = { 0 },
			    shared = { .shared = true,
				       .there = frozen ? &m->there : NULL };
	struct runs drop = { 0 };
	int ret;

	ret = send_part(m, s, &s->todo, &how, frozen);
	if (!ret && s->shared.n)
		ret = send_part(m, s, &s->shared, &shared, frozen);
	if (!ret && frozen) {
		runs_combine(&drop, &m->there, RUNS_MINUS, &s->seen);
		runs_combine(&drop, &drop, RUNS_MINUS, &s->fseen);
		ret = send_runs(m, STREAM_DROP, &drop);
		runs_combine(&m->there, &m->there, RUNS_MINUS, &drop);
	}
	runs_free(&m->seen);
	runs_free(&m->fseen);
	m->seen = s->seen;
	m->fseen = s->fseen;
	s->seen = s->fseen = (struct runs){ 0 };
	if (!ret && (m->seen.bad || m->fseen.bad || m->there.bad))
		ret = job_fail(m->job, ENOMEM, "out of memory");
	runs_free(&drop);
	return ret;
}

/* What would have to be sent now, by a look at the running process. */
static int estimate(struct memory *m, uint64_t *bytes)
{
	struct scan s;
	int ret = scan(m, &s, false);

	*bytes = runs_bytes(&s.todo);
	scan_free(&s);
	return ret;
}

/* Looks while the process stands still, and has the kernel begin anew. */
static int snapshot(struct memory *m, struct scan *s,
		    int (*freeze)(struct job *job))
{
	int fd = freeze(m->job), ret;

	*s = (struct scan){ .m = m };
	if (fd < 0)
		return fd;
	ret = announce(m, false);
	if (!ret)
		ret = scan(m, s, false);
	if (!ret)
		ret = memory_forget(m->job, m->pid);
	close(fd);
	return ret;
}

static int first_round(struct memory *m)
{
	struct scan s = { .m = m };
	int ret;

	/* Before the pages are read: what is written from now on is sent again. */
	ret = memory_forget(m->job, m->pid);
	if (!ret)
		ret = announce(m, false);
	if (!ret)
		ret = scan(m, &s, false);
	if (!ret)
		ret = send_scan(m, &s, false);
	scan_free(&s);
	return ret;
}

int memory_precopy(struct memory *m, int (*freeze)(struct job *job))
{
	uint64_t before, left;
	struct scan s;
	int round, ret;

	m->phase = "pre-copy";
	m->sent = m->total = 0;
	ret = first_round(m);
	before = m->sent;
	for (round = 1; round < ROUNDS && !ret; round++) {
		ret = estimate(m, &left);
		if (ret || left < ENOUGH || left > before / 4 * 3)
			break;
		before = left;
		ret = snapshot(m, &s, freeze);
		if (!ret)
			ret = send_scan(m, &s, false);
		scan_free(&s);
	}
	return ret;
}

int memory_rest(struct memory *m)
{
	struct scan s;
	int ret;

	m->phase = "frozen";
	m->sent = m->total = 0;
	ret = announce(m, true);
	if (ret)
		return ret;
	ret = scan(m, &s, true);
	if (!ret)
		ret = send_scan(m, &s, true);
	scan_free(&s);
	return ret ?: stream_send(m->job, STREAM_MEMORY, 0, NULL, 0);
}

/* ----------------------------------------------------------- way home */

struct changes {
	struct runs todo, keep;
	const struct runs *files, *shared;
	size_t at, at_shared;
	bool writable; /* the mapping that is walked */
};

static void change_page(void *arg, uint64_t addr, uint64_t entry)
{
	struct changes *c = arg;
	bool is_file;

	if (!(entry & (PM_PRESENT | PM_SWAPPED)))
		return;
	if (!c->writable && runs_has(c->shared, &c->at_shared, addr))
		return; /* its protection is what it was: it cannot have changed */
	is_file = runs_has(c->files, &c->at, addr);
	if (is_file && entry & PM_FILE)
		return; /* fetched from home, and never written to */
	if (entry & PM_DIRTY)
		runs_add(&c->todo, addr, addr + PAGE);
	else if (is_file)
		return; /* unchanged: home has the file */
	else if (entry & PM_PRESENT && !(entry & PM_ALONE))
		runs_add(&c->todo, addr, addr + PAGE);
	else
		runs_add(&c->keep, addr, addr + PAGE);
}

/* Most of it comes home again: which pages were written is not known reliably. */
static int changed_window(struct memory *m, const struct vma *vma,
			  struct runs *todo)
{
	int ret = scan_file(m, vma, todo);

	if (ret)
		return job_fail(m->job, ret, "cannot see what %llx-%llx has: %s",
				(unsigned long long)vma->start,
				(unsigned long long)vma->end, strerror(-ret));
	return 0;
}

int memory_changes(struct memory *m, const struct runs *files)
{
	struct changes c = { .files = files, .shared = &m->shared };
	const struct manner how = { .whole = files };
	struct found f = { 0 };
	size_t i;
	int ret;

	m->phase = "frozen";
	ret = announce(m, true);
	for (i = 0; i < m->maps.n && !ret; i++) {
		c.writable = m->maps.vma[i].prot & PROT_WRITE;
		if (vma_is_shared(&m->maps.vma[i]))
			ret = c.writable ? changed_window(m, &m->maps.vma[i],
							  &c.todo) :
					   0;
		else if (!(m->maps.vma[i].flags & VMA_VDSO) && m->maps.vma[i].rss)
			ret = walk(m->job, m->pagemap, m->maps.vma[i].start,
				   m->maps.vma[i].end, change_page, &c);
	}
	if (!ret)
		ret = send_runs(m, STREAM_KEEP, &c.keep);
	if (!ret)
		ret = pump(m, &c.todo, &how, &f);
	if (!ret && f.lost.n)
		ret = job_fail(m->job, EFAULT, "cannot read its page at %llx",
			       (unsigned long long)f.lost.run[0].start);
	if (!ret)
		ret = stream_send(m->job, STREAM_MEMORY, 0, NULL, 0);
	runs_free(&c.todo);
	runs_free(&c.keep);
	found_free(&f);
	return ret;
}

/* ---------------------------------------------------- receiving side */

int memory_runs(struct job *job, const struct stream_head *head,
		struct stream_run run[STREAM_RUNS])
{
	uint64_t n = head->arg, sum, at = 0, i;
	int ret;

	if (!n || n > STREAM_RUNS || head->len < n * sizeof(*run))
		return stream_bad(job, "a damaged list of pages");
	ret = stream_read(job, run, n * sizeof(*run));
	if (ret)
		return ret;
	sum = n * sizeof(*run);
	for (i = 0; i < n; i++) {
		if (run[i].addr % PAGE || run[i].len % PAGE || !run[i].len ||
		    run[i].len > STREAM_BATCH || run[i].addr < at ||
		    run[i].addr > USER_END - run[i].len)
			return stream_bad(job, "a damaged list of pages");
		at = run[i].addr + run[i].len;
		sum += run[i].len;
	}
	if (sum != head->len || sum - n * sizeof(*run) > STREAM_BATCH)
		return stream_bad(job, "a damaged list of pages");
	return n;
}

int memory_list(struct job *job, const struct stream_head *head, struct runs *runs)
{
	struct stream_run *list;
	uint64_t at = 0, i, n = head->len / sizeof(*list);

	list = stream_payload(job, head, 0, sizeof(*list), STREAM_LIST_MAX);
	if (!list)
		return -job->result;
	for (i = 0; i < n; i++) {
		if (list[i].addr % PAGE || list[i].len % PAGE || !list[i].len ||
		    list[i].addr < at || list[i].len > USER_END ||
		    list[i].addr > USER_END - list[i].len) {
			free(list);
			return stream_bad(job, "a damaged list of ranges");
		}
		at = list[i].addr + list[i].len;
		runs_add(runs, list[i].addr, at);
	}
	free(list);
	if (runs->bad)
		return job_fail(job, ENOMEM, "out of memory");
	return 0;
}

static void present_page(void *arg, uint64_t addr, uint64_t entry)
{
	if (entry & (PM_PRESENT | PM_SWAPPED))
		runs_add(arg, addr, addr + PAGE);
}

int memory_present(struct job *job, int pagemap, const struct vma *vma,
		   struct runs *runs)
{
	return walk(job, pagemap, vma->start, vma->end, present_page, runs);
}
