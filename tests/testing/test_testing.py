"""A mistake of every kind is caught by the checks, which the package's own pieces pass in test_contracts.py."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from daskspectral import testing
from daskspectral.basis import LandmarkBasis, Landmarks, MonomialBasis, RandomFourierFeatures
from daskspectral.basis.accumulators import MatrixSums
from daskspectral.basis.evaluation import Block
from daskspectral.forms import (
    Form,
    along,
    along_each,
    at,
    dirichlet,
    form,
    grad,
    gram,
    inner,
    partial,
    second,
    tangential_dirichlet,
)
from daskspectral.groups import Permutations
from daskspectral.kernels import Exponential, Gaussian, Radial
from daskspectral.manifolds import Sphere
from daskspectral.operators import Schroedinger
from daskspectral.regression import HermiteRegressor
from daskspectral.solve import Problem, SymmetricPencil, TwoMetricSVD
from daskspectral.workspace import Workspace


@form
def mixture(f: Any, g: Any, x: Any) -> Any:
    lower = inner(x.rate * f - 2 * along(f, x.frame[1]), at(g, x.future) + x.rate * at(partial(g, 0, 1), x.future))
    return lower + 3 * inner(partial(f, 1, 1), second(g), weight=x.pairs[0, -1]) - inner(along(f, x.frame[0]), g)


@form
def frames(f: Any, g: Any, x: Any) -> Any:
    return inner(along_each(f, x.frame), along_each(g, x.frame)) - inner(x.rate * at(grad(f), x.y), at(grad(g), x.y))


FORMS = [dirichlet, tangential_dirichlet(normals=2), tangential_dirichlet(tangents=1), mixture, frames]


@pytest.mark.parametrize("bilinear", FORMS, ids=lambda f: f.name)
def test_forms_pass(bilinear: Form) -> None:
    testing.check_form(bilinear, random_state=1)
    testing.check_form(bilinear, MonomialBasis(2, 2), RandomFourierFeatures.draw(Gaussian(), 2, 6, 0))


def test_forms_of_functions_of_different_variables() -> None:
    cross = form(lambda f, g, x: inner(partial(f, 1, 1), at(g, x.y)) + inner(f, at(second(g), x.y), weight=x.rate))
    left, right = LandmarkBasis(Gaussian(), np.eye(2)), LandmarkBasis(Gaussian(), np.eye(3))
    testing.check_form(cross, left, right)


# mistakes: a method, and what it is replaced by

KERNEL, BASIS = Gaussian(0.8), MonomialBasis(2, 2)
EVALUATION = type(BASIS.at(Block({"x": np.zeros((1, 2))}, np.dtype(float), Workspace()), []))
X = np.random.default_rng(0).standard_normal((60, 2))
REGRESSOR = HermiteRegressor(Landmarks(Gaussian(1.0), points=X[:6]), alpha=1e-3)


def always(f: Any) -> Any:
    return property(lambda self: True)


def larger(result: Any) -> Any:
    return lambda self: {key: 1.01 * value for key, value in result(self).items()}


def of_a_copy(values: Any) -> Any:
    return lambda self, *given: values(self, *given) * (1 if self is BASIS else 2)


def steeper(profile: Any) -> Any:
    return lambda self, s, order, out: np.multiply(profile(self, s, order, out), 1.001 if order == 1 else 1, out=out)


def beyond(partial: Any) -> Any:
    return lambda self, x, y, alpha: partial(self, x, y, alpha) if sum(alpha) < 2 else np.zeros((len(y), len(x)))


def of_kernel(name: str, wrong: Any) -> Any:
    return testing.check_kernel, (KERNEL,), Gaussian, name, wrong


def of_feature(change: Callable[[Any, Any, Any], Any]) -> Any:
    """Of an atom of a block, what is computed is changed."""
    return (
        testing.check_basis,
        (BASIS,),
        EVALUATION,
        "feature",
        lambda f: lambda self, atom: change(f(self, atom), atom, self),
    )


def fading(solve: Any) -> Any:
    """Eigenvalues that are less at each call."""
    calls = itertools.count(1)
    return lambda self, system: replace(found := solve(self, system), values=found.values / next(calls))


def of_first_row(fit: Any) -> Any:
    """A regression whose first value decides on all of them."""
    return lambda self, x, y, **options: fit(self, x, y + float(np.asarray(x[:1])[0, 0]), **options)


def heavier(values: Any, atom: Any, at: Any) -> Any:
    return values if at.block.scale is None else values * at.block.scale


MISTAKES: dict[str, tuple[Callable[..., None], tuple[Any, ...], Any, str, Any]] = {
    "differences": of_kernel("profile", steeper),
    "along, against": of_kernel("along", lambda f: lambda self, x, y, v: f(self, x, y, -v)),
    "diagonal": of_kernel("diagonal", lambda f: lambda self, x: f(self, x) + 0.01),
    r"k\(y, x\)": of_kernel("values", lambda f: lambda self, x, y: f(self, x, y) * (1 + x[:, 0] ** 2)),
    "one pair": of_kernel("values", lambda f: lambda self, x, y: f(self, x, y) / f(self, x, y).max()),
    "Smoothness": (testing.check_kernel, (Exponential(0.7),), Exponential, "partial", beyond),
    "semidefinite": (testing.check_kernel, (Radial(lambda s: 1 - s),), None, "", None),
    "units": (testing.check_kernel, (Gaussian(1e-3),), None, "", None),
    "of a basis, differences": of_feature(lambda f, atom, at: f * (1.01 if atom.order == 1 else 1)),
    "one point": of_feature(lambda f, atom, at: f - f.mean(axis=1, keepdims=True)),
    "float32": of_feature(lambda f, atom, at: f.astype(float)),
    "along, against partial": of_feature(lambda f, atom, at: -f if atom.kind == "along" else f),
    "root": of_feature(heavier),
    "is_zero": (testing.check_basis, (BASIS,), MonomialBasis, "is_zero", lambda f: lambda self, atom: atom.order > 0),
    "of its pickled copy": (testing.check_basis, (BASIS,), MonomialBasis, "values", of_a_copy),
    "symmetric": (testing.check_form, (mixture,), Form, "symmetric", always),
    "a sum over rows": (testing.check_form, (gram, BASIS), MatrixSums, "result", larger),
    "values": (testing.check_solver, (SymmetricPencil(),), SymmetricPencil, "solve", fading),
    "Ritz": (testing.check_solver, (SymmetricPencil(),), Problem, "signed", lambda f: lambda self, v: 2 * f(self, v)),
    "higher score": (testing.check_solver, (TwoMetricSVD(),), TwoMetricSVD, "score", lambda f: lambda *a: -f(*a)),
    "order": (
        testing.check_group,
        (Permutations(3), Sphere(3)),
        Permutations,
        "order",
        lambda f: property(lambda self: 7),
    ),
    "frame": (testing.check_manifold, (Sphere(3),), Sphere, "_normals", lambda f: lambda self, x: 2 * f(self, x)),
    "L 1 = 0": (testing.check_operator, (Schroedinger(),), Schroedinger, "annihilates_constants", always),
    "in another order": (testing.check_estimator, (REGRESSOR, X, X[:, 0]), HermiteRegressor, "fit", of_first_row),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_caught(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, subject, owner, name, wrong = MISTAKES[what]
    if owner is not None:
        check(*subject)
        monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    with pytest.raises(AssertionError, match=what.rpartition("of a basis, ")[2]):
        check(*subject)
