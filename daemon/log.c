// SPDX-License-Identifier: GPL-2.0
/* The log: one line for each event, to syslog or standard error. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

static bool to_syslog;
static bool debug_too;

void log_open(bool foreground, bool verbose)
{
	debug_too = verbose;
	to_syslog = !foreground && access("/dev/log", W_OK) == 0;
	if (to_syslog)
		openlog("mattxd", LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

bool log_keeps_stderr(void)
{
	return !to_syslog;
}

void text_clean(char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text))
			*text = '?';
}

void log_line(int level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (level == LOG_DEBUG && !debug_too)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	text_clean(line);
	if (to_syslog)
		syslog(level, "%s", line);
	else
		dprintf(STDERR_FILENO, "mattxd: %s\n", line);
}

int cause_set(char *cause, size_t size, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, size, fmt, ap);
	va_end(ap);
	return -abs(error);
}
