// SPDX-License-Identifier: GPL-2.0
/*
 * Group stops: SIGSTOP, SIGTSTP and SIGCONT of a process that is away or moves.
 *
 * Whether a process is stopped is told by SIGNAL_STOP_STOPPED of its signal_struct,
 * on either side, also while its threads are in the park and none is in TASK_STOPPED:
 * the parent at home sees no difference. Threads that sleep in TASK_STOPPED are woken
 * to come to the park; when they leave it they join the stop again without a word.
 *
 * A guest that was stopped (by whatever signal, on the host or at home) stops its
 * deputy with the same signal, for the parent and the shell to see. The deputy takes
 * that one signal itself; SIGCONT wakes it as any process and is forwarded. A process
 * that leaves stopped says so with its COMMIT; at home the deputy's own state counts.
 */
#include <linux/sched/jobctl.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>
#include "internal.h"
#include "../wormhole/link.h"
#include "../wormhole/protocol.h"

/* A stop that is under way ends by itself, or with the thaw: it counts, too. */
static int signal_of(struct signal_struct *signal)
{
	if (!(READ_ONCE(signal->flags) & SIGNAL_STOP_STOPPED) &&
	    !READ_ONCE(signal->group_stop_count))
		return 0;
	/* a parent that has waited for it has taken the number away */
	return READ_ONCE(signal->group_exit_code) ?: SIGSTOP;
}

/**
 * mattx_stop_signal() - the signal that has stopped the process here
 * Context: any. Return: its number, 0 when the process is not stopped.
 */
int mattx_stop_signal(struct mattx_gang *gang)
{
	struct mattx_thread *thread = mattx_gang_any(gang);
	int sig;

	if (!thread)
		return 0;
	sig = signal_of(thread->task->signal);
	mattx_thread_put(thread);
	return sig;
}

/**
 * mattx_stop_by_terminal() - a stop that a process in an orphaned group does not obey?
 * Context: any.
 */
bool mattx_stop_by_terminal(int sig)
{
	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/**
 * mattx_stop_valid() - is it a signal that stops?
 * Context: any.
 */
bool mattx_stop_valid(u32 sig)
{
	return sig == SIGSTOP || (sig <= _NSIG && mattx_stop_by_terminal(sig));
}

/* Does @task keep its process group from being an orphan? RCU is held. */
static bool keeps(struct task_struct *task)
{
	struct task_struct *parent = rcu_dereference(task->real_parent);

	if ((task->exit_state && thread_group_empty(task)) ||
	    is_global_init(parent))
		return false;
	return task_pgrp(parent) != task_pgrp(task) &&
	       task_session(parent) == task_session(task);
}

/**
 * mattx_stop_orphaned() - is current's process group an orphan (setpgid(2))?
 * Context: any.
 */
bool mattx_stop_orphaned(void)
{
	struct task_struct *task;
	bool orphaned = true;

	rcu_read_lock();
	do_each_pid_task(task_pgrp(current), PIDTYPE_PGID, task)
	{
		if (keeps(task))
			orphaned = false;
	}
	while_each_pid_task(task_pgrp(current), PIDTYPE_PGID, task);
	rcu_read_unlock();
	return orphaned;
}

/* gang->lock is held, and the thread is in its gang's list. */
static void wake_stopped(struct mattx_thread *thread)
{
	struct task_struct *task = thread->task;
	struct wait_queue_entry entry = { .private = task };

	lockdep_assert_held(&thread->gang->lock);
	spin_lock(&mattx_sighand(task)->siglock);
	if (task->jobctl & JOBCTL_STOPPED && !task->ptrace) {
		task->jobctl &= ~JOBCTL_STOPPED;
		default_wake_function(&entry, __TASK_STOPPED, 0, NULL);
	}
	spin_unlock(&mattx_sighand(task)->siglock);
}

/**
 * mattx_stop_wake() - a thread that sleeps in a group stop has something to do
 * Context: any; no lock of the gang's or its threads is held.
 */
void mattx_stop_wake(struct mattx_thread *thread)
{
	unsigned long flags;

	spin_lock_irqsave(&thread->gang->lock, flags);
	if (!list_empty(&thread->node))
		wake_stopped(thread);
	spin_unlock_irqrestore(&thread->gang->lock, flags);
}

/**
 * mattx_stop_wake_all() - the same for all threads of a gang
 * Context: any; no lock of the gang's or its threads is held.
 */
void mattx_stop_wake_all(struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	unsigned long flags;

	spin_lock_irqsave(&gang->lock, flags);
	list_for_each_entry(thread, &gang->threads, node)
		wake_stopped(thread);
	spin_unlock_irqrestore(&gang->lock, flags);
}

/**
 * mattx_stop_join() - current, which leaves the park, is again part of a group stop
 *
 * Nobody is told: the stop is the one that it was in before, not a new one.
 * Context: the thread itself, its signal mask as it is to be.
 */
void mattx_stop_join(void)
{
	struct signal_struct *signal = current->signal;

	spin_lock_irq(&mattx_sighand(current)->siglock);
	if (signal->flags & SIGNAL_STOP_STOPPED &&
	    !(signal->flags & SIGNAL_GROUP_EXIT) &&
	    !(current->jobctl & JOBCTL_STOP_PENDING)) {
		current->jobctl &= ~JOBCTL_STOP_SIGMASK;
		current->jobctl |= JOBCTL_STOP_PENDING | signal_of(signal);
		set_tsk_thread_flag(current, TIF_SIGPENDING);
	}
	spin_unlock_irq(&mattx_sighand(current)->siglock);
}

/**
 * mattx_stop_ended() - has a SIGCONT ended the stop, and the parent is not yet told?
 *
 * That is the signal code's to do, of any thread. Context: the thread itself.
 */
bool mattx_stop_ended(void)
{
	return READ_ONCE(current->signal->flags) & SIGNAL_CLD_MASK;
}

/* ------------------------------------------------------------------- home */

/**
 * mattx_stop_deputy() - the guest has been stopped by @sig
 * Context: process.
 */
void mattx_stop_deputy(struct mattx_gang *gang, u32 sig)
{
	struct mattx_thread *thread;

	if (!mattx_stop_valid(sig))
		return;
	thread = mattx_gang_any(gang);
	if (!thread)
		return;
	gang->stop_sig = sig;
	spin_lock_irq(&thread->lock);
	set_bit(MATTX_T_STOP, &thread->flags);
	mattx_thread_kick(thread);
	spin_unlock_irq(&thread->lock);
	wake_up(&thread->wait);
	mattx_thread_put(thread);
}

/**
 * mattx_stop_end() - the guest goes on
 * Context: process.
 */
void mattx_stop_end(struct mattx_gang *gang)
{
	struct mattx_thread *thread = mattx_gang_any(gang);

	if (!thread)
		return;
	if (READ_ONCE(thread->task->signal->flags) & SIGNAL_STOP_STOPPED)
		send_sig(SIGCONT, thread->task, 1);
	mattx_thread_put(thread);
}

/**
 * mattx_stop_self() - stop this deputy as its guest was
 *
 * The signal is queued and unblocked; the way to the signal code leads through the
 * park's empty call. Context: the thread itself, in the park.
 */
void mattx_stop_self(struct mattx_thread *thread)
{
	int sig = thread->gang->stop_sig;
	sigset_t set;

	clear_bit(MATTX_T_STOP, &thread->flags);
	set_bit(MATTX_T_STOPPING, &thread->flags);
	set = current->blocked;
	sigdelset(&set, sig);
	sigprocmask(SIG_SETMASK, &set, NULL);
	send_sig(sig, current, 1);
}

/**
 * mattx_stop_back() - the thread is back from user mode, where it may have been stopped
 * Context: the thread itself, on its way into the park.
 */
void mattx_stop_back(struct mattx_thread *thread)
{
	sigset_t all;

	if (!test_and_clear_bit(MATTX_T_STOPPING, &thread->flags))
		return;
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

/**
 * mattx_stop_leave() - current leaves the park as a thread of the live copy
 *
 * A deputy whose guest was stopped just before it came home has not stopped yet.
 * Context: the thread itself, its signal mask as it is to be.
 */
void mattx_stop_leave(struct mattx_thread *thread)
{
	if (test_and_clear_bit(MATTX_T_STOP, &thread->flags))
		send_sig(thread->gang->stop_sig, current, 1);
	mattx_stop_join();
}

/* ------------------------------------------------------------------- host */

/**
 * mattx_stop_adopt() - the process that is going to run here is stopped by @sig
 * Context: process; the threads are in the park and are told to leave it after this.
 */
void mattx_stop_adopt(struct mattx_gang *gang, u32 sig)
{
	struct mattx_thread *thread = mattx_gang_any(gang);
	struct signal_struct *signal;

	if (!thread)
		return;
	if (mattx_thread_lock(thread)) {
		signal = thread->task->signal;
		if (!(signal->flags & SIGNAL_GROUP_EXIT)) {
			signal_set_stop_flags(signal, SIGNAL_STOP_STOPPED);
			signal->group_exit_code = sig;
			gang->stop_sig = sig;
		}
		mattx_thread_unlock(thread);
	}
	mattx_thread_put(thread);
}

/**
 * mattx_stop_changed() - has the guest been stopped or continued since the last report?
 * Context: any.
 */
bool mattx_stop_changed(struct mattx_gang *gang)
{
	return mattx_stop_signal(gang) != READ_ONCE(gang->stop_sig);
}

/**
 * mattx_stop_report() - tell home whether the guest is stopped, if it does not know
 * Context: process; may sleep, not on the network.
 */
void mattx_stop_report(struct mattx_gang *gang)
{
	struct mattx_frame_exit frame = {};
	int sig;

	mutex_lock(&gang->stop_lock);
	sig = mattx_stop_signal(gang);
	if (sig != gang->stop_sig && !gang->silent) {
		WRITE_ONCE(gang->stop_sig, sig);
		frame.tid = cpu_to_le32(gang->tgid);
		frame.code = cpu_to_le32(sig);
		mattx_link_send(gang->peer,
				sig ? MATTX_F_STOPPED : MATTX_F_CONTINUED,
				gang->id, &frame, sizeof(frame), NULL, 0,
				GFP_KERNEL | __GFP_NOFAIL);
	}
	mutex_unlock(&gang->stop_lock);
}
