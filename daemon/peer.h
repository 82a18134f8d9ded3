/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The other nodes.
 *
 * Two daemons share one CONTROL connection, made by the node with the lower id;
 * the other one knocks when it wants that to happen now. Over it they learn each
 * other's module instance and tell their modules; then the lower id makes the LINK
 * and both hand it over. A node is silent when nothing came over the control
 * connection for PEER_SILENT_MS; that ends the connection and nothing else: what
 * the modules share ends only with a module's instance, or by peer_forget().
 */
#ifndef MATTXD_PEER_H
#define MATTXD_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "discover.h"
#include "job.h"
#include "message.h"

#define PEER_PING_MS   2000
#define PEER_SILENT_MS 15000

struct conn;
struct peer;

/* Main loop only, all of them. */

/**
 * peers_init() - know the nodes of the configuration and what the module knows
 */
int peers_init(char *cause, size_t cause_len);
void peers_start(void);
void peers_exit(void);

struct peer *peer_by_name(const char *name);
struct peer *peer_by_id(uint32_t id);
struct peer *peer_next(struct peer *peer); /* NULL: the first */

const struct node_info *peer_info(const struct peer *peer);
const char *peer_name_of(uint32_t id); /* "node 1a2b3c4d" when unknown */
bool peer_is_self(const struct peer *peer);
bool peer_control_up(const struct peer *peer);
bool peer_link_up(const struct peer *peer);
bool peer_up(const struct peer *peer); /* both */
/* why it is not up, "" when it is or nothing is known; what it said last about itself */
const char *peer_cause(const struct peer *peer);
const struct ping *peer_load(const struct peer *peer);

/**
 * peer_hello() - what this node says to @peer on a connection for @purpose
 */
void peer_hello(const struct peer *peer, enum purpose purpose,
		struct hello *hello);

/**
 * peer_decide() - the conn_decide of every connection that comes in
 */
int peer_decide(struct conn *conn);

/**
 * peer_incoming() - such a connection is open; takes the conn
 */
void peer_incoming(struct conn *conn);

/**
 * peer_discovered() - a node has announced itself
 * peer_address_set() - where this node announces itself
 */
void peer_discovered(const struct announcement *a);
void peer_address_set(const char *name, uint32_t address, uint16_t port);

/**
 * peer_link_lost() - the module says so
 */
void peer_link_lost(uint32_t id, const char *cause);

/**
 * peers_look() - ask the module which links are up
 */
void peers_look(void);

/**
 * peers_reset() - the module was unloaded, or loaded again
 * @back: loaded again
 */
void peers_reset(bool back);

/**
 * peer_forget() - give up everything that is shared with a node that is down
 */
int peer_forget(struct peer *peer, char *cause, size_t cause_len);

/**
 * struct home_watch - who asked a host to send a gang home
 * Either function may be called from within peer_ask_home().
 */
struct home_watch {
	void (*progress)(const struct progress *progress, void *arg);
	void (*end)(int error, const char *cause, void *arg); /* once */
	void *arg;
};

/**
 * peer_ask_home() - ask @peer's daemon to send @gang home
 */
void peer_ask_home(struct peer *peer, uint64_t gang,
		   const struct home_watch *watch);

/**
 * peer_answer(), peer_answer_progress() - the answers to a HOME that came in
 * @serial: of the control connection over which it came: another one gets nothing
 */
void peer_answer(uint32_t node, uint64_t serial, uint32_t id, int error,
		 const char *cause);
void peer_answer_progress(uint32_t node, uint64_t serial, uint32_t id,
			  const struct progress *progress);

#endif
