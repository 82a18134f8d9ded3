// SPDX-License-Identifier: GPL-2.0
/*
 * The program of "make demo": eight workers that calculate in the registers of
 * the FPU, meet at barriers and hand their results, through a queue with
 * condition variables, to a clerk, who writes them to a file; two timers tick.
 * How much it does, and what it prints, depends on its arguments only.
 *
 *	demo-app FILE [ROUNDS [WORK [STATUS]]]
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "fpu.h"
#include "lib.h"

#define WORKERS	   8
#define QUEUE	   4
#define PACE_MS	   80 /* the shortest time for a round */
#define TICK_MS	   50
#define SHOW_EVERY 10 /* rounds */
#define RECORD	   48 /* bytes of a record in the file */

struct result {
	unsigned int worker;
	unsigned long round;
	uint64_t sum;
};

static unsigned long rounds = 200, work = 20000;
static pthread_barrier_t start_line, finish_line;

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static struct result queue[QUEUE];
static unsigned int queued;

static uint64_t latest; /* the highest time anybody has read */
static volatile int timer_ticks, alarm_ticks;
static int file;

static void on_timer(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SI_TIMER || info->si_value.sival_int != 4711)
		fail("signal %d: code %d, value %d", sig, info->si_code,
		     info->si_value.sival_int);
	__atomic_add_fetch(&timer_ticks, 1, __ATOMIC_RELAXED);
}

static void on_alarm(int sig)
{
	(void)sig;
	__atomic_add_fetch(&alarm_ticks, 1, __ATOMIC_RELAXED);
}

/* Time never goes back, whichever thread looks. */
static void look_at_clock(void)
{
	uint64_t before = __atomic_load_n(&latest, __ATOMIC_SEQ_CST);
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (now < before)
		fail("the clock went back by %llu ns",
		     (unsigned long long)(before - now));
	while (before < now &&
	       !__atomic_compare_exchange_n(&latest, &before, now, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void *worker(void *arg)
{
	unsigned int me = (uintptr_t)arg;
	struct fpu_state state;
	unsigned long round;

	fpu_start(&state, me);
	for (round = 1; round <= rounds; round++) {
		pthread_barrier_wait(&start_line);
		fpu_work(&state, me, work);
		look_at_clock();
		pthread_mutex_lock(&queue_lock);
		while (queued == QUEUE)
			pthread_cond_wait(&not_full, &queue_lock);
		queue[queued++] = (struct result){ me, round, fpu_sum(&state) };
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&queue_lock);
		pthread_barrier_wait(&finish_line);
	}
	return NULL;
}

static struct result take(void)
{
	struct result result;

	pthread_mutex_lock(&queue_lock);
	while (!queued)
		pthread_cond_wait(&not_empty, &queue_lock);
	result = queue[--queued];
	pthread_cond_signal(&not_full);
	pthread_mutex_unlock(&queue_lock);
	return result;
}

static void record_text(char *text, unsigned long number, uint64_t sum)
{
	int len = snprintf(text, RECORD, "record %010lu sum %016llx", number,
			   (unsigned long long)sum);

	memset(text + len, '.', RECORD - 1 - len);
	text[RECORD - 1] = '\n';
}

/* All results of a round, sorted; returns one number for all of them. */
static uint64_t write_round(unsigned long round)
{
	char text[WORKERS][RECORD];
	struct result result;
	uint64_t sum[WORKERS], total = 0;
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		result = take();
		check_eq(result.round, round);
		sum[result.worker] = result.sum;
	}
	for (i = 0; i < WORKERS; i++) {
		record_text(text[i], (round - 1) * WORKERS + i, sum[i]);
		total = mix(total ^ sum[i]);
	}
	check_eq(write(file, text, sizeof(text)), sizeof(text));
	return total;
}

static void *clerk(void *arg)
{
	uint64_t total = 0, begin, took;
	unsigned long round;

	(void)arg;
	for (round = 1; round <= rounds; round++) {
		begin = now_ns(CLOCK_MONOTONIC);
		total = mix(total ^ write_round(round));
		if (round % SHOW_EVERY == 0)
			printf("round %lu: %016llx\n", round,
			       (unsigned long long)total);
		look_at_clock();
		lib_progress(round);
		took = (now_ns(CLOCK_MONOTONIC) - begin) / 1000000;
		if (took < PACE_MS)
			sleep_ms(PACE_MS - took);
		pthread_barrier_wait(&finish_line);
	}
	return NULL;
}

static timer_t start_timers(void)
{
	struct itimerspec every = {
		.it_interval = { .tv_nsec = TICK_MS * 1000000l },
		.it_value = { .tv_nsec = TICK_MS * 1000000l },
	};
	struct itimerval each = {
		.it_interval = { .tv_usec = 2 * TICK_MS * 1000 },
		.it_value = { .tv_usec = 2 * TICK_MS * 1000 },
	};
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGRTMIN,
				  .sigev_value.sival_int = 4711 };
	struct sigaction sa = { .sa_sigaction = on_timer,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	timer_t timer;

	must(sigaction(SIGRTMIN, &sa, NULL));
	sa.sa_handler = on_alarm;
	sa.sa_flags = SA_RESTART;
	must(sigaction(SIGALRM, &sa, NULL));
	must(timer_create(CLOCK_MONOTONIC, &event, &timer));
	must(timer_settime(timer, 0, &every, NULL));
	must(setitimer(ITIMER_REAL, &each, NULL));
	return timer;
}

/* Both still tick, wherever we are by now. */
static void check_timers(timer_t timer)
{
	struct itimerval off = { 0 };
	int t = timer_ticks, a = alarm_ticks, ms;

	for (ms = 0; ms < 60000 && (timer_ticks == t || alarm_ticks == a); ms++)
		sleep_ms(1);
	check(timer_ticks != t);
	check(alarm_ticks != a);
	must(setitimer(ITIMER_REAL, &off, NULL));
	must(timer_delete(timer));
}

/* Every record once, in its place. */
static uint64_t check_file(void)
{
	char text[RECORD], want[RECORD];
	unsigned long long sum, total = 0;
	unsigned long n;
	struct stat st;

	must(fstat(file, &st));
	check_eq(st.st_size, rounds * WORKERS * RECORD);
	for (n = 0; n < rounds * WORKERS; n++) {
		check_eq(pread(file, text, RECORD, n * RECORD), RECORD);
		check_eq(sscanf(text, "record %*10u sum %16llx", &sum), 1);
		record_text(want, n, sum);
		check(!memcmp(text, want, RECORD));
		total = mix(total ^ sum);
	}
	return total;
}

int main(int argc, char **argv)
{
	pthread_t thread[WORKERS + 1];
	int first = lib_init("demo-app", argc, argv), status = 0;
	timer_t timer;
	uintptr_t i;

	argc -= first;
	argv += first;
	if (argc < 1 || argc > 4)
		return 2;
	if (argc > 1)
		rounds = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		work = strtoul(argv[2], NULL, 0);
	if (argc > 3)
		status = atoi(argv[3]);
	file = open(argv[0], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0) {
		perror(argv[0]);
		return 2;
	}
	pthread_barrier_init(&start_line, NULL, WORKERS);
	pthread_barrier_init(&finish_line, NULL, WORKERS + 1);
	timer = start_timers();
	lib_ready();
	for (i = 0; i < WORKERS; i++)
		pthread_create(&thread[i], NULL, worker, (void *)i);
	pthread_create(&thread[i], NULL, clerk, NULL);
	for (i = 0; i <= WORKERS; i++)
		pthread_join(thread[i], NULL);
	check_timers(timer);
	printf("file: %lu records, %016llx\n", rounds * WORKERS,
	       (unsigned long long)check_file());
	return lib_end() ?: status;
}
