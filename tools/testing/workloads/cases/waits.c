// SPDX-License-Identifier: GPL-2.0
/* Cases: threads that wait while the process moves. */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cases.h"

#define SECOND 1000000000ull

/* Not 0: there is an end, or the number of the last round. */
static int ending;

static int last_round(void)
{
	return __atomic_load_n(&ending, __ATOMIC_ACQUIRE) ?: -1;
}

static bool is_ending(void)
{
	return last_round() >= 0;
}

static long futex(volatile int *word, int op, int value,
		  const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout,
		       NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Until *word is that value. */
static void futex_wait_for(volatile int *word, int value)
{
	int now;

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != value)
		futex(word, FUTEX_WAIT, now, NULL);
}

static void futex_set(volatile int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

/* ------------------------------------------------------------- fixed rate */

#define JOB_S  3
#define LATE_S 30 /* a job, beside the times in which nothing went on at all */

static volatile int jobs;

/* All times are counted from the first: those of later nodes do not matter. */
static void *run_jobs(void *arg)
{
	uint64_t start = now_ns(CLOCK_MONOTONIC), due, now;
	struct timespec t;
	int word = 0;

	while (!is_ending()) {
		due = start + (jobs + 1) * JOB_S * SECOND;
		t.tv_sec = due / SECOND;
		t.tv_nsec = due % SECOND;
		check_eq(futex(&word, FUTEX_WAIT_BITSET, 0, &t), -1);
		check_eq(errno, ETIMEDOUT);
		now = now_ns(CLOCK_MONOTONIC);
		if (now < due)
			fail("job %d runs %llu ms too early", jobs,
			     (unsigned long long)(due - now) / 1000000);
		if (now > due + LATE_S * SECOND + stood_still_ns)
			fail("job %d runs %llu s too late", jobs,
			     (unsigned long long)(now - due) / SECOND);
		__atomic_add_fetch(&jobs, 1, __ATOMIC_RELEASE);
	}
	return arg;
}

void A05_fixed_rate_scheduler(void)
{
	pthread_t thread;
	bool more;

	start_thread(&thread, run_jobs, NULL);
	do {
		more = moved();
		wait_count(&jobs, jobs + 1, "the next job");
	} while (more);
	ending = 1;
	check_eq(pthread_join(thread, NULL), 0);
}

/* ------------------------------------------------- EINTR, where Linux does */

enum { EPOLL, READ, ACCEPT, FUTEX, WAITPID, EINTR_WAITS };

static struct {
	int set, epoll_pipe[2], pipe[2], listener;
	struct sockaddr_un addr;
	socklen_t addr_len;
	volatile int word;
	pid_t child;
	volatile int done[EINTR_WAITS], interrupted[EINTR_WAITS];
} budget;

static const char *const budget_names[] = { "epoll_wait", "read", "accept",
					    "futex", "waitpid" };

static void wait_epoll(void)
{
	struct epoll_event event;
	char byte;

	while (epoll_wait(budget.set, &event, 1, -1) != 1) {
		check_eq(errno, EINTR);
		budget.interrupted[EPOLL]++;
	}
	check_eq(read(budget.epoll_pipe[0], &byte, 1), 1);
}

static void wait_accept(void)
{
	int fd = must(accept(budget.listener, NULL, NULL));

	close(fd);
}

static void wait_futex(int round)
{
	while (__atomic_load_n(&budget.word, __ATOMIC_ACQUIRE) == round)
		if (futex(&budget.word, FUTEX_WAIT, round, NULL))
			check_eq(errno, EAGAIN);
}

static void wait_child(void)
{
	int status = 0;

	check_eq(waitpid(budget.child, &status, WUNTRACED), budget.child);
	check(WIFSTOPPED(status));
}

static void *wait_again_and_again(void *arg)
{
	int kind = (uintptr_t)arg, round;
	char byte;

	for (round = 0; round != last_round(); round++) {
		switch (kind) {
		case EPOLL:
			wait_epoll();
			break;
		case READ:
			check_eq(read(budget.pipe[0], &byte, 1), 1);
			break;
		case ACCEPT:
			wait_accept();
			break;
		case FUTEX:
			wait_futex(round);
			break;
		case WAITPID:
			wait_child();
			break;
		}
		__atomic_add_fetch(&budget.done[kind], 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* What each of them waits for. */
static void end_waits(int round)
{
	int fd = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), i;

	check_eq(write(budget.epoll_pipe[1], "x", 1), 1);
	check_eq(write(budget.pipe[1], "x", 1), 1);
	must(connect(fd, (struct sockaddr *)&budget.addr, budget.addr_len));
	must(close(fd));
	futex_set(&budget.word, round);
	must(kill(budget.child, SIGSTOP));
	for (i = 0; i < EINTR_WAITS; i++) {
		wait_count(&budget.done[i], round, budget_names[i]);
		check_eq(budget.done[i], round);
	}
	must(kill(budget.child, SIGCONT));
}

static void set_up_budget(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	budget.child = fork();
	if (!budget.child)
		for (;;)
			pause();
	budget.set = must(epoll_create1(EPOLL_CLOEXEC));
	must(pipe2(budget.epoll_pipe, O_CLOEXEC));
	must(epoll_ctl(budget.set, EPOLL_CTL_ADD, budget.epoll_pipe[0], &event));
	must(pipe2(budget.pipe, O_CLOEXEC));
	budget.listener = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	/* a name that the kernel chooses */
	budget.addr.sun_family = AF_UNIX;
	must(bind(budget.listener, (struct sockaddr *)&budget.addr,
		  sizeof(sa_family_t)));
	budget.addr_len = sizeof(budget.addr);
	must(getsockname(budget.listener, (struct sockaddr *)&budget.addr,
			 &budget.addr_len));
	must(listen(budget.listener, 5));
}

void A14_eintr_budget(void)
{
	pthread_t thread[EINTR_WAITS];
	int moves = 0;
	uintptr_t i;
	bool more;

	set_up_budget();
	for (i = 0; i < EINTR_WAITS; i++)
		start_thread(&thread[i], wait_again_and_again, (void *)i);
	do {
		sleep_ms(50);
		more = moved();
		moves++;
		if (!more)
			__atomic_store_n(&ending, moves, __ATOMIC_RELEASE);
		end_waits(moves);
		if (budget.interrupted[EPOLL] > moves)
			fail("epoll_wait was interrupted %d times in %d moves",
			     budget.interrupted[EPOLL], moves);
	} while (more);
	for (i = 0; i < EINTR_WAITS; i++)
		check_eq(pthread_join(thread[i], NULL), 0);
	must(kill(budget.child, SIGKILL));
	must(waitpid(budget.child, NULL, 0));
}

/* ------------------------------------------------- a mask for one call only */

#define MASK_SIGNAL (SIGRTMIN + 4)

static struct {
	int set, pipe[2];
	volatile int calls, handled, command;
	volatile pid_t handler_tid;
} masked;

static void on_masked(int sig)
{
	(void)sig;
	masked.handler_tid = syscall(SYS_gettid);
	__atomic_add_fetch(&masked.handled, 1, __ATOMIC_RELEASE);
}

static int wait_masked(int kind, const sigset_t *mask)
{
	struct pollfd pfd = { .fd = masked.pipe[0], .events = POLLIN };
	struct timespec far = { .tv_sec = 3600 };
	struct epoll_event event;
	fd_set set;

	if (kind == 0)
		return ppoll(&pfd, 1, &far, mask);
	if (kind == 1)
		return epoll_pwait(masked.set, &event, 1, 3600 * 1000, mask);
	FD_ZERO(&set);
	FD_SET(masked.pipe[0], &set);
	return pselect(masked.pipe[0] + 1, &set, NULL, NULL, &far, mask);
}

/* The old mask is back, and holds. */
static void check_mask(int handled)
{
	sigset_t now, pending;

	check_eq(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
	check_eq(sigismember(&now, MASK_SIGNAL), 1);
	check_eq(sigismember(&now, MASK_SIGNAL + 1), 0);
	check_eq(masked.handled, handled);
	must(sigpending(&pending));
	check_eq(sigismember(&pending, MASK_SIGNAL), 0);
}

/*
 * Each wait is ended by a signal that it lets through; where EINTR is told
 * because of the move, it waits again.
 */
static void *masked_main(void *arg)
{
	int n, ret;
	sigset_t mask, open_mask;

	sigemptyset(&open_mask);
	mask = open_mask;
	sigaddset(&mask, MASK_SIGNAL);
	check_eq(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
	for (n = 0; n != last_round(); n++) {
		check_mask(n);
		do {
			ret = wait_masked(n % 3, &open_mask);
			check_eq(ret, -1);
			check_eq(errno, EINTR);
		} while (masked.handled == n);
		check_mask(n + 1);
		check_eq(masked.handler_tid, syscall(SYS_gettid));
		__atomic_add_fetch(&masked.calls, 1, __ATOMIC_RELEASE);
	}
	return arg;
}

void A31_ppoll_mask(void)
{
	struct sigaction sa = { .sa_handler = on_masked, .sa_flags = SA_RESTART };
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t thread;
	bool more;
	int n = 0;

	must(pipe2(masked.pipe, O_CLOEXEC));
	masked.set = must(epoll_create1(EPOLL_CLOEXEC));
	must(epoll_ctl(masked.set, EPOLL_CTL_ADD, masked.pipe[0], &event));
	must(sigaction(MASK_SIGNAL, &sa, NULL));
	start_thread(&thread, masked_main, NULL);
	do {
		sleep_ms(50);
		more = moved();
		check_eq(masked.calls, n++);
		if (!more)
			__atomic_store_n(&ending, n, __ATOMIC_RELEASE);
		check_eq(pthread_kill(thread, MASK_SIGNAL), 0);
		wait_count(&masked.calls, n, "the end of a wait with a mask");
	} while (more);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(masked.handled, n);
}

/* --------------------------------------------------------------------- join */

static volatile int join_go, joined;

static void *end_later(void *arg)
{
	futex_wait_for(&join_go, (uintptr_t)arg);
	return (char *)arg + 1000;
}

static void *join_main(void *arg)
{
	void *result = NULL;

	check_eq(pthread_join(*(pthread_t *)arg, &result), 0);
	__atomic_store_n(&joined, (uintptr_t)result, __ATOMIC_RELEASE);
	return NULL;
}

/* One of them ends where it was not created, or where it was again. */
void A32_join_across(void)
{
	pthread_t ends, joins;
	bool more = true;
	uintptr_t n;

	for (n = 1; more; n++) {
		start_thread(&ends, end_later, (void *)n);
		start_thread(&joins, join_main, &ends);
		sleep_ms(50);
		more = moved();
		if (more && n % 2 == 0)
			more = moved();
		check(joined < (int)n + 1000);
		futex_set(&join_go, n);
		wait_word(&joined, n + 1000, "the end of pthread_join()");
		check_eq(pthread_join(joins, NULL), 0);
	}
}

/* ----------------------------------------------- wakes that tell nothing else */

#define WAKE_PAIRS 2

/*
 * The word never changes, so a wait that is begun anew has lost its wake; and
 * the waker is told whether it has woken anybody.
 */
struct wake_pair {
	pthread_t waker, waiter;
	volatile int word, woken, returned;
	int stop;
};

static struct wake_pair pairs[WAKE_PAIRS];

static void *wake_waiter(void *arg)
{
	struct wake_pair *p = arg;

	for (;;) {
		if (futex(&p->word, FUTEX_WAIT, 0, NULL)) {
			fail("futex: %s", strerror(errno));
			continue;
		}
		if (p->stop)
			return NULL;
		__atomic_add_fetch(&p->returned, 1, __ATOMIC_RELEASE);
	}
}

static void wake_one(struct wake_pair *p)
{
	while (futex(&p->word, FUTEX_WAKE, 1, NULL) != 1)
		sched_yield();
}

static bool has_come(struct wake_pair *p)
{
	uint64_t limit = now_ns(CLOCK_MONOTONIC) + 60 * SECOND;

	while (__atomic_load_n(&p->returned, __ATOMIC_ACQUIRE) != p->woken) {
		if (now_ns(CLOCK_MONOTONIC) > limit) {
			fail("wake %d is lost", p->woken);
			return false;
		}
		sched_yield();
	}
	return true;
}

static void *wake_main(void *arg)
{
	struct wake_pair *p = arg;

	do {
		wake_one(p);
		p->woken++;
	} while (has_come(p) && !is_ending());
	p->stop = 1;
	wake_one(p);
	return NULL;
}

void A35_restart_keeps_wake(void)
{
	bool more;
	int i;

	for (i = 0; i < WAKE_PAIRS; i++) {
		start_thread(&pairs[i].waiter, wake_waiter, &pairs[i]);
		start_thread(&pairs[i].waker, wake_main, &pairs[i]);
	}
	do {
		more = moved();
		for (i = 0; i < WAKE_PAIRS; i++)
			wait_count(&pairs[i].returned, pairs[i].returned + 10,
				   "the next wakes");
	} while (more);
	__atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
	for (i = 0; i < WAKE_PAIRS; i++) {
		check_eq(pthread_join(pairs[i].waker, NULL), 0);
		check_eq(pthread_join(pairs[i].waiter, NULL), 0);
		check_eq(pairs[i].returned, pairs[i].woken);
	}
}
