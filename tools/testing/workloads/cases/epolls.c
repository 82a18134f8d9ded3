// SPDX-License-Identifier: GPL-2.0
/* Cases: epoll sets that were made before the process moves. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cases.h"

#define WAIT_MS 60000 /* what has not come until then is lost */

static void control(int set, int what, int fd, uint32_t events, int cookie)
{
	struct epoll_event event = { .events = events, .data.u32 = cookie };

	must(epoll_ctl(set, what, fd, &event));
}

/* ------------------------------------------------------------------ listener */

#define CLIENTS 170

static struct sockaddr_in addr = { .sin_family = AF_INET };
static socklen_t addr_len = sizeof(addr);

static int make_listener(void)
{
	int fd = must(
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	must(listen(fd, 20));
	must(getsockname(fd, (struct sockaddr *)&addr, &addr_len));
	return fd;
}

/* A client connects, the set says so, it is accepted, and nothing is left. */
static bool serve_client(int set, int listener)
{
	int client = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), fd;
	struct epoll_event event = { 0 };
	bool good;

	must(connect(client, (struct sockaddr *)&addr, addr_len));
	good = check_eq(epoll_wait(set, &event, 1, WAIT_MS), 1) &&
	       check_eq(event.data.u32, 77);
	fd = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	good = good && fd >= 0;
	must(close(fd));
	must(close(client));
	return good;
}

static void check_other_ways(int listener)
{
	int client = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	int set = must(epoll_create1(EPOLL_CLOEXEC));
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	struct epoll_event event = { 0 };

	must(connect(client, (struct sockaddr *)&addr, addr_len));
	check_eq(poll(&pfd, 1, WAIT_MS), 1);
	control(set, EPOLL_CTL_ADD, listener, EPOLLIN, 78);
	check_eq(epoll_wait(set, &event, 1, WAIT_MS), 1);
	check_eq(event.data.u32, 78);
	must(close(must(accept4(listener, NULL, NULL, SOCK_CLOEXEC))));
	must(close(set));
	must(close(client));
}

void A10_epoll_listener(void)
{
	int listener = make_listener(), set = must(epoll_create1(EPOLL_CLOEXEC));
	struct epoll_event event;
	bool more;
	int i;

	control(set, EPOLL_CTL_ADD, listener, EPOLLIN, 77);
	do {
		more = moved();
		check_eq(epoll_wait(set, &event, 1, 0), 0);
		for (i = 0; i < CLIENTS; i++)
			if (!serve_client(set, listener))
				break;
		check_other_ways(listener);
	} while (more);
	must(close(set));
	must(close(listener));
}

/* ----------------------------------------------------------------- two names */

/* Just these cookies are told, whatever their order. */
static void check_cookies(int set, unsigned int a, unsigned int b)
{
	struct epoll_event event[4];
	int n = epoll_wait(set, event, 4, WAIT_MS);

	if (!check_eq(n, 2))
		return;
	if ((event[0].data.u32 != a || event[1].data.u32 != b) &&
	    (event[0].data.u32 != b || event[1].data.u32 != a))
		fail("cookies %u and %u, not %u and %u", event[0].data.u32,
		     event[1].data.u32, a, b);
}

void A11_epoll_two_names(void)
{
	bool more = true;
	int set, p[2], twin;
	char byte;

	while (more) {
		set = must(epoll_create1(EPOLL_CLOEXEC));
		must(pipe2(p, O_CLOEXEC));
		twin = must(fcntl(p[0], F_DUPFD_CLOEXEC, 0));
		control(set, EPOLL_CTL_ADD, p[0], EPOLLIN, 1);
		control(set, EPOLL_CTL_ADD, twin, EPOLLIN, 2);
		more = moved();
		check_eq(write(p[1], "x", 1), 1);
		check_cookies(set, 1, 2);
		check_eq(read(p[0], &byte, 1), 1);
		check_eq(epoll_wait(set, &(struct epoll_event){ 0 }, 1, 0), 0);
		must(close(p[0]));
		if (more)
			more = moved();
		check_eq(write(p[1], "x", 1), 1);
		check_cookies(set, 1, 2);
		must_fail(epoll_ctl(set, EPOLL_CTL_DEL, p[0], NULL), EBADF);
		/* with the last number both are gone */
		must(close(twin));
		check_eq(epoll_wait(set, &(struct epoll_event){ 0 }, 1, 0), 0);
		must(close(set));
		must(close(p[1]));
	}
}

/* ------------------------------------------------------- shared with a child */

struct told {
	int events, cookie;
};

/* Stays at home. At each byte it tells what the set tells it. */
static void ask_set(int set, int from, int to)
{
	struct epoll_event event;
	struct told told;
	char byte;

	while (read(from, &byte, 1) == 1) {
		memset(&event, 0, sizeof(event));
		told.events = epoll_wait(set, &event, 1, WAIT_MS);
		told.cookie = event.data.u32;
		if (write(to, &told, sizeof(told)) != sizeof(told))
			_exit(1);
	}
	_exit(0);
}

static void check_holders(int set, int ask, int answer, int cookie)
{
	struct epoll_event event = { 0 };
	struct told told = { 0 };

	check_eq(epoll_wait(set, &event, 1, WAIT_MS), 1);
	check_eq(event.data.u32, cookie);
	check_eq(write(ask, "?", 1), 1);
	check_eq(read(answer, &told, sizeof(told)), sizeof(told));
	check_eq(told.events, 1);
	check_eq(told.cookie, cookie);
}

void A12_epoll_after_fork(void)
{
	int set = must(epoll_create1(EPOLL_CLOEXEC)), s[2], ask[2], answer[2];
	int cookie = 5;
	char byte;
	bool more;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	must(pipe2(ask, O_CLOEXEC));
	must(pipe2(answer, O_CLOEXEC));
	control(set, EPOLL_CTL_ADD, s[0], EPOLLIN, cookie);
	pid = fork();
	if (!pid) {
		close(s[0]);
		close(s[1]);
		close(ask[1]);
		ask_set(set, ask[0], answer[1]);
	}
	must(close(ask[0]));
	do {
		more = moved();
		check_eq(write(s[1], "x", 1), 1);
		check_holders(set, ask[1], answer[0], cookie);
		control(set, EPOLL_CTL_MOD, s[0], EPOLLIN, ++cookie);
		check_holders(set, ask[1], answer[0], cookie);
		check_eq(read(s[0], &byte, 1), 1);
	} while (more);
	must(close(ask[1]));
	check_exit(pid, 0);
}

/* ------------------------------------------------------ several wait for one */

#define WAITERS 4
enum { EDGE = 1, LEVEL, QUIT };

static struct {
	int set, edge[2], level[2], quit[2];
	volatile int edges, levels, taken;
} shared;

static void *wait_shared(void *arg)
{
	struct epoll_event event;
	char byte;

	for (;;) {
		if (epoll_wait(shared.set, &event, 1, -1) != 1) {
			check_eq(errno, EINTR);
		} else if (event.data.u32 == EDGE) {
			__atomic_add_fetch(&shared.edges, 1, __ATOMIC_RELEASE);
		} else if (event.data.u32 == LEVEL) {
			shared.levels++;
			if (read(shared.level[0], &byte, 1) == 1)
				__atomic_add_fetch(&shared.taken, 1,
						   __ATOMIC_RELEASE);
		} else {
			return arg;
		}
	}
}

static void set_up_shared(void)
{
	shared.set = must(epoll_create1(EPOLL_CLOEXEC));
	must(pipe2(shared.edge, O_CLOEXEC));
	must(pipe2(shared.level, O_CLOEXEC | O_NONBLOCK));
	must(pipe2(shared.quit, O_CLOEXEC));
	control(shared.set, EPOLL_CTL_ADD, shared.edge[0], EPOLLIN | EPOLLET,
		EDGE);
	control(shared.set, EPOLL_CTL_ADD, shared.level[0], EPOLLIN, LEVEL);
	control(shared.set, EPOLL_CTL_ADD, shared.quit[0], EPOLLIN, QUIT);
}

void A34_shared_epoll_waiters(void)
{
	pthread_t thread[WAITERS];
	int edges = 0, taken = 0, i;
	bool more;

	set_up_shared();
	for (i = 0; i < WAITERS; i++)
		start_thread(&thread[i], wait_shared, NULL);
	do {
		more = moved();
		for (i = 0; i < 5; i++) {
			check_eq(write(shared.edge[1], "x", 1), 1);
			wait_count(&shared.edges, ++edges, "an edge");
			check_eq(write(shared.level[1], "x", 1), 1);
			wait_count(&shared.taken, ++taken, "a level");
		}
		/* each edge was one thread's, each byte too */
		sleep_ms(200);
		check_eq(shared.edges, edges);
		check_eq(shared.taken, taken);
		check(shared.levels >= taken);
	} while (more);
	check_eq(write(shared.quit[1], "x", 1), 1);
	for (i = 0; i < WAITERS; i++)
		check_eq(pthread_join(thread[i], NULL), 0);
}
