# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests with unmodified programs share. Each program runs on node 1, is driven
# there by its own clients, and goes out and home meanwhile. Clients run until they
# are told that it is enough, so nothing depends on how fast anything is.

programs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/testing/selftests/mattx/lib.sh
. "$programs/../selftests/mattx/lib.sh"

# shellcheck disable=SC2034
P=/tmp/mattx-programs	# on node 1
on 1 "rm -rf $P; mkdir -p $P"

# need PROGRAM...
need()
{
	local program

	for program; do
		on 1 command -v "$program" || skip_test "no $program on node 1"
	done
}

# input FILE... - of this directory, into $P
input()
{
	local f

	for f; do
		on 1 "printf '%s\\n' $(printf %q "$(cat "$programs/$f")") >$P/$f"
	done
}

# run NAME COMMAND - in $P; $pid is its PID
run()
{
	on 1 "begin $1 sh -c $(printf %q "cd $P; exec $2")" ||
		{ not_ok "$1 begins" "$out"; finish_test; }
	# shellcheck disable=SC2034
	pid=$out
}

# client NAME COMMAND - one that runs while the program moves
client()
{
	on 1 "begin $1 sh -c $(printf %q "cd $P; exec $2")" ||
		{ not_ok "$1 begins" "$out"; finish_test; }
}

# more FILE N - until the number in it, which a client writes, has grown by N
more()
{
	on 1 "counted() { read -r n 2>/dev/null <$P/$1 || n=0; [ \"\${n:-0}\" -ge \$goal ]; }
		goal=0; counted; goal=\$((\${n:-0} + $2)); wait_until 240 counted"
}

# cycle I PID COMMAND... - out, where COMMAND must work and it must stay, and home
cycle()
{
	local i=$1 p=$2

	shift 2
	check "$i: goes out" migrate "$p" node2
	check "$i: works there" "$@"
	check "$i: has stayed there" is_out "$p" 2
	check "$i: comes home" home "$p"
	check "$i: works at home" "$@"
}

# client_ends NAME OUTPUT - it was told so, and had nothing to complain about
client_ends()
{
	on 1 "status $1 240; cat $T/$1/stdout $T/$1/stderr"
	expect_match "$1: all as it should be" "$out" "^$2\$"
}

# served_end NAME PID SIGNAL STATUS - the program itself ends when it is asked to
served_end()
{
	on 1 "kill -$3 $2; status $1 120"
	expect "$1: ends well" "$out" "$4"
	on 1 rm -rf "$P"
	check "nothing is out or in" nothing_out
}
