/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_SET_H
#define _MATTX_SET_H

#include <linux/ktime.h>
#include <linux/types.h>

struct epoll_event;
struct mattx_gang;
struct mattx_peer;
struct mattx_thread;

/*
 * The host's side of pushed readiness: ghosts (ghost.c) and the epoll sets that
 * register them (set.c).
 */

/* What mattx_set_wait() returns when the deputy has to wait. */
#define MATTX_SET_REMOTE (-4097L)

/**
 * mattx_set_wait() - epoll_wait() of a guest's thread
 * @until: CLOCK_MONOTONIC, or NULL: for ever; @now: do not wait at all
 *
 * Takes the set over first, if it can be had. Context: as a system call's function.
 * Return: as epoll_wait() does, -ERESTARTNOHAND for a signal; MATTX_SET_REMOTE.
 */
long mattx_set_wait(struct mattx_thread *thread, u32 fd,
		    struct epoll_event __user *events, int max,
		    const ktime_t *until, bool now);

/**
 * mattx_set_shun() - poll() or select() is about to look at a set
 * @asks: does the call look at this number? May sleep.
 * Context: a guest's thread; sleeps. Return: 0, or -ERESTARTNOINTR for a signal.
 */
int mattx_set_shun(struct mattx_thread *thread,
		   bool (*asks)(u32 fd, const void *arg), const void *arg);

/**
 * mattx_sets_settle() - give back the sets that the host cannot serve any more
 * Context: a guest's thread; sleeps. Return: 0, or -ERESTARTNOINTR for a signal.
 */
int mattx_sets_settle(struct mattx_thread *thread);

/**
 * mattx_sets_give_all() - give back all sets: others are going to reach them
 * Context: a guest's thread; sleeps. Return: 0, or -ERESTARTNOINTR for a signal.
 */
int mattx_sets_give_all(struct mattx_thread *thread);

/* Something has to be settled? Context: any. */
bool mattx_sets_unsettled(struct mattx_gang *gang);

/**
 * mattx_sets_sync() - a frozen guest: home learns of one-shots that have fired
 * Context: process; sleeps until home has answered, killable. Return: 0 or an errno.
 */
int mattx_sets_sync(struct mattx_gang *gang);

/* A number is a new set's: what was known of the old one is void. */
void mattx_set_created(struct mattx_thread *thread, u32 fd);

/**
 * mattx_sets_grant() - a REPLY names the watch of a registration
 * Context: the link's receiver, atomic.
 */
void mattx_sets_grant(struct mattx_gang *gang, u32 watch);

/**
 * mattx_sets_receive() - ITEMS, READY or GONE has arrived
 * Context: the link's receiver.
 */
void mattx_sets_receive(struct mattx_peer *peer, u16 type, u64 gang,
			const void *payload, u32 len);

/* The gang has no reference any more. Context: process. */
void mattx_sets_free(struct mattx_gang *gang);

#endif
