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
