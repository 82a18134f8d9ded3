// SPDX-License-Identifier: GPL-2.0
/* Reads /proc/PID/smaps; arithmetic with sets of address ranges. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "maps.h"

/* What a guest has mapped of a file at home: memory of its own, as far as is known here. */
#define GHOST_NAME "[mattx-file]"

static const struct {
	char name[3];
	uint32_t flag;
} vm_flags[] = {
	{ "sh", VMA_SHARED },	  { "mw", VMA_MAYWRITE },
	{ "gd", VMA_GROWSDOWN },  { "pf", VMA_DEVICE },
	{ "io", VMA_DEVICE },	  { "lo", VMA_LOCKED },
	{ "lf", VMA_ONFAULT },	  { "sr", VMA_SEQUENTIAL },
	{ "rr", VMA_RANDOM },	  { "dc", VMA_DONTFORK },
	{ "nr", VMA_NORESERVE },  { "ht", VMA_HUGETLB },
	{ "wf", VMA_WIPEONFORK }, { "dd", VMA_DONTDUMP },
	{ "hg", VMA_HUGE },	  { "nh", VMA_NOHUGE },
	{ "mg", VMA_MERGEABLE },  { "um", VMA_UFFD },
	{ "uw", VMA_UFFD },	  { "ui", VMA_UFFD },
	{ "ss", VMA_SHADOW },	  { "sl", VMA_SEALED },
	{ "sd", VMA_SOFTDIRTY },  { "gu", VMA_GUARD },
};

/* A whole file of /proc, with a NUL behind it. NULL: errno. */
static char *slurp(const char *path)
{
	size_t cap = 1 << 18, len = 0;
	char *buf, *more;
	ssize_t n;
	int fd, error;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	buf = malloc(cap);
	while (buf) {
		n = read(fd, buf + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += n;
		if (cap - len < 65536) {
			more = realloc(buf, cap *= 2);
			if (!more) {
				free(buf);
				errno = ENOMEM;
			}
			buf = more;
		}
	}
	if (buf && n < 0) {
		error = errno;
		free(buf);
		buf = NULL;
		errno = error;
	}
	if (buf)
		buf[len] = 0;
	close(fd);
	return buf;
}

static void parse_flags(struct vma *vma, const char *s)
{
	size_t i;

	for (; s[0] && s[1]; s += 2) {
		while (*s == ' ')
			s++;
		for (i = 0; i < sizeof(vm_flags) / sizeof(*vm_flags); i++)
			if (!strncmp(s, vm_flags[i].name, 2))
				vma->flags |= vm_flags[i].flag;
		if (!s[0])
			return;
	}
}

/*
 * A process that runs may change its mappings between two pieces of the file that are read:
 * one that has become larger is told again. Return: whether there is something new in it.
 */
static bool follows(struct vma *vma, const struct maps *maps)
{
	uint64_t end = maps->n ? maps->vma[maps->n - 1].end : 0;

	if (vma->end <= end)
		return false;
	if (vma->start < end) {
		vma->off += end - vma->start;
		vma->start = end;
	}
	return true;
}

/* "start-end rwxp off maj:min ino   name". Return: whether it is one. */
static bool parse_head(struct vma *vma, char *line)
{
	unsigned long long start, end, off, ino;
	unsigned int major, minor;
	char perm[5];
	int at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perm,
		   &off, &major, &minor, &ino, &at) < 7 ||
	    !at)
		return false;
	*vma = (struct vma){ .start = start,
			     .end = end,
			     .off = off,
			     .ino = ino,
			     .dev = (uint64_t)major << 32 | minor,
			     .name = line + at };
	if (perm[0] == 'r')
		vma->prot |= PROT_READ;
	if (perm[1] == 'w')
		vma->prot |= PROT_WRITE;
	if (perm[2] == 'x')
		vma->prot |= PROT_EXEC;
	if (perm[3] == 's')
		vma->flags |= VMA_SHARED;
	if (!strcmp(vma->name, "[vdso]") || !strncmp(vma->name, "[vvar", 5))
		vma->flags |= VMA_VDSO;
	else if ((ino || vma->name[0] == '/') && strcmp(vma->name, GHOST_NAME))
		vma->flags |= VMA_FILE;
	return true;
}

static struct vma *maps_grow(struct maps *maps)
{
	struct vma *more;

	if (maps->n == maps->cap) {
		maps->cap = maps->cap ? maps->cap * 2 : 256;
		more = realloc(maps->vma, maps->cap * sizeof(*more));
		if (!more)
			return NULL;
		maps->vma = more;
	}
	return &maps->vma[maps->n];
}

static void parse_line(struct vma *vma, char *line)
{
	if (!strncmp(line, "Rss:", 4) || !strncmp(line, "Swap:", 5))
		vma->rss += strtoull(strchr(line, ':') + 1, NULL, 10) << 10;
	else if (!strncmp(line, "VmFlags:", 8))
		parse_flags(vma, line + 8);
	else if (!strncmp(line, "ProtectionKey:", 14) && atoi(line + 14) > 0)
		vma->flags |= VMA_PKEY;
}

int maps_read(pid_t pid, uint64_t skip, uint64_t skip_len, struct maps *maps)
{
	char path[32], *line, *next;
	struct vma *vma = NULL, v;

	*maps = (struct maps){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	maps->names = slurp(path);
	if (!maps->names)
		return -errno;
	for (line = maps->names; *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = 0;
		if (*line >= 'A' && *line <= 'Z') {
			if (vma)
				parse_line(vma, line);
			continue;
		}
		vma = NULL;
		if (!parse_head(&v, line) || v.start >= USER_END ||
		    (v.start < skip + skip_len && v.end > skip) ||
		    !follows(&v, maps))
			continue;
		vma = maps_grow(maps);
		if (!vma) {
			maps_free(maps);
			return -ENOMEM;
		}
		*vma = v;
		maps->n++;
	}
	return 0;
}

void maps_free(struct maps *maps)
{
	free(maps->vma);
	free(maps->names);
	*maps = (struct maps){ 0 };
}

size_t maps_at(const struct maps *maps, uint64_t addr)
{
	size_t low = 0, high = maps->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (maps->vma[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool maps_hole(const struct maps *maps, uint64_t start, uint64_t end)
{
	size_t i = maps_at(maps, start);

	return i == maps->n || maps->vma[i].start >= end;
}

/*
 * Far from where programs, libraries, stacks, and the shadow memory of the
 * sanitizers are; 1 MiB of air on both sides.
 */
uint64_t maps_pick(const struct maps *a, const struct maps *b, uint64_t len)
{
	const uint64_t air = 1 << 20;
	uint64_t addr;

	for (addr = 0x31d000000000; addr < 0x550000000000; addr += 0x10000000)
		if (maps_hole(a, addr - air, addr + len + air) &&
		    (!b || maps_hole(b, addr - air, addr + len + air)))
			return addr;
	for (addr = 0x1000000; addr < 0x31d000000000; addr += 0x10000000)
		if (maps_hole(a, addr - air, addr + len + air) &&
		    (!b || maps_hole(b, addr - air, addr + len + air)))
			return addr;
	return 0;
}

const char *vma_text(const struct vma *vma, char *buf, size_t len)
{
	snprintf(buf, len, "%llx-%llx%s%s", (unsigned long long)vma->start,
		 (unsigned long long)vma->end,
		 vma->name && *vma->name ? " " : "", vma->name ? vma->name : "");
	return buf;
}

void runs_add(struct runs *runs, uint64_t start, uint64_t end)
{
	struct run *more;

	if (start >= end)
		return;
	if (runs->n && runs->run[runs->n - 1].end == start) {
		runs->run[runs->n - 1].end = end;
		return;
	}
	if (runs->n == runs->cap) {
		more = realloc(runs->run,
			       (runs->cap ? runs->cap * 2 : 64) * sizeof(*more));
		if (!more) {
			runs->bad = true;
			return;
		}
		runs->run = more;
		runs->cap = runs->cap ? runs->cap * 2 : 64;
	}
	runs->run[runs->n++] = (struct run){ start, end };
}

void runs_free(struct runs *runs)
{
	free(runs->run);
	*runs = (struct runs){ 0 };
}

/* The next address behind @at where being in @runs changes; *@in: whether @at is in. */
static uint64_t edge(const struct runs *runs, size_t *i, uint64_t at, bool *in)
{
	while (*i < runs->n && runs->run[*i].end <= at)
		++*i;
	*in = *i < runs->n && runs->run[*i].start <= at;
	if (*i == runs->n)
		return UINT64_MAX;
	return *in ? runs->run[*i].end : runs->run[*i].start;
}

void runs_combine(struct runs *to, const struct runs *a, enum runs_op op,
		  const struct runs *b)
{
	struct runs res = { .bad = a->bad || b->bad };
	uint64_t at = 0, next, ea, eb;
	size_t ia = 0, ib = 0;
	bool in_a, in_b;

	for (; at != UINT64_MAX; at = next) {
		ea = edge(a, &ia, at, &in_a);
		eb = edge(b, &ib, at, &in_b);
		next = ea < eb ? ea : eb;
		if (op & 1 << (in_a + 2 * in_b))
			runs_add(&res, at, next);
	}
	free(to->run);
	*to = res;
}

uint64_t runs_bytes(const struct runs *runs)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < runs->n; i++)
		sum += runs->run[i].end - runs->run[i].start;
	return sum;
}
