#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An MPI program with 2 and 4 ranks over TCP: one rank away, then two, while all
# take part in collectives and one-sided traffic.
# timeout: 1500
# nodes: 3

. "$(dirname "$0")/mpi.sh"

need OpenMPI mpirun
on 1 "software mpi4py python3; python3 -c 'import mpi4py.MPI'" ||
	skip_test "no mpi4py on node 1"
input mpi-steps.py as-node
on 1 chmod +x $W/input/as-node

# job RANKS
job()
{
	local i

	run_moved "$(tcp_apart "$1") python3 mpi-steps.py SIZE"
	for ((i = 0; i < $1; i++)); do
		check "rank $i of $1 makes steps" on 1 grows "$W/moved/steps.$i" 1
		on 1 cat "$W/moved/rank.$i"
		rank[i]=$out
	done
	cycle "rank 1 of $1" 2 "${rank[1]}" "$W/moved/steps.1"
	two_away "ranks of $1" "$W/moved/steps.0" "${rank[$(($1 - 1))]}" "${rank[0]}"
	that_is_enough
	steps steps.0
	run_still "$out"
	same_numbers stdout
}

job 2
job 4
finish_eessi
