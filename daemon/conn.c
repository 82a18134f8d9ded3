// SPDX-License-Identifier: GPL-2.0
/* Opening a connection between two daemons. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <event2/event.h>

#include "auth.h"
#include "conn.h"
#include "fault.h"
#include "log.h"
#include "mattxd.h"

#define KEEPALIVE_IDLE_S     10
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT	     4
#define USER_TIMEOUT_MS	     30000 /* unacknowledged for so long: broken */
#define JOB_TIMEOUT_MS	     60000 /* a receiver may be busy with memory */

enum step {
	CONNECT, /* client */
	AUTH,
	SEND_HELLO,   /* client */
	RECV_WELCOME, /* client; or REFUSE */
	SEND_READY,   /* client */
	RECV_HELLO,   /* server */
	SEND_WELCOME, /* server */
	RECV_READY,   /* server */
	SEND_REFUSE,  /* server */
	OPEN,
};

static void set_int(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		log_debug("setsockopt %d %d: %m", level, option);
}

static void set_options(int fd)
{
	set_int(fd, SOL_TCP, TCP_NODELAY, 1);
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(fd, SOL_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_int(fd, SOL_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	set_int(fd, SOL_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
	set_int(fd, SOL_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

static struct conn *conn_new(int fd, bool server)
{
	struct conn *conn;

	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return NULL;
	conn->auth = auth_new(fd, server);
	if (!conn->auth) {
		free(conn);
		return NULL;
	}
	conn->fd = fd;
	conn->server = server;
	conn->step = server ? AUTH : CONNECT;
	conn->want = server ? POLLIN : POLLOUT;
	conn->deadline = now_ms() + CONN_TIMEOUT_MS;
	set_options(fd);
	return conn;
}

struct conn *conn_client(const struct sockaddr *addr, socklen_t len,
			 const struct hello *hello)
{
	struct conn *conn;
	int fd;

	fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	if (fd < 0)
		return NULL;
	conn = conn_new(fd, false);
	if (!conn) {
		close(fd);
		return NULL;
	}
	conn->mine = *hello;
	memcpy(&conn->addr, addr, len);
	/* its result, of any kind, is what SO_ERROR says later */
	if (connect(fd, addr, len) && errno != EINPROGRESS)
		conn->refused = errno;
	if (daemon_fault(FAULT_CONNECT))
		conn->refused = ECONNREFUSED;
	return conn;
}

/* An IPv4 address that an IPv6 socket shows as one of its own. */
static void unmap_address(struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (addr->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return;
	in.sin_port = in6->sin6_port;
	memcpy(&in.sin_addr, &in6->sin6_addr.s6_addr[12], sizeof(in.sin_addr));
	memcpy(addr, &in, sizeof(in));
}

struct conn *conn_server(int fd, conn_decide decide)
{
	struct conn *conn = conn_new(fd, true);
	socklen_t len = sizeof(conn->addr);

	if (!conn)
		return NULL;
	conn->decide = decide;
	if (getpeername(fd, (struct sockaddr *)&conn->addr, &len))
		conn->addr.ss_family = AF_UNSPEC;
	unmap_address(&conn->addr);
	return conn;
}

/* The end; so never by -EAGAIN, which means "call again", whoever says it. */
static int fail(struct conn *conn, int error, const char *text)
{
	if (error == EAGAIN)
		error = EBUSY;
	return cause_set(conn->cause, sizeof(conn->cause), error, "%s", text);
}

static void to_send(struct conn *conn, int step, size_t len)
{
	conn->step = step;
	conn->len = len;
	conn->done = 0;
}

static void to_receive(struct conn *conn, int step)
{
	conn->step = step;
	conn->len = sizeof(struct msg_head);
	conn->done = 0;
}

static int connected(struct conn *conn)
{
	socklen_t len = sizeof(int);
	struct pollfd p = { .fd = conn->fd, .events = POLLOUT };
	int error = 0;

	if (conn->refused)
		return fail(conn, conn->refused, strerror(conn->refused));
	if (poll(&p, 1, 0) == 0) {
		conn->want = POLLOUT;
		return -EAGAIN;
	}
	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	if (error)
		return fail(conn, error, strerror(error));
	conn->step = AUTH;
	return 0;
}

static int authenticate(struct conn *conn)
{
	int ret;

	ret = auth_step(conn->auth, &conn->want, conn->cause,
			sizeof(conn->cause));
	if (ret)
		return ret;
	auth_free(conn->auth);
	conn->auth = NULL;
	if (conn->server)
		to_receive(conn, RECV_HELLO);
	else
		to_send(conn, SEND_HELLO,
			msg_hello_write(conn->buf, MSG_HELLO, &conn->mine));
	return 0;
}

/* Return: 0 when conn->len bytes have been moved, -EAGAIN or another errno. */
static int transfer(struct conn *conn, bool out)
{
	ssize_t n;

	while (conn->done < conn->len) {
		if (out)
			n = send(conn->fd, conn->buf + conn->done,
				 conn->len - conn->done, MSG_NOSIGNAL);
		else
			n = recv(conn->fd, conn->buf + conn->done,
				 conn->len - conn->done, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			conn->want = out ? POLLOUT : POLLIN;
			return -EAGAIN;
		}
		if (n < 0 && errno != ECONNRESET && errno != EPIPE)
			return fail(conn, errno, strerror(errno));
		if (n <= 0)
			return fail(conn, ECONNRESET, "closed the connection");
		conn->done += n;
	}
	return 0;
}

/* A whole message of one of two types, not one byte of what follows it. */
static int receive(struct conn *conn, struct msg_head *head, int type, int or_type)
{
	int ret;

	ret = transfer(conn, false);
	if (ret)
		return ret;
	ret = msg_head_read(conn->buf, head, conn->cause, sizeof(conn->cause));
	if (ret)
		return ret;
	if (head->type != type && head->type != or_type)
		return cause_set(conn->cause, sizeof(conn->cause), EPROTO,
				 "message type %u instead of %d", head->type,
				 type);
	if (head->len > sizeof(conn->buf) - sizeof(*head))
		return cause_set(conn->cause, sizeof(conn->cause), EPROTO,
				 "message type %u of %u bytes", head->type,
				 head->len);
	conn->len = sizeof(*head) + head->len;
	return transfer(conn, false);
}

static void *payload(struct conn *conn)
{
	return conn->buf + sizeof(struct msg_head);
}

static int receive_hello(struct conn *conn)
{
	struct msg_head head;
	int ret;

	ret = receive(conn, &head, MSG_HELLO, MSG_HELLO);
	if (ret)
		return ret;
	ret = msg_hello_read(payload(conn), head.len, &conn->theirs,
			     conn->cause, sizeof(conn->cause));
	if (!ret && daemon_fault(FAULT_HELLO))
		ret = fail(conn, EPROTO, "fault");
	if (!ret)
		ret = conn->decide(conn);
	if (!ret) {
		to_send(conn, SEND_WELCOME,
			msg_hello_write(conn->buf, MSG_WELCOME, &conn->mine));
		return 0;
	}
	conn->refused = ret == -EAGAIN ? EBUSY : -ret;
	to_send(conn, SEND_REFUSE,
		msg_outcome_write(conn->buf, MSG_REFUSE, 0, ret, conn->cause));
	return 0;
}

static int receive_welcome(struct conn *conn)
{
	struct outcome refusal;
	struct msg_head head;
	int ret;

	ret = receive(conn, &head, MSG_WELCOME, MSG_REFUSE);
	if (ret)
		return ret;
	if (head.type == MSG_REFUSE) {
		ret = msg_outcome_read(payload(conn), head.len, &refusal,
				       conn->cause, sizeof(conn->cause));
		if (ret)
			return ret;
		return fail(conn, refusal.error ? (int)refusal.error : EPROTO,
			    refusal.cause);
	}
	ret = msg_hello_read(payload(conn), head.len, &conn->theirs,
			     conn->cause, sizeof(conn->cause));
	if (ret)
		return ret;
	if (conn->theirs.from != conn->mine.to ||
	    conn->theirs.to != conn->mine.from ||
	    conn->theirs.purpose != conn->mine.purpose)
		return cause_set(conn->cause, sizeof(conn->cause), EPROTO,
				 "at that address is node %s", conn->theirs.name);
	to_send(conn, SEND_READY, msg_empty_write(conn->buf, MSG_READY));
	return 0;
}

static int receive_ready(struct conn *conn)
{
	struct msg_head head;
	int ret;

	ret = receive(conn, &head, MSG_READY, MSG_READY);
	if (!ret)
		ret = msg_empty_read(head.len, conn->cause, sizeof(conn->cause));
	if (!ret)
		conn->step = OPEN;
	return ret;
}

/* Return: 0 when it is open, -EAGAIN when it waits for conn->want. */
static int conn_step(struct conn *conn)
{
	int ret = 0;

	while (!ret) {
		switch (conn->step) {
		case CONNECT:
			ret = connected(conn);
			break;
		case AUTH:
			ret = authenticate(conn);
			break;
		case SEND_HELLO:
			ret = transfer(conn, true);
			if (!ret)
				to_receive(conn, RECV_WELCOME);
			break;
		case RECV_WELCOME:
			ret = receive_welcome(conn);
			break;
		case SEND_READY:
			ret = transfer(conn, true);
			if (!ret)
				conn->step = OPEN;
			break;
		case RECV_HELLO:
			ret = receive_hello(conn);
			break;
		case SEND_WELCOME:
			ret = transfer(conn, true);
			if (!ret)
				to_receive(conn, RECV_READY);
			break;
		case RECV_READY:
			ret = receive_ready(conn);
			break;
		case SEND_REFUSE:
			ret = transfer(conn, true);
			if (!ret)
				ret = -conn->refused;
			break;
		case OPEN:
			if (conn->mine.purpose == PURPOSE_JOB)
				set_int(conn->fd, SOL_TCP, TCP_USER_TIMEOUT,
					JOB_TIMEOUT_MS);
			return 0;
		}
	}
	return ret;
}

static const char *waits_for(const struct conn *conn)
{
	switch (conn->step) {
	case CONNECT:
		return "does not answer";
	case AUTH:
		return "did not finish the handshake in time";
	}
	return "did not finish the opening of the connection in time";
}

static void conn_event(evutil_socket_t fd, short what, void *arg);

/* Wait for what it wants. Return: 0 or a negative errno. */
static int conn_wait(struct conn *conn, struct event_base *base)
{
	int64_t left = conn->deadline - now_ms();
	struct timeval tv;

	if (left < 1)
		left = 1;
	tv.tv_sec = left / 1000;
	tv.tv_usec = left % 1000 * 1000;
	if (conn->event)
		event_free(conn->event);
	conn->event = event_new(base, conn->fd,
				conn->want == POLLOUT ? EV_WRITE : EV_READ,
				conn_event, conn);
	if (!conn->event || event_add(conn->event, &tv))
		return fail(conn, ENOMEM, "out of memory");
	return 0;
}

static void conn_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;
	int ret;

	(void)fd;
	if (what & EV_TIMEOUT)
		ret = fail(conn, ETIMEDOUT, waits_for(conn));
	else
		ret = conn_step(conn);
	if (ret == -EAGAIN)
		ret = conn_wait(conn, event_get_base(conn->event));
	else if (!ret)
		return conn->callback(conn, 0);
	if (ret)
		conn->callback(conn, ret);
}

int conn_start(struct conn *conn, struct event_base *base, conn_done callback,
	       void *arg)
{
	conn->callback = callback;
	conn->arg = arg;
	return conn_wait(conn, base);
}

int conn_run(struct conn *conn, int abort_fd)
{
	struct pollfd p[2];
	int64_t left;
	int ret;

	while ((ret = conn_step(conn)) == -EAGAIN) {
		left = conn->deadline - now_ms();
		p[0] = (struct pollfd){ .fd = conn->fd, .events = conn->want };
		p[1] = (struct pollfd){ .fd = abort_fd, .events = POLLIN };
		ret = left > 0 ? poll(p, 2, left) : 0;
		if (ret < 0 && errno != EINTR)
			return fail(conn, errno, strerror(errno));
		if (ret == 0)
			return fail(conn, ETIMEDOUT, waits_for(conn));
		if (ret > 0 && p[1].revents)
			return fail(conn, ECANCELED, "this daemon ends");
	}
	return ret;
}

int conn_take(struct conn *conn, bool blocking)
{
	int fd = conn->fd;

	if (conn->event)
		event_free(conn->event);
	conn->event = NULL;
	conn->fd = -1;
	if (blocking)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

void conn_free(struct conn *conn)
{
	if (!conn)
		return;
	if (conn->event)
		event_free(conn->event);
	auth_free(conn->auth);
	if (conn->fd >= 0)
		close(conn->fd);
	free(conn);
}

const char *addr_text(const struct sockaddr_storage *addr, char text[ADDR_TEXT])
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->ss_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, ADDR_TEXT, "%s:%u", host, ntohs(in->sin_port));
	} else if (addr->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, ADDR_TEXT, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else {
		snprintf(text, ADDR_TEXT, "unknown");
	}
	return text;
}
