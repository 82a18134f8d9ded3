// SPDX-License-Identifier: GPL-2.0
/* Messages between daemons: what is written is read; nothing else is believed. */
#include <errno.h>

#include "auth.h"
#include "config.h"
#include "discover.h"
#include "message.h"
#include "test.h"

#define HEAD sizeof(struct msg_head)

static unsigned char buf[MSG_BUF];
static char cause[256];

static struct hello sample(void)
{
	struct hello h = {
		.version_min = 1,
		.version_max = 3,
		.purpose = PURPOSE_LINK,
		.from = node_id("node1"),
		.to = 17,
		.instance = 0x1122334455667788,
		.known = 5,
		.daemon = 6,
		.name = "node1",
		.facts = {
			.release = "6.12",
			.cpu_model = "a CPU",
			.cpu_flags = "fpu vme",
			.xfeatures = 7,
			.xsave_size = 832,
			.vdso_size = 8192,
			.vvar_size = 16384,
			.cpus = 2,
			.load = 150,
			.realtime = 1,
			.monotonic = 2,
			.boottime = 3,
			.mem_total = 1ull << 40,
			.mem_available = 1ull << 39,
		},
	};

	memset(h.facts.cpu_hash, 1, FACTS_HASH);
	memset(h.facts.vdso_hash, 2, FACTS_HASH);
	memset(h.facts.xsave_hash, 3, FACTS_HASH);
	return h;
}

static void test_hello(void)
{
	struct hello h = sample(), back;
	struct msg_head head;
	size_t len = msg_hello_write(buf, MSG_HELLO, &h);

	ok(!msg_head_read(buf, &head, cause, sizeof(cause)) &&
		   head.type == MSG_HELLO && head.len == len - HEAD,
	   "HELLO's header");
	ok(!msg_hello_read(buf + HEAD, head.len, &back, cause, sizeof(cause)) &&
		   !memcmp(&h, &back, sizeof(h)),
	   "HELLO goes there and back");
	ok(!msg_hello_read(buf + HEAD, head.len + 8, &back, cause, sizeof(cause)),
	   "a longer one, of a later version that speaks ours too");
	ok(msg_hello_read(buf + HEAD, head.len - 1, &back, cause,
			  sizeof(cause)) == -EPROTO,
	   "too short: %s", cause);
	ok(msg_hello_read(buf + HEAD, 0, &back, cause, sizeof(cause)) == -EPROTO,
	   "empty: %s", cause);
}

/* One change to a good HELLO must make it a bad one. */
static void refused(const char *what, struct hello h)
{
	struct hello back;
	size_t len = msg_hello_write(buf, MSG_HELLO, &h);

	ok(msg_hello_read(buf + HEAD, len - HEAD, &back, cause, sizeof(cause)) ==
		   -EPROTO,
	   "HELLO with %s: %s", what, cause);
}

static void test_bad_hello(void)
{
	struct hello h = sample(), back;
	size_t len;

	h.version_min = 2;
	refused("versions 2 to 3", h);
	h = sample();
	h.version_max = 0;
	refused("versions 1 to 0", h);
	h = sample();
	h.purpose = 0;
	refused("purpose 0", h);
	h.purpose = 99;
	refused("purpose 99", h);
	h = sample();
	h.from++;
	refused("a number that is not the name's", h);
	h = sample();
	h.instance = 0;
	refused("instance 0", h);
	h = sample();
	strcpy(h.name, "a/b");
	h.from = node_id("a/b");
	refused("a slash in the name", h);
	h.name[0] = 0;
	refused("no name", h);
	h = sample();
	len = msg_hello_write(buf, MSG_HELLO, &h);
	memset(buf + HEAD + 48, 'x', 64);
	ok(msg_hello_read(buf + HEAD, len - HEAD, &back, cause, sizeof(cause)) ==
		   -EPROTO,
	   "a name without an end: %s", cause);
	len = msg_hello_write(buf, MSG_HELLO, &h);
	memset(buf + HEAD + 48 + 64 + 72 + 72, 'x', 4096);
	ok(msg_hello_read(buf + HEAD, len - HEAD, &back, cause, sizeof(cause)) ==
		   -EPROTO,
	   "CPU flags without an end: %s", cause);
	len = msg_hello_write(buf, MSG_HELLO, &h);
	memcpy(buf + HEAD + 48 + 64, "\033[2J\377", 5);
	ok(!msg_hello_read(buf + HEAD, len - HEAD, &back, cause, sizeof(cause)) &&
		   !strcmp(back.facts.release, "?[2J?"),
	   "control characters are taken out");
}

static void test_head(void)
{
	struct msg_head head;

	msg_head_write(buf, MSG_PING, 32, 0);
	ok(!msg_head_read(buf, &head, cause, sizeof(cause)), "a header");
	buf[0] ^= 1;
	ok(msg_head_read(buf, &head, cause, sizeof(cause)) == -EPROTO,
	   "bad magic: %s", cause);
	msg_head_write(buf, MSG_PING, 32, 0);
	buf[6] = 1;
	ok(msg_head_read(buf, &head, cause, sizeof(cause)) == -EPROTO,
	   "padding: %s", cause);
	msg_head_write(buf, MSG_PING, MSG_LEN_MAX, 0);
	ok(!msg_head_read(buf, &head, cause, sizeof(cause)), "the longest");
	msg_head_write(buf, MSG_PING, MSG_LEN_MAX + 1, 0);
	ok(msg_head_read(buf, &head, cause, sizeof(cause)) == -EPROTO,
	   "too long: %s", cause);
	msg_head_write(buf, MSG_PING, UINT32_MAX, 0);
	ok(msg_head_read(buf, &head, cause, sizeof(cause)) == -EPROTO,
	   "much too long: %s", cause);
}

static void test_others(void)
{
	struct ping ping = {
		.load = 1, .cpus = 2, .mem_total = 3, .mem_available = 4, .link = 1
	};
	struct progress progress = { .done = 1, .total = 2, .phase = "pre-copy" };
	struct home home = { .gang = 77 };
	struct outcome outcome;
	char longest[1000];
	size_t len;

	len = msg_ping_write(buf, &ping) - HEAD;
	memset(&ping, 0, sizeof(ping));
	ok(!msg_ping_read(buf + HEAD, len, &ping, cause, sizeof(cause)) &&
		   ping.link == 1 && ping.mem_available == 4,
	   "PING");
	ok(msg_ping_read(buf + HEAD, len - 1, &ping, cause, sizeof(cause)) ==
		   -EPROTO,
	   "short PING: %s", cause);
	len = msg_home_write(buf, 9, &home) - HEAD;
	home.gang = 0;
	ok(!msg_home_read(buf + HEAD, len, &home, cause, sizeof(cause)) &&
		   home.gang == 77,
	   "HOME");
	memset(buf + HEAD, 0, 8);
	ok(msg_home_read(buf + HEAD, len, &home, cause, sizeof(cause)) == -EPROTO,
	   "HOME of nobody: %s", cause);
	len = msg_progress_write(buf, 9, &progress) - HEAD;
	memset(&progress, 0, sizeof(progress));
	ok(!msg_progress_read(buf + HEAD, len, &progress, cause, sizeof(cause)) &&
		   progress.total == 2 && !strcmp(progress.phase, "pre-copy"),
	   "PROGRESS");
	memset(longest, 'y', sizeof(longest));
	longest[999] = 0;
	len = msg_outcome_write(buf, MSG_RESULT, 9, -EPERM, longest) - HEAD;
	ok(!msg_outcome_read(buf + HEAD, len, &outcome, cause, sizeof(cause)) &&
		   outcome.error == EPERM &&
		   strlen(outcome.cause) == MSG_CAUSE_MAX - 1,
	   "RESULT with a cause that is cut");
	memset(buf + HEAD, 0xff, 4);
	ok(msg_outcome_read(buf + HEAD, len, &outcome, cause, sizeof(cause)) ==
		   -EPROTO,
	   "RESULT with error -1: %s", cause);
	ok(msg_empty_read(1, cause, sizeof(cause)) == -EPROTO,
	   "READY with a byte: %s", cause);
}

static void test_announcement(void)
{
	struct announcement a = {
		.realtime = 5,
		.daemon = 6,
		.flags = DISCOVER_ANSWER,
		.address = 0x0100007f,
		.port = 7077,
		.id = node_id("node1"),
		.name = "node1",
	}, back;
	static const uint8_t key[32] = "a key of thirty-two bytes.......";
	uint8_t d[DISCOVER_LEN + 1];
	unsigned int i, taken = 0;

	ok(!auth_init("node1", false, key, sizeof(key), cause, sizeof(cause)),
	   "a key");
	discover_write(d, &a);
	ok(!discover_read(d, DISCOVER_LEN, &back, cause, sizeof(cause)) &&
		   back.realtime == 5 && back.daemon == 6 &&
		   back.flags == DISCOVER_ANSWER && back.address == a.address &&
		   back.port == 7077 && back.id == a.id &&
		   !strcmp(back.name, "node1"),
	   "an announcement goes there and back");
	ok(discover_read(d, DISCOVER_LEN - 1, &back, cause, sizeof(cause)) ==
			   -EPROTO &&
		   discover_read(d, DISCOVER_LEN + 1, &back, cause,
				 sizeof(cause)) == -EPROTO &&
		   discover_read(d, 0, &back, cause, sizeof(cause)) == -EPROTO,
	   "of another length: %s", cause);
	for (i = 0; i < 8 * DISCOVER_LEN; i++) {
		discover_write(d, &a);
		d[i / 8] ^= 1 << i % 8;
		taken += !discover_read(d, DISCOVER_LEN, &back, cause,
					sizeof(cause));
	}
	ok(!taken, "no bit of it can be changed: %s", cause);
	a.port = 0;
	discover_write(d, &a);
	ok(discover_read(d, DISCOVER_LEN, &back, cause, sizeof(cause)) == -EPROTO,
	   "port 0: %s", cause);
	a.port = 1;
	a.id++;
	discover_write(d, &a);
	ok(discover_read(d, DISCOVER_LEN, &back, cause, sizeof(cause)) == -EPROTO,
	   "not the name's number: %s", cause);
	auth_exit();
}

static void read_any(const struct msg_head *head, const unsigned char *payload)
{
	struct progress progress;
	struct outcome outcome;
	struct hello hello;
	struct ping ping;
	struct home home;

	msg_hello_read(payload, head->len, &hello, cause, sizeof(cause));
	msg_ping_read(payload, head->len, &ping, cause, sizeof(cause));
	msg_home_read(payload, head->len, &home, cause, sizeof(cause));
	msg_progress_read(payload, head->len, &progress, cause, sizeof(cause));
	msg_outcome_read(payload, head->len, &outcome, cause, sizeof(cause));
}

/* For the sanitizers: mutated messages, each in a buffer of exactly its length. */
static void test_fuzz(void)
{
	struct hello h = sample();
	struct msg_head head;
	unsigned char *exact;
	int i, j, taken = 0;
	size_t len;

	for (i = 0; i < 20000; i++) {
		len = msg_hello_write(buf, MSG_HELLO, &h);
		for (j = rand() % 8; j >= 0; j--)
			buf[rand() % (i & 1 ? 64 : len)] = rand();
		if (i & 2)
			buf[8 + rand() % 2] = rand();
		if (msg_head_read(buf, &head, cause, sizeof(cause)))
			continue;
		if (head.len > len - HEAD)
			continue;
		exact = malloc(head.len + !head.len);
		memcpy(exact, buf + HEAD, head.len);
		read_any(&head, exact);
		free(exact);
		taken++;
	}
	ok(taken > 1000, "%d of 20000 mutated messages had a proper header",
	   taken);
}

int main(void)
{
	test_hello();
	test_bad_hello();
	test_head();
	test_others();
	test_announcement();
	test_fuzz();
	return test_end();
}
