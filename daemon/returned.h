/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes of this node that came home by themselves, and why: for "mattxctl ps".
 * Kept until they end or leave again. All functions may be called in any thread.
 */
#ifndef RETURNED_H
#define RETURNED_H

#include <sys/types.h>
#include <time.h>

#define RETURNED_TEXT 64

struct returned {
	pid_t pid;
	char node[RETURNED_TEXT]; /* where it was */
	char why[RETURNED_TEXT];
	time_t when;
};

/**
 * returned_add() - a process has come home by itself
 * @pidfd: taken over
 * @why: as a peer says it; what cannot be printed is replaced
 */
void returned_add(pid_t pid, int pidfd, const char *node, const char *why);

/* It leaves again. */
void returned_drop(pid_t pid);

/* Those that are alive, oldest first. */
void returned_each(void (*fn)(const struct returned *one, void *arg), void *arg);

#endif
