// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/mattx: an open file is the handle of one gang.
 *
 * The handle is given up when the process that opened it closes it or ends, even
 * if others (the warden, a body) have inherited the file: what was not committed
 * then is undone. A frozen process is thawed, a body is killed, an armed deputy
 * is a deputy again; a guest and a deputy stay.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "fault.h"
#include "gang/internal.h"
#include "ghost/set.h"
#include "main.h"
#include "memory.h"
#include "wormhole/hooks.h"

#define MAX_CALLS 4096 /* of one MATTX_IOC_CALLS */

struct handle {
	struct mutex lock;	 /* gang: set once; held for no longer */
	struct mattx_gang *gang; /* holds a reference */
	fl_owner_t owner;	 /* descriptor table of the opener */
	bool given_up;
};

/* ------------------------------------------------------------- life */

static int chardev_open(struct inode *inode, struct file *file)
{
	struct handle *handle;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	handle = kzalloc(sizeof(*handle), GFP_KERNEL);
	if (!handle)
		return -ENOMEM;
	mutex_init(&handle->lock);
	handle->owner = current->files;
	file->private_data = handle;
	return nonseekable_open(inode, file);
}

/* Undoes what was not committed. */
static void abandon(struct mattx_gang *gang)
{
	mutex_lock(&gang->door);
	switch (READ_ONCE(gang->state)) {
	case MATTX_GANG_FREEZING:
	case MATTX_GANG_FROZEN:
		mattx_gang_thaw(gang);
		break;
	case MATTX_GANG_BODY:
		mattx_gang_kill(gang);
		break;
	case MATTX_GANG_ARMED:
		if (gang->role == MATTX_ROLE_HOME) {
			if (mattx_gang_change(gang, MATTX_GANG_ARMED,
					      MATTX_GANG_DEPUTY))
				mattx_signal_poke(gang);
		} else if (mattx_gang_change(gang, MATTX_GANG_ARMED,
					     MATTX_GANG_BODY)) {
			mattx_gang_kill(gang);
		}
		break;
	case MATTX_GANG_DEAD:
		if (!gang->sent) /* killed before it left */
			mattx_guard_release(gang);
		break;
	default:
		break;
	}
	mutex_unlock(&gang->door);
	mattx_gang_unbind(gang);
}

static void give_up(struct handle *handle)
{
	struct mattx_gang *gang;
	bool was;

	mutex_lock(&handle->lock);
	was = handle->given_up;
	handle->given_up = true;
	gang = handle->gang;
	mutex_unlock(&handle->lock);
	if (gang && !was)
		abandon(gang);
}

static int chardev_flush(struct file *file, fl_owner_t id)
{
	struct handle *handle = file->private_data;

	if (id == handle->owner)
		give_up(handle);
	return 0;
}

static int chardev_release(struct inode *inode, struct file *file)
{
	struct handle *handle = file->private_data;

	give_up(handle);
	mattx_gang_put(handle->gang);
	kfree(handle);
	return 0;
}

/* Makes @gang the handle's; takes over the reference and the binding. */
static int bind(struct handle *handle, struct mattx_gang *gang)
{
	int err = 0;

	mutex_lock(&handle->lock);
	if (handle->gang || handle->given_up)
		err = -EBUSY;
	else
		handle->gang = gang;
	mutex_unlock(&handle->lock);
	if (err) {
		mattx_gang_unbind(gang);
		mattx_gang_put(gang);
	}
	return err;
}

/* ----------------------------------------------------------- ioctls */

static void describe(struct mattx_gang *gang, struct task_struct *leader)
{
	get_task_comm(gang->comm, leader);
	rcu_read_lock();
	gang->uid = from_kuid_munged(&init_user_ns, __task_cred(leader)->uid);
	rcu_read_unlock();
}

/* A process of this node: a new gang. */
static int freeze_process(struct handle *handle, struct mattx_ioc_freeze *arg)
{
	struct task_struct *leader;
	struct mattx_gang *gang;
	struct pid *pid;
	int err;

	pid = find_get_pid(arg->pid);
	leader = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	if (!leader) {
		put_pid(pid);
		strscpy(arg->cause, "no such process", sizeof(arg->cause));
		return -ESRCH;
	}
	gang = mattx_gang_alloc(MATTX_ROLE_HOME, MATTX_GANG_FREEZING);
	if (!gang) {
		err = -ENOMEM;
		goto out;
	}
	gang->pid = get_pid(pid);
	gang->tgid = task_tgid_nr_ns(leader, ns_of_pid(pid));
	gang->bound = true;
	describe(gang, leader);
	err = bind(handle, gang);
	if (err)
		goto out;
	mutex_lock(&gang->door);
	err = mattx_gang_freeze(gang, pid, arg->timeout_ms, arg->cause);
	if (err)
		mattx_gang_thaw(gang);
	arg->threads = gang->nr_threads;
	mutex_unlock(&gang->door);
out:
	put_task_struct(leader);
	put_pid(pid);
	return err;
}

/* A gang that runs here, all of it, is FREEZING from now on. */
static int begin_freeze(struct mattx_gang *gang, char *cause)
{
	int err = -EINVAL;

	strscpy(cause, "is no running guest", MATTX_CAUSE_MAX);
	if (gang->lender) {
		strscpy(cause, "has its parent's memory until it calls execve",
			MATTX_CAUSE_MAX);
		return -EBUSY;
	}
	if (gang->role == MATTX_ROLE_HOST &&
	    READ_ONCE(gang->state) == MATTX_GANG_GUEST)
		err = mattx_gang_await_left(gang, cause);
	if (!err &&
	    !mattx_gang_change(gang, MATTX_GANG_GUEST, MATTX_GANG_FREEZING))
		err = -EINVAL;
	return err;
}

static int freeze_guest(struct mattx_gang *gang, struct mattx_ioc_freeze *arg)
{
	int err = begin_freeze(gang, arg->cause);

	if (err)
		return err;
	err = mattx_gang_freeze(gang, gang->pid, arg->timeout_ms, arg->cause);
	if (!err) {
		err = mattx_sets_sync(gang);
		if (err)
			strscpy(arg->cause, "home does not answer",
				sizeof(arg->cause));
	}
	if (err)
		mattx_gang_thaw(gang);
	else
		mattx_stop_report(gang); /* the warden may not have come to it */
	arg->threads = gang->nr_threads;
	return err;
}

static long ioc_freeze(struct handle *handle, void __user *user)
{
	struct mattx_ioc_freeze arg;
	long err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.pad || arg.pid < 0)
		return -EINVAL;
	memset(arg.cause, 0, sizeof(arg.cause));
	if (arg.pid) {
		err = freeze_process(handle, &arg);
	} else if (handle->gang) {
		mutex_lock(&handle->gang->door);
		err = freeze_guest(handle->gang, &arg);
		mutex_unlock(&handle->gang->door);
	} else {
		return -EINVAL;
	}
	if (copy_to_user(user, &arg, sizeof(arg)) && !err)
		err = -EFAULT;
	return err;
}

static long ioc_open(struct handle *handle, void __user *user)
{
	struct mattx_ioc_open arg;
	struct mattx_gang *gang;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.pad || !arg.gang)
		return -EINVAL;
	err = mattx_gang_open(&gang, arg.gang, arg.role);
	return err ?: bind(handle, gang);
}

/* current becomes the first thread of a body. */
static long ioc_body(struct handle *handle, void __user *user)
{
	struct mattx_ioc_body arg;
	struct mattx_thread *thread;
	struct mattx_gang *gang;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (!PAGE_ALIGNED(arg.stub) || !PAGE_ALIGNED(arg.stub_len) ||
	    !arg.stub_len)
		return -EINVAL;
	if (!thread_group_empty(current) || mattx_thread_find(current) ||
	    !task_pid(current)->level || is_child_reaper(task_pid(current)))
		return -EINVAL;
	if (mattx_fault(MATTX_FAULT_BODY))
		return -ENOMEM;
	gang = mattx_gang_alloc(MATTX_ROLE_HOST, MATTX_GANG_BODY);
	if (!gang)
		return -ENOMEM;
	gang->silent = true;
	gang->pid = get_pid(task_tgid(current));
	gang->tgid = task_tgid_vnr(current);
	gang->pidns = get_pid_ns(task_active_pid_ns(current));
	gang->bound = true;
	describe(gang, current);
	err = mattx_body_first_stub(gang, arg.stub, arg.stub_len);
	if (err)
		goto out;
	/* now, and not when it is armed: the process stands still at home by then */
	err = mattx_hooks_get();
	if (err)
		goto out;
	gang->hooked = true;
	thread = mattx_thread_add(gang, current, GFP_KERNEL);
	if (!thread) {
		err = -ENOMEM;
		goto out;
	}
	/* from here on the daemon finds it, complete */
	mattx_gang_hold(gang);
	err = bind(handle, gang);
	if (err) {
		mattx_thread_remove(thread);
		goto out;
	}
	mattx_thread_hold(thread);
	err = task_work_add(current, &thread->work, TWA_RESUME);
	if (err)
		mattx_thread_put(thread);
out:
	mattx_gang_put(gang);
	return err;
}

static long ioc_info(struct mattx_gang *gang, void __user *user)
{
	struct mattx_ioc_info arg = {
		.gang = gang->id,
		.role = gang->role,
		.pid = pid_vnr(gang->pid),
		.tgid = gang->tgid,
		.peer = mattx_gang_peer_id(gang),
		.xstate_size = mattx_xstate_size(),
	};

	spin_lock_irq(&gang->lock);
	arg.state = gang->state;
	arg.threads = gang->nr_threads;
	spin_unlock_irq(&gang->lock);
	return copy_to_user(user, &arg, sizeof(arg)) ? -EFAULT : 0;
}

/* Has no deputy an end before it? The guest's threads ended before it was frozen. */
static bool none_ends(struct mattx_gang *gang)
{
	struct mattx_thread *thread;
	bool none = true;

	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node)
		none = none && !test_bit(MATTX_T_ENDS, &thread->flags);
	spin_unlock_irq(&gang->lock);
	return none;
}

static int get_tids(struct mattx_gang *gang, struct mattx_ioc_buf *arg)
{
	struct mattx_thread *thread;
	unsigned int n = 0, room = arg->len / sizeof(s32);
	s32 *tids;
	int err = 0;

	if (wait_event_killable_timeout(gang->wait, none_ends(gang),
					AWAIT_TIMEOUT) <= 0)
		return -EBUSY;
	tids = kvmalloc_array(room ?: 1, sizeof(*tids), GFP_KERNEL);
	if (!tids)
		return -ENOMEM;
	spin_lock_irq(&gang->lock);
	list_for_each_entry(thread, &gang->threads, node) {
		if (n < room) {
			tids[n] = thread->tid;
			if (thread->tid == gang->tgid && n)
				swap(tids[0], tids[n]);
		}
		n++;
	}
	spin_unlock_irq(&gang->lock);
	arg->len = n * sizeof(*tids);
	if (n > room)
		err = -ENOSPC;
	else if (copy_to_user(u64_to_user_ptr(arg->ptr), tids, arg->len))
		err = -EFAULT;
	kvfree(tids);
	return err;
}

static int get_ranges(struct mattx_gang *gang, struct mattx_ioc_buf *arg)
{
	u32 len = gang->nr_ranges * sizeof(*gang->ranges);

	if (arg->len < len) {
		arg->len = len;
		return -ENOSPC;
	}
	arg->len = len;
	/* only SET_RANGES changes them, and gang->door is held */
	return copy_to_user(u64_to_user_ptr(arg->ptr), gang->ranges, len) ?
		       -EFAULT :
		       0;
}

static int set_ranges(struct mattx_gang *gang, const struct mattx_ioc_buf *arg)
{
	u32 i, n = arg->len / sizeof(struct mattx_range);
	struct mattx_range *ranges, *old;

	if (arg->len % sizeof(*ranges))
		return -EINVAL;
	ranges = kvmalloc_array(n ?: 1, sizeof(*ranges), GFP_KERNEL);
	if (!ranges)
		return -ENOMEM;
	if (copy_from_user(ranges, u64_to_user_ptr(arg->ptr), arg->len)) {
		kvfree(ranges);
		return -EFAULT;
	}
	for (i = 0; i < n; i++) {
		if (ranges[i].start >= ranges[i].end ||
		    ranges[i].end > TASK_SIZE_MAX ||
		    (i && ranges[i].start < ranges[i - 1].end)) {
			kvfree(ranges);
			return -EINVAL;
		}
	}
	spin_lock_irq(&gang->lock);
	old = gang->ranges;
	gang->ranges = ranges;
	gang->nr_ranges = n;
	spin_unlock_irq(&gang->lock);
	kvfree(old);
	return 0;
}

static int get_process(struct mattx_gang *gang, struct mattx_ioc_buf *arg)
{
	struct mattx_process_state *state;
	int err;

	if (arg->len < sizeof(*state)) {
		arg->len = sizeof(*state);
		return -ENOSPC;
	}
	arg->len = sizeof(*state);
	state = kzalloc(sizeof(*state), GFP_KERNEL);
	if (!state)
		return -ENOMEM;
	err = mattx_process_get(gang, state);
	if (!err && copy_to_user(u64_to_user_ptr(arg->ptr), state, sizeof(*state)))
		err = -EFAULT;
	kfree(state);
	return err;
}

static int set_process(struct mattx_gang *gang, const struct mattx_ioc_buf *arg)
{
	struct mattx_process_state *state;
	int err;

	if (arg->len != sizeof(*state))
		return -EINVAL;
	state = memdup_user(u64_to_user_ptr(arg->ptr), sizeof(*state));
	if (IS_ERR(state))
		return PTR_ERR(state);
	err = mattx_process_set(gang, state);
	kfree(state);
	return err;
}

/* May the state of a gang be changed now? */
static bool is_body(struct mattx_gang *gang)
{
	enum mattx_gang_state state = READ_ONCE(gang->state);

	return state == MATTX_GANG_BODY || state == MATTX_GANG_DEPUTY ||
	       state == MATTX_GANG_FROZEN;
}

static int on_thread(struct mattx_gang *gang, unsigned int cmd,
		     struct mattx_ioc_buf *arg)
{
	struct mattx_thread *thread = mattx_gang_thread(gang, arg->tid);
	void __user *buf = u64_to_user_ptr(arg->ptr);
	int err;

	if (!thread)
		return -ESRCH;
	if (cmd == MATTX_IOC_GET_THREAD)
		err = mattx_thread_get(thread, buf, &arg->len);
	else
		err = is_body(gang) ? mattx_thread_set(thread, buf, arg->len) :
				      -EBUSY;
	mattx_thread_put(thread);
	return err;
}

static long ioc_buf(struct mattx_gang *gang, unsigned int cmd, void __user *user)
{
	struct mattx_ioc_buf arg;
	void __user *buf;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	buf = u64_to_user_ptr(arg.ptr);
	switch (cmd) {
	case MATTX_IOC_THREADS:
		err = get_tids(gang, &arg);
		break;
	case MATTX_IOC_GET_THREAD:
	case MATTX_IOC_SET_THREAD:
		err = on_thread(gang, cmd, &arg);
		break;
	case MATTX_IOC_GET_PROCESS:
		err = get_process(gang, &arg);
		break;
	case MATTX_IOC_SET_PROCESS:
		err = is_body(gang) ? set_process(gang, &arg) : -EBUSY;
		break;
	case MATTX_IOC_GET_SIGNALS:
		err = mattx_signals_get(gang, arg.tid, buf, &arg.len);
		break;
	case MATTX_IOC_SET_SIGNALS:
		err = is_body(gang) ?
			      mattx_signals_set(gang, arg.tid, buf, arg.len) :
			      -EBUSY;
		break;
	case MATTX_IOC_GET_RANGES:
		err = get_ranges(gang, &arg);
		break;
	default:
		err = set_ranges(gang, &arg);
	}
	if ((!err || err == -ENOSPC) && copy_to_user(user, &arg, sizeof(arg)))
		err = -EFAULT;
	return err;
}

/* Without gang->door: it may last, and several threads may be driven at once. */
static long ioc_call(struct mattx_gang *gang, void __user *user)
{
	struct mattx_ioc_call arg;
	struct mattx_thread *thread;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (!is_body(gang))
		return -EBUSY;
	thread = mattx_gang_thread(gang, arg.tid);
	if (!thread)
		return -ESRCH;
	arg.ret = mattx_body_call(thread, arg.nr, arg.args);
	mattx_thread_put(thread);
	return copy_to_user(user, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long ioc_calls(struct mattx_gang *gang, void __user *user)
{
	struct mattx_ioc_buf arg;
	struct mattx_ioc_call *calls;
	struct mattx_thread *thread;
	u32 n;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	n = arg.len / sizeof(*calls);
	if (!n || n > MAX_CALLS || arg.len % sizeof(*calls))
		return -EINVAL;
	if (!is_body(gang))
		return -EBUSY;
	thread = mattx_gang_thread(gang, arg.tid);
	if (!thread)
		return -ESRCH;
	calls = vmemdup_user(u64_to_user_ptr(arg.ptr), arg.len);
	err = PTR_ERR_OR_ZERO(calls);
	if (!err)
		err = mattx_body_calls(thread, calls, n,
				       u64_to_user_ptr(arg.ptr), &arg.len);
	mattx_thread_put(thread);
	if (!err && copy_to_user(user, &arg, sizeof(arg)))
		err = -EFAULT;
	return err;
}

static long ioc_stub(struct mattx_gang *gang, void __user *user)
{
	struct mattx_ioc_body arg;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	return is_body(gang) ? mattx_body_stub(gang, arg.stub, arg.stub_len) :
			       -EBUSY;
}

static long ioc_commit(struct mattx_gang *gang, unsigned int cmd,
		       void __user *user)
{
	struct mattx_ioc_commit arg;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.pad)
		return -EINVAL;
	if (cmd == MATTX_IOC_ARM)
		return mattx_gang_arm(gang, &arg);
	err = mattx_gang_commit(gang, &arg);
	arg.result = -err;
	if (copy_to_user(user, &arg, sizeof(arg)) && !err)
		err = -EFAULT;
	return err;
}

/* Return: 0, -ENOTUNIQ: says which mapping, or another errno. */
static long ioc_shared(struct mattx_gang *gang, unsigned int cmd,
		       void __user *user)
{
	struct mattx_ioc_shared arg;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.pad)
		return -EINVAL;
	memset(arg.cause, 0, sizeof(arg.cause));
	err = cmd == MATTX_IOC_LOOK ? mattx_guard_look(&arg) :
				      mattx_guard_take(gang, &arg);
	if (copy_to_user(user, &arg, sizeof(arg)) && !err)
		err = -EFAULT;
	return err;
}

static long ioc_data(struct mattx_gang *gang, void __user *user)
{
	struct mattx_ioc_data arg;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	err = mattx_guard_data(gang, &arg);
	if (!err && copy_to_user(user, &arg, sizeof(arg)))
		err = -EFAULT;
	return err;
}

static long ioc_version(void __user *user)
{
	struct mattx_ioc_version arg;
	u32 theirs;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.pad)
		return -EINVAL;
	theirs = arg.abi;
	arg.abi = MATTX_ABI;
	if (copy_to_user(user, &arg, sizeof(arg)))
		return -EFAULT;
	return theirs == MATTX_ABI ? 0 : -EPROTO;
}

static long ioc_memory(void __user *user)
{
	struct mattx_ioc_memory arg;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.pad || arg.write > 1 || !arg.len)
		return -EINVAL;
	err = mattx_memory_move(&arg);
	if (!err && copy_to_user(user, &arg, sizeof(arg)))
		err = -EFAULT;
	return err;
}

static long with_door(struct mattx_gang *gang, unsigned int cmd, void __user *user)
{
	long ret;

	if (mutex_lock_killable(&gang->door))
		return -EINTR;
	switch (cmd) {
	case MATTX_IOC_THAW:
		ret = mattx_gang_thaw(gang);
		break;
	case MATTX_IOC_STUB:
		ret = ioc_stub(gang, user);
		break;
	case MATTX_IOC_ARM:
	case MATTX_IOC_COMMIT:
		ret = ioc_commit(gang, cmd, user);
		break;
	case MATTX_IOC_KILL:
		mattx_gang_kill(gang);
		ret = 0;
		break;
	case MATTX_IOC_GUARD:
		ret = ioc_shared(gang, cmd, user);
		break;
	case MATTX_IOC_DATA:
		ret = ioc_data(gang, user);
		break;
	default:
		ret = ioc_buf(gang, cmd, user);
	}
	mutex_unlock(&gang->door);
	return ret;
}

static long chardev_ioctl(struct file *file, unsigned int cmd,
			  unsigned long user_arg)
{
	struct handle *handle = file->private_data;
	void __user *user = (void __user *)user_arg;
	struct mattx_gang *gang;

	switch (cmd) {
	case MATTX_IOC_VERSION:
		return ioc_version(user);
	case MATTX_IOC_MEMORY:
		return ioc_memory(user);
	case MATTX_IOC_FREEZE:
		return ioc_freeze(handle, user);
	case MATTX_IOC_OPEN:
		return ioc_open(handle, user);
	case MATTX_IOC_BODY:
		return ioc_body(handle, user);
	case MATTX_IOC_LOOK:
		return ioc_shared(NULL, cmd, user);
	}
	gang = READ_ONCE(handle->gang); /* set once, held by the handle */
	if (!gang)
		return -ENOENT;
	switch (cmd) {
	case MATTX_IOC_INFO:
		return ioc_info(gang, user);
	case MATTX_IOC_CALL:
		return ioc_call(gang, user);
	case MATTX_IOC_CALLS:
		return ioc_calls(gang, user);
	case MATTX_IOC_WARDEN:
		return mattx_warden(gang);
	case MATTX_IOC_THAW:
	case MATTX_IOC_THREADS:
	case MATTX_IOC_GET_THREAD:
	case MATTX_IOC_SET_THREAD:
	case MATTX_IOC_GET_PROCESS:
	case MATTX_IOC_SET_PROCESS:
	case MATTX_IOC_GET_SIGNALS:
	case MATTX_IOC_SET_SIGNALS:
	case MATTX_IOC_GET_RANGES:
	case MATTX_IOC_SET_RANGES:
	case MATTX_IOC_STUB:
	case MATTX_IOC_ARM:
	case MATTX_IOC_COMMIT:
	case MATTX_IOC_KILL:
	case MATTX_IOC_GUARD:
	case MATTX_IOC_DATA:
		return with_door(gang, cmd, user);
	}
	return -ENOTTY;
}

static const struct file_operations chardev_fops = {
	.owner = THIS_MODULE,
	.open = chardev_open,
	.flush = chardev_flush,
	.release = chardev_release,
	.unlocked_ioctl = chardev_ioctl,
};

static struct miscdevice chardev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "mattx",
	.mode = 0600,
	.fops = &chardev_fops,
};

int mattx_chardev_init(void)
{
	return misc_register(&chardev);
}

void mattx_chardev_exit(void)
{
	misc_deregister(&chardev);
}
