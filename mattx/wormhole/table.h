/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_TABLE_H
#define _MATTX_TABLE_H

#include <linux/types.h>

struct mattx_thread;
struct mattx_request;
struct pt_regs;

/* What becomes of a guest's system call. */
enum mattx_class {
	MATTX_NOSYS,   /* no such call: -ENOSYS, as natively */
	MATTX_LOCAL,   /* runs here, not hooked */
	MATTX_DEPUTY,  /* made at home by the deputy's thread */
	MATTX_SPECIAL, /* a function decides by its arguments */
	MATTX_HOME,    /* the gang goes home and makes it there */
};

/* What a pointer argument points to. Lengths: see struct mattx_arg. */
enum mattx_shape {
	MATTX_VALUE, /* not a pointer */
	MATTX_STR,   /* in: a path or name with its NUL */
	MATTX_IN,    /* in: @size bytes */
	MATTX_IN_N,  /* in: @size times argument @n bytes */
	MATTX_OUT,   /* out: @size bytes */
	MATTX_OUT_N, /* out: @size times argument @n bytes */
	MATTX_OUT_RET, /* out: room as OUT_N, valid: @size times the return value */
	MATTX_INOUT,   /* in and out: @size bytes */
	MATTX_INOUT_N, /* in and out: @size times argument @n bytes */
	MATTX_BITS,    /* in and out: a bit for each of argument @n */
	MATTX_ROOM,    /* out: as much as the int that argument @n points to */
	MATTX_ROOM_IN, /* the same, but the contents are looked at too */
	MATTX_IOV_IN,  /* struct iovec, argument @n of them: to be written */
	MATTX_IOV_OUT, /* to be read into */
	MATTX_MSG_IN,  /* struct msghdr to be sent */
	MATTX_MSG_OUT, /* to be received into */
	MATTX_MMSG_IN, /* struct mmsghdr, argument @n of them */
	MATTX_MMSG_OUT,
};

struct mattx_arg {
	u8 shape;
	u8 n; /* number of the argument that has the length, perhaps MATTX_N32 */
	u16 size;
};

#define MATTX_N_MASK 0x07
#define MATTX_N32    0x80 /* the kernel takes only its lower half */

/**
 * struct mattx_call - one system call number
 * @special: decides for MATTX_SPECIAL
 * @served: may be made by a deputy for a guest
 * @arg: what its arguments are
 *
 * Adding a call is one line in calls.h.
 */
struct mattx_call {
	const char *name;
	long (*special)(struct mattx_thread *thread,
			const struct mattx_call *call,
			const struct pt_regs *regs);
	u8 class;
	bool served;
	bool once; /* not made again after an interruption: close() */
	bool rw; /* moves bytes: may be shortened, goes on with another call */
	/*
	 * Completes @arg for calls whose arguments depend on a value; works from the
	 * values alone, as it is asked on both sides. Return: false when it is not
	 * known what the arguments are: the call is made at home then.
	 */
	bool (*refine)(const u64 *args, struct mattx_arg *arg);
	struct mattx_arg arg[6];
};

#define MATTX_MAX_CALLS 512 /* numbers from here on do not exist */

/**
 * mattx_call_entry() - the table's entry of a number
 * Return: never NULL; a number that the table does not know goes home, one that
 * cannot be a system call is MATTX_NOSYS.
 */
const struct mattx_call *mattx_call_entry(u64 nr);

/**
 * mattx_call_refine() - the shape of a call with these arguments
 * @copy: room for the answer where it depends on the arguments
 * Return: @call or @copy; NULL when its arguments are not known.
 */
const struct mattx_call *mattx_call_refine(const struct mattx_call *call,
					   const u64 *args,
					   struct mattx_call *copy);

/* The kernel's functions by number, for hooks.c. */
struct mattx_entry_name {
	u16 nr;
	const char *symbol;
};

extern const struct mattx_entry_name mattx_entry_names[];
extern const unsigned int mattx_nr_entry_names;

/* The functions of the 32-bit and x32 entries, some of which are those of x86-64 calls. */
extern const char *const mattx_foreign_names[];
extern const unsigned int mattx_nr_foreign_names;

#endif
