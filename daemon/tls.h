/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_TLS_H
#define MATTXD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls;

/**
 * tls_init() - keys and parameters for all connections of this daemon
 * @name: this node's name, which is its PSK identity
 * Checks that the kernel can encrypt TCP. Return: 0 or a negative errno with @cause.
 */
int tls_init(const char *name, const uint8_t *key, size_t key_len, char *cause,
	     size_t cause_len);
void tls_exit(void);

/**
 * tls_new() - begin TLS on a connected, non-blocking socket, which stays the caller's
 * Context: any thread. Return: the caller's, or NULL without memory.
 */
struct tls *tls_new(int fd, bool server);
void tls_free(struct tls *tls);

/**
 * tls_step() - go on as far as possible without blocking
 * @want: POLLIN or POLLOUT, when there is more to do
 *
 * Return: 0 when both sides have proved that they have the cluster key and the
 * kernel has the session's keys for both directions: from now on the socket itself
 * sends and receives what the application means. -EAGAIN: call again when the
 * socket is ready. Another negative errno: it failed, @cause says why.
 */
int tls_step(struct tls *tls, short *want, char *cause, size_t cause_len);

#endif
