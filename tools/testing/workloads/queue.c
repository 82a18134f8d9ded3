// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that sleep in one futex are woken in the order in which they came.
 *
 *	queue [THREADS]
 *
 * At the first SIGUSR1 they go to sleep one after another, which is looked at in
 * /proc, so at home; at the next one they are woken one by one, wherever it is.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "lib.h"

static unsigned int threads = 32;
static unsigned int *place; /* who comes when */
static unsigned int *woken; /* who was woken when */
static unsigned int nr_woken;
static int gate, *turn;
static pid_t *tid;
static volatile sig_atomic_t asked;

static long futex(int *word, int op, int val, const struct timespec *until)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, until,
		       NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Every other one with a time, far away, by another of the kernel's ways. */
static long wait_at_gate(unsigned int me)
{
	struct timespec until;

	if (me & 1)
		return futex(&gate, FUTEX_WAIT, 0, NULL);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 86400;
	return futex(&gate, FUTEX_WAIT_BITSET, 0, &until);
}

static void *thread_main(void *arg)
{
	unsigned int me = (uintptr_t)arg;

	__atomic_store_n(&tid[me], gettid(), __ATOMIC_SEQ_CST);
	for (;;) {
		while (!__atomic_load_n(&turn[me], __ATOMIC_SEQ_CST))
			futex(&turn[me], FUTEX_WAIT, 0, NULL);
		turn[me] = 0;
		if (wait_at_gate(me))
			fail("thread %u: %s", me, strerror(errno));
		woken[nr_woken] = me; /* one at a time */
		__atomic_add_fetch(&nr_woken, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* Is the thread in a futex call whose word is the gate, and asleep? */
static bool at_gate(unsigned int me)
{
	char path[64], line[128] = "", want[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid[me]);
	snprintf(want, sizeof(want), "%d %p ", SYS_futex, (void *)&gate);
	fd = must(open(path, O_RDONLY | O_CLOEXEC));
	n = must(read(fd, line, sizeof(line) - 1));
	close(fd);
	return n > 0 && !strncmp(line, want, strlen(want));
}

static void shuffle(void)
{
	unsigned int i, j, other;

	for (i = threads - 1; i; i--) {
		j = mix(lib_rounds * 1000 + i) % (i + 1);
		other = place[i];
		place[i] = place[j];
		place[j] = other;
	}
}

static void line_up(void)
{
	unsigned int i;

	shuffle();
	nr_woken = 0;
	for (i = 0; i < threads; i++) {
		__atomic_store_n(&turn[place[i]], 1, __ATOMIC_SEQ_CST);
		futex(&turn[place[i]], FUTEX_WAKE, 1, NULL);
		while (!at_gate(place[i]))
			sleep_ms(1);
	}
}

static void wake_all(void)
{
	unsigned int i;

	for (i = 0; i < threads; i++) {
		if (!check_eq(futex(&gate, FUTEX_WAKE, 1, NULL), 1))
			return;
		wait_word((int *)&nr_woken, i + 1, "a thread that was woken");
		if (woken[i] != place[i])
			fail("%u came as number %u, woken was %u", place[i], i,
			     woken[i]);
	}
}

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

int main(int argc, char **argv)
{
	int first = lib_init("queue", argc, argv);
	bool lined_up = false;
	pthread_t thread;
	sigset_t set, old;
	unsigned int i;

	if (argc > first)
		threads = strtoul(argv[first], NULL, 0);
	place = calloc(threads, sizeof(*place));
	woken = calloc(threads, sizeof(*woken));
	turn = calloc(threads, sizeof(*turn));
	tid = calloc(threads, sizeof(*tid));
	signal(SIGUSR1, on_usr1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	for (i = 0; i < threads; i++) {
		place[i] = i;
		pthread_create(&thread, NULL, thread_main, (void *)(uintptr_t)i);
		while (!__atomic_load_n(&tid[i], __ATOMIC_SEQ_CST))
			sleep_ms(1);
	}
	lib_ready();
	while (!lib_stop) {
		sigsuspend(&old);
		if (!asked)
			continue;
		asked = 0;
		if (lined_up)
			wake_all();
		else
			line_up();
		lined_up = !lined_up;
		lib_rounds++;
		lib_progress(lib_rounds);
	}
	return lib_end();
}
