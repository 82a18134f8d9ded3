// SPDX-License-Identifier: GPL-2.0
/*
 * A process that ends when SIGUSR1 comes, in the way it is told.
 *
 *	ends HOW [NUMBER]
 *
 * exit N, group N (from another thread), main (the first thread ends first, the
 * last one with exit status 0), threads N (all others have ended before), kill N
 * (by a signal to itself), thread-kill N (to another thread of its own), abort,
 * segv, fpe, ill, bus, trap, pipe, core (has set what its core must show),
 * return N, _exit N, quick N, wait (does not end by itself).
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "lib.h"

#define THREADS 4

static const char *how;
static int number;
static pthread_t thread[THREADS], main_thread;
static int go, joined;

static void crash_bus(void)
{
	char name[] = "/tmp/ends.XXXXXX";
	int fd = mkstemp(name);
	char *p;

	unlink(name);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	exit(*p);
}

/*
 * "core-" and "mark" are put together here only, so what a core shows is what
 * was in memory when the process died.
 */
static void crash_core(void)
{
	static char mark[32];
	unsigned int i;

	for (i = 0; i < 9; i++)
		mark[i] = "dpsf.nbsl"[i] - 1;
	mark[4] = '-';
	snprintf(mark + 9, sizeof(mark) - 9, "%d", getpid() + number);
	abort();
}

static void crash(void)
{
	int p[2];

	if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "segv"))
		*nowhere = 1;
	else if (!strcmp(how, "fpe"))
		asm volatile("xorl %%ecx, %%ecx\n\tdivl %%ecx" ::
				     : "eax", "ecx", "edx", "cc");
	else if (!strcmp(how, "ill"))
		asm volatile("ud2");
	else if (!strcmp(how, "trap"))
		asm volatile("int3");
	else if (!strcmp(how, "bus"))
		crash_bus();
	else if (!strcmp(how, "core"))
		crash_core();
	if (!strcmp(how, "pipe")) {
		must(pipe(p));
		close(p[0]);
		must(write(p[1], "x", 1));
	}
}

/* What the second thread does; the first one waits for it. */
static void end_second(void)
{
	if (!strcmp(how, "group"))
		exit(number);
	if (!strcmp(how, "_exit"))
		_exit(number);
	if (!strcmp(how, "thread-kill"))
		pthread_kill(thread[2], number);
	crash();
}

static void *thread_main(void *arg)
{
	unsigned int me = (uintptr_t)arg;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		sleep_ms(20);
	if (!strcmp(how, "main")) {
		if (!me) {
			pthread_join(main_thread, NULL);
			__atomic_store_n(&joined, 1, __ATOMIC_RELEASE);
		}
		wait_word(&joined, 1, "the first thread's end");
		sleep_ms(100 * me);
		return NULL;
	}
	if (!strcmp(how, "threads")) {
		__atomic_add_fetch(&joined, 1, __ATOMIC_RELEASE);
		return (void *)(uintptr_t)(me + 100);
	}
	if (me == 1)
		end_second();
	/* those that are killed with the process */
	for (;;)
		pause();
}

static int end_first(void)
{
	void *result;
	uintptr_t i;

	if (!strcmp(how, "exit"))
		exit(number);
	if (!strcmp(how, "quick"))
		quick_exit(number);
	if (!strcmp(how, "return"))
		return number;
	if (!strcmp(how, "kill")) {
		kill(getpid(), number);
		sleep_ms(60000);
	}
	if (!strcmp(how, "main"))
		pthread_exit(NULL);
	if (!strcmp(how, "threads")) {
		wait_word(&joined, THREADS, "the threads' ends");
		for (i = 0; i < THREADS; i++) {
			pthread_join(thread[i], &result);
			check_eq((uintptr_t)result, i + 100);
		}
		return lib_end() ? 99 : number;
	}
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int first = lib_init("ends", argc, argv), sig;
	sigset_t set;
	uintptr_t i;

	if (argc <= first)
		return 2;
	how = argv[first];
	number = argc > first + 1 ? atoi(argv[first + 1]) : 0;
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	main_thread = pthread_self();
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, thread_main, (void *)i);
	lib_ready();
	sigwait(&set, &sig);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	return end_first();
}
