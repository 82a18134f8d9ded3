// SPDX-License-Identifier: GPL-2.0
/*
 * Signals of every origin and every way to take them, in every round.
 *
 *	signals
 *
 * Signal 42 from outside is counted; SIGUSR2 with a value that is the sender's
 * PID (sendsig) is checked to tell the truth.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "lib.h"

#define ALT_SIZE (64 << 10)
#define COUNTED	 42

static char alt_stack[ALT_SIZE];
static volatile int count[65];
static volatile pid_t taker[65];
static siginfo_t last[65];
static volatile bool on_alt[65];
static volatile int depth, max_depth;
static pid_t me;

struct helper {
	pthread_t thread;
	volatile int tid, command, busy, end;
};

static struct helper helper;

static pid_t gettid_now(void)
{
	return syscall(SYS_gettid);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	char here;

	(void)context;
	last[sig] = *info;
	taker[sig] = gettid_now();
	on_alt[sig] = &here >= alt_stack && &here < alt_stack + ALT_SIZE;
	__atomic_add_fetch(&count[sig], 1, __ATOMIC_RELEASE);
}

static void on_sender(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	check_eq(info->si_code, SI_QUEUE);
	check_eq(info->si_pid, info->si_value.sival_int);
	check_eq(info->si_uid, getuid());
}

static void handle(int sig, void (*action)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = action,
				.sa_flags = SA_SIGINFO | flags };

	must(sigaction(sig, &sa, NULL));
}

static void forget(int sig)
{
	count[sig] = 0;
	memset(&last[sig], 0, sizeof(last[sig]));
}

/* ---------------------------------------------------------- by ourselves */

static void test_queue(unsigned long round)
{
	int sig = SIGRTMIN + 2;
	union sigval value = { .sival_ptr = (void *)(mix(round) | 1ull << 63) };

	handle(sig, on_signal, SA_RESTART | SA_ONSTACK);
	forget(sig);
	must(sigqueue(me, sig, value));
	check_eq(count[sig], 1);
	check_eq(last[sig].si_code, SI_QUEUE);
	check_eq(last[sig].si_pid, me);
	check_eq(last[sig].si_uid, getuid());
	check(last[sig].si_value.sival_ptr == value.sival_ptr);
	check_eq(taker[sig], me);
	check(on_alt[sig]);
	must(kill(me, sig));
	check_eq(last[sig].si_code, SI_USER);
	must(raise(sig));
	check_eq(last[sig].si_code, SI_TKILL);
	check_eq(count[sig], 3);
}

static void test_thread(void)
{
	int sig = SIGRTMIN + 3;

	handle(sig, on_signal, SA_RESTART);
	forget(sig);
	check_eq(pthread_kill(helper.thread, sig), 0);
	wait_word(&count[sig], 1, "a signal at a thread");
	check_eq(taker[sig], helper.tid);
	check_eq(last[sig].si_code, SI_TKILL);
	must(syscall(SYS_tgkill, me, me, sig));
	check_eq(taker[sig], me);
	must_fail(syscall(SYS_tgkill, me, 1, sig), ESRCH);
}

/* A handler that is interrupted by another, masks and what resets them. */
static void on_nested(int sig)
{
	if (++depth > max_depth)
		max_depth = depth;
	if (depth < 5)
		raise(sig);
	depth--;
}

static void test_masks(void)
{
	struct sigaction sa = { .sa_handler = on_nested, .sa_flags = SA_NODEFER },
			 old;
	int sig = SIGRTMIN + 4;
	sigset_t set, was;

	max_depth = 0;
	must(sigaction(sig, &sa, NULL));
	must(raise(sig));
	check_eq(max_depth, 5);
	handle(sig, on_signal, SA_RESETHAND);
	forget(sig);
	must(raise(sig));
	check_eq(count[sig], 1);
	must(sigaction(sig, NULL, &old));
	check(old.sa_handler == SIG_DFL);
	handle(sig, on_signal, 0);
	sigemptyset(&set);
	sigaddset(&set, sig);
	must(sigprocmask(SIG_BLOCK, &set, &was));
	must(raise(sig));
	must(raise(sig));
	check_eq(count[sig], 1);
	must(sigpending(&set));
	check_eq(sigismember(&set, sig), 1);
	/* one at a time: the handler's end brings the old mask back */
	must_fail(sigsuspend(&was), EINTR);
	check_eq(count[sig], 2);
	must(sigprocmask(SIG_SETMASK, &was, &set));
	check_eq(count[sig], 3);
	check_eq(sigismember(&set, sig), 1);
}

static void test_sigwait(unsigned long round)
{
	struct timespec soon = { .tv_nsec = 2000000 };
	int sig = SIGRTMIN + 5;
	union sigval value = { .sival_int = round };
	sigset_t set, was;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, sig);
	must(sigprocmask(SIG_BLOCK, &set, &was));
	must_fail(sigtimedwait(&set, &info, &soon), EAGAIN);
	must(sigqueue(me, sig, value));
	check_eq(sigwaitinfo(&set, &info), sig);
	check_eq(info.si_value.sival_int, round);
	must(sigprocmask(SIG_SETMASK, &was, NULL));
}

/* ----------------------------------------------------------------- faults */

static volatile uintptr_t fault_ip;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	greg_t *ip = &u->uc_mcontext.gregs[REG_RIP];

	last[sig] = *info;
	count[sig]++;
	fault_ip = *ip;
	/* past the instruction, whose length depends on what it was */
	*ip += sig == SIGSEGV ? 3 : sig == SIGTRAP ? 0 : 2;
}

static void test_faults(void)
{
	unsigned long trash;

	handle(SIGSEGV, on_trap, SA_ONSTACK);
	handle(SIGFPE, on_trap, 0);
	handle(SIGILL, on_trap, 0);
	handle(SIGTRAP, on_trap, 0);
	forget(SIGSEGV);
	forget(SIGFPE);
	forget(SIGILL);
	forget(SIGTRAP);
	asm volatile("movq (%1), %0" : "=r"(trash) : "a"(nowhere) : "memory");
	check_eq(count[SIGSEGV], 1);
	check_eq(last[SIGSEGV].si_code, SEGV_MAPERR);
	check_eq((uintptr_t)last[SIGSEGV].si_addr, (uintptr_t)nowhere);
	asm volatile("xorl %%edx, %%edx\n\tmovl $1, %%eax\n\t"
		     "xorl %%ecx, %%ecx\n\tdivl %%ecx" ::
			     : "eax", "ecx", "edx", "cc", "memory");
	check_eq(count[SIGFPE], 1);
	check_eq(last[SIGFPE].si_code, FPE_INTDIV);
	check_eq((uintptr_t)last[SIGFPE].si_addr, fault_ip);
	asm volatile("ud2" ::: "memory");
	check_eq(count[SIGILL], 1);
	check_eq(last[SIGILL].si_code, ILL_ILLOPN);
	asm volatile("int3" ::: "memory");
	check_eq(count[SIGTRAP], 1);
}

/* ------------------------------------------------------ interrupted calls */

static void tell_helper(int command)
{
	__atomic_store_n(&helper.command, command, __ATOMIC_SEQ_CST);
	if (!command)
		wait_word(&helper.busy, 0, "the helper's rest");
}

/* With SA_RESTART read() goes on; without it there is EINTR. */
static void test_interrupt(void)
{
	int sig = SIGRTMIN + 6, before;
	char buf[4];
	int p[2];

	must(pipe2(p, O_CLOEXEC));
	handle(sig, on_signal, 0);
	forget(sig);
	tell_helper(sig);
	must_fail(read(p[0], buf, 1), EINTR);
	tell_helper(0);
	check(count[sig] > 0);
	check_eq(taker[sig], me);
	handle(sig, on_signal, SA_RESTART);
	before = count[sig];
	tell_helper(-p[1]);
	check_eq(read(p[0], buf, 1), 1);
	check_eq(buf[0], 'x');
	check_eq(count[sig], before + 1);
	tell_helper(0);
	must(close(p[0]));
	must(close(p[1]));
}

/*
 * Disturbs the main thread as it is told: with a signal again and again, since
 * it may not sit in read() yet; or with the signal once and then a byte into
 * the pipe -command.
 */
static void disturb(int command)
{
	int sig = SIGRTMIN + 6, n = count[sig];

	syscall(SYS_tgkill, me, me, sig);
	if (command > 0)
		return;
	wait_word(&count[sig], n + 1, "a signal in read()");
	sleep_ms(2);
	if (write(-command, "x", 1) != 1)
		fail("write: %s", strerror(errno));
	__atomic_store_n(&helper.command, 0, __ATOMIC_RELEASE);
}

static void *helper_main(void *arg)
{
	int command;

	(void)arg;
	helper.tid = gettid_now();
	while (!__atomic_load_n(&helper.end, __ATOMIC_ACQUIRE)) {
		sleep_ms(3);
		__atomic_store_n(&helper.busy, 1, __ATOMIC_SEQ_CST);
		command = __atomic_load_n(&helper.command, __ATOMIC_SEQ_CST);
		if (command)
			disturb(command);
		__atomic_store_n(&helper.busy, 0, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* A31: a mask for the time of one call only. */
static void test_ppoll(void)
{
	struct timespec minute = { .tv_sec = 60 };
	int sig = SIGRTMIN + 6;
	sigset_t set, was;

	handle(sig, on_signal, SA_RESTART);
	forget(sig);
	sigemptyset(&set);
	sigaddset(&set, sig);
	must(sigprocmask(SIG_BLOCK, &set, &was));
	tell_helper(sig);
	must_fail(ppoll(NULL, 0, &minute, &was), EINTR);
	check_eq(count[sig], 1);
	tell_helper(0);
	must(sigprocmask(SIG_SETMASK, &was, &set));
	check_eq(sigismember(&set, sig), 1);
}

/* ----------------------------------------------------------------- timers */

static void test_timers(unsigned long round)
{
	int sig = SIGRTMIN + 7;
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = sig,
				  .sigev_value.sival_int = round };
	struct itimerspec once = { .it_value = { .tv_nsec = 3000000 } }, left;
	struct itimerspec every = { .it_interval = { .tv_nsec = 2000000 },
				    .it_value = { .tv_nsec = 2000000 } };
	struct itimerval alarm_once = { .it_value = { .tv_usec = 2000 } };
	timer_t timer;

	/* A09: aimed at the first thread */
	event._sigev_un._tid = me;
	handle(sig, on_signal, SA_RESTART);
	forget(sig);
	must(timer_create(CLOCK_MONOTONIC, &event, &timer));
	must(timer_settime(timer, 0, &once, NULL));
	wait_word(&count[sig], 1, "a timer's signal");
	check_eq(last[sig].si_code, SI_TIMER);
	check_eq(last[sig].si_value.sival_int, (int)round);
	check_eq(taker[sig], me);
	must(timer_gettime(timer, &left));
	check_eq(left.it_value.tv_sec + left.it_value.tv_nsec, 0);
	must(timer_settime(timer, 0, &every, NULL));
	while (count[sig] < 4)
		sleep_ms(1);
	check(timer_getoverrun(timer) >= 0);
	must(timer_delete(timer));
	handle(SIGALRM, on_signal, SA_RESTART);
	forget(SIGALRM);
	must(setitimer(ITIMER_REAL, &alarm_once, NULL));
	wait_word(&count[SIGALRM], 1, "SIGALRM");
	check_eq(last[SIGALRM].si_code, SI_KERNEL);
}

static void set_up(void)
{
	stack_t alt = { .ss_sp = alt_stack, .ss_size = ALT_SIZE };
	sigset_t set;

	me = getpid();
	must(sigaltstack(&alt, NULL));
	handle(COUNTED, on_signal, SA_RESTART);
	handle(SIGUSR2, on_sender, SA_RESTART);
	/* what comes from outside is the main thread's */
	sigemptyset(&set);
	sigaddset(&set, COUNTED);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGRTMIN + 5);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	pthread_create(&helper.thread, NULL, helper_main, NULL);
	while (!helper.tid)
		sleep_ms(1);
	must(sigprocmask(SIG_UNBLOCK, &set, NULL));
}

static void check_stack(void)
{
	stack_t alt;

	must(sigaltstack(NULL, &alt));
	check(alt.ss_sp == alt_stack);
	check_eq(alt.ss_size, ALT_SIZE);
	check_eq(alt.ss_flags, 0);
}

int main(int argc, char **argv)
{
	unsigned long round = 0;
	sigset_t outside;

	lib_init("signals", argc, argv);
	sigemptyset(&outside);
	sigaddset(&outside, COUNTED);
	sigaddset(&outside, SIGUSR2);
	sigaddset(&outside, SIGTERM);
	set_up();
	lib_ready();
	do {
		test_queue(round);
		test_thread();
		test_faults();
		test_timers(round);
		/* what a signal from outside would rightly interrupt */
		must(sigprocmask(SIG_BLOCK, &outside, NULL));
		test_masks();
		test_sigwait(round);
		test_interrupt();
		test_ppoll();
		must(sigprocmask(SIG_UNBLOCK, &outside, NULL));
		check_stack();
		round++;
	} while (lib_round());
	helper.end = 1;
	pthread_join(helper.thread, NULL);
	printf("signal %d came %d times\n", COUNTED, count[COUNTED]);
	return lib_end();
}
