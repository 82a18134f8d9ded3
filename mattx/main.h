/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_MAIN_H
#define _MATTX_MAIN_H

#undef pr_fmt
#define pr_fmt(fmt) "mattx: " fmt

/* More than a machine that works has to say: "debug 1" in /proc/mattx/admin. */
extern bool mattx_debugging;
#define mattx_debug(fmt, ...) \
	do { \
		if (READ_ONCE(mattx_debugging)) \
			printk(KERN_DEBUG pr_fmt(fmt), ##__VA_ARGS__); \
	} while (0)

int mattx_proc_init(void);
void mattx_proc_exit(void);

int mattx_chardev_init(void);
void mattx_chardev_exit(void);

#endif
