// SPDX-License-Identifier: GPL-2.0
/*
 * A process that must not be moved, for the reason it is told.
 *
 *	odd REASON
 *
 * memory, files, handlers, shared (a mapping): with a child; sysv: such a segment; device;
 * hugetlb; key: protection key; sealed; guard: pages made by madvise(2); userfault; seccomp;
 * uring; signalfd; leader: its first thread has ended; deadline; traced: by its own child.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib.h"

#define PAGE 4096ul

static char child_stack[64 << 10];

/* It could not be made odd: the script says so, and that is no failure. */
static void cannot(const char *what)
{
	printf("cannot: %s: %s\n", what, strerror(errno));
	exit(4);
}

static __attribute__((noreturn)) int child_main(void *arg)
{
	sigset_t set;

	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* ignoring it could be shared, too */
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;)
		pause();
}

static void share(int flags)
{
	if (clone(child_main, child_stack + sizeof(child_stack),
		  flags | SIGCHLD, NULL) < 0)
		cannot("clone");
}

static void *map(int prot, int flags, int fd)
{
	void *p = mmap(NULL, PAGE, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		cannot("mmap");
	return p;
}

/* With a child. */
static void map_shared(void)
{
	*(char *)map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1) = 1;
	if (!fork())
		child_main(NULL);
}

static void attach_sysv(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (p == (void *)-1)
		cannot("shmat");
	*p = 1;
	shmctl(id, IPC_RMID, NULL);
}

/* The first page of the BIOS: harmless to look at. */
static void map_device(void)
{
	int fd = open("/dev/mem", O_RDONLY | O_CLOEXEC);
	void *p;

	if (fd < 0)
		cannot("/dev/mem");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0xf0000);
	if (p == MAP_FAILED)
		cannot("/dev/mem");
	close(fd);
}

static void map_hugetlb(void)
{
	void *p = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		cannot("huge pages");
}

static void map_key(void)
{
	int key = pkey_alloc(0, 0);
	void *p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (key < 0 || pkey_mprotect(p, PAGE, PROT_READ | PROT_WRITE, key))
		cannot("pkey");
}

static void map_sealed(void)
{
	void *p = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (syscall(462, p, PAGE, 0))
		cannot("mseal");
}

static void map_guard(void)
{
	char *p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (madvise(p, PAGE, 102 /* MADV_GUARD_INSTALL */))
		cannot("MADV_GUARD_INSTALL");
}

static void map_userfault(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .len = PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		cannot("userfaultfd");
	range.range.start = (uintptr_t)map(PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (ioctl(fd, UFFDIO_REGISTER, &range))
		cannot("userfaultfd");
}

static void filter_calls(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		cannot("seccomp");
}

static void make_ring(void)
{
	struct io_uring_params params = { 0 };

	if (syscall(SYS_io_uring_setup, 4, &params) < 0)
		cannot("io_uring");
}

static void make_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (signalfd(-1, &set, SFD_CLOEXEC) < 0)
		cannot("signalfd");
}

static void set_deadline(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr),
		   .policy = 6,
		   .runtime = 1000000,
		   .deadline = 100000000,
		   .period = 100000000 };

	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		cannot("deadline");
}

static void trace_me(void)
{
	pid_t parent = getpid();
	int p[2];
	char c;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (pipe(p))
		cannot("pipe");
	if (!fork()) {
		if (ptrace(PTRACE_SEIZE, parent, 0, 0) || write(p[1], "x", 1) != 1)
			_exit(1);
		child_main(NULL);
	}
	close(p[1]);
	if (read(p[0], &c, 1) != 1)
		cannot("ptrace");
	close(p[0]);
}

static void *rounds(void *arg)
{
	lib_ready();
	do {
		sleep_ms(30);
	} while (lib_round());
	exit(lib_end());
	return arg;
}

/* The first thread ends; the second does the rounds. */
static void lose_leader(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, rounds, NULL))
		cannot("pthread_create");
	pthread_exit(NULL);
}

static const struct {
	const char *name;
	void (*make)(void);
	int flags;
} reasons[] = {
	{ "memory", NULL, CLONE_VM },
	{ "files", NULL, CLONE_FILES },
	{ "handlers", NULL, CLONE_VM | CLONE_SIGHAND },
	{ "shared", map_shared, 0 },
	{ "sysv", attach_sysv, 0 },
	{ "device", map_device, 0 },
	{ "hugetlb", map_hugetlb, 0 },
	{ "key", map_key, 0 },
	{ "sealed", map_sealed, 0 },
	{ "guard", map_guard, 0 },
	{ "userfault", map_userfault, 0 },
	{ "seccomp", filter_calls, 0 },
	{ "uring", make_ring, 0 },
	{ "signalfd", make_signalfd, 0 },
	{ "leader", lose_leader, 0 },
	{ "deadline", set_deadline, 0 },
	{ "traced", trace_me, 0 },
	{ "nothing", NULL, 0 },
};

int main(int argc, char **argv)
{
	int first = lib_init("odd", argc, argv);
	unsigned int i;

	if (argc <= first)
		return 2;
	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (strcmp(argv[first], reasons[i].name))
			continue;
		if (reasons[i].flags)
			share(reasons[i].flags);
		else if (reasons[i].make)
			reasons[i].make();
		rounds(NULL);
	}
	return 2;
}
