/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_H
#define MATTXD_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct config;

#define MATTXD_SOCKET  "/run/mattxd.sock"
#define MATTXD_PIDFILE "/run/mattxd.pid"

/*
 * The daemon's threads: the main one runs the event loop and owns everything;
 * each job (job.h) has one of its own, which touches nothing but its job, what
 * job.h offers it and this structure. So there are no locks but job.c's.
 */
struct mattxd {
	struct event_base *base;
	struct config *config;
	uint64_t instance; /* of the module here */
	uint64_t nonce;	   /* random, of this run */
	int ending_fd; /* eventfd, readable when the daemon is about to end */
	bool verbose;
};

extern struct mattxd self;

/**
 * now_ms() - CLOCK_MONOTONIC in ms
 */
int64_t now_ms(void);

#endif
