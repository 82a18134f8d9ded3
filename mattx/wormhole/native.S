/* SPDX-License-Identifier: GPL-2.0 */
/*
 * long mattx_native_enter(const struct pt_regs *regs, unsigned long entry)
 *
 * Runs a kernel function from behind its call to __fentry__, so that it is not
 * diverted again. There is no ENDBR at that place, and perhaps none at the
 * function's start either (the kernel seals functions that it only calls
 * directly), so it is entered by a return and not by an indirect jump.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>
#include <asm/unwind_hints.h>

	.text
SYM_FUNC_START(mattx_native_enter)
	push	%rsi
	UNWIND_HINT_FUNC
	ANNOTATE_UNRET_SAFE
	ret
	int3
SYM_FUNC_END(mattx_native_enter)
