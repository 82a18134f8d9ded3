// SPDX-License-Identifier: GPL-2.0
/* Cases: descriptors, and what is under way in them while the process moves. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cases.h"

/* ------------------------------------------------------------------- a pipe */

#define PIPE_SIZE (1 << 20)
#define PIPE_FILL (900 << 10)

static char big[PIPE_FILL], back[PIPE_FILL];

void A18_empty_pipe_size(void)
{
	size_t done, i;
	ssize_t n;
	bool more;
	int p[2];

	for (i = 0; i < PIPE_FILL; i++)
		big[i] = mix(i);
	must(pipe2(p, O_CLOEXEC | O_NONBLOCK));
	check_eq(must(fcntl(p[1], F_SETPIPE_SZ, PIPE_SIZE)), PIPE_SIZE);
	do {
		more = moved();
		check_eq(fcntl(p[0], F_GETPIPE_SZ), PIPE_SIZE);
		must_fail(read(p[0], back, 1), EAGAIN);
		check_eq(write(p[1], big, PIPE_FILL), PIPE_FILL);
		for (done = 0; done < PIPE_FILL; done += n) {
			n = read(p[0], back + done, PIPE_FILL - done);
			if (n <= 0) {
				fail("%zu bytes are there: %s", done,
				     n ? strerror(errno) : "end");
				break;
			}
		}
		check(!memcmp(big, back, PIPE_FILL));
	} while (more);
	must(close(p[0]));
	must(close(p[1]));
}

/* ------------------------------------------------------------------ sockets */

struct passing {
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec iov;
	struct msghdr msg;
};

static void set_up_passing(struct passing *p)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ &p->byte, 1 };
	p->msg.msg_iov = &p->iov;
	p->msg.msg_iovlen = 1;
	p->msg.msg_control = p->space;
	p->msg.msg_controllen = sizeof(p->space);
}

static void send_fd(int s, int fd)
{
	struct passing p;
	struct cmsghdr *c;

	set_up_passing(&p);
	p.byte = 'f';
	c = CMSG_FIRSTHDR(&p.msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	check_eq(sendmsg(s, &p.msg, 0), 1);
}

static int receive_fd(int s)
{
	struct passing p;
	struct cmsghdr *c;
	int fd = -1;

	set_up_passing(&p);
	check_eq(recvmsg(s, &p.msg, MSG_CMSG_CLOEXEC), 1);
	check_eq(p.byte, 'f');
	check_eq(p.msg.msg_flags & MSG_CTRUNC, 0);
	c = CMSG_FIRSTHDR(&p.msg);
	if (!c || c->cmsg_type != SCM_RIGHTS) {
		fail("no descriptor has come");
		return -1;
	}
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

/* Nobody has the pipe's reading end but the message in the socket. */
void A19_fd_in_flight(void)
{
	bool more = true;
	char buf[16];
	int s[2], p[2], fd, n;

	for (n = 0; more; n++) {
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
		must(pipe2(p, O_CLOEXEC));
		send_fd(s[0], p[0]);
		must(close(s[0]));
		must(close(p[0]));
		check_eq(write(p[1], "before", 6), 6);
		more = moved();
		if (more && n % 2)
			more = moved();
		check_eq(write(p[1], "after", 5), 5);
		fd = receive_fd(s[1]);
		check_eq(read(fd, buf, sizeof(buf)), 11);
		check(!memcmp(buf, "beforeafter", 11));
		check_eq(recv(s[1], buf, sizeof(buf), 0), 0);
		must(close(p[1]));
		check_eq(read(fd, buf, sizeof(buf)), 0);
		must(close(fd));
		must(close(s[1]));
	}
}

void A20_unaccepted_with_data(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = case_file("socket");
	int listener, fd, n;
	bool more = true;
	char buf[16];

	strcpy(addr.sun_path, path);
	listener = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	must(bind(listener, (struct sockaddr *)&addr, sizeof(addr)));
	must(listen(listener, 5));
	for (n = 0; more; n++) {
		fd = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
		must(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
		check_eq(write(fd, "left behind", 11), 11);
		must(close(fd));
		more = moved();
		if (more && n % 2)
			more = moved();
		fd = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
		check_eq(read(fd, buf, sizeof(buf)), 11);
		check(!memcmp(buf, "left behind", 11));
		check_eq(read(fd, buf, sizeof(buf)), 0);
		must(close(fd));
	}
	must(close(listener));
	must(unlink(path));
}

/* ------------------------------------------------------------------ records */

#define RECORD 32 /* bytes */

static struct {
	int file, append, pipe;
	volatile int written, stop;
} records;

static void record_text(char *text, int n)
{
	int len = snprintf(text, RECORD, "record %d ", n);

	memset(text + len, '.', RECORD - 1 - len);
	text[RECORD - 1] = '\n';
}

static void *write_records(void *arg)
{
	char text[RECORD];
	int n;

	for (n = 0; !records.stop; n++) {
		record_text(text, n);
		check_eq(write(records.file, text, RECORD), RECORD);
		check_eq(write(records.append, text, RECORD), RECORD);
		check_eq(write(records.pipe, text, RECORD), RECORD);
		__atomic_store_n(&records.written, n + 1, __ATOMIC_RELEASE);
	}
	return arg;
}

/* How many there are, one after the other; -1: not as they should be. */
static int count_records(FILE *f)
{
	char text[RECORD], want[RECORD];
	size_t len;
	int n;

	for (n = 0; (len = fread(text, 1, RECORD, f)) == RECORD; n++) {
		record_text(want, n);
		if (memcmp(text, want, RECORD))
			return -1;
	}
	return len ? -1 : n;
}

/* At the other end of the pipe; tells the count when the pipe's end has come. */
static void read_records(int from, int to)
{
	int n = count_records(fdopen(from, "r"));

	_exit(write(to, &n, sizeof(n)) == sizeof(n) ? 0 : 1);
}

static void check_file(const char *path)
{
	FILE *f = fopen(path, "re");

	if (!check(f))
		return;
	check_eq(count_records(f), records.written);
	fclose(f);
	must(unlink(path));
}

void A24_exactly_once_output(void)
{
	const char *file = case_file("file"), *append = case_file("append");
	int p[2], answer[2], n = -1;
	pthread_t thread;
	pid_t pid;
	bool more;

	must(pipe2(p, O_CLOEXEC));
	must(pipe2(answer, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		close(p[1]);
		read_records(p[0], answer[1]);
	}
	must(close(p[0]));
	records.pipe = p[1];
	records.file = must(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	records.append = must(
		open(append, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
	start_thread(&thread, write_records, NULL);
	do {
		more = moved();
		wait_count(&records.written, records.written + 10, "records");
	} while (more);
	records.stop = 1;
	check_eq(pthread_join(thread, NULL), 0);
	must(close(records.pipe));
	check_eq(read(answer[0], &n, sizeof(n)), sizeof(n));
	check_eq(n, records.written);
	check_exit(pid, 0);
	check_file(file);
	check_file(append);
}

/* -------------------------------------------------------------------- /proc */

#define MANY 200 /* mappings, so that a list of them is long */

static char *mark;

/* Each other page has no access: none is merged with the next. */
static void make_mappings(void)
{
	int i;

	mark = mmap(NULL, MANY * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (mark == MAP_FAILED)
		exit(2);
	for (i = 0; i < MANY; i += 2)
		must(mprotect(mark + i * 4096, 4096, PROT_NONE));
}

static void read_some(int fd, char *text, size_t len)
{
	size_t at = 0;
	ssize_t n;

	while (at < len - 1 && (n = must(read(fd, text + at, len - 1 - at))) > 0)
		at += n;
	text[at] = 0;
}

static bool is_in(const char *maps, const void *start)
{
	char line[32];

	snprintf(line, sizeof(line), "%lx-", (unsigned long)(uintptr_t)start);
	return strstr(maps, line) != NULL;
}

/* Lines of the list that was begun before the move, to its end. */
static void check_rest(int fd, unsigned long last)
{
	static char text[64 << 10];
	unsigned long start, end;
	char *line, *save;

	read_some(fd, text, sizeof(text));
	check(strstr(text, "[stack]") != NULL);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) != 2 ||
		    end <= start || start < last) {
			fail("mappings: %s", line);
			return;
		}
		last = end;
	}
}

/* The list begins with whole lines. Returns where the last of them ends. */
static unsigned long begin_maps(int *fd)
{
	char text[4096], *line = text;
	unsigned long end = 0;
	ssize_t n;

	*fd = must(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
	n = must(read(*fd, text, sizeof(text) - 1));
	text[n] = 0;
	check(text[n - 1] == '\n');
	text[n - 1] = 0;
	if (strrchr(text, '\n'))
		line = strrchr(text, '\n') + 1;
	check_eq(sscanf(line, "%*x-%lx ", &end), 1);
	return end;
}

static void check_self(void)
{
	static char text[64 << 10];
	char path[64], *here;
	int fd = must(open("/proc/self/status", O_RDONLY | O_CLOEXEC));

	read_some(fd, text, sizeof(text));
	must(close(fd));
	snprintf(path, sizeof(path), "\nPid:\t%d\n", (int)getpid());
	check(strstr(text, path) != NULL);
	/* a mapping that is new is among them */
	here = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(mprotect(here, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
	fd = must(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
	read_some(fd, text, sizeof(text));
	check(is_in(text, mark));
	check(is_in(text, here));
	must(close(fd));
	must(munmap(here, 4096));
}

static void check_reopened(int p[2])
{
	char path[64], text[8];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[1]);
	fd = must(open(path, O_WRONLY | O_CLOEXEC));
	check_eq(write(fd, "again", 5), 5);
	check_eq(read(p[0], text, 8), 5);
	must(close(fd));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), p[0]);
	fd = must(open(path, O_RDONLY | O_CLOEXEC));
	check_eq(write(p[1], "more", 4), 4);
	check_eq(read(fd, text, 8), 4);
	check(!memcmp(text, "more", 4));
	must(close(fd));
}

void A26_proc_self_fd(void)
{
	unsigned long end;
	int p[2], fd;
	bool more;

	make_mappings();
	must(pipe2(p, O_CLOEXEC));
	do {
		end = begin_maps(&fd);
		more = moved();
		check_rest(fd, end);
		must(close(fd));
		check_self();
		check_reopened(p);
	} while (more);
}

/* ------------------------------------------------------------------ inotify */

static struct {
	int fd, dir, file;
} watch;

static char watched_dir[PATH_MAX], watched_file[PATH_MAX], new_file[PATH_MAX];

/* The next events are just these, of that watch. */
static void check_events(int wd, const uint32_t *want, int count)
{
	char buf[4096] __attribute__((aligned(8)));
	struct inotify_event *e = (void *)buf;
	ssize_t n = 0;
	int i;

	for (i = 0; i < count; i++) {
		if (!n) {
			n = read(watch.fd, buf, sizeof(buf));
			e = (void *)buf;
			if (n <= 0) {
				fail("event %d of %d: %s", i, count,
				     strerror(errno));
				return;
			}
		}
		check_eq(e->wd, wd);
		check_eq(e->mask, want[i]);
		n -= sizeof(*e) + e->len;
		e = (void *)((char *)(e + 1) + e->len);
	}
	if (n)
		fail("an event too many: watch %d, mask %x", e->wd, e->mask);
	n = read(watch.fd, buf, sizeof(buf));
	e = (void *)buf;
	if (n > 0)
		fail("an event too many: watch %d, mask %x, %s", e->wd, e->mask,
		     e->len ? e->name : "");
	else
		check_eq(errno, EAGAIN);
}

static void set_up_watches(void)
{
	int fd;

	strcpy(watched_dir, case_file("dir"));
	strcpy(watched_file, case_file("watched"));
	strcpy(new_file, case_file("dir/new"));
	must(mkdir(watched_dir, 0700));
	fd = must(open(watched_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	must(ftruncate(fd, 1 << 20));
	/* it is open and mapped while it is watched, and nobody has read it */
	if (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) ==
	    MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	watch.fd = must(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
	watch.dir = must(inotify_add_watch(watch.fd, watched_dir, IN_ALL_EVENTS));
	watch.file =
		must(inotify_add_watch(watch.fd, watched_file, IN_ALL_EVENTS));
}

static void make_events(void)
{
	int fd = must(open(new_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));

	check_eq(write(fd, "x", 1), 1);
	must(close(fd));
	must(unlink(new_file));
}

void A29_inotify_quiet(void)
{
	static const uint32_t in_dir[] = { IN_CREATE, IN_OPEN, IN_MODIFY,
					   IN_CLOSE_WRITE, IN_DELETE };
	static const uint32_t of_file[] = { IN_ATTRIB };
	bool more;

	set_up_watches();
	do {
		make_events();
		more = moved();
		check_events(watch.dir, in_dir, 5);
		must(chmod(watched_file, 0640));
		check_events(watch.file, of_file, 1);
	} while (more);
	check_eq(inotify_add_watch(watch.fd, watched_dir, IN_ALL_EVENTS),
		 watch.dir);
	must(inotify_rm_watch(watch.fd, watch.dir));
	must(close(watch.fd));
	must(unlink(watched_file));
	must(rmdir(watched_dir));
}
