// SPDX-License-Identifier: GPL-2.0
/*
 * A process of a given size, in every page of which stands what must be there.
 *
 *	memory MIB [DIRTY [THREADS]]
 *
 * In a round it checks some pages and writes DIRTY of them anew. THREADS more
 * threads do nothing but wait. One thread looks at the clock every millisecond;
 * at SIGUSR1 the longest time between two looks so far, in microseconds, goes
 * to the progress file, and it begins again.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "lib.h"

#define PAGE 4096ul

static uint64_t *memory;
static size_t pages;
static uint32_t *version; /* of each page */
static volatile sig_atomic_t asked;
static uint64_t longest; /* ns */
static bool measure;

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

static void write_page(size_t page)
{
	uint64_t *p = memory + page * (PAGE / 8);
	unsigned int i;

	version[page]++;
	for (i = 0; i < PAGE / 8; i += 8)
		p[i] = mix(page << 32 ^ version[page]) + i;
}

static void check_page(size_t page)
{
	uint64_t *p = memory + page * (PAGE / 8);
	unsigned int i;

	for (i = 0; i < PAGE / 8; i += 8) {
		if (p[i] != mix(page << 32 ^ version[page]) + i) {
			fail("page %zu is wrong at %u", page, i * 8);
			return;
		}
	}
}

static void *look(void *arg)
{
	uint64_t last = now_ns(CLOCK_MONOTONIC), now, gap;

	(void)arg;
	for (;;) {
		sleep_ms(1);
		now = now_ns(CLOCK_MONOTONIC);
		gap = now - last;
		if (gap > __atomic_load_n(&longest, __ATOMIC_RELAXED))
			__atomic_store_n(&longest, gap, __ATOMIC_RELAXED);
		last = now;
	}
	return NULL;
}

static void *idle(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
	return arg;
}

static void start(void *(*function)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	if (pthread_create(&thread, &attr, function, NULL)) {
		fputs("memory: no thread\n", stderr);
		exit(2);
	}
}

static void answer(void)
{
	if (!asked)
		return;
	asked = 0;
	lib_progress(__atomic_exchange_n(&longest, 0, __ATOMIC_RELAXED) / 1000);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };
	int first = lib_init("memory", argc, argv);
	unsigned long dirty = 16, threads = 0, i;
	uint64_t n = 0;
	size_t page;

	if (argc <= first)
		return 2;
	pages = (strtoul(argv[first], NULL, 0) << 20) / PAGE;
	if (argc > first + 1)
		dirty = strtoul(argv[first + 1], NULL, 0);
	if (argc > first + 2) {
		threads = strtoul(argv[first + 2], NULL, 0);
		measure = true;
	}
	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	version = calloc(pages, sizeof(*version));
	if (memory == MAP_FAILED || !version)
		return 2;
	for (page = 0; page < pages; page++)
		write_page(page);
	sigaction(SIGUSR1, &sa, NULL);
	if (measure)
		start(look);
	for (i = 0; i < threads; i++)
		start(idle);
	lib_ready();
	do {
		for (i = 0; i < 64; i++)
			check_page(mix(n++) % pages);
		for (i = 0; i < dirty; i++)
			write_page(mix(n++) % pages);
		sleep_ms(10);
		answer();
	} while (measure ? !lib_stop : lib_round());
	for (page = 0; page < pages; page++)
		check_page(page);
	return lib_end();
}
