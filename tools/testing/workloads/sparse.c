// SPDX-License-Identifier: GPL-2.0
/*
 * An address space that is mostly nothing: 2 GiB with a page here and there,
 * 64 GiB reserved with three pages in use, guard pages, marked areas, a stack
 * and a heap that grow, mappings that come and go.
 *
 *	sparse [MIB]
 *
 * At the end it forks, to see that the marks have their effect: A21 of the
 * cases.
 */
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "lib.h"

#define PAGE	   4096ul
#define RESERVED   (64ul << 30)
#define STEP	   (3ul << 20) /* of the pages in use */
#define CHURN	   16
#define FILE_PAGES 16
#define STACK_STEP (64ul << 10)
#define STACK_MAX  (4ul << 20)

static size_t size = 2ul << 30;
static char *sparse, *reserved, *guard, *wiped, *kept_back, *readable, *hidden;
static char *from_file;
static const size_t reserved_at[3] = { 0, RESERVED / 2 + PAGE, RESERVED - PAGE };
static char *churn[CHURN];
static size_t churn_len[CHURN];
static char *brk_start;

static sigjmp_buf back;
static siginfo_t fault;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	fault = *info;
	siglongjmp(back, 1);
}

/* Reading or writing there must fault, in this way. */
static void must_fault(char *at, bool writes, int sig, int code)
{
	if (sigsetjmp(back, 1)) {
		check_eq(fault.si_signo, sig);
		check_eq(fault.si_code, code);
		check_eq((uintptr_t)fault.si_addr, (uintptr_t)at);
		return;
	}
	if (writes)
		*(volatile char *)at = 1;
	else
		*(volatile char *)at;
	fail("no fault at %p", at);
}

static uint64_t word_for(const void *at, unsigned long round)
{
	return mix((uintptr_t)at ^ round << 48);
}

static char *map(size_t len, int prot, int flags)
{
	char *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		       0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return p;
}

/* Every page in use has what was written last, the next one is still zero. */
static void check_pages(unsigned long round)
{
	uint64_t *word;
	size_t at;

	for (at = 0; at < size; at += STEP) {
		word = (uint64_t *)(sparse + at);
		if (round)
			check_eq(*word, word_for(word, round - 1));
		*word = word_for(word, round);
		/* a hole stays one: a read maps the zero page only */
		if (at % (64 * STEP) == 0)
			check_eq(*(uint64_t *)(sparse + at + STEP / 2), 0);
	}
}

static void check_reserved(unsigned long round)
{
	uint64_t *word;
	int i;

	for (i = 0; i < 3; i++) {
		word = (uint64_t *)(reserved + reserved_at[i]);
		if (round)
			check_eq(*word, word_for(word, round - 1));
		*word = word_for(word, round);
	}
	must_fault(reserved + RESERVED / 4, false, SIGSEGV, SEGV_ACCERR);
	must_fault(guard, true, SIGSEGV, SEGV_ACCERR);
	must_fault(guard + 2 * PAGE, false, SIGSEGV, SEGV_ACCERR);
	must_fault(readable, true, SIGSEGV, SEGV_ACCERR);
	must_fault(NULL, false, SIGSEGV, SEGV_MAPERR);
	check_eq(*(uint64_t *)(guard + PAGE), 4711);
	check_eq(*(uint64_t *)readable, word_for(readable, 0));
}

/* What nobody may look at is there all the same. */
static void check_hidden(unsigned long round)
{
	uint64_t *word = (uint64_t *)(hidden + PAGE);

	must_fault(hidden, false, SIGSEGV, SEGV_ACCERR);
	must(mprotect(hidden, 2 * PAGE, PROT_READ | PROT_WRITE));
	check_eq(*(uint64_t *)hidden, word_for(hidden, 0));
	if (round)
		check_eq(*word, word_for(word, round - 1));
	*word = word_for(word, round);
	must(mprotect(hidden, 2 * PAGE, PROT_NONE));
}

static void __attribute__((noinline)) use_stack(size_t left, unsigned long round)
{
	volatile uint64_t block[STACK_STEP / 8];

	block[0] = word_for((void *)left, round);
	block[STACK_STEP / 8 - 1] = left;
	if (left > STACK_STEP)
		use_stack(left - STACK_STEP, round);
	check_eq(block[0], word_for((void *)left, round));
	check_eq(block[STACK_STEP / 8 - 1], left);
}

/* A23: mapped from a file that is gone; what is written stays private. */
static void check_file(unsigned long round)
{
	size_t at;

	for (at = 0; at < FILE_PAGES * PAGE; at += PAGE) {
		check_eq(*(uint64_t *)(from_file + at + 8), mix(at));
		if (round)
			check_eq(*(uint64_t *)(from_file + at),
				 at % (2 * PAGE) ?
					 mix(at + 1) :
					 word_for((void *)at, round - 1));
		if (at % (2 * PAGE) == 0)
			*(uint64_t *)(from_file + at) =
				word_for((void *)at, round);
	}
}

static void map_file(void)
{
	char name[] = "/tmp/sparse.XXXXXX";
	int fd = mkstemp(name);
	uint64_t word[2];
	size_t at;

	for (at = 0; at < FILE_PAGES * PAGE; at += PAGE) {
		word[0] = mix(at + 1);
		word[1] = mix(at);
		must(pwrite(fd, word, sizeof(word), at));
	}
	must(ftruncate(fd, FILE_PAGES * PAGE));
	from_file = mmap(NULL, FILE_PAGES * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE, fd, 0);
	if (from_file == MAP_FAILED)
		exit(2);
	must(unlink(name));
	must(close(fd));
}

/* One mapping a round goes, is made anew, shrunk, moved, cut or dropped. */
static void change_mappings(unsigned long round)
{
	unsigned int i = round % CHURN, kind = round / CHURN % 5;
	size_t len = (1 + mix(round) % 32) * PAGE, half, at;
	char *p;

	for (at = 0; at < churn_len[i]; at += PAGE)
		check_eq(*(uint64_t *)(churn[i] + at), word_for((void *)at, i));
	if (churn_len[i])
		must(munmap(churn[i], churn_len[i]));
	p = map(len + 2 * PAGE, PROT_READ | PROT_WRITE, 0);
	if (kind == 1)
		p = mremap(p, len + 2 * PAGE, len + 64 * PAGE, MREMAP_MAYMOVE);
	if (p == MAP_FAILED) {
		fail("mremap: %s", strerror(errno));
		churn_len[i] = 0;
		return;
	}
	for (at = 0; at < len; at += PAGE)
		*(uint64_t *)(p + at) = word_for((void *)at, i);
	if (kind == 1)
		must(munmap(p + len, 64 * PAGE));
	else
		must(munmap(p + len, 2 * PAGE));
	half = len / PAGE / 2 * PAGE;
	if (kind == 2 && half) {
		must(madvise(p + half, len - half, MADV_DONTNEED));
		for (at = half; at < len; at += PAGE)
			check_eq(*(uint64_t *)(p + at), 0);
		must(munmap(p + half, len - half));
		len = half;
	} else if (kind == 3 && half) {
		must(mprotect(p, half, PROT_READ));
		must_fault(p, true, SIGSEGV, SEGV_ACCERR);
	}
	churn[i] = p;
	churn_len[i] = len;
}

static void change_heap(unsigned long round)
{
	size_t grown = (round % 8) * 3 * PAGE;
	char *top;

	if (brk(brk_start + grown)) {
		fail("brk: %s", strerror(errno));
		return;
	}
	check_eq((uintptr_t)sbrk(0), (uintptr_t)brk_start + grown);
	for (top = brk_start; top < brk_start + grown; top += PAGE)
		*(uint64_t *)top = round;
	if (grown)
		must_fault(brk_start + 8 * 3 * PAGE, false, SIGSEGV, SEGV_MAPERR);
}

/* A child sees zeros in the first area and nothing in the second. */
static void check_marks(void)
{
	int status = 0;
	pid_t pid;

	pid = fork();
	if (pid < 0) {
		fail("fork: %s", strerror(errno));
		return;
	}
	if (!pid) {
		if (*(uint64_t *)wiped)
			_exit(1);
		if (*(uint64_t *)(sparse + STEP) !=
		    word_for(sparse + STEP, lib_rounds - 1))
			_exit(2);
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)kept_back ? 3 : 4);
	}
	must(waitpid(pid, &status, 0));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
		fail("the child's status is %x", status);
	check_eq(*(uint64_t *)wiped, word_for(wiped, 0));
	check_eq(*(uint64_t *)kept_back, word_for(kept_back, 0));
}

static void set_up(void)
{
	int i;

	sparse = map(size, PROT_READ | PROT_WRITE, MAP_NORESERVE);
	must(madvise(sparse, size, MADV_NOHUGEPAGE));
	reserved = map(RESERVED, PROT_NONE, MAP_NORESERVE);
	for (i = 0; i < 3; i++)
		must(mprotect(reserved + reserved_at[i], PAGE,
			      PROT_READ | PROT_WRITE));
	guard = map(3 * PAGE, PROT_NONE, 0);
	must(mprotect(guard + PAGE, PAGE, PROT_READ | PROT_WRITE));
	*(uint64_t *)(guard + PAGE) = 4711;
	wiped = map(4 * PAGE, PROT_READ | PROT_WRITE, 0);
	must(madvise(wiped, 4 * PAGE, MADV_WIPEONFORK));
	kept_back = map(4 * PAGE, PROT_READ | PROT_WRITE, 0);
	must(madvise(kept_back, 4 * PAGE, MADV_DONTFORK));
	must(madvise(kept_back, 4 * PAGE, MADV_DONTDUMP));
	readable = map(2 * PAGE, PROT_READ | PROT_WRITE, 0);
	*(uint64_t *)wiped = word_for(wiped, 0);
	*(uint64_t *)kept_back = word_for(kept_back, 0);
	*(uint64_t *)readable = word_for(readable, 0);
	must(mprotect(readable, 2 * PAGE, PROT_READ));
	hidden = map(2 * PAGE, PROT_READ | PROT_WRITE, 0);
	*(uint64_t *)hidden = word_for(hidden, 0);
	must(mprotect(hidden, 2 * PAGE, PROT_NONE));
	map_file();
	brk_start = sbrk(0);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	int first = lib_init("sparse", argc, argv);
	unsigned long round = 0;

	if (argc > first)
		size = strtoul(argv[first], NULL, 0) << 20;
	/* no heap but ours */
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	puts("sparse");
	set_up();
	lib_ready();
	do {
		check_pages(round);
		check_reserved(round);
		check_hidden(round);
		check_file(round);
		use_stack(STACK_STEP + (round * STACK_STEP) % STACK_MAX, round);
		change_mappings(round);
		change_heap(round);
		round++;
	} while (lib_round());
	check_marks();
	return lib_end();
}
