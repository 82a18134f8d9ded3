// SPDX-License-Identifier: GPL-2.0
/*
 * Sends signals as a process can and kill(1) cannot.
 *
 *	sendsig PID SIGNAL [VALUE [TIMES]]	by sigqueue()
 *	sendsig -t TID PID SIGNAL VALUE		to one thread
 *
 * Without VALUE, or with VALUE "pid", the value is our own PID.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int send(pid_t pid, pid_t tid, int sig, int value)
{
	union sigval val = { .sival_int = value };
	siginfo_t info;

	if (!tid)
		return sigqueue(pid, sig, val);
	memset(&info, 0, sizeof(info));
	info.si_signo = sig;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value = val;
	return syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, &info);
}

int main(int argc, char **argv)
{
	pid_t tid = 0;
	int value = getpid(), times = 1;

	if (argc > 2 && !strcmp(argv[1], "-t")) {
		tid = atoi(argv[2]);
		argc -= 2;
		argv += 2;
	}
	if (argc < 3)
		return 2;
	if (argc > 3 && strcmp(argv[3], "pid"))
		value = atoi(argv[3]);
	if (argc > 4)
		times = atoi(argv[4]);
	while (times--) {
		if (send(atoi(argv[1]), tid, atoi(argv[2]), value)) {
			fprintf(stderr, "sendsig: %s\n", strerror(errno));
			return 1;
		}
	}
	return 0;
}
