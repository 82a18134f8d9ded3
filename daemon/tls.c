// SPDX-License-Identifier: GPL-2.0
/*
 * TLS 1.3 between daemons: GnuTLS shakes hands, the kernel encrypts.
 *
 * Both sides prove the cluster key as an external pre-shared key with an
 * ephemeral key exchange; there are no certificates. Then the keys of both
 * directions go into the socket (kTLS), GnuTLS is done with it, and plain send(),
 * recv() and splice() work, also in the module.
 *
 * That needs the stream to stand exactly between two records when the keys
 * change hands: no session tickets, nothing read ahead, and nobody sends
 * application data before its own side is keyed. Data that the other side sent
 * early waits in the socket, encrypted, until this side is keyed.
 *
 * The AEAD is AES-128-GCM with SHA-256 because an external PSK belongs to one
 * hash. There is no rekeying: a connection must not carry more than 2^24 full
 * records (256 GiB) in a direction.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <gnutls/gnutls.h>
#include <gnutls/crypto.h>
#include <linux/tls.h>

#include "fault.h"
#include "log.h"
#include "tls.h"

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

#define PRIORITY \
	"NONE:+VERS-TLS1.3:+AEAD:+AES-128-GCM:+SHA256:+ECDHE-PSK:" \
	"+GROUP-X25519:+GROUP-SECP256R1:+CTYPE-X509:+SIGN-ALL:+COMP-NULL"

struct tls {
	gnutls_session_t session;
	int fd;
};

static gnutls_priority_t priority;
static gnutls_psk_client_credentials_t client_cred;
static gnutls_psk_server_credentials_t server_cred;
static gnutls_datum_t cluster_key;

/* Whoever has the key is in: names are checked in the HELLO. */
static int server_key(gnutls_session_t session, const char *name,
		      gnutls_datum_t *key)
{
	(void)session;
	(void)name;
	key->data = gnutls_malloc(cluster_key.size);
	if (!key->data)
		return -1;
	memcpy(key->data, cluster_key.data, cluster_key.size);
	key->size = cluster_key.size;
	return 0;
}

/* A TCP connection to ourselves, for the probe below. Return: 0 or a negative errno. */
static int loopback_pair(int fds[2])
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int server, ret = 0;

	fds[0] = fds[1] = -1;
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server < 0 || fds[0] < 0 ||
	    bind(server, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(server, 1) ||
	    getsockname(server, (struct sockaddr *)&addr, &len) ||
	    connect(fds[0], (struct sockaddr *)&addr, len))
		ret = -errno;
	else
		fds[1] = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	if (!ret && fds[1] < 0)
		ret = -errno;
	if (server >= 0)
		close(server);
	return ret;
}

/*
 * The kernel loads what it cannot do without by itself, but is content with AES
 * in C when the CPU's instructions are in a module that nobody has loaded.
 */
static void load_modules(void)
{
	char *argv[] = { "modprobe", "-q", "-a", "tls", "aesni_intel", NULL };
	char *env[] = { "PATH=/sbin:/usr/sbin:/bin:/usr/bin", NULL };
	pid_t pid;

	if (posix_spawn(&pid, "/sbin/modprobe", NULL, NULL, argv, env) == 0)
		waitpid(pid, NULL, 0);
}

/* Better a clear word at the start than a failure at each connection. */
static int probe_kernel(char *cause, size_t cause_len)
{
	struct tls12_crypto_info_aes_gcm_128 info = {
		.info.version = TLS_1_3_VERSION,
		.info.cipher_type = TLS_CIPHER_AES_GCM_128,
	};
	int fds[2], ret;

	ret = loopback_pair(fds);
	if (ret) {
		cause_set(cause, cause_len, ret, "loopback connection: %s",
			  strerror(-ret));
	} else if (setsockopt(fds[0], SOL_TCP, TCP_ULP, "tls", sizeof("tls"))) {
		ret = cause_set(cause, cause_len, errno,
				"this kernel cannot encrypt TCP connections (module tls): %m; "
				"tls = off does without");
	} else if (setsockopt(fds[0], SOL_TLS, TLS_TX, &info, sizeof(info)) ||
		   setsockopt(fds[0], SOL_TLS, TLS_RX, &info, sizeof(info))) {
		ret = cause_set(cause, cause_len, errno,
				"this kernel takes no AES-128-GCM keys for TCP connections "
				"(modules gcm, ctr, ghash, aes): %m");
	}
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return ret;
}

int tls_init(const char *name, const uint8_t *key, size_t key_len, char *cause,
	     size_t cause_len)
{
	const char *at = "";
	int ret;

	load_modules();
	ret = probe_kernel(cause, cause_len);
	if (ret)
		return ret;
	cluster_key.data = malloc(key_len);
	if (!cluster_key.data)
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	memcpy(cluster_key.data, key, key_len);
	cluster_key.size = key_len;

	ret = gnutls_priority_init(&priority, PRIORITY, &at);
	if (!ret)
		ret = gnutls_psk_allocate_client_credentials(&client_cred);
	if (!ret)
		ret = gnutls_psk_set_client_credentials(
			client_cred, name, &cluster_key, GNUTLS_PSK_KEY_RAW);
	if (!ret)
		ret = gnutls_psk_allocate_server_credentials(&server_cred);
	if (ret)
		return cause_set(cause, cause_len, EINVAL, "GnuTLS: %s %s",
				 gnutls_strerror(ret), at);
	gnutls_psk_set_server_credentials_function(server_cred, server_key);
	return 0;
}

void tls_exit(void)
{
	if (client_cred)
		gnutls_psk_free_client_credentials(client_cred);
	if (server_cred)
		gnutls_psk_free_server_credentials(server_cred);
	if (priority)
		gnutls_priority_deinit(priority);
	if (cluster_key.data)
		explicit_bzero(cluster_key.data, cluster_key.size);
	free(cluster_key.data);
	cluster_key.data = NULL;
}

struct tls *tls_new(int fd, bool server)
{
	struct tls *tls;
	int ret;

	tls = calloc(1, sizeof(*tls));
	if (!tls)
		return NULL;
	tls->fd = fd;
	ret = gnutls_init(&tls->session,
			  (server ? GNUTLS_SERVER : GNUTLS_CLIENT) |
				  GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
				  GNUTLS_NO_TICKETS | GNUTLS_NO_AUTO_REKEY);
	if (ret) {
		free(tls);
		return NULL;
	}
	if (gnutls_priority_set(tls->session, priority) ||
	    gnutls_credentials_set(tls->session, GNUTLS_CRD_PSK,
				   server ? (void *)server_cred :
					    (void *)client_cred)) {
		tls_free(tls);
		return NULL;
	}
	gnutls_transport_set_int(tls->session, fd);
	gnutls_handshake_set_timeout(tls->session, GNUTLS_INDEFINITE_TIMEOUT);
	return tls;
}

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	gnutls_deinit(tls->session);
	free(tls);
}

/* Give the kernel one direction's keys. Return: 0 or a negative errno. */
static int key_direction(struct tls *tls, bool rx)
{
	struct tls12_crypto_info_aes_gcm_128 info = {
		.info.version = TLS_1_3_VERSION,
		.info.cipher_type = TLS_CIPHER_AES_GCM_128,
	};
	gnutls_datum_t mac, iv, key;
	unsigned char seq[8];
	int ret = 0;

	if (gnutls_record_get_state(tls->session, rx, &mac, &iv, &key, seq))
		return -EPROTO;
	if (key.size != sizeof(info.key) ||
	    iv.size != sizeof(info.salt) + sizeof(info.iv))
		return -EPROTO;
	memcpy(info.salt, iv.data, sizeof(info.salt));
	memcpy(info.iv, iv.data + sizeof(info.salt), sizeof(info.iv));
	memcpy(info.key, key.data, sizeof(info.key));
	memcpy(info.rec_seq, seq, sizeof(info.rec_seq));
	if (setsockopt(tls->fd, SOL_TLS, rx ? TLS_RX : TLS_TX, &info,
		       sizeof(info)))
		ret = -errno;
	explicit_bzero(&info, sizeof(info));
	return ret;
}

static int hand_over(struct tls *tls, char *cause, size_t cause_len)
{
	int ret = 0;

	if (gnutls_protocol_get_version(tls->session) != GNUTLS_TLS1_3 ||
	    gnutls_cipher_get(tls->session) != GNUTLS_CIPHER_AES_128_GCM)
		return cause_set(cause, cause_len, EPROTO,
				 "not TLS 1.3 with AES-128-GCM");
	if (gnutls_record_check_pending(tls->session))
		return cause_set(cause, cause_len, EPROTO,
				 "data before the keys were set");
	if (setsockopt(tls->fd, SOL_TCP, TCP_ULP, "tls", sizeof("tls")))
		ret = -errno;
	if (!ret)
		ret = key_direction(tls, false);
	if (!ret)
		ret = key_direction(tls, true);
	if (!ret && daemon_fault(FAULT_KTLS))
		ret = -ENOMEM;
	if (ret)
		return cause_set(cause, cause_len, ret,
				 "the kernel takes no TLS keys: %s",
				 strerror(-ret));
	return 0;
}

/* What GnuTLS says, in terms of what an operator can do about it. */
static int explain(int error, char *cause, size_t cause_len)
{
	switch (error) {
	case GNUTLS_E_PREMATURE_TERMINATION:
	case GNUTLS_E_PUSH_ERROR:
	case GNUTLS_E_PULL_ERROR:
		return cause_set(
			cause, cause_len, ECONNRESET,
			"closed the connection during the TLS handshake (another key there?)");
	case GNUTLS_E_DECRYPTION_FAILED:
	case GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER:
	case GNUTLS_E_INSUFFICIENT_CREDENTIALS:
	case GNUTLS_E_NO_CIPHER_SUITES:
		return cause_set(cause, cause_len, EACCES,
				 "has another cluster key, or none");
	case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
	case GNUTLS_E_UNEXPECTED_PACKET:
	case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
	case GNUTLS_E_RECORD_OVERFLOW:
		return cause_set(cause, cause_len, EPROTO,
				 "does not speak TLS 1.3 (tls = off there?)");
	}
	return cause_set(cause, cause_len, EACCES, "TLS handshake: %s",
			 gnutls_strerror(error));
}

int tls_step(struct tls *tls, short *want, char *cause, size_t cause_len)
{
	int ret;

	do {
		ret = gnutls_handshake(tls->session);
	} while (ret == GNUTLS_E_INTERRUPTED ||
		 ret == GNUTLS_E_WARNING_ALERT_RECEIVED);
	if (ret == GNUTLS_E_AGAIN) {
		*want = gnutls_record_get_direction(tls->session) ? POLLOUT :
								    POLLIN;
		return -EAGAIN;
	}
	if (ret)
		return explain(ret, cause, cause_len);
	return hand_over(tls, cause, cause_len);
}
