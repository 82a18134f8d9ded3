/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_AUTH_H
#define MATTXD_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_MAC 32 /* bytes of HMAC-SHA-256 */

/*
 * Two daemons prove to each other that they have the cluster key, by TLS or,
 * with tls = off, by a challenge and its answer only.
 */
struct auth;

/**
 * auth_init() - keys for all connections of this daemon
 * Return: 0 or a negative errno with @cause.
 */
int auth_init(const char *name, bool tls, const uint8_t *key, size_t key_len,
	      char *cause, size_t cause_len);
void auth_exit(void);

/**
 * auth_encrypts() - is tls on?
 */
bool auth_encrypts(void);

/**
 * auth_new() - begin on a connected, non-blocking socket, which stays the caller's
 * Context: any thread. Return: the caller's, or NULL without memory.
 */
struct auth *auth_new(int fd, bool server);
void auth_free(struct auth *auth);

/**
 * auth_step() - as tls_step()
 */
int auth_step(struct auth *auth, short *want, char *cause, size_t cause_len);

/**
 * auth_mac() - a MAC with a key that is derived from the cluster key for @use
 */
void auth_mac(const char *use, const void *data, size_t len,
	      uint8_t mac[AUTH_MAC]);

#endif
