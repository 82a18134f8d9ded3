/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module, as the daemon's main loop sees it: the generic-netlink family of
 * uapi/mattx.h. Requests are answered at once by the kernel, so they are made
 * synchronously; events come through the main loop.
 *
 * With --no-module a stand-in keeps nodes and links in memory, knows no gangs and
 * lets two daemons meet on kernels without the module.
 */
#ifndef MATTXD_KERNEL_H
#define MATTXD_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <mattx.h>

struct event_base;

struct kernel_node {
	uint32_t id;
	char name[MATTX_NAME_MAX];
	uint64_t instance;
	bool local, up; /* up: its link is */
};

struct kernel_gang {
	uint64_t id;
	uint32_t role, state; /* enum mattx_gang_role, _state */
	uint32_t node;	      /* the other side */
	int32_t pid, tgid;
	uint32_t threads, uid;
	int reason;	       /* system call number, or -1 */
	uint64_t calls, since; /* since: CLOCK_BOOTTIME, ns */
	char comm[32];
	char cause[MATTX_CAUSE_MAX];
};

/* What /proc/mattx/nodes says of a node. */
struct kernel_facts {
	char address[MATTX_ADDRESS_MAX]; /* without port, "": not known */
	uint32_t cpus, load;		 /* load: in hundredths */
	uint64_t free;			 /* bytes */
};

struct kernel_events {
	void (*link_down)(uint32_t node, const char *cause);
	void (*want_home)(uint64_t gang, uint32_t node, int reason,
			  const char *cause);
	void (*gang_end)(uint64_t gang, uint32_t node, uint32_t role, int pid,
			 const char *cause);
	/* written to /proc/mattx/admin; @node: "" with EXPEL */
	void (*admin)(uint32_t order, uint32_t verb, int pid, const char *node);
	void (*gone)(void); /* the module was unloaded */
	void (*back)(void); /* it was loaded again: all that it knew is lost */
	void (*lost)(void); /* events were lost: look again */
};

/**
 * kernel_open() - find the module and listen to it
 * Return: 0 or a negative errno with @cause.
 */
int kernel_open(struct event_base *base, bool no_module,
		const struct kernel_events *events, char *cause,
		size_t cause_len);
void kernel_close(void);

/*
 * The rest returns 0 or a negative errno, and then @cause is filled when there is
 * one. Main loop only.
 */

/**
 * kernel_local_set() - tell the module who this node is
 * @instance: out: of the module
 */
int kernel_local_set(uint32_t id, const char *name, uint64_t *instance,
		     char *cause, size_t cause_len);
int kernel_node_set(uint32_t id, const char *name, uint64_t instance,
		    char *cause, size_t cause_len);
int kernel_node_del(uint32_t id, char *cause, size_t cause_len);
/**
 * kernel_node_get() - -ENOENT when the module does not know it
 */
int kernel_node_get(uint32_t id, struct kernel_node *node);
/**
 * kernel_link_set() - @fd becomes the link to that node; it stays open here
 */
int kernel_link_set(uint32_t id, int fd, bool tls, char *cause, size_t cause_len);
int kernel_fault(uint32_t point, uint32_t count, char *cause, size_t cause_len);

int kernel_node_facts(uint32_t id, const struct kernel_facts *facts);
/**
 * kernel_admin_done() - an order was carried out (0) or refused (a positive errno)
 * Return: also -ENOENT: who gave it does not wait any more.
 */
int kernel_admin_done(uint32_t order, int error);

typedef void (*kernel_node_fn)(const struct kernel_node *node, void *arg);
int kernel_nodes(kernel_node_fn fn, void *arg);

typedef void (*kernel_gang_fn)(const struct kernel_gang *gang, void *arg);
int kernel_gangs(kernel_gang_fn fn, void *arg);
/**
 * kernel_gang_find() - a gang by its role and id, or by its PID when @id is 0
 * @role: 0: any
 * Return: 0 or -ENOENT.
 */
int kernel_gang_find(uint32_t role, uint64_t id, int pid,
		     struct kernel_gang *gang);

typedef void (*kernel_thread_fn)(uint32_t tid, const char *state, void *arg);
int kernel_threads(uint64_t gang, uint32_t role, kernel_thread_fn fn, void *arg);

typedef void (*kernel_stat_fn)(const char *name, uint64_t value, void *arg);
int kernel_stats(kernel_stat_fn fn, void *arg);

#endif
