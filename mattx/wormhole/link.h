/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_LINK_H
#define _MATTX_LINK_H

#include <linux/types.h>
#include <linux/kref.h>

struct mattx_peer;
struct socket;

/* peer.c */

/**
 * mattx_peer_get() - find a node
 * @id: node id
 *
 * Context: any. Return: a reference, to be given back with mattx_peer_put(), or NULL.
 */
struct mattx_peer *mattx_peer_get(u32 id);
struct mattx_peer *mattx_peer_hold(struct mattx_peer *peer);
void mattx_peer_put(struct mattx_peer *peer);
u32 mattx_peer_id(const struct mattx_peer *peer);
const char *mattx_peer_name(const struct mattx_peer *peer);
bool mattx_peer_up(const struct mattx_peer *peer);
int mattx_peer_init(void);
void mattx_peer_exit(void);

/* link.c */

/**
 * mattx_link_send() - queue one frame for a node
 * @peer: to whom
 * @type: enum mattx_frame_type
 * @gang: gang id or 0
 * @head: first part of the payload
 * @head_len: bytes
 * @data: second part, may be NULL
 * @data_len: bytes
 * @gfp: GFP_KERNEL, or GFP_ATOMIC where the caller cannot sleep
 *
 * Copies the payload. Frames of one peer arrive in the order in which they were
 * queued, exactly once, also over a connection that breaks and returns. Never
 * waits for the network.
 *
 * Context: any, when @gfp says so. Return: 0, -ENOMEM, or -ESHUTDOWN when the
 * session with that instance of the node has ended.
 */
int mattx_link_send(struct mattx_peer *peer, u16 type, u64 gang,
		    const void *head, size_t head_len, const void *data,
		    size_t data_len, gfp_t gfp);

/**
 * mattx_link_drain() - wait until no more than so many bytes wait for the network
 *
 * Context: a kernel thread, no lock held; sleeps for as long as the link is down, until
 * the session ends.
 */
void mattx_link_drain(struct mattx_peer *peer, size_t bytes);

#endif
