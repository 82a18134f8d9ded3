// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: their threads, who waits for them, which processes are busy.
 *
 * A job's thread and the main loop share: the note queue below, the progress
 * (job_private.lock), the table of what is busy (jobs_lock) and the cancel flag.
 * Everything else of a job belongs to its thread until it has queued its END
 * note, and to the main loop from then on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "config.h"
#include "conn.h"
#include "fault.h"
#include "job_main.h"
#include "kernel.h"
#include "log.h"
#include "mattxd.h"
#include "peer.h"

#define PROGRESS_MS 200 /* at most one note in this time */

struct job_private {
	struct job job;
	struct job_private *next; /* in jobs, under jobs_lock */
	pthread_t thread;
	struct job_watch watch; /* main loop; .end NULL: nobody */
	atomic_bool cancelled;

	pid_t busy_pid; /* under jobs_lock */
	uint64_t busy_gang;

	pthread_mutex_t lock; /* what follows */
	struct progress progress;
	int64_t told_at; /* when a PROGRESS note was queued */
	bool told;	 /* and it was not taken yet */
};

enum note_kind {
	NOTE_PROGRESS,
	NOTE_OBSTACLE,
	NOTE_CHILD,
	NOTE_END,
};

/* From a job's thread to the main loop. */
struct note {
	struct note *next;
	enum note_kind kind;
	struct job_private *priv;
	pid_t child;
	int pidfd;
	char text[JOB_CAUSE_MAX];
};

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct job_private *jobs;

static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct note *first_note, **last_note = &first_note;
static int notes_fd = -1;
static struct event *notes_event;

static struct job_counts counts; /* main loop */

/* Who waits for the end of a JOB_SERVE. Main loop. */
struct settler {
	struct settler *next;
	pid_t pid;
	uint64_t gang;
	void (*fn)(void *arg);
	void *arg;
};

static struct settler *settlers;
static void settle(void);

/* ------------------------------------------------- weak: no migration yet */

int __attribute__((weak)) mattx_migrate_out(struct job *job)
{
	return job_fail(job, ENOSYS, "this daemon was built without migration");
}

int __attribute__((weak)) mattx_migrate_home(struct job *job)
{
	return job_fail(job, ENOSYS, "this daemon was built without migration");
}

void __attribute__((weak)) mattx_job_serve(struct job *job)
{
	job_fail(job, ENOSYS, "this daemon was built without migration");
}

int __attribute__((weak)) mattx_migrate_check(struct job *job)
{
	return job_fail(job, ENOSYS, "this daemon was built without migration");
}

/* ------------------------------------------------------------------ notes */

static void queue_note(struct note *note)
{
	uint64_t one = 1;

	pthread_mutex_lock(&notes_lock);
	note->next = NULL;
	*last_note = note;
	last_note = &note->next;
	pthread_mutex_unlock(&notes_lock);
	if (write(notes_fd, &one, sizeof(one)) < 0)
		log_err("eventfd: %m");
}

static struct note *new_note(struct job_private *priv, enum note_kind kind)
{
	struct note *note = calloc(1, sizeof(*note));

	if (note) {
		note->priv = priv;
		note->kind = kind;
		note->pidfd = -1;
	}
	return note;
}

/* ------------------------------------------- for the job's own thread: job.h */

int job_fail(struct job *job, int error, const char *fmt, ...)
{
	va_list ap;

	error = abs(error);
	if (job->result)
		return -error;
	job->result = error ? error : EIO;
	va_start(ap, fmt);
	vsnprintf(job->cause, sizeof(job->cause), fmt, ap);
	va_end(ap);
	text_clean(job->cause);
	return -job->result;
}

void job_obstacle(struct job *job, const char *fmt, ...)
{
	struct note *note = new_note(job->priv, NOTE_OBSTACLE);
	va_list ap;

	if (!note) {
		job_fail(job, ENOMEM, "out of memory");
		return;
	}
	va_start(ap, fmt);
	vsnprintf(note->text, sizeof(note->text), fmt, ap);
	va_end(ap);
	text_clean(note->text);
	queue_note(note);
}

void job_progress(struct job *job, const char *phase, uint64_t done,
		  uint64_t total)
{
	struct job_private *priv = job->priv;
	int64_t now = now_ms();
	struct note *note;
	bool tell;

	pthread_mutex_lock(&priv->lock);
	tell = !priv->told && (now - priv->told_at >= PROGRESS_MS ||
			       strcmp(priv->progress.phase, phase));
	priv->progress.done = done;
	priv->progress.total = total;
	snprintf(priv->progress.phase, sizeof(priv->progress.phase), "%s", phase);
	if (tell) {
		priv->told = true;
		priv->told_at = now;
	}
	pthread_mutex_unlock(&priv->lock);
	if (!tell)
		return;
	note = new_note(priv, NOTE_PROGRESS);
	if (note)
		queue_note(note);
}

/* Another job that has it? Under jobs_lock. */
static bool taken(const struct job_private *me, pid_t pid, uint64_t gang)
{
	const struct job_private *p;

	for (p = jobs; p; p = p->next) {
		if (p == me || p->job.kind == JOB_CHECK)
			continue;
		if ((pid && p->busy_pid == pid) || (gang && p->busy_gang == gang))
			return true;
	}
	return false;
}

int job_claim(struct job *job, pid_t pid, uint64_t gang)
{
	struct job_private *priv = job->priv;
	bool busy;

	pthread_mutex_lock(&jobs_lock);
	busy = taken(priv, pid, gang);
	if (!busy) {
		if (pid)
			priv->busy_pid = job->pid = pid;
		if (gang)
			priv->busy_gang = job->gang = gang;
	}
	pthread_mutex_unlock(&jobs_lock);
	if (busy)
		return job_fail(job, EALREADY, "is already on its way");
	return 0;
}

bool job_alive(struct job *job)
{
	struct pollfd p = { .fd = job->pidfd, .events = POLLIN };

	return job->pidfd < 0 || poll(&p, 1, 0) == 0;
}

bool job_cancelled(struct job *job)
{
	return atomic_load(&job->priv->cancelled);
}

int job_adopt(struct job *job, pid_t child)
{
	struct note *note;
	int fd;

	fd = syscall(SYS_pidfd_open, child, 0);
	if (fd < 0)
		return -errno;
	note = new_note(job->priv, NOTE_CHILD);
	if (!note) {
		close(fd);
		return -ENOMEM;
	}
	note->child = child;
	note->pidfd = fd;
	queue_note(note);
	return 0;
}

static void say(struct job *job, int level, const char *text)
{
	if (job->pid)
		log_line(level, "PID %d: %s: %s", job->pid,
			 job->node.name[0] ? job->node.name : "no node", text);
	else
		log_line(level, "node %s: %s", job->node.name, text);
}

void job_say(struct job *job, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say(job, LOG_INFO, text);
}

int job_connect(struct job *job)
{
	struct job_private *priv = job->priv;
	struct hello hello = {
		.version_min = MSG_VERSION_MIN,
		.version_max = MSG_VERSION_MAX,
		.purpose = PURPOSE_JOB,
		.from = job->self.id,
		.to = job->node.id,
		.instance = job->self.instance,
		.known = job->node.instance,
		.daemon = self.nonce,
	};
	struct conn *conn;
	int ret;

	snprintf(hello.name, sizeof(hello.name), "%s", job->self.name);
	facts_now(&hello.facts);
	conn = conn_client((struct sockaddr *)&job->node.addr,
			   job->node.addr_len, &hello);
	if (!conn)
		return job_fail(job, ENOMEM,
				"no connection: out of memory or sockets");
	ret = conn_run(conn, self.ending_fd);
	if (!ret && conn->theirs.instance != job->node.instance)
		ret = cause_set(conn->cause, sizeof(conn->cause), ESTALE,
				"was started anew meanwhile");
	if (ret) {
		job_fail(job, ret, "%s", conn->cause);
		conn_free(conn);
		return ret;
	}
	job->node.facts = conn->theirs.facts;
	/* jobs_exit() shuts it down if it comes by */
	pthread_mutex_lock(&priv->lock);
	job->sock = conn_take(conn, true);
	pthread_mutex_unlock(&priv->lock);
	conn_free(conn);
	if (job_cancelled(job))
		return job_fail(job, ECANCELED, "this daemon ends");
	return 0;
}

/* --------------------------------------------------------------- threads */

static void run(struct job *job)
{
	int ret = 0;

	switch (job->kind) {
	case JOB_OUT:
		ret = mattx_migrate_out(job);
		break;
	case JOB_HOME:
		ret = mattx_migrate_home(job);
		break;
	case JOB_SERVE:
		mattx_job_serve(job);
		break;
	case JOB_CHECK:
		ret = mattx_migrate_check(job);
		break;
	}
	if (ret && !job->result)
		job_fail(job, ret, "%s", strerror(abs(ret)));
}

static void *job_thread(void *arg)
{
	struct note *end = arg;

	run(&end->priv->job);
	queue_note(end);
	return NULL;
}

/*
 * The END note is allocated before the thread, so that a job cannot end without
 * one. Signals are the main thread's.
 */
static int start_thread(struct job_private *priv)
{
	struct note *end = new_note(priv, NOTE_END);
	sigset_t all, old;
	int ret;

	if (!end)
		return ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = daemon_fault(FAULT_JOB_START) ?
		      EAGAIN :
		      pthread_create(&priv->thread, NULL, job_thread, end);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		free(end);
	return ret;
}

/* Close what is a job's. Its thread has ended, or never began. */
static void job_free(struct job_private *priv)
{
	struct job_private **at;

	pthread_mutex_lock(&jobs_lock);
	for (at = &jobs; *at; at = &(*at)->next) {
		if (*at == priv) {
			*at = priv->next;
			break;
		}
	}
	pthread_mutex_unlock(&jobs_lock);
	if (priv->job.sock >= 0)
		close(priv->job.sock);
	if (priv->job.pidfd >= 0)
		close(priv->job.pidfd);
	pthread_mutex_destroy(&priv->lock);
	free(priv);
}

static void log_end(struct job *job)
{
	static const char *const done[] = {
		[JOB_OUT] = "has moved there",
		[JOB_HOME] = "has gone home",
		[JOB_SERVE] = "served",
	};
	char text[JOB_CAUSE_MAX + 64];

	if (job->kind == JOB_CHECK)
		return;
	if (!job->result) {
		counts.done++;
		say(job, job->kind == JOB_SERVE ? LOG_DEBUG : LOG_INFO,
		    done[job->kind]);
		return;
	}
	counts.failed++;
	snprintf(text, sizeof(text), "%s: %s",
		 job->kind == JOB_OUT  ? "has not moved" :
		 job->kind == JOB_HOME ? "has not gone home" :
					 "job",
		 job->cause);
	say(job, LOG_WARNING, text);
}

static void job_end(struct job_private *priv)
{
	pthread_join(priv->thread, NULL);
	counts.running--;
	log_end(&priv->job);
	/* it is not busy any more when its watcher hears of it */
	pthread_mutex_lock(&jobs_lock);
	priv->busy_pid = 0;
	priv->busy_gang = 0;
	pthread_mutex_unlock(&jobs_lock);
	if (priv->watch.end)
		priv->watch.end(&priv->job, priv->watch.arg);
	job_free(priv);
	settle();
}

/* -------------------------------------------------------------- main loop */

struct orphan {
	pid_t pid;
	int pidfd;
	struct event *event;
};

static void orphan_ended(evutil_socket_t fd, short what, void *arg)
{
	struct orphan *o = arg;

	(void)what;
	if (waitpid(o->pid, NULL, WNOHANG) == 0)
		return;
	event_free(o->event);
	close(fd);
	free(o);
}

static void adopt(pid_t pid, int pidfd)
{
	struct orphan *o = calloc(1, sizeof(*o));

	if (o) {
		o->pid = pid;
		o->event = event_new(self.base, pidfd, EV_READ | EV_PERSIST,
				     orphan_ended, o);
		if (o->event && !event_add(o->event, NULL))
			return;
		free(o);
	}
	log_err("child %d: out of memory, it stays a zombie", pid);
	close(pidfd);
}

static void tell_progress(struct job_private *priv)
{
	struct progress progress;

	pthread_mutex_lock(&priv->lock);
	progress = priv->progress;
	priv->told = false;
	pthread_mutex_unlock(&priv->lock);
	if (priv->watch.progress)
		priv->watch.progress(&priv->job, &progress, priv->watch.arg);
}

static void take_note(struct note *note)
{
	struct job_private *priv = note->priv;

	switch (note->kind) {
	case NOTE_PROGRESS:
		tell_progress(priv);
		break;
	case NOTE_OBSTACLE:
		if (priv->watch.obstacle)
			priv->watch.obstacle(&priv->job, note->text,
					     priv->watch.arg);
		break;
	case NOTE_CHILD:
		adopt(note->child, note->pidfd);
		break;
	case NOTE_END:
		job_end(priv);
		break;
	}
}

static void take_notes(void)
{
	struct note *list, *note;

	pthread_mutex_lock(&notes_lock);
	list = first_note;
	first_note = NULL;
	last_note = &first_note;
	pthread_mutex_unlock(&notes_lock);
	while ((note = list)) {
		list = note->next;
		take_note(note);
		free(note);
	}
}

static void notes_readable(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;

	(void)what;
	(void)arg;
	if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_err("eventfd: %m");
	take_notes();
}

int jobs_init(char *cause, size_t cause_len)
{
	notes_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (notes_fd < 0)
		return cause_set(cause, cause_len, errno, "eventfd: %m");
	notes_event = event_new(self.base, notes_fd, EV_READ | EV_PERSIST,
				notes_readable, NULL);
	if (!notes_event || event_add(notes_event, NULL))
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	return 0;
}

static void cancel_all(void)
{
	struct job_private *p;

	pthread_mutex_lock(&jobs_lock);
	for (p = jobs; p; p = p->next) {
		atomic_store(&p->cancelled, true);
		pthread_mutex_lock(&p->lock);
		if (p->job.sock >= 0)
			shutdown(p->job.sock, SHUT_RDWR);
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&jobs_lock);
}

void jobs_exit(int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	struct pollfd p = { .fd = notes_fd, .events = POLLIN };

	if (notes_fd < 0)
		return;
	cancel_all();
	take_notes();
	while (jobs && now_ms() < end) {
		if (poll(&p, 1, end - now_ms()) > 0)
			notes_readable(notes_fd, 0, NULL);
	}
	if (jobs)
		log_warn("a migration did not end in time; the kernel puts it right");
	event_free(notes_event);
	notes_event = NULL;
}

static struct job_private *job_new(enum job_kind kind, struct peer *peer)
{
	struct job_private *priv = calloc(1, sizeof(*priv));
	struct job *job;

	if (!priv)
		return NULL;
	job = &priv->job;
	job->priv = priv;
	job->kind = kind;
	job->sock = -1;
	job->pidfd = -1;
	job->reason = -1;
	job->verbose = self.verbose;
	pthread_mutex_init(&priv->lock, NULL);
	snprintf(job->self.name, sizeof(job->self.name), "%s", self.config->name);
	job->self.id = self.config->id;
	job->self.instance = self.instance;
	facts_now(&job->self.facts);
	if (peer)
		job->node = *peer_info(peer);
	return priv;
}

/* Put it among the others, unless one of them has its process, and run it. */
static int enlist(struct job_private *priv, char *cause, size_t cause_len)
{
	struct job *job = &priv->job;
	int ret;

	pthread_mutex_lock(&jobs_lock);
	if (job->kind != JOB_CHECK) {
		if (taken(NULL, job->pid, job->gang)) {
			pthread_mutex_unlock(&jobs_lock);
			return cause_set(cause, cause_len, EALREADY,
					 "is already on its way");
		}
		priv->busy_pid = job->pid;
		priv->busy_gang = job->gang;
	}
	priv->next = jobs;
	jobs = priv;
	pthread_mutex_unlock(&jobs_lock);
	ret = start_thread(priv);
	if (ret)
		return cause_set(cause, cause_len, ret, "no thread for it: %s",
				 strerror(ret));
	counts.running++;
	counts.started++;
	return 0;
}

struct job *job_start(const struct job_order *order,
		      const struct job_watch *watch, int *error, char *cause,
		      size_t cause_len)
{
	struct job_private *priv = job_new(order->kind, order->peer);
	int ret;

	if (!priv) {
		if (order->pidfd >= 0)
			close(order->pidfd);
		*error = -cause_set(cause, cause_len, ENOMEM, "out of memory");
		return NULL;
	}
	priv->job.pid = order->pid;
	priv->job.pidfd = order->pidfd;
	priv->job.gang = order->gang;
	priv->job.uid = order->uid;
	priv->job.reason = order->reason;
	if (order->reason_name)
		snprintf(priv->job.reason_name, sizeof(priv->job.reason_name),
			 "%s", order->reason_name);
	if (watch)
		priv->watch = *watch;
	ret = enlist(priv, cause, cause_len);
	if (ret) {
		*error = -ret;
		job_free(priv);
		return NULL;
	}
	return &priv->job;
}

void job_unwatch(struct job *job)
{
	memset(&job->priv->watch, 0, sizeof(job->priv->watch));
}

void job_serve(struct peer *peer, struct conn *conn)
{
	struct job_private *priv = job_new(JOB_SERVE, peer);
	char cause[CONN_CAUSE_MAX] = "out of memory";

	if (priv) {
		priv->job.node.facts = conn->theirs.facts;
		priv->job.node.instance = conn->theirs.instance;
		priv->job.sock = conn_take(conn, true);
	}
	conn_free(conn);
	if (!priv || enlist(priv, cause, sizeof(cause))) {
		log_err("node %s: job: %s", peer_info(peer)->name, cause);
		if (priv)
			job_free(priv);
	}
}

bool job_busy(pid_t pid, uint64_t gang)
{
	bool busy;

	pthread_mutex_lock(&jobs_lock);
	busy = taken(NULL, pid, gang);
	pthread_mutex_unlock(&jobs_lock);
	return busy;
}

void jobs_count(struct job_counts *out)
{
	*out = counts;
}

/* --------------------------------------------------------------- settling */

static bool served(pid_t pid, uint64_t gang)
{
	const struct job_private *p;
	bool found = false;

	pthread_mutex_lock(&jobs_lock);
	for (p = jobs; p && !found; p = p->next)
		found = p->job.kind == JOB_SERVE &&
			((pid && p->busy_pid == pid) ||
			 (gang && p->busy_gang == gang));
	pthread_mutex_unlock(&jobs_lock);
	return found;
}

void job_settle(pid_t pid, uint64_t gang, void (*fn)(void *arg), void *arg)
{
	struct settler *s;

	s = served(pid, gang) ? calloc(1, sizeof(*s)) : NULL;
	if (!s) {
		fn(arg);
		return;
	}
	*s = (struct settler){
		.next = settlers, .pid = pid, .gang = gang, .fn = fn, .arg = arg
	};
	settlers = s;
}

/* A job has ended. */
static void settle(void)
{
	struct settler **at = &settlers, *s, *ready = NULL;

	while ((s = *at)) {
		if (served(s->pid, s->gang)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		s->next = ready;
		ready = s;
	}
	while ((s = ready)) {
		ready = s->next;
		s->fn(s->arg);
		free(s);
	}
}

/* ------------------------------------ HOME, asked for by the owner's daemon */

struct asked {
	uint32_t node, id;
	uint64_t serial, gang;
};

static void asked_progress(struct job *job, const struct progress *progress,
			   void *arg)
{
	struct asked *a = arg;

	(void)job;
	peer_answer_progress(a->node, a->serial, a->id, progress);
}

static void asked_end(struct job *job, void *arg)
{
	struct asked *a = arg;

	peer_answer(a->node, a->serial, a->id, job->result, job->cause);
	free(a);
}

static void asked_start(void *arg)
{
	struct asked *a = arg;
	struct job_watch watch = { .progress = asked_progress,
				   .end = asked_end,
				   .arg = a };
	struct job_order order = {
		.kind = JOB_HOME,
		.pidfd = -1,
		.gang = a->gang,
		.peer = peer_by_id(a->node),
		.reason = -1,
	};
	char cause[CONN_CAUSE_MAX] = "is no guest there (any more)";
	struct kernel_gang info;
	struct job *job = NULL;
	int error = ESRCH;

	if (order.peer && !kernel_gang_find(MATTX_ROLE_HOST, a->gang, 0, &info) &&
	    info.node == a->node) {
		order.pid = info.pid;
		job = job_start(&order, &watch, &error, cause, sizeof(cause));
	}
	if (job)
		return;
	peer_answer(a->node, a->serial, a->id, error, cause);
	free(a);
}

void job_home_asked(uint32_t node, uint64_t serial, uint32_t id, uint64_t gang)
{
	struct kernel_gang info;
	struct asked *a;

	a = calloc(1, sizeof(*a));
	if (!a) {
		peer_answer(node, serial, id, ENOMEM, "out of memory there");
		return;
	}
	*a = (struct asked){
		.node = node, .id = id, .serial = serial, .gang = gang
	};
	if (!kernel_gang_find(MATTX_ROLE_HOST, gang, 0, &info) &&
	    info.state == MATTX_GANG_GUEST)
		job_settle(info.pid, gang, asked_start, a);
	else
		asked_start(a);
}
