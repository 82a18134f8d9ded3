// SPDX-License-Identifier: GPL-2.0
/*
 * The control socket. Everybody may connect; what a client may do is decided by
 * the user id that the kernel tells. A client that is slow, silent or greedy
 * costs one small buffer until its time is over.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <json-c/json.h>

#include "command.h"
#include "control.h"
#include "log.h"
#include "mattxd.h"

#define REQUEST_MAX	 4096 /* bytes of a request line */
#define JSON_DEPTH	 8
#define REQUEST_S	 10 /* to send the request */
#define WRITE_S		 10 /* to read something of the replies */
#define CLIENTS_PER_USER 32 /* root: no limit but descriptors */

struct client {
	struct client *next;
	struct bufferevent *bev; /* NULL: client_inside() */
	uid_t uid;
	bool asked; /* its request was read */
	bool last;  /* its last reply is in the buffer */
	void (*gone)(void *arg);
	void *arg;
	/* of client_inside() */
	void (*end)(int error, const char *cause, void *arg);
	void *end_arg;
};

static struct client *clients;
static struct event *listener, *wakeup;
static int listener_fd = -1;
static char *socket_path;

uid_t client_uid(const struct client *client)
{
	return client->uid;
}

static void client_free(struct client *client)
{
	struct client **at;

	for (at = &clients; *at != client; at = &(*at)->next)
		;
	*at = client->next;
	if (client->gone)
		client->gone(client->arg);
	if (client->bev)
		bufferevent_free(client->bev);
	free(client);
}

void client_waits(struct client *client, void (*gone)(void *arg), void *arg)
{
	client->gone = gone;
	client->arg = arg;
}

void client_send(struct client *client, const char *key,
		 struct json_object *value, bool droppable)
{
	struct json_object *line;
	struct evbuffer *out;

	out = client->bev ? bufferevent_get_output(client->bev) : NULL;
	if (!out || client->last || (droppable && evbuffer_get_length(out))) {
		json_object_put(value);
		return;
	}
	line = json_object_new_object();
	if (!line || json_object_object_add(line, key, value)) {
		json_object_put(value);
		json_object_put(line);
		return;
	}
	evbuffer_add_printf(
		out, "%s\n",
		json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
	json_object_put(line);
}

static void client_last(struct client *client, const char *key,
			struct json_object *value)
{
	client->gone = NULL;
	client_send(client, key, value ? value : json_object_new_object(), false);
	client->last = true;
}

/* ------------------------------------------------------- clients inside */

static void free_later(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	client_free(arg);
}

/* Whoever has said the last word may still look at the client. */
static void inside_last(struct client *client, int error, const char *cause)
{
	struct timeval now = { 0 };

	client->gone = NULL;
	client->last = true;
	client->end(error, cause, client->end_arg);
	event_base_once(self.base, -1, EV_TIMEOUT, free_later, client, &now);
}

struct client *client_inside(void (*end)(int error, const char *cause, void *arg),
			     void *arg)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->asked = true;
	client->end = end;
	client->end_arg = arg;
	client->next = clients;
	clients = client;
	return client;
}

/* ---------------------------------------------------------- the last word */

void client_ok(struct client *client, struct json_object *result)
{
	if (client->bev) {
		client_last(client, "ok", result);
		return;
	}
	json_object_put(result);
	inside_last(client, 0, "");
}

void client_error(struct client *client, pid_t pid, const char *node, int error,
		  const char *fmt, ...)
{
	struct json_object *value;
	char cause[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, sizeof(cause), fmt, ap);
	va_end(ap);
	text_clean(cause);
	if (!client->bev) {
		inside_last(client, error, cause);
		return;
	}
	value = json_object_new_object();
	if (pid)
		json_object_object_add(value, "pid", json_object_new_int64(pid));
	if (node && node[0])
		json_object_object_add(value, "node",
				       json_object_new_string(node));
	json_object_object_add(value, "errno", json_object_new_int(error));
	json_object_object_add(value, "cause", json_object_new_string(cause));
	client_last(client, "error", value);
}

/* ------------------------------------------------------------- requests */

static void request_line(struct client *client, const char *text, size_t len)
{
	struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH);
	struct json_object *request = NULL;

	client->asked = true;
	if (tok) {
		json_tokener_set_flags(tok, JSON_TOKENER_STRICT |
						    JSON_TOKENER_VALIDATE_UTF8);
		request = json_tokener_parse_ex(tok, text, len);
		if (json_tokener_get_error(tok) != json_tokener_success ||
		    json_tokener_get_parse_end(tok) != len) {
			json_object_put(request);
			request = NULL;
		}
		json_tokener_free(tok);
	}
	if (!json_object_is_type(request, json_type_object))
		client_error(client, 0, NULL, EINVAL,
			     "the request is no JSON object");
	else
		command(client, request);
	json_object_put(request);
}

static void client_writable(struct bufferevent *bev, void *arg)
{
	struct client *client = arg;

	/* called when the output buffer has run empty */
	(void)bev;
	if (client->last)
		client_free(client);
}

static void client_readable(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct timeval write_time = { .tv_sec = WRITE_S };
	struct client *client = arg;
	char *line;
	size_t len;

	if (client->asked) {
		/* more than one request: not answered, not kept */
		evbuffer_drain(in, evbuffer_get_length(in));
		return;
	}
	line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);
	if (!line && evbuffer_get_length(in) < REQUEST_MAX)
		return;
	bufferevent_set_timeouts(bev, NULL, &write_time);
	if (!line) {
		client->asked = true;
		client_error(client, 0, NULL, EMSGSIZE,
			     "the request is longer than %d bytes", REQUEST_MAX);
	} else {
		request_line(client, line, len);
	}
	free(line);
}

static void client_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *client = arg;

	(void)bev;
	/* half closed after the request is how a simple client may ask */
	if ((what & BEV_EVENT_EOF) && client->asked)
		return;
	client_free(client);
}

/* -------------------------------------------------------------- listener */

static unsigned int clients_of(uid_t uid)
{
	unsigned int n = 0;
	struct client *c;

	for (c = clients; c; c = c->next)
		n += c->uid == uid;
	return n;
}

static void client_new(int fd)
{
	struct timeval read_time = { .tv_sec = REQUEST_S };
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct client *client;

	client = calloc(1, sizeof(*client));
	if (!client || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    (cred.uid && clients_of(cred.uid) >= CLIENTS_PER_USER))
		goto failed;
	client->uid = cred.uid;
	client->bev =
		bufferevent_socket_new(self.base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!client->bev)
		goto failed;
	client->next = clients;
	clients = client;
	bufferevent_setcb(client->bev, client_readable, client_writable,
			  client_event, client);
	bufferevent_setwatermark(client->bev, EV_READ, 0, REQUEST_MAX);
	bufferevent_set_timeouts(client->bev, &read_time, NULL);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
	return;
failed:
	free(client);
	close(fd);
}

static void wake_up(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	event_add(listener, NULL);
}

static void listener_readable(evutil_socket_t fd, short what, void *arg)
{
	struct timeval pause = { .tv_usec = 100000 };
	int client;

	(void)what;
	(void)arg;
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client >= 0) {
		client_new(client);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		   errno == ENOBUFS) {
		event_del(listener);
		evtimer_add(wakeup, &pause);
	}
}

/* Is a daemon listening there, or is the name a relic? */
static bool in_use(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool used;

	used = fd >= 0 &&
	       connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0;
	if (fd >= 0)
		close(fd);
	return used;
}

int control_init(const char *path, char *cause, size_t cause_len)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path))
		return cause_set(cause, cause_len, ENAMETOOLONG,
				 "%s: name too long", path);
	strcpy(addr.sun_path, path);
	if (in_use(&addr))
		return cause_set(cause, cause_len, EADDRINUSE,
				 "%s: a mattxd is running", path);
	unlink(path);
	listener_fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener_fd < 0 ||
	    bind(listener_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    chmod(path, 0666) || listen(listener_fd, 128))
		return cause_set(cause, cause_len, errno, "%s: %m", path);
	socket_path = strdup(path);
	listener = event_new(self.base, listener_fd, EV_READ | EV_PERSIST,
			     listener_readable, NULL);
	wakeup = evtimer_new(self.base, wake_up, NULL);
	if (!socket_path || !listener || !wakeup || event_add(listener, NULL))
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	return 0;
}

void control_exit(void)
{
	while (clients)
		client_free(clients);
	if (listener)
		event_free(listener);
	if (wakeup)
		event_free(wakeup);
	if (listener_fd >= 0)
		close(listener_fd);
	if (socket_path)
		unlink(socket_path);
	free(socket_path);
	listener = wakeup = NULL;
	socket_path = NULL;
	listener_fd = -1;
}
