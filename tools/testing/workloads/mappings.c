// SPDX-License-Identifier: GPL-2.0
/*
 * Private mappings of files, made and changed while it moves.
 *
 *	mappings DIR [bad|crowded|large]
 *
 * bad: calls that must fail. crowded: when it gets SIGUSR1 it takes all the mappings that a
 * node allows; if these are fewer than CROWD, calls fail that would not fail at home.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib.h"

#define PAGE  4096ul
#define PAGES 5
#define REST  100ul /* bytes on the file's last page */
#define LEN   (PAGES * PAGE + REST)
#define CROWD 2000

static int fd, large_fd;
static unsigned char *kept; /* a mapping that lasts, and what is written to it */
static unsigned char kept_value;
static sigjmp_buf jump;

static unsigned char at(unsigned long pos)
{
	return mix(pos) & 0xff;
}

static void make_file(const char *dir)
{
	unsigned char *buf = malloc(LEN);
	char path[256];
	unsigned long i;

	snprintf(path, sizeof(path), "%s/mapped", dir);
	fd = must(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	for (i = 0; i < LEN; i++)
		buf[i] = at(i);
	check_eq(write(fd, buf, LEN), LEN);
	free(buf);
}

static void *map(void *addr, unsigned long len, int prot, int flags, off_t off)
{
	void *p = mmap(addr, len, prot, MAP_PRIVATE | flags,
		       flags & MAP_ANONYMOUS ? -1 : fd, off);

	if (p == MAP_FAILED)
		fail("mmap of %lu bytes: %s", len, strerror(errno));
	return p;
}

static void same(const unsigned char *p, unsigned long from, unsigned long to,
		 unsigned long off)
{
	unsigned long i;

	for (i = from; i < to; i++) {
		if (p[i] != at(off + i)) {
			fail("byte %lu is %u, not %u", i, p[i], at(off + i));
			return;
		}
	}
}

static void on_fault(int sig)
{
	siglongjmp(jump, sig);
}

/* A store that must fail. */
static void must_not_write(unsigned char *p)
{
	if (!sigsetjmp(jump, 1)) {
		*(volatile unsigned char *)p = 1;
		fail("a page that is read-only was written to");
	}
}

/* Read, written to without a trace in the file, protected, unmapped in parts. */
static void parts(void)
{
	unsigned char *p = map(NULL, LEN, PROT_READ | PROT_WRITE, 0, 0), byte;

	same(p, 0, LEN, 0);
	check_eq(p[LEN], 0);
	memset(p + PAGE, 7, PAGE);
	check_eq(pread(fd, &byte, 1, PAGE), 1);
	check_eq(byte, at(PAGE));
	must(mprotect(p, 2 * PAGE, PROT_READ));
	must_not_write(p + PAGE);
	check_eq(p[PAGE + 9], 7);
	must(munmap(p, PAGE));
	same(p, 2 * PAGE, LEN, 0);
	must(munmap(p + PAGE, LEN - PAGE));
}

/* As the dynamic linker does it: one large mapping, and others over parts of it. */
static void over(void)
{
	unsigned char *p = map(NULL, 8 * PAGE, PROT_READ, 0, 0);

	same(p, 0, 3 * PAGE, 0);
	check(map(p + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED,
		  PAGE) == p + 2 * PAGE);
	same(p + 2 * PAGE, 0, 2 * PAGE, PAGE);
	p[3 * PAGE] = 11;
	check(map(p + 6 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE,
		  MAP_FIXED | MAP_ANONYMOUS, 0) == p + 6 * PAGE);
	check_eq(p[6 * PAGE + 5], 0);
	p[7 * PAGE] = 13;
	same(p, 0, 2 * PAGE, 0);
	check_eq(p[3 * PAGE], 11);
	check_eq(p[7 * PAGE], 13);
	must_fail((long)mmap(p, PAGE, PROT_READ,
			     MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0),
		  EEXIST);
	must(munmap(p, 8 * PAGE));
}

static void bad(void)
{
	must_fail((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 1), EINVAL);
	must_fail((long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	must_fail((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 999, 0), EBADF);
}

/* Splits what it maps until no mapping may be added. Return: whether that was so. */
static bool crowd(unsigned char *region)
{
	unsigned long i;

	for (i = 1; i < CROWD; i += 2)
		if (mprotect(region + i * PAGE, PAGE, PROT_READ))
			return check_eq(errno, ENOMEM);
	return false;
}

static unsigned int times_crowded;
static volatile sig_atomic_t asked;

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

/* One page in the middle: each time by another call. */
static void change_middle(unsigned char *page)
{
	switch (times_crowded++) {
	case 0:
		must(munmap(page, PAGE));
		break;
	case 1:
		map(page, PAGE, PROT_READ, MAP_ANONYMOUS | MAP_FIXED, 0);
		check_eq(*page, 0);
		break;
	default:
		map(page, PAGE, PROT_READ, MAP_FIXED, 4 * PAGE);
		same(page, 0, PAGE, 4 * PAGE);
	}
}

/*
 * A file's mapping, untouched, whose middle is changed when no mapping may be added: a
 * guest goes home for that, where there is room, and all the rest is as it was.
 */
static void crowded(void)
{
	unsigned char *file = map(NULL, LEN, PROT_READ | PROT_WRITE, 0, 0);
	unsigned char *region = map(NULL, CROWD * PAGE, PROT_READ | PROT_WRITE,
				    MAP_ANONYMOUS | MAP_NORESERVE, 0);

	if (check(crowd(region)))
		change_middle(file + 2 * PAGE);
	same(file, 0, 2 * PAGE, 0);
	same(file, 3 * PAGE, LEN, 0);
	must(munmap(region, CROWD * PAGE));
	must(munmap(file, LEN));
}

/* A hole with a word here and there. */
#define LARGE  (1ul << 28)
#define STRIDE (1ul << 24)

static void make_large(const char *dir)
{
	unsigned long pos;
	char path[256];

	snprintf(path, sizeof(path), "%s/large", dir);
	large_fd = must(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	must(ftruncate(large_fd, LARGE));
	for (pos = STRIDE / 2; pos < LARGE; pos += STRIDE)
		check_eq(pwrite(large_fd, &pos, sizeof(pos), pos), sizeof(pos));
}

static void large(void)
{
	unsigned char *p = mmap(NULL, LARGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE, large_fd, 0);
	unsigned long pos;

	if (p == MAP_FAILED) {
		fail("mmap of a large file: %s", strerror(errno));
		return;
	}
	for (pos = 0; pos < LARGE; pos += STRIDE) {
		check_eq(*(unsigned long *)(p + pos), 0);
		check_eq(*(unsigned long *)(p + pos + STRIDE / 2),
			 pos + STRIDE / 2);
		p[pos] = 1;
	}
	check_eq(pread(large_fd, &pos, sizeof(pos), 0), sizeof(pos));
	check_eq(pos, 0);
	must(munmap(p, LARGE));
}

static void library(void)
{
	void *lib = dlopen("libmvec.so.1", RTLD_NOW);

	if (!check(lib))
		return;
	check(dlsym(lib, "_ZGVbN2v_sin"));
	check_eq(dlclose(lib), 0);
}

/* Written to in every round, wherever that is. */
static void keep(void)
{
	unsigned long i;

	for (i = 0; i < PAGE; i++) {
		if (kept[2 * PAGE + i] != kept_value) {
			fail("what was written is %u, not %u",
			     kept[2 * PAGE + i], kept_value);
			break;
		}
	}
	same(kept, 0, 2 * PAGE, 0);
	same(kept, 3 * PAGE, LEN, 0);
	kept_value++;
	memset(kept + 2 * PAGE, kept_value, PAGE);
}

int main(int argc, char **argv)
{
	int first = lib_init("mappings", argc, argv);
	const char *mode = argc > first + 1 ? argv[first + 1] : "";

	if (argc <= first)
		return 2;
	make_file(argv[first]);
	if (!strcmp(mode, "large"))
		make_large(argv[first]);
	signal(SIGSEGV, on_fault);
	signal(SIGUSR1, on_usr1);
	kept = map(NULL, LEN, PROT_READ | PROT_WRITE, 0, 0);
	memset(kept + 2 * PAGE, 0, PAGE);
	lib_ready();
	do {
		parts();
		over();
		library();
		keep();
		if (lib_rounds == 0 || !strcmp(mode, "bad"))
			bad();
		if (!strcmp(mode, "large"))
			large();
		if (asked) {
			asked = 0;
			crowded();
		}
	} while (lib_round());
	if (!strcmp(mode, "crowded"))
		check_eq(times_crowded, 3);
	return lib_end();
}
