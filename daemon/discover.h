/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_DISCOVER_H
#define MATTXD_DISCOVER_H

#include <stddef.h>
#include <stdint.h>

#include <mattx.h>

#define DISCOVER_LEN 148 /* bytes of an announcement */

/* What a node announces. */
struct announcement {
	uint64_t realtime; /* ns */
	uint64_t daemon;   /* random, of this run of the daemon */
	uint32_t flags;	   /* DISCOVER_ANSWER */
	uint32_t address;  /* IPv4, network order */
	uint16_t port;	   /* TCP */
	uint32_t id;
	char name[MATTX_NAME_MAX];
};

#define DISCOVER_ANSWER 1 /* please announce yourself soon */

/**
 * discover_init() - announce this node and listen, if the configuration says so
 */
int discover_init(char *cause, size_t cause_len);
void discover_exit(void);

/*
 * The datagram. discover_read() returns 0 or -EPROTO with @cause; it needs the
 * key: auth_init().
 */
void discover_write(uint8_t buf[DISCOVER_LEN], const struct announcement *a);
int discover_read(const uint8_t *buf, size_t len, struct announcement *a,
		  char *cause, size_t cause_len);

#endif
