// SPDX-License-Identifier: GPL-2.0
/*
 * mattxctl: asks mattxd. See mattxctl(1).
 *
 * Exit status: 0 done, 1 refused or failed (one line of cause on standard error),
 * 2 wrong usage.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <json-c/json.h>

#define SOCKET_PATH "/run/mattxd.sock"

enum {
	OPT_JSON = 256,
	OPT_SOCKET,
	OPT_THREADS,
	OPT_ALL,
	OPT_KILL,
};

struct options {
	const char *socket;
	bool json, threads, all, kill, quiet;
	char *words[4]; /* the command and what follows it */
	int nr_words;
};

struct command {
	const char *name;
	int min, max; /* words after the name */
	/* fills the request; returns false for wrong usage */
	bool (*request)(const struct options *o, struct json_object *request);
	void (*print)(const struct options *o, struct json_object *result);
};

const char *argp_program_version = "mattxctl 0.1";

static bool progress_shown;
static bool failed_shown;

/* ------------------------------------------------------------------ JSON */

static struct json_object *field(struct json_object *from, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(from, key, &value);
	return value;
}

static const char *text_of(struct json_object *from, const char *key)
{
	struct json_object *value = field(from, key);

	return json_object_is_type(value, json_type_string) ?
		       json_object_get_string(value) :
		       "";
}

static int64_t number_of(struct json_object *from, const char *key)
{
	return json_object_get_int64(field(from, key));
}

static double real_of(struct json_object *from, const char *key)
{
	return json_object_get_double(field(from, key));
}

static void put_text(struct json_object *to, const char *key, const char *value)
{
	json_object_object_add(to, key, json_object_new_string(value));
}

static void put_number(struct json_object *to, const char *key, int64_t value)
{
	json_object_object_add(to, key, json_object_new_int64(value));
}

static void put_flag(struct json_object *to, const char *key, bool value)
{
	json_object_object_add(to, key, json_object_new_boolean(value));
}

/* ------------------------------------------------------------- printing */

/* "512", "1.5K", "20M" */
static const char *size_text(uint64_t bytes, char buf[16])
{
	static const char units[] = " KMGTPE";
	double n = bytes;
	int unit = 0;

	while (n >= 1000 && unit < 6) {
		n /= 1024;
		unit++;
	}
	if (!unit)
		snprintf(buf, 16, "%.0f", n);
	else
		snprintf(buf, 16, n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[unit]);
	return buf;
}

/* Since when: "3s", "5m", "2h", "4d". */
static const char *age_text(double since, char buf[16])
{
	double age = time(NULL) - since;

	if (!since || age < 0)
		age = 0;
	if (age < 100)
		snprintf(buf, 16, "%.0fs", age);
	else if (age < 6000)
		snprintf(buf, 16, "%.0fm", age / 60);
	else if (age < 360000)
		snprintf(buf, 16, "%.0fh", age / 3600);
	else
		snprintf(buf, 16, "%.0fd", age / 86400);
	return buf;
}

static void print_nodes(const struct options *o, struct json_object *result)
{
	struct json_object *nodes = field(result, "nodes"), *node;
	char total[16], free_text[16];
	size_t i, n = json_object_array_length(nodes);

	(void)o;
	printf("%-16s %-22s %-6s %4s %6s %7s %7s  %s\n", "NODE", "ADDRESS",
	       "STATE", "CPUS", "LOAD", "MEMORY", "FREE", "KERNEL");
	for (i = 0; i < n; i++) {
		node = json_object_array_get_idx(nodes, i);
		printf("%-16s %-22s %-6s ", text_of(node, "name"),
		       text_of(node, "address"), text_of(node, "state"));
		if (field(node, "kernel"))
			printf("%4" PRId64 " %6.2f %7s %7s  %s",
			       number_of(node, "cpus"), real_of(node, "load"),
			       size_text(number_of(node, "memory"), total),
			       size_text(number_of(node, "available"), free_text),
			       text_of(node, "kernel"));
		else
			printf("%4s %6s %7s %7s  -", "-", "-", "-", "-");
		if (field(node, "cause"))
			printf("  (%s)", text_of(node, "cause"));
		putchar('\n');
	}
}

static const char *user_text(uint32_t uid, char buf[32])
{
	struct passwd *pw = getpwuid(uid);

	if (pw)
		snprintf(buf, 32, "%s", pw->pw_name);
	else
		snprintf(buf, 32, "%u", uid);
	return buf;
}

static void print_gangs(struct json_object *gangs, const char *way)
{
	struct json_object *gang, *threads, *thread;
	size_t i, j, n = json_object_array_length(gangs);
	char user[32], age[16];

	for (i = 0; i < n; i++) {
		gang = json_object_array_get_idx(gangs, i);
		printf("%-4s %7" PRId64 " %-12s %-8s %7" PRId64
		       " %-10s %10" PRId64 " %5s  %-15s %s\n",
		       way, number_of(gang, "pid"), text_of(gang, "node"),
		       user_text(number_of(gang, "uid"), user),
		       number_of(gang, "threads"), text_of(gang, "state"),
		       number_of(gang, "calls"),
		       age_text(real_of(gang, "since"), age),
		       text_of(gang, "comm"), text_of(gang, "reason"));
		threads = field(gang, "thread");
		if (!threads)
			continue;
		for (j = 0; j < json_object_array_length(threads); j++) {
			thread = json_object_array_get_idx(threads, j);
			printf("     %7" PRId64 " %s\n", number_of(thread, "tid"),
			       text_of(thread, "state"));
		}
	}
}

/* Those that came home by themselves, and are still here. */
static void print_returned(struct json_object *list)
{
	struct json_object *one;
	char age[16];
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		one = json_object_array_get_idx(list, i);
		printf("%-4s %7" PRId64
		       " %-12s %-8s %7s %-10s %10s %5s  %-15s %s\n",
		       "home", number_of(one, "pid"), text_of(one, "node"), "-",
		       "-", "at home", "-", age_text(real_of(one, "since"), age),
		       "-", text_of(one, "reason"));
	}
}

static void print_ps(const struct options *o, struct json_object *result)
{
	(void)o;
	printf("%-4s %7s %-12s %-8s %7s %-10s %10s %5s  %-15s %s\n", "WAY",
	       "PID", "NODE", "USER", "THREADS", "STATE", "CALLS", "SINCE",
	       "COMMAND", "REASON");
	print_gangs(field(result, "out"), "out");
	print_gangs(field(result, "in"), "in");
	print_returned(field(result, "home"));
}

static void print_nothing(const struct options *o, struct json_object *result)
{
	(void)o;
	(void)result;
}

static void print_check(const struct options *o, struct json_object *result)
{
	(void)o;
	if (number_of(result, "obstacles"))
		return;
	if (field(result, "node"))
		printf("PID %" PRId64 " can move to %s\n",
		       number_of(result, "pid"), text_of(result, "node"));
	else
		printf("PID %" PRId64
		       ": nothing in it stands in the way of a move\n",
		       number_of(result, "pid"));
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_stats(const struct options *o, struct json_object *result)
{
	struct json_object *stats = field(result, "stats");
	size_t n = 0, i, len = json_object_object_length(stats);
	const char **keys = calloc(len + 1, sizeof(*keys));

	(void)o;
	if (!keys)
		return;
	json_object_object_foreach(stats, key, value) {
		(void)value;
		keys[n++] = key;
	}
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (i = 0; i < n; i++)
		printf("%-40s %" PRIu64 "\n", keys[i],
		       json_object_get_uint64(field(stats, keys[i])));
	free(keys);
}

/* -------------------------------------------------------------- requests */

/* Return: false unless @word is a whole number from @min to @max. */
static bool parse_number(const char *word, long min, long max, long *n)
{
	char *end;

	errno = 0;
	*n = strtol(word, &end, 10);
	return !errno && end != word && !*end && *n >= min && *n <= max;
}

static bool put_pid(struct json_object *request, const char *word)
{
	long pid;

	if (!parse_number(word, 1, INT_MAX, &pid)) {
		fprintf(stderr, "mattxctl: %s: not a PID\n", word);
		return false;
	}
	put_number(request, "pid", pid);
	return true;
}

static bool request_plain(const struct options *o, struct json_object *request)
{
	(void)o;
	(void)request;
	return true;
}

static bool request_ps(const struct options *o, struct json_object *request)
{
	put_flag(request, "threads", o->threads);
	return true;
}

static bool request_migrate(const struct options *o, struct json_object *request)
{
	put_text(request, "node", o->words[2]);
	return put_pid(request, o->words[1]);
}

static bool request_home(const struct options *o, struct json_object *request)
{
	return put_pid(request, o->words[1]);
}

static bool request_expel(const struct options *o, struct json_object *request)
{
	if (o->all == (o->nr_words == 2)) {
		fprintf(stderr, "mattxctl: expel: a PID or --all is expected\n");
		return false;
	}
	put_flag(request, "all", o->all);
	return o->all || put_pid(request, o->words[1]);
}

static bool request_check(const struct options *o, struct json_object *request)
{
	if (o->nr_words == 3)
		put_text(request, "node", o->words[2]);
	return put_pid(request, o->words[1]);
}

static bool request_forget(const struct options *o, struct json_object *request)
{
	put_text(request, "node", o->words[1]);
	return true;
}

static bool request_fault(const struct options *o, struct json_object *request)
{
	long point, count = 1;

	if (!parse_number(o->words[1], 0, INT_MAX, &point) ||
	    (o->nr_words == 3 && !parse_number(o->words[2], 0, INT_MAX, &count))) {
		fprintf(stderr, "mattxctl: fault: POINT [COUNT] are numbers\n");
		return false;
	}
	put_number(request, "point", point);
	put_number(request, "count", count);
	put_flag(request, "kill", o->kill);
	return true;
}

static const struct command commands[] = {
	{ "nodes", 0, 0, request_plain, print_nodes },
	{ "ps", 0, 0, request_ps, print_ps },
	{ "migrate", 2, 2, request_migrate, print_nothing },
	{ "home", 1, 1, request_home, print_nothing },
	{ "expel", 0, 1, request_expel, print_nothing },
	{ "check", 1, 2, request_check, print_check },
	{ "stats", 0, 0, request_plain, print_stats },
	{ "forget", 1, 1, request_forget, print_nothing },
	{ "fault", 1, 2, request_fault, print_nothing },
};

/* ------------------------------------------------------- talk to mattxd */

static int connect_daemon(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		fprintf(stderr, "mattxctl: %s: name too long\n", path);
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		fprintf(stderr, "mattxctl: %s: %s\n", path,
			errno == ENOENT || errno == ECONNREFUSED ?
				"mattxd is not running" :
				strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* "PID 12: node2: cause", without what is not known */
static void print_failure(struct json_object *error)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
	fputs("mattxctl: ", stderr);
	if (field(error, "pid"))
		fprintf(stderr, "PID %" PRId64 ": ", number_of(error, "pid"));
	if (field(error, "node"))
		fprintf(stderr, "%s: ", text_of(error, "node"));
	fprintf(stderr, "%s\n", text_of(error, "cause"));
}

static void print_progress(const struct options *o, struct json_object *p)
{
	char done[16], total[16];

	if (o->quiet || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[KPID %" PRId64 " %s: %s %s",
		number_of(p, "pid"), text_of(p, "node"), text_of(p, "phase"),
		size_text(number_of(p, "done"), done));
	if (number_of(p, "total"))
		fprintf(stderr, " of %s",
			size_text(number_of(p, "total"), total));
	fflush(stderr);
	progress_shown = true;
}

static void end_progress(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}

/* The result, with the obstacles of a check among it, as one JSON value. */
static void print_json(struct json_object *value)
{
	puts(json_object_to_json_string_ext(
		value, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			       JSON_C_TO_STRING_NOSLASHESCAPE));
}

/*
 * One line from the daemon. Return: -1 when more follow, else the exit status.
 * @obstacles: what "check" has found so far
 */
static int take_line(const struct options *o, const struct command *command,
		     struct json_object *line, struct json_object *obstacles)
{
	struct json_object *value;

	if ((value = field(line, "progress"))) {
		print_progress(o, value);
		return -1;
	}
	if ((value = field(line, "obstacle"))) {
		json_object_array_add(obstacles, json_object_get(value));
		if (!o->json)
			print_failure(value);
		return -1;
	}
	if ((value = field(line, "failed"))) {
		failed_shown = true;
		print_failure(value);
		return -1;
	}
	end_progress();
	if ((value = field(line, "error"))) {
		if (o->json)
			print_json(line);
		if (!failed_shown)
			print_failure(value);
		return 1;
	}
	value = field(line, "ok");
	if (!value)
		return -1; /* of a later version */
	if (o->json && json_object_array_length(obstacles))
		json_object_object_add(value, "obstacle",
				       json_object_get(obstacles));
	if (o->json)
		print_json(value);
	else
		command->print(o, value);
	return json_object_array_length(obstacles) ? 1 : 0;
}

static int talk(const struct options *o, const struct command *command,
		struct json_object *request)
{
	struct json_object *obstacles = json_object_new_array(), *answer;
	int fd, status = -1;
	char *line = NULL;
	size_t size = 0;
	FILE *stream;

	fd = connect_daemon(o->socket);
	if (fd < 0)
		return 1;
	stream = fdopen(fd, "r+");
	if (!stream || dprintf(fd, "%s\n",
			       json_object_to_json_string_ext(
				       request, JSON_C_TO_STRING_PLAIN)) < 0) {
		fprintf(stderr, "mattxctl: %s: %s\n", o->socket, strerror(errno));
		return 1;
	}
	while (status < 0 && getline(&line, &size, stream) > 0) {
		answer = json_tokener_parse(line);
		status = take_line(o, command, answer, obstacles);
		json_object_put(answer);
	}
	end_progress();
	if (status < 0) {
		fprintf(stderr, "mattxctl: mattxd closed the connection; "
				"what was begun may go on\n");
		status = 1;
	}
	free(line);
	fclose(stream);
	json_object_put(obstacles);
	return status;
}

/* --------------------------------------------------------------- options */

static const struct argp_option argp_options[] = {
	{ "json", OPT_JSON, NULL, 0, "Print JSON", 0 },
	{ "threads", OPT_THREADS, NULL, 0, "ps: the threads too", 0 },
	{ "all", OPT_ALL, NULL, 0, "expel: all guests", 0 },
	{ "quiet", 'q', NULL, 0, "No progress", 0 },
	{ "socket", OPT_SOCKET, "PATH", 0,
	  "mattxd's control socket (" SOCKET_PATH ")", 0 },
	{ "kill", OPT_KILL, NULL, OPTION_HIDDEN, "fault: mattxd dies there", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_THREADS:
		o->threads = true;
		break;
	case OPT_ALL:
		o->all = true;
		break;
	case OPT_KILL:
		o->kill = true;
		break;
	case OPT_SOCKET:
		o->socket = arg;
		break;
	case 'q':
		o->quiet = true;
		break;
	case ARGP_KEY_ARG:
		if (o->nr_words == 4)
			argp_usage(state);
		o->words[o->nr_words++] = arg;
		break;
	case ARGP_KEY_NO_ARGS:
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
	.args_doc = "nodes\nps [--threads]\nmigrate PID NODE|home\nhome PID\n"
		    "expel PID|--all\ncheck PID [NODE]\nstats\nforget NODE",
	.doc = "Move running processes between the nodes of a MattX cluster.",
};

int main(int argc, char **argv)
{
	const struct command *command = NULL;
	struct options o = { .socket = SOCKET_PATH };
	struct json_object *request;
	int words, status;
	size_t i;

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, o.words[0]))
			command = &commands[i];
	if (!command) {
		fprintf(stderr, "mattxctl: %s: no such command\n", o.words[0]);
		argp_help(&argp, stderr, ARGP_HELP_STD_USAGE, argv[0]);
		return 2;
	}
	words = o.nr_words - 1;
	if (words < command->min || words > command->max) {
		fprintf(stderr, "mattxctl: %s: wrong number of arguments\n",
			command->name);
		argp_help(&argp, stderr, ARGP_HELP_STD_USAGE, argv[0]);
		return 2;
	}
	request = json_object_new_object();
	put_text(request, "request", command->name);
	status = command->request(&o, request) ? talk(&o, command, request) : 2;
	json_object_put(request);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "mattxctl: standard output: %s\n",
			strerror(errno));
		return 1;
	}
	return status;
}
