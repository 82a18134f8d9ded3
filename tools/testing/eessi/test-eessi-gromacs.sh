#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# GROMACS with two OpenMP threads: a box of water comes to the same energies.
# timeout: 900

. "$(dirname "$0")/lib.sh"

need GROMACS gmx
input water.mdp water.top
on 1 "cd $W/input && gmx -quiet solvate -cs spc216.gro -box 1.9 1.9 1.9 -o water.gro -p water.top &&
	gmx -quiet grompp -f water.mdp -c water.gro -p water.top -o water.tpr -maxwarn 5" ||
	{ not_ok "the input is made" "$out"; finish_test; }
# -reprod: the energies are then the same to the last bit
run_moved "env OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 gmx -quiet mdrun -s water.tpr \
-deffnm run -nsteps SIZE -ntmpi 1 -ntomp 2 -reprod -pin off -nb cpu"
find_workers 2
for round in 1 2; do
	# shellcheck disable=SC2086
	cycle "GROMACS, cycle $round" "$far" "$pid" "" $workers
done
# it then ends in an orderly way, with status 1 for it was told to, and says with
# which step
on 1 kill -TERM "$pid"
ends_well 1
on 1 "awk '/^ +Step +Time/ { getline; last = \$1 } END { print last }' $W/moved/run.log"
run_still "$out"
for run in still moved; do
	on 1 "cd $W/$run && gmx -quiet dump -e run.edr 2>/dev/null |
		grep -v '\.edr' >energies; [ \$(count energies) -gt 100 ]"
done
same_numbers energies
finish_eessi
