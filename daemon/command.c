// SPDX-License-Identifier: GPL-2.0
/* What a client of the control socket may ask for. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "command.h"
#include "config.h"
#include "conn.h"
#include "control.h"
#include "fault.h"
#include "homing.h"
#include "job_main.h"
#include "kernel.h"
#include "log.h"
#include "mattxd.h"
#include "peer.h"
#include "process.h"
#include "returned.h"

/*
 * What was asked for and takes time: a way out, a way home, or both one after
 * the other. Lives until its last job or request to another daemon has ended; the
 * client may go earlier. One of several when everything is expelled.
 */
struct order {
	struct client *client; /* NULL: gone, or never was */
	struct group *group;   /* expel --all, or NULL */
	pid_t pid;
	uid_t uid;
	char where[MATTX_NAME_MAX]; /* the node that the current step is about */
	char then[MATTX_NAME_MAX];  /* after the way home: on to that node */
	struct job_order next; /* the job to start; its pidfd is the order's till then */
};

struct group {
	struct client *client;
	unsigned int left, failed, done;
};

/* --------------------------------------------------------- JSON, fields */

static struct json_object *text(const char *s)
{
	return json_object_new_string(s);
}

static struct json_object *number(uint64_t n)
{
	return json_object_new_uint64(n);
}

static void put(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

/* Return: NULL when it is not there or no string. */
static const char *get_text(struct json_object *request, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(request, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	return json_object_get_string(value);
}

/* Return: -1 when it is not there or no number from 0 to @max. */
static int64_t get_number(struct json_object *request, const char *key,
			  int64_t max)
{
	struct json_object *value;
	int64_t n;

	if (!json_object_object_get_ex(request, key, &value) ||
	    !json_object_is_type(value, json_type_int))
		return -1;
	n = json_object_get_int64(value);
	return n < 0 || n > max ? -1 : n;
}

static bool get_flag(struct json_object *request, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(request, key, &value) &&
	       json_object_is_type(value, json_type_boolean) &&
	       json_object_get_boolean(value);
}

/* ---------------------------------------------------------------- nodes */

static void put_load(struct json_object *to, uint32_t cpus, uint32_t load,
		     uint64_t total, uint64_t available)
{
	put(to, "cpus", number(cpus));
	put(to, "load", json_object_new_double(load / 100.0));
	put(to, "memory", number(total));
	put(to, "available", number(available));
}

static struct json_object *node_json(const struct peer *peer)
{
	const struct node_info *info = peer_info(peer);
	struct json_object *node = json_object_new_object();
	const struct ping *ping = peer_load(peer);
	bool local = peer_is_self(peer);
	char address[ADDR_TEXT], id[16];
	struct facts now;

	snprintf(id, sizeof(id), "%08x", info->id);
	put(node, "name", text(info->name));
	put(node, "id", text(id));
	put(node, "address", text(addr_text(&info->addr, address)));
	put(node, "state",
	    text(local	       ? "local" :
		 peer_up(peer) ? "up" :
				 "down"));
	if (local) {
		facts_now(&now);
		put(node, "kernel", text(now.release));
		put_load(node, now.cpus, now.load, now.mem_total,
			 now.mem_available);
		return node;
	}
	put(node, "daemon", json_object_new_boolean(peer_control_up(peer)));
	put(node, "link", json_object_new_boolean(peer_link_up(peer)));
	if (info->facts.release[0]) {
		put(node, "kernel", text(info->facts.release));
		put_load(node, ping->cpus, ping->load, ping->mem_total,
			 ping->mem_available);
	}
	if (!peer_up(peer) && peer_cause(peer)[0])
		put(node, "cause", text(peer_cause(peer)));
	return node;
}

static void command_nodes(struct client *client, struct json_object *request)
{
	struct json_object *nodes = json_object_new_array(),
			   *result = json_object_new_object();
	struct peer *peer;

	(void)request;
	peers_look();
	for (peer = peer_next(NULL); peer; peer = peer_next(peer))
		json_object_array_add(nodes, node_json(peer));
	put(result, "nodes", nodes);
	client_ok(client, result);
}

/* ------------------------------------------------------------------- ps */

struct ps {
	struct json_object *out, *in;
	bool threads;
	double boot; /* CLOCK_REALTIME - CLOCK_BOOTTIME, s */
};

static const char *state_name(uint32_t state)
{
	static const char *const names[] = {
		[MATTX_GANG_FREEZING] = "freezing",
		[MATTX_GANG_FROZEN] = "frozen",
		[MATTX_GANG_COMMITTING] = "committing",
		[MATTX_GANG_DEPUTY] = "deputy",
		[MATTX_GANG_BODY] = "body",
		[MATTX_GANG_ARMED] = "armed",
		[MATTX_GANG_GUEST] = "guest",
		[MATTX_GANG_DEAD] = "dead",
	};

	if (state >= sizeof(names) / sizeof(names[0]) || !names[state])
		return "unknown";
	return names[state];
}

static void put_thread(uint32_t tid, const char *state, void *arg)
{
	struct json_object *thread = json_object_new_object();

	put(thread, "tid", number(tid));
	put(thread, "state", text(state));
	json_object_array_add(arg, thread);
}

static struct json_object *reason_json(const struct kernel_gang *gang)
{
	const char *name = syscall_name(gang->reason);
	char number[32];

	if (gang->cause[0])
		return text(gang->cause);
	if (gang->reason < 0)
		return NULL;
	if (name)
		return text(name);
	snprintf(number, sizeof(number), "system call %d", gang->reason);
	return text(number);
}

static void put_gang(const struct kernel_gang *gang, void *arg)
{
	struct json_object *entry = json_object_new_object(), *threads;
	struct ps *ps = arg;

	put(entry, "pid", number(gang->pid));
	put(entry, "node", text(peer_name_of(gang->node)));
	put(entry, "threads", number(gang->threads));
	put(entry, "comm", text(gang->comm));
	put(entry, "uid", number(gang->uid));
	put(entry, "state", text(state_name(gang->state)));
	put(entry, "calls", number(gang->calls));
	put(entry, "since",
	    json_object_new_double(gang->since ? ps->boot + gang->since / 1e9 :
						 0));
	put(entry, "reason", reason_json(gang));
	put(entry, "moving",
	    json_object_new_boolean(job_busy(gang->pid, gang->id)));
	if (gang->role == MATTX_ROLE_HOST)
		put(entry, "home_pid", number(gang->tgid));
	if (ps->threads) {
		threads = json_object_new_array();
		kernel_threads(gang->id, gang->role, put_thread, threads);
		put(entry, "thread", threads);
	}
	json_object_array_add(gang->role == MATTX_ROLE_HOME ? ps->out : ps->in,
			      entry);
}

struct gang_list {
	struct kernel_gang *gangs;
	size_t n;
};

static void keep_gang(const struct kernel_gang *gang, void *arg)
{
	struct gang_list *list = arg;
	struct kernel_gang *more;

	if (gang->state == MATTX_GANG_DEAD)
		return;
	more = reallocarray(list->gangs, list->n + 1, sizeof(*more));
	if (!more)
		return;
	list->gangs = more;
	more[list->n++] = *gang;
}

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void put_returned(const struct returned *one, void *arg)
{
	struct json_object *entry = json_object_new_object();

	put(entry, "pid", number(one->pid));
	put(entry, "node", text(one->node));
	put(entry, "reason", text(one->why));
	put(entry, "since", number(one->when));
	json_object_array_add(arg, entry);
}

static struct json_object *returned_list(void)
{
	struct json_object *list = json_object_new_array();

	returned_each(put_returned, list);
	return list;
}

static void command_ps(struct client *client, struct json_object *request)
{
	struct json_object *result = json_object_new_object();
	struct gang_list list = { 0 };
	struct ps ps = {
		.out = json_object_new_array(),
		.in = json_object_new_array(),
		.threads = get_flag(request, "threads"),
		.boot = clock_s(CLOCK_REALTIME) - clock_s(CLOCK_BOOTTIME),
	};
	size_t i;
	int ret;

	/* first all gangs, then the threads of each: two dumps do not mix */
	ret = kernel_gangs(keep_gang, &list);
	for (i = 0; i < list.n; i++)
		put_gang(&list.gangs[i], &ps);
	free(list.gangs);
	put(result, "out", ps.out);
	put(result, "in", ps.in);
	put(result, "home", returned_list());
	if (!ret) {
		client_ok(client, result);
		return;
	}
	json_object_put(result);
	client_error(client, 0, NULL, -ret, "module: %s", strerror(-ret));
}

/* --------------------------------------------------------------- orders */

static void order_gone(void *arg)
{
	struct order *o = arg;

	o->client = NULL;
}

static void group_gone(void *arg)
{
	struct group *g = arg;

	g->client = NULL;
}

static struct order *order_new(struct client *client, pid_t pid,
			       struct group *group)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->pid = pid;
	o->uid = client_uid(client);
	o->group = group;
	if (group) {
		group->left++;
	} else {
		o->client = client;
		client_waits(client, order_gone, o);
	}
	return o;
}

static struct json_object *failure_json(pid_t pid, const char *node, int error,
					const char *cause)
{
	struct json_object *value = json_object_new_object();

	put(value, "pid", number(pid));
	put(value, "node", text(node));
	put(value, "errno", number(error));
	put(value, "cause", text(cause));
	return value;
}

/* One of several has ended; the last one tells the sum. */
static void group_end(struct group *g, const struct order *o, int error,
		      const char *cause)
{
	struct json_object *value;

	if (error)
		g->failed++;
	else
		g->done++;
	if (g->client && error)
		client_send(g->client, "failed",
			    failure_json(o->pid, o->where, error, cause), false);
	if (--g->left)
		return;
	if (g->client && g->failed) {
		client_error(g->client, 0, NULL, EIO, "%u of %u did not go home",
			     g->failed, g->failed + g->done);
	} else if (g->client) {
		value = json_object_new_object();
		put(value, "expelled", number(g->done));
		client_ok(g->client, value);
	}
	free(g);
}

static void order_end(struct order *o, int error, const char *cause)
{
	struct json_object *value;

	if (o->group) {
		group_end(o->group, o, error, cause);
	} else if (o->client && error) {
		client_error(o->client, o->pid, o->where, error, "%s", cause);
	} else if (o->client) {
		value = json_object_new_object();
		put(value, "pid", number(o->pid));
		put(value, "node", text(o->where));
		client_ok(o->client, value);
	}
	free(o);
}

static void order_progress(struct order *o, const struct progress *progress)
{
	struct json_object *value;

	if (!o->client)
		return;
	value = json_object_new_object();
	put(value, "pid", number(o->pid));
	put(value, "node", text(o->where));
	put(value, "phase", text(progress->phase));
	put(value, "done", number(progress->done));
	put(value, "total", number(progress->total));
	client_send(o->client, "progress", value, true);
}

static void job_progressed(struct job *job, const struct progress *progress,
			   void *arg)
{
	(void)job;
	order_progress(arg, progress);
}

static void job_ended(struct job *job, void *arg)
{
	order_end(arg, job->result, job->cause);
}

static void order_start(void *arg)
{
	struct order *o = arg;
	struct job_watch watch = { .progress = job_progressed,
				   .end = job_ended,
				   .arg = o };
	char cause[CONN_CAUSE_MAX] = "";
	int error = EIO;

	if (!job_start(&o->next, &watch, &error, cause, sizeof(cause)))
		order_end(o, error, cause);
}

/*
 * Start a job for an order, which ends with it. @pidfd becomes the job's.
 * @settled: the process has arrived where it is; a job that puts things away after
 * that does not count as "on its way"
 */
static void order_job(struct order *o, enum job_kind kind, struct peer *peer,
		      int pidfd, uint64_t gang, bool settled)
{
	o->next = (struct job_order){
		.kind = kind,
		.pid = o->pid,
		.pidfd = pidfd,
		.gang = gang,
		.uid = o->uid,
		.peer = peer,
		.reason = -1,
	};
	snprintf(o->where, sizeof(o->where), "%s", peer_info(peer)->name);
	if (settled)
		job_settle(o->pid, gang, order_start, o);
	else
		order_start(o);
}

/* Return: true when @peer is a node to which a process can go now. */
static bool order_reachable(struct order *o, struct peer *peer)
{
	char cause[CONN_CAUSE_MAX + 32];

	if (peer_up(peer))
		return true;
	if (!peer_control_up(peer))
		snprintf(cause, sizeof(cause), "is down%s%s",
			 peer_cause(peer)[0] ? ": " : "", peer_cause(peer));
	else
		snprintf(cause, sizeof(cause), "has no link to this node yet");
	snprintf(o->where, sizeof(o->where), "%s", peer_info(peer)->name);
	order_end(o, EHOSTUNREACH, cause);
	return false;
}

/* The second half of a move from one host to another. */
static void order_on(struct order *o)
{
	struct peer *peer = peer_by_name(o->then);
	struct process process;
	char cause[CONN_CAUSE_MAX];
	int ret;

	if (!peer || !order_reachable(o, peer))
		return;
	ret = process_open(o->pid, &process, cause, sizeof(cause));
	if (ret)
		order_end(o, -ret, cause);
	else
		order_job(o, JOB_OUT, peer, process.pidfd, 0, true);
}

static void home_progressed(const struct progress *progress, void *arg)
{
	order_progress(arg, progress);
}

static void home_ended(int error, const char *cause, void *arg)
{
	struct order *o = arg;

	if (error) {
		order_end(o, error, cause);
		return;
	}
	log_info("PID %d: %s: has come home", o->pid, o->where);
	if (o->then[0]) {
		order_on(o);
		return;
	}
	snprintf(o->where, sizeof(o->where), "%s", self.config->name);
	order_end(o, 0, "");
}

/* ------------------------------------------------- migrate, home, expel */

/*
 * The process that a request is about, and the client's right to it.
 * Return: 0 with process->pidfd open, or a negative errno after client_error().
 */
static int get_process(struct client *client, struct json_object *request,
		       struct process *process)
{
	int64_t pid = get_number(request, "pid", INT_MAX);
	char cause[CONN_CAUSE_MAX];
	int ret;

	if (pid <= 0) {
		client_error(client, 0, NULL, EINVAL,
			     "pid: a number above 0 is expected");
		return -EINVAL;
	}
	ret = process_open(pid, process, cause, sizeof(cause));
	if (ret) {
		client_error(client, pid, NULL, -ret, "%s", cause);
		return ret;
	}
	if (client_uid(client) && client_uid(client) != process->uid) {
		close(process->pidfd);
		client_error(client, pid, NULL, EPERM, "belongs to another user");
		return -EPERM;
	}
	return 0;
}

/* Where a process is. */
struct whereabouts {
	bool out, in;
	struct kernel_gang gang; /* valid with either */
};

static int locate(struct client *client, pid_t pid, struct whereabouts *w)
{
	int ret;

	memset(w, 0, sizeof(*w));
	ret = kernel_gang_find(0, 0, pid, &w->gang);
	if (ret == -ENOENT)
		return 0;
	if (ret) {
		client_error(client, pid, NULL, -ret, "module: %s",
			     strerror(-ret));
		return ret;
	}
	w->out = w->gang.role == MATTX_ROLE_HOME && w->gang.node &&
		 (w->gang.state == MATTX_GANG_DEPUTY ||
		  w->gang.state == MATTX_GANG_COMMITTING);
	w->in = w->gang.role == MATTX_ROLE_HOST;
	return 0;
}

/* Bring back a process of ours, and perhaps send it on. */
static void start_return(struct client *client, pid_t pid,
			 const struct whereabouts *w, struct peer *then)
{
	struct peer *host = peer_by_id(w->gang.node);
	struct order *o = order_new(client, pid, NULL);
	struct home_watch watch = { .progress = home_progressed,
				    .end = home_ended,
				    .arg = o };

	if (!o) {
		client_error(client, pid, NULL, ENOMEM, "out of memory");
		return;
	}
	snprintf(o->where, sizeof(o->where), "%s", peer_name_of(w->gang.node));
	if (then)
		snprintf(o->then, sizeof(o->then), "%s", peer_info(then)->name);
	if (!host)
		order_end(o, ENOENT, "is not in the configuration any more");
	else if (job_busy(pid, w->gang.id))
		order_end(o, EALREADY, "is already on its way");
	else
		peer_ask_home(host, w->gang.id, &watch);
}

/* Send a guest home. */
static void start_expel(struct client *client, pid_t pid,
			const struct kernel_gang *gang, int pidfd,
			struct group *group)
{
	struct peer *home = peer_by_id(gang->node);
	struct order *o = order_new(client, pid, group);

	if (!o || !home) {
		if (pidfd >= 0)
			close(pidfd);
		if (o)
			order_end(o, ENOENT,
				  "its home is not in the configuration any more");
		else if (!group)
			client_error(client, pid, NULL, ENOMEM, "out of memory");
		return;
	}
	order_job(o, JOB_HOME, home, pidfd, gang->id,
		  gang->state == MATTX_GANG_GUEST);
}

static void start_out(struct client *client, pid_t pid, struct peer *peer,
		      int pidfd)
{
	struct order *o = order_new(client, pid, NULL);

	if (!o)
		client_error(client, pid, NULL, ENOMEM, "out of memory");
	if (o && order_reachable(o, peer))
		order_job(o, JOB_OUT, peer, pidfd, 0, true);
	else
		close(pidfd);
}

static void migrate_guest(struct client *client, pid_t pid,
			  const struct whereabouts *w, const char *node,
			  int pidfd)
{
	const char *home = peer_name_of(w->gang.node);

	if (!strcmp(node, "home") || !strcmp(node, home)) {
		start_expel(client, pid, &w->gang, pidfd, NULL);
		return;
	}
	close(pidfd);
	if (!strcmp(node, self.config->name))
		client_error(client, pid, node, EEXIST, "is here already");
	else
		client_error(client, pid, node, EINVAL,
			     "is a guest here: its home, %s, can send it on",
			     home);
}

static void migrate_away(struct client *client, pid_t pid,
			 const struct whereabouts *w, const char *node,
			 struct peer *peer)
{
	if (!strcmp(node, "home") || peer_is_self(peer))
		start_return(client, pid, w, NULL);
	else if (peer_info(peer)->id == w->gang.node)
		client_error(client, pid, node, EEXIST, "is there already");
	else if (!peer_up(peer))
		client_error(client, pid, node, EHOSTUNREACH, "is down%s%s",
			     peer_cause(peer)[0] ? ": " : "", peer_cause(peer));
	else
		start_return(client, pid, w, peer);
}

static void migrate(struct client *client, struct json_object *request,
		    const char *node)
{
	struct peer *peer = peer_by_name(node);
	struct whereabouts w;
	struct process p;

	if (!peer && strcmp(node, "home")) {
		client_error(client,
			     get_number(request, "pid", INT_MAX) > 0 ?
				     get_number(request, "pid", INT_MAX) :
				     0,
			     node, ENOENT, "is no node of this cluster");
		return;
	}
	if (get_process(client, request, &p))
		return;
	if (locate(client, p.tgid, &w)) {
		close(p.pidfd);
	} else if (w.in) {
		migrate_guest(client, p.tgid, &w, node, p.pidfd);
	} else if (w.out) {
		close(p.pidfd);
		migrate_away(client, p.tgid, &w, node, peer);
	} else if (!peer || peer_is_self(peer)) {
		close(p.pidfd);
		client_error(client, p.tgid, NULL, EEXIST, "is at home already");
	} else {
		start_out(client, p.tgid, peer, p.pidfd);
	}
}

static void command_migrate(struct client *client, struct json_object *request)
{
	const char *node = get_text(request, "node");

	if (!node)
		client_error(client, 0, NULL, EINVAL, "node: a name is expected");
	else
		migrate(client, request, node);
}

static void command_home(struct client *client, struct json_object *request)
{
	migrate(client, request, "home");
}

static bool is_guest(const struct kernel_gang *gang)
{
	return gang->role == MATTX_ROLE_HOST && gang->state == MATTX_GANG_GUEST;
}

static void expel_all(struct client *client)
{
	struct group *group = calloc(1, sizeof(*group));
	struct gang_list list = { 0 };
	struct process p;
	char cause[64];
	size_t i;

	if (!group || kernel_gangs(keep_gang, &list)) {
		free(group);
		free(list.gangs);
		client_error(client, 0, NULL, EIO,
			     "the module's guests cannot be listed");
		return;
	}
	group->client = client;
	group->left =
		1; /* ours, so that none of them is the last before all began */
	client_waits(client, group_gone, group);
	for (i = 0; i < list.n; i++) {
		if (!is_guest(&list.gangs[i]))
			continue;
		if (process_open(list.gangs[i].pid, &p, cause, sizeof(cause)))
			continue;
		if (client_uid(client) && client_uid(client) != p.uid)
			close(p.pidfd);
		else
			start_expel(client, p.tgid, &list.gangs[i], p.pidfd,
				    group);
	}
	free(list.gangs);
	group->done--; /* what group_end() adds for ours */
	group_end(group, NULL, 0, "");
}

static void command_expel(struct client *client, struct json_object *request)
{
	struct whereabouts w;
	struct process p;

	if (get_flag(request, "all")) {
		expel_all(client);
		return;
	}
	if (get_process(client, request, &p))
		return;
	if (locate(client, p.tgid, &w)) {
		close(p.pidfd);
	} else if (!w.in) {
		close(p.pidfd);
		client_error(client, p.tgid, NULL, ESRCH,
			     "is no guest of this node");
	} else {
		start_expel(client, p.tgid, &w.gang, p.pidfd, NULL);
	}
}

/* ---------------------------------------------------------------- check */

struct check {
	struct client *client;
	pid_t pid;
	char node[MATTX_NAME_MAX];
	unsigned int obstacles;
};

static void check_gone(void *arg)
{
	struct check *c = arg;

	c->client = NULL;
}

static void check_obstacle(struct job *job, const char *cause, void *arg)
{
	struct check *c = arg;
	struct json_object *value;

	(void)job;
	c->obstacles++;
	if (!c->client)
		return;
	value = json_object_new_object();
	put(value, "pid", number(c->pid));
	if (c->node[0])
		put(value, "node", text(c->node));
	put(value, "cause", text(cause));
	client_send(c->client, "obstacle", value, false);
}

static void check_end(struct job *job, void *arg)
{
	struct json_object *value;
	struct check *c = arg;

	if (c->client && job->result) {
		client_error(c->client, c->pid, c->node, job->result, "%s",
			     job->cause);
	} else if (c->client) {
		value = json_object_new_object();
		put(value, "pid", number(c->pid));
		if (c->node[0])
			put(value, "node", text(c->node));
		put(value, "obstacles", number(c->obstacles));
		client_ok(c->client, value);
	}
	free(c);
}

/* The only other node, for a check that names none. */
static struct peer *only_peer(void)
{
	struct peer *peer, *found = NULL;

	for (peer = peer_next(NULL); peer; peer = peer_next(peer)) {
		if (peer_is_self(peer))
			continue;
		if (found)
			return NULL;
		found = peer;
	}
	return found && peer_up(found) ? found : NULL;
}

static void start_check(struct client *client, const struct process *p,
			struct peer *peer)
{
	struct check *c = calloc(1, sizeof(*c));
	struct job_watch watch = { .obstacle = check_obstacle,
				   .end = check_end,
				   .arg = c };
	struct job_order order = {
		.kind = JOB_CHECK,
		.pid = p->tgid,
		.pidfd = p->pidfd,
		.uid = client_uid(client),
		.peer = peer,
		.reason = -1,
	};
	char cause[CONN_CAUSE_MAX] = "out of memory";
	int error = ENOMEM;

	if (!c) {
		close(p->pidfd);
		client_error(client, p->tgid, NULL, error, "%s", cause);
		return;
	}
	c->client = client;
	c->pid = p->tgid;
	if (peer)
		snprintf(c->node, sizeof(c->node), "%s", peer_info(peer)->name);
	client_waits(client, check_gone, c);
	if (!job_start(&order, &watch, &error, cause, sizeof(cause))) {
		client_error(client, p->tgid, c->node, error, "%s", cause);
		free(c);
	}
}

static void command_check(struct client *client, struct json_object *request)
{
	const char *node = get_text(request, "node");
	struct peer *peer = node ? peer_by_name(node) : only_peer();
	struct whereabouts w;
	struct process p;

	if (get_process(client, request, &p))
		return;
	if (locate(client, p.tgid, &w)) {
		close(p.pidfd);
		return;
	}
	if (node && !peer)
		client_error(client, p.tgid, node, ENOENT,
			     "is no node of this cluster");
	else if (peer && peer_is_self(peer))
		client_error(client, p.tgid, node, EEXIST, "is this node");
	else if (peer && !peer_up(peer))
		client_error(client, p.tgid, node, EHOSTUNREACH, "is down%s%s",
			     peer_cause(peer)[0] ? ": " : "", peer_cause(peer));
	else if (w.in)
		client_error(client, p.tgid, node, EINVAL, "is a guest here");
	else if (w.out)
		client_error(client, p.tgid, peer_name_of(w.gang.node), EEXIST,
			     "is away already");
	else
		return start_check(client, &p, peer);
	close(p.pidfd);
}

/* ------------------------------------------------- stats, forget, fault */

static void put_stat(const char *name, uint64_t value, void *arg)
{
	put(arg, name, number(value));
}

static void command_stats(struct client *client, struct json_object *request)
{
	struct json_object *stats = json_object_new_object(), *result;
	struct job_counts counts;
	int ret;

	(void)request;
	jobs_count(&counts);
	put(stats, "jobs.running", number(counts.running));
	put(stats, "jobs.started", number(counts.started));
	put(stats, "jobs.done", number(counts.done));
	put(stats, "jobs.failed", number(counts.failed));
	ret = kernel_stats(put_stat, stats);
	if (ret) {
		json_object_put(stats);
		client_error(client, 0, NULL, -ret, "module: %s", strerror(-ret));
		return;
	}
	result = json_object_new_object();
	put(result, "stats", stats);
	client_ok(client, result);
}

static bool need_root(struct client *client)
{
	if (!client_uid(client))
		return true;
	client_error(client, 0, NULL, EPERM, "only root may do that");
	return false;
}

static void command_forget(struct client *client, struct json_object *request)
{
	const char *node = get_text(request, "node");
	struct peer *peer = node ? peer_by_name(node) : NULL;
	char cause[CONN_CAUSE_MAX] = "";
	int ret;

	if (!need_root(client))
		return;
	if (!peer) {
		client_error(client, 0, node, ENOENT,
			     "is no node of this cluster");
		return;
	}
	ret = peer_forget(peer, cause, sizeof(cause));
	if (ret) {
		client_error(client, 0, node, -ret, "%s", cause);
		return;
	}
	log_warn("node %s: forgotten, by order", node);
	client_ok(client, NULL);
}

static void command_fault(struct client *client, struct json_object *request)
{
	int64_t point = get_number(request, "point", INT_MAX);
	int64_t count = get_number(request, "count", INT_MAX);
	char cause[CONN_CAUSE_MAX] = "there is no such fault point";
	int ret;

	if (!need_root(client))
		return;
	if (point < 0 || count < 0)
		ret = cause_set(cause, sizeof(cause), EINVAL,
				"point and count: numbers are expected");
	else if (point < MATTX_FAULT_DAEMON)
		ret = kernel_fault(point, count, cause, sizeof(cause));
	else
		ret = fault_set(point, count, get_flag(request, "kill"));
	if (ret)
		client_error(client, 0, NULL, -ret, "%s", cause);
	else
		client_ok(client, NULL);
}

void command(struct client *client, struct json_object *request)
{
	static const struct {
		const char *name;
		void (*run)(struct client *client, struct json_object *request);
	} commands[] = {
		{ "nodes", command_nodes },	{ "ps", command_ps },
		{ "migrate", command_migrate }, { "home", command_home },
		{ "expel", command_expel },	{ "check", command_check },
		{ "stats", command_stats },	{ "forget", command_forget },
		{ "fault", command_fault },
	};
	const char *name = get_text(request, "request");
	size_t i;

	for (i = 0; name && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(commands[i].name, name)) {
			commands[i].run(client, request);
			return;
		}
	}
	client_error(client, 0, NULL, EINVAL, "unknown request");
}
