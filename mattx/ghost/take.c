// SPDX-License-Identifier: GPL-2.0
/*
 * Home's side of epoll sets that a guest's host has taken over.
 *
 * The set stays, with all its registrations, and every epoll_ctl() is made on it first:
 * errors are the kernel's, and nothing has to be built again when the host gives it back.
 * While the host has it nobody waits for it here; it gathers what became ready.
 *
 * It is taken only when nobody else can wait for it: the deputy's table has the one
 * reference to it, no thread is in a call with it, and it is in no other set. What it has
 * registered is told by /proc's fdinfo of it; that a number in there is still the file that
 * was registered, by EPOLL_CTL_ADD, which fails with EEXIST then.
 */
#include <linux/bsearch.h>
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include <asm/unistd.h>
#include <uapi/linux/eventpoll.h>

#include "compat.h"
#include "gang/gang.h"
#include "main.h"
#include "ghost/count.h"
#include "ghost/watch.h"
#include "ghost/watches.h"
#include "wormhole/hooks.h"
#include "wormhole/link.h"
#include "wormhole/packet.h"

#define LINE	  128 /* bytes of a registration in fdinfo, as a first guess */
#define INFO_MAX  (256u << 20) /* bytes of it all */
#define ITEMS_MAX (MATTX_FRAME_MAX / 2 / sizeof(struct mattx_wire_item))

/* The registrations of a set. */
struct items {
	struct mattx_wire_item *item; /* kvmalloc'ed */
	u32 n;
};

/* ---------------------------------------------------------------- the calls */

/*
 * current's own epoll_ctl(), with no other rights than the deputy's thread has. The
 * event is in the thread's scratch memory.
 */
static long control(struct mattx_thread *thread, u32 set, int op, u32 fd,
		    u32 events, u64 data)
{
	struct epoll_event event = { .events = (__force __poll_t)events,
				     .data = data };
	unsigned long at = mattx_body_scratch(thread, sizeof(event));
	struct pt_regs regs = {
		.orig_ax = __NR_epoll_ctl,
		.di = set,
		.si = op,
		.dx = fd,
		.r10 = at,
	};

	if (!at || copy_to_user((void __user *)at, &event, sizeof(event)))
		return -ENOMEM;
	return mattx_native(__NR_epoll_ctl, &regs);
}

/* Is @fd what is registered by this number? Leaves the set as it was. */
static bool is_registered(struct mattx_thread *thread, u32 set, u32 fd)
{
	long ret = control(thread, set, EPOLL_CTL_ADD, fd, 0, 0);

	if (!ret)
		control(thread, set, EPOLL_CTL_DEL, fd, 0, 0);
	return ret == -EEXIST;
}

/* Registers anew, so that it is told if it is ready. EXCLUSIVE cannot be modified. */
static void rearm(struct mattx_thread *thread, u32 set,
		  const struct mattx_wire_item *item)
{
	u32 fd = le32_to_cpu(item->fd), events = le32_to_cpu(item->events);
	u64 data = le64_to_cpu(item->data);

	if (!(events & (__force u32)EPOLLEXCLUSIVE)) {
		control(thread, set, EPOLL_CTL_MOD, fd, events, data);
		return;
	}
	control(thread, set, EPOLL_CTL_DEL, fd, 0, 0);
	control(thread, set, EPOLL_CTL_ADD, fd, events, data);
}

/* ------------------------------------------------------------ what is pending */

/* The events that a set had to tell, by their data; they are told now. */
struct harvest {
	u64 *data; /* kvmalloc'ed, sorted */
	u32 n;
	bool all; /* it is not known: perhaps everything */
};

static int compare_data(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static int read_events(struct harvest *h, const struct epoll_event __user *from)
{
	struct epoll_event event;
	u32 i;

	h->data = kvmalloc_array(h->n ?: 1, sizeof(*h->data), GFP_KERNEL);
	if (!h->data)
		return -ENOMEM;
	for (i = 0; i < h->n; i++) {
		if (copy_from_user(&event, from + i, sizeof(event)))
			return -EFAULT;
		h->data[i] = event.data;
	}
	sort(h->data, h->n, sizeof(*h->data), compare_data, NULL);
	return 0;
}

/* current's own epoll_wait(), without a wait, for a set of @max registrations. */
static void harvest(struct mattx_thread *thread, u32 set, u32 max,
		    struct harvest *h)
{
	struct pt_regs regs = {
		.orig_ax = __NR_epoll_wait,
		.di = set,
		.dx = max,
	};
	unsigned long at;
	long ret = -ENOMEM;

	*h = (struct harvest){};
	if (!max)
		return;
	at = mattx_body_scratch(thread, max * sizeof(struct epoll_event));
	regs.si = at;
	if (at)
		ret = mattx_native(__NR_epoll_wait, &regs);
	h->n = max_t(long, ret, 0);
	h->all = ret < 0 || read_events(h, (const struct epoll_event __user *)at);
}

static bool was_told(const struct harvest *h, const struct mattx_wire_item *item)
{
	u64 data = le64_to_cpu(item->data);

	return h->all ||
	       bsearch(&data, h->data, h->n, sizeof(data), compare_data);
}

/* ---------------------------------------------------------- what is in a set */

/* The text of the set's fdinfo. Return: kvmalloc'ed, or an ERR_PTR. */
static char *read_info(struct file *set)
{
	struct seq_file m;
	size_t size;
	char *buf;

	for (size = 32 * LINE; size <= INFO_MAX; size *= 4) {
		buf = kvmalloc(size, GFP_KERNEL);
		if (!buf)
			return ERR_PTR(-ENOMEM);
		m = (struct seq_file){ .buf = buf, .size = size, .file = set };
		set->f_op->show_fdinfo(&m, set);
		if (!seq_has_overflowed(&m)) {
			buf[m.count] = 0;
			return buf;
		}
		kvfree(buf);
	}
	return ERR_PTR(-E2BIG);
}

static u32 count_lines(const char *text)
{
	u32 n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

static int parse_line(const char *line, struct mattx_wire_item *item)
{
	unsigned long long data;
	unsigned int events;
	int fd;

	if (sscanf(line, "tfd: %d events: %x data: %llx", &fd, &events, &data) !=
		    3 ||
	    fd < 0)
		return -EINVAL;
	/* home's own business: it keeps the node awake */
	if (events & (__force u32)EPOLLWAKEUP)
		return -EOPNOTSUPP;
	*item = (struct mattx_wire_item){
		.fd = cpu_to_le32(fd),
		.events = cpu_to_le32(events),
		.data = cpu_to_le64(data),
	};
	return 0;
}

static int read_items(struct file *set, struct items *items)
{
	char *text = read_info(set), *rest = text, *line;
	int err = 0;

	if (IS_ERR(text))
		return PTR_ERR(text);
	items->item = kvcalloc(count_lines(text) ?: 1, sizeof(*items->item),
			       GFP_KERNEL);
	if (!items->item)
		err = -ENOMEM;
	while (!err && (line = strsep(&rest, "\n")) && *line)
		err = parse_line(line, &items->item[items->n++]);
	kvfree(text);
	return err;
}

static int check_items(struct mattx_thread *thread, u32 set,
		       const struct items *items)
{
	u32 i;

	for (i = 0; i < items->n; i++)
		if (!is_registered(thread, set, le32_to_cpu(items->item[i].fd)))
			return -ESTALE;
	return 0;
}

/* -------------------------------------------------------------------- take */

static int watch_items(struct mattx_watches *all, struct items *items,
		       struct list_head *going)
{
	struct mattx_watch *watch;
	u32 i;

	for (i = 0; i < items->n; i++) {
		watch = mattx_watch_for(all, le32_to_cpu(items->item[i].fd),
					NULL, going);
		if (!watch)
			break;
		WRITE_ONCE(watch->muted, false);
		items->item[i].watch = cpu_to_le32(watch->id);
	}
	if (i == items->n)
		return 0;
	/* what was added for nothing does not stay */
	while (i--) {
		watch = mattx_watch_at(all, le32_to_cpu(items->item[i].fd));
		if (watch && !watch->grants)
			mattx_watch_drop(all, watch, going);
	}
	return -EOPNOTSUPP;
}

/*
 * What the set had to tell is the host's to tell now. The files are watched already: of
 * what comes after this the host hears. One-shots were fired by that, and are armed again.
 */
static void hand_over(struct mattx_thread *thread, u32 set, struct items *items)
{
	struct mattx_wire_item *item = items->item;
	struct harvest h;
	u32 events;

	harvest(thread, set, items->n, &h);
	for (; item < items->item + items->n; item++) {
		events = le32_to_cpu(item->events);
		if (!was_told(&h, item) || !(events & ~MATTX_EPOLL_PRIVATE))
			continue;
		item->state = cpu_to_le32(MATTX_ITEM_PENDING);
		if (events & (__force u32)EPOLLONESHOT)
			rearm(thread, set, item);
	}
	kvfree(h.data);
}

/* Looks at all, and tells the host. From here on the set is the host's. */
static void send_items(struct mattx_watches *all, struct items *items,
		       const struct mattx_watch *set)
{
	struct mattx_gang *gang = all->gang;
	struct mattx_frame_items head = {
		.fd = cpu_to_le32(set->fd),
		.watch = cpu_to_le32(set->id),
		.n = cpu_to_le32(items->n),
	};
	struct mattx_watch *watch;
	u32 i;

	for (i = 0; i < items->n; i++) {
		watch = mattx_watch_at(all, le32_to_cpu(items->item[i].fd));
		watch->grants++;
		items->item[i].mask = cpu_to_le32(mattx_watch_look(watch));
	}
	mattx_link_send(gang->peer, MATTX_F_ITEMS, gang->id, &head, sizeof(head),
			items->item, items->n * sizeof(*items->item),
			GFP_KERNEL | __GFP_NOFAIL);
}

/* Is this thread the only one that can do anything with the set? And no set above it? */
static bool is_alone(struct file *set, bool watched)
{
	/* the table's reference, ours, and perhaps the watch's */
	return file_count(set) == 2 + watched && !READ_ONCE(set->f_ep);
}

static int take_locked(struct mattx_watches *all, struct mattx_thread *thread,
		       u32 fd, struct file *file, struct items *items,
		       struct list_head *going)
{
	struct mattx_watch *set = mattx_watch_at(all, fd);
	int err;

	/* while a child gets a copy of the table it will not be */
	if (atomic_read(&thread->gang->forks) ||
	    !is_alone(file, set && set->file == file))
		return -EBUSY;
	err = watch_items(all, items, going);
	if (err)
		return err;
	set = mattx_watch_for(all, fd, file, going);
	if (!set)
		return -ESTALE;
	set->left = false;
	hand_over(thread, fd, items);
	send_items(all, items, set);
	return 1;
}

static int take_set(struct mattx_thread *thread, u32 fd, struct file *file)
{
	struct mattx_watches *all = mattx_watches_of(thread->gang);
	struct items items = {};
	LIST_HEAD(going);
	int ret;

	if (!all)
		return -ENOMEM;
	if (!is_alone(file, false) && !is_alone(file, true))
		return -EBUSY;
	ret = read_items(file, &items);
	if (!ret && items.n > ITEMS_MAX)
		ret = -E2BIG;
	if (!ret)
		ret = check_items(thread, fd, &items);
	if (!ret) {
		mutex_lock(&all->lock);
		ret = take_locked(all, thread, fd, file, &items, &going);
		mutex_unlock(&all->lock);
		mattx_watch_put_all(&going);
	}
	kvfree(items.item);
	return ret;
}

static int take(struct mattx_thread *thread, u32 fd)
{
	struct file *file = fget(fd);
	int ret = -EBADF;

	if (!file)
		return ret;
	ret = mattx_watch_is_set(file) ? take_set(thread, fd, file) : -EINVAL;
	mattx_fput_now(file);
	mattx_debug("PID %d (%s): epoll set %u: taken over: %d\n",
		    task_tgid_nr(current), current->comm, fd, ret);
	mattx_ghost_count(ret > 0 ? MATTX_COUNT_TAKEN : MATTX_COUNT_REFUSED, 1);
	return ret;
}

/* -------------------------------------------------------------------- give */

/* Is there a wake-up of which the host has not heard? */
static bool is_unheard(struct mattx_watches *all, u32 fd, u32 heard)
{
	struct mattx_watch *watch;
	bool unheard;

	mutex_lock(&all->lock);
	watch = mattx_watch_at(all, fd);
	unheard = watch && mattx_watch_unheard(watch, heard);
	mutex_unlock(&all->lock);
	return unheard;
}

/*
 * Makes the set tell what the host has not told, and nothing else. It has gathered all
 * edges since it was taken: they are thrown away, and those that are missing asked for
 * again. A one-shot that the host has fired is disabled. Only the kernel's own firing
 * disables it wholly: one that is not ready now still tells ERR and HUP.
 */
static void sync(struct mattx_thread *thread, struct mattx_watches *all,
		 const struct mattx_frame_set *frame)
{
	const struct mattx_wire_item *item = (const void *)(frame + 1);
	u32 set = le32_to_cpu(frame->fd), n = le32_to_cpu(frame->n);
	u32 heard = le32_to_cpu(frame->heard), state;
	struct harvest h;
	bool once;

	harvest(thread, set, min_t(u32, le32_to_cpu(frame->items), ITEMS_MAX),
		&h);
	for (; n-- && !fatal_signal_pending(current); item++) {
		cond_resched();
		state = le32_to_cpu(item->state);
		once = le32_to_cpu(item->events) & (__force u32)EPOLLONESHOT;
		if (state == MATTX_ITEM_FIRED ?
			    h.all || !was_told(&h, item) :
			    once || state == MATTX_ITEM_PENDING ||
				    is_unheard(all, le32_to_cpu(item->fd), heard))
			rearm(thread, set, item);
	}
	kvfree(h.data);
}

/* Is that number still the set that the host means? */
static bool is_meant(struct mattx_watches *all, u32 fd, u32 id)
{
	struct mattx_watch *set;
	bool meant;

	mutex_lock(&all->lock);
	set = mattx_watch_at(all, fd);
	meant = set && set->id == id && mattx_watch_holds(set);
	mutex_unlock(&all->lock);
	return meant;
}

static void give(struct mattx_watches *all, u32 fd, u32 id)
{
	struct mattx_watch *set;
	LIST_HEAD(going);

	mutex_lock(&all->lock);
	set = mattx_watch_at(all, fd);
	if (set && set->is_set && set->id == id) {
		mattx_watch_drop(all, set, &going);
		mattx_ghost_count(MATTX_COUNT_GIVEN, 1);
	}
	mutex_unlock(&all->lock);
	mattx_watch_put_all(&going);
}

bool mattx_take_none(struct mattx_gang *gang)
{
	struct mattx_watches *all = smp_load_acquire(&gang->watches);
	bool none = true;

	if (all) {
		mutex_lock(&all->lock);
		none = !all->sets;
		mutex_unlock(&all->lock);
	}
	return none;
}

bool mattx_take_valid(const void *payload, u32 len)
{
	const struct mattx_frame_set *frame = payload;

	return len >= sizeof(*frame) &&
	       len - sizeof(*frame) == (u64)le32_to_cpu(frame->n) *
					       sizeof(struct mattx_wire_item);
}

int mattx_take_serve(struct mattx_thread *thread, const void *payload, u32 len)
{
	struct mattx_watches *all = smp_load_acquire(&thread->gang->watches);
	const struct mattx_frame_set *frame = payload;
	u32 op = le32_to_cpu(frame->op), fd = le32_to_cpu(frame->fd);
	u32 id = le32_to_cpu(frame->watch);

	if (op == MATTX_SET_TAKE)
		return take(thread, fd);
	if (!all || (op != MATTX_SET_SYNC && op != MATTX_SET_GIVE))
		return -EINVAL;
	if (frame->n && is_meant(all, fd, id))
		sync(thread, all, frame);
	if (op == MATTX_SET_GIVE)
		give(all, fd, id);
	return 1;
}
