// SPDX-License-Identifier: GPL-2.0
/*
 * Calls whose pointers depend on a value: ioctl(2), fcntl(2), prctl(2), socket
 * options. See struct mattx_call.refine. What is not listed here goes home, so a
 * structure with pointers inside is simply not listed.
 */
#include <linux/fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/hdreg.h>
#include <linux/hpet.h>
#include <linux/if_tun.h>
#include <linux/inotify.h>
#include <linux/kd.h>
#include <linux/kernel.h>
#include <linux/loop.h>
#include <linux/msdos_fs.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/random.h>
#include <linux/rtc.h>
#include <linux/socket.h>
#include <linux/sockios.h>
#include <linux/termios.h>
#include <linux/time.h>
#include <linux/timerfd.h>
#include <linux/vt.h>
#include <linux/watchdog.h>
#include <linux/wireless.h>
#include <net/bluetooth/bluetooth.h>
#include <linux/if.h>
#include <linux/if_pppox.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <linux/tcp.h>

#include "wormhole/special.h"

/* ---------------------------------------------------------------- ioctl */

enum direction { NONE, IN, OUT, INOUT };

struct command {
	u32 cmd;
	u8 direction;
	u16 size;
};

#define FLAT(cmd) \
	{ \
		cmd, \
			(_IOC_DIR(cmd) & _IOC_WRITE ? 1 : 0) | \
				(_IOC_DIR(cmd) & _IOC_READ ? 2 : 0), \
			_IOC_SIZE(cmd) \
	}

#define KTERMIOS 36 /* struct termios of the kernel */
#define KTERMIO	 18 /* struct termio */
#define IFREQ	 40 /* struct ifreq: names, addresses, numbers */
#define RTENTRY	 120

/* clang-format off */
static const struct command commands[] = {
	/* terminals */
	{ TCGETS, OUT, KTERMIOS }, { TCSETS, IN, KTERMIOS },
	{ TCSETSW, IN, KTERMIOS }, { TCSETSF, IN, KTERMIOS },
	{ TCGETA, OUT, KTERMIO }, { TCSETA, IN, KTERMIO },
	{ TCSETAW, IN, KTERMIO }, { TCSETAF, IN, KTERMIO },
	FLAT(TCGETS2), FLAT(TCSETS2), FLAT(TCSETSW2), FLAT(TCSETSF2),
	{ TCSBRK, NONE, 0 }, { TCSBRKP, NONE, 0 }, { TCXONC, NONE, 0 },
	{ TCFLSH, NONE, 0 }, { TIOCEXCL, NONE, 0 }, { TIOCNXCL, NONE, 0 },
	{ TIOCSCTTY, NONE, 0 }, { TIOCNOTTY, NONE, 0 },
	{ TIOCGPGRP, OUT, 4 }, { TIOCSPGRP, IN, 4 }, { TIOCGSID, OUT, 4 },
	{ TIOCOUTQ, OUT, 4 }, { TIOCSTI, IN, 1 },
	{ TIOCGWINSZ, OUT, 8 }, { TIOCSWINSZ, IN, 8 },
	{ TIOCMGET, OUT, 4 }, { TIOCMBIS, IN, 4 }, { TIOCMBIC, IN, 4 }, { TIOCMSET, IN, 4 },
	{ TIOCGSOFTCAR, OUT, 4 }, { TIOCSSOFTCAR, IN, 4 },
	{ TIOCCONS, NONE, 0 }, { TIOCPKT, IN, 4 }, { TIOCSETD, IN, 4 }, { TIOCGETD, OUT, 4 },
	{ TIOCSBRK, NONE, 0 }, { TIOCCBRK, NONE, 0 }, { TIOCVHANGUP, NONE, 0 },
	{ TIOCGPTPEER, NONE, 0 }, { TIOCMIWAIT, NONE, 0 },
	FLAT(TIOCGPTN), FLAT(TIOCSPTLCK), FLAT(TIOCGDEV), FLAT(TIOCSIG), FLAT(TIOCGPKT),
	FLAT(TIOCGPTLCK), FLAT(TIOCGEXCL),
	{ KDGETMODE, OUT, 4 }, { KDSETMODE, NONE, 0 }, { KDGKBMODE, OUT, 4 },
	{ KDSKBMODE, NONE, 0 }, { KDGKBTYPE, OUT, 1 }, { KDGETLED, OUT, 1 },
	{ KDSETLED, NONE, 0 }, { KDGKBLED, OUT, 1 }, { KDSKBLED, NONE, 0 },
	{ VT_GETSTATE, OUT, 6 }, { VT_GETMODE, OUT, 8 }, { VT_OPENQRY, OUT, 4 },
	/* any file; FIONREAD is TIOCINQ too */
	{ FIONREAD, OUT, 4 }, { FIONBIO, IN, 4 }, { FIOASYNC, IN, 4 },
	{ FIONCLEX, NONE, 0 }, { FIOCLEX, NONE, 0 }, { FIOQSIZE, OUT, 8 },
	{ FIBMAP, INOUT, 4 }, { FIGETBSZ, OUT, 4 },
	{ FICLONE, NONE, 0 }, { FICLONERANGE, IN, 32 },
	FLAT(FIFREEZE), FLAT(FITHAW), FLAT(FITRIM),
	{ FS_IOC_GETFLAGS, INOUT, 4 }, { FS_IOC_SETFLAGS, IN, 4 },
	{ FS_IOC_GETVERSION, INOUT, 4 }, { FS_IOC_SETVERSION, IN, 4 },
	FLAT(FS_IOC_FSGETXATTR), FLAT(FS_IOC_FSSETXATTR),
	FLAT(FS_IOC_GETFSLABEL), FLAT(FS_IOC_SETFSLABEL),
	FLAT(FAT_IOCTL_GET_ATTRIBUTES), FLAT(FAT_IOCTL_SET_ATTRIBUTES),
	FLAT(FAT_IOCTL_GET_VOLUME_ID),
	/* block devices */
	{ BLKGETSIZE, OUT, 8 }, { BLKGETSIZE64, OUT, 8 }, { BLKSSZGET, OUT, 4 },
	{ BLKBSZGET, OUT, 4 }, { BLKPBSZGET, OUT, 4 }, { BLKIOMIN, OUT, 4 },
	{ BLKIOOPT, OUT, 4 }, { BLKALIGNOFF, OUT, 4 }, { BLKROGET, OUT, 4 },
	{ BLKROSET, IN, 4 }, { BLKRAGET, OUT, 8 }, { BLKRASET, NONE, 0 },
	{ BLKFRAGET, OUT, 8 }, { BLKSECTGET, OUT, 2 }, { BLKFLSBUF, NONE, 0 },
	{ BLKRRPART, NONE, 0 }, { BLKDISCARD, IN, 16 }, { BLKSECDISCARD, IN, 16 },
	{ BLKZEROOUT, IN, 16 }, { BLKROTATIONAL, OUT, 2 }, { BLKDISCARDZEROES, OUT, 4 },
	{ HDIO_GETGEO, OUT, 16 },
	/* sockets and interfaces */
	{ FIOSETOWN, IN, 4 }, { SIOCSPGRP, IN, 4 }, { FIOGETOWN, OUT, 4 },
	{ SIOCGPGRP, OUT, 4 }, { SIOCATMARK, OUT, 4 }, { SIOCGSTAMP_OLD, OUT, 16 },
	{ SIOCGSTAMPNS_OLD, OUT, 16 }, { SIOCGSTAMP_NEW, OUT, 16 },
	{ SIOCGSTAMPNS_NEW, OUT, 16 }, { SIOCOUTQNSD, OUT, 4 },
	{ SIOCADDRT, NONE, 0xffff },	/* has a pointer: see below */
	{ SIOCGIFNAME, INOUT, IFREQ }, { SIOCGIFFLAGS, INOUT, IFREQ },
	{ SIOCSIFFLAGS, IN, IFREQ }, { SIOCGIFADDR, INOUT, IFREQ },
	{ SIOCSIFADDR, IN, IFREQ }, { SIOCGIFDSTADDR, INOUT, IFREQ },
	{ SIOCSIFDSTADDR, IN, IFREQ }, { SIOCGIFBRDADDR, INOUT, IFREQ },
	{ SIOCSIFBRDADDR, IN, IFREQ }, { SIOCGIFNETMASK, INOUT, IFREQ },
	{ SIOCSIFNETMASK, IN, IFREQ }, { SIOCGIFMETRIC, INOUT, IFREQ },
	{ SIOCSIFMETRIC, IN, IFREQ }, { SIOCGIFMTU, INOUT, IFREQ },
	{ SIOCSIFMTU, IN, IFREQ }, { SIOCSIFNAME, IN, IFREQ },
	{ SIOCGIFHWADDR, INOUT, IFREQ }, { SIOCSIFHWADDR, IN, IFREQ },
	{ SIOCADDMULTI, IN, IFREQ }, { SIOCDELMULTI, IN, IFREQ },
	{ SIOCGIFINDEX, INOUT, IFREQ }, { SIOCGIFTXQLEN, INOUT, IFREQ },
	{ SIOCSIFTXQLEN, IN, IFREQ }, { SIOCGIFMAP, INOUT, IFREQ },
	{ SIOCGMIIPHY, INOUT, IFREQ }, { SIOCGMIIREG, INOUT, IFREQ },
	{ SIOCBRADDBR, IN, 16 }, { SIOCBRDELBR, IN, 16 },
	{ SIOCGARP, INOUT, 68 }, { SIOCSARP, IN, 68 }, { SIOCDARP, IN, 68 },
	FLAT(TUNSETIFF), FLAT(TUNGETIFF), FLAT(TUNGETFEATURES),
	{ TUNSETPERSIST, NONE, 0 }, { TUNSETOWNER, NONE, 0 }, { TUNSETGROUP, NONE, 0 },
	{ TUNSETOFFLOAD, NONE, 0 }, FLAT(TUNGETVNETHDRSZ), FLAT(TUNSETVNETHDRSZ),
	FLAT(TUNGETSNDBUF), FLAT(TUNSETSNDBUF),
	/* other */
	FLAT(RTC_RD_TIME), FLAT(RTC_ALM_READ), FLAT(RTC_WKALM_RD), FLAT(RTC_IRQP_READ),
	FLAT(RTC_EPOCH_READ),
	FLAT(RNDGETENTCNT), FLAT(RNDADDTOENTCNT), FLAT(RNDZAPENTCNT), FLAT(RNDCLEARPOOL),
	FLAT(RNDRESEEDCRNG),
	FLAT(TFD_IOC_SET_TICKS),
	FLAT(WDIOC_GETSUPPORT), FLAT(WDIOC_GETSTATUS), FLAT(WDIOC_GETTIMEOUT),
	FLAT(WDIOC_GETTIMELEFT),
};
/* clang-format on */

bool mattx_refine_ioctl(const u64 *args, struct mattx_arg *arg)
{
	static const u8 shape[] = { MATTX_VALUE, MATTX_IN, MATTX_OUT,
				    MATTX_INOUT };
	const struct command *c;
	u32 cmd = args[1];

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		if (c->cmd != cmd)
			continue;
		if (c->size == 0xffff)
			return false;
		arg[2] = (struct mattx_arg){
			.shape = c->size ? shape[c->direction] : MATTX_VALUE,
			.size = c->size,
		};
		return true;
	}
	return false;
}

/* ---------------------------------------------------------------- fcntl */

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY (F_LINUX_SPECIFIC_BASE + 3)
#endif
#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY (F_LINUX_SPECIFIC_BASE + 4)
#endif

bool mattx_refine_fcntl(const u64 *args, struct mattx_arg *arg)
{
	switch ((u32)args[1]) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_DUPFD_QUERY:
	case F_CREATED_QUERY:
	case F_GETFD:
	case F_SETFD:
	case F_GETFL:
	case F_SETFL:
	case F_SETOWN:
	case F_GETOWN:
	case F_SETSIG:
	case F_GETSIG:
	case F_SETLEASE:
	case F_GETLEASE:
	case F_CANCELLK:
	case F_NOTIFY:
	case F_SETPIPE_SZ:
	case F_GETPIPE_SZ:
	case F_ADD_SEALS:
	case F_GET_SEALS:
		return true;
	case F_GETLK:
	case F_OFD_GETLK:
		arg[2] = (struct mattx_arg){ .shape = MATTX_INOUT, .size = 32 };
		return true;
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		arg[2] = (struct mattx_arg){ .shape = MATTX_IN, .size = 32 };
		return true;
	case F_SETOWN_EX:
	case F_SET_RW_HINT:
	case F_SET_FILE_RW_HINT:
		arg[2] = (struct mattx_arg){ .shape = MATTX_IN, .size = 8 };
		return true;
	case F_GETOWN_EX:
	case F_GETOWNER_UIDS:
	case F_GET_RW_HINT:
	case F_GET_FILE_RW_HINT:
		arg[2] = (struct mattx_arg){ .shape = MATTX_OUT, .size = 8 };
		return true;
	default:
		return false;
	}
}

/* ---------------------------------------------------------------- prctl */

/* Only the options that mattx_do_prctl() has made at home. */
bool mattx_refine_prctl(const u64 *args, struct mattx_arg *arg)
{
	switch ((u32)args[0]) {
	case PR_SET_NAME:
		arg[1].shape = MATTX_STR;
		return true;
	case PR_GET_PDEATHSIG:
	case PR_GET_CHILD_SUBREAPER:
		arg[1] = (struct mattx_arg){ .shape = MATTX_OUT, .size = 4 };
		return true;
	case PR_SET_PDEATHSIG:
	case PR_SET_CHILD_SUBREAPER:
	case PR_SET_DUMPABLE:
	case PR_GET_DUMPABLE:
	case PR_SET_NO_NEW_PRIVS:
	case PR_SET_PTRACER:
	case PR_CAPBSET_READ:
	case PR_GET_SECUREBITS:
	case PR_GET_KEEPCAPS:
		return true;
	default:
		return false;
	}
}

/* ---------------------------------------------------------------- sockets */

#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif

static bool socket_level_option(u32 option)
{
	switch (option) {
	case SO_ATTACH_FILTER: /* a pointer to instructions */
	case SO_ATTACH_REUSEPORT_CBPF:
		return false;
	default:
		return true;
	}
}

bool mattx_refine_sockopt(const u64 *args, struct mattx_arg *arg)
{
	u32 level = args[1], option = args[2];

	switch (level) {
	case SOL_SOCKET:
		return socket_level_option(option);
	case SOL_IP:
		return option < 64; /* from there on: tables of packet filters */
	case SOL_IPV6:
		return option != IP6T_SO_SET_REPLACE &&
		       option != IP6T_SO_SET_ADD_COUNTERS;
	case SOL_TCP:
		return option != TCP_ZEROCOPY_RECEIVE;
	case SOL_UDP:
	case SOL_UDPLITE:
	case SOL_ICMPV6:
	case SOL_RAW:
	case SOL_PACKET:
	case SOL_NETLINK:
	case SOL_TLS:
	case SOL_ALG:
	case SOL_MPTCP:
		return true;
	default:
		return false;
	}
}

/* The pages that are sent must stay as they are: not the scratch's. */
static bool not_zerocopy(u64 flags)
{
	return !((u32)flags & MSG_ZEROCOPY);
}

bool mattx_refine_sendto(const u64 *args, struct mattx_arg *arg)
{
	return not_zerocopy(args[3]);
}

bool mattx_refine_sendmsg(const u64 *args, struct mattx_arg *arg)
{
	return not_zerocopy(args[2]);
}

bool mattx_refine_sendmmsg(const u64 *args, struct mattx_arg *arg)
{
	return not_zerocopy(args[3]);
}

/* ---------------------------------------------------------------- timers */

/* CPU-time clocks run where the process runs. */
bool mattx_refine_timer_create(const u64 *args, struct mattx_arg *arg)
{
	s32 clock = args[0];

	return clock >= 0 && clock != CLOCK_PROCESS_CPUTIME_ID &&
	       clock != CLOCK_THREAD_CPUTIME_ID;
}
