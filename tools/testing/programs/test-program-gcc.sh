#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# gcc compiles a project while its compiler and the driver that waits for it move: the
# objects are those of a build that stayed.
# timeout: 900

. "$(dirname "$0")/lib.sh"

need gcc
# shellcheck disable=SC2016
on 1 'cd '"$P"' && mkdir still moved && for f in 1 2 3 4; do
	{ echo "#include <math.h>"
	for i in $(seq 1 60); do
		echo "double f_${f}_$i(double *a, int n) { double s = $i; for (int i = 0; i < n; i++)
			s += i % 3 ? sin(a[i] * s) : a[i] / (s + $i); return s; }"
	done; echo "double (*table_$f[])(double *, int) = {"
	for i in $(seq 1 60); do echo "f_${f}_$i,"; done; echo "};"; } >part$f.c; done
	cat >main.c <<END
#include <stdio.h>
extern double (*table_1[])(double *, int), (*table_2[])(double *, int);
extern double (*table_3[])(double *, int), (*table_4[])(double *, int);
int main(void)
{
	double a[4] = { 1, 2, 3, 4 }, s = 0;
	for (int i = 0; i < 60; i++)
		s += table_1[i](a, 4) + table_2[i](a, 4) + table_3[i](a, 4) + table_4[i](a, 4);
	printf("%.9g\n", s);
	return 0;
}
END
	cat >build.sh <<END
for f in part1 part2 part3 part4 main; do
	gcc -O1 -pipe -c \$f.c -o \$1/\$f.o || exit 1
done
gcc -o \$1/program \$1/*.o -lm && \$1/program >\$1/output
END'
build='sh build.sh WHERE'
run still "${build//WHERE/still}"
on 1 "status still 600; cat $T/still/stderr"
expect "a build that stays" "$out" "exit 0"

run moved "${build//WHERE/moved}"
moves=0
# whichever compiler is there: the first ends away, the next comes home; and its driver goes
# as well. One that has ended meanwhile has not moved, which is no failure.
while on 1 "[ ! -e $T/moved/status ] && { wait_until 60 \"pgrep -x cc1 || [ -e $T/moved/status ]\"; } && pgrep -x cc1"; do
	compiler=${out##*$'\n'}
	on 1 "pgrep -x gcc"
	driver=${out%%$'\n'*}
	if migrate "$compiler" node2; then
		moves=$((moves + 1))
		migrate "$driver" node2
		[ $((moves % 2)) = 1 ] || home "$compiler"
		home "$driver"
	fi
	on 1 "wait_until 120 '[ ! -d /proc/$compiler ]'" || not_ok "$compiler ends" "$out"
done
on 1 "status moved 600; cat $T/moved/stderr"
expect "a build that moves" "$out" "exit 0"
if [ $moves -ge 3 ]; then ok "$moves compilers have moved"; else not_ok "compilers have moved" "$moves"; fi
on 1 "cd $P; cat still/output; for f in still/*; do cmp \$f moved/\${f#still/} || exit; done; echo same"
expect_match "the objects are the same" "$out" '^[-0-9.e+]+.same$'
on 1 rm -rf "$P"
check "nothing is out or in" nothing_out
finish_test
