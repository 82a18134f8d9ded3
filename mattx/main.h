/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MATTX_MAIN_H
#define _MATTX_MAIN_H

#undef pr_fmt
#define pr_fmt(fmt) "mattx: " fmt

int mattx_chardev_init(void);
void mattx_chardev_exit(void);

#endif
