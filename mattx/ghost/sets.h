/* SPDX-License-Identifier: GPL-2.0 */
/* The inside of the host's side, for ghost.c and set.c. */
#ifndef _MATTX_SETS_H
#define _MATTX_SETS_H

#include <linux/capability.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <uapi/linux/eventpoll.h>

#include "wormhole/protocol.h"

struct mattx_gang;

/**
 * struct mattx_ghost - what home has told of one of its watches
 *
 * Lives until home says GONE and no registration needs it. Everything is under
 * sets->lock.
 */
struct mattx_ghost {
	struct rb_node node;
	u32 id; /* of the watch */
	u32 mask;
	u32 grants; /* how often home has named it for a registration */
	u32 users;  /* registrations, and such that are about to be made */
	bool gone, lives; /* its number is closed; its description is not */
	bool looking;	  /* LOOK was sent */
	u32 told; /* times in a row that a level was told without news from home */
	u32 patience; /* so many before LOOK */
	struct list_head items;
};

/* A registration. Everything is under sets->lock. */
struct mattx_item {
	struct rb_node node; /* in set->items, by fd */
	u32 fd;
	u32 events;
	u64 data;
	bool fired; /* a one-shot that was told here */
	bool held;  /* in set->held */
	struct mattx_set *set;
	struct mattx_ghost *ghost;
	struct list_head of_ghost;
	struct list_head ready; /* set->ready, set->held, or a harvester's list */
};

enum mattx_set_state {
	MATTX_SET_IS_REMOTE, /* the deputy waits */
	MATTX_SET_IS_BUSY,   /* a thread takes it, or gives it back */
	MATTX_SET_IS_LOCAL,
	MATTX_SET_IS_CLOSED, /* who waits still waits; found by nobody */
};

/**
 * struct mattx_set - an epoll set of the guest
 *
 *	REMOTE <--> BUSY <--> LOCAL --> CLOSED
 *
 * One thread at a time makes it BUSY and ends that; the receiver closes it. The table
 * holds a reference, and so does each thread that is in a call with it.
 */
struct mattx_set {
	refcount_t ref;
	struct rb_node node; /* in sets->by_fd */
	u32 fd;
	u32 watch; /* home's number of it while it is LOCAL */
	enum mattx_set_state state;
	bool leave;  /* LOCAL: to be given back */
	bool shun;   /* never to be taken again */
	bool filled; /* BUSY: ITEMS has come, was good, and still is */
	u32 waits;   /* of the deputy since it was refused */
	u32 refused; /* how often */
	struct rb_root items;
	struct list_head ready; /* struct mattx_item: in the order in which they woke */
	struct list_head held;	/* ready once, LOOK is on its way */
	wait_queue_head_t wait; /* for ready; exclusive */
	struct mutex harvest; /* one thread takes from ready at a time; user memory is written */
};

/* An epoll_ctl() under way. */
struct mattx_turn {
	struct list_head node;
	u32 set, fd;
};

/**
 * struct mattx_sets - all sets and ghosts of a guest
 *
 * @lock protects all of them; nothing sleeps under it. Belongs to its gang.
 */
struct mattx_sets {
	struct mattx_gang *gang;
	spinlock_t lock;
	struct rb_root by_fd;	/* struct mattx_set */
	struct rb_root by_id;	/* struct mattx_ghost */
	struct list_head turns; /* struct mattx_turn */
	wait_queue_head_t turn; /* a turn, or BUSY, has ended */
	unsigned int leaving;	/* sets that are to be given back */
	unsigned int local;	/* sets that are LOCAL */
	unsigned int ghosts;	/* in by_id */
	u32 heard;		/* frames READY */
};

struct mattx_sets *mattx_sets_of(struct mattx_gang *gang);
/* Under sets->lock: */
void mattx_set_put(struct mattx_sets *sets, struct mattx_set *set);
struct mattx_ghost *mattx_ghost_find(struct mattx_sets *sets, u32 id);
void mattx_ghost_put(struct mattx_sets *sets, struct mattx_ghost *ghost);
void mattx_ghost_told(struct mattx_sets *sets, struct mattx_ghost *ghost);
struct mattx_item *mattx_item_find(struct mattx_set *set, u32 fd);
void mattx_item_add(struct mattx_sets *sets, struct mattx_set *set,
		    struct mattx_item *item, struct mattx_ghost *ghost,
		    bool pending);
void mattx_item_drop(struct mattx_sets *sets, struct mattx_item *item);
void mattx_item_wake(struct mattx_item *item);
void mattx_set_leave(struct mattx_sets *sets, struct mattx_set *set);

#endif
