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
from daskspectral.kernels import Gaussian, Polynomial
from daskspectral.manifolds import Circle
from daskspectral.operators import Laplacian
from daskspectral.registry import decode, encode, foreign

X = Circle().sample(2000, np.random.default_rng(0))


def coordinates(x: Any) -> Any:
    return np.stack([np.ones(len(x)), *x.T])


def slopes(x: Any) -> Any:
    return np.stack([np.zeros_like(x), *(np.zeros_like(x) + unit for unit in np.eye(x.shape[1]))])


class Own(LandmarkBasis):
    """A user's own class."""

    @property
    def holds_constant(self) -> bool:
        return True


LANDMARKS = LandmarkBasis(Gaussian(1.0), X[:3])
FREQUENCIES = np.array([[1.0, 0.0], [0.0, 0.0]])
CASES: dict[str, tuple[Basis, bool]] = {
    "constant": (ConstantBasis(2), True),
    "monomials": (MonomialBasis(2, 2), True),
    "monomials without": (MonomialBasis(2, 2, constant=False), False),
    "landmarks": (LANDMARKS, False),
    "beside a constant": (Concatenated((LANDMARKS, ConstantBasis(2))), True),
    "nested": (Concatenated((LANDMARKS, Concatenated((MonomialBasis(2, 1), LANDMARKS)))), True),
    "nested without": (Concatenated((Concatenated((LANDMARKS,)), LANDMARKS)), False),
    "fourier": (FourierBasis(FREQUENCIES), True),
    "fourier without": (FourierBasis(FREQUENCIES[:1]), False),
    "harmonics": (HarmonicBasis(Circle(), 5), True),
    "invariants": (InvariantBasis(HarmonicBasis(Circle(), 5), SignFlips(2)), True),
    "callable": (CallableBasis(coordinates, slopes, d=2, holds_constant=True), True),
    "callable that does not say so": (CallableBasis(coordinates, slopes, d=2), False),
    "a class of the user's": (Own(Polynomial(1), X[:3]), True),
}


@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")
@pytest.mark.parametrize("case", CASES)
def test_one_constant_and_no_second_one(case: str) -> None:
    basis, holds = CASES[case]
    assert basis.holds_constant is holds
    model = dsp.SpectralDecomposition(Laplacian(), basis=basis, n_components=1, min_support=0).fit(X)
    assert model.basis_.size == basis.size + (not holds)
    assert model.moments_.arrays["form"].shape == (model.basis_.size, model.basis_.size)
    assert model.eigenvalues_[0] == pytest.approx(0, abs=1e-9)
    plain = dsp.SpectralDecomposition(Laplacian(), basis=basis, n_components=1, min_support=0, constant=False).fit(X)
    assert plain.basis_.size == basis.size


def test_what_a_callable_says_is_saved() -> None:
    for holds in (True, False):
        basis = CallableBasis(coordinates, slopes, d=2, holds_constant=holds)
        assert decode(encode(basis), Basis, trusted=foreign(encode(basis))).holds_constant is holds
    with pytest.raises(ValueError, match="holds_constant of CallableBasis is True or False; it is 1"):
        CallableBasis(coordinates, d=2, holds_constant=1)  # type: ignore[arg-type]
