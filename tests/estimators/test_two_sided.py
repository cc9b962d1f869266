"""SpectralDecomposition between two views, with fields, and with bases of the user's."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.exceptions import NotFittedError

import daskspectral as dsp
from daskspectral import plot
from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.forms import at, form, grad, inner, partial, second
from daskspectral.kernels import Exponential, Gaussian, Linear
from daskspectral.manifolds import Sphere
from daskspectral.operators import (
    AnisotropicDiffusion,
    Augmentation,
    BilinearForm,
    Cross,
    DifferentialOperator,
    Generator,
    Laplacian,
    PartialDerivative,
    Schroedinger,
    SymmetricForm,
    Transfer,
)
from tests.common import assert_same_bits, written

Array = NDArray[Any]
N = 2000
RNG = np.random.default_rng(0)
HIDDEN = RNG.standard_normal((N, 3))
X = HIDDEN @ RNG.standard_normal((3, 3)) + 0.5 * RNG.standard_normal((N, 3)) + [2.0, 0.0, -1.0]
Y = HIDDEN @ RNG.standard_normal((3, 4)) + RNG.standard_normal((N, 4))
WEIGHT = RNG.integers(0, 3, N)


def make(operator: Any = None, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"n_landmarks": 25, "landmarks": "uniform", "n_components": 4, "random_state": 0}
    if "basis" not in changes:
        defaults["kernel"] = Gaussian("median")
    return dsp.SpectralDecomposition(Cross() if operator is None else operator, **(defaults | changes))


def linear(**changes: Any) -> dsp.SpectralDecomposition:
    """Canonical correlations: linear functions less their means."""
    return make(Cross(center=True), **({"kernel": Linear(), "n_landmarks": 8, "n_components": 3} | changes))


@pytest.fixture(scope="module")
def fitted() -> dsp.SpectralDecomposition:
    return make(constant=True, min_support=0.0).fit((X, Y))


# -- canonical correlations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"standardize": True},
        {"constant": True},
        {"kernel": None, "basis": MonomialBasis(3, 1), "right_basis": MonomialBasis(4, 1, constant=False)},
        {"right_landmarks": np.eye(4) + 1},
        {"dtype": "float32"},
    ],
)
def test_canonical_correlations(options: dict[str, Any]) -> None:
    theirs = CCA(3, max_iter=20_000, tol=1e-14).fit(X, Y)
    left, right = theirs.transform(X, Y)
    correlations = [np.corrcoef(left[:, i], right[:, i])[0, 1] for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dsp.RankWarning)  # more landmarks than dimensions
        ours = linear(**options).fit((X, Y))
    tolerance = 1e-3 if "dtype" in options else 1e-6
    np.testing.assert_allclose(ours.singular_values_, correlations, atol=tolerance)
    assert ours.rank_ == (3, 4)
    for scores, own in ((left, ours.transform(X)), (right, ours.transform_right(Y))):
        match = [abs(np.corrcoef(scores[:, i], own[:, i])[0, 1]) for i in range(3)]
        np.testing.assert_allclose(match, 1, atol=tolerance)


def test_weight_two_is_the_row_twice() -> None:
    landmarks = {"landmarks": X[:8], "right_landmarks": Y[:8]}
    weighted = linear(**landmarks).fit((X, Y), sample_weight=WEIGHT)
    repeated = linear(**landmarks).fit((np.repeat(X, WEIGHT, axis=0), np.repeat(Y, WEIGHT, axis=0)))
    np.testing.assert_allclose(weighted.singular_values_, repeated.singular_values_, rtol=1e-9)
    assert weighted.moments_.weight == repeated.moments_.weight == WEIGHT.sum()


def test_functions_have_unit_norm_and_pair_with_their_singular_values(fitted: dsp.SpectralDecomposition) -> None:
    u, v = fitted.transform(X), fitted.transform_right(Y)
    for a, b, wanted in ((u, u, np.eye(4)), (v, v, np.eye(4)), (u, v, np.diag(fitted.singular_values_))):
        np.testing.assert_allclose(a.T @ b / N, wanted, atol=1e-7)
    assert (np.diff(fitted.singular_values_) <= 0).all()
    assert (fitted.residuals_ < 1e-8).all()


def test_the_constant_has_singular_value_one(fitted: dsp.SpectralDecomposition) -> None:
    assert fitted.singular_values_[0] == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(np.abs(fitted.transform(X)[:, 0]), 1, atol=1e-6)
    assert fitted.basis_.size == fitted.right_basis_.size == 26
    plain = make(min_support=0.0).fit((X, Y))
    assert plain.basis_.size == 25  # not added unless asked for
    assert plain.singular_values_[0] < 1 - 1e-9
    centred = make(Cross(center=True), constant=True, min_support=0.0, n_components=3).fit((X, Y))
    np.testing.assert_allclose(centred.singular_values_, fitted.singular_values_[1:], atol=1e-6)


# -- data --------------------------------------------------------------------------------------------------------------


def store(path: Path, name: str, x: Array) -> str:
    zarr.create_array(path / name, data=x, chunks=(300, *x.shape[1:]), overwrite=True)
    return str(path / name)


CONTAINERS: dict[str, Any] = {
    "numpy": lambda path: (X, Y),
    "list": lambda path: [X.tolist(), Y],
    "paths": lambda path: (store(path, "x", X), store(path, "y", Y)),
    "dask": lambda path: (da.from_array(X, chunks=(300, 2)), da.from_array(Y, chunks=(450, 4))),
    "numpy and dask": lambda path: (X, da.from_array(Y, chunks=(300, 4))),
    "dask and path": lambda path: (da.from_array(X, chunks=(300, 2)), store(path, "y", Y)),
    "xarray": lambda path: tuple(xr.DataArray(a, dims=("row", "column")) for a in (X, Y)),
}


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_any_array_on_any_scheduler_the_same_bits(kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    pair, models = CONTAINERS[kind](tmp_path), []
    for options in ({"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 3}):
        with dask.config.set(**options):
            models.append(make(constant=True, min_support=0.0).fit(pair))
    assert_same_bits(models[0].moments_, models[1].moments_)
    np.testing.assert_array_equal(models[0].right_coefficients_, models[1].right_coefficients_)
    for name, wanted in fitted.moments_.arrays.items():
        np.testing.assert_allclose(models[0].moments_.arrays[name], wanted, rtol=1e-11, atol=1e-9)
    for x, apply in zip(pair, (models[0].transform, models[0].transform_right), strict=True):
        assert np.asarray(apply(x)).shape == (N, 4)


def test_landmarks_are_rows_of_their_own_side() -> None:
    model = make(kernel=Gaussian(1.0), right_kernel=Exponential(2.0), min_support=0.0).fit((X, Y))
    for side, rows in ((model.basis_, X), (model.right_basis_, Y)):
        assert all((landmark == rows).all(axis=1).any() for landmark in side.landmarks)
    assert repr(model.right_basis_.kernel) == repr(Exponential(2.0))
    assert model.moments_.count == N  # the form has no derivatives: nothing is left out
    median = make(min_support=0.0).fit((X, 100 * Y))
    assert median.right_basis_.kernel.scale > 20 * median.kernel_.scale  # each from its own points


def test_columns_and_standardization_of_each_side() -> None:
    model = make(columns=[2, 0], standardize=True, landmarks=X[:9], right_landmarks=Y[:7], min_support=0.0)
    model.set_params(kernel=Gaussian(1.0)).fit((X, Y), sample_weight=WEIGHT)
    z = [(a - np.average(a, 0, WEIGHT)) / np.sqrt(np.cov(a.T, aweights=WEIGHT, ddof=0).diagonal()) for a in (X, Y)]
    manual = make(kernel=Gaussian(1.0), landmarks=z[0][:9, [2, 0]], right_landmarks=z[1][:7], min_support=0.0)
    manual.fit((z[0][:, [2, 0]], z[1]), sample_weight=WEIGHT)
    np.testing.assert_allclose(model.moments_.arrays["form"], manual.moments_.arrays["form"], rtol=1e-10)
    np.testing.assert_allclose(model.transform_right(Y), manual.transform_right(z[1]), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.transform(X), manual.transform(z[0][:, [2, 0]]), rtol=1e-6, atol=1e-8)
    assert (model.n_features_in_, model.n_right_features_in_) == (3, 4)


def test_invalid_rows_of_either_side() -> None:
    x, y = X.copy(), Y.copy()
    x[700, 1], y[300, 2], y[700, 0] = np.nan, np.inf, np.nan
    for options in ({}, {"standardize": True}, {"landmarks": X[:5], "right_landmarks": Y[:5]}):
        with pytest.raises(
            dsp.InvalidRowError, match="row 300 is the first that cannot be used: y holds inf in column 2"
        ):
            make(**options).fit((x, y))
    model = make(landmarks=X[:5], right_landmarks=Y[:5], min_support=0.0).fit((x, y), on_invalid="skip")
    assert (model.moments_.skipped, model.moments_.count) == (2, N - 2)
    with pytest.raises(dsp.InvalidRowError, match="row 300"):
        model.transform_right(y)


def test_augmented_views_are_prepared_alike() -> None:
    views = (X, X + 0.1, X - 0.1)
    model = make(Augmentation(3), standardize=True, kernel=Gaussian(1.0), landmarks=X[:9], min_support=0.0).fit(views)
    assert model.moments_.count == N
    assert abs(model.eigenvalues_[0]) < 1e-12
    phi = [model.basis_.values((v - X.mean(axis=0)) / X.std(axis=0)) for v in views]
    np.testing.assert_allclose(model.moments_.mean("gram"), sum(p @ p.T for p in phi) / (3 * N), rtol=1e-9)
    between = sum((a - b) @ (a - b).T for i, a in enumerate(phi) for b in phi[:i]) / (3 * N)
    np.testing.assert_allclose(model.moments_.mean("form"), between, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="x2 has 4 columns and X has 3; they are views of the same points"):
        make(Augmentation(3)).fit((X, X, Y))


# -- fields ------------------------------------------------------------------------------------------------------------

POTENTIAL = (X**2).sum(axis=1)
FACTOR = RNG.standard_normal((3, 3, 2))
SIGMA = np.einsum("abm,n->nabm", FACTOR, 1 + X[:, 0] ** 2)[:, :, 0]  # (n, d, m)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("kind", ["numpy", "path", "dask", "mixed"])
def test_fields_of_any_kind_and_shape(kind: str, tmp_path: Path) -> None:
    as_kind = {
        "numpy": lambda a, name: a,
        "path": lambda a, name: store(tmp_path, name, a),
        "dask": lambda a, name: da.from_array(a, chunks=300),
        "mixed": lambda a, name: store(tmp_path, name, a) if name == "x" else a,
    }[kind]
    x = as_kind(X, "x")
    options = {"kernel": Gaussian(2.0), "landmarks": X[:9], "constant": False, "min_support": 0.0}
    centred = X[None] - X[:9, None]
    phi = np.exp(-(centred**2).sum(axis=2) / 8)
    slope = -centred / 4 * phi[..., None]
    model = make(Schroedinger(), **options).fit(x, fields={"potential": as_kind(POTENTIAL, "v")})
    wanted = np.einsum("ika,jka->ij", slope, slope) + np.einsum("ik,jk,k->ij", phi, phi, POTENTIAL)
    np.testing.assert_allclose(model.moments_.arrays["form"], wanted, rtol=1e-9)
    sigma = {"diffusion": as_kind(SIGMA, "sigma")}
    model = make(AnisotropicDiffusion(factored=True), **options).fit(x, fields=sigma, sample_weight=WEIGHT)
    along = np.einsum("ika,kam->ikm", slope, SIGMA)
    np.testing.assert_allclose(
        model.moments_.arrays["form"], np.einsum("ikm,jkm,k->ij", along, along, WEIGHT), rtol=1e-9, atol=1e-9
    )


def test_fields_at_rows_that_cannot_be_used() -> None:
    broken = SIGMA.copy()
    broken[5, 1, 0] = np.nan
    model = make(AnisotropicDiffusion(factored=True), kernel=Gaussian(2.0))
    with pytest.raises(dsp.InvalidRowError, match=r"row 5 is the first .*: diffusion holds NaN in column \(1, 0\)"):
        model.fit(X, fields={"diffusion": broken})
    lost = POTENTIAL.copy()
    lost[[7, 9]] = np.inf
    with pytest.raises(dsp.InvalidRowError, match=r"row 7 is the first .*: potential is inf"):
        make(Schroedinger(), kernel=Gaussian(2.0)).fit(X, fields={"potential": lost})
    skipped = make(Schroedinger(), kernel=Gaussian(2.0)).fit(X, fields={"potential": lost}, on_invalid="skip")
    assert skipped.moments_.skipped == 2


def test_landmarks_are_left_out_for_derivatives_only() -> None:
    values_only = BilinearForm(form(lambda f, g, x: inner(f, g, weight=x.potential)), solver="symmetric")
    fields = {"potential": POTENTIAL}
    for operator, count in ((Schroedinger(), N - 25), (values_only, N)):
        for exclude, left in ((True, count), (False, N), (None, N)):
            model = make(operator, min_support=0.0, exclude_landmarks=exclude)
            assert model.fit(X, fields=fields).moments_.count == left
    every = make(values_only, n_landmarks=30, n_components=2, min_support=0.0)
    assert every.fit(X[:30], fields={"potential": POTENTIAL[:30]}).moments_.count == 30


# -- bases of the user -------------------------------------------------------------------------------------------------


def test_a_basis_takes_the_place_of_a_kernel() -> None:
    landmarks = X[:9]
    by_kernel = make(Laplacian(), kernel=Gaussian(2.0), landmarks=landmarks).fit(X)
    by_basis = make(Laplacian(), basis=LandmarkBasis(Gaussian(2.0), landmarks)).fit(X)
    assert_same_bits(by_kernel.moments_, by_basis.moments_)
    assert (by_basis.plan(X).memory.tasks, by_basis.plan(X).memory.sums) == (
        by_kernel.plan(X).memory.tasks,
        by_kernel.plan(X).memory.sums,
    )
    for basis, size in (
        (MonomialBasis(3, 2), 10),  # it has the constant
        (MonomialBasis(3, 2, constant=False), 10),
        (Concatenated((MonomialBasis(3, 1), by_kernel.basis_.parts[1])), 13),
        (Concatenated((ConstantBasis(3), by_kernel.basis_.parts[1])), 10),
    ):
        model = make(Laplacian(), basis=basis).fit(X)
        assert model.basis_.size == size == model.coefficients_.shape[0]
        assert abs(model.eigenvalues_[0]) < 1e-12
    assert (
        make(Laplacian(), basis=MonomialBasis(3, 1, constant=False), constant=False, n_components=2)
        .fit(X)
        .eigenvalues_[0]
        > 1e-3
    )


def test_singular_values_between_two_bases_of_the_same_points() -> None:
    left, right = MonomialBasis(3, 2), MonomialBasis(3, 1)
    half = BilinearForm(form(lambda f, g, x: inner(f, g)), solver="singular")
    model = make(half, basis=left, right_basis=right).fit(X)
    np.testing.assert_allclose(model.singular_values_, 1, atol=1e-9)  # the right span is within the left
    assert model.rank_ == (10, 4)
    weighted = BilinearForm(form(lambda f, g, x: inner(f, g, weight=x.potential)), solver="singular")
    moments = make(weighted, basis=left, right_basis=right).fit(X, fields={"potential": POTENTIAL}).moments_
    values = right.values(X)
    np.testing.assert_allclose(moments.arrays["right_gram"], values @ values.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments.arrays["right_first"], values.sum(axis=1), rtol=1e-9, atol=1e-9)
    slopes = BilinearForm(form(lambda f, g, x: inner(grad(f), grad(g))), solver="singular")
    same = make(slopes, basis=left).fit(X)
    symmetric = make(Laplacian(), basis=left, n_components=10).fit(X)
    np.testing.assert_allclose(same.singular_values_, symmetric.eigenvalues_[::-1][:4], rtol=1e-9)
    assert same.moments_.right_basis is None


# -- models ------------------------------------------------------------------------------------------------------------

MODELS: dict[str, tuple[Any, dict[str, Any], Any, dict[str, Any]]] = {
    "cross": (Cross(), {"right_kernel": Exponential(3.0), "standardize": True, "columns": [0, 2]}, (X, Y), {}),
    "given": (Cross(center=True), {"landmarks": X[:6], "right_landmarks": Y[:8]}, (X, Y), {}),
    "bases": (Cross(), {"basis": MonomialBasis(3, 1), "right_basis": MonomialBasis(4, 2)}, (X, Y), {}),
    "transfer": (Transfer(3), {}, [X[:900], X[900:]], {}),
    "eigen": (Transfer(3, solver="eigen"), {}, X, {}),
    "generator": (Generator(diffusion=1.0), {"basis": MonomialBasis(3, 2)}, X, {"drift": -X}),
    "fields": (Schroedinger(), {"kernel": Gaussian(2.0)}, X, {"potential": POTENTIAL}),
}


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_bit_for_bit(name: str, tmp_path: Path) -> None:
    operator, options, x, fields = MODELS[name]
    model = make(operator, min_support=0.0, **options).fit(x, fields=fields)
    model.save(tmp_path / "m.zarr")
    again = dsp.SpectralDecomposition.load(tmp_path / "m.zarr")
    assert_same_bits(again.moments_, model.moments_)
    learned = {key for key in vars(model) if key.endswith("_")}
    assert {key for key in vars(again) if key.endswith("_")} == learned
    for key in ("singular_values_", "eigenvalues_", "coefficients_", "right_coefficients_", "left_coefficients_"):
        assert (key in learned) == hasattr(again, key)
        if key in learned:
            np.testing.assert_array_equal(getattr(again, key), getattr(model, key))
            assert getattr(again, key).dtype == getattr(model, key).dtype
    assert again.rank_ == model.rank_
    assert type(again.rank_) is (tuple if operator.solver.two_sided else int)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    if operator.solver.two_sided:
        points = Y if operator.own_right_basis else X
        np.testing.assert_array_equal(again.transform_right(points), model.transform_right(points))
    again.fit(x, fields=fields)
    np.testing.assert_array_equal(again.coefficients_, model.coefficients_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))
    assert clone(model).get_params().keys() == again.get_params().keys()


def test_complex_functions_go_where_real_ones_go(tmp_path: Path) -> None:
    model = make(Transfer(3, solver="eigen"), min_support=0.0).fit(X)
    wanted = model.transform(X)
    assert wanted.dtype == np.complex128
    for x in (da.from_array(X, chunks=(300, 2)), store(tmp_path, "x", X), xr.DataArray(X, dims=("row", "column"))):
        found = model.transform(x)
        assert found.dtype == np.complex128
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-9, atol=1e-9)
    model.transform(X, out=tmp_path / "out.zarr")
    np.testing.assert_allclose(written(tmp_path / "out.zarr"), wanted, rtol=1e-9, atol=1e-9)
    broken = X.copy()
    broken[3] = np.nan
    assert np.isnan(model.transform(broken, on_invalid="skip")[3]).all()


def test_attributes_are_those_of_the_last_fit() -> None:
    model = make(min_support=0.0, n_components=2).fit((X, Y))
    assert hasattr(model, "transform_right")
    assert not hasattr(model, "eigenvalues_")
    assert not hasattr(model, "transform_left")
    model.set_params(operator=Laplacian()).fit(X)
    for name in ("singular_values_", "right_coefficients_", "right_basis_", "right_preparation_", "transform_right"):
        assert not hasattr(model, name)
    assert isinstance(model.rank_, int)
    moments = make(min_support=0.0, n_components=2).fit((X, Y)).moments_
    assert hasattr(dsp.SpectralDecomposition(n_components=2, min_support=0.0).fit_moments(moments), "transform_right")
    with pytest.raises(NotFittedError):
        make().transform_right(Y)


def test_appended_pairs_are_folded_in() -> None:
    options = {"landmarks": X[:9], "right_landmarks": Y[:9], "kernel": Gaussian(2.0), "min_support": 0.0}
    model, whole = make(**options).fit((X[:900], Y[:900])), make(**options).fit((X, Y))
    model.update((X, Y))
    np.testing.assert_allclose(model.moments_.arrays["form"], whole.moments_.arrays["form"], rtol=1e-11)
    np.testing.assert_allclose(model.singular_values_, whole.singular_values_, rtol=1e-8)
    with pytest.raises(ValueError, match="y has 3 columns, and the model was fitted on 4"):
        model.update((X, Y[:, :3]))
    with pytest.raises(ValueError, match="X has 2000 rows, and the model has seen 2000"):
        model.update((X, Y))
    other = make(**options).fit((X[:900], Y[:900]))
    with pytest.raises(ValueError, match="y differs from what was measured in rows 0 to 900"):
        other.update((X, Y + 1))
    potential = make(Schroedinger(), kernel=Gaussian(2.0), landmarks=X[:9])
    first = potential.fit(X[:900], fields={"potential": POTENTIAL[:900]}).update(X, fields={"potential": POTENTIAL})
    whole = clone(potential).fit(X, fields={"potential": POTENTIAL})
    np.testing.assert_allclose(first.moments_.arrays["form"], whole.moments_.arrays["form"], rtol=1e-11)


def test_a_checkpoint_is_of_all_fields(tmp_path: Path) -> None:
    paths = store(tmp_path, "x", X), store(tmp_path, "y", Y)
    model = make(min_support=0.0).fit(paths, checkpoint=tmp_path / "run", checkpoint_every=0)
    again = make(min_support=0.0).fit(paths, checkpoint=tmp_path / "run")
    assert_same_bits(again.moments_, model.moments_)
    with pytest.raises(ValueError, match=r"is of another run: y files \(then"):
        make(min_support=0.0).fit((paths[0], store(tmp_path, "y2", 2 * Y)), checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="is of another run: parameter right_kernel"):
        make(min_support=0.0, right_kernel=Gaussian(1.0)).fit(paths, checkpoint=tmp_path / "run")
    paths = paths[0], store(tmp_path, "v", POTENTIAL)
    one = make(Schroedinger(), kernel=Gaussian(2.0))
    one.fit(paths[0], fields={"potential": paths[1]}, checkpoint=tmp_path / "fields")
    with pytest.raises(ValueError, match=r"is of another run: potential .*\(then"):
        one.fit(paths[0], fields={"potential": POTENTIAL}, checkpoint=tmp_path / "fields")


def test_a_store_of_the_other_side_that_is_not_whole(tmp_path: Path) -> None:
    paths = store(tmp_path, "x", X), store(tmp_path, "y", Y)
    (tmp_path / "y" / "c" / "2" / "0").unlink()
    with pytest.raises(OSError, match=r"y is not whole: chunk c/2/0 \(rows 600 to 900\) is missing"):
        make().fit(paths)


def test_pictures_of_singular_and_complex_values() -> None:
    model = make(min_support=0.0, n_components=3).fit((X, Y))
    axes = plot.spectrum(model)
    assert axes.get_ylabel() == "singular value"
    titles = [a.get_title() for a in plot.eigenfunctions(model, X, max_points=300).axes]
    assert any(title.startswith(r"$\sigma_{2}") for title in titles)
    turning = make(Generator(diffusion=1.0), basis=MonomialBasis(2, 1), n_components=3)
    turning.fit(X[:, :2], fields={"drift": X[:, :2] @ [[-1, 2], [-2, -1]]})
    axes = plot.spectrum(turning, exact=[0, -1 + 2j, -1 - 2j])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("real part", "imaginary part")
    np.testing.assert_allclose(axes.lines[-1].get_ydata(), [0, 2, -2])
    titles = [a.get_title() for a in plot.eigenfunctions(turning, X[:, :2], max_points=300).axes]
    assert titles[1:] == [r"$\lambda_{1} = -1.00 + 2.00 i$", r"$\lambda_{2} = -1.00 - 2.00 i$"]


# -- refused -----------------------------------------------------------------------------------------------------------

VALUE = {"kernel": Gaussian(2.0)}
REFUSED: list[tuple[Any, dict[str, Any], Any, Any, type[Exception], str]] = [
    (Cross(), {}, X, {}, ValueError, r"cross takes 2 views of each row: fit\(\(x, y\)\); X is a ndarray"),
    (Cross(), {}, (X,), {}, ValueError, r"cross takes 2 views of each row.*X is a tuple of 1"),
    (Cross(), {}, (X, Y[:7]), {}, ValueError, "y has 7 rows and X has 2000; they go together row by row"),
    (Cross(), {}, (X, Y[:, 0]), {}, ValueError, r"y must have 2 dimensions.*y.reshape\(-1, 1\)"),
    (Augmentation(), {}, (X, Y), {}, ValueError, "x1 has 4 columns and X has 3"),
    (Laplacian(), {}, (X, X), {}, ValueError, r"X is a tuple of 2 arrays, such as trajectories or views"),
    (Cross(), {"right_landmarks": X[:5]}, (X, Y), {}, ValueError, r"an array \(p, 4\), one column for each of y"),
    (Cross(), {"right_landmarks": "best"}, (X, Y), {}, ValueError, "right_landmarks must be 'uniform' or"),
    (Cross(), {"right_kernel": 3}, (X, Y), {}, TypeError, "kernel must be one of daskspectral.kernels"),
    (Cross(), {"basis": 3}, (X, Y), {}, TypeError, "basis must be one of daskspectral.basis"),
    (Cross(), {"basis": MonomialBasis(2, 1), "right_kernel": Gaussian(1.0)}, (X, Y), {}, ValueError,
     "basis has functions of 2 variables"),
    (Cross(), {"right_basis": MonomialBasis(3, 1)}, (X, Y), {}, ValueError, "right_basis has .* and y has 4 columns"),
    (Cross(), {"basis": MonomialBasis(3, 1), **VALUE}, (X, Y), {}, ValueError, "give it or kernel, not both"),
    (Cross(), {"basis": MonomialBasis(3, 1), "landmarks": X}, (X, Y), {}, ValueError, "it or landmarks, not both"),
    (Laplacian(), {"right_kernel": Gaussian(1.0)}, X, {}, ValueError, "right_kernel is for operators with singular"),
    (Cross(), {"ridge": 0.1}, (X, Y), {}, ValueError, "ridge is for symmetric operators, and cross is solved by"),
    (Laplacian(), {"basis": MonomialBasis(3, 2)}, X, {"v": Y}, ValueError, "reads no fields; fields also has v"),
    (BilinearForm(form(lambda f, g, x: inner(f, at(g, x.y)))), VALUE, X, {"y": Y}, ValueError,
     r"takes functions at y, which is a view of each row, not a field: give it as fit\(\(x, y\)\)"),
    (Schroedinger(), VALUE, X, {}, ValueError, "potential missing: give them as fields"),
    (Schroedinger(), VALUE, X, {"potential": None}, ValueError, "potential missing"),
    (Schroedinger(), VALUE, X, {"potential": POTENTIAL[:9]}, ValueError, "potential has 9 rows and X has 2000"),
    (Schroedinger(), VALUE, X, {"potential": X}, ValueError, r"potential has rows of shape \(3,\)"),
    (Schroedinger(), VALUE, X, [POTENTIAL], TypeError, "fields is a mapping of names to arrays; it is list"),
    (Generator(diffusion=1.0), {**VALUE, "standardize": True}, X, {"drift": X}, ValueError,
     r"standardize=True would change the units of X and not the units of drift"),
    (Generator(reversible=True), {**VALUE, "standardize": True}, X, {"diffusion": SIGMA}, ValueError,
     "not the units of diffusion, which the operator generator multiplies with derivatives"),
    (BilinearForm(form(lambda f, g, x: inner(f, g)), solver="symmetric", center=True), VALUE, X, {}, ValueError,
     "center is for operators with singular values"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "options", "x", "fields", "error", "match"), REFUSED)
def test_refused_before_any_work(
    operator: Any, options: dict[str, Any], x: Any, fields: Any, error: type[Exception], match: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("daskspectral.engine.run.active_scheduler", None)  # nothing is sent
    for call in ("fit", "plan"):
        with pytest.raises(error, match=match):
            getattr(make(operator, **options), call)(x, fields=fields)


@pytest.mark.parametrize(
    ("operator", "options", "fields", "match"),
    [
        (Schroedinger(), {}, {"potential": POTENTIAL}, "and schroedinger adds products of 0 and 2 derivatives in all"),
        (Generator(diffusion=1.0, reversible=True), {}, None, "generator has diffusion=1 in them; scale the"),
        (PartialDerivative(0), {}, None, "and partial derivative takes derivatives along directions in them"),
        (DifferentialOperator({((1, 0, 0), (1, 0, 0)): 1.0}), {}, None, "takes derivatives along directions in them"),
        (Laplacian(Sphere(3)), {"landmarks": X[:9]}, None, "takes derivatives along directions in them"),
        (BilinearForm(form(lambda f, g, x: inner(f, g) + inner(grad(f), grad(g)))), {}, None, "0 and 2 derivatives"),
        (BilinearForm(form(lambda f, g, x: inner(f, g + second(g)))), {}, None, "adds products of 0 and 2 derivatives"),
        (BilinearForm(form(lambda f, g, x: inner(f, g)), left_gram=form(lambda f, g, x: inner(f, g) + inner(
            grad(f), grad(g)))), {}, None, "adds products of 0 and 2 derivatives"),
    ],
)  # fmt: skip
def test_standardize_is_refused_where_units_mix(operator: Any, options: Any, fields: Any, match: str) -> None:
    with pytest.raises(ValueError, match=f"standardize=True would change the units of X, .*{match}"):
        make(operator, standardize=True, kernel=Gaussian(1.0), **options).fit(X, fields=fields)


def test_standardize_goes_with_values_gradients_and_laplacians() -> None:
    weighed = SymmetricForm(form(lambda f, g, x: inner(f, g, weight=x.potential)))
    curved = BilinearForm(form(lambda f, g, x: inner(f, second(g))), solver="eigen")
    for operator, fields in [(weighed, {"potential": POTENTIAL}), (curved, None), (Laplacian(), None)]:
        model = make(operator, standardize=True, kernel=Gaussian(1.0)).fit(X, fields=fields)
        by_hand = make(operator, kernel=Gaussian(1.0)).fit((X - X.mean(axis=0)) / X.std(axis=0), fields=fields)
        np.testing.assert_allclose(model.eigenvalues_, by_hand.eigenvalues_, rtol=1e-7, atol=1e-9)


def test_moments_of_another_operator_are_refused() -> None:
    model = make(Schroedinger(), kernel=Gaussian(1.0), min_support=0.0).fit(X, fields={"potential": POTENTIAL})
    moments = model.moments_
    match = r"moments of Schroedinger\(potential='potential'\), and the operator of this estimator is Laplacian"
    with pytest.raises(ValueError, match=match):
        make(Laplacian()).fit_moments(moments)
    for operator in (None, Schroedinger()):
        model = dsp.SpectralDecomposition(operator, n_components=4, min_support=0.0).fit_moments(moments)
        assert model.moments_.operator == Schroedinger()
    hermite = dsp.HermiteRegressor(kernel=Gaussian(1.0), n_landmarks=9, random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="moments of a regression, not of an operator; solve them with Hermite"):
        dsp.SpectralDecomposition().fit_moments(hermite.moments_)


def test_fit_transform_takes_one_array() -> None:
    with pytest.raises(ValueError, match="fit_transform takes one array"):
        make().fit_transform((X, Y))
    assert make(Transfer(2), min_support=0.0).fit_transform(X).shape == (N, 4)


def test_smoothness_of_each_side() -> None:
    values = BilinearForm(form(lambda f, g, x: inner(f, at(g, x.y))), own_right_basis=True)
    assert make(values, min_support=0.0, right_basis=_Rough(4), n_components=1).fit((X, Y)).rank_[1] == 1
    sloping = form(lambda f, g, x: inner(grad(f), grad(g)))
    operator = BilinearForm(sloping, solver="singular")
    with pytest.raises(dsp.SmoothnessError, match="takes derivatives of order 1"):
        make(operator, kernel=Gaussian(1.0), right_basis=_Rough(3)).fit(X)
    with pytest.raises(dsp.SmoothnessError, match="takes derivatives of order 1"):
        make(operator, basis=_Rough(3), right_kernel=Gaussian(1.0)).fit(X)
    one_sided = BilinearForm(form(lambda f, g, x: inner(f, partial(g, 1, 0, 0))), solver="singular")
    with pytest.raises(dsp.SmoothnessError, match="takes derivatives of order 1"):
        make(one_sided, basis=_Rough(3)).fit(X)
    assert make(one_sided, basis=_Rough(3), right_basis=MonomialBasis(3, 1), n_components=1).fit(X).rank_ == (1, 4)


class _Rough(ConstantBasis):
    """A basis without derivatives."""

    @property
    def order(self) -> float:
        return 0
