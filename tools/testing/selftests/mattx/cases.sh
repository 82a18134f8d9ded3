# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# How a case of tools/testing/workloads/cases is tried; each makes one line of
# TAP with its number and its name.

. "$(dirname "$0")/lib.sh"

# elsewhere PID - to the other node. A process that is at home because of a call
# that it made is moved out again.
elsewhere()
{
	gangs 1 out || return
	if [[ $'\n'$out == *$'\n'"$1 "* ]]; then
		home "$1"
	else
		migrate "$1" node2
	fi
}

# move_on NUMBER PID MOVES - through all its moves; what failed is in $out
move_on()
{
	local n

	for ((n = 1; n <= $3; n++)); do
		on 1 wait_until 300 "[ -e $T/$1/status ] ||
			[ \$(progress $1) -ge $n ]" ||
			{ out="does not get to move $n"; return 1; }
		on 1 "[ ! -e $T/$1/status ]" ||
			{ out="ended before move $n"; return 1; }
		elsewhere "$2" || { out="move $n: $out"; return 1; }
		on 1 "echo $n >$T/$1/go"
	done
}

# told NUMBER - its end and what it has printed
told()
{
	on 1 "status $1 300 || echo 'does not end'; cat $T/$1/stdout $T/$1/stderr"
}

# try_case [-m MOVES] [-u UID] NUMBER NAME - the state is kept in each move
try_case()
{
	local moves=6 text
	local -a user=()

	while [[ $1 == -* ]]; do
		[ "$1" != -m ] || moves=$2
		[ "$1" != -u ] || user=(-u "$2")
		shift 2
	done
	text="$1 $2: kept over $moves moves"
	on 1 start "${user[@]}" "$1" cases -n "$moves" "$1" "$T/$1/go" ||
		{ not_ok "$text" "$out"; return; }
	pid=${out%%$'\n'*}
	if ! move_on "$1" "$pid" "$moves"; then
		local why=$out
		on 1 "kill -KILL $pid"
		told "$1"
		not_ok "$text" "$why" "$out"
		return
	fi
	told "$1"
	expect "$text" "$out" "exit 0
ready
case: all as it should be"
}

# try_refused NUMBER NAME REGEX - such a state cannot move: that is said by name,
# and nothing happens to it
try_refused()
{
	local text="$1 $2: refused by name and kept"

	on 1 start "$1" cases -n 2 "$1" "$T/$1/go" ||
		{ not_ok "$text" "$out"; return; }
	pid=${out%%$'\n'*}
	for n in 1 2; do
		on 1 reach "$1" "$n"
		migrate "$pid" node2
		[[ "$? $out" =~ ^1\ mattxctl:\ PID\ $pid:\ .*$3 ]] ||
			not_ok "$1 $2: is refused" "$out" "want: $3"
		on 1 "echo $n >$T/$1/go"
	done
	told "$1"
	expect "$text" "$out" "exit 0
ready
case: all as it should be"
}
