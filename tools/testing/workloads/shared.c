// SPDX-License-Identifier: GPL-2.0
/*
 * Shared mappings that nobody shares.
 *
 *	shared DIR...		in each of them a file with a name, DIR/kept, and one
 *				without; besides, anonymous memory and a memfd
 *	shared calls DIR	at each SIGUSR1 a call that would show whether its memory
 *				and its file are one
 *	shared twice DIR	maps the file twice
 *	shared beyond DIR	maps more than the file has
 *	shared view FILE	maps it read-only, and can do no more
 *	shared look FILE LEAST	is all as it should be in a file of the first, which has
 *				done LEAST rounds and may be at work or have ended?
 *	shared hold FILE	has it open until SIGTERM
 *	shared map FILE		has it mapped, and not open, until SIGTERM
 *
 * The first page of an area says what the others hold.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib.h"

#define PAGE   4096ul
#define PAGES  48
#define LEN    (PAGES * PAGE)
#define WORDS  (PAGE / 8)
#define AREAS  12
#define ZEROES (1ull << 63) /* of a generation: the page is full of zeroes */

struct head {
	uint64_t seq;	     /* odd: "current" is being written */
	uint64_t current;    /* page */
	uint64_t gen[PAGES]; /* 0: never written */
};

struct area {
	struct head *head;
	uint64_t gen[PAGES]; /* what head should say */
	uint64_t seq;
};

static struct area areas[AREAS];
static unsigned int nr_areas;
static volatile sig_atomic_t asked;

static uint64_t *page_of(struct head *head, unsigned int page)
{
	return (uint64_t *)((char *)head + page * PAGE);
}

static uint64_t word(unsigned int page, uint64_t gen, unsigned int i)
{
	if (!gen || gen & ZEROES)
		return 0;
	return mix(gen << 32 | page << 16 | i);
}

/* Return: whether the page is what its generation says. */
static bool page_good(struct head *head, unsigned int page)
{
	uint64_t *w = page_of(head, page), gen = head->gen[page];
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		if (w[i] != word(page, gen, i))
			return false;
	return true;
}

static void barrier(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void write_page(struct area *a, unsigned int page, uint64_t gen)
{
	volatile struct head *head = a->head;
	uint64_t *w = page_of(a->head, page);
	unsigned int i;

	head->current = page;
	barrier();
	head->seq = ++a->seq;
	barrier();
	for (i = 0; i < WORDS; i++)
		w[i] = word(page, gen, i);
	head->gen[page] = a->gen[page] = gen;
	barrier();
	head->seq = ++a->seq;
	barrier();
}

static void check_area(struct area *a, unsigned int n)
{
	unsigned int page;

	check_eq(a->head->seq, a->seq);
	for (page = 1; page < PAGES; page++) {
		check_eq(a->head->gen[page], a->gen[page]);
		if (!page_good(a->head, page))
			fail("area %u: page %u is not what was written", n, page);
	}
}

static void work(struct area *a, uint64_t round)
{
	unsigned int i, page;

	for (i = 0; i < 3; i++) {
		page = 1 + mix(round * 3 + i) % (PAGES - 1);
		if (page % 5 == 0) /* holes for ever */
			continue;
		write_page(a, page, round % 7 ? round + 1 : (round + 1) | ZEROES);
	}
}

/* ------------------------------------------------------------------ the areas */

static void add_area(int flags, int fd)
{
	struct area *a = &areas[nr_areas++];
	void *p;

	if (fd >= 0)
		must(ftruncate(fd, LEN));
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	a->head = p;
}

static int open_in(const char *dir, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static void unlink_in(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	must(unlink(path));
}

static int main_work(int argc, char **argv, int first)
{
	unsigned int i;
	int fd, n;

	add_area(MAP_ANONYMOUS, -1);
	fd = must(memfd_create("shared", MFD_CLOEXEC));
	add_area(0, fd);
	close(fd);
	for (n = first; n < argc; n++) {
		fd = open_in(argv[n], "kept");
		add_area(0, fd);
		/* two stay open, as some programs have it */
		if (n > first + 1)
			close(fd);
		fd = open_in(argv[n], "unlinked");
		unlink_in(argv[n], "unlinked");
		add_area(0, fd);
		close(fd);
	}
	lib_ready();
	do {
		for (i = 0; i < nr_areas; i++) {
			check_area(&areas[i], i);
			work(&areas[i], lib_rounds);
		}
		sleep_ms(5);
	} while (lib_round());
	for (i = 0; i < nr_areas; i++)
		check_area(&areas[i], i);
	return lib_end();
}

/* -------------------------------------------------------------------- others */

/* One look at the file. Return: NULL, or what is wrong; "" to look again. */
static const char *look(int fd, struct head *head, uint64_t least)
{
	static char text[64];
	uint64_t before;
	unsigned int page;

	if (pread(fd, &before, 8, 0) != 8 || pread(fd, head, LEN, 0) != LEN)
		return "it is too short";
	for (page = 1; page < PAGES; page++) {
		if (page_good(head, page) ||
		    (before & 1 && page == head->current))
			continue;
		snprintf(text, sizeof(text), "page %u is wrong", page);
		break;
	}
	if (pread(fd, &head->seq, 8, 0) != 8 || head->seq != before)
		return "";
	if (page < PAGES)
		return text;
	/* two or three pages are written in most rounds, one in each */
	if (before < least) {
		snprintf(text, sizeof(text), "%llu changes only",
			 (unsigned long long)before);
		return text;
	}
	return NULL;
}

static int main_look(const char *path, uint64_t least)
{
	struct head *head = malloc(LEN);
	const char *wrong = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC), tries;

	if (fd < 0) {
		perror(path);
		return 1;
	}
	for (tries = 0; tries < 2000 && wrong && !*wrong; tries++)
		wrong = look(fd, head, least);
	if (wrong)
		printf("%s: %s\n", path,
		       *wrong ? wrong : "it never stands still");
	else
		puts("good");
	return wrong ? 1 : 0;
}

static int main_hold(const char *path, bool map)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		perror(path);
		return 1;
	}
	if (map) {
		if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			return 1;
		close(fd);
	}
	lib_ready();
	while (!lib_stop)
		sleep_ms(20);
	return lib_end();
}

/* Read-only for good; somebody else may change its first byte. */
static int main_view(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const volatile char *p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	unsigned int page;

	if (p == MAP_FAILED) {
		perror(path);
		return 1;
	}
	close(fd);
	lib_ready();
	do {
		for (page = 0; page < PAGES; page++)
			check_eq(p[page * PAGE + 1], 'v');
		if (p[0] == 'x')
			break;
		sleep_ms(10);
	} while (lib_round());
	check_eq(p[0], lib_stop ? 'v' : 'x');
	return lib_end();
}

/* ----------------------------------------------------------------- odd mappings */

static int main_odd(const char *dir, bool twice)
{
	int fd = open_in(dir, "odd");

	must(ftruncate(fd, LEN));
	if (twice) {
		char *a = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fd, 0);
		char *b = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fd, PAGE);
		char *c = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);

		lib_ready();
		do {
			a[PAGE] = lib_rounds;
			check_eq(b[0], (char)lib_rounds);
			b[9] = lib_rounds + 1;
			check_eq(c[PAGE], (char)lib_rounds);
			check_eq(c[PAGE + 9], (char)(lib_rounds + 1));
			check_eq(a[PAGE + 9], (char)(lib_rounds + 1));
			sleep_ms(10);
		} while (lib_round());
	} else {
		char *a = mmap(NULL, LEN + PAGE, PROT_READ | PROT_WRITE,
			       MAP_SHARED, fd, 0);

		lib_ready();
		do {
			a[LEN - 1] = lib_rounds;
			sleep_ms(10);
		} while (lib_round());
	}
	return lib_end();
}

/* ---------------------------------------------------------------------- calls */

static int fd; /* of the file that is mapped at "at" */
static unsigned char *at;
static unsigned char value;
static const char *calls_dir;

/* A store that only a shared mapping shows to the file. */
static void store(unsigned int page)
{
	at[page * PAGE + 7] = ++value;
}

static void c_pread(void)
{
	unsigned char byte = 0;

	store(1);
	check_eq(pread(fd, &byte, 1, PAGE + 7), 1);
	check_eq(byte, value);
}

static void c_pwrite(void)
{
	unsigned char byte = 77;

	store(2);
	check_eq(pwrite(fd, &byte, 1, 2 * PAGE + 8), 1);
	check_eq(at[2 * PAGE + 8], 77);
	check_eq(at[2 * PAGE + 7], value);
}

static void c_open(void)
{
	unsigned char byte = 0;
	char path[256];
	int other;

	store(3);
	snprintf(path, sizeof(path), "%s/odd", calls_dir);
	other = must(open(path, O_RDONLY | O_CLOEXEC));
	check_eq(pread(other, &byte, 1, 3 * PAGE + 7), 1);
	check_eq(byte, value);
	must(close(other));
}

static void c_open_nonblock(void)
{
	char path[256];

	store(3);
	snprintf(path, sizeof(path), "%s/odd", calls_dir);
	must(close(must(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC))));
}

static void c_truncate(void)
{
	store(PAGES - 1);
	must(ftruncate(fd, LEN - PAGE));
	must(ftruncate(fd, LEN));
	check_eq(at[(PAGES - 1) * PAGE + 7], 0);
}

static void c_truncate_path(void)
{
	char path[256];

	store(PAGES - 1);
	snprintf(path, sizeof(path), "%s/odd", calls_dir);
	must(truncate(path, LEN - PAGE));
	must(truncate(path, LEN));
	check_eq(at[(PAGES - 1) * PAGE + 7], 0);
}

static void c_punch(void)
{
	store(4);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4 * PAGE,
		      PAGE))
		check_eq(errno, EOPNOTSUPP);
	else
		check_eq(at[4 * PAGE + 7], 0);
}

static void c_msync(void)
{
	unsigned char byte = 0;

	store(5);
	must(msync(at, LEN, MS_SYNC));
	check_eq(pread(fd, &byte, 1, 5 * PAGE + 7), 1);
	check_eq(byte, value);
}

static void c_protect(void)
{
	store(6);
	must(mprotect(at + 6 * PAGE, PAGE, PROT_READ));
	check_eq(at[6 * PAGE + 7], value);
	must(mprotect(at + 6 * PAGE, PAGE, PROT_READ | PROT_WRITE));
	store(6);
	check_eq(at[6 * PAGE + 7], value);
}

static void c_drop(void)
{
	store(7);
	must(madvise(at + 7 * PAGE, PAGE, MADV_DONTNEED));
	check_eq(at[7 * PAGE + 7], value);
	must(madvise(at + 7 * PAGE, PAGE, MADV_REMOVE));
	check_eq(at[7 * PAGE + 7], 0);
	must_fail(madvise(at, PAGE, MADV_WIPEONFORK), EINVAL);
}

static void c_remap(void)
{
	unsigned char *other;

	store(8);
	other = mremap(at, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED,
		       at + 16 * LEN);
	if (!check(other == at + 16 * LEN))
		return;
	at = other;
	check_eq(at[8 * PAGE + 7], value);
}

static void c_unmap(void)
{
	unsigned char byte = 0;

	store(9);
	must(munmap(at + 9 * PAGE, PAGE));
	check_eq(pread(fd, &byte, 1, 9 * PAGE + 7), 1);
	check_eq(byte, value);
	check(mmap(at + 9 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, fd, 9 * PAGE) == at + 9 * PAGE);
	check_eq(at[9 * PAGE + 7], value);
}

static void c_over(void)
{
	unsigned char byte = 0;

	store(10);
	check(mmap(at + 10 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == at + 10 * PAGE);
	check_eq(at[10 * PAGE + 7], 0);
	check_eq(pread(fd, &byte, 1, 10 * PAGE + 7), 1);
	check_eq(byte, value);
	check(mmap(at + 10 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, fd, 10 * PAGE) == at + 10 * PAGE);
}

static void c_sendfile(void)
{
	unsigned char bytes[9];
	off_t off = 11 * PAGE;
	int p[2];

	store(11);
	must(pipe2(p, O_CLOEXEC));
	check_eq(sendfile(p[1], fd, &off, 9), 9);
	check_eq(read(p[0], bytes, 9), 9);
	check_eq(bytes[7], value);
	must(close(p[0]));
	must(close(p[1]));
}

/* Another process gets the descriptor, and so sees what is in the file. */
static void c_pass(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	char text = 'x';
	struct iovec iov = { &text, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	unsigned char byte = 0;
	int s[2], got;

	store(12);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	check_eq(sendmsg(s[0], &msg, 0), 1);
	check_eq(recvmsg(s[1], &msg, MSG_CMSG_CLOEXEC), 1);
	memcpy(&got, CMSG_DATA(&control.head), sizeof(got));
	check_eq(pread(got, &byte, 1, 12 * PAGE + 7), 1);
	check_eq(byte, value);
	must(close(got));
	must(close(s[0]));
	must(close(s[1]));
}

static void c_harmless(void)
{
	struct stat st;

	store(13);
	must(fstat(fd, &st));
	check_eq(st.st_size, LEN);
	check_eq(lseek(fd, 5, SEEK_SET), 5);
	must(madvise(at, LEN, MADV_WILLNEED));
	must(msync(at, LEN, MS_ASYNC));
	must(close(must(dup(fd))));
	check_eq(at[13 * PAGE + 7], value);
}

static void c_lease(void)
{
	check_eq(fcntl(fd, F_GETLEASE), F_UNLCK);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "harmless", c_harmless }, /* the first: it stays away */
	{ "pread", c_pread },
	{ "pwrite", c_pwrite },
	{ "open", c_open },
	{ "open without waiting", c_open_nonblock },
	{ "ftruncate", c_truncate },
	{ "truncate", c_truncate_path },
	{ "fallocate", c_punch },
	{ "msync", c_msync },
	{ "mprotect", c_protect },
	{ "madvise", c_drop },
	{ "mremap", c_remap },
	{ "munmap", c_unmap },
	{ "mmap", c_over },
	{ "sendfile", c_sendfile },
	{ "passed descriptor", c_pass },
	{ "lease", c_lease },
};

#define CALLS ((int)(sizeof(calls) / sizeof(calls[0])))

static void on_usr1(int sig)
{
	(void)sig;
	asked++;
}

static int main_calls(const char *dir)
{
	sigset_t set, old;
	int done = 0;

	calls_dir = dir;
	fd = open_in(dir, "odd");
	must(ftruncate(fd, LEN));
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 2;
	signal(SIGUSR1, on_usr1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	lib_ready();
	while (!lib_stop && done < CALLS) {
		if (asked <= done) {
			sigsuspend(&old);
			continue;
		}
		calls[done].call();
		printf("%s\n", calls[done].name);
		lib_progress(++done);
	}
	return lib_end();
}

int main(int argc, char **argv)
{
	int first = lib_init("shared", argc, argv);
	const char *what = argc > first ? argv[first] : "";

	if (argc <= first + 1)
		return argc > first ? main_work(argc, argv, first) : 2;
	if (!strcmp(what, "calls"))
		return main_calls(argv[first + 1]);
	if (!strcmp(what, "twice") || !strcmp(what, "beyond"))
		return main_odd(argv[first + 1], what[0] == 't');
	if (!strcmp(what, "view"))
		return main_view(argv[first + 1]);
	if (!strcmp(what, "hold") || !strcmp(what, "map"))
		return main_hold(argv[first + 1], what[0] == 'm');
	if (!strcmp(what, "look"))
		return main_look(argv[first + 1],
				 argc > first + 2 ?
					 strtoul(argv[first + 2], NULL, 0) :
					 0);
	return main_work(argc, argv, first);
}
