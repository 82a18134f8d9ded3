/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A calculation whose whole state is in the registers of the FPU for a long
 * time, and in which one wrong bit changes the result.
 */
#ifndef FPU_H
#define FPU_H

#include <stdint.h>

struct fpu_state {
	uint64_t vector[12][4]; /* ymm0 to ymm11: integers */
	double chaos[4];	/* ymm12: x = r x (1 - x) in each lane */
	long double x87;	/* st(0): the same */
};

/**
 * fpu_start() - the first state of number @seed
 */
void fpu_start(struct fpu_state *state, unsigned int seed);

/**
 * fpu_work() - @n steps, with rounding and precision as @seed says
 * Uses AVX2 where the CPU has it, else SSE2 with half of each vector.
 * Checks that the control registers are afterwards what they were before.
 */
void fpu_work(struct fpu_state *state, unsigned int seed, unsigned long n);

/* What is to be compared: all bits of the state. */
uint64_t fpu_sum(const struct fpu_state *state);

#endif
