#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# sqlite3, away and at home, does transactions against a second sqlite3 at home: the file's
# locks keep them apart, and no transaction is lost.
# timeout: 900

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

need sqlite3
on 1 "cd $P && sqlite3 bank.db 'CREATE TABLE t(k INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES(1, 0);
	CREATE TABLE log(who TEXT, n INTEGER);'" || { not_ok "the data base" "$out"; finish_test; }

# until it is enough, to the sqlite3 called NAME; how many it were is written down. The
# pause is for the other one: sqlite3 asks for the lock now and then, it does not queue.
# shellcheck disable=SC2016
transactions='n=0
echo ".timeout 120000"
echo ".bail on"
while [ ! -e enough ]; do
	n=$((n + 1))
	echo "BEGIN IMMEDIATE; UPDATE t SET n = n + 1; INSERT INTO log SELECT '"'NAME'"', n FROM t; COMMIT;"
	sleep 0.1
done
echo $n >NAME.made
echo .quit'

for name in one two; do
	on 1 "printf '%s\\n' $(printf %q "${transactions//NAME/$name}") >$P/$name.sh"
	on 1 "begin -c $name sh -c 'cd $P; exec sqlite3 bank.db'" ||
		{ not_ok "$name begins" "$out"; finish_test; }
	[ "$name" = two ] || pid=$out
	on 1 "cd $P; sh $name.sh >$T/$name/stdin 2>/dev/null 9>&- &"
done

# both make transactions: it is seen in the data base, by a third
both()
{
	local -A before
	local name tries

	for name in one two; do
		count "$name" || return
		before[$name]=$out
	done
	for name in one two; do
		for ((tries = 0; tries < 200; tries++)); do
			count "$name" || return
			[ "$out" -lt $((before[$name] + 3)) ] || continue 2
			sleep 0.3
		done
		out="$name makes no transactions: $out"
		return 1
	done
}

count()
{
	on 1 "sqlite3 -cmd '.timeout 120000' $P/bank.db \"SELECT count(*) FROM log WHERE who = '$1'\""
}

check "both make transactions" both
for i in 1 2 3; do
	cycle "$i" "$pid" both
done
on 1 touch $P/enough
for name in one two; do
	on 1 "status $name 240; cat $T/$name/stdout $T/$name/stderr"
	expect "$name: ends well and prints nothing" "$out" "exit 0"
done
on 1 "cd $P; cat one.made two.made; sqlite3 bank.db 'SELECT n FROM t; SELECT count(*), count(DISTINCT n) FROM log; PRAGMA integrity_check;'"
mapfile -t told <<<"$out"
sum=$((told[0] + told[1]))
expect "no transaction is lost" "${told[*]:2}" "$sum $sum|$sum ok"
on 1 rm -rf "$P"
check "nothing is out or in" nothing_out
finish_test
