// SPDX-License-Identifier: GPL-2.0
/* What the test programs share, see lib.h. */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>

#include "lib.h"

#define FAILURES_SHOWN 20
#define PROGRESS_MS    20
#define PROGRESS_FD    900 /* out of the way of what the programs open */

volatile sig_atomic_t lib_stop;
unsigned long lib_rounds;
char *volatile nowhere = (char *)16;

static const char *name;
static unsigned long max_rounds;
static unsigned int failures;
/* What could not be printed at once: whoever cannot write has failed at that, too. */
static char late[FAILURES_SHOWN][200];
static int progress_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_term(int sig)
{
	(void)sig;
	lib_stop = 1;
}

int lib_init(const char *program, int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_term, .sa_flags = SA_RESTART };
	int opt, fd;

	name = program;
	while ((opt = getopt(argc, argv, "+n:p:")) != -1) {
		switch (opt) {
		case 'n':
			max_rounds = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			fd = open(optarg, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
			progress_fd = fcntl(fd, F_DUPFD_CLOEXEC, PROGRESS_FD);
			if (progress_fd < 0) {
				perror(optarg);
				exit(2);
			}
			close(fd);
			break;
		default:
			exit(2);
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTERM, &sa, NULL);
	return optind;
}

void lib_ready(void)
{
	puts("ready");
	lib_progress(0);
}

void lib_hold_term(int how)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	pthread_sigmask(how, &mask, NULL);
}

void lib_progress(unsigned long n)
{
	char text[32];
	int len;

	if (progress_fd < 0)
		return;
	len = snprintf(text, sizeof(text), "%-20lu\n", n);
	if (pwrite(progress_fd, text, len, 0) != len)
		fail("progress: %s", strerror(errno));
}

bool lib_round(void)
{
	static uint64_t last;
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	lib_rounds++;
	if (now - last >= PROGRESS_MS * 1000000ull) {
		lib_progress(lib_rounds);
		last = now;
	}
	return !lib_stop && lib_rounds != max_rounds;
}

int lib_end(void)
{
	int i;

	for (i = 0; i < FAILURES_SHOWN; i++)
		if (late[i][0])
			fputs(late[i], stdout);
	if (failures)
		printf("%s: %u failures\n", name, failures);
	else
		printf("%s: all as it should be\n", name);
	if (fflush(stdout))
		return 3;
	return failures ? 1 : 0;
}

void lib_fail(const char *file, int line, const char *fmt, ...)
{
	int error = errno;
	va_list args;
	char *text;
	int n, len;

	pthread_mutex_lock(&lock);
	if (++failures <= FAILURES_SHOWN) {
		text = late[failures - 1];
		n = snprintf(text, sizeof(late[0]), "FAIL %s:%d: ", file, line);
		va_start(args, fmt);
		len = vsnprintf(text + n, sizeof(late[0]) - n, fmt, args);
		va_end(args);
		n = n + len < 150 ? n + len : 150;
		snprintf(text + n, sizeof(late[0]) - n, " (round %lu)\n",
			 lib_rounds);
		if (fputs(text, stdout) == EOF || fflush(stdout)) {
			clearerr(stdout);
			snprintf(text + n, sizeof(late[0]) - n,
				 " (round %lu; not printed: %s; errno was %d)\n",
				 lib_rounds, strerror(errno), error);
		} else {
			text[0] = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	errno = error;
}

uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void sleep_ms(unsigned int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000l;
	if (t.tv_nsec >= 1000000000l) {
		t.tv_nsec -= 1000000000l;
		t.tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

bool wait_word(const volatile int *word, int value, const char *what)
{
	int ms;

	for (ms = 0; ms < 60000; ms++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
			return true;
		sleep_ms(1);
	}
	fail("%s: %d did not come, it is %d", what, value, *word);
	return false;
}
