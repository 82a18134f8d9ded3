// SPDX-License-Identifier: GPL-2.0
/*
 * A05, A13 and A14 of the cases: threads that wait, each in its own way, for a
 * time that is not to be shortened or lengthened by a move, and without EINTR.
 *
 *	waits [SECONDS]
 *
 * Each thread waits that long again and again. A wait that begins anew, or that
 * a move has lost, would take about twice as long and is a failure; on a busy
 * machine everything is late, so nothing less is.
 */
#include <linux/futex.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "lib.h"

static unsigned int seconds = 8;
static int pipe_end, epoll;

static struct timespec after(clockid_t clock, unsigned int s)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += s;
	return t;
}

static struct timespec span(void)
{
	return (struct timespec){ .tv_sec = seconds };
}

static int errno_of(long ret)
{
	return ret == -1 ? errno : 0;
}

/* Each returns 0 when its time was over, or what has gone wrong. */

static int w_nanosleep(void)
{
	struct timespec t = span();

	return errno_of(nanosleep(&t, NULL));
}

static int w_clock_relative(void)
{
	struct timespec t = span();

	return clock_nanosleep(CLOCK_BOOTTIME, 0, &t, NULL);
}

static int w_clock_absolute(void)
{
	struct timespec t = after(CLOCK_MONOTONIC, seconds);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int w_poll(void)
{
	struct pollfd pfd = { .fd = pipe_end, .events = POLLIN };

	return errno_of(poll(&pfd, 1, seconds * 1000));
}

static int w_ppoll(void)
{
	struct pollfd pfd = { .fd = pipe_end, .events = POLLIN };
	struct timespec t = span();
	sigset_t set;

	sigfillset(&set);
	return errno_of(ppoll(&pfd, 1, &t, &set));
}

static int w_select(void)
{
	struct timeval tv = { .tv_sec = seconds };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_end, &set);
	return errno_of(select(pipe_end + 1, &set, NULL, NULL, &tv));
}

static int w_pselect_nothing(void)
{
	struct timespec t = span();

	return errno_of(pselect(0, NULL, NULL, NULL, &t, NULL));
}

static int w_cond(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;
	pthread_condattr_t attr;
	struct timespec t;
	int ret;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cond, &attr);
	pthread_mutex_lock(&lock);
	t = after(CLOCK_MONOTONIC, seconds);
	do {
		ret = pthread_cond_timedwait(&cond, &lock, &t);
	} while (!ret);
	pthread_mutex_unlock(&lock);
	return ret == ETIMEDOUT ? 0 : ret;
}

static int w_sem(void)
{
	struct timespec t;
	sem_t sem;

	sem_init(&sem, 0, 0);
	t = after(CLOCK_MONOTONIC, seconds);
	if (!sem_clockwait(&sem, CLOCK_MONOTONIC, &t))
		return EPROTO;
	return errno == ETIMEDOUT ? 0 : errno;
}

static int w_futex_relative(void)
{
	struct timespec t = span();
	int word = 0;

	if (!syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0))
		return EPROTO;
	return errno == ETIMEDOUT ? 0 : errno;
}

static int w_futex_bitset(void)
{
	struct timespec t = after(CLOCK_MONOTONIC, seconds);
	int word = 0;

	if (!syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, ~0))
		return EPROTO;
	return errno == ETIMEDOUT ? 0 : errno;
}

static int w_sigtimedwait(void)
{
	struct timespec t = span();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 9);
	if (sigtimedwait(&set, NULL, &t) != -1)
		return EPROTO;
	return errno == EAGAIN ? 0 : errno;
}

static int w_epoll(void)
{
	struct epoll_event event;

	return errno_of(epoll_wait(epoll, &event, 1, seconds * 1000));
}

static const struct {
	const char *name;
	int (*wait)(void);
} waits[] = {
	{ "nanosleep", w_nanosleep },
	{ "clock_nanosleep, relative", w_clock_relative },
	{ "clock_nanosleep, absolute", w_clock_absolute },
	{ "poll", w_poll },
	{ "ppoll", w_ppoll },
	{ "select", w_select },
	{ "pselect of nothing", w_pselect_nothing },
	{ "pthread_cond_timedwait", w_cond },
	{ "sem_clockwait", w_sem },
	{ "futex, relative", w_futex_relative },
	{ "futex, absolute", w_futex_bitset },
	{ "sigtimedwait", w_sigtimedwait },
	{ "epoll_wait", w_epoll },
};

#define WAITS (sizeof(waits) / sizeof(waits[0]))

static void wait_once(unsigned int i)
{
	uint64_t before = now_ns(CLOCK_MONOTONIC), took, want;
	int error = waits[i].wait();

	took = now_ns(CLOCK_MONOTONIC) - before;
	want = seconds * 1000000000ull;
	if (error)
		fail("%s: %s", waits[i].name, strerror(error));
	else if (took + 1000000 < want)
		fail("%s: %llu ms too early", waits[i].name,
		     (unsigned long long)(want - took) / 1000000);
	else if (took > want * 7 / 4)
		fail("%s: %llu ms too late", waits[i].name,
		     (unsigned long long)(took - want) / 1000000);
}

/* A02: a timer that fires once is running down, again and again. */
static volatile sig_atomic_t alarms;
static uint64_t alarm_due;
static bool alarm_set;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void look_at_alarm(void)
{
	struct itimerval once = { .it_value.tv_sec = seconds }, left;
	uint64_t now;

	if (!alarm_set) {
		alarms = 0;
		alarm_set = true;
		alarm_due = now_ns(CLOCK_MONOTONIC) + seconds * 1000000000ull;
		must(setitimer(ITIMER_REAL, &once, NULL));
		return;
	}
	must(getitimer(ITIMER_REAL, &left));
	now = now_ns(CLOCK_MONOTONIC);
	check(!left.it_interval.tv_sec && !left.it_interval.tv_usec);
	check_eq(alarms > 1, 0);
	if (alarms && now + 1000000 < alarm_due)
		fail("SIGALRM %llu ms too early",
		     (unsigned long long)(alarm_due - now) / 1000000);
	if (!alarms && now > alarm_due + seconds * 750000000ull)
		fail("SIGALRM %llu ms too late",
		     (unsigned long long)(now - alarm_due) / 1000000);
	if (alarms || now > alarm_due + seconds * 750000000ull)
		alarm_set = false;
}

static void *waiter(void *arg)
{
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (!lib_stop)
		wait_once((uintptr_t)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	int first = lib_init("waits", argc, argv), p[2];
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t thread[WAITS];
	uintptr_t i;

	if (argc > first)
		seconds = strtoul(argv[first], NULL, 0);
	must(pipe2(p, O_CLOEXEC));
	pipe_end = p[0];
	epoll = must(epoll_create1(EPOLL_CLOEXEC));
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_end, &event));
	must(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm },
		       NULL));
	lib_ready();
	for (i = 0; i < WAITS; i++)
		pthread_create(&thread[i], NULL, waiter, (void *)i);
	do {
		sleep_ms(100);
		look_at_alarm();
	} while (lib_round());
	lib_stop = 1;
	for (i = 0; i < WAITS; i++)
		pthread_join(thread[i], NULL);
	return lib_end();
}
