// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/mattx: what scripts for clusters of this kind read and write.
 *
 * nodes, guests, remote and version are lists made anew at each read. A write to admin
 * is one command, which has been carried out or refused when write(2) returns. Who
 * migrates is mattxd; see admin.c for the wait.
 *
 * procfs lets no call of ours begin or go on while mattx_proc_exit() takes the files
 * away, but waits for those that last. A writer therefore holds the module while it
 * sleeps, so that rmmod is refused and does not wait with it.
 */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include "admin.h"
#include "gang/internal.h"
#include "main.h"
#include "peer.h"
#include "wormhole/link.h"

#define LINE_SIZE 128 /* bytes of the longest command, with an end */
#define MAX_WORDS 3

static struct proc_dir_entry *dir;

/* ---------------------------------------------------------------- lists */

static const char rule[] =
	"--------------------------------------------------------------------------------\n";

static void show_node(struct seq_file *m, u32 id, bool is_local,
		      const char *name, const struct mattx_facts *facts)
{
	char number[32];

	snprintf(number, sizeof(number), "%u%s", id, is_local ? " (Local)" : "");
	seq_printf(m, "%-19s %-15s %-9llu %-9llu %-13llu %s\n", number,
		   facts->address[0] ? facts->address : "-", 10ULL * facts->load,
		   1000ULL * facts->cpus, facts->free >> 20, name);
}

/*
 * Four head lines; nodes; an empty line; what is switched how. Load and capacity are in
 * thousandths of a CPU, memory in MiB. A node that has no link is not there.
 */
static int nodes_show(struct seq_file *m, void *v)
{
	struct mattx_peer_info info;
	struct mattx_local local;
	unsigned int i;

	seq_puts(m, "MattX Cluster Nodes:\n");
	seq_puts(m, rule);
	seq_printf(m, "%-19s %-15s %-9s %-9s %-13s %s\n", "Node ID",
		   "IP Address", "CPU Load", "Affinity", "Mem Free (MB)", "Name");
	seq_puts(m, rule);
	mattx_local_get(&local);
	if (local.id)
		show_node(m, local.id, true, local.name, &local.facts);
	for (i = 0; mattx_peer_info(i, &info); i++)
		if (info.up)
			show_node(m, info.id, false, info.name, &info.facts);
	seq_puts(m, "\nBalancer Enabled: NO\n");
	seq_printf(m, "Debug Mode: %s\n",
		   READ_ONCE(mattx_debugging) ? "ON" : "OFF");
	return 0;
}

/* Of this node, and runs elsewhere? */
static bool is_remote(enum mattx_gang_role role, enum mattx_gang_state state)
{
	return role == MATTX_ROLE_HOME &&
	       (state == MATTX_GANG_DEPUTY || state == MATTX_GANG_COMMITTING ||
		state == MATTX_GANG_ARMED);
}

/* Of another node, and runs here? */
static bool is_guest(enum mattx_gang_role role, enum mattx_gang_state state)
{
	return role == MATTX_ROLE_HOST &&
	       (state == MATTX_GANG_GUEST || state == MATTX_GANG_FREEZING ||
		state == MATTX_GANG_FROZEN || state == MATTX_GANG_COMMITTING);
}

struct list {
	struct seq_file *m;
	struct pid_namespace *ns; /* of whoever mounted this procfs */
	bool (*wanted)(enum mattx_gang_role role, enum mattx_gang_state state);
};

static int show_gang(struct mattx_gang *gang, void *arg)
{
	struct list *list = arg;
	pid_t pid;

	if (!list->wanted(gang->role, READ_ONCE(gang->state)) || !gang->peer)
		return 0;
	pid = pid_nr_ns(gang->pid, list->ns); /* 0: cannot be seen from there */
	if (pid)
		seq_printf(list->m, "%d:%u\n", pid, mattx_peer_id(gang->peer));
	return 0;
}

static void show_gangs(struct seq_file *m,
		       bool (*wanted)(enum mattx_gang_role role,
				      enum mattx_gang_state state))
{
	struct list list = {
		.m = m,
		.ns = proc_pid_ns(file_inode(m->file)->i_sb),
		.wanted = wanted,
	};

	mattx_gang_for_each(show_gang, &list);
}

static int remote_show(struct seq_file *m, void *v)
{
	show_gangs(m, is_remote);
	return 0;
}

static int guests_show(struct seq_file *m, void *v)
{
	show_gangs(m, is_guest);
	return 0;
}

static int version_show(struct seq_file *m, void *v)
{
	seq_printf(m, "MattX Version: %s\nMattX License: GPL-2.0\n",
		   THIS_MODULE->version);
	return 0;
}

/* --------------------------------------------------------------- commands */

/* Digits and nothing else. Return: the number, above 0, or -EINVAL. */
static int parse_number(const char *word)
{
	int n;

	if (!isdigit(word[0]) || kstrtoint(word, 10, &n) || n <= 0)
		return -EINVAL;
	return n;
}

static int parse_switch(const char *word, bool *on)
{
	if (strcmp(word, "0") && strcmp(word, "1"))
		return -EINVAL;
	*on = word[0] == '1';
	return 0;
}

/*
 * The process that the writer means, as mattxd sees it. What is no process here may
 * still be the number that a guest has at home: mattxd knows.
 */
static int parse_process(const char *word)
{
	int nr = parse_number(word);
	struct pid *pid;
	pid_t seen = 0;

	if (nr < 0)
		return nr;
	rcu_read_lock();
	pid = find_vpid(nr);
	if (pid)
		seen = pid_nr(pid);
	else if (task_active_pid_ns(current) == &init_pid_ns)
		seen = nr;
	rcu_read_unlock();
	if (!seen)
		return -ESRCH;
	/* it would have to be frozen, and sleeps here until that is done */
	return seen == task_tgid_nr(current) ? -EDEADLK : seen;
}

static int run_migrate(char **words)
{
	int pid = parse_process(words[1]);

	if (pid < 0)
		return pid;
	if (strlen(words[2]) >= MATTX_NAME_MAX)
		return -ENOENT; /* no node has such a name */
	return mattx_admin_ask(MATTX_ADMIN_MIGRATE, pid, words[2]);
}

static int run_expel(char **words)
{
	int pid = parse_process(words[1]);

	return pid < 0 ? pid : mattx_admin_ask(MATTX_ADMIN_EXPEL, pid, NULL);
}

/* Nothing moves here unless somebody asks for it. */
static int run_balancer(char **words)
{
	bool on;

	return parse_switch(words[1], &on) ?: on ? -EOPNOTSUPP : 0;
}

static int run_debug(char **words)
{
	bool on;
	int err = parse_switch(words[1], &on);

	if (!err)
		WRITE_ONCE(mattx_debugging, on);
	return err;
}

/* Programs of MPI move like all others, without a mode of their own. */
static int run_mpi(char **words)
{
	bool on;

	return parse_switch(words[1], &on);
}

/* How a balancer is told what to do. */
static int run_nothing(char **words)
{
	return -EOPNOTSUPP;
}

static const struct command {
	const char *name;
	unsigned int min, max; /* words, with its own */
	int (*run)(char **words);
} commands[] = {
	{ "migrate", 3, 3, run_migrate },   { "expel", 2, 2, run_expel },
	{ "balancer", 2, 2, run_balancer }, { "debug", 2, 2, run_debug },
	{ "mpi", 2, 2, run_mpi },	    { "affinity", 2, 2, run_nothing },
	{ "exclude", 1, 2, run_nothing },   { "include", 1, 2, run_nothing },
};

static int run(char **words, unsigned int n)
{
	const struct command *c;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		if (n && !strcmp(words[0], c->name))
			return n < c->min || n > c->max ? -EINVAL : c->run(words);
	return -EINVAL;
}

/* ------------------------------------------------------------------ admin */

/*
 * One line of printable ASCII, with or without its end, becomes words.
 * Return: how many, at most MAX_WORDS, or -EINVAL.
 */
static int split(char *line, size_t len, char **words)
{
	char *word;
	size_t i;
	int n = 0;

	if (len && line[len - 1] == '\n')
		line[--len] = 0;
	for (i = 0; i < len; i++)
		if (line[i] != '\t' && (line[i] < ' ' || line[i] > '~'))
			return -EINVAL;
	while ((word = strsep(&line, " \t"))) {
		if (!word[0])
			continue;
		if (n == MAX_WORDS)
			return -EINVAL;
		words[n++] = word;
	}
	return n;
}

static int admin_open(struct inode *inode, struct file *file)
{
	/* whatever chmod(1) has made of its mode */
	return capable(CAP_SYS_ADMIN) ? nonseekable_open(inode, file) : -EPERM;
}

/* Each write stands for itself: a command is whole, or it is none. */
static ssize_t admin_write(struct file *file, const char __user *user,
			   size_t count, loff_t *pos)
{
	char line[LINE_SIZE], *words[MAX_WORDS];
	int n, err;

	if (!count)
		return 0;
	if (count >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, user, count))
		return -EFAULT;
	line[count] = 0;
	n = split(line, count, words);
	if (n < 0)
		return n;
	if (!try_module_get(THIS_MODULE))
		return -ENODEV; /* on its way out */
	err = run(words, n);
	module_put(THIS_MODULE); /* mattx_proc_exit() waits for our return */
	mattx_debug("admin: %s by PID %d: %d\n", n ? words[0] : "nothing",
		    task_tgid_nr(current), err);
	return err ? err : count;
}

static const struct proc_ops admin_ops = {
	.proc_open = admin_open,
	.proc_write = admin_write,
};

/* ------------------------------------------------------------------ files */

int mattx_proc_init(void)
{
	dir = proc_mkdir("mattx", NULL);
	if (!dir)
		return -ENOMEM;
	if (proc_create_single("nodes", 0444, dir, nodes_show) &&
	    proc_create_single("remote", 0444, dir, remote_show) &&
	    proc_create_single("guests", 0444, dir, guests_show) &&
	    proc_create_single("version", 0444, dir, version_show) &&
	    proc_create("admin", 0200, dir, &admin_ops))
		return 0;
	proc_remove(dir);
	return -ENOMEM;
}

void mattx_proc_exit(void)
{
	proc_remove(dir);
}
