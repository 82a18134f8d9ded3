// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the frequency of this machine's time stamp counter in kHz. Under TCG
 * it is the nodes' too, and a node that measured it at boot on a loaded
 * machine got it wrong by a factor of eight.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
	uint64_t ticks;
	uint64_t ns;
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* The best of many readings: the one that nothing interrupted. */
static struct moment read_both(void)
{
	struct moment best = { 0, 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t before = __rdtsc();
		uint64_t ns = now();
		uint64_t after = __rdtsc();

		if (after - before < shortest) {
			shortest = after - before;
			best.ticks = before + (after - before) / 2;
			best.ns = ns;
		}
	}
	return best;
}

int main(void)
{
	struct timespec pause = { 0, 300000000 };
	struct moment first = read_both(), last;

	nanosleep(&pause, NULL);
	last = read_both();
	printf("%.0f\n", (double)(last.ticks - first.ticks) * 1e6 /
				 (double)(last.ns - first.ns));
	return 0;
}
