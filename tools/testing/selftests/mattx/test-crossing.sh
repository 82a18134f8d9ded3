#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Eight processes, four of each node, cross at once, three times there and back.
# timeout: 600
# debug: yes

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

programs=(threads sparse signals identity)

# all WHAT - "mattxctl WHAT" for each process, on both nodes at the same time
all()
{
	local n result=0

	for n in 1 2; do
		# shellcheck disable=SC2016
		ask "$n" 'failed=0; for p in '"${pids[$n]}"'; do
			mattxctl '"${1//OTHER/node$((3 - n))}"' & jobs_of[$p]=$!
		done
		for p in '"${pids[$n]}"'; do wait ${jobs_of[$p]} || failed=1; done
		[ $failed = 0 ]'
	done
	for n in 1 2; do
		answer "$n" || { comment "node $n: $out"; result=1; }
	done
	return "$result"
}

go_on()
{
	local n p result=0

	for n in 1 2; do
		for p in "${programs[@]}"; do
			on "$n" advance "$p-$n" || { comment "$p-$n: $out"; result=1; }
		done
	done
	return "$result"
}

for n in 1 2; do
	pids[n]=
	for p in "${programs[@]}"; do
		on "$n" start "$p-$n" "$p" || not_ok "start of $p" "$out"
		pids[n]+=" ${out%%$'\n'*}"
	done
done
for i in 1 2 3; do
	# shellcheck disable=SC2016
	check "$i: all cross" all 'migrate $p OTHER'
	check "$i: all work there" go_on
	# shellcheck disable=SC2016
	check "$i: all come home" all 'home $p'
	check "$i: all work at home" go_on
done
for n in 1 2; do
	for p in "${programs[@]}"; do
		on "$n" finish "$p-$n"
		expect_match "$p of node $n ends well" "$out" \
			"^exit 0.*$p: all as it should be"
	done
done
check "nothing is out or in" nothing_out
finish_test
