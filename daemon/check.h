/* SPDX-License-Identifier: GPL-2.0 */
/* What stands in the way of a process's move. */
#ifndef MATTXD_CHECK_H
#define MATTXD_CHECK_H

#include "job.h"

/**
 * check_process() - would job->pid move, as far as it can be seen from outside?
 * @frozen: it stands still, and check_guard() will follow
 * Return: 0; a negative errno after job_fail() with the first obstacle.
 */
int check_process(struct job *job, bool frozen);

/* The same about the two nodes: job->self and job->node. */
int check_nodes(struct job *job);

/**
 * check_guard() - nobody else reaches its shared memory, nor will before it is back
 * @handle: of the frozen process
 * Return: as all.
 */
int check_guard(struct job *job, int handle);

#endif
