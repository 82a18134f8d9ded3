// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to have another program run.
 *
 *	spawn MIB N	has written to so much memory; at each SIGUSR1 microseconds of a
 *			posix_spawn() of true until it has ended, and of a fork() and
 *			execve(), the medians of N, in one number: spawn * 10^9 + fork
 */
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lib.h"

extern char **environ;

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

static pid_t run(bool spawns)
{
	char *argv[] = { "true", NULL };
	pid_t pid = -1;

	if (spawns) {
		check_eq(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ),
			 0);
		return pid;
	}
	pid = fork();
	if (!pid) {
		execve("/bin/true", argv, environ);
		_exit(127);
	}
	return pid;
}

static uint64_t median(bool spawns, unsigned long n)
{
	uint64_t *took = calloc(n, sizeof(*took)), begin, result;
	unsigned long i;
	int status;

	for (i = 0; i < n; i++) {
		begin = now_ns(CLOCK_MONOTONIC);
		check(waitpid(run(spawns), &status, 0) > 0);
		check_eq(status, 0);
		took[i] = (now_ns(CLOCK_MONOTONIC) - begin) / 1000;
	}
	qsort(took, n, sizeof(*took), compare);
	result = took[n / 2];
	free(took);
	return result;
}

int main(int argc, char **argv)
{
	int first = lib_init("spawn", argc, argv);
	unsigned long mib, n;
	sigset_t set, old;
	char *memory;

	if (argc - first != 2)
		return 2;
	mib = strtoul(argv[first], NULL, 0);
	n = strtoul(argv[first + 1], NULL, 0);
	memory = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	memset(memory, 1, mib << 20);
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
		memset(memory, 2, mib << 20);
		lib_progress(median(true, n) * 1000000000ull + median(false, n));
	}
	return lib_end();
}
