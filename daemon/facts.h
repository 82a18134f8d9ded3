/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_FACTS_H
#define MATTXD_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#define FACTS_HASH 32 /* bytes of SHA-256 */

/*
 * What a node tells the others about itself: what a migration's check needs to
 * know before anything is frozen, and what an operator wants to see. Strings
 * end with a NUL and contain only printable ASCII, wherever they came from.
 */
struct facts {
	char release[72]; /* uname -r */
	char cpu_model[72];
	char cpu_flags[4096]; /* "flags" of /proc/cpuinfo, blank between two */
	uint8_t cpu_hash[FACTS_HASH]; /* of cpu_flags */
	uint64_t xfeatures;	      /* XCR0: enabled xsave components */
	uint32_t xsave_size; /* bytes of the standard format, for XCR0 */
	uint8_t xsave_hash[FACTS_HASH]; /* of every enabled component's number, offset, size */
	uint32_t vdso_size;	       /* bytes of [vdso] */
	uint8_t vdso_hash[FACTS_HASH]; /* of its contents */
	uint32_t vvar_size; /* bytes of the data mappings in front of it */
	uint64_t realtime, monotonic, boottime; /* clocks when this was told, ns */
	uint32_t cpus;				/* online */
	uint32_t load; /* of the last minute, in hundredths */
	uint64_t mem_total, mem_available; /* bytes */
};

/**
 * facts_init() - learn what does not change while the node is up
 * Return: 0 or a negative errno, and then @cause is filled.
 */
int facts_init(char *cause, unsigned int cause_len);

/**
 * facts_now() - this node's facts, clocks and load as of now
 * Context: any thread, after facts_init().
 */
void facts_now(struct facts *facts);

/**
 * facts_has_flag() - does the CPU have @flag, named as in /proc/cpuinfo?
 */
bool facts_has_flag(const struct facts *facts, const char *flag);

#endif
