// SPDX-License-Identifier: GPL-2.0
/* One case by its number, and what they share; see cases.h. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cases.h"

#define POLL_MS	   30
#define UNMOVED_MS 100 /* how long a state stands when nothing is moved */
#define LATE_NS	   200000000ull
#define GO_FD	   901 /* out of the way, as the file of the progress */

uint64_t stood_still_ns;

static int go_fd = -1;
static char dir[64];

static unsigned long last_move(void)
{
	char text[32] = "";

	if (pread(go_fd, text, sizeof(text) - 1, 0) < 0)
		fail("GO: %s", strerror(errno));
	return strtoul(text, NULL, 10);
}

/* One look at GO; whatever makes it late is taken for a time of standing still. */
static bool still_waits(void)
{
	uint64_t before = now_ns(CLOCK_MONOTONIC), took;
	bool waits;

	sleep_ms(POLL_MS);
	waits = last_move() < lib_rounds;
	took = now_ns(CLOCK_MONOTONIC) - before;
	if (took > LATE_NS)
		stood_still_ns += took;
	return waits;
}

bool moved(void)
{
	bool more = lib_round();

	lib_progress(lib_rounds);
	if (go_fd < 0)
		sleep_ms(UNMOVED_MS);
	else
		while (still_waits() && !lib_stop)
			;
	return more && !lib_stop;
}

bool wait_count(const volatile int *count, int least, const char *what)
{
	int ms;

	for (ms = 0; ms < 60000; ms++) {
		if (__atomic_load_n(count, __ATOMIC_ACQUIRE) >= least)
			return true;
		sleep_ms(1);
	}
	fail("%s: %d did not come, it is %d", what, least, *count);
	return false;
}

void check_exit(pid_t pid, int want)
{
	int status = -1;

	check_eq(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
		fail("the child's status is %x, not %d", status, want);
}

const char *case_file(const char *name)
{
	static char path[4][sizeof(dir) + NAME_MAX];
	static unsigned int n;
	char *p = path[n++ % 4];

	if (!dir[0]) {
		strcpy(dir, "/tmp/cases.XXXXXX");
		if (!mkdtemp(dir)) {
			perror(dir);
			exit(2);
		}
	}
	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void set_up_go(const char *path)
{
	int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);

	go_fd = fcntl(fd, F_DUPFD_CLOEXEC, GO_FD);
	if (go_fd < 0) {
		perror(path);
		exit(2);
	}
	close(fd);
}

#define CASE_ENTRY(number, name) \
	{ #number, #number "_" #name, number##_##name },

static const struct {
	const char *number, *name;
	void (*run)(void);
} cases[] = { CASES(CASE_ENTRY) };

int main(int argc, char **argv)
{
	const char *number = "";
	unsigned int i;
	int first;

	first = lib_init("case", argc, argv);
	if (argc > first)
		number = argv[first];
	if (argc > first + 1)
		set_up_go(argv[first + 1]);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(number, cases[i].number))
			continue;
		lib_ready();
		cases[i].run();
		if (dir[0])
			rmdir(dir);
		return lib_end();
	}
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		puts(cases[i].name);
	return 2;
}
