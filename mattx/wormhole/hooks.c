// SPDX-License-Identifier: GPL-2.0
/*
 * Diverting the system calls of guests.
 *
 * One ftrace_ops covers the functions of all calls that the table does not call
 * local, and of the 32-bit and x32 entries. For a guest's thread it changes where
 * the function's call to __fentry__ returns to; for anybody else it does nothing.
 *
 * It fails closed. PERMANENT refuses kernel.ftrace_enabled=0 while it is armed;
 * IPMODIFY keeps others from changing the same functions; no recursion guard of
 * ftrace stands before our function, which calls nothing that it covers
 * (FTRACE_OPS_FL_RECURSION would ask for one); and if a single function cannot be
 * found or covered, the module does not load or the hooks cannot be had.
 *
 * A number that this kernel does not have gives -ENOSYS without calling anything
 * that could be diverted. The function for holes among its numbers does the same
 * and is built without a call to __fentry__.
 *
 * Addresses are found by walking through the kernel's symbols with sprint_symbol().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kdebug.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/bsearch.h>
#include <linux/string.h>
#include <asm/ftrace.h>
#include <asm/text-patching.h>

#include "compat.h"
#include "gang/gang.h"
#include "main.h"
#include "wormhole/hooks.h"
#include "wormhole/rpc.h"
#include "wormhole/table.h"

long mattx_native_enter(const struct pt_regs *regs, unsigned long entry);

/* A function to be covered. */
struct target {
	const char *symbol;
	unsigned long addr; /* its start */
	unsigned long alias; /* start of a function of which it may be another name */
};

static struct target *targets; /* sorted by name */
static unsigned int nr_targets;
static unsigned long *ips; /* for ftrace */
static unsigned int nr_ips;

static unsigned long entries[MATTX_MAX_CALLS]; /* start of the function by number */
static unsigned long ni_entry;		       /* of holes; not to be covered */

#define LINGER (5 * HZ) /* arming takes a good part of a second */

static void disarm_idle(struct work_struct *work);

static DEFINE_MUTEX(hooks_lock);
static unsigned int users;			/* guests; under hooks_lock */
static bool armed;				/* under hooks_lock */
static DECLARE_DELAYED_WORK(idle, disarm_idle); /* after the last guest */

/* ------------------------------------------------------- what is diverted */

/* A 32-bit or x32 call, or one whose number and function do not belong together. */
static long guest_foreign(const struct pt_regs *regs)
{
	return -ENOSYS;
}

/* In a guest's namespace, but not a guest. */
static long guest_denied(const struct pt_regs *regs)
{
	return -EPERM;
}

static bool is_entry(unsigned long ip, unsigned long start)
{
	return start &&
	       ip - start <= MCOUNT_INSN_SIZE; /* behind an ENDBR, perhaps */
}

static unsigned long guest_function(unsigned long ip, const struct pt_regs *user)
{
	unsigned long nr = user->orig_ax;

	if (in_ia32_syscall())
		return (unsigned long)guest_foreign;
	if (nr < MATTX_MAX_CALLS && is_entry(ip, entries[nr]))
		return (unsigned long)mattx_guest_syscall;
	return (unsigned long)guest_foreign;
}

static void notrace syscall_hook(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct mattx_thread *thread;

	switch (mattx_caller(&thread)) {
	case MATTX_NOT_GUEST:
		break;
	case MATTX_IS_GUEST:
		regs->ip = guest_function(ip, (const struct pt_regs *)regs->di);
		break;
	case MATTX_DENY:
		regs->ip = (unsigned long)guest_denied;
		break;
	}
}

#define HOOK_FLAGS \
	(FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | \
	 FTRACE_OPS_FL_PERMANENT)

static struct ftrace_ops syscall_ops = { .func = syscall_hook,
					 .flags = HOOK_FLAGS };

long mattx_native(u32 nr, const struct pt_regs *regs)
{
	unsigned long entry = entries[nr];

	if (WARN_ON_ONCE(!entry))
		return -ENOSYS;
	if (IS_ENABLED(CONFIG_X86_KERNEL_IBT))
		entry += 4; /* ENDBR, or what has been written over it */
	return mattx_native_enter(regs, entry + MCOUNT_INSN_SIZE);
}

/* ------------------------------------------------------- arming, disarming */

/*
 * A breakpoint of the kernel's own text that is no longer there when it is looked at:
 * the instruction is executed again, as it is now. A processor that obeys the kernel's
 * protocol for changing code never comes here; QEMU's emulation (TCG, 7.2) does so when
 * hundreds of functions are patched at once, and the kernel would panic.
 */
static int stale_breakpoint(struct notifier_block *nb, unsigned long val,
			    void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	if (val != DIE_INT3 || !regs || user_mode(regs) ||
	    *(const u8 *)(regs->ip - INT3_INSN_SIZE) == INT3_INSN_OPCODE)
		return NOTIFY_DONE;
	regs->ip -= INT3_INSN_SIZE;
	return NOTIFY_STOP;
}

static struct notifier_block breakpoint_notifier = {
	.notifier_call = stale_breakpoint,
};

static void disarm_idle(struct work_struct *work)
{
	mutex_lock(&hooks_lock);
	if (armed && !users) {
		unregister_ftrace_function(&syscall_ops);
		armed = false;
		mattx_debug("system calls are not diverted any more\n");
	}
	mutex_unlock(&hooks_lock);
}

int mattx_hooks_get(void)
{
	int err = 0;

	mutex_lock(&hooks_lock);
	if (!armed) {
		err = register_ftrace_function(&syscall_ops);
		mattx_debug("system calls are diverted: %d\n", err);
	}
	if (!err) {
		armed = true;
		users++;
	}
	mutex_unlock(&hooks_lock);
	if (err)
		pr_err("the system calls cannot be diverted (error %d): no guests\n",
		       err);
	return err;
}

void mattx_hooks_put(void)
{
	mutex_lock(&hooks_lock);
	if (!--users) /* so long after this one, not after one before it */
		mod_delayed_work(system_wq, &idle, LINGER);
	mutex_unlock(&hooks_lock);
}

/* ----------------------------------------------------- finding the functions */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct target *)a)->symbol,
		      ((const struct target *)b)->symbol);
}

static struct target *find_target(const char *symbol)
{
	const struct target key = { .symbol = symbol };

	return bsearch(&key, targets, nr_targets, sizeof(*targets), by_name);
}

/*
 * symbol_at() - the symbol that covers an address
 * Return: false when there is none of the kernel proper.
 */
static bool symbol_at(unsigned long addr, char *name, unsigned long *start,
		      unsigned long *end)
{
	unsigned long offset, size;
	char *plus;

	sprint_symbol(name, addr);
	plus = strrchr(name, '+');
	if (!plus || strchr(plus, '['))
		return false;
	if (sscanf(plus, "+0x%lx/0x%lx", &offset, &size) != 2 || !size)
		return false;
	*plus = '\0';
	*start = addr - offset;
	*end = *start + size;
	return true;
}

static void note(const char *prefix, const char *name, unsigned long start,
		 bool alias)
{
	char symbol[KSYM_SYMBOL_LEN];
	struct target *target;

	if (snprintf(symbol, sizeof(symbol), "%s%s", prefix, name) >=
	    sizeof(symbol))
		return;
	target = find_target(symbol);
	if (!target)
		return;
	if (alias)
		target->alias = start;
	else
		target->addr = start;
}

/*
 * A call without arguments has one function with three names, of which the kernel
 * tells one: __do_sys_NAME.
 */
static void note_symbol(const char *name, unsigned long start)
{
	if (!strncmp(name, "__x64_", 6) || !strncmp(name, "__ia32_", 7))
		note("", name, start, false);
	if (!strncmp(name, "__do_sys_", 9) ||
	    !strncmp(name, "__do_compat_sys_", 16)) {
		note("__x64_", name + 5, start, true);
		note("__ia32_", name + 5, start, true);
	}
}

#ifdef CONFIG_CALL_PADDING
#define BETWEEN \
	CONFIG_FUNCTION_PADDING_BYTES /* functions: a symbol of its own, not looked at */
#else
#define BETWEEN 0
#endif

/* All symbols from @addr on, upward or downward, to the end of the kernel's text. */
static void walk_symbols(unsigned long addr, bool up)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned long start, end;

	while (symbol_at(addr, name, &start, &end)) {
		if (!strcmp(name, "_etext"))
			break;
		note_symbol(name, start);
		addr = up ? end + BETWEEN : start - BETWEEN - 1;
		cond_resched();
	}
}

/* The slow way to an address, by name, for what the walk has not shown. */
static unsigned long probe_address(const char *symbol)
{
	struct kprobe kp = { .symbol_name = symbol,
			     .flags = KPROBE_FLAG_DISABLED };
	unsigned long addr;

	if (register_kprobe(&kp))
		return 0;
	addr = (unsigned long)kp.addr;
	unregister_kprobe(&kp);
	return addr;
}

static void add_target(const char *symbol)
{
	targets[nr_targets++] = (struct target){ .symbol = symbol };
}

static void list_targets(void)
{
	unsigned int i, n;

	for (i = 0; i < mattx_nr_entry_names; i++)
		add_target(mattx_entry_names[i].symbol);
	for (i = 0; i < mattx_nr_foreign_names; i++)
		add_target(mattx_foreign_names[i]);
	sort(targets, nr_targets, sizeof(*targets), by_name, NULL);
	for (i = 0, n = 0; i < nr_targets; i++) { /* each once */
		if (!n || strcmp(targets[n - 1].symbol, targets[i].symbol))
			targets[n++] = targets[i];
	}
	nr_targets = n;
}

static int by_address(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a,
		      y = *(const unsigned long *)b;

	return x < y ? -1 : x > y;
}

/* A function that serves a local call too is not covered. */
static bool is_local(unsigned long addr)
{
	unsigned int i;

	for (i = 0; i < mattx_nr_entry_names; i++) {
		if (entries[mattx_entry_names[i].nr] == addr)
			return mattx_call_entry(mattx_entry_names[i].nr)->class ==
			       MATTX_LOCAL;
	}
	return false;
}

static void cover(unsigned long addr)
{
	if (addr != ni_entry && !is_local(addr))
		ips[nr_ips++] = addr;
}

static void sort_covered(void)
{
	unsigned int i, n;

	sort(ips, nr_ips, sizeof(*ips), by_address, NULL);
	for (i = 0, n = 0; i < nr_ips; i++) {
		if (!n || ips[n - 1] != ips[i])
			ips[n++] = ips[i];
	}
	nr_ips = n;
}

static unsigned long target_addr(const char *symbol)
{
	struct target *target = find_target(symbol);

	return target ? target->addr : 0;
}

/* Numbers, and what has to be covered, from what was found. */
static int resolve(void)
{
	struct target *t;
	unsigned int i;

	for (i = 0; i < nr_targets; i++) {
		t = &targets[i];
		if (!t->addr)
			t->addr = t->alias;
		if (!t->addr)
			t->addr = probe_address(t->symbol);
		if (!t->addr) {
			pr_err("this kernel has no function %s\n", t->symbol);
			return -ENOENT;
		}
	}
	ni_entry = target_addr("__x64_sys_ni_syscall");
	for (i = 0; i < mattx_nr_entry_names; i++)
		entries[mattx_entry_names[i].nr] =
			target_addr(mattx_entry_names[i].symbol);
	for (i = 0; i < mattx_nr_entry_names; i++)
		cover(entries[mattx_entry_names[i].nr]);
	for (i = 0; i < mattx_nr_foreign_names; i++)
		cover(target_addr(mattx_foreign_names[i]));
	sort_covered();
	return 0;
}

static void free_filters(void)
{
	ftrace_free_filter(&syscall_ops);
}

/*
 * What is to be covered is set once: ftrace_free_filter() leaves pointers behind, so
 * an ftrace_ops is not to be used after it.
 */
static int set_filters(void)
{
	unsigned int i;
	int err, ret;

	ret = ftrace_set_filter_ips(&syscall_ops, ips, nr_ips, 0, 1);
	if (!ret)
		return 0;
	for (i = 0; i < nr_ips; i++) {
		err = ftrace_set_filter_ip(&syscall_ops, ips[i], 0, 1);
		if (err)
			pr_err("%ps cannot be diverted (error %d)\n",
			       (void *)ips[i], err);
	}
	free_filters();
	return ret;
}

int mattx_hooks_init(void)
{
	unsigned int max = mattx_nr_entry_names + mattx_nr_foreign_names + 1;
	unsigned long here = (unsigned long)sprint_symbol;
	ktime_t begin = ktime_get();
	int err;

	targets = kvcalloc(max, sizeof(*targets), GFP_KERNEL);
	ips = kvcalloc(max, sizeof(*ips), GFP_KERNEL);
	err = -ENOMEM;
	if (!targets || !ips)
		goto out;
	list_targets();
	walk_symbols(here, true);
	walk_symbols(here - 1, false);
	err = resolve() ?: set_filters();
	if (!err)
		err = register_die_notifier(&breakpoint_notifier);
	pr_debug("%u functions found in %lld us\n", nr_ips,
		 ktime_us_delta(ktime_get(), begin));
out:
	kvfree(targets);
	kvfree(ips);
	return err;
}

void mattx_hooks_exit(void)
{
	WARN_ON(users);
	cancel_delayed_work_sync(&idle);
	disarm_idle(NULL);
	unregister_die_notifier(&breakpoint_notifier);
	free_filters();
}
