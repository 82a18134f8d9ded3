// SPDX-License-Identifier: GPL-2.0
/*
 * The yardstick: what plain TCP does between two nodes.
 *
 *	tcp listen PORT			serves one of the two, again and again
 *	tcp stream HOST PORT MIB	prints bytes a second
 *	tcp pingpong HOST PORT N	prints nanoseconds for a byte and back, the
 *					median of N
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "lib.h"

#define BLOCK (256 << 10)

static char block[BLOCK];

static void die(const char *what)
{
	fprintf(stderr, "tcp: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* 'p': each byte comes back; 's': all is read, then one byte is the answer. */
static void serve(int fd)
{
	char kind;
	ssize_t n;

	if (read(fd, &kind, 1) != 1)
		return;
	no_delay(fd);
	do {
		n = read(fd, block, kind == 'p' ? 1 : BLOCK);
		if (n > 0 && kind == 'p' && write(fd, block, 1) != 1)
			return;
	} while (n > 0);
	if (kind == 's' && write(fd, "", 1) != 1)
		return;
}

static __attribute__((noreturn)) void listen_on(const char *port)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6,
				     .sin6_port = htons(atoi(port)) };
	int fd = socket(AF_INET6, SOCK_STREAM, 0), client, one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 5))
		die("listen");
	for (;;) {
		client = accept(fd, NULL, NULL);
		if (client < 0)
			die("accept");
		serve(client);
		close(client);
	}
}

static int connect_to(const char *host, const char *port, char kind)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int fd;

	if (getaddrinfo(host, port, &hints, &ai))
		die(host);
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen))
		die(host);
	no_delay(fd);
	if (write(fd, &kind, 1) != 1)
		die(host);
	return fd;
}

static void stream(int fd, unsigned long mib)
{
	uint64_t left = (uint64_t)mib << 20, begin = now_ns(CLOCK_MONOTONIC);
	ssize_t n;

	while (left) {
		n = write(fd, block, left < BLOCK ? left : BLOCK);
		if (n <= 0)
			die("write");
		left -= n;
	}
	shutdown(fd, SHUT_WR);
	if (read(fd, block, 1) != 1)
		die("read");
	printf("%.0f\n",
	       ((uint64_t)mib << 20) * 1e9 / (now_ns(CLOCK_MONOTONIC) - begin));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void pingpong(int fd, unsigned long n)
{
	uint64_t *took = calloc(n, sizeof(*took)), begin;
	unsigned long i;
	char byte = 0;

	for (i = 0; i < n; i++) {
		begin = now_ns(CLOCK_MONOTONIC);
		if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
			die("pingpong");
		took[i] = now_ns(CLOCK_MONOTONIC) - begin;
	}
	qsort(took, n, sizeof(*took), compare);
	printf("%llu\n", (unsigned long long)took[n / 2]);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "listen"))
		listen_on(argv[2]);
	if (argc != 5)
		return 2;
	if (!strcmp(argv[1], "stream"))
		stream(connect_to(argv[2], argv[3], 's'),
		       strtoul(argv[4], NULL, 0));
	else
		pingpong(connect_to(argv[2], argv[3], 'p'),
			 strtoul(argv[4], NULL, 0));
	return 0;
}
