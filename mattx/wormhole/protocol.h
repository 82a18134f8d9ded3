/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What travels between two modules.  Every field is little-endian, every
 * length is checked against the frame before use, and nothing is trusted that
 * was not checked.  Documentation/protocol.md describes the exchange.
 *
 * A session joins two module instances and outlives its TCP connections: frames
 * carry a sequence number, are kept until the peer has acknowledged them and are
 * sent again over the next connection, so each frame arrives exactly once and
 * in order unless one of the two instances ends.
 */
#ifndef _MATTX_PROTOCOL_H
#define _MATTX_PROTOCOL_H

#include <linux/types.h>

#define MATTX_PROTO_MAGIC   0x5874614du /* "MatX" */
#define MATTX_PROTO_VERSION 4
#define MATTX_FRAME_MAX \
	(32u << 20) /* bytes of payload; larger transfers are split */

enum mattx_frame_type {
	MATTX_F_HELLO = 1, /* first on every connection: struct mattx_hello, seq 0 */
	MATTX_F_ACK = 2, /* nothing but the header's ack, seq 0 */
	/* about system calls: wormhole/rpc.c and wormhole/serve.c */
	MATTX_F_CALL = 16,  /* host to home: struct mattx_frame_call and data */
	MATTX_F_REPLY = 17, /* home to host: struct mattx_frame_reply and data */
	MATTX_F_CANCEL = 18, /* host to home: the thread of call ID has a signal */
	/* about readiness: ghost/ */
	MATTX_F_SET = 19, /* host to home: struct mattx_frame_set; REPLY answers */
	MATTX_F_ITEMS =
		20, /* home to host: struct mattx_frame_items, before its REPLY */
	MATTX_F_READY = 21, /* home to host: struct mattx_wire_ready[] */
	MATTX_F_GONE = 22,  /* home to host: struct mattx_frame_gone */
	MATTX_F_LOOK = 23, /* host to home: struct mattx_frame_watch: READY answers */
	MATTX_F_MUTE =
		24, /* host to home: struct mattx_frame_watch: nobody listens */
	MATTX_F_PACE =
		25, /* host to home: MATTX_READY_PACE frames READY were taken */
	/* about mapped files: ghost/pages.c and wormhole/serve.c */
	MATTX_F_FETCH =
		26, /* host to home: struct mattx_frame_fetch; REPLY answers */
	/* a guest becomes another program: wormhole/exec.c */
	MATTX_F_EXEC = 27, /* host to home: struct mattx_frame_exec; REPLY answers */
	/* about gangs: gang/message.c */
	MATTX_F_COMMIT =
		32, /* the sender's copy has stopped, yours is the live one */
	MATTX_F_COMMITTED = 33, /* it runs */
	MATTX_F_ABORTED =
		34, /* it was not armed: keep yours; struct mattx_frame_error */
	MATTX_F_SIGNAL = 35, /* home to host: struct mattx_frame_signal */
	MATTX_F_KILL = 36,   /* home to host: the deputy is dead or dying */
	MATTX_F_THREAD_EXIT = 37, /* host to home: struct mattx_frame_exit */
	MATTX_F_GANG_EXIT = 38,	  /* host to home: struct mattx_frame_exit */
	MATTX_F_STOPPED =
		39, /* host to home: group stop; struct mattx_frame_exit, code = signal */
	MATTX_F_CONTINUED = 40, /* host to home */
	MATTX_F_RECALL = 41, /* home to host: somebody asks for its shared memory */
	/* host to home, of a guest that has ended */
	MATTX_F_STORE =
		42, /* struct mattx_frame_store and contents, or none: zeroes */
	MATTX_F_STORED = 43, /* struct mattx_frame_stored; in place of GANG_EXIT */
	MATTX_F_BORN =
		44, /* host to home: the guest that your child is for is there */
};

struct mattx_frame {
	__le32 magic;
	__le16 version;
	__le16 type;
	__le32 len; /* bytes of payload that follow */
	__le32 pad;
	__le64 seq;  /* 1, 2, 3... of this direction; 0: HELLO and ACK */
	__le64 ack;  /* every frame up to this one has been received */
	__le64 gang; /* 0: none */
};

struct mattx_hello {
	__le64 from_instance;  /* of the sender's module */
	__le64 to_instance;    /* of the receiver's, as the sender knows it */
	__le32 from_id, to_id; /* node ids */
	__le16 version_min, version_max;
	__le32 pad;
};

/*
 * A system call of a guest's thread, to be made by the deputy's. An argument
 * that the table calls a pointer has no meaning of its own on the wire; instead,
 * for each of them in order, its shape follows, 8-byte aligned: wormhole/shape.h.
 */
struct mattx_frame_call {
	__le64 call; /* the host's name for it, not used twice in a session */
	__le32 tid;
	__le32 nr;
	__le64 args[6];
};

/*
 * An execve() or execveat(). Followed by @infos signals that are pending, as siginfo_t of
 * user space, and the strings: the path, @argc and @envc of them, each with its NUL.
 */
struct mattx_frame_exec {
	__le64 call;
	__le32 tid;
	__le32 nr;
	__le32 dirfd, flags; /* as for execveat() */
	__le32 argc, envc;
	__le32 infos;
	__le32 nice;
	__le64 seen;	/* signals that have come from home so far */
	__le64 blocked; /* signal mask */
	__le64 slack;	/* of its timers, ns */
	__le64 usage[7];
};

enum {
	MATTX_REPLY_REGULAR = 1, /* its descriptor is one of a regular file */
	/* ret says why no system call was made; EBUSY: for memory that is away */
	MATTX_REPLY_NOT_MADE = 2,
	MATTX_REPLY_NOT_BEGUN = 4, /* interrupted before: to be made again */
};

/* Followed by what the call has written, if ret says that it has succeeded. */
struct mattx_frame_reply {
	__le64 call;
	__le64 ret; /* as the kernel's function returned it: -ERESTARTSYS too */
	__le32 flags;
	__le32 watch; /* epoll_ctl: that of the descriptor, 0: there is none */
};

struct mattx_frame_cancel {
	__le64 call;
	__le32 tid;
	__le32 pad;
};

/*
 * A watch is home's view of one descriptor number of the deputy, from when a set that
 * the host has taken over begins to need it until the number is closed. Home numbers
 * them: 1, 2, 3... of a gang, none twice. The set itself has one too.
 */

enum mattx_set_op {
	MATTX_SET_TAKE = 1, /* the host waits by itself: ITEMS */
	MATTX_SET_SYNC = 2, /* this is what has become of edges and one-shots there */
	MATTX_SET_GIVE = 3, /* the same, and the deputy waits again */
};

enum mattx_item_state {
	MATTX_ITEM_QUIET = 0,
	MATTX_ITEM_PENDING = 1, /* an edge, or a one-shot's event, is to be told */
	MATTX_ITEM_FIRED = 2, /* a one-shot that was told */
};

/* A registration of an epoll set. */
struct mattx_wire_item {
	__le32 fd;
	__le32 events; /* EPOLL* */
	__le64 data;
	__le32 watch, mask; /* of fd; in ITEMS only */
	__le32 state;	    /* enum mattx_item_state; of a level: QUIET */
	__le32 pad;
};

struct mattx_frame_set {
	__le64 call;
	__le32 tid; /* whose deputy does it */
	__le32 op;  /* enum mattx_set_op */
	__le32 fd;
	__le32 watch; /* of the set; TAKE: 0 */
	__le32 heard; /* frames READY that the host has heard so far */
	__le32 items; /* that the set has there */
	__le32 n;     /* struct mattx_wire_item follow: edges and one-shots */
	__le32 pad;
};

struct mattx_frame_items {
	__le32 fd;
	__le32 watch; /* of the set */
	__le32 n;     /* struct mattx_wire_item follow */
	__le32 pad;
};

enum {
	MATTX_READY_NEW = 1,  /* a watch that the host does not know yet */
	MATTX_READY_WAKE = 2, /* waiters were woken, with this key (0: none) */
	MATTX_READY_LOOKED = 4, /* answers LOOK */
};

struct mattx_wire_ready {
	__le32 watch;
	__le32 flags;
	__le32 mask, key; /* EPOLL* */
};

/* Of masks and keys: EPOLLIN to EPOLLMSG, EPOLLRDHUP. */
#define MATTX_POLL_BITS 0x27ffu
/* Of registrations: EPOLLEXCLUSIVE to EPOLLET, which are no events. */
#define MATTX_EPOLL_PRIVATE 0xf0000000u
#define MATTX_READY_MAX	    256 /* struct mattx_wire_ready in one frame */
#define MATTX_READY_PACE    64	/* frames */
#define MATTX_READY_WINDOW \
	256 /* frames that were not taken, at most: then wakes gather */

#define MATTX_GONE_LIVES 1 /* the number is closed, the description is not */

struct mattx_frame_gone {
	__le32 watch;
	__le32 flags; /* MATTX_GONE_* */
};

struct mattx_frame_watch {
	__le32 watch;
	__le32 grants; /* MUTE: REPLYs and ITEMS that have named it so far */
};

/*
 * Memory of the deputy. The REPLY's ret says how many bytes of it follow: whole pages,
 * fewer than asked for from one on that cannot be had.
 */
struct mattx_frame_fetch {
	__le64 call;
	__le32 tid; /* whose deputy reads it */
	__le32 len; /* bytes, MATTX_FETCH_MAX at most; as addr, of whole pages */
	__le64 addr;
};

#define MATTX_FETCH_MAX (256u << 10)

struct mattx_frame_error {
	__le32 error; /* positive errno */
	__le32 pad;
};

#define MATTX_SIGNAL_ORPHAN \
	1 /* its process group is orphaned: the terminal's stops are not for it */

struct mattx_frame_signal {
	__le32 tid;   /* 0: to the process */
	__le32 len;   /* 128: siginfo_t of x86-64 as the process reads it */
	__le32 flags; /* MATTX_SIGNAL_* */
	__le32 pad;
	__u8 info[128];
};

struct mattx_frame_exit {
	__le32 tid;
	__le32 code; /* wait status as the kernel keeps it: code << 8 | signal */
	__le64 usage[7]; /* as struct mattx_usage: since it began, not since it left */
};

/* What shared memory, of a file that is kept, has in [addr, addr + len). */
struct mattx_frame_store {
	__le64 addr, len;
};

struct mattx_frame_stored {
	struct mattx_frame_exit exit;
	__le32 tell; /* 1: home does not know yet that it has ended */
	__le32 pad;
};

#define MATTX_STORE_MAX (64u << 10) /* bytes of contents in one STORE */

#endif
