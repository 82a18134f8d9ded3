// SPDX-License-Identifier: GPL-2.0
/*
 * What stands in the way of a move, each by name. Nothing is frozen here, so it
 * is asked again, as far as it may have changed, when the process stands still.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "fault.h"
#include "sharers.h"

#define PF_KTHREAD 0x00200000

struct check {
	struct job *job;
	bool all;    /* report every obstacle; else the first ends it */
	bool frozen; /* check_guard() will look at shared memory */
	int found;
};

/* Return: whether to stop. */
__attribute__((format(printf, 3, 4))) static bool
obstacle(struct check *c, int error, const char *fmt, ...)
{
	char text[JOB_CAUSE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	c->found++;
	if (c->all)
		job_obstacle(c->job, "%s", text);
	else
		job_fail(c->job, error, "%s", text);
	return !c->all;
}

/* --------------------------------------------------------- small files */

static ssize_t slurp(pid_t pid, const char *name, char *buf, size_t len)
{
	char path[96];
	ssize_t n, at = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + at, len - 1 - at)) > 0)
		at += n;
	if (n < 0)
		at = -errno;
	else
		buf[at] = 0;
	close(fd);
	return at;
}

static long field(const char *status, const char *name, int base)
{
	const char *s = strstr(status, name);

	return s ? strtol(s + strlen(name), NULL, base) : -1;
}

/* Names of numbered entries of a directory, one after the other. 0: no more. */
static int next_number(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)))
		if (*entry->d_name >= '0' && *entry->d_name <= '9')
			return atoi(entry->d_name);
	return 0;
}

/* ------------------------------------------------------------ identity */

static unsigned long flags_of(pid_t pid)
{
	char buf[4096], *s;
	int i;

	if (slurp(pid, "stat", buf, sizeof(buf)) < 0)
		return 0;
	s = strrchr(buf, ')');
	for (i = 0; i < 7 && s; i++)
		s = strchr(s + 1, ' ');
	return s ? strtoul(s, NULL, 10) : 0;
}

/* Return: whether nothing more can be said about it. */
static bool check_identity(struct check *c, char *status, size_t len)
{
	pid_t pid = c->job->pid;
	ssize_t n;

	if (pid == 1)
		return obstacle(c, EPERM, "is init"), true;
	if (pid == getpid())
		return obstacle(c, EPERM, "is mattxd itself"), true;
	n = pid > 0 ? slurp(pid, "status", status, len) : -ESRCH;
	if (n <= 0)
		return obstacle(c, ESRCH, "no such process"), true;
	if (field(status, "\nTgid:", 10) != pid)
		return obstacle(c, ESRCH, "is a thread of process %ld",
				field(status, "\nTgid:", 10)),
		       true;
	if (flags_of(pid) & PF_KTHREAD)
		return obstacle(c, EPERM, "is a kernel thread"), true;
	if (strstr(status, "\nState:\tZ") || strstr(status, "\nState:\tX"))
		return obstacle(c, ESRCH, "%s",
				field(status, "\nThreads:", 10) > 1 ?
					"its first thread has ended" :
					"has ended"),
		       true;
	return false;
}

static bool check_namespaces(struct check *c)
{
	static const char *const names[] = { "pid", "pid_for_children", "time",
					     "time_for_children" };
	char path[64], theirs[64], ours[64];
	ssize_t a, b;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)c->job->pid,
			 names[i]);
		a = readlink(path, theirs, sizeof(theirs));
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		b = readlink(path, ours, sizeof(ours));
		/* pid_for_children cannot be read while it has no PID 1 */
		if (a > 0 && b > 0 && a == b && !memcmp(theirs, ours, a))
			continue;
		if (obstacle(c, EOPNOTSUPP, "is in another %.4s namespace",
			     names[i]))
			return true;
	}
	return false;
}

static bool check_threads(struct check *c)
{
	char path[64], status[8192];
	struct sched_param param;
	bool stop = false;
	pid_t tid;
	DIR *dir;
	long n;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)c->job->pid);
	dir = opendir(path);
	while (dir && !stop && (tid = next_number(dir))) {
		if (slurp(tid, "status", status, sizeof(status)) <= 0)
			continue;
		n = field(status, "\nTracerPid:", 10);
		if (n > 0)
			stop = obstacle(c, EBUSY,
					"thread %d is traced by process %ld",
					tid, n);
		n = field(status, "\nSeccomp:", 10);
		if (!stop && n > 0)
			stop = obstacle(c, EOPNOTSUPP,
					"thread %d has a seccomp filter", tid);
		if (!stop && strstr(status, "\nx86_Thread_features:") &&
		    strstr(strstr(status, "\nx86_Thread_features:"), "shstk"))
			stop = obstacle(c, EOPNOTSUPP,
					"thread %d has a shadow stack", tid);
		n = sched_getscheduler(tid);
		if (!stop && n == SCHED_DEADLINE && !sched_getparam(tid, &param))
			stop = obstacle(c, EOPNOTSUPP,
					"thread %d has a deadline", tid);
	}
	if (dir)
		closedir(dir);
	return stop;
}

static bool check_program(struct check *c)
{
	unsigned char ident[20] = { 0 };
	uint64_t auxv[2];
	char path[64];
	int fd;

	/* of a 32-bit program the entries are half as long */
	if (slurp(c->job->pid, "auxv", (char *)auxv, sizeof(auxv)) > 8 &&
	    auxv[0] > 64)
		return obstacle(c, ENOEXEC, "is a 32-bit program");
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)c->job->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, ident, sizeof(ident)) != sizeof(ident))
		ident[EI_CLASS] = 0;
	close(fd);
	if (ident[EI_CLASS] == ELFCLASS32 && ident[0] == 0x7f)
		return obstacle(c, ENOEXEC, "is a 32-bit program");
	return false;
}

/* ------------------------------------------------------------- sharing */

static bool shares(pid_t a, pid_t b, int what)
{
	return syscall(SYS_kcmp, a, b, what, 0, 0) == 0;
}

static bool check_sharing(struct check *c)
{
	static const struct {
		int what;
		const char *name;
	} table[] = {
		{ KCMP_VM, "memory" },
		{ KCMP_FILES, "descriptors" },
		{ KCMP_SIGHAND, "signal handlers" },
	};
	DIR *dir = opendir("/proc");
	bool stop = false;
	pid_t other;
	size_t i;

	while (dir && !stop && (other = next_number(dir))) {
		if (other == c->job->pid)
			continue;
		for (i = 0; i < sizeof(table) / sizeof(*table) && !stop; i++)
			if (shares(c->job->pid, other, table[i].what))
				stop = obstacle(c, EOPNOTSUPP,
						"shares %s with process %d",
						table[i].name, other);
	}
	if (dir)
		closedir(dir);
	return stop;
}

/* --------------------------------------------------------- descriptors */

static bool check_descriptors(struct check *c)
{
	static const char *const bad[] = {
		"anon_inode:[signalfd]",    "anon_inode:[io_uring]",
		"anon_inode:[userfaultfd]", "anon_inode:bpf-",
		"anon_inode:[perf_event]",  "anon_inode:kvm-",
		"anon_inode:[pidfd]",
	};
	char path[64], link[128], name[96];
	bool stop = false;
	struct dirent *entry;
	ssize_t n;
	DIR *dir;
	size_t i;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)c->job->pid);
	dir = opendir(path);
	while (dir && !stop && (entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = 0;
		/* a pidfd is the deputy's business as long as it is not itself */
		for (i = 0; i < sizeof(bad) / sizeof(*bad) - 1 && !stop; i++) {
			if (strncmp(link, bad[i], strlen(bad[i])))
				continue;
			snprintf(name, sizeof(name), "%.80s",
				 strchr(link, ':') + 1);
			stop = obstacle(c, EOPNOTSUPP, "descriptor %s is a %s",
					entry->d_name, name);
		}
	}
	if (dir)
		closedir(dir);
	return stop;
}

/* -------------------------------------------------------------- timers */

/* A clock of the CPU time of a process or thread, as timer_create(2) knows it? */
static bool is_cpu_clock(long clock)
{
	if (clock >= 0)
		return clock == CLOCK_PROCESS_CPUTIME_ID ||
		       clock == CLOCK_THREAD_CPUTIME_ID;
	return (clock & 3) != 3; /* 3: of a device */
}

/* Timers stay at home; one that counts the CPU time there would stand still. */
static bool check_timers(struct check *c)
{
	char path[64], line[128];
	long id = 0, clock;
	bool stop = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/timers", (int)c->job->pid);
	file = fopen(path, "re");
	while (file && !stop && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "ID: %ld", &id) == 1)
			continue;
		if (sscanf(line, "ClockID: %ld", &clock) == 1 &&
		    is_cpu_clock(clock))
			stop = obstacle(c, EOPNOTSUPP,
					"timer %ld counts CPU time", id);
	}
	if (file)
		fclose(file);
	return stop;
}

/* ------------------------------------------------------------ mappings */

static const char *vma_obstacle(const struct vma *vma)
{
	if (vma->flags & VMA_VDSO)
		return NULL;
	if (vma->flags & VMA_DEVICE)
		return "is memory of a device";
	if (vma->flags & VMA_HUGETLB)
		return "has huge pages of hugetlbfs";
	if (vma->flags & VMA_UFFD)
		return "is watched by userfaultfd";
	if (vma->flags & VMA_SHADOW)
		return "is a shadow stack";
	if (vma->flags & VMA_SEALED)
		return "is sealed";
	if (vma->flags & VMA_PKEY)
		return "has a protection key";
	if (vma->flags & VMA_GUARD)
		return "has guard pages of madvise(2)";
	if (vma->flags & VMA_SHARED && !strncmp(vma->name, "/SYSV", 5))
		return "is shared memory of System V";
	return NULL;
}

static bool check_vmas(struct check *c, const struct maps *maps)
{
	char text[160];
	size_t i;

	for (i = 0; i < maps->n; i++) {
		const char *why = vma_obstacle(&maps->vma[i]);

		if (why &&
		    obstacle(c, EOPNOTSUPP, "mapping %s %s",
			     vma_text(&maps->vma[i], text, sizeof(text)), why))
			return true;
	}
	return false;
}

static bool report_sharer(struct check *c, const struct vma *vma,
			  const struct sharer *who)
{
	char text[160];

	return obstacle(
		c, EOPNOTSUPP,
		who->mapped ?
			"mapping %s is shared with process %d" :
			"mapping %s is shared, process %d has its file open",
		vma_text(vma, text, sizeof(text)), (int)who->pid);
}

/* What the module has said of the mapping at @arg->from. */
static bool report_shared(struct check *c, const struct maps *maps,
			  struct mattx_ioc_shared *arg)
{
	size_t at = maps_at(maps, arg->from);
	char text[160];

	arg->cause[sizeof(arg->cause) - 1] = 0;
	if (at == maps->n)
		return obstacle(c, EBUSY, "its mappings change");
	arg->from = maps->vma[at].end;
	return obstacle(c, EOPNOTSUPP, "mapping %s %s",
			vma_text(&maps->vma[at], text, sizeof(text)), arg->cause);
}

/* Those who have its memory by name, and else what the module says about it. */
static bool check_shared(struct check *c, const struct maps *maps)
{
	struct mattx_ioc_shared arg = { .pid = c->job->pid };
	struct sharer *who = calloc(maps->n, sizeof(*who));
	bool stop = false;
	size_t i;
	int fd;

	if (!who || sharers_find(c->job->pid, maps, who)) {
		free(who);
		return obstacle(c, ENOMEM, "out of memory");
	}
	fd = open("/dev/mattx", O_RDWR | O_CLOEXEC);
	for (i = 0; i < maps->n && !stop; i++)
		if (who[i].pid)
			stop = report_sharer(c, &maps->vma[i], &who[i]);
	while (!stop && ioctl(fd, MATTX_IOC_LOOK, &arg)) {
		if (errno != ENOTUNIQ) {
			stop = obstacle(c, errno,
					"its shared mappings cannot be seen: %s",
					strerror(errno));
			break;
		}
		i = maps_at(maps, arg.from);
		if (i < maps->n && (who[i].pid || vma_obstacle(&maps->vma[i])))
			arg.from = maps->vma[i].end; /* said already */
		else
			stop = report_shared(c, maps, &arg);
	}
	if (fd >= 0)
		close(fd);
	free(who);
	return stop;
}

static bool has_shared(const struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->n; i++)
		if (maps->vma[i].flags & VMA_SHARED)
			return true;
	return false;
}

int check_guard(struct job *job, int handle)
{
	struct mattx_ioc_shared arg = { .pid = 0 };
	struct check c = { .job = job };
	struct maps maps;
	int ret;

	if (!ioctl(handle, MATTX_IOC_GUARD, &arg))
		return 0;
	if (errno != ENOTUNIQ)
		return job_fail(job, errno,
				"its shared memory cannot be guarded: %s",
				strerror(errno));
	ret = maps_read(job->pid, 0, 0, &maps);
	if (ret)
		return job_fail(job, ret, "cannot read its mappings: %s",
				strerror(-ret));
	report_shared(&c, &maps, &arg);
	maps_free(&maps);
	return -job->result;
}

static bool check_mappings(struct check *c)
{
	struct maps maps;
	bool stop;
	int ret;

	ret = maps_read(c->job->pid, 0, 0, &maps);
	if (ret)
		return obstacle(c, -ret, "cannot read its mappings: %s",
				strerror(-ret));
	if (!maps.n)
		stop = obstacle(c, ESRCH, "has no memory");
	else
		stop = check_vmas(c, &maps) || (!c->frozen && has_shared(&maps) &&
						check_shared(c, &maps));
	maps_free(&maps);
	return stop;
}

/* --------------------------------------------------------------- nodes */

/* Of the flags in /proc/cpuinfo those that programs look for. */
static const char user_flags[] =
	" fpu tsc cx8 cmov clflush mmx fxsr sse sse2 ht syscall mmxext rdtscp 3dnow 3dnowext"
	" lahf_lm abm sse4a misalignsse 3dnowprefetch xop fma4 tbm pni pclmulqdq ssse3 fma"
	" cx16 sse4_1 sse4_2 movbe popcnt aes xsave avx f16c rdrand fsgsbase bmi1 hle avx2"
	" bmi2 erms rtm mpx avx512f avx512dq rdseed adx avx512ifma clflushopt clwb avx512pf"
	" avx512er avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec xgetbv1 clzero wbnoinvd"
	" avx512vbmi umip pku ospke waitpkg avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni"
	" avx512_bitalg avx512_vpopcntdq rdpid cldemote movdiri movdir64b enqcmd"
	" avx512_4vnniw avx512_4fmaps fsrm avx512_vp2intersect serialize tsxldtrk amx_bf16"
	" avx512_fp16 amx_tile amx_int8 avx_vnni avx512_bf16 amx_fp16 avx_ifma avx_vnni_int8"
	" avx_ne_convert amx_complex sha512 sm3 sm4 cmpccxadd fzrm fsrs fsrc prefetchw"
	" xsaves la57 ";

static bool check_flags(struct check *c)
{
	const struct facts *here = &c->job->self.facts,
			   *there = &c->job->node.facts;
	char flags[sizeof(here->cpu_flags)], word[64], *flag, *save;

	snprintf(flags, sizeof(flags), "%s", here->cpu_flags);
	for (flag = strtok_r(flags, " ", &save); flag;
	     flag = strtok_r(NULL, " ", &save)) {
		snprintf(word, sizeof(word), " %.60s ", flag);
		if (strstr(user_flags, word) && !facts_has_flag(there, flag) &&
		    obstacle(c, EOPNOTSUPP, "node %s lacks the CPU flag %s",
			     c->job->node.name, flag))
			return true;
	}
	return false;
}

static bool check_facts(struct check *c)
{
	const struct facts *here = &c->job->self.facts,
			   *there = &c->job->node.facts;
	const char *name = c->job->node.name;

	if (check_flags(c))
		return true;
	if ((here->xfeatures & ~there->xfeatures ||
	     here->xsave_size != there->xsave_size ||
	     memcmp(here->xsave_hash, there->xsave_hash, FACTS_HASH)) &&
	    obstacle(c, EOPNOTSUPP,
		     "node %s saves the CPU's state in another form", name))
		return true;
	return (here->vdso_size != there->vdso_size ||
		here->vvar_size != there->vvar_size ||
		memcmp(here->vdso_hash, there->vdso_hash, FACTS_HASH)) &&
	       obstacle(c, EOPNOTSUPP,
			"node %s has another vdso (kernel %s, here %s)", name,
			there->release, here->release);
}

int check_nodes(struct job *job)
{
	struct check c = { .job = job };

	return check_facts(&c) ? -job->result : 0;
}

/* ----------------------------------------------------------------- all */

static void check_all(struct check *c)
{
	char status[8192];

	if (check_identity(c, status, sizeof(status)) || check_namespaces(c) ||
	    check_threads(c) || check_program(c) || check_sharing(c) ||
	    check_descriptors(c) || check_timers(c))
		return;
	check_mappings(c);
}

int check_process(struct job *job, bool frozen)
{
	struct check c = { .job = job, .frozen = frozen };

	check_all(&c);
	return c.found ? -job->result : 0;
}

int mattx_migrate_check(struct job *job)
{
	struct check c = { .job = job, .all = true };

	check_all(&c);
	if (job->node.id)
		check_facts(&c);
	return 0;
}
