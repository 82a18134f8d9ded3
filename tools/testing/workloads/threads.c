// SPDX-License-Identifier: GPL-2.0
/*
 * Many threads, each of which waits in its own way; in every round each of them
 * is woken once and must come once.
 *
 *	threads [THREADS [create]]
 *
 * With "create" some of them create a thread in every round and join it.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/rseq.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "fpu.h"
#include "lib.h"

#define FAR_AWAY_S 36000 /* a time-out that must never be seen */
#define FPU_STEPS  200

enum kind {
	COND,
	COND_TIMED,
	SEMAPHORE,
	PIPE,
	POLL,
	SELECT,
	SIGWAIT,
	FUTEX,
	FUTEX_TIMED,
	SPIN,
	SLEEP,
	PI_MUTEX,
	JOIN,
	KINDS
};

struct thread {
	pthread_t pthread;
	enum kind kind;
	unsigned int number;
	pid_t tid;
	int go;	   /* the round to come to; also a futex */
	int joins; /* the round that the thread it creates waits for */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	sem_t sem;
	int pipe[2];
	struct fpu_state fpu;
	uint64_t fpu_sum;
};

static struct thread *thread;
static unsigned int nr_threads = 26, kinds = JOIN;
static int arrived; /* how many came in this round */
static int ending;
/* so that 256 of them are no 512 pipes */
static pthread_mutex_t pi_lock;
static __thread unsigned int my_number;

static long futex(int *word, int op, int value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, ~0);
}

static struct timespec far_away(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += FAR_AWAY_S;
	return t;
}

static int go(struct thread *t)
{
	return __atomic_load_n(&t->go, __ATOMIC_ACQUIRE);
}

static void wait_cond(struct thread *t, int round)
{
	struct timespec limit = far_away(CLOCK_REALTIME);

	pthread_mutex_lock(&t->lock);
	while (t->go != round) {
		if (t->kind == COND)
			pthread_cond_wait(&t->cond, &t->lock);
		else
			check_eq(pthread_cond_timedwait(&t->cond, &t->lock,
							&limit),
				 0);
	}
	pthread_mutex_unlock(&t->lock);
}

static void wait_pipe(struct thread *t, int round)
{
	struct pollfd pfd = { .fd = t->pipe[0], .events = POLLIN };
	struct timeval tv = { .tv_sec = FAR_AWAY_S };
	fd_set set;
	int got;

	if (t->kind == POLL) {
		check_eq(poll(&pfd, 1, FAR_AWAY_S * 1000), 1);
		check_eq(pfd.revents, POLLIN);
	} else if (t->kind == SELECT) {
		FD_ZERO(&set);
		FD_SET(t->pipe[0], &set);
		check_eq(select(t->pipe[0] + 1, &set, NULL, NULL, &tv), 1);
		check(FD_ISSET(t->pipe[0], &set));
	}
	check_eq(read(t->pipe[0], &got, sizeof(got)), sizeof(got));
	check_eq(got, round);
}

static void wait_signal(int round)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	check_eq(sigwaitinfo(&set, &info), SIGRTMIN + 1);
	check_eq(info.si_value.sival_int, round);
	check_eq(info.si_code, SI_QUEUE);
	check_eq(info.si_pid, getpid());
}

static void wait_futex(struct thread *t, int round)
{
	struct timespec rel = { .tv_sec = FAR_AWAY_S };
	struct timespec abs = far_away(CLOCK_MONOTONIC);
	long ret;

	while (go(t) != round) {
		if (t->kind == FUTEX)
			ret = futex(&t->go, FUTEX_WAIT_PRIVATE, round - 1,
				    t->number & 1 ? &rel : NULL);
		else
			ret = futex(&t->go, FUTEX_WAIT_BITSET_PRIVATE,
				    round - 1, &abs);
		if (ret && errno != EAGAIN)
			fail("futex: %s", strerror(errno));
	}
}

/* Busy for half of the time, so that others are left some of it. */
static void spin(void)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + 2000000;

	while (now_ns(CLOCK_MONOTONIC) < end)
		sched_yield();
	sleep_ms(2);
}

/* Passes a lock that hands itself over to the highest waiter. */
static void wait_pi(struct thread *t, int round)
{
	while (go(t) != round) {
		check_eq(pthread_mutex_lock(&pi_lock), 0);
		sleep_ms(2);
		check_eq(pthread_mutex_unlock(&pi_lock), 0);
		sleep_ms(5);
	}
}

static void *sleeper(void *arg)
{
	struct thread *t = arg;
	int round = t->joins;

	while (go(t) != round)
		futex(&t->go, FUTEX_WAIT_PRIVATE, round - 1, NULL);
	return (void *)(uintptr_t)round;
}

/* A32: sits in pthread_join() while the other ends. */
static void wait_join(struct thread *t, int round)
{
	pthread_t other;
	void *result;

	t->joins = round;
	if (!check_eq(pthread_create(&other, NULL, sleeper, t), 0))
		return;
	check_eq(pthread_join(other, &result), 0);
	check_eq((uintptr_t)result, round);
}

static void wait_for_round(struct thread *t, int round)
{
	switch (t->kind) {
	case COND:
	case COND_TIMED:
		wait_cond(t, round);
		break;
	case SEMAPHORE:
		check_eq(sem_wait(&t->sem), 0);
		break;
	case PIPE:
	case POLL:
	case SELECT:
		wait_pipe(t, round);
		break;
	case SIGWAIT:
		wait_signal(round);
		break;
	case FUTEX:
	case FUTEX_TIMED:
		wait_futex(t, round);
		break;
	case SPIN:
		while (go(t) != round)
			spin();
		break;
	case SLEEP:
		while (go(t) != round)
			sleep_ms(20);
		break;
	case PI_MUTEX:
		wait_pi(t, round);
		break;
	case JOIN:
		if (t->go != round)
			wait_join(t, round);
		break;
	default:
		abort();
	}
	check_eq(go(t), round);
}

/* rseq's idea of the CPU is the kernel's: nothing else may be seen twice. */
static void check_cpu(void)
{
#ifdef RSEQ_SIG
	const struct rseq *area =
		(void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	unsigned int before, after, cpu;
	int tries;

	if (!__rseq_size)
		return;
	for (tries = 0; tries < 100; tries++) {
		before = __atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED);
		syscall(SYS_getcpu, &cpu, NULL, NULL);
		after = __atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED);
		if (cpu == before && cpu == after)
			return;
	}
	fail("rseq says CPU %u, the kernel %u", after, cpu);
#endif
}

/* What belongs to a thread is still its own. */
static void check_self(struct thread *t)
{
	struct fpu_state again;

	check_eq(my_number, t->number);
	check_eq(syscall(SYS_gettid), t->tid);
	check(pthread_equal(pthread_self(), t->pthread));
	fpu_start(&again, t->number);
	fpu_work(&again, t->number, FPU_STEPS);
	check_eq(fpu_sum(&again), t->fpu_sum);
	check_cpu();
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	int round;

	my_number = t->number;
	t->tid = syscall(SYS_gettid);
	fpu_start(&t->fpu, t->number);
	fpu_work(&t->fpu, t->number, FPU_STEPS);
	t->fpu_sum = fpu_sum(&t->fpu);
	for (round = 1;; round++) {
		wait_for_round(t, round);
		if (__atomic_load_n(&ending, __ATOMIC_ACQUIRE))
			return t;
		check_self(t);
		__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
	}
}

static void wake(struct thread *t, int round)
{
	union sigval value = { .sival_int = round };

	pthread_mutex_lock(&t->lock);
	__atomic_store_n(&t->go, round, __ATOMIC_RELEASE);
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->lock);
	switch (t->kind) {
	case SEMAPHORE:
		sem_post(&t->sem);
		break;
	case PIPE:
	case POLL:
	case SELECT:
		check_eq(write(t->pipe[1], &round, sizeof(round)), sizeof(round));
		break;
	case SIGWAIT:
		check_eq(pthread_sigqueue(t->pthread, SIGRTMIN + 1, value), 0);
		break;
	case FUTEX:
	case FUTEX_TIMED:
	case JOIN:
		futex(&t->go, FUTEX_WAKE_PRIVATE, 1, NULL);
		break;
	default:
		break;
	}
}

static void start(struct thread *t, unsigned int number)
{
	sigset_t all, old;

	t->number = number;
	t->kind = number % kinds;
	/* one that spins is enough */
	if (t->kind == SPIN && number >= kinds)
		t->kind = COND;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->cond, NULL);
	sem_init(&t->sem, 0, 0);
	if (t->kind == PIPE || t->kind == POLL || t->kind == SELECT)
		must(pipe(t->pipe));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&t->pthread, NULL, thread_main, t)) {
		fail("thread %u cannot be created", number);
		exit(lib_end());
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void play_round(int round)
{
	unsigned int i;

	__atomic_store_n(&arrived, 0, __ATOMIC_RELEASE);
	for (i = 0; i < nr_threads; i++)
		wake(&thread[i], round);
	if (ending)
		return;
	wait_word(&arrived, nr_threads, "all threads of a round");
	/* nobody may come twice */
	sleep_ms(10);
	check_eq(arrived, nr_threads);
}

int main(int argc, char **argv)
{
	int first = lib_init("threads", argc, argv), round = 0;
	pthread_mutexattr_t attr;
	unsigned int i;
	void *result;

	if (argc > first)
		nr_threads = strtoul(argv[first], NULL, 0);
	if (argc > first + 1)
		kinds = KINDS;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&pi_lock, &attr);
	thread = calloc(nr_threads, sizeof(*thread));
	for (i = 0; i < nr_threads; i++)
		start(&thread[i], i);
	lib_ready();
	do {
		play_round(++round);
	} while (lib_round());
	__atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
	play_round(++round);
	for (i = 0; i < nr_threads; i++) {
		check_eq(pthread_join(thread[i].pthread, &result), 0);
		check(result == &thread[i]);
	}
	return lib_end();
}
