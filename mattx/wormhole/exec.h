/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_EXEC_H
#define _MATTX_EXEC_H

#include <linux/types.h>

struct mattx_job;
struct mattx_thread;

/* Home's side of an EXEC, for serve.c. */

/* Is this the payload of an EXEC? */
bool mattx_exec_valid(const void *payload, size_t len);

/**
 * mattx_exec_start() - lay out the call that a valid EXEC asks for
 * Context: the job's start in the deputy's thread. Return: 0; -ERESTARTNOINTR: the guest has
 * not seen all signals yet; -EBUSY: its shared memory is away; -ENOMEM, -EFAULT.
 */
int mattx_exec_start(struct mattx_thread *thread, struct mattx_job *job,
		     const void *payload, size_t len);

/**
 * mattx_exec_done() - current is the new program: it inherits what the guest had
 * Context: the tracepoint sched_process_exec.
 */
void mattx_exec_done(struct mattx_thread *thread, const void *payload);

#endif
