# SPDX-License-Identifier: GPL-2.0
"""A Lennard-Jones fluid of ESPResSo: espresso-lj.py STEPS"""
import os
import sys
import numpy as np
import espressomd

system = espressomd.System(box_l=[10.0] * 3)
system.time_step = 0.005
system.cell_system.skin = 0.4
system.non_bonded_inter[0, 0].lennard_jones.set_params(
    epsilon=1.0, sigma=1.0, cutoff=2.5, shift="auto")
grid = np.stack(np.meshgrid(*[np.arange(8)] * 3), -1).reshape(-1, 3) * 1.25
system.part.add(pos=grid, v=np.random.default_rng(17).standard_normal(grid.shape))
for step in range(int(sys.argv[1])):
    if os.path.exists("enough"):
        break
    system.integrator.run(10)
    energy = system.analysis.energy()
    print(step, repr(energy["total"]), repr(energy["kinetic"]), flush=True)
