// SPDX-License-Identifier: GPL-2.0
/*
 * Signals of a process that is away.
 *
 * home: they are sent to the deputy as to any process. All its threads block them,
 * so they stay pending and change nothing; the wait queue that signalfd uses tells
 * us of each. signal_work then picks the threads that have some, and these take
 * them with dequeue_signal() and send them to the host, numbered by signals_sent.
 *
 * host: they go into gang->inbox, and the warden sends them on. It is PID 1 of
 * the guest's PID namespace, because the kernel rewrites the sender of a signal
 * that comes from outside the namespace. While the guest is frozen the inbox
 * keeps them; when it goes home they travel in the COMMIT.
 *
 * A signal that was pending when the process left is forwarded like one that
 * came later; one that is pending when it returns is captured by GET_SIGNALS.
 */
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "internal.h"
#include "../compat.h"
#include "../main.h"
#include "../wormhole/link.h"
#include "../wormhole/protocol.h"

struct mattx_pending {
	struct list_head node;
	s32 tid; /* 0: to the process */
	bool orphan;
	kernel_siginfo_t info;
};

void mattx_signals_free(struct list_head *list)
{
	struct mattx_pending *p, *next;

	list_for_each_entry_safe(p, next, list, node)
		kfree(p);
	INIT_LIST_HEAD(list);
}

static struct mattx_pending *pending_new(s32 tid, const void *info)
{
	struct mattx_pending *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return NULL;
	p->tid = tid;
	memcpy(&p->info, info, sizeof(p->info));
	return p;
}

static bool info_valid(const void *info)
{
	int sig = ((const kernel_siginfo_t *)info)->si_signo;

	return sig > 0 && sig <= _NSIG && sig != SIGKILL;
}

/* ------------------------------------------------------------------- home */

static bool has_signal(struct sigpending *pending)
{
	return !sigisemptyset(&pending->signal);
}

/* Lets a thread know; gang->lock is held. */
static void alert(struct mattx_thread *thread)
{
	set_bit(MATTX_T_SIGNALS, &thread->flags);
	spin_lock(&thread->lock);
	mattx_thread_kick(thread);
	spin_unlock(&thread->lock);
	wake_up(&thread->wait);
}

/* Which threads have signals? One of them takes those of the process. */
void mattx_signal_work(struct work_struct *work)
{
	struct mattx_gang *gang =
		container_of(work, struct mattx_gang, signal_work);
	struct mattx_thread *thread, *taker = NULL;
	struct sighand_struct *sighand;
	bool shared;

	spin_lock_irq(&gang->lock);
	if (gang->state != MATTX_GANG_DEPUTY || list_empty(&gang->threads))
		goto out;
	thread = list_first_entry(&gang->threads, struct mattx_thread, node);
	/* a thread in our list has not passed sched_process_exit: it has its sighand */
	sighand = mattx_sighand(thread->task);
	spin_lock(&sighand->siglock);
	shared = has_signal(&thread->task->signal->shared_pending);
	list_for_each_entry(thread, &gang->threads, node) {
		if (has_signal(&thread->task->pending))
			alert(thread);
		if (!taker || (test_bit(MATTX_T_PARKED, &thread->flags) &&
			       !test_bit(MATTX_T_PARKED, &taker->flags)))
			taker = thread;
	}
	if (shared)
		alert(taker);
	spin_unlock(&sighand->siglock);
out:
	spin_unlock_irq(&gang->lock);
	mattx_gang_put(gang);
}

/* Looks again at what is pending. Context: any. */
void mattx_signal_poke(struct mattx_gang *gang)
{
	mattx_gang_hold(gang);
	if (!mattx_gang_queue(&gang->signal_work))
		mattx_gang_put(gang);
}

/* A signal is being queued. siglock is held, IRQs are off. */
static int on_signal(struct wait_queue_entry *entry, unsigned int mode,
		     int sync, void *key)
{
	mattx_signal_poke(container_of(entry, struct mattx_gang, watch));
	return 0;
}

/**
 * mattx_signal_watch() - begin to forward the deputy's signals
 * Context: process.
 */
void mattx_signal_watch(struct mattx_gang *gang)
{
	struct mattx_thread *thread;

	spin_lock_irq(&gang->lock);
	if (!gang->watching && !list_empty(&gang->threads)) {
		thread = list_first_entry(&gang->threads, struct mattx_thread,
					  node);
		init_waitqueue_func_entry(&gang->watch, on_signal);
		gang->watch_head = &mattx_sighand(thread->task)->signalfd_wqh;
		add_wait_queue(gang->watch_head, &gang->watch);
		gang->watching = true;
	}
	spin_unlock_irq(&gang->lock);
	mattx_signal_poke(gang);
}

/* gang->lock is held; a thread of the process is still there. */
void mattx_signal_unwatch(struct mattx_gang *gang)
{
	lockdep_assert_held(&gang->lock);
	if (gang->watching)
		remove_wait_queue(gang->watch_head, &gang->watch);
	gang->watching = false;
}

static int take_signal(struct mattx_thread *thread, kernel_siginfo_t *info,
		       enum pid_type *type)
{
	sigset_t mask;
	int sig;

	siginitset(&mask, sigmask(SIGKILL));
	if (test_bit(MATTX_T_STOPPING, &thread->flags))
		sigaddset(&mask, thread->gang->stop_sig);
	clear_siginfo(info);
	spin_lock_irq(&mattx_sighand(current)->siglock);
	sig = mattx_dequeue_signal(&mask, info, type);
	current->jobctl &= ~JOBCTL_STOP_DEQUEUED;
	recalc_sigpending();
	spin_unlock_irq(&mattx_sighand(current)->siglock);
	return sig;
}

/**
 * mattx_signal_drop_faults() - forget faults that were pending when the process left
 *
 * The guest makes the faulting instruction again and faults by itself; forwarded, the
 * signal would come a second time, and late. Context: the thread itself, as it
 * becomes a deputy's.
 */
void mattx_signal_drop_faults(void)
{
	kernel_siginfo_t info, kept[4];
	enum pid_type type;
	sigset_t mask;
	int sig, n = 0;

	siginitsetinv(&mask, sigmask(SIGSEGV) | sigmask(SIGBUS) |
				     sigmask(SIGILL) | sigmask(SIGFPE));
	do {
		clear_siginfo(&info);
		spin_lock_irq(&mattx_sighand(current)->siglock);
		sig = mattx_dequeue_signal(&mask, &info, &type);
		spin_unlock_irq(&mattx_sighand(current)->siglock);
		if (sig && info.si_code <= 0)
			kept[n++] = info; /* somebody has sent it */
	} while (sig && n < ARRAY_SIZE(kept));
	while (n--)
		send_sig_info(kept[n].si_signo, &kept[n], current);
}

/*
 * A signal that is in a thread's hand counts as sent: who asks whether the guest has seen
 * all then hears that it has not.
 */
static bool begin_forward(struct mattx_gang *gang)
{
	bool may;

	spin_lock_irq(&gang->lock);
	may = !gang->execs;
	gang->signals_sent += may;
	spin_unlock_irq(&gang->lock);
	return may;
}

static void end_forward(struct mattx_gang *gang, bool was_one)
{
	spin_lock_irq(&gang->lock);
	gang->signals_sent -= !was_one;
	spin_unlock_irq(&gang->lock);
}

bool mattx_signals_hold(struct mattx_gang *gang, u64 seen)
{
	unsigned long flags;
	bool all;

	spin_lock_irqsave(&gang->lock, flags);
	all = gang->signals_sent == seen;
	gang->execs = all;
	spin_unlock_irqrestore(&gang->lock, flags);
	return all;
}

void mattx_signals_go_on(struct mattx_gang *gang)
{
	unsigned long flags;

	spin_lock_irqsave(&gang->lock, flags);
	gang->execs = false;
	spin_unlock_irqrestore(&gang->lock, flags);
	mattx_signal_poke(gang);
}

/**
 * mattx_signal_forward() - send what is pending for this deputy's thread to the host
 *
 * Called after every call, too, so that a signal that a call brought about is on its
 * way before the call's result. Context: the thread itself.
 */
void mattx_signal_forward(struct mattx_thread *thread)
{
	struct mattx_gang *gang = thread->gang;
	struct mattx_frame_signal frame;
	enum pid_type type;
	kernel_siginfo_t info;

	clear_bit(MATTX_T_SIGNALS, &thread->flags);
	if (READ_ONCE(gang->state) != MATTX_GANG_DEPUTY || READ_ONCE(gang->dying))
		return; /* what is pending now is for the deputy itself */
	while (has_signal(&current->pending) ||
	       has_signal(&current->signal->shared_pending)) {
		if (!begin_forward(gang))
			break;
		if (!take_signal(thread, &info, &type)) {
			end_forward(gang, false);
			break;
		}
		memset(&frame, 0, sizeof(frame));
		frame.tid = cpu_to_le32(type == PIDTYPE_PID ? thread->tid : 0);
		frame.len = cpu_to_le32(MATTX_SIGINFO_SIZE);
		if (mattx_stop_by_terminal(info.si_signo) && mattx_stop_orphaned())
			frame.flags = cpu_to_le32(MATTX_SIGNAL_ORPHAN);
		memcpy(frame.info, &info, sizeof(info));
		end_forward(gang, true);
		mattx_link_send(gang->peer, MATTX_F_SIGNAL, gang->id, &frame,
				sizeof(frame), NULL, 0,
				GFP_KERNEL | __GFP_NOFAIL);
	}
}

/* ------------------------------------------------------------------- host */

/**
 * mattx_signal_arrived() - put a signal from home into the inbox
 * @frame: not yet checked
 * Context: process. Return: 0, -EINVAL or -ENOMEM.
 */
int mattx_signal_arrived(struct mattx_gang *gang,
			 const struct mattx_frame_signal *frame)
{
	struct mattx_pending *p;

	if (!info_valid(frame->info))
		return -EINVAL;
	p = pending_new(le32_to_cpu(frame->tid), frame->info);
	if (!p)
		return -ENOMEM;
	p->orphan = le32_to_cpu(frame->flags) & MATTX_SIGNAL_ORPHAN;
	spin_lock_irq(&gang->lock);
	list_add_tail(&p->node, &gang->inbox);
	gang->signals_seen++;
	spin_unlock_irq(&gang->lock);
	mattx_gang_wake(gang);
	return 0;
}

/* A frozen guest goes on: the warden looks at the inbox again. */
void mattx_signal_release(struct mattx_gang *gang)
{
	mattx_gang_wake(gang);
}

/**
 * mattx_signal_inbox() - copy what waits in the inbox into frames
 * @frames: room for *@n of them
 * Context: process. Return: 0 and *@n; -ENOSPC with the number needed.
 */
int mattx_signal_inbox(struct mattx_gang *gang, struct mattx_frame_signal *frames,
		       unsigned int *n, u64 *seen)
{
	struct mattx_pending *p;
	unsigned int i = 0;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(p, &gang->inbox, node) {
		if (i < *n) {
			memset(&frames[i], 0, sizeof(frames[i]));
			frames[i].tid = cpu_to_le32(p->tid);
			frames[i].len = cpu_to_le32(MATTX_SIGINFO_SIZE);
			memcpy(frames[i].info, &p->info, sizeof(p->info));
		}
		i++;
	}
	*seen = gang->signals_seen;
	spin_unlock_irq(&gang->lock);
	if (i > *n) {
		*n = i;
		return -ENOSPC;
	}
	*n = i;
	return 0;
}

static bool wants(struct task_struct *task, int sig)
{
	return !sigismember(&task->blocked, sig) && !(task->flags & PF_EXITING);
}

/* A thread that would take a signal to the process now; the leader if it would. */
static struct mattx_thread *taker(struct mattx_gang *gang, int sig)
{
	struct mattx_thread *thread, *found = NULL;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node) {
		if (!wants(thread->task, sig))
			continue;
		if (!found || thread->tid == gang->tgid)
			found = thread;
	}
	if (found)
		mattx_thread_hold(found);
	spin_unlock_irq(&gang->lock);
	return found;
}

/* Turns the newest @sig of a thread's own into one of the process. */
static void make_shared(struct mattx_thread *thread, int sig)
{
	struct sigpending *own = &thread->task->pending;
	struct sigpending *shared = &thread->task->signal->shared_pending;
	struct sigqueue *q, *newest = NULL;
	bool others = false;

	if (!mattx_thread_lock(thread))
		return;
	list_for_each_entry(q, &own->list, list) {
		if (q->info.si_signo != sig)
			continue;
		others = newest;
		newest = q;
	}
	if (newest) {
		list_move_tail(&newest->list, &shared->list);
		sigaddset(&shared->signal, sig);
		if (!others)
			sigdelset(&own->signal, sig);
	}
	mattx_thread_unlock(thread);
}

/* Sends a signal to a process of which no thread takes it now. */
static void send_shared(struct mattx_gang *gang, struct mattx_thread *leader,
			kernel_siginfo_t *info)
{
	struct task_struct *task = leader->task;
	struct mattx_thread *thread;
	int sig = info->si_signo;

	/* one of each ordinary signal is all that can be pending */
	if (sig < SIGRTMIN &&
	    sigismember(&task->signal->shared_pending.signal, sig))
		return;
	if (send_sig_info(sig, info, task))
		return;
	make_shared(leader, sig);
	/* somebody may have unblocked it meanwhile without finding it */
	thread = taker(gang, sig);
	if (!thread)
		return;
	mattx_thread_hold(thread);
	if (test_and_set_bit(MATTX_T_KICKED, &thread->flags)) {
		mattx_thread_put(thread);
	} else if (task_work_add(thread->task, &thread->kick, TWA_SIGNAL)) {
		clear_bit(MATTX_T_KICKED, &thread->flags);
		mattx_thread_put(thread);
	}
	mattx_thread_put(thread);
}

static bool has_handler(struct mattx_gang *gang, int sig)
{
	struct mattx_thread *thread = mattx_gang_any(gang);
	bool has = false;

	if (thread && mattx_thread_lock(thread)) {
		has = mattx_sighand(thread->task)->action[sig - 1].sa.sa_handler !=
		      SIG_DFL;
		mattx_thread_unlock(thread);
	}
	mattx_thread_put(thread);
	return has;
}

static void send_to_guest(struct mattx_gang *gang, struct mattx_pending *p)
{
	struct mattx_thread *thread = NULL;

	/* here its group is no orphan: it would stop, and nobody would continue it */
	if (p->orphan && !has_handler(gang, p->info.si_signo))
		return;
	if (p->tid)
		thread = mattx_gang_thread(gang, p->tid);
	if (!thread)
		thread = taker(gang, p->info.si_signo);
	if (thread) {
		send_sig_info(p->info.si_signo, &p->info, thread->task);
	} else {
		thread = mattx_gang_leader(gang);
		if (thread)
			send_shared(gang, thread, &p->info);
	}
	mattx_thread_put(thread);
}

/* The next signal that may be sent on now. */
static struct mattx_pending *inbox_next(struct mattx_gang *gang)
{
	struct mattx_pending *p = NULL;

	spin_lock_irq(&gang->lock);
	if (gang->state == MATTX_GANG_GUEST ||
	    gang->state == MATTX_GANG_FREEZING) {
		p = list_first_entry_or_null(&gang->inbox, struct mattx_pending,
					     node);
		if (p)
			list_del(&p->node);
		gang->sending = p;
	}
	spin_unlock_irq(&gang->lock);
	return p;
}

/* What a warden has to do: for all gangs of its namespace. */
struct duty {
	struct pid_namespace *ns;
	struct mattx_gang *gang; /* one that needs it, with a reference, or NULL */
	bool any;		 /* there is one that has not ended */
};

static int look_at(struct mattx_gang *gang, void *arg)
{
	enum mattx_gang_state state = READ_ONCE(gang->state);
	struct duty *duty = arg;

	if (gang->pidns != duty->ns || state == MATTX_GANG_DEAD)
		return 0;
	duty->any = true;
	if (state != MATTX_GANG_GUEST ||
	    (list_empty_careful(&gang->inbox) && !mattx_stop_changed(gang)))
		return 0;
	duty->gang = mattx_gang_hold(gang);
	return 1;
}

/* Return: whether there is something to be done: for duty->gang, or the end. */
static bool warden_wakes(struct mattx_gang *gang, struct duty *duty)
{
	*duty = (struct duty){ .ns = gang->pidns };
	mattx_gang_for_each(look_at, duty);
	return duty->gang || !duty->any;
}

/* A child of the warden's, a guest, has been stopped, continued or has ended. */
static int on_child(struct wait_queue_entry *entry, unsigned int mode, int sync,
		    void *key)
{
	struct mattx_gang *gang =
		container_of(entry, struct mattx_gang, stop_watch);

	wake_up_all(&gang->wait);
	return 0;
}

static void serve_guest(struct mattx_gang *gang)
{
	struct mattx_pending *p;

	mattx_stop_report(gang);
	p = inbox_next(gang);
	if (!p)
		return;
	send_to_guest(gang, p);
	kfree(p);
	WRITE_ONCE(gang->sending, NULL);
	wake_up_all(&gang->wait);
}

static long serve_guests(struct mattx_gang *gang)
{
	struct duty duty;

	for (;;) {
		if (wait_event_interruptible(gang->wait,
					     warden_wakes(gang, &duty)))
			return -ERESTARTNOINTR;
		if (!duty.gang)
			return 0;
		serve_guest(duty.gang);
		mattx_gang_put(duty.gang);
	}
}

/**
 * mattx_warden() - serve guests as PID 1 of their namespace until all have ended
 * @gang: that came first; the others are of processes that were created here
 *
 * It sleeps interruptibly, with every signal but SIGKILL blocked, so that a guest
 * does not add to the node's load by being here.
 *
 * Context: process, the warden's. Return: 0 when the guests have ended, -EPERM,
 * -ERESTARTNOINTR.
 */
long mattx_warden(struct mattx_gang *gang)
{
	sigset_t all, old;
	long ret;

	if (gang->role != MATTX_ROLE_HOST ||
	    task_active_pid_ns(current) != gang->pidns ||
	    !is_child_reaper(task_pid(current)))
		return -EPERM;
	init_waitqueue_func_entry(&gang->stop_watch, on_child);
	add_wait_queue(&current->signal->wait_chldexit, &gang->stop_watch);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigprocmask(SIG_SETMASK, &all, &old);
	ret = serve_guests(gang);
	sigprocmask(SIG_SETMASK, &old, NULL);
	remove_wait_queue(&current->signal->wait_chldexit, &gang->stop_watch);
	return ret;
}

/* Whether the warden has nothing in its hand: a frozen guest's signals are all seen. */
bool mattx_signal_quiet(struct mattx_gang *gang)
{
	return !READ_ONCE(gang->sending);
}

/* --------------------------------------------------------- what is pending */

struct infos {
	u8 (*info)[MATTX_SIGINFO_SIZE];
	unsigned int n, room;
};

static void add_info(struct infos *to, const kernel_siginfo_t *info)
{
	if (to->n < to->room) {
		memset(to->info[to->n], 0, MATTX_SIGINFO_SIZE);
		memcpy(to->info[to->n], info, sizeof(*info));
	}
	to->n++;
}

static void add_pending(struct infos *to, const struct sigpending *pending)
{
	sigset_t rest = pending->signal;
	struct sigqueue *q;
	int sig;

	list_for_each_entry(q, &pending->list, list) {
		add_info(to, &q->info);
		sigdelset(&rest, q->info.si_signo);
	}
	/* signals for which the kernel had no memory to say more */
	for (sig = 1; sig <= _NSIG; sig++) {
		kernel_siginfo_t info;

		if (!sigismember(&rest, sig))
			continue;
		clear_siginfo(&info);
		info.si_signo = sig;
		info.si_code = SI_USER;
		add_info(to, &info);
	}
}

/**
 * mattx_signals_get() - what is pending for a frozen guest
 * @tid: a thread, or 0 for the process
 *
 * For a process of this node there is nothing to get: it keeps them, and as a
 * deputy forwards them. Context: process. Return: 0; -ENOSPC with the length needed.
 */
int mattx_signals_get(struct mattx_gang *gang, s32 tid, void __user *buf, u32 *len)
{
	struct mattx_thread *thread;
	struct infos infos = { NULL };
	int err = 0;

	if (gang->role == MATTX_ROLE_HOME) {
		*len = 0;
		return 0;
	}
	thread = tid ? mattx_gang_thread(gang, tid) : mattx_gang_leader(gang);
	if (!thread)
		return -ESRCH;
	infos.room = *len / MATTX_SIGINFO_SIZE;
	infos.info =
		kvmalloc_array(infos.room ?: 1, MATTX_SIGINFO_SIZE, GFP_KERNEL);
	if (!infos.info) {
		err = -ENOMEM;
		goto out;
	}
	if (tid && test_bit(MATTX_T_FATAL, &thread->flags))
		add_info(&infos, &thread->fatal);
	if (mattx_thread_lock(thread)) {
		add_pending(&infos, tid ? &thread->task->pending :
					  &thread->task->signal->shared_pending);
		mattx_thread_unlock(thread);
	} else {
		err = -ESRCH;
	}
	*len = infos.n * MATTX_SIGINFO_SIZE;
	if (err)
		*len = 0;
	else if (infos.n > infos.room)
		err = -ENOSPC;
	else if (copy_to_user(buf, infos.info, *len))
		err = -EFAULT;
	kvfree(infos.info);
out:
	mattx_thread_put(thread);
	return err;
}

/* What waits in the inbox and is pending; the thread is locked. */
static void add_all(struct infos *to, struct mattx_thread *thread)
{
	struct mattx_pending *p;

	add_pending(to, &current->pending);
	add_pending(to, &current->signal->shared_pending);
	list_for_each_entry(p, &thread->gang->inbox, node)
		if (!p->tid || p->tid == thread->tid)
			add_info(to, &p->info);
}

int mattx_signals_now(struct mattx_thread *thread,
		      u8 (**res)[MATTX_SIGINFO_SIZE], u64 *seen)
{
	struct mattx_gang *gang = thread->gang;
	struct infos infos = { NULL };
	bool quiet;

	for (;;) {
		if (wait_event_killable(gang->wait, mattx_signal_quiet(gang)) ||
		    !mattx_thread_lock(thread)) {
			kvfree(infos.info);
			return -EINTR;
		}
		infos.n = 0;
		quiet = mattx_signal_quiet(gang);
		*seen = gang->signals_seen;
		add_all(&infos, thread);
		mattx_thread_unlock(thread);
		if (quiet && infos.n <= infos.room)
			break;
		if (!quiet)
			continue;
		kvfree(infos.info);
		infos.room = infos.n;
		infos.info = kvmalloc_array(infos.room, MATTX_SIGINFO_SIZE,
					    GFP_KERNEL);
		if (!infos.info)
			return -ENOMEM;
	}
	*res = infos.info;
	return infos.n;
}

/**
 * mattx_signal_keep() - a signal that is to be queued when the gang awakens
 * @info: MATTX_SIGINFO_SIZE bytes, not yet checked
 * Context: process. Return: 0, -EINVAL, -ESRCH or -ENOMEM.
 */
int mattx_signal_keep(struct mattx_gang *gang, s32 tid, const void *info)
{
	struct mattx_thread *thread = NULL;
	struct mattx_pending *p;

	if (!info_valid(info))
		return -EINVAL;
	if (tid) {
		thread = mattx_gang_thread(gang, tid);
		if (!thread)
			return -ESRCH;
	}
	p = pending_new(tid, info);
	if (p) {
		spin_lock_irq(&gang->lock);
		list_add_tail(&p->node,
			      thread ? &thread->signals : &gang->shared);
		spin_unlock_irq(&gang->lock);
	}
	mattx_thread_put(thread);
	return p ? 0 : -ENOMEM;
}

/**
 * mattx_signals_set() - signals to be queued when the gang awakens
 * Replaces what was set before. Context: process. Return: 0 or a negative errno.
 */
int mattx_signals_set(struct mattx_gang *gang, s32 tid, const void __user *buf,
		      u32 len)
{
	struct mattx_thread *thread = NULL;
	u8 info[MATTX_SIGINFO_SIZE];
	int err = 0;
	u32 at;

	if (len % MATTX_SIGINFO_SIZE)
		return -EINVAL;
	if (tid) {
		thread = mattx_gang_thread(gang, tid);
		if (!thread)
			return -ESRCH;
	}
	mattx_signals_free(thread ? &thread->signals : &gang->shared);
	mattx_thread_put(thread);
	for (at = 0; at < len && !err; at += MATTX_SIGINFO_SIZE) {
		if (copy_from_user(info, buf + at, MATTX_SIGINFO_SIZE))
			return -EFAULT;
		err = mattx_signal_keep(gang, tid, info);
	}
	return err;
}

/**
 * mattx_signals_apply() - queue what was set for this thread
 * Everything is blocked still, so nothing is lost. Context: the thread itself.
 */
void mattx_signals_apply(struct mattx_thread *thread)
{
	struct mattx_gang *gang = thread->gang;
	struct mattx_pending *p, *next;
	LIST_HEAD(own);
	LIST_HEAD(shared);

	spin_lock_irq(&gang->lock);
	list_splice_init(&thread->signals, &own);
	if (thread->tid == gang->tgid)
		list_splice_init(&gang->shared, &shared);
	spin_unlock_irq(&gang->lock);
	list_for_each_entry_safe(p, next, &own, node) {
		send_sig_info(p->info.si_signo, &p->info, current);
		kfree(p);
	}
	list_for_each_entry_safe(p, next, &shared, node) {
		if (p->info.si_signo >= SIGRTMIN ||
		    !sigismember(&current->signal->shared_pending.signal,
				 p->info.si_signo)) {
			send_sig_info(p->info.si_signo, &p->info, current);
			make_shared(thread, p->info.si_signo);
		}
		kfree(p);
	}
}
