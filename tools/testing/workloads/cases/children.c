// SPDX-License-Identifier: GPL-2.0
/* Cases: children that are there while the process moves, or are made after. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cases.h"

#define PAGE 4096ul

/* ------------------------------------------------------------------- waiting */

/* The child has ended or was stopped; waiting for it is not yet over. */
static void check_waitable(pid_t pid, int options, int status)
{
	siginfo_t info = { 0 };

	must(waitid(P_PID, pid, &info, options | WNOWAIT));
	check_eq(info.si_pid, pid);
	check_eq(info.si_status, status);
}

void A16_zombie_status(void)
{
	bool more = true;
	pid_t pid;
	int n;

	for (n = 0; more; n++) {
		pid = fork();
		if (!pid)
			_exit(7);
		check_waitable(pid, WEXITED, 7);
		more = moved();
		if (more && n % 2) {
			check_waitable(pid, WEXITED, 7);
			more = moved();
		}
		check_exit(pid, 7);
		must_fail(waitpid(pid, NULL, 0), ECHILD);
		must_fail(waitpid(-1, NULL, WNOHANG), ECHILD);
	}
}

static char state_of(pid_t pid)
{
	char path[64], text[256] = "", *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = must(open(path, O_RDONLY | O_CLOEXEC));
	check(read(fd, text, sizeof(text) - 1) > 0);
	must(close(fd));
	p = strrchr(text, ')');
	return p ? p[2] : 0;
}

static pid_t start_stopped(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	/* in an orphaned process group it would not stop */
	must(setpgid(pid, pid));
	must(kill(pid, SIGTSTP));
	check_waitable(pid, WSTOPPED, SIGTSTP);
	return pid;
}

void A17_stopped_child(void)
{
	int n, status = 0;
	bool more = true;
	pid_t pid;

	for (n = 0; more; n++) {
		pid = start_stopped();
		more = moved();
		check_eq(state_of(pid), 'T');
		if (more && n % 2)
			more = moved();
		check_eq(state_of(pid), 'T');
		check_eq(waitpid(pid, &status, WUNTRACED), pid);
		check(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
		check_eq(waitpid(pid, &status, WUNTRACED | WNOHANG), 0);
		must(kill(pid, SIGCONT));
		check_eq(waitpid(pid, &status, WCONTINUED), pid);
		check(WIFCONTINUED(status));
		must(kill(pid, SIGKILL));
		check_eq(waitpid(pid, &status, 0), pid);
		check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

/* ------------------------------------------------------------------- forking */

static volatile char *area(int advice)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fail("mmap: %s", strerror(errno));
		exit(lib_end());
	}
	memset(p, 'x', 4 * PAGE);
	if (advice)
		must(madvise(p, 4 * PAGE, advice));
	return p;
}

static void look_as_child(volatile char *plain, volatile char *wiped,
			  volatile char *dropped)
{
	size_t at;

	for (at = 0; at < 4 * PAGE; at++)
		if (plain[at] != 'x')
			_exit(1);
	for (at = 0; at < 4 * PAGE; at++)
		if (wiped[at])
			_exit(2);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	signal(SIGSEGV, SIG_DFL);
	_exit(dropped[PAGE] ? 3 : 4);
}

/* Marked here or there, it is the fork afterwards that shows it. */
void A21_fork_advice(void)
{
	volatile char *plain, *wiped, *dropped;
	bool more = true;
	int n, status;
	pid_t pid;

	for (n = 0; more; n++) {
		if (n % 3 == 2)
			more = moved();
		plain = area(0);
		wiped = area(MADV_WIPEONFORK);
		dropped = area(MADV_DONTFORK);
		if (more)
			more = moved();
		if (more && n % 3 == 1)
			more = moved();
		pid = fork();
		if (!pid)
			look_as_child(plain, wiped, dropped);
		check_eq(waitpid(pid, &status, 0), pid);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
			fail("the child's status is %x", status);
		check(plain[5] == 'x' && wiped[5] == 'x' && dropped[5] == 'x');
		must(munmap((void *)plain, 4 * PAGE));
		must(munmap((void *)wiped, 4 * PAGE));
		must(munmap((void *)dropped, 4 * PAGE));
	}
}

/* ------------------------------------------------- a pool that outlives forks */

#define WORKERS 4
#define JOBS	64

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	pthread_t thread[WORKERS];
	int next, finished;
	long sum;
	bool stop;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .more = PTHREAD_COND_INITIALIZER,
	   .done = PTHREAD_COND_INITIALIZER,
	   .next = JOBS };

static void *work(void *arg)
{
	int job;

	pthread_mutex_lock(&pool.lock);
	for (;;) {
		while (pool.next == JOBS && !pool.stop)
			pthread_cond_wait(&pool.more, &pool.lock);
		if (pool.stop)
			break;
		job = pool.next++;
		pthread_mutex_unlock(&pool.lock);
		sched_yield();
		pthread_mutex_lock(&pool.lock);
		pool.sum += job;
		if (++pool.finished == JOBS)
			pthread_cond_signal(&pool.done);
	}
	pthread_mutex_unlock(&pool.lock);
	return arg;
}

static void start_pool(void)
{
	int i;

	for (i = 0; i < WORKERS; i++)
		start_thread(&pool.thread[i], work, NULL);
}

static void stop_pool(void)
{
	int i;

	pthread_mutex_lock(&pool.lock);
	pool.stop = true;
	pthread_cond_broadcast(&pool.more);
	pthread_mutex_unlock(&pool.lock);
	for (i = 0; i < WORKERS; i++)
		check_eq(pthread_join(pool.thread[i], NULL), 0);
}

/* The sum of the numbers of all jobs, or -1 when they were not done. */
static long run_pool(void)
{
	struct timespec limit;
	long sum = -1;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 60;
	pthread_mutex_lock(&pool.lock);
	pool.sum = pool.next = pool.finished = 0;
	pthread_cond_broadcast(&pool.more);
	while (pool.finished < JOBS &&
	       !pthread_cond_timedwait(&pool.done, &pool.lock, &limit))
		;
	if (pool.finished == JOBS)
		sum = pool.sum;
	pthread_mutex_unlock(&pool.lock);
	return sum;
}

static void before_fork(void)
{
	pthread_mutex_lock(&pool.lock);
}

static void parent_after_fork(void)
{
	pthread_mutex_unlock(&pool.lock);
}

/* The threads are gone, and what they waited for is of no use. */
static void child_after_fork(void)
{
	pthread_mutex_init(&pool.lock, NULL);
	pthread_cond_init(&pool.more, NULL);
	pthread_cond_init(&pool.done, NULL);
	start_pool();
}

void A33_fork_with_pool(void)
{
	const long sum = JOBS * (JOBS - 1) / 2;
	bool more;
	pid_t pid;

	pthread_atfork(before_fork, parent_after_fork, child_after_fork);
	start_pool();
	do {
		more = moved();
		check_eq(run_pool(), sum);
		pid = fork();
		if (!pid)
			_exit(run_pool() == sum ? 21 : 22);
		check_eq(run_pool(), sum);
		check_exit(pid, 21);
	} while (more);
	stop_pool();
}
