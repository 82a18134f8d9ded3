// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks that tell how much a process has worked: they go on where they
 * were, in each way to read them.
 *
 *	cputime
 *
 * At the end it prints to standard error the microseconds it thinks it used.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>

#include "fpu.h"
#include "lib.h"

#define THREADS 3

static pthread_barrier_t barrier;
static unsigned long last; /* round that the threads do not begin; set before it */
static volatile int prof_ticks, virt_ticks;

static void on_prof(int sig)
{
	if (sig == SIGPROF)
		prof_ticks++;
	else
		virt_ticks++;
}

static uint64_t tv_us(struct timeval tv)
{
	return tv.tv_sec * 1000000ull + tv.tv_usec;
}

static void work(void)
{
	struct fpu_state state;

	fpu_start(&state, 1);
	fpu_work(&state, 1, 3000);
}

/* One way to read; it must not be less than the last time. */
static void see(uint64_t now, uint64_t *last, const char *what)
{
	if (now < *last)
		fail("%s went back from %llu to %llu", what,
		     (unsigned long long)*last, (unsigned long long)now);
	*last = now;
}

struct seen {
	uint64_t thread, thread_rusage, faults, switches;
};

static void look_thread(struct seen *seen)
{
	struct rusage usage;

	see(now_ns(CLOCK_THREAD_CPUTIME_ID), &seen->thread, "a thread's clock");
	must(getrusage(RUSAGE_THREAD, &usage));
	see(tv_us(usage.ru_utime) + tv_us(usage.ru_stime), &seen->thread_rusage,
	    "a thread's rusage");
}

static void *thread_main(void *arg)
{
	struct seen seen = { 0 };
	uint64_t before;
	unsigned long passed = 0;

	(void)arg;
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (++passed == last)
			return NULL;
		before = seen.thread;
		work();
		look_thread(&seen);
		check(seen.thread > before);
	}
}

static uint64_t look_process(void)
{
	static uint64_t clock, user, all, user_ticks, child, child_ticks, faults;
	struct rusage usage;
	struct tms tms;

	see(now_ns(CLOCK_PROCESS_CPUTIME_ID), &clock, "the process's clock");
	must(getrusage(RUSAGE_SELF, &usage));
	see(tv_us(usage.ru_utime), &user, "rusage, user time");
	see(tv_us(usage.ru_utime) + tv_us(usage.ru_stime), &all, "rusage");
	see(usage.ru_minflt, &faults, "rusage, faults");
	must(getrusage(RUSAGE_CHILDREN, &usage));
	see(tv_us(usage.ru_utime) + tv_us(usage.ru_stime), &child,
	    "rusage of children");
	must(times(&tms));
	see(tms.tms_utime, &user_ticks, "times, user time");
	see(tms.tms_cutime + tms.tms_cstime, &child_ticks, "times of children");
	/* both count the same, one more coarsely */
	if (all > clock / 1000 + 1000000 || clock / 1000 > all + 1000000)
		fail("the clock says %llu us, rusage %llu us",
		     (unsigned long long)clock / 1000, (unsigned long long)all);
	return clock;
}

static void start_timers(void)
{
	struct itimerval each = { .it_interval.tv_usec = 50000,
				  .it_value.tv_usec = 50000 };

	signal(SIGPROF, on_prof);
	signal(SIGVTALRM, on_prof);
	must(setitimer(ITIMER_PROF, &each, NULL));
	must(setitimer(ITIMER_VIRTUAL, &each, NULL));
}

/* They tick when work is done, here too. */
static void check_timers(void)
{
	int prof = prof_ticks, virt = virt_ticks, n;

	for (n = 0; n < 20000 && (prof_ticks == prof || virt_ticks == virt); n++)
		work();
	check(prof_ticks != prof);
	check(virt_ticks != virt);
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uint64_t before = 0, now, after;
	int i, status;

	lib_init("cputime", argc, argv);
	/* so that there are children's times to keep */
	if (!fork()) {
		for (i = 0; i < 20; i++)
			work();
		_exit(0);
	}
	must(wait(&status));
	start_timers();
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, thread_main, NULL);
	lib_ready();
	do {
		pthread_barrier_wait(&barrier);
		work();
		now = look_process();
		check(now > before);
		before = now;
		if (lib_rounds % 16 == 0)
			check_timers();
	} while (lib_round());
	last = lib_rounds + 1;
	pthread_barrier_wait(&barrier);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	/* what ended threads have used is not lost */
	after = look_process();
	check(after >= before);
	fprintf(stderr, "%llu\n", (unsigned long long)after / 1000);
	return lib_end();
}
