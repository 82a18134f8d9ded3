// SPDX-License-Identifier: GPL-2.0
/*
 * About a hundred threads that wait for each other in every way there is, at full speed.
 *
 *	torture
 *
 * A round has been done when every thread has gone on. What they count, and in which order
 * it comes, is checked all the time: a wake-up that is lost stops somebody for good, one
 * that is doubled or goes to the wrong thread shows in a sum.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "lib.h"

#define SILENT_S 120 /* then a thread is said to be lost */
#define MANY	 128

struct worker {
	pthread_t thread;
	const char *kind;
	unsigned int me; /* of its kind */
	void *group;
	unsigned long steps;
};

static struct worker worker[MANY];
static unsigned int workers;
static bool stop; /* everybody comes to an end */

static bool stopping(void)
{
	return __atomic_load_n(&stop, __ATOMIC_SEQ_CST);
}

static void step(struct worker *w)
{
	__atomic_add_fetch(&w->steps, 1, __ATOMIC_RELAXED);
}

static void add(const char *kind, void *(*run)(void *), unsigned int n,
		void *group)
{
	unsigned int i;

	if (!check(workers + n <= MANY))
		exit(lib_end());
	for (i = 0; i < n; i++) {
		struct worker *w = &worker[workers++];

		*w = (struct worker){ .kind = kind, .me = i, .group = group };
		check_eq(pthread_create(&w->thread, NULL, run, w), 0);
	}
}

static int load(int *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static long futex(int *word, int op, int val, unsigned long val2, int *other,
		  int val3)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, val2,
		       other, val3);
}

static void wait_while(int *word, int val)
{
	while (load(word) == val)
		futex(word, FUTEX_WAIT, val, 0, NULL, 0);
}

static void set_and_wake(int *word, int val)
{
	__atomic_store_n(word, val, __ATOMIC_SEQ_CST);
	futex(word, FUTEX_WAKE, 1, 0, NULL, 0);
}

/* ------------------------------------------------------------------ rings */

/*
 * Threads in a ring hand tokens to the next one. A token knows its number and how often it
 * was handed on; none may overtake another, and each comes again after one time round.
 */
#define RING   16
#define TOKENS 3
#define LAST   (-1) /* in place of a token's number: pass it on and end */

struct token {
	long number, hops;
};

struct channel {
	int full;	    /* futex: 1 with a token */
	struct token token; /* futex, eventfd: it */
	int taken, given;   /* eventfd: tells of a token, or of room for one */
	int pipe[2];
	int set; /* epoll, of the pipe */
	uint32_t mode;
};

struct ring {
	struct channel channel[RING]; /* what comes to each */
	void (*give)(struct channel *c, const struct token *token);
	void (*take)(struct channel *c, struct token *token);
};

static void futex_give(struct channel *c, const struct token *token)
{
	wait_while(&c->full, 1);
	c->token = *token;
	set_and_wake(&c->full, 1);
}

static void futex_take(struct channel *c, struct token *token)
{
	wait_while(&c->full, 0);
	*token = c->token;
	set_and_wake(&c->full, 0);
}

static void event_give(struct channel *c, const struct token *token)
{
	uint64_t one;

	check_eq(read(c->taken, &one, 8), 8);
	check_eq(one, 1);
	c->token = *token;
	check_eq(write(c->given, &one, 8), 8);
}

static void event_take(struct channel *c, struct token *token)
{
	uint64_t one;

	check_eq(read(c->given, &one, 8), 8);
	check_eq(one, 1);
	*token = c->token;
	check_eq(write(c->taken, &one, 8), 8);
}

static void pipe_give(struct channel *c, const struct token *token)
{
	check_eq(write(c->pipe[1], token, sizeof(*token)), sizeof(*token));
}

static void pipe_take(struct channel *c, struct token *token)
{
	check_eq(read(c->pipe[0], token, sizeof(*token)), sizeof(*token));
}

/* An edge says that there is something new, not how much; and it is armed again if need be. */
static void epoll_take(struct channel *c, struct token *token)
{
	struct epoll_event event = { .events = EPOLLIN | c->mode, .data.ptr = c };
	ssize_t n;

	while ((n = read(c->pipe[0], token, sizeof(*token))) < 0) {
		if (!check_eq(errno, EAGAIN))
			return;
		if (c->mode & EPOLLONESHOT)
			must(epoll_ctl(c->set, EPOLL_CTL_MOD, c->pipe[0], &event));
		if (check_eq(epoll_wait(c->set, &event, 1, SILENT_S * 1000), 1)) {
			check(event.data.ptr == c);
			event.events = EPOLLIN | c->mode;
		}
	}
	check_eq(n, sizeof(*token));
}

static void *ring_thread(void *arg)
{
	struct worker *w = arg;
	struct ring *ring = w->group;
	struct channel *from = &ring->channel[w->me];
	struct channel *to = &ring->channel[(w->me + 1) % RING];
	long hops[TOKENS], next = -1;
	bool over = false, told = false;
	struct token token;
	unsigned int i;

	for (i = 0; i < TOKENS; i++) {
		hops[i] = -1;
		token = (struct token){ i, 0 };
		if (!w->me)
			ring->give(to, &token);
	}
	for (;;) {
		ring->take(from, &token);
		if (token.number == LAST)
			break;
		if (next >= 0)
			check_eq(token.number, next);
		next = (token.number + 1) % TOKENS;
		if (hops[token.number] >= 0)
			check_eq(token.hops, hops[token.number] + RING);
		hops[token.number] = token.hops;
		step(w);
		over = !w->me && (over || stopping());
		if (over && !told) {
			/* instead of this one; the others come in before it is back */
			token.number = LAST;
			told = true;
			ring->give(to, &token);
		} else if (!over) {
			token.hops++;
			ring->give(to, &token);
		}
	}
	if (w->me)
		ring->give(to, &token);
	return NULL;
}

static void make_channel(struct channel *c, unsigned int i, bool nonblocking)
{
	static const uint32_t modes[] = { 0, EPOLLET, EPOLLONESHOT,
					  EPOLLEXCLUSIVE };
	struct epoll_event event = { .data.ptr = c };

	must(c->taken = eventfd(1, EFD_CLOEXEC | EFD_SEMAPHORE));
	must(c->given = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
	must(pipe2(c->pipe, O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0)));
	if (!nonblocking)
		return;
	c->mode = modes[i % 4];
	event.events = EPOLLIN | c->mode;
	must(c->set = epoll_create1(EPOLL_CLOEXEC));
	must(epoll_ctl(c->set, EPOLL_CTL_ADD, c->pipe[0], &event));
}

static struct ring rings[] = {
	{ .give = futex_give, .take = futex_take },
	{ .give = event_give, .take = event_take },
	{ .give = pipe_give, .take = pipe_take },
	{ .give = pipe_give, .take = epoll_take },
};

static void start_rings(void)
{
	static const char *const names[] = { "futex", "eventfd", "pipe", "epoll" };
	unsigned int i, k;

	for (k = 0; k < 4; k++) {
		for (i = 0; i < RING; i++)
			make_channel(&rings[k].channel[i], i, k == 3);
		add(names[k], ring_thread, RING, &rings[k]);
	}
}

/* --------------------------------------- condition variable: taking turns */

#define TURNS 6

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned long turn;
	bool over;
} turns = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false };

static void *cond_thread(void *arg)
{
	struct worker *w = arg;
	unsigned long mine = w->me;

	pthread_mutex_lock(&turns.lock);
	while (!turns.over) {
		if (turns.turn % TURNS != w->me) {
			pthread_cond_wait(&turns.cond, &turns.lock);
			continue;
		}
		check_eq(turns.turn, mine);
		mine += TURNS;
		turns.turn++;
		turns.over = stopping();
		step(w);
		pthread_cond_broadcast(&turns.cond);
	}
	pthread_mutex_unlock(&turns.lock);
	return NULL;
}

/* ---------------------------------------------------------------- barrier */

#define PARTIES 6

static struct {
	pthread_barrier_t barrier;
	unsigned long arrived;
	bool over;
} meeting;

static void *barrier_thread(void *arg)
{
	struct worker *w = arg;
	unsigned long phase = 0;

	do {
		__atomic_add_fetch(&meeting.arrived, 1, __ATOMIC_SEQ_CST);
		pthread_barrier_wait(&meeting.barrier);
		phase++;
		check_eq(__atomic_load_n(&meeting.arrived, __ATOMIC_SEQ_CST),
			 phase * PARTIES);
		step(w);
		if (!w->me)
			meeting.over = stopping();
		pthread_barrier_wait(&meeting.barrier);
	} while (!meeting.over);
	return NULL;
}

/* ----------------------------------------------------------------- rwlock */

#define WRITERS 2
#define READERS 4

static struct {
	pthread_rwlock_t lock;
	unsigned long a, b, written[WRITERS];
} record = { .lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP };

static void *rwlock_thread(void *arg)
{
	struct worker *w = arg;

	while (!stopping()) {
		if (w->me < WRITERS) {
			pthread_rwlock_wrlock(&record.lock);
			record.a++;
			sched_yield();
			record.b++;
			record.written[w->me]++;
		} else {
			pthread_rwlock_rdlock(&record.lock);
			check_eq(record.a, record.b);
			check_eq(record.a, record.written[0] + record.written[1]);
		}
		pthread_rwlock_unlock(&record.lock);
		step(w);
		sched_yield();
	}
	return NULL;
}

/* ------------------------------------------------------------- semaphores */

#define PRODUCERS 2
#define CONSUMERS 2
#define PLACES	  8

static struct {
	sem_t room, things;
	pthread_mutex_t lock;
	unsigned long place[PLACES], in, out, put, got;
} buffer = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void down(sem_t *sem)
{
	while (sem_wait(sem))
		check_eq(errno, EINTR);
}

static void put(unsigned long thing)
{
	down(&buffer.room);
	pthread_mutex_lock(&buffer.lock);
	buffer.place[buffer.in++ % PLACES] = thing;
	buffer.put += thing;
	pthread_mutex_unlock(&buffer.lock);
	sem_post(&buffer.things);
}

static unsigned long get(void)
{
	unsigned long thing;

	down(&buffer.things);
	pthread_mutex_lock(&buffer.lock);
	check(buffer.in - buffer.out <= PLACES);
	thing = buffer.place[buffer.out++ % PLACES];
	buffer.got += thing;
	pthread_mutex_unlock(&buffer.lock);
	sem_post(&buffer.room);
	return thing;
}

/* Each producer's last thing is a 0, for one consumer. */
static void *sem_thread(void *arg)
{
	struct worker *w = arg;
	unsigned long n = 0;

	if (w->me < PRODUCERS) {
		while (!stopping()) {
			put(++n);
			step(w);
		}
		put(0);
		return NULL;
	}
	while (get())
		step(w);
	return NULL;
}

/* ------------------------------------------ mutexes with owners: PI, robust */

static struct {
	pthread_mutex_t lock;
	unsigned long n, mine[4];
} pi;

static void *pi_thread(void *arg)
{
	struct worker *w = arg;

	while (!stopping()) {
		check_eq(pthread_mutex_lock(&pi.lock), 0);
		pi.n++;
		pi.mine[w->me]++;
		sched_yield();
		check_eq(pi.n, pi.mine[0] + pi.mine[1] + pi.mine[2] + pi.mine[3]);
		check_eq(pthread_mutex_unlock(&pi.lock), 0);
		step(w);
	}
	return NULL;
}

static struct {
	pthread_mutex_t lock;
	unsigned long deaths, seen;
} robust;

/* Dies with the lock. */
static void *robust_victim(void *arg)
{
	int ret = pthread_mutex_lock(&robust.lock);

	(void)arg;
	if (ret == EOWNERDEAD) {
		check_eq(pthread_mutex_consistent(&robust.lock), 0);
		robust.seen++;
	} else {
		check_eq(ret, 0);
	}
	robust.deaths++;
	return NULL;
}

static void *robust_thread(void *arg)
{
	struct worker *w = arg;
	pthread_t victim;
	int ret;

	while (!stopping()) {
		if (!w->me) {
			check_eq(pthread_create(&victim, NULL, robust_victim,
						NULL),
				 0);
			check_eq(pthread_join(victim, NULL), 0);
		}
		ret = pthread_mutex_lock(&robust.lock);
		if (ret == EOWNERDEAD) {
			check_eq(pthread_mutex_consistent(&robust.lock), 0);
			robust.seen++;
		} else {
			check_eq(ret, 0);
		}
		check_eq(robust.seen, robust.deaths);
		check_eq(pthread_mutex_unlock(&robust.lock), 0);
		step(w);
		sleep_ms(1);
	}
	return NULL;
}

static void owners_init(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	check_eq(pthread_mutex_init(&pi.lock, &attr), 0);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	check_eq(pthread_mutex_init(&robust.lock, &attr), 0);
}

/* ---------------------------------------------------------------- requeue */

#define WAITERS 4

static struct {
	int first, second; /* waiters are requeued from one to the other */
	int waiting, passed;
} queue;

static void *requeue_waiter(void *arg)
{
	struct worker *w = arg;
	int now;

	for (;;) {
		now = load(&queue.first);
		if (now == LAST)
			return NULL;
		__atomic_add_fetch(&queue.waiting, 1, __ATOMIC_SEQ_CST);
		while (load(&queue.first) == now)
			futex(&queue.first, FUTEX_WAIT, now, 0, NULL, 0);
		step(w);
		__atomic_add_fetch(&queue.passed, 1, __ATOMIC_SEQ_CST);
	}
}

/* All wait; the word changes; one is woken and the rest requeued, and woken one by one. */
static void *requeue_thread(void *arg)
{
	struct worker *w = arg;
	bool over = false;
	int now = 0;

	while (!over) {
		while (load(&queue.waiting) != WAITERS)
			sched_yield();
		queue.waiting = queue.passed = 0;
		over = stopping();
		now = over ? LAST : (now + 1) & INT_MAX;
		__atomic_store_n(&queue.first, now, __ATOMIC_SEQ_CST);
		must(futex(&queue.first, FUTEX_CMP_REQUEUE, 1, INT_MAX,
			   &queue.second, now));
		while (load(&queue.passed) != WAITERS) {
			futex(&queue.second, FUTEX_WAKE, 1, 0, NULL, 0);
			sched_yield();
		}
		step(w);
	}
	return NULL;
}

/* ------------------------------------------------------------------- main */

/* Until each of them has gone on. */
static void await_all(void)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + SILENT_S * 1000000000ull;
	static unsigned long before[MANY];
	unsigned int i;

	for (i = 0; i < workers; i++) {
		while (__atomic_load_n(&worker[i].steps, __ATOMIC_RELAXED) ==
		       before[i]) {
			if (now_ns(CLOCK_MONOTONIC) > end) {
				fail("%s %u is silent after %lu steps",
				     worker[i].kind, worker[i].me, before[i]);
				exit(lib_end());
			}
			sleep_ms(1);
		}
	}
	for (i = 0; i < workers; i++)
		before[i] = __atomic_load_n(&worker[i].steps, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	unsigned int i;

	lib_init("torture", argc, argv);
	lib_hold_term(SIG_BLOCK);
	pthread_barrier_init(&meeting.barrier, NULL, PARTIES);
	sem_init(&buffer.room, 0, PLACES);
	sem_init(&buffer.things, 0, 0);
	owners_init();
	start_rings();
	add("cond", cond_thread, TURNS, NULL);
	add("barrier", barrier_thread, PARTIES, NULL);
	add("rwlock", rwlock_thread, WRITERS + READERS, NULL);
	add("semaphore", sem_thread, PRODUCERS + CONSUMERS, NULL);
	add("PI mutex", pi_thread, 4, NULL);
	add("robust mutex", robust_thread, 3, NULL);
	add("waiter", requeue_waiter, WAITERS, NULL);
	add("requeue", requeue_thread, 1, NULL);
	lib_hold_term(SIG_UNBLOCK);
	lib_ready();
	do
		await_all();
	while (lib_round());
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < workers; i++)
		check_eq(pthread_join(worker[i].thread, NULL), 0);
	check_eq(buffer.put, buffer.got);
	check_eq(record.a, record.b);
	return lib_end();
}
