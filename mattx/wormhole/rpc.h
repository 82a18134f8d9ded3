/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_RPC_H
#define _MATTX_RPC_H

#include <linux/types.h>

struct mattx_call;
struct mattx_peer;
struct mattx_thread;
struct pt_regs;
struct restart_block;

int mattx_rpc_init(void);
void mattx_rpc_exit(void);

/**
 * mattx_rpc_receive() - a frame about a system call has arrived (types 16 to 31)
 * @payload: kvmalloc'ed; taken over in any case
 * Context: the link's receiver.
 */
void mattx_rpc_receive(struct mattx_peer *peer, u16 type, u64 gang,
		       void *payload, u32 len);

/**
 * mattx_rpc_peer_lost() - that instance of the node is gone: end the calls that wait for it
 * Context: process.
 */
void mattx_rpc_peer_lost(struct mattx_peer *peer);

/**
 * mattx_rpc_stat() - one value of the statistics
 * Context: any. Return: false when there are not so many.
 */
bool mattx_rpc_stat(unsigned long index, char *name, size_t size, u64 *value);

/**
 * mattx_guest_syscall() - what a guest's thread runs in place of a system call's function
 * Context: as a system call's function. Return: what the system call returns.
 */
long mattx_guest_syscall(const struct pt_regs *regs);

/**
 * mattx_call_deputy() - have the deputy make a call, until it is made
 * @args: arguments, perhaps not those of the registers
 *
 * A call that was interrupted without a signal for the guest is made again.
 * Context: current is @thread; sleeps. Return: as a system call's function.
 */
long mattx_call_deputy(struct mattx_thread *thread, u32 nr,
		       const struct mattx_call *call, const u64 *args);

/**
 * mattx_call_firm() - the same for a call that does not block at home
 *
 * @flags: out: MATTX_REPLY_* of the reply; may be NULL
 *
 * A signal does not interrupt it, so that what is done here and at home is done in
 * both places or in neither.
 */
long mattx_call_firm(struct mattx_thread *thread, u32 nr,
		     const struct mattx_call *call, const u64 *args, u32 *flags);

struct mattx_frame_set;
struct mattx_wire_item;

/**
 * mattx_rpc_set() - have the deputy do something with an epoll set
 * @frame: all but call and tid, which are filled in
 * @item: @frame->n of them
 * Context: process; sleeps until home has answered, killable; not for the thread only.
 * Return: what home has answered: above 0, or a negative errno; -EINTR: killed.
 */
long mattx_rpc_set(struct mattx_thread *thread, struct mattx_frame_set *frame,
		   const struct mattx_wire_item *item);

struct mattx_frame_reply;

/**
 * mattx_rpc_fetch() - have the deputy read its memory
 * @thread: current's
 * @addr, @len: bytes, whole pages; @len is MATTX_FETCH_MAX at most
 * @reply: out: NULL, or to be given to kvfree(); what was read follows it
 * Context: process; sleeps until home has answered, killable; also with the locks of the
 * memory management, which are the guest's own.
 * Return: bytes that were read, whole pages; or a negative errno: -EINTR: killed.
 */
long mattx_rpc_fetch(struct mattx_thread *thread, u64 addr, u32 len,
		     struct mattx_frame_reply **reply);

/* Has a deputy's call been interrupted, as only we do it? Context: any. */
bool mattx_interrupted(long ret);

struct mattx_frame_exec;

/**
 * mattx_rpc_exec() - have the deputy become another program
 * @frame: all but call and tid, which are filled in
 * @data: signals and strings
 * Context: process; sleeps until home has answered, killable.
 * Return: 0: it has; MATTX_AGAIN: home has sent signals meanwhile; as execve(2).
 */
long mattx_rpc_exec(struct mattx_thread *thread, struct mattx_frame_exec *frame,
		    const void *data, size_t len);

/*
 * Calls with a time-out that are continued by restart_syscall(2) on the host.
 *
 * For gang/restart.c: on the host a poll(2) that was interrupted has
 * mattx_poll_restart as its restart_block.fn, not the kernel's do_restart_poll,
 * which would look at descriptors here; the block's contents are those of the
 * kernel's (.poll.ufds, .nfds, .has_timeout, .tv_sec, .tv_nsec: CLOCK_MONOTONIC of
 * this node). So MATTX_RESTART_POLL is captured from either function, and is applied
 * with do_restart_poll at home and mattx_poll_restart on a host.
 *
 * mattx_wait_restart continues epoll_wait, epoll_pwait, epoll_pwait2, select,
 * pselect6 and ppoll with a time-out: .poll.nfds has the call's number, .poll.tv_* the
 * deadline (CLOCK_MONOTONIC of this node). The kernel at home has no such restart, so
 * for a move it is turned into the call itself with the time that is left, at the
 * moment of mattx_restart_apply() in the other body. (Frozen natively, at home,
 * select, pselect6 and ppoll show -ERESTARTNOHAND and have written the time that was left
 * to their timespec or timeval.)
 */
long mattx_poll_restart(struct restart_block *block);
long mattx_wait_restart(struct restart_block *block);

/**
 * mattx_wait_rewind() - registers with which the call goes on for the time that is left
 * @regs: of the interrupted thread; ax gets -ERESTARTNOHAND, orig_ax the number
 * @nr: .poll.nfds of the captured block
 * @left: ns until the deadline, 0 when it has passed
 *
 * select, pselect6 and ppoll: writes to current's memory. Context: the thread itself.
 */
struct mattx_regs;
void mattx_wait_rewind(struct mattx_regs *regs, u32 nr, s64 left);

/* reach.c */

/**
 * mattx_reach_denied() - would this call reach shared memory that is away?
 * @args: of the call
 * Context: current is the deputy's thread; may sleep.
 */
bool mattx_reach_denied(struct mattx_thread *thread, u32 nr, const u64 *args);

/**
 * mattx_reach_message() - does it hand descriptors to somebody?
 * @vec: address of its struct msghdr, or of @n struct mmsghdr
 * Context: as above; @vec lies in the thread's buffer.
 */
bool mattx_reach_message(struct mattx_thread *thread, u32 nr, unsigned long vec,
			 unsigned int n);

/**
 * mattx_reach_refused() - has an open() failed because the memory is away?
 * Context: any.
 */
bool mattx_reach_refused(struct mattx_thread *thread, u32 nr, long ret);

/* serve.c */
int mattx_serve_init(void);
void mattx_serve_exit(void);
void mattx_serve_call(struct mattx_peer *peer, u64 gang, void *payload, u32 len);
void mattx_serve_set(struct mattx_peer *peer, u64 gang, void *payload, u32 len);
void mattx_serve_fetch(struct mattx_peer *peer, u64 gang, void *payload, u32 len);
void mattx_serve_exec(struct mattx_peer *peer, u64 gang, void *payload, u32 len);
void mattx_serve_cancel(struct mattx_peer *peer, u64 gang, const void *payload,
			u32 len);

#endif
