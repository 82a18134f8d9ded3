/* SPDX-License-Identifier: GPL-2.0 */
/* The inside of home's side, for watch.c and take.c. */
#ifndef _MATTX_WATCHES_H
#define _MATTX_WATCHES_H

#include <linux/capability.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <uapi/linux/eventpoll.h>

#include "wormhole/protocol.h"

struct mattx_gang;
struct mattx_hook;
struct mattx_watches;

/**
 * struct mattx_watch - one descriptor number of a deputy that its guest's host looks at
 *
 * Holds the description, not the number: when the number is closed, or is another
 * description's, mattx_watch_after() drops it before the call's REPLY.
 */
struct mattx_watch {
	struct mattx_watches *all;
	u32 id;
	u32 fd;
	struct file *file; /* holds a reference */
	bool is_set; /* an epoll set that the host has taken over: no hooks */
	bool left;   /* a set that the host was told to give back */
	bool muted;  /* nobody listens; written under all->lock */
	u32 grants;  /* REPLYs and ITEMS that named it; under all->lock */
	u32 mask;    /* as told last; under all->lock */
	u32 woken;   /* number of the frame that told a wake last; the same */
	struct mattx_hook *hooks; /* on the file's wait queues */
	bool unhookable;	  /* no memory for one of them */
	struct hlist_node by_file;
	struct list_head node; /* all->dirty, under all->wake_lock; or going */
	u32 key;   /* of the wakes that are not told yet; the same */
	u32 flags; /* MATTX_READY_*, MATTX_WATCH_*; the same */
};

#define MATTX_WATCH_NO_KEY 0x100 /* a wake had none */
#define MATTX_WATCH_DIRTY  0x200 /* in all->dirty */

/**
 * struct mattx_watches - all watches of a deputy
 *
 * @lock is held from looking at a file until what was seen is queued for the host, so
 * that frames tell masks in the order in which they were seen. Under it nothing waits
 * for the network, and no file is released.
 *
 * @wake_lock is taken in wake functions, inside of the lock of any wait queue.
 *
 * Belongs to its gang and is freed with it; each queued work holds the gang.
 */
struct mattx_watches {
	struct mattx_gang *gang;
	struct mutex lock;
	struct xarray by_fd, by_id; /* struct mattx_watch; under lock */
	DECLARE_HASHTABLE(by_file, 10);
	u32 last_id;
	unsigned int sets; /* watches of sets */
	bool ended;	   /* no new ones */
	u32 sent, paced; /* frames READY by the work, and of these taken by the host */

	spinlock_t wake_lock;
	struct list_head dirty; /* woken, or to be looked at again */
	atomic_t pending;	/* of them, not told yet */
	struct work_struct work, end_work;
};

struct mattx_watches *mattx_watches_of(struct mattx_gang *gang);
struct mattx_watch *mattx_watch_at(struct mattx_watches *all, u32 fd);
bool mattx_watch_is_set(struct file *file);

/* Under @all->lock: */
struct mattx_watch *mattx_watch_for(struct mattx_watches *all, u32 fd,
				    struct file *set, struct list_head *going);
void mattx_watch_drop(struct mattx_watches *all, struct mattx_watch *watch,
		      struct list_head *going);
u32 mattx_watch_look(struct mattx_watch *watch);
bool mattx_watch_holds(struct mattx_watch *watch);
bool mattx_watch_unheard(struct mattx_watch *watch, u32 heard);
/* Without it: */
void mattx_watch_put_all(struct list_head *going);

#endif
