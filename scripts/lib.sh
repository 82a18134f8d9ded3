# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the scripts of the test bed share: the cache, its locks, progress
# lines, and a private apt configuration that knows suites the machine itself
# need not have (bookworm-backports, trixie).

set -euo pipefail

# shellcheck disable=SC2034
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${MATTX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mattx}
mkdir -p "$cache"
prog=${0##*/}

say()
{
	printf '[%s] %s\n' "$prog" "$*" >&2
}

die()
{
	say "$*"
	exit 1
}

# lock NAME - hold NAME until this process ends; says so when it must wait.
# The descriptor stays open on purpose; children started for longer than this
# process must close it (see unlocked()).
lock()
{
	local name=$1

	exec {lock_fd}>"$cache/$name.lock"
	if ! flock -n "$lock_fd"; then
		say "waiting for another build of $name"
		flock "$lock_fd"
	fi
}

unlock()
{
	exec {lock_fd}>&-
}

# mirror - the URI of the Debian archive that this machine itself uses
mirror()
{
	local uri

	uri=$(apt-get indextargets --format "\$(SITE) \$(CODENAME) \$(ORIGIN)" \
		'Created-By: Packages' 2>/dev/null |
		awk '$3 == "Debian" && $1 !~ /security/ { print $1; exit }')
	[ -n "$uri" ] || uri=$(apt_uris | grep -v security | head -n 1)
	[ -n "$uri" ] || die "no Debian archive in the apt sources of this machine"
	echo "${uri%/}"
}

# security_mirror - the same for the security archive, empty if there is none
security_mirror()
{
	apt_uris | grep security | head -n 1 | sed 's,/$,,'
}

# apt_uris - every URI of a Debian archive named in the apt sources
apt_uris()
{
	{
		sed -n 's/^URIs:[[:space:]]*//p' /etc/apt/sources.list.d/*.sources \
			2>/dev/null | tr ' ' '\n'
		sed -n 's/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
			/etc/apt/sources.list /etc/apt/sources.list.d/*.list \
			2>/dev/null
	} | grep -E '/debian(-security)?/?$' || true
}

# suite_apt SUITE COMMAND ARGS... - apt-get or apt-cache as if SUITE were the
# only suite of this machine; "suite_apt SUITE update" refreshes its lists
suite_apt()
{
	local suite=$1 cmd=$2 dir="$cache/apt/$1" tool=apt-get key sec
	shift 2

	if [ ! -e "$dir/sources.list" ]; then
		mkdir -p "$dir/lists/partial" "$dir/archives/partial"
		key=/usr/share/keyrings/debian-archive-keyring.gpg
		{
			echo "deb [signed-by=$key] $(mirror) $suite main"
			sec=$(security_mirror)
			[ -z "$sec" ] || [[ $suite == *-* ]] ||
				echo "deb [signed-by=$key] $sec $suite-security main"
		} >"$dir/sources.list.new"
		mv "$dir/sources.list.new" "$dir/sources.list"
	fi
	case $cmd in
	depends | show | madison | policy) tool=apt-cache ;;
	esac
	"$tool" -o Dir::Etc::SourceList="$dir/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$dir/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o Dir::Cache::archives="$dir/archives" \
		-o APT::Sandbox::User=root \
		-o APT::Get::List-Cleanup=0 \
		-o DPkg::Lock::Timeout=600 \
		-q=1 "$cmd" "$@"
}

# suite_update SUITE - refresh its package lists unless done in this hour
suite_update()
{
	local stamp="$cache/apt/$1/updated"

	[ -z "$(find "$stamp" -mmin -60 2>/dev/null)" ] || return 0
	say "package lists of $1"
	suite_apt "$1" update >&2
	touch "$stamp"
}

# debian_root SUITE ROOT LOG - a minimal Debian in the directory ROOT, for
# in_root; what it says goes to LOG
debian_root()
{
	local suite=$1 root=$2 log=$3

	debootstrap --variant=minbase --include=ca-certificates "$suite" \
		"$root" "$(mirror)" >"$log" 2>&1 || die "debootstrap failed, see $log"
	echo force-unsafe-io >>"$root/etc/dpkg/dpkg.cfg.d/lean"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
}

# root_install ROOT LOG PACKAGES... - from the suites that ROOT knows
root_install()
{
	local root=$1 log=$2
	shift 2

	in_root "$root" apt-get -o DPkg::Lock::Timeout=600 update >>"$log" 2>&1 ||
		die "apt-get update failed, see $log"
	in_root "$root" apt-get -o DPkg::Lock::Timeout=600 install -y \
		--no-install-recommends "$@" >>"$log" 2>&1 ||
		die "apt-get install failed, see $log"
}

# in_root ROOT CMD... - run it there, with this machine's /proc and, if root_dir names a
# directory, with that at the same place; the mounts are this command's own
in_root()
{
	# shellcheck disable=SC2016
	DEBIAN_FRONTEND=noninteractive LC_ALL=C unshare --mount sh -c '
		root=$1 dir=$2 && shift 2
		mount --rbind /proc "$root/proc" || exit
		[ -z "$dir" ] || mount --bind "$dir" "$root$dir" || exit
		exec chroot "$root" "$@"' in_root "$1" "${root_dir:-}" "${@:2}"
}
