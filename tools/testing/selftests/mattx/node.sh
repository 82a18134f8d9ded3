# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What a test's shell on a node knows. lib.sh feeds it to that shell before
# anything else.

PATH=/usr/lib/mattx/testing:$PATH
T=/tmp/mattx-test
mkdir -p "$T"
# to sleep without starting a program
exec 9<> <(:)

pause()
{
	read -rt "$1" -u 9 || return 0
}

# execute COMMAND - and say how it ended
execute()
{
	eval "$1" </dev/null 2>&1
	printf '\n@@ %d\n' "$?"
}

# wait_until SECONDS COMMAND - tries it ten times a second
wait_until()
{
	local end=$((SECONDS + $1))

	shift
	until eval "$*"; do
		[ $SECONDS -le $end ] || return 1
		pause 0.1
	done
	return 0
}

# begin [-u UID] [-c] NAME PROGRAM WORDS... - under the runner; prints its PID
begin()
{
	local -a options

	while [[ $1 == -* ]]; do
		options+=("$1")
		[ "$1" = -c ] || { options+=("$2"); shift; }
		shift
	done
	local name=$1 program=$2
	shift 2
	rm -rf "${T:?}/$name"
	mkdir -m 777 "$T/$name"
	runner "${options[@]}" "$T/$name" "$program" "$@" || return
	wait_until 60 "[ -s $T/$name/pid ]" || return
	cat "$T/$name/pid"
}

# is_ready NAME
is_ready()
{
	local line

	while read -r line; do
		[ "$line" != ready ] || return 0
	done <"$T/$1/stdout"
	[ -e "$T/$1/status" ]
}

# start ... - as begin, for programs with lib.h: with a progress file, and waits
# until it is ready
start()
{
	local -a options

	while [[ $1 == -* ]]; do
		options+=("$1")
		[ "$1" = -c ] || { options+=("$2"); shift; }
		shift
	done
	local name=$1 program=$2
	shift 2
	begin "${options[@]}" "$name" "$program" -p "$T/$name/progress" "$@" ||
		return
	wait_until 120 "is_ready $name"
}

# run_out NAME PROGRAM WORDS... - from beginning to end, without a move
run_out()
{
	local name=$1

	start "$@" >/dev/null && wait_until 300 "[ -e $T/$name/status ]" &&
		cat "$T/$name/status"
}

progress()
{
	local n=0

	read -r n <"$T/$1/progress"
	echo "$n"
}

# advance NAME [ROUNDS [SECONDS]] - until that many more rounds were done
advance()
{
	local name=$1 goal
	goal=$(($(progress "$name") + ${2:-2}))

	# shellcheck disable=SC2016
	wait_until "${3:-120}" \
		'[ "$(progress '"$name"')" -ge '$goal' ] || [ -e $T/'"$name"/status' ]' &&
		[ ! -e "$T/$name/status" ]
}

# reach NAME N [SECONDS] - until its progress is N
reach()
{
	# shellcheck disable=SC2016
	wait_until "${3:-120}" '[ "$(progress '"$1"')" -ge '"$2"' ]'
}

# status NAME [SECONDS] - how it ended, when it has
status()
{
	wait_until "${2:-120}" "[ -e $T/$1/status ]" && cat "$T/$1/status"
}

alive()
{
	[ -d "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null
}

# finish NAME - SIGTERM, its exit status and what it has printed
finish()
{
	kill -TERM "$(cat "$T/$1/pid")" 2>/dev/null
	status "$1"
	cat "$T/$1/stdout" "$T/$1/stderr"
}

# daemon stop|kill|start
daemon()
{
	local n

	case $1 in
	stop | kill)
		[ "$1" = stop ] && pkill -TERM -x mattxd
		[ "$1" = kill ] && pkill -KILL -x mattxd
		wait_until 60 "! pgrep -r D,R,S -x mattxd >/dev/null"
		;;
	start)
		setsid /usr/lib/mattx/start </dev/null >/dev/null 2>&1
		;;
	esac
}

# clean_up - what the test started ends
clean_up()
{
	local d

	for d in "$T"/*/; do
		[ -s "$d/pid" ] && [ ! -e "$d/status" ] &&
			kill -KILL "$(cat "$d/pid")"
	done 2>/dev/null
	for d in "$T"/*/; do
		[ ! -s "$d/pid" ] || wait_until 20 "[ -e $d/status ]"
	done
	rm -rf "${T:?}"
	mkdir -p "$T"
}
