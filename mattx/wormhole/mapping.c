// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest maps, unmaps and protects.
 *
 * Anonymous memory is this node's business alone. A file is mapped twice: at home the
 * deputy maps the file itself, and here, at the same place, is memory whose pages are
 * fetched from there (ghost/pages.c), a range that gang->ranges remembers. What changes
 * such a range is made at home first and then here, so that both layouts agree when the
 * process comes home and what it has written goes into the file's own mapping there. A
 * private mapping need not show what is written to the file later, so its pages may stay.
 *
 * What home has unmapped cannot be fetched any more. So where it could happen that this
 * node cannot follow, since the process has as many mappings as it may have, it goes home.
 *
 * Memory that is shared at home, but with nobody, came along as private memory. What
 * would show the difference (it is unmapped, moved, protected, dropped, or has to be in
 * its file now) goes home.
 *
 * Shared mappings and huge pages go home.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <asm/unistd.h>

#include "compat.h"
#include "gang/gang.h"
#include "ghost/pages.h"
#include "wormhole/protocol.h"
#include "wormhole/rpc.h"
#include "wormhole/special.h"

/* Flags that change nothing about where or what is mapped. */
#define HARMLESS \
	(MAP_DENYWRITE | MAP_EXECUTABLE | MAP_NORESERVE | MAP_STACK | \
	 MAP_POPULATE | MAP_NONBLOCK)

#define OVER_SHARED "over a shared mapping"
#define TOO_MANY    "as many mappings as there may be"

/* What home says of a range in which the stub or somebody's buffer lies. */
#define IN_THE_WAY (-EBUSY)

#define SPARE \
	4 /* mappings that a change of one may cost, or mremap() wants to be free */

static u32 number(const struct pt_regs *regs)
{
	return regs->orig_ax;
}

/* ------------------------------------------------------------ the two sides */

static long at_home(struct mattx_thread *thread, u32 nr, u64 a0, u64 a1, u64 a2,
		    u64 a3, u64 a4, u64 a5)
{
	const u64 args[6] = { a0, a1, a2, a3, a4, a5 };

	return mattx_call_firm(thread, nr, mattx_call_entry(nr), args, NULL);
}

static struct pt_regs call_regs(u32 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4)
{
	struct pt_regs regs = *current_pt_regs();

	regs.orig_ax = nr;
	regs.di = a0;
	regs.si = a1;
	regs.dx = a2;
	regs.r10 = a3;
	regs.r8 = a4;
	return regs;
}

static long here(u32 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4)
{
	struct pt_regs regs = call_regs(nr, a0, a1, a2, a3, a4);

	return mattx_call_here(nr, &regs);
}

/*
 * Home has changed [start, start + len) and this node could not follow. What is mapped
 * here is nobody's file any more then, and counts as written, so that all of it goes home.
 * Context: may sleep, killable, no locks held.
 */
static void keep_here(struct mattx_thread *thread, unsigned long start,
		      unsigned long len)
{
	unsigned long end = start + PAGE_ALIGN(len);
	struct vm_area_struct *vma;

	if (mmap_write_lock_killable(current->mm))
		return; /* it is killed: nothing of it goes home */
	for (vma = find_vma(current->mm, start); vma && vma->vm_start < end;
	     vma = find_vma(current->mm, vma->vm_end))
		vm_flags_set(vma, VM_SOFTDIRTY);
	mmap_write_unlock(current->mm);
	mattx_guest_set_range(thread->gang, start, end, false);
}

/* Could SPARE more mappings be made? They are: every page differs from its neighbours. */
static bool has_room(void)
{
	const unsigned long len = (SPARE + 1) * PAGE_SIZE;
	unsigned long at = vm_mmap(NULL, 0, len, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   0);
	bool has = !IS_ERR_VALUE(at);
	unsigned int i;

	for (i = 1; has && i < SPARE; i += 2)
		has = !here(__NR_mprotect, at + i * PAGE_SIZE, PAGE_SIZE,
			    PROT_READ, 0, 0);
	if (!IS_ERR_VALUE(at))
		vm_munmap(at, len);
	return has;
}

/* Would pages be lost that were not fetched yet, if this node could not follow home? */
static bool is_risky(unsigned long start, unsigned long len)
{
	return len && start + len > start && mattx_ghost_any(start, len) &&
	       !has_room();
}

/* A range is rounded as the kernel does it. */
static bool is_special(struct mattx_thread *thread, unsigned long start,
		       unsigned long len)
{
	if (!len || start + len < start)
		return false;
	return mattx_guest_special(thread->gang, start, PAGE_ALIGN(len));
}

/* Shared at home with nobody, so that it could come along. */
static bool is_shared(struct mattx_thread *thread, unsigned long start,
		      unsigned long len)
{
	return len && mattx_guest_shared(thread->gang, start, len, false);
}

/* ------------------------------------------------- which calls are served */

bool mattx_refine_mmap(const u64 *args, struct mattx_arg *arg)
{
	u64 flags = args[3];

	return (flags & MAP_TYPE) == MAP_PRIVATE && flags & MAP_FIXED &&
	       !(flags & ~(MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | HARMLESS)) &&
	       PAGE_ALIGNED(args[0]) && args[1] && args[0] + args[1] > args[0];
}

/* ----------------------------------------------------------------- a file */

struct file_map {
	unsigned long addr, len, size; /* as asked for; size: in whole pages */
	u64 prot, flags, fd, off;
	struct file *ghost;
	unsigned long at; /* where that is mapped, 0: where it shall be */
	u32 reply;	  /* MATTX_REPLY_* of home's mmap() */
};

/* Home's mapping, which has to lie where it does here. */
static long map_at_home(struct mattx_thread *thread, struct file_map *m)
{
	const u64 args[6] = {
		m->addr, m->len,
		m->prot, (m->flags & (MAP_TYPE | MAP_NORESERVE)) | MAP_FIXED,
		m->fd,	 m->off,
	};

	return mattx_call_firm(thread, __NR_mmap, mattx_call_entry(__NR_mmap),
			       args, &m->reply);
}

/* Both sides get the mapping, or neither. */
static long place(struct mattx_thread *thread, struct file_map *m)
{
	long ret = map_at_home(thread, m);

	if (ret != m->addr)
		return ret < 0 ? ret : -ENOMEM;
	if (!(m->reply & MATTX_REPLY_REGULAR)) {
		if (m->at == m->addr)
			at_home(thread, __NR_munmap, m->addr, m->len, 0, 0, 0, 0);
		return IN_THE_WAY; /* a device's memory, perhaps */
	}
	mattx_ghost_at(m->ghost, m->addr);
	if (m->at != m->addr) {
		ret = here(__NR_mremap, m->at, m->size, m->size,
			   MREMAP_MAYMOVE | MREMAP_FIXED, m->addr);
		if (ret < 0) {
			at_home(thread, __NR_munmap, m->addr, m->len, 0, 0, 0, 0);
			keep_here(thread, m->addr, m->len);
			return ret;
		}
	}
	m->at = 0;
	mattx_guest_set_range(thread->gang, m->addr, m->addr + m->size, true);
	return m->addr;
}

/* Whether home can do it, the kernel there knows; where it lies is for this one to say. */
static long home_says(long ret)
{
	switch (ret) {
	case -EINVAL: /* of an address that the program did not choose */
	case -ENOMEM:
	case -EAGAIN:
		return IN_THE_WAY;
	case -ERESTARTSYS:
	case -ERESTARTNOHAND:
	case -EINTR:
		return -ERESTARTNOINTR;
	default:
		return ret;
	}
}

/* Here in a place of its own, or in the one that was asked for if that must be free. */
static long map_file(struct mattx_thread *thread, struct file_map *m)
{
	bool over = m->flags & MAP_FIXED && !(m->flags & MAP_FIXED_NOREPLACE);
	u64 flags = m->flags & (MAP_NORESERVE | MAP_FIXED_NOREPLACE);
	long ret;

	m->ghost = mattx_ghost_open(thread->gang, m->size);
	if (IS_ERR(m->ghost))
		return PTR_ERR(m->ghost);
	m->at = vm_mmap(m->ghost, over ? 0 : m->addr, m->size, m->prot,
			MAP_PRIVATE | flags, 0);
	if (IS_ERR_VALUE(m->at)) {
		fput(m->ghost);
		return m->at;
	}
	if (!over)
		m->addr = m->at;
	ret = home_says(place(thread, m));
	if (m->at)
		vm_munmap(m->at, m->size);
	fput(m->ghost); /* the mapping's now */
	return ret;
}

static const char *file_obstacle(const struct file_map *m)
{
	if ((m->flags & MAP_TYPE) != MAP_PRIVATE)
		return "shared memory";
	if (m->flags & ~(MAP_TYPE | MAP_FIXED | MAP_FIXED_NOREPLACE | HARMLESS))
		return "a file is mapped in another way";
	if (!m->size || !PAGE_ALIGNED(m->off) ||
	    (m->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) &&
	     (!PAGE_ALIGNED(m->addr) || m->addr + m->size < m->addr)))
		return "a file is mapped";
	if (m->flags & MAP_FIXED && is_risky(m->addr, m->size))
		return TOO_MANY;
	return NULL;
}

static long do_mmap_file(struct mattx_thread *thread, const struct pt_regs *regs)
{
	struct file_map m = {
		.addr = regs->di,
		.len = regs->si,
		.size = PAGE_ALIGN(regs->si),
		.prot = regs->dx,
		.flags = regs->r10,
		.fd = regs->r8,
		.off = regs->r9,
	};
	const char *obstacle = file_obstacle(&m);
	long ret;

	if (m.flags & MAP_FIXED_NOREPLACE)
		m.flags |= MAP_FIXED;
	if (!obstacle && m.flags & MAP_FIXED && is_shared(thread, m.addr, m.len))
		obstacle = OVER_SHARED;
	if (obstacle)
		return mattx_go_home(thread, __NR_mmap, obstacle);
	ret = map_file(thread, &m);
	if (ret == IN_THE_WAY)
		return mattx_go_home(thread, __NR_mmap, "a file is mapped");
	return ret;
}

/* -------------------------------------------------------- anonymous memory */

/* Over a range of a file: there as here. */
static long map_over(struct mattx_thread *thread, const struct pt_regs *regs)
{
	long ret;

	if (is_shared(thread, regs->di, regs->si))
		return mattx_go_home(thread, __NR_mmap, OVER_SHARED);
	if (is_risky(regs->di, regs->si))
		return mattx_go_home(thread, __NR_mmap, TOO_MANY);
	ret = at_home(thread, __NR_mmap, regs->di, regs->si, regs->dx,
		      regs->r10 & (MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS |
				   MAP_NORESERVE),
		      -1, 0);
	if (ret == IN_THE_WAY)
		return mattx_go_home(thread, __NR_mmap,
				     "over a mapping of a file");
	if (ret < 0)
		return ret;
	ret = mattx_call_here(__NR_mmap, regs);
	if (ret == regs->di)
		mattx_guest_set_range(thread->gang, ret,
				      ret + PAGE_ALIGN(regs->si), false);
	else
		keep_here(thread, regs->di, regs->si);
	return ret;
}

MATTX_HANDLER(mattx_do_mmap)
{
	unsigned long flags = regs->r10;

	if (!(flags & MAP_ANONYMOUS))
		return do_mmap_file(thread, regs);
	if ((flags & MAP_TYPE) != MAP_PRIVATE)
		return mattx_go_home(thread, __NR_mmap, "shared memory");
	if (flags & MAP_HUGETLB)
		return mattx_go_home(thread, __NR_mmap, "huge pages");
	if (flags & MAP_FIXED && is_special(thread, regs->di, regs->si))
		return map_over(thread, regs);
	return mattx_call_here(__NR_mmap, regs);
}

/* ------------------------------------------------------------------ ranges */

/* munmap and mprotect. Home may lack what was mapped here since: it knows when it is back. */
MATTX_HANDLER(mattx_do_range)
{
	u32 nr = number(regs);
	long ret;

	if (!is_special(thread, regs->di, regs->si))
		return mattx_call_here(nr, regs);
	if (is_shared(thread, regs->di, regs->si))
		return mattx_go_home(thread, nr, "a shared mapping");
	if (nr == __NR_munmap && is_risky(regs->di, regs->si))
		return mattx_go_home(thread, nr, TOO_MANY);
	ret = at_home(thread, nr, regs->di, regs->si, regs->dx, 0, 0, 0);
	if (ret == IN_THE_WAY || ret == -ENOMEM)
		return mattx_go_home(thread, nr, "a mapping of a file");
	if (ret)
		return ret;
	ret = mattx_call_here(nr, regs);
	if (nr != __NR_munmap)
		return ret; /* how a range is protected is seen on the way home */
	if (ret)
		keep_here(thread, regs->di, regs->si);
	else
		mattx_guest_set_range(thread->gang, regs->di,
				      regs->di + PAGE_ALIGN(regs->si), false);
	return ret;
}

static long not_special(struct mattx_thread *thread, const struct pt_regs *regs)
{
	if (is_special(thread, regs->di, regs->si))
		return mattx_go_home(thread, number(regs), "a mapping of a file");
	return mattx_call_here(number(regs), regs);
}

MATTX_HANDLER(mattx_do_mremap)
{
	bool fixed = regs->r10 & MREMAP_FIXED;

	if (is_special(thread, regs->di, max_t(unsigned long, regs->si, 1)) ||
	    (fixed && is_special(thread, regs->r8, regs->dx)))
		return mattx_go_home(thread, number(regs), "a mapping of a file");
	return mattx_call_here(number(regs), regs);
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

MATTX_HANDLER(mattx_do_madvise)
{
	long ret;

	switch ((s32)regs->dx) {
	case MADV_GUARD_INSTALL:
	case MADV_GUARD_REMOVE:
		return mattx_go_home(thread, number(regs), "guard pages");
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
	case MADV_REMOVE:
		return not_special(thread, regs);
	case MADV_WIPEONFORK: /* not for shared memory */
		if (is_shared(thread, regs->di, regs->si))
			return mattx_go_home(thread, number(regs),
					     "a shared mapping");
		return mattx_call_here(number(regs), regs);
	case MADV_WILLNEED: /* a kernel without swap expects a file */
		ret = mattx_call_here(number(regs), regs);
		return ret == -EBADF && is_special(thread, regs->di, regs->si) ?
			       0 :
			       ret;
	case MADV_HWPOISON:
	case MADV_SOFT_OFFLINE:
		return mattx_go_home(thread, number(regs), "this advice");
	default:
		return mattx_call_here(number(regs), regs);
	}
}

/* Who waits for the file to have it cannot be away. */
MATTX_HANDLER(mattx_do_msync)
{
	if (regs->dx & MS_SYNC && regs->si &&
	    mattx_guest_shared(thread->gang, regs->di, regs->si, true))
		return mattx_go_home(thread, number(regs), "a shared mapping");
	return mattx_call_here(number(regs), regs);
}
