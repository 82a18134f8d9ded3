// SPDX-License-Identifier: GPL-2.0
/*
 * Orders that mattxd carries out, and who waits for them.
 *
 *   waiting ---> answered: 0 or an errno	mattxd's ADMIN_DONE
 *      |
 *      +-------> answered: -EIO		mattxd's socket was closed, or another
 *      |					mattxd serves
 *      +-------> given up			not sent after all, or the waiting
 *						task was killed
 *
 * An order lives on the stack of the task that waits for it, which is its only owner.
 * The list borrows it: it is put in, answered, given up and taken out under
 * orders_lock, and its owner takes that lock once more before it returns, so that
 * who answers has let go of it by then. No other reference exists: mattxd knows an
 * order by its number only, and a number that is not in the list is answered -ENOENT.
 *
 * Nobody waits for ever: a task may be killed, and a mattxd that ends, however it
 * does, closes its socket. Its children close theirs at once and before they exec.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/netlink.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>

#include "admin.h"
#include "netlink.h"

/* Each is a task of root's asleep; mattxd has a thread for each process that moves. */
#define MAX_ORDERS 256

struct order {
	struct list_head node; /* in orders; empty: answered */
	u32 number, port;
	int result;
	struct completion answered;
};

static DEFINE_SPINLOCK(orders_lock); /* all of it; process context only */
static LIST_HEAD(orders);
static unsigned int nr_orders;
static u32 last_number;
static u32 server; /* the port where mattxd listens, 0: nowhere */

static struct order *find(u32 number)
{
	struct order *o;

	lockdep_assert_held(&orders_lock);
	list_for_each_entry(o, &orders, node) {
		if (o->number == number)
			return o;
	}
	return NULL;
}

static void take_out(struct order *o, int result)
{
	lockdep_assert_held(&orders_lock);
	list_del_init(&o->node);
	nr_orders--;
	o->result = result;
}

/* ------------------------------------------------------------- asking */

static int put_in(struct order *o)
{
	int err = 0;

	init_completion(&o->answered);
	spin_lock(&orders_lock);
	if (!server) {
		err = -ENOTCONN;
	} else if (nr_orders >= MAX_ORDERS) {
		err = -EBUSY;
	} else {
		do
			last_number++;
		while (!last_number || find(last_number));
		o->number = last_number;
		o->port = server;
		list_add_tail(&o->node, &orders);
		nr_orders++;
	}
	spin_unlock(&orders_lock);
	return err;
}

/* The owner's last word. Return: the answer, or @err when there is none yet. */
static int give_up(struct order *o, int err)
{
	spin_lock(&orders_lock);
	if (!list_empty(&o->node))
		take_out(o, err);
	spin_unlock(&orders_lock);
	return o->result;
}

int mattx_admin_ask(enum mattx_admin_verb verb, pid_t pid, const char *node)
{
	struct order order;
	int err;

	err = put_in(&order);
	if (err)
		return err;
	err = mattx_event_admin(order.port, order.number, verb, pid, node);
	if (err)
		return give_up(&order, err == -ECONNREFUSED ? -ENOTCONN : err);
	/* who waits for mattxd is no load, which nodes are compared by */
	err = wait_for_completion_state(&order.answered,
					TASK_KILLABLE | TASK_NOLOAD);
	return give_up(&order, err ? -EINTR : -EIO);
}

/* ---------------------------------------------------------- answering */

int mattx_admin_answer(u32 number, u32 error)
{
	struct order *o;

	spin_lock(&orders_lock);
	o = find(number);
	if (o) {
		take_out(o, -(int)error);
		complete(&o->answered);
	}
	spin_unlock(&orders_lock);
	return o ? 0 : -ENOENT;
}

/* Nobody answers any more what was sent to that port. */
static void fail(u32 port)
{
	struct order *o, *next;

	lockdep_assert_held(&orders_lock);
	list_for_each_entry_safe(o, next, &orders, node) {
		if (o->port != port)
			continue;
		take_out(o, -EIO);
		complete(&o->answered);
	}
}

void mattx_admin_serve(u32 port)
{
	spin_lock(&orders_lock);
	if (server && server != port)
		fail(server);
	server = port;
	spin_unlock(&orders_lock);
}

static int socket_closed(struct notifier_block *block, unsigned long event,
			 void *data)
{
	const struct netlink_notify *notify = data;

	if (event != NETLINK_URELEASE || notify->protocol != NETLINK_GENERIC ||
	    !net_eq(notify->net, &init_net))
		return NOTIFY_DONE;
	spin_lock(&orders_lock);
	if (server && server == notify->portid) {
		fail(server);
		server = 0;
	}
	spin_unlock(&orders_lock);
	return NOTIFY_DONE;
}

static struct notifier_block socket_notifier = {
	.notifier_call = socket_closed,
};

int mattx_admin_init(void)
{
	return netlink_register_notifier(&socket_notifier);
}

void mattx_admin_exit(void)
{
	netlink_unregister_notifier(&socket_notifier);
	WARN_ON(!list_empty(&orders));
}
