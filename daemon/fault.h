/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults that tests ask for by number: "mattxctl fault POINT COUNT" makes the
 * COUNTth pass through POINT fail, once; COUNT 0 takes it back. Numbers below
 * MATTX_FAULT_DAEMON are the module's, see uapi/mattx.h. With --kill mattxd
 * ends there at once, as by SIGKILL, instead of failing.
 *
 * Each code path asks in its own place: if (daemon_fault(FAULT_X)) fail as if
 * the real thing had failed.
 */
#ifndef MATTXD_FAULT_H
#define MATTXD_FAULT_H

#include <stdbool.h>
#include <mattx.h>

enum daemon_fault {
	/* the cluster: peer.c, conn.c, control.c, job.c */
	FAULT_CONNECT		= MATTX_FAULT_DAEMON,	/* 100: a connection cannot be made */
	FAULT_ACCEPT,		/* 101: a connection is closed when it has come in */
	FAULT_HANDSHAKE,	/* 102: the other side cannot be authenticated */
	FAULT_HELLO,		/* 103: the HELLO is refused */
	FAULT_KTLS,		/* 104: the kernel takes no TLS keys */
	FAULT_LINK_SET,		/* 105: the module takes no link */
	FAULT_NODE_SET,		/* 106: the module takes no node */
	FAULT_JOB_START,	/* 107: no thread for a migration */
	FAULT_CONTROL_LOST,	/* 108: the control connection breaks at a request */

	/* the migration, where it sends: migrate.c, capture.c, memory.c */
	FAULT_MIGRATE		= 120,
	/* the migration, where it receives: restore.c, memory.c */
	FAULT_RESTORE		= 150,

	FAULT_DAEMON_END	= 200,
};

/**
 * daemon_fault() - shall this pass fail?
 * Context: any thread.
 */
bool daemon_fault(int point);

/**
 * fault_set() - arm or disarm a point of the daemon
 * @count: fire at the countth pass, 0: never
 * @kill: end the daemon there
 * Return: 0 or -EINVAL for a number that is none.
 */
int fault_set(int point, unsigned int count, bool kill);

#endif
