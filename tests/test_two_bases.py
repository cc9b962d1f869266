"""Sums between two bases at several views, against loops over functions and rows."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.data.source import open_source
from daskspectral.engine import Plan, Run
from daskspectral.forms import Form, at, dirichlet, first_moment, first_moment_at, form, grad, gram, gram_at, inner
from daskspectral.kernels import Exponential, Gaussian, Polynomial
from daskspectral.moments import Measure, MeasureMany, Moments
from daskspectral.operators import BilinearForm, Cross, Laplacian, Transfer

Array = NDArray[Any]
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


def left(i: int, x: Array) -> float:
    """The functions of LEFT, one point at a time."""
    return 1.0 if i == 0 else float(np.exp(-((x - LANDMARKS[i - 1]) ** 2).sum() / (2 * 1.1**2)))


def left_gradient(i: int, x: Array) -> Array:
    return np.zeros(3) if i == 0 else -(x - LANDMARKS[i - 1]) / 1.1**2 * left(i, x)


def right(j: int, y: Array) -> float:
    """The functions of RIGHT, one point at a time."""
    return float(np.exp(-np.sqrt(((y - OTHERS[j]) ** 2).sum()) / 0.7))


def loops(rows: dict[str, Array], f: Any, g: Any, p: int, q: int) -> Array:
    """sum_k w_k f(i, row k) . g(j, row k), by three loops."""
    weight = rows.get("weight", np.ones(len(rows["x"])))
    total = np.zeros((p, q))
    for k in range(len(rows["x"])):
        row = {name: values[k] for name, values in rows.items()}
        for i in range(p):
            for j in range(q):
                total[i, j] += weight[k] * np.sum(f(i, row) * g(j, row))
    return total


def of_x(i: int, row: Any) -> float:
    return left(i, row["x"])


def of_future(i: int, row: Any) -> float:
    return left(i, row["future"])


def of_y(j: int, row: Any) -> float:
    return right(j, row["y"])


def one(i: int, row: Any) -> float:
    return 1.0


def close(found: Array, wanted: Array) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


@form
def crossed(f: Any, g: Any, x: Any) -> Any:
    return inner(f, at(g, x.y)) + 0.5 * inner(at(f, x.future), at(g, x.y), weight=x.v)


def cross_wanted(rows: dict[str, Array]) -> dict[str, Array]:
    def weighted(i: int, row: Any) -> float:
        return of_x(i, row) + 0.5 * row["v"] * of_future(i, row)

    return {
        "form": loops(rows, weighted, of_y, 5, 5),
        "gram": loops(rows, of_x, of_x, 5, 5),
        "right_gram": loops(rows, of_y, of_y, 5, 5),
        "first": loops(rows, of_x, one, 5, 1)[:, 0],
        "right_first": loops(rows, of_y, one, 5, 1)[:, 0],
    }


FORMS: dict[str, Form] = {"form": crossed, "gram": gram, "right_gram": gram_at("y")}
FUNCTIONALS = {"first": first_moment, "right_first": first_moment_at("y")}
CROSS = Measure(LEFT, RIGHT, FORMS, FUNCTIONALS, rows=6)


@pytest.mark.parametrize("weighted", [True, False])
def test_two_bases_of_different_variables(weighted: bool) -> None:
    rows = ROWS if weighted else {name: v for name, v in ROWS.items() if name != "weight"}
    wanted = cross_wanted(rows)
    found = CROSS([rows])
    assert found.keys() == wanted.keys()
    for name in wanted:
        close(found[name], wanted[name])


def test_one_basis_at_two_views() -> None:
    operator = Transfer(3)
    found = Measure(LEFT, LEFT, operator.forms, operator.functionals, operator, rows=6)([ROWS])
    close(found["form"], loops(ROWS, of_x, of_future, 5, 5))
    close(found["gram"], loops(ROWS, of_x, of_x, 5, 5))
    close(found["right_gram"], loops(ROWS, of_future, of_future, 5, 5))
    close(found["first"], loops(ROWS, of_x, one, 5, 1)[:, 0])
    close(found["right_first"], loops(ROWS, of_future, one, 5, 1)[:, 0])
    assert np.abs(found["gram"] - found["right_gram"]).max() > 1  # views that differ


def test_derivatives_of_two_bases_of_the_same_variables() -> None:
    basis = MonomialBasis(3, 1, constant=False)  # x, y, z: their gradients are the axes
    sobolev = form(lambda f, g, x: inner(f, g) + inner(grad(f), grad(g)))
    forms = {"form": dirichlet, "gram": sobolev, "right_gram": gram}
    found = Measure(LEFT, basis, forms, rows=6)([ROWS])
    order = [int(np.argmax(e)) for e in basis.exponents]
    slopes = loops(ROWS, lambda i, r: left_gradient(i, r["x"]), lambda j, r: np.eye(3)[order[j]], 5, 3)
    close(found["form"], slopes)
    own = loops(ROWS, lambda i, r: left_gradient(i, r["x"]), lambda j, r: left_gradient(j, r["x"]), 5, 5)
    close(found["gram"], own + loops(ROWS, of_x, of_x, 5, 5))
    coordinate = lambda j, r: r["x"][order[j]]  # noqa: E731
    close(found["right_gram"], loops(ROWS, coordinate, coordinate, 3, 3))
    assert found.keys() == forms.keys()


def test_float32_is_close() -> None:
    found = Measure(LEFT, RIGHT, FORMS, FUNCTIONALS, dtype="float32", rows=6)([ROWS])
    for name, wanted in cross_wanted(ROWS).items():
        assert found[name].dtype == np.float64
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_each_basis_is_evaluated_once_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, str]] = []
    original = LandmarkBasis.at
    monkeypatch.setattr(
        LandmarkBasis, "at", lambda self, b, atoms: seen.append((self.size, b.points)) or original(self, b, atoms)
    )
    Measure(LEFT, RIGHT, FORMS, FUNCTIONALS)([ROWS])
    assert sorted(seen) == [(4, "future"), (4, "x"), (5, "y")]


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(1, N - 1), max_size=5), size=st.integers(1, N))
def test_additivity(cuts: list[int], size: int) -> None:
    whole = CROSS([ROWS])
    measure = Measure(LEFT, RIGHT, FORMS, FUNCTIONALS, rows=size)
    source = open_source(
        ROWS["x"],
        views={"future": ROWS["future"]},
        apart={"y": ROWS["y"]},
        fields={"v": ROWS["v"]},
        weight=ROWS["weight"],
    )
    ranges = tuple(pairwise(sorted({0, *cuts, N})))
    found = Run(source, Plan(ranges, 2, 2)).reduce(measure).sums
    for name in whole:
        close(found[name], whole[name])


def test_many_measures_with_two_bases_and_folds() -> None:
    operator = Cross()
    fold = np.arange(N) % 2
    parts = {
        "pair": Measure(LEFT, RIGHT, operator.forms, operator.functionals, operator),
        "later": Measure(LEFT, LEFT, {"gram": gram_at("future")}),
        "laplacian": Measure(LEFT, LEFT, Laplacian().forms, operator=Laplacian()),
    }
    sums = MeasureMany(parts, folds=2)([{**ROWS, "fold": fold}])
    assert {name.split("/")[0] for name in sums} >= parts.keys()
    for k in range(2):
        rows = {name: v[fold == k] for name, v in ROWS.items()}
        for name, measure in parts.items():
            for key, wanted in measure([rows]).items():
                close(sums[f"{name}/{k}/{key}"], wanted)


# -- moments with two bases --------------------------------------------------------------------------------------------


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
        close(total.arrays[name], whole.arrays[name])
    dsp.save(whole, tmp_path / "m.zarr")
    again = dsp.load(tmp_path / "m.zarr")
    assert again.fingerprint == whole.fingerprint == pickle.loads(pickle.dumps(whole)).fingerprint
    assert again.right_basis.size == 5
    assert (again + total).count == 2 * N
    plain = Moments({"form": np.eye(5)}, 1.0, 1, LEFT, Laplacian())
    dsp.save(plain, tmp_path / "p.zarr")
    assert dsp.load(tmp_path / "p.zarr").right_basis is None


def test_moments_of_other_right_functions_do_not_add() -> None:
    other = moments(right_basis=LandmarkBasis(Exponential(0.7), OTHERS + np.spacing(OTHERS)))
    with pytest.raises(ValueError, match="different bases"):
        moments() + other
    with pytest.raises(ValueError, match="different operators"):
        moments() + moments(Cross(center=True))
    own = LandmarkBasis(Polynomial(1), LANDMARKS)
    same = Moments({}, 1.0, 1, own, Transfer(), right_basis=own)
    assert same.fingerprint != Moments({}, 1.0, 1, own, Transfer()).fingerprint


def test_the_fingerprint_knows_functionals() -> None:
    class Other(Cross):
        @property
        def functionals(self) -> Any:
            return {"first": first_moment}

    Other.__qualname__ = Cross.__qualname__
    assert repr(Cross()) == repr(Other())
    assert moments(Cross()).fingerprint != moments(Other()).fingerprint


def test_an_operator_of_ones_own_between_views() -> None:
    operator = BilinearForm(form(lambda f, g, x: inner(f, at(g, x.y))), own_right_basis=True)
    close(moments(operator).arrays["right_gram"], moments().arrays["right_gram"])
    close(moments(operator).arrays["form"], moments().arrays["form"])
    assert moments(operator).fingerprint != moments().fingerprint
