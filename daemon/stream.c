// SPDX-License-Identifier: GPL-2.0
/* Messages between the two daemons of a migration: sent, received, bounded. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "stream.h"

static int take_fail(struct job *job, const struct stream_head *head)
{
	char text[JOB_CAUSE_MAX];
	size_t len = head->len, i;

	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	for (i = 0; i < len;) {
		ssize_t n = recv(job->sock, text + i, len - i, 0);

		if (n <= 0)
			break;
		i += n;
	}
	text[i] = 0;
	for (i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	if (!head->arg || head->arg > 4095)
		return job_fail(job, EPROTO, "%s",
				i ? text : "gave up without a cause");
	return job_fail(job, head->arg, "%s", text);
}

static int lost(struct job *job, int error)
{
	if (job_cancelled(job))
		return job_fail(job, ESHUTDOWN, "mattxd is ending");
	if (!error)
		return job_fail(job, ECONNRESET,
				"the connection was closed by the other side");
	return job_fail(job, error, "the connection broke: %s", strerror(error));
}

int stream_bad(struct job *job, const char *what)
{
	return job_fail(job, EPROTO, "the other side sent %s", what);
}

int stream_fault(struct job *job, int point)
{
	if (!daemon_fault(point))
		return 0;
	return job_fail(job, EIO, "fault point %d", point);
}

int stream_read(struct job *job, void *buf, size_t len)
{
	while (len) {
		ssize_t n = recv(job->sock, buf, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return lost(job, n ? errno : 0);
		buf = (char *)buf + n;
		len -= n;
	}
	return 0;
}

int stream_head(struct job *job, struct stream_head *head)
{
	int ret = stream_read(job, head, sizeof(*head));

	if (ret)
		return ret;
	if (head->zero)
		return stream_bad(job, "a damaged message");
	if (head->type == STREAM_FAIL)
		return take_fail(job, head);
	return 0;
}

/* The connection cannot be written to: perhaps because the other side said why it left. */
static int send_failed(struct job *job, int error)
{
	struct pollfd pfd = { .fd = job->sock, .events = POLLIN };
	struct stream_head head;

	while (poll(&pfd, 1, 0) == 1 && pfd.revents & POLLIN) {
		ssize_t n = recv(job->sock, &head, sizeof(head), MSG_WAITALL);

		if (n != sizeof(head))
			break;
		if (head.type == STREAM_FAIL)
			return take_fail(job, &head);
		if (head.len)
			break;
	}
	return lost(job, error);
}

int stream_poll(struct job *job)
{
	struct pollfd pfd = { .fd = job->sock, .events = POLLIN };
	struct stream_head head;
	ssize_t n;

	if (job_cancelled(job))
		return lost(job, 0);
	if (poll(&pfd, 1, 0) != 1)
		return 0;
	n = recv(job->sock, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return lost(job, n ? errno : 0);
	if (n < (ssize_t)sizeof(head) || head.type != STREAM_FAIL)
		return 0;
	return stream_head(job, &head);
}

int stream_sendv(struct job *job, uint32_t type, uint64_t arg,
		 struct iovec *iov, int n)
{
	struct stream_head head = { .type = type, .arg = arg };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	/* after pages there is always more, so they need not go in packets of their own */
	int flags = MSG_NOSIGNAL | (type == STREAM_PAGES ? MSG_MORE : 0), i;

	for (i = 1; i < n; i++)
		head.len += iov[i].iov_len;
	iov[0] = (struct iovec){ .iov_base = &head, .iov_len = sizeof(head) };
	while (msg.msg_iovlen) {
		ssize_t done = sendmsg(job->sock, &msg, flags);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return send_failed(job, errno);
		while (msg.msg_iovlen && (size_t)done >= msg.msg_iov->iov_len) {
			done -= msg.msg_iov->iov_len;
			msg.msg_iov++;
			msg.msg_iovlen--;
		}
		if (done) {
			msg.msg_iov->iov_base =
				(char *)msg.msg_iov->iov_base + done;
			msg.msg_iov->iov_len -= done;
		}
	}
	return 0;
}

int stream_send(struct job *job, uint32_t type, uint64_t arg, const void *buf,
		size_t len)
{
	struct iovec iov[2] = {
		[1] = { .iov_base = (void *)buf, .iov_len = len },
	};

	return stream_sendv(job, type, arg, iov, len ? 2 : 1);
}

void stream_tell(struct job *job, uint32_t type)
{
	struct stream_head head = { .type = type };

	if (send(job->sock, &head, sizeof(head), MSG_NOSIGNAL) < 0)
		job_say(job, "the other daemon has gone");
}

void *stream_payload(struct job *job, const struct stream_head *head,
		     size_t min, size_t unit, size_t max)
{
	char *buf;

	if (head->len < min || head->len > max ||
	    (unit ? (head->len - min) % unit != 0 : head->len != min)) {
		stream_bad(job, "a message of a wrong length");
		return NULL;
	}
	buf = malloc(head->len + 1);
	if (!buf) {
		job_fail(job, ENOMEM, "out of memory");
		return NULL;
	}
	if (stream_read(job, buf, head->len)) {
		free(buf);
		return NULL;
	}
	buf[head->len] = 0;
	return buf;
}

int stream_expect(struct job *job, uint32_t type)
{
	struct stream_head head;
	int ret = stream_head(job, &head);

	if (ret)
		return ret;
	if (head.type != type || head.len)
		return stream_bad(job, "an unexpected message");
	return 0;
}

void stream_send_fail(struct job *job)
{
	struct stream_head head = { .type = STREAM_FAIL,
				    .arg = job->result ? job->result : EIO,
				    .len = strlen(job->cause) };
	char buf[65536];
	struct timespec now, end;

	if (job->sock < 0)
		return;
	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), job->cause, head.len);
	if (send(job->sock, buf, sizeof(head) + head.len,
		 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
	shutdown(job->sock, SHUT_WR);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 5;
	for (;;) {
		struct pollfd pfd = { .fd = job->sock, .events = POLLIN };

		if (poll(&pfd, 1, 1000) > 0 &&
		    recv(job->sock, buf, sizeof(buf), 0) <= 0)
			return;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= end.tv_sec)
			return;
	}
}
