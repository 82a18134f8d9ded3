// SPDX-License-Identifier: GPL-2.0
/*
 * What a thread and a process consist of beside memory and descriptors: taken
 * from them when they come to the park, given to them before they leave it.
 *
 * Registers, masks and the restart block are read and written by the thread
 * itself; the FPU image and the CPU clocks by the daemon's task while the thread
 * is off the CPU (the regset's set must not run on the thread itself).
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/regset.h>
#include <linux/futex.h>
#include <linux/sched/cputime.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/elf.h>
#include "internal.h"
#include "../compat.h"
#include "../fault.h"
#include "../main.h"

#define USER_FLAGS \
	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | \
	 X86_EFLAGS_SF | X86_EFLAGS_TF | X86_EFLAGS_DF | X86_EFLAGS_OF | \
	 X86_EFLAGS_RF | X86_EFLAGS_AC | X86_EFLAGS_ID)

/* -------------------------------------------------------------- registers */

static void regs_get(struct mattx_regs *to, const struct pt_regs *from)
{
	*to = (struct mattx_regs){
		.r15 = from->r15,
		.r14 = from->r14,
		.r13 = from->r13,
		.r12 = from->r12,
		.bp = from->bp,
		.bx = from->bx,
		.r11 = from->r11,
		.r10 = from->r10,
		.r9 = from->r9,
		.r8 = from->r8,
		.ax = from->ax,
		.cx = from->cx,
		.dx = from->dx,
		.si = from->si,
		.di = from->di,
		.orig_ax = from->orig_ax,
		.ip = from->ip,
		.cs = from->cs,
		.flags = from->flags,
		.sp = from->sp,
		.ss = from->ss,
	};
	mattx_read_bases(&to->fs_base, &to->gs_base);
}

static void regs_set(struct pt_regs *to, const struct mattx_regs *from)
{
	to->r15 = from->r15;
	to->r14 = from->r14;
	to->r13 = from->r13;
	to->r12 = from->r12;
	to->bp = from->bp;
	to->bx = from->bx;
	to->r11 = from->r11;
	to->r10 = from->r10;
	to->r9 = from->r9;
	to->r8 = from->r8;
	to->ax = from->ax;
	to->cx = from->cx;
	to->dx = from->dx;
	to->si = from->si;
	to->di = from->di;
	to->orig_ax = from->orig_ax;
	to->ip = from->ip;
	to->cs = __USER_CS;
	to->flags = (from->flags & USER_FLAGS) | X86_EFLAGS_IF | X86_EFLAGS_FIXED;
	to->sp = from->sp;
	to->ss = __USER_DS;
	mattx_write_bases(from->fs_base, from->gs_base);
}

/* What user code could not have brought about itself is refused. */
static bool regs_valid(const struct mattx_regs *regs)
{
	s64 nr = regs->orig_ax, ax = regs->ax;

	if (regs->cs != __USER_CS || regs->ip >= TASK_SIZE_MAX ||
	    regs->sp >= TASK_SIZE_MAX)
		return false;
	if (regs->fs_base >= TASK_SIZE_MAX || regs->gs_base >= TASK_SIZE_MAX)
		return false;
	if (nr != -1 && (nr < 0 || nr > 4095))
		return false;
	/* a call that goes on restarts at its own instruction */
	return nr == -1 || ax >= 0 || ax < -MAX_ERRNO || regs->ip >= 2;
}

/*
 * Calls that give -EINTR where others are restarted, though no handler has run
 * (epoll_wait, sigtimedwait, semop, tmpfs's fallocate, a recv with SO_RCVTIMEO, ioctls
 * of drivers): it says that nothing was done, so the kernel restarts them like the
 * others unless a handler does run. A close() has done its work when it says so.
 */
static bool restart_eintr(u64 nr)
{
	return nr != __NR_close;
}

/**
 * mattx_state_capture() - put down what current was doing
 * Context: the thread itself, on its first arrival in the park.
 */
void mattx_state_capture(struct mattx_thread *thread)
{
	struct mattx_thread_state *s = &thread->state;
	struct pt_regs *regs = task_pt_regs(current);
	sigset_t all;

	memset(s, 0, sizeof(*s));
	s->tid = thread->tid;
	if ((long)regs->orig_ax >= 0 && (long)regs->ax == -EINTR &&
	    restart_eintr(regs->orig_ax))
		regs->ax = -ERESTARTNOHAND;
	regs_get(&s->regs, regs);
	s->blocked = current->blocked.sig[0];
	if (test_restore_sigmask()) {
		s->restore_sigmask = 1;
		s->saved_sigmask = current->saved_sigmask.sig[0];
		clear_restore_sigmask();
	}
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigprocmask(SIG_SETMASK, &all, NULL);
	s->robust_list = (unsigned long)mattx_robust_list(current);
	s->robust_list_len = s->robust_list ? sizeof(struct robust_list_head) : 0;
	s->clear_child_tid = (unsigned long)current->clear_child_tid;
	s->sas_sp = current->sas_ss_sp;
	s->sas_size = current->sas_ss_size;
	s->sas_flags = current->sas_ss_flags;
	/* on its way to the stub it must not be found outside of its critical section */
	mattx_rseq_get(&s->rseq, &s->rseq_len, &s->rseq_sig);
	mattx_rseq_set(0, 0, 0);
	mattx_restart_capture(thread);
}

static void apply_masks(const struct mattx_thread_state *s)
{
	sigset_t set;

	set.sig[0] = s->blocked & ~(sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_SETMASK, &set, NULL);
	/* Whatever was to be restarted is, and what is pending is looked at. */
	set_tsk_thread_flag(current, TIF_SIGPENDING);
	if (s->restore_sigmask) {
		current->saved_sigmask.sig[0] =
			s->saved_sigmask & ~(sigmask(SIGKILL) | sigmask(SIGSTOP));
		set_restore_sigmask();
	}
}

/**
 * mattx_state_apply() - become what thread->state says
 * @order: MATTX_THAW: only what the park and its calls changed; MATTX_AWAKEN: all
 *
 * Context: the thread itself, as its last act in the park. Cannot fail.
 */
void mattx_state_apply(struct mattx_thread *thread, enum mattx_order order)
{
	struct mattx_thread_state *s = &thread->state;

	if (order == MATTX_AWAKEN) {
		current->sas_ss_sp = s->sas_sp;
		current->sas_ss_size = s->sas_size;
		current->sas_ss_flags = s->sas_flags;
		mattx_robust_list(current) =
			(struct robust_list_head __user *)(unsigned long)
				s->robust_list;
		current->clear_child_tid =
			(int __user *)(unsigned long)s->clear_child_tid;
		mattx_restart_apply(thread);
	} else {
		mattx_restart_resume(thread);
	}
	mattx_rseq_set(s->rseq, s->rseq_len, s->rseq_sig);
	regs_set(task_pt_regs(current), &s->regs);
	apply_masks(s);
}

/**
 * mattx_state_detach() - current becomes a deputy's thread
 *
 * Its memory is an old copy: nothing may be written to it on its own account.
 * Context: the thread itself.
 */
void mattx_state_detach(void)
{
	mattx_robust_list(current) = NULL;
	current->clear_child_tid = NULL;
}

/* -------------------------------------------------------------------- FPU */

static const struct user_regset *xstate_regset(struct task_struct *task)
{
	const struct user_regset_view *view = task_user_regset_view(task);
	unsigned int i;

	for (i = 0; i < view->n; i++)
		if (view->regsets[i].core_note_type == NT_X86_XSTATE)
			return &view->regsets[i];
	return NULL;
}

/* Bytes of NT_X86_XSTATE on this machine. */
size_t mattx_xstate_size(void)
{
	const struct user_regset *regset = xstate_regset(current);

	return regset ? (size_t)regset->n * regset->size : 0;
}

/* Until the thread, which waits in the park, has been switched out. */
static void wait_off_cpu(struct task_struct *task)
{
	while (READ_ONCE(task->on_cpu))
		cond_resched();
	smp_rmb();
}

/*
 * A thread that has just ended a call is on its last steps back to the park.
 * Return: whether it waits there.
 */
static bool waits(struct mattx_thread *thread)
{
	mattx_await_parked(thread);
	return test_bit(MATTX_T_PARKED, &thread->flags) &&
	       !test_bit(MATTX_T_EXITED, &thread->flags);
}

/**
 * mattx_thread_get() - a parked thread's state, followed by its FPU image
 * @len: in: bytes at @buf, out: bytes of the state
 *
 * Context: process, not the thread itself. Return: 0; -EBUSY when the thread is
 * not parked; -ENOSPC with the length needed; -EFAULT, -ENOMEM.
 */
int mattx_thread_get(struct mattx_thread *thread, void __user *buf, u32 *len)
{
	struct mattx_thread_state *s = &thread->state;
	struct task_struct *task = thread->task;
	const struct user_regset *regset;
	u32 have = *len;
	int got;

	if (mattx_fault(MATTX_FAULT_GET_THREAD))
		return -EIO;
	if (!waits(thread))
		return -EBUSY;
	wait_off_cpu(task);
	regset = xstate_regset(task);
	if (!regset)
		return -ENODEV;
	if (s->regs.cs != __USER_CS)
		return -ENOEXEC; /* a 32-bit thread */
	s->xstate_len = mattx_xstate_size();
	*len = sizeof(*s) + s->xstate_len;
	if (have < *len)
		return -ENOSPC;
	got = regset_get(task, regset, s->xstate_len, thread->xstate);
	if (got < 0)
		return got;
	s->xstate_len = got;
	s->utime = task->utime;
	s->stime = task->stime;
	s->sum_exec = task->se.sum_exec_runtime;
	s->told_utime = task->prev_cputime.utime;
	s->told_stime = task->prev_cputime.stime;
	s->min_flt = task->min_flt;
	s->maj_flt = task->maj_flt;
	s->nvcsw = task->nvcsw;
	s->nivcsw = task->nivcsw;
	s->exit_signal = task->exit_signal;
	*len = sizeof(*s) + got;
	if (copy_to_user(buf, s, sizeof(*s)) ||
	    copy_to_user(buf + sizeof(*s), thread->xstate, got))
		return -EFAULT;
	return 0;
}

static void set_cpu_time(struct task_struct *task,
			 const struct mattx_thread_state *s)
{
	unsigned long flags;

	task->utime = s->utime;
	task->stime = s->stime;
	task->se.sum_exec_runtime = s->sum_exec;
	task->se.prev_sum_exec_runtime = s->sum_exec;
	raw_spin_lock_irqsave(&task->prev_cputime.lock, flags);
	task->prev_cputime.utime = s->told_utime;
	task->prev_cputime.stime = s->told_stime;
	raw_spin_unlock_irqrestore(&task->prev_cputime.lock, flags);
	task->min_flt = s->min_flt;
	task->maj_flt = s->maj_flt;
	task->nvcsw = s->nvcsw;
	task->nivcsw = s->nivcsw;
}

static bool state_valid(const struct mattx_thread_state *s,
			const struct mattx_thread *thread)
{
	if (s->tid != thread->tid || !regs_valid(&s->regs) ||
	    s->xstate_len != mattx_xstate_size())
		return false;
	if (s->robust_list >= TASK_SIZE_MAX ||
	    s->clear_child_tid >= TASK_SIZE_MAX || s->rseq >= TASK_SIZE_MAX ||
	    s->rseq_len > PAGE_SIZE || s->pad)
		return false;
	if (s->restart.addr >= TASK_SIZE_MAX ||
	    s->restart.kind > MATTX_RESTART_WAIT)
		return false;
	return (s64)s->regs.ax != -ERESTART_RESTARTBLOCK ||
	       s->restart.kind != MATTX_RESTART_NONE;
}

/**
 * mattx_thread_set() - what a parked thread is to be when it awakens
 *
 * The FPU image and the CPU clocks are set at once. Everything is checked: it
 * comes from another node. Context: process, a user task other than the thread.
 * Return: 0; -EBUSY when it is not parked; -EINVAL, -EFAULT.
 */
int mattx_thread_set(struct mattx_thread *thread, const void __user *buf, u32 len)
{
	const struct user_regset *regset = xstate_regset(thread->task);
	struct mattx_thread_state s;
	int err;

	if (mattx_fault(MATTX_FAULT_SET_THREAD))
		return -EIO;
	if (!regset)
		return -ENODEV;
	if (len < sizeof(s))
		return -EINVAL;
	if (copy_from_user(&s, buf, sizeof(s)))
		return -EFAULT;
	if (!state_valid(&s, thread) || len != sizeof(s) + s.xstate_len)
		return -EINVAL;
	if (!waits(thread))
		return -EBUSY;
	wait_off_cpu(thread->task);
	if (copy_from_user(thread->xstate, buf + sizeof(s), s.xstate_len))
		return -EFAULT;
	err = regset->set(thread->task, regset, 0, s.xstate_len, thread->xstate,
			  NULL);
	if (err)
		return err;
	set_cpu_time(thread->task, &s);
	thread->state = s;
	return 0;
}

/* ---------------------------------------------------------------- process */

static void get_clocks(struct mattx_process_state *s, struct task_struct *task)
{
	s->monotonic = ktime_get_ns();
	s->boottime = ktime_get_boottime_ns();
	s->realtime = ktime_get_real_ns();
#ifdef CONFIG_TIME_NS
	task_lock(task);
	if (task->nsproxy) {
		s->monotonic += timespec64_to_ns(
			&task->nsproxy->time_ns->offsets.monotonic);
		s->boottime += timespec64_to_ns(
			&task->nsproxy->time_ns->offsets.boottime);
	}
	task_unlock(task);
#endif
}

/* CPU time of a running process, ns: the ended threads' and the living ones'. */
static void sum_times(struct task_struct *task, u64 *utime, u64 *stime)
{
	struct task_struct *t;

	*utime = task->signal->utime;
	*stime = task->signal->stime;
	for_each_thread(task, t) {
		*utime += t->utime;
		*stime += t->stime;
	}
}

static void get_itimer(struct task_struct *task, int which, u64 now, u64 *value,
		       u64 *interval)
{
	struct cpu_itimer *it = &task->signal->it[which];

	*interval = it->incr;
	*value = 0;
	if (it->expires)
		*value = it->expires > now ? it->expires - now : 1000;
}

/**
 * mattx_process_get() - what a frozen process's threads share
 * Context: process, gang->door held. Return: 0 or -ESRCH.
 */
int mattx_process_get(struct mattx_gang *gang, struct mattx_process_state *s)
{
	struct mattx_thread *leader = mattx_gang_leader(gang);
	struct task_struct *task;
	u64 utime, stime;
	int i;

	if (!leader)
		return -ESRCH;
	task = leader->task;
	memset(s, 0, sizeof(*s));
	get_clocks(s, task);
	rcu_read_lock();
	if (!mattx_thread_lock(leader)) {
		rcu_read_unlock();
		mattx_thread_put(leader);
		return -ESRCH;
	}
	for (i = 0; i < _NSIG; i++) {
		const struct sigaction *sa = &mattx_sighand(task)->action[i].sa;

		s->action[i].handler = (unsigned long)sa->sa_handler;
		s->action[i].flags = sa->sa_flags;
		s->action[i].restorer = (unsigned long)sa->sa_restorer;
		s->action[i].mask = sa->sa_mask.sig[0];
	}
	s->utime = task->signal->utime;
	s->stime = task->signal->stime;
	s->sum_exec = task->signal->sum_sched_runtime;
	s->told_utime = task->signal->prev_cputime.utime;
	s->told_stime = task->signal->prev_cputime.stime;
	s->cutime = task->signal->cutime;
	s->cstime = task->signal->cstime;
	s->min_flt = task->signal->min_flt;
	s->maj_flt = task->signal->maj_flt;
	s->nvcsw = task->signal->nvcsw;
	s->nivcsw = task->signal->nivcsw;
	sum_times(task, &utime, &stime);
	get_itimer(task, CPUCLOCK_VIRT, utime, &s->virt_value, &s->virt_interval);
	get_itimer(task, CPUCLOCK_PROF, utime + stime, &s->prof_value,
		   &s->prof_interval);
	mattx_thread_unlock(leader);
	rcu_read_unlock();
	rcu_read_lock();
	s->uid = from_kuid_munged(&init_user_ns, __task_cred(task)->euid);
	s->gid = from_kgid_munged(&init_user_ns, __task_cred(task)->egid);
	rcu_read_unlock();
	mattx_thread_put(leader);
	return 0;
}

static void raise(atomic64_t *counter, u64 to)
{
	if ((u64)atomic64_read(counter) < to)
		atomic64_set(counter, to);
}

/**
 * mattx_state_clocks() - the process's CPU clock is that of its threads
 *
 * A running CPU timer has the kernel count in a place of its own.
 * Context: any; @task is current, or cannot pass sched_process_exit.
 */
void mattx_state_clocks(struct task_struct *task)
{
	struct task_cputime_atomic *sum = &task->signal->cputimer.cputime_atomic;
	struct task_struct *t;
	u64 exec, utime, stime;

	rcu_read_lock();
	exec = task->signal->sum_sched_runtime;
	sum_times(task, &utime, &stime);
	for_each_thread(task, t)
		exec += t->se.sum_exec_runtime;
	rcu_read_unlock();
	raise(&sum->utime, utime);
	raise(&sum->stime, stime);
	raise(&sum->sum_exec_runtime, exec);
}

/**
 * mattx_state_stop_timers() - a deputy's CPU-time timers do not run
 *
 * The guest has them, and brings them home. Context: process.
 */
void mattx_state_stop_timers(struct mattx_gang *gang)
{
	struct mattx_thread *thread = mattx_gang_any(gang);

	if (!thread)
		return;
	if (mattx_thread_lock(thread)) {
		memset(thread->task->signal->it, 0,
		       sizeof(thread->task->signal->it));
		mattx_thread_unlock(thread);
	}
	mattx_thread_put(thread);
}

/**
 * mattx_process_set() - give a parked process its actions and CPU clocks
 *
 * After the threads have got their states.
 * Context: process, gang->door held. Return: 0, -ESRCH or -EINVAL.
 */
int mattx_process_set(struct mattx_gang *gang,
		      const struct mattx_process_state *s)
{
	struct mattx_thread *leader;
	struct task_struct *task;
	int i;

	for (i = 0; i < _NSIG; i++)
		if (s->action[i].handler >= TASK_SIZE_MAX ||
		    s->action[i].restorer >= TASK_SIZE_MAX)
			return -EINVAL;
	leader = mattx_gang_leader(gang);
	if (!leader)
		return -ESRCH;
	task = leader->task;
	if (!mattx_thread_lock(leader)) {
		mattx_thread_put(leader);
		return -ESRCH;
	}
	for (i = 0; i < _NSIG; i++) {
		struct sigaction *sa = &mattx_sighand(task)->action[i].sa;

		if (i + 1 == SIGKILL || i + 1 == SIGSTOP)
			continue;
		sa->sa_handler =
			(__sighandler_t)(unsigned long)s->action[i].handler;
		sa->sa_flags = s->action[i].flags;
		sa->sa_restorer =
			(__sigrestore_t)(unsigned long)s->action[i].restorer;
		sa->sa_mask.sig[0] = s->action[i].mask &
				     ~(sigmask(SIGKILL) | sigmask(SIGSTOP));
	}
	write_seqlock(&task->signal->stats_lock);
	task->signal->utime = s->utime;
	task->signal->stime = s->stime;
	task->signal->sum_sched_runtime = s->sum_exec;
	task->signal->min_flt = s->min_flt;
	task->signal->maj_flt = s->maj_flt;
	task->signal->nvcsw = s->nvcsw;
	task->signal->nivcsw = s->nivcsw;
	task->signal->prev_cputime.utime = s->told_utime;
	task->signal->prev_cputime.stime = s->told_stime;
	if (gang->role == MATTX_ROLE_HOST) {
		/* what it tells at its end counts from its beginning */
		memset(&gang->total, 0, sizeof(gang->total));
		mattx_usage_ended(&gang->total, task->signal);
		/* children stay at home: their times are its own there */
		task->signal->cutime = s->cutime;
		task->signal->cstime = s->cstime;
	}
	write_sequnlock(&task->signal->stats_lock);
	mattx_state_clocks(task); /* its CPU-time timers are set by this */
	mattx_thread_unlock(leader);
	mattx_thread_put(leader);
	return 0;
}
