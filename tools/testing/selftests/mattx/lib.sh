# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests share. A test runs on the build machine; on() makes the nodes
# of the cluster MATTX_CLUSTER do things, in one long-lived shell on each, that
# knows the functions of node.sh. Nothing is timed: a test waits for what must
# happen, with limits far beyond it.
#
#	on NODE COMMAND		$out is what it printed; returns its status
#	migrate PID NODE	home PID	both by node 1's mattxctl
#	ok TEXT	 not_ok TEXT  check TEXT COMMAND...  expect TEXT GOT WANT
#	finish_test

set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../../../.." && pwd)
cluster=$top/scripts/cluster
[ -n "${NODE1:-}" ] ||
	export MATTX_CLUSTER=${MATTX_CLUSTER:?the name of a cluster of scripts/cluster}
nodes=${MATTX_NODES:-2}
work=$(mktemp -d)
# shellcheck disable=SC2034
T=/tmp/mattx-test	# on the nodes
out=

# --- results ---

results=0
bad=0

# comment TEXT - lines that TAP passes over
comment()
{
	local line

	while IFS= read -r line; do
		printf '# %s\n' "$line"
	done <<<"$*" | head -n 40
}

ok()
{
	results=$((results + 1))
	echo "ok $results - $*"
}

# not_ok TEXT [DETAILS]
not_ok()
{
	results=$((results + 1))
	bad=$((bad + 1))
	echo "not ok $results - $1"
	shift
	[ $# = 0 ] || comment "$@"
}

# check TEXT COMMAND... - a command that must work; $out is shown if not
check()
{
	local text=$1

	shift
	if "$@"; then
		ok "$text"
	else
		not_ok "$text" "$out"
	fi
}

# check_not TEXT COMMAND... - one that must fail with exit status 1
check_not()
{
	local text=$1 status

	shift
	"$@"
	status=$?
	if [ $status = 1 ]; then
		ok "$text"
	else
		not_ok "$text" "exit status $status: $out"
	fi
}

# expect TEXT GOT WANT
expect()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got:  $2" "want: $3"
	fi
}

# expect_match TEXT GOT REGEX
expect_match()
{
	if [[ $2 =~ $3 ]]; then
		ok "$1"
	else
		not_ok "$1" "got: $2" "want: $3"
	fi
}

skip_test()
{
	echo "1..0 # SKIP $*"
	exit 0
}

finish_test()
{
	echo "1..$results"
	[ $bad = 0 ]
	exit
}

# --- the nodes' shells ---

declare -A shell_in shell_out shell_pid

# run_on NODE COMMAND - in a shell of its own there
run_on()
{
	local host=NODE$1

	if [ -n "${!host:-}" ]; then
		ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new \
			-l root "${!host}" "$2"
	else
		"$cluster" run "$1" "$2"
	fi
}

open_shell()
{
	local n=$1 in=$work/in$1 answer=$work/out$1 to from

	close_shell "$n"
	mkfifo "$in" "$answer"
	run_on "$n" 'exec bash --norc' <"$in" >"$answer" 2>/dev/null &
	shell_pid[$n]=$!
	exec {to}>"$in" {from}<"$answer"
	shell_in[$n]=$to
	shell_out[$n]=$from
	rm -f "$in" "$answer"
	cat "$here/node.sh" >&"${shell_in[$n]}"
}

close_shell()
{
	local n=$1 to=${shell_in[$1]:-} from=${shell_out[$1]:-}

	[ -n "$to" ] || return 0
	# it gets no end of file: programs started since have the pipe too
	echo exit >&"$to"
	exec {to}>&- {from}<&-
	wait "${shell_pid[$n]}" 2>/dev/null
	unset "shell_in[$n]" "shell_out[$n]" "shell_pid[$n]"
}

# ask NODE COMMAND - without waiting for the end, which is answer()'s work. One
# word is a whole command line; of several each is a word as it stands.
ask()
{
	local n=$1 line

	shift
	line=$1
	[ $# = 1 ] || printf -v line '%q ' "$@"
	printf 'execute %q\n' "$line" >&"${shell_in[$n]}"
}

# answer NODE [SECONDS] - of the last ask()
answer()
{
	local n=$1 limit=${2:-600} line text=
	local end=$((SECONDS + limit))

	while [ $SECONDS -le $end ]; do
		if ! IFS= read -r -t "$limit" line <&"${shell_out[$n]}"; then
			out="node $n does not answer; it said: $text"
			return 125
		fi
		if [[ $line == '@@ '* ]]; then
			text=${text%$'\n'}
			out=${text%$'\n'}
			return "${line#@@ }"
		fi
		text+=$line$'\n'
	done
	out="node $n: still busy after $limit s: $text"
	return 124
}

on()
{
	local n=$1

	shift
	ask "$n" "$@" && answer "$n"
}

# --- moves ---

migrate()
{
	on 1 mattxctl migrate "$1" "$2"
}

home()
{
	on 1 mattxctl home "$1"
}

# start NAME PROGRAM WORDS... - on node 1; $pid is its PID
start()
{
	on 1 start "$@"
	local status=$?
	# shellcheck disable=SC2034
	pid=${out%%$'\n'*}
	[ $status = 0 ] || not_ok "start of $1" "$out"
	return $status
}

# gangs NODE out|in - "PID NODE STATE" of each that is out or in there; of those
# that are in, the PID is the one at home
gangs()
{
	on "$1" mattxctl ps --json || return
	out=$(jq -r --arg way "$2" \
		'.[$way][] | "\(.home_pid // .pid) \(.node) \(.state)"' <<<"$out")
}

# is_out PID NODE - both sides say so
is_out()
{
	gangs 1 out && [[ $'\n'$out$'\n' == *$'\n'"$1 node$2 deputy"$'\n'* ]] &&
		gangs "$2" in && [[ $'\n'$out$'\n' == *$'\n'"$1 node1 guest"$'\n'* ]]
}

# guest_pid NODE PID - the PID there of a process of node 1
guest_pid()
{
	on "$1" mattxctl ps --json || return
	out=$(jq -r --argjson pid "$2" \
		'.in[] | select(.home_pid == $pid) | .pid' <<<"$out")
	[ -n "$out" ]
}

# nothing_out - no node has anything out or in, or soon has not
nothing_out()
{
	local n way tries

	for ((tries = 0; tries < 100; tries++)); do
		for ((n = 1; n <= nodes; n++)); do
			for way in out in; do
				gangs "$n" "$way" || return
				[ -z "$out" ] || { sleep 0.3; continue 3; }
			done
		done
		return 0
	done
	return 1
}

sees_all()
{
	on "$1" mattxctl nodes --json &&
		jq -e --argjson n "$nodes" \
			'[.nodes[] | select(.state == "up" or .state == "local")]
			| length == $n' <<<"$out" >/dev/null 2>&1
}

# nodes_up - every node sees every other, or soon does
nodes_up()
{
	local n tries

	for ((tries = 0; tries < 200; tries++)); do
		for ((n = 1; n <= nodes; n++)); do
			sees_all "$n" || { sleep 0.3; continue 2; }
		done
		return 0
	done
	return 1
}

# processes NODE NAME - PIDs of the processes of that name
processes()
{
	on "$1" "pgrep -d ' ' -x '$2' || true"
}

# round_trip NAME PID - there, some rounds, home, some rounds; what failed is in
# $out
round_trip()
{
	migrate "$2" node2 || return
	on 1 advance "$1" || { out="$1 does not go on on node 2: $out"; return 1; }
	home "$2" || return
	on 1 advance "$1" || { out="$1 does not go on at home: $out"; return 1; }
}

# good_end NAME PROGRAM - it ends with status 0 and says that all is well
good_end()
{
	on 1 finish "$1"
	expect "$1: ends well" "$out" "exit 0
$3ready
$2: all as it should be"
}

clean_up()
{
	local n

	for n in "${!shell_in[@]}"; do
		on "$n" clean_up
		close_shell "$n"
	done
	rm -rf "$work"
}

for ((n = 1; n <= nodes; n++)); do
	open_shell "$n"
done
trap clean_up EXIT
trap 'exit 143' INT TERM HUP
