// SPDX-License-Identifier: GPL-2.0
/*
 * Epoll sets whose descriptors are written to, emptied and closed by processes that stay
 * where they were started.
 *
 *	epoll [DESCRIPTORS]
 *
 * Three threads play ping-pong with a process each, with a level, an edge and a one-shot
 * registration: a wake-up that is lost ends the game. The main thread goes through
 * the rest in each round, with a process that does what it is told.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib.h"

#define WAIT_MS	 60000 /* what has not come until then is lost */
#define REPEATS	 30    /* a level that is gone may be told so often */
#define TOGETHER 16    /* of the many */

static unsigned int many = 1000;
static int *event_fd;

static void control(int set, int what, int fd, uint32_t events, uint64_t cookie)
{
	struct epoll_event event = { .events = events, .data.u64 = cookie };

	must(epoll_ctl(set, what, fd, &event));
}

/* One event, of that cookie; what it is. */
static uint32_t expect_event(int set, uint64_t cookie)
{
	struct epoll_event event = { 0 };

	if (!check_eq(epoll_wait(set, &event, 1, WAIT_MS), 1) ||
	    !check_eq(event.data.u64, cookie))
		return 0;
	return event.events;
}

static void expect_nothing(int set)
{
	struct epoll_event event = { 0 };

	if (!check_eq(epoll_wait(set, &event, 1, 0), 0))
		fail("cookie %llu, events %x",
		     (unsigned long long)event.data.u64, event.events);
}

static void make_pipe(int p[2])
{
	must(pipe2(p, O_CLOEXEC | O_NONBLOCK));
}

static void take_byte(int fd)
{
	char byte;

	check_eq(read(fd, &byte, 1), 1);
}

static void give_byte(int fd)
{
	check_eq(write(fd, "x", 1), 1);
}

/* ------------------------------------------- what others do: the servant */

enum order { WRITE, EMPTY, SIGNAL, HOLD, RELEASE };

struct order_msg {
	int order;
	int fd;
};

static int servant; /* a socket to it */

/* Of a descriptor that came with the order, or of one that was there before the fork. */
static int fd_of(struct msghdr *msg, int fd)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);

	return cmsg ? *(int *)CMSG_DATA(cmsg) : fd;
}

static __attribute__((noreturn)) void serve(int from)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct order_msg order;
	struct iovec vec = { &order, sizeof(order) };
	uint64_t one = 1;
	int held = -1;
	char buf[256];

	for (;;) {
		struct msghdr msg = { .msg_iov = &vec,
				      .msg_iovlen = 1,
				      .msg_control = &control,
				      .msg_controllen = sizeof(control) };
		bool good = true;
		int fd;

		if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != sizeof(order))
			_exit(0);
		fd = fd_of(&msg, order.fd);
		if (order.order == WRITE)
			good = write(fd, "x", 1) == 1;
		else if (order.order == SIGNAL)
			good = write(fd, &one, sizeof(one)) == sizeof(one);
		else if (order.order == EMPTY)
			good = read(fd, buf, sizeof(buf)) > 0;
		else if (order.order == HOLD)
			held = fd;
		else
			good = !close(held);
		if (fd != order.fd && order.order != HOLD)
			close(fd);
		if (write(from, &good, sizeof(good)) != sizeof(good))
			_exit(1);
	}
}

/* Has the servant do it, and waits until it is done. @pass: a descriptor to take along */
static void have(enum order order, int fd, bool pass)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct order_msg msg = { order, fd };
	struct iovec vec = { &msg, sizeof(msg) };
	struct msghdr hdr = { .msg_iov = &vec, .msg_iovlen = 1 };
	bool good = false;

	if (pass) {
		msg.fd = -1;
		hdr.msg_control = &control;
		hdr.msg_controllen = sizeof(control);
		*(int *)CMSG_DATA(&control.head) = fd;
	}
	check_eq(sendmsg(servant, &hdr, 0), sizeof(msg));
	check_eq(read(servant, &good, sizeof(good)), sizeof(good));
	check(good);
}

static void start_servant(void)
{
	int s[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(s[0]);
		serve(s[1]);
	}
	close(s[1]);
	servant = s[0];
}

/* ------------------------------------------------------------- ping-pong */

static struct game {
	const char *name;
	uint32_t events;
	int fd, set;
	volatile unsigned long played;
	pthread_t thread;
} games[] = {
	{ .name = "level", .events = EPOLLIN },
	{ .name = "edge", .events = EPOLLIN | EPOLLET },
	{ .name = "one-shot", .events = EPOLLIN | EPOLLONESHOT },
};

#define GAMES (sizeof(games) / sizeof(games[0]))

static __attribute__((noreturn)) void echo(int fd)
{
	char byte;

	while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
		;
	_exit(0);
}

static void start_game(struct game *game)
{
	int s[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(s[0]);
		echo(s[1]);
	}
	close(s[1]);
	must(fcntl(s[0], F_SETFL, O_NONBLOCK));
	game->fd = s[0];
}

/* One ball. An edge may be told once more after a move: that finds nothing to read. */
static bool play_ball(struct game *game)
{
	struct epoll_event event;
	char byte = 'b';
	int n;

	if (!check_eq(write(game->fd, &byte, 1), 1))
		return false;
	for (;;) {
		n = epoll_wait(game->set, &event, 1, WAIT_MS);
		if (n != 1) {
			fail("%s: %d of epoll_wait, %s", game->name, n,
			     n < 0 ? strerror(errno) : "no ball");
			return false;
		}
		n = read(game->fd, &byte, 1);
		if (game->events & EPOLLONESHOT)
			control(game->set, EPOLL_CTL_MOD, game->fd,
				game->events, 1);
		if (n == 1)
			return true;
		check_eq(errno, EAGAIN);
	}
}

static void *play(void *arg)
{
	struct game *game = arg;

	game->set = must(epoll_create1(EPOLL_CLOEXEC));
	control(game->set, EPOLL_CTL_ADD, game->fd, game->events, 1);
	while (!lib_stop && play_ball(game))
		game->played++;
	return NULL;
}

/* ---------------------------------------------------------- in each round */

static int set, level[2], once[2], shared[2], edge;

static void check_level(void)
{
	have(WRITE, level[1], false);
	check(expect_event(set, 1) & EPOLLIN);
	check(expect_event(set, 1) & EPOLLIN);
	take_byte(level[0]);
	expect_nothing(set);
	/* by oneself, and by another number of the same description */
	give_byte(level[1]);
	check(expect_event(set, 1) & EPOLLIN);
	have(EMPTY, level[0], false);
}

/* Somebody else has emptied it. */
static void check_emptied(void)
{
	struct epoll_event event;
	int n, told = 0;

	have(WRITE, level[1], false);
	check(expect_event(set, 1) & EPOLLIN);
	have(EMPTY, level[0], false);
	while ((n = epoll_wait(set, &event, 1, 20)) == 1 && told < 10000)
		told++;
	check_eq(n, 0);
	if (told > REPEATS)
		fail("a level that is gone was told %d times", told);
}

static void check_edge(void)
{
	uint64_t value;
	int i;

	for (i = 1; i <= 2; i++) {
		have(SIGNAL, edge, false);
		check(expect_event(set, 2) & EPOLLIN);
		check_eq(read(edge, &value, sizeof(value)), sizeof(value));
		check_eq(value, 1);
		expect_nothing(set);
	}
	/* unread, it is told once for each time that it is written to */
	control(set, EPOLL_CTL_MOD, edge, EPOLLIN | EPOLLET, 3);
	have(SIGNAL, edge, false);
	check(expect_event(set, 3) & EPOLLIN);
	have(SIGNAL, edge, false);
	check(expect_event(set, 3) & EPOLLIN);
	check_eq(read(edge, &value, sizeof(value)), sizeof(value));
	check_eq(value, 2);
	control(set, EPOLL_CTL_MOD, edge, EPOLLIN | EPOLLET, 2);
	expect_nothing(set);
}

static void check_once(void)
{
	const uint32_t events = EPOLLIN | EPOLLONESHOT;

	control(set, EPOLL_CTL_ADD, once[0], events, 4);
	have(WRITE, once[1], false);
	check(expect_event(set, 4) & EPOLLIN);
	/* fired: it stays so, wherever we are */
	have(WRITE, once[1], false);
	expect_nothing(set);
	take_byte(once[0]);
	control(set, EPOLL_CTL_MOD, once[0], events, 5);
	check(expect_event(set, 5) & EPOLLIN);
	expect_nothing(set);
	take_byte(once[0]);
	control(set, EPOLL_CTL_DEL, once[0], 0, 0);
}

/* The other end is closed; and then this one, of which the servant has a duplicate. */
static void check_close(void)
{
	int own = must(epoll_create1(EPOLL_CLOEXEC)), s[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	control(own, EPOLL_CTL_ADD, s[0], EPOLLIN | EPOLLRDHUP, 6);
	expect_nothing(own);
	have(WRITE, s[1], true);
	check(expect_event(own, 6) & EPOLLIN);
	take_byte(s[0]);
	expect_nothing(own);
	must(close(s[1]));
	check(expect_event(own, 6) & EPOLLHUP);
	have(HOLD, s[0], true);
	must(close(s[0]));
	/* the registration goes with the description */
	check(expect_event(own, 6) & EPOLLHUP);
	must_fail(epoll_ctl(own, EPOLL_CTL_DEL, s[0], NULL), EBADF);
	have(RELEASE, -1, false);
	expect_nothing(own);
	must(close(own));

	make_pipe(s);
	control(set, EPOLL_CTL_ADD, s[0], EPOLLIN, 7);
	give_byte(s[1]);
	check(expect_event(set, 7) & EPOLLIN);
	must(close(s[0]));
	expect_nothing(set);
	must(close(s[1]));
}

static void check_exclusive(void)
{
	int a = must(epoll_create1(EPOLL_CLOEXEC));
	int b = must(epoll_create1(EPOLL_CLOEXEC));
	struct epoll_event event;
	int told;

	control(a, EPOLL_CTL_ADD, shared[0], EPOLLIN | EPOLLEXCLUSIVE, 1);
	control(b, EPOLL_CTL_ADD, shared[0], EPOLLIN | EPOLLEXCLUSIVE, 2);
	must_fail(epoll_ctl(a, EPOLL_CTL_MOD, shared[0],
			    &(struct epoll_event){ .events = EPOLLIN }),
		  EINVAL);
	expect_nothing(a);
	expect_nothing(b);
	have(WRITE, shared[1], false);
	told = epoll_wait(a, &event, 1, 0) + epoll_wait(b, &event, 1, 0);
	check(told == 1 || told == 2);
	take_byte(shared[0]);
	expect_nothing(a);
	expect_nothing(b);
	must(close(a));
	must(close(b));
}

/* A set that is asked by others than epoll_wait(): poll(), another set, another number. */
static void check_asked(void)
{
	int own = must(epoll_create1(EPOLL_CLOEXEC)), outer, twin;
	struct pollfd pfd = { .fd = own, .events = POLLIN };

	control(own, EPOLL_CTL_ADD, shared[0], EPOLLIN | EPOLLET, 8);
	expect_nothing(own);
	have(WRITE, shared[1], false);
	check_eq(poll(&pfd, 1, WAIT_MS), 1);
	check(expect_event(own, 8) & EPOLLIN);
	/* the edge was told, though the byte is there */
	check_eq(poll(&pfd, 1, 0), 0);
	must(close(own));

	own = must(epoll_create1(EPOLL_CLOEXEC));
	control(own, EPOLL_CTL_ADD, shared[0], EPOLLIN | EPOLLET, 9);
	check(expect_event(own, 9) & EPOLLIN);
	outer = must(epoll_create1(EPOLL_CLOEXEC));
	control(outer, EPOLL_CTL_ADD, own, EPOLLIN, 10);
	expect_nothing(outer);
	have(WRITE, shared[1], false);
	check(expect_event(outer, 10) & EPOLLIN);
	twin = must(fcntl(own, F_DUPFD_CLOEXEC, 0));
	check(expect_event(twin, 9) & EPOLLIN);
	expect_nothing(outer);
	expect_nothing(own);
	take_byte(shared[0]);
	take_byte(shared[0]);
	must(close(outer));
	must(close(twin));
	must(close(own));
}

static int many_set;

/* Some of very many: these and no others, in any order. */
static void check_many(void)
{
	struct epoll_event event[TOGETHER];
	uint64_t value, start = mix(lib_rounds), sum = 0;
	unsigned int i, got = 0;
	int n;

	for (i = 0; i < TOGETHER; i++) {
		unsigned int which = (start + i * 7) % many;

		sum += which;
		if (i % 2)
			have(SIGNAL, event_fd[which], false);
		else
			check_eq(eventfd_write(event_fd[which], 1), 0);
	}
	while (got < TOGETHER) {
		n = epoll_wait(many_set, event, TOGETHER, WAIT_MS);
		if (!check(n > 0))
			return;
		for (i = 0; i < (unsigned int)n; i++) {
			check_eq(eventfd_read(event_fd[event[i].data.u64], &value),
				 0);
			check_eq(value, 1);
			sum -= event[i].data.u64;
		}
		got += n;
	}
	check_eq(sum, 0);
	check_eq(got, TOGETHER);
	expect_nothing(many_set);
}

/* Errors are the kernel's. */
static void check_errors(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int file;

	must_fail(epoll_ctl(set, EPOLL_CTL_ADD, level[0], &event), EEXIST);
	must_fail(epoll_ctl(set, EPOLL_CTL_MOD, once[0], &event), ENOENT);
	must_fail(epoll_ctl(set, EPOLL_CTL_DEL, once[0], NULL), ENOENT);
	must_fail(epoll_ctl(set, EPOLL_CTL_ADD, 12345, &event), EBADF);
	must_fail(epoll_ctl(set, EPOLL_CTL_ADD, set, &event), EINVAL);
	must_fail(epoll_ctl(level[0], EPOLL_CTL_ADD, edge, &event), EINVAL);
	must_fail(epoll_ctl(set, EPOLL_CTL_ADD, once[0],
			    (void *)(uintptr_t)nowhere),
		  EFAULT);
	file = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	must_fail(epoll_ctl(set, EPOLL_CTL_ADD, file, &event), EPERM);
	must(close(file));
	must_fail(epoll_wait(set, &event, 0, 0), EINVAL);
	must_fail(epoll_wait(12345, &event, 1, 0), EBADF);
	must_fail(epoll_wait(level[0], &event, 1, 0), EINVAL);
	/* an event whose place is bad is not lost */
	give_byte(level[1]);
	must_fail(epoll_wait(set, (void *)(uintptr_t)nowhere, 1, WAIT_MS),
		  EFAULT);
	check(expect_event(set, 1) & EPOLLIN);
	take_byte(level[0]);
	expect_nothing(set);
}

static void make_many(void)
{
	struct rlimit limit;
	unsigned int i;

	must(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &limit));
	event_fd = calloc(many, sizeof(*event_fd));
	for (i = 0; i < many; i++)
		event_fd[i] = must(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

/* After the others were forked: a set that they have too is not the process's own. */
static void make_sets(void)
{
	unsigned int i;

	many_set = must(epoll_create1(EPOLL_CLOEXEC));
	for (i = 0; i < many; i++)
		control(many_set, EPOLL_CTL_ADD, event_fd[i],
			i % 3 ? EPOLLIN : EPOLLIN | EPOLLET, i);
	set = must(epoll_create1(EPOLL_CLOEXEC));
	control(set, EPOLL_CTL_ADD, level[0], EPOLLIN, 1);
	control(set, EPOLL_CTL_ADD, edge, EPOLLIN | EPOLLET, 2);
}

int main(int argc, char **argv)
{
	int first = lib_init("epoll", argc, argv);
	unsigned int i;

	if (argc > first)
		many = strtoul(argv[first], NULL, 0);
	make_many();
	make_pipe(level);
	make_pipe(once);
	make_pipe(shared);
	edge = must(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	start_servant();
	for (i = 0; i < GAMES; i++)
		start_game(&games[i]);
	make_sets();
	lib_ready();
	lib_hold_term(SIG_BLOCK);
	for (i = 0; i < GAMES; i++)
		pthread_create(&games[i].thread, NULL, play, &games[i]);
	do {
		check_level();
		check_emptied();
		check_edge();
		check_once();
		check_close();
		check_exclusive();
		check_asked();
		check_many();
		check_errors();
		lib_hold_term(SIG_UNBLOCK);
		lib_hold_term(SIG_BLOCK);
	} while (lib_round());
	lib_stop = 1;
	for (i = 0; i < GAMES; i++) {
		pthread_join(games[i].thread, NULL);
		check(games[i].played);
	}
	return lib_end();
}
