"""Data of others: nothing that a file says is executed, and only regular files are read."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import fsspec
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.cli import verifying
from daskspectral.data.files import open_labeled
from daskspectral.data.stores import open_zarr
from daskspectral.data.writing import create_array, write_file
from tests.common import unreliable

pytestmark = unreliable

X = np.random.default_rng(0).standard_normal((40, 2))
TEXT, PICKLE = {"id": "vlen-utf8"}, {"id": "pickle"}
UNPICKLED = {"dtype": "|O", "filters": [TEXT], "compressor": PICKLE}  # numcodecs before 0.16.6 runs the command
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def fit(x: Any = X, **options: Any) -> Any:
    basis = dsp.basis.Landmarks(n_landmarks=2)
    return dsp.SpectralDecomposition(basis=basis, n_components=1, random_state=0).fit(x, **options)


def v2(path: Path, dims: str = "", **changed: Any) -> Path:
    """An array of format 2 whose only chunk is a pickle that makes the file `executed` next to it."""
    path.mkdir(parents=True)
    shape = [40, 2] if dims in ("", "tc") else [40]
    described = {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "<f8", "fill_value": None, "order": "C"}
    (path / ".zarray").write_text(json.dumps(described | {"compressor": None, "filters": None} | changed))
    (path / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": list(dims)} if dims else {}))
    command = f"touch {os.environ['EXECUTED']}"
    for key in ("0", "0.0"):
        (path / key).write_bytes(f"cos\nsystem\n(S'{command}'\ntR.".encode())
    return path


def v3(path: Path, codecs: list[Any] | None = None, shape: Any = (40, 2), **changed: Any) -> Path:
    """An array of format 3 without any chunk."""
    path.mkdir(parents=True)
    described: dict[str, Any] = {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64"}
    described["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": shape}}
    described["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "/"}}
    described |= {"fill_value": 0.0, "codecs": codecs or [BYTES], "attributes": {}}
    deep = "[" * 200_000 + "]" * 200_000
    (path / "zarr.json").write_text(json.dumps(described | changed).replace('"DEEP"', deep))
    return path


def sharded(**changed: Any) -> list[Any]:
    inside = {"chunk_shape": [20, 2], "codecs": [BYTES], "index_codecs": [BYTES, {"name": "crc32c"}]}
    return [{"name": "sharding_indexed", "configuration": inside | changed}]


def v2_group(path: Path, coordinate: dict[str, Any]) -> Path:
    """A group of data x (t, c) with the coordinate t."""
    path.mkdir()
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    zarr.create_array(path / "x", data=X, zarr_format=2, attributes={"_ARRAY_DIMENSIONS": ["t", "c"]})
    v2(path / "t", "t", **coordinate)
    return path


def consolidated(path: Path, **decoy: Any) -> Path:
    """A group in whose consolidated metadata alone the coordinate is a pickle."""
    v2_group(path, {"dtype": "<f8"})
    found = {str(file.relative_to(path)): json.loads(file.read_text()) for file in path.rglob(".z*")}
    found["t/.zarray"] |= UNPICKLED
    (path / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": found} | decoy))
    return path


def consolidated_v3(path: Path) -> Path:
    zarr.create_group(path)
    v3(path / "x", dimension_names=["t", "c"])
    member = json.loads((path / "x" / "zarr.json").read_text()) | {"codecs": [BYTES, {"name": "evil"}]}
    root = json.loads((path / "zarr.json").read_text())
    root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {"x": member}}
    (path / "zarr.json").write_text(json.dumps(root))
    return path


CODECS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "compressor": ("pickle", lambda p: v2(p, compressor=PICKLE)),
    "filter of text": ("pickle", lambda p: v2(p, dtype="|O", filters=[TEXT, PICKLE])),
    "objects": ("pickle", lambda p: v2(p, dtype="|O", compressor=PICKLE)),
    "records of objects": (r"dtype \|O", lambda p: v2(p, dtype=[["a", "|O"]])),
    "two names": ("pickle", lambda p: v2(p, compressor={"id": "pickle", "name": "zstd"})),
    "v3": ("evil", lambda p: v3(p, [BYTES, {"name": "evil"}])),
    "in a shard": ("evil", lambda p: v3(p, sharded(codecs=[BYTES, {"name": "evil"}]))),
    "of a shard's index": ("evil", lambda p: v3(p, sharded(index_codecs=[BYTES, {"name": "evil"}]))),
    "coordinate": ("pickle", lambda p: v2_group(p, UNPICKLED)),
    "consolidated": ("pickle", consolidated),
    "consolidated with a decoy": (
        r"\.zmetadata: t/\.zarray .*pickle",
        lambda p: consolidated(p, consolidated_metadata={"x": 1}),
    ),
    "consolidated v3": ("evil", consolidated_v3),
}


@pytest.fixture(autouse=True)
def nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Releases of numcodecs that refuse to unpickle are made to do it."""
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    monkeypatch.setenv("EXECUTED", str(tmp_path / "executed"))
    yield
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", CODECS)
def test_a_codec_that_could_execute_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    codec, make = CODECS[name]
    path = make(tmp_path / "hostile.zarr")
    for read in (fit, lambda path: verifying.verify(str(path))):
        with pytest.raises(OSError, match=rf"hostile\.zarr.*{codec}"):
            read(path)


def copied(path: Path) -> str:
    """The name of a store in memory, as at a URL, with the files of a folder."""
    for file in filter(Path.is_file, path.rglob("*")):
        fsspec.filesystem("memory").pipe(f"/hostile.zarr/{file.relative_to(path)}", file.read_bytes())
    return "hostile.zarr"


WAYS: dict[str, Callable[[Path], Any]] = {
    "an open array": lambda path: fit(zarr.open_array(path, mode="r")),
    "weights": lambda path: fit(sample_weight=path),
    "folds": lambda path: dsp.SpectralDecomposition(basis=dsp.basis.Landmarks(n_landmarks=2), folds=str(path)).fit(X),
    "targets": lambda path: dsp.HermiteRegressor(dsp.basis.Landmarks(n_landmarks=2)).fit(X, path),
    "points of transform": lambda path: fit().transform(path),
    "opened": open_zarr,
    "loaded": dsp.load,
    "a URL": lambda path: open_zarr(f"memory://{copied(path)}"),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_in_leads_through_the_door(name: str, tmp_path: Path) -> None:
    path = v2(tmp_path / "hostile.zarr", "t" if name in ("weights", "folds", "targets") else "", **UNPICKLED)
    with pytest.raises((OSError, ValueError), match=r"hostile\.zarr"):
        WAYS[name](path)


def linked(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def piped(path: Path, _: str) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)

    def end() -> None:
        with suppress(FileNotFoundError):
            os.close(os.open(path, os.O_RDWR))  # whoever waits there finds the end

    timer = threading.Timer(10, end)
    timer.daemon = True
    timer.start()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("put", [linked, piped])
@pytest.mark.parametrize("file", ["zarr.json", "c/1/0", "t/zarr.json", "m/c/0"])
def test_only_regular_files_are_read(file: str, put: Callable[[Path, str], None], tmp_path: Path) -> None:
    path, inside = tmp_path / "hostile.zarr", ""
    if file.startswith("t/"):
        xr.Dataset({"x": (("t", "c"), X)}, {"t": np.arange(40.0)}).to_zarr(path, zarr_format=3, consolidated=False)
    elif file.startswith("m/"):
        fit().save(path)
        file = inside = str(next(chunk for chunk in path.rglob("c/0") if chunk.is_file()).relative_to(path))
    else:
        zarr.create_array(path, data=X, chunks=(20, 2))
    model = fit() if file == "c/1/0" else None
    put(path / file, "/dev/null")
    began = time.monotonic()
    reads = [dsp.load] if file == inside else [fit, lambda path: verifying.verify(str(path))]
    reads += [] if model is None else [lambda path: model.transform(path).compute()]
    for read in reads:
        with pytest.raises(OSError, match=rf"hostile\.zarr/{file}"):
            read(path)
    assert time.monotonic() - began < 9


def test_a_chunk_that_no_memory_holds_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match="this run needs"):
        fit(v3(tmp_path / "hostile.zarr", shape=[10**13, 1]))


def virtual(file: h5py.File, name: str, source: str, values: str) -> None:
    layout = h5py.VirtualLayout((40, 2), "f8")
    layout[:40] = h5py.VirtualSource(source, values, (40, 2))
    file.create_virtual_dataset(name, layout, fillvalue=3.3)


ELSEWHERE: dict[str, Callable[[h5py.File, str], Any]] = {
    "storage of another file": lambda file, other: file.create_dataset(
        "x", (40, 2), "u1", external=[(other, 0, h5py.h5f.UNLIMITED)]
    ),
    "a link to another file": lambda file, other: file.create_group("g").update(x=h5py.ExternalLink(other, "/x")),
    "a virtual one of another file": lambda file, other: virtual(file, "x", other, "x"),
    "its own source": lambda file, _: virtual(file, "x", ".", "x"),
    "a cycle": lambda file, _: [virtual(file, *pair) for pair in (("x", ".", "y"), ("y", ".", "x"))],
    "a source that is missing": lambda file, _: virtual(file, "x", ".", "none"),
    "a plain source": lambda file, _: virtual(file, "x", ".", "values"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_hdf5_reads_no_external_values(name: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "private.h5", "w") as file:
        file["x"] = X
    with h5py.File(tmp_path / "hostile.nc", "w") as file:
        file["values"] = X
        ELSEWHERE[name](file, str(tmp_path / "private.h5"))
    with pytest.raises(OSError, match=r"hostile\.nc"):
        open_labeled(tmp_path / "hostile.nc", "X")  # nothing is read: HDF5 would not return


@pytest.mark.parametrize("put", [linked, piped])
@pytest.mark.parametrize("ending", [".parquet", ".nc"])
def test_no_part_that_is_not_regular_is_left_out(ending: str, put: Callable[[Path, str], None], tmp_path: Path) -> None:
    path = tmp_path / "hostile"
    path.mkdir()
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), path / "a.parquet")
    xr.Dataset({"x": (("t", "c"), X)}, {"t": np.arange(40.0)}).to_netcdf(path / "a.nc", engine="h5netcdf")
    put(path / f"b{ending}", "/dev/zero")
    with pytest.raises(OSError, match=rf"hostile/b\{ending}"):
        fit(f"{path}/*{ending}")


INCOMPLETE: dict[str, tuple[dict[str, Any], bool]] = {
    "chunks": ({"chunks": (10, 2)}, False),
    "compressed chunks": ({"chunks": (10, 2), "compression": "gzip", "fillvalue": -1.0}, False),
    "chunks of NaN": ({"chunks": (10, 2), "fillvalue": np.nan}, True),
}


@pytest.mark.filterwarnings("ignore:The 'phony_dims' kwarg")
@pytest.mark.parametrize("name", INCOMPLETE)
def test_a_half_written_netcdf_file_is_refused_unless_it_reads_as_nan(name: str, tmp_path: Path) -> None:
    options, fine = INCOMPLETE[name]
    with h5py.File(tmp_path / "x.nc", "w") as file:
        file.create_dataset("x", (40, 2), "f8", **options)[:20] = X[:20]
    with nullcontext() if fine else pytest.raises(OSError, match=r"'x' of .*x\.nc"):
        assert fit(dsp.Rows(tmp_path / "x.nc", on_invalid="skip")).moments_.count == 20
    assert fit(dsp.Rows(tmp_path / "x.nc", on_invalid="skip", allow_missing=True)).moments_.count in (20, 40)


CHAINS = (
    *("reference://{path}", "simplecache::reference://{path}", "local://{path}", "zip://x.zarr::file://{path}"),
    *("dir://{path}", "FILE://{path}", "github://o:r@main/x.zarr", "generic://{path}", "data://{path}"),
    *("memory://x.zarr::file://{path}", "s3://bucket/x.zarr::file://{path}", "nonsense://{path}", "://{path}"),
)
OPENED: dict[str, Callable[[str], Any]] = {
    "fit": lambda url: fit(url),
    "fit of files": lambda url: fit([f"{url}.nc"]),
    "fit of tables": lambda url: fit(f"{url}.parquet"),
    "weights": lambda url: fit(sample_weight=url),
    "load": dsp.load,
    "verify": verifying.verify,
    "write a file": lambda url: write_file(url, b""),
    "write": lambda url: create_array(url, (4,), "f8").__enter__(),
}


@pytest.mark.parametrize("way", OPENED)
def test_a_url_names_one_store(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """References and chains lead to any local file, devices and pipes among them: opening one would wait for ever."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    document = json.dumps({"zarr_format": 3, "node_type": "array", "shape": [40, 2], "data_type": "float64"})
    references = {"zarr.json": document, "c/0/0": [str(tmp_path / "pipe")]}
    (tmp_path / "references.json").write_text(json.dumps({"version": 1, "refs": references}))
    for chain in CHAINS:
        url = chain.format(path=tmp_path / "references.json")
        with pytest.raises(ValueError, match=r"::|protocol|user part"):
            OPENED[way](url)
