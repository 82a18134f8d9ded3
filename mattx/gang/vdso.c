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
 *
 * The frame of a handler must not lead a guest back into the vdso either: the handler
 * may still run when it goes home. A signal that is delivered there is held: as soon
 * as the kernel has made the frame, it is undone as by the handler's return, the
 * thread is stepped out of the vdso, and there it takes the signal again.
 */
#include <linux/kdebug.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>
#include <asm/debugreg.h>
#include <asm/sigframe.h>
#include <asm/vdso.h>
#include "internal.h"
#include "../compat.h"

/* Signals of the thread's own making, and the one that nobody can put off. */
#define CANNOT_WAIT \
	(sigmask(SIGKILL) | sigmask(SIGSEGV) | sigmask(SIGBUS) | \
	 sigmask(SIGILL) | sigmask(SIGFPE) | sigmask(SIGTRAP) | sigmask(SIGSYS))

static bool in_vdso(unsigned long ip)
{
	const struct vdso_image *image = current->mm->context.vdso_image;
	unsigned long base = (unsigned long)current->mm->context.vdso;

	return base && image && ip - base < image->size;
}

/* All that can wait until the thread is out, and what is blocked anyway. */
static void mask_stepping(sigset_t *wait, const sigset_t *blocked)
{
	siginitsetinv(wait, CANNOT_WAIT);
	sigorsets(wait, wait, blocked);
}

static void add_work(struct mattx_thread *thread, struct callback_head *work,
		     enum task_work_notify_mode how)
{
	mattx_thread_hold(thread);
	if (task_work_add(current, work, how))
		mattx_thread_put(thread);
}

/* What is next for a thread that is out of the vdso. */
static struct callback_head *next_work(struct mattx_thread *thread)
{
	return test_bit(MATTX_T_HELD, &thread->flags) ? &thread->held_work :
							&thread->work;
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

	if (test_bit(MATTX_T_HELD, &thread->flags)) {
		set_bit(MATTX_T_WANTED, &thread->flags);
		return true;
	}
	if (test_and_clear_bit(MATTX_T_STEP, &thread->flags))
		sigprocmask(SIG_SETMASK, &thread->step_mask, NULL);
	if (test_bit(MATTX_T_BODY, &thread->flags) ||
	    test_bit(MATTX_T_FATAL, &thread->flags) || !in_vdso(regs->ip) ||
	    test_thread_flag(TIF_SINGLESTEP) || regs->flags & X86_EFLAGS_TF)
		return false;
	mask_stepping(&wait, &current->blocked);
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
	add_work(thread, next_work(thread), TWA_RESUME);
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
	add_work(thread, next_work(thread), TWA_SIGNAL);
}

/**
 * mattx_vdso_hold() - current is about to make a frame for a signal's handler
 * Context: the tracepoint signal_deliver; siglock is held, IRQs are off.
 */
void mattx_vdso_hold(struct mattx_thread *thread, int sig,
		     const struct kernel_siginfo *info,
		     const struct k_sigaction *ka)
{
	struct pt_regs *regs = task_pt_regs(current);

	if (mattx_caller(&thread) != MATTX_IS_GUEST || !in_vdso(regs->ip) ||
	    ka->sa.sa_handler == SIG_DFL || ka->sa.sa_handler == SIG_IGN ||
	    siginmask(sig, CANNOT_WAIT) || regs->flags & X86_EFLAGS_TF ||
	    test_and_set_bit(MATTX_T_HELD, &thread->flags))
		return;
	thread->held = *info;
	thread->held_handler =
		ka->sa.sa_flags & SA_RESETHAND ? ka->sa.sa_handler : NULL;
	add_work(thread, &thread->held_work, TWA_SIGNAL);
}

/* The handler is about to begin. Return: whether it has been made to return. */
static bool undo_frame(struct mattx_thread *thread)
{
	struct pt_regs *regs = task_pt_regs(current);
	struct rt_sigframe __user *frame = (void __user *)regs->sp;
	unsigned long ip, flags, restorer;
	sigset_t wait;

	if (get_user(ip, &frame->uc.uc_mcontext.ip) || !in_vdso(ip) ||
	    get_user(flags, &frame->uc.uc_mcontext.flags) ||
	    get_user(restorer, (unsigned long __user *)&frame->pretcode) ||
	    copy_from_user(&thread->step_mask, &frame->uc.uc_sigmask,
			   sizeof(sigset_t)))
		return false;
	mask_stepping(&wait, &thread->step_mask);
	if (put_user(flags | X86_EFLAGS_TF, &frame->uc.uc_mcontext.flags) ||
	    copy_to_user(&frame->uc.uc_sigmask, &wait, sizeof(wait)))
		return false;
	sigprocmask(SIG_SETMASK, &wait, NULL);
	set_bit(MATTX_T_STEP, &thread->flags);
	set_bit(MATTX_T_UNDONE, &thread->flags);
	regs->ip = restorer;
	regs->sp += sizeof(frame->pretcode);
	return true;
}

static void restore_handler(struct mattx_thread *thread)
{
	struct k_sigaction *ka;

	spin_lock_irq(&mattx_sighand(current)->siglock);
	ka = &mattx_sighand(current)->action[thread->held.si_signo - 1];
	if (thread->held_handler && ka->sa.sa_handler == SIG_DFL)
		ka->sa.sa_handler = thread->held_handler;
	spin_unlock_irq(&mattx_sighand(current)->siglock);
}

/* As the first of its number, which it was. */
static void send_held(struct mattx_thread *thread)
{
	struct list_head *list = &current->pending.list;
	struct sigqueue *last;

	if (send_sig_info(thread->held.si_signo, &thread->held, current))
		return;
	spin_lock_irq(&mattx_sighand(current)->siglock);
	if (!list_empty(list)) {
		last = list_last_entry(list, struct sigqueue, list);
		if (last->info.si_signo == thread->held.si_signo)
			list_move(&last->list, list);
	}
	spin_unlock_irq(&mattx_sighand(current)->siglock);
}

/* Context: the thread itself, at the boundary to user mode. */
void mattx_vdso_held_work(struct callback_head *work)
{
	struct mattx_thread *thread =
		container_of(work, struct mattx_thread, held_work);

	if (!test_bit(MATTX_T_UNDONE, &thread->flags) &&
	    !(current->flags & PF_EXITING) && undo_frame(thread)) {
		restore_handler(thread);
		mattx_thread_put(thread);
		return;
	}
	if (test_and_clear_bit(MATTX_T_STEP, &thread->flags))
		sigprocmask(SIG_SETMASK, &thread->step_mask, NULL);
	if (test_and_clear_bit(MATTX_T_UNDONE, &thread->flags) &&
	    !(current->flags & PF_EXITING))
		send_held(thread);
	clear_bit(MATTX_T_HELD, &thread->flags);
	if (test_and_clear_bit(MATTX_T_WANTED, &thread->flags))
		add_work(thread, &thread->work, TWA_RESUME);
	mattx_thread_put(thread);
}
