/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_WATCH_H
#define _MATTX_WATCH_H

#include <linux/types.h>

struct file;
struct mattx_gang;
struct mattx_peer;
struct mattx_thread;

/*
 * Home's side of pushed readiness: watch.c, and take.c for the sets that the host has
 * taken over.
 */

/* A call that a deputy has made. */
struct mattx_made {
	u32 nr;
	const u64 *args;
	bool fd_first; /* the first argument is a value, perhaps a descriptor */
	const u8 *control; /* sendmsg: control data as they were sent, aligned */
	u32 control_len;
	long ret;
};

int mattx_watch_init(void);
void mattx_watch_exit(void);

/**
 * mattx_watch_after() - a deputy's thread has made a call
 *
 * Tells the host what the call has changed, before the REPLY that the caller is about
 * to queue. Context: current is @thread; sleeps, not on the network.
 * Return: the watch that the call's registration needs, or 0.
 */
u32 mattx_watch_after(struct mattx_thread *thread, const struct mattx_made *made);

/**
 * mattx_watch_receive() - LOOK, MUTE or PACE has arrived
 * Context: the link's receiver.
 */
void mattx_watch_receive(struct mattx_peer *peer, u16 type, u64 gang,
			 const void *payload, u32 len);

/**
 * mattx_watch_end() - the deputy is the process again: it is alone with its files
 * Context: process; sleeps.
 */
void mattx_watch_end(struct mattx_gang *gang);

/**
 * mattx_watch_end_soon() - the same, when the deputy has ended
 * Context: any; @gang has a reference.
 */
void mattx_watch_end_soon(struct mattx_gang *gang);

/* The gang has no reference any more. Context: process. */
void mattx_watch_free(struct mattx_gang *gang);

/**
 * mattx_take_serve() - do what a SET says
 * @payload: of the frame, @len bytes
 * Context: a job's start in the deputy's thread.
 * Return: above 0, or a negative errno.
 */
int mattx_take_serve(struct mattx_thread *thread, const void *payload, u32 len);

/**
 * mattx_take_none() - no set is taken over, nor will be while gang->forks is not 0
 * Context: process; sleeps.
 */
bool mattx_take_none(struct mattx_gang *gang);

/* Is this the payload of a SET? */
bool mattx_take_valid(const void *payload, u32 len);

#endif
