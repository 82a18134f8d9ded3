// SPDX-License-Identifier: GPL-2.0
/*
 * What the two halves of a process tell each other: handing over, ending.
 *
 * The side that has the live copy commits; the side that has armed the new copy
 * wakes it and answers COMMITTED, or answers ABORTED when nothing is armed under
 * that id. Between COMMIT and its answer neither copy runs. Both frames travel in
 * the modules' session and so arrive exactly once, whatever connections or daemons
 * do; only the end of an instance of the other module leaves the question open,
 * and then its copy is dead.
 */
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/sched/cputime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "internal.h"
#include "../compat.h"
#include "../fault.h"
#include "../ghost/watch.h"
#include "../main.h"
#include "../netlink.h"
#include "../wormhole/link.h"
#include "../wormhole/protocol.h"

struct commit_home { /* payload of a COMMIT that goes home */
	__le64 signals_seen;
	__le32 nr_signals;
	__le32 pad;
	/* struct mattx_frame_signal follow: what was not given to the guest yet */
};

struct commit_out {	 /* payload of a COMMIT that goes out */
	__le32 stop_sig; /* the process is stopped by it; 0: it runs */
	__le32 pad;
};

static int send_plain(struct mattx_peer *peer, u16 type, u64 id)
{
	return mattx_link_send(peer, type, id, NULL, 0, NULL, 0, GFP_KERNEL);
}

static void send_aborted(struct mattx_peer *peer, u64 id, int error)
{
	struct mattx_frame_error frame = { .error = cpu_to_le32(error) };

	mattx_link_send(peer, MATTX_F_ABORTED, id, &frame, sizeof(frame), NULL,
			0, GFP_KERNEL | __GFP_NOFAIL);
}

/* ------------------------------------------------------------- arm, commit */

/* The body is a process of its own name and user only now. */
static int describe_guest(struct mattx_gang *gang)
{
	struct mattx_thread *leader = mattx_gang_leader(gang);
	int err;

	if (!leader)
		return -ESRCH;
	get_task_comm(gang->comm, leader->task);
	rcu_read_lock();
	gang->uid =
		from_kuid_munged(&init_user_ns, __task_cred(leader->task)->uid);
	rcu_read_unlock();
	err = mattx_store_arm(gang, leader->task);
	mattx_thread_put(leader);
	return err;
}

static int arm_guest(struct mattx_gang *gang, const struct mattx_ioc_commit *arm)
{
	struct mattx_peer *peer = mattx_peer_get(arm->peer);
	struct mattx_gang *other;
	int err = 0;

	if (!peer)
		return -ENOTCONN;
	other = mattx_gang_find(peer, arm->gang);
	if (other || !arm->gang)
		err = -EEXIST;
	mattx_gang_put(other);
	if (!err)
		err = describe_guest(gang);
	if (!err) {
		mattx_gang_publish(gang, arm->gang, peer);
		if (!mattx_gang_change(gang, MATTX_GANG_BODY, MATTX_GANG_ARMED))
			err = -EINVAL;
	}
	mattx_peer_put(peer);
	return err;
}

/**
 * mattx_gang_arm() - the copy here is complete: the peer's COMMIT wakes it
 * Context: process, gang->door held; may sleep. Return: 0; -ENOTCONN: no such
 * node; -EEXIST: bad id; -EBUSY: a thread is still making a call; -EINVAL.
 */
int mattx_gang_arm(struct mattx_gang *gang, const struct mattx_ioc_commit *arm)
{
	int err;

	if (mattx_fault(MATTX_FAULT_ARM))
		return -EIO;
	err = mattx_gang_await(gang);
	if (err)
		return err;
	if (gang->role == MATTX_ROLE_HOST)
		return arm_guest(gang, arm);
	return mattx_gang_change(gang, MATTX_GANG_DEPUTY, MATTX_GANG_ARMED) ?
		       0 :
		       -EINVAL;
}

static int send_commit_home(struct mattx_gang *gang)
{
	struct mattx_frame_signal *frames = NULL;
	struct commit_home head = {};
	unsigned int n = 0;
	u64 seen;
	int err;

	if (wait_event_killable(gang->wait, mattx_signal_quiet(gang)))
		return -EINTR;
	while (mattx_signal_inbox(gang, frames, &n, &seen)) {
		kvfree(frames);
		frames = kvmalloc_array(n, sizeof(*frames), GFP_KERNEL);
		if (!frames)
			return -ENOMEM;
	}
	head.signals_seen = cpu_to_le64(seen);
	head.nr_signals = cpu_to_le32(n);
	err = mattx_link_send(gang->peer, MATTX_F_COMMIT, gang->id, &head,
			      sizeof(head), frames, n * sizeof(*frames),
			      GFP_KERNEL);
	kvfree(frames);
	return err;
}

static int send_commit_out(struct mattx_gang *gang)
{
	struct commit_out payload = {
		.stop_sig = cpu_to_le32(mattx_stop_signal(gang)),
	};

	return mattx_link_send(gang->peer, MATTX_F_COMMIT, gang->id, &payload,
			       sizeof(payload), NULL, 0, GFP_KERNEL);
}

/* A process that is killed meanwhile is not found by the answer any more. */
static bool has_answer(struct mattx_gang *gang)
{
	return READ_ONCE(gang->answer) != -EINPROGRESS ||
	       READ_ONCE(gang->state) == MATTX_GANG_DEAD;
}

/* Sends the COMMIT and waits for the answer. */
static int commit_once(struct mattx_gang *gang)
{
	int err;

	if (!mattx_gang_change(gang, MATTX_GANG_FROZEN, MATTX_GANG_COMMITTING))
		return -EINVAL;
	gang->answer = -EINPROGRESS;
	gang->sent = true;
	err = gang->role == MATTX_ROLE_HOME ? send_commit_out(gang) :
					      send_commit_home(gang);
	if (err) {
		gang->sent = false;
		mattx_gang_change(gang, MATTX_GANG_COMMITTING, MATTX_GANG_FROZEN);
		return err;
	}
	if (wait_event_killable(gang->wait, has_answer(gang)))
		return -EINTR; /* the answer finds its own way */
	err = READ_ONCE(gang->answer);
	return err == -EINPROGRESS ? -ESRCH : err;
}

/**
 * mattx_gang_commit() - hand over to the copy that the peer has armed
 *
 * Context: process, gang->door held; sleeps until the peer has answered, however
 * long the connection is down; killable, and then the answer is served all the same.
 * Return: 0: the other copy is the live one; a negative errno: this one still is
 * (a process at home has been thawed, a guest is FROZEN). -EINTR: not known yet.
 */
int mattx_gang_commit(struct mattx_gang *gang, struct mattx_ioc_commit *commit)
{
	struct mattx_peer *peer;
	int err;

	if (mattx_fault(MATTX_FAULT_COMMIT))
		return -EIO;
	if (gang->role == MATTX_ROLE_HOME) {
		if (READ_ONCE(gang->recalled))
			return -ETXTBSY;
		peer = mattx_peer_get(commit->peer);
		if (!peer)
			return -ENOTCONN;
		if (!gang->stub) {
			err = mattx_body_stub(gang, 0, PAGE_SIZE);
			if (err) {
				mattx_peer_put(peer);
				return err;
			}
		}
		mattx_gang_publish(gang, commit->gang, peer);
		mattx_peer_put(peer);
	} else if (!gang->peer) {
		return -EINVAL;
	}
	do {
		err = commit_once(gang);
	} while (err == -EAGAIN); /* signals crossed it: they have arrived now */
	return err;
}

/* -------------------------------------------------------------- the deputy */

/* A COMMITTED has arrived at home. */
static void become_deputy(struct mattx_gang *gang)
{
	struct mattx_thread *thread;

	if (!mattx_gang_change(gang, MATTX_GANG_COMMITTING, MATTX_GANG_DEPUTY))
		return;
	gang->since = ktime_get_boottime_ns();
	mattx_state_stop_timers(gang);
	mattx_signal_watch(gang);
	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node)
		wake_up(&thread->wait);
	spin_unlock_irq(&gang->lock);
	if (READ_ONCE(gang->recalled))
		mattx_guard_recall(gang);
	pr_info("PID %d (%s) has moved to node %s\n", pid_nr(gang->pid),
		gang->comm, mattx_peer_name(gang->peer));
}

/**
 * mattx_deputy_work() - has a parked thread something to do as a deputy?
 * Context: the thread itself.
 */
bool mattx_deputy_work(struct mattx_thread *thread)
{
	enum mattx_gang_state state = READ_ONCE(thread->gang->state);

	if (state != MATTX_GANG_DEPUTY && state != MATTX_GANG_ARMED)
		return false;
	if (thread->gang->role != MATTX_ROLE_HOME)
		return false;
	return !test_bit(MATTX_T_DEPUTY, &thread->flags) ||
	       test_bit(MATTX_T_SIGNALS, &thread->flags) ||
	       test_bit(MATTX_T_STOP, &thread->flags) ||
	       test_bit(MATTX_T_DIE, &thread->flags);
}

/* What the process has used here, less what current has. */
static void others_usage(struct mattx_usage *sum)
{
	struct task_struct *t;

	spin_lock_irq(&mattx_sighand(current)->siglock);
	mattx_usage_ended(sum, current->signal);
	for_each_thread(current, t)
		if (t != current)
			mattx_usage_add(sum, t);
	spin_unlock_irq(&mattx_sighand(current)->siglock);
}

/*
 * What the guest used is the deputy's: its parent reads it from wait4(). The thread that
 * ends first for all of them takes what the others here do not have.
 */
static void take_usage(struct mattx_thread *thread, bool all)
{
	struct mattx_gang *gang = thread->gang;
	struct mattx_usage others = {};

	if (!all) {
		mattx_usage_raise(&thread->end.usage, &others);
	} else if (!test_and_set_bit(0, &gang->end.taken)) {
		others_usage(&others);
		mattx_usage_raise(&gang->end.usage, &others);
	}
}

static int end_start(struct mattx_thread *thread, struct mattx_job *job)
{
	return 0;
}

/* The call does not return: it was not made, or the thread was killed before. */
static void end_done(struct mattx_thread *thread, struct mattx_job *job, long ret)
{
	kfree(job);
	if (ret != -ESRCH)
		set_bit(MATTX_T_DIE, &thread->flags);
}

static void end_by_call(struct mattx_thread *thread, u32 nr, u32 code)
{
	struct mattx_job *job = kzalloc(sizeof(*job), GFP_KERNEL | __GFP_NOFAIL);

	job->start = end_start;
	job->done = end_done;
	job->nr = nr;
	job->args[0] = (code >> 8) & 0xff;
	if (mattx_body_queue(thread, job))
		kfree(job);
}

/* As the guest has ended: all of it, whichever thread comes first. */
static void end_as_guest(struct mattx_thread *thread)
{
	int sig = thread->gang->end.code & 0x7f;

	if (!sig) {
		end_by_call(thread, __NR_exit_group, thread->gang->end.code);
		return;
	}
	/* its memory is not the guest's: whatever core it had is not here */
	current->signal->rlim[RLIMIT_CORE].rlim_cur = 0;
	if (sig == SIGKILL)
		send_sig(SIGKILL, current, 1);
	else
		force_sig(sig);
}

/* Ends as the guest, or this thread of it, has ended. */
static void end_thread(struct mattx_thread *thread)
{
	bool all = smp_load_acquire(&thread->gang->dying);

	take_usage(thread, all);
	if (all)
		end_as_guest(thread);
	else
		end_by_call(thread, __NR_exit, thread->end.code);
}

/**
 * mattx_deputy_serve() - do what mattx_deputy_work() found
 * Context: the thread itself, in the park.
 */
void mattx_deputy_serve(struct mattx_thread *thread)
{
	if (!test_and_set_bit(MATTX_T_DEPUTY, &thread->flags)) {
		mattx_state_detach();
		mattx_signal_drop_faults();
		mattx_stop_join();
	}
	if (test_bit(MATTX_T_SIGNALS, &thread->flags))
		mattx_signal_forward(thread);
	if (test_and_clear_bit(MATTX_T_DIE, &thread->flags))
		end_thread(thread);
	else if (test_bit(MATTX_T_STOP, &thread->flags))
		mattx_stop_self(thread);
}

/* -------------------------------------------------------------------- ends */

/**
 * mattx_report_exit() - a thread of a gang has ended
 * @last: it was the gang's last
 * Context: the tracepoint, preemption off.
 */
void mattx_report_exit(struct mattx_thread *thread, struct task_struct *task,
		       bool last)
{
	struct mattx_gang *gang = thread->gang;
	struct signal_struct *signal = task->signal;
	bool group = READ_ONCE(signal->flags) & SIGNAL_GROUP_EXIT;
	struct mattx_frame_exit frame = { .tid = cpu_to_le32(thread->tid) };
	struct mattx_usage usage = {};
	unsigned long flags;

	spin_lock_irqsave(&gang->lock, flags);
	mattx_usage_add(&gang->total, task);
	if (thread->tid == gang->tgid)
		gang->leader_code = task->exit_code;
	spin_unlock_irqrestore(&gang->lock, flags);
	if (!gang->id || !gang->peer || (gang->silent && !gang->owes))
		return;
	if (gang->role == MATTX_ROLE_HOME) {
		if (last)
			mattx_link_send(gang->peer, MATTX_F_KILL, gang->id,
					NULL, 0, NULL, 0, GFP_ATOMIC);
		return;
	}
	if (last) {
		frame.code = cpu_to_le32(group ? signal->group_exit_code :
						 gang->leader_code);
		usage = gang->total;
	} else if (group) {
		return;
	} else {
		frame.code = cpu_to_le32(task->exit_code);
		mattx_usage_add(&usage, task);
	}
	mattx_usage_pack(&usage, frame.usage);
	if (last && gang->owes)
		mattx_store_end(gang, &frame, !gang->silent);
	else if (!gang->silent)
		mattx_link_send(gang->peer,
				last ? MATTX_F_GANG_EXIT : MATTX_F_THREAD_EXIT,
				gang->id, &frame, sizeof(frame), NULL, 0,
				GFP_ATOMIC);
}

void mattx_guest_unborn(struct mattx_gang *gang, s32 tid)
{
	struct mattx_frame_exit frame = { .tid = cpu_to_le32(tid) };

	mattx_link_send(gang->peer, MATTX_F_THREAD_EXIT, gang->id, &frame,
			sizeof(frame), NULL, 0, GFP_KERNEL | __GFP_NOFAIL);
}

static bool is_deputy(struct mattx_gang *gang)
{
	return gang->role == MATTX_ROLE_HOME &&
	       READ_ONCE(gang->state) == MATTX_GANG_DEPUTY;
}

static void on_exit_frame(struct mattx_gang *gang, u16 type,
			  const struct mattx_frame_exit *f);

/**
 * mattx_deputy_end() - the guest has ended, and what it left is at home
 * Context: process.
 */
void mattx_deputy_end(struct mattx_gang *gang,
		      const struct mattx_frame_exit *frame)
{
	on_exit_frame(gang, MATTX_F_GANG_EXIT, frame);
}

/* A thread of the deputy is to end. gang->lock is held. */
static void order_end(struct mattx_thread *thread)
{
	lockdep_assert_held(&thread->gang->lock);
	spin_lock(&thread->lock);
	set_bit(MATTX_T_ENDS, &thread->flags);
	set_bit(MATTX_T_DIE, &thread->flags);
	mattx_thread_kick(thread);
	spin_unlock(&thread->lock);
	wake_up(&thread->wait);
}

/* Each of its threads, since any of them may be on its way out already. */
static void gang_ends(struct mattx_gang *gang, const struct mattx_frame_exit *f)
{
	struct mattx_thread *thread;

	gang->silent = true;
	spin_lock_irq(&gang->lock);
	if (!gang->dying) {
		gang->end.code = le32_to_cpu(f->code);
		mattx_usage_unpack(&gang->end.usage, f->usage);
		smp_store_release(&gang->dying, true);
		list_for_each_entry(thread, &gang->threads, node)
			order_end(thread);
	}
	spin_unlock_irq(&gang->lock);
}

static void thread_ends(struct mattx_gang *gang, const struct mattx_frame_exit *f)
{
	s32 tid = le32_to_cpu(f->tid);
	struct mattx_thread *thread;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node) {
		if (thread->tid != tid)
			continue;
		thread->end.code = le32_to_cpu(f->code);
		mattx_usage_unpack(&thread->end.usage, f->usage);
		order_end(thread);
	}
	spin_unlock_irq(&gang->lock);
}

static void on_exit_frame(struct mattx_gang *gang, u16 type,
			  const struct mattx_frame_exit *f)
{
	/* it will not come home any more, whatever is ready for it */
	if (gang->role == MATTX_ROLE_HOME && type == MATTX_F_GANG_EXIT)
		mattx_gang_change(gang, MATTX_GANG_ARMED, MATTX_GANG_DEPUTY);
	if (!is_deputy(gang))
		return;
	if (type == MATTX_F_GANG_EXIT)
		gang_ends(gang, f);
	else
		thread_ends(gang, f);
	mattx_stop_wake_all(gang);
}

/* Asks the daemon to bring the gang home. Context: process. */
void mattx_gang_ask_home(struct mattx_gang *gang, u32 nr, const char *cause)
{
	spin_lock_irq(&gang->lock);
	gang->want_nr = nr;
	strscpy(gang->want_cause, cause, sizeof(gang->want_cause));
	spin_unlock_irq(&gang->lock);
	mattx_event_want_home(gang->id, mattx_peer_id(gang->peer), nr, cause);
}

long mattx_guest_want_home(struct mattx_thread *thread, u32 nr, const char *cause)
{
	if (thread->gang->lender) {
		pr_warn_ratelimited(
			"PID %d (%s) wants to go home but has its parent's memory: %s\n",
			pid_nr(thread->gang->pid), thread->gang->comm, cause);
		return -EAGAIN;
	}
	mattx_gang_ask_home(thread->gang, nr, cause);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (signal_pending(current))
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return -ERESTARTNOINTR;
}

/* ---------------------------------------------------------------- receiver */

static void on_commit_out(struct mattx_peer *peer, struct mattx_gang *gang,
			  const void *payload, size_t len)
{
	const struct commit_out *commit = payload;
	u32 sig = len == sizeof(*commit) ? le32_to_cpu(commit->stop_sig) : 0;

	if (len != sizeof(*commit) || (sig && !mattx_stop_valid(sig))) {
		send_aborted(peer, gang->id, EPROTO);
		return;
	}
	if (mattx_fault(MATTX_FAULT_COMMIT_REFUSED) ||
	    !mattx_gang_change(gang, MATTX_GANG_ARMED, MATTX_GANG_GUEST)) {
		send_aborted(peer, gang->id, ESTALE);
		return;
	}
	if (sig)
		mattx_stop_adopt(gang, sig);
	gang->since = ktime_get_boottime_ns();
	gang->silent = false;
	gang->owes = gang->shares;
	send_plain(peer, MATTX_F_COMMITTED, gang->id);
	mattx_gang_order(gang, MATTX_AWAKEN);
	pr_info("PID %d (%s) has come from node %s, where it is PID %d\n",
		pid_nr(gang->pid), gang->comm, mattx_peer_name(peer), gang->tgid);
}

static int keep_frames(struct mattx_gang *gang, const void *payload, size_t len)
{
	const struct commit_home *head = payload;
	const struct mattx_frame_signal *frame = payload + sizeof(*head);
	u32 i, n;
	int err = 0;

	if (len < sizeof(*head))
		return -EPROTO;
	n = le32_to_cpu(head->nr_signals);
	if ((len - sizeof(*head)) % sizeof(*frame) ||
	    (len - sizeof(*head)) / sizeof(*frame) != n)
		return -EPROTO;
	if (le64_to_cpu(head->signals_seen) != READ_ONCE(gang->signals_sent))
		return -EAGAIN;
	for (i = 0; i < n && !err; i++) {
		err = mattx_signal_keep(gang, le32_to_cpu(frame[i].tid),
					frame[i].info);
		if (err == -ESRCH) /* to a thread that has ended */
			err = 0;
	}
	return err;
}

static void on_commit_home(struct mattx_peer *peer, struct mattx_gang *gang,
			   const void *payload, size_t len)
{
	int err = -ESTALE;

	if (READ_ONCE(gang->state) == MATTX_GANG_ARMED)
		err = mattx_fault(MATTX_FAULT_COMMIT_REFUSED) ?
			      -ESTALE :
			      keep_frames(gang, payload, len);
	if (!err && !mattx_gang_change(gang, MATTX_GANG_ARMED, MATTX_GANG_DEAD))
		err = -ESTALE;
	if (err) {
		send_aborted(peer, gang->id, -err);
		return;
	}
	gang->silent = true;
	mattx_watch_end(gang);
	send_plain(peer, MATTX_F_COMMITTED, gang->id);
	mattx_guard_release(gang);
	mattx_gang_order(gang, MATTX_AWAKEN);
	pr_info("PID %d (%s) has come home from node %s\n", pid_nr(gang->pid),
		gang->comm, mattx_peer_name(peer));
}

static void on_committed(struct mattx_gang *gang)
{
	if (READ_ONCE(gang->state) != MATTX_GANG_COMMITTING)
		return; /* home: killed meanwhile; the guest's STORED will come */
	if (gang->role == MATTX_ROLE_HOME) {
		become_deputy(gang);
	} else {
		gang->silent = true;
		gang->owes = false;	     /* home has it all */
		WRITE_ONCE(gang->answer, 0); /* before it is DEAD: has_answer() */
		mattx_gang_kill(gang);
	}
	WRITE_ONCE(gang->answer, 0);
	wake_up_all(&gang->wait);
}

static void on_aborted(struct mattx_gang *gang, const void *payload, size_t len)
{
	const struct mattx_frame_error *frame = payload;
	int error = len == sizeof(*frame) ? le32_to_cpu(frame->error) : EPROTO;

	if (READ_ONCE(gang->state) == MATTX_GANG_DEAD)
		mattx_guard_release(gang); /* killed meanwhile, and never left */
	if (READ_ONCE(gang->state) != MATTX_GANG_COMMITTING)
		return;
	if (error <= 0 || error > MAX_ERRNO)
		error = EPROTO;
	if (gang->role == MATTX_ROLE_HOME) {
		gang->silent = true;
		mattx_gang_thaw(gang);
	} else {
		mattx_gang_change(gang, MATTX_GANG_COMMITTING, MATTX_GANG_FROZEN);
		if (!READ_ONCE(gang->bound))
			mattx_gang_thaw(gang);
	}
	WRITE_ONCE(gang->answer, -error);
	wake_up_all(&gang->wait);
}

static void on_signal_frame(struct mattx_gang *gang, const void *payload,
			    size_t len)
{
	const struct mattx_frame_signal *frame = payload;

	if (gang->role != MATTX_ROLE_HOST || len != sizeof(*frame) ||
	    mattx_signal_arrived(gang, frame))
		pr_warn_ratelimited(
			"PID %d: a signal from home was not understood\n",
			pid_nr(gang->pid));
}

void mattx_gang_receive(struct mattx_peer *peer, u16 type, u64 id,
			const void *payload, size_t len)
{
	struct mattx_gang *gang = mattx_gang_find(peer, id);

	if (!gang) {
		if (type == MATTX_F_COMMIT)
			send_aborted(peer, id, ESTALE);
		return;
	}
	switch (type) {
	case MATTX_F_COMMIT:
		if (gang->role == MATTX_ROLE_HOST)
			on_commit_out(peer, gang, payload, len);
		else
			on_commit_home(peer, gang, payload, len);
		break;
	case MATTX_F_COMMITTED:
		on_committed(gang);
		break;
	case MATTX_F_ABORTED:
		on_aborted(gang, payload, len);
		break;
	case MATTX_F_SIGNAL:
		on_signal_frame(gang, payload, len);
		break;
	case MATTX_F_KILL:
		if (gang->role == MATTX_ROLE_HOST) {
			gang->silent = true;
			mattx_gang_kill(gang);
		}
		break;
	case MATTX_F_STOPPED:
		if (is_deputy(gang) && len == sizeof(struct mattx_frame_exit))
			mattx_stop_deputy(
				gang,
				le32_to_cpu(((const struct mattx_frame_exit *)payload)
						    ->code));
		break;
	case MATTX_F_CONTINUED:
		if (is_deputy(gang))
			mattx_stop_end(gang);
		break;
	case MATTX_F_BORN:
		WRITE_ONCE(gang->claimed, true);
		break;
	case MATTX_F_RECALL:
		if (gang->role == MATTX_ROLE_HOST)
			mattx_gang_ask_home(gang, MATTX_NO_CALL,
					    "its shared memory is asked for");
		break;
	case MATTX_F_STORE:
	case MATTX_F_STORED:
		if (mattx_store_arrived(gang, type, payload, len))
			pr_warn_ratelimited("node %s sent a malformed store\n",
					    mattx_peer_name(peer));
		break;
	case MATTX_F_THREAD_EXIT:
	case MATTX_F_GANG_EXIT:
		if (len == sizeof(struct mattx_frame_exit))
			on_exit_frame(gang, type, payload);
		break;
	default:
		pr_warn_ratelimited("node %s sent a frame of unknown type %u\n",
				    mattx_peer_name(peer), type);
	}
	mattx_gang_put(gang);
}

static int lose(struct mattx_gang *gang, void *arg)
{
	struct mattx_peer *peer = arg;

	if (gang->peer != peer)
		return 0;
	if (READ_ONCE(gang->state) == MATTX_GANG_DEAD) {
		mattx_guard_release(gang);
		return 0;
	}
	if (gang->role == MATTX_ROLE_HOME &&
	    READ_ONCE(gang->state) == MATTX_GANG_COMMITTING) {
		/* its copy there is dead and has done nothing through us */
		gang->silent = true;
		mattx_gang_thaw(gang);
		WRITE_ONCE(gang->answer, -ESHUTDOWN);
		wake_up_all(&gang->wait);
		return 0;
	}
	pr_warn("PID %d (%s) is killed: node %s, %s, is gone\n",
		pid_nr(gang->pid), gang->comm, mattx_peer_name(peer),
		gang->role == MATTX_ROLE_HOME ? "where it ran" : "its home");
	gang->silent = true;
	gang->owes = false;
	mattx_gang_kill(gang);
	mattx_guard_release(gang);
	return 0;
}

void mattx_gang_peer_lost(struct mattx_peer *peer)
{
	mattx_gang_for_each(lose, peer);
}

static int is_shared(struct mattx_gang *gang, void *arg)
{
	return gang->peer == arg && (READ_ONCE(gang->state) != MATTX_GANG_DEAD ||
				     !list_empty_careful(&gang->guards));
}

bool mattx_gang_shared(const struct mattx_peer *peer)
{
	return mattx_gang_for_each(is_shared, (void *)peer);
}
