#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tar | gzip, with gzip away: not a byte of the pipes is lost or doubled.
# timeout: 900

. "$(dirname "$0")/lib.sh"

need tar gzip
on 1 "mkdir $P/tree && cd $P/tree && for i in 1 2 3 4 5 6 7 8; do seq \$i 7 90000 >\$i; done"
# as many archives as are made until it is enough
# shellcheck disable=SC2016
client tar 'sh -c "n=0; while [ ! -e enough ]; do tar -c tree; n=\$((n + 1)); echo \$n >&2;
	echo \$n >made.new; mv made.new made; done | gzip -n | tee out.gz | cat >out2.gz"'
check "archives are made" more made 1
on 1 "wait_until 30 'pgrep -x gzip' && pgrep -x gzip"
pid=${out##*$'\n'}
for i in 1 2 3; do
	cycle "$i" "$pid" more made 1
done
on 1 touch $P/enough
on 1 "status tar 240"
expect "the pipe line ends well" "$out" "exit 0"
on 1 "cd $P; cmp out.gz out2.gz && n=\$(cat made) &&
	zcat out.gz >moved && while [ \$n -gt 0 ]; do tar -c tree; n=\$((n - 1)); done | cmp - moved && echo same"
expect "what came out is what went in" "$out" same
on 1 rm -rf "$P"
check "nothing is out or in" nothing_out
finish_test
