/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cases: behaviours that others lost when they moved a process, each of them
 * a function. It brings about a state, calls moved(), in which the process is
 * moved in that state, and checks what must have been kept.
 *
 *	cases [-n MOVES] [-p PROGRESS] CASE [GO]
 *
 * The number of the move that is waited for stands in PROGRESS; that of the last
 * one that was made is read from GO. Without GO nothing is moved and nothing is
 * waited for.
 */
#ifndef CASES_H
#define CASES_H

#include "lib.h"

/**
 * moved() - the state is there: move the process now
 * Return: whether there will be another move.
 */
bool moved(void);

/* How long this process was seen to stand still, in all; the moves are in it. */
extern uint64_t stood_still_ns;

/* Waits until *count is at least that; says "what" did not come after 60 s. */
bool wait_count(const volatile int *count, int least, const char *what);

/* Until *word is that value, however long that takes. */
static inline void wait_told(const volatile int *word, int value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		sleep_ms(5);
}

#define start_thread(thread, function, arg) \
	check_eq(pthread_create(thread, NULL, function, arg), 0)

/* Such a child has ended with that status. */
void check_exit(pid_t pid, int want);

/* The next path of a file of the case, which is gone when it ends. */
const char *case_file(const char *name);

#define CASES(X) \
	X(A01, timerfd_pending_tick) \
	X(A02, oneshot_itimer) \
	X(A03, timerfd_absolute_nsec) \
	X(A04, two_clock_paths) \
	X(A05, fixed_rate_scheduler) \
	X(A06, rseq_follows_cpu) \
	X(A06s, rseq_section_aborted) \
	X(A07, lock_before_unlock_after) \
	X(A08, sigev_thread_later) \
	X(A09, timer_to_leader) \
	X(A10, epoll_listener) \
	X(A11, epoll_two_names) \
	X(A12, epoll_after_fork) \
	X(A14, eintr_budget) \
	X(A16, zombie_status) \
	X(A17, stopped_child) \
	X(A18, empty_pipe_size) \
	X(A19, fd_in_flight) \
	X(A20, unaccepted_with_data) \
	X(A21, fork_advice) \
	X(A22, big_reservation) \
	X(A23, mapped_deleted_file) \
	X(A23m, mapped_deleted_file_moves) \
	X(A23s, mapped_deleted_file_shared) \
	X(A24, exactly_once_output) \
	X(A25, vdso_in_flight) \
	X(A26, proc_self_fd) \
	X(A28, no_false_owner_death) \
	X(A28m, no_false_owner_death_moves) \
	X(A28s, no_false_owner_death_shared) \
	X(A29, inotify_quiet) \
	X(A30, clean_refusals) \
	X(A31, ppoll_mask) \
	X(A32, join_across) \
	X(A33, fork_with_pool) \
	X(A34, shared_epoll_waiters) \
	X(A35, restart_keeps_wake)

#define DECLARE_CASE(number, name) void number##_##name(void);
CASES(DECLARE_CASE)

#endif
