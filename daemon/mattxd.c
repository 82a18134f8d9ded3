// SPDX-License-Identifier: GPL-2.0
/* mattxd: start, main loop, end. See mattxd(8). */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <event2/event.h>

#include "admin.h"
#include "auth.h"
#include "config.h"
#include "control.h"
#include "discover.h"
#include "facts.h"
#include "homing.h"
#include "job_main.h"
#include "kernel.h"
#include "listen.h"
#include "log.h"
#include "mattxd.h"
#include "peer.h"
#include "returned.h"

#define END_MS 10000 /* for jobs to end when the daemon does */

enum {
	OPT_NO_MODULE = 256,
	OPT_SOCKET,
	OPT_PIDFILE,
};

struct options {
	const char *config, *socket, *pidfile;
	bool foreground, verbose, test, no_module;
};

static struct event *signals[3];
static int pidfile_fd = -1;
/* The first process waits for the daemon's word on its start. */
static int starter_fd = -1;

const char *argp_program_version = "mattxd 0.1";

/* --------------------------------------------------------------- options */

static const struct argp_option argp_options[] = {
	{ "config", 'c', "FILE", 0, "Configuration (" CONFIG_FILE ")", 0 },
	{ "foreground", 'f', NULL, 0, "Do not daemonise, log to standard error",
	  0 },
	{ "verbose", 'v', NULL, 0, "Log more", 0 },
	{ "test", 't', NULL, 0,
	  "Check the configuration and the key, then exit", 0 },
	{ "socket", OPT_SOCKET, "PATH", 0, "Control socket (" MATTXD_SOCKET ")",
	  0 },
	{ "pidfile", OPT_PIDFILE, "PATH", 0, "PID file (" MATTXD_PIDFILE ")", 0 },
	{ "no-module", OPT_NO_MODULE, NULL, OPTION_HIDDEN,
	  "Run without mattx.ko, for tests", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'c':
		o->config = arg;
		break;
	case 'f':
		o->foreground = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case 't':
		o->test = true;
		break;
	case OPT_SOCKET:
		o->socket = arg;
		break;
	case OPT_PIDFILE:
		o->pidfile = arg;
		break;
	case OPT_NO_MODULE:
		o->no_module = true;
		break;
	case ARGP_KEY_ARG:
		argp_usage(state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse_option,
	.doc = "The MattX daemon: this node's part in a cluster among whose nodes running "
	       "processes can move.",
};

/* ---------------------------------------------------------- daemonising */

/*
 * Return in the daemon; the first process exits with 0 when the daemon has
 * started, else with 1, and does not return.
 */
static void daemonise(void)
{
	char word = 1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC)) {
		log_err("pipe: %m");
		exit(1);
	}
	pid = fork();
	if (pid < 0) {
		log_err("fork: %m");
		exit(1);
	}
	if (pid) {
		close(fds[1]);
		if (read(fds[0], &word, 1) != 1)
			word = 1;
		_exit(word);
	}
	close(fds[0]);
	starter_fd = fds[1];
	setsid();
	if (chdir("/"))
		log_warn("/: %m");
	umask(022);
}

static void detach(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	if (!log_keeps_stderr())
		dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Tell systemd (Type=notify), if it is there. */
static void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(addr.sun_path))
		return;
	strcpy(addr.sun_path, path);
	len = offsetof(struct sockaddr_un, sun_path) + strlen(path);
	if (path[0] == '@')
		addr.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL,
		   (struct sockaddr *)&addr, len) < 0)
		log_debug("%s: %m", path);
	close(fd);
}

static void started(void)
{
	char word = 0;

	if (starter_fd >= 0) {
		if (write(starter_fd, &word, 1) < 0)
			log_debug("starter: %m");
		close(starter_fd);
		starter_fd = -1;
		detach();
	}
	notify("READY=1");
}

/* --------------------------------------------------------------- PID file */

/* The lock is what counts: a file that a killed daemon left is taken over. */
static int pidfile_open(const char *path, char *cause, size_t cause_len)
{
	char text[32] = "";
	int n;

	pidfile_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (pidfile_fd < 0)
		return cause_set(cause, cause_len, errno, "%s: %m", path);
	if (flock(pidfile_fd, LOCK_EX | LOCK_NB)) {
		if (read(pidfile_fd, text, sizeof(text) - 1) < 0)
			text[0] = 0;
		text[strcspn(text, "\n")] = 0;
		close(pidfile_fd);
		pidfile_fd = -1;
		return cause_set(cause, cause_len, EBUSY,
				 "%s: a mattxd is running, PID %s", path, text);
	}
	n = snprintf(text, sizeof(text), "%d\n", getpid());
	if (ftruncate(pidfile_fd, 0) || pwrite(pidfile_fd, text, n, 0) != n)
		return cause_set(cause, cause_len, errno, "%s: %m", path);
	return 0;
}

static void pidfile_close(const char *path)
{
	if (pidfile_fd >= 0)
		unlink(path);
}

/* --------------------------------------------------------- module's events */

static void on_link_down(uint32_t node, const char *cause)
{
	peer_link_lost(node, cause);
}

static void on_want_home(uint64_t gang, uint32_t node, int reason,
			 const char *cause)
{
	(void)node;
	homing_want(gang, reason, cause);
}

static void on_gang_end(uint64_t gang, uint32_t node, uint32_t role, int pid,
			const char *cause)
{
	int pidfd;

	log_debug("PID %d: gang %016llx is no %s any more%s%s", pid,
		  (unsigned long long)gang,
		  role == MATTX_ROLE_HOME ? "deputy" : "guest",
		  cause[0] ? ": " : "", cause);
	/* it lives on here, as another program */
	if (role != MATTX_ROLE_HOME || !cause[0])
		return;
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0)
		returned_add(pid, pidfd, peer_name_of(node), cause);
}

static void on_gone(void)
{
	log_warn("the module was unloaded");
	peers_reset(false);
}

static void on_back(void)
{
	log_info("the module was loaded again");
	peers_reset(true);
}

static void on_lost(void)
{
	peers_look();
	homing_look();
}

static const struct kernel_events events = {
	.link_down = on_link_down,
	.want_home = on_want_home,
	.gang_end = on_gang_end,
	.admin = admin_order,
	.gone = on_gone,
	.back = on_back,
	.lost = on_lost,
};

/* --------------------------------------------------------------- main loop */

static void on_signal(evutil_socket_t sig, short what, void *arg)
{
	(void)what;
	(void)arg;
	if (sig == SIGHUP) {
		log_info("SIGHUP: a new configuration is read at the next start only");
		return;
	}
	log_info("ends: %s", strsignal(sig));
	event_base_loopbreak(self.base);
}

static int signals_init(void)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		signals[i] = evsignal_new(self.base, numbers[i], on_signal, NULL);
		if (!signals[i] || event_add(signals[i], NULL))
			return -ENOMEM;
	}
	return 0;
}

static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int self_init(char *cause, size_t cause_len)
{
	raise_limits();
	self.base = event_base_new();
	self.ending_fd = eventfd(0, EFD_CLOEXEC);
	if (!self.base || self.ending_fd < 0 || signals_init())
		return cause_set(cause, cause_len, ENOMEM, "out of memory");
	if (getrandom(&self.nonce, sizeof(self.nonce), 0) != sizeof(self.nonce))
		return cause_set(cause, cause_len, errno, "random numbers: %m");
	return facts_init(cause, cause_len);
}

static int start(const struct options *o, char *cause, size_t cause_len)
{
	struct config *config = self.config;
	int ret;

	ret = self_init(cause, cause_len);
	if (!ret)
		ret = pidfile_open(o->pidfile, cause, cause_len);
	if (!ret)
		ret = auth_init(config->name, config->tls, config->key,
				config->key_len, cause, cause_len);
	if (!ret)
		ret = kernel_open(self.base, o->no_module, &events, cause,
				  cause_len);
	if (!ret)
		ret = jobs_init(cause, cause_len);
	if (!ret)
		ret = peers_init(cause, cause_len);
	if (!ret)
		ret = listen_init(cause, cause_len);
	if (!ret)
		ret = control_init(o->socket, cause, cause_len);
	if (!ret)
		ret = discover_init(cause, cause_len);
	return ret;
}

/* In an order in which nobody finds missing what it still needs. */
static void stop(const struct options *o)
{
	uint64_t one = 1;

	if (self.ending_fd >= 0 && write(self.ending_fd, &one, sizeof(one)) < 0)
		log_debug("eventfd: %m");
	discover_exit();
	listen_exit();
	jobs_exit(END_MS);
	homing_exit();
	peers_exit();
	control_exit();
	kernel_close();
	auth_exit();
	pidfile_close(o->pidfile);
}

int main(int argc, char **argv)
{
	struct options o = {
		.config = CONFIG_FILE,
		.socket = MATTXD_SOCKET,
		.pidfile = MATTXD_PIDFILE,
	};
	char cause[CONFIG_CAUSE] = "";

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	log_open(true, o.verbose);
	self.verbose = o.verbose;
	if (geteuid()) {
		log_err("only root can run mattxd");
		return 1;
	}
	self.config = config_read(o.config, cause);
	if (!self.config) {
		log_err("%s", cause);
		return 1;
	}
	if (o.test) {
		config_free(self.config);
		return 0;
	}
	if (!o.foreground)
		daemonise();
	if (start(&o, cause, sizeof(cause))) {
		log_err("%s", cause);
		stop(&o);
		return 1;
	}
	log_open(o.foreground, o.verbose);
	started();
	log_info("node %s, %zu nodes, TLS %s%s", self.config->name,
		 self.config->nr_nodes, self.config->tls ? "on" : "off",
		 o.no_module ? ", without module" : "");
	homing_look();
	peers_start();
	event_base_dispatch(self.base);
	notify("STOPPING=1");
	stop(&o);
	config_free(self.config);
	return 0;
}
