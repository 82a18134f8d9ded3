/* SPDX-License-Identifier: GPL-2.0 */
/* What stands in the way of a process's move. */
#ifndef MATTXD_CHECK_H
#define MATTXD_CHECK_H

#include "job.h"
#include "maps.h"

/**
 * check_process() - would job->pid move, as far as it can be seen from outside?
 * Return: 0; a negative errno after job_fail() with the first obstacle.
 */
int check_process(struct job *job);

/* The same about the two nodes: job->self and job->node. */
int check_nodes(struct job *job);

/* The same about mappings only. For a frozen process. */
int check_maps(struct job *job, const struct maps *maps);

#endif
