/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control socket: JSON, one value a line, see Documentation/protocol.md.
 * A client sends one request; replies follow; the last one is {"ok": ...} or
 * {"error": ...}, then the connection is closed.
 */
#ifndef MATTXD_CONTROL_H
#define MATTXD_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct client;
struct json_object;

int control_init(const char *path, char *cause, size_t cause_len);
void control_exit(void);

/**
 * client_inside() - a client without a connection: this daemon itself, for root
 * @end: told the last word, once; not when this daemon ends before it
 * Whatever is sent to it before is not kept. It frees itself.
 * Return: NULL when out of memory.
 */
struct client *client_inside(void (*end)(int error, const char *cause, void *arg),
			     void *arg);

/**
 * client_uid() - who asks, by SO_PEERCRED
 */
uid_t client_uid(const struct client *client);

/**
 * client_waits() - the client waits for something that takes time
 * @gone: called when the client goes before client_ok() or client_error(); the
 *	client must not be touched from then on
 */
void client_waits(struct client *client, void (*gone)(void *arg), void *arg);

/**
 * client_send() - {"@key": @value}; takes @value, which may be NULL for lack of memory
 * @droppable: not sent when the client has not yet read what it was sent before
 */
void client_send(struct client *client, const char *key,
		 struct json_object *value, bool droppable);

/**
 * client_ok(), client_error() - the last word
 * @result: taken; NULL: {}
 * @pid: 0: none
 * @node: NULL: none
 */
void client_ok(struct client *client, struct json_object *result);
void client_error(struct client *client, pid_t pid, const char *node, int error,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
