// SPDX-License-Identifier: GPL-2.0
/* Faults that tests ask for. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"

struct fault {
	atomic_uint left; /* passes until it fires, 0: disarmed */
	atomic_bool kill;
};

static struct fault faults[FAULT_DAEMON_END - MATTX_FAULT_DAEMON];
/* How many are armed: the common pass costs one load. */
static atomic_int armed;

bool daemon_fault(int point)
{
	struct fault *f;
	unsigned int left;

	if (!atomic_load_explicit(&armed, memory_order_relaxed))
		return false;
	if (point < MATTX_FAULT_DAEMON || point >= FAULT_DAEMON_END)
		return false;
	f = &faults[point - MATTX_FAULT_DAEMON];
	left = atomic_load(&f->left);
	do {
		if (!left)
			return false;
	} while (!atomic_compare_exchange_weak(&f->left, &left, left - 1));
	if (left > 1)
		return false;
	atomic_fetch_sub(&armed, 1);
	log_warn("fault %d fires", point);
	if (atomic_load(&f->kill))
		kill(getpid(), SIGKILL);
	return true;
}

int fault_set(int point, unsigned int count, bool kill)
{
	struct fault *f;
	unsigned int old;

	if (point < MATTX_FAULT_DAEMON || point >= FAULT_DAEMON_END)
		return -EINVAL;
	f = &faults[point - MATTX_FAULT_DAEMON];
	atomic_store(&f->kill, kill);
	old = atomic_exchange(&f->left, count);
	atomic_fetch_add(&armed, (count != 0) - (old != 0));
	return 0;
}
