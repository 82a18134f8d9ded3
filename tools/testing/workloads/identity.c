// SPDX-License-Identifier: GPL-2.0
/*
 * Who one is, and what one has set for oneself, is the same everywhere; what is
 * changed in one place holds in the next.
 *
 *	identity
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "lib.h"

#define THREADS 4

/* What never changes. */
struct constant {
	pid_t pid, ppid, pgrp, sid;
	uid_t ruid, euid, suid, rgid, egid, sgid;
	int groups;
	gid_t group[64];
	struct utsname uts;
	struct __user_cap_data_struct caps[2];
	int dumpable, no_new_privs, securebits, subreaper, keepcaps, bounding;
	int personality, policy;
	char exe[256], cwd[256], hostname[65];
	struct rlimit limit[RLIM_NLIMITS];
};

/* What each round sets anew. */
struct changing {
	unsigned long slack;
	int nice, ioprio, pdeathsig;
	mode_t umask;
	char comm[16];
	struct rlimit core, stack;
};

static struct constant first_seen;
static struct changing set;
static pthread_barrier_t barrier;
static unsigned long last; /* round that the threads do not begin; set before it */

static void link_text(const char *path, char *text, size_t len)
{
	ssize_t n = readlink(path, text, len - 1);

	text[n < 0 ? 0 : n] = 0;
}

static void look(struct constant *c)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	int i;

	memset(c, 0, sizeof(*c));
	c->pid = getpid();
	c->ppid = getppid();
	c->pgrp = getpgrp();
	c->sid = getsid(0);
	must(getresuid(&c->ruid, &c->euid, &c->suid));
	must(getresgid(&c->rgid, &c->egid, &c->sgid));
	c->groups = must(getgroups(64, c->group));
	must(uname(&c->uts));
	must(gethostname(c->hostname, sizeof(c->hostname)));
	must(syscall(SYS_capget, &head, c->caps));
	c->dumpable = must(prctl(PR_GET_DUMPABLE));
	c->no_new_privs = must(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	c->securebits = must(prctl(PR_GET_SECUREBITS));
	c->keepcaps = must(prctl(PR_GET_KEEPCAPS));
	must(prctl(PR_GET_CHILD_SUBREAPER, &c->subreaper));
	c->bounding = must(prctl(PR_CAPBSET_READ, 21));
	c->personality = must(personality(0xffffffff));
	c->policy = must(sched_getscheduler(0));
	link_text("/proc/self/exe", c->exe, sizeof(c->exe));
	check(getcwd(c->cwd, sizeof(c->cwd)));
	for (i = 0; i < RLIM_NLIMITS; i++)
		if (i != RLIMIT_CORE && i != RLIMIT_STACK)
			must(getrlimit(i, &c->limit[i]));
}

#define same(field) \
	do { \
		if (memcmp(&now.field, &first_seen.field, sizeof(now.field))) \
			fail("%s is another", #field); \
	} while (0)

static void compare(void)
{
	struct constant now;
	int i;

	look(&now);
	check_eq(now.pid, first_seen.pid);
	check_eq(now.ppid, first_seen.ppid);
	check_eq(now.pgrp, first_seen.pgrp);
	check_eq(now.sid, first_seen.sid);
	check_eq(now.ruid, first_seen.ruid);
	check_eq(now.euid, first_seen.euid);
	check_eq(now.suid, first_seen.suid);
	check_eq(now.rgid, first_seen.rgid);
	check_eq(now.egid, first_seen.egid);
	check_eq(now.sgid, first_seen.sgid);
	check_eq(now.groups, first_seen.groups);
	same(group);
	same(uts);
	same(hostname);
	same(caps);
	check_eq(now.dumpable, first_seen.dumpable);
	check_eq(now.no_new_privs, first_seen.no_new_privs);
	check_eq(now.securebits, first_seen.securebits);
	check_eq(now.keepcaps, first_seen.keepcaps);
	check_eq(now.subreaper, first_seen.subreaper);
	check_eq(now.bounding, first_seen.bounding);
	check_eq(now.personality, first_seen.personality);
	check_eq(now.policy, first_seen.policy);
	same(exe);
	same(cwd);
	for (i = 0; i < RLIM_NLIMITS; i++)
		if (memcmp(&now.limit[i], &first_seen.limit[i],
			   sizeof(struct rlimit)))
			fail("limit %d is %llu of %llu", i,
			     (unsigned long long)now.limit[i].rlim_cur,
			     (unsigned long long)now.limit[i].rlim_max);
}

static void look_changing(struct changing *c)
{
	memset(c, 0, sizeof(*c));
	c->slack = must(prctl(PR_GET_TIMERSLACK));
	errno = 0;
	c->nice = getpriority(PRIO_PROCESS, 0);
	c->ioprio = must(syscall(SYS_ioprio_get, 1, 0));
	must(prctl(PR_GET_PDEATHSIG, &c->pdeathsig));
	c->umask = umask(0);
	umask(c->umask);
	must(prctl(PR_GET_NAME, c->comm));
	must(getrlimit(RLIMIT_CORE, &c->core));
	must(getrlimit(RLIMIT_STACK, &c->stack));
}

static void compare_changing(void)
{
	struct changing now;

	look_changing(&now);
	check_eq(now.slack, set.slack);
	check_eq(now.nice, set.nice);
	check_eq(now.ioprio, set.ioprio);
	check_eq(now.pdeathsig, set.pdeathsig);
	check_eq(now.umask, set.umask);
	if (strcmp(now.comm, set.comm))
		fail("the name is %s, not %s", now.comm, set.comm);
	check_eq(now.core.rlim_cur, set.core.rlim_cur);
	check_eq(now.stack.rlim_cur, set.stack.rlim_cur);
}

/* Every fourth round: the others only look, so that it may be moved between. */
static void change(unsigned long round)
{
	set.slack = 50000 + round;
	must(prctl(PR_SET_TIMERSLACK, set.slack));
	set.ioprio = 2 << 13 | round / 4 % 8;
	must(syscall(SYS_ioprio_set, 1, 0, set.ioprio));
	set.pdeathsig = round & 4 ? SIGUSR2 : 0;
	must(prctl(PR_SET_PDEATHSIG, set.pdeathsig));
	set.umask = round & 4 ? 027 : 022;
	umask(set.umask);
	snprintf(set.comm, sizeof(set.comm), "id %u",
		 (unsigned int)(round % 100000));
	must(prctl(PR_SET_NAME, set.comm));
	set.core.rlim_cur = round << 20;
	must(setrlimit(RLIMIT_CORE, &set.core));
	set.stack.rlim_cur = (8 << 20) + (round % 8 << 20);
	must(setrlimit(RLIMIT_STACK, &set.stack));
	/* one's nice value can be raised by anybody */
	if (set.nice < 10) {
		set.nice++;
		must(setpriority(PRIO_PROCESS, 0, set.nice));
	}
}

static void *thread_main(void *arg)
{
	pid_t tid = syscall(SYS_gettid);
	char name[16], now[16];
	unsigned long passed = 0;

	snprintf(name, sizeof(name), "thread %lu", (unsigned long)(uintptr_t)arg);
	must(prctl(PR_SET_NAME, name));
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (++passed == last)
			return NULL;
		check_eq(syscall(SYS_gettid), tid);
		check_eq(getpid(), first_seen.pid);
		must(prctl(PR_GET_NAME, now));
		if (strcmp(name, now))
			fail("thread's name is %s, not %s", now, name);
		must(syscall(SYS_tgkill, first_seen.pid, tid, 0));
		must(sched_getaffinity(tid, sizeof(cpu_set_t), &(cpu_set_t){}));
		must(kill(getpid(), 0));
	}
}

/* getcpu() is about where we are: any answer that sched_getcpu() gives too. */
static void check_cpu(void)
{
	unsigned int cpu, node;

	must(getcpu(&cpu, &node));
	check(cpu < 1024);
	check(sched_getcpu() >= 0);
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	unsigned long round = 1, i;

	lib_init("identity", argc, argv);
	umask(022);
	look(&first_seen);
	check_eq(first_seen.pid, syscall(SYS_gettid));
	look_changing(&set);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, thread_main, (void *)i);
	lib_ready();
	do {
		pthread_barrier_wait(&barrier);
		compare();
		compare_changing();
		check_cpu();
		if (round++ % 4 == 0)
			change(round);
	} while (lib_round());
	last = lib_rounds + 1;
	pthread_barrier_wait(&barrier);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return lib_end();
}
