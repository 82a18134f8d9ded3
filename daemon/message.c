// SPDX-License-Identifier: GPL-2.0
/* Messages between daemons: layout on the wire and their checks. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "log.h"
#include "message.h"

/* Layouts on the wire: only little-endian integers and byte arrays. */

struct wire_head {
	uint32_t magic;
	uint16_t type, pad;
	uint32_t len, id;
} __attribute__((packed));

struct wire_hello {
	/* the same in all versions */
	uint32_t version_min, version_max, purpose, from, to, pad;
	uint64_t instance, known, daemon;
	char name[64];
	/* version 1 */
	char release[72], cpu_model[72], cpu_flags[4096];
	uint8_t cpu_hash[FACTS_HASH], xsave_hash[FACTS_HASH],
		vdso_hash[FACTS_HASH];
	uint64_t xfeatures;
	uint32_t xsave_size, vdso_size, vvar_size, cpus, load, pad2;
	uint64_t realtime, monotonic, boottime, mem_total, mem_available;
} __attribute__((packed));

struct wire_ping {
	uint32_t load, cpus;
	uint64_t mem_total, mem_available;
	uint32_t link, pad;
} __attribute__((packed));

struct wire_home {
	uint64_t gang;
} __attribute__((packed));

struct wire_progress {
	uint64_t done, total;
	char phase[MSG_PHASE_MAX];
} __attribute__((packed));

struct wire_outcome {
	uint32_t error;
	char cause[MSG_CAUSE_MAX];
} __attribute__((packed));

_Static_assert(sizeof(struct wire_head) == sizeof(struct msg_head),
	       "header size");
_Static_assert(sizeof(struct wire_head) + sizeof(struct wire_hello) <= MSG_BUF,
	       "buffer size");
_Static_assert(sizeof(((struct wire_hello *)0)->name) == MATTX_NAME_MAX,
	       "name size");
_Static_assert(sizeof(((struct wire_hello *)0)->cpu_flags) ==
		       sizeof(((struct facts *)0)->cpu_flags),
	       "flags size");

/* Into a field that is all NULs, so that nothing of ours leaks behind the text. */
static void put_text(char *to, size_t size, const char *from)
{
	memcpy(to, from, strnlen(from, size - 1));
}

/* Return: false when it has no end. */
static bool get_text(char *to, const char *from, size_t size)
{
	if (!memchr(from, 0, size))
		return false;
	strcpy(to, from);
	text_clean(to);
	return true;
}

int msg_head_read(const void *buf, struct msg_head *head, char *cause,
		  size_t cause_len)
{
	struct wire_head w;

	memcpy(&w, buf, sizeof(w));
	head->magic = le32toh(w.magic);
	head->type = le16toh(w.type);
	head->pad = le16toh(w.pad);
	head->len = le32toh(w.len);
	head->id = le32toh(w.id);
	if (head->magic != MSG_MAGIC)
		return cause_set(cause, cause_len, EPROTO,
				 "not a message: magic %08x", head->magic);
	if (head->pad)
		return cause_set(cause, cause_len, EPROTO,
				 "message type %u: padding %04x", head->type,
				 head->pad);
	if (head->len > MSG_LEN_MAX)
		return cause_set(cause, cause_len, EPROTO,
				 "message type %u: %u bytes, at most %u",
				 head->type, head->len, MSG_LEN_MAX);
	return 0;
}

void msg_head_write(void *buf, enum msg_type type, uint32_t len, uint32_t id)
{
	struct wire_head w = {
		.magic = htole32(MSG_MAGIC),
		.type = htole16(type),
		.len = htole32(len),
		.id = htole32(id),
	};

	memcpy(buf, &w, sizeof(w));
}

static size_t message(void *buf, enum msg_type type, uint32_t id,
		      const void *payload, size_t len)
{
	msg_head_write(buf, type, len, id);
	memcpy((char *)buf + sizeof(struct msg_head), payload, len);
	return sizeof(struct msg_head) + len;
}

static int check_len(size_t len, size_t want, const char *what, char *cause,
		     size_t cause_len)
{
	if (len == want)
		return 0;
	return cause_set(cause, cause_len, EPROTO, "%s of %zu bytes, not %zu",
			 what, len, want);
}

size_t msg_hello_write(void *buf, enum msg_type type, const struct hello *h)
{
	const struct facts *f = &h->facts;
	struct wire_hello w = {
		.version_min = htole32(h->version_min),
		.version_max = htole32(h->version_max),
		.purpose = htole32(h->purpose),
		.from = htole32(h->from),
		.to = htole32(h->to),
		.instance = htole64(h->instance),
		.known = htole64(h->known),
		.daemon = htole64(h->daemon),
		.xfeatures = htole64(f->xfeatures),
		.xsave_size = htole32(f->xsave_size),
		.vdso_size = htole32(f->vdso_size),
		.vvar_size = htole32(f->vvar_size),
		.cpus = htole32(f->cpus),
		.load = htole32(f->load),
		.realtime = htole64(f->realtime),
		.monotonic = htole64(f->monotonic),
		.boottime = htole64(f->boottime),
		.mem_total = htole64(f->mem_total),
		.mem_available = htole64(f->mem_available),
	};

	put_text(w.name, sizeof(w.name), h->name);
	put_text(w.release, sizeof(w.release), f->release);
	put_text(w.cpu_model, sizeof(w.cpu_model), f->cpu_model);
	put_text(w.cpu_flags, sizeof(w.cpu_flags), f->cpu_flags);
	memcpy(w.cpu_hash, f->cpu_hash, FACTS_HASH);
	memcpy(w.xsave_hash, f->xsave_hash, FACTS_HASH);
	memcpy(w.vdso_hash, f->vdso_hash, FACTS_HASH);
	return message(buf, type, 0, &w, sizeof(w));
}

static int read_facts(const struct wire_hello *w, struct facts *f)
{
	if (!get_text(f->release, w->release, sizeof(w->release)) ||
	    !get_text(f->cpu_model, w->cpu_model, sizeof(w->cpu_model)) ||
	    !get_text(f->cpu_flags, w->cpu_flags, sizeof(w->cpu_flags)))
		return -EPROTO;
	memcpy(f->cpu_hash, w->cpu_hash, FACTS_HASH);
	memcpy(f->xsave_hash, w->xsave_hash, FACTS_HASH);
	memcpy(f->vdso_hash, w->vdso_hash, FACTS_HASH);
	f->xfeatures = le64toh(w->xfeatures);
	f->xsave_size = le32toh(w->xsave_size);
	f->vdso_size = le32toh(w->vdso_size);
	f->vvar_size = le32toh(w->vvar_size);
	f->cpus = le32toh(w->cpus);
	f->load = le32toh(w->load);
	f->realtime = le64toh(w->realtime);
	f->monotonic = le64toh(w->monotonic);
	f->boottime = le64toh(w->boottime);
	f->mem_total = le64toh(w->mem_total);
	f->mem_available = le64toh(w->mem_available);
	return 0;
}

int msg_hello_read(const void *payload, size_t len, struct hello *h,
		   char *cause, size_t cause_len)
{
	struct wire_hello w;

	memset(h, 0, sizeof(*h));
	/* a later version may append; it speaks ours when we ask for that */
	if (len < sizeof(w))
		return check_len(len, sizeof(w), "HELLO", cause, cause_len);
	memcpy(&w, payload, sizeof(w));
	h->version_min = le32toh(w.version_min);
	h->version_max = le32toh(w.version_max);
	h->purpose = le32toh(w.purpose);
	h->from = le32toh(w.from);
	h->to = le32toh(w.to);
	h->instance = le64toh(w.instance);
	h->known = le64toh(w.known);
	h->daemon = le64toh(w.daemon);
	if (h->version_min > MSG_VERSION_MAX ||
	    h->version_max < MSG_VERSION_MIN || h->version_min > h->version_max)
		return cause_set(
			cause, cause_len, EPROTO,
			"speaks protocol versions %u to %u, this daemon %u to %u",
			h->version_min, h->version_max, MSG_VERSION_MIN,
			MSG_VERSION_MAX);
	if (h->purpose < PURPOSE_CONTROL || h->purpose > PURPOSE_JOB)
		return cause_set(cause, cause_len, EPROTO,
				 "HELLO for an unknown purpose %u", h->purpose);
	if (!get_text(h->name, w.name, sizeof(w.name)) ||
	    !node_name_valid(h->name))
		return cause_set(cause, cause_len, EPROTO,
				 "HELLO without a proper node name");
	if (h->from != node_id(h->name))
		return cause_set(cause, cause_len, EPROTO,
				 "HELLO of %s with number %08x", h->name,
				 h->from);
	if (!h->instance)
		return cause_set(cause, cause_len, EPROTO,
				 "HELLO of %s without an instance", h->name);
	if (read_facts(&w, &h->facts))
		return cause_set(cause, cause_len, EPROTO,
				 "HELLO of %s: text without an end", h->name);
	return 0;
}

size_t msg_ping_write(void *buf, const struct ping *p)
{
	struct wire_ping w = {
		.load = htole32(p->load),
		.cpus = htole32(p->cpus),
		.mem_total = htole64(p->mem_total),
		.mem_available = htole64(p->mem_available),
		.link = htole32(p->link),
	};

	return message(buf, MSG_PING, 0, &w, sizeof(w));
}

int msg_ping_read(const void *payload, size_t len, struct ping *p, char *cause,
		  size_t cause_len)
{
	struct wire_ping w;

	if (check_len(len, sizeof(w), "PING", cause, cause_len))
		return -EPROTO;
	memcpy(&w, payload, sizeof(w));
	p->load = le32toh(w.load);
	p->cpus = le32toh(w.cpus);
	p->mem_total = le64toh(w.mem_total);
	p->mem_available = le64toh(w.mem_available);
	p->link = le32toh(w.link);
	if (p->link > 1)
		return cause_set(cause, cause_len, EPROTO, "PING: link %u",
				 p->link);
	return 0;
}

size_t msg_home_write(void *buf, uint32_t id, const struct home *h)
{
	struct wire_home w = { .gang = htole64(h->gang) };

	return message(buf, MSG_HOME, id, &w, sizeof(w));
}

int msg_home_read(const void *payload, size_t len, struct home *h, char *cause,
		  size_t cause_len)
{
	struct wire_home w;

	if (check_len(len, sizeof(w), "HOME", cause, cause_len))
		return -EPROTO;
	memcpy(&w, payload, sizeof(w));
	h->gang = le64toh(w.gang);
	if (!h->gang)
		return cause_set(cause, cause_len, EPROTO, "HOME: no gang");
	return 0;
}

size_t msg_progress_write(void *buf, uint32_t id, const struct progress *p)
{
	struct wire_progress w = {
		.done = htole64(p->done),
		.total = htole64(p->total),
	};

	put_text(w.phase, sizeof(w.phase), p->phase);
	return message(buf, MSG_PROGRESS, id, &w, sizeof(w));
}

int msg_progress_read(const void *payload, size_t len, struct progress *p,
		      char *cause, size_t cause_len)
{
	struct wire_progress w;

	if (check_len(len, sizeof(w), "PROGRESS", cause, cause_len))
		return -EPROTO;
	memcpy(&w, payload, sizeof(w));
	p->done = le64toh(w.done);
	p->total = le64toh(w.total);
	if (!get_text(p->phase, w.phase, sizeof(w.phase)))
		return cause_set(cause, cause_len, EPROTO,
				 "PROGRESS: text without an end");
	return 0;
}

size_t msg_outcome_write(void *buf, enum msg_type type, uint32_t id, int error,
			 const char *text)
{
	struct wire_outcome w = { .error = htole32(error < 0 ? -error : error) };

	put_text(w.cause, sizeof(w.cause), text);
	return message(buf, type, id, &w, sizeof(w));
}

int msg_outcome_read(const void *payload, size_t len, struct outcome *o,
		     char *cause, size_t cause_len)
{
	struct wire_outcome w;

	if (check_len(len, sizeof(w), "RESULT", cause, cause_len))
		return -EPROTO;
	memcpy(&w, payload, sizeof(w));
	o->error = le32toh(w.error);
	if (o->error > 4095)
		return cause_set(cause, cause_len, EPROTO, "RESULT: error %u",
				 o->error);
	if (!get_text(o->cause, w.cause, sizeof(w.cause)))
		return cause_set(cause, cause_len, EPROTO,
				 "RESULT: text without an end");
	return 0;
}

size_t msg_empty_write(void *buf, enum msg_type type)
{
	return message(buf, type, 0, "", 0);
}

int msg_empty_read(size_t len, char *cause, size_t cause_len)
{
	return check_len(len, 0, "an empty message", cause, cause_len);
}

const char *purpose_name(enum purpose purpose)
{
	switch (purpose) {
	case PURPOSE_CONTROL:
		return "control";
	case PURPOSE_KNOCK:
		return "knock";
	case PURPOSE_LINK:
		return "link";
	case PURPOSE_JOB:
		return "job";
	}
	return "unknown";
}
