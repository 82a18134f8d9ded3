/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * MattX: the only ABI between mattx.ko and mattxd.
 *
 * Two doors.  The generic-netlink family "mattx" carries what concerns nodes:
 * peers, their connections, statistics, events.  The character device
 * /dev/mattx carries what concerns one process: an open file of it is bound to
 * one gang (all threads of one process) and is its handle.  Both are for root.
 *
 * A thread is named by its TID as the process itself sees it, which is the
 * same number at home and on the host.
 *
 * All structures have explicit padding, which must be zero; a module of
 * another MATTX_ABI refuses the daemon at MATTX_IOC_VERSION.
 */
#ifndef _UAPI_MATTX_H
#define _UAPI_MATTX_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define MATTX_ABI	  2
#define MATTX_NAME_MAX	  64  /* node name with its NUL: HOST_NAME_MAX */
#define MATTX_CAUSE_MAX	  128 /* a cause in words, with its NUL */
#define MATTX_ADDRESS_MAX 46  /* a node's address in words: INET6_ADDRSTRLEN */
#define MATTX_ERRNO_MAX	  511 /* above it are numbers that no process may see */

/* ------------------------------------------------------------------ ioctl */

/* Where a gang is in its life.  Drawn in mattx/gang/gang.c. */
enum mattx_gang_state {
	MATTX_GANG_FREEZING = 1,   /* home: threads are being parked */
	MATTX_GANG_FROZEN = 2,	   /* all parked, may be thawed or committed */
	MATTX_GANG_COMMITTING = 3, /* commit sent, the answer is not here yet */
	MATTX_GANG_DEPUTY = 4,	   /* home: the guest is the live copy */
	MATTX_GANG_BODY = 5,	   /* host: being built */
	MATTX_GANG_ARMED = 6,	   /* complete, waits for the commit */
	MATTX_GANG_GUEST = 7,	   /* host: runs here */
	MATTX_GANG_DEAD = 8,	   /* ended, only references are left */
};

enum mattx_gang_role {
	MATTX_ROLE_HOME = 1, /* the process was started on this node */
	MATTX_ROLE_HOST = 2, /* the process is a guest of this node */
};

/* General registers, in the order of struct user_regs_struct of <sys/user.h> up to ss. */
struct mattx_regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	__u64 ax, cx, dx, si, di;
	__u64 orig_ax; /* number of the interrupted call, or -1 */
	__u64 ip, cs, flags, sp, ss;
	__u64 fs_base, gs_base;
};

/* Which interrupted call has to go on, when regs.ax is -ERESTART_RESTARTBLOCK. */
enum mattx_restart_kind {
	MATTX_RESTART_NONE = 0,
	MATTX_RESTART_FUTEX = 1,     /* uaddr, val, flags, bitset, time */
	MATTX_RESTART_NANOSLEEP = 2, /* clockid, rmtp, expires */
	MATTX_RESTART_POLL = 3,	     /* ufds, nfds, deadline */
	MATTX_RESTART_ALARM = 4,     /* as NANOSLEEP, an alarm clock */
	MATTX_RESTART_CPU = 5,	     /* as NANOSLEEP, a CPU-time clock */
	MATTX_RESTART_WAIT =
		6, /* epoll_wait and its kin: val is the number, deadline */
};

struct mattx_restart {
	__u32 kind;	 /* enum mattx_restart_kind */
	__u32 flags;	 /* futex: kernel's FLAGS_*; else has_timeout */
	__u64 addr;	 /* uaddr, rmtp or ufds */
	__u32 val;	 /* futex value, nfds, clockid or number */
	__u32 bitset;	 /* futex */
	__s64 time;	 /* absolute, ns, by the clock as the process
					 * reads it; converted by the module */
	__u32 rmtp_type; /* nanosleep: enum timespec_type */
	__u32 pad;
};

/* One thread.  Followed in memory by xstate_len bytes of NT_X86_XSTATE. */
struct mattx_thread_state {
	__s32 tid;
	__u32 xstate_len;
	struct mattx_regs regs;
	struct mattx_restart restart;
	__u64 blocked, saved_sigmask;
	__u32 restore_sigmask; /* saved_sigmask is valid */
	__u32 robust_list_len;
	__u64 robust_list;
	__u64 clear_child_tid;
	__u64 sas_sp, sas_size;
	__u32 sas_flags;
	__u32 rseq_len;
	__u64 rseq;
	__u32 rseq_sig;
	__u32 futex_order; /* place among the gang's futex sleepers, 0: not one */
	__u64 utime, stime, sum_exec; /* ns */
	__u64 told_utime, told_stime; /* ns: what getrusage() has said last */
	__u64 min_flt, maj_flt, nvcsw, nivcsw;
	__s32 exit_signal;
	__u32 pad;
};

struct mattx_sigaction {
	__u64 handler, flags, restorer, mask;
};

/* What the threads of a process share and /proc does not tell. */
struct mattx_process_state {
	struct mattx_sigaction action[64];
	__u64 utime, stime, sum_exec; /* of threads that have ended, ns */
	__u64 told_utime, told_stime; /* ns: what getrusage() has said last */
	__u64 cutime, cstime;	      /* of children that were waited for, ns */
	__u64 min_flt, maj_flt, nvcsw, nivcsw;
	__u64 monotonic, boottime,
		realtime; /* clocks now, ns, as this process reads them */
	__u64 virt_value, virt_interval; /* ITIMER_VIRTUAL, ns */
	__u64 prof_value, prof_interval; /* ITIMER_PROF, ns */
	__u32 uid, gid, ngroups,
		pad; /* effective; for the host's ps and scheduler */
};

struct mattx_ioc_version {
	__u32 abi; /* in: the daemon's, out: the module's */
	__u32 pad;
};

struct mattx_ioc_freeze {
	__s32 pid; /* 0: the gang this handle is bound to */
	__u32 timeout_ms;
	__u32 threads; /* out */
	__u32 pad;
	char cause[MATTX_CAUSE_MAX]; /* out, on error: what stands in the way */
};

struct mattx_ioc_open {
	__u64 gang;
	__u32 role; /* enum mattx_gang_role */
	__u32 pad;
};

struct mattx_ioc_info { /* MATTX_IOC_INFO */
	__u64 gang;
	__u32 role, state;
	__s32 pid;  /* as the caller sees the leader */
	__s32 tgid; /* as the process sees itself */
	__u32 threads;
	__u32 peer;	   /* node id, 0: none */
	__u32 xstate_size; /* bytes of NT_X86_XSTATE on this node */
	__u32 pad;
};

struct mattx_ioc_body { /* called by the body's first thread itself */
	__u64 stub;	/* page aligned: free here and in the guest */
	__u64 stub_len; /* bytes: one page of code, the rest is scratch */
};

struct mattx_ioc_buf { /* THREADS, GET/SET_THREAD, GET/SET_PROCESS, ... */
	__s32 tid;     /* where it matters */
	__u32 len;     /* in: of the buffer, out: of the contents */
	__u64 ptr;
};

struct mattx_ioc_call { /* make a system call in a body */
	__s32 tid;
	__u32 nr;
	__u64 args[6];
	__s64 ret;
};

/* Read or write memory of a process that its own protection forbids, as debuggers may. */
struct mattx_ioc_memory {
	__s32 pid;
	__u32 write; /* 0, 1 */
	__u64 addr;  /* there */
	__u64 ptr;   /* here */
	__u32 len; /* in: bytes, out: how many were moved, which is not none */
	__u32 pad;
};

struct mattx_ioc_commit { /* ARM, COMMIT */
	__u64 gang;	  /* random, chosen at home; 0 on the way back */
	__u32 peer;	  /* node id of the other side */
	__u32 result; /* COMMIT out: 0 committed, else errno of the refusal */
	__u32 reason; /* way back: system call number + 1 that caused it, or 0 */
	__u32 pad;
};

/* An address range of the guest that is not plain anonymous memory. */
struct mattx_range {
	__u64 start, end;
	__u32 kind;   /* enum mattx_range_kind */
	__u32 object; /* SHARED, KEPT, at home: number of its file; else 0 */
};

enum mattx_range_kind {
	MATTX_RANGE_FILE = 1, /* was mapped from a file; the contents were sent */
	MATTX_RANGE_VDSO = 2, /* vdso and its data pages */
	MATTX_RANGE_SHARED =
		3, /* shared at home, but with nobody: written back there */
	MATTX_RANGE_KEPT = 4, /* the same, of a file that outlives the process */
};

/*
 * Shared mappings of a process. LOOK: of one that runs, pid; GUARD: of the frozen one
 * of this handle. ENOTUNIQ: one cannot move, and is told.
 */
struct mattx_ioc_shared {
	__s32 pid;
	__u32 pad;
	__u64 from; /* in: where to begin; out: where the mapping begins */
	char cause[MATTX_CAUSE_MAX]; /* out */
};

/* Where a mapping that is guarded has contents: the first of it in [start, end). */
struct mattx_ioc_data {
	__u64 start, end; /* in and out */
};

#define MATTX_IOC_MAGIC	  'X'
#define MATTX_IOC_VERSION _IOWR(MATTX_IOC_MAGIC, 0, struct mattx_ioc_version)
/* Bind the handle: to a process of this node and freeze it, or to a known gang. */
#define MATTX_IOC_FREEZE _IOWR(MATTX_IOC_MAGIC, 1, struct mattx_ioc_freeze)
#define MATTX_IOC_OPEN	 _IOW(MATTX_IOC_MAGIC, 2, struct mattx_ioc_open)
#define MATTX_IOC_BODY	 _IOW(MATTX_IOC_MAGIC, 3, struct mattx_ioc_body)
#define MATTX_IOC_INFO	 _IOR(MATTX_IOC_MAGIC, 4, struct mattx_ioc_info)
/* A frozen gang goes on as if nothing had been. */
#define MATTX_IOC_THAW _IO(MATTX_IOC_MAGIC, 5)
/* __s32 tids[] of all threads, the leader first. */
#define MATTX_IOC_THREADS     _IOWR(MATTX_IOC_MAGIC, 6, struct mattx_ioc_buf)
#define MATTX_IOC_GET_THREAD  _IOWR(MATTX_IOC_MAGIC, 7, struct mattx_ioc_buf)
#define MATTX_IOC_SET_THREAD  _IOWR(MATTX_IOC_MAGIC, 8, struct mattx_ioc_buf)
#define MATTX_IOC_GET_PROCESS _IOWR(MATTX_IOC_MAGIC, 9, struct mattx_ioc_buf)
#define MATTX_IOC_SET_PROCESS _IOWR(MATTX_IOC_MAGIC, 10, struct mattx_ioc_buf)
/* siginfo_t[] pending for thread tid, or for the process when tid is 0. */
#define MATTX_IOC_GET_SIGNALS _IOWR(MATTX_IOC_MAGIC, 11, struct mattx_ioc_buf)
#define MATTX_IOC_SET_SIGNALS _IOWR(MATTX_IOC_MAGIC, 12, struct mattx_ioc_buf)
/* struct mattx_range[], sorted by start. */
#define MATTX_IOC_GET_RANGES _IOWR(MATTX_IOC_MAGIC, 13, struct mattx_ioc_buf)
#define MATTX_IOC_SET_RANGES _IOWR(MATTX_IOC_MAGIC, 14, struct mattx_ioc_buf)
#define MATTX_IOC_CALL	     _IOWR(MATTX_IOC_MAGIC, 15, struct mattx_ioc_call)
/* Put (or move) the stub into a frozen process or deputy, so that it takes CALLs. */
#define MATTX_IOC_STUB _IOW(MATTX_IOC_MAGIC, 16, struct mattx_ioc_body)
/* The receiving side is complete: wake it when the peer's module commits. */
#define MATTX_IOC_ARM _IOW(MATTX_IOC_MAGIC, 17, struct mattx_ioc_commit)
/* The sending side: hand over.  Returns when the peer has answered. */
#define MATTX_IOC_COMMIT _IOWR(MATTX_IOC_MAGIC, 18, struct mattx_ioc_commit)
/* PID 1 of the guest's namespace: serve until the guest has ended. */
#define MATTX_IOC_WARDEN _IO(MATTX_IOC_MAGIC, 19)
/* Kill a body that was not committed, or the guest or deputy whatever it does. */
#define MATTX_IOC_KILL _IO(MATTX_IOC_MAGIC, 20)
/*
 * struct mattx_ioc_call[]: calls that thread tid makes one after the other until one
 * fails. Out: len of those that were made, the last one being the one that failed.
 */
#define MATTX_IOC_CALLS _IOWR(MATTX_IOC_MAGIC, 21, struct mattx_ioc_buf)
/* Nobody else reaches its shared memory, nor will before it is back. GET_RANGES tells. */
#define MATTX_IOC_LOOK	_IOWR(MATTX_IOC_MAGIC, 22, struct mattx_ioc_shared)
#define MATTX_IOC_GUARD _IOWR(MATTX_IOC_MAGIC, 23, struct mattx_ioc_shared)
#define MATTX_IOC_DATA \
	_IOWR(MATTX_IOC_MAGIC, 24, struct mattx_ioc_data) /* or ENXIO */
#define MATTX_IOC_MEMORY _IOWR(MATTX_IOC_MAGIC, 25, struct mattx_ioc_memory)

/* ---------------------------------------------------------------- netlink */

#define MATTX_GENL_NAME	   "mattx"
#define MATTX_GENL_VERSION 1
#define MATTX_GENL_EVENTS  "events" /* multicast group */

enum mattx_cmd {
	MATTX_CMD_UNSPEC,
	MATTX_CMD_NODE_SET, /* NODE_ID, NODE_NAME, NODE_INSTANCE, NODE_LOCAL flag:
				 * makes a node known, or tells that it was restarted
				 * (another instance), which ends what was shared with
				 * the old one */
	MATTX_CMD_NODE_DEL, /* NODE_ID: refused (EBUSY) while gangs are shared */
	MATTX_CMD_NODE_GET, /* dump: NODE_* */
	MATTX_CMD_LINK_SET, /* NODE_ID, SOCK_FD, TLS flag: an authenticated, connected
				 * TCP socket to that node becomes its link */
	MATTX_CMD_GANG_GET, /* dump: GANG_* */
	MATTX_CMD_THREAD_GET, /* dump of one gang's threads: GANG_ID, GANG_ROLE -> THREAD_* */
	MATTX_CMD_STATS_GET, /* dump: STAT_NAME, STAT_VALUE; SYSCALL_* */
	MATTX_CMD_FAULT_SET, /* FAULT_POINT, FAULT_COUNT: tests only */
	/* events */
	MATTX_CMD_EV_LINK_DOWN, /* NODE_ID, CAUSE */
	MATTX_CMD_EV_WANT_HOME, /* GANG_ID, NODE_ID, GANG_REASON (syscall nr), CAUSE */
	MATTX_CMD_EV_GANG_END, /* GANG_ID, GANG_ROLE, GANG_PID, CAUSE */
	/* /proc/mattx */
	MATTX_CMD_NODE_FACTS, /* NODE_ID, NODE_ADDRESS, NODE_CPUS, NODE_LOAD,
				 * NODE_FREE: what "nodes" there says of it */
	MATTX_CMD_ADMIN_SERVE, /* ADMIN_PORT: orders written to "admin" go there */
	MATTX_CMD_EV_ADMIN, /* to that port only: ADMIN_ORDER, ADMIN_VERB, GANG_PID,
				 * and ADMIN_NODE with MIGRATE */
	MATTX_CMD_ADMIN_DONE, /* ADMIN_ORDER, ADMIN_ERRNO: its answer */
	__MATTX_CMD_MAX
};
#define MATTX_CMD_MAX (__MATTX_CMD_MAX - 1)

enum mattx_attr {
	MATTX_A_UNSPEC,
	MATTX_A_NODE_ID,   /* u32, not 0 */
	MATTX_A_NODE_NAME, /* string */
	MATTX_A_NODE_INSTANCE, /* u64: changes when that node's module is loaded anew */
	MATTX_A_NODE_LOCAL, /* flag */
	MATTX_A_NODE_STATE, /* u32: 0 no link, 1 link up */
	MATTX_A_SOCK_FD,    /* u32 */
	MATTX_A_TLS, /* flag: refuse the socket unless both directions are keyed */
	MATTX_A_GANG_ID,      /* u64 */
	MATTX_A_GANG_ROLE,    /* u32 enum mattx_gang_role */
	MATTX_A_GANG_STATE,   /* u32 enum mattx_gang_state */
	MATTX_A_GANG_PID,     /* u32: as seen from the daemon */
	MATTX_A_GANG_TGID,    /* u32: as the process sees itself */
	MATTX_A_GANG_THREADS, /* u32 */
	MATTX_A_GANG_REASON,  /* u32: system call number, or absent */
	MATTX_A_GANG_CALLS,   /* u64: calls made or served so far */
	MATTX_A_GANG_SINCE, /* u64: CLOCK_BOOTTIME of the arrival or departure, ns */
	MATTX_A_GANG_UID,     /* u32 */
	MATTX_A_GANG_COMM,    /* string */
	MATTX_A_CAUSE,	      /* string */
	MATTX_A_STAT_NAME,    /* string */
	MATTX_A_STAT_VALUE,   /* u64 */
	MATTX_A_FAULT_POINT,  /* u32 enum mattx_fault */
	MATTX_A_FAULT_COUNT,  /* u32: fire at the Nth pass, 0: off */
	MATTX_A_THREAD_TID,   /* u32 */
	MATTX_A_THREAD_STATE, /* string: runs, waits in NAME, parked, ... */
	MATTX_A_PAD,
	MATTX_A_NODE_ADDRESS, /* string, without port; "": not known */
	MATTX_A_NODE_CPUS,    /* u32: online */
	MATTX_A_NODE_LOAD,    /* u32: of the last minute, in hundredths */
	MATTX_A_NODE_FREE,    /* u64: bytes of memory that can be had */
	MATTX_A_ADMIN_PORT,  /* u32: netlink port of a generic netlink socket */
	MATTX_A_ADMIN_ORDER, /* u32: number of the order, not 0 */
	MATTX_A_ADMIN_VERB,  /* u32 enum mattx_admin_verb */
	MATTX_A_ADMIN_NODE, /* string, as it was written: name, number, "home" */
	MATTX_A_ADMIN_ERRNO, /* u32: 0: done */
	__MATTX_A_MAX
};
#define MATTX_A_MAX (__MATTX_A_MAX - 1)

/* What mattxd is asked to do by EV_ADMIN. */
enum mattx_admin_verb {
	MATTX_ADMIN_MIGRATE = 1, /* GANG_PID to ADMIN_NODE */
	MATTX_ADMIN_EXPEL = 2,	 /* the guest GANG_PID to its home */
};

/* Fault points of the module.  Those of the daemon start at MATTX_FAULT_DAEMON. */
enum mattx_fault {
	MATTX_FAULT_NONE,
	MATTX_FAULT_FREEZE,	/* a thread cannot be frozen */
	MATTX_FAULT_GET_THREAD, /* state cannot be read */
	MATTX_FAULT_STUB,	/* the stub cannot be mapped */
	MATTX_FAULT_BODY,	/* a body cannot be made */
	MATTX_FAULT_SET_THREAD, /* state cannot be set */
	MATTX_FAULT_CALL,	/* a body's call fails with ENOMEM */
	MATTX_FAULT_ARM,	/* arming fails */
	MATTX_FAULT_COMMIT,	/* the commit cannot be sent */
	MATTX_FAULT_COMMIT_REFUSED, /* the other side answers that it is not armed */
	__MATTX_FAULT_MODULE_MAX,
	MATTX_FAULT_DAEMON = 100,
};

#endif
