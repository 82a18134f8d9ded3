// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that go different ways for different arguments: here, home, or both.
 */
#include <linux/fs.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>

#include "compat.h"
#include "gang/gang.h"
#include "wormhole/protocol.h"
#include "wormhole/rpc.h"
#include "wormhole/shape.h"
#include "wormhole/special.h"

static u32 number(const struct pt_regs *regs)
{
	return regs->orig_ax;
}

static long to_deputy(struct mattx_thread *thread,
		      const struct mattx_call *call, const struct pt_regs *regs)
{
	u64 args[6];

	mattx_regs_args(regs, args);
	return mattx_call_deputy(thread, number(regs), call, args);
}

static long to_deputy_firm(struct mattx_thread *thread,
			   const struct mattx_call *call,
			   const struct pt_regs *regs)
{
	u64 args[6];

	mattx_regs_args(regs, args);
	return mattx_call_firm(thread, number(regs), call, args, NULL);
}

/* Is this TID of the caller's own process? */
static bool is_own(struct mattx_thread *thread, s32 tid)
{
	struct mattx_thread *other;

	if (tid == thread->tid || tid == thread->gang->tgid)
		return true;
	other = mattx_gang_thread(thread->gang, tid);
	mattx_thread_put(other);
	return other;
}

/* ------------------------------------------------------------ moving bytes */

static bool is_vector(const struct mattx_call *call)
{
	return call->arg[1].shape == MATTX_IOV_IN ||
	       call->arg[1].shape == MATTX_IOV_OUT;
}

static bool has_position(const struct pt_regs *regs)
{
	switch (number(regs)) {
	case __NR_pread64:
	case __NR_pwrite64:
	case __NR_preadv:
	case __NR_pwritev:
		return true;
	case __NR_preadv2:
	case __NR_pwritev2:
		return regs->r10 != -1UL; /* -1: the file's own */
	default:
		return false;
	}
}

/*
 * mattx_do_rw() - read and write in all forms
 *
 * One call moves MATTX_IO_MAX at most. A write goes on until all is written, as a
 * write does natively; a read goes on only for regular files, which never make
 * it wait after they have given something.
 */
MATTX_HANDLER(mattx_do_rw)
{
	bool in = call->arg[1].shape == MATTX_IN_N ||
		  call->arg[1].shape == MATTX_IOV_IN;
	bool vector = is_vector(call), position = has_position(regs);
	struct mattx_request rq;
	size_t total = 0;
	long ret;

	do {
		rq = (struct mattx_request){
			.thread = thread,
			.call = call,
			.nr = number(regs),
			.limit = min_t(size_t, MATTX_IO_MAX, MAX_RW_COUNT - total),
		};
		mattx_regs_args(regs, rq.args);
		if (vector) {
			rq.skip = total;
		} else {
			rq.args[1] += total;
			rq.args[2] -= total;
		}
		if (position)
			rq.args[3] += total;
		ret = mattx_call_once(&rq);
		if (ret == MATTX_AGAIN)
			continue;
		if (ret <= 0)
			return total ?: ret;
		total += ret;
		if (!rq.limited || ret < MATTX_IO_MAX)
			return total;
	} while (total < MAX_RW_COUNT && (in || ret == MATTX_AGAIN ||
					  rq.reply_flags & MATTX_REPLY_REGULAR));
	return total;
}

/* -------------------------------------------------------- one's own memory */

/* A list in /proc of what is in its own memory. */
static bool is_own_memory(struct mattx_thread *thread, const char __user *path)
{
	static const char *const lists[] = { "maps",	  "smaps",
					     "numa_maps", "smaps_rollup",
					     "mem",	  "pagemap" };
	char text[64], *rest = text, *owner;
	s32 pid;

	if (strncpy_from_user(text, path, sizeof(text)) <= 0 ||
	    strnlen(text, sizeof(text)) == sizeof(text) ||
	    strncmp(text, "/proc/", 6) ||
	    match_string(lists, ARRAY_SIZE(lists), strrchr(text, '/') + 1) < 0)
		return false;
	rest += 6;
	owner = strsep(&rest, "/");
	return !strcmp(owner, "self") || !strcmp(owner, "thread-self") ||
	       (!kstrtos32(owner, 10, &pid) && is_own(thread, pid));
}

/* open and openat: home knows only what the memory was when the process left. */
MATTX_HANDLER(mattx_do_open)
{
	unsigned long path = number(regs) == __NR_open ? regs->di : regs->si;

	if (is_own_memory(thread, (const char __user *)path))
		return mattx_go_home(thread, number(regs), "its memory in /proc");
	return to_deputy(thread, call, regs);
}

/* -------------------------------------------------- threads and processes */

static long self_or_deputy(struct mattx_thread *thread,
			   const struct mattx_call *call,
			   const struct pt_regs *regs, s32 tid)
{
	if (!tid || is_own(thread, tid))
		return mattx_call_here(number(regs), regs);
	if (!call->served)
		return mattx_go_home(thread, number(regs), "of another process");
	return to_deputy(thread, call, regs);
}

MATTX_HANDLER(mattx_do_self)
{
	return self_or_deputy(thread, call, regs, regs->di);
}

MATTX_HANDLER(mattx_do_self1)
{
	if (regs->di != PRIO_PROCESS)
		return to_deputy(thread, call, regs);
	return self_or_deputy(thread, call, regs, regs->si);
}

MATTX_HANDLER(mattx_do_kill)
{
	s32 pid = regs->di;

	if (pid > 0 && is_own(thread, pid))
		return mattx_call_here(number(regs), regs);
	return to_deputy(thread, call, regs);
}

MATTX_HANDLER(mattx_do_sigqueue)
{
	return mattx_do_kill(thread, call, regs);
}

MATTX_HANDLER(mattx_do_tkill)
{
	return mattx_do_kill(thread, call, regs);
}

MATTX_HANDLER(mattx_do_tgkill)
{
	if ((s32)regs->di == thread->gang->tgid)
		return mattx_call_here(number(regs), regs);
	return to_deputy(thread, call, regs);
}

/* ------------------------------------------------------- here and at home */

/* rt_sigaction: home has to know what is ignored. */
MATTX_HANDLER(mattx_do_both)
{
	u64 args[6];
	long ret;

	ret = mattx_call_here(number(regs), regs);
	if (ret || !regs->si)
		return ret;
	mattx_regs_args(regs, args);
	args[2] = 0;
	mattx_call_firm(thread, number(regs), call, args, NULL);
	return ret;
}

/* Home says whether it may be; its limits of files, processes and the like count. */
MATTX_HANDLER(mattx_do_prlimit)
{
	s32 pid = regs->di;
	long ret;

	if ((pid && !is_own(thread, pid)) || !regs->dx)
		return to_deputy(thread, call, regs);
	ret = to_deputy_firm(thread, call, regs);
	if (!ret)
		mattx_call_here(number(regs), regs);
	return ret;
}

MATTX_HANDLER(mattx_do_setrlimit)
{
	long ret = to_deputy_firm(thread, call, regs);

	if (!ret)
		mattx_call_here(number(regs), regs);
	return ret;
}

MATTX_HANDLER(mattx_do_prctl)
{
	long ret;

	switch ((u32)regs->di) {
	case PR_SET_NAME:
	case PR_SET_NO_NEW_PRIVS:
		ret = mattx_call_here(number(regs), regs);
		if (!ret)
			ret = to_deputy_firm(thread, call, regs);
		return ret;
	case PR_SET_PDEATHSIG:
	case PR_GET_PDEATHSIG:
	case PR_SET_CHILD_SUBREAPER:
	case PR_GET_CHILD_SUBREAPER:
	case PR_SET_PTRACER:
	case PR_CAPBSET_READ:
	case PR_GET_SECUREBITS:
	case PR_GET_KEEPCAPS:
	case PR_SET_DUMPABLE: /* here nobody is to look into it */
	case PR_GET_DUMPABLE:
		return to_deputy(thread, call, regs);
	case PR_GET_NAME:
	case PR_GET_NO_NEW_PRIVS:
	case PR_GET_SECCOMP:
	case PR_GET_TIMERSLACK:
	case PR_SET_TIMERSLACK:
	case PR_GET_TIMING:
	case PR_GET_TSC:
	case PR_SET_TSC:
	case PR_GET_THP_DISABLE:
	case PR_SET_THP_DISABLE:
	case PR_GET_TID_ADDRESS:
	case PR_GET_SPECULATION_CTRL:
	case PR_SET_VMA:
	case PR_MCE_KILL_GET:
		return mattx_call_here(number(regs), regs);
	default:
		return mattx_go_home(thread, number(regs), "this option");
	}
}

/* ----------------------------------------------------------------- clocks */

/*
 * Clocks of the system are those of the time namespace; CPU clocks of the process
 * moved with it. A clock that is a descriptor, or another process's, is at home.
 */
MATTX_HANDLER(mattx_do_clock)
{
	s32 clock = regs->di;
	bool is_fd = (clock & 7) == 3;
	s32 pid = ~(clock >> 3);

	if (clock >= 0 || (!is_fd && (!pid || is_own(thread, pid))))
		return mattx_call_here(number(regs), regs);
	if (!call->served)
		return mattx_go_home(thread, number(regs), "a clock of home");
	return to_deputy(thread, call, regs);
}

/* What it returns counts from home's start; what it writes is the process's own. */
MATTX_HANDLER(mattx_do_times)
{
	u64 none[6] = {};
	long ret;

	if (regs->di) {
		ret = mattx_call_here(number(regs), regs);
		if (ret == -EFAULT)
			return ret;
	}
	return mattx_call_firm(thread, number(regs), call, none, NULL);
}

MATTX_HANDLER(mattx_do_getrusage)
{
	if ((s32)regs->di == RUSAGE_CHILDREN)
		return to_deputy(thread, call, regs);
	return mattx_call_here(number(regs), regs);
}

MATTX_HANDLER(mattx_do_itimer)
{
	if ((s32)regs->di == ITIMER_REAL)
		return to_deputy(thread, call, regs);
	return mattx_call_here(number(regs), regs);
}

/*
 * What the process may do is home's to know, so its credentials change there, as they are
 * when it lives on. A child of vfork() is about to call execve(), and it cannot go home.
 */
MATTX_HANDLER(mattx_do_cred)
{
	if (thread->gang->lender)
		return to_deputy_firm(thread, call, regs);
	return mattx_go_home(thread, number(regs), NULL);
}

MATTX_HANDLER(mattx_do_personality)
{
	if ((u32)regs->di == 0xffffffff)
		return mattx_call_here(number(regs), regs);
	return mattx_go_home(thread, number(regs), NULL);
}
