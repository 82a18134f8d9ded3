// SPDX-License-Identifier: GPL-2.0
/*
 * A04 and A25 of the cases: threads that read the clocks without a pause, by
 * the vdso and by system calls. What one reads after another is never less.
 *
 *	clocks [THREADS]
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "lib.h"

#define READS 2000 /* a round */

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

/* The highest anybody has read of each. */
static uint64_t latest[CLOCKS];
static int ending;

static uint64_t raw_ns(clockid_t clock)
{
	struct timespec t;

	syscall(SYS_clock_gettime, clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void see(unsigned int i, uint64_t now)
{
	uint64_t before = __atomic_load_n(&latest[i], __ATOMIC_SEQ_CST);

	while (before < now &&
	       !__atomic_compare_exchange_n(&latest[i], &before, now, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* One reading after another, by both ways, in order. */
static void read_clock(unsigned int i, bool raw)
{
	uint64_t before = __atomic_load_n(&latest[i], __ATOMIC_SEQ_CST);
	uint64_t now = raw ? raw_ns(clocks[i]) : now_ns(clocks[i]);

	if (now < before)
		fail("clock %d by %s went back by %llu ns", clocks[i],
		     raw ? "system call" : "vdso",
		     (unsigned long long)(before - now));
	see(i, now);
}

/* The time of day is the node's: it may differ, but by no more than clocks do. */
static void read_day(void)
{
	uint64_t a = now_ns(CLOCK_REALTIME), b = raw_ns(CLOCK_REALTIME);
	struct timeval tv;

	gettimeofday(&tv, NULL);
	if (a > b + 60000000000ull || b > a + 60000000000ull)
		fail("the time of day jumps from %llu to %llu",
		     (unsigned long long)a, (unsigned long long)b);
	if (llabs(tv.tv_sec - (long long)(b / 1000000000)) > 60)
		fail("gettimeofday says %ld", (long)tv.tv_sec);
}

static void read_all(unsigned int number)
{
	unsigned int n, i;

	for (n = 0; n < READS; n++) {
		for (i = 0; i < CLOCKS; i++)
			read_clock(i, (number + n) & 1);
		if (n % 16 == 0)
			read_day();
	}
}

static void *reader(void *arg)
{
	while (!__atomic_load_n(&ending, __ATOMIC_RELAXED))
		read_all((uintptr_t)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	int first = lib_init("clocks", argc, argv);
	unsigned long threads = 4, i;
	pthread_t *thread;

	if (argc > first)
		threads = strtoul(argv[first], NULL, 0);
	thread = calloc(threads, sizeof(*thread));
	lib_ready();
	for (i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, reader, (void *)i);
	do {
		read_all(0);
	} while (lib_round());
	__atomic_store_n(&ending, 1, __ATOMIC_RELAXED);
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return lib_end();
}
