// SPDX-License-Identifier: GPL-2.0
/* Generic netlink to the module. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "fault.h"
#include "kernel.h"
#include "log.h"

#define REQUEST_TIMEOUT_S 10
#define MESSAGE_MAX	  8192 /* bytes of a request, or of an event */
#define EVENT_RCVBUF	  (1 << 20)

/*
 * What one request brings back. The messages of an answer are kept until it is
 * complete, so that @fn may make requests of its own.
 */
struct answer {
	void (*fn)(struct nlattr **attrs, void *arg);
	void *arg;
	char *cause;
	size_t cause_len;
	char *kept; /* struct nlmsghdr and what follows, one after the other */
	size_t kept_len, kept_size;
};

struct family {
	uint16_t id;
	uint32_t events; /* multicast group, 0: not seen */
};

static const struct kernel_events *events;
static struct mnl_socket *requests, *listener;
static struct event *listener_event;
static uint16_t family_id; /* 0: no module */
static uint32_t joined_group;
static uint32_t sequence;

/* ------------------------------------------------- stand-in: --no-module */

struct fake_node {
	struct kernel_node node;
	int fd;
	struct event *event;
	struct fake_node *next;
};

static bool fake;
static struct fake_node *fake_nodes;
static struct event_base *fake_base;

static struct fake_node *fake_find(uint32_t id)
{
	struct fake_node *n;

	for (n = fake_nodes; n && n->node.id != id; n = n->next)
		;
	return n;
}

static void fake_cut(struct fake_node *n)
{
	if (n->event)
		event_free(n->event);
	n->event = NULL;
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
	n->node.up = false;
}

static void fake_readable(evutil_socket_t fd, short what, void *arg)
{
	struct fake_node *n = arg;
	char buf[256];
	ssize_t len;

	(void)what;
	len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (len > 0 || (len < 0 && errno == EAGAIN))
		return;
	fake_cut(n);
	events->link_down(n->node.id,
			  len ? strerror(errno) : "closed by the other side");
}

static int fake_set(uint32_t id, const char *name, uint64_t instance, bool local)
{
	struct fake_node *n = fake_find(id);

	if (!n) {
		n = calloc(1, sizeof(*n));
		if (!n)
			return -ENOMEM;
		n->fd = -1;
		n->next = fake_nodes;
		fake_nodes = n;
		n->node.id = id;
	}
	snprintf(n->node.name, sizeof(n->node.name), "%s", name);
	if (n->node.instance != instance)
		fake_cut(n);
	n->node.instance = instance;
	n->node.local = local;
	return 0;
}

static int fake_link(uint32_t id, int fd)
{
	struct fake_node *n = fake_find(id);

	if (!n)
		return -ENOENT;
	fake_cut(n);
	n->fd = dup(fd);
	n->event = event_new(fake_base, n->fd, EV_READ | EV_PERSIST,
			     fake_readable, n);
	if (n->fd < 0 || !n->event || event_add(n->event, NULL)) {
		fake_cut(n);
		return -ENOMEM;
	}
	n->node.up = true;
	return 0;
}

static int fake_del(uint32_t id)
{
	struct fake_node **at, *n;

	for (at = &fake_nodes; (n = *at); at = &n->next) {
		if (n->node.id != id)
			continue;
		fake_cut(n);
		*at = n->next;
		free(n);
		return 0;
	}
	return -ENOENT;
}

/* --------------------------------------------------------------- parsing */

static int keep_attr(const struct nlattr *attr, void *data)
{
	const struct nlattr **attrs = data;
	int type = mnl_attr_get_type(attr);

	if (mnl_attr_type_valid(attr, MATTX_A_MAX) >= 0)
		attrs[type] = attr;
	return MNL_CB_OK;
}

static uint32_t get_u32(struct nlattr **attrs, int type, uint32_t otherwise)
{
	if (!attrs[type] || mnl_attr_validate(attrs[type], MNL_TYPE_U32) < 0)
		return otherwise;
	return mnl_attr_get_u32(attrs[type]);
}

static uint64_t get_u64(struct nlattr **attrs, int type)
{
	if (!attrs[type] || mnl_attr_validate(attrs[type], MNL_TYPE_U64) < 0)
		return 0;
	return mnl_attr_get_u64(attrs[type]);
}

static void get_text(struct nlattr **attrs, int type, char *to, size_t size)
{
	to[0] = 0;
	if (!attrs[type] ||
	    mnl_attr_validate(attrs[type], MNL_TYPE_NUL_STRING) < 0)
		return;
	snprintf(to, size, "%s", mnl_attr_get_str(attrs[type]));
	text_clean(to);
}

static void get_node(struct nlattr **attrs, struct kernel_node *node)
{
	memset(node, 0, sizeof(*node));
	node->id = get_u32(attrs, MATTX_A_NODE_ID, 0);
	get_text(attrs, MATTX_A_NODE_NAME, node->name, sizeof(node->name));
	node->instance = get_u64(attrs, MATTX_A_NODE_INSTANCE);
	node->local = attrs[MATTX_A_NODE_LOCAL];
	node->up = get_u32(attrs, MATTX_A_NODE_STATE, 0) == 1;
}

static void get_gang(struct nlattr **attrs, struct kernel_gang *gang)
{
	memset(gang, 0, sizeof(*gang));
	gang->id = get_u64(attrs, MATTX_A_GANG_ID);
	gang->role = get_u32(attrs, MATTX_A_GANG_ROLE, 0);
	gang->state = get_u32(attrs, MATTX_A_GANG_STATE, 0);
	gang->node = get_u32(attrs, MATTX_A_NODE_ID, 0);
	gang->pid = get_u32(attrs, MATTX_A_GANG_PID, 0);
	gang->tgid = get_u32(attrs, MATTX_A_GANG_TGID, 0);
	gang->threads = get_u32(attrs, MATTX_A_GANG_THREADS, 0);
	gang->uid = get_u32(attrs, MATTX_A_GANG_UID, -1);
	gang->reason = get_u32(attrs, MATTX_A_GANG_REASON, -1);
	gang->calls = get_u64(attrs, MATTX_A_GANG_CALLS);
	gang->since = get_u64(attrs, MATTX_A_GANG_SINCE);
	get_text(attrs, MATTX_A_GANG_COMM, gang->comm, sizeof(gang->comm));
	get_text(attrs, MATTX_A_CAUSE, gang->cause, sizeof(gang->cause));
}

/* -------------------------------------------------------------- requests */

static struct nlmsghdr *request(void *buf, uint16_t type, uint8_t cmd,
				uint16_t flags)
{
	struct genlmsghdr *genl;
	struct nlmsghdr *nlh;

	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++sequence;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = MATTX_GENL_VERSION;
	return nlh;
}

static int on_data(const struct nlmsghdr *nlh, void *data)
{
	size_t len = MNL_ALIGN(nlh->nlmsg_len), size;
	struct answer *answer = data;
	char *more;

	if (!answer->fn)
		return MNL_CB_OK;
	if (answer->kept_size - answer->kept_len < len) {
		size = 2 * answer->kept_size + len;
		more = realloc(answer->kept, size);
		if (!more) {
			errno = ENOMEM;
			return MNL_CB_ERROR;
		}
		answer->kept = more;
		answer->kept_size = size;
	}
	memcpy(answer->kept + answer->kept_len, nlh, nlh->nlmsg_len);
	answer->kept_len += len;
	return MNL_CB_OK;
}

/* Tell of what was kept. */
static void tell(struct answer *answer)
{
	struct nlattr *attrs[MATTX_A_MAX + 1];
	const struct nlmsghdr *nlh;
	size_t at;

	for (at = 0; at < answer->kept_len; at += MNL_ALIGN(nlh->nlmsg_len)) {
		nlh = (const void *)(answer->kept + at);
		memset(attrs, 0, sizeof(attrs));
		mnl_attr_parse(nlh, sizeof(struct genlmsghdr), keep_attr, attrs);
		answer->fn(attrs, answer->arg);
	}
}

static int keep_message(const struct nlattr *attr, void *data)
{
	const char **text = data;

	if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		*text = mnl_attr_get_str(attr);
	return MNL_CB_OK;
}

/* An error answer, with the module's own words when it gave any (extended ACK). */
static int on_error(const struct nlmsghdr *nlh, void *data)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	struct answer *answer = data;
	const char *text = NULL;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*err)) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	if (!err->error)
		return MNL_CB_STOP;
	/* capped by NETLINK_CAP_ACK: the attributes follow at once */
	if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) &&
	    (nlh->nlmsg_flags & NLM_F_CAPPED))
		mnl_attr_parse(nlh, sizeof(*err), keep_message, &text);
	if (answer->cause) {
		snprintf(answer->cause, answer->cause_len, "%s",
			 text ? text : strerror(-err->error));
		text_clean(answer->cause);
	}
	errno = -err->error;
	return MNL_CB_ERROR;
}

static int on_done(const struct nlmsghdr *nlh, void *data)
{
	const int *error = mnl_nlmsg_get_payload(nlh);

	(void)data;
	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(*error) && *error < 0) {
		errno = -*error;
		return MNL_CB_ERROR;
	}
	return MNL_CB_STOP;
}

static mnl_cb_t control_cbs[NLMSG_MIN_TYPE] = {
	[NLMSG_ERROR] = on_error,
	[NLMSG_DONE] = on_done,
};

/* Send, and read until the answer is complete. Return: 0 or a negative errno. */
static int ask(struct nlmsghdr *nlh, mnl_cb_t cb, struct answer *answer)
{
	static char buf[64 << 10] __attribute__((aligned(MNL_ALIGNTO)));
	const struct nlmsghdr *got = (const void *)buf;
	unsigned int port = mnl_socket_get_portid(requests);
	ssize_t len;
	int ret;

	if (mnl_socket_sendto(requests, nlh, nlh->nlmsg_len) < 0)
		goto failed;
	do {
		len = mnl_socket_recvfrom(requests, buf, sizeof(buf));
		if (len < 0 && errno == EINTR) {
			ret = 1;
			continue;
		}
		if (len < 0)
			goto failed;
		/* the rest of an answer that was given up on before? */
		if (len >= (ssize_t)sizeof(*got) &&
		    got->nlmsg_seq != nlh->nlmsg_seq) {
			ret = 1;
			continue;
		}
		ret = mnl_cb_run2(buf, len, nlh->nlmsg_seq, port, cb, answer,
				  control_cbs, MNL_ARRAY_SIZE(control_cbs));
	} while (ret > 0);
	if (!ret)
		return 0;
failed:
	ret = -errno;
	if (answer->cause && !answer->cause[0])
		snprintf(answer->cause, answer->cause_len, "%s", strerror(-ret));
	return ret;
}

static int ask_module(struct nlmsghdr *nlh, struct answer *answer)
{
	int ret;

	if (answer->cause)
		answer->cause[0] = 0;
	if (!family_id) {
		if (answer->cause)
			snprintf(answer->cause, answer->cause_len,
				 "the module mattx is not loaded");
		return -ENODEV;
	}
	ret = ask(nlh, on_data, answer);
	if (!ret)
		tell(answer);
	free(answer->kept);
	return ret;
}

/* ---------------------------------------------------------------- family */

static int on_group(const struct nlattr *attr, void *data)
{
	struct family *family = data;
	const struct nlattr *a;
	const char *name = "";
	uint32_t id = 0;

	mnl_attr_for_each_nested(a, attr) {
		if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_NAME)
			name = mnl_attr_get_str(a);
		if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_ID)
			id = mnl_attr_get_u32(a);
	}
	if (!strcmp(name, MATTX_GENL_EVENTS))
		family->events = id;
	return MNL_CB_OK;
}

static int on_family_attr(const struct nlattr *attr, void *data)
{
	struct family *family = data;

	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
		family->id = mnl_attr_get_u16(attr);
	if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GROUPS)
		mnl_attr_parse_nested(attr, on_group, family);
	return MNL_CB_OK;
}

static int on_family(const struct nlmsghdr *nlh, void *data)
{
	struct answer *answer = data;

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), on_family_attr,
		       answer->arg);
	return MNL_CB_OK;
}

/*
 * What is written to /proc/mattx/admin is sent to the listener. When that is closed,
 * however this daemon ends, those who wait are told.
 */
static int serve_admin(char *cause, size_t cause_len)
{
	struct answer answer = { .cause = cause, .cause_len = cause_len };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct nlmsghdr *nlh;

	nlh = request(buf, family_id, MATTX_CMD_ADMIN_SERVE, NLM_F_ACK);
	mnl_attr_put_u32(nlh, MATTX_A_ADMIN_PORT,
			 mnl_socket_get_portid(listener));
	return ask_module(nlh, &answer);
}

static int find_family(char *cause, size_t cause_len)
{
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct family family = { 0 };
	struct answer answer = { .arg = &family,
				 .cause = cause,
				 .cause_len = cause_len };
	struct nlmsghdr *nlh;
	int ret;

	nlh = request(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, MATTX_GENL_NAME);
	ret = ask(nlh, on_family, &answer);
	if (ret == -ENOENT)
		return cause_set(
			cause, cause_len, ENODEV,
			"the module mattx is not loaded (modprobe mattx)");
	if (ret)
		return ret;
	if (!family.id || !family.events)
		return cause_set(cause, cause_len, EPROTO,
				 "the module mattx has no group \"" MATTX_GENL_EVENTS
				 "\"");
	family_id = family.id;
	if (joined_group)
		mnl_socket_setsockopt(listener, NETLINK_DROP_MEMBERSHIP,
				      &joined_group, sizeof(joined_group));
	joined_group = family.events;
	if (mnl_socket_setsockopt(listener, NETLINK_ADD_MEMBERSHIP,
				  &joined_group, sizeof(joined_group)) < 0)
		return cause_set(cause, cause_len, errno, "netlink events: %m");
	return serve_admin(cause, cause_len);
}

/* ---------------------------------------------------------------- events */

static int keep_family_name(const struct nlattr *attr, void *data)
{
	const char **name = data;

	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_NAME &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		*name = mnl_attr_get_str(attr);
	return MNL_CB_OK;
}

/* The controller tells of families that come and go. */
static void family_event(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	const char *name = "";
	char cause[128];

	mnl_attr_parse(nlh, sizeof(*genl), keep_family_name, &name);
	if (strcmp(name, MATTX_GENL_NAME))
		return;
	if (genl->cmd == CTRL_CMD_DELFAMILY && family_id) {
		family_id = 0;
		joined_group = 0;
		events->gone();
	} else if (genl->cmd == CTRL_CMD_NEWFAMILY && !family_id) {
		if (find_family(cause, sizeof(cause)))
			log_err("module: %s", cause);
		else
			events->back();
	}
}

static void module_event(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attrs[MATTX_A_MAX + 1] = { 0 };
	char cause[MATTX_CAUSE_MAX], name[MATTX_NAME_MAX];
	uint64_t gang;
	uint32_t node;

	mnl_attr_parse(nlh, sizeof(*genl), keep_attr, attrs);
	get_text(attrs, MATTX_A_CAUSE, cause, sizeof(cause));
	get_text(attrs, MATTX_A_ADMIN_NODE, name, sizeof(name));
	node = get_u32(attrs, MATTX_A_NODE_ID, 0);
	gang = get_u64(attrs, MATTX_A_GANG_ID);
	switch (genl->cmd) {
	case MATTX_CMD_EV_LINK_DOWN:
		events->link_down(node, cause);
		break;
	case MATTX_CMD_EV_WANT_HOME:
		events->want_home(gang, node,
				  get_u32(attrs, MATTX_A_GANG_REASON, -1), cause);
		break;
	case MATTX_CMD_EV_GANG_END:
		events->gang_end(gang, node, get_u32(attrs, MATTX_A_GANG_ROLE, 0),
				 get_u32(attrs, MATTX_A_GANG_PID, 0), cause);
		break;
	case MATTX_CMD_EV_ADMIN:
		events->admin(get_u32(attrs, MATTX_A_ADMIN_ORDER, 0),
			      get_u32(attrs, MATTX_A_ADMIN_VERB, 0),
			      get_u32(attrs, MATTX_A_GANG_PID, 0), name);
		break;
	}
}

static int on_event(const struct nlmsghdr *nlh, void *data)
{
	(void)data;
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct genlmsghdr))
		return MNL_CB_OK;
	if (nlh->nlmsg_type == GENL_ID_CTRL)
		family_event(nlh);
	else if (nlh->nlmsg_type == family_id)
		module_event(nlh);
	return MNL_CB_OK;
}

static void listener_readable(evutil_socket_t fd, short what, void *arg)
{
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	ssize_t len;

	(void)fd;
	(void)what;
	(void)arg;
	len = mnl_socket_recvfrom(listener, buf, sizeof(buf));
	if (len < 0 && errno == ENOBUFS) {
		log_warn("events of the module were lost");
		events->lost();
	} else if (len > 0) {
		mnl_cb_run(buf, len, 0, 0, on_event, NULL);
	}
}

/* --------------------------------------------------------- open and close */

static struct mnl_socket *open_socket(void)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);

	if (nl && mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		mnl_socket_close(nl);
		nl = NULL;
	}
	return nl;
}

static void set_options(void)
{
	struct timeval tv = { .tv_sec = REQUEST_TIMEOUT_S };
	int one = 1, size = EVENT_RCVBUF;
	int fd = mnl_socket_get_fd(requests);

	mnl_socket_setsockopt(requests, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(requests, NETLINK_CAP_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	fd = mnl_socket_get_fd(listener);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
}

int kernel_open(struct event_base *base, bool no_module,
		const struct kernel_events *table, char *cause, size_t cause_len)
{
	uint32_t notify = GENL_ID_CTRL; /* the controller's only group */
	int ret;

	events = table;
	if (no_module) {
		fake = true;
		fake_base = base;
		return 0;
	}
	requests = open_socket();
	listener = open_socket();
	if (!requests || !listener)
		return cause_set(cause, cause_len, errno, "netlink: %m");
	set_options();
	sequence = time(NULL);
	ret = find_family(cause, cause_len);
	if (ret)
		return ret;
	mnl_socket_setsockopt(listener, NETLINK_ADD_MEMBERSHIP, &notify,
			      sizeof(notify));
	evutil_make_socket_nonblocking(mnl_socket_get_fd(listener));
	listener_event = event_new(base, mnl_socket_get_fd(listener),
				   EV_READ | EV_PERSIST, listener_readable, NULL);
	if (!listener_event || event_add(listener_event, NULL))
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	return 0;
}

void kernel_close(void)
{
	struct fake_node *n;

	while ((n = fake_nodes))
		fake_del(n->node.id);
	if (listener_event)
		event_free(listener_event);
	if (listener)
		mnl_socket_close(listener);
	if (requests)
		mnl_socket_close(requests);
	listener_event = NULL;
	listener = requests = NULL;
}

/* ----------------------------------------------------------------- nodes */

static int set_node(uint32_t id, const char *name, uint64_t instance,
		    bool local, char *cause, size_t cause_len)
{
	struct answer answer = { .cause = cause, .cause_len = cause_len };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct nlmsghdr *nlh;

	nlh = request(buf, family_id, MATTX_CMD_NODE_SET, NLM_F_ACK);
	mnl_attr_put_u32(nlh, MATTX_A_NODE_ID, id);
	mnl_attr_put_strz(nlh, MATTX_A_NODE_NAME, name);
	if (local)
		mnl_attr_put(nlh, MATTX_A_NODE_LOCAL, 0, NULL);
	else
		mnl_attr_put_u64(nlh, MATTX_A_NODE_INSTANCE, instance);
	return ask_module(nlh, &answer);
}

static void keep_local(const struct kernel_node *node, void *arg)
{
	uint64_t *instance = arg;

	if (node->local)
		*instance = node->instance;
}

/* Do the module and this daemon mean the same by what they say to each other? */
static int check_abi(char *cause, size_t cause_len)
{
	struct mattx_ioc_version version = { .abi = MATTX_ABI };
	int fd = open("/dev/mattx", O_RDWR | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return cause_set(cause, cause_len, errno,
				 "cannot open /dev/mattx: %m");
	if (ioctl(fd, MATTX_IOC_VERSION, &version) && errno != EPROTO)
		ret = cause_set(cause, cause_len, errno,
				"the module does not tell its version: %m");
	else if (version.abi != MATTX_ABI)
		ret = cause_set(
			cause, cause_len, EPROTO,
			"the module is of another version: its interface is %u, this daemon's %u",
			version.abi, MATTX_ABI);
	close(fd);
	return ret;
}

int kernel_local_set(uint32_t id, const char *name, uint64_t *instance,
		     char *cause, size_t cause_len)
{
	int ret;

	*instance = 0;
	if (fake) {
		while (!*instance)
			if (getrandom(instance, sizeof(*instance), 0) < 0)
				return -errno;
		return fake_set(id, name, *instance, true);
	}
	ret = check_abi(cause, cause_len);
	if (!ret)
		ret = set_node(id, name, 0, true, cause, cause_len);
	if (!ret)
		ret = kernel_nodes(keep_local, instance);
	if (!ret && !*instance)
		ret = cause_set(cause, cause_len, EPROTO,
				"the module tells no instance of its own");
	return ret;
}

int kernel_node_set(uint32_t id, const char *name, uint64_t instance,
		    char *cause, size_t cause_len)
{
	if (daemon_fault(FAULT_NODE_SET))
		return cause_set(cause, cause_len, ENOMEM, "fault %d",
				 FAULT_NODE_SET);
	if (fake)
		return fake_set(id, name, instance, false);
	return set_node(id, name, instance, false, cause, cause_len);
}

int kernel_node_del(uint32_t id, char *cause, size_t cause_len)
{
	struct answer answer = { .cause = cause, .cause_len = cause_len };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct nlmsghdr *nlh;

	if (fake)
		return fake_del(id);
	nlh = request(buf, family_id, MATTX_CMD_NODE_DEL, NLM_F_ACK);
	mnl_attr_put_u32(nlh, MATTX_A_NODE_ID, id);
	return ask_module(nlh, &answer);
}

int kernel_link_set(uint32_t id, int fd, bool tls, char *cause, size_t cause_len)
{
	struct answer answer = { .cause = cause, .cause_len = cause_len };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct nlmsghdr *nlh;

	if (daemon_fault(FAULT_LINK_SET))
		return cause_set(cause, cause_len, ENOMEM, "fault %d",
				 FAULT_LINK_SET);
	if (fake)
		return fake_link(id, fd);
	nlh = request(buf, family_id, MATTX_CMD_LINK_SET, NLM_F_ACK);
	mnl_attr_put_u32(nlh, MATTX_A_NODE_ID, id);
	mnl_attr_put_u32(nlh, MATTX_A_SOCK_FD, fd);
	if (tls)
		mnl_attr_put(nlh, MATTX_A_TLS, 0, NULL);
	return ask_module(nlh, &answer);
}

int kernel_node_facts(uint32_t id, const struct kernel_facts *facts)
{
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct answer answer = { 0 };
	struct nlmsghdr *nlh;

	if (fake)
		return 0;
	nlh = request(buf, family_id, MATTX_CMD_NODE_FACTS, NLM_F_ACK);
	mnl_attr_put_u32(nlh, MATTX_A_NODE_ID, id);
	mnl_attr_put_strz(nlh, MATTX_A_NODE_ADDRESS, facts->address);
	mnl_attr_put_u32(nlh, MATTX_A_NODE_CPUS, facts->cpus);
	mnl_attr_put_u32(nlh, MATTX_A_NODE_LOAD, facts->load);
	mnl_attr_put_u64(nlh, MATTX_A_NODE_FREE, facts->free);
	return ask_module(nlh, &answer);
}

struct node_walk {
	kernel_node_fn fn;
	void *arg;
};

static void walk_node(struct nlattr **attrs, void *arg)
{
	struct node_walk *walk = arg;
	struct kernel_node node;

	get_node(attrs, &node);
	if (node.id)
		walk->fn(&node, walk->arg);
}

int kernel_nodes(kernel_node_fn fn, void *arg)
{
	struct node_walk walk = { fn, arg };
	struct answer answer = { .fn = walk_node, .arg = &walk };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct fake_node *n;

	if (fake) {
		for (n = fake_nodes; n; n = n->next)
			fn(&n->node, arg);
		return 0;
	}
	return ask_module(request(buf, family_id, MATTX_CMD_NODE_GET, NLM_F_DUMP),
			  &answer);
}

static void keep_node(const struct kernel_node *node, void *arg)
{
	struct kernel_node *wanted = arg;

	if (node->id == wanted->id)
		*wanted = *node;
}

int kernel_node_get(uint32_t id, struct kernel_node *node)
{
	int ret;

	memset(node, 0, sizeof(*node));
	node->id = id;
	ret = kernel_nodes(keep_node, node);
	if (!ret && !node->name[0])
		ret = -ENOENT;
	return ret;
}

/* ----------------------------------------------------------------- gangs */

struct gang_walk {
	kernel_gang_fn fn;
	void *arg;
};

static void walk_gang(struct nlattr **attrs, void *arg)
{
	struct gang_walk *walk = arg;
	struct kernel_gang gang;

	get_gang(attrs, &gang);
	walk->fn(&gang, walk->arg);
}

int kernel_gangs(kernel_gang_fn fn, void *arg)
{
	struct gang_walk walk = { fn, arg };
	struct answer answer = { .fn = walk_gang, .arg = &walk };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));

	if (fake)
		return 0;
	return ask_module(request(buf, family_id, MATTX_CMD_GANG_GET, NLM_F_DUMP),
			  &answer);
}

struct gang_search {
	uint32_t role;
	uint64_t id;
	int pid;
	bool found;
	struct kernel_gang *gang;
};

static void match_gang(const struct kernel_gang *gang, void *arg)
{
	struct gang_search *s = arg;

	if (gang->state == MATTX_GANG_DEAD || (s->role && gang->role != s->role))
		return;
	if (s->id ? gang->id != s->id : gang->pid != s->pid)
		return;
	s->found = true;
	*s->gang = *gang;
}

int kernel_gang_find(uint32_t role, uint64_t id, int pid, struct kernel_gang *gang)
{
	struct gang_search s = { .role = role, .id = id, .pid = pid, .gang = gang };
	int ret;

	ret = kernel_gangs(match_gang, &s);
	if (!ret && !s.found)
		ret = -ENOENT;
	return ret;
}

struct thread_walk {
	kernel_thread_fn fn;
	void *arg;
};

static void walk_thread(struct nlattr **attrs, void *arg)
{
	struct thread_walk *walk = arg;
	char state[64];

	get_text(attrs, MATTX_A_THREAD_STATE, state, sizeof(state));
	walk->fn(get_u32(attrs, MATTX_A_THREAD_TID, 0), state, walk->arg);
}

int kernel_threads(uint64_t gang, uint32_t role, kernel_thread_fn fn, void *arg)
{
	struct thread_walk walk = { fn, arg };
	struct answer answer = { .fn = walk_thread, .arg = &walk };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct nlmsghdr *nlh;

	if (fake)
		return 0;
	nlh = request(buf, family_id, MATTX_CMD_THREAD_GET, NLM_F_DUMP);
	mnl_attr_put_u64(nlh, MATTX_A_GANG_ID, gang);
	mnl_attr_put_u32(nlh, MATTX_A_GANG_ROLE, role);
	return ask_module(nlh, &answer);
}

/* ----------------------------------------------------- statistics, faults */

struct stat_walk {
	kernel_stat_fn fn;
	void *arg;
};

static void walk_stat(struct nlattr **attrs, void *arg)
{
	struct stat_walk *walk = arg;
	char name[64];

	get_text(attrs, MATTX_A_STAT_NAME, name, sizeof(name));
	if (name[0])
		walk->fn(name, get_u64(attrs, MATTX_A_STAT_VALUE), walk->arg);
}

int kernel_stats(kernel_stat_fn fn, void *arg)
{
	struct stat_walk walk = { fn, arg };
	struct answer answer = { .fn = walk_stat, .arg = &walk };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));

	if (fake)
		return 0;
	return ask_module(request(buf, family_id, MATTX_CMD_STATS_GET, NLM_F_DUMP),
			  &answer);
}

int kernel_fault(uint32_t point, uint32_t count, char *cause, size_t cause_len)
{
	struct answer answer = { .cause = cause, .cause_len = cause_len };
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct nlmsghdr *nlh;

	if (fake)
		return cause_set(cause, cause_len, ENODEV, "there is no module");
	nlh = request(buf, family_id, MATTX_CMD_FAULT_SET, NLM_F_ACK);
	mnl_attr_put_u32(nlh, MATTX_A_FAULT_POINT, point);
	mnl_attr_put_u32(nlh, MATTX_A_FAULT_COUNT, count);
	return ask_module(nlh, &answer);
}

/* ----------------------------------------------------------------- admin */

int kernel_admin_done(uint32_t order, int error)
{
	char buf[MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO)));
	struct answer answer = { 0 };
	struct nlmsghdr *nlh;

	if (fake)
		return 0;
	if (error < 0 || error > MATTX_ERRNO_MAX)
		error = EIO;
	nlh = request(buf, family_id, MATTX_CMD_ADMIN_DONE, NLM_F_ACK);
	mnl_attr_put_u32(nlh, MATTX_A_ADMIN_ORDER, order);
	mnl_attr_put_u32(nlh, MATTX_A_ADMIN_ERRNO, error);
	return ask_module(nlh, &answer);
}
