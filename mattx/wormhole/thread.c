// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that a guest creates.
 *
 * A thread's number comes from home: the deputy's thread really clones one there, which
 * goes to the park at once and is the new thread's deputy. Then the guest's thread
 * clones here, with the program's own arguments, and the next number that the guest's
 * PID namespace gives out is that one. Everything else of clone() is the kernel's.
 *
 * A process is made in the same way: process.c. Whatever is neither (a new namespace, a
 * pidfd) goes home.
 */
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/uaccess.h>
#include <asm/ptrace.h>
#include <asm/unistd.h>

#include "gang/gang.h"
#include "wormhole/rpc.h"
#include "wormhole/special.h"

/* What makes a thread a thread of its process. */
#define THREAD_FLAGS \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
	 CLONE_SYSVSEM)

/* What only concerns its beginning and its end here. */
#define LOCAL_FLAGS \
	(CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | \
	 CLONE_CHILD_CLEARTID | CLONE_DETACHED)

static bool is_thread(u64 flags)
{
	return (flags & ~(LOCAL_FLAGS | CLONE_SYSVSEM)) ==
	       (THREAD_FLAGS & ~CLONE_SYSVSEM);
}

/* A deputy clones nothing else, whatever the host asks for. */
bool mattx_refine_clone(const u64 *args, struct mattx_arg *arg)
{
	if (!(args[0] & CLONE_THREAD))
		return mattx_refine_process(args);
	return args[0] == THREAD_FLAGS && !args[1] && !args[2] && !args[3] &&
	       !args[4];
}

static long clone_thread(struct mattx_thread *thread, const struct pt_regs *regs)
{
	const u64 args[6] = { THREAD_FLAGS };
	long tid, ret;

	if (thread->gang->lender)
		return mattx_go_home(thread, regs->orig_ax,
				     "a thread in vfork()'s child");
	tid = mattx_call_firm(thread, __NR_clone, mattx_call_entry(__NR_clone),
			      args, NULL);
	if (tid <= 0)
		return tid;
	ret = mattx_guest_next_tid(thread->gang, tid);
	if (!ret) {
		ret = mattx_call_here(regs->orig_ax, regs);
		mattx_guest_cloned(thread->gang);
	}
	if (ret < 0)
		mattx_guest_unborn(thread->gang, tid);
	return ret;
}

MATTX_HANDLER(mattx_do_clone)
{
	const struct mattx_clone clone = {
		.flags = (u32)regs->di,
		.stack = regs->si,
		.parent_tid = regs->dx,
		.child_tid = regs->r10,
		.tls = regs->r8,
	};

	if (!is_thread(regs->di))
		return mattx_clone_process(thread, __NR_clone, &clone);
	return clone_thread(thread, regs);
}

MATTX_HANDLER(mattx_do_clone3)
{
	struct mattx_clone clone;
	struct clone_args args;
	int err;

	if (regs->si < CLONE_ARGS_SIZE_VER0)
		return -EINVAL;
	err = copy_struct_from_user(&args, sizeof(args),
				    (void __user *)regs->di, regs->si);
	if (err)
		return err;
	if (args.flags & CSIGNAL & ~CLONE_NEWTIME ||
	    args.exit_signal & ~(u64)CSIGNAL || !args.stack != !args.stack_size)
		return -EINVAL;
	if (args.set_tid_size)
		return mattx_go_home(thread, __NR_clone3, "a number of its own");
	if (is_thread(args.flags))
		return clone_thread(thread, regs);
	clone = (struct mattx_clone){
		.flags = args.flags | args.exit_signal,
		.stack = args.stack + args.stack_size,
		.parent_tid = args.parent_tid,
		.child_tid = args.child_tid,
		.tls = args.tls,
	};
	return mattx_clone_process(thread, __NR_clone3, &clone);
}
