/* SPDX-License-Identifier: GPL-2.0 */
/* Orders that mattxd carries out: what proc.c asks and netlink.c answers. */
#ifndef _MATTX_ADMIN_H
#define _MATTX_ADMIN_H

#include <linux/types.h>
#include <uapi/mattx.h>

int mattx_admin_init(void);
/* After proc.c and netlink.c have ended: nobody waits, nobody answers. */
void mattx_admin_exit(void);

/**
 * mattx_admin_ask() - have mattxd do something, and wait until it is done
 * @pid: in the initial PID namespace
 * @node: with MATTX_ADMIN_MIGRATE, else NULL
 *
 * Context: process; sleeps, killable; the caller holds the module.
 * Return: 0 when it is done; -ENOTCONN: no mattxd serves; -EBUSY: too many wait
 * already; -EIO: mattxd ended before it answered; -EINTR: killed, and the order goes
 * on; else mattxd's reason.
 */
int mattx_admin_ask(enum mattx_admin_verb verb, pid_t pid, const char *node);

/**
 * mattx_admin_serve() - mattxd listens at that netlink port from now on
 * Context: process.
 */
void mattx_admin_serve(u32 port);

/**
 * mattx_admin_answer() - an order was carried out or refused
 * @error: 0 or a positive errno, at most MATTX_ERRNO_MAX
 * Context: process. Return: 0, or -ENOENT when nobody waits for it (any more).
 */
int mattx_admin_answer(u32 number, u32 error);

#endif
