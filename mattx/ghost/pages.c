// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest has mapped of files at home.
 *
 * The deputy has the file mapped; here is a file of a pseudo file system, one for each
 * mapping, whose contents are the deputy's memory there. So the kernel's page cache does
 * the rest: read-ahead, pages that several threads wait for, pages to be had back when
 * memory is short.
 *
 *	mapping (VMA) -> struct file -> struct mattx_ghost_pages -> gang
 *
 * each holding the next. The mount is there as long as one of the files is, for a mounted
 * file system keeps its module from being unloaded.
 *
 * Only the guest's own threads can have a page fetched, since their deputies do it.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "gang/gang.h"
#include "ghost/count.h"
#include "ghost/pages.h"
#include "wormhole/protocol.h"
#include "wormhole/rpc.h"

#define GHOST_MAGIC 0x5874614d
#define GHOST_NAME  "[mattx-file]" /* what mattxd knows such a mapping by */

struct mattx_ghost_pages {
	struct mattx_gang *gang; /* holds a reference */
	unsigned long home;	 /* where the deputy has it, 0: nowhere yet */
};

static struct vfsmount *ghost_mount; /* simple_pin_fs() */
static int ghost_mounted;

/* --------------------------------------------------------------- contents */

/* Has @gang's deputy what @of's has, since one is a child of the other, or both of a third? */
static bool is_related(const struct mattx_gang *gang, const struct mattx_gang *of)
{
	return (gang->root ?: gang) == (of->root ?: of);
}

/*
 * Bytes [pos, pos + len) of it, as many as home has, behind a reply to be freed.
 * Return: how many, in whole pages; or a negative errno.
 */
static long fetch(const struct mattx_ghost_pages *pages, loff_t pos, u32 len,
		  struct mattx_frame_reply **reply)
{
	unsigned long home = READ_ONCE(pages->home);
	struct mattx_thread *thread;

	if (!home || mattx_caller(&thread) != MATTX_IS_GUEST ||
	    !is_related(thread->gang, pages->gang))
		return -EIO;
	mattx_ghost_count(MATTX_COUNT_FETCHES, 1);
	return mattx_rpc_fetch(thread, home + pos, len, reply);
}

/* Gives a locked folio the contents at @from, or none. */
static void fill(struct folio *folio, const void *from)
{
	if (from) {
		memcpy(folio_address(folio), from, folio_size(folio));
		mattx_ghost_count(MATTX_COUNT_PAGES, folio_nr_pages(folio));
		folio_mark_uptodate(folio);
	}
	folio_unlock(folio);
}

static int ghost_read_folio(struct file *file, struct folio *folio)
{
	struct mattx_frame_reply *reply = NULL;
	long got = -EIO;

	if (file)
		got = fetch(file->private_data, folio_pos(folio),
			    folio_size(folio), &reply);
	if (got >= 0 && got < folio_size(folio))
		got = -EIO;
	fill(folio, got < 0 ? NULL : reply + 1);
	kvfree(reply);
	return min(got, 0L);
}

/* What cannot be had is asked for again by ghost_read_folio(), if it is needed. */
static void ghost_readahead(struct readahead_control *rac)
{
	u32 len = min_t(size_t, readahead_length(rac), MATTX_FETCH_MAX);
	struct mattx_frame_reply *reply = NULL;
	loff_t begin = readahead_pos(rac), at;
	struct folio *folio;
	long got = -EIO;

	if (rac->file)
		got = fetch(rac->file->private_data, begin, len, &reply);
	while ((folio = readahead_folio(rac))) {
		at = folio_pos(folio) - begin;
		fill(folio, at + (loff_t)folio_size(folio) <= got ?
				    (void *)(reply + 1) + at :
				    NULL);
	}
	kvfree(reply);
}

static const struct address_space_operations ghost_aops = {
	.read_folio = ghost_read_folio,
	.readahead = ghost_readahead,
};

/* ------------------------------------------------------- the file system */

static int ghost_release(struct inode *inode, struct file *file)
{
	struct mattx_ghost_pages *pages = file->private_data;

	mattx_gang_put(pages->gang);
	kfree(pages);
	simple_release_fs(&ghost_mount, &ghost_mounted);
	return 0;
}

static const struct file_operations ghost_fops = {
	.owner = THIS_MODULE,
	.mmap = generic_file_mmap,
	.release = ghost_release,
};

static char *ghost_dname(struct dentry *dentry, char *buf, int len)
{
	if (len < sizeof(GHOST_NAME))
		return ERR_PTR(-ENAMETOOLONG);
	return memcpy(buf + len - sizeof(GHOST_NAME), GHOST_NAME,
		      sizeof(GHOST_NAME));
}

static const struct dentry_operations ghost_dops = {
	.d_dname = ghost_dname,
};

static int ghost_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, GHOST_MAGIC);

	if (!ctx)
		return -ENOMEM;
	ctx->dops = &ghost_dops;
	/* libraries are mapped; whether that may be, home says */
	fc->s_iflags &= ~SB_I_NOEXEC;
	return 0;
}

static struct file_system_type ghost_fs = {
	.name = "mattx",
	.owner = THIS_MODULE,
	.init_fs_context = ghost_context,
	.kill_sb = kill_anon_super,
};

static struct inode *ghost_inode(unsigned long len)
{
	struct inode *inode = alloc_anon_inode(ghost_mount->mnt_sb);

	if (!IS_ERR(inode)) {
		inode->i_mapping->a_ops = &ghost_aops;
		i_size_write(inode, len);
	}
	return inode;
}

/* The mount is pinned; on success the pin is the file's, and so is @pages. */
static struct file *open_pinned(struct mattx_ghost_pages *pages, unsigned long len)
{
	struct inode *inode = ghost_inode(len);
	struct file *file;

	if (IS_ERR(inode))
		return ERR_CAST(inode);
	__module_get(THIS_MODULE); /* closing the file gives back ghost_fops.owner */
	file = alloc_file_pseudo(inode, ghost_mount, GHOST_NAME,
				 O_RDONLY | O_NOATIME, &ghost_fops);
	if (IS_ERR(file)) {
		module_put(THIS_MODULE);
		iput(inode);
		return file;
	}
	file->f_ra.ra_pages = MATTX_FETCH_MAX / PAGE_SIZE;
	file->private_data = pages;
	return file;
}

struct file *mattx_ghost_open(struct mattx_gang *gang, unsigned long len)
{
	struct mattx_ghost_pages *pages = kzalloc(sizeof(*pages), GFP_KERNEL);
	struct file *file;
	int err;

	if (!pages)
		return ERR_PTR(-ENOMEM);
	err = simple_pin_fs(&ghost_fs, &ghost_mount, &ghost_mounted);
	if (err) {
		kfree(pages);
		return ERR_PTR(err);
	}
	pages->gang = mattx_gang_hold(gang);
	file = open_pinned(pages, len);
	if (IS_ERR(file)) {
		simple_release_fs(&ghost_mount, &ghost_mounted);
		mattx_gang_put(gang);
		kfree(pages);
	}
	return file;
}

void mattx_ghost_at(struct file *file, unsigned long home)
{
	struct mattx_ghost_pages *pages = file->private_data;

	WRITE_ONCE(pages->home, home);
}

bool mattx_ghost_any(unsigned long start, unsigned long len)
{
	unsigned long end = start + len;
	struct vm_area_struct *vma;
	bool any = false;

	if (mmap_read_lock_killable(current->mm))
		return false; /* it is killed */
	for (vma = find_vma(current->mm, start);
	     vma && vma->vm_start < end && !any;
	     vma = find_vma(current->mm, vma->vm_end))
		any = vma->vm_file && vma->vm_file->f_op == &ghost_fops;
	mmap_read_unlock(current->mm);
	return any;
}
