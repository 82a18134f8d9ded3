# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the EESSI tests share. A program that nobody here wrote runs on node 1 and
# moves out and back twice; then it runs unmoved for as many steps as it has made,
# and must come to the same numbers. So nothing depends on how fast it is. Away and
# when it is home again its progress is measured: CPU time of each thread that
# computes, or the steps that it writes down.
#
# Besides MATTX_CLUSTER, a cluster of scripts/cluster, a test takes any other:
#	NODE1=host NODE2=host [NODE3=host] test-eessi-NAME.sh
# reached by ssh as root, with mattxd running.

if [ -n "${NODE1:-}" ]; then
	MATTX_NODES=$([ -n "${NODE3:-}" ] && echo 3 || echo 2)
fi
eessi=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/testing/selftests/mattx/lib.sh
. "$eessi/../selftests/mattx/lib.sh"

W=/tmp/mattx-eessi	# on the nodes
# what one look at the progress waits for: CPU time of each thread, lines
ms=400
lines=3
# a third node, if there is one
# shellcheck disable=SC2034
far=$((nodes > 2 ? 3 : 2))

for ((n = 1; n <= nodes; n++)); do
	cat "$eessi/node.sh" >&"${shell_in[$n]}"
	on "$n" mattxctl nodes --json || { echo "Bail out! node $n: $out"; exit 1; }
	node_name[n]=$(jq -r '.nodes[] | select(.state == "local") | .name' <<<"$out")
done

end_test()
{
	# the node's shell may be waiting for just these programs
	run_on 1 "for f in $W/*/pid; do [ ! -e \$f ] || pkill -KILL -s \$(cat \$f); done"
	on 1 end_runs
	clean_up
}
trap end_test EXIT
on 1 "rm -rf $W; mkdir -p $W/input"

# need MODULE PROGRAM - or there is nothing to test
need()
{
	on 1 software "$1" "$2" ||
		skip_test "no $2 on node 1: neither EESSI with $1 nor a package of Debian's"
	comment "$out"
}

# input FILE... - of programs/, for the runs
input()
{
	local f

	for f; do
		on 1 "printf '%s\\n' $(printf %q "$(cat "$eessi/programs/$f")") >$W/input/$f"
	done
}

# send FILE PATH - a file or directory of this machine, to node 1
send()
{
	local dir name

	dir=$(dirname "$1")
	name=$(basename "$1")
	tar -C "$dir" -cf - "$name" |
		run_on 1 "mkdir -p $2.d && tar -C $2.d -xf - && mv $2.d/$name $2 &&
			rmdir $2.d" || { not_ok "$name is sent to node 1"; finish_test; }
}

# run_moved COMMAND - SIZE in it becomes a number of steps that is never reached;
# its PID is in $pid
run_moved()
{
	command=$1
	on 1 launch moved "${1//SIZE/100000000}" ||
		{ not_ok "begins" "$out"; finish_test; }
	pid=$out
}

# that_is_enough - it has moved often enough, and ends with its next step
that_is_enough()
{
	on 1 touch $W/moved/enough
	ends_well 0
}

# ends_well STATUS
ends_well()
{
	on 1 ended moved
	expect_match "ends well" "$out" "^exit $1"
}

# run_still STEPS... - the same from beginning to end, unmoved, with so many steps
run_still()
{
	if on 1 still still "${command//SIZE/$*}"; then
		ok "runs unmoved, $* steps in $out s"
	else
		not_ok "runs unmoved, $* steps" "$out"
		finish_test
	fi
}

# steps FILE - how many lines, which are steps, the moved run has made
steps()
{
	on 1 count "$W/moved/$1"
}

# find_workers N - $workers are the N threads that compute
find_workers()
{
	if on 1 workers "$pid" "$1" "$ms"; then
		ok "$1 threads compute"
		# shellcheck disable=SC2034
		workers=$out
	else
		not_ok "$1 threads compute" "$out"
		finish_test
	fi
}

# go_out PID NODE - with what stands in its way, if it does not
go_out()
{
	local why

	migrate "$1" "${node_name[$2]}" && return
	why=$out
	on 1 mattxctl check "$1" "${node_name[$2]}"
	out=$why$'\n'$out
	return 1
}

# stayed PID NODE - it has not gone home by itself meanwhile
stayed()
{
	local there

	guest_pid "$2" "$1" && return
	on "$2" mattxctl ps
	there=$out
	on 1 "mattxctl ps; dmesg | grep 'mattx: PID $1 ' | tail -n 3"
	out="it is no longer there"$'\n'$there$'\n'$out
	return 1
}

# computes TEXT NODE PID TID... - all these threads do
computes()
{
	local text=$1 node=$2 at=$3

	shift 3
	if [ "$node" != 1 ]; then
		stayed "$at" "$node" || { not_ok "$text" "$out"; return 1; }
		at=$out
	fi
	check "$text" on "$node" all_work "$at" "$ms" "$@"
}

# cycle NAME NODE PID FILE TID... - once out and home again. FILE, if it is not
# empty, is where it writes its steps, at home; the TIDs are those that compute.
cycle()
{
	local name=$1 node=$2 p=$3 file=$4

	shift 4
	check "$name goes out to node $node" go_out "$p" "$node"
	progress "$name, away" "$node" "$p" "$file" "$@"
	check "$name has stayed there" stayed "$p" "$node"
	check "$name comes home" home "$p"
	progress "$name, home again" 1 "$p" "$file" "$@"
}

progress()
{
	local name=$1 node=$2 p=$3 file=$4

	shift 4
	[ $# = 0 ] || computes "$name: every thread computes" "$node" "$p" "$@"
	[ -z "$file" ] || check "$name: makes steps" on 1 grows "$file" "$lines"
}

# moves NAME THREADS COMMAND - COMMAND, which prints a line for each step, goes out and back
# twice while THREADS of its threads compute, and prints what it prints unmoved
moves()
{
	local round

	run_moved "$3"
	find_workers "$2"
	for round in 1 2; do
		# shellcheck disable=SC2086
		cycle "$1, cycle $round" "$far" "$pid" $W/moved/stdout $workers
	done
	that_is_enough
	steps stdout
	run_still "$out"
	same_numbers stdout
}

# same_numbers FILE...
same_numbers()
{
	local f

	for f; do
		check "$f: the numbers of the unmoved run" on 1 same "$f"
	done
}

# end of a test
finish_eessi()
{
	check "nothing is out or in" nothing_out
	finish_test
}
