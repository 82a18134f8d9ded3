/* SPDX-License-Identifier: GPL-2.0 */
/* Just enough for unit tests that print TAP. */
#ifndef MATTXD_TEST_H
#define MATTXD_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_number, test_failed;

#define ok(condition, ...) \
	do { \
		int good = (condition) != 0; \
\
		test_failed += !good; \
		printf("%sok %d - ", good ? "" : "not ", ++test_number); \
		printf(__VA_ARGS__); \
		putchar('\n'); \
	} while (0)

static inline int test_end(void)
{
	printf("1..%d\n", test_number);
	return test_failed != 0;
}

#endif
