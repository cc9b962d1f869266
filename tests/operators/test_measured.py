"""What one pass measures for each operator, against sums of products over rows.

Values, gradients and second derivatives of the functions are written out here by hand.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral import operators as op
from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.forms import Field
from daskspectral.kernels import Matern
from daskspectral.moments import Measure
from daskspectral.operators.base import with_derived
from tests.common import assert_close

N, D = 9, 2
RNG = np.random.default_rng(7)
LANDMARKS = RNG.standard_normal((4, D))
SIGMA = RNG.standard_normal((N, D, 3))
FIELDS = {
    **{name: RNG.standard_normal((N, D)) for name in ("x", "x1", "x2", "future", "drift")},
    "weight": RNG.random(N) + 0.5,
    "potential": RNG.standard_normal(N),
    "directions": RNG.standard_normal((N, 5, D)),
    "sigma": SIGMA,
    "diffusion": np.einsum("kam,kbm->kab", SIGMA, SIGMA),
}
BASIS = Concatenated((ConstantBasis(D), LandmarkBasis(Matern(2.5, 1.1), LANDMARKS)))


def jets(x: Any) -> list[Any]:
    """Values (p, n), gradients (p, n, d) and second derivatives (p, n, d, d) of 1 and of Matern's functions."""
    u, a = x - LANDMARKS[:, None], math.sqrt(5) / 1.1
    r = np.linalg.norm(u, axis=2)
    e = np.exp(-a * r)
    slope = -(a**2) / 3 * (1 + a * r) * e
    squares = np.einsum("pn,pna,pnb->pnab", a**4 / 3 * e, u, u)
    parts = (1 + a * r + (a * r) ** 2 / 3) * e, slope[..., None] * u, slope[..., None, None] * np.eye(D) + squares
    return [np.concatenate([np.full_like(part[:1], k == 0), part]) for k, part in enumerate(parts)]


def total(f: Any, g: Any, weight: Any = 1.0) -> Any:
    """The sum over rows, and over coordinates if there are some, of f_i g_j times the weights."""
    f, g = (part.reshape(len(part), N, -1) for part in (f, g))
    return np.einsum("ina,jna,n->ij", f, g, weight * FIELDS["weight"])


F, GRADIENT, SECOND = jets(FIELDS["x"])
ALONG = np.einsum("pna,nka->pnk", GRADIENT, FIELDS["directions"])
FLUX = np.einsum("pna,nab->pnb", GRADIENT, FIELDS["diffusion"])
ITO = np.einsum("pna,na->pn", GRADIENT, FIELDS["drift"]) + np.einsum("pnab,nab->pn", SECOND, FIELDS["diffusion"]) / 2
VIEWS = [jets(FIELDS[view])[0] for view in ("x", "x1", "x2")]
MIXED = {
    ((0, 1), (2, 0)): 0.3,
    ((1, 0), (0, 1)): "potential",
    ((0, 0), (0, 0)): -2,
    ((0, 0), (1, 1)): Field("drift")[1],
}
OF_MIXED = (
    0.3 * total(GRADIENT[..., 1], SECOND[..., 0, 0])
    + total(GRADIENT[..., 0], GRADIENT[..., 1], FIELDS["potential"])
    - 2 * total(F, F)
    + total(F, SECOND[..., 0, 1], FIELDS["drift"][:, 1])
)
CASES: list[tuple[op.Operator, Any]] = [
    (op.Laplacian(), total(GRADIENT, GRADIENT)),
    (op.PartialDerivative(1), total(F, GRADIENT[..., 1])),
    (op.DifferentialOperator(MIXED), OF_MIXED),
    (op.AnisotropicDiffusion(), total(FLUX, GRADIENT)),
    (op.Schroedinger(), total(GRADIENT, GRADIENT) + total(F, F, FIELDS["potential"])),
    (op.Generator(diffusion="sigma"), total(F, ITO)),
    (op.Generator(diffusion="sigma", reversible=True), -0.5 * total(FLUX, GRADIENT)),
    (op.TangentPropagation("directions"), total(ALONG, ALONG) / 5),
    (op.Transfer(center=True), total(F, jets(FIELDS["future"])[0])),
    (op.Augmentation(3), sum(total(v - w, v - w) for v, w in itertools.permutations(VIEWS, 2)) / 6),
]


@pytest.mark.parametrize(("operator", "form"), CASES, ids=lambda case: type(case).__name__)
def test_sums_over_rows(operator: op.Operator, form: Any) -> None:
    views = VIEWS if isinstance(operator, op.Augmentation) else VIEWS[:1]
    batch = {name: FIELDS[name] for name in {*operator.views, *operator.data_fields, "weight"}}
    found = Measure(BASIS, BASIS, operator.forms, operator.functionals, operator, rows=4)([batch])
    assert_close(found["form"], form)
    assert_close(found["gram"], sum(total(v, v) for v in views) / len(views))
    assert_close(found["first"], sum(v @ FIELDS["weight"] for v in views) / len(views))


@given(seed=st.integers(0, 10**6), rank=st.integers(0, 3), dtype=st.sampled_from([np.float32, np.float64]))
def test_factors_of_diffusions(seed: int, rank: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    sigma = rng.standard_normal((6, 3, rank)) * rng.uniform(1e-6, 1e6, (6, 1, 1))
    d = (sigma @ sigma.swapaxes(1, 2)).astype(dtype)
    d = 0.5 * (d + d.swapaxes(1, 2))
    columns = with_derived(op.AnisotropicDiffusion("d"), {"d": d})["columns of d"]
    again = np.einsum("kma,kmb->kab", columns, columns)
    size = np.abs(d).max(axis=(1, 2), keepdims=True)
    assert (np.abs(again - d) <= 64 * np.finfo(dtype).eps * size).all()
