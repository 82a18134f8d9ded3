// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory that nobody shares, while its process is away.
 *
 * A mapping that is shared and writable moves when this process alone can reach the
 * memory: no other process maps the file or has it open. Then the process takes it
 * along as if it were its own, the file at home is out of date, and nobody may see
 * that. So a guard stands before each such file from before its contents are read until
 * they are back:
 *
 *	taken (FROZEN) -> away -> released: thawed, at home again, or ended and STORED
 *
 * It holds the file and a write lease on it. The kernel grants that only when nobody
 * else has the file open, and whoever opens or truncates it later, by whatever name,
 * waits in break_lease() until the lease is given up; meanwhile the gang is asked home.
 * The references to the file's struct file are all those of the process's mappings and
 * descriptors: nobody has it by inheritance or from a socket. What the process itself
 * does with it by a descriptor is not made by its deputy, but at home:
 * wormhole/reach.c.
 *
 * A read-only shared mapping of a tmpfs file is copied, as one of any file is; it gets
 * a read lease, so that nobody begins to write to the file meanwhile.
 *
 * gang->guards changes when the gang is FROZEN, under gang->door, and is emptied once, by
 * whoever takes it out under gang->lock. A gang with guards holds itself.
 */
#include <linux/dcache.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include "internal.h"
#include "../compat.h"
#include "../main.h"
#include "../wormhole/link.h"
#include "../wormhole/protocol.h"

#define TRIES 50 /* for others who only look at a descriptor of the process */

struct mattx_guard {
	struct list_head node; /* in gang->guards */
	struct mattx_gang *gang;
	struct file *file; /* holds a reference */
	unsigned long start, end;
	loff_t pos;	     /* of start in the file */
	bool writable, kept; /* kept: the file has a name */
	bool leased;	     /* one guard of each file has the lease */
	unsigned int maps; /* references that the process's mappings have to the file */
};

static void free_guards(struct list_head *guards)
{
	struct mattx_guard *g, *tmp;
	void *owner;

	list_for_each_entry_safe(g, tmp, guards, node) {
		owner = g;
		if (g->leased)
			vfs_setlease(g->file, F_UNLCK, NULL, &owner);
		fput(g->file);
		kfree(g);
	}
	INIT_LIST_HEAD(guards);
}

/**
 * mattx_guard_release() - the memory is at home: everybody may have it
 * Context: process, may sleep; one who may give up leases, as a kernel thread or root.
 */
void mattx_guard_release(struct mattx_gang *gang)
{
	LIST_HEAD(guards);

	spin_lock_irq(&gang->lock);
	list_splice_init(&gang->guards, &guards);
	spin_unlock_irq(&gang->lock);
	if (list_empty(&guards))
		return;
	free_guards(&guards);
	wake_up_all(&gang->wait);
	mattx_gang_put(gang);
}

/* Return: will there be a STORED at the guest's end? Context: any. */
static bool is_written(struct mattx_gang *gang)
{
	struct mattx_guard *g;
	unsigned long flags;
	bool written = false;

	spin_lock_irqsave(&gang->lock, flags);
	list_for_each_entry(g, &gang->guards, node)
		written = written || g->writable;
	spin_unlock_irqrestore(&gang->lock, flags);
	return written;
}

/**
 * mattx_guard_ended() - the deputy has ended
 * Guards that nobody stores anything behind are not needed any more. Context: any.
 */
void mattx_guard_ended(struct mattx_gang *gang)
{
	if (!mattx_guard_any(gang) || is_written(gang))
		return;
	mattx_gang_hold(gang);
	if (!mattx_gang_queue(&gang->store_work))
		mattx_gang_put(gang);
}

/* Context: the work. */
void mattx_guard_release_ended(struct mattx_gang *gang)
{
	if (READ_ONCE(gang->state) == MATTX_GANG_DEAD && !is_written(gang))
		mattx_guard_release(gang);
}

/* ------------------------------------------------------------ which mappings */

static bool is_writable(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_SHARED && vma->vm_flags & VM_MAYWRITE;
}

/* Read-only for good; but others may write to what is there. */
static bool is_readable(const struct vm_area_struct *vma)
{
	const struct inode *inode = file_inode(vma->vm_file);

	return vma->vm_flags & VM_MAYSHARE && !is_writable(vma) &&
	       (inode->i_sb->s_magic == TMPFS_MAGIC || !S_ISREG(inode->i_mode));
}

static loff_t vma_pos(const struct vm_area_struct *vma)
{
	return (loff_t)vma->vm_pgoff << PAGE_SHIFT;
}

static const char *vma_obstacle(const struct vm_area_struct *vma)
{
	const struct file *file = vma->vm_file;
	const struct inode *inode = file_inode(file);
	loff_t end = vma_pos(vma) + (vma->vm_end - vma->vm_start);

	/* System V's segments, rings, whatever else has an open of its own */
	if (!S_ISREG(inode->i_mode) || file->f_op != inode->i_fop ||
	    vma->vm_flags & (VM_IO | VM_PFNMAP))
		return "is shared memory of a kind that cannot move";
	if (!is_writable(vma))
		return NULL;
	if (end < 0 || round_up(i_size_read(inode), PAGE_SIZE) < end)
		return "is shared, and reaches beyond the end of its file";
	return NULL;
}

static int add_guard(struct list_head *guards, const struct vm_area_struct *vma)
{
	struct mattx_guard *g = kzalloc(sizeof(*g), GFP_KERNEL);

	if (!g)
		return -ENOMEM;
	g->file = get_file(vma->vm_file);
	g->start = vma->vm_start;
	g->end = vma->vm_end;
	g->pos = vma_pos(vma);
	g->writable = is_writable(vma);
	g->kept = file_inode(g->file)->i_nlink;
	list_add_tail(&g->node, guards);
	return 0;
}

static void count_maps(struct mm_struct *mm, struct list_head *guards)
{
	struct vm_area_struct *vma;
	struct mattx_guard *g;

	for (vma = find_vma(mm, 0); vma; vma = find_vma(mm, vma->vm_end))
		list_for_each_entry(g, guards, node)
			g->maps += vma->vm_file == g->file;
}

/* Context: mm's lock is held for reading. */
static int find_shared(struct mm_struct *mm, struct list_head *guards,
		       struct mattx_ioc_shared *arg)
{
	struct vm_area_struct *vma;
	const char *why;
	int err = 0;

	for (vma = find_vma(mm, arg->from); vma && !err;
	     vma = find_vma(mm, vma->vm_end)) {
		if (!vma->vm_file || (!is_writable(vma) && !is_readable(vma)))
			continue;
		why = vma_obstacle(vma);
		if (why) {
			arg->from = vma->vm_start;
			strscpy(arg->cause, why, sizeof(arg->cause));
			return -ENOTUNIQ;
		}
		err = add_guard(guards, vma);
	}
	count_maps(mm, guards);
	return err;
}

static int look_at(struct task_struct *task, struct list_head *guards,
		   struct mattx_ioc_shared *arg)
{
	struct mm_struct *mm = get_task_mm(task);
	int err;

	if (!mm)
		return -ESRCH;
	err = mmap_read_lock_killable(mm);
	if (!err) {
		err = find_shared(mm, guards, arg);
		mmap_read_unlock(mm);
	}
	mmput(mm);
	return err;
}

static int refuse(struct mattx_ioc_shared *arg, const struct mattx_guard *g,
		  const char *why)
{
	arg->from = g->start;
	strscpy(arg->cause, why, sizeof(arg->cause));
	return -ENOTUNIQ;
}

/* ------------------------------------------------------------- who has the file */

/* By as many open()s as the kernel knows of, this one's being one. */
static bool is_opened_once(const struct file *file)
{
	const struct inode *inode = file_inode(file);
	fmode_t mode = file->f_mode;

	/* the kernel does not count those that it has made itself: memfds */
	return atomic_read(&inode->i_writecount) == !!(mode & FMODE_WRITER) &&
	       atomic_read(&inode->i_readcount) == !(mode & FMODE_WRITE);
}

/* One process's descriptors. */
struct table {
	const struct file *file; /* count these... */
	unsigned int n;
	const struct inode *inode; /* ...or find one that is backed by this */
	struct file *found;	   /* holds a reference */
};

static int count_descriptor(const void *arg, struct file *file, unsigned int fd)
{
	struct table *t = (struct table *)arg;

	t->n += file == t->file;
	return 0;
}

static int find_upper(const void *arg, struct file *file, unsigned int fd)
{
	struct table *t = (struct table *)arg;

	if (file_inode(file) == t->inode ||
	    !(file->f_path.dentry->d_flags & DCACHE_OP_REAL) ||
	    d_real_inode(file->f_path.dentry) != t->inode)
		return 0;
	t->found = get_file(file);
	return 1;
}

static void search(struct task_struct *task, struct table *t,
		   int (*fn)(const void *, struct file *, unsigned int))
{
	task_lock(task);
	if (task->files)
		iterate_fd(task->files, 0, fn, t);
	task_unlock(task);
}

/* An overlay's own struct file has that of the layer below: is it this process's alone? */
static bool is_upper_alone(struct task_struct *task, const struct file *file)
{
	struct table below = { .inode = file_inode(file) }, upper = {};
	bool alone;

	search(task, &below, find_upper);
	if (!below.found)
		return false;
	upper.file = below.found;
	search(task, &upper, count_descriptor);
	alone = file_count(below.found) == upper.n + 1;
	fput(below.found);
	return alone;
}

/* Are all references to it the process's, and ours? */
static bool is_alone(struct task_struct *task, struct list_head *guards,
		     const struct mattx_guard *guard)
{
	struct table t = { .file = guard->file };
	const struct mattx_guard *g;
	long others = file_count(guard->file) - guard->maps;

	list_for_each_entry(g, guards, node)
		others -= g->file == guard->file;
	search(task, &t, count_descriptor);
	others -= t.n;
	return !others || (others == 1 && is_upper_alone(task, guard->file));
}

/* Who lists another's descriptors holds them for a moment, which nobody is told about. */
static bool is_alone_soon(struct task_struct *task, struct list_head *guards,
			  const struct mattx_guard *guard)
{
	int i;

	for (i = 0; i < TRIES; i++) {
		if (is_alone(task, guards, guard))
			return true;
		if (fatal_signal_pending(current))
			break;
		schedule_timeout_killable(1);
	}
	return false;
}

/**
 * mattx_guard_look() - would the shared memory of a running process move?
 * Context: process; may sleep, killable. Return: 0; -ENOTUNIQ: @arg says which does not;
 * another negative errno.
 */
int mattx_guard_look(struct mattx_ioc_shared *arg)
{
	struct task_struct *task;
	struct mattx_guard *g;
	LIST_HEAD(guards);
	struct pid *pid;
	int err;

	pid = find_get_pid(arg->pid);
	task = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	put_pid(pid);
	if (!task)
		return -ESRCH;
	err = look_at(task, &guards, arg);
	put_task_struct(task);
	list_for_each_entry(g, &guards, node) {
		if (err)
			break;
		if (g->writable && !is_opened_once(g->file))
			err = refuse(arg, g,
				     "is shared, and its file is open elsewhere");
		else if (!g->writable &&
			 inode_is_open_for_write(file_inode(g->file)))
			err = refuse(
				arg, g,
				"is shared, and its file is open for writing");
	}
	free_guards(&guards);
	return err;
}

/* ----------------------------------------------------------------- the lease */

/* Context: whoever opens the file; spinlocks are held. */
static bool lease_break(struct mattx_lease *lease)
{
	struct mattx_guard *g = mattx_lease_owner(lease);

	/* it may take as long as it takes */
	lease->fl_break_time = 0;
	lease->fl_downgrade_time = 0;
	mattx_guard_recall(g->gang);
	return false;
}

static const struct mattx_lease_operations lease_ops = {
	.lm_break = lease_break,
	.lm_change = lease_modify MATTX_LEASE_CONFLICT,
};

static bool is_leased(struct list_head *guards, const struct mattx_guard *guard)
{
	const struct mattx_guard *g;

	list_for_each_entry(g, guards, node)
		if (g->leased && g->file == guard->file)
			return true;
	return false;
}

/*
 * A read lease becomes a write lease. The kernel gives none for a memfd, or for anonymous
 * memory, because it counts the opener that there must be, and of these there is none.
 */
static int make_exclusive(struct mattx_guard *g, struct mattx_lease *lease)
{
	struct file_lock_context *ctx = mattx_lock_context(file_inode(g->file));
	int err;

	spin_lock(&ctx->flc_lock);
	err = lease_modify(lease, F_WRLCK, NULL);
	spin_unlock(&ctx->flc_lock);
	smp_mb(); /* break_lease() looks for leases after it has counted itself */
	return err ?: is_opened_once(g->file) ? 0 : -EAGAIN;
}

static int take_lease(struct mattx_guard *g)
{
	bool counted = g->file->f_mode & FMODE_WRITER;
	int type = g->writable && counted ? F_WRLCK : F_RDLCK, err;
	struct mattx_lease *lease =
		mattx_lease_alloc(g->file, type, g, &lease_ops);
	struct mattx_lease *given = lease;

	if (!lease)
		return -ENOMEM;
	err = vfs_setlease(g->file, type, &given, NULL);
	if (given)
		mattx_lease_free(given);
	g->leased = !err;
	if (!err && g->writable && !counted)
		err = make_exclusive(g, lease);
	return err;
}

static int take_one(struct task_struct *task, struct list_head *guards,
		    struct mattx_guard *g, struct mattx_ioc_shared *arg)
{
	int err;

	if (is_leased(guards, g))
		return 0;
	if (g->writable && !is_alone_soon(task, guards, g))
		return refuse(arg, g, "is shared, and others have its file");
	err = take_lease(g);
	if (err == -EAGAIN)
		return refuse(
			arg, g,
			g->writable ?
				"is shared, and its file is open elsewhere" :
				"is shared, and its file is open for writing");
	if (err == -EINVAL || err == -EOPNOTSUPP)
		return refuse(arg, g,
			      "is shared, and its file system gives no leases");
	return err;
}

/* The file's number. */
static unsigned int object(struct list_head *guards,
			   const struct mattx_guard *guard)
{
	const struct mattx_guard *g;
	unsigned int n = 0;

	list_for_each_entry(g, guards, node) {
		if (g->file == guard->file)
			break;
		n++;
	}
	return n;
}

/* What the daemon is told of, and later the host. */
static int set_ranges(struct mattx_gang *gang, struct list_head *guards)
{
	struct mattx_range *ranges;
	struct mattx_guard *g;
	unsigned int n = 0;

	list_for_each_entry(g, guards, node)
		n += g->writable;
	ranges = kvmalloc_array(n ?: 1, sizeof(*ranges), GFP_KERNEL);
	if (!ranges)
		return -ENOMEM;
	n = 0;
	list_for_each_entry(g, guards, node)
		if (g->writable)
			ranges[n++] = (struct mattx_range){
				.start = g->start,
				.end = g->end,
				.kind = g->kept ? MATTX_RANGE_KEPT :
						  MATTX_RANGE_SHARED,
				.object = object(guards, g),
			};
	spin_lock_irq(&gang->lock);
	swap(gang->ranges, ranges);
	gang->nr_ranges = n;
	spin_unlock_irq(&gang->lock);
	kvfree(ranges);
	return 0;
}

static void install(struct mattx_gang *gang, struct list_head *guards)
{
	if (list_empty(guards))
		return;
	mattx_gang_hold(gang);
	spin_lock_irq(&gang->lock);
	list_splice_init(guards, &gang->guards);
	spin_unlock_irq(&gang->lock);
}

/**
 * mattx_guard_take() - stand before all shared memory of a frozen process
 * Context: process, gang->door held; sleeps, killable. Return: as mattx_guard_look().
 */
int mattx_guard_take(struct mattx_gang *gang, struct mattx_ioc_shared *arg)
{
	struct mattx_thread *thread;
	struct mattx_guard *g;
	LIST_HEAD(guards);
	int err;

	if (gang->role != MATTX_ROLE_HOME ||
	    READ_ONCE(gang->state) != MATTX_GANG_FROZEN ||
	    !list_empty(&gang->guards))
		return -EINVAL;
	thread = mattx_gang_any(gang);
	if (!thread)
		return -ESRCH;
	arg->from = 0;
	err = look_at(thread->task, &guards, arg);
	list_for_each_entry(g, &guards, node) {
		if (err)
			break;
		g->gang = gang;
		err = take_one(thread->task, &guards, g, arg);
	}
	mattx_thread_put(thread);
	if (!err)
		err = set_ranges(gang, &guards);
	if (!err)
		install(gang, &guards);
	free_guards(&guards);
	return err;
}

/* --------------------------------------------------------- somebody asks for it */

/* Context: any. The gang may be on its last way. */
void mattx_guard_recall(struct mattx_gang *gang)
{
	unsigned long flags;

	if (!kref_get_unless_zero(&gang->ref))
		return;
	spin_lock_irqsave(&gang->lock, flags);
	gang->recalled = true;
	spin_unlock_irqrestore(&gang->lock, flags);
	if (!mattx_gang_queue(&gang->recall_work))
		mattx_gang_put(gang);
}

/* One that has not left yet is asked when it has: become_deputy(). */
void mattx_guard_recall_work(struct work_struct *work)
{
	struct mattx_gang *gang =
		container_of(work, struct mattx_gang, recall_work);
	enum mattx_gang_state state = READ_ONCE(gang->state);

	if (state == MATTX_GANG_DEPUTY || state == MATTX_GANG_ARMED)
		mattx_link_send(gang->peer, MATTX_F_RECALL, gang->id, NULL, 0,
				NULL, 0, GFP_KERNEL | __GFP_NOFAIL);
	mattx_gang_put(gang);
}

/* ------------------------------------------------------------------ its contents */

/* Return: the guard of an address, while it stands; gang->lock is held. */
static struct mattx_guard *guard_at(struct mattx_gang *gang, u64 addr)
{
	struct mattx_guard *g;

	lockdep_assert_held(&gang->lock);
	list_for_each_entry(g, &gang->guards, node)
		if (g->writable && addr >= g->start && addr < g->end)
			return g;
	return NULL;
}

/**
 * mattx_guard_file() - what is mapped at an address
 * @len: bytes from there on; becomes fewer, as far as this mapping goes
 * @pos: out: of it in the file
 * Context: process. Return: the file, with a reference, or NULL.
 */
struct file *mattx_guard_file(struct mattx_gang *gang, u64 addr, u64 *len,
			      loff_t *pos)
{
	struct file *file = NULL;
	struct mattx_guard *g;

	spin_lock_irq(&gang->lock);
	g = guard_at(gang, addr);
	if (g) {
		file = get_file(g->file);
		*len = min_t(u64, *len, g->end - addr);
		*pos = g->pos + (addr - g->start);
	}
	spin_unlock_irq(&gang->lock);
	return file;
}

/**
 * mattx_guard_seek() - lseek(2) with SEEK_DATA or SEEK_HOLE
 *
 * Everybody who has the file could notice; but who has it stands still.
 * Context: process; may sleep. Return: the position, or a negative errno.
 */
loff_t mattx_guard_seek(struct file *file, loff_t pos, int whence)
{
	loff_t was = file->f_pos, ret;

	if (!(file->f_mode & FMODE_LSEEK))
		return whence == SEEK_DATA ? pos : LLONG_MAX;
	ret = vfs_llseek(file, pos, whence);
	file->f_pos = was;
	return ret;
}

/**
 * mattx_guard_data() - where there is something else than a hole
 * Context: process, gang->door held; the gang is FROZEN. Sleeps.
 * Return: 0; -ENXIO: nothing in this range; another negative errno.
 */
int mattx_guard_data(struct mattx_gang *gang, struct mattx_ioc_data *arg)
{
	loff_t pos, from, to;
	struct file *file;
	u64 len;

	if (READ_ONCE(gang->state) != MATTX_GANG_FROZEN || arg->start >= arg->end)
		return -EINVAL;
	len = arg->end - arg->start;
	file = mattx_guard_file(gang, arg->start, &len, &pos);
	if (!file)
		return -EINVAL;
	from = mattx_guard_seek(file, pos, SEEK_DATA);
	to = from < 0 ? from : mattx_guard_seek(file, from, SEEK_HOLE);
	fput(file);
	if (to < 0)
		return to;
	if (from >= pos + (loff_t)len)
		return -ENXIO;
	from = max_t(loff_t, round_down(from, PAGE_SIZE), pos);
	to = min_t(loff_t, to, pos + len);
	arg->end = arg->start + PAGE_ALIGN(to - pos);
	arg->start += from - pos;
	return 0;
}

/* ------------------------------------------------------------------ for reach.c */

bool mattx_guard_any(struct mattx_gang *gang)
{
	return !list_empty_careful(&gang->guards);
}

bool mattx_guard_has(struct mattx_gang *gang, const struct inode *inode)
{
	struct mattx_guard *g;
	bool hit = false;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(g, &gang->guards, node)
		hit = hit || file_inode(g->file) == inode;
	spin_unlock_irq(&gang->lock);
	return hit;
}
