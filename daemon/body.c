// SPDX-License-Identifier: GPL-2.0
/*
 * The program of keeper, warden and body (warden.h): no libc, no threads, no heap,
 * so that nothing is in the address space that becomes the guest's but what is
 * unmapped as a whole. It is part of mattxd's own image and runs from a memfd.
 */
#include <asm/unistd.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mattx.h>
#include "warden.h"

#define O_WRONLY	1
#define SIGKILL		9
#define SIGCHLD		17
#define SIG_IGN		1
#define WNOHANG		1
#define EINTR		4
#define ECHILD		10
#define PR_SET_NAME	15
#define PR_SET_DUMPABLE 4

struct action { /* as rt_sigaction(2) of the kernel has it */
	unsigned long handler, flags, restorer, mask;
};

static long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define CALL(nr, a, b, c, d) \
	call6(__NR_##nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static size_t length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static _Noreturn void leave(enum warden_step step, long error)
{
	struct warden_word word = { .step = step, .error = -error };

	if (step)
		CALL(write, WARDEN_LINE, &word, sizeof(word), 0);
	for (;;)
		CALL(exit_group, step ? 1 : 0, 0, 0, 0);
}

static void nap(void)
{
	struct {
		long sec, nsec;
	} t = { 0, 1000000 };

	CALL(nanosleep, &t, 0, 0, 0);
}

static void name(const char *s)
{
	CALL(prctl, PR_SET_NAME, s, 0, 0);
}

/* The body: the module does not let it come back, unless it refuses it. */
static _Noreturn void body(const struct warden_order *order)
{
	struct mattx_ioc_body arg = { .stub = order->stub,
				      .stub_len = order->stub_len };

	/* in the warden's session: an orphaned group does not obey the terminal's stops */
	CALL(setpgid, 0, 0, 0, 0);
	leave(WARDEN_IOCTL, CALL(ioctl, WARDEN_HANDLE, MATTX_IOC_BODY, &arg, 0));
}

/* PID 1 of the guest's namespace. */
static _Noreturn void warden(const struct warden_order *order)
{
	int32_t tid = order->tgid;
	struct action ignore = { .handler = SIG_IGN };
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&tid,
		.set_tid_size = 1,
	};
	long pid;

	name("mattx-warden");
	CALL(setsid, 0, 0, 0, 0);
	/* guests create processes, of which all are its children: reaped by themselves */
	call6(__NR_rt_sigaction, SIGCHLD, (long)&ignore, 0, 8, 0, 0);
	pid = CALL(clone3, &args, sizeof(args), 0, 0);
	if (!pid)
		body(order);
	if (pid < 0)
		leave(WARDEN_BODY, pid);
	/* the pages are the body's business */
	CALL(close, WARDEN_SOCK, 0, 0, 0);
	/* refused until the body has made itself known */
	while (CALL(ioctl, WARDEN_HANDLE, MATTX_IOC_WARDEN, 0, 0)) {
		if (CALL(wait4, -1, 0, WNOHANG, 0) == -ECHILD)
			break;
		nap();
	}
	leave(0, 0);
}

static bool committed(void)
{
	struct mattx_ioc_info info = { .state = 0 };

	if (CALL(ioctl, WARDEN_HANDLE, MATTX_IOC_INFO, &info, 0))
		return false;
	return info.state != MATTX_GANG_BODY &&
	       info.state != MATTX_GANG_ARMED && info.state != MATTX_GANG_DEAD;
}

static void read_order(struct warden_order *order)
{
	size_t at = 0;
	long n;

	while (at < sizeof(*order)) {
		n = CALL(read, WARDEN_LINE, (char *)order + at,
			 sizeof(*order) - at, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			leave(WARDEN_ORDER, n);
		at += n;
	}
}

/* Waits for mattxd's word, and ends what it did not commit. */
static _Noreturn void keep(long pid)
{
	char word = 0;
	long n;

	CALL(close, WARDEN_SOCK, 0, 0, 0);
	do {
		n = CALL(read, WARDEN_LINE, &word, 1, 0);
	} while (n == -EINTR);
	if (n == 1 && word == WARDEN_LET_GO)
		leave(0, 0);
	if (!committed()) {
		CALL(ioctl, WARDEN_HANDLE, MATTX_IOC_KILL, 0, 0);
		/* again, for a commit that came in between is the end of this, too */
		if (!committed())
			CALL(kill, pid, SIGKILL, 0, 0);
	}
	leave(0, 0);
}

static void enter(const struct warden_order *order)
{
	long ret, fd;

	ret = CALL(unshare, CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWTIME, 0, 0, 0);
	if (ret)
		leave(WARDEN_UNSHARE, ret);
	fd = CALL(open, "/proc/self/timens_offsets", O_WRONLY, 0, 0);
	if (fd < 0)
		leave(WARDEN_OFFSETS, fd);
	ret = CALL(write, fd, order->offsets, length(order->offsets), 0);
	if (ret < 0)
		leave(WARDEN_OFFSETS, ret);
	CALL(close, fd, 0, 0, 0);
	ret = CALL(sethostname, order->hostname, length(order->hostname), 0, 0);
	if (!ret)
		ret = CALL(setdomainname, order->domainname,
			   length(order->domainname), 0, 0);
	if (ret)
		leave(WARDEN_NAMES, ret);
}

_Noreturn void start(void); /* the entry, named to the linker */

__attribute__((used)) _Noreturn void start(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	struct warden_order order;
	long pid;

	name("mattx-keeper");
	read_order(&order);
	enter(&order);
	pid = CALL(clone3, &args, sizeof(args), 0, 0);
	if (!pid)
		warden(&order);
	if (pid < 0)
		leave(WARDEN_PID1, pid);
	keep(pid);
}

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	and $-16, %rsp\n"
	"	call start\n"
	"	ud2\n");
