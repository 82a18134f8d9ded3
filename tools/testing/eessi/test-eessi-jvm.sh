#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A JVM with two threads of work, two of the collector and those of its compilers
# comes to the same sum.
# timeout: 1200

. "$(dirname "$0")/lib.sh"

# the node's java, or a small one made of the JDK that is here
command -v javac >/dev/null || skip_test "no javac here"
javac --release 17 -d "$work/classes" "$eessi/programs/Churn.java" ||
	{ not_ok "Churn.java is built"; finish_test; }
if ! on 1 software Java java; then
	jlink --add-modules java.base --strip-java-debug-attributes --no-man-pages \
		--no-header-files --output "$work/jre" ||
		skip_test "no java on node 1, and none is made here"
	rm -f "$work"/jre/lib/server/classes*.jsa
	strip --strip-debug "$work"/jre/lib/*.so "$work"/jre/lib/server/*.so
	# not in /tmp: it shares its file of modules, which may be no file of tmpfs
	on 1 rm -rf /var/tmp/mattx-jre
	send "$work/jre" /var/tmp/mattx-jre
	out=/var/tmp/mattx-jre/bin/java
fi
java=${out##*$'\n'}
# the directory is what input/ has, and each run
send "$work/classes" "$W/input/classes"
# without the file of statistics that it shares with whoever looks
run_moved "$java -XX:-UsePerfData -Xmx64m -XX:+UseParallelGC -XX:ParallelGCThreads=2 \
-cp classes Churn SIZE"
find_workers 2
for round in 1 2; do
	# shellcheck disable=SC2086
	cycle "JVM, cycle $round" "$far" "$pid" $W/moved/steps $workers
done
that_is_enough
steps steps
run_still "$out"
same_numbers stdout steps
finish_eessi
