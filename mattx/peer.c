// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes: this one, and the others that the daemon has told us of.
 *
 * The table is read in any context and changed by netlink commands only, which
 * the family serialises; its lock is a spinlock because of the readers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "gang/gang.h"
#include "netlink.h"
#include "peer.h"
#include "wormhole/rpc.h"

static LIST_HEAD(peers);
static DEFINE_SPINLOCK(peers_lock); /* peers, names, local */
static struct mattx_local local;

/* ------------------------------------------------------------ this node */

void mattx_local_get(struct mattx_local *out)
{
	unsigned long flags;

	spin_lock_irqsave(&peers_lock, flags);
	*out = local;
	spin_unlock_irqrestore(&peers_lock, flags);
}

int mattx_local_set(u32 id, const char *name)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&peers_lock, flags);
	if (local.id && local.id != id && !list_empty(&peers)) {
		err = -EBUSY;
	} else {
		local.id = id;
		strscpy_pad(local.name, name, sizeof(local.name));
	}
	spin_unlock_irqrestore(&peers_lock, flags);
	return err;
}

/* ----------------------------------------------------------- references */

static void peer_release(struct kref *ref)
{
	struct mattx_peer *peer = container_of(ref, struct mattx_peer, ref);

	/* Nobody knows it: out of the table, no connection, nothing queued. */
	kfree_rcu(peer, rcu);
}

struct mattx_peer *mattx_peer_hold(struct mattx_peer *peer)
{
	kref_get(&peer->ref);
	return peer;
}

void mattx_peer_put(struct mattx_peer *peer)
{
	if (peer)
		kref_put(&peer->ref, peer_release);
}

static struct mattx_peer *find_locked(u32 id)
{
	struct mattx_peer *peer;

	lockdep_assert_held(&peers_lock);
	list_for_each_entry(peer, &peers, node) {
		if (peer->id == id)
			return peer;
	}
	return NULL;
}

struct mattx_peer *mattx_peer_get(u32 id)
{
	struct mattx_peer *peer;
	unsigned long flags;

	spin_lock_irqsave(&peers_lock, flags);
	peer = find_locked(id);
	if (peer)
		kref_get(&peer->ref);
	spin_unlock_irqrestore(&peers_lock, flags);
	return peer;
}

u32 mattx_peer_id(const struct mattx_peer *peer)
{
	return peer->id;
}

const char *mattx_peer_name(const struct mattx_peer *peer)
{
	return peer->name;
}

/* ------------------------------------------------------- setting, deleting */

static struct mattx_peer *peer_new(u32 id, u64 instance, const char *name)
{
	struct mattx_peer *peer = kzalloc(sizeof(*peer), GFP_KERNEL);

	if (!peer)
		return NULL;
	kref_init(&peer->ref);
	peer->id = id;
	peer->instance = instance;
	strscpy(peer->name, name, sizeof(peer->name));
	mutex_init(&peer->door);
	INIT_WORK(&peer->reaper, mattx_link_reap);
	mattx_session_init(&peer->session);
	return peer;
}

/*
 * End a peer that is out of the table. Its frames stop first, so that nothing
 * can make a new gang or call of it while the old ones are ended.
 */
static void peer_end(struct mattx_peer *peer, bool gangs)
{
	mattx_session_end(peer);
	mattx_rpc_peer_lost(peer);
	if (gangs)
		mattx_gang_peer_lost(peer);
	mattx_peer_put(peer);
}

int mattx_peer_set(u32 id, u64 instance, const char *name)
{
	struct mattx_peer *fresh, *old;
	unsigned long flags;

	fresh = peer_new(id, instance, name);
	if (!fresh)
		return -ENOMEM;

	spin_lock_irqsave(&peers_lock, flags);
	if (id == local.id) {
		spin_unlock_irqrestore(&peers_lock, flags);
		mattx_peer_put(fresh);
		return -EEXIST;
	}
	old = find_locked(id);
	if (old && old->instance == instance) {
		strscpy_pad(old->name, name, sizeof(old->name));
		spin_unlock_irqrestore(&peers_lock, flags);
		mattx_peer_put(fresh);
		return 0;
	}
	if (old)
		list_del_init(&old->node);
	list_add_tail(&fresh->node, &peers);
	spin_unlock_irqrestore(&peers_lock, flags);

	if (old) {
		pr_info("node %u (%s) was started anew\n", id, name);
		peer_end(old, true);
	}
	return 0;
}

int mattx_peer_del(u32 id)
{
	struct mattx_peer *peer;
	unsigned long flags;
	int err = 0;

	peer = mattx_peer_get(id);
	if (!peer)
		return -ENOENT;
	if (mattx_gang_shared(peer)) {
		err = -EBUSY;
	} else {
		spin_lock_irqsave(&peers_lock, flags);
		list_del_init(&peer->node);
		spin_unlock_irqrestore(&peers_lock, flags);
		peer_end(peer, true);
	}
	mattx_peer_put(peer);
	return err;
}

int mattx_node_facts_set(u32 id, const struct mattx_facts *facts)
{
	struct mattx_peer *peer;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&peers_lock, flags);
	peer = find_locked(id);
	if (peer)
		peer->facts = *facts;
	else if (id == local.id)
		local.facts = *facts;
	else
		err = -ENOENT;
	spin_unlock_irqrestore(&peers_lock, flags);
	return err;
}

bool mattx_peer_info(unsigned int index, struct mattx_peer_info *info)
{
	struct mattx_session *s;
	struct mattx_peer *peer;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&peers_lock, flags);
	list_for_each_entry(peer, &peers, node) {
		if (index--)
			continue;
		memset(info, 0, sizeof(*info));
		info->id = peer->id;
		info->instance = peer->instance;
		strscpy(info->name, peer->name, sizeof(info->name));
		info->facts = peer->facts;
		info->up = mattx_peer_up(peer);
		s = &peer->session;
		info->bytes_in = READ_ONCE(s->bytes_in);
		info->bytes_out = READ_ONCE(s->bytes_out);
		info->frames_in = READ_ONCE(s->frames_in);
		info->frames_out = READ_ONCE(s->frames_out);
		info->frames_resent = READ_ONCE(s->frames_resent);
		info->connections = READ_ONCE(s->connections);
		info->queued_bytes = READ_ONCE(s->queued_bytes);
		found = true;
		break;
	}
	spin_unlock_irqrestore(&peers_lock, flags);
	return found;
}

/* -------------------------------------------------------- load and unload */

int mattx_peer_init(void)
{
	do
		local.instance = get_random_u64();
	while (!local.instance);
	return 0;
}

/* After mattx_netlink_exit(), so nobody sets a peer or a link; there are no gangs. */
void mattx_peer_exit(void)
{
	struct mattx_peer *peer;
	unsigned long flags;

	for (;;) {
		spin_lock_irqsave(&peers_lock, flags);
		peer = list_first_entry_or_null(&peers, struct mattx_peer, node);
		if (peer)
			list_del_init(&peer->node);
		spin_unlock_irqrestore(&peers_lock, flags);
		if (!peer)
			break;
		peer_end(peer, false);
	}
}
