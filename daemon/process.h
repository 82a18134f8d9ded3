/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_PROCESS_H
#define MATTXD_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

struct process {
	pid_t tgid;
	uid_t uid; /* real */
	char comm[32];
	int pidfd; /* the caller's */
};

/**
 * process_open() - hold a process and learn whose it is
 * The pidfd is taken first and asked last, so what was read in between is of the
 * process that it holds. Return: 0, or a negative errno with @cause; no pidfd then.
 */
int process_open(pid_t pid, struct process *process, char *cause,
		 size_t cause_len);

#endif
