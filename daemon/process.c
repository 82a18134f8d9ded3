// SPDX-License-Identifier: GPL-2.0
/* What /proc tells about a process, without mistaking one for another. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "log.h"
#include "process.h"

static int read_status(pid_t pid, struct process *p)
{
	char path[64], line[256];
	int seen = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	while (seen != 3 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Name: %31[^\n]", p->comm) == 1)
			text_clean(p->comm);
		if (sscanf(line, "Tgid: %d", &p->tgid) == 1)
			seen |= 1;
		if (sscanf(line, "Uid: %u", &p->uid) == 1)
			seen |= 2;
	}
	fclose(f);
	return seen == 3 ? 0 : -ESRCH;
}

int process_open(pid_t pid, struct process *p, char *cause, size_t cause_len)
{
	struct pollfd poll_fd = { .events = POLLIN };
	int ret;

	memset(p, 0, sizeof(*p));
	p->pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (p->pidfd < 0) {
		/* the kernel has no pidfd for a thread that leads no process */
		ret = -errno;
		if ((ret == -EINVAL || ret == -ENOENT) &&
		    !read_status(pid, p) && p->tgid != pid)
			return cause_set(cause, cause_len, EINVAL,
					 "is a thread of process %d", p->tgid);
		if (ret == -ESRCH || ret == -EINVAL || ret == -ENOENT)
			return cause_set(cause, cause_len, ESRCH,
					 "no such process");
		return cause_set(cause, cause_len, ret, "%s", strerror(-ret));
	}
	poll_fd.fd = p->pidfd;
	if (read_status(pid, p) || poll(&poll_fd, 1, 0) != 0) {
		close(p->pidfd);
		p->pidfd = -1;
		return cause_set(cause, cause_len, ESRCH, "no such process");
	}
	if (p->tgid != pid) {
		close(p->pidfd);
		p->pidfd = -1;
		return cause_set(cause, cause_len, EINVAL,
				 "is a thread of process %d", p->tgid);
	}
	return 0;
}
