// SPDX-License-Identifier: GPL-2.0
/*
 * The park, and the calls that a parked thread makes.
 *
 * A thread is in the park from its task_work until it is told to leave. To make
 * a job's call it goes out to user mode on the stub,
 *
 *	stub:	syscall
 *		int3
 *
 * with the job's registers, and the trap brings it back: our die notifier takes
 * a breakpoint at just that place of just that thread and queues the park again,
 * which runs before the thread sees user mode. (The park cannot queue itself
 * while it runs: task_work_run() goes on until the list is empty.) Every signal
 * but SIGKILL is blocked all the while, so that the kernel delivers none on the stub.
 *
 * Flags of a thread: BODY from its arrival to its departure, PARKED while it
 * waits, CALL while it is out.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/freezer.h>
#include <linux/fs.h>
#include <linux/kdebug.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/fpu/api.h>
#include "internal.h"
#include "../compat.h"
#include "../fault.h"
#include "../main.h"
#include "../wormhole/hooks.h"

#define STUB_CALL 0 /* offset of syscall */
#define STUB_TRAP 2 /* offset of int3 */

/* In rcx, into which SYSCALL puts an address, or nothing (FRED): it was not made. */
#define NOT_MADE (-1L)

/*
 * Where a deputy has its stub and its buffers if there is room: far from what either
 * kernel hands out, because a guest's mapping of a file is made at home at the address
 * that the host has chosen.
 */
#define OURS 0x200000000000UL

static struct page *stub_page;

/* ------------------------------------------------------------------- stub */

static int stub_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE ||
	    vma->vm_flags & (VM_WRITE | VM_SHARED))
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_set(vma, VM_EXEC | VM_MAYEXEC | VM_DONTCOPY | VM_DONTEXPAND |
				  VM_DONTDUMP);
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	return vm_insert_page(vma, vma->vm_start, stub_page);
}

static const struct file_operations stub_fops = {
	.owner = THIS_MODULE,
	.mmap = stub_mmap,
};

/* The same, as if current's process had no mappings. */
static unsigned long map_uncounted(struct file *file, unsigned long addr,
				   unsigned long len, unsigned long prot,
				   unsigned long flags)
{
	struct mm_struct *mm = current->mm;
	unsigned long at;
	int n;

	if (mmap_write_lock_killable(mm))
		return -EINTR;
	n = mm->map_count;
	mm->map_count -= n;
	mmap_write_unlock(mm);
	at = vm_mmap(file, addr, len, prot, flags, 0);
	mmap_write_lock(mm);
	mm->map_count += n;
	mmap_write_unlock(mm);
	return at;
}

/*
 * Maps something of ours in current. A process that has as many mappings as it may have
 * must be able to move, so ours are not counted against it. (A kernel that checks its count
 * of them at every step would stop at that.)
 */
static unsigned long map_ours(struct file *file, unsigned long addr,
			      unsigned long len, unsigned long prot,
			      unsigned long flags)
{
	unsigned long at = vm_mmap(file, addr, len, prot, flags, 0);

	if (at != -ENOMEM || IS_ENABLED(CONFIG_DEBUG_VM_MAPLE_TREE))
		return at;
	return map_uncounted(file, addr, len, prot, flags);
}

/* Maps the stub and its scratch at @addr in current. */
static int stub_map(unsigned long addr, unsigned long len)
{
	unsigned long at;
	struct file *file;

	file = anon_inode_getfile("[mattx-stub]", &stub_fops, NULL, O_RDONLY);
	if (IS_ERR(file))
		return PTR_ERR(file);
	at = map_ours(file, addr, PAGE_SIZE, PROT_READ,
		      MAP_PRIVATE | MAP_FIXED_NOREPLACE);
	fput(file);
	if (IS_ERR_VALUE(at))
		return at;
	if (len > PAGE_SIZE) {
		at = map_ours(NULL, addr + PAGE_SIZE, len - PAGE_SIZE,
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
		if (IS_ERR_VALUE(at)) {
			vm_munmap(addr, PAGE_SIZE);
			return at;
		}
	}
	return 0;
}

/**
 * mattx_body_first_stub() - put the stub into current, which becomes a body
 * Context: process. Return: 0 or a negative errno.
 */
int mattx_body_first_stub(struct mattx_gang *gang, u64 addr, u64 len)
{
	int err = stub_map(addr, len);

	if (!err) {
		gang->stub = addr;
		gang->stub_len = len;
	}
	return err;
}

/* Takes everything of ours out of current's address space. */
static void stub_unmap_all(struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	unsigned long addr, len;

	for (;;) {
		addr = 0;
		spin_lock_irq(&gang->lock);
		list_for_each_entry(thread, &gang->threads, node) {
			if (!thread->scratch)
				continue;
			addr = thread->scratch;
			len = thread->scratch_len;
			thread->scratch = 0;
			break;
		}
		spin_unlock_irq(&gang->lock);
		if (!addr)
			break;
		vm_munmap(addr, len);
	}
	if (gang->stub)
		vm_munmap(gang->stub, gang->stub_len);
	gang->stub = 0;
}

/* Does [start, start + len) touch the stub or a thread's buffer? */
static bool touches_ours(struct mattx_gang *gang, unsigned long start,
			 unsigned long len)
{
	unsigned long end = start + len, flags;
	struct mattx_thread *thread;
	bool hit;

	spin_lock_irqsave(&gang->lock, flags);
	hit = end < start ||
	      (start < gang->stub + gang->stub_len && end > gang->stub);
	list_for_each_entry(thread, &gang->threads, node)
		hit = hit || (thread->scratch &&
			      start < thread->scratch + thread->scratch_len &&
			      end > thread->scratch);
	spin_unlock_irqrestore(&gang->lock, flags);
	return hit;
}

bool mattx_body_in_the_way(struct mattx_gang *gang, u32 nr, unsigned long start,
			   unsigned long len)
{
	if (gang->lender)
		gang = gang->lender->gang;
	switch (nr) {
	case __NR_mmap:
	case __NR_munmap:
	case __NR_mprotect:
	case __NR_madvise:
		return touches_ours(gang, start, len);
	default:
		return false;
	}
}

/* A process that current creates does not inherit it, as far as that can be had. */
static void keep_to_ourselves(unsigned long addr, unsigned long len)
{
	struct pt_regs regs = { .orig_ax = __NR_madvise,
				.di = addr,
				.si = len,
				.dx = MADV_DONTFORK };

	mattx_native(__NR_madvise, &regs);
}

unsigned long mattx_body_scratch(struct mattx_thread *thread, unsigned long len)
{
	unsigned long at;

	/* while its memory is lent, the thread makes no call of its own */
	if (thread->gang->lender)
		thread = thread->gang->lender;
	len = PAGE_ALIGN(max(len, 1UL));
	if (thread->scratch && thread->scratch_len >= len)
		return thread->scratch;
	if (thread->scratch)
		vm_munmap(thread->scratch, thread->scratch_len);
	thread->scratch = 0;
	at = map_ours(NULL, OURS, len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS);
	if (IS_ERR_VALUE(at))
		return 0;
	keep_to_ourselves(at, len);
	thread->scratch_len = len;
	thread->scratch = at;
	return at;
}

/* ------------------------------------------------------------------- jobs */

/* BODY is set before BORN is cleared, so BORN is looked at first. */
static bool takes_jobs(struct mattx_thread *thread)
{
	bool born = test_bit(MATTX_T_BORN, &thread->flags);

	smp_rmb();
	return born || test_bit(MATTX_T_BODY, &thread->flags);
}

int mattx_body_queue(struct mattx_thread *thread, struct mattx_job *job)
{
	unsigned long flags;
	int err = -ESRCH;

	spin_lock_irqsave(&thread->lock, flags);
	if (!test_bit(MATTX_T_EXITED, &thread->flags) &&
	    thread->order == MATTX_STAY && takes_jobs(thread)) {
		list_add_tail(&job->node, &thread->jobs);
		err = 0;
	}
	spin_unlock_irqrestore(&thread->lock, flags);
	if (!err) {
		mattx_stop_wake(thread);
		wake_up(&thread->wait);
	}
	return err;
}

/* Has the thread, which is out for a call, interrupted. thread->lock is held. */
void mattx_thread_kick(struct mattx_thread *thread)
{
	lockdep_assert_held(&thread->lock);
	if (!test_bit(MATTX_T_CALL, &thread->flags))
		return;
	thread->kicked = thread->jobs_begun;
	if (test_and_set_bit(MATTX_T_KICKED, &thread->flags))
		return;
	mattx_thread_hold(thread);
	if (task_work_add(thread->task, &thread->kick, TWA_SIGNAL)) {
		clear_bit(MATTX_T_KICKED, &thread->flags);
		mattx_thread_put(thread);
	}
}

void mattx_body_cancel(struct mattx_thread *thread,
		       bool (*match)(struct mattx_job *job, void *arg), void *arg)
{
	struct mattx_job *job, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&thread->lock, flags);
	if (thread->job && match(thread->job, arg)) {
		mattx_thread_kick(thread);
	} else {
		list_for_each_entry(job, &thread->jobs, node) {
			if (match(job, arg)) {
				found = job;
				list_del(&job->node);
				break;
			}
		}
	}
	spin_unlock_irqrestore(&thread->lock, flags);
	if (found)
		found->done(thread, found, -ERESTARTSYS);
}

static struct mattx_job *take_job(struct mattx_thread *thread)
{
	struct mattx_job *job;

	job = thread->job;
	if (job) {
		thread->job = NULL;
		return job;
	}
	job = list_first_entry_or_null(&thread->jobs, struct mattx_job, node);
	if (job)
		list_del(&job->node);
	return job;
}

/* The thread has ended: nothing that waits for it waits for ever. Any context. */
void mattx_body_drop_jobs(struct mattx_thread *thread)
{
	struct mattx_job *job;
	unsigned long flags;

	for (;;) {
		spin_lock_irqsave(&thread->lock, flags);
		job = take_job(thread);
		spin_unlock_irqrestore(&thread->lock, flags);
		if (!job)
			return;
		job->done(thread, job, -ESRCH);
	}
}

/* A call that somebody waits for, or several. */
struct waited_job {
	struct mattx_job job;
	struct kref ref; /* the waiter's and the job's */
	struct completion ended;
	long ret;
	struct mattx_ioc_call *calls; /* NULL: one call only; kvmalloc'ed */
	u32 nr_calls, made;
};

static void waited_release(struct kref *ref)
{
	struct waited_job *w = container_of(ref, struct waited_job, ref);

	kvfree(w->calls);
	kfree(w);
}

/* What a deputy needs for its guest's calls is not for mattxd to unmap, or to empty. */
static int waited_start(struct mattx_thread *thread, struct mattx_job *job)
{
	return mattx_body_in_the_way(thread->gang, job->nr, job->args[0],
				     job->args[1]) ?
		       -EBUSY :
		       0;
}

static void take_call(struct waited_job *w)
{
	const struct mattx_ioc_call *call = &w->calls[w->made];
	int i;

	w->job.nr = call->nr;
	for (i = 0; i < 6; i++)
		w->job.args[i] = call->args[i];
}

static void waited_done(struct mattx_thread *thread, struct mattx_job *job,
			long ret)
{
	struct waited_job *w = container_of(job, struct waited_job, job);

	w->ret = ret;
	if (w->calls) {
		w->calls[w->made++].ret = ret;
		if (!IS_ERR_VALUE(ret) && w->made < w->nr_calls) {
			take_call(w);
			if (!mattx_body_queue(thread, job))
				return;
			w->ret = -ESRCH;
		}
	}
	complete_all(&w->ended); /* not complete(): completion_done() is asked */
	kref_put(&w->ref, waited_release);
}

static bool is_job(struct mattx_job *job, void *arg)
{
	return job == arg;
}

static struct waited_job *waited_alloc(int (*start)(struct mattx_thread *,
						    struct mattx_job *))
{
	struct waited_job *w = kzalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return NULL;
	kref_init(&w->ref);
	init_completion(&w->ended);
	w->job.start = start;
	w->job.done = waited_done;
	return w;
}

/* Queues a job and waits for its end. The caller keeps its reference. */
static long run_waited(struct mattx_thread *thread, struct waited_job *w)
{
	long ret;

	/* a thread that has just been made is on its way to its first park */
	wait_event_killable_timeout(thread->gang->wait,
				    test_bit(MATTX_T_BODY, &thread->flags) ||
					    test_bit(MATTX_T_EXITED,
						     &thread->flags),
				    AWAIT_TIMEOUT);
	kref_get(&w->ref);
	ret = mattx_body_queue(thread, &w->job);
	if (ret) {
		kref_put(&w->ref, waited_release);
		return ret;
	}
	if (wait_for_completion_killable(&w->ended)) {
		mattx_body_cancel(thread, is_job, &w->job);
		return -EINTR;
	}
	return w->ret;
}

static long run_job(struct mattx_thread *thread, u32 nr, const u64 args[6],
		    int (*start)(struct mattx_thread *, struct mattx_job *))
{
	struct waited_job *w = waited_alloc(start);
	long ret;
	int i;

	if (!w)
		return -ENOMEM;
	w->job.nr = nr;
	for (i = 0; i < 6; i++)
		w->job.args[i] = args[i];
	ret = run_waited(thread, w);
	kref_put(&w->ref, waited_release);
	return ret;
}

/**
 * mattx_body_call() - have a body's thread make a system call
 *
 * Context: process; sleeps until the call has returned, killable. Return: what the
 * call returned; -ESRCH when the thread is no body's; -EINTR when the caller was killed.
 */
long mattx_body_call(struct mattx_thread *thread, u32 nr, const u64 args[6])
{
	if (!thread->gang->stub)
		return -ENXIO;
	if (mattx_fault(MATTX_FAULT_CALL))
		return -ENOMEM;
	return run_job(thread, nr, args, waited_start);
}

/**
 * mattx_body_calls() - have a body's thread make several system calls
 * @calls: kvmalloc'ed, taken over in any case
 * @user: where the results are to be copied
 * @len: out: bytes of the calls that were made
 *
 * Context: process; sleeps, killable. Return: 0 also when a call has failed, which is
 * then the last one made; -ESRCH, -EINTR, -ENOMEM, -EFAULT.
 */
int mattx_body_calls(struct mattx_thread *thread, struct mattx_ioc_call *calls,
		     u32 n, void __user *user, u32 *len)
{
	struct waited_job *w = waited_alloc(waited_start);
	long ret;

	if (!w) {
		kvfree(calls);
		return -ENOMEM;
	}
	w->calls = calls;
	w->nr_calls = n;
	take_call(w);
	ret = -ENXIO;
	if (thread->gang->stub)
		ret = mattx_fault(MATTX_FAULT_CALL) ? -ENOMEM :
						      run_waited(thread, w);
	*len = w->made * sizeof(*calls);
	if (w->made && completion_done(&w->ended))
		ret = copy_to_user(user, calls, *len) ? -EFAULT : 0;
	kref_put(&w->ref, waited_release);
	return ret;
}

/* What waited while the stub was moved goes on. gang->lock is held. */
static void stub_stays(struct mattx_gang *gang)
{
	struct mattx_thread *thread;

	lockdep_assert_held(&gang->lock);
	WRITE_ONCE(gang->stub_moves, false);
	list_for_each_entry(thread, &gang->threads, node)
		wake_up(&thread->wait);
}

/*
 * From here on no thread but current begins a job. A call that is under way returns to the
 * stub, and what it has brought is read from its buffer before the thread is parked again.
 * Return: 0, or -EBUSY: there is such a call.
 */
static int stub_begin(struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	bool busy = false;

	spin_lock_irq(&gang->lock);
	WRITE_ONCE(gang->stub_moves, true);
	list_for_each_entry(thread, &gang->threads, node) {
		spin_lock(&thread->lock);
		busy = busy || (thread->task != current &&
				(thread->job ||
				 !test_bit(MATTX_T_PARKED, &thread->flags)));
		spin_unlock(&thread->lock);
	}
	if (busy)
		stub_stays(gang);
	spin_unlock_irq(&gang->lock);
	return busy ? -EBUSY : 0;
}

static void stub_end(struct mattx_gang *gang)
{
	spin_lock_irq(&gang->lock);
	stub_stays(gang);
	spin_unlock_irq(&gang->lock);
}

static int stub_move(struct mattx_gang *gang, unsigned long addr,
		     unsigned long len)
{
	stub_unmap_all(gang);
	if (!addr) {
		/* anywhere, but not where a guest's kernel puts what it maps */
		addr = map_ours(NULL, OURS, len, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS);
		if (IS_ERR_VALUE(addr))
			return addr;
		vm_munmap(addr, len);
	}
	return mattx_body_first_stub(gang, addr, len);
}

/**
 * mattx_body_own_stub() - give current, whose memory is a copy of a deputy's, its stub
 * Context: process. Return: 0 or a negative errno.
 */
int mattx_body_own_stub(struct mattx_gang *gang)
{
	return stub_move(gang, 0, PAGE_SIZE);
}

/* A job without a call: start does all. */
static int stub_start(struct mattx_thread *thread, struct mattx_job *job)
{
	struct mattx_gang *gang = thread->gang;
	int err = stub_begin(gang);

	if (err)
		return err;
	err = stub_move(gang, job->args[0], job->args[1]);
	stub_end(gang);
	return err ?: -ECANCELED;
}

/**
 * mattx_body_stub() - put the stub into a parked process, or move it
 * @addr: page aligned, @len bytes free from there; 0: anywhere
 *
 * Scratch buffers of its threads are given back. Waits for calls under way; those that are
 * queued meanwhile wait until it has moved.
 * Context: process; sleeps, killable. Return: 0 or a negative errno; -EBUSY: a call has
 * begun all the same.
 */
int mattx_body_stub(struct mattx_gang *gang, u64 addr, u64 len)
{
	const u64 args[6] = { addr, len };
	struct mattx_thread *thread;
	long ret;

	if (!PAGE_ALIGNED(addr) || !PAGE_ALIGNED(len) || !len ||
	    addr + len < addr || addr + len > TASK_SIZE_MAX)
		return -EINVAL;
	if (mattx_fault(MATTX_FAULT_STUB))
		return -ENOMEM;
	/* one that is out, also in a group stop, comes back over the old stub */
	ret = mattx_gang_await(gang);
	if (ret)
		return ret;
	thread = mattx_gang_leader(gang);
	if (!thread)
		return -ESRCH;
	ret = run_job(thread, 0, args, stub_start);
	mattx_thread_put(thread);
	return ret == -ECANCELED ? 0 : ret;
}

/* --------------------------------------------------------------- the park */

/* Sends current out to make thread->job's call when the park returns. */
static void go_out(struct mattx_thread *thread, struct mattx_job *job)
{
	struct pt_regs *regs = task_pt_regs(current);

	memset(regs, 0, sizeof(*regs));
	regs->cs = __USER_CS;
	regs->ss = __USER_DS;
	regs->flags = X86_EFLAGS_IF | X86_EFLAGS_FIXED;
	regs->ip = thread->gang->stub + STUB_CALL;
	regs->sp = thread->gang->stub;
	regs->orig_ax = -1;
	regs->ax = job->nr;
	regs->di = job->args[0];
	regs->si = job->args[1];
	regs->dx = job->args[2];
	regs->r10 = job->args[3];
	regs->r8 = job->args[4];
	regs->r9 = job->args[5];
}

static void end_job(struct mattx_thread *thread, struct mattx_job *job, long ret)
{
	spin_lock_irq(&thread->lock);
	clear_bit(MATTX_T_CALL, &thread->flags);
	thread->job = NULL;
	spin_unlock_irq(&thread->lock);
	job->done(thread, job, ret);
}

/* From here on the thread waits, and who waits for that may go on. */
static void set_parked(struct mattx_thread *thread)
{
	set_bit(MATTX_T_PARKED, &thread->flags);
	wake_up_all(&thread->gang->wait);
}

/**
 * mattx_await_parked() - until a body's thread is back from a call that has ended
 *
 * Gives up when it is away for longer, for a call of its own or for good.
 * Context: process; sleeps, killable.
 */
void mattx_await_parked(struct mattx_thread *thread)
{
	wait_event_killable_timeout(thread->gang->wait,
				    test_bit(MATTX_T_PARKED, &thread->flags) ||
					    test_bit(MATTX_T_EXITED,
						     &thread->flags),
				    AWAIT_TIMEOUT);
}

static bool all_parked(struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	bool all;

	spin_lock_irq(&gang->lock);
	all = gang->nr_threads;
	list_for_each_entry(thread, &gang->threads, node)
		all = all && test_bit(MATTX_T_PARKED, &thread->flags) &&
		      list_empty_careful(&thread->jobs);
	spin_unlock_irq(&gang->lock);
	/* a child that has its memory has its stub and its buffers, too */
	return all && !atomic_read(&gang->borrowers);
}

/**
 * mattx_gang_await() - until every thread of a body is in the park
 *
 * Those that have just ended a call are on their last steps back, those of a deputy
 * that is stopped are woken. Context: process; sleeps, killable.
 * Return: 0; -EBUSY: one does not come; -EINTR.
 */
int mattx_gang_await(struct mattx_gang *gang)
{
	long left;

	mattx_stop_wake_all(gang);
	left = wait_event_killable_timeout(gang->wait, all_parked(gang),
					   AWAIT_TIMEOUT);
	return left < 0 ? -EINTR : left ? 0 : -EBUSY;
}

/* Starts the next job. Return: whether the thread has to go out for it. */
static bool start_job(struct mattx_thread *thread)
{
	struct mattx_job *job;
	int ret;

	for (;;) {
		spin_lock_irq(&thread->lock);
		job = NULL;
		if (thread->order == MATTX_STAY && !thread->gang->stub_moves)
			job = take_job(thread);
		thread->job = job;
		thread->jobs_begun += !!job;
		spin_unlock_irq(&thread->lock);
		if (!job)
			return false;
		clear_bit(MATTX_T_PARKED, &thread->flags);
		ret = job->start(thread, job);
		if (!ret && !thread->gang->stub)
			ret = -ENXIO;
		if (!ret) {
			go_out(thread, job);
			spin_lock_irq(&thread->lock);
			set_bit(MATTX_T_CALL, &thread->flags);
			spin_unlock_irq(&thread->lock);
			return true;
		}
		end_job(thread, job, ret);
		set_parked(thread);
	}
}

/*
 * Something other than a blocked signal wants this thread in the signal code: a
 * debugger, the system's freezer. It gets there by way of a call that does nothing.
 */
static struct mattx_job nop_job;

static int nop_start(struct mattx_thread *thread, struct mattx_job *job)
{
	return 0;
}

static void nop_done(struct mattx_thread *thread, struct mattx_job *job, long ret)
{
}

static struct mattx_job nop_job = {
	.start = nop_start,
	.done = nop_done,
	.nr = __NR_getpid,
};

/* Return: whether TIF_SIGPENDING has a reason that only get_signal() can serve. */
static bool still_pending(void)
{
	clear_notify_signal();
	spin_lock_irq(&mattx_sighand(current)->siglock);
	recalc_sigpending();
	spin_unlock_irq(&mattx_sighand(current)->siglock);
	return signal_pending(current);
}

enum wake { WAKE_FATAL, WAKE_ORDER, WAKE_JOB, WAKE_WORK, WAKE_SIGNAL_CODE };

static bool has_job(struct mattx_thread *thread)
{
	return !list_empty_careful(&thread->jobs) &&
	       !READ_ONCE(thread->gang->stub_moves);
}

/* Is there a way out and back? */
static bool has_stub(struct mattx_thread *thread)
{
	return thread->gang->stub && !READ_ONCE(thread->gang->stub_moves);
}

/* Waits for the next thing to do. */
static enum wake park_wait(struct mattx_thread *thread)
{
	DEFINE_WAIT(wait);
	enum wake why;

	for (;;) {
		/* without a way out only death interrupts */
		prepare_to_wait(&thread->wait, &wait,
				has_stub(thread) ? TASK_INTERRUPTIBLE :
						   TASK_KILLABLE);
		why = WAKE_FATAL;
		if (fatal_signal_pending(current))
			break;
		why = WAKE_ORDER;
		if (READ_ONCE(thread->order) != MATTX_STAY)
			break;
		why = WAKE_WORK;
		if (mattx_deputy_work(thread))
			break;
		why = WAKE_JOB;
		if (has_job(thread))
			break;
		if (has_stub(thread) && signal_pending(current)) {
			why = WAKE_SIGNAL_CODE;
			__set_current_state(TASK_RUNNING);
			if (still_pending())
				break;
			continue;
		}
		if (has_stub(thread) && mattx_stop_ended()) {
			why = WAKE_SIGNAL_CODE;
			set_tsk_thread_flag(current, TIF_SIGPENDING);
			break;
		}
		schedule();
	}
	finish_wait(&thread->wait, &wait);
	return why;
}

/* Return: whether the thread has to go out; not while the stub is being moved. */
static bool start_nop(struct mattx_thread *thread)
{
	bool may;

	spin_lock_irq(&thread->lock);
	may = !thread->gang->stub_moves;
	if (may) {
		thread->job = &nop_job;
		thread->jobs_begun++;
		set_bit(MATTX_T_CALL, &thread->flags);
		clear_bit(MATTX_T_PARKED, &thread->flags);
	}
	spin_unlock_irq(&thread->lock);
	if (may)
		go_out(thread, &nop_job);
	return may;
}

/*
 * A first arrival: what the thread was doing is put down, and kept from going on. It is
 * BODY before it is no longer QUEUED, so that a freeze that looks again never queues the
 * park for it a second time: see mattx_gang_freeze().
 */
static void arrive(struct mattx_thread *thread)
{
	set_bit(MATTX_T_BODY, &thread->flags);
	smp_mb__after_atomic();
	clear_bit(MATTX_T_BORN, &thread->flags);
	clear_bit(MATTX_T_QUEUED, &thread->flags);
	mattx_state_capture(thread);
}

/* Leaves with the registers it came with, or as the process it was given. */
static void leave(struct mattx_thread *thread, enum mattx_order order)
{
	struct mattx_gang *gang = thread->gang;
	bool stays = gang->role == MATTX_ROLE_HOST;

	if (order == MATTX_AWAKEN)
		mattx_signals_apply(thread);
	/*
	 * The last to come takes the stub away. A gang that awakens does so as one;
	 * one that is thawed does not wait for threads that could not be frozen.
	 */
	if (atomic_dec_and_test(&gang->sleepers)) {
		stub_unmap_all(gang);
		if (order == MATTX_AWAKEN) {
			mattx_state_clocks(current);
			mattx_waker_start(gang);
		}
		wake_up_all(&gang->wait);
	}
	if (order == MATTX_AWAKEN && mattx_waker_wait(thread))
		return; /* SIGKILL: get_signal() is next */
	if (order == MATTX_THAW && test_bit(MATTX_T_FATAL, &thread->flags))
		mattx_core_stay(thread);
	mattx_state_apply(thread, order);
	mattx_stop_leave(thread);
	spin_lock_irq(&thread->lock);
	thread->order = MATTX_STAY;
	clear_bit(MATTX_T_PARKED, &thread->flags);
	clear_bit(MATTX_T_DEPUTY, &thread->flags);
	clear_bit(MATTX_T_BODY, &thread->flags);
	spin_unlock_irq(&thread->lock);
	mattx_body_drop_jobs(thread);
	if (stays)
		wake_up_all(&gang->wait);
	else
		mattx_thread_remove(thread);
}

/**
 * mattx_park() - the park; current is @thread's task
 *
 * Returns when the thread has to go to user mode: for a call, for good, or to die.
 * Context: process, at the boundary to user mode, no lock held.
 */
void mattx_park(struct mattx_thread *thread)
{
	kernel_fpu_begin(); /* its FPU state is in memory from here on */
	kernel_fpu_end();
	if (!test_bit(MATTX_T_BODY, &thread->flags)) {
		arrive(thread);
	} else if (test_bit(MATTX_T_CALL, &thread->flags)) {
		/* a work from before it went out: only the trap ends the call */
		if (task_pt_regs(current)->ip !=
		    thread->gang->stub + STUB_TRAP + 1)
			return;
		mattx_stop_back(thread);
		mattx_signal_forward(thread);
		end_job(thread, thread->job, task_pt_regs(current)->ax);
	}
	set_parked(thread);
	for (;;) {
		switch (park_wait(thread)) {
		case WAKE_FATAL:
			return;
		case WAKE_ORDER:
			leave(thread, READ_ONCE(thread->order));
			return;
		case WAKE_WORK:
			mattx_deputy_serve(thread);
			break;
		case WAKE_JOB:
			if (start_job(thread))
				return;
			break;
		case WAKE_SIGNAL_CODE:
			if (start_nop(thread))
				return;
			break;
		}
	}
}

void mattx_park_work(struct callback_head *work)
{
	struct mattx_thread *thread =
		container_of(work, struct mattx_thread, work);

	if (current->flags & PF_EXITING)
		clear_bit(MATTX_T_QUEUED, &thread->flags);
	else if (!mattx_vdso_step(thread))
		mattx_park(thread);
	mattx_thread_put(thread);
}

/*
 * Interrupts a call on the stub. Runs before the kernel decides about restarting
 * it, so that the result is seen as the call left it. A call that had ended by itself has
 * passed the park since, and the kick for it concerns no other one.
 */
void mattx_kick_work(struct callback_head *work)
{
	struct mattx_thread *thread =
		container_of(work, struct mattx_thread, kick);
	struct pt_regs *regs = task_pt_regs(current);
	unsigned long stub = thread->gang->stub;
	bool meant;

	spin_lock_irq(&thread->lock);
	clear_bit(MATTX_T_KICKED, &thread->flags);
	meant = test_bit(MATTX_T_CALL, &thread->flags) &&
		thread->kicked == thread->jobs_begun;
	spin_unlock_irq(&thread->lock);
	if (meant && !(current->flags & PF_EXITING)) {
		if (regs->ip == stub + STUB_CALL) { /* not made yet */
			regs->ax = -ERESTARTNOINTR;
			regs->cx = NOT_MADE;
			regs->ip = stub + STUB_TRAP;
		}
		regs->orig_ax = -1; /* no restart */
	}
	mattx_thread_put(thread);
}

bool mattx_body_made_call(void)
{
	return (long)task_pt_regs(current)->cx != NOT_MADE;
}

/*
 * The tracepoint sched_process_exec: current is another program now. If a job has brought
 * that about it is a body's thread no more, the last of its gang, and the job has ended.
 */
void mattx_body_execed(void *data, struct task_struct *task, pid_t old_pid,
		       struct linux_binprm *bprm)
{
	struct mattx_thread *thread = mattx_thread_find(current);
	struct mattx_job *job;

	if (!thread || !test_bit(MATTX_T_CALL, &thread->flags))
		return;
	mattx_thread_hold(thread);
	spin_lock_irq(&thread->lock);
	job = thread->job;
	thread->job = NULL;
	clear_bit(MATTX_T_CALL, &thread->flags);
	clear_bit(MATTX_T_BODY, &thread->flags);
	spin_unlock_irq(&thread->lock);
	thread->gang->silent = true;
	job->done(thread, job, 0);
	mattx_body_drop_jobs(thread);
	mattx_thread_remove(thread);
	mattx_thread_put(thread);
}

/* Where the kernel keeps what the processor said of a debug trap. */
static unsigned long dr6_of(const struct die_args *args)
{
	return *(const unsigned long *)args->err;
}

/* A breakpoint: is it a thread that comes back from its call? IRQs are off. */
static int on_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;
	struct mattx_thread *thread;

	if ((val != DIE_INT3 && val != DIE_DEBUG) || !regs || !user_mode(regs))
		return NOTIFY_DONE;
	thread = mattx_thread_find(current);
	if (val == DIE_DEBUG)
		return thread && mattx_vdso_trap(thread, regs, dr6_of(data)) ?
			       NOTIFY_STOP :
			       NOTIFY_DONE;
	if (!thread || !test_bit(MATTX_T_CALL, &thread->flags) ||
	    regs->ip != thread->gang->stub + STUB_TRAP + 1)
		return NOTIFY_DONE;
	mattx_thread_hold(thread);
	if (task_work_add(current, &thread->work, TWA_RESUME))
		mattx_thread_put(thread);
	return NOTIFY_STOP;
}

static struct notifier_block trap_notifier = {
	.notifier_call = on_trap,
	.priority = INT_MAX,
};

int mattx_body_init(void)
{
	static const u8 code[] = { 0x0f, 0x05, 0xcc };
	u8 *page;
	int err;

	stub_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!stub_page)
		return -ENOMEM;
	page = page_address(stub_page);
	memset(page, 0xcc, PAGE_SIZE);
	memcpy(page, code, sizeof(code));
	err = register_die_notifier(&trap_notifier);
	if (err)
		put_page(stub_page);
	return err;
}

void mattx_body_exit(void)
{
	unregister_die_notifier(&trap_notifier);
	put_page(stub_page);
}
