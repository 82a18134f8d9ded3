/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of a node, for peer.c, netlink.c and wormhole/link.c only.
 * Everybody else sees wormhole/link.h.
 */
#ifndef _MATTX_PEER_H
#define _MATTX_PEER_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/mattx.h>

#include "wormhole/link.h"

struct mattx_conn;
struct socket;

/* What the daemon says of a node; shown by /proc/mattx/nodes and used for nothing else. */
struct mattx_facts {
	char address[MATTX_ADDRESS_MAX]; /* "": not told yet */
	u32 cpus;
	u32 load; /* of the last minute, in hundredths */
	u64 free; /* bytes */
};

/**
 * struct mattx_session - what joins our instance and one instance of a node
 *
 * Outlives its connections: packets stay in @queue until the peer has
 * acknowledged them. Everything is under @lock, which is taken in any context.
 */
struct mattx_session {
	spinlock_t lock;
	bool ended;		/* nothing is sent or received any more */
	struct list_head queue; /* struct mattx_packet, oldest first, not acknowledged */
	struct mattx_packet *next; /* first of them not given to this connection yet */
	u64 seq_queued;		   /* of the last packet in the queue */
	u64 seq_sent;		   /* highest ever given to a connection */
	u64 seq_received;	   /* of the last frame taken from the peer */
	u64 ack_told;	   /* last acknowledgement given to a connection */
	u32 unacked_bytes; /* received since then */
	u32 unacked_frames;
	size_t queued_bytes;
	wait_queue_head_t wait;	   /* the sender of the connection waits here */
	wait_queue_head_t drained; /* mattx_link_drain() does */

	/* statistics */
	u64 bytes_in, bytes_out, frames_in, frames_out, frames_resent;
	u64 connections;
};

/**
 * struct mattx_peer - one instance of another node
 *
 *	known ----> linked <----> known		LINK_SET, loss of the connection
 *	  |           |
 *	  +-----------+--> ended		NODE_DEL, another instance, unload
 *
 * The table holds one reference until the peer has ended, each connection one,
 * the reaper one while it is scheduled, gangs and calls one each. An ended
 * peer can be found by nobody; who still holds it gets -ESHUTDOWN from
 * mattx_link_send(). A node that comes back as another instance is another
 * struct mattx_peer.
 */
struct mattx_peer {
	struct kref ref;
	struct rcu_head rcu;
	struct list_head node; /* in the table, under its lock */
	u32 id;
	u64 instance;
	char name[MATTX_NAME_MAX]; /* under the table's lock */
	struct mattx_facts facts;  /* the same */

	struct mutex door; /* serialises connecting, breaking and ending */
	struct mattx_conn *conn;   /* under door and session.lock */
	struct work_struct reaper; /* takes away a broken connection */
	struct mattx_session session;
};

/* peer.c */
struct mattx_local {
	u32 id; /* 0: not told yet */
	u64 instance;
	char name[MATTX_NAME_MAX];
	struct mattx_facts facts;
};

void mattx_local_get(struct mattx_local *local);
int mattx_local_set(u32 id, const char *name);

/**
 * mattx_peer_set() - a node is known, or known under another name or instance
 * Context: process, may sleep. Return: 0 or an errno.
 */
int mattx_peer_set(u32 id, u64 instance, const char *name);

/**
 * mattx_peer_del() - forget a node
 * Context: process, may sleep. Return: 0, -ENOENT, -EBUSY while gangs are shared.
 */
int mattx_peer_del(u32 id);

/**
 * mattx_node_facts_set() - the daemon says how a node is, this one or another
 * Context: any. Return: 0 or -ENOENT.
 */
int mattx_node_facts_set(u32 id, const struct mattx_facts *facts);

struct mattx_peer_info {
	u32 id;
	u64 instance;
	bool up;
	char name[MATTX_NAME_MAX];
	struct mattx_facts facts;
	u64 bytes_in, bytes_out, frames_in, frames_out, frames_resent,
		connections;
	u64 queued_bytes;
};

/**
 * mattx_peer_info() - describe the peer number @index of the table
 * Context: any. Return: false when there are not so many.
 */
bool mattx_peer_info(unsigned int index, struct mattx_peer_info *info);

/* wormhole/link.c */
void mattx_session_init(struct mattx_session *session);

/**
 * mattx_link_set() - a socket becomes the link to a node, in place of the one before
 * @peer: the node
 * @sock: looked up by the caller; its reference is taken over in any case
 * @tls: refuse it unless the kernel encrypts both directions
 * @cause: on error, why in words
 *
 * Context: process, may sleep. Return: 0 or an errno.
 */
int mattx_link_set(struct mattx_peer *peer, struct socket *sock, bool tls,
		   const char **cause);

/**
 * mattx_session_end() - close the connection, drop what is queued
 * Context: process, may sleep. After it nothing is received from the peer.
 */
void mattx_session_end(struct mattx_peer *peer);

void mattx_link_reap(struct work_struct *work);

#endif
