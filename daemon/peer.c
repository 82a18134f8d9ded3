// SPDX-License-Identifier: GPL-2.0
/* The other nodes: connections to their daemons, links of the modules. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "auth.h"
#include "config.h"
#include "conn.h"
#include "fault.h"
#include "homing.h"
#include "job_main.h"
#include "kernel.h"
#include "log.h"
#include "mattxd.h"
#include "peer.h"

#define TICK_MS	       1000
#define RETRY_MIN_MS   500
#define RETRY_MAX_MS   5000
#define LINK_SETTLE_MS 3000	 /* a new link's state is believed after this */
#define OUTPUT_MAX     (1 << 20) /* bytes that a peer may leave unread */
#ifndef LINK_BYTES_MAX
#define LINK_BYTES_MAX \
	(128ull << 30) /* per connection: AES-GCM's limit is above */
#endif

/* A HOME that waits for its answer. */
struct request {
	struct request *next;
	uint32_t id;
	struct home_watch watch;
};

struct peer {
	struct peer *next;
	struct node_info info;
	bool self;
	bool fixed;		   /* in the configuration */
	uint64_t told_by, told_at; /* the last announcement's daemon and clock */
	uint64_t known;		   /* the instance the module has, 0: none */
	char cause[CONN_CAUSE_MAX];

	/* control */
	struct conn *opening; /* CONTROL or KNOCK from here */
	struct bufferevent *control;
	uint64_t serial; /* counts control connections */
	int64_t retry_at, retry_ms;
	int64_t opened_at, seen_at, pinged_at;
	struct ping ping; /* the last that came */
	struct request *requests;
	uint32_t last_request;

	/* link */
	struct conn *link_opening;
	bool link_up; /* says the module */
	bool link_old; /* older than the daemons' connection: another key, perhaps */
	int64_t link_at; /* when the last one was handed over */
	int64_t link_retry_at, link_retry_ms;
	unsigned int link_denied; /* PINGs in a row that say it is down there */
	uint64_t link_bytes; /* in the busier direction, all links of the session */
	uint64_t link_bytes_at; /* the same when the last one was handed over */
};

static struct peer *peers;
static struct event *ticker;
static uint64_t serial;

static void peer_tick(struct peer *peer);

/* ---------------------------------------------------------------- lookup */

struct peer *peer_by_name(const char *name)
{
	struct peer *p;

	for (p = peers; p && strcmp(p->info.name, name); p = p->next)
		;
	return p;
}

struct peer *peer_by_id(uint32_t id)
{
	struct peer *p;

	for (p = peers; p && p->info.id != id; p = p->next)
		;
	return p;
}

struct peer *peer_next(struct peer *peer)
{
	return peer ? peer->next : peers;
}

const struct node_info *peer_info(const struct peer *peer)
{
	return &peer->info;
}

const char *peer_name_of(uint32_t id)
{
	static char text[32];
	struct peer *p = peer_by_id(id);

	if (p)
		return p->info.name;
	snprintf(text, sizeof(text), "node %08x", id);
	return text;
}

bool peer_is_self(const struct peer *peer)
{
	return peer->self;
}

bool peer_control_up(const struct peer *peer)
{
	return peer->control;
}

bool peer_link_up(const struct peer *peer)
{
	return peer->link_up;
}

bool peer_up(const struct peer *peer)
{
	/* one that is going to be replaced is down for a moment, on one side or the other */
	return peer->control && peer->link_up && !peer->link_old;
}

const char *peer_cause(const struct peer *peer)
{
	return peer->cause;
}

const struct ping *peer_load(const struct peer *peer)
{
	return &peer->ping;
}

/* The node with the lower id makes the connections. */
static bool we_connect(const struct peer *peer)
{
	return self.config->id < peer->info.id;
}

/* ----------------------------------------------------------------- hello */

void peer_hello(const struct peer *peer, enum purpose purpose, struct hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->version_min = MSG_VERSION_MIN;
	hello->version_max = MSG_VERSION_MAX;
	hello->purpose = purpose;
	hello->from = self.config->id;
	hello->to = peer->info.id;
	hello->instance = self.instance;
	hello->known = peer->known;
	hello->daemon = self.nonce;
	snprintf(hello->name, sizeof(hello->name), "%s", self.config->name);
	facts_now(&hello->facts);
}

/*
 * Does the other side's word on who is who agree with ours? A LINK or JOB is of no
 * use before the modules know each other, which is the control connection's work.
 */
static int check_session(struct peer *peer, const struct hello *theirs,
			 char *cause, size_t cause_len)
{
	if (peer->known != theirs->instance)
		return cause_set(cause, cause_len, ENOTCONN,
				 "%s does not know this instance of %s yet",
				 self.config->name, theirs->name);
	if (theirs->known != self.instance)
		return cause_set(cause, cause_len, ENOTCONN,
				 "%s does not know this instance of %s yet",
				 theirs->name, self.config->name);
	return 0;
}

int peer_decide(struct conn *conn)
{
	const struct hello *theirs = &conn->theirs;
	struct peer *peer = peer_by_id(theirs->from);
	char *cause = conn->cause;
	size_t size = sizeof(conn->cause);

	if (!self.instance)
		return cause_set(cause, size, ENODEV,
				 "the module is not loaded at %s",
				 self.config->name);
	if (!peer && self.config->discover)
		return cause_set(cause, size, ENOTCONN,
				 "%s has not discovered %s yet",
				 self.config->name, theirs->name);
	if (!peer || peer->self || strcmp(peer->info.name, theirs->name))
		return cause_set(cause, size, ENOENT,
				 "%s has no node %s in its configuration",
				 self.config->name, theirs->name);
	if (theirs->to != self.config->id)
		return cause_set(cause, size, EINVAL, "this is node %s",
				 self.config->name);
	if (theirs->purpose == PURPOSE_KNOCK ?
		    !we_connect(peer) :
		    theirs->purpose != PURPOSE_JOB && we_connect(peer))
		return cause_set(cause, size, EINVAL,
				 "a %s connection in the wrong direction",
				 purpose_name(theirs->purpose));
	if (theirs->purpose == PURPOSE_LINK || theirs->purpose == PURPOSE_JOB)
		if (check_session(peer, theirs, cause, size))
			return -ENOTCONN;
	peer_hello(peer, theirs->purpose, &conn->mine);
	return 0;
}

/* What /proc/mattx/nodes says of @peer. Nothing else needs it, so it may fail. */
static void tell_facts(const struct peer *peer)
{
	struct kernel_facts facts = {
		.cpus = peer->ping.cpus,
		.load = peer->ping.load,
		.free = peer->ping.mem_available,
	};

	if (peer->info.addr_len)
		getnameinfo((const struct sockaddr *)&peer->info.addr,
			    peer->info.addr_len, facts.address,
			    sizeof(facts.address), NULL, 0, NI_NUMERICHOST);
	if (self.instance)
		kernel_node_facts(peer->info.id, &facts);
}

static struct ping own_load(void)
{
	struct facts facts;

	facts_now(&facts);
	return (struct ping){
		.load = facts.load,
		.cpus = facts.cpus,
		.mem_total = facts.mem_total,
		.mem_available = facts.mem_available,
	};
}

/* ------------------------------------------------------------ who is who */

/* End what the module shares with the instance that it knows. */
static int end_session(struct peer *peer, char *cause, size_t cause_len)
{
	uint64_t nobody;
	int ret;

	do {
		if (getrandom(&nobody, sizeof(nobody), 0) != sizeof(nobody))
			return -errno;
	} while (!nobody || nobody == peer->known);
	ret = kernel_node_set(peer->info.id, peer->info.name, nobody, cause,
			      cause_len);
	if (!ret)
		peer->known = nobody;
	peer->link_up = false;
	return ret;
}

/*
 * A daemon has told its instance over a connection that both have authenticated:
 * tell the module. When the other module holds no session with us although ours
 * holds one with it (an operator made it forget us), ours ends too.
 */
static int meet(struct peer *peer, const struct hello *theirs, char *cause,
		size_t cause_len)
{
	int ret = 0;

	if (peer->known && peer->known == theirs->instance &&
	    theirs->known != self.instance) {
		log_warn("node %s: gave up what was shared with this node",
			 peer->info.name);
		ret = end_session(peer, cause, cause_len);
	} else if (peer->known && peer->known != theirs->instance) {
		log_info("node %s: was started anew", peer->info.name);
	}
	if (!ret)
		ret = kernel_node_set(peer->info.id, peer->info.name,
				      theirs->instance, cause, cause_len);
	if (ret)
		return ret;
	if (peer->known != theirs->instance)
		peer->link_up = false;
	peer->known = theirs->instance;
	peer->info.instance = theirs->instance;
	peer->info.facts = theirs->facts;
	peer->ping = (struct ping){
		.load = theirs->facts.load,
		.cpus = theirs->facts.cpus,
		.mem_total = theirs->facts.mem_total,
		.mem_available = theirs->facts.mem_available,
	};
	tell_facts(peer);
	return 0;
}

/* --------------------------------------------------- control: send, end */

static void send_message(struct peer *peer, const void *buf, size_t len)
{
	if (peer->control)
		bufferevent_write(peer->control, buf, len);
}

static void send_ping(struct peer *peer)
{
	struct ping ping = own_load();
	unsigned char buf[MSG_BUF];

	ping.link = peer->link_up;
	peer->pinged_at = now_ms();
	send_message(peer, buf, msg_ping_write(buf, &ping));
}

static void end_requests(struct peer *peer, int error, const char *cause)
{
	struct request *r;

	while ((r = peer->requests)) {
		peer->requests = r->next;
		r->watch.end(error, cause, r->watch.arg);
		free(r);
	}
}

static void retry_later(struct peer *peer)
{
	peer->retry_at = now_ms() + peer->retry_ms;
	peer->retry_ms = peer->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS :
							     peer->retry_ms * 2;
}

static void note_cause(struct peer *peer, const char *cause)
{
	if (strcmp(peer->cause, cause)) {
		snprintf(peer->cause, sizeof(peer->cause), "%s", cause);
		log_info("node %s: %s", peer->info.name, cause);
	}
}

static void control_end(struct peer *peer, const char *cause)
{
	if (!peer->control)
		return;
	bufferevent_free(peer->control);
	peer->control = NULL;
	note_cause(peer, cause);
	/* at once, unless it ended as soon as it had begun */
	peer->retry_at = now_ms();
	if (peer->retry_at - peer->opened_at < RETRY_MAX_MS)
		retry_later(peer);
	else
		peer->retry_ms = RETRY_MIN_MS;
	end_requests(peer, ECONNRESET,
		     "the connection broke; what was begun there goes on");
}

/* --------------------------------------------------- control: receive */

static int got_ping(struct peer *peer, const void *payload, size_t len,
		    char *cause, size_t size)
{
	int ret;

	ret = msg_ping_read(payload, len, &peer->ping, cause, size);
	if (ret)
		return ret;
	peer->link_denied = peer->ping.link ? 0 : peer->link_denied + 1;
	tell_facts(peer);
	return 0;
}

static int got_home(struct peer *peer, uint32_t id, const void *payload,
		    size_t len, char *cause, size_t size)
{
	struct home home;
	int ret;

	ret = msg_home_read(payload, len, &home, cause, size);
	if (!ret && !id)
		ret = cause_set(cause, size, EPROTO, "HOME without a number");
	if (!ret && daemon_fault(FAULT_CONTROL_LOST))
		ret = cause_set(cause, size, EPROTO, "fault %d",
				FAULT_CONTROL_LOST);
	if (!ret)
		job_home_asked(peer->info.id, peer->serial, id, home.gang);
	return ret;
}

static struct request **find_request(struct peer *peer, uint32_t id)
{
	struct request **at;

	for (at = &peer->requests; *at && (*at)->id != id; at = &(*at)->next)
		;
	return at;
}

static int got_progress(struct peer *peer, uint32_t id, const void *payload,
			size_t len, char *cause, size_t size)
{
	struct request *r = *find_request(peer, id);
	struct progress progress;
	int ret;

	ret = msg_progress_read(payload, len, &progress, cause, size);
	if (!ret && r)
		r->watch.progress(&progress, r->watch.arg);
	return ret;
}

static int got_result(struct peer *peer, uint32_t id, const void *payload,
		      size_t len, char *cause, size_t size)
{
	struct request **at = find_request(peer, id), *r = *at;
	struct outcome outcome;
	int ret;

	ret = msg_outcome_read(payload, len, &outcome, cause, size);
	if (ret || !r)
		return ret;
	*at = r->next;
	r->watch.end(outcome.error, outcome.cause, r->watch.arg);
	free(r);
	return 0;
}

static int got_refusal(const void *payload, size_t len, char *cause, size_t size)
{
	struct outcome outcome;
	int ret;

	ret = msg_outcome_read(payload, len, &outcome, cause, size);
	if (ret)
		return ret;
	return cause_set(cause, size, EPROTO, "refused a message: %s",
			 outcome.cause);
}

static int got_message(struct peer *peer, const struct msg_head *head,
		       const void *payload, char *cause, size_t size)
{
	switch (head->type) {
	case MSG_PING:
		return got_ping(peer, payload, head->len, cause, size);
	case MSG_HOME:
		return got_home(peer, head->id, payload, head->len, cause, size);
	case MSG_PROGRESS:
		return got_progress(peer, head->id, payload, head->len, cause,
				    size);
	case MSG_RESULT:
		return got_result(peer, head->id, payload, head->len, cause,
				  size);
	case MSG_REFUSE:
		return got_refusal(payload, head->len, cause, size);
	}
	return cause_set(cause, size, EPROTO, "unknown message type %u",
			 head->type);
}

/* One message out of the buffer. Return: 0, -EAGAIN: not all there, -EPROTO. */
static int take_message(struct peer *peer, struct evbuffer *in, char *cause,
			size_t size)
{
	unsigned char buf[sizeof(struct msg_head)], *all;
	struct msg_head head;
	int ret;

	if (evbuffer_copyout(in, buf, sizeof(buf)) < (ssize_t)sizeof(buf))
		return -EAGAIN;
	ret = msg_head_read(buf, &head, cause, size);
	if (ret)
		return ret;
	if (evbuffer_get_length(in) < sizeof(head) + head.len)
		return -EAGAIN;
	all = evbuffer_pullup(in, sizeof(head) + head.len);
	if (!all)
		return cause_set(cause, size, ENOMEM, "out of memory");
	ret = got_message(peer, &head, all + sizeof(head), cause, size);
	evbuffer_drain(in, sizeof(head) + head.len);
	return ret;
}

static void control_readable(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	unsigned char buf[MSG_BUF];
	char cause[CONN_CAUSE_MAX];
	struct peer *peer = arg;
	size_t len;
	int ret = 0;

	peer->seen_at = now_ms();
	while (peer->control == bev &&
	       !(ret = take_message(peer, in, cause, sizeof(cause))))
		;
	if (peer->control == bev && ret && ret != -EAGAIN) {
		/* tell it why, as far as the socket takes it now */
		len = msg_outcome_write(buf, MSG_REFUSE, 0, ret, cause);
		if (send(bufferevent_getfd(bev), buf, len,
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			log_debug("node %s: refusal: %m", peer->info.name);
		log_warn("node %s: bad message: %s", peer->info.name, cause);
		control_end(peer, cause);
	} else if (peer->control == bev &&
		   evbuffer_get_length(bufferevent_get_output(bev)) > OUTPUT_MAX) {
		control_end(peer, "does not read what it is sent");
	}
	peer_tick(peer);
}

static void control_event(struct bufferevent *bev, short what, void *arg)
{
	struct peer *peer = arg;

	(void)bev;
	if (what & BEV_EVENT_EOF)
		control_end(peer, "closed the connection");
	else if (what & BEV_EVENT_ERROR)
		control_end(peer, strerror(errno));
	peer_tick(peer);
}

/* ----------------------------------------------------- control: opening */

static void control_open(struct peer *peer, struct conn *conn)
{
	char cause[CONN_CAUSE_MAX] = "";
	int ret;

	if (peer->control)
		control_end(peer, "connected anew");
	ret = meet(peer, &conn->theirs, cause, sizeof(cause));
	if (!ret) {
		peer->control = bufferevent_socket_new(self.base,
						       conn_take(conn, false),
						       BEV_OPT_CLOSE_ON_FREE);
		if (!peer->control)
			ret = cause_set(cause, sizeof(cause), ENOMEM,
					"out of memory");
	}
	conn_free(conn);
	if (ret) {
		log_err("node %s: module: %s", peer->info.name, cause);
		snprintf(peer->cause, sizeof(peer->cause), "module: %.200s",
			 cause);
		retry_later(peer);
		return;
	}
	peer->serial = ++serial;
	peer->opened_at = peer->seen_at = now_ms();
	peer->link_retry_ms = RETRY_MIN_MS;
	peer->link_retry_at = 0;
	peer->link_denied = 0;
	peer->link_old = true;
	peer->cause[0] = 0;
	bufferevent_setcb(peer->control, control_readable, NULL, control_event,
			  peer);
	bufferevent_setwatermark(peer->control, EV_READ, 0, 2 * MSG_LEN_MAX);
	bufferevent_enable(peer->control, EV_READ | EV_WRITE);
	log_info("node %s: daemon is here (kernel %s, instance %016llx)",
		 peer->info.name, peer->info.facts.release,
		 (unsigned long long)peer->known);
	peers_look();
	send_ping(peer);
	peer_tick(peer);
}

static void opened(struct conn *conn, int ret)
{
	struct peer *peer = conn->arg;

	peer->opening = NULL;
	if (ret) {
		note_cause(peer, conn->cause);
		retry_later(peer);
		conn_free(conn);
	} else if (conn->mine.purpose == PURPOSE_KNOCK) {
		retry_later(peer);
		conn_free(conn);
	} else {
		control_open(peer, conn);
	}
}

static struct conn *start_conn(struct peer *peer, enum purpose purpose,
			       void (*done)(struct conn *conn, int ret))
{
	struct hello hello;
	struct conn *conn;

	peer_hello(peer, purpose, &hello);
	conn = conn_client((struct sockaddr *)&peer->info.addr,
			   peer->info.addr_len, &hello);
	if (conn && conn_start(conn, self.base, done, peer)) {
		conn_free(conn);
		conn = NULL;
	}
	return conn;
}

/* ------------------------------------------------------------------ link */

static void hand_over(struct peer *peer, struct conn *conn)
{
	char cause[CONN_CAUSE_MAX] = "";
	int fd, ret;

	fd = conn_take(conn, false);
	conn_free(conn);
	ret = kernel_link_set(peer->info.id, fd, auth_encrypts(), cause,
			      sizeof(cause));
	close(fd);
	if (ret) {
		log_err("node %s: module takes no link: %s", peer->info.name,
			cause);
		peer->link_retry_at = now_ms() + peer->link_retry_ms;
		return;
	}
	peer->link_at = now_ms();
	peer->link_old = false;
	peer->link_denied = 0;
	peer->link_bytes_at = peer->link_bytes;
	peers_look();
	log_info("node %s: link handed to the module%s", peer->info.name,
		 auth_encrypts() ? "" : " (not encrypted)");
	send_ping(peer);
	homing_again(peer->info.id);
}

static void link_opened(struct conn *conn, int ret)
{
	struct peer *peer = conn->arg;

	peer->link_opening = NULL;
	if (ret) {
		log_info("node %s: link: %s", peer->info.name, conn->cause);
		peer->link_retry_at = now_ms() + peer->link_retry_ms;
		if (peer->link_retry_ms < RETRY_MAX_MS)
			peer->link_retry_ms *= 2;
		conn_free(conn);
		return;
	}
	hand_over(peer, conn);
}

/*
 * A link that may be of another key, or of a time with or without encryption, that is up
 * here but not there, or that has carried as much as its keys may.
 */
static bool link_wants_renewal(const struct peer *peer)
{
	if (peer->link_old)
		return true;
	if (now_ms() - peer->link_at < LINK_SETTLE_MS)
		return false;
	return peer->link_denied >= 2 ||
	       peer->link_bytes - peer->link_bytes_at > LINK_BYTES_MAX;
}

static void link_tick(struct peer *peer)
{
	int64_t now = now_ms();

	if (!peer->control || !we_connect(peer) || peer->link_opening ||
	    !self.instance)
		return;
	if (peer->link_up && !link_wants_renewal(peer))
		return;
	if (now < peer->link_retry_at)
		return;
	if (!peer->link_up && peer->link_at && now - peer->link_at < RETRY_MIN_MS)
		return;
	peer->link_denied = 0;
	peer->link_opening = start_conn(peer, PURPOSE_LINK, link_opened);
	if (!peer->link_opening)
		peer->link_retry_at = now + RETRY_MAX_MS;
}

void peer_link_lost(uint32_t id, const char *cause)
{
	struct peer *peer = peer_by_id(id);

	if (!peer)
		return;
	log_info("node %s: link is down: %s", peer->info.name, cause);
	peers_look();
	if (peer->control)
		send_ping(peer);
	peer_tick(peer);
}

/* ------------------------------------------------------------------ tick */

static void self_tick(struct peer *me)
{
	if (now_ms() - me->pinged_at < PEER_PING_MS)
		return;
	me->pinged_at = now_ms();
	me->ping = own_load();
	tell_facts(me);
}

static void peer_tick(struct peer *peer)
{
	int64_t now = now_ms();

	if (!self.instance)
		return;
	if (peer->self) {
		self_tick(peer);
		return;
	}
	if (peer->control && now - peer->seen_at > PEER_SILENT_MS)
		control_end(peer, "is silent");
	if (peer->control && now - peer->pinged_at >= PEER_PING_MS)
		send_ping(peer);
	if (!peer->control && !peer->opening && now >= peer->retry_at) {
		peer->opening = start_conn(
			peer, we_connect(peer) ? PURPOSE_CONTROL : PURPOSE_KNOCK,
			opened);
		if (!peer->opening)
			retry_later(peer);
	}
	link_tick(peer);
}

static void look_node(const struct kernel_node *node, void *arg)
{
	struct peer *peer = peer_by_id(node->id);

	(void)arg;
	if (!peer || peer->self)
		return;
	peer->known = peer->info.instance = node->instance;
	peer->link_up = node->up;
}

void peers_look(void)
{
	struct peer *p;
	int ret;

	for (p = peers; p; p = p->next)
		p->link_up = false;
	ret = kernel_nodes(look_node, NULL);
	if (ret)
		log_warn("module: nodes: %s", strerror(-ret));
}

/* "link.NAME.bytes_in", "link.NAME.bytes_out" */
static void look_stat(const char *name, uint64_t value, void *arg)
{
	char node[MATTX_NAME_MAX];
	const char *last = strrchr(name, '.');
	struct peer *peer;

	(void)arg;
	if (strncmp(name, "link.", 5) || last < name + 5 ||
	    last - name - 5 >= MATTX_NAME_MAX)
		return;
	if (strcmp(last, ".bytes_in") && strcmp(last, ".bytes_out"))
		return;
	snprintf(node, sizeof(node), "%.*s", (int)(last - name - 5), name + 5);
	peer = peer_by_name(node);
	if (peer && value > peer->link_bytes)
		peer->link_bytes = value;
}

/* Before a link has carried what its keys allow, it is renewed. */
static void count_bytes(void)
{
	struct peer *p;

	for (p = peers; p; p = p->next)
		p->link_bytes = 0;
	kernel_stats(look_stat, NULL);
	for (p = peers; p; p = p->next)
		if (p->link_bytes < p->link_bytes_at)
			p->link_bytes_at = 0; /* another session */
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
	static unsigned int count;
	struct peer *p;

	(void)fd;
	(void)what;
	(void)arg;
	if (!self.instance)
		return;
	peers_look();
	if (auth_encrypts() && ++count % 10 == 0)
		count_bytes();
	for (p = peers; p; p = p->next)
		peer_tick(p);
}

/* -------------------------------------------------------------- incoming */

void peer_incoming(struct conn *conn)
{
	struct peer *peer = peer_by_id(conn->theirs.from);

	switch (conn->mine.purpose) {
	case PURPOSE_KNOCK:
		conn_free(conn);
		if (peer->control)
			return;
		peer->retry_at = 0;
		peer->retry_ms = RETRY_MIN_MS;
		peer_tick(peer);
		return;
	case PURPOSE_CONTROL:
		control_open(peer, conn);
		return;
	case PURPOSE_LINK:
		/* the instance may have changed since the HELLO */
		if (check_session(peer, &conn->theirs, conn->cause,
				  sizeof(conn->cause))) {
			log_info("node %s: link: %s", peer->info.name,
				 conn->cause);
			conn_free(conn);
			return;
		}
		hand_over(peer, conn);
		return;
	case PURPOSE_JOB:
		job_serve(peer, conn);
		return;
	}
	conn_free(conn);
}

/* -------------------------------------------------------------- requests */

void peer_ask_home(struct peer *peer, uint64_t gang,
		   const struct home_watch *watch)
{
	struct home home = { .gang = gang };
	unsigned char buf[MSG_BUF];
	struct request *r;

	if (!peer->control) {
		watch->end(EHOSTUNREACH,
			   peer->cause[0] ? peer->cause : "is down", watch->arg);
		return;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		watch->end(ENOMEM, "out of memory", watch->arg);
		return;
	}
	r->watch = *watch;
	do {
		r->id = ++peer->last_request;
	} while (!r->id || *find_request(peer, r->id));
	r->next = peer->requests;
	peer->requests = r;
	send_message(peer, buf, msg_home_write(buf, r->id, &home));
}

void peer_answer_progress(uint32_t node, uint64_t conn_serial, uint32_t id,
			  const struct progress *progress)
{
	struct peer *peer = peer_by_id(node);
	unsigned char buf[MSG_BUF];

	if (peer && peer->control && peer->serial == conn_serial &&
	    !evbuffer_get_length(bufferevent_get_output(peer->control)))
		send_message(peer, buf, msg_progress_write(buf, id, progress));
}

void peer_answer(uint32_t node, uint64_t conn_serial, uint32_t id, int error,
		 const char *cause)
{
	struct peer *peer = peer_by_id(node);
	unsigned char buf[MSG_BUF];

	if (peer && peer->control && peer->serial == conn_serial)
		send_message(peer, buf,
			     msg_outcome_write(buf, MSG_RESULT, id, error, cause));
}

/* ---------------------------------------------------------------- forget */

int peer_forget(struct peer *peer, char *cause, size_t cause_len)
{
	int ret;

	if (peer->self)
		return cause_set(cause, cause_len, EINVAL, "is this node");
	if (peer->control)
		return cause_set(cause, cause_len, EBUSY,
				 "is up: bring its processes home instead");
	ret = 0;
	if (peer->known)
		ret = end_session(peer, cause, cause_len);
	if (!ret && peer->known)
		ret = kernel_node_del(peer->info.id, cause, cause_len);
	if (!ret)
		peer->known = 0;
	return ret;
}

/* ----------------------------------------------------------- begin and end */

static struct peer *add_peer(const char *name)
{
	struct peer *p = calloc(1, sizeof(*p)), **at;

	if (!p)
		return NULL;
	snprintf(p->info.name, sizeof(p->info.name), "%s", name);
	p->info.id = node_id(name);
	p->self = p->info.id == self.config->id;
	p->retry_ms = p->link_retry_ms = RETRY_MIN_MS;
	for (at = &peers; *at; at = &(*at)->next)
		;
	*at = p;
	return p;
}

static int add_configured(const struct config_node *node)
{
	struct peer *p = add_peer(node->name);

	if (!p)
		return -ENOMEM;
	p->info.addr = node->addr;
	p->info.addr_len = node->addr_len;
	p->fixed = true;
	return 0;
}

void peer_address_set(const char *name, uint32_t address, uint16_t port)
{
	struct peer *p = peer_by_name(name);
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = address,
	};

	if (!p || p->fixed)
		return;
	if (p->info.addr_len == sizeof(in) &&
	    !memcmp(&p->info.addr, &in, sizeof(in)))
		return;
	memcpy(&p->info.addr, &in, sizeof(in));
	p->info.addr_len = sizeof(in);
	p->retry_at = 0;
}

void peer_discovered(const struct announcement *a)
{
	struct peer *p = peer_by_id(a->id);

	if (p && (p->fixed || p->self))
		return;
	if (p && strcmp(p->info.name, a->name)) {
		note_cause(
			p,
			"another node has a name with the same number: rename one");
		return;
	}
	if (!p) {
		p = add_peer(a->name);
		if (!p)
			return;
		log_info("node %s: discovered", a->name);
		peers_look();
	}
	/* not an old one that somebody sends again */
	if (p->told_by == a->daemon && a->realtime <= p->told_at)
		return;
	p->told_by = a->daemon;
	p->told_at = a->realtime;
	peer_address_set(a->name, a->address, a->port);
	peer_tick(p);
}

static int local_set(char *cause, size_t cause_len)
{
	struct peer *p = peer_by_id(self.config->id);
	int ret;

	ret = kernel_local_set(self.config->id, self.config->name,
			       &self.instance, cause, cause_len);
	if (!ret && p) {
		p->info.instance = self.instance;
		facts_now(&p->info.facts);
	}
	return ret;
}

int peers_init(char *cause, size_t cause_len)
{
	struct timeval tv = { .tv_sec = TICK_MS / 1000 };
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < self.config->nr_nodes; i++)
		ret = add_configured(&self.config->nodes[i]);
	if (!ret && !config_self(self.config) && !add_peer(self.config->name))
		ret = -ENOMEM;
	ticker = event_new(self.base, -1, EV_PERSIST, tick, NULL);
	if (ret || !ticker || event_add(ticker, &tv))
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	ret = local_set(cause, cause_len);
	if (!ret)
		peers_look();
	return ret;
}

void peers_start(void)
{
	struct peer *p;

	for (p = peers; p; p = p->next)
		peer_tick(p);
}

static void drop_connections(struct peer *peer, const char *cause)
{
	conn_free(peer->opening);
	conn_free(peer->link_opening);
	peer->opening = peer->link_opening = NULL;
	control_end(peer, cause);
}

void peers_reset(bool back)
{
	char cause[CONN_CAUSE_MAX] = "";
	struct peer *p;

	self.instance = 0;
	for (p = peers; p; p = p->next) {
		drop_connections(p, "the module here was unloaded");
		p->known = 0;
		p->link_up = false;
	}
	if (!back)
		return;
	if (local_set(cause, sizeof(cause)))
		log_err("module: %s", cause);
	else
		peers_start();
}

void peers_exit(void)
{
	struct peer *p;

	while ((p = peers)) {
		drop_connections(p, "this daemon ends");
		peers = p->next;
		free(p);
	}
	if (ticker)
		event_free(ticker);
	ticker = NULL;
}
