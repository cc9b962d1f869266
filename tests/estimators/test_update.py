"""`update` folds in rows that were appended to the very array that was measured, and refuses any other."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.data.readers import ZarrReader
from tests.common import assert_close, doubtful

X = np.random.default_rng(0).standard_normal((6000, 2))
Y, SLOPES = np.sin(X[:, 0]), np.cos(X)
BASIS = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.5), points=X[:20])


def spectral(operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(operator, BASIS, n_components=3, **options)


def hermite(**options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(BASIS, alpha=1e-3, **options)


def stored(path: Path, x: np.ndarray = X[:5500]) -> zarr.Array[Any]:
    """Rows in chunks of 1000, of which the last may be short."""
    return zarr.create_array(path, data=x, chunks=(1000, *x.shape[1:]))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """The names of stores, each with the thousand of rows that was read."""
    seen, plain = set(), ZarrReader.read

    def read(self: ZarrReader, start: int, stop: int) -> Any:
        seen.update((Path(self.name).name, k) for k in range(start // 1000, -(-stop // 1000)))
        return plain(self, start, stop)

    monkeypatch.setattr(ZarrReader, "read", read)
    return seen


MODELS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lattice": (dsp.SpectralDecomposition(basis=dsp.basis.FourierLattice(3, box=[(-5, 5)] * 2), n_components=4), ()),
    "trajectory": (spectral(dsp.operators.Transfer(2)), ()),
    "invariant": (dsp.InvariantRegressor(n_eigenfunctions=9), (Y, SLOPES)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_rows_that_were_rewritten_are_refused_wherever_they_are(tmp_path: Path, name: str, small_tasks: None) -> None:
    """Behind the first rows too: they would be in the sums as they were."""
    model, values = clone(MODELS[name][0]), MODELS[name][1]
    array = stored(tmp_path / "x.zarr")
    model.fit(str(tmp_path / "x.zarr"), *(v[:5500] for v in values))
    array[2000:5000] = 1 + X[:3000]
    array.append(X[5500:])
    with pytest.raises(ValueError, match=r"measured in (rows|pairs) [12]\d\d\d to 2\d\d\d"):
        model.update(str(tmp_path / "x.zarr"), *values)
    array[2000:5000] = X[2000:5000]
    assert model.update(str(tmp_path / "x.zarr"), *values).moments_.rows == 6000 - 2 * (name == "trajectory")


@pytest.mark.parametrize("field", ["y", "gradients", "weight", "fold"])
def test_every_field_is_compared(field: str) -> None:
    data = {"y": Y, "gradients": SLOPES, "weight": np.ones(6000), "fold": np.arange(6000) % 4}

    def given(n: int) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
        return (X[:n], data["y"][:n], data["gradients"][:n]), {"sample_weight": data["weight"][:n]}

    rows, options = given(3000)
    model = hermite(folds=data["fold"][:3000]).fit(*rows, **options)
    data[field] = data[field].copy()
    data[field][2999] += 1
    rows, options = given(6000)
    label = {"weight": "sample_weight", "fold": "folds"}.get(field, field)
    with pytest.raises(ValueError, match=f"{label} differs from what was measured in rows 0 to 3000, and an update"):
        model.update(*rows, folds=data["fold"] % 4, **options)


@doubtful
def test_rows_are_appended_within_a_block_of_labelled_data(tmp_path: Path) -> None:
    path, models = str(tmp_path / "x.nc"), [spectral() for _ in range(2)]
    for model, n in zip(models, (450, 600), strict=True):
        xr.Dataset({"t": (("time", "c"), X[:n])}, coords={"time": np.arange(n)}).to_netcdf(path)
        model.fit(dsp.Rows(path, sample_dims=("time",)))
    one, other = (model.moments_.mean("gram") for model in (models[0].update(path), models[1]))
    assert_close(one, other, 1e-12)


def test_only_what_may_have_changed_is_read_again(
    tmp_path: Path, small_tasks: None, reads: set[tuple[str, int]]
) -> None:
    """The rows of the task with the last chunk, which was short and was written anew; later all of a copy, once."""
    x = stored(tmp_path / "x.zarr")
    model = hermite().fit(str(tmp_path / "x.zarr"), Y[:5500])
    x.append(X[5500:5800])
    reads.clear()
    model.update(str(tmp_path / "x.zarr"), Y[:5800])
    assert reads == {("x.zarr", 4), ("x.zarr", 5)}
    shutil.copytree(tmp_path / "x.zarr", tmp_path / "copy.zarr", copy_function=shutil.copyfile)
    zarr.open_array(tmp_path / "copy.zarr").append(X[5800:])
    reads.clear()
    model.update(str(tmp_path / "copy.zarr"), Y)
    assert reads == {("copy.zarr", k) for k in range(6)}


@doubtful
def test_moments_of_several_arrays(tmp_path: Path) -> None:
    first, second = spectral().fit(X[:2000]), spectral().fit(X[2000:5000])
    both = first.fit_moments(sum([first.moments_, second.moments_]))
    dsp.save(both, tmp_path / "both.zarr")
    for model in (both, dsp.load(tmp_path / "both.zarr")):
        with pytest.raises(ValueError, match=r"added up from several arrays"):
            model.update(X)


@doubtful
@pytest.mark.parametrize("operator", [dsp.operators.Covariance(), None], ids=repr)
@pytest.mark.parametrize(("shift", "warns"), [(0.0, False), (1.0, False), (8.0, True)])
def test_rows_beyond_the_landmarks_are_warned_of(operator: Any, shift: float, warns: bool) -> None:
    rows, basis = (
        np.vstack([X[:400], X[400:1000] + np.array([shift, 0])]),
        dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 60),
    )
    model = dsp.SpectralDecomposition(operator, basis, n_components=3, folds="random", random_state=0).fit(rows[:400])
    assert any("landmarks represent" in doubt for doubt in model.update(rows).doubts_) == warns
