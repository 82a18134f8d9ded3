// SPDX-License-Identifier: GPL-2.0
/*
 * Orders of /proc/mattx/admin. They are requests of root like those of mattxctl, and
 * run as such; only numbers are understood in another way, see below, because the
 * scripts that write there know nodes and processes by them.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "admin.h"
#include "command.h"
#include "control.h"
#include "kernel.h"
#include "log.h"
#include "peer.h"

struct order {
	uint32_t number;
	int pid; /* as it was written */
};

static void answered(int error, const char *cause, void *arg)
{
	struct order *o = arg;

	if (error)
		log_info("PID %d: /proc/mattx/admin: refused: %s", o->pid, cause);
	kernel_admin_done(o->number, error);
	free(o);
}

/* A node by its name or its number in decimal. Return: NULL when there is none. */
static struct peer *find_node(const char *text)
{
	struct peer *peer = peer_by_name(text);
	unsigned long long id;
	char *end;

	if (peer || !isdigit((unsigned char)text[0]))
		return peer;
	errno = 0;
	id = strtoull(text, &end, 10);
	return *end || errno || id > UINT32_MAX ? NULL : peer_by_id(id);
}

struct search {
	int tgid;
	uint32_t home; /* 0: any */
	int pid;       /* found */
	unsigned int n;
};

static void match_guest(const struct kernel_gang *gang, void *arg)
{
	struct search *s = arg;

	if (gang->role != MATTX_ROLE_HOST || gang->state != MATTX_GANG_GUEST ||
	    gang->tgid != s->tgid || (s->home && gang->node != s->home))
		return;
	s->pid = gang->pid;
	s->n++;
}

/*
 * A script that has moved process 1234 to this node and wants it back from here
 * writes that number, under which only its home knows it. It is meant when no process
 * here has the number, exactly one guest has, and it is to go to its home.
 */
static int find_process(int pid, uint32_t verb, const char *node)
{
	struct search s = { .tgid = pid };
	struct peer *peer;

	if (!kill(pid, 0) || errno != ESRCH)
		return pid;
	if (verb == MATTX_ADMIN_MIGRATE && strcmp(node, "home")) {
		peer = find_node(node);
		if (!peer)
			return pid;
		s.home = peer_info(peer)->id;
	}
	if (kernel_gangs(match_guest, &s) || s.n != 1)
		return pid;
	return s.pid;
}

static struct json_object *request(uint32_t verb, int pid, const char *node)
{
	struct json_object *request = json_object_new_object();
	struct peer *peer = find_node(node);

	json_object_object_add(request, "pid", json_object_new_int64(pid));
	json_object_object_add(
		request, "request",
		json_object_new_string(verb == MATTX_ADMIN_MIGRATE ? "migrate" :
								     "expel"));
	if (verb == MATTX_ADMIN_MIGRATE)
		json_object_object_add(
			request, "node",
			json_object_new_string(peer ? peer_info(peer)->name :
						      node));
	return request;
}

void admin_order(uint32_t number, uint32_t verb, int pid, const char *node)
{
	struct order *o = calloc(1, sizeof(*o));
	struct json_object *what;
	struct client *client;

	client = o ? client_inside(answered, o) : NULL;
	if (!client) {
		free(o);
		kernel_admin_done(number, ENOMEM);
		return;
	}
	o->number = number;
	o->pid = pid;
	if (verb != MATTX_ADMIN_MIGRATE && verb != MATTX_ADMIN_EXPEL) {
		client_error(client, pid, NULL, EINVAL, "unknown order");
		return;
	}
	what = request(verb, find_process(pid, verb, node), node);
	command(client, what);
	json_object_put(what);
}
