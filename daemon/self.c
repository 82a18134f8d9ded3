// SPDX-License-Identifier: GPL-2.0
/* What all parts of the daemon know. */
#include <time.h>

#include "mattxd.h"

struct mattxd self = { .ending_fd = -1 };

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}
