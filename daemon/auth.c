// SPDX-License-Identifier: GPL-2.0
/*
 * Who is at the other end?
 *
 * With tls = off:
 *
 *   client                                server
 *   "MattX-1\n" + nonce C (32 bytes) --->
 *                                    <--- nonce S (32 bytes)
 *   HMAC("client", C, S)             --->
 *                                    <--- HMAC("server", C, S)
 *
 * The client proves itself first, so a stranger learns a random number and
 * nothing else. The two labels differ, so no answer can be reflected.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>
#include <gnutls/crypto.h>

#include "auth.h"
#include "fault.h"
#include "log.h"
#include "tls.h"

#define GREETING     "MattX-1\n"
#define GREETING_LEN 8
#define NONCE	     32

struct exchange { /* tls = off: what is to be sent or received, in order */
	bool send;
	uint8_t *buf;
	size_t len;
};

struct auth {
	int fd;
	bool server;
	struct tls *tls; /* NULL with tls = off */
	int step;
	size_t done;			       /* bytes of this step */
	uint8_t opening[GREETING_LEN + NONCE]; /* client's */
	uint8_t nonce[NONCE];		       /* server's */
	uint8_t proof[AUTH_MAC];
};

static bool encrypts;
static uint8_t *secret; /* the cluster key */
static size_t secret_len;

int auth_init(const char *name, bool tls, const uint8_t *key, size_t key_len,
	      char *cause, size_t cause_len)
{
	encrypts = tls;
	secret = malloc(key_len);
	if (!secret)
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	memcpy(secret, key, key_len);
	secret_len = key_len;
	return tls ? tls_init(name, key, key_len, cause, cause_len) : 0;
}

void auth_exit(void)
{
	tls_exit();
	if (secret)
		explicit_bzero(secret, secret_len);
	free(secret);
	secret = NULL;
}

bool auth_encrypts(void)
{
	return encrypts;
}

void auth_mac(const char *use, const void *data, size_t len,
	      uint8_t mac[AUTH_MAC])
{
	uint8_t key[AUTH_MAC];

	gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret, secret_len, use,
			 strlen(use), key);
	gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, sizeof(key), data, len, mac);
	explicit_bzero(key, sizeof(key));
}

struct auth *auth_new(int fd, bool server)
{
	struct auth *auth;

	auth = calloc(1, sizeof(*auth));
	if (!auth)
		return NULL;
	auth->fd = fd;
	auth->server = server;
	if (encrypts) {
		auth->tls = tls_new(fd, server);
		if (!auth->tls) {
			free(auth);
			return NULL;
		}
		return auth;
	}
	memcpy(auth->opening, GREETING, GREETING_LEN);
	if (gnutls_rnd(GNUTLS_RND_NONCE,
		       server ? auth->nonce : auth->opening + GREETING_LEN,
		       NONCE)) {
		auth_free(auth);
		return NULL;
	}
	return auth;
}

void auth_free(struct auth *auth)
{
	if (!auth)
		return;
	tls_free(auth->tls);
	free(auth);
}

static void make_proof(const struct auth *auth, bool server,
		       uint8_t proof[AUTH_MAC])
{
	uint8_t data[GREETING_LEN + 2 * NONCE];

	memcpy(data, auth->opening, GREETING_LEN + NONCE);
	memcpy(data + GREETING_LEN + NONCE, auth->nonce, NONCE);
	auth_mac(server ? "mattx plain server" : "mattx plain client", data,
		 sizeof(data), proof);
}

static bool proof_right(const struct auth *auth, bool server)
{
	uint8_t want[AUTH_MAC];

	make_proof(auth, server, want);
	return gnutls_memcmp(want, auth->proof, AUTH_MAC) == 0;
}

static struct exchange exchange(struct auth *auth)
{
	switch (auth->step) {
	case 0:
		return (struct exchange){ !auth->server, auth->opening,
					  sizeof(auth->opening) };
	case 1:
		return (struct exchange){ auth->server, auth->nonce,
					  sizeof(auth->nonce) };
	case 2:
		return (struct exchange){ !auth->server, auth->proof,
					  sizeof(auth->proof) };
	case 3:
		return (struct exchange){ auth->server, auth->proof,
					  sizeof(auth->proof) };
	}
	return (struct exchange){ 0 };
}

/* A step's bytes are here (or gone). Return: 0 or a negative errno. */
static int exchanged(struct auth *auth, char *cause, size_t cause_len)
{
	switch (auth->step++) {
	case 0:
		if (auth->server && memcmp(auth->opening, GREETING, GREETING_LEN))
			return cause_set(cause, cause_len, EPROTO,
					 auth->opening[0] == 0x16 ?
						 "speaks TLS, but tls = off here" :
						 "is no mattxd");
		break;
	case 1:
		if (!auth->server)
			make_proof(auth, false, auth->proof);
		break;
	case 2:
		if (!auth->server)
			break;
		if (!proof_right(auth, false))
			return cause_set(cause, cause_len, EACCES,
					 "has another cluster key");
		make_proof(auth, true, auth->proof);
		break;
	case 3:
		if (!auth->server && !proof_right(auth, true))
			return cause_set(cause, cause_len, EACCES,
					 "has another cluster key");
		break;
	}
	return 0;
}

static int plain_step(struct auth *auth, short *want, char *cause,
		      size_t cause_len)
{
	struct exchange x;
	ssize_t n;
	int ret;

	while (auth->step < 4) {
		x = exchange(auth);
		if (x.send)
			n = send(auth->fd, x.buf + auth->done,
				 x.len - auth->done, MSG_NOSIGNAL);
		else
			n = recv(auth->fd, x.buf + auth->done,
				 x.len - auth->done, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			*want = x.send ? POLLOUT : POLLIN;
			return -EAGAIN;
		}
		if (n < 0 && errno != ECONNRESET && errno != EPIPE)
			return cause_set(cause, cause_len, errno, "%m");
		if (n <= 0)
			return cause_set(
				cause, cause_len, ECONNRESET,
				"closed the connection while keys were compared (another key or tls = on there?)");
		auth->done += n;
		if (auth->done < x.len)
			continue;
		auth->done = 0;
		ret = exchanged(auth, cause, cause_len);
		if (ret)
			return ret;
	}
	return 0;
}

int auth_step(struct auth *auth, short *want, char *cause, size_t cause_len)
{
	int ret;

	if (auth->tls)
		ret = tls_step(auth->tls, want, cause, cause_len);
	else
		ret = plain_step(auth, want, cause, cause_len);
	if (!ret && daemon_fault(FAULT_HANDSHAKE))
		ret = cause_set(cause, cause_len, EACCES, "fault %d",
				FAULT_HANDSHAKE);
	return ret;
}
