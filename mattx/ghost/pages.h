/* SPDX-License-Identifier: GPL-2.0 */
/* What a guest has mapped of files at home. */
#ifndef _MATTX_GHOST_PAGES_H
#define _MATTX_GHOST_PAGES_H

#include <linux/types.h>

struct mattx_gang;
struct mattx_ghost_pages;

/**
 * mattx_ghost_map() - map memory here whose contents are the deputy's
 * @res: to be told with mattx_ghost_at() which of the deputy's. It lives as long as the
 *	mapping does, wherever that is moved
 * @addr, @len, @prot, @flags: as for mmap(2)
 *
 * Pages are fetched when they are first touched, and then are of the page cache: the
 * node drops those that nobody has written to when it needs the memory. What has been
 * written to is the guest's own, as in every private mapping. A page that cannot be had
 * at home, as it lies behind the end of the file, gives SIGBUS.
 * Context: current is the guest's thread; may sleep.
 * Return: the address, or a negative errno.
 */
unsigned long mattx_ghost_map(struct mattx_gang *gang, unsigned long addr,
			      unsigned long len, unsigned long prot,
			      unsigned long flags,
			      struct mattx_ghost_pages **res);

/* Its first byte is the deputy's byte at @home. */
void mattx_ghost_at(struct mattx_ghost_pages *pages, unsigned long home);

/**
 * mattx_ghost_any() - does such memory lie in [start, start + len) of current?
 * Context: process; sleeps.
 */
bool mattx_ghost_any(unsigned long start, unsigned long len);

#endif
