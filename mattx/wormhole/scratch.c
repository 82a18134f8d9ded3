// SPDX-License-Identifier: GPL-2.0
/*
 * The deputy's side of a call through the wormhole: from a CALL frame into its
 * scratch memory, and from there into the REPLY.
 *
 * What came is hostile until mattx_layout_check() has accepted it. The same walk
 * over the arguments then places everything, so that what was checked is what is
 * used; the frame itself is the deputy's copy and does not change.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "wormhole/packet.h"
#include "wormhole/shape.h"

/* Below mmap_min_addr: user memory by its number, but the kernel's access to it faults. */
#define BAD_ADDRESS 16ULL

enum walk_mode {
	WALK_CHECK,   /* check and measure */
	WALK_BUILD,   /* write meta */
	WALK_COLLECT, /* read what was written */
};

struct walk {
	const struct mattx_layout *layout;
	enum walk_mode mode;
	size_t pos;		    /* in the data */
	size_t meta, out;	    /* bytes placed so far */
	size_t longest, longest_at; /* of what came with the call */
	u8 *meta_image;		    /* BUILD: kernel copy of the meta part */
	unsigned long *args;	    /* BUILD: the call's */

	long ret;  /* COLLECT */
	u8 *reply; /* NULL: measure */
	size_t reply_len, reply_room;
};

/* What a shape's own placing was; kept by the walk over one argument. */
struct placed {
	enum mattx_pointer pointer;
	u32 len;
	u64 addr;
};

/* ------------------------------------------------------------ the places */

static const void *take(struct walk *w, size_t len)
{
	const struct mattx_layout *l = w->layout;
	size_t padded = ALIGN(len, 8);
	const u8 *p = l->data + w->pos;

	if (padded < len || padded > l->len - w->pos)
		return NULL;
	w->pos += padded;
	return p;
}

static u64 in_addr(const struct walk *w, const void *p)
{
	return w->layout->base + ((const u8 *)p - w->layout->data);
}

/*
 * Direct I/O wants buffers that are aligned as the device's blocks are. The program's
 * are, if it uses that; so those of some length begin with a page, here and for the
 * longest one that came with the call: struct mattx_layout.shift.
 */
#define ALIGNED_FROM 512

static u64 out_addr(struct walk *w, size_t len)
{
	u64 addr;

	if (len >= ALIGNED_FROM)
		w->out = ALIGN(w->out, PAGE_SIZE);
	addr = w->layout->base + w->layout->out + w->out;
	w->out += ALIGN(len, 16);
	return addr;
}

static void note_longest(struct walk *w, const void *data, size_t len)
{
	if (len < ALIGNED_FROM || len <= w->longest)
		return;
	w->longest = len;
	w->longest_at = (const u8 *)data - w->layout->data;
}

/* Room for a structure with pointers; the kernel's copy of it is @image, if building. */
static u64 meta_addr(struct walk *w, size_t len, void *image)
{
	u64 addr = w->layout->base + w->layout->meta + w->meta;

	*(void **)image = w->meta_image ? w->meta_image + w->meta : NULL;
	w->meta += ALIGN(len, 16);
	return addr;
}

static int take_shape(struct walk *w, struct placed *p)
{
	const struct mattx_wire_shape *shape = take(w, sizeof(*shape));

	if (!shape)
		return -EBADMSG;
	p->pointer = le32_to_cpu(shape->pointer);
	p->len = le32_to_cpu(shape->len);
	p->addr = p->pointer == MATTX_PTR_NULL ? 0 : BAD_ADDRESS;
	if (p->pointer > MATTX_PTR_GOOD)
		return -EBADMSG;
	if (p->pointer != MATTX_PTR_GOOD && p->len)
		return -EBADMSG;
	return 0;
}

/* ----------------------------------------------------------- collecting */

/*
 * The reply is measured and then written; somebody at home may change the deputy's
 * memory in between, so lengths that are read from it are not believed to be the same.
 */
static bool reply_has_room(struct walk *w, size_t len)
{
	return !w->reply || len <= w->reply_room - w->reply_len;
}

/* Adds @len bytes from the deputy's memory. Return: -EFAULT when they are not there. */
static int emit_bytes(struct walk *w, u64 addr, size_t len)
{
	size_t padded = ALIGN(len, 8);

	if (!reply_has_room(w, padded))
		return -EFAULT;
	if (w->reply && len) {
		if (copy_from_user(w->reply + w->reply_len,
				   (void __user *)(unsigned long)addr, len))
			return -EFAULT;
		memset(w->reply + w->reply_len + len, 0, padded - len);
	}
	w->reply_len += padded;
	return 0;
}

/* Adds a structure. */
static int emit_head(struct walk *w, const void *head, size_t len)
{
	if (!reply_has_room(w, len))
		return -EFAULT;
	if (w->reply)
		memcpy(w->reply + w->reply_len, head, len);
	w->reply_len += len;
	return 0;
}

static int emit_len(struct walk *w, u32 len)
{
	struct mattx_wire_out out = { .len = cpu_to_le32(len) };

	return emit_head(w, &out, sizeof(out));
}

static int emit_buffer(struct walk *w, u64 addr, size_t len)
{
	return emit_len(w, len) ?: emit_bytes(w, addr, len);
}

static int peek_user(u32 *value, u64 addr)
{
	return get_user(*value, (u32 __user *)(unsigned long)addr) ? -EFAULT : 0;
}

/* -------------------------------------------------------------- buffers */

/* May a buffer of this shape have this length? */
static bool len_fits(const struct walk *w, const struct mattx_arg *arg, u32 len)
{
	u64 want;

	switch (arg->shape) {
	case MATTX_STR:
		return len && len <= MATTX_STR_MAX;
	case MATTX_ROOM:
	case MATTX_ROOM_IN:
		return len <= MATTX_NAME_ROOM_MAX;
	case MATTX_IN:
	case MATTX_OUT:
	case MATTX_INOUT:
		return len == arg->size;
	default:
		return mattx_arg_len(arg, w->layout->args, &want) &&
		       want == len && len <= MATTX_DATA_MAX;
	}
}

static bool has_contents(u8 shape)
{
	return shape != MATTX_OUT && shape != MATTX_OUT_N &&
	       shape != MATTX_OUT_RET && shape != MATTX_ROOM;
}

/* How many bytes of a buffer the call has written. */
static int valid_bytes(struct walk *w, int i, const struct placed *p, size_t *len)
{
	const struct mattx_arg *arg = &w->layout->call->arg[i];
	u32 value;
	u64 want;
	int err;

	switch (arg->shape) {
	case MATTX_OUT_RET:
		if (check_mul_overflow((u64)w->ret, (u64)arg->size, &want))
			want = p->len;
		*len = min_t(u64, want, p->len);
		return 0;
	case MATTX_ROOM:
	case MATTX_ROOM_IN:
		err = peek_user(&value, w->args[arg->n & MATTX_N_MASK]);
		if (err)
			return err;
		*len = (s32)value < 0 ? 0 : min(value, p->len);
		return 0;
	default:
		*len = p->len;
		return 0;
	}
}

static int walk_buffer(struct walk *w, int i)
{
	const struct mattx_arg *arg = &w->layout->call->arg[i];
	const void *data = NULL;
	struct placed p;
	size_t len;
	int err;

	err = take_shape(w, &p);
	if (err)
		return err;
	if (p.pointer == MATTX_PTR_GOOD) {
		if (!len_fits(w, arg, p.len))
			return -EBADMSG;
		if (has_contents(arg->shape)) {
			data = take(w, p.len);
			if (!data)
				return -EBADMSG;
			p.addr = in_addr(w, data);
			note_longest(w, data, p.len);
		} else {
			p.addr = out_addr(w, p.len);
		}
		if (arg->shape == MATTX_STR && p.len < MATTX_STR_MAX &&
		    ((const u8 *)data)[p.len - 1])
			return -EBADMSG;
	}
	if (w->mode == WALK_BUILD)
		w->args[i] = p.addr;
	if (w->mode != WALK_COLLECT || p.pointer != MATTX_PTR_GOOD ||
	    arg->shape == MATTX_STR || arg->shape == MATTX_IN ||
	    arg->shape == MATTX_IN_N)
		return 0;
	err = valid_bytes(w, i, &p, &len);
	return err ?: emit_buffer(w, p.addr, len);
}

/* ------------------------------------------------------------- vectors */

/* A struct iovec[] in the meta part, for @count lengths that follow in the data. */
static int walk_elements(struct walk *w, u32 count, bool in, u64 *addr,
			 u64 *bytes, u32 *total)
{
	const __le32 *lens = take(w, count * sizeof(*lens));
	struct iovec *vec;
	const void *data;
	u64 sum = 0, at;
	u32 i;

	if (!lens)
		return -EBADMSG;
	*addr = meta_addr(w, count * sizeof(*vec), &vec);
	for (i = 0; i < count; i++) {
		if (!(le32_to_cpu(lens[i]) & MATTX_LEN_BAD))
			sum += le32_to_cpu(lens[i]);
	}
	if (sum > MATTX_DATA_MAX)
		return -EBADMSG;
	if (in) {
		data = take(w, sum);
		if (!data)
			return -EBADMSG;
		at = in_addr(w, data);
		note_longest(w, data, sum);
	} else {
		at = out_addr(w, sum);
	}
	*bytes = at;
	*total = sum;
	for (i = 0; vec && i < count; i++) {
		bool bad = le32_to_cpu(lens[i]) & MATTX_LEN_BAD;

		vec[i].iov_base =
			(void __user *)(unsigned long)(bad ? BAD_ADDRESS : at);
		vec[i].iov_len = le32_to_cpu(lens[i]) & ~MATTX_LEN_BAD;
		if (!bad)
			at += vec[i].iov_len;
	}
	return 0;
}

static int walk_iov(struct walk *w, int i)
{
	const struct mattx_arg *arg = &w->layout->call->arg[i];
	u64 bytes = 0;
	struct placed p;
	u32 total = 0;
	int err;

	err = take_shape(w, &p);
	if (err)
		return err;
	if (p.pointer == MATTX_PTR_GOOD) {
		if (p.len > MATTX_VEC_MAX ||
		    p.len != mattx_arg_n(arg, w->layout->args))
			return -EBADMSG;
		err = walk_elements(w, p.len, arg->shape == MATTX_IOV_IN,
				    &p.addr, &bytes, &total);
		if (err)
			return err;
	}
	if (w->mode == WALK_BUILD)
		w->args[i] = p.addr;
	if (w->mode == WALK_COLLECT && p.pointer == MATTX_PTR_GOOD &&
	    arg->shape == MATTX_IOV_OUT)
		return emit_buffer(w, bytes, min_t(u64, w->ret, total));
	return 0;
}

/* ------------------------------------------------------------ messages */

struct placed_msg {
	u64 name, control, vector, bytes;
	u32 name_len, control_len, count, total;
	u32 flags;
};

/* A part of a message: @max bytes at most, at @addr. */
static int walk_part(struct walk *w, const struct mattx_wire_shape *shape,
		     bool in, u32 max, u64 *addr, u32 *len)
{
	u32 pointer = le32_to_cpu(shape->pointer);
	const void *data;

	*len = le32_to_cpu(shape->len);
	*addr = pointer == MATTX_PTR_NULL ? 0 : BAD_ADDRESS;
	if (pointer > MATTX_PTR_GOOD || *len > max ||
	    (pointer != MATTX_PTR_GOOD && *len))
		return -EBADMSG;
	if (pointer != MATTX_PTR_GOOD) {
		if (pointer == MATTX_PTR_BAD)
			*len = sizeof(u64); /* so that it is looked at */
		return 0;
	}
	if (!in) {
		*addr = out_addr(w, *len);
		return 0;
	}
	data = take(w, *len);
	if (!data)
		return -EBADMSG;
	*addr = in_addr(w, data);
	return 0;
}

static int walk_msg(struct walk *w, bool in, struct placed_msg *m)
{
	const struct mattx_wire_msg *wire = take(w, sizeof(*wire));
	u32 pointer;
	int err;

	if (!wire)
		return -EBADMSG;
	m->flags = le32_to_cpu(wire->flags);
	err = walk_part(w, &wire->name, in,
			sizeof(struct __kernel_sockaddr_storage), &m->name,
			&m->name_len);
	if (!err)
		err = walk_part(w, &wire->control, in, MATTX_CONTROL_MAX,
				&m->control, &m->control_len);
	if (err)
		return err;
	pointer = le32_to_cpu(wire->vector.pointer);
	m->count = le32_to_cpu(wire->vector.len);
	m->vector = BAD_ADDRESS;
	m->bytes = 0;
	m->total = 0;
	if (pointer == MATTX_PTR_BAD && !m->count) {
		m->count = 1;
		return 0;
	}
	if (pointer != MATTX_PTR_GOOD || m->count > MATTX_VEC_MAX)
		return -EBADMSG;
	return walk_elements(w, m->count, in, &m->vector, &m->bytes, &m->total);
}

static void build_msg(struct user_msghdr *hdr, const struct placed_msg *m)
{
	*hdr = (struct user_msghdr){
		.msg_name = (void __user *)(unsigned long)m->name,
		.msg_namelen = m->name_len,
		.msg_iov = (void __user *)(unsigned long)m->vector,
		.msg_iovlen = m->count,
		.msg_control = (void __user *)(unsigned long)m->control,
		.msg_controllen = m->control_len,
		.msg_flags = m->flags,
	};
}

/* One received message: @bytes were received, perhaps more than there was room for. */
static int emit_msg(struct walk *w, u64 addr, const struct placed_msg *m,
		    u32 bytes)
{
	struct mattx_wire_msg_out out = {};
	u32 names, controls, data;
	struct user_msghdr hdr;
	int err;

	if (copy_from_user(&hdr, (void __user *)(unsigned long)addr, sizeof(hdr)))
		return -EFAULT;
	names = hdr.msg_namelen < 0 ? 0 :
				      min_t(u32, hdr.msg_namelen, m->name_len);
	if (!m->name)
		names = 0;
	controls = min_t(u64, hdr.msg_controllen, m->control_len);
	data = min(bytes, m->total);
	out.name_len = cpu_to_le32(hdr.msg_namelen);
	out.control_len = cpu_to_le32(hdr.msg_controllen);
	out.flags = cpu_to_le32(hdr.msg_flags);
	out.len = cpu_to_le32(bytes);
	out.name_bytes = cpu_to_le32(names);
	out.control_bytes = cpu_to_le32(controls);
	out.data_bytes = cpu_to_le32(data);
	err = emit_head(w, &out, sizeof(out));
	if (!err)
		err = emit_bytes(w, m->name, names);
	if (!err)
		err = emit_bytes(w, m->control, controls);
	if (!err)
		err = emit_bytes(w, m->bytes, data);
	return err;
}

static int collect_msg(struct walk *w, u8 shape, u32 k, u64 addr,
		       const struct placed_msg *m)
{
	u32 len;
	int err;

	switch (shape) {
	case MATTX_MSG_OUT:
		return emit_msg(w, addr, m, min_t(long, w->ret, U32_MAX));
	case MATTX_MMSG_IN:
	case MATTX_MMSG_OUT:
		if (k >= w->ret)
			return 0;
		err = peek_user(&len, addr + offsetof(struct mmsghdr, msg_len));
		if (err)
			return err;
		if (shape == MATTX_MMSG_OUT)
			return emit_msg(w, addr, m, len);
		return emit_len(w, len);
	default:
		return 0;
	}
}

static int walk_msgs(struct walk *w, int i)
{
	const struct mattx_arg *arg = &w->layout->call->arg[i];
	bool multi = arg->shape == MATTX_MMSG_IN || arg->shape == MATTX_MMSG_OUT;
	bool in = arg->shape == MATTX_MSG_IN || arg->shape == MATTX_MMSG_IN;
	size_t step = multi ? sizeof(struct mmsghdr) : sizeof(struct user_msghdr);
	struct placed_msg m;
	struct placed p;
	u8 *image = NULL;
	int err;
	u32 k;

	err = take_shape(w, &p);
	if (err)
		return err;
	if (p.pointer == MATTX_PTR_GOOD) {
		if (multi ? p.len > MATTX_VEC_MAX ||
				    p.len != mattx_arg_n(arg, w->layout->args) :
			    p.len != 1)
			return -EBADMSG;
		p.addr = meta_addr(w, p.len * step, &image);
		if (image)
			memset(image, 0, p.len * step);
	}
	if (w->mode == WALK_BUILD)
		w->args[i] = p.addr;
	for (k = 0; k < p.len; k++) {
		err = walk_msg(w, in, &m);
		if (err)
			return err;
		if (image)
			build_msg((struct user_msghdr *)(image + k * step), &m);
		if (w->mode == WALK_COLLECT)
			err = collect_msg(w, arg->shape, k, p.addr + k * step,
					  &m);
		if (err)
			return err;
	}
	return 0;
}

/* ------------------------------------------------------------- the walk */

static int walk_arg(struct walk *w, int i)
{
	switch (w->layout->call->arg[i].shape) {
	case MATTX_VALUE:
		if (w->mode == WALK_BUILD)
			w->args[i] = w->layout->args[i];
		return 0;
	case MATTX_IOV_IN:
	case MATTX_IOV_OUT:
		return walk_iov(w, i);
	case MATTX_MSG_IN:
	case MATTX_MSG_OUT:
	case MATTX_MMSG_IN:
	case MATTX_MMSG_OUT:
		return walk_msgs(w, i);
	default:
		return walk_buffer(w, i);
	}
}

static int walk_all(struct walk *w)
{
	int i, err;

	for (i = 0; i < 6; i++) {
		err = walk_arg(w, i);
		if (err)
			return err;
	}
	/* the lists end with the data */
	return w->pos == w->layout->len ? 0 : -EBADMSG;
}

/*
 * check_rooms() - does each length that the kernel is told fit its buffer?
 *
 * Finds the int of a MATTX_ROOM by walking to it. Both arguments have been checked.
 */
static int check_rooms(const struct mattx_layout *layout)
{
	const struct mattx_arg *arg = layout->call->arg;
	struct walk w = { .layout = layout };
	const struct mattx_wire_shape *shape[6] = {};
	const s32 *len;
	int i, err;

	for (i = 0; i < 6; i++) {
		shape[i] = (const void *)(layout->data + w.pos);
		err = walk_arg(&w, i);
		if (err)
			return err;
	}
	for (i = 0; i < 6; i++) {
		if (arg[i].shape != MATTX_ROOM && arg[i].shape != MATTX_ROOM_IN)
			continue;
		if (le32_to_cpu(shape[i]->pointer) != MATTX_PTR_GOOD)
			continue;
		if (le32_to_cpu(shape[arg[i].n & MATTX_N_MASK]->pointer) !=
		    MATTX_PTR_GOOD)
			return -EBADMSG;
		len = (const void *)(shape[arg[i].n & MATTX_N_MASK] + 1);
		if (*len > (s32)le32_to_cpu(shape[i]->len))
			return -EBADMSG;
	}
	return 0;
}

int mattx_layout_check(struct mattx_layout *layout)
{
	struct walk w = { .layout = layout, .mode = WALK_CHECK };
	int err;

	err = walk_all(&w);
	if (!err)
		err = check_rooms(layout);
	if (err)
		return err;
	layout->shift = -w.longest_at & ~PAGE_MASK;
	layout->meta = ALIGN(layout->len, 16);
	layout->meta_len = w.meta;
	layout->out = layout->meta + w.meta;
	if (w.out >= ALIGNED_FROM)
		layout->out = ALIGN(layout->out + layout->shift, PAGE_SIZE) -
			      layout->shift;
	layout->total = layout->shift + layout->out + w.out;
	return layout->total <= MATTX_SCRATCH_MAX ? 0 : -EBADMSG;
}

int mattx_layout_build(struct mattx_layout *layout, unsigned long *args)
{
	struct walk w = { .layout = layout, .mode = WALK_BUILD, .args = args };
	size_t meta = layout->meta_len;
	void __user *base = (void __user *)(unsigned long)layout->base;
	int err = -EFAULT;

	if (meta) {
		w.meta_image = kvmalloc(meta, GFP_KERNEL);
		if (!w.meta_image)
			return -ENOMEM;
	}
	if (walk_all(&w))
		goto out;
	if (copy_to_user(base, layout->data, layout->len) ||
	    copy_to_user(base + layout->meta, w.meta_image, meta))
		goto out;
	err = 0;
out:
	kvfree(w.meta_image);
	return err;
}

struct mattx_packet *mattx_layout_collect(struct mattx_layout *layout, long ret,
					  size_t head, size_t *len)
{
	unsigned long args[6];
	struct walk build = { .layout = layout, .mode = WALK_BUILD, .args = args };
	struct walk w = {
		.layout = layout, .mode = WALK_COLLECT, .args = args, .ret = ret
	};
	struct mattx_packet *packet;
	size_t room;
	int err;

	walk_all(&build); /* where things are */
	err = walk_all(&w);
	if (err)
		return ERR_PTR(err);
	room = head + w.reply_len;
	packet = mattx_packet_alloc(room, GFP_KERNEL);
	if (!packet)
		return ERR_PTR(-ENOMEM);
	memset(packet->payload, 0, head);
	w = (struct walk){
		.layout = layout,
		.mode = WALK_COLLECT,
		.args = args,
		.ret = ret,
		.reply = packet->payload + head,
		.reply_room = room - head,
	};
	err = walk_all(&w);
	if (err) {
		mattx_packet_put(packet);
		return ERR_PTR(err);
	}
	*len = head + w.reply_len;
	return packet;
}
