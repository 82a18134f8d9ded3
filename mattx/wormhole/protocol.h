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
#define MATTX_PROTO_VERSION 1
#define MATTX_FRAME_MAX \
	(32u << 20) /* bytes of payload; larger transfers are split */

enum mattx_frame_type {
	MATTX_F_HELLO = 1, /* first on every connection: struct mattx_hello, seq 0 */
	MATTX_F_ACK = 2, /* nothing but the header's ack, seq 0 */
	/* about system calls: wormhole/rpc.c and wormhole/serve.c */
	MATTX_F_CALL = 16,  /* host to home: struct mattx_frame_call and data */
	MATTX_F_REPLY = 17, /* home to host: struct mattx_frame_reply and data */
	MATTX_F_CANCEL = 18, /* host to home: the thread of call ID has a signal */
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

enum {
	MATTX_REPLY_REGULAR = 1, /* argument 0 is a descriptor of a regular file */
	/* ret says why no system call was made; EBUSY: for memory that is away */
	MATTX_REPLY_NOT_MADE = 2,
	MATTX_REPLY_NOT_BEGUN = 4, /* interrupted before: to be made again */
};

/* Followed by what the call has written, if ret says that it has succeeded. */
struct mattx_frame_reply {
	__le64 call;
	__le64 ret; /* as the kernel's function returned it: -ERESTARTSYS too */
	__le32 flags;
	__le32 pad;
};

struct mattx_frame_cancel {
	__le64 call;
	__le32 tid;
	__le32 pad;
};

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
