// SPDX-License-Identifier: GPL-2.0
/*
 * /etc/mattx.conf, see mattx.conf(5). The syntax is inih's, fed line by line by
 * a reader of ours that counts the lines, so that every error has its place.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <sys/stat.h>

#include <ini.h>

#include "config.h"
#include "log.h"

struct parser {
	struct config *config;
	FILE *file;
	unsigned int line;
	unsigned int name_line, discover_line;
	bool has_name, has_port, has_key, has_tls, has_discover;
	char *cause; /* "" until something is wrong */
};

uint32_t node_id(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash ? hash : 1;
}

bool node_name_valid(const char *name)
{
	size_t len = strlen(name);

	if (!len || len >= MATTX_NAME_MAX || !isalnum((unsigned char)name[0]))
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("-._", *name))
			return false;
	return true;
}

/* Return: 0, which is how an inih handler says "wrong". */
static int wrong(struct parser *p, unsigned int line, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (p->cause[0])
		return 0;
	n = snprintf(p->cause, CONFIG_CAUSE, "%s:%u: ", p->config->file, line);
	if (n < 0 || n >= CONFIG_CAUSE)
		return 0;
	va_start(ap, fmt);
	vsnprintf(p->cause + n, CONFIG_CAUSE - n, fmt, ap);
	va_end(ap);
	text_clean(p->cause);
	return 0;
}

/* One line for inih, without indent (no continuation lines) and comment. */
static char *read_line(char *str, int num, void *stream)
{
	struct parser *p = stream;
	char *line = NULL, *from, *at;
	size_t size = 0;
	ssize_t len;

	len = p->cause[0] ? -1 : getline(&line, &size, p->file);
	if (len < 0) {
		free(line);
		return NULL;
	}
	p->line++;
	if (strlen(line) != (size_t)len)
		wrong(p, p->line, "a NUL byte");
	line[strcspn(line, "\r\n")] = 0;
	from = line + strspn(line, " \t");
	for (at = from; *at; at++)
		if (*at == '#' && (at == from || isspace((unsigned char)at[-1])))
			*at-- = 0;
	if (strlen(from) >= (size_t)num)
		wrong(p, p->line, "line too long");
	snprintf(str, num, "%s", from);
	free(line);
	return str;
}

/* Return: 0 or -1 when it is none. */
static int parse_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)text[0]))
		return -1;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || !n || n > 65535)
		return -1;
	*port = n;
	return 0;
}

/* ADDRESS, ADDRESS:PORT, [IPV6] or [IPV6]:PORT; ADDRESS may be a host name. */
static int parse_address(struct parser *p, struct config_node *node, char *text)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	char *port_text = NULL;
	uint16_t port = 0;
	int ret;

	if (text[0] == '[') {
		text++;
		port_text = strchr(text, ']');
		if (!port_text || (port_text[1] && port_text[1] != ':'))
			return wrong(p, p->line, "%s: ']' expected", text);
		*port_text++ = 0;
		port_text = *port_text ? port_text + 1 : NULL;
		hints.ai_family = AF_INET6;
	} else if (strchr(text, ':') == strrchr(text, ':')) {
		port_text = strchr(text, ':');
		if (port_text)
			*port_text++ = 0;
	}
	if (port_text && parse_port(port_text, &port))
		return wrong(p, p->line, "%s: not a port (1 to 65535)",
			     port_text);
	ret = getaddrinfo(text, NULL, &hints, &ai);
	if (ret)
		return wrong(p, p->line, "%s: %s", text, gai_strerror(ret));
	memcpy(&node->addr, ai->ai_addr, ai->ai_addrlen);
	node->addr_len = ai->ai_addrlen;
	freeaddrinfo(ai);
	/* 0 stands for "port", which may be said further down */
	if (node->addr.ss_family == AF_INET)
		((struct sockaddr_in *)&node->addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&node->addr)->sin6_port = htons(port);
	return 1;
}

static int parse_node(struct parser *p, const char *value)
{
	struct config *config = p->config;
	struct config_node *nodes, *node;
	char *copy, *name, *address, *save;
	int ret = 0;
	size_t i;

	copy = strdup(value);
	nodes = reallocarray(config->nodes, config->nr_nodes + 1, sizeof(*nodes));
	if (nodes)
		config->nodes = nodes;
	if (!copy || !nodes) {
		free(copy);
		return wrong(p, p->line, "out of memory");
	}
	node = &nodes[config->nr_nodes];
	memset(node, 0, sizeof(*node));
	name = strtok_r(copy, " \t", &save);
	address = strtok_r(NULL, " \t", &save);
	if (!name || !address || strtok_r(NULL, " \t", &save)) {
		wrong(p, p->line, "node = NAME ADDRESS[:PORT] expected");
	} else if (!node_name_valid(name)) {
		wrong(p, p->line, "%s: not a node name", name);
	} else if (!strcmp(name, "home")) {
		wrong(p, p->line, "a node cannot be called home");
	} else if (parse_address(p, node, address)) {
		snprintf(node->name, sizeof(node->name), "%s", name);
		node->id = node_id(name);
		node->line = p->line;
		ret = 1;
	}
	for (i = 0; ret && i < config->nr_nodes; i++) {
		if (!strcmp(nodes[i].name, node->name))
			ret = wrong(p, p->line,
				    "node %s was named before, in line %u",
				    node->name, nodes[i].line);
		else if (nodes[i].id == node->id)
			ret = wrong(p, p->line,
				    "the names %s and %s give the same number: rename one",
				    node->name, nodes[i].name);
	}
	config->nr_nodes += ret;
	free(copy);
	return ret;
}

static int parse_shared(struct parser *p, const char *value)
{
	struct config *config = p->config;
	char **shared;

	if (value[0] != '/')
		return wrong(p, p->line, "%s: shared = /DIRECTORY expected",
			     value);
	shared = reallocarray(config->shared, config->nr_shared + 1,
			      sizeof(*shared));
	if (!shared)
		return wrong(p, p->line, "out of memory");
	config->shared = shared;
	shared[config->nr_shared] = strdup(value);
	if (!shared[config->nr_shared])
		return wrong(p, p->line, "out of memory");
	config->nr_shared++;
	return 1;
}

static int parse_string(struct parser *p, char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	return *to ? 1 : wrong(p, p->line, "out of memory");
}

static int once(struct parser *p, bool *seen, const char *key)
{
	if (*seen)
		return wrong(p, p->line, "%s was said before", key);
	*seen = true;
	return 1;
}

static int parse_setting(void *user, const char *section, const char *key,
			 const char *value)
{
	struct parser *p = user;
	struct config *config = p->config;

	if (p->cause[0])
		return 0;
	if (section[0])
		return wrong(p, p->line, "[%s]: there are no sections", section);
	if (!value || !value[0])
		return wrong(p, p->line, "%s: a value is missing", key);
	if (!strcmp(key, "node"))
		return parse_node(p, value);
	if (!strcmp(key, "shared"))
		return parse_shared(p, value);
	if (!strcmp(key, "name")) {
		if (!node_name_valid(value))
			return wrong(p, p->line, "%s: not a node name", value);
		snprintf(config->name, sizeof(config->name), "%s", value);
		p->name_line = p->line;
		return once(p, &p->has_name, key);
	}
	if (!strcmp(key, "port")) {
		if (parse_port(value, &config->port))
			return wrong(p, p->line, "%s: not a port (1 to 65535)",
				     value);
		return once(p, &p->has_port, key);
	}
	if (!strcmp(key, "key")) {
		if (value[0] != '/')
			return wrong(p, p->line,
				     "%s: an absolute path is expected", value);
		return once(p, &p->has_key, key) &&
		       parse_string(p, &config->key_file, value);
	}
	if (!strcmp(key, "tls")) {
		config->tls = !strcmp(value, "on");
		if (!config->tls && strcmp(value, "off"))
			return wrong(p, p->line, "%s: tls is on or off", value);
		return once(p, &p->has_tls, key);
	}
	if (!strcmp(key, "discover")) {
		p->discover_line = p->line;
		if (!once(p, &p->has_discover, key))
			return 0;
		if (!strcmp(value, "off"))
			return 1;
		if (strlen(value) >= IFNAMSIZ)
			return wrong(p, p->line, "%s: not an interface", value);
		return parse_string(p, &config->discover, value);
	}
	return wrong(p, p->line, "%s: no such setting", key);
}

static uint16_t *port_of(struct config_node *node)
{
	if (node->addr.ss_family == AF_INET)
		return &((struct sockaddr_in *)&node->addr)->sin_port;
	return &((struct sockaddr_in6 *)&node->addr)->sin6_port;
}

/* What can be judged only when all has been read. Return: 1, or 0 when wrong. */
static int finish(struct parser *p)
{
	struct config *config = p->config;
	const struct config_node *self;
	size_t i;

	for (i = 0; i < config->nr_nodes; i++)
		if (!*port_of(&config->nodes[i]))
			*port_of(&config->nodes[i]) = htons(config->port);
	if (!config->name[0]) {
		if (gethostname(config->name, sizeof(config->name) - 1) ||
		    !node_name_valid(config->name))
			return wrong(
				p, p->line,
				"the host's name is not a node name: say name = NAME");
	}
	config->id = node_id(config->name);
	if (!config_self(config) && !config->discover)
		return wrong(p, p->name_line ? p->name_line : p->line,
			     "no line \"node = %s ADDRESS\" for this node",
			     config->name);
	self = config_self(config);
	if (self && config->discover && self->addr.ss_family != AF_INET)
		return wrong(
			p, self->line,
			"discover announces IPv4: %s needs such an address here",
			config->name);
	return 1;
}

struct config *config_parse(const char *file, char cause[CONFIG_CAUSE])
{
	struct parser p = { .cause = cause };
	struct config *config;
	int bad;

	cause[0] = 0;
	config = calloc(1, sizeof(*config));
	if (config) {
		config->port = CONFIG_PORT;
		config->tls = true;
		config->file = strdup(file);
		config->key_file = strdup(CONFIG_KEY);
	}
	if (!config || !config->file || !config->key_file) {
		cause_set(cause, CONFIG_CAUSE, ENOMEM, "%s: out of memory", file);
		config_free(config);
		return NULL;
	}
	p.config = config;
	p.file = fopen(file, "re");
	if (!p.file) {
		cause_set(cause, CONFIG_CAUSE, errno, "%s: %m", file);
		config_free(config);
		return NULL;
	}
	bad = ini_parse_stream(read_line, &p, parse_setting, &p);
	if (ferror(p.file))
		wrong(&p, p.line, "cannot be read");
	else if (bad)
		wrong(&p, bad > 0 ? (unsigned int)bad : p.line,
		      "SETTING = VALUE expected");
	fclose(p.file);
	if (cause[0] || !finish(&p)) {
		config_free(config);
		return NULL;
	}
	return config;
}

int key_parse(const uint8_t *text, size_t len, uint8_t *key,
	      char cause[CONFIG_CAUSE])
{
	size_t digits = 0, end, i;
	unsigned int byte;

	while (digits < len && isxdigit(text[digits]))
		digits++;
	for (end = digits; end < len && isspace(text[end]);)
		end++;
	if (digits && end == len) {
		if (digits % 2 || digits / 2 < KEY_MIN || digits / 2 > KEY_MAX)
			return cause_set(
				cause, CONFIG_CAUSE, EINVAL,
				"%zu hexadecimal digits; a key has an even number from %d to %d",
				digits, 2 * KEY_MIN, 2 * KEY_MAX);
		for (i = 0; i < digits / 2; i++) {
			char pair[3] = { text[2 * i], text[2 * i + 1] };

			sscanf(pair, "%2x", &byte);
			key[i] = byte;
		}
		return digits / 2;
	}
	if (len < KEY_MIN || len > KEY_MAX)
		return cause_set(cause, CONFIG_CAUSE, EINVAL,
				 "%zu bytes; a key has %d to %d", len, KEY_MIN,
				 KEY_MAX);
	memcpy(key, text, len);
	return len;
}

/* The key counts only if nobody but root can have read or written it. */
static int read_key(struct config *config, char cause[CONFIG_CAUSE])
{
	uint8_t text[2 * KEY_MAX + 64];
	char why[CONFIG_CAUSE];
	const char *file = config->key_file;
	struct stat st;
	ssize_t len;
	int fd, ret;

	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return cause_set(cause, CONFIG_CAUSE, errno, "%s: %m", file);
	if (fstat(fd, &st))
		ret = cause_set(cause, CONFIG_CAUSE, errno, "%s: %m", file);
	else if (!S_ISREG(st.st_mode))
		ret = cause_set(cause, CONFIG_CAUSE, EINVAL,
				"%s: not a regular file", file);
	else if (st.st_uid)
		ret = cause_set(cause, CONFIG_CAUSE, EPERM,
				"%s: must belong to root, not to user %u", file,
				st.st_uid);
	else if (st.st_mode & 077)
		ret = cause_set(cause, CONFIG_CAUSE, EPERM,
				"%s: mode %04o lets others at it; chmod 0600",
				file, st.st_mode & 07777);
	else
		ret = 0;
	if (!ret) {
		len = read(fd, text, sizeof(text));
		if (len < 0)
			ret = cause_set(cause, CONFIG_CAUSE, errno, "%s: %m",
					file);
		else
			ret = key_parse(text, len, config->key, why);
		if (len >= 0 && ret < 0)
			cause_set(cause, CONFIG_CAUSE, ret, "%.200s: %.256s",
				  file, why);
		explicit_bzero(text, sizeof(text));
	}
	close(fd);
	if (ret < 0)
		return ret;
	config->key_len = ret;
	return 0;
}

struct config *config_read(const char *file, char cause[CONFIG_CAUSE])
{
	struct config *config = config_parse(file, cause);

	if (config && read_key(config, cause)) {
		config_free(config);
		return NULL;
	}
	return config;
}

void config_free(struct config *config)
{
	size_t i;

	if (!config)
		return;
	for (i = 0; i < config->nr_shared; i++)
		free(config->shared[i]);
	free(config->shared);
	free(config->nodes);
	free(config->discover);
	free(config->key_file);
	free(config->file);
	explicit_bzero(config, sizeof(*config));
	free(config);
}

const struct config_node *config_self(const struct config *config)
{
	size_t i;

	for (i = 0; i < config->nr_nodes; i++)
		if (!strcmp(config->nodes[i].name, config->name))
			return &config->nodes[i];
	return NULL;
}
