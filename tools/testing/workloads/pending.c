// SPDX-License-Identifier: GPL-2.0
/*
 * A15 of the cases: blocked signals are pending while the process moves. At each
 * SIGUSR1 it takes them, checks that they come as they must, and makes new ones.
 *
 *	pending
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib.h"

#define FIRST (SIGRTMIN + 3)
#define KINDS 3 /* signal numbers */
#define EACH  3 /* of each, for the process */

struct taken {
	int sig, code, value;
	pid_t pid;
};

static struct taken taken[64];
static volatile int nr_taken;
static volatile sig_atomic_t go_on;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct taken *t = &taken[nr_taken];

	(void)context;
	if (nr_taken == 64)
		abort();
	t->sig = sig;
	t->code = info->si_code;
	t->value = info->si_value.sival_int;
	t->pid = info->si_pid;
	nr_taken++;
}

static void on_usr1(int sig)
{
	(void)sig;
	go_on = 1;
}

static void queue_thread(int sig, int value)
{
	siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = value;
	must(syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), sig, &info));
}

/* By a timer that ends at once; one that the kernel made. */
static void queue_timer(int sig, int value)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = sig,
				  .sigev_value.sival_int = value };
	struct itimerspec soon = { .it_value = { .tv_nsec = 1 } };
	static timer_t timer;
	sigset_t set;

	if (timer)
		timer_delete(timer);
	must(timer_create(CLOCK_MONOTONIC, &event, &timer));
	must(timer_settime(timer, 0, &soon, NULL));
	do {
		sleep_ms(1);
		sigpending(&set);
	} while (!sigismember(&set, sig));
}

static void make_all(int round)
{
	int i, k;

	for (i = 0; i < EACH; i++)
		for (k = KINDS - 1; k >= 0; k--)
			must(sigqueue(getpid(), FIRST + k,
				      (union sigval){ .sival_int = round * 100 +
								   k * 10 + i }));
	queue_thread(FIRST + 1, round * 100 + 77);
	queue_timer(FIRST + KINDS, round);
}

static bool same(const struct taken *t, int sig, int code, int value)
{
	return t->sig == sig && t->code == code && t->value == value &&
	       (code != SI_QUEUE || t->pid == getpid());
}

/* What waits is taken lowest number first, each number in its order. */
static void take_all(int round)
{
	const struct taken *t = taken;
	sigset_t set;
	int i, k;

	check_eq(nr_taken, 0);
	sigemptyset(&set);
	for (k = 0; k <= KINDS; k++)
		sigaddset(&set, FIRST + k);
	nr_taken = 0;
	/*
	 * Handlers are entered last signal first, so each is taken by
	 * sigwaitinfo() instead, which is the order of the queue.
	 */
	for (i = 0; i < KINDS * EACH + 2; i++) {
		struct timespec none = { 0 };
		siginfo_t info;

		if (sigtimedwait(&set, &info, &none) < 0) {
			fail("only %d of %d are there: %s", i, KINDS * EACH + 2,
			     strerror(errno));
			return;
		}
		on_signal(info.si_signo, &info, NULL);
	}
	check(sigtimedwait(&set, NULL, &(struct timespec){ 0 }) == -1);
	/* what is for the thread goes before what is for all */
	check(same(t, FIRST + 1, SI_QUEUE, round * 100 + 77));
	t++;
	for (k = 0; k < KINDS; k++)
		for (i = 0; i < EACH; i++, t++)
			if (!same(t, FIRST + k, SI_QUEUE,
				  round * 100 + k * 10 + i))
				fail("signal %d code %d value %d pid %d",
				     t->sig, t->code, t->value, t->pid);
	check(same(t, FIRST + KINDS, SI_TIMER, round));
	nr_taken = 0;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO };
	sigset_t set, open_set;
	int k, round = 0;

	lib_init("pending", argc, argv);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (k = 0; k <= KINDS; k++)
		must(sigaction(FIRST + k, &sa, NULL));
	signal(SIGUSR1, on_usr1);
	sigfillset(&open_set);
	sigdelset(&open_set, SIGUSR1);
	sigdelset(&open_set, SIGTERM);
	make_all(round);
	lib_ready();
	while (!lib_stop) {
		sigsuspend(&open_set);
		if (!go_on)
			continue;
		go_on = 0;
		take_all(round++);
		make_all(round);
		lib_progress(round);
	}
	take_all(round);
	return lib_end();
}
