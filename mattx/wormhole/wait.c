// SPDX-License-Identifier: GPL-2.0
/*
 * poll, select, epoll_wait: waiting at home with a time-out and a signal mask that
 * belong here.
 *
 * The deadline is kept on this side, in this node's CLOCK_MONOTONIC, so that a wait
 * that is made again goes on for the time that is left. A temporary signal mask is
 * set here for the time of the call, and none at home.
 *
 * How an interrupted wait goes on is as in the kernel: select and ppoll write the
 * time that is left where the caller can see it and are restarted with it; poll has
 * a restart block. epoll_wait has none in the kernel, which returns -EINTR, but ours
 * does, because being frozen is no reason for an -EINTR.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/personality.h>
#include <linux/ptrace.h>
#include <linux/restart_block.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/thread_info.h>
#include <linux/time64.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>

#include "compat.h"
#include "gang/gang.h"
#include "wormhole/rpc.h"
#include "wormhole/shape.h"
#include "wormhole/special.h"

struct deadline {
	bool finite;
	ktime_t at;
};

static s64 left_ns(const struct deadline *d)
{
	s64 left = ktime_to_ns(ktime_sub(d->at, ktime_get()));

	return max_t(s64, left, 0);
}

/* Never shorter than what is left. */
static s32 left_ms(const struct deadline *d)
{
	if (!d->finite)
		return -1;
	return min_t(s64, div_s64(left_ns(d) + NSEC_PER_MSEC - 1, NSEC_PER_MSEC),
		     INT_MAX);
}

static void deadline_ms(struct deadline *d, s32 ms)
{
	d->finite = ms >= 0;
	if (d->finite)
		d->at = ktime_add_ms(ktime_get(), ms);
}

static void deadline_set(struct deadline *d, const struct timespec64 *ts)
{
	d->finite = true;
	d->at = ktime_add_safe(ktime_get(), timespec64_to_ktime(*ts));
}

static void left_timespec(const struct deadline *d, struct __kernel_timespec *ts)
{
	s64 ns = left_ns(d);
	u32 rest;

	ts->tv_sec = div_u64_rem(ns, NSEC_PER_SEC, &rest);
	ts->tv_nsec = rest;
}

static bool interrupted(long ret)
{
	return ret == -ERESTARTSYS || ret == -ERESTARTNOHAND ||
	       ret == -ERESTARTNOINTR || ret == -ERESTART_RESTARTBLOCK;
}

/* ------------------------------------------------------------ signal masks */

/* As the kernel's set_user_sigmask(), which is not for modules. */
static int mask_signals(const void __user *mask, size_t size)
{
	sigset_t set;

	if (!mask)
		return 0;
	if (size != sizeof(set))
		return -EINVAL;
	if (copy_from_user(&set, mask, sizeof(set)))
		return -EFAULT;
	set_restore_sigmask();
	current->saved_sigmask = current->blocked;
	sigdelsetmask(&set, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_SETMASK, &set, NULL);
	return 0;
}

/* A call that is going to be interrupted leaves the old mask to the signal code. */
static void unmask_signals(bool leave)
{
	sigset_t saved;

	if (leave || !test_and_clear_restore_sigmask())
		return;
	saved = current->saved_sigmask;
	sigprocmask(SIG_SETMASK, &saved, NULL);
}

/* ------------------------------------------------------------ restart blocks */

static long restart_later(long (*fn)(struct restart_block *), void __user *ufds,
			  u32 n, const struct deadline *d)
{
	struct restart_block *block = &current->restart_block;
	struct timespec64 ts = ktime_to_timespec64(d->at);

	block->poll.ufds = ufds;
	block->poll.nfds = n;
	block->poll.has_timeout = d->finite;
	block->poll.tv_sec = ts.tv_sec;
	block->poll.tv_nsec = ts.tv_nsec;
	return set_restart_fn(block, fn);
}

static void restart_deadline(const struct restart_block *block,
			     struct deadline *d)
{
	d->finite = block->poll.has_timeout;
	d->at = ktime_set(block->poll.tv_sec, block->poll.tv_nsec);
}

/* -------------------------------------------------------------------- poll */

static long poll_until(struct mattx_thread *thread, void __user *ufds, u32 nfds,
		       const struct deadline *d)
{
	struct mattx_request rq;
	long ret;

	do {
		rq = (struct mattx_request){
			.thread = thread,
			.nr = __NR_poll,
			.call = mattx_call_entry(__NR_poll),
			.args = { (unsigned long)ufds, nfds, left_ms(d) },
		};
		ret = mattx_call_once(&rq);
	} while (ret == MATTX_AGAIN);
	if (interrupted(ret) && ret != -ERESTARTNOINTR)
		return restart_later(mattx_poll_restart, ufds, nfds, d);
	return ret;
}

MATTX_HANDLER(mattx_do_poll)
{
	struct deadline d = {};

	if ((u32)regs->si > rlimit(RLIMIT_NOFILE))
		return -EINVAL;
	deadline_ms(&d, regs->dx);
	return poll_until(thread, (void __user *)regs->di, regs->si, &d);
}

long mattx_poll_restart(struct restart_block *block)
{
	struct mattx_thread *thread;
	struct deadline d = {};

	if (mattx_caller(&thread) != MATTX_IS_GUEST)
		return -EINTR;
	restart_deadline(block, &d);
	return poll_until(thread, block->poll.ufds, block->poll.nfds, &d);
}

/* ---------------------------------------- time-outs that the caller sees run */

enum timeout_kind { TIMESPEC, TIMEVAL };

static int get_timeout(struct deadline *d, const void __user *p,
		       enum timeout_kind kind)
{
	struct __kernel_timespec raw;
	struct timespec64 ts;

	if (!p)
		return 0;
	if (copy_from_user(&raw, p, sizeof(raw)))
		return -EFAULT;
	ts.tv_sec = raw.tv_sec;
	ts.tv_nsec = raw.tv_nsec;
	if (kind ==
	    TIMEVAL) { /* as the kernel: microseconds may be more than a second */
		if (raw.tv_nsec < 0 || raw.tv_sec < 0)
			return -EINVAL;
		ts.tv_sec += div_s64(raw.tv_nsec, USEC_PER_SEC);
		ts.tv_nsec = (raw.tv_nsec % USEC_PER_SEC) * NSEC_PER_USEC;
	}
	if (!timespec64_valid(&ts))
		return -EINVAL;
	deadline_set(d, &ts);
	return 0;
}

/* As the kernel's poll_select_finish(). */
static long finish_timeout(long ret, const struct deadline *d, void __user *p,
			   enum timeout_kind kind)
{
	struct __kernel_timespec left;

	if (interrupted(ret))
		ret = -ERESTARTNOHAND;
	unmask_signals(ret == -ERESTARTNOHAND);
	if (!p || current->personality & STICKY_TIMEOUTS)
		return ret == -ERESTARTNOHAND && p ? -EINTR : ret;
	left_timespec(d, &left);
	if (kind == TIMEVAL)
		left.tv_nsec = div_s64(left.tv_nsec, NSEC_PER_USEC);
	if (copy_to_user(p, &left, sizeof(left)) && ret == -ERESTARTNOHAND)
		return -EINTR;
	return ret;
}

/* Makes @rq, whose argument @which is the time-out, until it has a result. */
static long wait_until(struct mattx_request *rq, int which,
		       const struct deadline *d)
{
	const struct mattx_request start = *rq;
	struct __kernel_timespec left;
	long ret;

	do {
		*rq = start;
		if (d->finite) {
			left_timespec(d, &left);
			rq->kernel[which] = &left;
		}
		ret = mattx_call_once(rq);
	} while (ret == MATTX_AGAIN);
	return ret;
}

MATTX_HANDLER(mattx_do_ppoll)
{
	struct mattx_request rq = {
		.thread = thread,
		.nr = __NR_ppoll,
		.call = call,
		.args = { regs->di, regs->si, 0, 0, 0 },
	};
	void __user *timeout = (void __user *)regs->dx;
	struct deadline d = {};
	long ret;

	ret = get_timeout(&d, timeout, TIMESPEC);
	if (!ret)
		ret = mask_signals((void __user *)regs->r10, regs->r8);
	if (ret)
		return ret;
	if ((u32)regs->si > rlimit(RLIMIT_NOFILE))
		ret = -EINVAL;
	else
		ret = wait_until(&rq, 2, &d);
	return finish_timeout(ret, &d, timeout, TIMESPEC);
}

static long select_until(struct mattx_thread *thread,
			 const struct pt_regs *regs, const struct deadline *d)
{
	struct mattx_request rq = {
		.thread = thread,
		.nr = __NR_pselect6,
		.call = mattx_call_entry(__NR_pselect6),
		.args = { regs->di, regs->si, regs->dx, regs->r10, 0, 0 },
	};

	if ((s32)regs->di < 0)
		return -EINVAL;
	return wait_until(&rq, 4, d);
}

MATTX_HANDLER(mattx_do_select)
{
	void __user *timeout = (void __user *)regs->r8;
	struct deadline d = {};
	long ret;

	ret = get_timeout(&d, timeout, TIMEVAL);
	if (ret)
		return ret;
	ret = select_until(thread, regs, &d);
	return finish_timeout(ret, &d, timeout, TIMEVAL);
}

MATTX_HANDLER(mattx_do_pselect)
{
	struct {
		const void __user *mask;
		size_t size;
	} sig = {};
	void __user *timeout = (void __user *)regs->r8;
	struct deadline d = {};
	long ret;

	if (regs->r9 && copy_from_user(&sig, (void __user *)regs->r9, sizeof(sig)))
		return -EFAULT;
	ret = get_timeout(&d, timeout, TIMESPEC);
	if (!ret)
		ret = mask_signals(sig.mask, sig.size);
	if (ret)
		return ret;
	ret = select_until(thread, regs, &d);
	return finish_timeout(ret, &d, timeout, TIMESPEC);
}

/* -------------------------------------------------------------------- epoll */

static long epoll_until(struct mattx_thread *thread, u32 nr,
			const struct pt_regs *regs, const struct deadline *d)
{
	struct mattx_request rq = {
		.thread = thread,
		.nr = __NR_epoll_wait,
		.call = mattx_call_entry(__NR_epoll_wait),
		.args = { regs->di, regs->si, regs->dx, left_ms(d) },
	};
	const struct mattx_request start = rq;
	long ret;

	if (nr == __NR_epoll_pwait2) {
		rq.nr = nr;
		rq.call = mattx_call_entry(nr);
		rq.args[3] = 0;
		return wait_until(&rq, 3, d);
	}
	do {
		rq = start;
		rq.args[3] = left_ms(d);
		ret = mattx_call_once(&rq);
	} while (ret == MATTX_AGAIN);
	return ret;
}

/* @nr is the call that the program made; its arguments are in the registers. */
static long epoll_wait_until(struct mattx_thread *thread, u32 nr,
			     const struct pt_regs *regs, const struct deadline *d)
{
	long ret = 0;

	if (nr != __NR_epoll_wait)
		ret = mask_signals((void __user *)regs->r8, regs->r9);
	if (ret)
		return ret;
	ret = epoll_until(thread, nr, regs, d);
	unmask_signals(interrupted(ret));
	if (!interrupted(ret) || ret == -ERESTARTNOINTR)
		return ret;
	if (!d->finite)
		return -ERESTARTNOHAND;
	return restart_later(mattx_wait_restart, NULL, nr, d);
}

MATTX_HANDLER(mattx_do_epoll_wait)
{
	u32 nr = regs->orig_ax;
	struct deadline d = {};
	int err = 0;

	if (nr == __NR_epoll_pwait2)
		err = get_timeout(&d, (void __user *)regs->r10, TIMESPEC);
	else
		deadline_ms(&d, regs->r10);
	return err ?: epoll_wait_until(thread, nr, regs, &d);
}

long mattx_wait_restart(struct restart_block *block)
{
	const struct pt_regs *regs = current_pt_regs();
	struct mattx_thread *thread;
	struct deadline d = {};

	if (mattx_caller(&thread) != MATTX_IS_GUEST)
		return -EINTR;
	restart_deadline(block, &d);
	return epoll_wait_until(thread, block->poll.nfds, regs, &d);
}

void mattx_wait_rewind(struct mattx_regs *regs, u32 nr, s64 left)
{
	/* epoll_pwait() is epoll_pwait2() with another form of the time-out */
	if (nr == __NR_epoll_pwait2)
		nr = __NR_epoll_pwait;
	regs->r10 = min_t(s64,
			  div_s64(max_t(s64, left, 0) + NSEC_PER_MSEC - 1,
				  NSEC_PER_MSEC),
			  INT_MAX);
	regs->orig_ax = nr;
	regs->ax = -ERESTARTNOHAND;
}
