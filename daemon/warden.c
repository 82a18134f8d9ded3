// SPDX-License-Identifier: GPL-2.0
/* mattxd's side of keeper, warden and body: started, told, ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "stream.h"
#include "warden.h"

#define START_MS 20000

/* The program itself, which the Makefile has linked before. */
__asm__(".section .rodata\n"
	".balign 16\n"
	"mattx_body_start:\n"
	"	.incbin \"" MATTX_BODY "\"\n"
	"mattx_body_end:\n"
	".previous\n");
extern const char mattx_body_start[], mattx_body_end[];

static const char *step_name(uint32_t step)
{
	switch (step) {
	case WARDEN_ORDER:
		return "understand its order";
	case WARDEN_UNSHARE:
		return "make the guest's namespaces";
	case WARDEN_OFFSETS:
		return "set the guest's clocks";
	case WARDEN_NAMES:
		return "set the guest's host name";
	case WARDEN_PID1:
		return "make the guest's PID 1";
	case WARDEN_BODY:
		return "make a process with the guest's PID";
	case WARDEN_IOCTL:
		return "give the body to the module";
	}
	return "make the body";
}

static int program(void)
{
	size_t len = mattx_body_end - mattx_body_start, at = 0;
	int fd;

#ifdef MFD_EXEC
	fd = memfd_create("mattx-body", MFD_CLOEXEC | MFD_EXEC);
#else
	fd = memfd_create("mattx-body", MFD_CLOEXEC | 0x10);
#endif
	if (fd < 0)
		fd = memfd_create("mattx-body", MFD_CLOEXEC);
	while (fd >= 0 && at < len) {
		ssize_t n = write(fd, mattx_body_start + at, len - at);

		if (n <= 0) {
			close(fd);
			return -1;
		}
		at += n;
	}
	return fd;
}

/* Out of the service's control group, so that the guest outlives the daemon. */
static void leave_cgroup(void)
{
	int fd = open("/sys/fs/cgroup/mattx/cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "0", 1) != 1)
			fd = fd; /* then it stays where it is */
		close(fd);
	}
}

/* In the child of a process with threads: only system calls from here on. */
static _Noreturn void child(int handle, int sock, int line, int prog)
{
	int from[4] = { handle, sock, line, prog }, i;
	char *argv[] = { "mattx-keeper", NULL }, *envp[] = { NULL };
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (i = 1; i < 65; i++)
		sigaction(i, &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	leave_cgroup();
	for (i = 0; i < 4; i++) {
		from[i] = fcntl(from[i], F_DUPFD, 16);
		if (from[i] < 0)
			_exit(127);
	}
	for (i = 0; i < 4; i++)
		if (dup3(from[i], WARDEN_HANDLE + i, i == 3 ? O_CLOEXEC : 0) < 0)
			_exit(127);
	syscall(SYS_close_range, 0, 2, 0);
	syscall(SYS_close_range, WARDEN_HANDLE + 4, ~0u, 0);
	syscall(SYS_execveat, WARDEN_HANDLE + 3, "", argv, envp, AT_EMPTY_PATH);
	_exit(127);
}

static int spawn(struct warden *w, struct job *job, int handle)
{
	int pair[2], prog, error;

	prog = program();
	if (prog < 0)
		return job_fail(job, errno, "cannot make the body's program: %s",
				strerror(errno));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		error = errno;
		close(prog);
		return job_fail(job, error, "socketpair: %s", strerror(error));
	}
	w->line = pair[0];
	mkdir("/sys/fs/cgroup/mattx", 0755);
	w->keeper = fork();
	if (!w->keeper)
		child(handle, job->sock, pair[1], prog);
	error = errno;
	close(pair[1]);
	close(prog);
	if (w->keeper < 0)
		return job_fail(job, error, "fork: %s", strerror(error));
	if (job_adopt(job, w->keeper))
		job_say(job, "keeper %d is nobody's child", (int)w->keeper);
	return 0;
}

static void offset_line(char *buf, size_t len, const char *clock, int64_t ns)
{
	int64_t sec = ns / 1000000000, rest = ns % 1000000000;

	if (rest < 0) {
		rest += 1000000000;
		sec--;
	}
	snprintf(buf, len, "%s %lld %lld\n", clock, (long long)sec,
		 (long long)rest);
}

static int order(struct warden *w, struct job *job,
		 const struct stream_start *start)
{
	struct warden_order o = { .tgid = start->tgid,
				  .stub = start->stub,
				  .stub_len = start->stub_len };
	size_t n;

	offset_line(o.offsets, sizeof(o.offsets), "monotonic", start->monotonic);
	n = strlen(o.offsets);
	offset_line(o.offsets + n, sizeof(o.offsets) - n, "boottime",
		    start->boottime);
	memcpy(o.hostname, start->hostname, sizeof(start->hostname));
	memcpy(o.domainname, start->domainname, sizeof(start->domainname));
	if (send(w->line, &o, sizeof(o), MSG_NOSIGNAL) != (ssize_t)sizeof(o))
		return job_fail(job, EPIPE, "the body's keeper did not start");
	return 0;
}

/* Until the module has the body, or one of the three has said why not. */
static int wait_body(struct warden *w, struct job *job, int handle)
{
	struct pollfd pfd = { .fd = w->line, .events = POLLIN };
	struct mattx_ioc_info info;
	struct warden_word word;
	int ms;

	for (ms = 0; ms < START_MS && !job_cancelled(job); ms++) {
		if (!ioctl(handle, MATTX_IOC_INFO, &info) &&
		    info.state == MATTX_GANG_BODY)
			return 0;
		if (poll(&pfd, 1, 1) != 1)
			continue;
		if (recv(w->line, &word, sizeof(word), 0) != (ssize_t)sizeof(word))
			return job_fail(job, ECHILD,
					"the body's keeper has ended");
		return job_fail(job, word.error, "cannot %s: %s",
				step_name(word.step), strerror(word.error));
	}
	return job_fail(job, ETIMEDOUT, "the body did not start in %d s",
			START_MS / 1000);
}

int warden_start(struct warden *w, struct job *job, int handle,
		 const struct stream_start *start)
{
	int ret;

	*w = (struct warden){ .line = -1 };
	ret = spawn(w, job, handle);
	if (!ret)
		ret = order(w, job, start);
	return ret ?: wait_body(w, job, handle);
}

void warden_end(struct warden *w, struct job *job, bool keep)
{
	struct pollfd pfd = { .fd = w->line, .events = POLLIN };
	char word = WARDEN_LET_GO, buf[64];
	int i;

	if (w->line < 0)
		return;
	if (keep) {
		if (send(w->line, &word, 1, MSG_NOSIGNAL) != 1)
			job_say(job, "the keeper has gone before its time");
	} else {
		/* all that it has started hold the other end: wait for them */
		shutdown(w->line, SHUT_WR);
		for (i = 0; i < 50; i++)
			if (poll(&pfd, 1, 100) == 1 &&
			    recv(w->line, buf, sizeof(buf), 0) <= 0)
				break;
	}
	close(w->line);
	w->line = -1;
}
