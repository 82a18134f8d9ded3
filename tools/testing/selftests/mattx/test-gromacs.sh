#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# GROMACS, which nobody here wrote: the energies of a run that goes there and back
# equal those of one that never moved.
# timeout: 900

. "$(dirname "$0")/lib.sh"

G=/tmp/mattx-gromacs

on 1 "rm -rf $G; mkdir -p $G; command -v gmx" || skip_test "no gmx on the nodes"
# a box of water, made by GROMACS's own tools
prepare='cat >topol.top <<END
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spc.itp"
[ system ]
water
[ molecules ]
END
cat >md.mdp <<END
integrator = md
nsteps = STEPS
dt = 0.002
nstenergy = 10
nstlog = 50
nstxout = 0
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
gen-vel = yes
gen-seed = 17
ld-seed = 17
constraints = h-bonds
END
gmx -quiet solvate -cs spc216.gro -box 1.9 1.9 1.9 -o conf.gro -p topol.top &&
gmx -quiet grompp -f md.mdp -c conf.gro -p topol.top -o topol.tpr -maxwarn 5'
on 1 "cd $G; export GMX_MAXBACKUP=-1; ${prepare/STEPS/${GMX_STEPS:-300}}" ||
	{ not_ok "the input is made" "$out"; finish_test; }

mdrun="gmx -quiet mdrun -s topol.tpr -ntmpi 1 -ntomp 2 -reprod -pin off -nb cpu"
on 1 "cd $G; GMX_MAXBACKUP=-1 OMP_NUM_THREADS=2 $mdrun -deffnm still" ||
	{ not_ok "the run that stays" "$out"; finish_test; }
ok "the run that stays"

on 1 "begin gmx sh -c 'cd $G; GMX_MAXBACKUP=-1 OMP_NUM_THREADS=2 exec $mdrun -deffnm moved'" ||
	{ not_ok "start" "$out"; finish_test; }
pid=$out

# ticks PID NODE - CPU time of the guest there, in ticks of 10 ms
ticks()
{
	guest_pid "$2" "$1" && on "$2" "awk '{ print \$14 + \$15 }' /proc/$out/stat"
}

check "it works" on 1 "wait_until 300 '[ \$(awk \"{ print \\\$14 }\" /proc/$pid/stat) -gt 100 ]'"
check "goes out" migrate "$pid" node2
ticks "$pid" 2
before=${out:-0}
# measured progress: two seconds of CPU time there, or its end
progress=no
for ((i = 0; i < 300; i++)); do
	ticks "$pid" 2 || break
	[ "${out:-0}" -lt $((before + 200)) ] || { progress=yes; break; }
	sleep 0.3
done
expect "computes on node 2" "$progress" yes
check "comes home" home "$pid"
on 1 "status gmx 600"
expect "ends well" "$out" "exit 0"
energies='gmx -quiet dump -e FILE.edr 2>/dev/null | grep -v "^frame\|file\|\.edr$"'
on 1 "cd $G; ${energies/FILE/still} >still.txt; ${energies/FILE/moved} >moved.txt
	wc -l <still.txt; diff still.txt moved.txt | head -6; cmp -s still.txt moved.txt && echo same"
expect_match "the energies are the same" "$out" '^[1-9][0-9]{2,}.same$'
on 1 rm -rf $G
check "nothing is out or in" nothing_out
finish_test
