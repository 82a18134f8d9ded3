// SPDX-License-Identifier: GPL-2.0
/*
 * System calls that deputies make for their guests.
 *
 * A CALL becomes a job of the deputy's thread: its buffers are laid out in the
 * thread's scratch memory, the thread makes the call as user code would, and the
 * REPLY carries the result and what was written. The job owns the frame. FETCH and SET
 * are jobs without a call; that of an EXEC does not come back if it succeeds.
 *
 * When the thread ends first, the job is finished from wherever that is noticed,
 * which may be a context that cannot sleep: a work answers then.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/ptrace.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "gang/gang.h"
#include "ghost/watch.h"
#include "wormhole/exec.h"
#include "wormhole/link.h"
#include "wormhole/packet.h"
#include "wormhole/protocol.h"
#include "wormhole/rpc.h"
#include "wormhole/shape.h"
#include "wormhole/special.h"
#include "wormhole/table.h"

struct served {
	struct mattx_job job;
	struct mattx_peer *peer; /* holds a reference */
	u64 gang, call;
	struct mattx_call refined;
	struct mattx_layout layout;
	u64 args[6]; /* as they came */
	void *payload;
	u32 len;
	bool started; /* under the thread's lock */
	bool denied;  /* it reaches memory that is away with the guest */
	bool forks;   /* it creates a process: gang->forks counts it */
	u32 flags;    /* of the reply that the work sends */
	long ret;
	struct work_struct work; /* answers where that cannot be done at once */
};

static struct workqueue_struct *serve_wq;

/* A reply without data. May sleep. */
static void send_reply(struct mattx_peer *peer, u64 gang, u64 call, long ret,
		       u32 flags, u32 watch)
{
	struct mattx_frame_reply *reply;
	struct mattx_packet *packet;

	packet = mattx_packet_alloc(sizeof(*reply), GFP_KERNEL | __GFP_NOFAIL);
	reply = (void *)packet->payload;
	*reply = (struct mattx_frame_reply){
		.call = cpu_to_le64(call),
		.ret = cpu_to_le64(ret),
		.flags = cpu_to_le32(flags),
		.watch = cpu_to_le32(watch),
	};
	mattx_link_submit_now(peer, MATTX_F_REPLY, gang, packet, sizeof(*reply));
}

static void served_free(struct served *s)
{
	mattx_peer_put(s->peer);
	kvfree(s->payload);
	kfree(s);
}

static void served_work(struct work_struct *work)
{
	struct served *s = container_of(work, struct served, work);

	send_reply(s->peer, s->gang, s->call, s->ret,
		   s->ret == -ESRCH ? MATTX_REPLY_NOT_MADE : s->flags, 0);
	served_free(s);
}

/* A clone() that makes a process: while its table is copied no set of it is taken over. */
static int expect_child(struct mattx_thread *thread, struct served *s)
{
	if (s->job.nr != __NR_clone || s->args[0] & CLONE_THREAD)
		return 0;
	s->forks = true;
	atomic_inc(&thread->gang->forks);
	if (!mattx_take_none(thread->gang))
		return -EBUSY;
	return mattx_child_expect(thread, s->args[5], s->args[0]);
}

static void settle_child(struct mattx_thread *thread, struct served *s)
{
	if (!s->forks)
		return;
	mattx_child_settle(thread);
	atomic_dec(&thread->gang->forks);
}

/* In the deputy's thread. Return: 0 to have the call made. */
static int served_start(struct mattx_thread *thread, struct mattx_job *job)
{
	struct served *s = container_of(job, struct served, job);
	struct mattx_layout *layout = &s->layout;
	int ret;

	/* a guest's mappings are not to lie where something of ours does */
	if (mattx_body_in_the_way(thread->gang, job->nr, s->args[0], s->args[1]))
		return -EBUSY;
	s->denied = mattx_reach_denied(thread, job->nr, s->args);
	if (s->denied)
		return -EBUSY;
	if (layout->total) {
		layout->base = mattx_body_scratch(thread, layout->total);
		if (!layout->base)
			return -ENOMEM;
		layout->base += layout->shift;
	}
	ret = mattx_layout_build(layout, job->args);
	if (ret)
		return ret;
	s->denied =
		mattx_reach_message(thread, job->nr, job->args[1], job->args[2]);
	if (s->denied)
		return -EBUSY;
	ret = expect_child(thread, s);
	if (ret)
		return ret;
	mattx_count_served(job->nr);
	WRITE_ONCE(s->started, true);
	return 0;
}

static u32 reply_flags(const struct served *s)
{
	bool is_mmap = s->job.nr == __NR_mmap;
	struct file *file;
	u32 flags = 0;

	if (!s->layout.call->rw && !is_mmap)
		return 0;
	file = fget(s->args[is_mmap ? 4 : 0]);
	if (file) {
		if (S_ISREG(file_inode(file)->i_mode))
			flags = MATTX_REPLY_REGULAR;
		fput(file);
	}
	return flags;
}

/* Was the thread brought back before it made its call, to pass on a signal? */
static bool not_begun(long ret)
{
	return ret == -ERESTARTNOINTR && !mattx_body_made_call();
}

/* The control data of a sendmsg(), which were checked when they came. */
static void find_control(const struct mattx_layout *layout,
			 struct mattx_made *made)
{
	const struct mattx_wire_shape *shape = (const void *)layout->data;
	const struct mattx_wire_msg *msg = (const void *)(shape + 1);

	if (layout->call->arg[1].shape != MATTX_MSG_IN ||
	    le32_to_cpu(shape->pointer) != MATTX_PTR_GOOD ||
	    le32_to_cpu(msg->control.pointer) != MATTX_PTR_GOOD)
		return;
	made->control = (const u8 *)(msg + 1) +
			ALIGN((size_t)le32_to_cpu(msg->name.len), 8);
	made->control_len = le32_to_cpu(msg->control.len);
}

/* In the deputy's thread: the call has returned. */
static void served_reply(struct mattx_thread *thread, struct served *s, long ret)
{
	struct mattx_made made = {
		.nr = s->job.nr,
		.args = s->args,
		.fd_first = s->layout.call->arg[0].shape == MATTX_VALUE,
		.ret = ret,
	};
	struct mattx_frame_reply *reply;
	struct mattx_packet *packet;
	size_t len;
	u32 watch;

	find_control(&s->layout, &made);
	watch = mattx_watch_after(thread, &made);
	if (ret < 0) {
		send_reply(s->peer, s->gang, s->call, ret,
			   s->denied	  ? MATTX_REPLY_NOT_MADE :
			   not_begun(ret) ? MATTX_REPLY_NOT_BEGUN :
					    0,
			   0);
		return;
	}
	packet = mattx_layout_collect(&s->layout, ret, sizeof(*reply), &len);
	if (IS_ERR(packet)) {
		send_reply(s->peer, s->gang, s->call, PTR_ERR(packet), 0, 0);
		return;
	}
	reply = (void *)packet->payload;
	reply->call = cpu_to_le64(s->call);
	reply->ret = cpu_to_le64(ret);
	reply->flags = cpu_to_le32(reply_flags(s));
	reply->watch = cpu_to_le32(watch);
	mattx_link_submit_now(s->peer, MATTX_F_REPLY, s->gang, packet, len);
}

static void served_done(struct mattx_thread *thread, struct mattx_job *job,
			long ret)
{
	struct served *s = container_of(job, struct served, job);

	settle_child(thread, s);
	/* an open() that must not wait for its own process */
	if (mattx_reach_refused(thread, job->nr, ret)) {
		s->denied = true;
		ret = -EBUSY;
	}
	if (current != thread->task || current->flags & PF_EXITING) {
		s->ret = ret;
		queue_work(serve_wq, &s->work);
		return;
	}
	if (s->layout.call)
		served_reply(thread, s, ret);
	else /* a SET */
		send_reply(s->peer, s->gang, s->call, ret, 0, 0);
	served_free(s);
}

/* In the deputy's thread: no call, and so never 0. */
static int served_set(struct mattx_thread *thread, struct mattx_job *job)
{
	struct served *s = container_of(job, struct served, job);

	return mattx_take_serve(thread, s->payload, s->len);
}

/* What of [addr, addr + len) can be read, in whole pages. */
static u32 read_pages(void *to, u64 addr, u32 len)
{
	u32 at = 0;

	while (at < len && !fatal_signal_pending(current) &&
	       !copy_from_user(to + at, u64_to_user_ptr(addr + at), PAGE_SIZE)) {
		at += PAGE_SIZE;
		cond_resched();
	}
	return at;
}

/* In the deputy's thread: no call either. It has answered when -ECANCELED is returned. */
static int served_fetch(struct mattx_thread *thread, struct mattx_job *job)
{
	struct served *s = container_of(job, struct served, job);
	const struct mattx_frame_fetch *frame = s->payload;
	u32 len = le32_to_cpu(frame->len), got;
	struct mattx_frame_reply *reply;
	struct mattx_packet *packet;

	packet = mattx_packet_alloc(sizeof(*reply) + len,
				    GFP_KERNEL | __GFP_NOFAIL);
	reply = (void *)packet->payload;
	got = read_pages(reply + 1, le64_to_cpu(frame->addr), len);
	*reply = (struct mattx_frame_reply){
		.call = cpu_to_le64(s->call),
		.ret = cpu_to_le64(got),
	};
	mattx_link_submit_now(s->peer, MATTX_F_REPLY, s->gang, packet,
			      sizeof(*reply) + got);
	return -ECANCELED;
}

static void fetch_done(struct mattx_thread *thread, struct mattx_job *job,
		       long ret)
{
	struct served *s = container_of(job, struct served, job);

	if (ret == -ECANCELED) {
		served_free(s);
		return;
	}
	s->ret = ret;
	queue_work(serve_wq, &s->work);
}

static int served_exec(struct mattx_thread *thread, struct mattx_job *job)
{
	struct served *s = container_of(job, struct served, job);
	int ret = mattx_exec_start(thread, job, s->payload, s->len);

	if (!ret)
		mattx_count_served(job->nr);
	return ret;
}

/* Also where current is the new program, and nothing may sleep. */
static void exec_done(struct mattx_thread *thread, struct mattx_job *job, long ret)
{
	struct served *s = container_of(job, struct served, job);

	if (!ret)
		mattx_exec_done(thread, s->payload);
	else
		mattx_signals_go_on(thread->gang);
	if (mattx_interrupted(ret))
		s->flags = MATTX_REPLY_NOT_BEGUN;
	s->ret = ret;
	queue_work(serve_wq, &s->work);
}

/* Is there a call like this, may a guest have it made, and is it well formed? */
static int check_call(struct served *s, const struct mattx_frame_call *frame,
		      u32 len)
{
	const struct mattx_call *call;
	int i;

	call = mattx_call_entry(le32_to_cpu(frame->nr));
	if (!call->served)
		return -ENOSYS;
	for (i = 0; i < 6; i++)
		s->args[i] = le64_to_cpu(frame->args[i]);
	call = mattx_call_refine(call, s->args, &s->refined);
	if (!call)
		return -ENOSYS;
	s->layout = (struct mattx_layout){
		.call = call,
		.args = s->args,
		.data = (const u8 *)(frame + 1),
		.len = len - sizeof(*frame),
	};
	return mattx_layout_check(&s->layout);
}

static int queue_call(struct mattx_peer *peer, u64 gang_id, s32 tid,
		      struct mattx_job *job)
{
	struct mattx_gang *gang = mattx_gang_find(peer, gang_id);
	struct mattx_thread *thread;
	int err = -ESRCH;

	if (!gang)
		return err;
	if (gang->role == MATTX_ROLE_HOME) {
		thread = mattx_gang_thread(gang, tid);
		if (thread) {
			atomic64_inc(&gang->calls);
			err = mattx_body_queue(thread, job);
			mattx_thread_put(thread);
		}
	}
	mattx_gang_put(gang);
	return err;
}

static struct served *served_new(struct mattx_peer *peer, u64 gang, u64 call,
				 void *payload, u32 len)
{
	struct served *s = kzalloc(sizeof(*s), GFP_KERNEL | __GFP_NOFAIL);

	s->peer = mattx_peer_hold(peer);
	s->gang = gang;
	s->call = call;
	s->payload = payload;
	s->len = len;
	INIT_WORK(&s->work, served_work);
	s->job.done = served_done;
	return s;
}

/* Has a job made of it by thread @tid's deputy, or answers that there is none. */
static void serve(struct served *s, s32 tid, int err)
{
	if (!err)
		err = queue_call(s->peer, s->gang, tid, &s->job);
	if (!err)
		return;
	send_reply(s->peer, s->gang, s->call, err, MATTX_REPLY_NOT_MADE, 0);
	served_free(s);
}

void mattx_serve_set(struct mattx_peer *peer, u64 gang, void *payload, u32 len)
{
	const struct mattx_frame_set *frame = payload;
	struct served *s;

	if (!mattx_take_valid(payload, len)) {
		pr_warn_ratelimited("node %s sent a malformed order about a set\n",
				    mattx_peer_name(peer));
		kvfree(payload);
		return;
	}
	s = served_new(peer, gang, le64_to_cpu(frame->call), payload, len);
	s->job.start = served_set;
	serve(s, le32_to_cpu(frame->tid), 0);
}

static bool fetch_valid(const struct mattx_frame_fetch *frame, u32 len)
{
	u32 want;

	if (len != sizeof(*frame))
		return false;
	want = le32_to_cpu(frame->len);
	return want && want <= MATTX_FETCH_MAX && PAGE_ALIGNED(want) &&
	       PAGE_ALIGNED(le64_to_cpu(frame->addr));
}

void mattx_serve_fetch(struct mattx_peer *peer, u64 gang, void *payload, u32 len)
{
	const struct mattx_frame_fetch *frame = payload;
	struct served *s;

	if (!fetch_valid(frame, len)) {
		pr_warn_ratelimited("node %s asked for pages in a malformed way\n",
				    mattx_peer_name(peer));
		kvfree(payload);
		return;
	}
	s = served_new(peer, gang, le64_to_cpu(frame->call), payload, len);
	s->job.start = served_fetch;
	s->job.done = fetch_done;
	serve(s, le32_to_cpu(frame->tid), 0);
}

void mattx_serve_exec(struct mattx_peer *peer, u64 gang, void *payload, u32 len)
{
	const struct mattx_frame_exec *frame = payload;
	struct served *s;

	if (!mattx_exec_valid(payload, len)) {
		pr_warn_ratelimited("node %s sent a malformed execve\n",
				    mattx_peer_name(peer));
		kvfree(payload);
		return;
	}
	s = served_new(peer, gang, le64_to_cpu(frame->call), payload, len);
	s->job.start = served_exec;
	s->job.done = exec_done;
	serve(s, le32_to_cpu(frame->tid), 0);
}

void mattx_serve_call(struct mattx_peer *peer, u64 gang, void *payload, u32 len)
{
	const struct mattx_frame_call *frame = payload;
	struct served *s;
	int err;

	if (len < sizeof(*frame)) {
		pr_warn_ratelimited("node %s sent a malformed call\n",
				    mattx_peer_name(peer));
		kvfree(payload);
		return;
	}
	s = served_new(peer, gang, le64_to_cpu(frame->call), payload, len);
	s->job.start = served_start;
	s->job.nr = le32_to_cpu(frame->nr);

	err = check_call(s, frame, len);
	if (err == -EBADMSG)
		pr_warn_ratelimited("node %s sent a malformed call %u\n",
				    mattx_peer_name(peer), s->job.nr);
	serve(s, le32_to_cpu(frame->tid), err);
}

/*
 * A CANCEL comes for a call that the guest has made, and natively no signal keeps such
 * a call from being made: an open() or fstat() does not return -EINTR because the
 * machine is busy. So as long as the thread has not entered the kernel for it we look
 * again; after that it is as if the signal had come then, and the call knows what to do.
 */
struct cancel {
	struct delayed_work work;
	struct mattx_peer *peer; /* holds a reference */
	u64 gang, call;
	s32 tid;
	struct task_struct *task; /* of the thread, while that is held */
	bool found;		  /* the call is there */
	bool done;		  /* it was interrupted */
};

/*
 * Under the thread's lock; the job is not done, so the task has its stack.
 * Return: whether it is to be interrupted now.
 */
static bool cancel_now(struct mattx_job *job, void *arg)
{
	struct cancel *c = arg;
	struct served *s;

	if (job->start != served_start)
		return false;
	s = container_of(job, struct served, job);
	if (s->call != c->call || s->peer != c->peer)
		return false;
	c->found = true;
	c->done = READ_ONCE(s->started) &&
		  READ_ONCE(task_pt_regs(c->task)->orig_ax) == job->nr;
	return c->done;
}

/* Return: whether there is nothing more to be done. */
static bool try_cancel(struct cancel *c)
{
	struct mattx_gang *gang = mattx_gang_find(c->peer, c->gang);
	struct mattx_thread *thread;

	if (!gang)
		return true;
	thread = mattx_gang_thread(gang, c->tid);
	c->found = false;
	if (thread) {
		c->task = thread->task;
		mattx_body_cancel(thread, cancel_now, c);
		mattx_thread_put(thread);
	}
	mattx_gang_put(gang);
	return c->done || !c->found;
}

static atomic_t cancels; /* under way; their timers are waited for at unload */

static void cancel_free(struct cancel *c)
{
	mattx_peer_put(c->peer);
	kfree(c);
	atomic_dec(&cancels);
}

static void cancel_again(struct work_struct *work)
{
	struct cancel *c =
		container_of(to_delayed_work(work), struct cancel, work);

	if (try_cancel(c))
		cancel_free(c);
	else
		queue_delayed_work(serve_wq, &c->work, 1);
}

void mattx_serve_cancel(struct mattx_peer *peer, u64 gang, const void *payload,
			u32 len)
{
	const struct mattx_frame_cancel *frame = payload;
	struct cancel *c;

	if (len != sizeof(*frame) || frame->pad) {
		pr_warn_ratelimited("node %s sent a malformed cancellation\n",
				    mattx_peer_name(peer));
		return;
	}
	c = kzalloc(sizeof(*c), GFP_KERNEL | __GFP_NOFAIL);
	atomic_inc(&cancels);
	c->peer = mattx_peer_hold(peer);
	c->gang = gang;
	c->call = le64_to_cpu(frame->call);
	c->tid = le32_to_cpu(frame->tid);
	INIT_DELAYED_WORK(&c->work, cancel_again);
	cancel_again(&c->work.work);
}

int mattx_serve_init(void)
{
	serve_wq = alloc_workqueue("mattx-serve", WQ_UNBOUND, 0);
	return serve_wq ? 0 : -ENOMEM;
}

/* There are no gangs any more, so a cancellation finds nothing and ends. */
void mattx_serve_exit(void)
{
	while (atomic_read(&cancels))
		schedule_timeout_uninterruptible(1);
	destroy_workqueue(serve_wq);
}
