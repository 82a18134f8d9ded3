/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_PACKET_H
#define _MATTX_PACKET_H

#include <linux/list.h>
#include <linux/refcount.h>

#include "wormhole/protocol.h"

struct mattx_peer;

/**
 * struct mattx_packet - a frame of ours, from its making until the peer has it
 *
 * One reference belongs to the session's queue, one to the sender while it
 * writes the packet to the socket.
 */
struct mattx_packet {
	struct list_head node;
	refcount_t ref;
	size_t room;		  /* bytes that payload has */
	struct mattx_frame frame; /* directly followed by the payload */
	u8 payload[] __aligned(8);
};

/**
 * mattx_packet_alloc() - room for a frame that is filled in place
 * @room: bytes of payload at most
 * Context: as @gfp says. Return: a packet that the caller owns until
 * mattx_link_submit() or mattx_packet_put(), or NULL.
 */
struct mattx_packet *mattx_packet_alloc(size_t room, gfp_t gfp);
void mattx_packet_put(struct mattx_packet *packet);

/**
 * mattx_link_submit() - queue a packet; see mattx_link_send()
 * @len: bytes of the payload that were filled, zero to @packet->room
 *
 * Takes the packet over in any case. Context: any.
 * Return: 0 or -ESHUTDOWN.
 */
int mattx_link_submit(struct mattx_peer *peer, u16 type, u64 gang,
		      struct mattx_packet *packet, size_t len);

/**
 * mattx_link_queue() - the same; the caller submits another packet at once
 * Context: any. Return: 0 or -ESHUTDOWN.
 */
int mattx_link_queue(struct mattx_peer *peer, u16 type, u64 gang,
		     struct mattx_packet *packet, size_t len);

/**
 * mattx_link_submit_now() - the same, for a call or reply that somebody waits for
 *
 * Written by the caller when that needs no waiting. Context: process, may sleep, but
 * never on the network.
 */
int mattx_link_submit_now(struct mattx_peer *peer, u16 type, u64 gang,
			  struct mattx_packet *packet, size_t len);

#endif
