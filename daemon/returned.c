// SPDX-License-Identifier: GPL-2.0
/* Processes of this node that came home by themselves. */
#include <ctype.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "returned.h"

struct entry {
	struct entry *next;
	struct returned one;
	int pidfd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *first; /* under lock */

static bool has_ended(const struct entry *e)
{
	struct pollfd pfd = { .fd = e->pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) != 0;
}

/* Forgets @pid and whoever has ended; lock is held. */
static void forget(pid_t pid)
{
	struct entry **at = &first, *e;

	while ((e = *at)) {
		if (e->one.pid != pid && !has_ended(e)) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		close(e->pidfd);
		free(e);
	}
}

static void printable(char *to, const char *from)
{
	size_t i;

	snprintf(to, RETURNED_TEXT, "%s", from);
	for (i = 0; to[i]; i++)
		if (!isprint((unsigned char)to[i]))
			to[i] = '?';
}

void returned_add(pid_t pid, int pidfd, const char *node, const char *why)
{
	struct entry *e = calloc(1, sizeof(*e)), **at;

	if (!e) {
		close(pidfd);
		return;
	}
	e->pidfd = pidfd;
	e->one.pid = pid;
	e->one.when = time(NULL);
	printable(e->one.node, node);
	printable(e->one.why, why);
	pthread_mutex_lock(&lock);
	forget(pid);
	for (at = &first; *at; at = &(*at)->next)
		;
	*at = e;
	pthread_mutex_unlock(&lock);
}

void returned_drop(pid_t pid)
{
	pthread_mutex_lock(&lock);
	forget(pid);
	pthread_mutex_unlock(&lock);
}

void returned_each(void (*fn)(const struct returned *one, void *arg), void *arg)
{
	struct entry *e;

	pthread_mutex_lock(&lock);
	forget(0);
	for (e = first; e; e = e->next)
		fn(&e->one, arg);
	pthread_mutex_unlock(&lock);
}
