// SPDX-License-Identifier: GPL-2.0
/*
 * The link: one TCP connection to a node, and the session that outlives it.
 *
 * A connection has two threads. The sender writes HELLO, waits until the
 * receiver has seen the peer's, and then writes what the session has queued,
 * beginning with the first packet that the peer lacks. The receiver checks and
 * dispatches frames one after the other. Who has a call or its reply to send
 * writes it to the socket by itself when nobody else is writing and the socket
 * is not full; conn->writing tells who is, and is the only lock that is held
 * while the network is waited for, by the sender alone.
 *
 * Life of a connection:
 *
 *	CONN_GREETING --> CONN_UP --> CONN_BROKEN --> freed
 *	      +---------------------------^
 *
 * Its threads move it forward. Whoever breaks it shuts the socket down, which
 * wakes the other thread, and schedules the reaper; the threads then wait to
 * be stopped. Connections are taken away under peer->door only, by the reaper,
 * by LINK_SET (a new one replaces it) or when the session ends, when both threads
 * have ended, so a thread may use its connection and its peer as long as it
 * lives. Others who write hold a reference; what is broken takes no new packet.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <net/tcp_states.h>
#include <net/tls.h>

#include "compat.h"
#include "gang/gang.h"
#include "main.h"
#include "netlink.h"
#include "peer.h"
#include "wormhole/packet.h"
#include "wormhole/rpc.h"

/* An explicit ACK is sent when so much was received and nothing was sent. */
#define ACK_BYTES  (256u << 10)
#define ACK_FRAMES 256
#define ACK_DELAY  (HZ / 2) /* for the last frames before an idle time */

#define HELLO_TIMEOUT	     (10 * HZ) /* for the first frame */
#define KEEPALIVE_IDLE_S     5
#define KEEPALIVE_INTERVAL_S 2
#define KEEPALIVE_COUNT	     5
#define USER_TIMEOUT_MS	     15000 /* unacknowledged by TCP */

#define TLS_RECORD_DATA 23 /* content type of application data */

enum conn_state {
	CONN_GREETING, /* the peer's HELLO is not here yet */
	CONN_UP,
	CONN_BROKEN,
};

struct mattx_conn {
	refcount_t ref;
	struct mattx_peer *peer; /* holds a reference */
	struct socket *sock;	 /* holds the file's reference */
	struct task_struct *sender, *receiver;
	enum conn_state state; /* under session->lock */
	const char *cause;     /* of the break, NULL: on purpose */
	bool tls;

	struct mutex writing;	     /* held by who writes to the socket */
	struct mattx_packet *packet; /* being written, or NULL; under writing */
	size_t done;		     /* bytes of it that the socket has */
	bool more;		     /* others were queued behind it */
};

/* --------------------------------------------------------------- packets */

struct mattx_packet *mattx_packet_alloc(size_t room, gfp_t gfp)
{
	struct mattx_packet *packet;

	BUILD_BUG_ON(offsetof(struct mattx_packet, payload) !=
		     offsetof(struct mattx_packet, frame) +
			     sizeof(struct mattx_frame));

	if (room > MATTX_FRAME_MAX)
		return NULL;
	packet = kvmalloc(struct_size(packet, payload, room), gfp);
	if (!packet)
		return NULL;
	refcount_set(&packet->ref, 1);
	packet->room = room;
	return packet;
}

void mattx_packet_put(struct mattx_packet *packet)
{
	if (packet && refcount_dec_and_test(&packet->ref))
		kvfree(packet);
}

/* --------------------------------------------------------------- session */

void mattx_session_init(struct mattx_session *session)
{
	spin_lock_init(&session->lock);
	INIT_LIST_HEAD(&session->queue);
	init_waitqueue_head(&session->wait);
	init_waitqueue_head(&session->drained);
}

int mattx_link_queue(struct mattx_peer *peer, u16 type, u64 gang,
		     struct mattx_packet *packet, size_t len)
{
	struct mattx_session *s = &peer->session;
	unsigned long flags;

	if (WARN_ON_ONCE(len > packet->room))
		len = packet->room;
	packet->frame = (struct mattx_frame){
		.magic = cpu_to_le32(MATTX_PROTO_MAGIC),
		.version = cpu_to_le16(MATTX_PROTO_VERSION),
		.type = cpu_to_le16(type),
		.len = cpu_to_le32(len),
		.gang = cpu_to_le64(gang),
	};

	spin_lock_irqsave(&s->lock, flags);
	if (s->ended) {
		spin_unlock_irqrestore(&s->lock, flags);
		mattx_packet_put(packet);
		return -ESHUTDOWN;
	}
	packet->frame.seq = cpu_to_le64(++s->seq_queued);
	list_add_tail(&packet->node, &s->queue);
	s->queued_bytes += len;
	if (!s->next)
		s->next = packet;
	spin_unlock_irqrestore(&s->lock, flags);
	return 0;
}

int mattx_link_submit(struct mattx_peer *peer, u16 type, u64 gang,
		      struct mattx_packet *packet, size_t len)
{
	int err = mattx_link_queue(peer, type, gang, packet, len);

	if (!err)
		wake_up(&peer->session.wait);
	return err;
}

int mattx_link_send(struct mattx_peer *peer, u16 type, u64 gang,
		    const void *head, size_t head_len, const void *data,
		    size_t data_len, gfp_t gfp)
{
	struct mattx_packet *packet;

	if (head_len > MATTX_FRAME_MAX || data_len > MATTX_FRAME_MAX)
		return -ENOMEM;
	packet = mattx_packet_alloc(head_len + data_len, gfp);
	if (!packet)
		return -ENOMEM;
	if (head_len)
		memcpy(packet->payload, head, head_len);
	if (data_len)
		memcpy(packet->payload + head_len, data, data_len);
	return mattx_link_submit(peer, type, gang, packet, head_len + data_len);
}

static void drop_list(struct list_head *list)
{
	struct mattx_packet *packet, *tmp;

	list_for_each_entry_safe(packet, tmp, list, node) {
		list_del(&packet->node);
		mattx_packet_put(packet);
	}
}

/* The peer has every frame up to @ack. Return: false when it cannot have. */
static bool acknowledged(struct mattx_session *s, u64 ack)
{
	struct mattx_packet *packet, *tmp;
	unsigned long flags;
	LIST_HEAD(done);

	spin_lock_irqsave(&s->lock, flags);
	if (ack > s->seq_sent) {
		spin_unlock_irqrestore(&s->lock, flags);
		return false;
	}
	list_for_each_entry_safe(packet, tmp, &s->queue, node) {
		if (le64_to_cpu(packet->frame.seq) > ack)
			break;
		if (s->next == packet) /* sent over an earlier connection */
			s->next = list_is_last(&packet->node, &s->queue) ?
					  NULL :
					  list_next_entry(packet, node);
		s->queued_bytes -= le32_to_cpu(packet->frame.len);
		list_move_tail(&packet->node, &done);
	}
	spin_unlock_irqrestore(&s->lock, flags);
	drop_list(&done);
	if (wq_has_sleeper(&s->drained))
		wake_up_all(&s->drained);
	return true;
}

void mattx_link_drain(struct mattx_peer *peer, size_t bytes)
{
	struct mattx_session *s = &peer->session;

	wait_event_idle(s->drained, READ_ONCE(s->queued_bytes) <= bytes ||
					    READ_ONCE(s->ended));
}

/* ------------------------------------------------------------ connection */

static void put_conn(struct mattx_conn *conn)
{
	if (!refcount_dec_and_test(&conn->ref))
		return;
	mattx_packet_put(conn->packet);
	sockfd_put(conn->sock);
	mattx_peer_put(conn->peer);
	kfree(conn);
}

/*
 * break_conn() - the connection is of no use any more
 * Context: process. The first cause counts. Only the reaper sends the event,
 * so that it comes once, after the connection is gone.
 */
static void break_conn(struct mattx_conn *conn, const char *cause)
{
	struct mattx_session *s = &conn->peer->session;
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&s->lock, flags);
	first = conn->state != CONN_BROKEN;
	if (first) {
		conn->state = CONN_BROKEN;
		conn->cause = cause;
	}
	spin_unlock_irqrestore(&s->lock, flags);
	if (!first)
		return;
	kernel_sock_shutdown(conn->sock, SHUT_RDWR);
	wake_up(&s->wait);
	if (cause) {
		mattx_peer_hold(conn->peer);
		if (!schedule_work(&conn->peer->reaper))
			mattx_peer_put(conn->peer);
	}
}

static bool broken(struct mattx_conn *conn)
{
	return READ_ONCE(conn->state) == CONN_BROKEN;
}

/* A thread that has nothing left to do waits here for its end. */
static int wait_for_stop(void)
{
	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* --------------------------------------------------------------- writing */

/*
 * write_some() - give the socket a frame from its byte @done on
 * Return: how many bytes it took, or a negative errno.
 */
static int write_some(struct mattx_conn *conn, struct mattx_frame *frame,
		      const void *payload, size_t done, int flags)
{
	size_t len = le32_to_cpu(frame->len), n = 0;
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL | flags };
	struct kvec vec[2];

	if (done < sizeof(*frame)) {
		vec[n].iov_base = (u8 *)frame + done;
		vec[n++].iov_len = sizeof(*frame) - done;
		done = 0;
	} else {
		done -= sizeof(*frame);
	}
	if (len > done) {
		vec[n].iov_base = (u8 *)payload + done;
		vec[n++].iov_len = len - done;
	}
	return kernel_sendmsg(conn->sock, &msg, vec, n,
			      vec[0].iov_len + (n > 1 ? vec[1].iov_len : 0));
}

/* Writes a frame that is not queued: HELLO or ACK. Sleeps. Return: 0 or an errno. */
static int write_frame(struct mattx_conn *conn, struct mattx_frame *frame,
		       const void *payload)
{
	struct mattx_session *s = &conn->peer->session;
	size_t size = sizeof(*frame) + le32_to_cpu(frame->len), done = 0;
	int ret;

	lockdep_assert_held(&conn->writing);
	WRITE_ONCE(s->bytes_out, s->bytes_out + size);
	WRITE_ONCE(s->frames_out, s->frames_out + 1);
	while (done < size) {
		ret = write_some(conn, frame, payload, done, 0);
		if (ret <= 0)
			return ret ?: -EPIPE;
		done += ret;
	}
	return 0;
}

static u64 take_ack(struct mattx_session *s)
{
	lockdep_assert_held(&s->lock);
	s->ack_told = s->seq_received;
	s->unacked_bytes = 0;
	s->unacked_frames = 0;
	return s->ack_told;
}

static int send_hello(struct mattx_conn *conn)
{
	struct mattx_session *s = &conn->peer->session;
	struct mattx_frame frame = {
		.magic = cpu_to_le32(MATTX_PROTO_MAGIC),
		.version = cpu_to_le16(MATTX_PROTO_VERSION),
		.type = cpu_to_le16(MATTX_F_HELLO),
		.len = cpu_to_le32(sizeof(struct mattx_hello)),
	};
	struct mattx_hello hello = {
		.to_instance = cpu_to_le64(conn->peer->instance),
		.to_id = cpu_to_le32(conn->peer->id),
		.version_min = cpu_to_le16(MATTX_PROTO_VERSION),
		.version_max = cpu_to_le16(MATTX_PROTO_VERSION),
	};
	struct mattx_local local;
	unsigned long flags;
	int err;

	mattx_local_get(&local);
	hello.from_instance = cpu_to_le64(local.instance);
	hello.from_id = cpu_to_le32(local.id);
	spin_lock_irqsave(&s->lock, flags);
	frame.ack = cpu_to_le64(take_ack(s));
	spin_unlock_irqrestore(&s->lock, flags);
	mutex_lock(&conn->writing);
	err = write_frame(conn, &frame, &hello);
	mutex_unlock(&conn->writing);
	return err;
}

static int send_ack(struct mattx_conn *conn, u64 ack)
{
	struct mattx_frame frame = {
		.magic = cpu_to_le32(MATTX_PROTO_MAGIC),
		.version = cpu_to_le16(MATTX_PROTO_VERSION),
		.type = cpu_to_le16(MATTX_F_ACK),
		.ack = cpu_to_le64(ack),
	};

	return write_frame(conn, &frame, NULL);
}

static bool ack_owed(struct mattx_session *s)
{
	return READ_ONCE(s->seq_received) != READ_ONCE(s->ack_told);
}

static bool ack_due(struct mattx_session *s)
{
	return READ_ONCE(s->unacked_bytes) >= ACK_BYTES ||
	       READ_ONCE(s->unacked_frames) >= ACK_FRAMES;
}

static bool sender_has_work(struct mattx_conn *conn)
{
	struct mattx_session *s = &conn->peer->session;

	if (kthread_should_stop() || broken(conn))
		return true;
	if (READ_ONCE(conn->state) != CONN_UP)
		return false;
	return READ_ONCE(s->next) || READ_ONCE(conn->packet) || ack_due(s);
}

/* The next packet to be written becomes conn->packet. Return: whether there is one. */
static bool take_packet(struct mattx_conn *conn)
{
	struct mattx_session *s = &conn->peer->session;
	struct mattx_packet *packet;
	unsigned long flags;
	u64 seq;

	lockdep_assert_held(&conn->writing);
	spin_lock_irqsave(&s->lock, flags);
	packet = conn->state == CONN_UP ? s->next : NULL;
	if (packet) {
		s->next = list_is_last(&packet->node, &s->queue) ?
				  NULL :
				  list_next_entry(packet, node);
		refcount_inc(&packet->ref);
		seq = le64_to_cpu(packet->frame.seq);
		if (seq > s->seq_sent)
			s->seq_sent = seq;
		else
			s->frames_resent++;
		packet->frame.ack = cpu_to_le64(take_ack(s));
		s->frames_out++;
		s->bytes_out +=
			sizeof(packet->frame) + le32_to_cpu(packet->frame.len);
		conn->packet = packet;
		conn->done = 0;
		conn->more = s->next;
	}
	spin_unlock_irqrestore(&s->lock, flags);
	return packet;
}

/*
 * push_packets() - write what is queued
 * @flags: MSG_DONTWAIT: stop where the socket is full; the sender goes on from there
 * Context: conn->writing is held. Return: 0 when nothing is left, or a negative errno.
 */
static int push_packets(struct mattx_conn *conn, int flags)
{
	struct mattx_packet *packet;
	size_t size;
	int ret;

	while (conn->packet || take_packet(conn)) {
		packet = conn->packet;
		size = sizeof(packet->frame) + le32_to_cpu(packet->frame.len);
		while (conn->done < size) {
			ret = write_some(conn, &packet->frame, packet->payload,
					 conn->done,
					 flags | (conn->more ? MSG_MORE : 0));
			if (ret <= 0)
				return ret ?: -EPIPE;
			conn->done += ret;
		}
		conn->packet = NULL;
		mattx_packet_put(packet);
	}
	return 0;
}

static int push_ack(struct mattx_conn *conn, bool idle)
{
	struct mattx_session *s = &conn->peer->session;
	unsigned long flags;
	bool ack = false;
	u64 told = 0;

	spin_lock_irqsave(&s->lock, flags);
	if (conn->state == CONN_UP && (ack_due(s) || (idle && ack_owed(s)))) {
		ack = true;
		told = take_ack(s);
	}
	spin_unlock_irqrestore(&s->lock, flags);
	return ack ? send_ack(conn, told) : 0;
}

/*
 * push_now() - write what is queued without the sender, if nobody else is writing
 *
 * Saves two task switches of each call. Whatever stands in the way is left to the
 * sender, an error of the socket too.
 */
static void push_now(struct mattx_peer *peer)
{
	struct mattx_session *s = &peer->session;
	struct mattx_conn *conn = NULL;
	unsigned long flags;
	bool done = false;

	spin_lock_irqsave(&s->lock, flags);
	if (peer->conn && peer->conn->state == CONN_UP) {
		conn = peer->conn;
		refcount_inc(&conn->ref);
	}
	spin_unlock_irqrestore(&s->lock, flags);
	if (!conn)
		return;
	if (mutex_trylock(&conn->writing)) {
		done = !push_packets(conn, MSG_DONTWAIT);
		mutex_unlock(&conn->writing);
	}
	if (!done)
		wake_up(&s->wait);
	put_conn(conn);
}

int mattx_link_submit_now(struct mattx_peer *peer, u16 type, u64 gang,
			  struct mattx_packet *packet, size_t len)
{
	int err = mattx_link_queue(peer, type, gang, packet, len);

	if (!err)
		push_now(peer);
	return err;
}

/* One turn of the sender. Return: 0, or an error of the socket. */
static int send_next(struct mattx_conn *conn, bool idle)
{
	int err;

	mutex_lock(&conn->writing);
	err = push_packets(conn, 0);
	if (!err)
		err = push_ack(conn, idle);
	mutex_unlock(&conn->writing);
	return err;
}

/* ---------------------------------------------------------------- sender */

static int sender(void *data)
{
	struct mattx_conn *conn = data;
	struct mattx_session *s = &conn->peer->session;
	long left;

	if (send_hello(conn))
		break_conn(conn, "the greeting could not be sent");
	while (!kthread_should_stop() && !broken(conn)) {
		left = wait_event_idle_timeout(s->wait, sender_has_work(conn),
					       ACK_DELAY);
		if (send_next(conn, !left))
			break_conn(conn, "the connection was lost while sending");
	}
	return wait_for_stop();
}

/* -------------------------------------------------------------- receiver */

/*
 * read_all() - take exactly @len bytes from the socket
 * Return: 0; -EPIPE when the peer has closed; -EPROTO for a TLS record that is
 * not data (an alert, or a handshake message: the keys are not renewed here).
 */
static int read_all(struct mattx_conn *conn, void *buf, size_t len)
{
	union {
		struct cmsghdr hdr;
		u8 room[CMSG_SPACE(sizeof(u8))];
	} control;
	struct cmsghdr *cmsg = &control.hdr;
	struct msghdr msg;
	struct kvec vec;
	int ret;

	while (len) {
		memset(&control, 0, sizeof(control));
		msg = (struct msghdr){ .msg_flags = MSG_NOSIGNAL };
		if (conn->tls) {
			msg.msg_control = &control;
			msg.msg_controllen = sizeof(control);
		}
		vec.iov_base = buf;
		vec.iov_len = len;
		ret = kernel_recvmsg(conn->sock, &msg, &vec, 1, len, MSG_WAITALL);
		if (ret <= 0)
			return ret ?: -EPIPE;
		if (conn->tls && msg.msg_controllen != sizeof(control) &&
		    cmsg->cmsg_level == SOL_TLS &&
		    cmsg->cmsg_type == TLS_GET_RECORD_TYPE &&
		    *(u8 *)CMSG_DATA(cmsg) != TLS_RECORD_DATA)
			return -EPROTO;
		buf += ret;
		len -= ret;
	}
	return 0;
}

static const char *read_cause(int err)
{
	switch (err) {
	case -EPIPE:
		return "the other side closed the connection";
	case -EPROTO:
		return "the other side ended the encryption";
	case -EBADMSG:
		return "a record does not decrypt";
	case -EAGAIN:
		return "the other side does not greet";
	case -ETIMEDOUT:
		return "the other side does not answer";
	case -ECONNRESET:
		return "the connection was reset";
	default:
		return "the connection was lost";
	}
}

/* check_frame() - is this header acceptable now? Return: NULL, or what is wrong. */
static const char *check_frame(struct mattx_conn *conn,
			       const struct mattx_frame *frame)
{
	u16 type = le16_to_cpu(frame->type);
	u32 len = le32_to_cpu(frame->len);
	bool numbered = frame->seq;

	if (le32_to_cpu(frame->magic) != MATTX_PROTO_MAGIC)
		return "a frame without the magic number came";
	if (le16_to_cpu(frame->version) != MATTX_PROTO_VERSION)
		return "a frame of another protocol version came";
	if (len > MATTX_FRAME_MAX || frame->pad)
		return "a frame with a bad header came";
	if ((type == MATTX_F_HELLO) != (READ_ONCE(conn->state) == CONN_GREETING))
		return "a greeting is missing or came twice";
	if (numbered == (type == MATTX_F_HELLO || type == MATTX_F_ACK))
		return "a frame with a bad sequence number came";
	if (type == MATTX_F_HELLO && len != sizeof(struct mattx_hello))
		return "a greeting of a wrong length came";
	if (type == MATTX_F_ACK && len)
		return "a frame with a bad length came";
	if (type > MATTX_F_ACK && (type < 16 || type > 63))
		return "a frame of an unknown type came";
	return NULL;
}

static const char *check_hello(struct mattx_conn *conn,
			       const struct mattx_hello *hello)
{
	struct mattx_local local;

	mattx_local_get(&local);
	if (le32_to_cpu(hello->from_id) != conn->peer->id ||
	    le32_to_cpu(hello->to_id) != local.id)
		return "the greeting is of another node";
	if (le64_to_cpu(hello->from_instance) != conn->peer->instance ||
	    le64_to_cpu(hello->to_instance) != local.instance)
		return "the greeting is of another instance";
	if (le16_to_cpu(hello->version_min) > MATTX_PROTO_VERSION ||
	    le16_to_cpu(hello->version_max) < MATTX_PROTO_VERSION)
		return "the other side speaks no protocol version of ours";
	if (hello->pad)
		return "the greeting is malformed";
	return NULL;
}

/* greeted() - the peer has told what it has: go on from there */
static void greeted(struct mattx_conn *conn)
{
	struct mattx_session *s = &conn->peer->session;
	unsigned long flags;

	spin_lock_irqsave(&s->lock, flags);
	if (conn->state == CONN_GREETING) {
		conn->state = CONN_UP;
		s->next = list_first_entry_or_null(&s->queue,
						   struct mattx_packet, node);
		s->connections++;
	}
	spin_unlock_irqrestore(&s->lock, flags);
	conn->sock->sk->sk_rcvtimeo = MAX_SCHEDULE_TIMEOUT;
	wake_up(&s->wait);
}

/*
 * number_frame() - is this the next frame of the session?
 * Return: 1 yes, 0 it was there before, -1 one is missing.
 */
static int number_frame(struct mattx_session *s, u64 seq, u32 len)
{
	unsigned long flags;
	bool wake;
	int ret;

	spin_lock_irqsave(&s->lock, flags);
	if (seq <= s->seq_received) {
		ret = 0;
	} else if (seq != s->seq_received + 1) {
		ret = -1;
	} else {
		s->seq_received = seq;
		ret = 1;
	}
	s->unacked_bytes += len;
	s->unacked_frames++;
	wake = ack_due(s);
	spin_unlock_irqrestore(&s->lock, flags);
	if (wake)
		wake_up(&s->wait);
	return ret;
}

/* dispatch() - the payload belongs to the callee from here on */
static void dispatch(struct mattx_peer *peer, u16 type, u64 gang, void *payload,
		     u32 len)
{
	if (type < 32) {
		mattx_rpc_receive(peer, type, gang, payload, len);
	} else {
		mattx_gang_receive(peer, type, gang, payload, len);
		kvfree(payload);
	}
}

/* receive_frame() - Return: NULL, or why the connection is broken. */
static const char *receive_frame(struct mattx_conn *conn)
{
	struct mattx_session *s = &conn->peer->session;
	struct mattx_frame frame;
	const char *cause;
	void *payload = NULL;
	u32 len;
	u16 type;
	int err;

	err = read_all(conn, &frame, sizeof(frame));
	if (err)
		return read_cause(err);
	cause = check_frame(conn, &frame);
	if (cause)
		return cause;
	len = le32_to_cpu(frame.len);
	type = le16_to_cpu(frame.type);
	if (len) {
		payload = kvmalloc(len, GFP_KERNEL);
		if (!payload)
			return "no memory for a frame";
		err = read_all(conn, payload, len);
		if (err) {
			kvfree(payload);
			return read_cause(err);
		}
	}
	WRITE_ONCE(s->bytes_in, s->bytes_in + sizeof(frame) + len);
	WRITE_ONCE(s->frames_in, s->frames_in + 1);

	if (type == MATTX_F_HELLO)
		cause = check_hello(conn, payload);
	if (!cause && !acknowledged(s, le64_to_cpu(frame.ack)))
		cause = "the other side acknowledges what was not sent";
	if (cause || type <= MATTX_F_ACK) {
		if (!cause && type == MATTX_F_HELLO)
			greeted(conn);
		kvfree(payload);
		return cause;
	}

	switch (number_frame(s, le64_to_cpu(frame.seq), len + sizeof(frame))) {
	case 0:
		kvfree(payload);
		return NULL;
	case 1:
		dispatch(conn->peer, type, le64_to_cpu(frame.gang), payload, len);
		return NULL;
	default:
		kvfree(payload);
		return "a frame is missing";
	}
}

static int receiver(void *data)
{
	struct mattx_conn *conn = data;
	const char *cause;

	while (!kthread_should_stop() && !broken(conn)) {
		cause = receive_frame(conn);
		if (cause)
			break_conn(conn, cause);
	}
	return wait_for_stop();
}

/* ----------------------------------------------- setting up, taking away */

/* Stop the connection of a peer and wait for its threads. */
static void stop_conn(struct mattx_peer *peer)
{
	struct mattx_session *s = &peer->session;
	struct mattx_conn *conn = peer->conn;
	unsigned long flags;

	lockdep_assert_held(&peer->door);
	if (!conn)
		return;
	break_conn(conn, NULL);
	kthread_stop(conn->receiver);
	kthread_stop(conn->sender);
	spin_lock_irqsave(&s->lock, flags);
	peer->conn = NULL;
	s->next = NULL; /* what is to be sent again is known after the next HELLO */
	spin_unlock_irqrestore(&s->lock, flags);
	put_conn(conn);
}

void mattx_link_reap(struct work_struct *work)
{
	struct mattx_peer *peer = container_of(work, struct mattx_peer, reaper);
	const char *cause = NULL;

	mutex_lock(&peer->door);
	if (peer->conn && broken(peer->conn)) {
		cause = peer->conn->cause;
		stop_conn(peer);
	}
	mutex_unlock(&peer->door);
	if (cause) {
		pr_info_ratelimited("link to node %u (%s) is down: %s\n",
				    peer->id, peer->name, cause);
		mattx_event_link_down(peer->id, cause);
	}
	mattx_peer_put(peer);
}

/* Does the kernel encrypt and decrypt what goes through this socket? */
static bool socket_is_keyed(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tls_context *ctx;
	bool keyed = false;

	lock_sock(sk);
	if (icsk->icsk_ulp_ops && !strcmp(icsk->icsk_ulp_ops->name, "tls")) {
		ctx = tls_get_ctx(sk);
		keyed = ctx && ctx->tx_conf != TLS_BASE &&
			ctx->rx_conf != TLS_BASE;
	}
	release_sock(sk);
	return keyed;
}

static const char *check_socket(struct socket *sock, bool tls)
{
	struct sock *sk = sock->sk;

	if (!sk || sock->type != SOCK_STREAM || sk->sk_protocol != IPPROTO_TCP ||
	    (sk->sk_family != AF_INET && sk->sk_family != AF_INET6))
		return "not a TCP socket";
	if (READ_ONCE(sk->sk_state) != TCP_ESTABLISHED)
		return "the socket is not connected";
	if (tls && !socket_is_keyed(sk))
		return "the kernel does not encrypt both directions of the socket";
	if (!tls && inet_csk(sk)->icsk_ulp_ops)
		return "the socket has an upper layer protocol that was not announced";
	return NULL;
}

static void tune_socket(struct sock *sk)
{
	tcp_sock_set_nodelay(sk);
	sock_set_keepalive(sk);
	tcp_sock_set_keepidle(sk, KEEPALIVE_IDLE_S);
	tcp_sock_set_keepintvl(sk, KEEPALIVE_INTERVAL_S);
	tcp_sock_set_keepcnt(sk, KEEPALIVE_COUNT);
	tcp_sock_set_user_timeout(sk, USER_TIMEOUT_MS);
	lock_sock(sk);
	sk->sk_rcvtimeo = HELLO_TIMEOUT;
	sk->sk_sndtimeo = MAX_SCHEDULE_TIMEOUT;
	release_sock(sk);
}

static int start_conn(struct mattx_conn *conn)
{
	struct mattx_peer *peer = conn->peer;
	struct mattx_session *s = &peer->session;
	unsigned long flags;

	lockdep_assert_held(&peer->door);
	conn->sender = kthread_create(sender, conn, "mattx-tx/%u", peer->id);
	if (IS_ERR(conn->sender))
		return PTR_ERR(conn->sender);
	conn->receiver = kthread_create(receiver, conn, "mattx-rx/%u", peer->id);
	if (IS_ERR(conn->receiver)) {
		kthread_stop(conn->sender);
		return PTR_ERR(conn->receiver);
	}
	spin_lock_irqsave(&s->lock, flags);
	peer->conn = conn;
	spin_unlock_irqrestore(&s->lock, flags);
	wake_up_process(conn->sender);
	wake_up_process(conn->receiver);
	return 0;
}

int mattx_link_set(struct mattx_peer *peer, struct socket *sock, bool tls,
		   const char **cause)
{
	struct mattx_local local;
	struct mattx_conn *conn;
	int err = -EINVAL;

	mattx_local_get(&local);
	*cause = local.id ? check_socket(sock, tls) : "this node has no id yet";
	if (*cause)
		goto err_sock;
	err = -ENOMEM;
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		goto err_sock;
	refcount_set(&conn->ref, 1);
	mutex_init(&conn->writing);
	conn->peer = mattx_peer_hold(peer);
	conn->sock = sock;
	conn->tls = tls;
	tune_socket(sock->sk);

	mutex_lock(&peer->door);
	if (peer->session.ended) {
		err = -ESHUTDOWN;
	} else {
		stop_conn(peer);
		err = start_conn(conn);
	}
	mutex_unlock(&peer->door);
	mattx_debug("link to node %u (%s): handed over: %d\n", peer->id,
		    peer->name, err);
	if (err)
		put_conn(conn);
	return err;

err_sock:
	sockfd_put(sock);
	return err;
}

bool mattx_peer_up(const struct mattx_peer *peer)
{
	struct mattx_session *s = (struct mattx_session *)&peer->session;
	unsigned long flags;
	bool up;

	spin_lock_irqsave(&s->lock, flags);
	up = peer->conn && peer->conn->state == CONN_UP;
	spin_unlock_irqrestore(&s->lock, flags);
	return up;
}

void mattx_session_end(struct mattx_peer *peer)
{
	struct mattx_session *s = &peer->session;
	unsigned long flags;
	LIST_HEAD(drop);

	mutex_lock(&peer->door);
	stop_conn(peer);
	spin_lock_irqsave(&s->lock, flags);
	s->ended = true;
	s->next = NULL;
	s->queued_bytes = 0;
	list_splice_init(&s->queue, &drop);
	spin_unlock_irqrestore(&s->lock, flags);
	mutex_unlock(&peer->door);
	wake_up_all(&s->drained);
	drop_list(&drop);
	/* a connection that broke by itself may have scheduled it */
	if (cancel_work_sync(&peer->reaper))
		mattx_peer_put(peer);
}
