/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the test programs share.
 *
 * Each of them works in rounds, checks itself in every round, and does not know
 * where it is. It prints "ready" when the first round begins, then nothing but
 * failures, and at the end one line; so its output is the same byte for byte
 * whether it was moved or not, and however many rounds it did.
 *
 *	PROGRAM [-n ROUNDS] [-p PROGRESS] [WORDS...]
 *
 * It ends after ROUNDS, or at SIGTERM. In PROGRESS it keeps the number of the
 * round, for scripts that wait for it to go on.
 */
#ifndef LIB_H
#define LIB_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* SIGTERM has come. */
extern volatile sig_atomic_t lib_stop;
extern unsigned long lib_rounds;

/**
 * lib_init() - take the options off argv
 * Return: index of the first word that is not one of them.
 */
int lib_init(const char *name, int argc, char **argv);

/**
 * lib_ready() - says so; to be called once, when rounds begin
 */
void lib_ready(void);

/**
 * lib_round() - a round has been done
 * Return: whether there shall be another.
 */
bool lib_round(void);

/**
 * lib_hold_term() - SIG_BLOCK: SIGTERM waits; SIG_UNBLOCK: no longer
 *
 * For programs whose checks it would interrupt. Threads that are created meanwhile never
 * get it.
 */
void lib_hold_term(int how);

/* What scripts see of the program; lib_round() does this too. */
void lib_progress(unsigned long n);

/* The last line; returns the exit status. */
int lib_end(void);

void lib_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define fail(...) lib_fail(__FILE__, __LINE__, __VA_ARGS__)

#define check(cond) \
	({ \
		bool ok_ = (cond); \
		if (!ok_) \
			fail("%s", #cond); \
		ok_; \
	})

#define check_eq(got, want) \
	({ \
		long long got_ = (long long)(got); \
		long long want_ = (long long)(want); \
		if (got_ != want_) \
			fail("%s is %lld, not %lld", #got, got_, want_); \
		got_ == want_; \
	})

/* A call that must not give -1. */
#define must(call) \
	({ \
		long ret_ = (long)(call); \
		if (ret_ == -1) \
			fail("%s: %s", #call, strerror(errno)); \
		ret_; \
	})

/* A call that must give -1 and that errno. */
#define must_fail(call, error) \
	({ \
		long ret_ = (long)(call); \
		if (ret_ != -1 || errno != (error)) \
			fail("%s gave %ld (%s), not %s", #call, ret_, \
			     ret_ == -1 ? strerror(errno) : "no error", \
			     strerror(error)); \
	})

uint64_t now_ns(clockid_t clock);

/* At least so long, whatever interrupts it. */
void sleep_ms(unsigned int ms);

/* Waits for *word to become value; says "what" did not come after 60 s. */
bool wait_word(const volatile int *word, int value, const char *what);

/* An address at which there is nothing, which the compiler does not know. */
extern char *volatile nowhere;

/* Numbers that are the same in every run. */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

#endif
