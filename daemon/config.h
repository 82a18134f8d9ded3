/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_CONFIG_H
#define MATTXD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <mattx.h>

#define CONFIG_FILE  "/etc/mattx.conf"
#define CONFIG_KEY   "/etc/mattx.key"
#define CONFIG_PORT  7077
#define CONFIG_CAUSE 512 /* room for "file:line: what is wrong" */
#define KEY_MIN	     32	 /* bytes of a cluster key */
#define KEY_MAX	     512

struct config_node {
	char name[MATTX_NAME_MAX];
	uint32_t id; /* node_id(name) */
	struct sockaddr_storage addr;
	socklen_t addr_len;
	unsigned int line; /* where it was said */
};

struct config {
	char *file;
	char name[MATTX_NAME_MAX]; /* this node */
	uint32_t id;
	uint16_t port;
	bool tls;
	char *key_file;
	uint8_t key[KEY_MAX];
	size_t key_len;
	char *discover;		   /* interface, or NULL */
	struct config_node *nodes; /* this node among them, unless it discovers */
	size_t nr_nodes;
	char **shared; /* directories, the same on all nodes */
	size_t nr_shared;
};

/**
 * config_read() - read and check a configuration file and the key that it names
 * Return: a configuration that the caller frees with config_free(), or NULL and
 * then @cause says where and why.
 */
struct config *config_read(const char *file, char cause[CONFIG_CAUSE]);

/**
 * config_parse() - the same without opening the key file: for tests
 */
struct config *config_parse(const char *file, char cause[CONFIG_CAUSE]);

void config_free(struct config *config);

/**
 * config_self() - the node line of this node, or NULL
 */
const struct config_node *config_self(const struct config *config);

/**
 * node_id() - a node's number: a hash of its name, the same on all nodes, never 0
 */
uint32_t node_id(const char *name);

/**
 * node_name_valid() - letters, digits, '-', '.' and '_', at most 63
 */
bool node_name_valid(const char *name);

/**
 * key_parse() - the contents of a key file
 * Either raw bytes, or at least 64 hexadecimal digits and then only white space.
 * @key: room for KEY_MAX bytes
 * Return: number of bytes, or a negative errno and then @cause is filled.
 */
int key_parse(const uint8_t *text, size_t len, uint8_t *key,
	      char cause[CONFIG_CAUSE]);

#endif
