// SPDX-License-Identifier: GPL-2.0
/*
 * Discovery: nodes announce themselves by multicast on one interface. An
 * announcement makes a node's name and address known, no more: who answers there
 * has to prove the key as everybody else.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <gnutls/crypto.h>

#include "auth.h"
#include "config.h"
#include "conn.h"
#include "discover.h"
#include "log.h"
#include "mattxd.h"
#include "peer.h"

#define GROUP	  0xef4d5844u /* 239.77.88.68 */
#define PERIOD_MS 5000
#define ANSWER_MS 100 /* an answer comes within this time */
#define BURST	  64  /* datagrams per turn of the main loop */
#define USE	  "mattx discovery"

struct wire {
	char magic[8];
	uint64_t realtime, daemon;
	uint32_t flags, address;
	uint16_t port, pad;
	uint32_t id;
	char name[MATTX_NAME_MAX];
	char pad2[12];
	uint8_t mac[AUTH_MAC];
} __attribute__((packed));

_Static_assert(sizeof(struct wire) == DISCOVER_LEN, "datagram size");

static const char magic[8] = "MattX-D1";
static int sock = -1, interface;
static struct event *readable, *timer;
static bool first = true, no_address_told;

/* ------------------------------------------------------------- datagrams */

void discover_write(uint8_t buf[DISCOVER_LEN], const struct announcement *a)
{
	struct wire w = {
		.realtime = htole64(a->realtime),
		.daemon = htole64(a->daemon),
		.flags = htole32(a->flags),
		.address = a->address,
		.port = htole16(a->port),
		.id = htole32(a->id),
	};

	memcpy(w.magic, magic, sizeof(magic));
	memcpy(w.name, a->name, strnlen(a->name, sizeof(w.name) - 1));
	auth_mac(USE, &w, offsetof(struct wire, mac), w.mac);
	memcpy(buf, &w, sizeof(w));
}

int discover_read(const uint8_t *buf, size_t len, struct announcement *a,
		  char *cause, size_t cause_len)
{
	uint8_t mac[AUTH_MAC];
	struct wire w;

	if (len != sizeof(w) || memcmp(buf, magic, sizeof(magic)))
		return cause_set(cause, cause_len, EPROTO, "no announcement");
	memcpy(&w, buf, sizeof(w));
	auth_mac(USE, &w, offsetof(struct wire, mac), mac);
	if (gnutls_memcmp(mac, w.mac, sizeof(mac)))
		return cause_set(cause, cause_len, EPROTO,
				 "an announcement with another key");
	memset(a, 0, sizeof(*a));
	a->realtime = le64toh(w.realtime);
	a->daemon = le64toh(w.daemon);
	a->flags = le32toh(w.flags);
	a->address = w.address;
	a->port = le16toh(w.port);
	a->id = le32toh(w.id);
	if (!memchr(w.name, 0, sizeof(w.name)))
		return cause_set(cause, cause_len, EPROTO,
				 "a name without an end");
	strcpy(a->name, w.name);
	if (!node_name_valid(a->name) || a->id != node_id(a->name) ||
	    !a->port || !a->address)
		return cause_set(cause, cause_len, EPROTO,
				 "an announcement with bad values");
	return 0;
}

/* ------------------------------------------------------------------ send */

/* The interface's first IPv4 address. Return: 0 without one. */
static uint32_t interface_address(void)
{
	struct ifreq req = { .ifr_addr.sa_family = AF_INET };

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", self.config->discover);
	if (ioctl(sock, SIOCGIFADDR, &req))
		return 0;
	return ((struct sockaddr_in *)&req.ifr_addr)->sin_addr.s_addr;
}

/* This node's line goes before the interface. */
static void own_address(struct announcement *a)
{
	const struct config_node *node = config_self(self.config);
	const struct sockaddr_in *in = node ? (const void *)&node->addr : NULL;

	if (in && in->sin_family == AF_INET && in->sin_addr.s_addr) {
		a->address = in->sin_addr.s_addr;
		a->port = ntohs(in->sin_port);
	} else {
		a->address = interface_address();
		a->port = self.config->port;
	}
}

static void announce(uint32_t flags)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(self.config->port),
		.sin_addr.s_addr = htonl(GROUP),
	};
	struct ip_mreqn source = { .imr_ifindex = interface };
	struct announcement a = {
		.daemon = self.nonce,
		.flags = flags,
		.id = self.config->id,
	};
	uint8_t buf[DISCOVER_LEN];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	a.realtime = now.tv_sec * 1000000000ull + now.tv_nsec;
	snprintf(a.name, sizeof(a.name), "%s", self.config->name);
	own_address(&a);
	if (!a.address) {
		if (!no_address_told)
			log_warn("discovery: %s has no IPv4 address",
				 self.config->discover);
		no_address_told = true;
		return;
	}
	no_address_told = false;
	/* the datagram's source has to be what it says */
	source.imr_address.s_addr = a.address;
	if (setsockopt(sock, SOL_IP, IP_MULTICAST_IF, &source, sizeof(source)))
		log_debug("discovery: %s: %m", self.config->discover);
	peer_address_set(self.config->name, a.address, a.port);
	discover_write(buf, &a);
	if (sendto(sock, buf, sizeof(buf), 0, (struct sockaddr *)&to,
		   sizeof(to)) < 0)
		log_debug("discovery: %s: %m", self.config->discover);
}

static void again(int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	evtimer_add(timer, &tv);
}

static void timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	announce(first ? DISCOVER_ANSWER : 0);
	first = false;
	again(PERIOD_MS);
}

/* --------------------------------------------------------------- receive */

static void received(const uint8_t *buf, size_t len,
		     const struct sockaddr_in *from)
{
	struct announcement a;
	char cause[128], text[ADDR_TEXT];
	struct sockaddr_storage addr = { 0 };
	int ret;

	ret = discover_read(buf, len, &a, cause, sizeof(cause));
	if (!ret && a.address != from->sin_addr.s_addr)
		ret = cause_set(cause, sizeof(cause), EPROTO,
				"an announcement of another address");
	if (ret) {
		memcpy(&addr, from, sizeof(*from));
		log_debug("discovery: %s: %s", addr_text(&addr, text), cause);
		return;
	}
	if (!strcmp(a.name, self.config->name))
		return;
	peer_discovered(&a);
	/* all answer at a random moment of a short time */
	if (a.flags & DISCOVER_ANSWER)
		again(1 + self.nonce % ANSWER_MS);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct sockaddr_in from = { 0 };
	uint8_t buf[DISCOVER_LEN + 1];
	socklen_t len;
	ssize_t n;
	int i;

	(void)what;
	(void)arg;
	for (i = 0; i < BURST; i++) {
		len = sizeof(from);
		n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len);
		if (n < 0)
			return;
		if (from.sin_family == AF_INET)
			received(buf, n, &from);
	}
}

/* ----------------------------------------------------------- begin and end */

static int open_socket(char *cause, size_t cause_len)
{
	const char *name = self.config->discover;
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(self.config->port),
		.sin_addr.s_addr = htonl(GROUP),
	};
	struct ip_mreqn group = {
		.imr_multiaddr.s_addr = htonl(GROUP),
		.imr_ifindex = if_nametoindex(name),
	};
	int one = 1;

	interface = group.imr_ifindex;
	if (!group.imr_ifindex)
		return cause_set(cause, cause_len, errno, "discover = %s: %m",
				 name);
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(sock, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(sock, SOL_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)))
		return cause_set(cause, cause_len, errno, "discovery on %s: %m",
				 name);
	return 0;
}

int discover_init(char *cause, size_t cause_len)
{
	int ret;

	if (!self.config->discover)
		return 0;
	ret = open_socket(cause, cause_len);
	if (ret)
		return ret;
	readable = event_new(self.base, sock, EV_READ | EV_PERSIST, on_readable,
			     NULL);
	timer = evtimer_new(self.base, timeout, NULL);
	if (!readable || !timer || event_add(readable, NULL))
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	again(1);
	return 0;
}

void discover_exit(void)
{
	if (readable)
		event_free(readable);
	if (timer)
		event_free(timer);
	if (sock >= 0)
		close(sock);
	readable = timer = NULL;
	sock = -1;
}
