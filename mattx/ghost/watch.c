// SPDX-License-Identifier: GPL-2.0
/*
 * Home's side of pushed readiness: looking at a deputy's files and telling the host.
 *
 * A watch has an entry on each wait queue that the file's ->poll names. A wake-up makes
 * it dirty; a work looks at the file, as ->poll shows it then, and sends what it has seen,
 * with the key of the wake-ups: an edge for the host's waiters even when the mask is the
 * same. Who makes a call for the guest looks, before the REPLY is queued, at the files
 * that the call was about and at whatever is dirty, so that the guest sees what its own
 * call has done, and no readiness that it has used up.
 *
 * Nobody is woken when a file ceases to be ready. When somebody else at home has emptied
 * it, the host finds that out by LOOK.
 *
 * Life of a watch: from a TAKE or a registration in a set that is taken over, until its
 * number is closed at home (GONE), or the deputy is no deputy any more. A watch that
 * nobody listens to is muted, and stays.
 *
 * A description must not outlive its last number because of us, nor may its release wait
 * until the deputy's thread goes out of the park the next time: mattx_fput_now().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <asm/unistd.h>

#include "compat.h"
#include "gang/gang.h"
#include "ghost/count.h"
#include "ghost/watch.h"
#include "ghost/watches.h"
#include "wormhole/link.h"
#include "wormhole/packet.h"

#define EDGES (MATTX_READY_NEW | MATTX_READY_WAKE | MATTX_READY_LOOKED)

struct mattx_hook {
	struct mattx_hook *next;
	struct mattx_watch *watch;
	wait_queue_entry_t entry;
	wait_queue_head_t *head; /* NULL: it has gone away (POLLFREE) */
};

static struct workqueue_struct *watch_wq;

/* ------------------------------------------------------------- which files */

static const char *anon_name(struct file *file)
{
	if (file_inode(file)->i_sb->s_magic != ANON_INODE_FS_MAGIC)
		return NULL;
	return (const char *)file->f_path.dentry->d_name.name;
}

bool mattx_watch_is_set(struct file *file)
{
	const char *name = anon_name(file);

	return name && file->f_op->show_fdinfo && !strcmp(name, "[eventpoll]");
}

static bool is_tty(const struct inode *inode)
{
	unsigned int major = imajor(inode);

	return major == TTY_MAJOR || major == TTYAUX_MAJOR ||
	       (major >= UNIX98_PTY_MASTER_MAJOR &&
		major < UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT);
}

/*
 * May anybody ask this file at any time whether it is ready?
 *
 * Those whose ->poll takes something away by telling it (/proc/mounts), looks at the
 * process that asks (signalfd), or may be anything are left to the deputy.
 */
static bool can_watch(struct file *file)
{
	const struct inode *inode = file_inode(file);
	const char *name = anon_name(file);

	if (!file_can_poll(file))
		return false;
	if (name)
		return !strcmp(name, "[eventfd]") ||
		       !strcmp(name, "[timerfd]") || !strcmp(name, "inotify");
	return S_ISSOCK(inode->i_mode) || S_ISFIFO(inode->i_mode) ||
	       (S_ISCHR(inode->i_mode) && is_tty(inode));
}

/* What @fd is in current's table: to be compared, not to be used. */
static struct file *file_now(u32 fd)
{
	struct file *file;

	rcu_read_lock();
	file = files_lookup_fd_raw(current->files, fd);
	rcu_read_unlock();
	return file;
}

/* ------------------------------------------------------------------ wakes */

static void queue(struct mattx_watches *all, struct work_struct *work)
{
	/* an ended gang is about to drop its watches */
	if (!kref_get_unless_zero(&all->gang->ref))
		return;
	if (!queue_work(watch_wq, work))
		mattx_gang_put(all->gang);
}

static void mark(struct mattx_watch *watch, u32 flags, u32 key)
{
	struct mattx_watches *all = watch->all;
	unsigned long irq;
	bool first;

	spin_lock_irqsave(&all->wake_lock, irq);
	watch->key |= key;
	first = !(watch->flags & MATTX_WATCH_DIRTY);
	if (first) {
		list_add_tail(&watch->node, &all->dirty);
		atomic_inc(&all->pending);
	}
	watch->flags |= flags | MATTX_WATCH_DIRTY;
	spin_unlock_irqrestore(&all->wake_lock, irq);
	if (first)
		queue(all, &all->work);
}

/* In any context, with the wait queue's lock. Never takes a wake-up from others. */
static int on_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
		   void *arg)
{
	struct mattx_hook *hook = container_of(entry, struct mattx_hook, entry);
	__poll_t key = key_to_poll(arg);
	u32 bits = (__force u32)key & MATTX_POLL_BITS;

	if ((!key || bits) && !READ_ONCE(hook->watch->muted))
		mark(hook->watch,
		     MATTX_READY_WAKE | (key ? 0 : MATTX_WATCH_NO_KEY), bits);
	if (key & POLLFREE) {
		/* as eventpoll.c: whoever unhooks may still look at the entry */
		list_del_init(&entry->entry);
		smp_store_release(&hook->head, NULL);
	}
	return 0;
}

struct hooking {
	poll_table table;
	struct mattx_watch *watch;
};

static void hook_queue(struct file *file, wait_queue_head_t *head,
		       poll_table *table)
{
	struct mattx_watch *watch =
		container_of(table, struct hooking, table)->watch;
	struct mattx_hook *hook = kmalloc(sizeof(*hook), GFP_KERNEL);

	if (!hook) {
		watch->unhookable = true;
		return;
	}
	hook->watch = watch;
	hook->head = head;
	init_waitqueue_func_entry(&hook->entry, on_wake);
	hook->next = watch->hooks;
	watch->hooks = hook;
	add_wait_queue(head, &hook->entry);
}

static void hook(struct mattx_watch *watch)
{
	struct hooking hooking = { .watch = watch };

	init_poll_funcptr(&hooking.table, hook_queue);
	vfs_poll(watch->file, &hooking.table);
}

static void unhook(struct mattx_watch *watch)
{
	wait_queue_head_t *head;
	struct mattx_hook *hook;

	while ((hook = watch->hooks)) {
		watch->hooks = hook->next;
		rcu_read_lock();
		head = smp_load_acquire(&hook->head);
		if (head)
			remove_wait_queue(head, &hook->entry);
		rcu_read_unlock();
		kfree(hook);
	}
}

/* ---------------------------------------------------------------- telling */

/* A frame READY in the making. */
struct batch {
	struct mattx_watches *all;
	struct mattx_packet *packet;
	u32 n;
	u32 taken; /* watches that are not dirty any more */
	bool work; /* by the work: nothing else follows it */
};

static void send_batch(struct batch *b)
{
	struct mattx_gang *gang = b->all->gang;
	size_t len = b->n * sizeof(struct mattx_wire_ready);

	lockdep_assert_held(&b->all->lock);
	if (b->n) {
		mattx_ghost_count(MATTX_COUNT_READY, 1);
		mattx_ghost_count(MATTX_COUNT_WAKES, b->n);
		b->all->sent++;
		if (b->work)
			mattx_link_submit_now(gang->peer, MATTX_F_READY,
					      gang->id, b->packet, len);
		else
			mattx_link_queue(gang->peer, MATTX_F_READY, gang->id,
					 b->packet, len);
		b->packet = NULL;
	}
	atomic_sub(b->taken, &b->all->pending);
	mattx_packet_put(b->packet);
	b->packet = NULL;
	b->n = b->taken = 0;
}

/* No longer dirty. Return: flags of what was not told. */
static u32 take_wakes(struct mattx_watch *watch, u32 *key)
{
	struct mattx_watches *all = watch->all;
	u32 flags;

	spin_lock_irq(&all->wake_lock);
	flags = watch->flags;
	*key = flags & MATTX_WATCH_NO_KEY ? 0 : watch->key;
	if (flags & MATTX_WATCH_DIRTY)
		list_del_init(&watch->node);
	watch->flags = 0;
	watch->key = 0;
	spin_unlock_irq(&all->wake_lock);
	return flags;
}

/* What is told then is the mask; its wakes are told as ever. */
u32 mattx_watch_look(struct mattx_watch *watch)
{
	lockdep_assert_held(&watch->all->lock);
	watch->mask = (__force u32)vfs_poll(watch->file, NULL) & MATTX_POLL_BITS;
	return watch->mask;
}

/*
 * Has it been woken since the host heard its frame number @heard? All of a wake-up counts
 * that has begun: sets at home may have seen it before us.
 */
bool mattx_watch_unheard(struct mattx_watch *watch, u32 heard)
{
	struct mattx_watches *all = watch->all;
	wait_queue_head_t *head;
	struct mattx_hook *hook;
	unsigned long irq;
	bool dirty;

	lockdep_assert_held(&all->lock);
	rcu_read_lock();
	for (hook = watch->hooks; hook; hook = hook->next) {
		head = smp_load_acquire(&hook->head);
		if (!head)
			continue;
		spin_lock_irqsave(&head->lock, irq);
		spin_unlock_irqrestore(&head->lock, irq);
	}
	rcu_read_unlock();
	spin_lock_irq(&all->wake_lock);
	dirty = watch->flags & MATTX_READY_WAKE;
	spin_unlock_irq(&all->wake_lock);
	return dirty || (s32)(watch->woken - heard) > 0;
}

/*
 * Looks at a file and adds what the host does not know. A wake that comes between makes
 * the watch dirty again. @flags: MATTX_READY_*, besides those of the wakes.
 */
static void tell(struct batch *b, struct mattx_watch *watch, u32 flags)
{
	struct mattx_wire_ready *entry;
	u32 key, mask;

	flags |= take_wakes(watch, &key);
	if (flags & MATTX_WATCH_DIRTY)
		b->taken++;
	flags &= EDGES;
	if (watch->is_set || watch->muted)
		return;
	mask = (__force u32)vfs_poll(watch->file, NULL) & MATTX_POLL_BITS;
	if (!flags && mask == watch->mask)
		return;
	watch->mask = mask;
	if (flags & MATTX_READY_WAKE)
		watch->woken = b->all->sent + 1; /* the frame in the making */
	if (!b->packet)
		b->packet = mattx_packet_alloc(MATTX_READY_MAX * sizeof(*entry),
					       GFP_KERNEL | __GFP_NOFAIL);
	entry = (void *)b->packet->payload + b->n++ * sizeof(*entry);
	*entry = (struct mattx_wire_ready){
		.watch = cpu_to_le32(watch->id),
		.flags = cpu_to_le32(flags),
		.mask = cpu_to_le32(mask),
		.key = cpu_to_le32(key),
	};
	if (b->n == MATTX_READY_MAX)
		send_batch(b);
}

static struct mattx_watch *first_dirty(struct mattx_watches *all)
{
	struct mattx_watch *watch;

	spin_lock_irq(&all->wake_lock);
	watch = list_first_entry_or_null(&all->dirty, struct mattx_watch, node);
	spin_unlock_irq(&all->wake_lock);
	return watch;
}

/* All that is dirty, or as much as the host may have in hand. */
static void tell_dirty(struct batch *b)
{
	struct mattx_watches *all = b->all;
	struct mattx_watch *watch;

	lockdep_assert_held(&all->lock);
	while (!b->work || all->sent - all->paced < MATTX_READY_WINDOW) {
		watch = first_dirty(all);
		if (!watch)
			break;
		tell(b, watch, 0);
	}
	send_batch(b);
}

static void wake_work(struct work_struct *work)
{
	struct mattx_watches *all =
		container_of(work, struct mattx_watches, work);
	struct batch b = { .all = all, .work = true };

	mutex_lock(&all->lock);
	tell_dirty(&b);
	mutex_unlock(&all->lock);
	mattx_gang_put(all->gang);
}

static void send_gone(struct mattx_watch *watch, u32 flags)
{
	struct mattx_gang *gang = watch->all->gang;
	struct mattx_frame_gone frame = {
		.watch = cpu_to_le32(watch->id),
		.flags = cpu_to_le32(flags),
	};

	mattx_link_send(gang->peer, MATTX_F_GONE, gang->id, &frame,
			sizeof(frame), NULL, 0, GFP_KERNEL | __GFP_NOFAIL);
}

/* -------------------------------------------------------------- the table */

static void end_work(struct work_struct *work)
{
	struct mattx_watches *all =
		container_of(work, struct mattx_watches, end_work);
	struct mattx_gang *gang = all->gang;

	mattx_watch_end(gang);
	mattx_gang_put(gang);
}

/* Return: those of the gang, or NULL when there is no memory. */
struct mattx_watches *mattx_watches_of(struct mattx_gang *gang)
{
	struct mattx_watches *all = smp_load_acquire(&gang->watches), *other;

	if (all)
		return all;
	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return NULL;
	all->gang = gang;
	mutex_init(&all->lock);
	xa_init(&all->by_fd);
	xa_init(&all->by_id);
	hash_init(all->by_file);
	spin_lock_init(&all->wake_lock);
	INIT_LIST_HEAD(&all->dirty);
	INIT_WORK(&all->work, wake_work);
	INIT_WORK(&all->end_work, end_work);
	other = cmpxchg(&gang->watches, NULL, all);
	if (!other)
		return all;
	kfree(all);
	return other;
}

struct mattx_watch *mattx_watch_at(struct mattx_watches *all, u32 fd)
{
	lockdep_assert_held(&all->lock);
	return xa_load(&all->by_fd, fd);
}

/* A set that the host has, by the number that it was taken by? */
bool mattx_watch_holds(struct mattx_watch *watch)
{
	return watch->is_set && file_now(watch->fd) == watch->file;
}

/* Out of the table, and onto @going: mattx_watch_put_all() releases the file. */
void mattx_watch_drop(struct mattx_watches *all, struct mattx_watch *watch,
		      struct list_head *going)
{
	u32 key;

	lockdep_assert_held(&all->lock);
	unhook(watch);
	if (take_wakes(watch, &key) & MATTX_WATCH_DIRTY)
		atomic_dec(&all->pending);
	hash_del(&watch->by_file);
	xa_erase(&all->by_fd, watch->fd);
	xa_erase(&all->by_id, watch->id);
	all->sets -= watch->is_set;
	list_add_tail(&watch->node, going);
}

void mattx_watch_put_all(struct list_head *going)
{
	struct mattx_watch *watch, *next;

	list_for_each_entry_safe(watch, next, going, node) {
		mattx_fput_now(watch->file);
		kfree(watch);
	}
}

/* Drops a watch whose number is no longer the file's. In a thread of the deputy. */
static void check_watch(struct mattx_watches *all, struct mattx_watch *watch,
			struct list_head *going)
{
	if (file_now(watch->fd) == watch->file)
		return;
	/* one reference is ours; nobody gets one from us */
	send_gone(watch, file_count(watch->file) > 1 ? MATTX_GONE_LIVES : 0);
	mattx_watch_drop(all, watch, going);
}

/* Into the table and onto the wait queues. Return: whether it could be. */
static bool add_watch(struct mattx_watches *all, struct mattx_watch *watch)
{
	if (all->ended)
		return false;
	watch->id = ++all->last_id;
	if (xa_err(xa_store(&all->by_id, watch->id, watch, GFP_KERNEL)))
		return false;
	if (xa_err(xa_store(&all->by_fd, watch->fd, watch, GFP_KERNEL))) {
		xa_erase(&all->by_id, watch->id);
		return false;
	}
	hash_add(all->by_file, &watch->by_file, (unsigned long)watch->file);
	all->sets += watch->is_set;
	if (!watch->is_set)
		hook(watch);
	return true;
}

/**
 * mattx_watch_for() - the watch of a descriptor, which gets one if it can
 * @set: the epoll set that it has to be, NULL: it is none
 * @going: what was dropped for it
 *
 * Context: current is a thread of the deputy. Return: NULL: it is not open, cannot be
 * watched, there is no memory, or another thread is just closing the number.
 */
struct mattx_watch *mattx_watch_for(struct mattx_watches *all, u32 fd,
				    struct file *set, struct list_head *going)
{
	struct mattx_watch *watch = xa_load(&all->by_fd, fd);
	struct file *file;

	lockdep_assert_held(&all->lock);
	if (watch) {
		check_watch(all, watch, going);
		watch = xa_load(&all->by_fd, fd);
	}
	if (watch)
		return watch->is_set == !!set ? watch : NULL;
	file = fget(fd);
	if (!file)
		return NULL;
	watch = kzalloc(sizeof(*watch), GFP_KERNEL | __GFP_NOFAIL);
	*watch = (struct mattx_watch){
		.all = all, .fd = fd, .file = file, .is_set = set
	};
	INIT_LIST_HEAD(&watch->node);
	if (!(set ? file == set : can_watch(file)) || !add_watch(all, watch)) {
		list_add_tail(&watch->node, going);
		return NULL;
	}
	/* a number that has been closed is not looked at again by who closed it */
	if (!watch->unhookable && file_now(fd) == file)
		return watch;
	mattx_watch_drop(all, watch, going);
	return NULL;
}

/* A set that others can reach is to be the deputy's again. */
static void leave_set(struct mattx_watch *watch)
{
	if (!watch->left)
		send_gone(watch, MATTX_GONE_LIVES);
	watch->left = true;
}

/* ----------------------------------------------------- what a call has done */

/* The numbers that a call may have closed. Return: false when it closes none. */
static bool closes(u32 nr, const u64 *args, u32 *first, u32 *last)
{
	switch (nr) {
	case __NR_close:
		*first = *last = args[0];
		return true;
	case __NR_dup2:
	case __NR_dup3:
		*first = *last = args[1];
		return true;
	case __NR_close_range:
		*first = args[0];
		*last = args[1];
		return true;
	default:
		return false;
	}
}

static bool is_dup(u32 nr, const u64 *args)
{
	switch (nr) {
	case __NR_dup:
	case __NR_dup2:
	case __NR_dup3:
		return true;
	case __NR_fcntl:
		return (u32)args[1] == F_DUPFD || (u32)args[1] == F_DUPFD_CLOEXEC;
	default:
		return false;
	}
}

static void after_close(struct mattx_watches *all, u32 first, u32 last,
			struct list_head *going)
{
	struct mattx_watch *watch;
	unsigned long fd;

	xa_for_each_range(&all->by_fd, fd, watch, first, last)
		check_watch(all, watch, going);
}

/* @fd is new: of a set that the host has? */
static void after_dup(struct mattx_watches *all, u32 fd)
{
	struct file *file = file_now(fd);
	struct mattx_watch *watch;

	hash_for_each_possible(all->by_file, watch, by_file, (unsigned long)file)
		if (watch->file == file && watch->is_set && watch->fd != fd)
			leave_set(watch);
}

/* Was the set among the descriptors that a message took along? */
static bool is_sent(const struct mattx_made *made, u32 fd)
{
	const u8 *at = made->control, *end = at + made->control_len;
	const struct cmsghdr *cmsg;
	const s32 *sent;
	size_t len;

	while (end - at >= sizeof(*cmsg)) {
		cmsg = (const void *)at;
		len = cmsg->cmsg_len;
		if (len < sizeof(*cmsg) || len > end - at)
			return false;
		sent = (const s32 *)(cmsg + 1);
		for (; (const u8 *)(sent + 1) <= at + len; sent++)
			if (cmsg->cmsg_level == SOL_SOCKET &&
			    cmsg->cmsg_type == SCM_RIGHTS && *sent == fd)
				return true;
		at += min_t(size_t, CMSG_ALIGN(len), end - at);
	}
	return false;
}

/* A set that the host has is in a message now. Of many messages it is not known. */
static void after_send(struct mattx_watches *all, const struct mattx_made *made)
{
	struct mattx_watch *watch;
	unsigned long fd;

	if (!all->sets || (made->nr == __NR_sendmsg && !made->control_len))
		return;
	xa_for_each(&all->by_fd, fd, watch)
		if (watch->is_set && file_count(watch->file) > 2 &&
		    (made->nr == __NR_sendmmsg || is_sent(made, fd)))
			leave_set(watch);
}

/* Looks at all watches of the file that @fd is. */
static void refresh(struct batch *b, u32 fd)
{
	struct file *file = file_now(fd);
	struct mattx_watch *watch;

	if (!file)
		return;
	hash_for_each_possible(b->all->by_file, watch, by_file,
			       (unsigned long)file)
		if (watch->file == file)
			tell(b, watch, 0);
}

/* A registration was made in a set. Return: the watch of its number, or 0. */
static u32 after_add(struct batch *b, u32 set_fd, u32 fd, struct list_head *going)
{
	struct mattx_watches *all = b->all;
	struct mattx_watch *set = mattx_watch_at(all, set_fd), *watch;
	u32 last = all->last_id, flags = 0;

	if (!set || !mattx_watch_holds(set))
		return 0;
	watch = mattx_watch_for(all, fd, NULL, going);
	if (!watch)
		return 0;
	if (all->last_id != last)
		flags = MATTX_READY_NEW;
	if (watch->muted) {
		WRITE_ONCE(watch->muted, false);
		/* the host has not heard of what came meanwhile, perhaps of its LOOK */
		flags |= MATTX_READY_LOOKED;
	}
	watch->grants++;
	tell(b, watch, flags);
	return watch->id;
}

/* @fd was registered in a set: if it is a set, that one looks into it from now on. */
static void after_nest(struct mattx_watches *all, u32 fd)
{
	struct mattx_watch *watch = mattx_watch_at(all, fd);

	if (watch && mattx_watch_holds(watch))
		leave_set(watch);
}

/* Files besides that of the first argument whose readiness a call may use up. */
static void refresh_second(struct batch *b, u32 nr, const u64 *args)
{
	switch (nr) {
	case __NR_splice:
	case __NR_copy_file_range:
	case __NR_epoll_ctl:
		refresh(b, args[2]);
		break;
	case __NR_sendfile:
	case __NR_tee:
		refresh(b, args[1]);
		break;
	}
}

u32 mattx_watch_after(struct mattx_thread *thread, const struct mattx_made *made)
{
	struct mattx_watches *all = smp_load_acquire(&thread->gang->watches);
	const u64 *args = made->args;
	struct batch b = { .all = all };
	u32 nr = made->nr, first, last, watch = 0;
	LIST_HEAD(going);

	if (!all)
		return 0;
	mutex_lock(&all->lock);
	if (closes(nr, args, &first, &last))
		after_close(all, first, last, &going);
	if (made->ret >= 0 && is_dup(nr, args))
		after_dup(all, made->ret);
	if (made->ret >= 0 && (nr == __NR_sendmsg || nr == __NR_sendmmsg))
		after_send(all, made);
	if (!made->ret && nr == __NR_epoll_ctl && (s32)args[1] == EPOLL_CTL_ADD) {
		after_nest(all, args[2]);
		watch = after_add(&b, args[0], args[2], &going);
	}
	if (made->fd_first)
		refresh(&b, args[0]);
	refresh_second(&b, nr, args);
	/* or somebody else is just sending what this call has caused */
	if (atomic_read(&all->pending))
		tell_dirty(&b);
	send_batch(&b);
	mutex_unlock(&all->lock);
	mattx_watch_put_all(&going);
	return watch;
}

/* --------------------------------------------------------------- receiving */

static void on_frame(struct mattx_watches *all, u16 type,
		     const struct mattx_frame_watch *frame)
{
	struct mattx_watch *watch;

	mutex_lock(&all->lock);
	watch = xa_load(&all->by_id, le32_to_cpu(frame->watch));
	if (type == MATTX_F_PACE) {
		/* no more than were sent, whatever they say */
		all->paced +=
			min_t(u32, MATTX_READY_PACE, all->sent - all->paced);
		queue(all, &all->work);
	} else if (watch && type == MATTX_F_LOOK) {
		mark(watch, MATTX_READY_LOOKED, 0);
	} else if (watch && watch->grants == le32_to_cpu(frame->grants)) {
		WRITE_ONCE(watch->muted, true);
	}
	mutex_unlock(&all->lock);
}

void mattx_watch_receive(struct mattx_peer *peer, u16 type, u64 id,
			 const void *payload, u32 len)
{
	struct mattx_gang *gang;
	struct mattx_watches *all;

	if (len != sizeof(struct mattx_frame_watch)) {
		pr_warn_ratelimited("node %s sent a malformed frame of type %u\n",
				    mattx_peer_name(peer), type);
		return;
	}
	gang = mattx_gang_find(peer, id);
	if (!gang)
		return;
	all = smp_load_acquire(&gang->watches);
	if (all)
		on_frame(all, type, payload);
	mattx_gang_put(gang);
}

/* -------------------------------------------------------------------- ends */

void mattx_watch_end(struct mattx_gang *gang)
{
	struct mattx_watches *all = smp_load_acquire(&gang->watches);
	struct mattx_watch *watch;
	LIST_HEAD(going);
	unsigned long fd;

	if (!all)
		return;
	mutex_lock(&all->lock);
	all->ended = true;
	xa_for_each(&all->by_fd, fd, watch)
		mattx_watch_drop(all, watch, &going);
	mutex_unlock(&all->lock);
	mattx_watch_put_all(&going);
}

void mattx_watch_end_soon(struct mattx_gang *gang)
{
	struct mattx_watches *all = smp_load_acquire(&gang->watches);

	if (all)
		queue(all, &all->end_work);
}

void mattx_watch_free(struct mattx_gang *gang)
{
	mattx_watch_end(gang);
	kfree(gang->watches);
}

int mattx_watch_init(void)
{
	watch_wq = alloc_workqueue("mattx-watch", WQ_UNBOUND | WQ_HIGHPRI, 0);
	return watch_wq ? 0 : -ENOMEM;
}

/* There are no gangs any more, and each work held one; it may be on its last steps. */
void mattx_watch_exit(void)
{
	destroy_workqueue(watch_wq);
}
