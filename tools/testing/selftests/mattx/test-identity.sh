#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Who a process is, and what it set for itself, does not depend on the place.
# timeout: 300
# debug: yes

. "$(dirname "$0")/lib.sh"

for user in 0 1234; do
	on 1 start -u $user "identity-$user" identity
	status=$?
	pid=${out%%$'\n'*}
	expect "user $user: starts" $status 0
	for i in 1 2; do
		check "user $user: goes out, $i" migrate "$pid" node2
		check "user $user: works there" on 1 advance "identity-$user" 6
		guest_pid 2 "$pid"
		on 2 "ps -o ruid=,euid=,suid=,nlwp= -p $out | tr -s ' '"
		expect "user $user: is the same user there" "$out" \
			" $user $user $user 5"
		check "user $user: comes home" home "$pid"
		check "user $user: works at home" on 1 advance "identity-$user" 6
	done
	good_end "identity-$user" identity ""
done
check "nothing is out or in" nothing_out
finish_test
