// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that a guest creates.
 *
 * Each is a gang of its own on both nodes from its first instruction: the deputy's thread
 * clones a process at home, which goes to the park and is the child's deputy, and then the
 * guest's thread clones here. The host has chosen the gang's id and sent it along, so
 * frames about the child find it on either side before it is there.
 *
 *	host   BODY (expected) -> GUEST (born) -> as every guest
 *	home   DEPUTY (expected) -> (born, parks) -> as every deputy
 *	       DEAD: it was not born, or the other side's was killed before it was
 *
 * When the guest's thread is killed while the deputy clones, nobody here hears of the
 * deputy's child. So the guest's is claimed with a BORN, which is on its way before anything
 * that its parent does later, and a child that is not claimed ends with its parent.
 *
 * thread->child has it until it is born, with a reference; then its thread has.
 *
 * A child of vfork(2) has its parent's memory, here as at home, and so its parent thread's
 * stub and buffer, which that does not need while it waits: the lender. The parent's
 * are not moved while gang->borrowers says that there are such children.
 */
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <uapi/linux/sched.h>
#include "internal.h"
#include "../compat.h"
#include "../main.h"
#include "../wormhole/hooks.h"
#include "../wormhole/link.h"
#include "../wormhole/protocol.h"

/* The same ranges are special in a copy of the memory. */
static int copy_ranges(struct mattx_gang *to, struct mattx_gang *from)
{
	unsigned int room;

	for (;;) {
		room = READ_ONCE(from->nr_ranges);
		to->ranges = kvmalloc_array(room ?: 1, sizeof(*to->ranges),
					    GFP_KERNEL);
		if (!to->ranges)
			return -ENOMEM;
		spin_lock_irq(&from->lock);
		if (from->nr_ranges <= room)
			break;
		spin_unlock_irq(&from->lock);
		kvfree(to->ranges);
	}
	to->nr_ranges = from->nr_ranges;
	memcpy(to->ranges, from->ranges, to->nr_ranges * sizeof(*to->ranges));
	spin_unlock_irq(&from->lock);
	return 0;
}

static int prepare_guest(struct mattx_gang *child, struct mattx_gang *parent)
{
	int err = copy_ranges(child, parent);

	if (err)
		return err;
	child->awake = true;
	child->root = mattx_gang_hold(parent->root ?: parent);
	child->pidns = get_pid_ns(parent->pidns);
	err = mattx_hooks_get();
	child->hooked = !err;
	return err;
}

static void borrow(struct mattx_gang *child, struct mattx_thread *thread)
{
	struct mattx_thread *lender = thread->gang->lender ?: thread;

	child->lender = mattx_thread_hold(lender);
	atomic_inc(&lender->gang->borrowers);
	child->stub = lender->gang->stub;
	child->stub_len = lender->gang->stub_len;
}

/**
 * mattx_child_ended() - the gang has ended, or will not be: what it borrowed is given back
 * Context: any; once for each gang.
 */
void mattx_child_ended(struct mattx_gang *gang)
{
	struct mattx_gang *owner;

	if (!gang->lender)
		return;
	owner = gang->lender->gang;
	if (atomic_dec_and_test(&owner->borrowers))
		wake_up_all(&owner->wait);
}

static int kill_unclaimed(struct mattx_gang *gang, void *arg)
{
	const struct mattx_gang *parent = arg;

	if (gang->role == MATTX_ROLE_HOME && gang->peer == parent->peer &&
	    gang->parent == parent->id && !READ_ONCE(gang->claimed))
		mattx_gang_kill(gang);
	return 0;
}

/**
 * mattx_child_orphaned() - this gang has ended: what it was about to have ends, too
 * Context: any with interrupts on.
 */
void mattx_child_orphaned(struct mattx_gang *gang)
{
	if (gang->role == MATTX_ROLE_HOME && gang->id)
		mattx_gang_for_each(kill_unclaimed, gang);
}

/* Nobody finds it any more. */
static void drop(struct mattx_gang *child)
{
	mattx_child_ended(child);
	mattx_gang_set_state(child, MATTX_GANG_DEAD);
	mattx_gang_put(child);
}

static bool is_taken(struct mattx_peer *peer, u64 id)
{
	struct mattx_gang *other = mattx_gang_find(peer, id);

	mattx_gang_put(other);
	return other;
}

int mattx_child_expect(struct mattx_thread *thread, u64 id, u64 flags)
{
	struct mattx_gang *gang = thread->gang, *child;
	bool home = gang->role == MATTX_ROLE_HOME;
	int err = 0;

	if (home && (!id || is_taken(gang->peer, id)))
		return -EEXIST;
	while (!id || is_taken(gang->peer, id))
		id = get_random_u64();
	child = mattx_gang_alloc(gang->role,
				 home ? MATTX_GANG_DEPUTY : MATTX_GANG_BODY);
	if (!child)
		return -ENOMEM;
	strscpy(child->comm, gang->comm, sizeof(child->comm));
	child->uid = gang->uid;
	child->born = true;
	child->clears_handlers = flags & CLONE_CLEAR_SIGHAND;
	if (flags & CLONE_VM)
		borrow(child, thread);
	if (home)
		child->parent = gang->id;
	else
		err = prepare_guest(child, gang);
	if (err) {
		drop(child);
		return err;
	}
	mattx_gang_publish(child, id, gang->peer);
	thread->child = child;
	return 0;
}

bool mattx_child_settle(struct mattx_thread *thread)
{
	struct mattx_gang *child = thread->child;

	thread->child = NULL;
	if (child)
		drop(child);
	return !child;
}

/* As CLONE_CLEAR_SIGHAND does it: what was ignored stays so. */
static void clear_handlers(struct task_struct *task)
{
	struct sighand_struct *sighand = mattx_sighand(task);
	struct k_sigaction *ka;
	unsigned int sig;

	spin_lock_irq(&sighand->siglock);
	for (sig = 1; sig <= _NSIG; sig++) {
		ka = &sighand->action[sig - 1];
		if (ka->sa.sa_handler != SIG_IGN)
			memset(ka, 0, sizeof(*ka));
	}
	spin_unlock_irq(&sighand->siglock);
}

/* Its parent had everything blocked. */
static void set_mask(struct task_struct *task, const sigset_t *blocked)
{
	struct sighand_struct *sighand = mattx_sighand(task);

	spin_lock_irq(&sighand->siglock);
	task->blocked = *blocked;
	set_tsk_thread_flag(task, TIF_SIGPENDING); /* to look */
	spin_unlock_irq(&sighand->siglock);
}

/* A new deputy's way into the park: it has a copy of another's memory, without the stub. */
static void first_work(struct callback_head *work)
{
	struct mattx_thread *thread =
		container_of(work, struct mattx_thread, work);
	struct mattx_gang *gang = thread->gang;
	int err = 0;

	init_task_work(work, mattx_park_work);
	if (!gang->lender && !(current->flags & PF_EXITING))
		err = mattx_body_own_stub(gang);
	if (err) {
		pr_err_ratelimited("PID %d (%s) is killed: no room for its stub\n",
				   task_pid_nr(current), current->comm);
		send_sig(SIGKILL, current, 1);
	}
	if (!(current->flags & PF_EXITING))
		mattx_signal_watch(gang);
	mattx_park_work(work);
}

/*
 * There is no memory for it: it ends as if it had been killed, on both sides. Context: the
 * tracepoint.
 */
static void stillborn(struct mattx_gang *child, struct mattx_thread *parent,
		      struct task_struct *task)
{
	struct mattx_frame_exit frame = { .tid = cpu_to_le32(child->tgid),
					  .code = cpu_to_le32(SIGKILL) };

	pr_err("PID %d: no memory for a gang, it is killed\n", task_pid_nr(task));
	send_sig(SIGKILL, task, 1);
	if (child->role == MATTX_ROLE_HOME) {
		mattx_link_send(child->peer, MATTX_F_KILL, child->id, NULL, 0,
				NULL, 0, GFP_ATOMIC);
	} else {
		mattx_link_send(child->peer, MATTX_F_GANG_EXIT, child->id,
				&frame, sizeof(frame), NULL, 0, GFP_ATOMIC);
		mattx_guest_cloned(parent->gang);
	}
	drop(child);
}

/**
 * mattx_child_born() - a clone() has made the process that parent->child is for
 * Context: the tracepoint, in the parent; @task has not run.
 */
void mattx_child_born(struct mattx_thread *parent, struct task_struct *task)
{
	struct mattx_gang *child = parent->child;
	bool home = child->role == MATTX_ROLE_HOME, lost;
	struct mattx_thread *thread;

	parent->child = NULL;
	child->pid = get_pid(task_tgid(task));
	child->tgid = task_tgid_nr_ns(task, ns_of_pid(child->pid));
	if (child->clears_handlers)
		clear_handlers(task);
	if (!home)
		set_mask(task, &child->blocked);
	thread = mattx_thread_add(child, task, GFP_ATOMIC);
	if (IS_ERR_OR_NULL(thread)) {
		stillborn(child, parent, task);
		return;
	}
	if (home) {
		lost = READ_ONCE(child->state) != MATTX_GANG_DEPUTY;
		set_bit(MATTX_T_BORN, &thread->flags);
		init_task_work(&thread->work, first_work);
		mattx_thread_hold(thread);
		if (task_work_add(task, &thread->work, TWA_RESUME))
			mattx_thread_put(thread);
	} else {
		lost = !mattx_gang_change(child, MATTX_GANG_BODY,
					  MATTX_GANG_GUEST);
		mattx_link_send(child->peer, MATTX_F_BORN, child->id, NULL, 0,
				NULL, 0, GFP_ATOMIC);
		mattx_guest_cloned(parent->gang);
	}
	if (lost) /* the other one was killed, or its node is gone */
		send_sig(SIGKILL, task, 1);
	mattx_gang_put(child);
}
