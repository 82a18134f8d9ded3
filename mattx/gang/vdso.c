// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that a freeze finds inside the vdso.
 *
 * The vdso reads the kernel's clock data from pages next to it, and in a time
 * namespace, where a guest is, others of them count than outside. A thread that went
 * on at home in the middle of a reading that it began as a guest would look at a page
 * that is not there, and get SIGBUS. So it leaves the vdso first: it is stepped, by
 * the trap flag, until it is out, which takes some dozens of instructions, and then
 * comes to the park. Signals wait that long; one that cannot (its own fault) ends the
 * stepping before its handler's frame is made.
 */
#include <linux/kdebug.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/task_work.h>
#include <asm/debugreg.h>
#include <asm/vdso.h>
#include "internal.h"
#include "../compat.h"

static bool in_vdso(unsigned long ip)
{
	const struct vdso_image *image = current->mm->context.vdso_image;
	unsigned long base = (unsigned long)current->mm->context.vdso;

	return base && image && ip - base < image->size;
}

/**
 * mattx_vdso_step() - does current have to leave the vdso before it parks?
 *
 * Then it is told to step and goes on; its park work is queued again when it is out.
 * A thread that is being stepped already, by whomever, parks where it is.
 * Context: the thread itself, at the boundary to user mode.
 */
bool mattx_vdso_step(struct mattx_thread *thread)
{
	struct pt_regs *regs = task_pt_regs(current);
	sigset_t wait;

	if (test_and_clear_bit(MATTX_T_STEP, &thread->flags))
		sigprocmask(SIG_SETMASK, &thread->step_mask, NULL);
	if (test_bit(MATTX_T_BODY, &thread->flags) ||
	    test_bit(MATTX_T_FATAL, &thread->flags) || !in_vdso(regs->ip) ||
	    test_thread_flag(TIF_SINGLESTEP) || regs->flags & X86_EFLAGS_TF)
		return false;
	siginitsetinv(&wait, sigmask(SIGKILL) | sigmask(SIGSEGV) |
				     sigmask(SIGBUS) | sigmask(SIGILL) |
				     sigmask(SIGFPE) | sigmask(SIGTRAP) |
				     sigmask(SIGSYS));
	sigorsets(&wait, &wait, &current->blocked);
	sigprocmask(SIG_SETMASK, &wait, &thread->step_mask);
	regs->flags |= X86_EFLAGS_TF;
	set_bit(MATTX_T_STEP, &thread->flags);
	return true;
}

/**
 * mattx_vdso_trap() - a debug trap of user mode: is it a step of ours?
 * Context: die notifier, IRQs off, @thread is current's. Return: whether it is.
 */
bool mattx_vdso_trap(struct mattx_thread *thread, struct pt_regs *regs,
		     unsigned long dr6)
{
	if (!(dr6 & DR_STEP) || !test_bit(MATTX_T_STEP, &thread->flags))
		return false;
	if (in_vdso(regs->ip))
		return true;
	regs->flags &= ~X86_EFLAGS_TF;
	mattx_thread_hold(thread);
	if (task_work_add(current, &thread->work, TWA_RESUME))
		mattx_thread_put(thread);
	return true;
}

/**
 * mattx_vdso_signal() - current takes a signal while it is being stepped
 * Context: the tracepoint signal_deliver; siglock is held, IRQs are off.
 */
void mattx_vdso_signal(struct mattx_thread *thread)
{
	if (!test_and_clear_bit(MATTX_T_STEP, &thread->flags))
		return;
	task_pt_regs(current)->flags &= ~X86_EFLAGS_TF;
	current->blocked = thread->step_mask;
	recalc_sigpending();
	mattx_thread_hold(thread);
	if (task_work_add(current, &thread->work, TWA_SIGNAL))
		mattx_thread_put(thread);
}
