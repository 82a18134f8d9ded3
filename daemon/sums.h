/* SPDX-License-Identifier: GPL-2.0 */
/* What pages had when they were sent, in 128 bits each. */
#ifndef MATTXD_SUMS_H
#define MATTXD_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sum {
	uint64_t addr, sum[2];
};

struct sums {
	struct sum *sum; /* by address */
	size_t n, cap;
};

struct sum sum_page(const char *page, uint64_t addr);

/* Adds one behind the last. Return: false when out of memory. */
bool sums_add(struct sums *sums, const struct sum *s);

/* Is it there? For calls in rising order of addresses; *@at starts as 0. */
bool sums_has(const struct sums *sums, size_t *at, const struct sum *s);

void sums_free(struct sums *sums);

#endif
