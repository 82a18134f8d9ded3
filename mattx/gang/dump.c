// SPDX-License-Identifier: GPL-2.0
/* What `mattxctl ps` reads: dumps of gangs and of their threads. */
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <net/genetlink.h>
#include "internal.h"
#include "../compat.h"
#include "../main.h"
#include "../netlink.h"
#include "../wormhole/link.h"
#include "../wormhole/table.h"

struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	long skip, at;
};

static int put_gang(struct sk_buff *skb, struct mattx_gang *gang)
{
	unsigned int threads;
	char comm[TASK_COMM_LEN], cause[MATTX_CAUSE_MAX];
	u32 state, want;

	spin_lock_irq(&gang->lock);
	state = gang->state;
	threads = gang->nr_threads;
	want = gang->want_nr;
	strscpy(cause, gang->want_cause, sizeof(cause));
	spin_unlock_irq(&gang->lock);
	strscpy(comm, gang->comm, sizeof(comm));
	return nla_put_u64_64bit(skb, MATTX_A_GANG_ID, gang->id, MATTX_A_PAD) ||
	       nla_put_u32(skb, MATTX_A_GANG_ROLE, gang->role) ||
	       nla_put_u32(skb, MATTX_A_GANG_STATE, state) ||
	       nla_put_u32(skb, MATTX_A_GANG_PID, pid_nr(gang->pid)) ||
	       nla_put_u32(skb, MATTX_A_GANG_TGID, gang->tgid) ||
	       nla_put_u32(skb, MATTX_A_GANG_THREADS, threads) ||
	       nla_put_u32(skb, MATTX_A_NODE_ID,
			   gang->peer ? mattx_peer_id(gang->peer) : 0) ||
	       (cause[0] && want != MATTX_NO_CALL &&
		nla_put_u32(skb, MATTX_A_GANG_REASON, want)) ||
	       (cause[0] && nla_put_string(skb, MATTX_A_CAUSE, cause)) ||
	       nla_put_u64_64bit(skb, MATTX_A_GANG_CALLS,
				 atomic64_read(&gang->calls), MATTX_A_PAD) ||
	       nla_put_u64_64bit(skb, MATTX_A_GANG_SINCE, gang->since,
				 MATTX_A_PAD) ||
	       nla_put_u32(skb, MATTX_A_GANG_UID, gang->uid) ||
	       nla_put_string(skb, MATTX_A_GANG_COMM, comm);
}

static int dump_gang(struct mattx_gang *gang, void *arg)
{
	struct dump *d = arg;
	void *head;

	if (READ_ONCE(gang->state) == MATTX_GANG_DEAD ||
	    !READ_ONCE(gang->pid) || d->at++ < d->skip)
		return 0;
	head = genlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid,
			   d->cb->nlh->nlmsg_seq, &mattx_genl_family,
			   NLM_F_MULTI, MATTX_CMD_GANG_GET);
	if (!head || put_gang(d->skb, gang)) {
		if (head)
			genlmsg_cancel(d->skb, head);
		d->at--;
		return -EMSGSIZE;
	}
	genlmsg_end(d->skb, head);
	return 0;
}

int mattx_gang_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump d = { .skb = skb, .cb = cb, .skip = cb->args[0] };

	mattx_gang_for_each(dump_gang, &d);
	cb->args[0] = d.at;
	return skb->len;
}

/* The call that a sleeping task is in, or what stands there after a fault. */
static const char *call_of(struct task_struct *task)
{
	return mattx_call_entry(READ_ONCE(task_pt_regs(task)->orig_ax))->name;
}

/* gang->lock is held, so the task still has its stack. */
static int put_doing(struct sk_buff *skb, struct mattx_thread *thread)
{
	const char *doing, *call = NULL;
	char text[48];

	if (test_bit(MATTX_T_CALL, &thread->flags)) {
		doing = "makes";
		call = call_of(thread->task);
	} else if (test_bit(MATTX_T_PARKED, &thread->flags)) {
		doing = "parked";
	} else if (test_bit(MATTX_T_BODY, &thread->flags)) {
		doing = "leaves the park";
	} else if (task_state_to_char(thread->task) == 'R') {
		doing = "runs";
	} else if (task_state_to_char(thread->task) == 'T') {
		doing = "stopped";
	} else {
		doing = "waits in";
		call = call_of(thread->task);
	}
	snprintf(text, sizeof(text), "%s%s%s", doing, call ? " " : "",
		 call ?: "");
	return nla_put_string(skb, MATTX_A_THREAD_STATE, text);
}

static int put_threads(struct dump *d, struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	int err = 0;
	void *head;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node) {
		if (d->at < d->skip) {
			d->at++;
			continue;
		}
		head = genlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid,
				   d->cb->nlh->nlmsg_seq, &mattx_genl_family,
				   NLM_F_MULTI, MATTX_CMD_THREAD_GET);
		if (!head ||
		    nla_put_u32(d->skb, MATTX_A_THREAD_TID, thread->tid) ||
		    put_doing(d->skb, thread)) {
			if (head)
				genlmsg_cancel(d->skb, head);
			err = -EMSGSIZE;
			break;
		}
		genlmsg_end(d->skb, head);
		d->at++;
	}
	spin_unlock_irq(&gang->lock);
	return err;
}

struct wanted {
	struct dump *dump;
	u64 id;
	u32 role;
};

static int dump_threads_of(struct mattx_gang *gang, void *arg)
{
	struct wanted *w = arg;

	if (gang->id != w->id || gang->role != w->role)
		return 0;
	put_threads(w->dump, gang);
	return 1;
}

int mattx_thread_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr **attrs = mattx_dump_attrs(cb);
	struct dump d = { .skb = skb, .cb = cb, .skip = cb->args[0] };
	struct wanted w = { .dump = &d };

	if (!attrs || !attrs[MATTX_A_GANG_ID] || !attrs[MATTX_A_GANG_ROLE])
		return -EINVAL;
	w.id = nla_get_u64(attrs[MATTX_A_GANG_ID]);
	w.role = nla_get_u32(attrs[MATTX_A_GANG_ROLE]);
	mattx_gang_for_each(dump_threads_of, &w);
	cb->args[0] = d.at;
	return skb->len;
}
