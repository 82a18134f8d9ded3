// SPDX-License-Identifier: GPL-2.0
/*
 * What wake-ups of an epoll set cost.
 *
 *	wakes N		a set of N descriptors
 *
 * At each SIGUSR1, in one number: w * 10^10 + e. w: nanoseconds from when another
 * process makes a descriptor ready until it has read the byte that this one writes when
 * its epoll_wait() returns, the median of PINGS; e: events that epoll_wait() has told in a
 * second of a storm of them. The other process stays where it was started.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "lib.h"

#define PINGS	 400
#define EVENTS	 64
#define STORM_NS 2000000000ull

static volatile sig_atomic_t asked;
static unsigned int n;
static int *fd, set, order[2], answer[2], result[2];

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

static uint64_t ping(void)
{
	uint64_t took[PINGS], begin;
	unsigned int i;
	char byte;

	for (i = 0; i < PINGS; i++) {
		begin = now_ns(CLOCK_MONOTONIC);
		eventfd_write(fd[i % n], 1);
		if (read(answer[0], &byte, 1) != 1)
			_exit(1);
		took[i] = now_ns(CLOCK_MONOTONIC) - begin;
	}
	qsort(took, PINGS, sizeof(took[0]), compare);
	return took[PINGS / 2];
}

static void storm(void)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + STORM_NS;
	unsigned int i = 0;

	while (now_ns(CLOCK_MONOTONIC) < end)
		eventfd_write(fd[i++ % n], 1);
}

/* Stays at home. */
static __attribute__((noreturn)) void other(void)
{
	uint64_t value;
	char what;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(order[0], &what, 1) == 1) {
		value = 0;
		if (what == 'p')
			value = ping();
		else
			storm();
		if (write(result[1], &value, sizeof(value)) != sizeof(value))
			_exit(1);
	}
	_exit(0);
}

/* Until the other has said what came out. Return: events that were told. */
static unsigned long take_events(bool answers, uint64_t *value)
{
	struct epoll_event event[EVENTS];
	unsigned long told = 0;
	int i, got;

	for (;;) {
		got = epoll_wait(set, event, EVENTS, -1);
		for (i = 0; i < got; i++) {
			if (event[i].data.u32 == n) {
				check_eq(read(result[0], value, sizeof(*value)),
					 sizeof(*value));
				return told;
			}
			told++;
			if (answers)
				check_eq(write(answer[1], "a", 1), 1);
		}
	}
}

static uint64_t measure(void)
{
	uint64_t value, ping_ns;
	unsigned long told;

	check_eq(write(order[1], "p", 1), 1);
	take_events(true, &ping_ns);
	check_eq(write(order[1], "s", 1), 1);
	told = take_events(false, &value);
	return ping_ns * 10000000000ull + told * 1000000000ull / STORM_NS;
}

static void add(int what, unsigned int cookie)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET,
				     .data.u32 = cookie };

	must(epoll_ctl(set, EPOLL_CTL_ADD, what, &event));
}

int main(int argc, char **argv)
{
	int first = lib_init("wakes", argc, argv);
	sigset_t mask, old;
	unsigned int i;

	if (argc <= first)
		return 2;
	n = strtoul(argv[first], NULL, 0);
	fd = calloc(n, sizeof(*fd));
	for (i = 0; i < n; i++)
		fd[i] = must(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	must(pipe2(order, O_CLOEXEC));
	must(pipe2(answer, O_CLOEXEC));
	must(pipe2(result, O_CLOEXEC));
	if (!fork())
		other();
	set = must(epoll_create1(EPOLL_CLOEXEC));
	for (i = 0; i < n; i++)
		add(fd[i], i);
	add(result[0], n);
	signal(SIGUSR1, on_usr1);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, &old);
	lib_ready();
	while (!lib_stop) {
		sigsuspend(&old);
		if (!asked)
			continue;
		asked = 0;
		lib_progress(measure());
	}
	return lib_end();
}
