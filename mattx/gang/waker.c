// SPDX-License-Identifier: GPL-2.0
/*
 * Waking a gang.
 *
 * Threads that slept in a futex were queued there in some order, and FUTEX_WAKE takes
 * them in it: a lock is handed on, a pool's workers take turns. They have to make their
 * call again here, so the waker lets them go first, in their old order, each when the
 * one before it is asleep again (or has found that it need not sleep, and runs). Nobody
 * else runs meanwhile, so the words that they wait on do not change. Then everybody
 * goes at once.
 *
 *	freeze:	mattx_waker_order() numbers the sleepers		FROZEN
 *	awaken:	every thread comes to mattx_waker_wait()
 *		the last one starts the waker, a work
 *		the waker gives MATTX_T_GO to the sleepers, one by one
 *		gang->awake lets the others go
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <asm/unistd.h>
#include "internal.h"
#include "../compat.h"

#define LOOK_US 50 /* between two looks at a thread */
#define PATIENCE_NS \
	NSEC_PER_SEC /* for one thread, which cannot run or is paged in */
#define LIMIT_NS (10 * NSEC_PER_SEC) /* for all */

/* Does the thread make a futex call again when it goes on? */
static bool is_sleeper(const struct mattx_thread_state *s)
{
	switch ((long)s->regs.ax) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		break;
	default:
		return false;
	}
	switch (s->regs.orig_ax) {
	case __NR_futex:
	case __NR_futex_waitv:
	case MATTX_NR_FUTEX_WAIT:
		return true;
	case __NR_restart_syscall:
		return s->restart.kind == MATTX_RESTART_FUTEX;
	default:
		return false;
	}
}

/* Threads of a gang, each with a reference. */
struct sleepers {
	struct mattx_thread **thread;
	unsigned int n;
};

static void collect(struct mattx_gang *gang, struct sleepers *list)
{
	unsigned int room = READ_ONCE(gang->nr_threads);
	struct mattx_thread *thread;

	list->n = 0;
	list->thread = kvcalloc(room ?: 1, sizeof(*list->thread), GFP_KERNEL);
	if (!list->thread)
		return; /* no order then */
	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node) {
		if (list->n < room && is_sleeper(&thread->state))
			list->thread[list->n++] = mattx_thread_hold(thread);
	}
	spin_unlock_irq(&gang->lock);
}

static void drop(struct sleepers *list)
{
	while (list->n)
		mattx_thread_put(list->thread[--list->n]);
	kvfree(list->thread);
}

/* Who fell asleep first; one of which that is not known was the last. */
static int by_sleep(const void *a, const void *b)
{
	const struct mattx_thread *x = *(struct mattx_thread *const *)a;
	const struct mattx_thread *y = *(struct mattx_thread *const *)b;
	u64 since_x = x->asleep_since ?: U64_MAX;
	u64 since_y = y->asleep_since ?: U64_MAX;

	return since_x < since_y ? -1 : since_x > since_y;
}

static int by_order(const void *a, const void *b)
{
	const struct mattx_thread *x = *(struct mattx_thread *const *)a;
	const struct mattx_thread *y = *(struct mattx_thread *const *)b;

	return x->state.futex_order < y->state.futex_order ?
		       -1 :
		       x->state.futex_order > y->state.futex_order;
}

/**
 * mattx_waker_order() - number the futex sleepers of a frozen gang
 * Context: process, gang->door held, every thread is in the park.
 */
void mattx_waker_order(struct mattx_gang *gang)
{
	struct sleepers list;
	unsigned int i;

	collect(gang, &list);
	sort(list.thread, list.n, sizeof(*list.thread), by_sleep, NULL);
	for (i = 0; i < list.n; i++)
		list.thread[i]->state.futex_order = i + 1;
	drop(&list);
}

/*
 * What the task's rax says: -ERESTART... until the signal code has made it the number of
 * the call that is made again, -ENOSYS while it is in the call, then what that returned.
 */
static bool in_call(long ax)
{
	return ax == -ENOSYS;
}

static bool before_call(long ax, long nr)
{
	return ax == nr || ax == __NR_restart_syscall || ax == -ERESTARTSYS ||
	       ax == -ERESTARTNOINTR || ax == -ERESTARTNOHAND ||
	       ax == -ERESTART_RESTARTBLOCK;
}

/*
 * Is the thread queued again, has it returned, or is it gone? It is in the futex's queue
 * before it leaves the CPU, but the next one may go only after: when each left is what a
 * later freeze takes their order from.
 */
static bool has_settled(struct mattx_thread *thread)
{
	struct task_struct *task = thread->task;
	unsigned int state;
	long ax;

	if (test_bit(MATTX_T_EXITED, &thread->flags) ||
	    fatal_signal_pending(task))
		return true;
	if (test_bit(MATTX_T_BODY, &thread->flags))
		return false; /* has not left the park yet */
	state = READ_ONCE(task->__state);
	if (!mattx_peek_ax(task, &ax))
		return true; /* ended */
	if (in_call(ax))
		return state & (TASK_INTERRUPTIBLE | __TASK_STOPPED) &&
		       mattx_is_asleep(task);
	return !before_call(ax, thread->state.regs.orig_ax);
}

/* The scheduler tells nobody that a task has fallen asleep. */
static void let_go(struct mattx_thread *thread, u64 limit)
{
	limit = min_t(u64, limit, ktime_get_ns() + PATIENCE_NS);
	set_bit(MATTX_T_GO, &thread->flags);
	wake_up(&thread->wait);
	while (!has_settled(thread) && ktime_get_ns() < limit)
		usleep_range(LOOK_US, 2 * LOOK_US);
}

/**
 * mattx_waker_work() - the waker
 * Context: gang->wake_work, which holds a reference.
 */
void mattx_waker_work(struct work_struct *work)
{
	struct mattx_gang *gang =
		container_of(work, struct mattx_gang, wake_work);
	u64 limit = ktime_get_ns() + LIMIT_NS;
	struct mattx_thread *thread;
	struct sleepers list;
	unsigned int i;

	collect(gang, &list);
	sort(list.thread, list.n, sizeof(*list.thread), by_order, NULL);
	for (i = 0; i < list.n; i++)
		let_go(list.thread[i], limit);
	drop(&list);

	WRITE_ONCE(gang->awake, true);
	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node)
		wake_up(&thread->wait);
	spin_unlock_irq(&gang->lock);
	wake_up_all(&gang->wait);
	mattx_gang_put(gang);
}

/**
 * mattx_waker_start() - every thread waits to be let go
 * Context: process, the last thread that came.
 */
void mattx_waker_start(struct mattx_gang *gang)
{
	mattx_gang_hold(gang);
	if (!mattx_gang_queue(&gang->wake_work))
		mattx_gang_put(gang);
}

/**
 * mattx_waker_wait() - current waits for its turn
 * Context: the thread itself, about to leave the park; killable.
 * Return: 0, or -EINTR: it is being killed.
 */
int mattx_waker_wait(struct mattx_thread *thread)
{
	return wait_event_killable(thread->wait,
				   READ_ONCE(thread->gang->awake) ||
					   test_bit(MATTX_T_GO, &thread->flags)) ?
		       -EINTR :
		       0;
}
