/* SPDX-License-Identifier: GPL-2.0 */
/* What a frozen process is, beside its memory: read and sent. */
#ifndef MATTXD_CAPTURE_H
#define MATTXD_CAPTURE_H

#include "restore.h"

/* All: Return: 0, or a negative errno after job_fail(). */

/* The process itself. @point: fault point, 0: none */
int capture_process(struct body *body, int point);

/* Every thread, the leader first, then the pending signals. */
int capture_threads(struct body *body, int thread_point, int signal_point);

/* Obstacles that only the process itself can tell. */
int capture_check(struct body *body);

#endif
