#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# LAMMPS with 2 and 4 ranks over TCP: one rank away, then two.
# timeout: 1800
# nodes: 3

. "$(dirname "$0")/mpi.sh"

need LAMMPS lmp
input melt.lmp

# thermo - the numbers of both runs, without times
thermo()
{
	local run

	for run in still moved; do
		on 1 "cd $W/$run && grep -E '^ +[0-9]+( +[-0-9.e+]+){4} *\$' log.lammps >thermo"
	done
}

# job RANKS
job()
{
	run_moved "$(tcp "$1") lmp -in melt.lmp -screen none -var steps SIZE"
	find_ranks "$1" lmp
	check "steps are made" on 1 grows "$W/moved/log.lammps" 20
	cycle "rank 1 of $1" 2 "${rank[1]}" "$W/moved/log.lammps"
	two_away "ranks of $1" "$W/moved/log.lammps" "${rank[$(($1 - 1))]}" "${rank[0]}"
	on 1 "echo off >$W/moved/word.new && mv $W/moved/word.new $W/moved/word"
	that_is_enough
	on 1 "grep -c '^run.*10 pre' $W/moved/log.lammps"
	run_still "$out"
	thermo
	same_numbers thermo
}

on 1 "echo on >$W/input/word"
# of what it writes for a few steps
lines=12
job 2
job 4
finish_eessi
