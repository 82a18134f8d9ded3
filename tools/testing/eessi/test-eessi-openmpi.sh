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

# job RANKS STEPS
job()
{
	local command i

	command="$(tcp_apart "$1") python3 mpi-steps.py SIZE"
	run_still "$2" "$command"
	run_moved "$command"
	for ((i = 0; i < $1; i++)); do
		check "rank $i of $1 makes steps" on 1 grows "$W/moved/steps.$i" 1
		on 1 cat "$W/moved/rank.$i"
		rank[i]=$out
	done
	cycle "rank 1 of $1" 2 "${rank[1]}" "$W/moved/steps.1"
	two_away "ranks of $1" "$W/moved/steps.0" "${rank[$(($1 - 1))]}" "${rank[0]}"
	ends_well
	same_numbers stdout
}

job 2 60
job 4 40
finish_eessi
