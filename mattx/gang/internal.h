/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of gang/ share among themselves. */
#ifndef _MATTX_GANG_INTERNAL_H
#define _MATTX_GANG_INTERNAL_H

#include "gang.h"

struct linux_binprm;
struct mattx_frame_exit;

#define AWAIT_TIMEOUT \
	(10 * HZ) /* far more than the way back from a call takes */

/* Bits of mattx_thread.flags */
enum {
	MATTX_T_BODY, /* in the park, or out for a job's call: the stub's registers */
	MATTX_T_BORN, /* a body's call has made it: on its way to its first park */
	MATTX_T_PARKED,	  /* in the park, waiting */
	MATTX_T_CALL,	  /* out for thread->job */
	MATTX_T_QUEUED,	  /* thread->work is queued by a freeze */
	MATTX_T_KICKED,	  /* thread->kick is queued */
	MATTX_T_EXITED,	  /* the task has passed sched_process_exit */
	MATTX_T_FATAL,	  /* dies of thread->fatal, at home if it can */
	MATTX_T_LAST,	  /* could not go home for it: dies here */
	MATTX_T_DEPUTY,	  /* has been turned into a deputy's thread */
	MATTX_T_SIGNALS,  /* has signals to forward */
	MATTX_T_STOP,	  /* has to stop the deputy as the guest was stopped */
	MATTX_T_STOPPING, /* is on its way to the stop */
	MATTX_T_DIE,	  /* has to end as thread->end says */
	MATTX_T_ENDS,	  /* its guest's thread has ended, so it will */
	MATTX_T_GO,	  /* the waker lets it go */
	MATTX_T_STEP,	/* is being stepped out of the vdso; QUEUED stays set */
	MATTX_T_HELD,	/* thread->held is to be delivered outside the vdso */
	MATTX_T_UNDONE, /* with HELD: its frame has been undone */
	MATTX_T_WANTED, /* with HELD: has to park after that; QUEUED stays set */
};

/*
 * A task's signal handlers. They are there for current, and for the task of a thread
 * that is in its gang's list: it has not passed sched_process_exit.
 */
static inline struct sighand_struct *mattx_sighand(struct task_struct *task)
{
	return rcu_dereference_protected(task->sighand, true);
}

/* gang.c */

/*
 * Holds a thread's process's siglock (and gang->lock around it, which keeps the task
 * from passing sched_process_exit). Return: false when the thread has left its gang.
 * IRQs are off until mattx_thread_unlock().
 */
bool mattx_thread_lock(struct mattx_thread *thread);
void mattx_thread_unlock(struct mattx_thread *thread);
struct mattx_gang *mattx_gang_alloc(enum mattx_gang_role role,
				    enum mattx_gang_state state);
void mattx_gang_set_state(struct mattx_gang *gang, enum mattx_gang_state state);
/* Wakes who waits for a change of it, its warden among them. Context: any. */
void mattx_gang_wake(struct mattx_gang *gang);
/* To the new state if it is in the old one. Return: whether it was. */
bool mattx_gang_change(struct mattx_gang *gang, enum mattx_gang_state from,
		       enum mattx_gang_state to);
void mattx_gang_publish(struct mattx_gang *gang, u64 id, struct mattx_peer *peer);
struct mattx_thread *mattx_thread_add(struct mattx_gang *gang,
				      struct task_struct *task, gfp_t gfp);
/* Ends membership; the last thread's leaving ends the gang. Any context. Return: was it the last? */
bool mattx_thread_remove(struct mattx_thread *thread);
struct mattx_thread *mattx_thread_find(struct task_struct *task);
u32 mattx_gang_peer_id(struct mattx_gang *gang);
struct mattx_thread *mattx_gang_leader(struct mattx_gang *gang);
int mattx_gang_open(struct mattx_gang **res, u64 id, enum mattx_gang_role role);
void mattx_gang_unbind(struct mattx_gang *gang);
int mattx_gang_for_each(int (*fn)(struct mattx_gang *gang, void *arg), void *arg);
bool mattx_gang_queue(struct work_struct *work);
int mattx_gang_init(void);
void mattx_gang_exit(void);

/* freeze.c */
int mattx_gang_freeze(struct mattx_gang *gang, struct pid *pid,
		      unsigned int timeout_ms, char *cause);
int mattx_gang_await_left(struct mattx_gang *gang, char *cause);
void mattx_gang_order(struct mattx_gang *gang, enum mattx_order order);
int mattx_gang_thaw(struct mattx_gang *gang);
void mattx_gang_kill(struct mattx_gang *gang);

/* child.c */
void mattx_child_born(struct mattx_thread *parent, struct task_struct *task);
void mattx_child_ended(struct mattx_gang *gang);
void mattx_child_orphaned(struct mattx_gang *gang);

/* body.c */
int mattx_body_init(void);
void mattx_body_exit(void);
void mattx_park(struct mattx_thread *thread);
void mattx_park_work(struct callback_head *work);
void mattx_kick_work(struct callback_head *work);
void mattx_thread_kick(struct mattx_thread *thread);
int mattx_body_first_stub(struct mattx_gang *gang, u64 addr, u64 len);
int mattx_body_stub(struct mattx_gang *gang, u64 addr, u64 len);
int mattx_body_own_stub(struct mattx_gang *gang);
long mattx_body_call(struct mattx_thread *thread, u32 nr, const u64 args[6]);
int mattx_body_calls(struct mattx_thread *thread, struct mattx_ioc_call *calls,
		     u32 n, void __user *user, u32 *len);
void mattx_await_parked(struct mattx_thread *thread);
int mattx_gang_await(struct mattx_gang *gang);
void mattx_body_drop_jobs(struct mattx_thread *thread);
void mattx_body_execed(void *data, struct task_struct *task, pid_t old_pid,
		       struct linux_binprm *bprm);

/* state.c */
void mattx_state_capture(struct mattx_thread *thread);
void mattx_state_apply(struct mattx_thread *thread, enum mattx_order order);
void mattx_state_detach(void);
void mattx_state_clocks(struct task_struct *task);
size_t mattx_xstate_size(void);
int mattx_thread_get(struct mattx_thread *thread, void __user *buf, u32 *len);
int mattx_thread_set(struct mattx_thread *thread, const void __user *buf,
		     u32 len);
int mattx_process_get(struct mattx_gang *gang, struct mattx_process_state *state);
int mattx_process_set(struct mattx_gang *gang,
		      const struct mattx_process_state *state);

void mattx_state_stop_timers(struct mattx_gang *gang);

/* usage.c */
void mattx_usage_add(struct mattx_usage *sum, const struct task_struct *task);
void mattx_usage_ended(struct mattx_usage *sum,
		       const struct signal_struct *signal);

/* restart.c */
int mattx_restart_init(void);
void mattx_restart_capture(struct mattx_thread *thread);
void mattx_restart_resume(struct mattx_thread *thread);
void mattx_restart_apply(struct mattx_thread *thread);

/* signal.c */
void mattx_signal_watch(struct mattx_gang *gang);
void mattx_signal_unwatch(struct mattx_gang *gang);
void mattx_signal_forward(struct mattx_thread *thread);
void mattx_signal_work(struct work_struct *work);
int mattx_signals_get(struct mattx_gang *gang, s32 tid, void __user *buf,
		      u32 *len);
int mattx_signals_set(struct mattx_gang *gang, s32 tid, const void __user *buf,
		      u32 len);
void mattx_signals_apply(struct mattx_thread *thread);
struct mattx_frame_signal;
int mattx_signal_arrived(struct mattx_gang *gang,
			 const struct mattx_frame_signal *frame);
long mattx_warden(struct mattx_gang *gang);
void mattx_signal_release(struct mattx_gang *gang);
void mattx_signal_drop_faults(void);
void mattx_signal_poke(struct mattx_gang *gang);
bool mattx_signal_quiet(struct mattx_gang *gang);
int mattx_signal_keep(struct mattx_gang *gang, s32 tid, const void *info);
int mattx_signal_inbox(struct mattx_gang *gang, struct mattx_frame_signal *frames,
		       unsigned int *n, u64 *seen);
void mattx_signals_free(struct list_head *list);

/* stop.c */
bool mattx_stop_valid(u32 sig);
int mattx_stop_signal(struct mattx_gang *gang);
bool mattx_stop_ended(void);
bool mattx_stop_by_terminal(int sig);
bool mattx_stop_orphaned(void);
bool mattx_stop_changed(struct mattx_gang *gang);
void mattx_stop_report(struct mattx_gang *gang);
void mattx_stop_wake(struct mattx_thread *thread);
void mattx_stop_wake_all(struct mattx_gang *gang);
void mattx_stop_join(void);
void mattx_stop_leave(struct mattx_thread *thread);
void mattx_stop_deputy(struct mattx_gang *gang, u32 sig);
void mattx_stop_end(struct mattx_gang *gang);
void mattx_stop_self(struct mattx_thread *thread);
void mattx_stop_back(struct mattx_thread *thread);
void mattx_stop_adopt(struct mattx_gang *gang, u32 sig);

/* waker.c */
void mattx_waker_order(struct mattx_gang *gang);
void mattx_waker_work(struct work_struct *work);
void mattx_waker_start(struct mattx_gang *gang);
int mattx_waker_wait(struct mattx_thread *thread);

/* vdso.c */
bool mattx_vdso_step(struct mattx_thread *thread);
bool mattx_vdso_trap(struct mattx_thread *thread, struct pt_regs *regs,
		     unsigned long dr6);
void mattx_vdso_signal(struct mattx_thread *thread);
void mattx_vdso_hold(struct mattx_thread *thread, int sig,
		     const struct kernel_siginfo *info,
		     const struct k_sigaction *ka);
void mattx_vdso_held_work(struct callback_head *work);

/* core.c */
void mattx_core_deliver(void *data, int sig, struct kernel_siginfo *info,
			struct k_sigaction *ka);
void mattx_core_work(struct callback_head *work);
void mattx_core_stay(struct mattx_thread *thread);

/* guard.c */
int mattx_guard_look(struct mattx_ioc_shared *arg);
int mattx_guard_take(struct mattx_gang *gang, struct mattx_ioc_shared *arg);
int mattx_guard_data(struct mattx_gang *gang, struct mattx_ioc_data *arg);
void mattx_guard_release(struct mattx_gang *gang);
void mattx_guard_ended(struct mattx_gang *gang);
void mattx_guard_release_ended(struct mattx_gang *gang);
loff_t mattx_guard_seek(struct file *file, loff_t pos, int whence);
void mattx_guard_recall(struct mattx_gang *gang);
void mattx_guard_recall_work(struct work_struct *work);
struct file *mattx_guard_file(struct mattx_gang *gang, u64 addr, u64 *len,
			      loff_t *pos);

/* store.c */
int mattx_store_arm(struct mattx_gang *gang, struct task_struct *task);
void mattx_store_end(struct mattx_gang *gang,
		     const struct mattx_frame_exit *exit, bool tell);
void mattx_store_flush_work(struct work_struct *work);
int mattx_store_arrived(struct mattx_gang *gang, u16 type, const void *payload,
			size_t len);
void mattx_store_work(struct work_struct *work);
void mattx_store_free(struct mattx_gang *gang);

/* message.c */
bool mattx_deputy_work(struct mattx_thread *thread);
void mattx_deputy_serve(struct mattx_thread *thread);
void mattx_gang_ask_home(struct mattx_gang *gang, u32 nr, const char *cause);
int mattx_gang_arm(struct mattx_gang *gang, const struct mattx_ioc_commit *arm);
int mattx_gang_commit(struct mattx_gang *gang, struct mattx_ioc_commit *commit);
void mattx_report_exit(struct mattx_thread *thread, struct task_struct *task,
		       bool last);
void mattx_deputy_end(struct mattx_gang *gang,
		      const struct mattx_frame_exit *frame);

#endif
