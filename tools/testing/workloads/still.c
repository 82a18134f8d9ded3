// SPDX-License-Identifier: GPL-2.0
/*
 * A process with a bit of everything, which then does nothing, so that two
 * pictures of it can be compared: see test-criu-witness.sh.
 *
 *	still DIR
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "lib.h"

#define PAGE 4096ul

static char alt_stack[64 << 10];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int wait_pipe[2];

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
}

static void *wait_somehow(void *arg)
{
	struct timespec day = { .tv_sec = 86400 };
	char byte;

	switch ((uintptr_t)arg) {
	case 0:
		pthread_mutex_lock(&lock);
		for (;;)
			pthread_cond_wait(&never, &lock);
	case 1:
		sem_wait(&sem);
		break;
	case 2:
		must(read(wait_pipe[0], &byte, 1));
		break;
	default:
		/* CRIU interrupts it */
		while (clock_nanosleep(CLOCK_MONOTONIC, 0, &day, &day) == EINTR)
			;
	}
	return NULL;
}

static void make_handlers(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal };
	stack_t alt = { .ss_sp = alt_stack, .ss_size = sizeof(alt_stack) };

	must(sigaltstack(&alt, NULL));
	sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaddset(&sa.sa_mask, SIGUSR2);
	must(sigaction(SIGUSR1, &sa, NULL));
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
	sigfillset(&sa.sa_mask);
	must(sigaction(SIGRTMIN + 5, &sa, NULL));
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

static void make_timers(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGRTMIN + 5,
				  .sigev_value.sival_int = 77 };
	struct itimerspec far = { .it_value.tv_sec = 50000,
				  .it_interval.tv_sec = 77 };
	struct itimerval alarm_far = { .it_value.tv_sec = 40000,
				       .it_interval.tv_sec = 88 };
	timer_t timer;

	must(timer_create(CLOCK_MONOTONIC, &event, &timer));
	must(timer_settime(timer, 0, &far, NULL));
	must(timer_create(CLOCK_REALTIME, &event, &timer));
	must(setitimer(ITIMER_REAL, &alarm_far, NULL));
	must(setitimer(ITIMER_PROF, &alarm_far, NULL));
}

static void make_files(const char *dir)
{
	struct flock range = { .l_type = F_WRLCK, .l_start = 7, .l_len = 9 };
	int fd, p[2];

	if (chdir(dir))
		exit(2);
	fd = must(open("regular", O_RDWR | O_CREAT | O_TRUNC, 0640));
	must(write(fd, "some text", 9));
	must(lseek(fd, 4, SEEK_SET));
	must(dup2(fd, 100));
	must(fcntl(fd, F_SETLK, &range));
	fd = must(open("append", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
	must(write(fd, "some text", 9));
	fd = must(open("gone", O_RDWR | O_CREAT, 0600));
	must(write(fd, "deleted", 7));
	must(unlink("gone"));
	must(open("/dev/zero", O_RDONLY));
	must(open(".", O_RDONLY | O_DIRECTORY));
	must(pipe2(p, O_NONBLOCK));
	must(write(p[1], "in the pipe", 11));
	must(pipe(wait_pipe));
}

static void make_memory(void)
{
	char *p = mmap(NULL, 20 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = must(open("/bin/sh", O_RDONLY | O_CLOEXEC));
	char *q = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
		       PAGE);

	memset(p, 'm', 20 * PAGE);
	must(mprotect(p + 4 * PAGE, PAGE, PROT_NONE));
	must(mprotect(p + 5 * PAGE, 2 * PAGE, PROT_READ));
	must(munmap(p + 8 * PAGE, PAGE));
	must(madvise(p + 9 * PAGE, 2 * PAGE, MADV_DONTFORK));
	must(madvise(p + 11 * PAGE, 2 * PAGE, MADV_WIPEONFORK));
	must(madvise(p + 13 * PAGE, 2 * PAGE, MADV_DONTDUMP));
	must(mlock(p + 15 * PAGE, PAGE));
	q[0] = 'w';
	must(close(fd));
	mmap(NULL, 1ul << 30, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must((long)sbrk(8 * PAGE) > 0 ? 0 : -1);
}

static void make_limits(void)
{
	struct rlimit limit;

	must(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 555;
	must(setrlimit(RLIMIT_NOFILE, &limit));
	umask(031);
	must(prctl(PR_SET_NAME, "still life"));
	must(prctl(PR_SET_CHILD_SUBREAPER, 1));
	must(prctl(PR_SET_TIMERSLACK, 61000));
	nice(3);
}

int main(int argc, char **argv)
{
	int first = lib_init("still", argc, argv);
	pthread_t thread[4];
	uintptr_t i;

	if (argc <= first)
		return 2;
	sem_init(&sem, 0, 0);
	make_files(argv[first]);
	make_handlers();
	make_timers();
	make_memory();
	make_limits();
	for (i = 0; i < 4; i++)
		must(pthread_create(&thread[i], NULL, wait_somehow, (void *)i) ?
			     -1 :
			     0);
	lib_ready();
	while (!lib_stop)
		pause();
	return lib_end();
}
