/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_LOG_H
#define MATTXD_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

/**
 * log_open() - where lines go
 * @foreground: to standard error, else to syslog; a system without syslog
 *	(no /dev/log) gets them on standard error in either case
 * @verbose: debug lines too
 */
void log_open(bool foreground, bool verbose);

/**
 * log_keeps_stderr() - is standard error needed for the log?
 */
bool log_keeps_stderr(void);

/**
 * log_line() - one line, without its newline; control characters become '?'
 * @level: LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO or LOG_DEBUG
 * Context: any thread.
 */
void log_line(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_err(...)   log_line(LOG_ERR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/**
 * cause_set() - fill a buffer for a cause in words
 * Return: -abs(@error), for "return cause_set(...)".
 */
int cause_set(char *cause, size_t size, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/**
 * text_clean() - make text from elsewhere printable, in place
 * Control characters and bytes outside ASCII become '?'.
 */
void text_clean(char *text);

#endif
