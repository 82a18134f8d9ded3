/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What travels between two daemons, once they have authenticated each other:
 * Documentation/protocol.md. Every field is little-endian; everything from the wire
 * is checked in message.c, once, before anybody uses it.
 */
#ifndef MATTXD_MESSAGE_H
#define MATTXD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mattx.h>
#include "facts.h"

#define MSG_MAGIC	0x3144784du /* "MxD1" */
#define MSG_LEN_MAX	65536u	    /* bytes of payload */
#define MSG_VERSION_MIN 1
#define MSG_VERSION_MAX 1
#define MSG_CAUSE_MAX	256 /* bytes of text with its NUL */
#define MSG_PHASE_MAX	32

enum msg_type {
	/* opening a connection, in this order */
	MSG_HELLO = 1,	 /* client: who, what for; struct hello */
	MSG_WELCOME = 2, /* server: the same of its own */
	MSG_READY = 3, /* client: empty; so the HELLO was no relic of a dead node */
	MSG_REFUSE = 4, /* server, instead of WELCOME, then it closes: struct outcome */
	/* on a CONTROL connection */
	MSG_PING = 16, /* either, every PING_S seconds: struct ping */
	MSG_LINK_WANTED =
		17, /* to the side that makes the LINK: mine is down; empty */
	MSG_HOME = 18, /* to a host: send that gang home; struct home; has an id */
	MSG_PROGRESS = 19, /* the answer so far: struct progress; the id of HOME */
	MSG_RESULT = 20, /* the answer: struct outcome; the id of HOME */
};

/* What a connection is for. */
enum purpose {
	PURPOSE_CONTROL =
		1, /* between daemons; the node with the lower id connects */
	PURPOSE_KNOCK =
		2, /* from the higher id: please connect to me. Closed at once */
	PURPOSE_LINK = 3, /* goes to the modules; the lower id connects */
	PURPOSE_JOB = 4,  /* one migration; the sending side connects */
};

/* Header of every message. */
struct msg_head {
	uint32_t magic;
	uint16_t type;
	uint16_t pad; /* 0 */
	uint32_t len; /* bytes of payload that follow */
	uint32_t id;  /* of a request and its answers, else 0 */
};

struct hello {
	uint32_t version_min, version_max;
	enum purpose purpose;
	uint32_t from, to; /* node ids */
	uint64_t instance; /* of the sender's module */
	uint64_t known;	   /* the receiver's instance with which the sender's
				 * module has a session, 0: none */
	uint64_t daemon;   /* random, of this run of the sender's daemon */
	char name[MATTX_NAME_MAX]; /* the sender's */
	struct facts facts;
};

struct ping {
	uint32_t load, cpus;
	uint64_t mem_total, mem_available;
	uint32_t link; /* 1: the sender's module has its link to the receiver */
};

struct home {
	uint64_t gang;
};

struct progress {
	uint64_t done, total;
	char phase[MSG_PHASE_MAX];
};

struct outcome {
	uint32_t error; /* errno, 0: done */
	char cause[MSG_CAUSE_MAX];
};

/* Bytes of the longest message that this version sends. */
#define MSG_BUF 8192

/**
 * msg_head_read() - check a header
 * Return: 0, or -EPROTO and then @cause is filled.
 */
int msg_head_read(const void *buf, struct msg_head *head, char *cause,
		  size_t cause_len);

/**
 * msg_head_write() - make a header
 */
void msg_head_write(void *buf, enum msg_type type, uint32_t len, uint32_t id);

/*
 * msg_X_write() - a whole message with its header into @buf of MSG_BUF bytes.
 * Return: its length.
 * msg_X_read() - check and read a payload. Return: 0, or -EPROTO with @cause.
 */
size_t msg_hello_write(void *buf, enum msg_type type, const struct hello *hello);
int msg_hello_read(const void *payload, size_t len, struct hello *hello,
		   char *cause, size_t cause_len);
size_t msg_ping_write(void *buf, const struct ping *ping);
int msg_ping_read(const void *payload, size_t len, struct ping *ping,
		  char *cause, size_t cause_len);
size_t msg_home_write(void *buf, uint32_t id, const struct home *home);
int msg_home_read(const void *payload, size_t len, struct home *home,
		  char *cause, size_t cause_len);
size_t msg_progress_write(void *buf, uint32_t id,
			  const struct progress *progress);
int msg_progress_read(const void *payload, size_t len,
		      struct progress *progress, char *cause, size_t cause_len);
size_t msg_outcome_write(void *buf, enum msg_type type, uint32_t id, int error,
			 const char *text);
int msg_outcome_read(const void *payload, size_t len, struct outcome *outcome,
		     char *cause, size_t cause_len);
size_t msg_empty_write(void *buf, enum msg_type type);
int msg_empty_read(size_t len, char *cause, size_t cause_len);

const char *purpose_name(enum purpose purpose);

#endif
