#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A Go program with 1000 goroutines, timers and garbage comes to the same sum.
# timeout: 900

. "$(dirname "$0")/lib.sh"

# built here, or on the node where EESSI brings a compiler
input goroutines.go
if command -v go >/dev/null; then
	(cd "$work" && cp "$eessi/programs/goroutines.go" . &&
		CGO_ENABLED=0 go build -ldflags -s -o goroutines goroutines.go) ||
		{ not_ok "goroutines.go is built"; finish_test; }
	send "$work/goroutines" $W/input/goroutines
else
	on 1 "software Go go && cd $W/input && CGO_ENABLED=0 go build goroutines.go" ||
		skip_test "no Go compiler: neither here (golang-go) nor EESSI's on node 1"
fi
run_moved "env GOMAXPROCS=2 ./goroutines SIZE"
find_workers 2
for round in 1 2; do
	# which of its threads Go uses is its own affair: the steps are those of all
	cycle "Go, cycle $round" "$far" "$pid" $W/moved/steps
done
that_is_enough
steps steps
run_still "$out"
same_numbers stdout steps
finish_eessi
