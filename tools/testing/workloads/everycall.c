// SPDX-License-Identifier: GPL-2.0
/*
 * Every system call number with arguments that no program gives, each in a child of its
 * own: zeroes, ones, addresses that fault, the address of a page of 0xff. What must not
 * depend on where it is made is what the kernel says.
 *
 *	everycall FILE	at each SIGUSR1 writes "NUMBER: RESULT..." into FILE.1, FILE.2, ...
 *
 * A result is "ok" or an errno; a call that does not come back ends its child by SIGALRM.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib.h"

#define NUMBERS	   480 /* more than any kernel here has */
#define KINDS	   4
#define SAME_TIME  6
#define SLEEPS_S   60
#define RESULTS_FD 900 /* where none of the arguments is */
#define FAULTS	   16
#define PAGE_AT	   0x12345678000ul

static volatile sig_atomic_t asked;

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

/* What is no call to be tried so: it ends or doubles the child, or waits for ever. */
static bool is_left_out(int nr)
{
	switch (nr) {
	case SYS_rt_sigreturn:
	case SYS_pause:
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
	case SYS_exit:
	case SYS_exit_group:
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_ptrace: /* traced by who does not expect it */
	case SYS_seccomp:
	case SYS_msgget: /* would stay */
		return true;
	default:
		return false;
	}
}

static void try_call(int nr)
{
	/* the same number wherever it is: it is a flag or a length, too */
	char *page = mmap((void *)PAGE_AT, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			  0);
	const long arg[KINDS] = { 0, -1, FAULTS, (long)page };
	int kind, result;
	long a;

	for (kind = 0; kind < KINDS; kind++) {
		memset(page, 0xff, 4096);
		a = arg[kind];
		result = syscall(nr, a, a, a, a, a, a) == -1 ? errno : 0;
		if (write(RESULTS_FD, &result, sizeof(result)) != sizeof(result))
			break;
	}
}

struct trial {
	pid_t pid;
	int from;
};

static void begin(struct trial *trial, int nr)
{
	int fd[2];

	trial->pid = -1;
	if (is_left_out(nr))
		return;
	must(pipe2(fd, O_CLOEXEC));
	trial->from = fd[0];
	trial->pid = must(fork());
	if (trial->pid)
		close(fd[1]);
	if (!trial->pid) {
		dup2(fd[1], RESULTS_FD);
		alarm(SLEEPS_S);
		try_call(nr);
		_exit(0);
	}
}

static void finish(struct trial *trial, int nr, FILE *to)
{
	int result, status = 0;

	if (trial->pid <= 0)
		return;
	fprintf(to, "%d:", nr);
	while (read(trial->from, &result, sizeof(result)) == sizeof(result)) {
		if (result)
			fprintf(to, " %s", strerrorname_np(result) ?: "?");
		else
			fputs(" ok", to);
	}
	check_eq(waitpid(trial->pid, &status, 0), trial->pid);
	if (WIFSIGNALED(status))
		fprintf(to, " signal %d", WTERMSIG(status));
	fputc('\n', to);
	close(trial->from);
}

static void sweep(const char *file, int number)
{
	struct trial trial[NUMBERS];
	char name[256];
	FILE *to;
	int nr;

	snprintf(name, sizeof(name), "%s.%d", file, number);
	to = fopen(name, "w");
	if (!to) {
		fail("%s: %s", name, strerror(errno));
		return;
	}
	for (nr = 0; nr < NUMBERS + SAME_TIME; nr++) {
		if (nr < NUMBERS)
			begin(&trial[nr], nr);
		if (nr >= SAME_TIME)
			finish(&trial[nr - SAME_TIME], nr - SAME_TIME, to);
	}
	fclose(to);
}

int main(int argc, char **argv)
{
	int first = lib_init("everycall", argc, argv), sweeps = 0;
	const struct rlimit none = { 0, 0 };
	sigset_t set, old;

	if (argc - first != 1)
		return 2;
	setrlimit(RLIMIT_CORE, &none); /* some of them end their child */
	signal(SIGUSR1, on_usr1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	lib_ready();
	while (!lib_stop) {
		sigsuspend(&old);
		if (!asked)
			continue;
		asked = 0;
		sweep(argv[first], ++sweeps);
		lib_progress(sweeps);
	}
	return lib_end();
}
