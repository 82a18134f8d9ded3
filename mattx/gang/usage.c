// SPDX-License-Identifier: GPL-2.0
/*
 * What threads have used: CPU time, faults, switches.
 *
 * It counts from a thread's beginning wherever it runs, because a move takes it along.
 * When a guest or a thread of it ends away, its deputy takes what it used over, for
 * the parent to see.
 */
#include <linux/sched/cputime.h>
#include <linux/sched/signal.h>
#include "internal.h"

/**
 * mattx_usage_add() - add what a thread has used
 * Context: any.
 */
void mattx_usage_add(struct mattx_usage *sum, const struct task_struct *task)
{
	sum->utime += task->utime;
	sum->stime += task->stime;
	sum->exec += task->se.sum_exec_runtime;
	sum->min_flt += task->min_flt;
	sum->maj_flt += task->maj_flt;
	sum->nvcsw += task->nvcsw;
	sum->nivcsw += task->nivcsw;
}

/**
 * mattx_usage_ended() - add what the threads of a process that have ended used
 * Context: siglock of the process is held.
 */
void mattx_usage_ended(struct mattx_usage *sum, const struct signal_struct *signal)
{
	sum->utime += signal->utime;
	sum->stime += signal->stime;
	sum->exec += signal->sum_sched_runtime;
	sum->min_flt += signal->min_flt;
	sum->maj_flt += signal->maj_flt;
	sum->nvcsw += signal->nvcsw;
	sum->nivcsw += signal->nivcsw;
}

/**
 * mattx_usage_process() - what current's process has used
 * Context: process.
 */
void mattx_usage_process(struct mattx_usage *sum)
{
	struct task_struct *t;

	spin_lock_irq(&mattx_sighand(current)->siglock);
	mattx_usage_ended(sum, current->signal);
	for_each_thread(current, t)
		mattx_usage_add(sum, t);
	spin_unlock_irq(&mattx_sighand(current)->siglock);
}

/* The counter of one thread when all are to have @to, and the others have @others. */
static u64 raised(u64 counter, u64 to, u64 others)
{
	return to > others ? max(counter, to - others) : counter;
}

/**
 * mattx_usage_raise() - let current have used what @others have not of @to
 * Context: process. Nothing is lowered.
 */
void mattx_usage_raise(const struct mattx_usage *to,
		       const struct mattx_usage *others)
{
	unsigned long flags;

	/* the scheduler adds to these, on this CPU */
	local_irq_save(flags);
	current->utime = raised(current->utime, to->utime, others->utime);
	current->stime = raised(current->stime, to->stime, others->stime);
	current->se.sum_exec_runtime =
		raised(current->se.sum_exec_runtime, to->exec, others->exec);
	current->min_flt = raised(current->min_flt, to->min_flt, others->min_flt);
	current->maj_flt = raised(current->maj_flt, to->maj_flt, others->maj_flt);
	current->nvcsw = raised(current->nvcsw, to->nvcsw, others->nvcsw);
	current->nivcsw = raised(current->nivcsw, to->nivcsw, others->nivcsw);
	local_irq_restore(flags);
}

/**
 * mattx_usage_pack() - as it is in a frame
 * Context: any.
 */
void mattx_usage_pack(const struct mattx_usage *usage, __le64 *frame)
{
	frame[0] = cpu_to_le64(usage->utime);
	frame[1] = cpu_to_le64(usage->stime);
	frame[2] = cpu_to_le64(usage->exec);
	frame[3] = cpu_to_le64(usage->min_flt);
	frame[4] = cpu_to_le64(usage->maj_flt);
	frame[5] = cpu_to_le64(usage->nvcsw);
	frame[6] = cpu_to_le64(usage->nivcsw);
}

/* As a peer may claim it: less than some centuries, so that no sum overflows. */
static u64 sane(__le64 counter)
{
	return min_t(u64, le64_to_cpu(counter), S64_MAX);
}

/**
 * mattx_usage_unpack() - out of a frame
 * Context: any.
 */
void mattx_usage_unpack(struct mattx_usage *usage, const __le64 *frame)
{
	usage->utime = sane(frame[0]);
	usage->stime = sane(frame[1]);
	usage->exec = sane(frame[2]);
	usage->min_flt = sane(frame[3]);
	usage->maj_flt = sane(frame[4]);
	usage->nvcsw = sane(frame[5]);
	usage->nivcsw = sane(frame[6]);
}
