"""The cost model: its arithmetic against formulas written out here, and the file in which its constants are kept."""

import math
from dataclasses import replace

import pytest

from daskspectral.engine.costs import Costs, Unpredictable, Work

COSTS = Costs(
    **{"start": 0.5, "rows": 1e-7, "columns": 1e-8, "distances": 1e-10, "single": 0.5},
    **{"entries": 1e-9, "task": 1e-3, "scheduler": 2e-3, "sending": 1e-9, "reading": 2e-9, "sampling": 1e-8},
    **{"choice": 6.0, "apart": 0.5, "slowdown": 1.5, "threads": 3},
    values={"Gaussian slope": 2e-9, "Matern 1.5": 5e-9, "along": 3e-9},
    syrk={"100": 4e-11, "400": 1e-11},
    gemm={"100": 8e-11, "400": 2e-11},
    modes={"nufft 2 100": 1e-7, "nufft 2 300": 3e-7},
    solve={"symmetric 100": 0.1, "symmetric 400": 6.4, "lattice 2 900": 3.0},
    machine={"cores": 3},
)
WORK = Work(
    **{"n": 10**6, "d": 4, "p": 200, "tasks": 50, "groups": 10, "forms": 2, "row_bytes": 16.0, "sampled": 2000},
    **{"along": 2.0, "syrk": 3.0, "gemm": 1.0},
    solver="symmetric",
    kernels={"Gaussian slope": 1.0, "Matern 1.5": 0.5},
)


def test_a_fit_by_the_formula():
    functions = 200 * ((2e-9 + 4e-10) + 0.5 * (5e-9 + 4e-10) + 2 * (3e-9 + 4e-10))
    products = 200**2 * (3 * 2e-11 + 4e-11)  # halfway in powers: both tables fall as 1 / p
    row = 1e-7 + 4e-8 + 16 * 2e-9 + functions + products
    assert math.isclose(COSTS.row(replace(WORK, single=True)), row - (functions + products) / 2, rel_tol=1e-12)
    task = 20_000 * row + 1e-3 + 10 * 2 * 200**2 * 1e-9
    found = COSTS.predict(WORK, threads=1)
    assert math.isclose(found.summing, 50 * task, rel_tol=1e-12)
    assert math.isclose(found.choosing, 0.5 + 2000 * 200 * 1e-8, rel_tol=1e-12)
    assert math.isclose(found.solving, 0.8, rel_tol=1e-12)  # as p^3 between 100 and 400
    assert math.isclose(found.seconds, found.choosing + found.summing + found.solving)
    assert math.isclose(COSTS.summing(WORK, threads=2), 25 * task * 1.25)  # threads slow each other down
    assert math.isclose(COSTS.summing(replace(WORK, tasks=10**6), workers=10**4, threads=1), 2 * 10**6 * 2e-3)
    assert math.isclose(COSTS.choosing(replace(WORK, automatic=True, sampled=0), threads=3), 0.5 + 3 + 1)
    modes = {"d": 2, "p": 900, "solver": "lattice 2", "modes": 200, "method": "nufft", "transforms": 3}
    lattice = replace(WORK, **modes, row_bytes=0.0)
    assert math.isclose(COSTS.row(lattice), 3 * 2e-7)
    assert COSTS.predict(lattice).solving == 3.0
    with pytest.raises(Unpredictable, match="kernel Mine, only for Gaussian slope"):
        COSTS.predict(replace(WORK, kernels={"Mine": 1.0}))
