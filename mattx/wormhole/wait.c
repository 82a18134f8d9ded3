// SPDX-License-Identifier: GPL-2.0
/*
 * poll, select, epoll_wait: waiting at home with a time-out and a signal mask that
 * belong here.
 *
 * The deadline is kept on this side, in this node's CLOCK_MONOTONIC, so that a wait
 * that is made again goes on for the time that is left. A temporary signal mask is
 * set here for the time of the call, and none at home.
 *
 * All of them go on by a restart block when they were interrupted but no handler has
 * run. In the kernel poll does; select and ppoll write the time that is left where
 * the caller can see it, and are restarted with that; epoll_wait returns -EINTR. But
 * a time during which a guest stands still is no reason for an -EINTR, nor for
 * waiting longer.
 */
#include <linux/capability.h>
#include <linux/bits.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/personality.h>
#include <linux/poll.h>
#include <linux/ptrace.h>
#include <linux/restart_block.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/thread_info.h>
#include <linux/time64.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>
#include <uapi/linux/eventpoll.h>

#include "compat.h"
#include "gang/gang.h"
#include "ghost/set.h"
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

static void ns_to_kernel_timespec(s64 ns, struct __kernel_timespec *ts)
{
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

	block->poll.ufds = ufds;
	block->poll.nfds = n;
	block->poll.has_timeout = d->finite;
	mattx_poll_set_end(block, d->at);
	return set_restart_fn(block, fn);
}

static void restart_deadline(const struct restart_block *block,
			     struct deadline *d)
{
	d->finite = block->poll.has_timeout;
	d->at = mattx_poll_end(block);
}

/* -------------------------------------------------------------------- poll */

struct pollfds {
	const struct pollfd __user *fd;
	u32 n;
};

static bool polls(u32 set, const void *arg)
{
	const struct pollfds *fds = arg;
	u32 i;
	s32 fd;

	for (i = 0; i < fds->n && !get_user(fd, &fds->fd[i].fd); i++)
		if (fd == set)
			return true;
	return false;
}

static long poll_until(struct mattx_thread *thread, void __user *ufds, u32 nfds,
		       const struct deadline *d)
{
	const struct pollfds fds = { ufds, nfds };
	struct mattx_request rq;
	long ret;

	if (mattx_set_shun(thread, polls, &fds))
		return restart_later(mattx_poll_restart, ufds, nfds, d);
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

/* Where the time-out of a call is, and its form. */
static void __user *timeout_addr(u32 nr, const struct pt_regs *regs)
{
	switch (nr) {
	case __NR_ppoll:
		return (void __user *)regs->dx;
	case __NR_epoll_pwait2:
		return (void __user *)regs->r10;
	default: /* select, pselect6 */
		return (void __user *)regs->r8;
	}
}

static int get_timeout(struct deadline *d, u32 nr, const struct pt_regs *regs)
{
	void __user *p = timeout_addr(nr, regs);
	struct __kernel_timespec raw;
	struct timespec64 ts;

	if (!p)
		return 0;
	if (copy_from_user(&raw, p, sizeof(raw)))
		return -EFAULT;
	ts.tv_sec = raw.tv_sec;
	ts.tv_nsec = raw.tv_nsec;
	if (nr == __NR_select) {
		/* as the kernel: more than a second of microseconds may be */
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

static int put_timeout(void __user *p, u32 nr, s64 left)
{
	struct __kernel_timespec ts;

	ns_to_kernel_timespec(left, &ts);
	if (nr == __NR_select)
		ts.tv_nsec = div_s64(ts.tv_nsec, NSEC_PER_USEC);
	return copy_to_user(p, &ts, sizeof(ts)) ? -EFAULT : 0;
}

/*
 * As the kernel's poll_select_finish(): the caller is told what was left. But one that
 * is only frozen goes on until the deadline, and not for that time from then on.
 */
static long finish_timeout(long ret, u32 nr, const struct pt_regs *regs,
			   const struct deadline *d)
{
	void __user *p = timeout_addr(nr, regs);

	if (interrupted(ret))
		ret = -ERESTARTNOHAND;
	unmask_signals(ret == -ERESTARTNOHAND);
	if (!p)
		return ret;
	if (!(current->personality & STICKY_TIMEOUTS))
		put_timeout(p, nr, left_ns(d));
	if (ret != -ERESTARTNOHAND)
		return ret;
	return restart_later(mattx_wait_restart, NULL, nr, d);
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
			ns_to_kernel_timespec(left_ns(d), &left);
			rq->kernel[which] = &left;
		}
		ret = mattx_call_once(rq);
	} while (ret == MATTX_AGAIN);
	return ret;
}

static long ppoll_until(struct mattx_thread *thread, const struct pt_regs *regs,
			const struct deadline *d)
{
	const struct pollfds fds = { (void __user *)regs->di, regs->si };
	struct mattx_request rq = {
		.thread = thread,
		.nr = __NR_ppoll,
		.call = mattx_call_entry(__NR_ppoll),
		.args = { regs->di, regs->si, 0, 0, 0 },
	};

	if ((u32)regs->si > rlimit(RLIMIT_NOFILE))
		return -EINVAL;
	if (mattx_set_shun(thread, polls, &fds))
		return -ERESTARTNOHAND;
	return wait_until(&rq, 2, d);
}

/* Is the bit of @set one in any of the three masks? */
static bool selects(u32 set, const void *arg)
{
	const struct pt_regs *regs = arg;
	unsigned long word, masks[] = { regs->si, regs->dx, regs->r10 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(masks) && set < (u32)regs->di; i++)
		if (masks[i] &&
		    !get_user(word, (unsigned long __user *)masks[i] +
					    set / BITS_PER_LONG) &&
		    word & BIT(set % BITS_PER_LONG))
			return true;
	return false;
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
	if (mattx_set_shun(thread, selects, regs))
		return -ERESTARTNOHAND;
	return wait_until(&rq, 4, d);
}

/* The temporary signal mask of a call. */
static int mask_for(u32 nr, const struct pt_regs *regs)
{
	struct {
		const void __user *mask;
		size_t size;
	} sig = {};

	switch (nr) {
	case __NR_ppoll:
		return mask_signals((void __user *)regs->r10, regs->r8);
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		return mask_signals((void __user *)regs->r8, regs->r9);
	case __NR_pselect6:
		if (regs->r9 &&
		    copy_from_user(&sig, (void __user *)regs->r9, sizeof(sig)))
			return -EFAULT;
		return mask_signals(sig.mask, sig.size);
	default:
		return 0;
	}
}

/* ppoll, select, pselect6. @nr is the call; its arguments are in the registers. */
static long run_select(struct mattx_thread *thread, u32 nr,
		       const struct pt_regs *regs, const struct deadline *d)
{
	long ret = mask_for(nr, regs);

	if (ret)
		return ret;
	if (nr == __NR_ppoll)
		ret = ppoll_until(thread, regs, d);
	else
		ret = select_until(thread, regs, d);
	return finish_timeout(ret, nr, regs, d);
}

MATTX_HANDLER(mattx_do_select)
{
	u32 nr = regs->orig_ax;
	struct deadline d = {};
	int err = get_timeout(&d, nr, regs);

	return err ?: run_select(thread, nr, regs, &d);
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

	ret = mattx_set_wait(thread, regs->di,
			     (struct epoll_event __user *)regs->si, regs->dx,
			     d->finite ? &d->at : NULL, d->finite && !left_ns(d));
	if (ret != MATTX_SET_REMOTE)
		return ret;
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
static long run_epoll(struct mattx_thread *thread, u32 nr,
		      const struct pt_regs *regs, const struct deadline *d)
{
	long ret = mask_for(nr, regs);

	if (ret)
		return ret;
	ret = epoll_until(thread, nr, regs, d);
	unmask_signals(interrupted(ret));
	if (!interrupted(ret))
		return ret;
	if (!d->finite)
		return -ERESTARTNOHAND;
	return restart_later(mattx_wait_restart, NULL, nr, d);
}

/* As the kernel has it: more would not fit into what the call returns. */
#define EVENTS_MAX (INT_MAX / (int)sizeof(struct epoll_event))

MATTX_HANDLER(mattx_do_epoll_wait)
{
	u32 nr = regs->orig_ax;
	struct deadline d = {};
	s32 max = regs->dx;
	int err = 0;

	if (nr == __NR_epoll_pwait2)
		err = get_timeout(&d, nr, regs);
	else
		deadline_ms(&d, regs->r10);
	if (!err && (max <= 0 || max > EVENTS_MAX))
		err = -EINVAL;
	return err ?: run_epoll(thread, nr, regs, &d);
}

/* -------------------------------------------------------------- going on */

static bool is_epoll(u32 nr)
{
	return nr == __NR_epoll_wait || nr == __NR_epoll_pwait ||
	       nr == __NR_epoll_pwait2;
}

long mattx_wait_restart(struct restart_block *block)
{
	const struct pt_regs *regs = current_pt_regs();
	u32 nr = block->poll.nfds;
	struct mattx_thread *thread;
	struct deadline d = {};

	if (mattx_caller(&thread) != MATTX_IS_GUEST)
		return -EINTR;
	restart_deadline(block, &d);
	return is_epoll(nr) ? run_epoll(thread, nr, regs, &d) :
			      run_select(thread, nr, regs, &d);
}

void mattx_wait_rewind(struct mattx_regs *regs, u32 nr, s64 left)
{
	left = max_t(s64, left, 0);
	regs->ax = -ERESTARTNOHAND;
	regs->orig_ax = nr;
	switch (nr) {
	case __NR_ppoll:
		put_timeout((void __user *)(unsigned long)regs->dx, nr, left);
		break;
	case __NR_select:
	case __NR_pselect6:
		put_timeout((void __user *)(unsigned long)regs->r8, nr, left);
		break;
	case __NR_epoll_pwait2:
		/* its time-out is not to be written to; this one has another form of it */
		regs->orig_ax = __NR_epoll_pwait;
		fallthrough;
	default:
		regs->r10 = min_t(
			s64, div_s64(left + NSEC_PER_MSEC - 1, NSEC_PER_MSEC),
			INT_MAX);
	}
}
