// SPDX-License-Identifier: GPL-2.0
/* Cases: locks that are held while the process moves, and what is the thread's. */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cases.h"

/* --------------------------------------------------------------- who owns it */

enum { ERRORCHECK, RECURSIVE, INHERIT, LOCKS };

struct lock {
	pthread_mutex_t mutex;
	pthread_t waiter;
	volatile int got;
};

static void set_up_lock(struct lock *l, int kind)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, kind == RECURSIVE ?
						 PTHREAD_MUTEX_RECURSIVE :
						 PTHREAD_MUTEX_ERRORCHECK);
	if (kind == INHERIT)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	check_eq(pthread_mutex_init(&l->mutex, &attr), 0);
}

static void *wait_for_lock(void *arg)
{
	struct lock *l = arg;

	check_eq(pthread_mutex_lock(&l->mutex), 0);
	__atomic_store_n(&l->got, 1, __ATOMIC_RELEASE);
	check_eq(pthread_mutex_unlock(&l->mutex), 0);
	return NULL;
}

/* Whoever holds it, under its old number, is still the owner. */
static void check_owned(struct lock *l, int kind)
{
	if (kind == RECURSIVE) {
		check_eq(pthread_mutex_lock(&l->mutex), 0);
		check_eq(pthread_mutex_unlock(&l->mutex), 0);
	} else {
		check_eq(pthread_mutex_lock(&l->mutex), EDEADLK);
	}
	check_eq(l->got, 0);
}

void A07_lock_before_unlock_after(void)
{
	static struct lock lock[LOCKS];
	bool more = true;
	int n, i;

	for (i = 0; i < LOCKS; i++)
		set_up_lock(&lock[i], i);
	for (n = 0; more; n++) {
		for (i = 0; i < LOCKS; i++) {
			lock[i].got = 0;
			check_eq(pthread_mutex_lock(&lock[i].mutex), 0);
			start_thread(&lock[i].waiter, wait_for_lock, &lock[i]);
		}
		sleep_ms(50);
		more = moved();
		if (more && n % 2)
			more = moved();
		for (i = 0; i < LOCKS; i++) {
			check_owned(&lock[i], i);
			check_eq(pthread_mutex_unlock(&lock[i].mutex), 0);
			wait_word(&lock[i].got, 1, "the waiter for a lock");
			check_eq(pthread_join(lock[i].waiter, NULL), 0);
			check_eq(pthread_mutex_unlock(&lock[i].mutex), EPERM);
		}
	}
}

/* ------------------------------------------------------------- robust locks */

static void set_up_robust(pthread_mutex_t *mutex, bool shared)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, shared ? PTHREAD_PROCESS_SHARED :
						     PTHREAD_PROCESS_PRIVATE);
	check_eq(pthread_mutex_init(mutex, &attr), 0);
}

struct holder {
	pthread_mutex_t mutex;
	pthread_t thread, waiter;
	volatile int holds, go_on, got;
	bool dies;
};

static void *hold_lock(void *arg)
{
	struct holder *h = arg;

	check_eq(pthread_mutex_lock(&h->mutex), 0);
	__atomic_store_n(&h->holds, 1, __ATOMIC_RELEASE);
	wait_told(&h->go_on, 1);
	if (!h->dies)
		check_eq(pthread_mutex_unlock(&h->mutex), 0);
	return NULL;
}

static void *wait_for_holder(void *arg)
{
	struct holder *h = arg;
	int ret = pthread_mutex_lock(&h->mutex);

	check_eq(ret, h->dies ? EOWNERDEAD : 0);
	if (ret == EOWNERDEAD)
		pthread_mutex_consistent(&h->mutex);
	__atomic_store_n(&h->got, 1, __ATOMIC_RELEASE);
	check_eq(pthread_mutex_unlock(&h->mutex), 0);
	return NULL;
}

static void start_holder(struct holder *h, bool dies)
{
	memset(h, 0, sizeof(*h));
	h->dies = dies;
	set_up_robust(&h->mutex, false);
	start_thread(&h->thread, hold_lock, h);
	wait_word(&h->holds, 1, "the holder of a lock");
	start_thread(&h->waiter, wait_for_holder, h);
}

static void end_holder(struct holder *h)
{
	check_eq(h->got, 0);
	__atomic_store_n(&h->go_on, 1, __ATOMIC_RELEASE);
	check_eq(pthread_join(h->thread, NULL), 0);
	wait_word(&h->got, 1, "the next holder of a lock");
	check_eq(pthread_join(h->waiter, NULL), 0);
}

/* One thread unlocks and one really ends with the lock, after the move. */
void A28_no_false_owner_death(void)
{
	struct holder unlocks, dies;
	bool more = true;
	int n;

	for (n = 0; more; n++) {
		start_holder(&unlocks, false);
		start_holder(&dies, true);
		sleep_ms(50);
		more = moved();
		if (more && n % 2)
			more = moved();
		end_holder(&unlocks);
		end_holder(&dies);
	}
}

struct common {
	pthread_mutex_t mutex;
	volatile int stop, turns;
};

static int take_turns(struct common *c)
{
	int ret;

	while (!c->stop) {
		ret = pthread_mutex_lock(&c->mutex);
		if (ret)
			return ret;
		c->turns++;
		pthread_mutex_unlock(&c->mutex);
		sleep_ms(1);
	}
	return 0;
}

/* The other process has ended; the memory that it shared is ours alone. */
void A28m_no_false_owner_death_moves(void)
{
	struct common *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int turns = 0;
	bool more;
	pid_t pid;

	if (!check(c != MAP_FAILED))
		return;
	set_up_robust(&c->mutex, true);
	pid = fork();
	if (!pid)
		_exit(take_turns(c));
	wait_count(&c->turns, 10, "the other's turns");
	c->stop = 1;
	check_exit(pid, 0);
	turns = c->turns;
	do {
		check_eq(pthread_mutex_lock(&c->mutex), 0);
		more = moved();
		check_eq(c->turns++, turns++);
		check_eq(pthread_mutex_unlock(&c->mutex), 0);
	} while (more);
}

/* The other process stays where it is; it must never think that we died. */
void A28s_no_false_owner_death_shared(void)
{
	struct common *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int turns;
	bool more;
	pid_t pid;

	if (!check(c != MAP_FAILED))
		return;
	set_up_robust(&c->mutex, true);
	pid = fork();
	if (!pid)
		_exit(take_turns(c));
	do {
		check_eq(pthread_mutex_lock(&c->mutex), 0);
		turns = c->turns;
		more = moved();
		check_eq(c->turns, turns);
		check_eq(pthread_mutex_unlock(&c->mutex), 0);
		wait_count(&c->turns, turns + 1, "the other's turn");
	} while (more);
	c->stop = 1;
	check_exit(pid, 0);
}

/* --------------------------------------------------------------------- rseq */

static unsigned int rseq_cpu(void)
{
	const struct rseq *area =
		(void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	return __atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED);
}

static void check_cpu(int cpu)
{
	cpu_set_t set;
	unsigned int now;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(sched_setaffinity(0, sizeof(set), &set));
	check_eq(rseq_cpu(), cpu);
	must(syscall(SYS_getcpu, &now, NULL, NULL));
	check_eq(now, cpu);
	check_eq(sched_getcpu(), cpu);
}

/* From the first CPU to the last and back. */
static void check_rseq(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), i, cpu;
	cpu_set_t all;

	CPU_ZERO(&all);
	for (i = 0; i < 2 * cpus; i++) {
		cpu = i < cpus ? i : 2 * cpus - 1 - i;
		CPU_SET(cpu, &all);
		check_cpu(cpu);
	}
	must(sched_setaffinity(0, sizeof(all), &all));
}

static void *check_rseq_now(void *arg)
{
	check_rseq();
	return arg;
}

static volatile int rseq_turn, rseq_done, rseq_end;

static void *check_rseq_each_turn(void *arg)
{
	int turn;

	for (turn = 1; !rseq_end; turn++) {
		wait_told(&rseq_turn, turn);
		check_rseq();
		__atomic_store_n(&rseq_done, turn, __ATOMIC_RELEASE);
	}
	return arg;
}

/* In the first thread, one that was there before, and one that was not. */
void A06_rseq_follows_cpu(void)
{
	pthread_t older, younger;
	bool more = true;
	int turn;

	check(__rseq_size > 0);
	check_rseq();
	start_thread(&older, check_rseq_each_turn, NULL);
	for (turn = 1; more; turn++) {
		more = moved();
		check_rseq();
		rseq_end = !more;
		__atomic_store_n(&rseq_turn, turn, __ATOMIC_RELEASE);
		wait_word(&rseq_done, turn, "the older thread");
		start_thread(&younger, check_rseq_now, NULL);
		check_eq(pthread_join(younger, NULL), 0);
	}
	check_eq(pthread_join(older, NULL), 0);
}

/* Goes round and round in a critical section until the kernel takes it out of it. */
static void spin_in_section(void)
{
	struct rseq *area =
		(void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	/* clang-format off */
	asm goto(".pushsection .data, \"aw\"\n"
		 ".balign 32\n"
		 "1:	.long 0, 0\n"
		 "	.quad 2f, 3f - 2f, 4f\n"
		 ".popsection\n"
		 "	leaq 1b(%%rip), %%rax\n"
		 "	movq %%rax, %c1(%0)\n"
		 "2:	jmp 2b\n"
		 "3:	.byte 0x0f, 0xb9, 0x3d\n" /* ud1 with what is no offset */
		 "	.long %c2\n"
		 "4:	jmp %l[aborted]\n"
		 :
		 : "r" (area), "i" (offsetof(struct rseq, rseq_cs)),
		   "i" (RSEQ_SIG)
		 : "rax", "memory"
		 : aborted);
	/* clang-format on */
	__builtin_unreachable();
aborted:
	return;
}

static volatile int rseq_aborted;

static void *spin_in_sections(void *arg)
{
	while (!rseq_end) {
		spin_in_section();
		rseq_aborted++;
	}
	return arg;
}

static void on_nothing(int sig)
{
	(void)sig;
}

/* A signal ends a section; one that the kernel has lost sight of never ends. */
static bool end_section(pthread_t thread)
{
	int before = rseq_aborted, tries;

	for (tries = 0; rseq_aborted == before && tries < 600; tries++) {
		check_eq(pthread_kill(thread, SIGUSR1), 0);
		sleep_ms(100);
	}
	return rseq_aborted != before;
}

/* A thread is moved out of the middle of a section: it is aborted, not finished. */
void A06s_rseq_section_aborted(void)
{
	struct sigaction action = { .sa_handler = on_nothing };
	pthread_t thread;
	bool more, alive;

	check(__rseq_size > 0);
	must(sigaction(SIGUSR1, &action, NULL));
	start_thread(&thread, spin_in_sections, NULL);
	do {
		more = moved();
		alive = end_section(thread);
		check(alive);
	} while (more && alive);
	rseq_end = 1;
	for (; alive && pthread_tryjoin_np(thread, NULL); sleep_ms(20))
		pthread_kill(thread, SIGUSR1);
}

/* ------------------------------------------------------------ scheduling class */

/* It is not refused, so it must be there and here. */
void A30_clean_refusals(void)
{
	struct sched_param param = { .sched_priority = 7 }, now;
	bool more;

	must(sched_setscheduler(0, SCHED_FIFO, &param));
	do {
		more = moved();
		check_eq(sched_getscheduler(0), SCHED_FIFO);
		must(sched_getparam(0, &now));
		check_eq(now.sched_priority, 7);
	} while (more);
}
