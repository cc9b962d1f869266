"""Shared by the benchmarks: alternated timings, the machine, peak memory, tables and JSON.

Every benchmark compares inside one run: both sides run in turn, for several rounds, and the ratio that is shown is the
median of the rounds' ratios, so that a machine that slows down or speeds up affects both sides alike.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import numpy as np
import threadpoolctl

from daskspectral.basis import LandmarkBasis
from daskspectral.datasets import write
from daskspectral.kernels import Kernel
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian, Operator

Rows = list[dict[str, Any]]


def options(repeats: int | None = 5) -> Callable[..., Any]:
    """The options of every benchmark: --quick, --json, and --repeats with a default (None: no such option)."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if repeats is not None:
            rounds = click.option(
                "--repeats", default=repeats, show_default=True, help="rounds of alternated measurements"
            )
            function = rounds(function)
        path = click.Path(dir_okay=False, path_type=Path)
        function = click.option("--json", "json_path", type=path, help="write the results here")(function)
        return click.option("--quick", is_flag=True, help="tiny sizes: does it work? The numbers mean nothing")(
            function
        )

    return decorate


def folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --folder, where the data are kept between runs."""
    default = Path(os.environ.get("TMPDIR", "/tmp")) / "daskspectral-benchmarks"
    return click.option(
        "--folder",
        default=default,
        show_default=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="where the data are kept between runs",
    )(function)


# -- time ------------------------------------------------------------------------------------------------------------


def alternate(functions: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each function in each round; they run in turn, after one round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for r in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if r:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median over the rounds of above / below."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def gemm(size: int, dtype: str = "float64") -> tuple[Callable[[], Any], float]:
    """A product of two square matrices of a size, in place, and its flops."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(dtype) for _ in range(2))
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out), 2.0 * size**3


# -- what is measured ------------------------------------------------------------------------------------------------


def measure(kernel: Kernel, landmarks: np.ndarray, operator: Operator | None = None, dtype: str = "float64") -> Measure:
    """The forms of the operator (the Laplacian) and its Gram in one kernel's basis, without the constant."""
    operator = operator or Laplacian()
    basis = LandmarkBasis(kernel, landmarks)
    return Measure(basis, basis, operator.forms, operator=operator, dtype=dtype)


def normal_zarr(folder: Path, n: int, d: int, dtype: str = "float32", chunk_rows: int | None = None) -> Path:
    """Standard normal rows (n, d) as zarr (zstd, crc32c) in the folder, written if they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"normal-{n}-{d}-{dtype}{'' if chunk_rows is None else f'-{chunk_rows}'}.zarr"
    if not path.exists():
        click.echo(f"writing {path}", err=True)
        write("gaussian", path, n, dimension=d, dtype=dtype, chunk_rows=chunk_rows)
    return path


def forget(path: Path) -> None:
    """Drop the files of a directory from the page cache, so that the next read comes from the disk."""
    for file in path.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


# -- memory ----------------------------------------------------------------------------------------------------------


def cached_share(path: Path) -> float:
    """The share of a folder's bytes that lie in the page cache; NaN where the system does not tell."""
    library, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
    if not hasattr(library, "mincore"):
        return float("nan")
    held = total = 0
    for file in (f for f in path.rglob("*") if f.is_file() and f.stat().st_size):
        with file.open("rb") as handle:
            pages = np.empty(-(-file.stat().st_size // page), dtype=np.uint8)
            view = np.memmap(handle, mode="r", dtype=np.uint8)
            start = ctypes.c_void_p(view.ctypes.data)
            if library.mincore(start, ctypes.c_size_t(view.size), pages.ctypes.data_as(ctypes.c_void_p)):
                return float("nan")
            held, total = held + int(np.count_nonzero(pages & 1)), total + len(pages)
    return held / total if total else float("nan")


def memory(name: str) -> int:
    """Bytes of this process: VmRSS, resident now, or VmHWM, the most since it started or `reset_peak`.

    Not `getrusage`: its ru_maxrss keeps, over an exec, the size of the process that forked this one.
    """
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:"))


def reset_peak() -> None:
    """Forget the peak so far: VmHWM starts again from what is resident now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


# -- report ----------------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """Processor, cores, memory, versions and the BLAS, on which the numbers depend."""
    blas = [
        {k: library.get(k) for k in ("internal_api", "version", "architecture", "num_threads")}
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    ]
    packages = ("numpy", "scipy", "dask", "distributed", "zarr", "numcodecs", "klap", "numba")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: found for name in packages if (found := _version(name))},
        "blas": blas,
        "environment": {k: v for k, v in os.environ.items() if k.startswith(("OPENBLAS_", "OMP_", "MKL_"))},
        "load_average": round(os.getloadavg()[0], 2),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def report(
    title: str, rows: Rows, json_path: Path | None, notes: Sequence[str] = (), *, markdown: bool = False, **more: Any
) -> None:
    """Print the rows as a table with the notes below; write all of it, and the machine, as JSON where asked."""
    info = machine()
    blas = ", ".join(f"{b['internal_api']} {b['version']} ({b['architecture']})" for b in info["blas"])
    click.echo(f"{title}\n{info['processor']}, {info['cores']} cores; numpy {np.__version__}; {blas}\n")
    click.echo(table(rows, markdown))
    for note in notes:
        click.echo(note)
    if json_path is not None:
        result = {"benchmark": title, "machine": info, "rows": rows, "notes": list(notes), **more}
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps(result, indent=1, default=_plain) + "\n")
        click.echo(f"\nwritten to {json_path}", err=True)


def table(rows: Rows, markdown: bool = False) -> str:
    """The rows as aligned columns, headed by the keys of the row that has the most; in markdown with bars between."""
    heading = list(max(rows, key=len)) if rows else []
    cells = [heading, *([_text(row.get(k)) for k in heading] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heading))]
    numeric = [all(not isinstance(row.get(k), str) for row in rows) for k in heading]
    lines = [
        (" | " if markdown else "  ").join(
            c.rjust(w) if right else c.ljust(w) for c, w, right in zip(line, widths, numeric, strict=True)
        )
        for line in cells
    ]
    if markdown:
        rule = " | ".join("-" * (w - right) + ":" * right for w, right in zip(widths, numeric, strict=True))
        return "\n".join(f"| {line} |" for line in [lines[0], rule, *lines[1:]])
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _processor() -> str:
    with open("/proc/cpuinfo") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    plain = {k.strip(): v.strip() for k, v in fields.items()}
    family = f"family {plain.get('cpu family')} model {plain.get('model')}"
    return f"{plain.get('model name', platform.processor())} ({family})"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
