// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of another process that its own protection forbids. /proc/PID/mem gives that to
 * debuggers only on kernels with CONFIG_PROC_MEM_FORCE_PTRACE, and mattxd is none.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "memory.h"

/* What lies in one page. Return: bytes moved, or a negative errno. */
static int move_piece(struct task_struct *task,
		      const struct mattx_ioc_memory *arg, u32 at, void *page)
{
	void __user *user = u64_to_user_ptr(arg->ptr) + at;
	unsigned long addr = arg->addr + at;
	int len = min_t(u32, arg->len - at, PAGE_SIZE - offset_in_page(addr));

	if (arg->write && copy_from_user(page, user, len))
		return -EFAULT;
	len = access_process_vm(task, addr, page, len,
				arg->write ? FOLL_FORCE | FOLL_WRITE :
					     FOLL_FORCE);
	if (!len)
		return -EIO;
	return !arg->write && copy_to_user(user, page, len) ? -EFAULT : len;
}

int mattx_memory_move(struct mattx_ioc_memory *arg)
{
	struct pid *pid = find_get_pid(arg->pid);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_TGID);
	void *page = kmalloc(PAGE_SIZE, GFP_KERNEL);
	int ret = !task ? -ESRCH : !page ? -ENOMEM : 1;
	u32 at = 0;

	while (ret > 0 && at < arg->len) {
		ret = fatal_signal_pending(current) ?
			      -EINTR :
			      move_piece(task, arg, at, page);
		if (ret > 0)
			at += ret;
		cond_resched();
	}
	kfree(page);
	if (task)
		put_task_struct(task);
	put_pid(pid);
	arg->len = at;
	return at ? 0 : ret;
}
