// SPDX-License-Identifier: GPL-2.0
/*
 * Calls for which a process may have to go home, one at each SIGUSR1. Wherever
 * it is made, it must work.
 *
 *	homegoers FILE
 *
 * Prints the name of each when it has been made.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lib.h"

extern char **environ;

static const char *file;
static volatile sig_atomic_t asked;
static int atfork_calls;

static volatile int timer_calls;
/* what one call leaves for the next */
static pid_t left_child;
static int left_fd;
static uint64_t left_at;

static void on_timer_thread(union sigval value)
{
	timer_calls = value.sival_int;
}

static void on_usr1(int sig)
{
	(void)sig;
	asked++;
}

static void check_child(pid_t pid, int want)
{
	int status = -1;

	if (pid < 0) {
		fail("no child: %s", strerror(errno));
		return;
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), want);
}

static void c_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid)
		_exit(getppid() == parent ? 11 : 12);
	check_child(pid, 11);
	check(atfork_calls > 0);
}

static void c_fork_talk(void)
{
	char buf[8];
	int p[2];
	pid_t pid;

	must(pipe2(p, O_CLOEXEC));
	pid = fork();
	if (!pid)
		_exit(write(p[1], "child", 5) == 5 ? 0 : 1);
	must(close(p[1]));
	check_eq(read(p[0], buf, sizeof(buf)), 5);
	check_eq(read(p[0], buf, sizeof(buf)), 0);
	must(close(p[0]));
	check_child(pid, 0);
}

static void c_vfork(void)
{
	char *const argv[] = { "sh", "-c", "exit 5", NULL };
	pid_t pid;

	check_eq(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	check_child(pid, 5);
}

static void c_system(void)
{
	int status = system("exit 6");

	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 6);
}

static void c_popen(void)
{
	char line[32] = "";
	FILE *f = popen("echo from a pipe", "re");

	if (!check(f))
		return;
	check(fgets(line, sizeof(line), f) != NULL);
	check(!strcmp(line, "from a pipe\n"));
	check_eq(pclose(f), 0);
}

static void *adder(void *arg)
{
	return (char *)arg + 1;
}

static void c_thread(void)
{
	pthread_t thread;
	void *result;

	check_eq(pthread_create(&thread, NULL, adder, (void *)4), 0);
	check_eq(pthread_join(thread, &result), 0);
	check_eq((uintptr_t)result, 5);
}

static void c_socketpair(void)
{
	char buf[8];
	int s[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	check_eq(send(s[0], "hello", 5, 0), 5);
	check_eq(recv(s[1], buf, sizeof(buf), 0), 5);
	must(shutdown(s[0], SHUT_WR));
	check_eq(recv(s[1], buf, sizeof(buf), 0), 0);
	must(close(s[0]));
	must(close(s[1]));
}

/* Both ends of a connection over the loopback interface. */
static void c_tcp(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener, client, server, one = 1;
	socklen_t len = sizeof(addr);
	char buf[64];

	listener = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	must(bind(listener, (struct sockaddr *)&addr, len));
	must(listen(listener, 5));
	must(getsockname(listener, (struct sockaddr *)&addr, &len));
	client = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	must(connect(client, (struct sockaddr *)&addr, len));
	server = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	check_eq(write(client, "question", 8), 8);
	check_eq(read(server, buf, sizeof(buf)), 8);
	check_eq(write(server, "answer", 6), 6);
	check_eq(read(client, buf, sizeof(buf)), 6);
	must(close(client));
	check_eq(read(server, buf, sizeof(buf)), 0);
	must(close(server));
	must(close(listener));
}

static void c_udp(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	char buf[64];
	int s;

	s = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	must(bind(s, (struct sockaddr *)&addr, len));
	must(getsockname(s, (struct sockaddr *)&addr, &len));
	check_eq(sendto(s, "datagram", 8, 0, (struct sockaddr *)&addr, len), 8);
	check_eq(recvfrom(s, buf, sizeof(buf), 0, NULL, NULL), 8);
	must(close(s));
}

static void c_name(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;

	if (check_eq(getaddrinfo("localhost", "80", &hints, &ai), 0))
		freeaddrinfo(ai);
}

static void c_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 5 }, got;
	int set, p[2];

	set = must(epoll_create1(EPOLL_CLOEXEC));
	must(pipe2(p, O_CLOEXEC));
	must(epoll_ctl(set, EPOLL_CTL_ADD, p[0], &event));
	check_eq(epoll_wait(set, &got, 1, 0), 0);
	check_eq(write(p[1], "x", 1), 1);
	check_eq(epoll_wait(set, &got, 1, 60000), 1);
	check_eq(got.data.u32, 5);
	must(close(set));
	must(close(p[0]));
	must(close(p[1]));
}

static void c_eventfd(void)
{
	int fd = must(eventfd(3, EFD_CLOEXEC));
	uint64_t n = 4;

	check_eq(write(fd, &n, 8), 8);
	check_eq(read(fd, &n, 8), 8);
	check_eq(n, 7);
	must(close(fd));
}

static void c_timerfd(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 2000000 };
	int fd = must(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	uint64_t n = 0;

	must(timerfd_settime(fd, 0, &soon, NULL));
	check_eq(read(fd, &n, 8), 8);
	check_eq(n, 1);
	must(close(fd));
}

static void c_signalfd(void)
{
	struct signalfd_siginfo info;
	sigset_t set, old;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	must(sigprocmask(SIG_BLOCK, &set, &old));
	fd = must(signalfd(-1, &set, SFD_CLOEXEC));
	must(kill(getpid(), SIGUSR2));
	check_eq(read(fd, &info, sizeof(info)), sizeof(info));
	check_eq(info.ssi_signo, SIGUSR2);
	must(close(fd));
	must(sigprocmask(SIG_SETMASK, &old, NULL));
}

static void c_inotify(void)
{
	char buf[512];
	int fd = must(inotify_init1(IN_CLOEXEC)), w;

	must(inotify_add_watch(fd, file, IN_ATTRIB));
	w = must(open(file, O_RDWR | O_CLOEXEC));
	must(fchmod(w, 0600));
	check(read(fd, buf, sizeof(buf)) > 0);
	must(close(w));
	must(close(fd));
}

static void c_dlopen(void)
{
	double (*cosine)(double);
	void *handle = dlopen("libm.so.6", RTLD_NOW);

	if (!check(handle))
		return;
	*(void **)&cosine = dlsym(handle, "cos");
	check(cosine && cosine(0) == 1);
	dlclose(handle);
}

static void c_map_private(void)
{
	int fd = must(open(file, O_RDWR | O_CLOEXEC));
	char *p, text[8];

	check_eq(pwrite(fd, "private!", 8, 0), 8);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (check(p != MAP_FAILED)) {
		check(!memcmp(p, "private!", 8));
		p[0] = 'P';
		check_eq(pread(fd, text, 8, 0), 8);
		check_eq(text[0], 'p');
		must(munmap(p, 4096));
	}
	must(close(fd));
}

static void c_map_shared(void)
{
	int fd = must(open(file, O_RDWR | O_CLOEXEC));
	char *p, text[8];

	check_eq(pwrite(fd, "shared..", 8, 0), 8);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (check(p != MAP_FAILED)) {
		p[0] = 'S';
		check_eq(pread(fd, text, 8, 0), 8);
		check_eq(text[0], 'S');
		check_eq(pwrite(fd, "xy", 2, 6), 2);
		check_eq(p[7], 'y');
		must(munmap(p, 4096));
	}
	must(close(fd));
}

static void c_shared_memory(void)
{
	int *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (!check(p != MAP_FAILED))
		return;
	pid = fork();
	if (!pid) {
		*p = 99;
		_exit(0);
	}
	check_child(pid, 0);
	check_eq(*p, 99);
	must(munmap(p, 4096));
}

static void c_sysv(void)
{
	int id = must(shmget(IPC_PRIVATE, 4096, 0600));
	char *p = shmat(id, NULL, 0);

	if (check(p != (void *)-1)) {
		p[5] = 1;
		must(shmdt(p));
	}
	must(shmctl(id, IPC_RMID, NULL));
}

static void c_memfd(void)
{
	int fd = must(memfd_create("test", MFD_CLOEXEC));
	char text[4];

	must(ftruncate(fd, 100));
	check_eq(pwrite(fd, "mem", 3, 50), 3);
	check_eq(pread(fd, text, 3, 50), 3);
	check(!memcmp(text, "mem", 3));
	must(close(fd));
}

static void c_splice(void)
{
	int fd = must(open(file, O_RDWR | O_CLOEXEC)), p[2];
	char buf[32];

	must(ftruncate(fd, 0));
	check_eq(pwrite(fd, "to be sent", 10, 0), 10);
	must(pipe2(p, O_CLOEXEC));
	check_eq(sendfile(p[1], fd, &(off_t){ 0 }, 10), 10);
	check_eq(splice(fd, &(off64_t){ 3 }, p[1], NULL, 7, 0), 7);
	check_eq(read(p[0], buf, sizeof(buf)), 17);
	check(!memcmp(buf, "to be sentbe sent", 17));
	must(close(p[0]));
	must(close(p[1]));
	must(close(fd));
}

static void c_passed_fd(void)
{
	char space[CMSG_SPACE(sizeof(int))] = "", byte = 'b';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = space,
			      .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int s[2], fd, got;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	fd = must(open(file, O_RDWR | O_CLOEXEC));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	check_eq(sendmsg(s[0], &msg, 0), 1);
	memset(space, 0, sizeof(space));
	check_eq(recvmsg(s[1], &msg, 0), 1);
	c = CMSG_FIRSTHDR(&msg);
	if (check(c)) {
		memcpy(&got, CMSG_DATA(c), sizeof(int));
		check_eq(pwrite(got, "passed", 6, 0), 6);
		must(close(got));
	}
	must(close(fd));
	must(close(s[0]));
	must(close(s[1]));
}

/* A08: a second timer of a kind for which glibc has started a thread before. */
static void c_sigev_thread(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = on_timer_thread,
				  .sigev_value.sival_int = 3 };
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	timer_t timer;

	timer_calls = 0;
	must(timer_create(CLOCK_MONOTONIC, &event, &timer));
	must(timer_settime(timer, 0, &soon, NULL));
	wait_word(&timer_calls, 3, "a timer's thread");
	must(timer_delete(timer));
}

/* Between these pairs the process moves. A16: a child has ended before. */
static void c_zombie(void)
{
	siginfo_t info;

	left_child = fork();
	if (!left_child)
		_exit(7);
	must(waitid(P_PID, left_child, &info, WEXITED | WNOWAIT));
}

static void c_zombie_later(void)
{
	check_child(left_child, 7);
	must_fail(waitpid(left_child, NULL, 0), ECHILD);
}

/* A17: a child is stopped, not by SIGSTOP. */
static void c_stopped(void)
{
	siginfo_t info;

	left_child = fork();
	if (!left_child) {
		signal(SIGTERM, SIG_DFL);
		for (;;)
			pause();
	}
	/* in an orphaned process group it would not stop */
	must(setpgid(left_child, left_child));
	must(kill(left_child, SIGTSTP));
	must(waitid(P_PID, left_child, &info, WSTOPPED | WNOWAIT));
	check_eq(info.si_status, SIGTSTP);
}

static void c_stopped_later(void)
{
	int status = 0;

	check_eq(waitpid(left_child, &status, WUNTRACED), left_child);
	check(WIFSTOPPED(status));
	check_eq(WSTOPSIG(status), SIGTSTP);
	must(kill(left_child, SIGCONT));
	check_eq(waitpid(left_child, &status, WCONTINUED), left_child);
	check(WIFCONTINUED(status));
	must(kill(left_child, SIGKILL));
	check_eq(waitpid(left_child, &status, 0), left_child);
	check(WIFSIGNALED(status));
}

/* A01: a timer runs on meanwhile. */
static void c_ticks(void)
{
	struct itimerspec every = { .it_interval.tv_nsec = 5000000,
				    .it_value.tv_nsec = 5000000 };

	left_fd = must(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	left_at = now_ns(CLOCK_MONOTONIC);
	must(timerfd_settime(left_fd, 0, &every, NULL));
}

static void c_ticks_later(void)
{
	uint64_t n = 0, passed;

	check_eq(read(left_fd, &n, 8), 8);
	passed = (now_ns(CLOCK_MONOTONIC) - left_at) / 5000000;
	if (n > passed + 1 || n + 40 + passed / 10 < passed)
		fail("%llu ticks in a time for %llu", (unsigned long long)n,
		     (unsigned long long)passed);
	check_eq(read(left_fd, &n, 8), 8);
	must(close(left_fd));
}

/* A26: what /proc says about oneself. */
static void c_proc(void)
{
	char text[256] = "", path[64];
	int p[2], fd;

	fd = must(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
	check(read(fd, text, sizeof(text) - 1) > 0);
	check_eq(atoi(text), getpid());
	check(strstr(text, "(homegoers)") != NULL);
	must(close(fd));
	must(pipe2(p, O_CLOEXEC));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[1]);
	fd = must(open(path, O_WRONLY | O_CLOEXEC));
	check_eq(write(fd, "again", 5), 5);
	check_eq(read(p[0], text, 5), 5);
	must(close(fd));
	must(close(p[0]));
	must(close(p[1]));
}

static void c_other(void)
{
	must_fail(syscall(1000), ENOSYS);
	must(syscall(SYS_sched_yield));
	must(syscall(SYS_membarrier, 0, 0, 0));
	check(sysconf(_SC_NPROCESSORS_ONLN) > 0);
	check(getpid() == (pid_t)syscall(SYS_getpid));
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "fork", c_fork },
	{ "fork and pipe", c_fork_talk },
	{ "posix_spawn", c_vfork },
	{ "system", c_system },
	{ "popen", c_popen },
	{ "pthread_create", c_thread },
	{ "socketpair", c_socketpair },
	{ "tcp", c_tcp },
	{ "udp", c_udp },
	{ "getaddrinfo", c_name },
	{ "epoll", c_epoll },
	{ "eventfd", c_eventfd },
	{ "timerfd", c_timerfd },
	{ "signalfd", c_signalfd },
	{ "inotify", c_inotify },
	{ "dlopen", c_dlopen },
	{ "mmap private", c_map_private },
	{ "mmap shared", c_map_shared },
	{ "shared memory", c_shared_memory },
	{ "System V memory", c_sysv },
	{ "memfd", c_memfd },
	{ "splice", c_splice },
	{ "passed descriptor", c_passed_fd },
	{ "timer with a thread", c_sigev_thread },
	{ "another one", c_sigev_thread },
	{ "child that ends", c_zombie },
	{ "is waited for", c_zombie_later },
	{ "child that stops", c_stopped },
	{ "goes on", c_stopped_later },
	{ "timer that ticks", c_ticks },
	{ "has ticked", c_ticks_later },
	{ "/proc/self", c_proc },
	{ "others", c_other },
};

#define CALLS ((int)(sizeof(calls) / sizeof(calls[0])))

static void atfork(void)
{
	atfork_calls++;
}

int main(int argc, char **argv)
{
	int first = lib_init("homegoers", argc, argv), done = 0;
	sigset_t set, old;

	if (argc <= first)
		return 2;
	file = argv[first];
	close(open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	pthread_atfork(atfork, NULL, NULL);
	signal(SIGUSR1, on_usr1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	lib_ready();
	while (!lib_stop && done < CALLS) {
		if (asked <= done) {
			sigsuspend(&old);
			continue;
		}
		sigprocmask(SIG_SETMASK, &old, NULL);
		calls[done].call();
		printf("%s\n", calls[done].name);
		sigprocmask(SIG_BLOCK, &set, NULL);
		lib_progress(++done);
	}
	/* at last another program in the same process */
	if (!lib_stop) {
		while (asked <= done)
			sigsuspend(&old);
		if (lib_end())
			return 1;
		execl("/bin/sh", "sh", "-c", "echo exec; exit 17", NULL);
		fail("exec: %s", strerror(errno));
	}
	return lib_end();
}
