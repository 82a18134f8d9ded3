// SPDX-License-Identifier: GPL-2.0
/*
 * The table of all system calls, made of calls.h, and the kernel's own lists of them,
 * made of the headers that its build has generated.
 *
 * The build fails when the kernel has a number that calls.h does not. A module runs
 * only on the kernel it was built for; still, a number that is not in the table sends
 * the gang home, where the kernel knows what it is.
 */
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/nospec.h>
#include <linux/string.h>

#include "wormhole/special.h"
#include "wormhole/table.h"

/* clang-format off */
#define VALUE		{ .shape = MATTX_VALUE }
#define STR		{ .shape = MATTX_STR }
#define IN(s)		{ .shape = MATTX_IN, .size = (s) }
#define IN_N(k, s)	{ .shape = MATTX_IN_N, .n = (k), .size = (s) }
#define OUT(s)		{ .shape = MATTX_OUT, .size = (s) }
#define OUT_RET(k, s)	{ .shape = MATTX_OUT_RET, .n = (k), .size = (s) }
#define INOUT(s)	{ .shape = MATTX_INOUT, .size = (s) }
#define INOUT_N(k, s)	{ .shape = MATTX_INOUT_N, .n = (k), .size = (s) }
#define BITS(k)		{ .shape = MATTX_BITS, .n = (k) }
#define ROOM(k)		{ .shape = MATTX_ROOM, .n = (k) }
#define ROOM_IN(k)	{ .shape = MATTX_ROOM_IN, .n = (k) }
#define IOV_IN(k)	{ .shape = MATTX_IOV_IN, .n = (k) }
#define IOV_OUT(k)	{ .shape = MATTX_IOV_OUT, .n = (k) }
#define MSG_IN		{ .shape = MATTX_MSG_IN }
#define MSG_OUT		{ .shape = MATTX_MSG_OUT }
#define MMSG_IN(k)	{ .shape = MATTX_MMSG_IN, .n = (k) }
#define MMSG_OUT(k)	{ .shape = MATTX_MMSG_OUT, .n = (k) }
#define I(k)		((k) | MATTX_N32)

/* ---------------------------------------------------------------- our table */

#define LOCAL(nr, what)							\
	[nr] = { .name = #what, .class = MATTX_LOCAL },
#define HOME(nr, what)							\
	[nr] = { .name = #what, .class = MATTX_HOME },
#define DEPUTY(nr, what, ...)						\
	[nr] = { .name = #what, .class = MATTX_DEPUTY, .served = true,	\
		 .arg = { __VA_ARGS__ } },
#define REFINED(nr, what, fn, ...)					\
	[nr] = { .name = #what, .class = MATTX_DEPUTY, .served = true,	\
		 .refine = fn, .arg = { __VA_ARGS__ } },
#define ONCE(nr, what, ...)						\
	[nr] = { .name = #what, .class = MATTX_DEPUTY, .served = true,	\
		 .once = true, .arg = { __VA_ARGS__ } },
#define SERVED(nr, what, fn, ...)					\
	[nr] = { .name = #what, .class = MATTX_SPECIAL, .served = true,	\
		 .special = fn, .arg = { __VA_ARGS__ } },
#define MOVES(nr, what, fn, ...)					\
	[nr] = { .name = #what, .class = MATTX_SPECIAL, .served = true,	\
		 .special = fn, .rw = true, .arg = { __VA_ARGS__ } },
#define DECIDED(nr, what, fn, completes, ...)				\
	[nr] = { .name = #what, .class = MATTX_SPECIAL, .served = true,	\
		 .special = fn, .refine = completes, .arg = { __VA_ARGS__ } },
#define LIMITED(nr, what, fn)						\
	[nr] = { .name = #what, .class = MATTX_SPECIAL, .special = fn },

static const struct mattx_call calls[MATTX_MAX_CALLS] = {
#include "wormhole/calls.h"
};
/* clang-format on */

#undef LOCAL
#undef HOME
#undef DEPUTY
#undef REFINED
#undef ONCE
#undef SERVED
#undef MOVES
#undef DECIDED
#undef LIMITED

/* Where the numbers end that the table was written for; holes below it are no calls. */
#define KNOWN_END 473

static const struct mattx_call unknown = { .class = MATTX_HOME };

const struct mattx_call *mattx_call_entry(u64 nr)
{
	if (nr >= MATTX_MAX_CALLS)
		return &calls[MATTX_MAX_CALLS - 1]; /* MATTX_NOSYS */
	nr = array_index_nospec(nr, MATTX_MAX_CALLS);
	if (calls[nr].class == MATTX_NOSYS && nr >= KNOWN_END &&
	    nr < MATTX_MAX_CALLS - 1)
		return &unknown;
	return &calls[nr];
}

const struct mattx_call *mattx_call_refine(const struct mattx_call *call,
					   const u64 *args,
					   struct mattx_call *copy)
{
	if (!call->refine)
		return call;
	*copy = *call;
	return call->refine(args, copy->arg) ? copy : NULL;
}

/* --------------------------------------------------------- the kernel's lists */

#define __SYSCALL_NORETURN(nr, sym)	       __SYSCALL(nr, sym)
#define __SYSCALL_WITH_COMPAT(nr, sym, compat) __SYSCALL(nr, compat)

/*
 * Is @nr a call of the kernel's that our table does not have? Folded by the compiler, which
 * must not drop check_table() before it has looked.
 */
#define LACKS(nr, sym) \
	(__builtin_strcmp(#sym, "sys_ni_syscall") && \
	 calls[nr].class == MATTX_NOSYS)

static void __used check_table(void)
{
#define __SYSCALL(nr, sym) \
	BUILD_BUG_ON_MSG(LACKS(nr, sym), \
			 "calls.h lacks system call " #nr ", " #sym);
#include <asm/syscalls_64.h>
#undef __SYSCALL
}

/* clang-format off */
const struct mattx_entry_name mattx_entry_names[] = {
#define __SYSCALL(nr, sym)	{ nr, "__x64_" #sym },
#include <asm/syscalls_64.h>
#undef __SYSCALL
};

const unsigned int mattx_nr_entry_names = ARRAY_SIZE(mattx_entry_names);

const char * const mattx_foreign_names[] = {
#ifdef CONFIG_IA32_EMULATION
#define __SYSCALL(nr, sym)	"__ia32_" #sym,
#include <asm/syscalls_32.h>
#undef __SYSCALL
#endif
#ifdef CONFIG_X86_X32_ABI
#define __SYSCALL(nr, sym)	"__x64_" #sym,
#include <asm/syscalls_x32.h>
#undef __SYSCALL
#endif
	NULL
};
/* clang-format on */

const unsigned int mattx_nr_foreign_names = ARRAY_SIZE(mattx_foreign_names) - 1;
