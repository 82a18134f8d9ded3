// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's side of a call through the wormhole: from its memory into a CALL
 * frame, and from the REPLY into its memory.
 *
 * Each argument is walked three times: prepared (what its length is, which
 * vectors there are; user memory that decides about lengths is read here and not
 * again), filled into the packet, and finished. wormhole/scratch.c is the other end.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>

#include "gang/gang.h"
#include "wormhole/packet.h"
#include "wormhole/shape.h"

static void __user *user_ptr(u64 addr)
{
	return (void __user *)(unsigned long)addr;
}

/* ------------------------------------------------------------ preparing */

/*
 * writable_bytes() - how many bytes from @addr on can be written
 *
 * Looks at the mappings only: nothing is faulted in for a read that returns little.
 */
static size_t writable_bytes(const void __user *addr, size_t len)
{
	unsigned long start = (unsigned long)addr, at = start, end;
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;

	if (!access_ok(addr, len) || check_add_overflow(start, len, &end))
		return 0;
	mmap_read_lock(mm);
	while (at < end) {
		vma = find_vma(mm, at);
		if (!vma || !(vma->vm_flags & VM_WRITE))
			break;
		/* a stack grows when it is written to */
		if (vma->vm_start > at &&
		    (!(vma->vm_flags & VM_GROWSDOWN) ||
		     vma->vm_end - at > rlimit(RLIMIT_STACK)))
			break;
		at = min(vma->vm_end, end);
	}
	mmap_read_unlock(mm);
	return at - start;
}

static void prepare_vec(struct mattx_vec *vec, size_t skip, size_t limit,
			bool *limited)
{
	struct iovec *out = vec->iov;
	size_t total = 0, len;
	u32 i;

	for (i = 0; i < vec->count; i++) {
		struct iovec iov = vec->iov[i];

		if (skip >= iov.iov_len) {
			skip -= iov.iov_len;
			continue;
		}
		iov.iov_base += skip;
		iov.iov_len -= skip;
		skip = 0;
		len = min(iov.iov_len, limit - total);
		if (len < iov.iov_len)
			*limited = true;
		iov.iov_len = len;
		total += len;
		if (len)
			*out++ = iov;
		if (total == limit && i + 1 < vec->count) {
			*limited = true;
			break;
		}
	}
	vec->count = out - vec->iov;
	vec->total = total;
}

/*
 * load_vec() - take over a vector of the guest's
 * Return: 0, -ENOMEM, -EINVAL for a length that the kernel refuses, -E2BIG.
 */
static int load_vec(struct mattx_request *rq, struct mattx_vec *vec,
		    const void __user *addr, u64 count)
{
	size_t limit = rq->limit ?: MATTX_DATA_MAX;
	bool limited = false;
	u32 i;

	vec->pointer = MATTX_PTR_GOOD;
	if (!count)
		return 0;
	vec->pointer = MATTX_PTR_BAD;
	if (count > MATTX_VEC_MAX)
		return 0; /* the kernel looks at the count before the pointer */
	vec->iov = kvmalloc_array(count, sizeof(*vec->iov), GFP_KERNEL);
	if (!vec->iov)
		return -ENOMEM;
	if (copy_from_user(vec->iov, addr, count * sizeof(*vec->iov)))
		return 0;
	for (i = 0; i < count; i++) {
		if ((ssize_t)vec->iov[i].iov_len < 0)
			return -EINVAL;
	}
	vec->pointer = MATTX_PTR_GOOD;
	vec->count = count;
	prepare_vec(vec, rq->skip, limit, &limited);
	rq->limited = limited;
	return limited && !rq->limit ? -E2BIG : 0;
}

/* A vector that is to be read into ends where its memory cannot be written. */
static void clip_vec(struct mattx_request *rq, struct mattx_vec *vec)
{
	size_t good, total = 0;
	u32 i;

	for (i = 0; i < vec->count; i++) {
		good = writable_bytes(vec->iov[i].iov_base, vec->iov[i].iov_len);
		total += good;
		if (good == vec->iov[i].iov_len)
			continue;
		vec->bad = vec->iov[i].iov_len - good;
		vec->iov[i].iov_len = good;
		vec->count = i + 1;
		rq->limited = false;
		break;
	}
	vec->total = total;
}

static int prepare_msg(struct mattx_request *rq, struct mattx_msg *msg, bool out)
{
	struct user_msghdr hdr;
	int err;

	if (copy_from_user(&hdr, msg->header, sizeof(hdr)))
		return -EFAULT;
	msg->flags = hdr.msg_flags;
	msg->name = hdr.msg_name;
	msg->name_len = hdr.msg_namelen;
	if (msg->name && (s32)msg->name_len < 0)
		return -EINVAL;
	msg->name_len = min_t(u32, msg->name_len,
			      sizeof(struct __kernel_sockaddr_storage));
	msg->name_ptr = msg->name ? MATTX_PTR_GOOD : MATTX_PTR_NULL;
	msg->control = hdr.msg_control;
	if (hdr.msg_controllen > MATTX_CONTROL_MAX)
		return out ? -E2BIG : -ENOBUFS;
	msg->control_len = hdr.msg_controllen;
	msg->control_ptr = msg->control ? MATTX_PTR_GOOD : MATTX_PTR_NULL;
	if (!msg->control)
		msg->control_len = 0;
	if (hdr.msg_iovlen > MATTX_VEC_MAX)
		return -EMSGSIZE;
	err = load_vec(rq, &msg->vec, hdr.msg_iov, hdr.msg_iovlen);
	if (err || !out)
		return err;
	clip_vec(rq, &msg->vec);
	if (writable_bytes(msg->control, msg->control_len) < msg->control_len)
		msg->control_ptr = MATTX_PTR_BAD;
	if (msg->name && writable_bytes(msg->name, msg->name_len) < msg->name_len)
		msg->name_ptr = MATTX_PTR_BAD;
	return 0;
}

static int prepare_msgs(struct mattx_request *rq, struct mattx_arg_state *st,
			const struct mattx_arg *arg)
{
	bool multi = arg->shape == MATTX_MMSG_IN || arg->shape == MATTX_MMSG_OUT;
	bool out = arg->shape == MATTX_MSG_OUT || arg->shape == MATTX_MMSG_OUT;
	size_t step = multi ? sizeof(struct mmsghdr) : sizeof(struct user_msghdr);
	u32 i, n = 1;
	int err;

	if (multi)
		n = min_t(u64, mattx_arg_n(arg, rq->args), MATTX_VEC_MAX);
	st->msgs = kvcalloc(max(n, 1u), sizeof(*st->msgs), GFP_KERNEL);
	if (!st->msgs)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		st->msgs[i].header = st->addr + i * step;
		st->len = i + 1;
		err = prepare_msg(rq, &st->msgs[i], out);
		if (err && i && err != -ENOMEM && err != -E2BIG) {
			/* as the kernel: what comes before is done, the error is for the next call */
			kvfree(st->msgs[i].vec.iov);
			st->len = i;
			break;
		}
		if (err)
			return err;
	}
	if (multi)
		rq->args[arg->n & MATTX_N_MASK] = st->len;
	return 0;
}

/* A buffer whose length another argument points to. */
static int prepare_room(struct mattx_request *rq, struct mattx_arg_state *st,
			const struct mattx_arg *arg)
{
	s32 len;

	if (get_user(len,
		     (s32 __user *)user_ptr(rq->args[arg->n & MATTX_N_MASK]))) {
		st->pointer = MATTX_PTR_BAD;
		return 0;
	}
	if (len > (s32)MATTX_NAME_ROOM_MAX) {
		if (arg->shape == MATTX_ROOM_IN)
			return -E2BIG;
		len = MATTX_NAME_ROOM_MAX;
	}
	st->len = max(len, 0);
	if (writable_bytes(st->addr, st->len) < st->len) {
		st->pointer = MATTX_PTR_BAD;
		st->len = 0;
	}
	return 0;
}

static bool shape_writes(u8 shape)
{
	switch (shape) {
	case MATTX_OUT:
	case MATTX_OUT_N:
	case MATTX_OUT_RET:
	case MATTX_INOUT:
	case MATTX_INOUT_N:
	case MATTX_BITS:
		return true;
	default:
		return false;
	}
}

/* Buffers with a length that is a constant or an argument's. */
static int prepare_buffer(struct mattx_request *rq, struct mattx_arg_state *st,
			  const struct mattx_arg *arg)
{
	bool fixed = arg->shape == MATTX_IN || arg->shape == MATTX_OUT ||
		     arg->shape == MATTX_INOUT;
	bool shorten = arg->shape == MATTX_OUT_RET;
	u64 len = arg->size, max = MATTX_DATA_MAX;
	size_t good;

	if (!fixed && !mattx_arg_len(arg, rq->args, &len)) {
		st->pointer = MATTX_PTR_BAD;
		return 0;
	}
	if (rq->limit && rq->call->rw) {
		max = rq->limit;
		shorten = true;
	}
	if (len > max) {
		if (!fixed && arg->n & MATTX_N32 &&
		    (s32)mattx_arg_n(arg, rq->args) < 0) {
			st->pointer =
				MATTX_PTR_BAD; /* the kernel does not get to it */
			return 0;
		}
		if (!shorten)
			return -E2BIG;
		rq->limited = true;
		rq->args[arg->n & MATTX_N_MASK] = max / arg->size;
		len = rq->args[arg->n & MATTX_N_MASK] * arg->size;
	}
	st->len = len;
	if (!shape_writes(arg->shape))
		return 0;
	good = writable_bytes(st->addr, len);
	if (good == len)
		return 0;
	if (arg->shape == MATTX_OUT_RET)
		good -= good % arg->size;
	if (!good || arg->shape != MATTX_OUT_RET) {
		st->pointer = MATTX_PTR_BAD;
		st->len = 0;
		return 0;
	}
	rq->limited = false;
	st->len = good;
	if (rq->call->rw)
		st->bad = len - good;
	else
		rq->args[arg->n & MATTX_N_MASK] = good / arg->size;
	return 0;
}

static int prepare_arg(struct mattx_request *rq, int i)
{
	const struct mattx_arg *arg = &rq->call->arg[i];
	struct mattx_arg_state *st = &rq->state[i];
	int err;

	if (arg->shape == MATTX_VALUE)
		return 0;
	if (rq->kernel[i]) {
		st->pointer = MATTX_PTR_GOOD;
		st->len = arg->size;
		return 0;
	}
	st->addr = user_ptr(rq->args[i]);
	st->pointer = st->addr ? MATTX_PTR_GOOD : MATTX_PTR_NULL;
	switch (arg->shape) {
	case MATTX_IOV_IN:
	case MATTX_IOV_OUT:
		err = load_vec(rq, &st->vec, st->addr,
			       mattx_arg_n(arg, rq->args));
		if (!err && arg->shape == MATTX_IOV_OUT)
			clip_vec(rq, &st->vec);
		st->pointer = st->vec.pointer;
		return err;
	case MATTX_MSG_IN:
	case MATTX_MSG_OUT:
	case MATTX_MMSG_IN:
	case MATTX_MMSG_OUT:
		err = prepare_msgs(rq, st, arg);
		if (err == -EFAULT) {
			st->pointer = MATTX_PTR_BAD;
			st->len = 0;
			err = 0;
		}
		return err;
	}
	if (st->pointer == MATTX_PTR_NULL)
		return 0;
	switch (arg->shape) {
	case MATTX_STR:
		st->len = MATTX_STR_MAX;
		return 0;
	case MATTX_ROOM:
	case MATTX_ROOM_IN:
		return prepare_room(rq, st, arg);
	default:
		return prepare_buffer(rq, st, arg);
	}
}

/* --------------------------------------------------------------- filling */

/* Bytes that an argument takes in the frame at most. */
static size_t vec_size(const struct mattx_vec *vec, bool in)
{
	/* one more, for what turns out to be bad */
	return ALIGN((vec->count + 1) * sizeof(__le32), 8) +
	       (in ? ALIGN(vec->total, 8) : 0);
}

static size_t arg_size(const struct mattx_request *rq, int i)
{
	const struct mattx_arg_state *st = &rq->state[i];
	size_t size = sizeof(struct mattx_wire_shape);
	bool in = false;
	u32 k;

	switch (rq->call->arg[i].shape) {
	case MATTX_VALUE:
		return 0;
	case MATTX_STR:
	case MATTX_IN:
	case MATTX_IN_N:
	case MATTX_INOUT:
	case MATTX_INOUT_N:
	case MATTX_BITS:
	case MATTX_ROOM_IN:
		/* and two lengths, if it becomes a vector */
		return size + ALIGN((size_t)st->len, 8) + (rq->call->rw ? 8 : 0);
	case MATTX_OUT_RET:
		return size + (st->bad ? 8 : 0);
	case MATTX_IOV_IN:
		return size + vec_size(&st->vec, true);
	case MATTX_IOV_OUT:
		return size + vec_size(&st->vec, false);
	case MATTX_MSG_IN:
	case MATTX_MMSG_IN:
		in = true;
		fallthrough;
	case MATTX_MSG_OUT:
	case MATTX_MMSG_OUT:
		for (k = 0; k < st->len; k++) {
			struct mattx_msg *msg = &st->msgs[k];

			size += sizeof(struct mattx_wire_msg) +
				vec_size(&msg->vec, in);
			if (in)
				size += ALIGN((size_t)msg->name_len, 8) +
					ALIGN((size_t)msg->control_len, 8);
		}
		return size;
	default:
		return size;
	}
}

/* The place in the packet; there is room for everything that was measured. */
struct filler {
	u8 *at;
};

static void *reserve(struct filler *f, size_t len)
{
	u8 *p = f->at;
	size_t padded = ALIGN(len, 8);

	memset(p + len, 0, padded - len);
	f->at += padded;
	return p;
}

static void put_shape(struct mattx_wire_shape *shape,
		      enum mattx_pointer pointer, u32 len)
{
	shape->pointer = cpu_to_le32(pointer);
	shape->len = cpu_to_le32(pointer == MATTX_PTR_GOOD ? len : 0);
}

static void fill_str(struct filler *f, struct mattx_arg_state *st)
{
	struct mattx_wire_shape *shape = reserve(f, sizeof(*shape));
	long len;

	len = strncpy_from_user((char *)f->at, st->addr, MATTX_STR_MAX);
	if (len < 0) {
		put_shape(shape, MATTX_PTR_BAD, 0);
		return;
	}
	/* one that is too long arrives without its NUL, and is too long there */
	len = min_t(long, len + 1, MATTX_STR_MAX);
	put_shape(shape, MATTX_PTR_GOOD, len);
	reserve(f, len);
}

/*
 * The int that tells how long a buffer is must not promise more room than the buffer
 * has at home; the guest may have changed it meanwhile.
 */
static void clamp_room(struct mattx_request *rq, int i, s32 *value)
{
	const struct mattx_arg *arg;
	int k;

	for (k = 0; k < 6; k++) {
		arg = &rq->call->arg[k];
		if ((arg->shape == MATTX_ROOM || arg->shape == MATTX_ROOM_IN) &&
		    (arg->n & MATTX_N_MASK) == i &&
		    rq->state[k].pointer == MATTX_PTR_GOOD)
			*value = min_t(s32, *value, rq->state[k].len);
	}
}

/* The same call with a vector: memory that is good at first and bad then. */
static u32 vector_nr(u32 nr)
{
	switch (nr) {
	case __NR_read:
		return __NR_readv;
	case __NR_write:
		return __NR_writev;
	case __NR_pread64:
		return __NR_preadv;
	default:
		return __NR_pwritev;
	}
}

static void fill_two(struct mattx_request *rq, struct filler *f, int i,
		     u32 good, u32 bad)
{
	struct mattx_wire_shape *shape = reserve(f, sizeof(*shape));
	__le32 *lens = reserve(f, 2 * sizeof(*lens));

	put_shape(shape, MATTX_PTR_GOOD, 2);
	lens[0] = cpu_to_le32(good);
	lens[1] = cpu_to_le32(bad | MATTX_LEN_BAD);
	rq->nr = vector_nr(rq->nr);
	rq->args[rq->call->arg[i].n & MATTX_N_MASK] = 2;
	rq->limited = false;
}

static void fill_buffer(struct mattx_request *rq, struct filler *f, int i)
{
	struct mattx_wire_shape *shape = (void *)f->at;
	const struct mattx_arg *arg = &rq->call->arg[i];
	struct mattx_arg_state *st = &rq->state[i];
	u8 *data = f->at + sizeof(*shape);
	size_t left = 0;

	if (rq->kernel[i])
		memcpy(data, rq->kernel[i], st->len);
	else
		left = copy_from_user(data, st->addr, st->len);
	if (left && rq->call->rw && left < st->len) {
		memmove(data + 2 * sizeof(__le32), data, st->len - left);
		fill_two(rq, f, i, st->len - left, left);
		reserve(f, st->len - left);
		return;
	}
	if (left) {
		st->pointer = MATTX_PTR_BAD;
		st->len = 0;
	}
	if (arg->shape == MATTX_INOUT && st->len == sizeof(s32))
		clamp_room(rq, i, (s32 *)data);
	put_shape(reserve(f, sizeof(*shape)), st->pointer, st->len);
	reserve(f, st->len);
}

/* The bytes of a vector, which ends where they cannot be read. Return: how many. */
static size_t gather(struct mattx_vec *vec, u8 *to)
{
	size_t done = 0, left;
	u32 i;

	for (i = 0; i < vec->count; i++) {
		left = copy_from_user(to + done, vec->iov[i].iov_base,
				      vec->iov[i].iov_len);
		done += vec->iov[i].iov_len - left;
		if (left) {
			vec->iov[i].iov_len -= left;
			vec->bad = left;
			vec->count = i + 1;
		}
	}
	return done;
}

/* The lengths of a vector, and its bytes. Return: the number of its elements there. */
static u32 fill_vec(struct mattx_request *rq, struct filler *f,
		    struct mattx_vec *vec, bool in)
{
	u8 *data = f->at + ALIGN(vec->count * sizeof(__le32), 8);
	size_t done = 0;
	__le32 *lens;
	u32 i, n;

	if (in)
		done = gather(vec, data);
	n = vec->count;
	if (vec->bad) {
		rq->limited = false;
		n = min(n + 1, MATTX_VEC_MAX);
	}
	memmove(f->at + ALIGN(n * sizeof(*lens), 8), data, done);
	lens = reserve(f, n * sizeof(*lens));
	for (i = 0; i < n; i++)
		lens[i] = cpu_to_le32(i < vec->count ? vec->iov[i].iov_len :
						       vec->bad | MATTX_LEN_BAD);
	reserve(f, done);
	return n;
}

static void fill_iov(struct mattx_request *rq, struct filler *f, int i)
{
	struct mattx_wire_shape *shape = reserve(f, sizeof(*shape));
	const struct mattx_arg *arg = &rq->call->arg[i];
	struct mattx_arg_state *st = &rq->state[i];
	u32 n = 0;

	if (st->pointer == MATTX_PTR_GOOD) {
		n = fill_vec(rq, f, &st->vec, arg->shape == MATTX_IOV_IN);
		rq->args[arg->n & MATTX_N_MASK] = n;
	}
	put_shape(shape, st->pointer, n);
}

static void fill_msg(struct mattx_request *rq, struct filler *f,
		     struct mattx_msg *msg, bool in)
{
	struct mattx_wire_msg *wire = reserve(f, sizeof(*wire));
	u32 n = 0;

	wire->flags = cpu_to_le32(msg->flags);
	wire->pad = 0;
	if (in && msg->name_ptr == MATTX_PTR_GOOD) {
		if (copy_from_user(f->at, msg->name, msg->name_len))
			msg->name_ptr = MATTX_PTR_BAD;
		else
			reserve(f, msg->name_len);
	}
	if (in && msg->control_ptr == MATTX_PTR_GOOD) {
		if (copy_from_user(f->at, msg->control, msg->control_len))
			msg->control_ptr = MATTX_PTR_BAD;
		else
			reserve(f, msg->control_len);
	}
	if (msg->vec.pointer == MATTX_PTR_GOOD)
		n = fill_vec(rq, f, &msg->vec, in);
	put_shape(&wire->name, msg->name_ptr, msg->name_len);
	put_shape(&wire->control, msg->control_ptr, msg->control_len);
	put_shape(&wire->vector, msg->vec.pointer, n);
}

static void fill_msgs(struct mattx_request *rq, struct filler *f, int i)
{
	struct mattx_wire_shape *shape = reserve(f, sizeof(*shape));
	struct mattx_arg_state *st = &rq->state[i];
	u8 which = rq->call->arg[i].shape;
	u32 k;

	put_shape(shape, st->pointer, st->len);
	if (st->pointer != MATTX_PTR_GOOD)
		return;
	for (k = 0; k < st->len; k++)
		fill_msg(rq, f, &st->msgs[k],
			 which == MATTX_MSG_IN || which == MATTX_MMSG_IN);
}

static void fill_arg(struct mattx_request *rq, struct filler *f, int i)
{
	struct mattx_arg_state *st = &rq->state[i];
	struct mattx_wire_shape *shape;

	switch (rq->call->arg[i].shape) {
	case MATTX_VALUE:
		return;
	case MATTX_IOV_IN:
	case MATTX_IOV_OUT:
		fill_iov(rq, f, i);
		return;
	case MATTX_MSG_IN:
	case MATTX_MSG_OUT:
	case MATTX_MMSG_IN:
	case MATTX_MMSG_OUT:
		fill_msgs(rq, f, i);
		return;
	}
	if (st->pointer != MATTX_PTR_GOOD) {
		put_shape(reserve(f, sizeof(*shape)), st->pointer, 0);
		return;
	}
	if (st->bad) {
		fill_two(rq, f, i, st->len, st->bad);
		return;
	}
	switch (rq->call->arg[i].shape) {
	case MATTX_STR:
		fill_str(f, st);
		return;
	case MATTX_OUT:
	case MATTX_OUT_N:
	case MATTX_OUT_RET:
	case MATTX_ROOM:
		put_shape(reserve(f, sizeof(*shape)), st->pointer, st->len);
		return;
	default:
		fill_buffer(rq, f, i);
		return;
	}
}

int mattx_marshal(struct mattx_request *rq, struct mattx_packet **packet,
		  size_t *len)
{
	struct mattx_frame_call *head;
	size_t size = sizeof(*head);
	struct mattx_packet *p;
	struct filler f;
	int i, err;

	for (i = 0; i < 6; i++) {
		err = prepare_arg(rq, i);
		if (err)
			return err;
		size += arg_size(rq, i);
	}
	if (size > MATTX_FRAME_MAX)
		return -E2BIG;
	p = mattx_packet_alloc(size, GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	f.at = p->payload;
	head = reserve(&f, sizeof(*head));
	for (i = 0; i < 6; i++)
		fill_arg(rq, &f, i);
	head->call = cpu_to_le64(rq->id);
	head->tid = cpu_to_le32(rq->thread->tid);
	head->nr = cpu_to_le32(rq->nr);
	for (i = 0; i < 6; i++) {
		bool value = rq->call->arg[i].shape == MATTX_VALUE;

		head->args[i] = cpu_to_le64(value ? rq->args[i] : 0);
	}
	*len = f.at - p->payload;
	*packet = p;
	return 0;
}

/* ------------------------------------------------------------- finishing */

struct reader {
	const u8 *at;
	size_t left;
};

static const void *take(struct reader *r, size_t len)
{
	const u8 *p = r->at;
	size_t padded = ALIGN(len, 8);

	if (padded < len || padded > r->left)
		return NULL;
	r->at += padded;
	r->left -= padded;
	return p;
}

static int finish_buffer(struct reader *r, struct mattx_arg_state *st)
{
	const struct mattx_wire_out *out = take(r, sizeof(*out));
	const void *data;
	u32 len;

	if (!out)
		return -EBADMSG;
	len = le32_to_cpu(out->len);
	data = take(r, len);
	if (!data || len > st->len)
		return -EBADMSG;
	if (!st->addr) /* the kernel's own */
		return 0;
	return copy_to_user(st->addr, data, len) ? -EFAULT : 0;
}

/* Spread @len bytes over a vector. */
static int scatter(const struct mattx_vec *vec, const u8 *data, size_t len)
{
	size_t part;
	u32 i;

	for (i = 0; i < vec->count && len; i++) {
		part = min_t(size_t, len, vec->iov[i].iov_len);
		if (copy_to_user(vec->iov[i].iov_base, data, part))
			return -EFAULT;
		data += part;
		len -= part;
	}
	return 0;
}

static int finish_iov(struct reader *r, struct mattx_arg_state *st)
{
	const struct mattx_wire_out *out = take(r, sizeof(*out));
	const void *data;
	u32 len;

	if (!out)
		return -EBADMSG;
	len = le32_to_cpu(out->len);
	data = take(r, len);
	if (!data || len > st->vec.total)
		return -EBADMSG;
	return scatter(&st->vec, data, len);
}

static int finish_msg_out(struct reader *r, struct mattx_msg *msg, bool multi)
{
	const struct mattx_wire_msg_out *out = take(r, sizeof(*out));
	struct user_msghdr __user *hdr = msg->header;
	const void *name, *control, *data;
	u32 names, controls, bytes;

	if (!out)
		return -EBADMSG;
	names = le32_to_cpu(out->name_bytes);
	controls = le32_to_cpu(out->control_bytes);
	bytes = le32_to_cpu(out->data_bytes);
	name = take(r, names);
	control = take(r, controls);
	data = take(r, bytes);
	if (!name || !control || !data || names > msg->name_len ||
	    controls > msg->control_len || bytes > msg->vec.total)
		return -EBADMSG;
	if (copy_to_user(msg->name, name, names) ||
	    copy_to_user(msg->control, control, controls) ||
	    scatter(&msg->vec, data, bytes))
		return -EFAULT;
	if (msg->name &&
	    put_user((int)le32_to_cpu(out->name_len), &hdr->msg_namelen))
		return -EFAULT;
	if (put_user(le32_to_cpu(out->control_len), &hdr->msg_controllen) ||
	    put_user(le32_to_cpu(out->flags), &hdr->msg_flags))
		return -EFAULT;
	if (multi && put_user(le32_to_cpu(out->len),
			      &((struct mmsghdr __user *)msg->header)->msg_len))
		return -EFAULT;
	return 0;
}

static int finish_mmsg_in(struct reader *r, struct mattx_msg *msg)
{
	const struct mattx_wire_out *out = take(r, sizeof(*out));

	if (!out)
		return -EBADMSG;
	return put_user(le32_to_cpu(out->len),
			&((struct mmsghdr __user *)msg->header)->msg_len) ?
		       -EFAULT :
		       0;
}

static int finish_msgs(struct mattx_request *rq, struct reader *r, int i, long ret)
{
	struct mattx_arg_state *st = &rq->state[i];
	u8 shape = rq->call->arg[i].shape;
	u32 k, n = 1;
	int err = 0;

	if (shape != MATTX_MSG_OUT)
		n = ret;
	if (n > st->len)
		return -EBADMSG;
	for (k = 0; k < n && !err; k++) {
		if (shape == MATTX_MMSG_IN)
			err = finish_mmsg_in(r, &st->msgs[k]);
		else
			err = finish_msg_out(r, &st->msgs[k],
					     shape == MATTX_MMSG_OUT);
	}
	return err;
}

static int finish_arg(struct mattx_request *rq, struct reader *r, int i, long ret)
{
	struct mattx_arg_state *st = &rq->state[i];

	if (st->pointer != MATTX_PTR_GOOD)
		return 0;
	switch (rq->call->arg[i].shape) {
	case MATTX_OUT:
	case MATTX_OUT_N:
	case MATTX_OUT_RET:
	case MATTX_INOUT:
	case MATTX_INOUT_N:
	case MATTX_BITS:
	case MATTX_ROOM:
	case MATTX_ROOM_IN:
		return finish_buffer(r, st);
	case MATTX_IOV_OUT:
		return finish_iov(r, st);
	case MATTX_MSG_OUT:
	case MATTX_MMSG_OUT:
	case MATTX_MMSG_IN:
		return finish_msgs(rq, r, i, ret);
	default:
		return 0;
	}
}

long mattx_unmarshal(struct mattx_request *rq, long ret)
{
	struct reader r = {
		.at = rq->reply + sizeof(struct mattx_frame_reply),
		.left = rq->reply_len - sizeof(struct mattx_frame_reply),
	};
	int i, err;

	if (ret < 0)
		return ret;
	for (i = 0; i < 6; i++) {
		err = finish_arg(rq, &r, i, ret);
		if (err)
			return err;
	}
	return ret;
}

void mattx_request_release(struct mattx_request *rq)
{
	struct mattx_arg_state *st;
	u32 k;
	int i;

	for (i = 0; i < 6; i++) {
		st = &rq->state[i];
		kvfree(st->vec.iov);
		for (k = 0; st->msgs && k < st->len; k++)
			kvfree(st->msgs[k].vec.iov);
		kvfree(st->msgs);
		memset(st, 0, sizeof(*st));
	}
	kvfree(rq->reply);
	rq->reply = NULL;
}
