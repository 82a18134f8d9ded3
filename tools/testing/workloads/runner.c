// SPDX-License-Identifier: GPL-2.0
/*
 * The parent of a test program: starts it in a session of its own, in the
 * background, and writes down what wait() tells.
 *
 *	runner [-u UID] [-c] DIR PROGRAM [WORDS...]
 *
 * In DIR: stdout, stderr, pid, events ("stopped 19", "continued"), and at last
 * status ("exit 0", "signal 11", "signal 6 core") and usage (user and system
 * time in microseconds). With -c the program has a pipe as its standard input,
 * whose other end is the FIFO DIR/stdin.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;

static void die(const char *what)
{
	fprintf(stderr, "runner: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int open_in(const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		die(path);
	return fd;
}

/* In one piece, so that whoever sees the file sees all of it. */
__attribute__((format(printf, 2, 3))) static void note(const char *name,
						       const char *fmt, ...)
{
	char from[PATH_MAX], to[PATH_MAX];
	va_list args;
	FILE *f;

	snprintf(from, sizeof(from), "%s/%s.new", dir, name);
	snprintf(to, sizeof(to), "%s/%s", dir, name);
	f = fopen(from, "we");
	if (!f)
		die(from);
	va_start(args, fmt);
	vfprintf(f, fmt, args);
	va_end(args);
	if (fclose(f) || rename(from, to))
		die(to);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid))
		die("cannot become another user");
}

static void run(char **argv, int in, int out, int err, uid_t uid)
{
	struct rlimit core = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_CORE, &core);
	setpgid(0, 0); /* a job of its own, as a shell's */
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (uid)
		become(uid);
	execvp(argv[0], argv);
	die(argv[0]);
}

static void watch(pid_t pid)
{
	int events = open_in("events", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
	struct rusage usage;
	int status;

	for (;;) {
		if (wait4(pid, &status, WUNTRACED | WCONTINUED, &usage) != pid)
			die("wait");
		if (WIFSTOPPED(status))
			dprintf(events, "stopped %d\n", WSTOPSIG(status));
		else if (WIFCONTINUED(status))
			dprintf(events, "continued\n");
		else
			break;
	}
	note("usage", "%lld %lld\n",
	     usage.ru_utime.tv_sec * 1000000ll + usage.ru_utime.tv_usec,
	     usage.ru_stime.tv_sec * 1000000ll + usage.ru_stime.tv_usec);
	if (WIFSIGNALED(status))
		note("status", "signal %d%s\n", WTERMSIG(status),
		     WCOREDUMP(status) ? " core" : "");
	else
		note("status", "exit %d\n", WEXITSTATUS(status));
}

/* Both ends open, so that the program sees no end of file before we end. */
static int make_input(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/stdin", dir);
	unlink(path);
	if (mkfifo(path, 0666))
		die(path);
	return open(path, O_RDWR | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	int opt, in, out, err, null, input = 0;
	uid_t uid = 0;
	pid_t pid;

	while ((opt = getopt(argc, argv, "+u:c")) != -1) {
		if (opt == 'u')
			uid = atoi(optarg);
		else if (opt == 'c')
			input = 1;
		else
			return 2;
	}
	if (argc - optind < 2)
		return 2;
	dir = argv[optind++];
	if ((mkdir(dir, 0777) && errno != EEXIST) || chmod(dir, 0777))
		die(dir);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	in = input ? make_input() : null;
	out = open_in("stdout", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
	err = open_in("stderr", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
	pid = fork();
	if (pid)
		return pid < 0;
	setsid();
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		run(argv + optind, in, out, err, uid);
	note("pid", "%d\n", pid);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	watch(pid);
	return 0;
}
