"""A basis says whether it holds the constant; an estimator adds one only where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import (
    Basis,
    CallableBasis,
    Concatenated,
    ConstantBasis,
    FourierBasis,
    HarmonicBasis,
    InvariantBasis,
    LandmarkBasis,
    MonomialBasis,
)
from daskspectral.groups import SignFlips
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Circle
from daskspectral.operators import Laplacian
from tests.common import copied

X = Circle().sample(200, np.random.default_rng(0))


def coordinates(x: Any) -> Any:
    return np.stack([np.ones(len(x)), *x.T])


def slopes(x: Any) -> Any:
    return np.stack([np.zeros_like(x), *(np.zeros_like(x) + unit for unit in np.eye(x.shape[1]))])


LANDMARKS = LandmarkBasis(Gaussian(1.0), X[:3])
FREQUENCIES = np.array([[1.0, 0.0], [0.0, 0.0]])
CASES: dict[str, tuple[Basis, bool]] = {
    "constant": (ConstantBasis(2), True),
    "monomials without": (MonomialBasis(2, 2, constant=False), False),
    "landmarks": (LANDMARKS, False),
    "nested": (Concatenated((LANDMARKS, Concatenated((MonomialBasis(2, 1), LANDMARKS)))), True),
    "nested without": (Concatenated((Concatenated((LANDMARKS,)), LANDMARKS)), False),
    "fourier": (FourierBasis(FREQUENCIES), True),
    "fourier without": (FourierBasis(FREQUENCIES[:1]), False),
    "harmonics": (HarmonicBasis(Circle(), 5), True),
    "invariants": (InvariantBasis(HarmonicBasis(Circle(), 5), SignFlips(2)), True),
    "callable": (CallableBasis(coordinates, slopes, d=2, holds_constant=True), True),
    "callable that does not say so": (CallableBasis(coordinates, slopes, d=2), False),
}


@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")
@pytest.mark.parametrize("case", CASES)
def test_one_constant_and_no_second_one(case: str) -> None:
    basis, holds = CASES[case]
    assert basis.holds_constant is holds
    assert copied(basis).holds_constant is holds
    options: dict[str, Any] = {"basis": basis, "n_components": 1, "min_support": 0}
    model = dsp.SpectralDecomposition(Laplacian(), **options).fit(X)
    assert model.moments_.arrays["form"].shape == (model.basis_.size,) * 2
    assert model.basis_.size == basis.size + (not holds)
    assert model.eigenvalues_[0] == pytest.approx(0, abs=1e-9)
    assert dsp.SpectralDecomposition(Laplacian(), constant=False, **options).fit(X).basis_.size == basis.size


def test_a_callable_says_it_by_true_or_false() -> None:
    with pytest.raises(ValueError, match="holds_constant of CallableBasis is True or False; it is 1"):
        CallableBasis(coordinates, d=2, holds_constant=1)  # type: ignore[arg-type]
