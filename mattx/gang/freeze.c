// SPDX-License-Identifier: GPL-2.0
/*
 * Bringing all threads of a process into the park, and letting them go.
 *
 * Works are queued for every thread that is not known yet until a pass over the
 * process finds none: a thread that was cloned meanwhile is found by the next
 * pass, and a thread that is parked clones nothing. A work that was queued cannot
 * be taken back; after a freeze that failed it finds MATTX_THAW as its order and
 * the thread goes on at once.
 */
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include "internal.h"
#include "../compat.h"
#include "../fault.h"
#include "../main.h"

#define LOOK_AGAIN    (HZ / 20)
#define LEAVE_TIMEOUT (20 * HZ) /* the waker takes half of it at most */

static __printf(2, 3) void say(char *cause, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vscnprintf(cause, MATTX_CAUSE_MAX, fmt, args);
	va_end(args);
}

/* May this process be a gang? Called with RCU held. */
static int may_freeze(struct task_struct *leader, char *cause)
{
	if (leader->flags & PF_KTHREAD) {
		say(cause, "is a kernel thread");
		return -EPERM;
	}
	if (is_global_init(leader)) {
		say(cause, "is init");
		return -EPERM;
	}
	if (same_thread_group(leader, current)) {
		say(cause, "is mattxd itself");
		return -EPERM;
	}
	if (leader->flags & PF_EXITING || leader->exit_state) {
		say(cause, "its first thread has ended");
		return -ESRCH;
	}
	return 0;
}

/* Is the gang of this thread one that dissolves? Then its threads will be nobody's. */
static bool dissolves(struct mattx_thread *thread)
{
	return thread->gang->role == MATTX_ROLE_HOME &&
	       READ_ONCE(thread->order) != MATTX_STAY;
}

/* A thread that has just arrived was QUEUED until it was BODY: arrive(). */
static bool to_be_queued(struct mattx_thread *thread)
{
	if (test_bit(MATTX_T_BODY, &thread->flags) ||
	    test_and_set_bit(MATTX_T_QUEUED, &thread->flags))
		return false;
	if (!test_bit(MATTX_T_BODY, &thread->flags))
		return true;
	clear_bit(MATTX_T_QUEUED, &thread->flags);
	return false;
}

/*
 * A gang of this process that has come home and is still being woken: its threads are left
 * alone until all of them have gone. Return: with a reference, or NULL. RCU is held.
 */
static struct mattx_gang *dissolving(struct task_struct *leader)
{
	struct mattx_thread *thread;
	struct task_struct *task;

	for_each_thread(leader, task) {
		thread = mattx_thread_find(task);
		if (thread && dissolves(thread))
			return mattx_gang_hold(thread->gang);
	}
	return NULL;
}

/*
 * Queues the park for threads that are not in it or on their way to it.
 * Return: how many were new, or a negative errno; -EAGAIN: @other, with a
 * reference, has to dissolve first.
 */
static int freeze_pass(struct mattx_gang *gang, struct task_struct *leader,
		       struct mattx_gang **other, char *cause)
{
	struct mattx_thread *thread;
	struct task_struct *task;
	int new = 0, err = 0;

	rcu_read_lock();
	if (gang->role == MATTX_ROLE_HOME && !gang->nr_threads) {
		*other = dissolving(leader);
		if (*other) {
			rcu_read_unlock();
			return -EAGAIN;
		}
	}
	for_each_thread(leader, task) {
		if (task->flags & PF_EXITING || task->exit_state)
			continue;
		if (task->ptrace) {
			say(cause, "thread %d is being traced",
			    task_pid_nr(task));
			err = -EBUSY;
			break;
		}
		thread = mattx_thread_find(task);
		if (thread && thread->gang != gang && dissolves(thread)) {
			*other = mattx_gang_hold(thread->gang);
			err = -EAGAIN;
			break;
		}
		if (thread && thread->gang != gang) {
			say(cause, "is already on its way");
			err = -EBUSY;
			break;
		}
		if (!thread)
			thread = mattx_thread_add(gang, task, GFP_ATOMIC);
		if (IS_ERR(thread)) {
			new ++; /* just cloned: look again */
			continue;
		}
		if (!thread) {
			say(cause, "no memory");
			err = -ENOMEM;
			break;
		}
		if (!to_be_queued(thread))
			continue;
		new ++;
		/* an order of an earlier freeze that did not reach it is void */
		spin_lock_irq(&thread->lock);
		thread->order = MATTX_STAY;
		spin_unlock_irq(&thread->lock);
		thread->asleep_since = mattx_asleep_since(task);
		mattx_thread_hold(thread);
		if (task_work_add(task, &thread->work, TWA_SIGNAL)) {
			/* it exits: the tracepoint removes it, or has already run */
			clear_bit(MATTX_T_QUEUED, &thread->flags);
			mattx_thread_remove(thread);
			mattx_thread_put(thread);
		}
	}
	rcu_read_unlock();
	return err ?: new;
}

/* Waits for an earlier gang of the process to be gone. */
static long wait_dissolved(struct mattx_gang *other, long left)
{
	if (left > 0)
		left = wait_event_killable_timeout(
			other->wait, !READ_ONCE(other->nr_threads), left);
	mattx_gang_put(other);
	return left;
}

/*
 * Leaving the park ends under thread->lock, so that a thread is seen in it, with its
 * order, or out of it.
 */
static bool is_in_park(struct mattx_thread *thread, bool *leaves)
{
	bool in;

	lockdep_assert_held(&thread->gang->lock);
	spin_lock(&thread->lock);
	in = test_bit(MATTX_T_PARKED, &thread->flags);
	*leaves = test_bit(MATTX_T_BODY, &thread->flags) &&
		  thread->order != MATTX_STAY;
	spin_unlock(&thread->lock);
	return in;
}

static bool all_left(struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	bool all, leaves;

	spin_lock_irq(&gang->lock);
	all = gang->awake || !gang->nr_threads;
	list_for_each_entry(thread, &gang->threads, node) {
		is_in_park(thread, &leaves);
		all = all && !leaves;
	}
	spin_unlock_irq(&gang->lock);
	return all;
}

/**
 * mattx_gang_await_left() - until every thread of a guest has left the park
 *
 * One that has just come, or was thawed, is in the park until then: as it stands there
 * it is not frozen, nor has it its place in a futex's queue again.
 * Context: process, gang->door held; sleeps, killable.
 * Return: 0; -ETIMEDOUT, -EINTR, and @cause says why.
 */
int mattx_gang_await_left(struct mattx_gang *gang, char *cause)
{
	long left = wait_event_killable_timeout(gang->wait, all_left(gang),
						LEAVE_TIMEOUT);

	if (left > 0)
		return 0;
	say(cause, left ? "mattxd was killed" : "is still being woken");
	return left ? -EINTR : -ETIMEDOUT;
}

static bool all_parked(struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	bool all = true, leaves;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node) {
		/* one that a freeze which failed has called leaves, and is called again */
		all = is_in_park(thread, &leaves) && !leaves;
		if (!all)
			break;
	}
	spin_unlock_irq(&gang->lock);
	return all;
}

/*
 * Waits until all are parked, but not for long: a thread that a guest's thread has just
 * cloned is a member, but nothing may have been queued for it yet; and one on its way into
 * a group stop does not see what is, and nobody is told when it has fallen asleep there.
 * Return: jiffies that are left of @left, 0 or less: none, or killed.
 */
static long await_parked(struct mattx_gang *gang, long left)
{
	long slice = min_t(long, left, LOOK_AGAIN), rest;

	mattx_stop_wake_all(gang);
	rest = wait_event_killable_timeout(gang->wait, all_parked(gang), slice);
	return rest < 0 ? rest : left - slice + rest;
}

/* Names the first thread that did not come. */
static void say_missing(struct mattx_gang *gang, char *cause)
{
	struct mattx_thread *thread;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node) {
		if (test_bit(MATTX_T_PARKED, &thread->flags))
			continue;
		say(cause, "thread %d (%s) cannot be frozen: state %c",
		    thread->tid, thread->task->comm,
		    task_state_to_char(thread->task));
		break;
	}
	spin_unlock_irq(&gang->lock);
}

static void give_order(struct mattx_gang *gang, enum mattx_order order)
{
	struct mattx_thread *thread;

	lockdep_assert_held(&gang->lock);
	atomic_set(&gang->sleepers, gang->nr_threads);
	list_for_each_entry(thread, &gang->threads, node) {
		spin_lock(&thread->lock);
		thread->order = order;
		spin_unlock(&thread->lock);
		wake_up(&thread->wait);
	}
}

/**
 * mattx_gang_order() - tell every parked thread what to do
 * Context: any.
 */
void mattx_gang_order(struct mattx_gang *gang, enum mattx_order order)
{
	unsigned long flags;

	spin_lock_irqsave(&gang->lock, flags);
	give_order(gang, order);
	spin_unlock_irqrestore(&gang->lock, flags);
	mattx_stop_wake_all(gang);
}

/**
 * mattx_gang_freeze() - bring every thread into the park
 * @gang: in FREEZING
 * @pid: the process
 * @timeout_ms: how long to wait for threads that cannot come
 * @cause: why not, MATTX_CAUSE_MAX bytes
 *
 * Context: process, gang->door held; sleeps, killable. Return: 0, and the gang is
 * FROZEN; or a negative errno, and every thread runs on or will do so at once.
 */
int mattx_gang_freeze(struct mattx_gang *gang, struct pid *pid,
		      unsigned int timeout_ms, char *cause)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	struct task_struct *leader = get_pid_task(pid, PIDTYPE_TGID);
	struct mattx_gang *other;
	long left;
	int err;

	if (!leader) {
		say(cause, "no such process");
		return -ESRCH;
	}
	rcu_read_lock();
	err = may_freeze(leader, cause);
	rcu_read_unlock();
	while (!err) {
		left = (long)(deadline - jiffies);
		err = freeze_pass(gang, leader, &other, cause);
		if (err == -EAGAIN) {
			left = wait_dissolved(other, left);
			err = left > 0 ? 0 : left ? -EINTR : -ETIMEDOUT;
			if (err)
				say(cause,
				    "is still coming out of an earlier freeze");
			continue;
		}
		if (err < 0)
			break;
		if (!err && all_parked(gang))
			break;
		if (mattx_fault(MATTX_FAULT_FREEZE)) {
			say(cause, "fault point %d", MATTX_FAULT_FREEZE);
			err = -EIO;
			break;
		}
		if (left > 0)
			left = await_parked(gang, left);
		if (left <= 0) {
			if (left == 0)
				say_missing(gang, cause);
			else
				say(cause, "mattxd was killed");
			err = left ? -EINTR : -ETIMEDOUT;
			break;
		}
		err = 0;
	}
	if (!err && !gang->nr_threads) {
		say(cause, "has ended");
		err = -ESRCH;
	}
	if (!err)
		mattx_waker_order(gang);
	if (!err &&
	    !mattx_gang_change(gang, MATTX_GANG_FREEZING, MATTX_GANG_FROZEN))
		err = -ESRCH;
	put_task_struct(leader);
	return err;
}

static bool may_thaw(enum mattx_gang_state state)
{
	return state == MATTX_GANG_FROZEN || state == MATTX_GANG_FREEZING ||
	       state == MATTX_GANG_COMMITTING;
}

/* At once a guest again and told so: who freezes it then waits until it has left. */
static bool thaw_guest(struct mattx_gang *gang)
{
	unsigned long flags;
	bool may;

	spin_lock_irqsave(&gang->lock, flags);
	may = may_thaw(gang->state);
	if (may) {
		gang->state = MATTX_GANG_GUEST;
		give_order(gang, MATTX_THAW);
	}
	spin_unlock_irqrestore(&gang->lock, flags);
	if (may) {
		mattx_gang_wake(gang);
		mattx_stop_wake_all(gang);
	}
	return may;
}

/**
 * mattx_gang_thaw() - let a frozen gang go on where it was
 *
 * At home the gang dissolves; on the host it is a guest again.
 * Context: process. Return: 0, or -EINVAL when it is not frozen.
 */
int mattx_gang_thaw(struct mattx_gang *gang)
{
	if (gang->role == MATTX_ROLE_HOST) {
		if (!thaw_guest(gang))
			return -EINVAL;
	} else {
		if (!may_thaw(READ_ONCE(gang->state)))
			return -EINVAL;
		mattx_guard_release(gang);
		mattx_gang_order(gang, MATTX_THAW);
	}
	mattx_signal_release(gang);
	return 0;
}

/**
 * mattx_gang_kill() - end the process, whatever it does
 * Context: any.
 */
void mattx_gang_kill(struct mattx_gang *gang)
{
	struct mattx_thread *thread;

	if (!READ_ONCE(gang->nr_threads)) /* perhaps not born yet: see child.c */
		mattx_gang_set_state(gang, MATTX_GANG_DEAD);
	thread = mattx_gang_any(gang);
	if (!thread)
		return;
	send_sig(SIGKILL, thread->task, 1);
	mattx_thread_put(thread);
}
