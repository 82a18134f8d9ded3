// SPDX-License-Identifier: GPL-2.0
/* Cases: address spaces. */
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>

#include "cases.h"

#define PAGE	 4096ul
#define RESERVED (64ul << 30)
#define WINDOW	 (1ul << 30) /* of which the pages are counted */
#define PAGES	 8

static sigjmp_buf back;
static int fault_code;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	fault_code = info->si_code;
	siglongjmp(back, 1);
}

static int code_of_fault(volatile char *at)
{
	if (sigsetjmp(back, 1))
		return fault_code;
	(void)*at;
	return 0;
}

/* A reservation that came with pages of its own would not fit anywhere. */
static void check_empty(char *from, size_t len)
{
	static unsigned char there[WINDOW / PAGE];
	size_t i, n = 0;

	must(mincore(from, len, there));
	for (i = 0; i < len / PAGE; i++)
		n += there[i] & 1;
	check_eq(n, 0);
}

void A22_big_reservation(void)
{
	static const size_t used[3] = { 0, RESERVED / 2 + PAGE, RESERVED - PAGE };
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	char *p = mmap(NULL, RESERVED, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned long n = 0;
	bool more;
	int i;

	if (!check(p != MAP_FAILED))
		return;
	must(sigaction(SIGSEGV, &sa, NULL));
	for (i = 0; i < 3; i++) {
		must(mprotect(p + used[i], PAGE, PROT_READ | PROT_WRITE));
		*(uint64_t *)(p + used[i]) = mix(i);
	}
	do {
		more = moved();
		for (i = 0; i < 3; i++) {
			check_eq(*(uint64_t *)(p + used[i]), mix(i + 3 * n));
			*(uint64_t *)(p + used[i]) = mix(i + 3 * n + 3);
		}
		check_eq(code_of_fault(p + PAGE), SEGV_ACCERR);
		check_eq(code_of_fault(p + RESERVED / 4), SEGV_ACCERR);
		check_eq(code_of_fault(p + RESERVED - 2 * PAGE), SEGV_ACCERR);
		check_empty(p + RESERVED / 8, WINDOW);
		n++;
	} while (more);
}

/* ---------------------------------------------------- a file that has no name */

static char *map_file(int fd, int flags)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED) {
		fail("mmap: %s", strerror(errno));
		exit(lib_end());
	}
	return p;
}

static int make_file(void)
{
	const char *path = case_file("mapped");
	int fd = must(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	unsigned char page[PAGE];
	size_t i;

	for (i = 0; i < PAGES; i++) {
		memset(page, 'a' + i, PAGE);
		check_eq(write(fd, page, PAGE), PAGE);
	}
	must(unlink(path));
	return fd;
}

/* The first byte of every second page is written to, the others stay. */
static void check_private(char *p, int round)
{
	size_t i;

	for (i = 0; i < PAGES; i++) {
		check_eq(p[i * PAGE + 1], 'a' + i);
		check_eq(p[i * PAGE + PAGE - 1], 'a' + i);
		if (i % 2 == 0 || !round)
			check_eq(p[i * PAGE], 'a' + i);
		else
			check_eq(p[i * PAGE], (char)round);
		if (i % 2)
			p[i * PAGE] = round + 1;
	}
}

void A23_mapped_deleted_file(void)
{
	int fd = make_file(), round = 0;
	char *mine = map_file(fd, MAP_PRIVATE);
	char *other = map_file(fd, MAP_PRIVATE);
	bool more;
	size_t i;

	must(close(fd));
	check_private(mine, round++);
	do {
		more = moved();
		check_private(mine, round);
		for (i = 0; i < PAGES; i++)
			check_eq(other[i * PAGE], 'a' + i);
		round++;
	} while (more);
}

/* The shared window is the only one. */
void A23m_mapped_deleted_file_moves(void)
{
	int fd = make_file(), round = 0;
	char *mine = map_file(fd, MAP_PRIVATE),
	     *shared = map_file(fd, MAP_SHARED);
	bool more;
	size_t i;

	must(close(fd));
	check_private(mine, round++);
	do {
		shared[round % PAGES * PAGE + 9] = round;
		more = moved();
		check_private(mine, round);
		check_eq(shared[round % PAGES * PAGE + 9], (char)round);
		for (i = 0; i < PAGES; i++)
			check_eq(shared[i * PAGE], 'a' + i);
		round++;
	} while (more);
}

/* There are two, and both are the same memory. */
void A23s_mapped_deleted_file_shared(void)
{
	int fd = make_file(), round = 0;
	char *one = map_file(fd, MAP_SHARED), *two = map_file(fd, MAP_SHARED);
	char *mine = map_file(fd, MAP_PRIVATE);
	bool more;

	must(close(fd));
	check_private(mine, round++);
	do {
		more = moved();
		check_private(mine, round);
		one[PAGE] = round;
		check_eq(two[PAGE], round);
		two[3 * PAGE + 5] = -round;
		check_eq(one[3 * PAGE + 5], -round);
		check_eq(mine[3 * PAGE + 5], 'd');
		check_eq(two[4 * PAGE], 'e');
		round++;
	} while (more);
}
