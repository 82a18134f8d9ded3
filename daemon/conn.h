/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection between two daemons while it is being opened: until each side has
 * authenticated the other, encryption is in the kernel, and both know what the
 * connection is for. Then the socket is taken out and the conn is freed.
 *
 *   client: CONNECT -> AUTH -> HELLO -> wait WELCOME -> READY -> open
 *   server:            AUTH -> wait HELLO -> decide -> WELCOME -> wait READY -> open
 *                                               \---> REFUSE -> failed
 *
 * READY proves that the HELLO is from a client that lives: a HELLO that lay in a
 * queue while its node was started anew never gets that far.
 */
#ifndef MATTXD_CONN_H
#define MATTXD_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "message.h"

#define CONN_TIMEOUT_MS 10000 /* for all of it */
#define CONN_CAUSE_MAX	256

struct conn;
struct event_base;

/**
 * typedef conn_decide - the server's word on a HELLO
 * @mine: to be filled for the WELCOME
 * Return: 0, or a negative errno and then conn->cause is filled; the client gets both.
 */
typedef int (*conn_decide)(struct conn *conn);

/**
 * typedef conn_done - opening has ended
 * @ret: 0: open, else a negative errno and conn->cause
 * Called once, from the main loop. The conn is the callee's to free.
 */
typedef void (*conn_done)(struct conn *conn, int ret);

struct conn {
	/* for the users */
	bool server;
	struct hello mine; /* client: complete before the start. server: decide() */
	struct hello theirs;	      /* valid from WELCOME or HELLO on */
	struct sockaddr_storage addr; /* of the other side */
	char cause[CONN_CAUSE_MAX]; /* of the failure; without the node's name */
	void *arg;
	/* conn.c's own */
	int fd;
	int step;
	short want;
	int refused; /* errno of the REFUSE that is being sent */
	struct auth *auth;
	uint8_t buf[MSG_BUF];
	size_t len, done; /* of buf: to be sent, or wanted; and so far */
	conn_decide decide;
	conn_done callback;
	struct event *event;
	int64_t deadline; /* CLOCK_MONOTONIC, ms */
};

/**
 * conn_client() - begin a connection to @addr
 * @hello: what this side says; copied
 * Context: any thread. Return: the caller's, or NULL when memory or a socket lacks.
 */
struct conn *conn_client(const struct sockaddr *addr, socklen_t len,
			 const struct hello *hello);

/**
 * conn_server() - begin on an accepted, non-blocking socket, which becomes the conn's
 * Return: the caller's; NULL without memory: the socket stays the caller's.
 */
struct conn *conn_server(int fd, conn_decide decide);

/**
 * conn_start() - let the main loop open it
 * Not called back before it returns. conn_free() ends it early, without a call back.
 */
int conn_start(struct conn *conn, struct event_base *base, conn_done callback,
	       void *arg);

/**
 * conn_run() - open it in this thread, blocking
 * @abort_fd: gives up when this is readable, -1: none
 * Return: 0 or a negative errno with conn->cause.
 */
int conn_run(struct conn *conn, int abort_fd);

/**
 * conn_take() - take the socket out of an open connection
 * @blocking: clear O_NONBLOCK
 * Return: the socket, the caller's.
 */
int conn_take(struct conn *conn, bool blocking);

void conn_free(struct conn *conn);

/**
 * addr_text() - "10.0.0.1:7077"; @text has room for ADDR_TEXT bytes
 */
#define ADDR_TEXT 64
const char *addr_text(const struct sockaddr_storage *addr, char text[ADDR_TEXT]);

#endif
