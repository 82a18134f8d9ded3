/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every difference between kernel versions lives here; the rest of the module
 * is written as if there were one kernel.
 */
#ifndef _MATTX_COMPAT_H
#define _MATTX_COMPAT_H

#include <linux/fs.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/restart_block.h>
#include <linux/rseq.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/signal.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <asm/msr.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#include <linux/filelock.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/*
 * sched_clock() of when a task fell asleep, 0 when it runs or that is not known: when it
 * came to the CPU last, and for how long it has run since.
 */
static inline u64 mattx_asleep_since(struct task_struct *task)
{
#ifdef CONFIG_SCHED_INFO
	u64 arrival = task->sched_info.last_arrival;
	u64 ran = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;

	return READ_ONCE(task->__state) == TASK_RUNNING || !arrival ?
		       0 :
		       arrival + ran;
#else
	return 0;
#endif
}

/*
 * Has the task left the CPU to sleep? One that has only set its state to sleep, and then
 * was preempted or had its CPU taken away by a hypervisor, has not.
 */
static inline bool mattx_is_asleep(struct task_struct *task)
{
#ifdef CONFIG_SMP
	if (READ_ONCE(task->on_cpu))
		return false;
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	/* stays on the queue for a while, but does not run */
	if (READ_ONCE(task->se.sched_delayed))
		return true;
#endif
	return !READ_ONCE(task->on_rq);
}

/*
 * rax of any task as it stands in its registers. A stack is freed after a grace period,
 * and taken from the task before. Return: whether it still has one.
 */
static inline bool mattx_peek_ax(struct task_struct *task, long *ax)
{
	void *stack;

	rcu_read_lock();
	stack = READ_ONCE(task->stack);
	if (stack)
		*ax = READ_ONCE(((struct pt_regs *)(stack + THREAD_SIZE -
						    TOP_OF_KERNEL_STACK_PADDING) -
				 1)
					->ax);
	rcu_read_unlock();
	return stack;
}

/*
 * mattx_fput_now() - fput() that has released the file, if it was the last, on return
 *
 * fput() leaves that to the task's way to user mode, which for a thread in the park is
 * far. Context: process; sleeps.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
struct mattx_fput {
	struct work_struct work;
	struct file *file;
};

static inline void mattx_fput_work(struct work_struct *work)
{
	__fput_sync(container_of(work, struct mattx_fput, work)->file);
}

/* Only a kernel thread may do it. */
static inline void mattx_fput_now(struct file *file)
{
	struct mattx_fput put = { .file = file };

	INIT_WORK_ONSTACK(&put.work, mattx_fput_work);
	queue_work(system_unbound_wq, &put.work);
	flush_work(&put.work);
	destroy_work_on_stack(&put.work);
}
#else
static inline void mattx_fput_now(struct file *file)
{
	__fput_sync(file);
}
#endif

/* futex_wait(2), which the headers of older kernels do not know */
#define MATTX_NR_FUTEX_WAIT 455

/* Takes the next signal of current's that @mask does not block; siglock is held. */
static inline int mattx_dequeue_signal(sigset_t *mask, kernel_siginfo_t *info,
				       enum pid_type *type)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	return dequeue_signal(current, mask, info, type);
#else
	return dequeue_signal(mask, info, type);
#endif
}

/* include/futex flags as the kernel keeps them in a restart block */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define MATTX_KFUTEX_SHARED  0x01
#define MATTX_KFUTEX_CLOCKRT 0x02
#define MATTX_KFUTEX_TIMEOUT 0x04
#define MATTX_KFUTEX_BASE    0x00
#else
#define MATTX_KFUTEX_SHARED  0x0010
#define MATTX_KFUTEX_CLOCKRT 0x0020
#define MATTX_KFUTEX_TIMEOUT 0x0040
#define MATTX_KFUTEX_BASE    0x0002 /* FLAGS_SIZE_32 */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define rdmsrq rdmsrl
#define wrmsrq wrmsrl
#endif

/* The user's fs and gs base of current, which may be live in the CPU. */
static inline void mattx_read_bases(u64 *fs, u64 *gs)
{
	preempt_disable();
	rdmsrq(MSR_FS_BASE, *fs);
	rdmsrq(MSR_KERNEL_GS_BASE, *gs);
	preempt_enable();
}

static inline void mattx_write_bases(u64 fs, u64 gs)
{
	preempt_disable();
	loadsegment(fs, 0);
	current->thread.fsindex = 0;
	current->thread.gsindex = 0;
	current->thread.fsbase = fs;
	current->thread.gsbase = gs;
	wrmsrq(MSR_FS_BASE, fs);
	wrmsrq(MSR_KERNEL_GS_BASE, gs);
	preempt_enable();
}

/* Longer areas have what the second version of the interface brought. */
#define MATTX_RSEQ_V1_LEN 32

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
static inline void mattx_rseq_get(u64 *ptr, u32 *len, u32 *sig)
{
	*ptr = (unsigned long)current->rseq;
	*sig = current->rseq_sig;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	*len = current->rseq ? sizeof(struct rseq) : 0;
#else
	*len = current->rseq_len;
#endif
}

/* Registers current's rseq area without touching it; @ptr 0: none. */
static inline void mattx_rseq_set(u64 ptr, u32 len, u32 sig)
{
	current->rseq = (struct rseq __user *)(unsigned long)ptr;
	current->rseq_sig = sig;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	current->rseq_len = len;
#endif
	if (ptr) {
		set_bit(RSEQ_EVENT_PREEMPT_BIT, &current->rseq_event_mask);
		rseq_set_notify_resume(current);
	}
}
#else
static inline void mattx_rseq_get(u64 *ptr, u32 *len, u32 *sig)
{
	*ptr = (unsigned long)current->rseq.usrptr;
	*len = current->rseq.len;
	*sig = current->rseq.sig;
}

/*
 * Registers current's rseq area without touching it; @ptr 0: none. The kernel kills a
 * thread whose area does not say what it wrote there last, so what another node's kernel
 * has written is taken for that.
 */
static inline void mattx_rseq_set(u64 ptr, u32 len, u32 sig)
{
	struct rseq __user *area = (void __user *)(unsigned long)ptr;
	struct rseq_data data = {};
	unsigned long flags;

	data.ids.cpu_id = RSEQ_CPU_ID_UNINITIALIZED;
	if (ptr && !get_user(data.ids.cpu_id, &area->cpu_id) &&
	    !get_user(data.ids.mm_cid, &area->mm_cid) &&
	    !get_user(data.ids.node_id, &area->node_id)) {
		data.usrptr = area;
		data.len = len;
		data.sig = sig;
		data.event.has_rseq = len > MATTX_RSEQ_V1_LEN ? 2 : 1;
		data.event.user_irq = true; /* look for a critical section */
	}
	local_irq_save(flags); /* the scheduler and membarrier change it too */
	current->rseq = data;
	rseq_force_update();
	local_irq_restore(flags);
}
#endif

/* When a poll that is to be restarted ends, monotonic ns. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
static inline s64 mattx_poll_end(const struct restart_block *block)
{
	return ktime_set(block->poll.tv_sec, block->poll.tv_nsec);
}

static inline void mattx_poll_set_end(struct restart_block *block, s64 ns)
{
	struct timespec64 end = ns_to_timespec64(ns);

	block->poll.tv_sec = end.tv_sec;
	block->poll.tv_nsec = end.tv_nsec;
}
#else
static inline s64 mattx_poll_end(const struct restart_block *block)
{
	return timespec64_to_ktime(block->poll.end_time);
}

static inline void mattx_poll_set_end(struct restart_block *block, s64 ns)
{
	block->poll.end_time = ns_to_timespec64(ns);
}
#endif

/* The head of current's robust futex list. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define mattx_robust_list(task) ((task)->robust_list)
#else
#define mattx_robust_list(task) ((task)->futex.robust_list)
#endif

/* Arguments of the tracepoint sched_process_exit behind its data pointer. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define MATTX_TP_EXIT_ARGS struct task_struct *task
#else
#define MATTX_TP_EXIT_ARGS struct task_struct *task, bool group_dead
#endif

/* A lease that this module holds for @owner. NULL: no memory. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define mattx_lease	     file_lock
#define mattx_lease_free(l)  locks_free_lock(l)
#define mattx_lease_owner(l) ((l)->fl_owner)

static inline struct file_lock *
mattx_lease_alloc(struct file *file, int type, void *owner,
		  const struct lock_manager_operations *ops)
{
	struct file_lock *lease = locks_alloc_lock();

	if (!lease)
		return NULL;
	lease->fl_lmops = ops;
	lease->fl_owner = owner;
	lease->fl_file = file;
	lease->fl_flags = FL_LEASE;
	lease->fl_type = type;
	lease->fl_end = OFFSET_MAX;
	return lease;
}
#define mattx_lease_operations lock_manager_operations
#else
#define mattx_lease	       file_lease
#define mattx_lease_free(l)    locks_free_lease(l)
#define mattx_lease_owner(l)   ((l)->c.flc_owner)

static inline struct file_lease *
mattx_lease_alloc(struct file *file, int type, void *owner,
		  const struct lease_manager_operations *ops)
{
	struct file_lease *lease = locks_alloc_lease();

	if (!lease)
		return NULL;
	lease->fl_lmops = ops;
	lease->c.flc_owner = owner;
	lease->c.flc_file = file;
	lease->c.flc_flags = FL_LEASE;
	lease->c.flc_type = type;
	return lease;
}
#define mattx_lease_operations lease_manager_operations
#endif

/*
 * Who grants a lease asks its manager whether others have the file open so that it must
 * not be given: to write, for a read lease; in any way, for a write lease. Older kernels
 * see to that themselves. Stands behind the last of a manager's operations.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define MATTX_LEASE_CONFLICT
#else
static inline int mattx_lease_conflict(struct file *file, int type)
{
	struct inode *inode = file_inode(file);
	int writes = !!(file->f_mode & FMODE_WRITE);
	int reads = !writes && file->f_mode & FMODE_READ;

	if (type == F_RDLCK)
		return inode_is_open_for_write(inode) ? -EAGAIN : 0;
	return atomic_read(&inode->i_writecount) == writes &&
			       atomic_read(&inode->i_readcount) == reads ?
		       0 :
		       -EAGAIN;
}
#define MATTX_LEASE_CONFLICT , .lm_open_conflict = mattx_lease_conflict
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define mattx_lock_context(inode) smp_load_acquire(&(inode)->i_flctx)
#else
#define mattx_lock_context(inode) locks_inode_context(inode)
#endif

/* The attributes of the request that a dump answers; the includer has net/genetlink.h. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define mattx_dump_attrs(cb) (genl_dumpit_info(cb)->attrs)
#else
#define mattx_dump_attrs(cb) (genl_dumpit_info(cb)->info.attrs)
#endif

#endif
