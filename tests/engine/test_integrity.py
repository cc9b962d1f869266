"""Stores that are incomplete, damaged or change during the run, and points off the manifold: errors name the place."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.data.frames import open_table
from daskspectral.data.integrity import Manifest
from daskspectral.data.readers import ZarrReader
from daskspectral.data.source import Source, open_source
from daskspectral.errors import PointError
from daskspectral.groups import Permutations
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Sphere
from tests.common import unreliable
from tests.engine.common import X, blocks, model

COARSE = dsp.solvers.BurerMonteiro(tolerance=1e-1)
EMBEDDING = dsp.SDPEmbedding(
    9.0, method="lowrank", landmarks=Landmarks(n_landmarks=10, method="cholesky"), solver=COARSE
)
RUNS: dict[str, Callable[[str, str], object]] = {
    "fit": lambda points, out: model().fit(points),
    "update": lambda points, out: model().fit(X[:1000]).update(points),
    "transform": lambda points, out: model().fit(X[:1000]).transform(points, out=out),
    "embed": lambda points, out: EMBEDDING.fit(points),
}


@pytest.mark.one_in(4)
@unreliable
@pytest.mark.parametrize("kind", RUNS)
def test_a_store_that_changes_during_the_run_is_noticed(
    kind: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, kept = ZarrReader.read, (points / "c" / "14" / "0").read_bytes()

    def read(reader: ZarrReader, start: int, stop: int) -> object:
        (points / "c" / "15" / "0").write_bytes(kept)
        return plain(reader, start, stop)

    monkeypatch.setattr(ZarrReader, "read", read)
    with pytest.raises(OSError, match="c/15/0"):
        RUNS[kind](str(points), str(tmp_path / "out.zarr"))
    assert os.listdir(tmp_path) == ["points.zarr"]


@unreliable
@pytest.mark.parametrize("ending", [".zarr", ".parquet"])
def test_a_file_that_is_rewritten_with_its_old_size_and_time_is_noticed(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{ending}"
    rows = X[:1000].copy()
    if ending == ".zarr":
        zarr.create_array(path, data=rows, chunks=rows.shape, compressors=None)
        file = path / "c" / "0" / "0"
    else:
        pq.write_table(pa.table(dict(zip("abc", rows.T, strict=False))), path, compression="none", use_dictionary=False)
        file = path
    reader = open_source(path).readers["x"] if ending == ".zarr" else open_table([str(path)]).reader()
    snapshot, status, kept = Manifest(Source({"x": reader})), file.stat(), file.read_bytes()
    file.write_bytes(kept[:100] + bytes(8) + kept[108:])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(OSError, match="changed during the run"):
        snapshot.check_unchanged()


POINTS = np.random.default_rng(11).standard_normal((6000, 3))
POINTS /= np.linalg.norm(POINTS, axis=1, keepdims=True)


@pytest.mark.usefixtures("short_epochs")
@pytest.mark.parametrize("kind", [np.asarray, blocks])
def test_an_off_manifold_row_is_named_by_its_number_in_the_data(kind: Any) -> None:
    row = 4321
    x = POINTS.copy()
    x[[row, row + 700]] *= 1.5
    tangential = model(Landmarks(Gaussian(1.0), points=POINTS[:30]), operator=dsp.operators.Laplacian(Sphere(3)))
    with pytest.raises(PointError, match=f"row {row} "):
        tangential.fit(POINTS[:2000]).update(kind(x))
    assert tangential.moments_.count == 2000  # the model is as before
    x[:40] = x[100:row:17] = np.nan
    regressor = dsp.InvariantRegressor(Sphere(3), Permutations(3), smoothness=2.0, n_eigenfunctions=30)
    with pytest.raises(PointError, match=f"row {row} "):  # after rows that are left out
        regressor.fit(dsp.Rows(kind(x), on_invalid="skip"), POINTS[:, 0])
