// SPDX-License-Identifier: GPL-2.0
/*
 * What system calls cost.
 *
 *	calls getppid N [RUNS]		prints nanoseconds a call, the best of RUNS
 *	calls files FILE N		at each SIGUSR1: nanoseconds for a pread()
 *					and a pwrite() of one byte, the medians of
 *					N, in one number: read * 10^10 + write
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "lib.h"

static volatile sig_atomic_t asked;

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void getppid_loop(unsigned long n, unsigned long runs)
{
	uint64_t best = UINT64_MAX, begin, took;
	unsigned long i;

	while (runs--) {
		begin = now_ns(CLOCK_MONOTONIC);
		for (i = 0; i < n; i++)
			syscall(SYS_getppid);
		took = now_ns(CLOCK_MONOTONIC) - begin;
		if (took < best)
			best = took;
	}
	printf("%.1f\n", (double)best / n);
}

static uint64_t median(int fd, bool writes, unsigned long n)
{
	uint64_t *took = calloc(n, sizeof(*took)), begin, result;
	unsigned long i;
	char byte = 'x';

	for (i = 0; i < n; i++) {
		begin = now_ns(CLOCK_MONOTONIC);
		if (writes)
			check_eq(pwrite(fd, &byte, 1, 0), 1);
		else
			check_eq(pread(fd, &byte, 1, 0), 1);
		took[i] = now_ns(CLOCK_MONOTONIC) - begin;
	}
	qsort(took, n, sizeof(*took), compare);
	result = took[n / 2];
	free(took);
	return result;
}

static int files(const char *name, unsigned long n)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	sigset_t set, old;

	check_eq(pwrite(fd, "x", 1, 0), 1);
	signal(SIGUSR1, on_usr1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	lib_ready();
	while (!lib_stop) {
		sigsuspend(&old);
		if (!asked)
			continue;
		asked = 0;
		lib_progress(median(fd, false, n) * 10000000000ull +
			     median(fd, true, n));
	}
	return lib_end();
}

int main(int argc, char **argv)
{
	int first = lib_init("calls", argc, argv);

	argc -= first;
	argv += first;
	if (argc >= 2 && !strcmp(argv[0], "getppid"))
		getppid_loop(strtoul(argv[1], NULL, 0),
			     argc > 2 ? strtoul(argv[2], NULL, 0) : 5);
	else if (argc == 3 && !strcmp(argv[0], "files"))
		return files(argv[1], strtoul(argv[2], NULL, 0));
	else
		return 2;
	return 0;
}
