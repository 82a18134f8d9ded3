// SPDX-License-Identifier: GPL-2.0
/* The configuration: what is taken, what is refused, and with which line. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

#include "config.h"
#include "test.h"

static char file[] = "/tmp/mattx-test-config.XXXXXX";

static struct config *parse(const char *text, size_t len,
			    char cause[CONFIG_CAUSE])
{
	FILE *f = fopen(file, "w");

	if (!f || fwrite(text, 1, len, f) != len || fclose(f))
		exit(99);
	return config_parse(file, cause);
}

struct bad {
	const char *text;
	unsigned int line;
	const char *cause; /* part of it */
};

static const struct bad bads[] = {
	{ "name = a\nnode = a 1.2.3.4\nnodes = b\n", 3, "no such setting" },
	{ "name = a\nnode = a 1.2.3.4\njust words\n", 3,
	  "SETTING = VALUE expected" },
	{ "[x]\nname = a\n", 2, "there are no sections" },
	{ "name =\n", 1, "a value is missing" },
	{ "name = a b\n", 1, "not a node name" },
	{ "name = -a\n", 1, "not a node name" },
	{ "name = a\nname = b\n", 2, "said before" },
	{ "name = a\nport = 0\n", 2, "not a port" },
	{ "name = a\nport = 65536\n", 2, "not a port" },
	{ "name = a\nport = 7077x\n", 2, "not a port" },
	{ "name = a\nport = -1\n", 2, "not a port" },
	{ "tls = yes\n", 1, "tls is on or off" },
	{ "key = mattx.key\n", 1, "absolute path" },
	{ "name = a\n\n\nnode = a\n", 4, "NAME ADDRESS" },
	{ "name = a\nnode = a 1.2.3.4 5\n", 2, "NAME ADDRESS" },
	{ "name = a\nnode = a 1.2.3.4:0\n", 2, "not a port" },
	{ "name = a\nnode = a 1.2.3.4:99999\n", 2, "not a port" },
	{ "name = a\nnode = a [::1\n", 2, "']' expected" },
	{ "name = a\nnode = a [::1]x\n", 2, "']' expected" },
	{ "name = a\nnode = a [1.2.3.4]\n", 2, "1.2.3.4" },
	{ "name = a\nnode = a 1.2.3.4\nnode = a 1.2.3.5\n", 3,
	  "named before, in line 2" },
	{ "name = a\nnode = home 1.2.3.4\n", 2, "cannot be called home" },
	{ "name = a\nnode = ../a 1.2.3.4\n", 2, "not a node name" },
	{ "# a comment\nname = a\nnode = b 1.2.3.4\n", 2,
	  "no line \"node = a ADDRESS\"" },
	{ "name = a\nshared = relative\n", 2, "shared = /DIRECTORY" },
	{ "name = a\ndiscover = an-interface-name-that-is-long\n", 2,
	  "not an interface" },
	{ "name = a\nnode = a ::1\ndiscover = eth0\n", 2, "announces IPv4" },
	/* the same FNV-1a hash */
	{ "name = a\nnode = a 1.2.3.4\nnode = liquid 1.2.3.5\nnode = costarring 1.2.3.6\n",
	  4, "give the same number" },
};

static void test_bad(const struct bad *b)
{
	char cause[CONFIG_CAUSE], where[128];
	struct config *config = parse(b->text, strlen(b->text), cause);

	snprintf(where, sizeof(where), "%s:%u: ", file, b->line);
	ok(!config && !strncmp(cause, where, strlen(where)) &&
		   strstr(cause, b->cause),
	   "refused: %s", cause);
	config_free(config);
}

static uint16_t port_of(const struct config_node *node)
{
	return ntohs(((const struct sockaddr_in *)&node->addr)->sin_port);
}

static void test_good(void)
{
	static const char text[] = "# all of it\n"
				   "node = one 10.0.0.1   # before the port\n"
				   "  node = two 10.0.0.2:8000\n"
				   "name=two\r\n"
				   "port = 7000\n"
				   "node = three [fe80::1]:9000\n"
				   "; inih's own comment\n"
				   "node = four ::1\n"
				   "tls = off\n"
				   "shared = /home\n"
				   "shared = /data#1\n"
				   "key = /tmp/k\n"
				   "discover = off";
	char cause[CONFIG_CAUSE];
	struct config *config = parse(text, sizeof(text) - 1, cause);

	ok(config, "a configuration with everything: %s", cause);
	if (!config)
		return;
	ok(config->nr_nodes == 4 && !strcmp(config->name, "two"),
	   "nodes and name");
	ok(config_self(config) == &config->nodes[1] &&
		   config->id == node_id("two"),
	   "itself");
	ok(port_of(&config->nodes[0]) == 7000, "the default port, said later");
	ok(port_of(&config->nodes[1]) == 8000, "a port of its own");
	ok(config->nodes[2].addr.ss_family == AF_INET6 &&
		   port_of(&config->nodes[2]) == 9000,
	   "IPv6 with port");
	ok(config->nodes[3].addr.ss_family == AF_INET6 &&
		   port_of(&config->nodes[3]) == 7000,
	   "IPv6 without");
	ok(!config->tls && !strcmp(config->key_file, "/tmp/k") &&
		   !config->discover,
	   "the rest");
	ok(config->nr_shared == 2 && !strcmp(config->shared[1], "/data#1"),
	   "a # within a word is no comment");
	config_free(config);
}

static void test_odd(void)
{
	static char line[100000], nul[] = "name = a\nnode = a 1.2.3.4\0 # x\n";
	char cause[CONFIG_CAUSE];
	struct config *config;

	memset(line, 'x', sizeof(line));
	config = parse(line, sizeof(line), cause);
	ok(!config && strstr(cause, ":1: line too long"), "a long line: %.100s",
	   cause);
	config = parse(nul, sizeof(nul) - 1, cause);
	ok(!config && strstr(cause, ":2: a NUL byte"), "a NUL byte: %s", cause);
	unlink(file);
	config = config_parse(file, cause);
	ok(!config && strstr(cause, "No such file"), "no file: %s", cause);
	config = config_parse("/", cause);
	ok(!config && strstr(cause, "/:"), "a directory: %s", cause);
}

/* Random changes of a good file: any result, but no crash and always a cause. */
static void test_fuzz(void)
{
	static const char good[] =
		"name = a\nnode = a 127.0.0.1:1\nport = 7\ntls = on\n"
		"node = b [::1]:3\nshared = /x\nkey = /k\n";
	char text[sizeof(good)], cause[CONFIG_CAUSE];
	struct config *config;
	int i, j, n, silent = 0;

	for (i = 0; i < 3000; i++) {
		memcpy(text, good, sizeof(good));
		n = 1 + rand() % 4;
		for (j = 0; j < n; j++)
			text[rand() % (sizeof(good) - 1)] =
				"\n= #[]:;\t0a./\x80"[rand() % 15];
		config = parse(text, sizeof(good) - 1, cause);
		silent += !config && !cause[0];
		config_free(config);
	}
	ok(!silent, "3000 random changes");
}

static void test_key(void)
{
	uint8_t key[KEY_MAX], raw[KEY_MAX + 1];
	char cause[CONFIG_CAUSE], hex[2 * KEY_MAX + 3];
	int i;

	for (i = 0; i < 64; i++)
		hex[i] = "0123456789abcdefABCDEF"[i % 22];
	strcpy(hex + 64, "\n");
	ok(key_parse((uint8_t *)hex, 65, key, cause) == 32 && key[0] == 0x01 &&
		   key[7] == 0xef,
	   "64 digits");
	ok(key_parse((uint8_t *)hex, 63, key, cause) == -EINVAL,
	   "63 digits: %s", cause);
	ok(key_parse((uint8_t *)hex, 62, key, cause) == -EINVAL,
	   "62 digits: %s", cause);
	memset(raw, 0xa5, sizeof(raw));
	ok(key_parse(raw, 32, key, cause) == 32 && key[31] == 0xa5, "32 bytes");
	ok(key_parse(raw, 31, key, cause) == -EINVAL, "31 bytes: %s", cause);
	ok(key_parse(raw, KEY_MAX, key, cause) == KEY_MAX,
	   "as many as there can be");
	ok(key_parse(raw, KEY_MAX + 1, key, cause) == -EINVAL, "too many: %s",
	   cause);
	ok(key_parse(raw, 0, key, cause) == -EINVAL, "none: %s", cause);
	memset(hex, 'a', sizeof(hex));
	ok(key_parse((uint8_t *)hex, 2 * KEY_MAX + 2, key, cause) == -EINVAL,
	   "too many digits: %s", cause);
}

int main(void)
{
	size_t i;
	int fd = mkstemp(file);

	if (fd < 0)
		return 99;
	close(fd);
	for (i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		test_bad(&bads[i]);
	test_good();
	test_fuzz();
	test_key();
	test_odd();
	return test_end();
}
