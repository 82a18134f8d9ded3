// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that come in. Until one is authenticated it may be anybody's: so
 * there are at most PENDING_MAX of them, PENDING_PER_SOURCE from one address, and a
 * newcomer displaces the oldest one of the address that has most. A flood
 * from elsewhere thus cannot keep out a node.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "config.h"
#include "conn.h"
#include "fault.h"
#include "listen.h"
#include "log.h"
#include "mattxd.h"
#include "peer.h"

#define PENDING_MAX	   256
#define PENDING_PER_SOURCE 64
#define ACCEPT_BURST	   16 /* per turn of the main loop */
#define LOG_PER_S	   5  /* lines about strangers */
#define LOG_MEMORY	   16
#define LOG_AGAIN_MS	   60000 /* the same line about the same address */

struct pending {
	struct pending *next; /* newest first */
	struct conn *conn;
};

static struct pending *pending;
static unsigned int nr_pending;
static struct event *listener, *wakeup;
static int listener_fd = -1;

static bool same_source(const struct sockaddr_storage *a,
			const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	/* whoever has one IPv6 address has a network of them */
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, 8);
}

/* Was the same said of the same address in the last minute? Remembers some. */
static bool said_before(const struct conn *conn, int64_t now)
{
	static struct {
		struct sockaddr_storage addr;
		char cause[CONN_CAUSE_MAX];
		int64_t at;
	} said[LOG_MEMORY];
	static unsigned int next;
	unsigned int i;

	for (i = 0; i < LOG_MEMORY; i++) {
		if (said[i].at && now - said[i].at < LOG_AGAIN_MS &&
		    same_source(&said[i].addr, &conn->addr) &&
		    !strcmp(said[i].cause, conn->cause))
			return true;
	}
	said[next].addr = conn->addr;
	said[next].at = now;
	snprintf(said[next].cause, sizeof(said[next].cause), "%s", conn->cause);
	next = (next + 1) % LOG_MEMORY;
	return false;
}

static void log_stranger(const struct conn *conn)
{
	static unsigned int lines, dropped;
	static int64_t since;
	char text[ADDR_TEXT];
	int64_t now = now_ms();

	if (said_before(conn, now))
		return;

	if (now - since >= 1000) {
		if (dropped)
			log_warn("%u more connections failed", dropped);
		since = now;
		lines = dropped = 0;
	}
	if (lines++ < LOG_PER_S)
		log_warn("%s: %s", addr_text(&conn->addr, text), conn->cause);
	else
		dropped++;
}

static void pending_remove(struct pending *p)
{
	struct pending **at;

	for (at = &pending; *at != p; at = &(*at)->next)
		;
	*at = p->next;
	nr_pending--;
	free(p);
}

static void pending_done(struct conn *conn, int ret)
{
	pending_remove(conn->arg);
	if (ret) {
		/* -ENOTCONN: one of us came too early, and tries again */
		if (ret != -ENOTCONN)
			log_stranger(conn);
		conn_free(conn);
		return;
	}
	peer_incoming(conn);
}

static unsigned int count_source(const struct conn *conn)
{
	struct pending *p;
	unsigned int n = 0;

	for (p = pending; p; p = p->next)
		n += same_source(&p->conn->addr, &conn->addr);
	return n;
}

static struct pending *oldest_of(const struct conn *conn)
{
	struct pending *p, *oldest = NULL;

	for (p = pending; p; p = p->next)
		if (same_source(&p->conn->addr, &conn->addr))
			oldest = p;
	return oldest;
}

static struct pending *oldest_of_greediest(void)
{
	struct pending *p, *greediest = NULL;
	unsigned int n, most = 0;

	for (p = pending; p; p = p->next) {
		n = count_source(p->conn);
		if (n > most) {
			most = n;
			greediest = p;
		}
	}
	return greediest ? oldest_of(greediest->conn) : NULL;
}

static void displace(struct pending *p)
{
	struct conn *conn = p->conn;

	cause_set(conn->cause, sizeof(conn->cause), EBUSY,
		  "displaced: too many connections are being opened");
	log_stranger(conn);
	pending_remove(p);
	conn_free(conn);
}

static void take(int fd)
{
	struct pending *p = calloc(1, sizeof(*p));
	struct conn *conn;

	conn = p ? conn_server(fd, peer_decide) : NULL;
	if (!conn) {
		free(p);
		close(fd);
		return;
	}
	if (count_source(conn) >= PENDING_PER_SOURCE)
		displace(oldest_of(conn));
	else if (nr_pending >= PENDING_MAX)
		displace(oldest_of_greediest());
	if (daemon_fault(FAULT_ACCEPT) ||
	    conn_start(conn, self.base, pending_done, p)) {
		conn_free(conn);
		free(p);
		return;
	}
	p->conn = conn;
	p->next = pending;
	pending = p;
	nr_pending++;
}

static void wake_up(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	event_add(listener, NULL);
}

static void listener_readable(evutil_socket_t fd, short what, void *arg)
{
	struct timeval pause = { .tv_usec = 100000 };
	int i, conn;

	(void)what;
	(void)arg;
	for (i = 0; i < ACCEPT_BURST; i++) {
		conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (conn >= 0) {
			take(conn);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS) {
			event_del(listener);
			evtimer_add(wakeup, &pause);
		}
		return;
	}
}

/* The address of this node's line; without one, any address. */
static socklen_t own_address(struct sockaddr_storage *addr)
{
	const struct config_node *node = config_self(self.config);
	struct sockaddr_in6 *in6 = (void *)addr;

	if (node) {
		*addr = node->addr;
		return node->addr_len;
	}
	memset(addr, 0, sizeof(*addr));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(self.config->port);
	return sizeof(*in6);
}

int listen_init(char *cause, size_t cause_len)
{
	struct sockaddr_storage addr;
	socklen_t len = own_address(&addr);
	char name[ADDR_TEXT];
	int one = 1;

	addr_text(&addr, name);
	listener_fd = socket(addr.ss_family,
			     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener_fd < 0)
		return cause_set(cause, cause_len, errno, "socket: %m");
	setsockopt(listener_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* the address may come up later than the daemon */
	setsockopt(listener_fd, SOL_IP, IP_FREEBIND, &one, sizeof(one));
	if (bind(listener_fd, (struct sockaddr *)&addr, len) ||
	    listen(listener_fd, 256))
		return cause_set(cause, cause_len, errno, "%s: %m", name);
	listener = event_new(self.base, listener_fd, EV_READ | EV_PERSIST,
			     listener_readable, NULL);
	wakeup = evtimer_new(self.base, wake_up, NULL);
	if (!listener || !wakeup || event_add(listener, NULL))
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	return 0;
}

void listen_exit(void)
{
	struct conn *conn;

	while (pending) {
		conn = pending->conn;
		pending_remove(pending);
		conn_free(conn);
	}
	if (listener)
		event_free(listener);
	if (wakeup)
		event_free(wakeup);
	if (listener_fd >= 0)
		close(listener_fd);
	listener = wakeup = NULL;
	listener_fd = -1;
}
