// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a deputy that would reach shared memory which is away with the guest, past
 * the guards of gang/guard.c: by descriptors that the process has itself. They are not
 * made, and the guest goes home for them.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/socket.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <asm/unistd.h>

#include "gang/gang.h"
#include "wormhole/rpc.h"

/* Which of its arguments are descriptors through which it reaches contents. */
static unsigned int descriptors(u32 nr, const u64 *args)
{
	switch (nr) {
	case __NR_read:
	case __NR_write:
	case __NR_pread64:
	case __NR_pwrite64:
	case __NR_readv:
	case __NR_writev:
	case __NR_preadv:
	case __NR_pwritev:
	case __NR_preadv2:
	case __NR_pwritev2:
	case __NR_ftruncate:
	case __NR_fallocate:
	case __NR_fsync:
	case __NR_fdatasync:
	case __NR_sync_file_range:
	case __NR_ioctl:
		return BIT(0);
	case __NR_lseek:
		return (u32)args[2] == SEEK_DATA || (u32)args[2] == SEEK_HOLE ?
			       BIT(0) :
			       0;
	case __NR_fcntl:
		return (u32)args[1] == F_SETLEASE || (u32)args[1] == F_GETLEASE ?
			       BIT(0) :
			       0;
	case __NR_sendfile:
		return BIT(0) | BIT(1);
	case __NR_splice:
	case __NR_copy_file_range:
		return BIT(0) | BIT(2);
	case __NR_mmap:
		return args[3] & MAP_ANONYMOUS ? 0 : BIT(4);
	default:
		return 0;
	}
}

static bool reaches(struct mattx_gang *gang, unsigned int fd)
{
	struct file *file = fget(fd);
	bool hit;

	if (!file)
		return false;
	hit = mattx_guard_has(gang, file_inode(file)) ||
	      (S_ISREG(file_inode(file)->i_mode) &&
	       mattx_guard_has(gang, d_real_inode(file->f_path.dentry)));
	fput(file);
	return hit;
}

bool mattx_reach_denied(struct mattx_thread *thread, u32 nr, const u64 *args)
{
	struct mattx_gang *gang = thread->gang;
	unsigned int mask, i;

	if (!mattx_guard_any(gang))
		return false;
	switch (nr) {
	case __NR_sync:
	case __NR_syncfs:
	case __NR_truncate: /* an overlay's breaks no lease of the layer below */
		return true;
	case __NR_linkat: /* gives a name to what has none */
		return args[4] & (AT_EMPTY_PATH | AT_SYMLINK_FOLLOW);
	}
	mask = descriptors(nr, args);
	for (i = 0; mask >> i; i++)
		if (mask & BIT(i) && reaches(gang, args[i]))
			return true;
	return false;
}

/* Does a message that is to be sent carry descriptors? */
static bool has_rights(const struct user_msghdr *msg)
{
	struct cmsghdr head;
	size_t at = 0;

	while (msg->msg_controllen >= at + sizeof(head)) {
		if (copy_from_user(&head, (u8 __user *)msg->msg_control + at,
				   sizeof(head)) ||
		    head.cmsg_len < sizeof(head))
			return false; /* the kernel says what is wrong with it */
		if (head.cmsg_level == SOL_SOCKET && head.cmsg_type == SCM_RIGHTS)
			return true;
		if (head.cmsg_len > msg->msg_controllen - at)
			return false;
		at += CMSG_ALIGN(head.cmsg_len);
	}
	return false;
}

bool mattx_reach_message(struct mattx_thread *thread, u32 nr, unsigned long vec,
			 unsigned int n)
{
	struct mmsghdr __user *at = (struct mmsghdr __user *)vec;
	struct user_msghdr msg;
	unsigned int i;

	if (!mattx_guard_any(thread->gang) ||
	    (nr != __NR_sendmsg && nr != __NR_sendmmsg))
		return false;
	/* as the kernel: no more than so many, and none behind a bad one */
	n = nr == __NR_sendmsg ? 1 : min_t(unsigned int, n, UIO_MAXIOV);
	for (i = 0; i < n; i++) {
		if (copy_from_user(&msg, &at[i].msg_hdr, sizeof(msg)))
			break;
		if (has_rights(&msg))
			return true;
	}
	return false;
}

bool mattx_reach_refused(struct mattx_thread *thread, u32 nr, long ret)
{
	if (ret != -EAGAIN || !mattx_guard_any(thread->gang))
		return false;
	return nr == __NR_open || nr == __NR_openat || nr == __NR_openat2 ||
	       nr == __NR_creat;
}
