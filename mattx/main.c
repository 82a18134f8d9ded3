// SPDX-License-Identifier: GPL-2.0
/* MattX: processes that move to another machine and never notice. Load and unload. */
#include <linux/module.h>
#include "admin.h"
#include "gang/internal.h"
#include "main.h"
#include "netlink.h"
#include "wormhole/hooks.h"
#include "wormhole/link.h"
#include "wormhole/rpc.h"

bool mattx_debugging;

static int __init mattx_init(void)
{
	int err;

	err = mattx_restart_init();
	if (err)
		return err;
	err = mattx_body_init();
	if (err)
		return err;
	err = mattx_gang_init();
	if (err)
		goto err_body;
	err = mattx_hooks_init();
	if (err)
		goto err_gang;
	err = mattx_rpc_init();
	if (err)
		goto err_hooks;
	err = mattx_peer_init();
	if (err)
		goto err_rpc;
	err = mattx_admin_init();
	if (err)
		goto err_peer;
	err = mattx_chardev_init();
	if (err)
		goto err_admin;
	/* its coming is what a daemon that runs already waits for */
	err = mattx_netlink_init();
	if (err)
		goto err_chardev;
	err = mattx_proc_init();
	if (err)
		goto err_netlink;
	return 0;

err_netlink:
	mattx_netlink_exit();
err_chardev:
	mattx_chardev_exit();
err_admin:
	mattx_admin_exit();
err_peer:
	mattx_peer_exit();
err_rpc:
	mattx_rpc_exit();
err_hooks:
	mattx_hooks_exit();
err_gang:
	mattx_gang_exit();
err_body:
	mattx_body_exit();
	return err;
}

static void __exit mattx_exit(void)
{
	mattx_proc_exit();
	mattx_netlink_exit();
	mattx_chardev_exit();
	mattx_admin_exit();
	mattx_peer_exit();
	mattx_rpc_exit();
	mattx_hooks_exit();
	mattx_gang_exit();
	mattx_body_exit();
}

module_init(mattx_init);
module_exit(mattx_exit);
MODULE_DESCRIPTION("Processes that move to another machine and never notice");
MODULE_AUTHOR("The MattX developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1");
