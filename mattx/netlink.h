/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_NETLINK_H
#define _MATTX_NETLINK_H

#include <linux/types.h>

struct genl_family;
struct mattx_peer;
struct netlink_callback;
struct sk_buff;

extern struct genl_family mattx_genl_family;

int mattx_netlink_init(void);
void mattx_netlink_exit(void);

/* Events for the daemon. Context: any. They are lost when memory is short or nobody listens. */
void mattx_event_want_home(u64 id, u32 peer, u32 nr, const char *cause);
void mattx_event_gang_end(u64 id, u32 peer, u32 role, s32 pid, const char *cause);
void mattx_event_link_down(u32 peer, const char *cause);

/**
 * mattx_event_admin() - an order for mattxd, to its port and nobody else
 * @node: NULL: none
 * Context: process. Return: 0; -ECONNREFUSED when there is no such socket; -EAGAIN
 * when its buffer is full; -ENOMEM.
 */
int mattx_event_admin(u32 port, u32 order, u32 verb, s32 pid, const char *node);

/*
 * Written by gang/gang.c: dumps of MATTX_CMD_GANG_GET and MATTX_CMD_THREAD_GET.
 * genl_dumpit_info(cb)->attrs has the request; a message is begun with
 * genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
 * &mattx_genl_family, NLM_F_MULTI, MATTX_CMD_...).
 */
int mattx_gang_dump(struct sk_buff *skb, struct netlink_callback *cb);
int mattx_thread_dump(struct sk_buff *skb, struct netlink_callback *cb);

/*
 * Written by gang/gang.c: does any gang that has not ended belong to @peer?
 * NODE_DEL is refused then. Context: any.
 */
bool mattx_gang_shared(const struct mattx_peer *peer);

#endif
