"""The plan's peak is the measured one: of a process that fits one source, whichever holds the rows."""

import os
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"
KINDS = ["Parquet", "zarr", "NetCDF", "daily NetCDF", "xarray, lazy", "dask", "zarr, chunks of places"]
KINDS += ["dask, chunks of places", "dask, wide"]


@pytest.mark.one_in(0, 2)
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peaks are measured on Linux")
@pytest.mark.parametrize("case", KINDS)
def test_the_peak_of_reading_is_predicted(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    peaks = import_module("peaks")
    assert [*peaks.CASES] == KINDS
    # measured: .86 to 1.09 on one machine, and up to .06 above it with other versions of the C library
    assert 0.82 < peaks.measured(case, tmp_path) < 1.18
