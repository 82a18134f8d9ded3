// SPDX-License-Identifier: GPL-2.0
/*
 * Guests that are to dump core.
 *
 * The core belongs at home, made of the real memory, so a guest goes home to die.
 * Where the kernel has decided which signal a thread takes next, the tracepoint
 * signal_deliver lets us see it under siglock, just before the action is looked
 * at. If it is the default action of a signal that dumps core, we make the action
 * SIG_IGN for that look, and queue a work that puts SIG_DFL back, keeps the
 * thread in the park and asks to go home. There the signal is queued again, with
 * its siginfo, and has its default effect. If the gang cannot go home it is thawed,
 * and the signal is queued here and has it here, without a core.
 *
 * (Dumping cannot be diverted at do_coredump(): from there the only way is to
 * die, and a thread in the park must be able to make calls.)
 */
#include <linux/module.h>
#include <linux/sched/signal.h>
#include "internal.h"
#include "../compat.h"
#include "../main.h"

/* Context: the tracepoint; siglock is held, IRQs are off. current takes @sig. */
void mattx_core_deliver(void *data, int sig, struct kernel_siginfo *info,
			struct k_sigaction *ka)
{
	struct mattx_thread *thread = mattx_thread_find(current);

	if (thread)
		mattx_vdso_signal(thread);
	if (thread)
		mattx_vdso_hold(thread, sig, info, ka);
	if (!sig_kernel_coredump(sig) || ka->sa.sa_handler != SIG_DFL)
		return;
	if (mattx_caller(&thread) != MATTX_IS_GUEST)
		return;
	if (thread->gang->lender) { /* it cannot go home, and leaves no core here */
		current->signal->rlim[RLIMIT_CORE].rlim_cur = 0;
		return;
	}
	if (thread->gang->silent || test_bit(MATTX_T_LAST, &thread->flags) ||
	    test_and_set_bit(MATTX_T_FATAL, &thread->flags))
		return;
	thread->fatal = *info;
	mattx_thread_hold(thread);
	if (task_work_add(current, &thread->fatal_work, TWA_SIGNAL)) {
		mattx_thread_put(thread);
		return;
	}
	ka->sa.sa_handler = SIG_IGN;
}

/* Context: the thread itself, at the boundary to user mode. */
void mattx_core_work(struct callback_head *work)
{
	struct mattx_thread *thread =
		container_of(work, struct mattx_thread, fatal_work);
	int sig = thread->fatal.si_signo;
	struct k_sigaction *ka = &mattx_sighand(current)->action[sig - 1];
	char cause[48];

	spin_lock_irq(&mattx_sighand(current)->siglock);
	if (ka->sa.sa_handler == SIG_IGN)
		ka->sa.sa_handler = SIG_DFL;
	spin_unlock_irq(&mattx_sighand(current)->siglock);
	if (!(current->flags & PF_EXITING)) {
		snprintf(cause, sizeof(cause), "signal %d dumps core", sig);
		mattx_gang_ask_home(thread->gang, MATTX_NO_CALL, cause);
		mattx_park(thread);
	}
	mattx_thread_put(thread);
}

/**
 * mattx_core_stay() - the gang could not go home: the thread dies of its signal here
 * Context: the thread itself, about to leave the park, everything blocked.
 */
void mattx_core_stay(struct mattx_thread *thread)
{
	current->signal->rlim[RLIMIT_CORE].rlim_cur = 0;
	set_bit(MATTX_T_LAST, &thread->flags);
	clear_bit(MATTX_T_FATAL, &thread->flags);
	send_sig_info(thread->fatal.si_signo, &thread->fatal, current);
}
