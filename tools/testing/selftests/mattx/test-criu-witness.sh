#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A witness that is none of ours: CRIU takes a picture of a process before it
# leaves and after it has come back; both say the same.
# timeout: 300

. "$(dirname "$0")/lib.sh"

# picture NAME - of $pid, into $work/NAME
picture()
{
	on 1 "mkdir -p $T/$1; criu dump -t $pid -D $T/$1 -o dump.log --leave-running --file-locks --shell-job \
		>/dev/null || tail -n 20 $T/$1/dump.log"
	[ -z "$out" ] || { not_ok "CRIU takes a picture $1" "$out"; return 1; }
	"$cluster" get 1 "$T/$1" "$work/$1" &&
		"$here/criu-images.py" "$work/$1" >"$work/$1.facts"
}

on 1 mkdir -p "$T/work"
start still still "$T/work" || finish_test
picture before || finish_test
comment "$(wc -l <"$work/before.facts") facts"
for part in mapping sigaction timers creds descriptor; do
	grep -q "$part" "$work/before.facts" ||
		not_ok "there are facts about $part" ""
done
check "goes out" migrate "$pid" node2
check "comes home" home "$pid"
picture after || finish_test
# facts TEXT REGEX
facts()
{
	local differences

	differences=$(diff <(grep -E "$2" "$work/before.facts") \
		<(grep -E "$2" "$work/after.facts"))
	if [ -z "$differences" ]; then
		ok "$1: $(grep -cE "$2" "$work/after.facts") facts agree"
	else
		not_ok "$1 agree" "$differences"
	fi
}
facts mappings '^mapping|^mm'
facts "signal actions" 'sigaction'
facts timers 'timers'
facts credentials 'creds'
facts descriptors '^descriptor'
facts "everything else" '^core.*(comm|altstack|rlimits|nice|blocked|pending|robust|pdeath|personality)'
# and once more, by another way back
check "goes out again" migrate "$pid" node2
guest_pid 2 "$pid" && on 2 mattxctl expel "$out"
expect "is sent home" "$?" 0
picture after || finish_test
facts "after the second time, everything" '.'
good_end still still ""
check "nothing is out or in" nothing_out
finish_test
