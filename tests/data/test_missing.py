"""A chunk that is not there is an error where it is read, whoever reads it: never fill values in silence."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sklearn.base import clone
from zarr.storage import MemoryStore, ZipStore

import daskspectral as dsp
from daskspectral.data.readers import ZarrReader, zarr_reader

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4000, 4))
LAYOUTS: dict[str, dict[str, Any]] = {
    "v2": {"zarr_format": 2},
    "v3": {"zarr_format": 3},
    "sharded": {"shards": (2000, 4)},
    "columns": {"chunks": (1000, 2)},
    "NaN": {"fill_value": np.nan},
}


def written(path: Path, **layout: Any) -> zarr.Array[Any]:
    return zarr.create_array(path, data=X, **({"chunks": (1000, 4), "fill_value": 0} | layout))


def fitted(x: Any, **options: Any) -> dsp.SpectralDecomposition:
    kernel = dsp.kernels.Gaussian(2.0)
    return dsp.SpectralDecomposition(kernel=kernel, landmarks=X[:10], n_components=3).fit(x, **options)


def last_chunk(path: Path) -> Path:
    return max(p for p in path.rglob("*") if p.is_file() and "zarr" not in p.name and not p.name.startswith(".z"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_chunk_that_vanishes_is_missed_where_it_is_read(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "x.zarr"
    reader = zarr_reader(written(path, **LAYOUTS[layout]))
    model = fitted(str(path))
    np.testing.assert_array_equal(reader.read(100, 3900), X[100:3900])
    last_chunk(path).unlink()
    np.testing.assert_array_equal(reader.read(100, 1900), X[100:1900])
    with pytest.raises(
        OSError, match=rf"chunk .* \(rows \d000 to 4000\) is missing for this process \(pid {os.getpid()}"
    ):
        reader.read(1900, 3900)
    with pytest.raises(OSError, match=r"is missing for this process"):
        model.transform(str(path)).compute(scheduler="synchronous")
    with pytest.raises(OSError, match=r"x\.zarr is not whole: chunk .* is missing"):
        model.transform(str(path), out=tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()
    if layout != "NaN":
        assert fitted(str(path), allow_missing=True).moments_.count == len(X)
        assert np.isfinite(model.transform(str(path), allow_missing=True).compute()).all()


def test_zeros_that_are_there_are_data(tmp_path: Path) -> None:
    x = X.copy()
    x[1000:3000] = 0
    config = {"write_empty_chunks": True}
    array = zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(1000, 4), fill_value=0, config=config)
    np.testing.assert_array_equal(zarr_reader(array).read(0, 4000), x)
    assert fitted(str(tmp_path / "x.zarr")).moments_.count == len(x)


def test_stores_of_other_kinds_are_asked_too(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "x.zip", mode="w") as store:
        array = zarr.create_array(store, shape=X.shape, chunks=(1000, 4), dtype=float, fill_value=0)
        array[:3000] = X[:3000]
    with ZipStore(tmp_path / "x.zip", mode="r") as store:
        array = zarr.open_array(store, mode="r")
        with pytest.raises(OSError, match=r"chunk c/3/0 .* is missing for this process"):
            fitted(array)
        assert fitted(array, allow_missing=True).moments_.count == len(X)


def test_arrays_in_memory_are_asked_too() -> None:
    array = zarr.create_array(MemoryStore(), shape=X.shape, chunks=(1000, 4), dtype=float, fill_value=0)
    array[:3000] = X[:3000]
    with pytest.raises(OSError, match=r"chunk c/3/0 .* is missing for this process"):
        fitted(array)
    assert fitted(array, allow_missing=True).moments_.count == len(X)


def test_a_store_that_goes_away_during_the_run_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, decoded = tmp_path / "x.zarr", ZarrReader._decoded
    written(path)

    def away(self: ZarrReader, start: int, stop: int) -> Any:
        if start >= 2000:
            with suppress(FileNotFoundError):  # another thread was first
                path.rename(tmp_path / "elsewhere.zarr")
        return decoded(self, start, stop)

    with monkeypatch.context() as patch:
        patch.setattr("daskspectral.engine.plan.LEAST_FLOPS", 1.0)
        patch.setattr("daskspectral.passes.folds.SHORT_EPOCH", 16)  # the last chunks are not read with the first
        patch.setattr(ZarrReader, "_decoded", away)
        with pytest.raises(OSError, match=r"chunk c/[23]/0 .* is missing for this process"):
            fitted(str(path), checkpoint=tmp_path / "run.checkpoint", checkpoint_every=0.0)
    (tmp_path / "elsewhere.zarr").rename(path)
    resumed = fitted(str(path), checkpoint=tmp_path / "run.checkpoint").moments_
    assert resumed.count == len(X)
    np.testing.assert_allclose(resumed.arrays["gram"], fitted(str(path)).moments_.arrays["gram"], rtol=1e-12)


@pytest.mark.parametrize("codec", ["gzip", "zlib", "lzma"])
def test_damage_under_any_codec_names_the_chunk(tmp_path: Path, codec: str) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    compressor = {"gzip": numcodecs.GZip, "zlib": numcodecs.Zlib, "lzma": numcodecs.LZMA}[codec]()
    written(tmp_path / "x.zarr", zarr_format=2, compressors=compressor)
    chunk = last_chunk(tmp_path / "x.zarr")
    chunk.write_bytes(chunk.read_bytes()[: chunk.stat().st_size // 2])
    with pytest.raises(OSError, match=r"cannot be decoded in chunk 3 along the rows"):
        fitted(str(tmp_path / "x.zarr"))


@pytest.mark.parametrize("layout", [2, 3])
def test_a_blosc_file_that_was_cut_short_is_found_before_it_is_decoded(tmp_path: Path, layout: int) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    compressor = numcodecs.Blosc() if layout == 2 else zarr.codecs.BloscCodec()
    written(tmp_path / "x.zarr", zarr_format=layout, compressors=compressor)
    assert fitted(str(tmp_path / "x.zarr")).moments_.count == len(X)
    chunk = last_chunk(tmp_path / "x.zarr")
    for kept in (chunk.stat().st_size // 2, 7):
        chunk.write_bytes(chunk.read_bytes()[:kept])
        with pytest.raises(OSError, match=rf"has {kept} bytes, and its Blosc header promises \d+: the file was cut"):
            fitted(str(tmp_path / "x.zarr"))


ROWS = 90
FIELDS = {
    "x": RNG.uniform(-1, 1, (ROWS, 2)),
    "y": RNG.uniform(-1, 1, ROWS),
    "gradients": RNG.uniform(-1, 1, (ROWS, 2)),
    "weight": RNG.uniform(1, 2, ROWS),
}
LANDMARKS = RNG.uniform(-1, 1, (8, 2))


def lacking(path: Path, field: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The paths of the fields, of which one lacks its first chunk, and the arrays that they are then read as."""
    arrays = {name: values.copy() for name, values in FIELDS.items()}
    for name, values in arrays.items():
        zarr.create_array(path / name, data=values, chunks=(30, *values.shape[1:]), fill_value=0.25)
    arrays[field][:30] = 0.25
    min((path / field / "c").rglob("0*")).rename(path / "away")
    return {name: f"{path}/{name}" for name in arrays}, arrays


def spectral(**options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(n_components=2, random_state=0, **options)


def targets(data: dict[str, Any], rows: int = ROWS) -> tuple[Any, ...]:
    return tuple(data[name][:rows] if rows < ROWS else data[name] for name in ("x", "y", "gradients"))


SPECTRAL = {"kernel": dsp.kernels.Gaussian(1.0), "landmarks": LANDMARKS}
HERMITE = dsp.HermiteRegressor(dsp.kernels.Gaussian(1.0), landmarks=LANDMARKS, random_state=0)
INVARIANT = dsp.InvariantRegressor(n_eigenfunctions=9)
Call = Callable[..., Any]
CALLS: dict[str, tuple[tuple[str, ...], Call]] = {
    "SpectralDecomposition.fit": (
        ("x", "weight"),
        lambda d, a, **o: spectral(standardize=True).fit(d["x"], sample_weight=d["weight"], **o).eigenvalues_,
    ),
    "SpectralDecomposition.fit, a lattice": (
        ("x",),
        lambda d, a, **o: spectral(basis=dsp.basis.FourierLattice(2)).fit(d["x"], **o).eigenvalues_,
    ),
    "SpectralDecomposition.fit, trajectories": (
        ("x",),
        lambda d, a, **o: (
            spectral(operator=dsp.operators.Transfer(1), **SPECTRAL).fit([d["x"], d["x"]], **o).singular_values_
        ),
    ),
    "SpectralDecomposition.fit, views": (
        ("x", "gradients"),
        lambda d, a, **o: (
            spectral(operator=dsp.operators.Cross(), n_landmarks=8).fit((d["x"], d["gradients"]), **o).singular_values_
        ),
    ),
    "SpectralDecomposition.transform": (
        ("x",),
        lambda d, a, **o: np.asarray(spectral(**SPECTRAL).fit(FIELDS["x"]).transform(d["x"], **o)),
    ),
    "SpectralDecomposition.score": (
        ("x", "weight"),
        lambda d, a, **o: spectral(**SPECTRAL).fit(FIELDS["x"]).score(d["x"], sample_weight=d["weight"], **o),
    ),
    "SpectralDecomposition.update": (
        ("x", "weight"),
        lambda d, a, **o: (
            spectral(**SPECTRAL)
            .fit(a["x"][:40], sample_weight=a["weight"][:40])
            .update(d["x"], sample_weight=d["weight"], **o)
            .eigenvalues_
        ),
    ),
    "HermiteRegressor.fit": (
        ("x", "y", "gradients", "weight"),
        lambda d, a, **o: clone(HERMITE).fit(*targets(d), sample_weight=d["weight"], **o).predict(LANDMARKS),
    ),
    "HermiteRegressor.fit, all chosen": (
        ("x",),
        lambda d, a, **o: dsp.HermiteRegressor(random_state=0).fit(d["x"], d["y"], **o).predict(LANDMARKS),
    ),
    "HermiteRegressor.predict": (
        ("x",),
        lambda d, a, **o: np.asarray(clone(HERMITE).fit(*targets(FIELDS)).predict(d["x"], **o)),
    ),
    "HermiteRegressor.score": (
        ("x", "y", "weight"),
        lambda d, a, **o: clone(HERMITE).fit(*targets(FIELDS)).score(d["x"], d["y"], sample_weight=d["weight"], **o),
    ),
    "HermiteRegressor.update": (
        ("x", "y", "gradients"),
        lambda d, a, **o: clone(HERMITE).fit(*targets(a, 40)).update(*targets(d), **o).predict(LANDMARKS),
    ),
    "InvariantRegressor.fit": (
        ("x", "y", "gradients", "weight"),
        lambda d, a, **o: clone(INVARIANT).fit(*targets(d), sample_weight=d["weight"], **o).predict(LANDMARKS),
    ),
    "InvariantRegressor.predict": (
        ("x",),
        lambda d, a, **o: np.asarray(clone(INVARIANT).fit(*targets(FIELDS)).predict(d["x"], **o)),
    ),
    "InvariantRegressor.update": (
        ("x", "y", "gradients"),
        lambda d, a, **o: clone(INVARIANT).fit(*targets(a, 40)).update(*targets(d), **o).predict(LANDMARKS),
    ),
    "KernelEmbedding.fit": (
        ("x",),
        lambda d, a, **o: dsp.KernelEmbedding(random_state=0).fit(d["x"], **o).spectrum_,
    ),
    "KernelEmbedding.transform": (
        ("x",),
        lambda d, a, **o: np.asarray(dsp.KernelEmbedding(random_state=0).fit(FIELDS["x"]).transform(d["x"], **o)),
    ),
    "SDPEmbedding.fit": (
        ("x",),
        lambda d, a, **o: dsp.SDPEmbedding("median", random_state=0).fit(d["x"], **o).spectrum_,
    ),
    "DiffusionMap.fit": (
        ("x",),
        lambda d, a, **o: dsp.DiffusionMap(n_components=2, random_state=0).fit(d["x"], **o).spectrum_,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "field"), [(call, field) for call, (fields, _) in CALLS.items() for field in fields])
def test_missing_chunks_that_are_meant_read_as_fill_values(tmp_path: Path, call: str, field: str) -> None:
    """Wherever the data are read: for landmarks, bandwidths, pilots, first looks, folds and in the passes."""
    paths, filled = lacking(tmp_path, field)
    with pytest.raises(OSError, match="is missing"):
        CALLS[call][1](paths, filled)
    np.testing.assert_allclose(
        CALLS[call][1](paths, filled, allow_missing=True), CALLS[call][1](filled, filled), rtol=1e-6, atol=1e-9
    )
