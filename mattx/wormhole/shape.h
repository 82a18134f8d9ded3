/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_SHAPE_H
#define _MATTX_SHAPE_H

#include <linux/align.h>
#include <linux/completion.h>
#include <linux/overflow.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "wormhole/table.h"

struct mattx_packet;
struct mattx_peer;
struct mattx_thread;

/* Limits of one call on the wire. */
#define MATTX_IO_MAX	    (1u << 20) /* read and write go on with another call */
#define MATTX_DATA_MAX	    (16u << 20) /* of one buffer otherwise: more goes home */
#define MATTX_STR_MAX	    4096u	/* PATH_MAX, with the NUL */
#define MATTX_NAME_ROOM_MAX (64u << 10) /* a socket address, a socket option */
#define MATTX_CONTROL_MAX   (1u << 20)
#define MATTX_VEC_MAX	    1024u	/* UIO_MAXIOV */
#define MATTX_SCRATCH_MAX   (64u << 20) /* all buffers of one call */

/* How a shape starts on the wire. */
enum mattx_pointer {
	MATTX_PTR_NULL,
	MATTX_PTR_BAD, /* an address that faults: the kernel at home decides what that means */
	MATTX_PTR_GOOD,
};

/*
 * STR, IN, IN_N, INOUT, INOUT_N, BITS, ROOM_IN: len bytes follow.
 * OUT, OUT_N, OUT_RET, ROOM: len bytes of room.
 * IOV_*: len elements: their lengths (le32) follow, perhaps with MATTX_LEN_BAD: memory
 *	that faults, for which no bytes come; for IOV_IN the bytes of the others.
 * MSG_*, MMSG_*: len messages, for each a struct mattx_wire_msg.
 */
struct mattx_wire_shape {
	__le32 pointer; /* enum mattx_pointer */
	__le32 len;
};

#define MATTX_LEN_BAD 0x80000000u

/*
 * Followed by name and control data (to be sent), the lengths of the vector, and the
 * bytes of the vector (to be sent).
 */
struct mattx_wire_msg {
	struct mattx_wire_shape name, control, vector;
	__le32 flags;
	__le32 pad;
};

/*
 * What was written, in the order of the arguments: a length and so many bytes.
 * A received message: this, name, control data, bytes.
 */
struct mattx_wire_out {
	__le32 len;
	__le32 pad;
};

struct mattx_wire_msg_out {
	__le32 name_len; /* as the kernel has set it: perhaps more than there was room */
	__le32 control_len;
	__le32 flags;
	__le32 len;	   /* of mmsghdr, or bytes received */
	__le32 name_bytes; /* how many follow */
	__le32 control_bytes;
	__le32 data_bytes;
	__le32 pad;
};

static inline u64 mattx_arg_n(const struct mattx_arg *arg, const u64 *args)
{
	u64 n = args[arg->n & MATTX_N_MASK];

	return arg->n & MATTX_N32 ? (u32)n : n;
}

/* The length that an argument asks for. Return: false when there is no such length. */
static inline bool mattx_arg_len(const struct mattx_arg *arg, const u64 *args,
				 u64 *len)
{
	u64 n = mattx_arg_n(arg, args);

	if (arg->shape == MATTX_BITS) {
		*len = ALIGN(n, 64) / 8;
		return (u32)n <= MATTX_DATA_MAX;
	}
	return !check_mul_overflow(n, (u64)arg->size, len);
}

/* ------------------------------------------- the guest's side: marshal.c */

/* A vector of the guest's, after skipping and limiting. */
struct mattx_vec {
	struct iovec *iov; /* kvmalloc'ed */
	u32 count;
	size_t total;
	u32 bad; /* bytes of bad memory that come next; then no more */
	enum mattx_pointer pointer;
};

struct mattx_msg {
	void __user *header;
	void __user *name, *control;
	u32 name_len, control_len;
	enum mattx_pointer name_ptr, control_ptr;
	struct mattx_vec vec;
	u32 flags;
};

struct mattx_arg_state {
	enum mattx_pointer pointer;
	u32 len; /* bytes, or messages */
	u32 bad; /* bytes of bad memory that come next */
	void __user *addr;
	struct mattx_vec vec;
	struct mattx_msg *msgs; /* kvmalloc'ed */
};

/**
 * struct mattx_request - a system call of a guest's thread on its way through the wormhole
 *
 * On the thread's stack; in rpc.c's table of pending calls while the reply is awaited.
 */
struct mattx_request {
	struct mattx_thread *thread;
	const struct mattx_call *call;
	u32 nr;
	u64 args[6];
	size_t skip;  /* bytes of a vector that were dealt with already */
	size_t limit; /* bytes of a vector or buffer to be taken, 0: no limit */
	bool limited; /* more is left than was taken */
	bool firm;    /* signals do not cancel it */
	const void *kernel[6]; /* IN, INOUT: the contents are these, not the guest's */
	struct mattx_arg_state state[6];

	u64 id;
	u64 gang;
	struct mattx_peer *peer;
	struct completion ended;
	bool cancelled; /* a signal has come: CANCEL was sent */
	bool lost;	/* the session has ended */
	void *reply; /* kvmalloc'ed: struct mattx_frame_reply and what follows */
	size_t reply_len;
	u32 reply_flags;
	u32 watch; /* that home has named in the REPLY */
};

/**
 * mattx_marshal() - make the CALL frame of a request
 *
 * Reads the guest's memory. A pointer that is bad is sent as such, so that the
 * kernel at home tells the error; a buffer that is bad in its middle is shortened
 * where a short result is legal.
 *
 * Context: current is the guest's thread; sleeps. Return: 0; -ENOMEM; -E2BIG when
 * it is too much for the wire: then the call is made at home, by going there.
 */
int mattx_marshal(struct mattx_request *rq, struct mattx_packet **packet,
		  size_t *len);

/**
 * mattx_unmarshal() - write what the call has returned into the guest's memory
 * Context: as mattx_marshal(). Return: @ret, -EFAULT, or -EBADMSG for a reply that
 * does not fit the request.
 */
long mattx_unmarshal(struct mattx_request *rq, long ret);

void mattx_request_release(struct mattx_request *rq);

/* ----------------------------------------- the deputy's side: scratch.c */

/**
 * struct mattx_layout - where the buffers of a call are in the deputy's scratch memory
 *
 *	base   + data: what came with the call, as it came
 *	meta   + structures that have pointers: struct iovec, msghdr
 *	out    + room to be written
 */
struct mattx_layout {
	const struct mattx_call *call;
	const u64 *args; /* as they came */
	const u8 *data;
	size_t len;
	size_t shift;	  /* of base into the scratch memory, for alignment */
	size_t meta, out; /* offsets from base */
	size_t meta_len;
	size_t total; /* bytes of scratch memory */
	u64 base;     /* a user address */
};

/**
 * mattx_layout_check() - check the shapes of a call and measure
 * Context: any that may sleep. Return: 0 or -EBADMSG.
 */
int mattx_layout_check(struct mattx_layout *layout);

/**
 * mattx_layout_build() - fill the scratch memory at layout->base
 * @args: the call's arguments, out
 * Context: current is the deputy's thread; sleeps. Return: 0, -ENOMEM or -EFAULT.
 */
int mattx_layout_build(struct mattx_layout *layout, unsigned long *args);

/**
 * mattx_layout_collect() - make the REPLY frame of a call that returned @ret >= 0
 * @head: bytes at the start of the payload that are left for the caller
 * Context: current is the deputy's thread; sleeps.
 * Return: a packet or an ERR_PTR: -ENOMEM, -EFAULT.
 */
struct mattx_packet *mattx_layout_collect(struct mattx_layout *layout, long ret,
					  size_t head, size_t *len);

#endif
