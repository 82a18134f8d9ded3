// SPDX-License-Identifier: GPL-2.0
/* Cases: timers that run while the process moves. */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "cases.h"

#define SECOND 1000000000ull
#define LOST_S 60 /* later than this is never */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

/* At least as late as it must be, and not lost. */
static void check_time(uint64_t now, uint64_t due, const char *what)
{
	if (now < due)
		fail("%s: %llu us too early", what,
		     (unsigned long long)(due - now) / 1000);
	else if (now > due + LOST_S * SECOND)
		fail("%s: %llu s too late", what,
		     (unsigned long long)(now - due) / SECOND);
}

/* ---------------------------------------------------------------- timerfd */

#define TICK_NS 5000000ull

static uint64_t read_ticks(int fd)
{
	uint64_t n = 0;

	check_eq(read(fd, &n, sizeof(n)), sizeof(n));
	return n;
}

/* Nobody reads while it moves: an expiry is pending then, and nothing is left. */
void A01_timerfd_pending_tick(void)
{
	struct itimerspec every = { .it_interval.tv_nsec = TICK_NS,
				    .it_value.tv_nsec = TICK_NS };
	int fd = must(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)), i;
	uint64_t start = now_ns(CLOCK_MONOTONIC), n = 0, passed, still;
	struct itimerspec now;
	bool more;

	must(timerfd_settime(fd, 0, &every, NULL));
	do {
		more = moved();
		still = stood_still_ns / TICK_NS;
		for (i = 0; i < 20; i++)
			n += read_ticks(fd);
		passed = (now_ns(CLOCK_MONOTONIC) - start) / TICK_NS;
		if (n > passed || n + still + 40 + passed / 10 < passed)
			fail("%llu ticks in the time of %llu, %llu of them still",
			     (unsigned long long)n, (unsigned long long)passed,
			     (unsigned long long)still);
		must(timerfd_gettime(fd, &now));
		check_eq(now.it_interval.tv_nsec, TICK_NS);
	} while (more);
	must(close(fd));
}

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME,
				    CLOCK_REALTIME };
#define CLOCKS 3

/* The time of day is the node's: by how much clocks of nodes may differ. */
static uint64_t slack(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? 5 * SECOND : 0;
}

/* The last nanosecond of a second, some seconds from now. */
static uint64_t last_nanosecond(clockid_t clock)
{
	return (now_ns(clock) / SECOND + 4) * SECOND - 1;
}

struct sleeper {
	pthread_t thread;
	uint64_t due, woke;
	int error;
};

static void *sleep_until(void *arg)
{
	struct sleeper *s = arg;
	struct timespec t = timespec_of(s->due);

	s->error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	s->woke = now_ns(CLOCK_MONOTONIC);
	return NULL;
}

/* Time that is left must be carried rightly, too. */
static void check_left(int fd, uint64_t due, clockid_t clock)
{
	struct itimerspec left;
	uint64_t before = now_ns(clock), after, ns;

	must(timerfd_gettime(fd, &left));
	after = now_ns(clock);
	check(left.it_value.tv_nsec < (long)SECOND && !left.it_interval.tv_sec);
	ns = left.it_value.tv_sec * SECOND + left.it_value.tv_nsec;
	if (ns && (before + ns > due + 2000000 + slack(clock) ||
		   after + ns + 2000000 + slack(clock) < due))
		fail("clock %d: %llu ns are left to %llu at %llu", clock,
		     (unsigned long long)ns, (unsigned long long)due,
		     (unsigned long long)before);
}

void A03_timerfd_absolute_nsec(void)
{
	struct itimerspec at = { 0 };
	uint64_t due[CLOCKS];
	int fd[CLOCKS], i;
	bool more;

	for (i = 0; i < CLOCKS; i++)
		fd[i] = must(timerfd_create(clocks[i], TFD_CLOEXEC));
	do {
		struct sleeper s = { .due = last_nanosecond(CLOCK_MONOTONIC) };

		/* a thread is created at home: before anything is running */
		start_thread(&s.thread, sleep_until, &s);
		for (i = 0; i < CLOCKS; i++) {
			due[i] = last_nanosecond(clocks[i]);
			at.it_value = timespec_of(due[i]);
			check_eq(at.it_value.tv_nsec, 999999999);
			must(timerfd_settime(fd[i], TFD_TIMER_ABSTIME, &at, NULL));
		}
		more = moved();
		for (i = 0; i < CLOCKS; i++)
			check_left(fd[i], due[i], clocks[i]);
		for (i = 0; i < CLOCKS; i++) {
			check_eq(read_ticks(fd[i]), 1);
			check_time(now_ns(clocks[i]) + slack(clocks[i]), due[i],
				   "timerfd");
		}
		check_eq(pthread_join(s.thread, NULL), 0);
		check_eq(s.error, 0);
		check_time(s.woke, s.due, "clock_nanosleep");
	} while (more);
	for (i = 0; i < CLOCKS; i++)
		must(close(fd[i]));
}

/* ---------------------------------------------------------- timers' signals */

#define ALARM_S 4

static volatile int alarms;
static volatile uint64_t alarm_at;

static void on_alarm(int sig)
{
	(void)sig;
	alarm_at = now_ns(CLOCK_MONOTONIC);
	alarms++;
}

static uint64_t alarm_left(void)
{
	struct itimerval left;

	must(getitimer(ITIMER_REAL, &left));
	check(!left.it_interval.tv_sec && !left.it_interval.tv_usec);
	return left.it_value.tv_sec * 1000000ull + left.it_value.tv_usec;
}

/*
 * The kernel tells of a timer that it is 1 us from expiring as long as the interrupt in
 * which it expires has not ended, though the signal may be here by then.
 */
static void check_no_alarm(void)
{
	int patience = 60000;

	while (alarm_left() == 1 && patience--)
		sleep_ms(1);
	check_eq(alarm_left(), 0);
}

void A02_oneshot_itimer(void)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval once = { .it_value.tv_sec = ALARM_S };
	uint64_t due, left, later;
	bool more;

	must(sigaction(SIGALRM, &sa, NULL));
	do {
		alarms = 0;
		due = now_ns(CLOCK_MONOTONIC) + ALARM_S * SECOND;
		if (lib_rounds & 2)
			check_eq(alarm(ALARM_S), 0);
		else
			must(setitimer(ITIMER_REAL, &once, NULL));
		left = alarm_left();
		check(left > 0 && left <= ALARM_S * 1000000);
		more = moved();
		later = alarm_left();
		if (later ? later >= left : !alarms)
			fail("%llu us are left of %llu, %d alarms",
			     (unsigned long long)later,
			     (unsigned long long)left, alarms);
		if (wait_count(&alarms, 1, "SIGALRM"))
			check_time(alarm_at, due, "SIGALRM");
		check_no_alarm();
		sleep_ms(300);
		check_eq(alarms, 1);
	} while (more);
}

static volatile int calls;

static void on_timer_thread(union sigval value)
{
	__atomic_store_n(&calls, value.sival_int, __ATOMIC_RELEASE);
}

/* glibc's helper thread is there from the first time on. */
void A08_sigev_thread_later(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = on_timer_thread };
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	bool more = true;
	timer_t timer;
	int n = 0;

	for (;;) {
		event.sigev_value.sival_int = ++n;
		must(timer_create(CLOCK_MONOTONIC, &event, &timer));
		must(timer_settime(timer, 0, &soon, NULL));
		wait_word(&calls, n, "the call of a timer's function");
		must(timer_delete(timer));
		if (!more)
			return;
		more = moved();
	}
}

#define LEADER_SIGNAL (SIGRTMIN + 7)
#define LEADER_VALUE  0x5eed1234abcdull
#define BYSTANDERS    3

static volatile int leader_ticks, ending;

static void on_leader(int sig, siginfo_t *info, void *context)
{
	(void)context;
	check_eq(sig, LEADER_SIGNAL);
	check_eq(syscall(SYS_gettid), getpid());
	check_eq(info->si_code, SI_TIMER);
	check_eq((uintptr_t)info->si_value.sival_ptr, LEADER_VALUE);
	__atomic_add_fetch(&leader_ticks, 1, __ATOMIC_RELEASE);
}

/* Any of these could take the signal, if it were the process's. */
static void *stand_by(void *arg)
{
	while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE))
		sleep_ms(20);
	return arg;
}

void A09_timer_to_leader(void)
{
	struct sigaction sa = { .sa_sigaction = on_leader,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = LEADER_SIGNAL,
				  .sigev_value.sival_ptr = (void *)LEADER_VALUE };
	struct itimerspec every = { .it_interval.tv_nsec = 20000000,
				    .it_value.tv_nsec = 20000000 };
	pthread_t thread[BYSTANDERS];
	timer_t timer;
	bool more;
	int i;

	must(sigaction(LEADER_SIGNAL, &sa, NULL));
	for (i = 0; i < BYSTANDERS; i++)
		start_thread(&thread[i], stand_by, NULL);
	event._sigev_un._tid = getpid();
	must(timer_create(CLOCK_MONOTONIC, &event, &timer));
	must(timer_settime(timer, 0, &every, NULL));
	do {
		more = moved();
		wait_count(&leader_ticks, leader_ticks + 5, "a timer's signals");
	} while (more);
	must(timer_delete(timer));
	ending = 1;
	for (i = 0; i < BYSTANDERS; i++)
		check_eq(pthread_join(thread[i], NULL), 0);
}

/* ------------------------------------------------------ clocks and sleeping */

static uint64_t raw_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

/* The same moment by both ways, between two readings of the other. */
static void check_both(void)
{
	uint64_t a = raw_ns(), b = now_ns(CLOCK_MONOTONIC), c = raw_ns();

	if (b < a || b > c)
		fail("the vdso says %llu, the system call %llu before and %llu after",
		     (unsigned long long)b, (unsigned long long)a,
		     (unsigned long long)c);
}

static void *read_both(void *arg)
{
	int i;

	while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < 1000; i++)
			check_both();
		sleep_ms(2);
	}
	return arg;
}

static volatile int sleeps;
static uint64_t slept_by_vdso, slept_by_call;

static void *count_sleeps(void *arg)
{
	uint64_t vdso = now_ns(CLOCK_MONOTONIC), call = raw_ns();
	struct timespec second = { .tv_sec = 1 };

	while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
		must(nanosleep(&second, NULL));
		slept_by_call = raw_ns() - call;
		slept_by_vdso = now_ns(CLOCK_MONOTONIC) - vdso;
		__atomic_add_fetch(&sleeps, 1, __ATOMIC_RELEASE);
	}
	return arg;
}

static void check_slept(uint64_t ns, const char *how)
{
	uint64_t least = sleeps * SECOND;

	if (ns < least || ns > least + stood_still_ns + least / 2 + 10 * SECOND)
		fail("%d sleeps of a second took %llu ms by %s", sleeps,
		     (unsigned long long)ns / 1000000, how);
}

/* Also of the same length by both ways: none of them is of another node. */
void A04_two_clock_paths(void)
{
	pthread_t reader, sleeper;
	bool more;

	start_thread(&reader, read_both, NULL);
	start_thread(&sleeper, count_sleeps, NULL);
	do {
		more = moved();
		wait_count(&sleeps, sleeps + 1, "the end of a second's sleep");
	} while (more);
	wait_count(&sleeps, 10, "ten sleeps");
	__atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
	check_eq(pthread_join(sleeper, NULL), 0);
	check_eq(pthread_join(reader, NULL), 0);
	check_slept(slept_by_vdso, "the vdso");
	check_slept(slept_by_call, "system calls");
}

/* -------------------------------------------- handlers that interrupt the vdso */

#define READERS	       4
#define READERS_SIGNAL (SIGRTMIN + 8)

static volatile int interrupted;

/* Long, so that a move finds most threads in it. */
static void on_reader(int sig)
{
	(void)sig;
	sleep_ms(30);
	__atomic_add_fetch(&interrupted, 1, __ATOMIC_RELEASE);
}

static void *read_and_be_interrupted(void *arg)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = READERS_SIGNAL };
	struct itimerspec every = { .it_interval.tv_nsec = 40000000,
				    .it_value.tv_nsec = 40000000 };
	uint64_t before = 0, now;
	timer_t timer;

	event._sigev_un._tid = syscall(SYS_gettid);
	must(timer_create(CLOCK_MONOTONIC, &event, &timer));
	must(timer_settime(timer, 0, &every, NULL));
	while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
		now = now_ns(CLOCK_MONOTONIC);
		if (now < before || (before && now > before + LOST_S * SECOND))
			fail("the clock goes from %llu to %llu",
			     (unsigned long long)before, (unsigned long long)now);
		before = now;
	}
	must(timer_delete(timer));
	return arg;
}

/* Where the vdso was interrupted stands in the frame of a handler. */
void A25_vdso_in_flight(void)
{
	struct sigaction sa = { .sa_handler = on_reader, .sa_flags = SA_RESTART };
	pthread_t thread[READERS];
	bool more;
	int i;

	must(sigaction(READERS_SIGNAL, &sa, NULL));
	for (i = 0; i < READERS; i++)
		start_thread(&thread[i], read_and_be_interrupted, NULL);
	do {
		more = moved();
		wait_count(&interrupted, interrupted + 2 * READERS,
			   "handlers of signals");
	} while (more);
	__atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
	for (i = 0; i < READERS; i++)
		check_eq(pthread_join(thread[i], NULL), 0);
}
