// SPDX-License-Identifier: GPL-2.0
/*
 * Processes: created, killed, stopped, waited for, and turned into other programs. In
 * every round all of it.
 *
 *	children	all that one call is for
 *	children family	one child, created at SIGUSR1, that lives as long as its parent does
 *
 * "children inherits" is what one of its children becomes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "lib.h"

extern char **environ;

#define BURST 12
#define LARGE (100 << 10)

static volatile sig_atomic_t asked;

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

static char self[256];
static int memory[4096];

static void ended(pid_t pid, int want)
{
	int status = -1;

	if (pid < 0) {
		fail("no child: %s", strerror(errno));
		return;
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), want);
}

/* With a core or without. */
static void killed(pid_t pid, int want)
{
	int status = -1;

	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status & ~0x80, want);
}

/* What sh prints, without its newline; empty when there is nothing. */
static void shell(const char *command, char *to, size_t len)
{
	FILE *f = popen(command, "r");
	size_t n = f ? fread(to, 1, len - 1, f) : 0;

	to[n] = '\0';
	if (n && to[n - 1] == '\n')
		to[n - 1] = '\0';
	check(f && !pclose(f));
}

static void by_fork(void)
{
	pid_t parent = getpid(), pid;
	int i;

	for (i = 0; i < 4096; i++)
		memory[i] = i;
	pid = fork();
	if (!pid) {
		for (i = 0; i < 4096 && memory[i] == i; i++)
			memory[i] = -1;
		_exit(i == 4096 && getppid() == parent && getpid() != parent ?
			      11 :
			      12);
	}
	for (i = 0; i < 4096 && memory[i] == i; i++)
		;
	check_eq(i, 4096);
	ended(pid, 11);
}

static void by_vfork(void)
{
	static volatile int told;
	pid_t pid;

	told = 0;
	pid = vfork();
	if (!pid) {
		told = 5; /* it is the parent's memory */
		_exit(13);
	}
	check_eq(told, 5);
	ended(pid, 13);
	pid = vfork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 14", NULL);
		_exit(127);
	}
	ended(pid, 14);
}

static void grandchildren(void)
{
	pid_t pid = fork();

	if (!pid) {
		int status = 0;
		pid_t other = fork();

		if (!other)
			_exit(21);
		_exit(waitpid(other, &status, 0) == other &&
				      WEXITSTATUS(status) == 21 ?
			      22 :
			      23);
	}
	ended(pid, 22);
}

static void spawned(void)
{
	char *yes[] = { "true", NULL }, *no[] = { "false", NULL };
	posix_spawn_file_actions_t actions;
	char *cat[] = { "cat", NULL };
	char buf[8] = "";
	int in[2], out[2];
	pid_t pid;

	check_eq(posix_spawnp(&pid, "true", NULL, NULL, yes, environ), 0);
	ended(pid, 0);
	check_eq(posix_spawnp(&pid, "false", NULL, NULL, no, environ), 0);
	ended(pid, 1);
	check_eq(posix_spawn(&pid, "/no/such/program", NULL, NULL, yes, environ),
		 ENOENT);
	must(pipe2(in, O_CLOEXEC));
	must(pipe2(out, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	check_eq(posix_spawnp(&pid, "cat", &actions, NULL, cat, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	check_eq(write(in[1], "through", 7), 7);
	close(in[1]);
	check_eq(read(out[0], buf, 7), 7);
	check(!strcmp(buf, "through"));
	close(out[0]);
	ended(pid, 0);
}

static void shells(void)
{
	char buf[64];
	int status = system("exit 7");

	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 7);
	shell("echo $((6 * 7))", buf, sizeof(buf));
	check(!strcmp(buf, "42"));
}

/* What outlives execve() has been set up, see inherits(). */
static void becomes_another(void)
{
	sigset_t set;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGUSR2, SIG_IGN);
		signal(SIGWINCH, on_usr1);
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigaddset(&set, SIGRTMIN + 3);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGUSR1);
		sigqueue(getpid(), SIGRTMIN + 3,
			 (union sigval){ .sival_int = 1 });
		sigqueue(getpid(), SIGRTMIN + 3,
			 (union sigval){ .sival_int = 2 });
		execl(self, "children", "inherits", NULL);
		_exit(127);
	}
	ended(pid, 0);
}

static int inherits(void)
{
	struct sigaction sa;
	siginfo_t info;
	bool good = true;
	sigset_t set;
	int i;

	sigaction(SIGUSR2, NULL, &sa);
	good &= check(sa.sa_handler == SIG_IGN);
	sigaction(SIGWINCH, NULL, &sa);
	good &= check(sa.sa_handler == SIG_DFL);
	sigprocmask(SIG_BLOCK, NULL, &set);
	good &= check(sigismember(&set, SIGUSR1) &&
		      sigismember(&set, SIGRTMIN + 3));
	good &= check(!sigismember(&set, SIGTERM) && !sigismember(&set, SIGINT));
	sigpending(&set);
	good &= check(sigismember(&set, SIGUSR1) &&
		      sigismember(&set, SIGRTMIN + 3));
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	for (i = 1; i <= 2; i++) {
		good &= check_eq(sigwaitinfo(&set, &info), SIGRTMIN + 3);
		good &= check_eq(info.si_value.sival_int, i);
	}
	return good ? 0 : 1;
}

static void large_arguments(void)
{
	char *text = malloc(LARGE + 3), buf[32];
	int fd[2];
	pid_t pid;

	memset(text, 'x', LARGE + 2);
	memcpy(text, "X=", 2);
	text[LARGE + 2] = '\0';
	must(pipe(fd));
	pid = fork();
	if (!pid) {
		char *env[] = { text, NULL };

		dup2(fd[1], 1);
		execle("/bin/sh", "sh", "-c", "echo ${#X} ${#1}", "sh", text,
		       NULL, env);
		_exit(127);
	}
	close(fd[1]);
	memset(buf, 0, sizeof(buf));
	check(read(fd[0], buf, sizeof(buf) - 1) > 0);
	check(!strcmp(buf, "102400 102402\n"));
	close(fd[0]);
	free(text);
	ended(pid, 0);
}

static void errors(void)
{
	static char huge[256 << 10], longname[5000];
	char *none[] = { NULL }, *too_long[] = { "x", huge, NULL };
	char **bad = (char **)nowhere;
	char *volatile bad_string = nowhere;
	char *with_bad[] = { "x", bad_string, NULL };

	memset(huge, 'y', sizeof(huge) - 1);
	memset(longname, 'z', sizeof(longname) - 1);
	must_fail(execve("/no/such/program", none, none), ENOENT);
	must_fail(execve("/etc/passwd", none, none), EACCES);
	must_fail(execve("/etc/passwd/x", none, none), ENOTDIR);
	must_fail(execve("", none, none), ENOENT);
	must_fail(execve(longname, none, none), ENAMETOOLONG);
	must_fail(execve("/bin/true", too_long, none), E2BIG);
	must_fail(execve("/bin/true", bad, none), EFAULT);
	must_fail(execve("/bin/true", with_bad, none), EFAULT);
	must_fail(execve("/bin/true", none, bad), EFAULT);
	must_fail(execve(bad_string, none, none), EFAULT);
	must_fail(syscall(SYS_execveat, 77, "x", none, none, 0), EBADF);
}

static void burst(void)
{
	siginfo_t info;
	pid_t pid[BURST];
	int i;

	for (i = 0; i < BURST; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(i);
	}
	for (i = BURST; i-- > 0;) {
		check_eq(waitid(P_PID, pid[i], &info, WEXITED), 0);
		check_eq(info.si_pid, pid[i]);
		check_eq(info.si_code, CLD_EXITED);
		check_eq(info.si_status, i);
	}
	must_fail(waitpid(-1, NULL, WNOHANG), ECHILD);
}

/* A signal finds the child wherever it is: created, calling execve(), another program. */
static void shot(void)
{
	pid_t pid;
	int i;

	for (i = 0; i < 4; i++) {
		pid = fork();
		if (!pid) {
			execl("/bin/sleep", "sleep", "1000", NULL);
			_exit(127);
		}
		sleep_ms(i * 2);
		must(kill(pid, i & 1 ? SIGKILL : SIGHUP));
		killed(pid, i & 1 ? SIGKILL : SIGHUP);
	}
	pid = fork();
	if (!pid) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		*nowhere = 1;
		_exit(1);
	}
	killed(pid, SIGSEGV);
}

static void stopped(void)
{
	int status = 0, fd[2];
	pid_t pid;
	char c;

	must(pipe(fd));
	pid = fork();
	if (!pid) {
		close(fd[1]);
		raise(SIGSTOP);
		/* so that who waits for its going on is not told of its end */
		_exit(read(fd[0], &c, 1) == 0 ? 31 : 32);
	}
	close(fd[0]);
	check_eq(waitpid(pid, &status, WUNTRACED), pid);
	check(WIFSTOPPED(status));
	check_eq(WSTOPSIG(status), SIGSTOP);
	must(kill(pid, SIGCONT));
	check_eq(waitpid(pid, &status, WCONTINUED), pid);
	check(WIFCONTINUED(status));
	close(fd[1]);
	ended(pid, 31);
}

static void *nothing(void *arg)
{
	return arg;
}

static void *forks(void *arg)
{
	pid_t pid = fork();
	pthread_t thread;
	void *got = NULL;

	if (!pid)
		_exit(!pthread_create(&thread, NULL, nothing, memory) &&
				      !pthread_join(thread, &got) &&
				      got == memory ?
			      41 :
			      42);
	ended(pid, 41);
	return arg;
}

static void from_thread(void)
{
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, forks, NULL), 0);
	check_eq(pthread_join(thread, NULL), 0);
}

/* The set is both processes'. */
static void with_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 9 };
	int set = must(epoll_create1(0)), fd[2];
	pid_t pid;
	char c;

	must(pipe(fd));
	must(epoll_ctl(set, EPOLL_CTL_ADD, fd[0], &event));
	check_eq(epoll_wait(set, &event, 1, 0), 0);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		_exit(write(fd[1], "!", 1) == 1 ? 51 : 52);
	}
	check_eq(epoll_wait(set, &event, 1, -1), 1);
	check_eq(event.data.u32, 9);
	check_eq(read(fd[0], &c, 1), 1);
	ended(pid, 51);
	check_eq(epoll_wait(set, &event, 1, 0), 0);
	close(set);
	close(fd[0]);
	close(fd[1]);
}

static void credentials(void)
{
	pid_t pid;

	if (getuid())
		return;
	pid = vfork();
	if (!pid) {
		if (!setresgid(1, 1, 1) && !setresuid(2, 2, 2))
			execl("/bin/sh", "sh", "-c",
			      "exit $(($(id -g) * 10 + $(id -u)))", NULL);
		_exit(127);
	}
	ended(pid, 12);
	check_eq(getuid(), 0);
}

static void groups(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		_exit(getpgrp() == getpid() ? 61 : 62);
	}
	setpgid(pid, pid);
	check_eq(waitpid(-pid, &status, 0), pid);
	check_eq(WEXITSTATUS(status), 61);
}

static void cpu_time(void)
{
	struct rusage usage;
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < 30000000)
			;
		_exit(0);
	}
	check_eq(wait4(pid, &status, 0, &usage), pid);
	check_eq(status, 0);
	check(usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec +
		      usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec >=
	      20000);
}

static volatile sig_atomic_t ticks;

static void on_alarm(int sig)
{
	(void)sig;
	ticks++;
}

/* Signals come all the time, and nobody is born twice for it. */
static void under_a_timer(void)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { 0 };
	pid_t pid;
	int i;

	ticks = 0;
	sigaction(SIGALRM, &sa, NULL);
	must(setitimer(ITIMER_REAL, &often, NULL));
	for (i = 0; i < 4 || !ticks; i++) {
		pid = fork();
		if (!pid) {
			sigset_t now;

			sigprocmask(SIG_BLOCK, NULL, &now);
			_exit(sigismember(&now, SIGALRM) ? 72 : 71);
		}
		ended(pid, 71);
		must_fail(waitpid(-1, NULL, WNOHANG), ECHILD);
	}
	must(setitimer(ITIMER_REAL, &never, NULL));
	signal(SIGALRM, SIG_IGN);
}

static void all_of_it(void)
{
	by_fork();
	by_vfork();
	grandchildren();
	spawned();
	shells();
	becomes_another();
	large_arguments();
	errors();
	burst();
	shot();
	stopped();
	from_thread();
	with_epoll();
	credentials();
	groups();
	cpu_time();
	under_a_timer();
}

/* Answers numbers with others, which come out of its own memory. */
static void answers(int from, int to)
{
	uint64_t sum = 0, n;

	while (read(from, &n, sizeof(n)) == sizeof(n)) {
		sum = mix(sum + n);
		memory[n % 4096] += n;
		if (write(to, &sum, sizeof(sum)) != sizeof(sum))
			_exit(2);
	}
	_exit(17);
}

static int family(void)
{
	struct sigaction sa = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };
	uint64_t sum = 0, got = 0, n = 0;
	int there[2], back[2];
	pid_t pid = -1;

	must(pipe2(there, O_CLOEXEC));
	must(pipe2(back, O_CLOEXEC));
	sigaction(SIGUSR1, &sa, NULL);
	lib_ready();
	do {
		if (!asked) {
			sleep_ms(5);
			continue;
		}
		if (pid < 0) {
			pid = fork();
			if (!pid) {
				close(there[1]);
				close(back[0]);
				answers(there[0], back[1]);
			}
			close(there[0]);
			close(back[1]);
		}
		n++;
		sum = mix(sum + n);
		check_eq(write(there[1], &n, sizeof(n)), sizeof(n));
		check_eq(read(back[0], &got, sizeof(got)), sizeof(got));
		check_eq(got, sum);
	} while (lib_round());
	close(there[1]);
	ended(pid, 17);
	return lib_end();
}

int main(int argc, char **argv)
{
	int first = lib_init("children", argc, argv);
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	if (argc > first && !strcmp(argv[first], "inherits"))
		return inherits();
	if (argc > first && !strcmp(argv[first], "family"))
		return family();
	lib_ready();
	do {
		all_of_it();
	} while (lib_round());
	return lib_end();
}
