"""Moments with a basis of their own on the right: they add, are kept, and are told apart."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.kernels import Exponential, Gaussian
from daskspectral.moments import Measure, Moments
from daskspectral.operators import Cross
from tests.common import assert_close

RNG = np.random.default_rng(0)
N = 23
ROWS = {
    "x": RNG.standard_normal((N, 3)),
    "y": RNG.standard_normal((N, 2)),
    "future": RNG.standard_normal((N, 3)),
    "v": RNG.standard_normal(N),
    "weight": RNG.uniform(0.2, 3, N),
}
LANDMARKS, OTHERS = RNG.standard_normal((4, 3)), RNG.standard_normal((5, 2))
LEFT = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(1.1), LANDMARKS)))
RIGHT = LandmarkBasis(Exponential(0.7), OTHERS)


def moments(operator: Any = None, rows: Any = slice(None), right_basis: Basis = RIGHT, **options: Any) -> Moments:
    operator = operator or Cross()
    batch = {name: v[rows] for name, v in ROWS.items()}
    sums = Measure(LEFT, right_basis, operator.forms, operator.functionals, operator)([batch])
    weight = float(batch["weight"].sum())
    return Moments(sums, weight, len(batch["x"]), LEFT, operator, right_basis=right_basis, **options)


def test_moments_add_and_are_kept(tmp_path: Path) -> None:
    total, whole = moments(rows=slice(9)) + moments(rows=slice(9, None)), moments()
    assert total.fingerprint == whole.fingerprint
    for name in whole.arrays:
        assert_close(total.arrays[name], whole.arrays[name])
    dsp.save(whole, tmp_path / "m.zarr")
    again = dsp.load(tmp_path / "m.zarr")
    assert again.fingerprint == whole.fingerprint == pickle.loads(pickle.dumps(whole)).fingerprint
    assert again.right_basis.size == 5
    assert (again + total).count == 2 * N


def test_moments_of_other_right_functions_do_not_add() -> None:
    other = moments(right_basis=LandmarkBasis(Exponential(0.7), OTHERS + np.spacing(OTHERS)))
    with pytest.raises(ValueError, match="different bases"):
        moments() + other
    with pytest.raises(ValueError, match="different operators"):
        moments() + moments(Cross(center=True))
