/* SPDX-License-Identifier: GPL-2.0 */
/* What a guest has mapped of files at home. */
#ifndef _MATTX_GHOST_PAGES_H
#define _MATTX_GHOST_PAGES_H

#include <linux/types.h>

struct file;
struct mattx_gang;

/**
 * mattx_ghost_open() - a file to be mapped, whose contents are the deputy's memory
 * @len: bytes, whole pages
 *
 * Pages are fetched when they are first touched, and then are of the page cache: the
 * node drops those that nobody has written to when it needs the memory. What has been
 * written to is the guest's own, as in every private mapping. A page that cannot be had
 * gives SIGBUS: it lies behind the end of the file at home, or mattx_ghost_at() has not
 * been called.
 * Context: process; sleeps. Return: a file that can be mapped privately and nothing else,
 * or an ERR_PTR().
 */
struct file *mattx_ghost_open(struct mattx_gang *gang, unsigned long len);

/* Its first byte is the deputy's byte at @home, which is mapped there. */
void mattx_ghost_at(struct file *file, unsigned long home);

/**
 * mattx_ghost_any() - does such memory lie in [start, start + len) of current?
 * Context: process; sleeps.
 */
bool mattx_ghost_any(unsigned long start, unsigned long len);

#endif
