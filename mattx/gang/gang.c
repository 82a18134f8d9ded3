// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a gang: all threads of one process, on one node.
 *
 *   home   FREEZING -> FROZEN -> COMMITTING -> DEPUTY -> ARMED -> DEAD (runs at home again)
 *              |         |           |           |         |
 *              +---------+-----------+ thawed    +---------+--> DEAD (exited, killed)
 *
 *   host   BODY -> ARMED -> GUEST <-> FREEZING -> FROZEN -> COMMITTING -> DEAD
 *            |       |        |                                 |
 *            +-------+--------+--> DEAD                         +--> GUEST (aborted)
 *
 * FREEZE, THAW, ARM and COMMIT of a handle move it, and so do the peer's COMMIT,
 * COMMITTED and ABORTED. It is DEAD when its last thread has left it: by exiting
 * (the tracepoint sched_process_exit) or by running on at home.
 *
 * References: the handle bound to it, each of its threads, each queued work. A
 * gang holds the module. A thread is held by its gang's list until it leaves,
 * by each task_work of ours that is queued for it, and by whoever found it; the
 * task it stands for is held as long as the thread is.
 */
#include <linux/module.h>
#include <linux/hashtable.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include "internal.h"
#include "../compat.h"
#include "../ghost/set.h"
#include "../ghost/watch.h"
#include "../main.h"
#include "../netlink.h"
#include "../wormhole/hooks.h"
#include "../wormhole/link.h"

/* Protects all_gangs, gangs_by_id, guest_spaces and gang->bound. Taken with interrupts off. */
static DEFINE_SPINLOCK(table_lock);
static LIST_HEAD(all_gangs);
static DEFINE_HASHTABLE(gangs_by_id, 8);

/* Writers of threads_by_task; readers use RCU. */
static DEFINE_SPINLOCK(threads_lock);
static DEFINE_HASHTABLE(threads_by_task, 12);

static struct workqueue_struct *gang_wq;

/* ------------------------------------------------------------- references */

struct mattx_gang *mattx_gang_hold(struct mattx_gang *gang)
{
	kref_get(&gang->ref);
	return gang;
}

/* In a work because what it gives back may sleep and the last put may not. */
static void gang_release_work(struct work_struct *work)
{
	struct mattx_gang *gang =
		container_of(work, struct mattx_gang, release_work);

	if (gang->hooked)
		mattx_hooks_put();
	mattx_watch_free(gang);
	mattx_sets_free(gang);
	mattx_signals_free(&gang->inbox);
	mattx_signals_free(&gang->shared);
	mattx_store_free(gang);
	if (gang->peer)
		mattx_peer_put(gang->peer);
	if (gang->pidns)
		put_pid_ns(gang->pidns);
	put_pid(gang->pid);
	kvfree(gang->ranges);
	mattx_gang_put(gang->root);
	mattx_thread_put(gang->lender);
	kfree(gang);
	module_put(THIS_MODULE); /* the work queue is drained at unload */
}

static void gang_release(struct kref *ref)
{
	struct mattx_gang *gang = container_of(ref, struct mattx_gang, ref);
	unsigned long flags;

	WARN_ON(gang->nr_threads);
	spin_lock_irqsave(&table_lock, flags);
	list_del(&gang->node);
	hash_del(&gang->by_id);
	spin_unlock_irqrestore(&table_lock, flags);
	queue_work(gang_wq, &gang->release_work);
}

void mattx_gang_put(struct mattx_gang *gang)
{
	if (gang)
		kref_put(&gang->ref, gang_release);
}

struct mattx_thread *mattx_thread_hold(struct mattx_thread *thread)
{
	kref_get(&thread->ref);
	return thread;
}

static void thread_free(struct rcu_head *rcu)
{
	struct mattx_thread *thread = container_of(rcu, struct mattx_thread, rcu);

	kfree(thread->xstate);
	kfree(thread);
}

static void thread_release(struct kref *ref)
{
	struct mattx_thread *thread = container_of(ref, struct mattx_thread, ref);
	struct mattx_gang *gang = thread->gang;

	mattx_signals_free(&thread->signals);
	put_task_struct(thread->task);
	call_rcu(&thread->rcu, thread_free);
	mattx_gang_put(gang);
}

void mattx_thread_put(struct mattx_thread *thread)
{
	if (thread)
		kref_put(&thread->ref, thread_release);
}

/* ------------------------------------------------------------------ gangs */

/**
 * mattx_gang_alloc() - a gang without threads
 *
 * Context: process. Return: a reference, or NULL when out of memory.
 */
struct mattx_gang *mattx_gang_alloc(enum mattx_gang_role role,
				    enum mattx_gang_state state)
{
	struct mattx_gang *gang = kzalloc(sizeof(*gang), GFP_KERNEL);

	if (!gang)
		return NULL;
	__module_get(THIS_MODULE);
	kref_init(&gang->ref);
	gang->role = role;
	gang->state = state;
	INIT_HLIST_NODE(&gang->by_id);
	spin_lock_init(&gang->lock);
	INIT_LIST_HEAD(&gang->threads);
	init_waitqueue_head(&gang->wait);
	mutex_init(&gang->door);
	mutex_init(&gang->clone_lock);
	INIT_WORK(&gang->wake_work, mattx_waker_work);
	mutex_init(&gang->stop_lock);
	INIT_WORK(&gang->signal_work, mattx_signal_work);
	INIT_WORK(&gang->release_work, gang_release_work);
	INIT_LIST_HEAD(&gang->inbox);
	INIT_LIST_HEAD(&gang->shared);
	INIT_LIST_HEAD(&gang->guards);
	INIT_LIST_HEAD(&gang->stores);
	INIT_WORK(&gang->recall_work, mattx_guard_recall_work);
	INIT_WORK(&gang->store_work, mattx_store_work);
	INIT_WORK(&gang->flush_work, mattx_store_flush_work);
	gang->since = ktime_get_boottime_ns();
	spin_lock_irq(&table_lock);
	list_add_tail(&gang->node, &all_gangs);
	spin_unlock_irq(&table_lock);
	return gang;
}

void mattx_gang_wake(struct mattx_gang *gang)
{
	wake_up_all(&gang->wait);
	if (gang->root)
		wake_up_all(&gang->root->wait);
}

void mattx_gang_set_state(struct mattx_gang *gang, enum mattx_gang_state state)
{
	unsigned long flags;

	spin_lock_irqsave(&gang->lock, flags);
	gang->state = state;
	spin_unlock_irqrestore(&gang->lock, flags);
	mattx_gang_wake(gang);
}

static void note_change(struct mattx_gang *gang, enum mattx_gang_state to)
{
	static const char *const names[] = {
		[MATTX_GANG_FREEZING] = "freezing",
		[MATTX_GANG_FROZEN] = "frozen",
		[MATTX_GANG_COMMITTING] = "committing",
		[MATTX_GANG_DEPUTY] = "deputy",
		[MATTX_GANG_BODY] = "body",
		[MATTX_GANG_ARMED] = "armed",
		[MATTX_GANG_GUEST] = "guest",
		[MATTX_GANG_DEAD] = "dead",
	};

	mattx_debug("PID %d (%s): %s, %s\n", pid_nr(gang->pid), gang->comm,
		    gang->role == MATTX_ROLE_HOME ? "home" : "host", names[to]);
}

bool mattx_gang_change(struct mattx_gang *gang, enum mattx_gang_state from,
		       enum mattx_gang_state to)
{
	unsigned long flags;
	bool was;

	spin_lock_irqsave(&gang->lock, flags);
	was = gang->state == from;
	if (was)
		gang->state = to;
	spin_unlock_irqrestore(&gang->lock, flags);
	if (was) {
		note_change(gang, to);
		mattx_gang_wake(gang);
	}
	return was;
}

/**
 * mattx_gang_publish() - give a gang its id and peer, so that frames find it
 * @peer: the gang takes its own reference
 */
void mattx_gang_publish(struct mattx_gang *gang, u64 id, struct mattx_peer *peer)
{
	spin_lock_irq(&table_lock);
	if (!gang->peer)
		gang->peer = mattx_peer_hold(peer);
	hash_del(&gang->by_id);
	gang->id = id;
	hash_add(gangs_by_id, &gang->by_id, id);
	spin_unlock_irq(&table_lock);
}

struct mattx_gang *mattx_gang_find(struct mattx_peer *peer, u64 id)
{
	struct mattx_gang *gang, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&table_lock, flags);
	hash_for_each_possible(gangs_by_id, gang, by_id, id) {
		if (gang->id == id && gang->peer == peer &&
		    kref_get_unless_zero(&gang->ref)) {
			found = gang;
			break;
		}
	}
	spin_unlock_irqrestore(&table_lock, flags);
	return found;
}

/**
 * mattx_gang_open() - bind a handle to a known gang
 *
 * Context: process. Return: 0 and a reference in @res; -ENOENT; -EBUSY when
 * another handle has it.
 */
int mattx_gang_open(struct mattx_gang **res, u64 id, enum mattx_gang_role role)
{
	struct mattx_gang *gang;
	int err = -ENOENT;

	spin_lock_irq(&table_lock);
	hash_for_each_possible(gangs_by_id, gang, by_id, id) {
		if (gang->id != id || gang->role != role ||
		    READ_ONCE(gang->state) == MATTX_GANG_DEAD)
			continue;
		if (gang->bound) {
			err = -EBUSY;
			break;
		}
		if (!kref_get_unless_zero(&gang->ref))
			continue;
		gang->bound = true;
		*res = gang;
		err = 0;
		break;
	}
	spin_unlock_irq(&table_lock);
	return err;
}

void mattx_gang_unbind(struct mattx_gang *gang)
{
	spin_lock_irq(&table_lock);
	gang->bound = false;
	spin_unlock_irq(&table_lock);
}

/* Calls @fn for each gang, with a reference and no lock. Stops when it returns nonzero. */
int mattx_gang_for_each(int (*fn)(struct mattx_gang *gang, void *arg), void *arg)
{
	struct mattx_gang *gang, *prev = NULL;
	int ret = 0;

	spin_lock_irq(&table_lock);
	list_for_each_entry(gang, &all_gangs, node) {
		if (!kref_get_unless_zero(&gang->ref))
			continue;
		spin_unlock_irq(&table_lock);
		mattx_gang_put(prev);
		prev = gang;
		ret = fn(gang, arg);
		spin_lock_irq(&table_lock);
		if (ret)
			break;
	}
	spin_unlock_irq(&table_lock);
	mattx_gang_put(prev);
	return ret;
}

/* ---------------------------------------------------------------- threads */

static struct mattx_thread *thread_alloc(struct mattx_gang *gang,
					 struct task_struct *task, gfp_t gfp)
{
	struct mattx_thread *thread = kzalloc(sizeof(*thread), gfp);

	if (!thread)
		return NULL;
	thread->xstate = kzalloc(mattx_xstate_size(), gfp);
	if (!thread->xstate) {
		kfree(thread);
		return NULL;
	}
	kref_init(&thread->ref);
	thread->gang = mattx_gang_hold(gang);
	thread->task = get_task_struct(task);
	thread->tid = task_pid_nr_ns(task, ns_of_pid(task_pid(task)));
	init_task_work(&thread->work, mattx_park_work);
	init_task_work(&thread->kick, mattx_kick_work);
	init_task_work(&thread->fatal_work, mattx_core_work);
	init_task_work(&thread->held_work, mattx_vdso_held_work);
	init_waitqueue_head(&thread->wait);
	spin_lock_init(&thread->lock);
	INIT_LIST_HEAD(&thread->node);
	INIT_LIST_HEAD(&thread->jobs);
	INIT_LIST_HEAD(&thread->signals);
	return thread;
}

/* Return: whether the task was no member of any gang, and now is. */
static bool thread_insert(struct mattx_thread *thread)
{
	struct mattx_gang *gang = thread->gang;
	unsigned long flags;
	bool is_new;

	spin_lock_irqsave(&gang->lock, flags);
	spin_lock(&threads_lock);
	is_new = !mattx_thread_find(thread->task);
	if (is_new) {
		hash_add_rcu(threads_by_task, &thread->by_task,
			     (unsigned long)thread->task);
		list_add_tail(&thread->node, &gang->threads);
		gang->nr_threads++;
	}
	spin_unlock(&threads_lock);
	spin_unlock_irqrestore(&gang->lock, flags);
	return is_new;
}

/**
 * mattx_thread_add() - make a task a member
 *
 * A thread that has just been cloned is found both by who looks for all threads and by
 * the tracepoint: the second finds it a member already.
 * Context: any, when @gfp says so. Return: the thread, owned by the gang's list;
 * NULL: no memory; -EEXIST: it is a member.
 */
struct mattx_thread *mattx_thread_add(struct mattx_gang *gang,
				      struct task_struct *task, gfp_t gfp)
{
	struct mattx_thread *thread = thread_alloc(gang, task, gfp);

	if (thread && !thread_insert(thread)) {
		mattx_thread_put(thread);
		return ERR_PTR(-EEXIST);
	}
	return thread;
}

/*
 * The last thread has left: nobody finds the gang any more; but what its guest leaves in
 * shared memory does.
 */
static void gang_ended(struct mattx_gang *gang)
{
	unsigned long flags;

	spin_lock_irqsave(&table_lock, flags);
	if (list_empty_careful(&gang->guards))
		hash_del(&gang->by_id);
	spin_unlock_irqrestore(&table_lock, flags);
	mattx_watch_end_soon(gang);
	mattx_guard_ended(gang);
	mattx_child_ended(gang);
	mattx_child_orphaned(gang);
	mattx_event_gang_end(
		gang->id, gang->peer ? mattx_peer_id(gang->peer) : 0,
		gang->role, pid_nr(gang->pid),
		gang->role == MATTX_ROLE_HOME ? gang->want_cause : "");
	mattx_gang_wake(gang);
}

bool mattx_thread_remove(struct mattx_thread *thread)
{
	struct mattx_gang *gang = thread->gang;
	unsigned long flags;
	bool last = false;

	spin_lock_irqsave(&threads_lock, flags);
	if (hash_hashed(&thread->by_task))
		hash_del_rcu(&thread->by_task);
	spin_unlock_irqrestore(&threads_lock, flags);

	spin_lock_irqsave(&gang->lock, flags);
	if (list_empty(&thread->node)) {
		spin_unlock_irqrestore(&gang->lock, flags);
		return false;
	}
	list_del_init(&thread->node);
	last = !--gang->nr_threads;
	if (last) {
		mattx_signal_unwatch(gang);
		gang->state = MATTX_GANG_DEAD;
	}
	spin_unlock_irqrestore(&gang->lock, flags);
	if (last)
		gang_ended(gang);
	else
		wake_up_all(&gang->wait);
	mattx_thread_put(thread);
	return last;
}

bool mattx_thread_lock(struct mattx_thread *thread)
{
	spin_lock_irq(&thread->gang->lock);
	if (list_empty(&thread->node)) {
		spin_unlock_irq(&thread->gang->lock);
		return false;
	}
	spin_lock(&mattx_sighand(thread->task)->siglock);
	/* sparse cannot follow a function that locks or does not */
	__release(&mattx_sighand(thread->task)->siglock);
	__release(&thread->gang->lock);
	return true;
}

void mattx_thread_unlock(struct mattx_thread *thread)
{
	__acquire(&thread->gang->lock);
	__acquire(&mattx_sighand(thread->task)->siglock);
	spin_unlock(&mattx_sighand(thread->task)->siglock);
	spin_unlock_irq(&thread->gang->lock);
}

/* The thread that stands for a task; RCU must be held, or @task be current. */
struct mattx_thread *mattx_thread_find(struct task_struct *task)
{
	struct mattx_thread *thread, *found = NULL;

	rcu_read_lock();
	hash_for_each_possible_rcu(threads_by_task, thread, by_task,
				   (unsigned long)task) {
		if (thread->task == task) {
			found = thread;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

struct mattx_thread *mattx_gang_thread(struct mattx_gang *gang, s32 tid)
{
	struct mattx_thread *thread, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&gang->lock, flags);
	list_for_each_entry(thread, &gang->threads, node) {
		if (thread->tid == tid) {
			found = mattx_thread_hold(thread);
			break;
		}
	}
	spin_unlock_irqrestore(&gang->lock, flags);
	return found;
}

struct mattx_thread *mattx_gang_any(struct mattx_gang *gang)
{
	struct mattx_thread *thread = NULL;
	unsigned long flags;

	spin_lock_irqsave(&gang->lock, flags);
	if (!list_empty(&gang->threads))
		thread = mattx_thread_hold(list_first_entry(
			&gang->threads, struct mattx_thread, node));
	spin_unlock_irqrestore(&gang->lock, flags);
	return thread;
}

/* Return: the other node's id, 0 while there is none. Context: any. */
u32 mattx_gang_peer_id(struct mattx_gang *gang)
{
	unsigned long flags;
	u32 id;

	spin_lock_irqsave(&table_lock, flags);
	id = gang->peer ? mattx_peer_id(gang->peer) : 0;
	spin_unlock_irqrestore(&table_lock, flags);
	return id;
}

struct mattx_thread *mattx_gang_leader(struct mattx_gang *gang)
{
	return mattx_gang_thread(gang, gang->tgid);
}

/* ------------------------------------------------------------------ hooks */

/* Is this PID namespace a guest's? Context: any. */
static bool guest_space(struct pid_namespace *ns)
{
	struct mattx_gang *gang;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&table_lock, flags);
	list_for_each_entry(gang, &all_gangs, node) {
		if (gang->pidns == ns) {
			found = true;
			break;
		}
	}
	spin_unlock_irqrestore(&table_lock, flags);
	return found;
}

enum mattx_caller mattx_caller(struct mattx_thread **res)
{
	struct pid *pid = task_pid(current);
	struct mattx_thread *thread;

	if (likely(!pid || pid->level == 0))
		return MATTX_NOT_GUEST;
	thread = mattx_thread_find(current);
	if (thread) {
		if (thread->gang->role != MATTX_ROLE_HOST ||
		    test_bit(MATTX_T_BODY, &thread->flags))
			return MATTX_NOT_GUEST;
		*res = thread;
		return MATTX_IS_GUEST;
	}
	if (!guest_space(ns_of_pid(pid)) || is_child_reaper(pid))
		return MATTX_NOT_GUEST;
	/* Not yet bound bodies are on their way to MATTX_IOC_BODY and have no gang. */
	return MATTX_DENY;
}

bool mattx_guest_special(struct mattx_gang *gang, unsigned long start,
			 unsigned long len)
{
	unsigned long end = start + len, flags;
	bool hit = end < start;
	unsigned int i;

	spin_lock_irqsave(&gang->lock, flags);
	for (i = 0; i < gang->nr_ranges && !hit; i++)
		hit = start < gang->ranges[i].end && end > gang->ranges[i].start;
	spin_unlock_irqrestore(&gang->lock, flags);
	return hit;
}

bool mattx_guest_shared(struct mattx_gang *gang, unsigned long start,
			unsigned long len, bool kept)
{
	u32 least = kept ? MATTX_RANGE_KEPT : MATTX_RANGE_SHARED;
	unsigned long end = start + PAGE_ALIGN(len), flags;
	bool hit = false;
	unsigned int i;

	if (!gang->shares)
		return false;
	spin_lock_irqsave(&gang->lock, flags);
	for (i = 0; i < gang->nr_ranges && !hit; i++)
		hit = gang->ranges[i].kind >= least &&
		      (end < start || (start < gang->ranges[i].end &&
				       end > gang->ranges[i].start));
	spin_unlock_irqrestore(&gang->lock, flags);
	return hit;
}

/* Appends [start, end), if it is one. Return: the new number. */
static unsigned int put_range(struct mattx_range *to, unsigned int n, u64 start,
			      u64 end, u32 kind)
{
	if (start >= end)
		return n;
	if (n && to[n - 1].end == start && to[n - 1].kind == kind) {
		to[n - 1].end = end;
		return n;
	}
	to[n] = (struct mattx_range){ .start = start, .end = end, .kind = kind };
	return n + 1;
}

/* All of @from but [start, end), which is of @kind, 0: of none; sorted. */
static unsigned int copy_ranges(struct mattx_range *to,
				const struct mattx_range *from, unsigned int nr,
				u64 start, u64 end, u32 kind)
{
	unsigned int i, n = 0;
	bool done = !kind;

	for (i = 0; i < nr; i++) {
		n = put_range(to, n, from[i].start, min(from[i].end, start),
			      from[i].kind);
		if (!done && from[i].end > start) {
			n = put_range(to, n, start, end, kind);
			done = true;
		}
		n = put_range(to, n, max(from[i].start, end), from[i].end,
			      from[i].kind);
	}
	return done ? n : put_range(to, n, start, end, kind);
}

void mattx_guest_set_range(struct mattx_gang *gang, unsigned long start,
			   unsigned long end, bool file)
{
	struct mattx_range *new, *old;
	unsigned int room;

	for (;;) {
		room = READ_ONCE(gang->nr_ranges) + 2;
		new = kvmalloc_array(room, sizeof(*new),
				     GFP_KERNEL | __GFP_NOFAIL);
		spin_lock_irq(&gang->lock);
		if (gang->nr_ranges + 2 <= room)
			break;
		spin_unlock_irq(&gang->lock);
		kvfree(new);
	}
	old = gang->ranges;
	gang->nr_ranges = copy_ranges(new, old, gang->nr_ranges, start, end,
				      file ? MATTX_RANGE_FILE : 0);
	gang->ranges = new;
	spin_unlock_irq(&gang->lock);
	kvfree(old);
}

/* One for all gangs of a namespace. */
static struct mutex *clone_lock(struct mattx_gang *gang)
{
	return &(gang->root ?: gang)->clone_lock;
}

/*
 * A namespace gives its numbers out in turn, and nobody but the guest's threads, one at
 * a time, clones in this one.
 */
int mattx_guest_next_tid(struct mattx_gang *gang, s32 tid)
{
	struct mutex *lock = clone_lock(gang);
	struct pid_namespace *ns = gang->pidns;
	bool taken;

	if (mutex_lock_killable(lock))
		return -ERESTARTNOINTR;
	rcu_read_lock();
	taken = find_pid_ns(tid, ns);
	rcu_read_unlock();
	if (taken) {
		mutex_unlock(lock);
		return -EAGAIN;
	}
	idr_set_cursor(&ns->idr, tid);
	return 0;
}

void mattx_guest_cloned(struct mattx_gang *gang)
{
	mutex_unlock(clone_lock(gang));
}

/* ------------------------------------------------------------ tracepoints */

/* A task ends. Runs with preemption off. */
static void on_exit(void *data, MATTX_TP_EXIT_ARGS)
{
	struct mattx_thread *thread = mattx_thread_find(task);

	if (!thread)
		return;
	mattx_thread_hold(thread);
	set_bit(MATTX_T_EXITED, &thread->flags);
	mattx_body_drop_jobs(thread);
	mattx_report_exit(thread, task, mattx_thread_remove(thread));
	mattx_thread_put(thread);
}

/*
 * A task was cloned and has not run yet. What a body's job created belongs to the
 * gang and goes to the park before it sees user mode; what a guest's thread created
 * is a guest's, too. A process becomes a gang of its own.
 */
static void on_fork(void *data, struct task_struct *parent,
		    struct task_struct *child)
{
	struct mattx_thread *thread = mattx_thread_find(parent), *added;

	bool body, guest;

	if (!thread)
		return;
	if (!same_thread_group(parent, child)) {
		if (thread->child)
			mattx_child_born(thread, child);
		return;
	}
	body = test_bit(MATTX_T_CALL, &thread->flags);
	guest = thread->gang->role == MATTX_ROLE_HOST &&
		!test_bit(MATTX_T_BODY, &thread->flags);
	if (!body && !guest)
		return;
	added = mattx_thread_add(thread->gang, child, GFP_ATOMIC);
	if (IS_ERR(added))
		return; /* a freeze was faster, and queues what is to be queued */
	if (!added) {
		pr_err("PID %d: no memory for a thread of a gang, it is killed\n",
		       task_pid_nr(parent));
		send_sig(SIGKILL, parent, 1);
		return;
	}
	/* when a freeze has begun, it may have been looking before this one was there */
	if (guest && (READ_ONCE(thread->gang->state) != MATTX_GANG_FREEZING ||
		      test_and_set_bit(MATTX_T_QUEUED, &added->flags)))
		return;
	if (body)
		set_bit(MATTX_T_BORN, &added->flags);
	mattx_thread_hold(added);
	if (task_work_add(child, &added->work, TWA_RESUME))
		mattx_thread_put(added);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} probes[] = {
	{ "sched_process_exit", on_exit },
	{ "sched_process_fork", on_fork },
	{ "sched_process_exec", mattx_body_execed },
	{ "signal_deliver", mattx_core_deliver },
};

static void find_tracepoint(struct tracepoint *tp, void *data)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
}

static void remove_probes(unsigned int n)
{
	while (n--)
		tracepoint_probe_unregister(probes[n].tp, probes[n].probe, NULL);
	tracepoint_synchronize_unregister();
}

int mattx_gang_init(void)
{
	unsigned int i;
	int err;

	gang_wq = alloc_workqueue("mattx_gang", WQ_UNBOUND, 0);
	if (!gang_wq)
		return -ENOMEM;
	for_each_kernel_tracepoint(find_tracepoint, NULL);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		err = -ENOENT;
		if (probes[i].tp)
			err = tracepoint_probe_register(probes[i].tp,
							probes[i].probe, NULL);
		if (err) {
			pr_err("tracepoint %s cannot be used: %d\n",
			       probes[i].name, err);
			goto err_probes;
		}
	}
	return 0;

err_probes:
	remove_probes(i);
	destroy_workqueue(gang_wq);
	return err;
}

void mattx_gang_exit(void)
{
	remove_probes(ARRAY_SIZE(probes));
	destroy_workqueue(gang_wq);
	rcu_barrier();
	/* Threads that have just left the park may still run its last instructions. */
	synchronize_rcu_tasks();
}

bool mattx_gang_queue(struct work_struct *work)
{
	return queue_work(gang_wq, work);
}
