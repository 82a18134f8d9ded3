// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that are continued by restart_syscall(2).
 *
 * A thread whose call was interrupted with -ERESTART_RESTARTBLOCK goes on through
 * a function pointer in its restart block, which is another one on another node,
 * and with absolute times of this node's clocks. Here they become a kind and a time
 * as the process reads its clocks, and back.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/restart_block.h>
#include <linux/sched/clock.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include "internal.h"
#include "../compat.h"
#include "../main.h"
#include "../wormhole/rpc.h"

typedef long (*restart_fn)(struct restart_block *);

static struct {
	enum mattx_restart_kind kind;
	const char *symbol;
	restart_fn fn;
} restarts[] = {
	{ MATTX_RESTART_FUTEX, "futex_wait_restart", NULL },
	{ MATTX_RESTART_NANOSLEEP, "hrtimer_nanosleep_restart", NULL },
	{ MATTX_RESTART_POLL, "do_restart_poll", NULL },
	{ MATTX_RESTART_ALARM, "alarm_timer_nsleep_restart", NULL },
	{ MATTX_RESTART_CPU, "posix_cpu_nsleep_restart", NULL },
};

/* A function's entry, found by planting a probe there and removing it again. */
static void *symbol_address(const char *symbol)
{
	struct kprobe kp = { .symbol_name = symbol };
	u8 *addr;

	if (register_kprobe(&kp))
		return NULL;
	addr = (u8 *)kp.addr;
	unregister_kprobe(&kp);
	/* Behind an ENDBR64 the probe sits on the next instruction. */
	if (*(u32 *)(addr - 4) == 0xfa1e0ff3)
		addr -= 4;
	return addr;
}

int mattx_restart_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(restarts); i++) {
		restarts[i].fn = symbol_address(restarts[i].symbol);
		if (!restarts[i].fn)
			pr_warn("no %s in this kernel: such calls are restarted from the start\n",
				restarts[i].symbol);
	}
	return 0;
}

static enum mattx_restart_kind kind_of(restart_fn fn)
{
	unsigned int i;

	if (fn == mattx_poll_restart)
		return MATTX_RESTART_POLL;
	if (fn == mattx_wait_restart)
		return MATTX_RESTART_WAIT;
	for (i = 0; i < ARRAY_SIZE(restarts); i++)
		if (fn && restarts[i].fn == fn)
			return restarts[i].kind;
	return MATTX_RESTART_NONE;
}

/* A guest's poll goes on at home: its descriptors are there. */
static restart_fn fn_of(const struct mattx_thread *thread, u32 kind)
{
	unsigned int i;

	if (kind == MATTX_RESTART_POLL && thread->gang->role == MATTX_ROLE_HOST)
		return mattx_poll_restart;
	for (i = 0; i < ARRAY_SIZE(restarts); i++)
		if (restarts[i].kind == kind)
			return restarts[i].fn;
	return NULL;
}

/* What current's time namespace adds to a clock of this node, ns. */
static s64 clock_offset(clockid_t clock)
{
#ifdef CONFIG_TIME_NS
	struct timens_offsets *offsets = &current->nsproxy->time_ns->offsets;

	switch (clock) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
		return timespec64_to_ns(&offsets->monotonic);
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return timespec64_to_ns(&offsets->boottime);
	default:
		return 0;
	}
#else
	return 0;
#endif
}

static void capture_futex(struct mattx_restart *r,
			  const struct restart_block *block)
{
	u32 flags = block->futex.flags;

	r->addr = (unsigned long)block->futex.uaddr;
	r->val = block->futex.val;
	r->bitset = block->futex.bitset;
	r->flags = (flags & MATTX_KFUTEX_SHARED ? 1 : 0) |
		   (flags & MATTX_KFUTEX_CLOCKRT ? 2 : 0) |
		   (flags & MATTX_KFUTEX_TIMEOUT ? 4 : 0);
	r->time = block->futex.time +
		  (r->flags & 2 ? 0 : clock_offset(CLOCK_MONOTONIC));
}

static void apply_futex(const struct mattx_restart *r, struct restart_block *block)
{
	block->futex.uaddr = (u32 __user *)(unsigned long)r->addr;
	block->futex.val = r->val;
	block->futex.bitset = r->bitset;
	block->futex.flags = MATTX_KFUTEX_BASE |
			     (r->flags & 1 ? MATTX_KFUTEX_SHARED : 0) |
			     (r->flags & 2 ? MATTX_KFUTEX_CLOCKRT : 0) |
			     (r->flags & 4 ? MATTX_KFUTEX_TIMEOUT : 0);
	block->futex.time =
		r->time - (r->flags & 2 ? 0 : clock_offset(CLOCK_MONOTONIC));
}

/*
 * Waits with a time-out for which the kernel keeps no restart block.
 *
 * select() and ppoll() write what is left into the caller's own time-out and are
 * restarted with that, which is right unless the thread stands still in between.
 * epoll_wait() and its kin, sigtimedwait() and semtimedop() return -EINTR and say
 * nothing of the time that was left. How long the thread had slept is known from the
 * freeze: since it came to the CPU last, less what it ran then.
 */

static bool is_wait(u64 nr)
{
	switch (nr) {
	case __NR_select:
	case __NR_pselect6:
	case __NR_ppoll:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
	case __NR_rt_sigtimedwait:
	case __NR_semtimedop:
		return true;
	}
	return false;
}

static bool tells_rest(u64 nr)
{
	return nr == __NR_select || nr == __NR_pselect6 || nr == __NR_ppoll;
}

/* The argument with the address of the call's timespec (select: timeval), or NULL. */
static u64 *timespec_arg(struct mattx_regs *regs, u32 nr)
{
	switch (nr) {
	case __NR_rt_sigtimedwait:
	case __NR_ppoll:
		return &regs->dx;
	case __NR_semtimedop:
	case __NR_epoll_pwait2:
		return &regs->r10;
	case __NR_select:
	case __NR_pselect6:
		return &regs->r8;
	default:
		return NULL;
	}
}

/* Return: the time-out of the call, ns, or -1: none. */
static s64 wait_timeout(struct mattx_regs *regs)
{
	const u64 *arg = timespec_arg(regs, regs->orig_ax);
	struct __kernel_timespec ts;

	if (regs->orig_ax == __NR_epoll_wait || regs->orig_ax == __NR_epoll_pwait)
		return (s32)regs->r10 < 0 ? -1 :
					    (s32)regs->r10 * (s64)NSEC_PER_MSEC;
	if (!arg || !*arg ||
	    copy_from_user(&ts, (void __user *)(unsigned long)*arg, sizeof(ts)))
		return -1;
	if (ts.tv_sec < 0 || ts.tv_sec > KTIME_SEC_MAX)
		return -1;
	return ts.tv_sec * NSEC_PER_SEC +
	       ts.tv_nsec * (regs->orig_ax == __NR_select ? NSEC_PER_USEC : 1);
}

/* For how long the thread had waited when it was frozen, ns, or 0: not known. */
static s64 has_slept(const struct mattx_thread *thread)
{
	s64 now = sched_clock_cpu(raw_smp_processor_id());

	if (!thread->asleep_since)
		return 0;
	return max_t(s64, now - thread->asleep_since, 0);
}

/* regs->ax is -ERESTARTNOHAND: a wait with a time-out goes on for its rest. */
static void capture_wait(struct mattx_thread *thread)
{
	struct mattx_regs *regs = &thread->state.regs;
	struct mattx_restart *r = &thread->state.restart;
	s64 left;

	if (!is_wait(regs->orig_ax))
		return;
	left = wait_timeout(regs);
	if (left < 0)
		return;
	if (!tells_rest(regs->orig_ax))
		left = max_t(s64, left - has_slept(thread), 0);
	r->kind = MATTX_RESTART_WAIT;
	r->val = regs->orig_ax;
	r->flags = 1;
	r->time = ktime_get_ns() + clock_offset(CLOCK_MONOTONIC) + left;
	regs->ax = -ERESTART_RESTARTBLOCK;
}

#define RED_ZONE 128 /* bytes below the stack pointer that are the program's */

/* The call with another timespec, which lies where a signal frame would begin. */
static void rewind_timespec(struct mattx_regs *regs, u32 nr, s64 left)
{
	unsigned long at =
		(regs->sp - RED_ZONE - sizeof(struct __kernel_timespec)) & ~15UL;
	u64 *arg = timespec_arg(regs, nr);
	struct __kernel_timespec ts;
	u32 rest;

	ts.tv_sec = div_u64_rem(max_t(s64, left, 0), NSEC_PER_SEC, &rest);
	ts.tv_nsec = rest;
	regs->orig_ax = nr;
	regs->ax = -ERESTARTNOHAND;
	if (!copy_to_user((void __user *)at, &ts, sizeof(ts)))
		*arg = at;
}

/* Makes the call itself of it, for the time that is left. */
static void apply_wait(struct mattx_thread *thread)
{
	const struct mattx_restart *r = &thread->state.restart;
	s64 left = r->time - clock_offset(CLOCK_MONOTONIC) - ktime_get_ns();

	if (r->val == __NR_rt_sigtimedwait || r->val == __NR_semtimedop)
		rewind_timespec(&thread->state.regs, r->val, left);
	else
		mattx_wait_rewind(&thread->state.regs, r->val, left);
}

/**
 * mattx_restart_resume() - a thaw: current's own restart block again
 * Context: the thread itself, before it takes the registers.
 */
void mattx_restart_resume(struct mattx_thread *thread)
{
	current->restart_block = thread->restart;
	if ((s64)thread->state.regs.ax == -ERESTART_RESTARTBLOCK &&
	    thread->state.restart.kind == MATTX_RESTART_WAIT &&
	    thread->restart.fn != mattx_wait_restart)
		apply_wait(thread);
}

/**
 * mattx_restart_capture() - record current's restart block in thread->state
 * Context: the thread itself, when it comes to the park.
 */
void mattx_restart_capture(struct mattx_thread *thread)
{
	struct restart_block *block = &current->restart_block;
	struct mattx_restart *r = &thread->state.restart;

	memset(r, 0, sizeof(*r));
	thread->restart = *block;
	if ((s64)thread->state.regs.ax == -ERESTARTNOHAND) {
		capture_wait(thread);
		return;
	}
	r->kind = kind_of(block->fn);
	switch (r->kind) {
	case MATTX_RESTART_FUTEX:
		capture_futex(r, block);
		break;
	case MATTX_RESTART_POLL:
	case MATTX_RESTART_WAIT:
		r->addr = (unsigned long)block->poll.ufds;
		r->val = block->poll.nfds;
		r->flags = block->poll.has_timeout;
		if (block->poll.has_timeout)
			r->time = mattx_poll_end(block) +
				  clock_offset(CLOCK_MONOTONIC);
		break;
	case MATTX_RESTART_NANOSLEEP:
	case MATTX_RESTART_ALARM:
	case MATTX_RESTART_CPU:
		r->val = block->nanosleep.clockid;
		r->rmtp_type = block->nanosleep.type;
		r->addr = (unsigned long)block->nanosleep.rmtp;
		r->time = block->nanosleep.expires +
			  clock_offset(block->nanosleep.clockid);
		break;
	}
}

/**
 * mattx_restart_apply() - make thread->state's restart block current's
 *
 * May change thread->state.regs: the kernel knows no restart of epoll_wait(), so
 * that one becomes the call itself, for the time that is left.
 * Context: the thread itself, before it takes the registers.
 */
void mattx_restart_apply(struct mattx_thread *thread)
{
	struct restart_block *block = &current->restart_block;
	const struct mattx_restart *r = &thread->state.restart;
	s64 time;

	if ((s64)thread->state.regs.ax != -ERESTART_RESTARTBLOCK)
		return;
	switch (r->kind) {
	case MATTX_RESTART_WAIT:
		apply_wait(thread);
		return;
	case MATTX_RESTART_FUTEX:
		apply_futex(r, block);
		break;
	case MATTX_RESTART_POLL:
		block->poll.ufds = (struct pollfd __user *)(unsigned long)r->addr;
		block->poll.nfds = r->val;
		block->poll.has_timeout = r->flags & 1;
		time = max_t(s64, r->time - clock_offset(CLOCK_MONOTONIC), 0);
		mattx_poll_set_end(block, time);
		break;
	case MATTX_RESTART_NANOSLEEP:
	case MATTX_RESTART_ALARM:
	case MATTX_RESTART_CPU:
		block->nanosleep.clockid = r->val;
		block->nanosleep.type = r->rmtp_type;
		block->nanosleep.rmtp = (void __user *)(unsigned long)r->addr;
		block->nanosleep.expires = r->time - clock_offset(r->val);
		break;
	default:
		return;
	}
	block->fn = fn_of(thread, r->kind);
}
