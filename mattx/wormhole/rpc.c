// SPDX-License-Identifier: GPL-2.0
/*
 * System calls of guests: where each goes, and the host's side of those that are
 * made at home.
 *
 * A call that travels is in the table of pending calls, under its id, from before
 * its CALL is queued until its REPLY has arrived, its session has ended or its
 * thread has been killed. Whoever takes it out of the table, under the table's
 * lock, owns what happens next; so a late REPLY finds nothing, and the request may
 * live on the waiting thread's stack.
 *
 * A signal for the waiting thread (a freeze is one, too) is passed on as CANCEL,
 * once; the thread goes on waiting for the REPLY, which says what has come of the
 * call. What was interrupted without a signal being left for the guest is made again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/restart_block.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>
#include <asm/syscall.h>

#include "compat.h"
#include "gang/gang.h"
#include "ghost/count.h"
#include "ghost/set.h"
#include "ghost/watch.h"
#include "wormhole/hooks.h"
#include "wormhole/link.h"
#include "wormhole/packet.h"
#include "wormhole/protocol.h"
#include "wormhole/rpc.h"
#include "wormhole/shape.h"
#include "wormhole/special.h"
#include "wormhole/table.h"

static DEFINE_XARRAY(pending);
static atomic64_t last_id;

/* How often each number was called, and where it went. */
enum count {
	COUNT_DEPUTY, /* round trips */
	COUNT_LOCAL,  /* hooked, but made here */
	COUNT_HOME,   /* sent the gang home */
	COUNT_SERVED, /* made here for a guest elsewhere */
	NR_COUNTS,
};

struct counts {
	u64 n[NR_COUNTS][MATTX_MAX_CALLS];
};

static struct counts __percpu *counts;

static void count(enum count what, u32 nr)
{
	if (nr < MATTX_MAX_CALLS)
		this_cpu_inc(counts->n[what][nr]);
}

void mattx_count_served(u32 nr)
{
	count(COUNT_SERVED, nr);
}

bool mattx_rpc_stat(unsigned long index, char *name, size_t size, u64 *value)
{
	static const char *const what[NR_COUNTS] = { "deputy", "local", "home",
						     "served" };
	unsigned long nr = index / NR_COUNTS, kind = index % NR_COUNTS;
	const char *ghost;
	int cpu;

	if (nr >= MATTX_MAX_CALLS) {
		index -= MATTX_MAX_CALLS * NR_COUNTS;
		if (!mattx_ghost_stat(index, &ghost, value))
			return false;
		strscpy(name, ghost, size);
		return true;
	}
	*value = 0;
	for_each_possible_cpu(cpu)
		*value += per_cpu_ptr(counts, cpu)->n[kind][nr];
	if (*value)
		snprintf(name, size, "call.%s.%s", what[kind],
			 mattx_call_entry(nr)->name ?: "unknown");
	return true;
}

/* --------------------------------------------------------- the round trip */

static int enter_pending(struct mattx_request *rq)
{
	rq->id = atomic64_inc_return(&last_id);
	rq->gang = rq->thread->gang->id;
	rq->peer = rq->thread->gang->peer;
	init_completion(&rq->ended);
	return xa_insert(&pending, rq->id, rq, GFP_KERNEL);
}

/* Return: whether it was still there, and so nobody else has it in hand. */
static bool leave_pending(struct mattx_request *rq)
{
	return xa_erase(&pending, rq->id) == rq;
}

static void send_cancel(struct mattx_request *rq)
{
	struct mattx_frame_cancel cancel = {
		.call = cpu_to_le64(rq->id),
		.tid = cpu_to_le32(rq->thread->tid),
	};

	mattx_link_send(rq->peer, MATTX_F_CANCEL, rq->gang, &cancel,
			sizeof(cancel), NULL, 0, GFP_KERNEL | __GFP_NOFAIL);
}

/*
 * wait_reply() - until the call has ended at home
 * Return: 0, or -EINTR when the thread is killed.
 */
static int wait_reply(struct mattx_request *rq)
{
	if (!rq->firm) {
		if (!wait_for_completion_interruptible(&rq->ended))
			return 0;
		rq->cancelled = true;
		send_cancel(rq);
	}
	if (!wait_for_completion_killable(&rq->ended))
		return 0;
	if (leave_pending(rq))
		return -EINTR;
	wait_for_completion(&rq->ended); /* it is being completed just now */
	return 0;
}

/* What has come of one round trip. */
enum trip {
	TRIP_MADE, /* *ret is the call's result */
	TRIP_HOME, /* it cannot be made from here */
	TRIP_LOST, /* no deputy any more, or killed: nobody will see the result */
};

/*
 * Something for the deputy that is no system call. @rq is pending, and named in @head.
 * Return: what home has answered, or a negative errno. rq->reply is to be freed.
 */
static long ask(struct mattx_request *rq, u16 type, const void *head,
		size_t head_len, const void *data, size_t data_len)
{
	long ret = mattx_link_send(rq->peer, type, rq->gang, head, head_len,
				   data, data_len, GFP_KERNEL | __GFP_NOFAIL);

	if (ret)
		leave_pending(rq);
	else
		ret = wait_reply(rq);
	if (ret || rq->lost)
		return ret ?: -ESRCH;
	return (s64)le64_to_cpu(
		((const struct mattx_frame_reply *)rq->reply)->ret);
}

long mattx_rpc_set(struct mattx_thread *thread, struct mattx_frame_set *frame,
		   const struct mattx_wire_item *item)
{
	struct mattx_request rq = { .thread = thread, .firm = true };
	size_t len = le32_to_cpu(frame->n) * sizeof(*item);
	long ret = enter_pending(&rq);

	if (ret)
		return ret;
	frame->call = cpu_to_le64(rq.id);
	frame->tid = cpu_to_le32(thread->tid);
	ret = ask(&rq, MATTX_F_SET, frame, sizeof(*frame), item, len);
	kvfree(rq.reply);
	return ret;
}

long mattx_rpc_fetch(struct mattx_thread *thread, u64 addr, u32 len,
		     struct mattx_frame_reply **reply)
{
	struct mattx_request rq = { .thread = thread, .firm = true };
	struct mattx_frame_fetch frame = {
		.tid = cpu_to_le32(thread->tid),
		.len = cpu_to_le32(len),
		.addr = cpu_to_le64(addr),
	};
	long ret = enter_pending(&rq);

	*reply = NULL;
	if (ret)
		return ret;
	frame.call = cpu_to_le64(rq.id);
	ret = ask(&rq, MATTX_F_FETCH, &frame, sizeof(frame), NULL, 0);
	*reply = rq.reply;
	if (ret <= 0 || (ret <= len && PAGE_ALIGNED(ret) &&
			 rq.reply_len == sizeof(**reply) + ret))
		return ret;
	pr_warn_ratelimited("node %s sent a malformed piece of a file\n",
			    mattx_peer_name(rq.peer));
	return -EIO;
}

/* The gang is gone at home or the thread is killed: it must not go on. */
static long wait_for_death(void)
{
	while (!signal_pending(current))
		schedule_timeout_interruptible(MAX_SCHEDULE_TIMEOUT);
	return -ERESTARTNOINTR;
}

long mattx_rpc_exec(struct mattx_thread *thread, struct mattx_frame_exec *frame,
		    const void *data, size_t len)
{
	struct mattx_request rq = { .thread = thread, .firm = true };
	const struct mattx_frame_reply *reply;
	long ret = enter_pending(&rq);
	u32 flags;

	if (ret)
		return ret;
	count(COUNT_DEPUTY, le32_to_cpu(frame->nr));
	atomic64_inc(&thread->gang->calls);
	frame->call = cpu_to_le64(rq.id);
	frame->tid = cpu_to_le32(thread->tid);
	ret = ask(&rq, MATTX_F_EXEC, frame, sizeof(*frame), data, len);
	reply = rq.reply;
	flags = reply ? le32_to_cpu(reply->flags) : MATTX_REPLY_NOT_MADE;
	kvfree(rq.reply);
	if (flags & MATTX_REPLY_NOT_BEGUN)
		return MATTX_AGAIN;
	if (flags & MATTX_REPLY_NOT_MADE && ret == -ESRCH)
		return wait_for_death();
	return ret <= 0 && ret >= -MAX_ERRNO ? ret : -EIO;
}

static enum trip judge_reply(struct mattx_request *rq, long *ret)
{
	const struct mattx_frame_reply *reply = rq->reply;

	if (rq->lost)
		return TRIP_LOST;
	*ret = (s64)le64_to_cpu(reply->ret);
	rq->reply_flags = le32_to_cpu(reply->flags);
	rq->watch = le32_to_cpu(reply->watch);
	if (rq->reply_flags & MATTX_REPLY_NOT_MADE)
		return *ret == -ESRCH ? TRIP_LOST : TRIP_HOME;
	*ret = mattx_unmarshal(rq, *ret);
	if (*ret == -EBADMSG) {
		pr_warn_ratelimited("a reply to %s from node %s is malformed\n",
				    rq->call->name, mattx_peer_name(rq->peer));
		*ret = -EIO;
	}
	return TRIP_MADE;
}

static enum trip round_trip(struct mattx_request *rq, long *ret)
{
	struct mattx_packet *packet;
	enum trip trip;
	size_t len;
	int err;

	err = enter_pending(rq);
	if (err)
		return TRIP_HOME;
	err = mattx_marshal(rq, &packet, &len);
	if (err) {
		leave_pending(rq);
		mattx_request_release(rq);
		*ret = err;
		return err == -ENOMEM || err == -E2BIG ? TRIP_HOME : TRIP_MADE;
	}
	count(COUNT_DEPUTY, rq->nr);
	atomic64_inc(&rq->thread->gang->calls);
	WRITE_ONCE(rq->thread->guest, (void *)rq->call->name);
	if (mattx_link_submit_now(rq->peer, MATTX_F_CALL, rq->gang, packet, len)) {
		leave_pending(rq);
		trip = TRIP_LOST;
	} else if (wait_reply(rq)) {
		trip = TRIP_LOST;
	} else {
		trip = judge_reply(rq, ret);
	}
	WRITE_ONCE(rq->thread->guest, NULL);
	mattx_request_release(rq);
	return trip;
}

/*
 * A deputy has every signal blocked, so also an -EINTR means that it was interrupted
 * by us: for its guest, or to pass on a signal that it has received.
 */
bool mattx_interrupted(long ret)
{
	switch (ret) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
	case -EINTR:
		return true;
	default:
		return false;
	}
}

static bool no_signal_on_its_way(struct mattx_gang *gang)
{
	bool none;

	spin_lock_irq(&gang->lock);
	none = list_empty(&gang->inbox) && !gang->sending;
	spin_unlock_irq(&gang->lock);
	return none;
}

/*
 * A call that has raised a signal for its own process (a write to a pipe that nobody
 * reads, a kill) does not return before that has arrived. Home has sent it ahead of the
 * reply, but the warden may still be passing it on.
 */
static void await_own_signal(struct mattx_gang *gang)
{
	if (no_signal_on_its_way(gang))
		return;
	wait_event_interruptible_timeout(gang->wait, no_signal_on_its_way(gang),
					 HZ);
}

long mattx_call_once(struct mattx_request *rq)
{
	long ret = 0;

	switch (round_trip(rq, &ret)) {
	case TRIP_HOME:
		return mattx_go_home(rq->thread, rq->nr,
				     ret == -EBUSY ? "its shared memory" :
						     "its arguments");
	case TRIP_LOST:
		if (!fatal_signal_pending(current))
			return wait_for_death();
		return -EINTR;
	case TRIP_MADE:
		break;
	}
	await_own_signal(rq->thread->gang);
	if (!mattx_interrupted(ret))
		return ret;
	if (rq->reply_flags & MATTX_REPLY_NOT_BEGUN)
		return MATTX_AGAIN;
	if (rq->call->once)
		return -EINTR;
	/* if not by us, home was passing on a signal */
	if (!rq->cancelled || !signal_pending(current))
		return MATTX_AGAIN;
	/* the kernel decides whether a handler makes an -EINTR of it */
	return ret == -EINTR ? -ERESTARTNOHAND : ret;
}

static long call_deputy(struct mattx_thread *thread, u32 nr,
			const struct mattx_call *call, const u64 *args,
			bool firm, u32 *flags)
{
	struct mattx_call copy;
	struct mattx_request rq;
	long ret;

	call = mattx_call_refine(call, args, &copy);
	if (!call)
		return mattx_go_home(thread, nr, "its arguments");
	do {
		rq = (struct mattx_request){
			.thread = thread,
			.call = call,
			.nr = nr,
			.firm = firm,
		};
		memcpy(rq.args, args, sizeof(rq.args));
		ret = mattx_call_once(&rq);
	} while (ret == MATTX_AGAIN);
	if (mattx_sets_unsettled(thread->gang))
		mattx_sets_settle(thread);
	if (flags)
		*flags = rq.reply_flags;
	/* nothing that a deputy calls has such a restart, or wait.c deals with it */
	if (ret == -ERESTART_RESTARTBLOCK)
		ret = -ERESTARTNOHAND;
	return ret;
}

long mattx_call_deputy(struct mattx_thread *thread, u32 nr,
		       const struct mattx_call *call, const u64 *args)
{
	return call_deputy(thread, nr, call, args, false, NULL);
}

long mattx_call_firm(struct mattx_thread *thread, u32 nr,
		     const struct mattx_call *call, const u64 *args, u32 *flags)
{
	return call_deputy(thread, nr, call, args, true, flags);
}

/* ------------------------------------------------------------ what arrives */

static void on_reply(struct mattx_peer *peer, u64 gang, void *payload, u32 len)
{
	const struct mattx_frame_reply *reply = payload;
	struct mattx_request *rq;

	if (len < sizeof(*reply)) {
		pr_warn_ratelimited("node %s sent a malformed reply\n",
				    mattx_peer_name(peer));
		kvfree(payload);
		return;
	}
	xa_lock(&pending);
	rq = xa_load(&pending, le64_to_cpu(reply->call));
	if (rq && rq->peer == peer && rq->gang == gang) {
		__xa_erase(&pending, rq->id);
		if (reply->watch && rq->nr == __NR_epoll_ctl)
			mattx_sets_grant(rq->thread->gang,
					 le32_to_cpu(reply->watch));
		rq->reply = payload;
		rq->reply_len = len;
		payload = NULL;
		complete(&rq->ended);
	}
	xa_unlock(&pending);
	kvfree(payload);
}

void mattx_rpc_receive(struct mattx_peer *peer, u16 type, u64 gang,
		       void *payload, u32 len)
{
	switch (type) {
	case MATTX_F_CALL:
		mattx_serve_call(peer, gang, payload, len);
		return;
	case MATTX_F_REPLY:
		on_reply(peer, gang, payload, len);
		return;
	case MATTX_F_CANCEL:
		mattx_serve_cancel(peer, gang, payload, len);
		break;
	case MATTX_F_SET:
		mattx_serve_set(peer, gang, payload, len);
		return;
	case MATTX_F_FETCH:
		mattx_serve_fetch(peer, gang, payload, len);
		return;
	case MATTX_F_EXEC:
		mattx_serve_exec(peer, gang, payload, len);
		return;
	case MATTX_F_ITEMS:
	case MATTX_F_READY:
	case MATTX_F_GONE:
		mattx_sets_receive(peer, type, gang, payload, len);
		break;
	case MATTX_F_LOOK:
	case MATTX_F_MUTE:
	case MATTX_F_PACE:
		mattx_watch_receive(peer, type, gang, payload, len);
		break;
	default:
		pr_warn_ratelimited("node %s sent a frame of unknown type %u\n",
				    mattx_peer_name(peer), type);
	}
	kvfree(payload);
}

void mattx_rpc_peer_lost(struct mattx_peer *peer)
{
	struct mattx_request *rq;
	unsigned long id;

	xa_lock(&pending);
	xa_for_each(&pending, id, rq) {
		if (rq->peer != peer)
			continue;
		__xa_erase(&pending, id);
		rq->lost = true;
		complete(&rq->ended);
	}
	xa_unlock(&pending);
}

/* ------------------------------------------------------- where a call goes */

long mattx_go_home(struct mattx_thread *thread, u32 nr, const char *why)
{
	char cause[MATTX_CAUSE_MAX];
	const char *name = mattx_call_entry(nr)->name;

	count(COUNT_HOME, nr);
	if (name && why)
		snprintf(cause, sizeof(cause), "system call %s: %s", name, why);
	else if (name)
		snprintf(cause, sizeof(cause), "system call %s", name);
	else
		snprintf(cause, sizeof(cause),
			 "system call %u, which is unknown here", nr);
	return mattx_guest_want_home(thread, nr, cause);
}

long mattx_call_here(u32 nr, const struct pt_regs *regs)
{
	count(COUNT_LOCAL, nr);
	return mattx_native(nr, regs);
}

void mattx_regs_args(const struct pt_regs *regs, u64 *args)
{
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	args[3] = regs->r10;
	args[4] = regs->r8;
	args[5] = regs->r9;
}

long mattx_guest_syscall(const struct pt_regs *regs)
{
	u32 nr = regs->orig_ax;
	const struct mattx_call *call = mattx_call_entry(regs->orig_ax);
	struct mattx_thread *thread;
	u64 args[6];

	if (mattx_caller(&thread) != MATTX_IS_GUEST)
		return -EPERM;
	switch (call->class) {
	case MATTX_DEPUTY:
		mattx_regs_args(regs, args);
		return mattx_call_deputy(thread, nr, call, args);
	case MATTX_SPECIAL:
		return call->special(thread, call, regs);
	case MATTX_HOME:
		return mattx_go_home(thread, nr, NULL);
	case MATTX_LOCAL:
		return mattx_call_here(nr, regs);
	default:
		return -ENOSYS;
	}
}

/* --------------------------------------------------------- load and unload */

int mattx_rpc_init(void)
{
	int err;

	counts = alloc_percpu(struct counts);
	if (!counts)
		return -ENOMEM;
	err = mattx_serve_init();
	if (err)
		goto err_counts;
	err = mattx_watch_init();
	if (err)
		goto err_serve;
	return 0;

err_serve:
	mattx_serve_exit();
err_counts:
	free_percpu(counts);
	return err;
}

void mattx_rpc_exit(void)
{
	mattx_watch_exit();
	mattx_serve_exit();
	WARN_ON(!xa_empty(&pending));
	free_percpu(counts);
}
