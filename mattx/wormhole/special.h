/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_SPECIAL_H
#define _MATTX_SPECIAL_H

#include <linux/types.h>

#include "wormhole/table.h"

struct mattx_request;
struct mattx_thread;
struct pt_regs;

/* What mattx_call_once() returns when the call has to be made again. */
#define MATTX_AGAIN (-4096L)

/* ------------------------------------------ rpc.c, for special.c and wait.c */

/**
 * mattx_call_once() - have the deputy make a call
 * @rq: thread, call, nr and args are set; all of it is used up but args and flags
 * Return: as a system call's function, or MATTX_AGAIN: it was interrupted, but the
 * guest has no signal.
 */
long mattx_call_once(struct mattx_request *rq);

/* The gang goes home and makes the call there. @why: what is in the way, or NULL. */
long mattx_go_home(struct mattx_thread *thread, u32 nr, const char *why);

/* The call is made natively on this node after all. */
long mattx_call_here(u32 nr, const struct pt_regs *regs);

void mattx_regs_args(const struct pt_regs *regs, u64 *args);
void mattx_count_served(u32 nr);

/* ------------------------------------ special.c, wait.c: handlers of the table */

#define MATTX_HANDLER(name) \
	long name(struct mattx_thread *thread, const struct mattx_call *call, \
		  const struct pt_regs *regs)

MATTX_HANDLER(mattx_do_rw);
MATTX_HANDLER(mattx_do_open);
MATTX_HANDLER(mattx_do_self);  /* argument 0 names a thread */
MATTX_HANDLER(mattx_do_self1); /* argument 1 does */
MATTX_HANDLER(mattx_do_both);  /* here and at home */
MATTX_HANDLER(mattx_do_prlimit);
MATTX_HANDLER(mattx_do_setrlimit);
MATTX_HANDLER(mattx_do_kill);
MATTX_HANDLER(mattx_do_tgkill);
MATTX_HANDLER(mattx_do_tkill);
MATTX_HANDLER(mattx_do_sigqueue);
MATTX_HANDLER(mattx_do_prctl);
MATTX_HANDLER(mattx_do_clock);
MATTX_HANDLER(mattx_do_times);
MATTX_HANDLER(mattx_do_getrusage);
MATTX_HANDLER(mattx_do_itimer);
MATTX_HANDLER(mattx_do_personality);
MATTX_HANDLER(mattx_do_mmap);  /* mapping.c */
MATTX_HANDLER(mattx_do_range); /* argument 0 and 1: a range */
MATTX_HANDLER(mattx_do_mremap);
MATTX_HANDLER(mattx_do_madvise);
MATTX_HANDLER(mattx_do_msync);

MATTX_HANDLER(mattx_do_clone); /* thread.c */
MATTX_HANDLER(mattx_do_clone3);
MATTX_HANDLER(mattx_do_fork); /* process.c */
MATTX_HANDLER(mattx_do_vfork);
MATTX_HANDLER(mattx_do_execve); /* exec.c; execveat too */
MATTX_HANDLER(mattx_do_cred);	/* special.c */

MATTX_HANDLER(mattx_do_poll);
MATTX_HANDLER(mattx_do_select); /* pselect6, ppoll too */
MATTX_HANDLER(mattx_do_epoll_wait);

MATTX_HANDLER(mattx_do_epoll_ctl); /* ghost/set.c */
MATTX_HANDLER(mattx_do_epoll_create);

/* ------------------------------------------------------- process.c, for thread.c */

/* What a guest's clone() asks for. */
struct mattx_clone {
	u64 flags; /* and the signal, as in clone(2) */
	u64 stack; /* its top, 0: the same */
	u64 parent_tid, child_tid, tls;
};

/**
 * mattx_clone_process() - a guest's thread creates a process
 * @nr: of the call
 * Context: as a system call's function. Return: as clone(2).
 */
long mattx_clone_process(struct mattx_thread *thread, u32 nr,
			 const struct mattx_clone *clone);

/* May a process with these flags be created away? */
bool mattx_is_process(u64 flags);

/* Is it such a clone() that home is asked for? By the values of its arguments. */
bool mattx_refine_process(const u64 *args);

/* ---------------------------------------------- refine.c: see struct mattx_call */

bool mattx_refine_ioctl(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_fcntl(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_prctl(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_sockopt(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_sendto(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_sendmsg(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_sendmmsg(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_mmap(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_clone(const u64 *args, struct mattx_arg *arg);
bool mattx_refine_timer_create(const u64 *args, struct mattx_arg *arg);

#endif
