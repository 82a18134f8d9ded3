// SPDX-License-Identifier: GPL-2.0
/*
 * execve() of a guest.
 *
 * Its memory is of no use any more, so nothing of it goes home: the deputy's thread makes
 * the call, with the strings that have come in an EXEC. When it succeeds the process runs
 * at home, as the new program, and what is here ends without a word. What outlives an
 * execve() and is known here only travels in the EXEC: the signal mask, signals that are
 * pending, what the process has used. Handlers and ignored signals the deputy has.
 *
 *	host: EXEC ->	home: laid out, called;	fails: REPLY -> the guest goes on
 *					is another program: REPLY -> the guest ends
 *
 * The call is made only when the guest has seen all signals that were forwarded; those that
 * come later stay with the deputy. So none is lost and none comes twice.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/binfmts.h>
#include <linux/fcntl.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>

#include "gang/gang.h"
#include "main.h"
#include "wormhole/exec.h"
#include "wormhole/protocol.h"
#include "wormhole/rpc.h"
#include "wormhole/special.h"

/* More than any kernel takes: three quarters of _STK_LIM. */
#define STRINGS_MAX (8u << 20)

/* -------------------------------------------------------------------- host */

/* Strings with their NULs, one behind the other. */
struct strings {
	char *data; /* kvmalloc'ed */
	size_t len, room;
};

/* Room for @more bytes. */
static int grow(struct strings *s, size_t more)
{
	size_t room;
	char *data;

	if (more <= s->room - s->len)
		return 0;
	if (s->len + more > STRINGS_MAX)
		return -E2BIG;
	room = max(2 * s->room, s->len + more + PAGE_SIZE);
	data = kvmalloc(room, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	memcpy(data, s->data, s->len);
	kvfree(s->data);
	s->data = data;
	s->room = room;
	return 0;
}

/* Another thread may be writing to it. */
static int add_string(struct strings *s, const char __user *from, size_t max,
		      int too_long)
{
	long len = strnlen_user(from, max);
	char *to;
	int err;

	if (!len)
		return -EFAULT;
	if (len > max)
		return too_long;
	err = grow(s, len);
	if (err)
		return err;
	to = s->data + s->len;
	if (copy_from_user(to, from, len))
		return -EFAULT;
	to[len - 1] = '\0';
	s->len += strlen(to) + 1;
	return 0;
}

/* Return: how many, or a negative errno. */
static int add_vector(struct strings *s, const char __user *const __user *vec)
{
	const char __user *p;
	int n, err;

	for (n = 0; vec; n++) {
		if (get_user(p, vec + n))
			return -EFAULT;
		if (!p)
			break;
		err = add_string(s, p, MAX_ARG_STRLEN, -E2BIG);
		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -ERESTARTNOINTR;
		cond_resched();
	}
	return n;
}

static int read_strings(struct strings *s, const u64 *arg,
			struct mattx_frame_exec *frame)
{
	int n = add_string(s, (const char __user *)arg[0], PATH_MAX,
			   -ENAMETOOLONG);

	if (n < 0)
		return n;
	n = add_vector(s, (const char __user *const __user *)arg[1]);
	if (n < 0)
		return n;
	frame->argc = cpu_to_le32(n);
	n = add_vector(s, (const char __user *const __user *)arg[2]);
	if (n < 0)
		return n;
	frame->envc = cpu_to_le32(n);
	return 0;
}

/* What the new program inherits of current. */
static void describe(struct mattx_frame_exec *frame)
{
	struct mattx_usage usage = {};

	frame->blocked = cpu_to_le64(current->blocked.sig[0]);
	frame->slack = cpu_to_le64(current->timer_slack_ns);
	frame->nice = cpu_to_le32(task_nice(current));
	mattx_usage_process(&usage);
	mattx_usage_pack(&usage, frame->usage);
}

/* Has home try it. Return: 0: it is another program now; MATTX_AGAIN; a negative errno. */
static long try_exec(struct mattx_thread *thread, struct mattx_frame_exec *frame,
		     const struct strings *strings)
{
	u8(*infos)[MATTX_SIGINFO_SIZE];
	size_t len;
	void *data;
	u64 seen;
	long ret;
	int n;

	n = mattx_signals_now(thread, &infos, &seen);
	if (n < 0)
		return n == -EINTR ? -ERESTARTNOINTR : n;
	frame->infos = cpu_to_le32(n);
	frame->seen = cpu_to_le64(seen);
	len = (size_t)n * MATTX_SIGINFO_SIZE;
	data = kvmalloc(len + strings->len, GFP_KERNEL);
	if (!data) {
		kvfree(infos);
		return -ENOMEM;
	}
	if (n)
		memcpy(data, infos, len);
	kvfree(infos);
	memcpy(data + len, strings->data, strings->len);
	ret = mattx_rpc_exec(thread, frame, data, len + strings->len);
	kvfree(data);
	return ret;
}

/* The process runs at home; what is here is not it any more. */
static long leave(struct mattx_gang *gang)
{
	gang->silent = true;
	mattx_debug("PID %d (%s) runs at home: execve\n", task_tgid_nr(current),
		    current->comm);
	send_sig(SIGKILL, current, 1);
	return -ERESTARTNOINTR;
}

MATTX_HANDLER(mattx_do_execve)
{
	bool at = regs->orig_ax == __NR_execveat;
	struct mattx_frame_exec frame = {
		.nr = cpu_to_le32(regs->orig_ax),
		.dirfd = cpu_to_le32(at ? regs->di : AT_FDCWD),
		.flags = cpu_to_le32(at ? regs->r8 : 0),
	};
	struct strings strings = {};
	u64 args[6];
	long ret;

	if (thread->gang->shares)
		return mattx_go_home(thread, regs->orig_ax,
				     "it has shared memory");
	mattx_regs_args(regs, args);
	ret = read_strings(&strings, args + at, &frame);
	describe(&frame);
	while (!ret) {
		ret = try_exec(thread, &frame, &strings);
		if (!ret)
			ret = leave(thread->gang);
		else if (ret == MATTX_AGAIN && !fatal_signal_pending(current))
			ret = 0;
	}
	kvfree(strings.data);
	return ret == MATTX_AGAIN ? -ERESTARTNOINTR : ret;
}

/* -------------------------------------------------------------------- home */

struct exec_parts {
	const struct mattx_frame_exec *frame;
	const u8 (*info)[MATTX_SIGINFO_SIZE];
	const char *strings;
	size_t len; /* of the strings */
	u32 infos, argc, envc;
};

/* Finds the parts of a frame. Return: whether it is well formed. */
static bool find_parts(struct exec_parts *p, const void *payload, size_t len)
{
	const char *s, *end;
	u64 n;

	if (len < sizeof(*p->frame))
		return false;
	p->frame = payload;
	len -= sizeof(*p->frame);
	p->infos = le32_to_cpu(p->frame->infos);
	p->argc = le32_to_cpu(p->frame->argc);
	p->envc = le32_to_cpu(p->frame->envc);
	if (len / MATTX_SIGINFO_SIZE < p->infos)
		return false;
	p->info = (const void *)(p->frame + 1);
	p->strings = (const char *)(p->info + p->infos);
	p->len = len - (size_t)p->infos * MATTX_SIGINFO_SIZE;
	n = 1 + (u64)p->argc + p->envc;
	if (n > p->len || p->len > STRINGS_MAX || p->strings[p->len - 1])
		return false;
	end = p->strings + p->len;
	for (s = p->strings; s < end; s += strlen(s) + 1)
		n--;
	return !n;
}

bool mattx_exec_valid(const void *payload, size_t len)
{
	const struct mattx_frame_exec *frame = payload;
	struct exec_parts parts;
	u32 nr;

	if (!find_parts(&parts, payload, len))
		return false;
	nr = le32_to_cpu(frame->nr);
	return nr == __NR_execve || nr == __NR_execveat;
}

/* @n pointers to strings from *@at on, and NULL. Return: behind them. */
static u64 *point(u64 *to, u32 n, const char **at, const char *begin, u64 addr)
{
	while (n--) {
		*to++ = addr + (*at - begin);
		*at += strlen(*at) + 1;
	}
	*to++ = 0;
	return to;
}

int mattx_exec_start(struct mattx_thread *thread, struct mattx_job *job,
		     const void *payload, size_t len)
{
	const struct mattx_frame_exec *frame = payload;
	u64 *vec, argv, envp, path;
	struct exec_parts p;
	const char *at;
	size_t vec_len;
	bool bad;

	find_parts(&p, payload, len);
	if (mattx_guard_any(thread->gang))
		return -EBUSY;
	if (!mattx_signals_hold(thread->gang, le64_to_cpu(frame->seen)))
		return -ERESTARTNOINTR;
	vec_len = ((size_t)p.argc + p.envc + 2) * sizeof(*vec);
	argv = mattx_body_scratch(thread, vec_len + p.len);
	vec = kvmalloc(vec_len, GFP_KERNEL);
	if (!argv || !vec) {
		kvfree(vec);
		return -ENOMEM;
	}
	path = argv + vec_len;
	envp = argv + ((u64)p.argc + 1) * sizeof(*vec);
	at = p.strings + strlen(p.strings) + 1;
	point(point(vec, p.argc, &at, p.strings, path), p.envc, &at, p.strings,
	      path);
	bad = copy_to_user((void __user *)argv, vec, vec_len) ||
	      copy_to_user((void __user *)path, p.strings, p.len);
	kvfree(vec);
	job->nr = __NR_execveat;
	job->args[0] = (s32)le32_to_cpu(frame->dirfd);
	job->args[1] = path;
	job->args[2] = argv;
	job->args[3] = envp;
	job->args[4] = (s32)le32_to_cpu(frame->flags);
	if (le32_to_cpu(frame->nr) == __NR_execve) {
		job->nr = __NR_execve;
		memmove(job->args, job->args + 1, 3 * sizeof(job->args[0]));
	}
	return bad ? -EFAULT : 0;
}

static void inherit_signals(const struct mattx_frame_exec *frame)
{
	const u8(*from)[MATTX_SIGINFO_SIZE] = (const void *)(frame + 1);
	u32 i, n = le32_to_cpu(frame->infos);
	kernel_siginfo_t info;
	sigset_t mask;

	for (i = 0; i < n; i++) {
		clear_siginfo(&info);
		memcpy(&info, from[i], sizeof(info));
		if (valid_signal(info.si_signo) && info.si_signo > 0 &&
		    info.si_signo != SIGKILL)
			send_sig_info(info.si_signo, &info, current);
	}
	mask.sig[0] = le64_to_cpu(frame->blocked) &
		      ~(sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

void mattx_exec_done(struct mattx_thread *thread, const void *payload)
{
	const struct mattx_frame_exec *frame = payload;
	struct mattx_usage usage, others = {};
	int nice = (s32)le32_to_cpu(frame->nice);
	u64 slack = le64_to_cpu(frame->slack);

	mattx_usage_unpack(&usage, frame->usage);
	mattx_usage_raise(&usage, &others);
	/* not below what it has: that it may not have been allowed */
	if (nice > task_nice(current) && nice <= MAX_NICE)
		set_user_nice(current, nice);
	if (slack && slack <= NSEC_PER_SEC)
		current->timer_slack_ns = slack;
	inherit_signals(frame);
	if (thread->gang->born)
		return;
	strscpy(thread->gang->want_cause, "system call execve",
		sizeof(thread->gang->want_cause));
	pr_info("PID %d (%s) runs at home again: execve\n",
		task_pid_nr(current), current->comm);
}
