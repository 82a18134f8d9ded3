#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# mattxctl: JSON that can be read, exit statuses, whose processes one may move.
# timeout: 300

. "$(dirname "$0")/lib.sh"

# json TEXT FILTER COMMAND - the output is JSON, for which FILTER is true
json()
{
	on 1 "$3"
	if jq -e "$2" <<<"$out" >/dev/null 2>&1; then
		ok "$1"
	else
		not_ok "$1" "$3: $out"
	fi
}

# usage COMMAND - is wrong usage
usage()
{
	on 1 "$1 2>&1 >/dev/null"
	expect "wrong usage: $1" "$?" 2
	[ -n "$out" ] || not_ok "$1 says nothing" ""
}

start odd odd nothing || finish_test
check "goes out" migrate "$pid" node2
json "nodes" '.nodes | length == 2 and
	([.[].state] | sort == ["local", "up"]) and
	all(has("name") and has("address") and has("load"))' 'mattxctl nodes --json'
json "ps" ".out | length == 1 and .[0].pid == $pid and .[0].node == \"node2\" and
	.[0].comm == \"odd\" and .[0].threads == 1" 'mattxctl ps --json'
json "ps with threads" ".out[0].thread[0].tid == $pid" 'mattxctl ps --threads --json'
json "stats" '.stats | length > 5 and all(type == "number")' 'mattxctl stats --json'
json "home" ".pid == $pid and .node == \"node1\"" "mattxctl --json home $pid"
json "check" ".obstacles == 0" "mattxctl check $pid --json"
json "migrate" ".pid == $pid and .node == \"node2\"" "mattxctl migrate $pid node2 --json"
json "migrate PID home" ".pid == $pid" "mattxctl migrate $pid home --json"
json "a failure" '.error.cause | length > 0' "mattxctl migrate $pid node9 --json 2>/dev/null"
json "a check that finds something" '.obstacles == 1 and (.obstacle | length == 1)' \
	"mattxctl check 1 --json 2>/dev/null"
on 1 mattxctl ps
expect_match "ps has a head line" "$out" '^WAY +PID +NODE'

usage mattxctl
usage 'mattxctl fly'
usage 'mattxctl migrate'
usage "mattxctl migrate $pid"
usage "mattxctl migrate twelve node2"
usage "mattxctl migrate -- -1 node2"
usage "mattxctl home"
usage "mattxctl expel"
usage "mattxctl expel $pid --all"
usage "mattxctl nodes node2"
usage "mattxctl ps --fly"
on 1 'mattxctl nodes >/dev/full'
expect "what cannot be printed is a failure" $? 1

# --- whose process it is ---

as()
{
	local user=$1

	shift
	on 1 "setpriv --reuid $user --clear-groups $* 2>&1"
}

on 1 start -u 1234 mine odd nothing
mine=${out%%$'\n'*}
as 1234 mattxctl ps
expect "anybody may look" $? 0
as 1234 mattxctl migrate "$mine" node2
expect "a user may move an own process" "$? $out" "0 "
as 1235 mattxctl home "$mine"
expect_match "another user may not" "$? $out" '^1 .*another user'
as 1234 mattxctl migrate "$pid" node2
expect_match "nor root's process" "$? $out" '^1 .*another user'
as 1234 mattxctl fault 120
expect "nor ask for faults" $? 1
as 1234 mattxctl home "$mine"
expect "the owner brings it home" "$? $out" "0 "
as 1234 mattxctl migrate "$mine" node2
on 2 "setpriv --reuid 1235 --clear-groups mattxctl expel --all"
check "nothing of others was expelled" is_out "$mine" 2
on 1 mattxctl migrate "$pid" node2
on 2 mattxctl expel --all --json
expect "root expels all" "$(jq .expelled <<<"$out")" 2
check "nothing is out or in" nothing_out
good_end mine odd ""
good_end odd odd ""
finish_test
