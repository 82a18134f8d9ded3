// SPDX-License-Identifier: GPL-2.0
/*
 * Ghosts: what the host knows of descriptors at home that are registered in sets here.
 *
 * Frames come in the order in which home has looked, REPLYs among them, so what was
 * heard last is right. A wake at home is a wake of the registrations here, with its key;
 * a mask that comes without one wakes nobody.
 *
 * Home says when a number is closed. If its description lives on by another number or
 * with another process, its registrations stay, as the kernel has it, but then only home
 * knows for how long: the sets that have them are given back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched.h>
#include <linux/slab.h>

#include "gang/gang.h"
#include "ghost/count.h"
#include "ghost/set.h"
#include "ghost/sets.h"
#include "wormhole/link.h"

/* Levels that are told in a row before home is asked whether they are there still. */
#define PATIENCE_MIN 8
#define PATIENCE_MAX 4096

#define GHOSTS_MAX \
	(1u << 20) /* as many numbers as a process can have open: fs.nr_open */

/* ----------------------------------------------------------------- ghosts */

static int cmp_id(const void *key, const struct rb_node *node)
{
	u32 id = *(const u32 *)key;
	u32 other = rb_entry(node, struct mattx_ghost, node)->id;

	return id < other ? -1 : id > other;
}

static int cmp_ghosts(struct rb_node *node, const struct rb_node *other)
{
	return cmp_id(&rb_entry(node, struct mattx_ghost, node)->id, other);
}

struct mattx_ghost *mattx_ghost_find(struct mattx_sets *sets, u32 id)
{
	struct rb_node *node = rb_find(&id, &sets->by_id, cmp_id);

	lockdep_assert_held(&sets->lock);
	return node ? rb_entry(node, struct mattx_ghost, node) : NULL;
}

static struct mattx_ghost *new_ghost(u32 id)
{
	struct mattx_ghost *ghost =
		kzalloc(sizeof(*ghost), GFP_KERNEL | __GFP_NOFAIL);

	ghost->id = id;
	ghost->patience = PATIENCE_MIN;
	INIT_LIST_HEAD(&ghost->items);
	return ghost;
}

/* Return: the ghost of that id, or NULL: too many. @ghost is taken over. */
static struct mattx_ghost *add_ghost(struct mattx_sets *sets,
				     struct mattx_ghost *ghost)
{
	struct rb_node *node = rb_find(&ghost->id, &sets->by_id, cmp_id);

	if (!node && sets->ghosts < GHOSTS_MAX) {
		rb_find_add(&ghost->node, &sets->by_id, cmp_ghosts);
		sets->ghosts++;
		return ghost;
	}
	kfree(ghost);
	return node ? rb_entry(node, struct mattx_ghost, node) : NULL;
}

static void send_about(struct mattx_sets *sets, u16 type, u32 watch, u32 grants)
{
	struct mattx_frame_watch frame = {
		.watch = cpu_to_le32(watch),
		.grants = cpu_to_le32(grants),
	};

	/* lost for want of memory: then home says more than it must, or is asked later */
	mattx_link_send(sets->gang->peer, type, sets->gang->id, &frame,
			sizeof(frame), NULL, 0, GFP_ATOMIC);
}

/* One registration less. */
void mattx_ghost_put(struct mattx_sets *sets, struct mattx_ghost *ghost)
{
	lockdep_assert_held(&sets->lock);
	if (--ghost->users)
		return;
	if (!ghost->gone) {
		send_about(sets, MATTX_F_MUTE, ghost->id, ghost->grants);
		return;
	}
	rb_erase(&ghost->node, &sets->by_id);
	sets->ghosts--;
	kfree(ghost);
}

/*
 * A level was told to the guest. When that happens again and again and nothing comes
 * from home, somebody there may have emptied it, which wakes nobody.
 */
void mattx_ghost_told(struct mattx_sets *sets, struct mattx_ghost *ghost)
{
	lockdep_assert_held(&sets->lock);
	if (++ghost->told < ghost->patience || ghost->looking)
		return;
	ghost->looking = true;
	mattx_ghost_count(MATTX_COUNT_LOOKS, 1);
	send_about(sets, MATTX_F_LOOK, ghost->id, 0);
}

/* ----------------------------------------------------------- registrations */

static int cmp_fd(const void *key, const struct rb_node *node)
{
	u32 fd = *(const u32 *)key;
	u32 other = rb_entry(node, struct mattx_item, node)->fd;

	return fd < other ? -1 : fd > other;
}

static int cmp_items(struct rb_node *node, const struct rb_node *other)
{
	return cmp_fd(&rb_entry(node, struct mattx_item, node)->fd, other);
}

struct mattx_item *mattx_item_find(struct mattx_set *set, u32 fd)
{
	struct rb_node *node = rb_find(&fd, &set->items, cmp_fd);

	return node ? rb_entry(node, struct mattx_item, node) : NULL;
}

static bool is_wanted(const struct mattx_item *item)
{
	return item->ghost->mask & item->events & ~MATTX_EPOLL_PRIVATE;
}

/* It may be ready: to be looked at by the next who waits. */
void mattx_item_wake(struct mattx_item *item)
{
	if (!is_wanted(item))
		return;
	if (item->held)
		list_del_init(&item->ready);
	item->held = false;
	if (list_empty(&item->ready))
		list_add_tail(&item->ready, &item->set->ready);
	wake_up(&item->set->wait);
}

/*
 * The ghost's user is the item's from here on. @pending: what it is ready for has not
 * been told yet.
 */
void mattx_item_add(struct mattx_sets *sets, struct mattx_set *set,
		    struct mattx_item *item, struct mattx_ghost *ghost,
		    bool pending)
{
	lockdep_assert_held(&sets->lock);
	item->set = set;
	item->ghost = ghost;
	INIT_LIST_HEAD(&item->ready);
	list_add_tail(&item->of_ghost, &ghost->items);
	if (WARN_ON_ONCE(rb_find_add(&item->node, &set->items, cmp_items))) {
		list_del(&item->of_ghost);
		mattx_ghost_put(sets, ghost);
		kfree(item);
		return;
	}
	if (pending)
		mattx_item_wake(item);
}

void mattx_item_drop(struct mattx_sets *sets, struct mattx_item *item)
{
	lockdep_assert_held(&sets->lock);
	list_del(&item->ready);
	list_del(&item->of_ghost);
	rb_erase(&item->node, &item->set->items);
	mattx_ghost_put(sets, item->ghost);
	kfree(item);
}

/* ------------------------------------------------------------------ wakes */

static bool has_key(const struct mattx_item *item, u32 key)
{
	return !key || key & item->events;
}

/* As the kernel's ep_poll_callback(): does this one wake-up suffice? */
static bool takes_wake(const struct mattx_item *item, u32 key)
{
	if (!waitqueue_active(&item->set->wait))
		return false;
	switch (key & (__force u32)(EPOLLIN | EPOLLOUT)) {
	case (__force u32)EPOLLIN:
		return item->events & (__force u32)EPOLLIN;
	case (__force u32)EPOLLOUT:
		return item->events & (__force u32)EPOLLOUT;
	default:
		return !(key & (__force u32)(EPOLLIN | EPOLLOUT));
	}
}

static void wake_items(struct mattx_ghost *ghost, u32 key)
{
	const u32 exclusive = (__force u32)EPOLLEXCLUSIVE;
	struct mattx_item *item;
	bool taken;

	list_for_each_entry(item, &ghost->items, of_ghost)
		if (!(item->events & exclusive) && has_key(item, key))
			mattx_item_wake(item);
	list_for_each_entry(item, &ghost->items, of_ghost) {
		if (!(item->events & exclusive) || !has_key(item, key) ||
		    !is_wanted(item))
			continue;
		taken = takes_wake(item, key);
		mattx_item_wake(item);
		if (taken)
			break;
	}
}

static void wake_held(struct mattx_ghost *ghost)
{
	struct mattx_item *item;

	list_for_each_entry(item, &ghost->items, of_ghost)
		if (item->held)
			mattx_item_wake(item);
}

/* Home has looked because we asked. */
static void looked(struct mattx_ghost *ghost, bool news)
{
	ghost->looking = false;
	ghost->patience = news ? PATIENCE_MIN :
				 min_t(u32, 2 * ghost->patience, PATIENCE_MAX);
	wake_held(ghost);
}

static void hear(struct mattx_sets *sets, const struct mattx_wire_ready *entry)
{
	struct mattx_ghost *ghost =
		mattx_ghost_find(sets, le32_to_cpu(entry->watch));
	u32 mask = le32_to_cpu(entry->mask) & MATTX_POLL_BITS;
	u32 flags = le32_to_cpu(entry->flags);
	bool news;

	if (!ghost || ghost->gone)
		return;
	news = ghost->mask != mask;
	ghost->mask = mask;
	ghost->told = 0;
	if (flags & MATTX_READY_LOOKED)
		looked(ghost, news);
	if (flags & MATTX_READY_WAKE)
		wake_items(ghost, le32_to_cpu(entry->key) & MATTX_POLL_BITS);
}

static void add_new(struct mattx_sets *sets, u32 id)
{
	struct mattx_ghost *ghost = new_ghost(id);

	spin_lock(&sets->lock);
	add_ghost(sets, ghost);
	spin_unlock(&sets->lock);
}

/* A frame is heard as a whole: give_back() and sync say how many were. */
static void on_ready(struct mattx_sets *sets, const void *payload, u32 len)
{
	const struct mattx_wire_ready *entry = payload;
	u32 n = len / sizeof(*entry), heard, i;

	mattx_ghost_count(MATTX_COUNT_HEARD, 1);
	for (i = 0; i < n; i++)
		if (entry[i].flags & cpu_to_le32(MATTX_READY_NEW))
			add_new(sets, le32_to_cpu(entry[i].watch));
	spin_lock(&sets->lock);
	for (i = 0; i < n; i++)
		hear(sets, &entry[i]);
	heard = ++sets->heard;
	spin_unlock(&sets->lock);
	if (heard % MATTX_READY_PACE)
		return;
	mattx_link_send(sets->gang->peer, MATTX_F_PACE, sets->gang->id,
			&(struct mattx_frame_watch){},
			sizeof(struct mattx_frame_watch), NULL, 0,
			GFP_KERNEL | __GFP_NOFAIL);
}

/* ------------------------------------------------------------------- gone */

static void ghost_gone(struct mattx_sets *sets, struct mattx_ghost *ghost,
		       bool lives)
{
	struct mattx_item *item, *next;

	ghost->gone = true;
	ghost->lives = lives;
	ghost->mask = 0;
	ghost->users++; /* that it stays meanwhile */
	list_for_each_entry_safe(item, next, &ghost->items, of_ghost) {
		if (lives)
			mattx_set_leave(sets, item->set);
		else
			mattx_item_drop(sets, item);
	}
	mattx_ghost_put(sets, ghost);
}

/* The number of a set is closed, or somebody else can reach it. */
static void set_gone(struct mattx_sets *sets, u32 watch, bool lives)
{
	struct mattx_set *set;
	struct rb_node *node;

	for (node = rb_first(&sets->by_fd); node; node = rb_next(node)) {
		set = rb_entry(node, struct mattx_set, node);
		if (set->watch != watch || !watch)
			continue;
		if (lives || set->state != MATTX_SET_IS_LOCAL) {
			mattx_set_leave(sets, set);
			return;
		}
		if (set->leave)
			sets->leaving--;
		set->leave = false;
		set->state = MATTX_SET_IS_CLOSED;
		sets->local--;
		rb_erase(&set->node, &sets->by_fd);
		mattx_set_put(sets, set);
		return;
	}
}

static void on_gone(struct mattx_sets *sets, const struct mattx_frame_gone *frame)
{
	bool lives = le32_to_cpu(frame->flags) & MATTX_GONE_LIVES;
	u32 watch = le32_to_cpu(frame->watch);
	struct mattx_ghost *ghost;

	spin_lock(&sets->lock);
	ghost = mattx_ghost_find(sets, watch);
	if (ghost)
		ghost_gone(sets, ghost, lives);
	else
		set_gone(sets, watch, lives);
	spin_unlock(&sets->lock);
}

/* ------------------------------------------------------------------ items */

/* Return: whether it could be: no number comes twice, no watch is gone already. */
static bool fill_item(struct mattx_sets *sets, struct mattx_set *set,
		      const struct mattx_wire_item *wire)
{
	struct mattx_item *item =
		kzalloc(sizeof(*item), GFP_KERNEL | __GFP_NOFAIL);
	struct mattx_ghost *ghost = new_ghost(le32_to_cpu(wire->watch));
	bool good;

	spin_lock(&sets->lock);
	ghost = add_ghost(sets, ghost);
	if (ghost) {
		ghost->mask = le32_to_cpu(wire->mask) & MATTX_POLL_BITS;
		ghost->looking = false;
		ghost->grants++;
		ghost->users++;
	}
	good = ghost && !ghost->gone &&
	       !mattx_item_find(set, le32_to_cpu(wire->fd));
	if (good) {
		item->fd = le32_to_cpu(wire->fd);
		item->events = le32_to_cpu(wire->events);
		item->data = le64_to_cpu(wire->data);
		mattx_item_add(sets, set, item, ghost,
			       !(item->events & (__force u32)EPOLLET) ||
				       wire->state ==
					       cpu_to_le32(MATTX_ITEM_PENDING));
	} else if (ghost) {
		mattx_ghost_put(sets, ghost);
	}
	spin_unlock(&sets->lock);
	if (!good)
		kfree(item);
	return good;
}

static void on_items(struct mattx_sets *sets,
		     const struct mattx_frame_items *frame)
{
	const struct mattx_wire_item *item = (const void *)(frame + 1);
	u32 fd = le32_to_cpu(frame->fd), n = le32_to_cpu(frame->n);
	struct mattx_set *set;
	struct rb_node *node;
	bool good = true;

	spin_lock(&sets->lock);
	for (node = rb_first(&sets->by_fd); node; node = rb_next(node)) {
		set = rb_entry(node, struct mattx_set, node);
		if (set->fd == fd)
			break;
	}
	if (node && set->state == MATTX_SET_IS_BUSY && !set->filled)
		refcount_inc(&set->ref);
	else
		node = NULL;
	spin_unlock(&sets->lock);
	if (!node)
		return;
	while (n--) {
		good = fill_item(sets, set, item++) && good;
		cond_resched();
	}
	spin_lock(&sets->lock);
	set->watch = le32_to_cpu(frame->watch);
	set->filled = good;
	mattx_set_put(sets, set);
	spin_unlock(&sets->lock);
}

/* --------------------------------------------------------------- receiving */

void mattx_sets_grant(struct mattx_gang *gang, u32 watch)
{
	struct mattx_sets *sets = smp_load_acquire(&gang->sets);
	struct mattx_ghost *ghost;

	if (!sets)
		return;
	spin_lock(&sets->lock);
	ghost = mattx_ghost_find(sets, watch);
	if (ghost) {
		ghost->grants++;
		ghost->users++;
	}
	spin_unlock(&sets->lock);
}

static bool is_well_formed(u16 type, const void *payload, u32 len)
{
	const struct mattx_frame_items *items = payload;

	switch (type) {
	case MATTX_F_READY:
		return len && !(len % sizeof(struct mattx_wire_ready)) &&
		       len <= MATTX_READY_MAX * sizeof(struct mattx_wire_ready);
	case MATTX_F_GONE:
		return len == sizeof(struct mattx_frame_gone);
	default:
		return len >= sizeof(*items) && !items->pad &&
		       len - sizeof(*items) ==
			       (u64)le32_to_cpu(items->n) *
				       sizeof(struct mattx_wire_item);
	}
}

void mattx_sets_receive(struct mattx_peer *peer, u16 type, u64 id,
			const void *payload, u32 len)
{
	struct mattx_sets *sets;
	struct mattx_gang *gang;

	if (!is_well_formed(type, payload, len)) {
		pr_warn_ratelimited("node %s sent a malformed frame of type %u\n",
				    mattx_peer_name(peer), type);
		return;
	}
	gang = mattx_gang_find(peer, id);
	if (!gang)
		return;
	sets = smp_load_acquire(&gang->sets);
	if (!sets) {
		mattx_gang_put(gang);
		return;
	}
	switch (type) {
	case MATTX_F_READY:
		on_ready(sets, payload, len);
		break;
	case MATTX_F_GONE:
		on_gone(sets, payload);
		break;
	default:
		on_items(sets, payload);
	}
	mattx_gang_put(gang);
}
