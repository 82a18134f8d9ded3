// SPDX-License-Identifier: GPL-2.0
/*
 * Everything one does with descriptors and paths, in every round, while another
 * process, which stays at home, has the same objects open.
 *
 *	files DIR
 *
 * DIR/records, DIR/appended and DIR/piped get numbered records (A24 of the
 * cases): each number once, in order, whole.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <utime.h>

#include "lib.h"

#define RECORD 32	    /* bytes */
#define BATCH  20	    /* records a round */
#define BIG    (300u << 10) /* more than a pipe holds */

/* What the helper at home is asked for. */
enum order { APPEND, TELL, LOCK, TRY, UNLOCK, DRAIN, TALK, QUIT };

struct request {
	enum order order;
	int arg;
};

static struct {
	int request, answer; /* pipes to and from it */
	int drain, drained;  /* what it drains or echoes; both ends */
	pid_t pid;
} helper;

static int records, appended, piped, deleted, null, zero, locked;
static int master, slave;
static unsigned long next_record, next_appended;
static char top[PATH_MAX / 2];

/* ------------------------------------------------------------- records */

static int record_text(char *text, char who, unsigned long n)
{
	int len = snprintf(text, RECORD + 1, "%c %010lu ", who, n);

	memset(text + len, '-', RECORD - 1 - len);
	text[RECORD - 1] = '\n';
	text[RECORD] = 0;
	return RECORD;
}

static void append(int fd, char who, unsigned long *n, int count)
{
	char text[RECORD + 1];

	while (count--) {
		record_text(text, who, (*n)++);
		check_eq(write(fd, text, RECORD), RECORD);
	}
}

/* All of @who's records are there, in order; returns how many. */
static unsigned long count_records(const char *name, char who)
{
	char path[PATH_MAX], line[RECORD + 2], want[RECORD + 1];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	f = fopen(path, "re");
	if (!f) {
		fail("%s: %s", path, strerror(errno));
		return 0;
	}
	while (fgets(line, sizeof(line), f)) {
		if (strlen(line) != RECORD || line[RECORD - 1] != '\n')
			fail("%s: a torn record", name);
		if (line[0] != who)
			continue;
		record_text(want, who, n++);
		if (strcmp(line, want)) {
			fail("%s: %.20s in the place of %lu", name, line, n - 1);
			break;
		}
	}
	fclose(f);
	return n;
}

/* -------------------------------------------------------------- helper */

static void helper_lock(int type, int cmd, int *answer)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = 100, .l_len = 10
	};

	*answer = fcntl(locked, cmd, &lock) ? errno : 0;
}

static void helper_drain(int count)
{
	char buf[4096];
	ssize_t n;

	while (count > 0) {
		n = read(helper.drain, buf, sizeof(buf));
		if (n <= 0)
			_exit(4);
		count -= n;
	}
}

static void helper_talk(void)
{
	char line[64];
	ssize_t n = read(slave, line, sizeof(line) - 6);

	if (n <= 0)
		_exit(5);
	memcpy(line + n - 1, " heard\n", 7);
	if (write(slave, line, n + 6) != n + 6)
		_exit(5);
}

static void helper_main(int request, int answer)
{
	unsigned long written = 0, echoed = 0;
	struct request r;
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_IGN);
	while (read(request, &r, sizeof(r)) == sizeof(r)) {
		result = 0;
		switch (r.order) {
		case APPEND:
			append(appended, 'H', &written, r.arg);
			break;
		case TELL:
			append(piped, 'P', &echoed, r.arg);
			break;
		case LOCK:
			helper_lock(F_WRLCK, F_SETLKW, &result);
			break;
		case TRY:
			helper_lock(F_WRLCK, F_SETLK, &result);
			break;
		case UNLOCK:
			helper_lock(F_UNLCK, F_SETLK, &result);
			break;
		case DRAIN:
			helper_drain(r.arg);
			break;
		case TALK:
			helper_talk();
			break;
		case QUIT:
			_exit(0);
		}
		if (write(answer, &result, sizeof(result)) != sizeof(result))
			_exit(3);
	}
	_exit(0);
}

static void start_helper(void)
{
	int request[2], answer[2], drain[2];

	must(pipe2(request, O_CLOEXEC));
	must(pipe2(answer, O_CLOEXEC));
	must(pipe2(drain, O_CLOEXEC));
	helper.drain = drain[0];
	helper.drained = drain[1];
	helper.pid = fork();
	if (!helper.pid) {
		close(request[1]);
		close(answer[0]);
		close(drain[1]);
		close(master);
		helper_main(request[0], answer[1]);
	}
	close(request[0]);
	close(answer[1]);
	close(drain[0]);
	helper.request = request[1];
	helper.answer = answer[0];
}

static void ask(enum order order, int arg)
{
	struct request r = { order, arg };

	check_eq(write(helper.request, &r, sizeof(r)), sizeof(r));
}

static int answer(void)
{
	int result = -1;

	check_eq(read(helper.answer, &result, sizeof(result)), sizeof(result));
	return result;
}

/* --------------------------------------------------------------- rounds */

static void test_records(void)
{
	char text[RECORD + 1], want[RECORD + 1];
	off_t at = next_record * RECORD;

	check_eq(lseek(records, 0, SEEK_CUR), at);
	append(records, 'R', &next_record, BATCH);
	check_eq(lseek(records, 0, SEEK_CUR), at + BATCH * RECORD);
	check_eq(pread(records, text, RECORD, at), RECORD);
	record_text(want, 'R', next_record - BATCH);
	check(!memcmp(text, want, RECORD));
	/* another process appends at the same time */
	ask(APPEND, BATCH);
	append(appended, 'A', &next_appended, BATCH);
	check_eq(answer(), 0);
	ask(TELL, BATCH);
	check_eq(answer(), 0);
}

static void test_offsets(void)
{
	char buf[16];
	int fd, twin;

	fd = must(open("offsets", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
	check_eq(write(fd, "0123456789", 10), 10);
	twin = must(dup(fd));
	check_eq(lseek(twin, 3, SEEK_SET), 3);
	check_eq(read(fd, buf, 4), 4);
	check(!memcmp(buf, "3456", 4));
	check_eq(lseek(twin, 0, SEEK_CUR), 7);
	check_eq(lseek(fd, -2, SEEK_END), 8);
	check_eq(read(twin, buf, sizeof(buf)), 2);
	check_eq(read(twin, buf, sizeof(buf)), 0);
	must_fail(lseek(fd, -1, SEEK_SET), EINVAL);
	must(ftruncate(fd, 1 << 20));
	check_eq(lseek(fd, 0, SEEK_END), 1 << 20);
	check_eq(lseek(fd, 0, SEEK_DATA), 0);
	check_eq(pwrite(fd, "x", 1, 5000), 1);
	check_eq(pread(fd, buf, 2, 5000), 2);
	check(buf[0] == 'x' && !buf[1]);
	must(fsync(fd));
	must(fdatasync(fd));
	must(fallocate(fd, 0, 0, 2 << 20));
	must(close(fd));
	check_eq(lseek(twin, 0, SEEK_CUR), 0);
	must(close(twin));
	must_fail(read(twin, buf, 1), EBADF);
}

static void test_vectors(void)
{
	char a[8], b[8];
	struct iovec out[3] = { { "abc", 3 }, { "", 0 }, { "defgh", 5 } };
	struct iovec in[2] = { { a, 2 }, { b, 8 } };
	int fd;

	fd = must(open("vectors", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	check_eq(writev(fd, out, 3), 8);
	check_eq(pwritev(fd, out, 3, 8), 8);
	check_eq(lseek(fd, 0, SEEK_SET), 0);
	check_eq(readv(fd, in, 2), 10);
	check(!memcmp(a, "ab", 2) && !memcmp(b, "cdefghab", 8));
	check_eq(preadv(fd, in, 2, 7), 9);
	check(!memcmp(a, "ha", 2) && !memcmp(b, "bcdefgh", 7));
	must_fail(read(fd, nowhere, 8), EFAULT);
	must_fail(write(fd, nowhere, 8), EFAULT);
	must(close(fd));
}

static void test_big(unsigned long round)
{
	static char out[BIG], in[BIG];
	size_t done;
	ssize_t n = 1;
	int fd;

	memset(out, 'a' + round % 26, BIG);
	out[BIG / 2] = 0;
	fd = must(open("big", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	check_eq(write(fd, out, BIG), BIG);
	check_eq(pread(fd, in, BIG, 0), BIG);
	check(!memcmp(out, in, BIG));
	check_eq(pread(fd, in, BIG, 1000), BIG - 1000);
	check(!memcmp(out + 1000, in, BIG - 1000));
	must(close(fd));
	must(unlink("big"));
	/* blocks until the helper has taken most of it; a move may cut it short,
	 * as a stop and continue may
	 */
	ask(DRAIN, BIG);
	for (done = 0; done < BIG && n > 0; done += n)
		n = must(write(helper.drained, out + done, BIG - done));
	check_eq(answer(), 0);
}

static void test_devices(void)
{
	char buf[100];
	struct stat st;
	unsigned int i;

	check_eq(write(null, buf, sizeof(buf)), sizeof(buf));
	check_eq(read(null, buf, sizeof(buf)), 0);
	memset(buf, 1, sizeof(buf));
	check_eq(read(zero, buf, sizeof(buf)), sizeof(buf));
	for (i = 0; i < sizeof(buf); i++)
		check_eq(buf[i], 0);
	must(fstat(null, &st));
	check(S_ISCHR(st.st_mode));
}

static void test_deleted(unsigned long round)
{
	unsigned long back;
	struct stat st;

	check_eq(pwrite(deleted, &round, sizeof(round), 0), sizeof(round));
	check_eq(pread(deleted, &back, sizeof(back), 0), sizeof(back));
	check_eq(back, round);
	must(fstat(deleted, &st));
	check_eq(st.st_nlink, 0);
	check_eq(st.st_size, sizeof(back));
}

static void test_pipes(void)
{
	struct pollfd pfd[2];
	char buf[16];
	int p[2], fl;

	must(pipe2(p, O_CLOEXEC));
	fl = must(fcntl(p[0], F_GETFL));
	check_eq(fl & O_NONBLOCK, 0);
	must(fcntl(p[0], F_SETFL, fl | O_NONBLOCK));
	must_fail(read(p[0], buf, 1), EAGAIN);
	pfd[0] = (struct pollfd){ .fd = p[0], .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = p[1], .events = POLLOUT };
	check_eq(poll(pfd, 2, 0), 1);
	check_eq(pfd[0].revents, 0);
	check_eq(pfd[1].revents, POLLOUT);
	check_eq(poll(pfd, 1, 5), 0);
	check_eq(write(p[1], "hello", 5), 5);
	check_eq(poll(pfd, 1, -1), 1);
	check_eq(pfd[0].revents, POLLIN);
	check_eq(ioctl(p[0], FIONREAD, &fl), 0);
	check_eq(fl, 5);
	check_eq(read(p[0], buf, sizeof(buf)), 5);
	must(close(p[1]));
	check_eq(poll(pfd, 1, -1), 1);
	check_eq(pfd[0].revents, POLLHUP);
	check_eq(read(p[0], buf, sizeof(buf)), 0);
	must(close(p[0]));
	/* nobody reads: EPIPE, with SIGPIPE ignored */
	must(pipe2(p, O_CLOEXEC));
	must(close(p[0]));
	must_fail(write(p[1], "x", 1), EPIPE);
	must(close(p[1]));
}

static void test_pty(unsigned long round)
{
	char line[64], want[64];
	struct winsize size = { .ws_row = 20 + round % 10, .ws_col = 77 }, got;
	struct termios tio;
	int len, got_len, n;

	must(tcgetattr(slave, &tio));
	check_eq(tio.c_lflag & ICANON, ICANON);
	check_eq(isatty(master), 1);
	must(ioctl(master, TIOCSWINSZ, &size));
	must(ioctl(slave, TIOCGWINSZ, &got));
	check_eq(got.ws_row, size.ws_row);
	ask(TALK, 0);
	len = snprintf(line, sizeof(line), "line %lu\n", round);
	check_eq(write(master, line, len), len);
	check_eq(answer(), 0);
	len = snprintf(want, sizeof(want), "line %lu heard\r\n", round);
	/* a terminal may give it in pieces */
	for (got_len = 0, n = 1; got_len < len && n > 0; got_len += n)
		n = must(read(master, line + got_len, sizeof(line) - got_len));
	check_eq(got_len, len);
	check(!memcmp(line, want, len));
}

static void lock_region(int cmd, int type, int start, int len, int want)
{
	struct flock lock = { .l_type = type,
			      .l_whence = SEEK_SET,
			      .l_start = start,
			      .l_len = len };
	int ret = fcntl(locked, cmd, &lock);

	if ((ret ? errno : 0) != want)
		fail("lock %d: %s", type, ret ? strerror(errno) : "got it");
	if (cmd == F_GETLK && type != F_UNLCK && lock.l_type != F_UNLCK) {
		check_eq(lock.l_pid, helper.pid);
		check_eq(lock.l_start, 100);
	}
}

static void test_locks(void)
{
	int other, fd;

	lock_region(F_SETLK, F_WRLCK, 105, 100, 0);
	ask(TRY, 0);
	check_eq(answer(), EAGAIN);
	/* it waits until we let go */
	ask(LOCK, 0);
	sleep_ms(5);
	lock_region(F_SETLK, F_UNLCK, 105, 100, 0);
	check_eq(answer(), 0);
	lock_region(F_GETLK, F_WRLCK, 0, 0, 0);
	lock_region(F_SETLK, F_RDLCK, 100, 1, EAGAIN);
	ask(UNLOCK, 0);
	check_eq(answer(), 0);
	lock_region(F_SETLKW, F_WRLCK, 0, 0, 0);
	lock_region(F_SETLK, F_UNLCK, 0, 0, 0);
	/* flock() goes with the open file */
	fd = must(open("flock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	other = must(open("flock", O_RDWR | O_CLOEXEC));
	must(flock(fd, LOCK_EX));
	must_fail(flock(other, LOCK_EX | LOCK_NB), EAGAIN);
	must(close(fd));
	must(flock(other, LOCK_EX | LOCK_NB));
	must(close(other));
}

static void test_numbers(void)
{
	int fd, high, p[2];

	fd = must(open("numbers", O_RDWR | O_CREAT, 0600));
	check_eq(must(fcntl(fd, F_GETFD)) & FD_CLOEXEC, 0);
	must(fcntl(fd, F_SETFD, FD_CLOEXEC));
	check_eq(must(fcntl(fd, F_GETFD)), FD_CLOEXEC);
	high = must(fcntl(fd, F_DUPFD_CLOEXEC, 500));
	check_eq(high, 500);
	check_eq(must(dup3(fd, 600, O_CLOEXEC)), 600);
	check_eq(must(dup2(fd, 600)), 600);
	check_eq(must(fcntl(600, F_GETFD)), 0);
	must(close(600));
	must(close(high));
	must(close(fd));
	/* the lowest free number is taken */
	must(pipe2(p, O_CLOEXEC));
	check_eq(p[0] < p[1] ? p[0] : p[1], fd);
	must(close(p[0]));
	must(close(p[1]));
	must_fail(close(fd), EBADF);
}

static void test_paths(void)
{
	char cwd[PATH_MAX], sub[PATH_MAX], buf[PATH_MAX];
	struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	struct statfs fs;
	struct stat st;
	mode_t mask;
	int fd;

	check(getcwd(cwd, sizeof(cwd)) == cwd);
	check(!strcmp(cwd, top));
	must(mkdir("sub", 0755));
	must_fail(mkdir("sub", 0755), EEXIST);
	must(chdir("sub"));
	snprintf(sub, sizeof(sub), "%s/sub", top);
	check(getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, sub));
	mask = umask(027);
	fd = must(open("file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
	check_eq(umask(mask), 027);
	must_fail(open("file", O_WRONLY | O_CREAT | O_EXCL, 0666), EEXIST);
	check_eq(write(fd, "text", 4), 4);
	must(fstat(fd, &st));
	check_eq(st.st_mode & 07777, 0640);
	must(fchmod(fd, 0604));
	must(close(fd));
	must(symlink("file", "link"));
	check_eq(readlink("link", buf, sizeof(buf)), 4);
	must(stat("link", &st));
	check(S_ISREG(st.st_mode) && st.st_size == 4);
	check_eq(st.st_mode & 07777, 0604);
	must(lstat("link", &st));
	check(S_ISLNK(st.st_mode));
	must(link("file", "second"));
	must(utimensat(AT_FDCWD, "second", times, 0));
	must(stat("file", &st));
	check_eq(st.st_nlink, 2);
	check_eq(st.st_mtime, 2000);
	must(rename("second", "third"));
	must_fail(access("second", F_OK), ENOENT);
	must(access("third", R_OK | W_OK));
	must(chmod("third", 0600));
	must(chown("third", getuid(), getgid()));
	must(truncate("third", 2));
	must(statfs(".", &fs));
	must(mkfifo("fifo", 0600));
	must(unlink("fifo"));
	if (!setxattr("third", "user.test", "value", 5, 0)) {
		check_eq(getxattr("third", "user.test", buf, sizeof(buf)), 5);
		must(removexattr("third", "user.test"));
	}
	must(unlink("link"));
	must(unlink("file"));
	must(unlink("third"));
	must_fail(unlink("third"), ENOENT);
	must_fail(open("/nowhere/at/all", O_RDONLY), ENOENT);
	must_fail(open("file", O_RDONLY | O_DIRECTORY), ENOENT);
	must(chdir(".."));
	must(rmdir("sub"));
	must_fail(chdir("sub"), ENOENT);
	must_fail(stat(nowhere, &st), EFAULT);
}

/* A directory is read in pieces, one in each round. */
static void test_directory(unsigned long round)
{
	static unsigned int seen[64], total;
	static DIR *dir;
	struct dirent *entry;
	unsigned int i, n;
	char name[32];
	int fd;

	if (!dir) {
		must(mkdir("many", 0700));
		for (i = 0; i < 64; i++) {
			snprintf(name, sizeof(name), "many/%u", i);
			fd = must(open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
			must(close(fd));
		}
		dir = opendir("many");
		if (!check(dir))
			return;
	}
	for (i = 0; i < 7; i++) {
		entry = readdir(dir);
		if (!entry) {
			check_eq(total, 64);
			memset(seen, 0, sizeof(seen));
			total = 0;
			rewinddir(dir);
			break;
		}
		if (entry->d_name[0] == '.')
			continue;
		n = atoi(entry->d_name);
		if (check(n < 64) && seen[n]++)
			fail("name %u twice", n);
		total++;
	}
	/* a new one sees all of them at once */
	if (round % 8 == 0) {
		DIR *all = opendir("many");

		for (n = 0; all && (entry = readdir(all));)
			n += entry->d_name[0] != '.';
		check_eq(n, 64);
		if (all)
			closedir(all);
	}
}

static int open_file(const char *name, int flags)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0644);

	if (fd < 0) {
		perror(name);
		exit(2);
	}
	return fd;
}

static void set_up(const char *dir)
{
	if (chdir(dir) || !getcwd(top, sizeof(top))) {
		perror(dir);
		exit(2);
	}
	signal(SIGPIPE, SIG_IGN);
	records = open_file("records", 0);
	appended = open_file("appended", O_APPEND);
	piped = open_file("piped", O_APPEND);
	locked = open_file("locked", 0);
	deleted = open_file("deleted", 0);
	must(unlink("deleted"));
	null = must(open("/dev/null", O_RDWR | O_CLOEXEC));
	zero = must(open("/dev/zero", O_RDWR | O_CLOEXEC));
	must(openpty(&master, &slave, NULL, NULL, NULL));
	must(fcntl(master, F_SETFD, FD_CLOEXEC));
	must(fcntl(slave, F_SETFD, FD_CLOEXEC));
	struct termios tio;

	must(tcgetattr(slave, &tio));
	tio.c_lflag &= ~ECHO;
	must(tcsetattr(slave, TCSANOW, &tio));
	start_helper();
}

static void finish(unsigned long rounds)
{
	int status = -1;

	ask(QUIT, 0);
	check_eq(waitpid(helper.pid, &status, 0), helper.pid);
	check_eq(status, 0);
	check_eq(count_records("records", 'R'), rounds * BATCH);
	check_eq(count_records("appended", 'A'), rounds * BATCH);
	check_eq(count_records("appended", 'H'), rounds * BATCH);
	check_eq(count_records("piped", 'P'), rounds * BATCH);
}

int main(int argc, char **argv)
{
	int first = lib_init("files", argc, argv);
	unsigned long round = 0;

	if (argc <= first)
		return 2;
	set_up(argv[first]);
	lib_ready();
	do {
		lib_hold_term(SIG_BLOCK);
		test_records();
		test_offsets();
		test_vectors();
		test_big(round);
		test_devices();
		test_deleted(round);
		test_pipes();
		test_pty(round);
		test_locks();
		test_numbers();
		test_paths();
		test_directory(round);
		round++;
		lib_hold_term(SIG_UNBLOCK);
	} while (lib_round());
	finish(round);
	return lib_end();
}
