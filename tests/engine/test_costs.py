"""The cost model: its arithmetic against formulas written out here, and the file in which its constants are kept."""

import math
from dataclasses import replace

import pytest

from daskspectral.engine.costs import TABLES, Costs, Unpredictable, Work

NUMBERS = dict(zip([name for name in Costs.__dataclass_fields__ if name not in TABLES], range(1, 99), strict=False))
COSTS = Costs(
    **{name: number * 1e-8 for name, number in NUMBERS.items()} | {"slowdown": 1.5, "threads": 3},
    **{"values": {"Gaussian slope": 2e-9, "along": 0.0}, "syrk": {"100": 4e-11, "400": 1e-11}},
    **{"gemm": {"100": 1.0}, "modes": {}},
    solve={"symmetric 100": 0.1, "symmetric 400": 6.4},
)
WORK = Work(
    **{"n": 10**6, "d": 4, "p": 200, "tasks": 50, "groups": 10, "forms": 2, "row_bytes": 16.0, "sampled": 2000},
    **{"syrk": 3.0, "solver": "symmetric", "kernels": {"Gaussian slope": 1.0}},
)


def test_a_fit_by_the_formula():
    products = 200**2 * 3 * 2e-11  # halfway in powers: the table falls as 1 / p
    row = COSTS.rows + 4 * COSTS.columns + 16 * COSTS.reading + 200 * (2e-9 + 4 * COSTS.distances) + products
    found = COSTS.predict(WORK, threads=1)
    assert math.isclose(found.summing, 50 * (20_000 * row + COSTS.task + 10 * 2 * 200**2 * COSTS.entries))
    assert math.isclose(found.choosing, COSTS.start + 2000 * 200 * COSTS.sampling)
    assert math.isclose(found.solving, 0.8, rel_tol=1e-12)  # as p^3 between 100 and 400
    assert math.isclose(found.seconds, found.choosing + found.summing + found.solving)
    assert math.isclose(COSTS.summing(WORK, threads=2), found.summing / 2 * 1.25)  # threads slow each other down
    with pytest.raises(Unpredictable, match="kernel Mine, only for Gaussian slope"):
        COSTS.predict(replace(WORK, kernels={"Mine": 1.0}))
