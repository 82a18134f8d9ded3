// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest that has ended leaves in shared memory.
 *
 * Natively the stores of a process into a shared mapping are in its file, whatever
 * became of the process. So a guest that has mappings of files that are kept does not
 * lose its memory when it ends, by whatever cause: the gang holds its mm. When the last
 * thread has gone, a work sends the contents as STORE frames and then STORED, which takes
 * the place of GANG_EXIT; home writes them to the files, gives the files up (guard.c), and
 * only then ends the deputy, so that whoever has waited for it finds everything.
 *
 * At home they wait in gang->stores for a work, because writing to a file may last.
 * The receiver is held up when too many do.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include "internal.h"
#include "../compat.h"
#include "../main.h"
#include "../wormhole/link.h"
#include "../wormhole/protocol.h"

#define QUEUED_MAX \
	(8u << 20) /* bytes that wait for the network, or for the files */

/* ------------------------------------------------------------------- the host */

struct batch {
	struct mattx_gang *gang;
	u8 *buf;	/* MATTX_STORE_MAX bytes */
	u64 start, end; /* what is put together; end is where the next page goes */
	bool zero;	/* all of it */
	int err;
};

static void send_batch(struct batch *b)
{
	struct mattx_frame_store head = {
		.addr = cpu_to_le64(b->start),
		.len = cpu_to_le64(b->end - b->start),
	};

	if (b->start < b->end && !b->err) {
		mattx_link_drain(b->gang->peer, QUEUED_MAX);
		b->err = mattx_link_send(b->gang->peer, MATTX_F_STORE,
					 b->gang->id, &head, sizeof(head),
					 b->zero ? NULL : b->buf,
					 b->zero ? 0 : b->end - b->start,
					 GFP_KERNEL | __GFP_NOFAIL);
	}
	b->start = b->end;
}

static void add_page(struct batch *b, u64 addr)
{
	u8 *page = b->buf + (b->zero ? 0 : b->end - b->start);
	bool zero;

	if (!b->zero && b->end - b->start == MATTX_STORE_MAX) {
		send_batch(b);
		page = b->buf;
	}
	if (copy_from_user(page, u64_to_user_ptr(addr), PAGE_SIZE)) {
		/* the process could not read it, or the OOM killer has taken it */
		send_batch(b);
		b->start = b->end = addr + PAGE_SIZE;
		return;
	}
	zero = !memchr_inv(page, 0, PAGE_SIZE);
	if (zero != b->zero) { /* a page behind zeroes is first in the buffer */
		send_batch(b);
		b->zero = zero;
	}
	b->end = addr + PAGE_SIZE;
}

static void send_range(struct batch *b, const struct mattx_range *range)
{
	u64 addr;

	b->start = b->end = range->start;
	b->zero = false;
	for (addr = range->start; addr < range->end && !b->err;
	     addr += PAGE_SIZE) {
		add_page(b, addr);
		cond_resched();
	}
	send_batch(b);
}

/* The ranges do not change any more: no thread is left that could. */
static void send_kept(struct mattx_gang *gang)
{
	struct batch b = { .gang = gang };
	unsigned int i;

	b.buf = kvmalloc(MATTX_STORE_MAX, GFP_KERNEL | __GFP_NOFAIL);
	kthread_use_mm(gang->mm);
	for (i = 0; i < gang->nr_ranges && !b.err; i++)
		if (gang->ranges[i].kind == MATTX_RANGE_KEPT)
			send_range(&b, &gang->ranges[i]);
	kthread_unuse_mm(gang->mm);
	kvfree(b.buf);
}

void mattx_store_flush_work(struct work_struct *work)
{
	struct mattx_gang *gang =
		container_of(work, struct mattx_gang, flush_work);

	if (gang->mm)
		send_kept(gang);
	mattx_link_send(gang->peer, MATTX_F_STORED, gang->id, gang->last,
			sizeof(*gang->last), NULL, 0, GFP_KERNEL | __GFP_NOFAIL);
	mattx_gang_put(gang);
}

/**
 * mattx_store_arm() - a guest is complete: its memory is held if home wants it back
 * @task: one of its threads
 * Context: process. Return: 0 or -ENOMEM.
 */
int mattx_store_arm(struct mattx_gang *gang, struct task_struct *task)
{
	bool kept = false;
	unsigned int i;

	for (i = 0; i < gang->nr_ranges; i++) {
		gang->shares |= gang->ranges[i].kind >= MATTX_RANGE_SHARED;
		kept |= gang->ranges[i].kind == MATTX_RANGE_KEPT;
	}
	if (!gang->shares)
		return 0;
	gang->last = kzalloc(sizeof(*gang->last), GFP_KERNEL);
	if (!gang->last)
		return -ENOMEM;
	if (kept)
		gang->mm = get_task_mm(task);
	return 0;
}

/**
 * mattx_store_end() - the last thread of such a guest has ended
 * @tell: home does not know it
 * Context: any; called once.
 */
void mattx_store_end(struct mattx_gang *gang,
		     const struct mattx_frame_exit *exit, bool tell)
{
	gang->last->exit = *exit;
	gang->last->tell = cpu_to_le32(tell);
	mattx_gang_hold(gang);
	mattx_gang_queue(&gang->flush_work);
}

/* ------------------------------------------------------------------------ home */

struct store {
	struct list_head node; /* in gang->stores */
	u16 type;
	size_t len;
	u8 payload[];
};

/* Return: is what STORE says possible? */
static bool store_sane(const void *payload, size_t len)
{
	const struct mattx_frame_store *head = payload;
	u64 addr, n;

	if (len < sizeof(*head))
		return false;
	addr = le64_to_cpu(head->addr);
	n = le64_to_cpu(head->len);
	len -= sizeof(*head);
	return PAGE_ALIGNED(addr) && PAGE_ALIGNED(n) && n &&
	       addr < TASK_SIZE_MAX && n <= TASK_SIZE_MAX - addr &&
	       (!len || (len == n && len <= MATTX_STORE_MAX));
}

static bool has_room(struct mattx_gang *gang)
{
	bool room;

	spin_lock_irq(&gang->lock);
	room = gang->stored_bytes < QUEUED_MAX;
	spin_unlock_irq(&gang->lock);
	return room;
}

/**
 * mattx_store_arrived() - STORE or STORED
 * Context: the link's receiver; waits when files are slower than the network.
 * Return: 0 or -EPROTO.
 */
int mattx_store_arrived(struct mattx_gang *gang, u16 type, const void *payload,
			size_t len)
{
	struct store *s;

	if (gang->role != MATTX_ROLE_HOME)
		return -EPROTO;
	if (type == MATTX_F_STORE ? !store_sane(payload, len) :
				    len != sizeof(struct mattx_frame_stored))
		return -EPROTO;
	wait_event_idle(gang->wait, has_room(gang));
	s = kvmalloc(struct_size(s, payload, len), GFP_KERNEL | __GFP_NOFAIL);
	s->type = type;
	s->len = len;
	memcpy(s->payload, payload, len);
	mattx_gang_hold(gang);
	spin_lock_irq(&gang->lock);
	list_add_tail(&s->node, &gang->stores);
	gang->stored_bytes += len;
	spin_unlock_irq(&gang->lock);
	if (!mattx_gang_queue(&gang->store_work))
		mattx_gang_put(gang);
	return 0;
}

static struct store *take_store(struct mattx_gang *gang)
{
	struct store *s;

	spin_lock_irq(&gang->lock);
	s = list_first_entry_or_null(&gang->stores, struct store, node);
	if (s) {
		list_del(&s->node);
		gang->stored_bytes -= s->len;
	}
	spin_unlock_irq(&gang->lock);
	if (s)
		wake_up_all(&gang->wait);
	return s;
}

/* The file's own flags are the process's business: no appending, no O_DIRECT here. */
static ssize_t move_bytes(struct file *file, void *buf, size_t len, loff_t pos,
			  bool write)
{
	struct kvec vec = { .iov_base = buf, .iov_len = len };
	struct iov_iter iter;
	struct kiocb iocb;
	ssize_t ret;

	init_sync_kiocb(&iocb, file);
	iocb.ki_flags &= ~(IOCB_APPEND | IOCB_DIRECT);
	iocb.ki_pos = pos;
	iov_iter_kvec(&iter, write ? ITER_SOURCE : ITER_DEST, &vec, 1, len);
	if (!file->f_op->read_iter || !file->f_op->write_iter)
		return -EINVAL;
	if (!write)
		return file->f_op->read_iter(&iocb, &iter);
	file_start_write(file);
	ret = file->f_op->write_iter(&iocb, &iter);
	file_end_write(file);
	return ret;
}

/* Only what differs is written: a hole that was read stays one. @buf: @len bytes. */
static ssize_t store_piece(struct file *file, const u8 *data, u8 *buf,
			   size_t len, loff_t pos)
{
	ssize_t got = move_bytes(file, buf, len, pos, false);
	ssize_t ret;

	/* what lies behind the end of the file is nobody's */
	if (got <= 0)
		return got;
	if (data ? !memcmp(buf, data, got) : !memchr_inv(buf, 0, got))
		return got;
	if (data)
		memcpy(buf, data, got);
	else
		memset(buf, 0, got);
	ret = move_bytes(file, buf, got, pos, true);
	return ret < 0 ? ret : ret < got ? -ENOSPC : got;
}

/* Zeroes: what is a hole already is passed over. Return: bytes of @len that are. */
static u64 skip_hole(struct file *file, loff_t pos, u64 len)
{
	loff_t next = mattx_guard_seek(file, pos, SEEK_DATA);

	if (next == -ENXIO || next >= pos + (loff_t)len)
		return len;
	return next < 0 ? 0 : round_down(next - pos, PAGE_SIZE);
}

static int store_file(struct file *file, const u8 *data, u8 *buf, u64 len,
		      loff_t pos)
{
	size_t part;
	u64 skip;
	ssize_t n;

	for (; len; len -= part, pos += part) {
		skip = data ? 0 : skip_hole(file, pos, len);
		pos += skip;
		len -= skip;
		if (!len)
			break;
		part = min_t(u64, len, PAGE_SIZE);
		n = store_piece(file, data, buf, part, pos);
		if (n < 0)
			return n;
		if (data)
			data += part;
		cond_resched();
	}
	return 0;
}

static void store(struct mattx_gang *gang, const struct mattx_frame_store *head,
		  size_t data_len)
{
	const u8 *data = data_len ? (const u8 *)(head + 1) : NULL;
	u64 addr = le64_to_cpu(head->addr), left = le64_to_cpu(head->len), len;
	u8 *buf = (u8 *)__get_free_page(GFP_KERNEL | __GFP_NOFAIL);
	struct file *file;
	int err = 0;
	loff_t pos;

	for (; left && !err; left -= len, addr += len) {
		len = left;
		file = mattx_guard_file(gang, addr, &len, &pos);
		if (!file)
			break;
		err = store_file(file, data, buf, len, pos);
		fput(file);
		if (data)
			data += len;
	}
	free_page((unsigned long)buf);
	if (err)
		pr_warn_ratelimited(
			"PID %d (%s): its shared memory at %llx cannot be written to the file (error %d)\n",
			gang->tgid, gang->comm, addr - len, err);
}

static void take_one(struct mattx_gang *gang, struct store *s)
{
	const struct mattx_frame_stored *last = (const void *)s->payload;

	if (s->type == MATTX_F_STORE) {
		store(gang, (const void *)s->payload,
		      s->len - sizeof(struct mattx_frame_store));
		return;
	}
	mattx_guard_release(gang);
	if (le32_to_cpu(last->tell))
		mattx_deputy_end(gang, &last->exit);
}

void mattx_store_work(struct work_struct *work)
{
	struct mattx_gang *gang =
		container_of(work, struct mattx_gang, store_work);
	struct store *s;

	while ((s = take_store(gang))) {
		take_one(gang, s);
		kvfree(s);
	}
	mattx_guard_release_ended(gang);
	mattx_gang_put(gang);
}

/* Context: process; nobody has the gang any more. */
void mattx_store_free(struct mattx_gang *gang)
{
	if (gang->mm)
		mmput(gang->mm);
	kfree(gang->last);
}
