/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_GANG_H
#define _MATTX_GANG_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/mattx.h>

#define MATTX_NO_CALL	   U32_MAX /* a cause that is no system call */
#define MATTX_SIGINFO_SIZE 128	   /* siginfo_t of user space */

struct file;
struct inode;
struct mattx_frame_stored;
struct mattx_peer;
struct mattx_sets;
struct mattx_watches;
struct mattx_thread;

/**
 * struct mattx_job - something that a body thread has to do
 * @node: in the thread's queue, under thread->lock
 * @start: called in the thread itself, in process context, may sleep and may
 *	touch current's user memory. Fills @call and returns 0 to have the
 *	system call made, or a negative errno to end the job with that result.
 * @done: called in the thread itself with the result, exactly once for every
 *	job that was queued; also when the thread dies first (-ESRCH, then
 *	perhaps in another task's context). The job belongs to it.
 * @call: number and arguments
 */
struct mattx_job {
	struct list_head node;
	int (*start)(struct mattx_thread *thread, struct mattx_job *job);
	void (*done)(struct mattx_thread *thread, struct mattx_job *job,
		     long ret);
	u32 nr;
	unsigned long args[6];
};

enum mattx_order {		 /* what a parked thread is told */
		   MATTX_STAY,	 /* wait for jobs */
		   MATTX_THAW,	 /* go on with the registers it came with */
		   MATTX_AWAKEN, /* take thread->state and run as the process */
};

/* What getrusage() tells, of threads or of a process. */
struct mattx_usage {
	u64 utime, stime, exec; /* ns */
	u64 min_flt, maj_flt, nvcsw, nivcsw;
};

/**
 * struct mattx_thread - one thread of a gang
 *
 * Owned by its gang's list; the task's own stay in the park holds a reference
 * too, and so does each queued task_work. States: see gang.c.
 */
struct mattx_thread {
	struct list_head node;	   /* in gang->threads, under gang->lock */
	struct hlist_node by_task; /* RCU: mattx_thread_find() */
	struct mattx_gang *gang;   /* holds a reference */
	struct task_struct *task;  /* holds a reference */
	struct kref ref;
	struct rcu_head rcu;
	s32 tid; /* as the process sees it */

	struct callback_head work; /* brings the task into the park */
	struct callback_head kick; /* interrupts its call */
	unsigned long flags;	   /* MATTX_T_* bits */
	wait_queue_head_t wait;	   /* the parked task waits here */
	spinlock_t lock;	   /* order, jobs, job */
	enum mattx_order order;
	struct list_head jobs;	 /* struct mattx_job, not yet started */
	struct mattx_job *job;	 /* being made, or NULL */
	unsigned int jobs_begun; /* under lock */
	unsigned int kicked;	 /* the one that the kick is for; under lock */

	/* Written by the thread when it parks, or by SET_THREAD; read by AWAKEN. */
	struct mattx_thread_state state;
	void *xstate;
	unsigned long scratch; /* this thread's own user buffer for jobs, 0: none yet */
	unsigned long scratch_len;
	sigset_t step_mask;	     /* with MATTX_T_STEP: the mask before it */
	kernel_siginfo_t held;	     /* with MATTX_T_HELD */
	__sighandler_t held_handler; /* that SA_RESETHAND took for it, or NULL */
	struct callback_head held_work;
	void *guest; /* wormhole/rpc.c: what this guest thread waits for */
	struct restart_block restart; /* as it was when the thread parked, for a thaw here */
	u64 asleep_since; /* sched_clock() when a freeze found it asleep, or 0 */
	kernel_siginfo_t fatal; /* with MATTX_T_FATAL */
	struct callback_head fatal_work; /* brings it into the park to go home and dump core */
	struct {
		u32 code;
		struct mattx_usage usage;
	} end; /* with MATTX_T_DIE: as the guest's thread ended; under lock */
	struct list_head signals; /* struct mattx_pending to be queued at AWAKEN */
	struct mattx_gang *child; /* of the process that its clone() makes; its own */
};

/**
 * struct mattx_gang - all threads of one process, on one node
 */
struct mattx_gang {
	struct kref ref;
	u64 id; /* random, the same on both nodes; 0 before the commit */
	enum mattx_gang_role role;
	enum mattx_gang_state state; /* under lock */
	struct mattx_peer *peer; /* the other side, holds a reference; NULL: none */
	pid_t tgid;		 /* as the process sees itself */
	struct hlist_node by_id; /* in the table of gangs */
	struct list_head node;	 /* in the list of all gangs */

	spinlock_t lock; /* threads, nr_threads, state */
	struct list_head threads;
	unsigned int nr_threads;
	wait_queue_head_t wait; /* state changed, or a thread parked or left */
	struct mutex door;	/* serialises what handles do */
	bool bound;		/* a handle is bound; under the table's lock */

	struct pid *pid;	     /* the leader's, holds a reference */
	struct pid_namespace *pidns; /* guest: its own; holds a reference */
	unsigned long stub;	     /* address of the code page, 0: none */
	unsigned long stub_len;
	bool stub_moves; /* no job begins; set under lock, read under each thread's */
	atomic_t sleepers; /* threads that have not come to AWAKEN's barrier */
	bool awake; /* AWAKEN: whoever is still waiting may go; no freeze before */
	struct work_struct wake_work; /* holds a reference while queued */
	bool hooked;		      /* holds the hooks */
	bool silent; /* its exits are not reported to the peer */

	struct mattx_range *ranges; /* under lock */
	unsigned int nr_ranges;

	/* home: guard.c */
	struct list_head guards; /* struct mattx_guard; under lock; hold a reference */
	bool recalled; /* somebody has asked for the memory; under lock */
	bool sent;     /* the COMMIT went out: the host has been asked */
	struct work_struct recall_work; /* holds a reference while queued */
	struct list_head stores;	/* struct store, under lock: store.c */
	size_t stored_bytes;		/* of them; under lock */
	struct work_struct store_work;	/* holds a reference while queued */
	/* host: store.c */
	bool shares;	      /* has shared ranges */
	bool owes;	      /* and has run with them: home waits for STORED */
	struct mm_struct *mm; /* with RANGE_KEPT; holds mm_users */
	struct mattx_frame_stored *last; /* of a guest that has ended */
	struct work_struct flush_work;	 /* holds a reference while queued */

	/* home: signals that the deputy receives, signal.c */
	struct wait_queue_entry watch; /* on sighand->signalfd_wqh */
	wait_queue_head_t *watch_head;
	bool watching;			/* under lock */
	struct work_struct signal_work; /* holds a reference while queued */
	u64 signals_sent; /* written by deputy threads under lock */
	/* host: signals for the guest */
	struct list_head inbox; /* struct mattx_pending, under lock */
	u64 signals_seen;	/* under lock */
	struct wait_queue_entry stop_watch; /* on the warden's wait_chldexit */
	int stop_sig; /* home: stops the deputy; host: last reported; 0: runs */
	struct mutex clone_lock; /* host: one new thread at a time gets its number */
	struct mutex stop_lock;	 /* one report of a stop at a time, in order */
	void *sending;		 /* what the warden is sending on; under lock */
	struct list_head shared; /* to be queued for the process at AWAKEN */

	/* of a process that a guest or its deputy has created: child.c */
	struct mattx_gang *root; /* host: whose warden serves it; a reference, or NULL: its own */
	struct mattx_thread *lender; /* vfork: whose memory it has; a reference, or NULL */
	atomic_t borrowers; /* gangs that have the memory of this one */
	u64 parent;	    /* home: id of the gang that made it, 0: none */
	bool claimed;	    /* home: its guest has been born */
	atomic_t forks; /* home: calls under way that share its descriptors */
	bool born;	/* its process was created while its parent was away */
	bool clears_handlers; /* when it is born */
	sigset_t blocked;     /* host: its mask when it is born */
	bool execs; /* home: a deputy calls execve(), no signal is forwarded; under lock */

	struct mattx_watches *watches; /* home: ghost/watch.c; set once, ours */
	struct mattx_sets *sets;       /* host: ghost/set.c; the same */

	u32 want_nr; /* call that asked to go home, or MATTX_NO_CALL; under lock */
	char want_cause[MATTX_CAUSE_MAX]; /* why it asked, empty: not; home: why it is at home; under lock */
	int answer; /* to our commit: 0 or negative errno */
	bool dying; /* home: the guest has ended, the deputy follows */
	struct {
		u32 code;
		struct mattx_usage usage;
		unsigned long taken; /* bit 0: the usage is the deputy's */
	} end;		 /* with dying: how; set once, before that */
	u32 leader_code; /* exit code of the first thread; under lock */
	struct mattx_usage total; /* of threads that have ended; under lock */
	atomic64_t calls; /* made for it or by it through the wormhole */
	u64 since;	  /* CLOCK_BOOTTIME, ns */
	u32 uid;
	char comm[TASK_COMM_LEN];
	struct work_struct release_work;
};

/* gang.c */
struct mattx_gang *mattx_gang_hold(struct mattx_gang *gang);
void mattx_gang_put(struct mattx_gang *gang);

/**
 * mattx_gang_find() - the gang that a frame names
 * Context: any. Return: a reference or NULL. A gang of another peer is never found.
 */
struct mattx_gang *mattx_gang_find(struct mattx_peer *peer, u64 id);

/**
 * mattx_gang_thread() - a thread of a gang by its TID
 * Context: any. Return: a reference or NULL.
 */
struct mattx_thread *mattx_gang_thread(struct mattx_gang *gang, s32 tid);

/* Return: some thread, with a reference, or NULL. Context: any. */
struct mattx_thread *mattx_gang_any(struct mattx_gang *gang);
struct mattx_thread *mattx_thread_hold(struct mattx_thread *thread);
void mattx_thread_put(struct mattx_thread *thread);

/**
 * mattx_gang_receive() - a frame about gangs has arrived (types 32 to 63)
 * Called by the link's receiver, in order. May sleep, never on the network.
 */
void mattx_gang_receive(struct mattx_peer *peer, u16 type, u64 id,
			const void *payload, size_t len);

/**
 * mattx_gang_peer_lost() - that instance of the node is gone for good
 * Ends its guests here and the deputies of what ran there. May sleep.
 */
void mattx_gang_peer_lost(struct mattx_peer *peer);

/* usage.c */

void mattx_usage_process(struct mattx_usage *sum);
void mattx_usage_raise(const struct mattx_usage *to,
		       const struct mattx_usage *others);
void mattx_usage_pack(const struct mattx_usage *usage, __le64 *frame);
void mattx_usage_unpack(struct mattx_usage *usage, const __le64 *frame);

/* signal.c */

/**
 * mattx_signals_now() - all that is on its way to current or pending for it
 * @infos: out: to be given to kvfree(); siginfo_t of user space
 * @seen: out: how many signals have come from home
 * Context: process, a guest's thread; sleeps, killable. Return: how many, or -EINTR, -ENOMEM.
 */
int mattx_signals_now(struct mattx_thread *thread,
		      u8 (**infos)[MATTX_SIGINFO_SIZE], u64 *seen);

/**
 * mattx_signals_hold() - forward no signals to the guest from now on
 * @seen: how many signals the guest has seen
 * Context: any. Return: false when it has not seen all: they still are forwarded.
 */
bool mattx_signals_hold(struct mattx_gang *gang, u64 seen);

/**
 * mattx_signals_go_on() - forward them again
 * Context: any.
 */
void mattx_signals_go_on(struct mattx_gang *gang);

/* child.c */

/**
 * mattx_child_expect() - a gang for the process that current's clone() is going to make
 * @thread: current's
 * @id: of the gang, 0: to be chosen
 * @flags: of the clone()
 *
 * Frames find it from now on. mattx_child_settle() must follow the call.
 * Context: process; may sleep. Return: 0; -EEXIST: there is a gang of that id; -ENOMEM.
 */
int mattx_child_expect(struct mattx_thread *thread, u64 id, u64 flags);

/**
 * mattx_child_settle() - the clone() has been made or has failed
 * Context: process, @thread is current's. Return: whether a process was born.
 */
bool mattx_child_settle(struct mattx_thread *thread);

/* hook side: who is calling? */
enum mattx_caller {
	MATTX_NOT_GUEST, /* run the native call */
	MATTX_IS_GUEST,	 /* consult the table */
	MATTX_DENY, /* in a guest's namespace, but no thread of ours: fail */
};

/**
 * mattx_caller() - is current a guest thread?
 *
 * A thread in the park or one that makes a job's call is MATTX_NOT_GUEST, and so is
 * the warden. The threads stay valid as long as they run: no reference is taken.
 *
 * Context: any, RCU not needed; a few instructions for tasks of the initial PID namespace.
 */
enum mattx_caller mattx_caller(struct mattx_thread **thread);

/**
 * mattx_guest_next_tid() - the next thread that the guest clones here is this one
 *
 * When it returns 0, mattx_guest_cloned() must follow.
 * Context: process, a guest's thread; sleeps, killable.
 * Return: 0; -EAGAIN: there is such a thread already; -ERESTARTNOINTR.
 */
int mattx_guest_next_tid(struct mattx_gang *gang, s32 tid);

/**
 * mattx_guest_cloned() - the thread is there, or cannot be
 */
void mattx_guest_cloned(struct mattx_gang *gang);

/**
 * mattx_guest_unborn() - a thread that has a deputy could not be cloned here
 * Context: process.
 */
void mattx_guest_unborn(struct mattx_gang *gang, s32 tid);

/**
 * mattx_guest_want_home() - this guest cannot go on here
 * @thread: current's
 * @nr: system call number that it cannot make here
 * @cause: in words
 *
 * Tells the daemon and waits until the gang is frozen (or a signal arrives).
 * Return: what the system call has to return: -ERESTARTNOINTR.
 */
long mattx_guest_want_home(struct mattx_thread *thread, u32 nr,
			   const char *cause);

/**
 * mattx_guest_special() - does [start, start + len) touch a range that is not
 * plain anonymous memory? Context: process.
 */
bool mattx_guest_special(struct mattx_gang *gang, unsigned long start,
			 unsigned long len);

/**
 * mattx_guest_shared() - does it touch memory that is shared at home?
 * @kept: of a file that outlives the process
 * Context: process.
 */
bool mattx_guest_shared(struct mattx_gang *gang, unsigned long start,
			unsigned long len, bool kept);

/**
 * mattx_guest_set_range() - [start, end) is a file's mapping at home, or is no longer
 * Context: process, a guest's thread; may sleep. Both page aligned.
 */
void mattx_guest_set_range(struct mattx_gang *gang, unsigned long start,
			   unsigned long end, bool file);

/**
 * mattx_body_in_the_way() - does this mmap, munmap, mprotect or madvise touch the stub or
 * a buffer?
 * @start, @len: its range, bytes
 * Context: any. Return: false for every other call.
 */
bool mattx_body_in_the_way(struct mattx_gang *gang, u32 nr, unsigned long start,
			   unsigned long len);

/* guard.c */

/**
 * mattx_guard_any() - is shared memory of it away?
 * Context: any.
 */
bool mattx_guard_any(struct mattx_gang *gang);

/**
 * mattx_guard_has() - and is it that of this file? Context: process.
 */
bool mattx_guard_has(struct mattx_gang *gang, const struct inode *inode);

/* body.c */

/**
 * mattx_body_queue() - give a body thread a job
 * Context: any. Return: 0; -ESRCH when the thread has ended or is not a body: then
 * @job->done is not called.
 */
int mattx_body_queue(struct mattx_thread *thread, struct mattx_job *job);

/**
 * mattx_body_cancel() - interrupt a job
 * If it was not started, its done gets -ERESTARTSYS at once (in the caller's
 * context); if it is being made, the call is interrupted as by a signal.
 * Harmless when the job has ended. @match picks the job (called under thread->lock).
 * Context: any.
 */
void mattx_body_cancel(struct mattx_thread *thread,
		       bool (*match)(struct mattx_job *job, void *arg),
		       void *arg);

/**
 * mattx_body_made_call() - has the call that current was sent out for been made?
 *
 * Context: the body thread itself, in its job's done(). Return: false when it was brought
 * back before it had begun, with -ERESTARTNOINTR.
 */
bool mattx_body_made_call(void);

/**
 * mattx_body_scratch() - user memory of the current body thread, for a job's buffers
 * @thread: current's
 * @len: bytes wanted
 * Context: in job->start only; may sleep. Return: user address of at least @len
 * writable bytes that stay until the next job, or 0.
 */
unsigned long mattx_body_scratch(struct mattx_thread *thread, unsigned long len);

#endif
