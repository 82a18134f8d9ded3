// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that a guest creates: fork(), vfork(), posix_spawn().
 *
 * As with threads (thread.c) the deputy clones first, for the number; gang/child.c has the
 * two gangs. Here the child is a child of the warden's, which reaps it; whoever waits for it
 * waits at home, where its deputy ends as it does.
 *
 * A child that shares more with its parent than vfork() does, or shared memory, goes home.
 */
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <uapi/linux/wait.h>
#include <asm/unistd.h>
#include <uapi/linux/sched.h>

#include "gang/gang.h"
#include "ghost/set.h"
#include "wormhole/link.h"
#include "wormhole/protocol.h"
#include "wormhole/rpc.h"
#include "wormhole/special.h"

/* What only concerns its beginning here. */
#define LOCAL_FLAGS \
	(CLONE_VFORK | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | \
	 CLONE_CHILD_CLEARTID | CLONE_DETACHED | CLONE_UNTRACED)

/* What concerns the deputy's, too. */
#define BOTH_FLAGS (CSIGNAL | CLONE_VM | CLONE_CLEAR_SIGHAND)

bool mattx_is_process(u64 flags)
{
	return !(flags & ~(u64)(LOCAL_FLAGS | BOTH_FLAGS)) &&
	       (!(flags & CLONE_VM) || flags & CLONE_VFORK) &&
	       valid_signal(flags & CSIGNAL);
}

bool mattx_refine_process(const u64 *args)
{
	return !(args[0] & ~(u64)BOTH_FLAGS) && valid_signal(args[0] & CSIGNAL) &&
	       !args[1] && !args[2] && !args[3] && !args[4] && args[5];
}

/* The deputy's child. Return: its number, or what the call has to return. */
static long clone_there(struct mattx_thread *thread, u64 flags)
{
	u64 args[6] = { flags & BOTH_FLAGS };
	long ret;

	do {
		/* both processes will have the table that they are in */
		ret = mattx_sets_give_all(thread);
		if (!ret)
			ret = mattx_child_expect(thread, 0, flags);
		if (ret)
			return ret == -ENOMEM ? -EAGAIN : ret;
		args[5] = thread->child->id;
		ret = mattx_call_firm(thread, __NR_clone,
				      mattx_call_entry(__NR_clone), args, NULL);
		if (ret <= 0)
			mattx_child_settle(thread);
		/* another thread has had a set taken over meanwhile */
	} while (ret == -EBUSY && !fatal_signal_pending(current));
	return ret;
}

/* It has its deputy by now, so it is not put off for a signal. Return: as clone(2). */
static long clone_here(struct mattx_thread *thread,
		       const struct mattx_clone *clone)
{
	struct pt_regs regs = *current_pt_regs();
	sigset_t all;
	long ret;

	regs.orig_ax = __NR_clone;
	regs.di = (clone->flags & LOCAL_FLAGS) | (clone->flags & CLONE_VM) |
		  CLONE_PARENT | (clone->flags & CSIGNAL);
	regs.si = clone->stack;
	regs.dx = clone->parent_tid;
	regs.r10 = clone->child_tid;
	regs.r8 = clone->tls;
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	thread->child->blocked = current->blocked;
	sigprocmask(SIG_SETMASK, &all, &all);
	ret = mattx_call_here(__NR_clone, &regs);
	sigprocmask(SIG_SETMASK, &all, NULL);
	return ret;
}

/* The deputy's child ends, and nobody but us waits for it. */
static void unborn(struct mattx_thread *thread, u64 id, s32 pid)
{
	const u64 args[6] = { pid, 0, __WALL };
	struct mattx_frame_exit frame = { .tid = cpu_to_le32(pid) };

	mattx_link_send(thread->gang->peer, MATTX_F_GANG_EXIT, id, &frame,
			sizeof(frame), NULL, 0, GFP_KERNEL | __GFP_NOFAIL);
	mattx_call_firm(thread, __NR_wait4, mattx_call_entry(__NR_wait4), args,
			NULL);
}

long mattx_clone_process(struct mattx_thread *thread, u32 nr,
			 const struct mattx_clone *clone)
{
	long pid, ret;
	u64 id;

	if (!mattx_is_process(clone->flags))
		return mattx_go_home(thread, nr, "a process of this kind");
	if (thread->gang->shares)
		return mattx_go_home(thread, nr, "it has shared memory");
	if (signal_pending(current))
		return -ERESTARTNOINTR;
	pid = clone_there(thread, clone->flags);
	if (pid <= 0)
		return pid;
	id = thread->child->id;
	ret = mattx_guest_next_tid(thread->gang, pid);
	if (ret) {
		mattx_child_settle(thread);
	} else {
		/* it lets others clone when it is born, which may be long before this ends */
		ret = clone_here(thread, clone);
		if (mattx_child_settle(thread))
			return ret;
		mattx_guest_cloned(thread->gang);
	}
	unborn(thread, id, pid);
	return ret;
}

MATTX_HANDLER(mattx_do_fork)
{
	const struct mattx_clone clone = { .flags = SIGCHLD };

	return mattx_clone_process(thread, __NR_fork, &clone);
}

MATTX_HANDLER(mattx_do_vfork)
{
	const struct mattx_clone clone = {
		.flags = SIGCHLD | CLONE_VM | CLONE_VFORK,
	};

	return mattx_clone_process(thread, __NR_vfork, &clone);
}
