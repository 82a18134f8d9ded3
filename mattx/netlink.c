// SPDX-License-Identifier: GPL-2.0
/*
 * The generic-netlink family of uapi/mattx.h.
 *
 * All commands need CAP_NET_ADMIN in the initial user namespace. The family is
 * not parallel_ops: commands run one at a time, which is what keeps NODE_SET,
 * NODE_DEL and LINK_SET from crossing each other. Dumps may run beside them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/net.h>
#include <net/genetlink.h>
#include <uapi/mattx.h>

#include "admin.h"
#include "compat.h"
#include "fault.h"
#include "netlink.h"
#include "peer.h"
#include "wormhole/rpc.h"

static const struct nla_policy node_set_policy[MATTX_A_NODE_LOCAL + 1] = {
	[MATTX_A_NODE_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[MATTX_A_NODE_NAME] = { .type = NLA_NUL_STRING,
				.len = MATTX_NAME_MAX - 1 },
	[MATTX_A_NODE_INSTANCE] = { .type = NLA_U64 },
	[MATTX_A_NODE_LOCAL] = { .type = NLA_FLAG },
};

static const struct nla_policy node_del_policy[MATTX_A_NODE_ID + 1] = {
	[MATTX_A_NODE_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

static const struct nla_policy link_set_policy[MATTX_A_TLS + 1] = {
	[MATTX_A_NODE_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[MATTX_A_SOCK_FD] = { .type = NLA_U32 },
	[MATTX_A_TLS] = { .type = NLA_FLAG },
};

static const struct nla_policy thread_get_policy[MATTX_A_GANG_ROLE + 1] = {
	[MATTX_A_GANG_ID] = { .type = NLA_U64 },
	[MATTX_A_GANG_ROLE] =
		NLA_POLICY_RANGE(NLA_U32, MATTX_ROLE_HOME, MATTX_ROLE_HOST),
};

static const struct nla_policy fault_set_policy[MATTX_A_FAULT_COUNT + 1] = {
	[MATTX_A_FAULT_POINT] = { .type = NLA_U32 },
	[MATTX_A_FAULT_COUNT] = { .type = NLA_U32 },
};

static const struct nla_policy node_facts_policy[MATTX_A_NODE_FREE + 1] = {
	[MATTX_A_NODE_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[MATTX_A_NODE_ADDRESS] = { .type = NLA_NUL_STRING,
				   .len = MATTX_ADDRESS_MAX - 1 },
	[MATTX_A_NODE_CPUS] = { .type = NLA_U32 },
	[MATTX_A_NODE_LOAD] = { .type = NLA_U32 },
	[MATTX_A_NODE_FREE] = { .type = NLA_U64 },
};

static const struct nla_policy admin_serve_policy[MATTX_A_ADMIN_PORT + 1] = {
	[MATTX_A_ADMIN_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
};

static const struct nla_policy admin_done_policy[MATTX_A_ADMIN_ERRNO + 1] = {
	[MATTX_A_ADMIN_ORDER] = NLA_POLICY_MIN(NLA_U32, 1),
	[MATTX_A_ADMIN_ERRNO] = NLA_POLICY_MAX(NLA_U32, MATTX_ERRNO_MAX),
};

/* -------------------------------------------------------------- commands */

static bool missing(struct genl_info *info, int attr)
{
	if (info->attrs[attr])
		return false;
	NL_SET_ERR_MSG(info->extack, "an attribute is missing");
	return true;
}

static int set_node(struct sk_buff *skb, struct genl_info *info)
{
	u64 instance;
	char *name;
	u32 id;

	if (missing(info, MATTX_A_NODE_ID) || missing(info, MATTX_A_NODE_NAME))
		return -EINVAL;
	id = nla_get_u32(info->attrs[MATTX_A_NODE_ID]);
	name = nla_data(info->attrs[MATTX_A_NODE_NAME]);
	if (info->attrs[MATTX_A_NODE_LOCAL]) {
		if (info->attrs[MATTX_A_NODE_INSTANCE]) {
			NL_SET_ERR_MSG(info->extack,
				       "the local instance cannot be chosen");
			return -EINVAL;
		}
		return mattx_local_set(id, name);
	}
	if (missing(info, MATTX_A_NODE_INSTANCE))
		return -EINVAL;
	instance = nla_get_u64(info->attrs[MATTX_A_NODE_INSTANCE]);
	if (!instance) {
		NL_SET_ERR_MSG(info->extack, "0 is not an instance");
		return -EINVAL;
	}
	return mattx_peer_set(id, instance, name);
}

static int del_node(struct sk_buff *skb, struct genl_info *info)
{
	if (missing(info, MATTX_A_NODE_ID))
		return -EINVAL;
	return mattx_peer_del(nla_get_u32(info->attrs[MATTX_A_NODE_ID]));
}

static int set_link(struct sk_buff *skb, struct genl_info *info)
{
	const char *cause = NULL;
	struct mattx_peer *peer;
	struct socket *sock;
	int err = 0;

	if (missing(info, MATTX_A_NODE_ID) || missing(info, MATTX_A_SOCK_FD))
		return -EINVAL;
	peer = mattx_peer_get(nla_get_u32(info->attrs[MATTX_A_NODE_ID]));
	if (!peer)
		return -ENOENT;
	sock = sockfd_lookup(nla_get_u32(info->attrs[MATTX_A_SOCK_FD]), &err);
	if (sock)
		err = mattx_link_set(peer, sock, info->attrs[MATTX_A_TLS],
				     &cause);
	if (cause)
		info->extack->_msg = cause; /* a constant */
	mattx_peer_put(peer);
	return err;
}

static int set_fault(struct sk_buff *skb, struct genl_info *info)
{
	if (missing(info, MATTX_A_FAULT_POINT) ||
	    missing(info, MATTX_A_FAULT_COUNT))
		return -EINVAL;
	return mattx_fault_set(nla_get_u32(info->attrs[MATTX_A_FAULT_POINT]),
			       nla_get_u32(info->attrs[MATTX_A_FAULT_COUNT]));
}

static int set_facts(struct sk_buff *skb, struct genl_info *info)
{
	struct mattx_facts facts = {};

	if (missing(info, MATTX_A_NODE_ID) ||
	    missing(info, MATTX_A_NODE_ADDRESS) ||
	    missing(info, MATTX_A_NODE_CPUS) ||
	    missing(info, MATTX_A_NODE_LOAD) || missing(info, MATTX_A_NODE_FREE))
		return -EINVAL;
	nla_strscpy(facts.address, info->attrs[MATTX_A_NODE_ADDRESS],
		    sizeof(facts.address));
	facts.cpus = nla_get_u32(info->attrs[MATTX_A_NODE_CPUS]);
	facts.load = nla_get_u32(info->attrs[MATTX_A_NODE_LOAD]);
	facts.free = nla_get_u64(info->attrs[MATTX_A_NODE_FREE]);
	return mattx_node_facts_set(nla_get_u32(info->attrs[MATTX_A_NODE_ID]),
				    &facts);
}

static int serve_admin(struct sk_buff *skb, struct genl_info *info)
{
	if (missing(info, MATTX_A_ADMIN_PORT))
		return -EINVAL;
	if (!net_eq(genl_info_net(info), &init_net)) {
		NL_SET_ERR_MSG(info->extack,
			       "not in the initial network namespace");
		return -EINVAL;
	}
	mattx_admin_serve(nla_get_u32(info->attrs[MATTX_A_ADMIN_PORT]));
	return 0;
}

static int answer_admin(struct sk_buff *skb, struct genl_info *info)
{
	if (missing(info, MATTX_A_ADMIN_ORDER) ||
	    missing(info, MATTX_A_ADMIN_ERRNO))
		return -EINVAL;
	return mattx_admin_answer(nla_get_u32(info->attrs[MATTX_A_ADMIN_ORDER]),
				  nla_get_u32(info->attrs[MATTX_A_ADMIN_ERRNO]));
}

/* ----------------------------------------------------------------- dumps */

static void *dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   &mattx_genl_family, NLM_F_MULTI, cmd);
}

static int put_node(struct sk_buff *skb, struct netlink_callback *cb, u32 id,
		    const char *name, u64 instance, bool is_local, bool up)
{
	void *head = dump_put(skb, cb, MATTX_CMD_NODE_GET);

	if (!head)
		return -EMSGSIZE;
	if (nla_put_u32(skb, MATTX_A_NODE_ID, id) ||
	    nla_put_string(skb, MATTX_A_NODE_NAME, name) ||
	    nla_put_u64_64bit(skb, MATTX_A_NODE_INSTANCE, instance, MATTX_A_PAD) ||
	    (is_local && nla_put_flag(skb, MATTX_A_NODE_LOCAL)) ||
	    nla_put_u32(skb, MATTX_A_NODE_STATE, up)) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

/* cb->args[0]: 0 is this node, n is number n - 1 of the others */
static int node_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct mattx_peer_info info;
	struct mattx_local local;
	int err;

	for (;; cb->args[0]++) {
		if (!cb->args[0]) {
			mattx_local_get(&local);
			err = put_node(skb, cb, local.id, local.name,
				       local.instance, true, false);
		} else if (mattx_peer_info(cb->args[0] - 1, &info)) {
			err = put_node(skb, cb, info.id, info.name,
				       info.instance, false, info.up);
		} else {
			break;
		}
		if (err)
			break;
	}
	return skb->len;
}

static int put_stat(struct sk_buff *skb, struct netlink_callback *cb,
		    const char *name, u64 value)
{
	void *head = dump_put(skb, cb, MATTX_CMD_STATS_GET);

	if (!head)
		return -EMSGSIZE;
	if (nla_put_string(skb, MATTX_A_STAT_NAME, name) ||
	    nla_put_u64_64bit(skb, MATTX_A_STAT_VALUE, value, MATTX_A_PAD)) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

/* One value of a peer. Return: false when there is no such number of it. */
static bool peer_stat(const struct mattx_peer_info *info, unsigned int which,
		      char *name, size_t size, u64 *value)
{
	static const char *const names[] = {
		"bytes_in",	 "bytes_out",	"frames_in",	"frames_out",
		"frames_resent", "connections", "queued_bytes",
	};
	const u64 values[] = {
		info->bytes_in,	    info->bytes_out,	 info->frames_in,
		info->frames_out,   info->frames_resent, info->connections,
		info->queued_bytes,
	};

	BUILD_BUG_ON(ARRAY_SIZE(names) != ARRAY_SIZE(values));
	if (which >= ARRAY_SIZE(names))
		return false;
	snprintf(name, size, "link.%s.%s", info->name, names[which]);
	*value = values[which];
	return true;
}

/* cb->args: 0 which source, 1 which entry of it, 2 which value of a peer */
static int stats_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct mattx_peer_info info;
	char name[MATTX_NAME_MAX + 32];
	u64 value;

	for (; cb->args[0] == 0; cb->args[1]++) {
		if (!mattx_rpc_stat(cb->args[1], name, sizeof(name), &value)) {
			cb->args[0] = 1;
			cb->args[1] = 0;
			break;
		}
		if (value && put_stat(skb, cb, name, value))
			return skb->len;
	}
	while (mattx_peer_info(cb->args[1], &info)) {
		if (!peer_stat(&info, cb->args[2], name, sizeof(name), &value)) {
			cb->args[1]++;
			cb->args[2] = 0;
			continue;
		}
		if (put_stat(skb, cb, name, value))
			break;
		cb->args[2]++;
	}
	return skb->len;
}

/* ---------------------------------------------------------------- events */

static struct sk_buff *event_new(u8 cmd, void **head, const char *cause)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_ATOMIC);

	if (!skb)
		return NULL;
	*head = genlmsg_put(skb, 0, 0, &mattx_genl_family, 0, cmd);
	if (!*head || (cause && nla_put_string(skb, MATTX_A_CAUSE, cause))) {
		nlmsg_free(skb);
		return NULL;
	}
	return skb;
}

static void event_send(struct sk_buff *skb, void *head)
{
	genlmsg_end(skb, head);
	genlmsg_multicast(&mattx_genl_family, skb, 0, 0, GFP_ATOMIC);
}

void mattx_event_want_home(u64 id, u32 peer, u32 nr, const char *cause)
{
	struct sk_buff *skb;
	void *head;

	skb = event_new(MATTX_CMD_EV_WANT_HOME, &head, cause);
	if (!skb)
		return;
	if (nla_put_u64_64bit(skb, MATTX_A_GANG_ID, id, MATTX_A_PAD) ||
	    nla_put_u32(skb, MATTX_A_NODE_ID, peer) ||
	    nla_put_u32(skb, MATTX_A_GANG_REASON, nr))
		nlmsg_free(skb);
	else
		event_send(skb, head);
}

void mattx_event_gang_end(u64 id, u32 peer, u32 role, s32 pid, const char *cause)
{
	struct sk_buff *skb;
	void *head;

	skb = event_new(MATTX_CMD_EV_GANG_END, &head, cause);
	if (!skb)
		return;
	if (nla_put_u64_64bit(skb, MATTX_A_GANG_ID, id, MATTX_A_PAD) ||
	    nla_put_u32(skb, MATTX_A_NODE_ID, peer) ||
	    nla_put_u32(skb, MATTX_A_GANG_ROLE, role) ||
	    nla_put_u32(skb, MATTX_A_GANG_PID, pid))
		nlmsg_free(skb);
	else
		event_send(skb, head);
}

void mattx_event_link_down(u32 peer, const char *cause)
{
	struct sk_buff *skb;
	void *head;

	skb = event_new(MATTX_CMD_EV_LINK_DOWN, &head, cause);
	if (!skb)
		return;
	if (nla_put_u32(skb, MATTX_A_NODE_ID, peer))
		nlmsg_free(skb);
	else
		event_send(skb, head);
}

int mattx_event_admin(u32 port, u32 order, u32 verb, s32 pid, const char *node)
{
	struct sk_buff *skb;
	void *head;

	skb = event_new(MATTX_CMD_EV_ADMIN, &head, NULL);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u32(skb, MATTX_A_ADMIN_ORDER, order) ||
	    nla_put_u32(skb, MATTX_A_ADMIN_VERB, verb) ||
	    nla_put_u32(skb, MATTX_A_GANG_PID, pid) ||
	    (node && nla_put_string(skb, MATTX_A_ADMIN_NODE, node))) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return genlmsg_unicast(&init_net, skb, port);
}

/* ---------------------------------------------------------------- family */

static const struct genl_ops mattx_ops[] = {
	{
		.cmd = MATTX_CMD_NODE_SET,
		.flags = GENL_ADMIN_PERM,
		.doit = set_node,
		.policy = node_set_policy,
		.maxattr = ARRAY_SIZE(node_set_policy) - 1,
	},
	{
		.cmd = MATTX_CMD_NODE_DEL,
		.flags = GENL_ADMIN_PERM,
		.doit = del_node,
		.policy = node_del_policy,
		.maxattr = ARRAY_SIZE(node_del_policy) - 1,
	},
	{
		.cmd = MATTX_CMD_NODE_GET,
		.flags = GENL_ADMIN_PERM,
		.dumpit = node_dump,
	},
	{
		.cmd = MATTX_CMD_LINK_SET,
		.flags = GENL_ADMIN_PERM,
		.doit = set_link,
		.policy = link_set_policy,
		.maxattr = ARRAY_SIZE(link_set_policy) - 1,
	},
	{
		.cmd = MATTX_CMD_GANG_GET,
		.flags = GENL_ADMIN_PERM,
		.dumpit = mattx_gang_dump,
	},
	{
		.cmd = MATTX_CMD_THREAD_GET,
		.flags = GENL_ADMIN_PERM,
		.dumpit = mattx_thread_dump,
		.policy = thread_get_policy,
		.maxattr = ARRAY_SIZE(thread_get_policy) - 1,
	},
	{
		.cmd = MATTX_CMD_STATS_GET,
		.flags = GENL_ADMIN_PERM,
		.dumpit = stats_dump,
	},
	{
		.cmd = MATTX_CMD_FAULT_SET,
		.flags = GENL_ADMIN_PERM,
		.doit = set_fault,
		.policy = fault_set_policy,
		.maxattr = ARRAY_SIZE(fault_set_policy) - 1,
	},
	{
		.cmd = MATTX_CMD_NODE_FACTS,
		.flags = GENL_ADMIN_PERM,
		.doit = set_facts,
		.policy = node_facts_policy,
		.maxattr = ARRAY_SIZE(node_facts_policy) - 1,
	},
	{
		.cmd = MATTX_CMD_ADMIN_SERVE,
		.flags = GENL_ADMIN_PERM,
		.doit = serve_admin,
		.policy = admin_serve_policy,
		.maxattr = ARRAY_SIZE(admin_serve_policy) - 1,
	},
	{
		.cmd = MATTX_CMD_ADMIN_DONE,
		.flags = GENL_ADMIN_PERM,
		.doit = answer_admin,
		.policy = admin_done_policy,
		.maxattr = ARRAY_SIZE(admin_done_policy) - 1,
	},
};

static const struct genl_multicast_group mattx_groups[] = {
	{ .name = MATTX_GENL_EVENTS },
};

struct genl_family mattx_genl_family __ro_after_init = {
	.name = MATTX_GENL_NAME,
	.version = MATTX_GENL_VERSION,
	.maxattr = MATTX_A_MAX,
	.ops = mattx_ops,
	.n_ops = ARRAY_SIZE(mattx_ops),
	.resv_start_op = __MATTX_CMD_MAX,
	.mcgrps = mattx_groups,
	.n_mcgrps = ARRAY_SIZE(mattx_groups),
	.module = THIS_MODULE,
};

int mattx_netlink_init(void)
{
	return genl_register_family(&mattx_genl_family);
}

void mattx_netlink_exit(void)
{
	genl_unregister_family(&mattx_genl_family);
}
