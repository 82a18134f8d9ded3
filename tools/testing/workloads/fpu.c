// SPDX-License-Identifier: GPL-2.0
/* State that lives in ymm, x87 and control registers, see fpu.h. */
#include <string.h>

#include "fpu.h"
#include "lib.h"

#define MXCSR_ROUND   13 /* two bits */
#define X87_ROUND     10 /* two bits */
#define X87_PRECISION 8	 /* two bits: 0 single, 2 double, 3 extended */

static const double factor[4] = { 3.9990234375, 3.99, 3.98828125, 3.875 };
static const double one[4] = { 1, 1, 1, 1 };

void fpu_start(struct fpu_state *state, unsigned int seed)
{
	unsigned int i, j;

	memset(state, 0, sizeof(*state));
	for (i = 0; i < 12; i++)
		for (j = 0; j < 4; j++)
			state->vector[i][j] = mix(seed * 64 + i * 4 + j);
	for (j = 0; j < 4; j++)
		state->chaos[j] = (double)(mix(seed + j) >> 12) / (1ull << 52);
	state->x87 = state->chaos[0];
}

uint64_t fpu_sum(const struct fpu_state *state)
{
	uint64_t sum = 0, part;
	unsigned int i, j;

	for (i = 0; i < 12; i++)
		for (j = 0; j < 4; j++)
			sum = mix(sum ^ state->vector[i][j]);
	for (j = 0; j < 4; j++) {
		memcpy(&part, &state->chaos[j], 8);
		sum = mix(sum ^ part);
	}
	memcpy(&part, &state->x87, 8);
	return mix(sum ^ part);
}

/* One step of x = r x (1 - x) on the x87 stack: st(0) is x, st(1) is r. */
#define X87_STEP \
	"fld1\n\t" \
	"fsub %%st(1), %%st\n\t" \
	"fmulp\n\t" \
	"fmul %%st(1), %%st\n\t"

#define X87_IN	"fldl %[factor]\n\tfldt %[x87]\n\t"
#define X87_OUT "fstpt %[x87]\n\tfstp %%st(0)\n\t"

#define EACH(insn) \
	insn(0, 1) insn(1, 2) insn(2, 3) insn(3, 4) insn(4, 5) insn(5, 6) \
		insn(6, 7) insn(7, 8) insn(8, 9) insn(9, 10) insn(10, 11) \
			insn(11, 0)

#define CLOBBERED \
	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
		"xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

#define AVX_IN(a, b)  "vmovdqu 32*" #a "(%[vector]), %%ymm" #a "\n\t"
#define AVX_OUT(a, b) "vmovdqu %%ymm" #a ", 32*" #a "(%[vector])\n\t"
#define AVX_STEP(a, b) \
	"vpsrlq $13, %%ymm" #b ", %%ymm15\n\t" \
	"vpaddq %%ymm15, %%ymm" #a ", %%ymm" #a "\n\t" \
	"vpxor %%ymm" #b ", %%ymm" #a ", %%ymm" #a "\n\t"

static void work_avx2(struct fpu_state *state, unsigned long n)
{
	asm volatile(
		EACH(AVX_IN) "vmovupd %[chaos], %%ymm12\n\t"
			     "vmovupd %[factors], %%ymm13\n\t"
			     "vmovupd %[ones], %%ymm14\n\t" X87_IN "1:\n\t" EACH(
				     AVX_STEP) "vsubpd %%ymm12, %%ymm14, %%ymm15\n\t"
					       "vmulpd %%ymm15, %%ymm12, %%ymm12\n\t"
					       "vmulpd %%ymm13, %%ymm12, %%ymm12\n\t" X87_STEP
					       "decq %[n]\n\t"
					       "jnz 1b\n\t" X87_OUT
					       "vmovupd %%ymm12, %[chaos]\n\t" EACH(
						       AVX_OUT) "vzeroupper\n\t"
		: [n] "+r"(n), [x87] "+m"(state->x87), [chaos] "+m"(state->chaos)
		: [vector] "r"(state->vector), [factor] "m"(factor[0]),
		  [factors] "m"(factor), [ones] "m"(one)
		: "memory", "cc", "st", "st(1)", "st(2)", "st(3)", CLOBBERED);
}

#define SSE_IN(a, b)  "movdqu 32*" #a "(%[vector]), %%xmm" #a "\n\t"
#define SSE_OUT(a, b) "movdqu %%xmm" #a ", 32*" #a "(%[vector])\n\t"
#define SSE_STEP(a, b) \
	"movdqa %%xmm" #b ", %%xmm15\n\t" \
	"psrlq $13, %%xmm15\n\t" \
	"paddq %%xmm15, %%xmm" #a "\n\t" \
	"pxor %%xmm" #b ", %%xmm" #a "\n\t"

static void work_sse2(struct fpu_state *state, unsigned long n)
{
	asm volatile(
		EACH(SSE_IN) "movupd %[chaos], %%xmm12\n\t"
			     "movupd %[factors], %%xmm13\n\t"
			     "movupd %[ones], %%xmm14\n\t" X87_IN "1:\n\t" EACH(
				     SSE_STEP) "movapd %%xmm14, %%xmm15\n\t"
					       "subpd %%xmm12, %%xmm15\n\t"
					       "mulpd %%xmm15, %%xmm12\n\t"
					       "mulpd %%xmm13, %%xmm12\n\t" X87_STEP
					       "decq %[n]\n\t"
					       "jnz 1b\n\t" X87_OUT
					       "movupd %%xmm12, %[chaos]\n\t" EACH(
						       SSE_OUT)
		: [n] "+r"(n), [x87] "+m"(state->x87), [chaos] "+m"(state->chaos)
		: [vector] "r"(state->vector), [factor] "m"(factor[0]),
		  [factors] "m"(factor), [ones] "m"(one)
		: "memory", "cc", "st", "st(1)", "st(2)", "st(3)", CLOBBERED);
}

void fpu_work(struct fpu_state *state, unsigned int seed, unsigned long n)
{
	static const unsigned int precision[4] = { 3, 2, 0, 3 };
	uint32_t mxcsr_old, mxcsr, mxcsr_now;
	uint16_t x87_old, x87, x87_now;

	asm volatile("stmxcsr %0" : "=m"(mxcsr_old));
	asm volatile("fnstcw %0" : "=m"(x87_old));
	mxcsr = (mxcsr_old & ~(3u << MXCSR_ROUND)) | (seed % 4) << MXCSR_ROUND;
	x87 = (x87_old & ~(3 << X87_ROUND | 3 << X87_PRECISION)) |
	      (seed / 4 % 4) << X87_ROUND | precision[seed % 4] << X87_PRECISION;
	asm volatile("ldmxcsr %0" ::"m"(mxcsr));
	asm volatile("fldcw %0" ::"m"(x87));
	if (__builtin_cpu_supports("avx2"))
		work_avx2(state, n);
	else
		work_sse2(state, n);
	asm volatile("stmxcsr %0" : "=m"(mxcsr_now));
	asm volatile("fnstcw %0" : "=m"(x87_now));
	asm volatile("ldmxcsr %0" ::"m"(mxcsr_old));
	asm volatile("fldcw %0" ::"m"(x87_old));
	/* the exception flags are results, not settings */
	check_eq(mxcsr_now & ~0x3fu, mxcsr & ~0x3fu);
	check_eq(x87_now, x87);
}
