// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "maps.h"
#include "sums.h"

/*
 * Two sums that have nothing in common. Each step is one to one and mixes all bits, so
 * that two pages have the same by chance only: one in 2^128.
 */
struct sum sum_page(const char *page, uint64_t addr)
{
	const uint64_t *w = (const uint64_t *)page;
	uint64_t a = addr, b = ~addr;
	size_t i;

	for (i = 0; i < PAGE / 8; i++) {
		a = (a ^ w[i]) * 0x9e3779b97f4a7c15ull;
		a ^= a >> 29;
		b = (b + w[i]) * 0xbf58476d1ce4e5b9ull;
		b ^= b >> 32;
	}
	return (struct sum){ addr, { a, b } };
}

bool sums_add(struct sums *sums, const struct sum *s)
{
	size_t cap = sums->cap ? sums->cap * 2 : 1024;
	struct sum *more;

	if (sums->n == sums->cap) {
		more = realloc(sums->sum, cap * sizeof(*more));
		if (!more)
			return false;
		sums->sum = more;
		sums->cap = cap;
	}
	sums->sum[sums->n++] = *s;
	return true;
}

bool sums_has(const struct sums *sums, size_t *at, const struct sum *s)
{
	while (*at < sums->n && sums->sum[*at].addr < s->addr)
		++*at;
	return *at < sums->n && !memcmp(&sums->sum[*at], s, sizeof(*s));
}

void sums_free(struct sums *sums)
{
	free(sums->sum);
	*sums = (struct sums){ 0 };
}
