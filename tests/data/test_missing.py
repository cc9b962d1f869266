"""A chunk that is not there is an error where it is read, whoever reads it: never fill values in silence."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore, ZipStore

import daskspectral as dsp
from daskspectral.data.readers import ZarrReader, zarr_reader

X = np.random.default_rng(0).standard_normal((4000, 4))
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
    with pytest.raises(OSError, match=r"is missing for this process"):
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
