// SPDX-License-Identifier: GPL-2.0
/* What this node is: kernel, CPU, vdso, clocks, capacity. */
#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

#include <gnutls/gnutls.h>
#include <gnutls/crypto.h>

#include "facts.h"
#include "log.h"

#define XSAVE_LEAF 0x0d

static struct facts fixed; /* written once by facts_init() */

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
	text_clean(to);
}

/* The first CPU's lines; nodes whose CPUs differ among themselves do not exist. */
static int read_cpuinfo(char *cause, unsigned int cause_len)
{
	char *line = NULL, *value;
	size_t size = 0;
	FILE *f;

	f = fopen("/proc/cpuinfo", "re");
	if (!f)
		return cause_set(cause, cause_len, errno, "/proc/cpuinfo: %m");
	while (getline(&line, &size, f) > 0 && line[0] != '\n') {
		line[strcspn(line, "\n")] = 0;
		value = strchr(line, ':');
		if (!value)
			continue;
		value += value[1] == ' ' ? 2 : 1;
		if (!strncmp(line, "model name", 10))
			copy_text(fixed.cpu_model, sizeof(fixed.cpu_model),
				  value);
		if (!strncmp(line, "flags", 5) &&
		    (line[5] == '\t' || line[5] == ':'))
			copy_text(fixed.cpu_flags, sizeof(fixed.cpu_flags),
				  value);
	}
	free(line);
	fclose(f);
	if (!fixed.cpu_flags[0])
		return cause_set(cause, cause_len, ENODATA,
				 "/proc/cpuinfo: no CPU flags");
	gnutls_hash_fast(GNUTLS_DIG_SHA256, fixed.cpu_flags,
			 strlen(fixed.cpu_flags), fixed.cpu_hash);
	return 0;
}

static void read_xsave(void)
{
	uint32_t layout[64][4] = { 0 }, a, b, c, d, i;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	fixed.xfeatures = (uint64_t)d << 32 | a;
	__cpuid_count(XSAVE_LEAF, 0, a, b, c, d);
	fixed.xsave_size = b;
	for (i = 2; i < 64; i++) {
		if (!(fixed.xfeatures >> i & 1))
			continue;
		__cpuid_count(XSAVE_LEAF, i, a, b, c, d);
		layout[i][0] = i;
		layout[i][1] = a; /* size */
		layout[i][2] = b; /* offset */
	}
	gnutls_hash_fast(GNUTLS_DIG_SHA256, layout, sizeof(layout),
			 fixed.xsave_hash);
}

static int read_vdso(char *cause, unsigned int cause_len)
{
	unsigned long start, end;
	char *line = NULL;
	size_t size = 0;
	FILE *f;

	f = fopen("/proc/self/maps", "re");
	if (!f)
		return cause_set(cause, cause_len, errno, "/proc/self/maps: %m");
	while (getline(&line, &size, f) > 0) {
		if (sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		if (strstr(line, "[vvar"))
			fixed.vvar_size += end - start;
		if (strstr(line, "[vdso]")) {
			fixed.vdso_size = end - start;
			gnutls_hash_fast(GNUTLS_DIG_SHA256, (void *)start,
					 end - start, fixed.vdso_hash);
		}
	}
	free(line);
	fclose(f);
	return 0;
}

int facts_init(char *cause, unsigned int cause_len)
{
	struct utsname name;
	int ret;

	if (uname(&name))
		return cause_set(cause, cause_len, errno, "uname: %m");
	copy_text(fixed.release, sizeof(fixed.release), name.release);
	ret = read_cpuinfo(cause, cause_len);
	if (ret)
		return ret;
	read_xsave();
	return read_vdso(cause, cause_len);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void read_meminfo(struct facts *facts)
{
	unsigned long long kib;
	char line[128];
	FILE *f;

	f = fopen("/proc/meminfo", "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu", &kib) == 1)
			facts->mem_total = kib << 10;
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1) {
			facts->mem_available = kib << 10;
			break;
		}
	}
	fclose(f);
}

void facts_now(struct facts *facts)
{
	double load = 0;
	long cpus;

	*facts = fixed;
	facts->realtime = clock_ns(CLOCK_REALTIME);
	facts->monotonic = clock_ns(CLOCK_MONOTONIC);
	facts->boottime = clock_ns(CLOCK_BOOTTIME);
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	facts->cpus = cpus > 0 ? cpus : 1;
	if (getloadavg(&load, 1) == 1 && load >= 0 && load < 1e6)
		facts->load = load * 100;
	read_meminfo(facts);
}

bool facts_has_flag(const struct facts *facts, const char *flag)
{
	const char *at = facts->cpu_flags;
	size_t len = strlen(flag);

	while ((at = strstr(at, flag))) {
		if ((at == facts->cpu_flags || at[-1] == ' ') &&
		    (at[len] == ' ' || !at[len]))
			return true;
		at += len;
	}
	return false;
}
