// SPDX-License-Identifier: GPL-2.0
/*
 * Epoll sets of a guest, on the host.
 *
 * The set itself is at home, with all its registrations. With the first epoll_wait() the
 * host takes it over: the registrations come here as well, each with a ghost, and from
 * then on waiting is done here: no round trip, and one message of home's for a wake-up.
 * epoll_ctl() is made at home first, and here when that has succeeded. What the set does
 * with its registrations is what fs/eventpoll.c does; it is not an eventpoll file because
 * it must be possible to see what has fired, and to give it back at any time:
 *
 *  - when somebody else can reach the set, or a descriptor that is closed but lives on;
 *  - when something is registered that home cannot watch;
 *  - when it is asked by poll() or select(), or registered in another set: then for good.
 *
 * A thread that gives a set back tells which one-shots have fired and which edges are
 * still to be told; so does a guest that is frozen to go home (mattx_sets_sync()). Those
 * who wait in it go on waiting in their deputies. Nothing of this is an error.
 *
 * Calls on one registration take turns, so that home and host make them in one order. A
 * turn is waited for like a lock, but a freeze or a signal ends that.
 */
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>

#include "gang/gang.h"
#include "ghost/count.h"
#include "ghost/set.h"
#include "ghost/sets.h"
#include "wormhole/rpc.h"
#include "wormhole/shape.h"
#include "wormhole/special.h"

#define CHUNK 16 /* events that are copied to the guest at once */
/* Waits of the deputy before a set that was refused is asked for again; doubled. */
#define RETRY	   2
#define RETRY_MAX  12 /* times */
#define MAX_EVENTS (INT_MAX / sizeof(struct epoll_event))

/* --------------------------------------------------------------- the table */

/* Return: those of the gang, or NULL when there is no memory. */
struct mattx_sets *mattx_sets_of(struct mattx_gang *gang)
{
	struct mattx_sets *sets = smp_load_acquire(&gang->sets), *other;

	if (sets)
		return sets;
	sets = kzalloc(sizeof(*sets), GFP_KERNEL);
	if (!sets)
		return NULL;
	sets->gang = gang;
	spin_lock_init(&sets->lock);
	sets->by_fd = RB_ROOT;
	sets->by_id = RB_ROOT;
	INIT_LIST_HEAD(&sets->turns);
	init_waitqueue_head(&sets->turn);
	other = cmpxchg(&gang->sets, NULL, sets);
	if (!other)
		return sets;
	kfree(sets);
	return other;
}

static int cmp_fd(const void *key, const struct rb_node *node)
{
	u32 fd = *(const u32 *)key;
	u32 other = rb_entry(node, struct mattx_set, node)->fd;

	return fd < other ? -1 : fd > other;
}

static int cmp_sets(struct rb_node *node, const struct rb_node *other)
{
	return cmp_fd(&rb_entry(node, struct mattx_set, node)->fd, other);
}

static struct mattx_set *find_set(struct mattx_sets *sets, u32 fd)
{
	struct rb_node *node = rb_find(&fd, &sets->by_fd, cmp_fd);

	lockdep_assert_held(&sets->lock);
	return node ? rb_entry(node, struct mattx_set, node) : NULL;
}

static void drop_items(struct mattx_sets *sets, struct mattx_set *set)
{
	struct rb_node *node;

	while ((node = rb_first(&set->items)))
		mattx_item_drop(sets, rb_entry(node, struct mattx_item, node));
}

void mattx_set_put(struct mattx_sets *sets, struct mattx_set *set)
{
	lockdep_assert_held(&sets->lock);
	if (!refcount_dec_and_test(&set->ref))
		return;
	drop_items(sets, set);
	kfree(set);
}

static void put_set(struct mattx_sets *sets, struct mattx_set *set)
{
	spin_lock(&sets->lock);
	mattx_set_put(sets, set);
	spin_unlock(&sets->lock);
}

static struct mattx_set *new_set(u32 fd)
{
	struct mattx_set *set = kzalloc(sizeof(*set), GFP_KERNEL);

	if (!set)
		return NULL;
	refcount_set(&set->ref, 1);
	set->fd = fd;
	set->items = RB_ROOT;
	INIT_LIST_HEAD(&set->ready);
	INIT_LIST_HEAD(&set->held);
	init_waitqueue_head(&set->wait);
	mutex_init(&set->harvest);
	return set;
}

/* Return: the set of that number, with a reference; NULL when there is no memory. */
static struct mattx_set *get_set(struct mattx_sets *sets, u32 fd)
{
	struct mattx_set *set, *new = NULL;

	spin_lock(&sets->lock);
	set = find_set(sets, fd);
	if (!set) {
		spin_unlock(&sets->lock);
		new = new_set(fd);
		if (!new)
			return NULL;
		spin_lock(&sets->lock);
		set = find_set(sets, fd);
	}
	if (!set) {
		set = new;
		new = NULL;
		rb_find_add(&set->node, &sets->by_fd, cmp_sets);
	}
	refcount_inc(&set->ref);
	spin_unlock(&sets->lock);
	kfree(new);
	return set;
}

/* Nothing is known of that number: it is none of a set. */
static void forget_set(struct mattx_sets *sets, struct mattx_set *set)
{
	lockdep_assert_held(&sets->lock);
	set->state = MATTX_SET_IS_CLOSED;
	rb_erase(&set->node, &sets->by_fd);
	mattx_set_put(sets, set);
}

/* It cannot stay here. One that is being taken is not taken then. */
void mattx_set_leave(struct mattx_sets *sets, struct mattx_set *set)
{
	lockdep_assert_held(&sets->lock);
	set->filled = false;
	if (set->state != MATTX_SET_IS_LOCAL || set->leave)
		return;
	set->leave = true;
	sets->leaving++;
	wake_up_all(&set->wait);
}

/* ------------------------------------------------------------------- turns */

static bool has_turn(struct mattx_sets *sets, u32 set_fd)
{
	struct mattx_turn *turn;

	list_for_each_entry(turn, &sets->turns, node)
		if (turn->set == set_fd)
			return true;
	return false;
}

/* Nobody is in an epoll_ctl() with the set? */
static bool is_quiet(struct mattx_sets *sets, u32 set_fd)
{
	bool quiet;

	spin_lock(&sets->lock);
	quiet = !has_turn(sets, set_fd);
	spin_unlock(&sets->lock);
	return quiet;
}

/*
 * Return: whether it is our turn now. Then @set is the set if it is LOCAL, with a
 * reference, and NULL otherwise.
 */
static bool take_turn(struct mattx_sets *sets, struct mattx_turn *turn,
		      struct mattx_set **set)
{
	struct mattx_turn *other;
	bool ours = true;

	spin_lock(&sets->lock);
	*set = find_set(sets, turn->set);
	if (*set && (*set)->state == MATTX_SET_IS_BUSY)
		ours = false;
	list_for_each_entry(other, &sets->turns, node)
		if (other->set == turn->set && other->fd == turn->fd)
			ours = false;
	if (*set && (*set)->state != MATTX_SET_IS_LOCAL)
		*set = NULL;
	if (ours) {
		list_add_tail(&turn->node, &sets->turns);
		if (*set)
			refcount_inc(&(*set)->ref);
	}
	spin_unlock(&sets->lock);
	return ours;
}

static void end_turn(struct mattx_sets *sets, struct mattx_turn *turn)
{
	spin_lock(&sets->lock);
	list_del(&turn->node);
	spin_unlock(&sets->lock);
	wake_up_all(&sets->turn);
}

/* Return: whether the set is no longer BUSY; it is now if it was in state @from. */
static bool try_busy(struct mattx_sets *sets, struct mattx_set *set,
		     enum mattx_set_state from, bool *busy)
{
	bool done;

	spin_lock(&sets->lock);
	done = set->state != MATTX_SET_IS_BUSY;
	*busy = set->state == from;
	if (*busy)
		set->state = MATTX_SET_IS_BUSY;
	spin_unlock(&sets->lock);
	return done;
}

/*
 * make_busy() - nobody else calls epoll_ctl() or waits with this set
 * Return: 1: so it is; 0: it is not in state @from any more; -ERESTARTNOINTR.
 */
static int make_busy(struct mattx_sets *sets, struct mattx_set *set,
		     enum mattx_set_state from)
{
	bool busy;

	if (wait_event_interruptible(sets->turn, try_busy(sets, set, from, &busy)))
		return -ERESTARTNOINTR;
	if (!busy)
		return 0;
	if (!wait_event_interruptible(sets->turn, is_quiet(sets, set->fd)))
		return 1;
	spin_lock(&sets->lock);
	set->state = from;
	spin_unlock(&sets->lock);
	wake_up_all(&sets->turn);
	return -ERESTARTNOINTR;
}

/* -------------------------------------------------------------------- give */

static bool is_fired(const struct mattx_item *item)
{
	return item->fired && !(item->events & ~MATTX_EPOLL_PRIVATE);
}

/* Has it a state that home's set cannot see by looking at the descriptor? */
static bool has_state(const struct mattx_item *item)
{
	return item->events & (__force u32)(EPOLLET | EPOLLONESHOT) &&
	       (item->fired || item->events & ~MATTX_EPOLL_PRIVATE);
}

static void describe(const struct mattx_item *item, struct mattx_wire_item *wire)
{
	enum mattx_item_state state = MATTX_ITEM_QUIET;

	if (is_fired(item))
		state = MATTX_ITEM_FIRED;
	else if (!list_empty(&item->ready))
		state = MATTX_ITEM_PENDING;
	*wire = (struct mattx_wire_item){
		.fd = cpu_to_le32(item->fd),
		.events = cpu_to_le32(item->events),
		.data = cpu_to_le64(item->data),
		.state = cpu_to_le32(state),
	};
}

/* What is to be told of a set, as it is at one moment. */
struct report {
	struct mattx_wire_item *item; /* kvmalloc'ed, or NULL */
	u32 n, items, heard;
};

/* Return: whether @room entries were enough. */
static bool try_report(struct mattx_sets *sets, struct mattx_set *set,
		       struct report *r, u32 room)
{
	struct mattx_item *item;
	struct rb_node *node;
	bool blind = false;

	r->n = r->items = 0;
	spin_lock(&sets->lock);
	r->heard = sets->heard;
	for (node = rb_first(&set->items); node; node = rb_next(node)) {
		item = rb_entry(node, struct mattx_item, node);
		r->items++;
		if (!has_state(item))
			continue;
		/* its number is closed: home could not ask for its edge again */
		blind = blind || item->ghost->lives;
		if (r->n < room)
			describe(item, &r->item[r->n]);
		r->n++;
	}
	spin_unlock(&sets->lock);
	if (blind)
		r->items = 0; /* nothing is thrown away: told twice, perhaps */
	return r->n <= room;
}

static long send_report(struct mattx_thread *thread, struct mattx_sets *sets,
			struct mattx_set *set, u32 op)
{
	struct mattx_frame_set frame = {
		.op = cpu_to_le32(op),
		.fd = cpu_to_le32(set->fd),
	};
	struct report r = {};
	u32 room = 0;
	long ret = 1;

	while (!try_report(sets, set, &r, room)) {
		kvfree(r.item);
		room = r.n;
		r.item = kvmalloc_array(room, sizeof(*r.item),
					GFP_KERNEL | __GFP_NOFAIL);
	}
	frame.watch = cpu_to_le32(set->watch);
	frame.heard = cpu_to_le32(r.heard);
	frame.items = cpu_to_le32(r.items);
	frame.n = cpu_to_le32(r.n);
	if (r.n || op == MATTX_SET_GIVE)
		ret = mattx_rpc_set(thread, &frame, r.item);
	kvfree(r.item);
	return ret;
}

/* The set is BUSY, and LOCAL no more. */
static void give_back(struct mattx_thread *thread, struct mattx_sets *sets,
		      struct mattx_set *set)
{
	send_report(thread, sets, set, MATTX_SET_GIVE);
	spin_lock(&sets->lock);
	drop_items(sets, set);
	set->watch = 0;
	set->waits = 0;
	set->refused++;
	set->state = MATTX_SET_IS_REMOTE;
	spin_unlock(&sets->lock);
	wake_up_all(&sets->turn);
	wake_up_all(&set->wait);
}

/* Return: 0, or -ERESTARTNOINTR. */
static int settle(struct mattx_thread *thread, struct mattx_sets *sets,
		  struct mattx_set *set)
{
	int ret = make_busy(sets, set, MATTX_SET_IS_LOCAL);

	if (ret <= 0)
		return ret;
	spin_lock(&sets->lock);
	sets->local--;
	if (set->leave)
		sets->leaving--;
	set->leave = false;
	spin_unlock(&sets->lock);
	give_back(thread, sets, set);
	return 0;
}

/* Return: one that has to leave, with a reference, or NULL. */
static struct mattx_set *first_leaving(struct mattx_sets *sets)
{
	struct mattx_set *set = NULL;
	struct rb_node *node;

	spin_lock(&sets->lock);
	for (node = rb_first(&sets->by_fd); node; node = rb_next(node)) {
		set = rb_entry(node, struct mattx_set, node);
		if (set->leave)
			break;
	}
	if (node)
		refcount_inc(&set->ref);
	spin_unlock(&sets->lock);
	return node ? set : NULL;
}

/*
 * The LOCAL set with the lowest number from @fd on, which becomes what follows it.
 * Return: with a reference, or NULL.
 */
static struct mattx_set *next_local(struct mattx_sets *sets, u64 *fd)
{
	struct mattx_set *set = NULL;
	struct rb_node *node;

	spin_lock(&sets->lock);
	for (node = rb_first(&sets->by_fd); node; node = rb_next(node)) {
		set = rb_entry(node, struct mattx_set, node);
		if (set->fd >= *fd && set->state == MATTX_SET_IS_LOCAL)
			break;
	}
	if (node) {
		refcount_inc(&set->ref);
		*fd = (u64)set->fd + 1;
	}
	spin_unlock(&sets->lock);
	return node ? set : NULL;
}

bool mattx_sets_unsettled(struct mattx_gang *gang)
{
	struct mattx_sets *sets = smp_load_acquire(&gang->sets);

	return sets && READ_ONCE(sets->leaving);
}

int mattx_sets_settle(struct mattx_thread *thread)
{
	struct mattx_sets *sets = smp_load_acquire(&thread->gang->sets);
	struct mattx_set *set;
	int err = 0;

	while (!err && sets && READ_ONCE(sets->leaving)) {
		set = first_leaving(sets);
		if (!set)
			break;
		err = settle(thread, sets, set);
		put_set(sets, set);
	}
	return err;
}

int mattx_sets_give_all(struct mattx_thread *thread)
{
	struct mattx_sets *sets = smp_load_acquire(&thread->gang->sets);
	struct mattx_set *set;
	int err = 0;
	u64 fd = 0;

	while (!err && sets && (set = next_local(sets, &fd))) {
		err = settle(thread, sets, set);
		put_set(sets, set);
	}
	return err;
}

int mattx_sets_sync(struct mattx_gang *gang)
{
	struct mattx_sets *sets = smp_load_acquire(&gang->sets);
	struct mattx_thread *thread;
	struct mattx_set *set;
	long ret = 1;
	u64 fd = 0;

	if (!sets || !sets->local)
		return 0;
	thread = mattx_gang_any(gang);
	if (!thread)
		return -ESRCH;
	while (ret > 0 && (set = next_local(sets, &fd))) {
		ret = send_report(thread, sets, set, MATTX_SET_SYNC);
		put_set(sets, set);
	}
	mattx_thread_put(thread);
	return ret < 0 ? ret : 0;
}

/* -------------------------------------------------------------------- take */

static void taken(struct mattx_sets *sets, struct mattx_set *set, long ret)
{
	bool filled;

	spin_lock(&sets->lock);
	filled = ret > 0 && set->filled;
	if (filled) {
		set->state = MATTX_SET_IS_LOCAL;
		set->refused = 0;
		sets->local++;
	} else if (ret == -EBADF || ret == -EINVAL) {
		forget_set(sets, set);
	} else if (ret <= 0) {
		set->state = MATTX_SET_IS_REMOTE;
		set->waits = 0;
		set->refused++;
	}
	set->filled = false;
	spin_unlock(&sets->lock);
	wake_up_all(&sets->turn);
}

/* Return: 0, whatever has become of it; -ERESTARTNOINTR. */
static int take(struct mattx_thread *thread, struct mattx_sets *sets,
		struct mattx_set *set)
{
	struct mattx_frame_set frame = {
		.op = cpu_to_le32(MATTX_SET_TAKE),
		.fd = cpu_to_le32(set->fd),
	};
	int busy = make_busy(sets, set, MATTX_SET_IS_REMOTE);
	long ret;

	if (busy <= 0)
		return busy;
	set->filled = false;
	ret = mattx_rpc_set(thread, &frame, NULL);
	if (ret > 0 && !READ_ONCE(set->filled))
		give_back(thread, sets, set);
	else
		taken(sets, set, ret);
	return 0;
}

/* Is it worth while to ask for the set now? */
static bool may_take(struct mattx_sets *sets, struct mattx_set *set)
{
	bool may;

	spin_lock(&sets->lock);
	may = !set->shun &&
	      (!set->refused ||
	       ++set->waits > RETRY << min(set->refused, (u32)RETRY_MAX));
	spin_unlock(&sets->lock);
	return may;
}

/*
 * local_set() - the set of a number, taken over if it can be
 * Return: 1 and a reference; 0: the deputy waits; -ERESTARTNOINTR.
 */
static int local_set(struct mattx_thread *thread, u32 fd,
		     struct mattx_sets **all, struct mattx_set **res)
{
	struct mattx_sets *sets = mattx_sets_of(thread->gang);
	struct mattx_set *set;
	int err;

	err = mattx_sets_settle(thread);
	set = sets && !err ? get_set(sets, fd) : NULL;
	if (!set)
		return err;
	while (!err) {
		if (READ_ONCE(set->state) == MATTX_SET_IS_BUSY)
			err = wait_event_interruptible(
				      sets->turn, READ_ONCE(set->state) !=
							  MATTX_SET_IS_BUSY) ?
				      -ERESTARTNOINTR :
				      0;
		else if (READ_ONCE(set->state) != MATTX_SET_IS_REMOTE ||
			 !may_take(sets, set))
			break;
		else
			err = take(thread, sets, set);
	}
	if (!err && READ_ONCE(set->state) == MATTX_SET_IS_LOCAL) {
		*all = sets;
		*res = set;
		return 1;
	}
	put_set(sets, set);
	return err;
}

void mattx_set_created(struct mattx_thread *thread, u32 fd)
{
	struct mattx_sets *sets = smp_load_acquire(&thread->gang->sets);
	struct mattx_set *set;

	if (!sets)
		return;
	spin_lock(&sets->lock);
	set = find_set(sets, fd);
	if (set && set->state == MATTX_SET_IS_REMOTE) {
		set->shun = false;
		set->refused = 0;
	}
	spin_unlock(&sets->lock);
}

/* ---------------------------------------------------------------- harvest */

/* An event on its way to the guest, and how to undo it. */
struct event {
	struct epoll_event event;
	u32 fd, events;
	bool oneshot;
};

/* One more event of the items in @from. Return: false when there is none. */
static bool pop(struct mattx_sets *sets, struct mattx_set *set,
		struct list_head *from, struct event *e)
{
	struct mattx_item *item;
	u32 mask;

	while (!list_empty(from)) {
		item = list_first_entry(from, struct mattx_item, ready);
		list_del_init(&item->ready);
		item->held = false;
		mask = item->ghost->mask & item->events & ~MATTX_EPOLL_PRIVATE;
		if (!mask)
			continue;
		e->event.events = (__force __poll_t)mask;
		e->event.data = item->data;
		e->fd = item->fd;
		e->events = item->events;
		e->oneshot = item->events & (__force u32)EPOLLONESHOT;
		if (e->oneshot) {
			item->events &= MATTX_EPOLL_PRIVATE;
			item->fired = true;
		} else if (!(item->events & (__force u32)EPOLLET)) {
			mattx_ghost_told(sets, item->ghost);
			item->held = item->ghost->looking;
			list_add_tail(&item->ready,
				      item->held ? &set->held : &set->ready);
		}
		return true;
	}
	return false;
}

/* An event that the guest's memory did not take. */
static void unpop(struct mattx_set *set, const struct event *e)
{
	struct mattx_item *item = mattx_item_find(set, e->fd);

	if (!item)
		return;
	if (e->oneshot && is_fired(item)) {
		item->events = e->events;
		item->fired = false;
	}
	if (list_empty(&item->ready))
		list_add(&item->ready, &set->ready);
}

/* Return: how many events arrived in the guest's memory. */
static u32 put_events(struct epoll_event __user *to, const struct event *e, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (copy_to_user(to + i, &e[i].event, sizeof(*to)))
			break;
	return i;
}

/*
 * harvest() - events that are ready, as many as there are and @max
 * @all: also what we have asked home about
 * Return: how many, or -EFAULT.
 */
static long harvest(struct mattx_sets *sets, struct mattx_set *set,
		    struct epoll_event __user *events, int max, bool all)
{
	struct event chunk[CHUNK];
	bool more, fault = false;
	u32 n, got, done = 0;
	LIST_HEAD(from);

	mutex_lock(&set->harvest);
	spin_lock(&sets->lock);
	list_splice_init(&set->ready, &from);
	if (all)
		list_splice_tail_init(&set->held, &from);
	do {
		for (n = 0; n < CHUNK && done + n < max; n++)
			if (!pop(sets, set, &from, &chunk[n]))
				break;
		if (!n)
			break;
		spin_unlock(&sets->lock);
		got = put_events(events + done, chunk, n);
		spin_lock(&sets->lock);
		done += got;
		fault = got < n;
		while (n > got)
			unpop(set, &chunk[--n]);
	} while (n == CHUNK && !fault);
	list_splice(&from, &set->ready);
	more = !list_empty(&set->ready);
	spin_unlock(&sets->lock);
	mutex_unlock(&set->harvest);
	/* whoever else waits may have them */
	if (more)
		wake_up(&set->wait);
	if (done)
		return done;
	return fault ? -EFAULT : 0;
}

/* -------------------------------------------------------------------- wait */

/* Nothing to be done for who waits? */
static bool is_idle(struct mattx_sets *sets, struct mattx_set *set)
{
	bool idle;

	spin_lock(&sets->lock);
	idle = list_empty(&set->ready) && !set->leave &&
	       (set->state == MATTX_SET_IS_LOCAL ||
		set->state == MATTX_SET_IS_CLOSED);
	spin_unlock(&sets->lock);
	return idle;
}

/* Return: whether the time is over. */
static bool sleep_in(struct mattx_sets *sets, struct mattx_set *set,
		     const ktime_t *until)
{
	bool over = false;
	ktime_t at;
	DEFINE_WAIT(wait);

	prepare_to_wait_exclusive(&set->wait, &wait, TASK_INTERRUPTIBLE);
	if (is_idle(sets, set) && !signal_pending(current)) {
		at = until ? *until : 0;
		over = !schedule_hrtimeout_range(until ? &at : NULL,
						 current->timer_slack_ns,
						 HRTIMER_MODE_ABS);
	}
	finish_wait(&set->wait, &wait);
	return over;
}

static long wait_in(struct mattx_sets *sets, struct mattx_set *set,
		    struct epoll_event __user *events, int max,
		    const ktime_t *until, bool now)
{
	const bool look_only = now;
	long ret;

	for (;;) {
		ret = harvest(sets, set, events, max, look_only);
		if (ret || now)
			return ret;
		if (set->leave || (READ_ONCE(set->state) != MATTX_SET_IS_LOCAL &&
				   READ_ONCE(set->state) != MATTX_SET_IS_CLOSED))
			return MATTX_SET_REMOTE;
		if (signal_pending(current))
			return -ERESTARTNOHAND;
		now = sleep_in(sets, set, until);
	}
}

long mattx_set_wait(struct mattx_thread *thread, u32 fd,
		    struct epoll_event __user *events, int max,
		    const ktime_t *until, bool now)
{
	struct mattx_sets *sets;
	struct mattx_set *set;
	long ret;

	if (max <= 0 || max > MAX_EVENTS ||
	    !access_ok(events, max * sizeof(*events)))
		return MATTX_SET_REMOTE;
	do {
		ret = local_set(thread, fd, &sets, &set);
		if (ret <= 0)
			return ret ?: MATTX_SET_REMOTE;
		mattx_ghost_count(MATTX_COUNT_WAITS, 1);
		ret = wait_in(sets, set, events, max, until, now);
		put_set(sets, set);
	} while (ret == MATTX_SET_REMOTE);
	return ret;
}

/* --------------------------------------------------------------- epoll_ctl */

/*
 * A set that is asked for by other calls, which only home can make: it stays there.
 */
int mattx_set_shun(struct mattx_thread *thread,
		   bool (*asks)(u32 fd, const void *arg), const void *arg)
{
	struct mattx_sets *sets = smp_load_acquire(&thread->gang->sets);
	struct mattx_set *set;
	u64 fd = 0;

	if (!sets || !READ_ONCE(sets->local))
		return 0;
	while ((set = next_local(sets, &fd))) {
		bool asked = asks(set->fd, arg);

		spin_lock(&sets->lock);
		if (asked) {
			set->shun = true;
			mattx_set_leave(sets, set);
		}
		mattx_set_put(sets, set);
		spin_unlock(&sets->lock);
	}
	return mattx_sets_settle(thread);
}

static bool is_fd(u32 fd, const void *arg)
{
	return fd == *(const u32 *)arg;
}

/* A registration that home has made. @item is taken over. */
static void added(struct mattx_sets *sets, struct mattx_set *set,
		  struct mattx_item *item, u32 watch)
{
	struct mattx_ghost *ghost = watch ? mattx_ghost_find(sets, watch) : NULL;

	if (ghost && !ghost->gone && !mattx_item_find(set, item->fd)) {
		mattx_item_add(sets, set, item, ghost, true);
		return;
	}
	/* closed meanwhile by another thread, or nothing that home can watch */
	if (!ghost || ghost->lives || !ghost->gone)
		mattx_set_leave(sets, set);
	if (ghost)
		mattx_ghost_put(sets, ghost);
	kfree(item);
}

static void modified(struct mattx_sets *sets, struct mattx_set *set,
		     const struct mattx_item *new)
{
	struct mattx_item *item = mattx_item_find(set, new->fd);

	if (!item) {
		mattx_set_leave(sets, set);
		return;
	}
	item->events = new->events;
	item->data = new->data;
	item->fired = false;
	mattx_item_wake(item);
}

/* What home has done with a set that is here. @new is taken over. */
static void controlled(struct mattx_sets *sets, struct mattx_set *set, int op,
		       struct mattx_item *new, u32 watch)
{
	struct mattx_item *item;

	spin_lock(&sets->lock);
	if (new->events &(__force u32)EPOLLWAKEUP) {
		set->shun = true;
		mattx_set_leave(sets, set);
	}
	switch (op) {
	case EPOLL_CTL_ADD:
		added(sets, set, new, watch);
		new = NULL;
		break;
	case EPOLL_CTL_MOD:
		modified(sets, set, new);
		break;
	case EPOLL_CTL_DEL:
		item = mattx_item_find(set, new->fd);
		if (item)
			mattx_item_drop(sets, item);
		break;
	}
	spin_unlock(&sets->lock);
	kfree(new);
}

static long call_home(struct mattx_thread *thread,
		      const struct mattx_call *call, const struct pt_regs *regs,
		      const struct epoll_event *event, u32 *watch)
{
	struct mattx_request rq;
	long ret;

	do {
		rq = (struct mattx_request){
			.thread = thread,
			.call = call,
			.nr = __NR_epoll_ctl,
			.firm = true,
			.kernel = { [3] = event },
		};
		mattx_regs_args(regs, rq.args);
		ret = mattx_call_once(&rq);
	} while (ret == MATTX_AGAIN);
	*watch = rq.watch;
	return ret;
}

/* It is this call's turn; @set is LOCAL, or NULL. */
static long control(struct mattx_thread *thread, const struct mattx_call *call,
		    const struct pt_regs *regs, struct mattx_sets *sets,
		    struct mattx_set *set)
{
	const struct epoll_event *given = NULL;
	struct epoll_event event = {};
	struct mattx_item *new;
	int op = regs->si;
	u32 watch;
	long ret;

	if (op != EPOLL_CTL_DEL &&
	    !copy_from_user(&event, (void __user *)regs->r10, sizeof(event)))
		given = &event;
	/* a bad address: home says so */
	if (!set || (op != EPOLL_CTL_DEL && !given))
		return call_home(thread, call, regs, given, &watch);
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->fd = regs->dx;
	new->events = (__force u32)(event.events | EPOLLERR | EPOLLHUP);
	new->data = event.data;
	ret = call_home(thread, call, regs, given, &watch);
	if (!ret)
		controlled(sets, set, op, new, watch);
	else
		kfree(new);
	return ret;
}

MATTX_HANDLER(mattx_do_epoll_ctl)
{
	struct mattx_sets *sets = mattx_sets_of(thread->gang);
	struct mattx_turn turn = { .set = regs->di, .fd = regs->dx };
	struct mattx_set *set;
	long ret;

	if (!sets)
		return -ENOMEM;
	/* a set within a set */
	ret = mattx_set_shun(thread, is_fd, &turn.fd);
	if (ret)
		return ret;
	if (wait_event_interruptible(sets->turn, take_turn(sets, &turn, &set)))
		return -ERESTARTNOINTR;
	ret = control(thread, call, regs, sets, set);
	end_turn(sets, &turn);
	if (set)
		put_set(sets, set);
	if (READ_ONCE(sets->leaving))
		mattx_sets_settle(thread);
	return ret;
}

MATTX_HANDLER(mattx_do_epoll_create)
{
	u64 args[6];
	long ret;

	mattx_regs_args(regs, args);
	ret = mattx_call_deputy(thread, regs->orig_ax, call, args);
	if (ret >= 0)
		mattx_set_created(thread, ret);
	return ret;
}

/* -------------------------------------------------------------------- ends */

void mattx_sets_free(struct mattx_gang *gang)
{
	struct mattx_sets *sets = gang->sets;
	struct mattx_ghost *ghost, *next;
	struct rb_node *node;

	if (!sets)
		return;
	spin_lock(&sets->lock);
	rbtree_postorder_for_each_entry_safe(ghost, next, &sets->by_id, node)
		ghost->gone = true; /* home need not hear of it */
	while ((node = rb_first(&sets->by_fd))) {
		rb_erase(node, &sets->by_fd);
		mattx_set_put(sets, rb_entry(node, struct mattx_set, node));
	}
	while ((node = rb_first(&sets->by_id))) {
		rb_erase(node, &sets->by_id);
		kfree(rb_entry(node, struct mattx_ghost, node));
	}
	spin_unlock(&sets->lock);
	kfree(sets);
}
