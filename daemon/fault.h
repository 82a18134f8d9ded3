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
	FAULT_CONNECT = MATTX_FAULT_DAEMON, /* 100: a connection cannot be made */
	FAULT_ACCEPT,	 /* 101: a connection is closed when it has come in */
	FAULT_HANDSHAKE, /* 102: the other side cannot be authenticated */
	FAULT_HELLO,	 /* 103: the HELLO is refused */
	FAULT_KTLS,	 /* 104: the kernel takes no TLS keys */
	FAULT_LINK_SET,	 /* 105: the module takes no link */
	FAULT_NODE_SET,	 /* 106: the module takes no node */
	FAULT_JOB_START, /* 107: no thread for a migration */
	FAULT_CONTROL_LOST, /* 108: the control connection breaks at a request */

	/* the way out, at home: migrate.c, memory.c, capture.c */
	FAULT_OUT_CHECK = 120, /* after the check */
	FAULT_OUT_CONNECTED,   /* 121: connected */
	FAULT_OUT_CLOCKS,      /* 122: the clocks were compared */
	FAULT_OUT_STARTED,     /* 123: there is a body */
	FAULT_OUT_PAGES,       /* 124: after a block of pages */
	FAULT_OUT_FREEZE,      /* 125: before the freeze */
	FAULT_OUT_FROZEN,      /* 126: after it */
	FAULT_OUT_STUB,	       /* 127: the stub is there */
	FAULT_OUT_PROCESS,     /* 128: before the process is read */
	FAULT_OUT_THREAD,      /* 129: before a thread is read */
	FAULT_OUT_SIGNALS,     /* 130: before signals are read */
	FAULT_OUT_ARM,	       /* 131: everything was sent */
	FAULT_OUT_COMMIT,      /* 132: the other side is ready */
	/* the way home, at the host: migrate.c, capture.c */
	FAULT_BACK_CONNECTED = 140, /* connected */
	FAULT_BACK_STARTED,	    /* 141: home has its deputy */
	FAULT_BACK_FROZEN,	    /* 142: frozen */
	FAULT_BACK_ARM,		    /* 143: everything was sent */
	FAULT_BACK_COMMIT,	    /* 144: home is ready */
	/* the host of a way out: warden.c, restore.c */
	FAULT_HOST_START = 150, /* asked for a body */
	FAULT_HOST_BODY,	/* 151: the body exists */
	FAULT_HOST_MAP,		/* 152: before a mapping is made */
	FAULT_HOST_PAGES,	/* 153: before a block of pages is taken */
	FAULT_HOST_FINISH,	/* 154: everything has arrived */
	FAULT_HOST_THREAD,	/* 155: before a thread is made */
	FAULT_HOST_STATE,	/* 156: before states are set */
	FAULT_HOST_ARM,		/* 157: before it is armed */
	FAULT_HOST_READY,	/* 158: armed, before READY */
	/* the home of a way home: restore.c */
	FAULT_HOME_OPEN = 170, /* asked for */
	FAULT_HOME_STUB,       /* 171: before the stub is moved */
	FAULT_HOME_MAP,	       /* 172: before the layout is changed */
	FAULT_HOME_PAGES,      /* 173: before a block of pages is taken */
	FAULT_HOME_STATE,      /* 174: before states are set */
	FAULT_HOME_ARM,	       /* 175: before it is armed */
	FAULT_HOME_READY,      /* 176: armed, before READY */

	FAULT_DAEMON_END = 200,
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
