"""Figures 3 and 7 to 10: errors on spheres
========================================

Error and time of Galerkin and graph Laplacians on spheres: Figures 3 and 7 to 10 of Cabannes and Bach (2024).

On the sphere Sᵈ⁻¹ with the uniform distribution the eigenvalues are known, s (s + d - 2), and equation (21)
measures the error of the first 24 after the constant. Three estimators run over a grid of points n, dimensions d,
basis functions p, kernels and their hyperparameters (appendix B.3, reduced): the Galerkin method with the gradient of
the paper (ambient), the same with the gradient's part along the sphere (tangential), and the graph Laplacian of
equation (16) with Gaussian weights of several scales, rescaled by the true eigenvalues (appendix B.1).

Usage::

    python examples/paper/spherical_harmonics.py [--whole | --paper] [--scheduler ADDRESS] [--table PATH] [--out FOLDER]

The table is a zarr group that grows as results come; after a stop the same command resumes from it. It opens by
`xarray.open_zarr(TABLE, consolidated=False)`. Landmarks are separate points, drawn besides the n that are measured.
"""

# sphinx_gallery_thumbnail_path = '../pictures/paper_figure3.png'

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import xarray as xr
import zarr
from distributed import Client, as_completed
from graph_laplacian import eigenvalues, forms
from spherical_figures import PICTURES, draw, report
from tqdm import tqdm

from daskspectral import Moments, RankWarning, SpectralDecomposition, plot
from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis, Landmarks
from daskspectral.forms import first_moment
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian

KERNELS: Mapping[str, Callable[[Any], Kernel]] = {
    "polynomial": lambda degree: Polynomial(int(degree)),
    "exponential": Exponential,
    "gaussian": Gaussian,
}
ESTIMATORS = ("tangential", "ambient", "graph")
EIGENVALUES = 25  # the constant's among them
Indices = tuple[Any, ...]


@dataclass(frozen=True)
class Grid:
    """What is run: numbers of points (ascending), dimensions, numbers of functions (ascending), kernels, trials.

    The graph Laplacian goes up to `graph_n` points and `graph_p` functions; `timed` has one kernel of each family.
    """

    n: tuple[int, ...] = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)
    d: tuple[int, ...] = (3, 5, 9, 15)
    p: tuple[int, ...] = (30, 73, 177, 430)
    kernels: tuple[tuple[str, float], ...] = (
        *(("polynomial", s) for s in (2, 3, 4, 5)),
        *(("exponential", s) for s in (0.1, 1, 10, 100)),
        *(("gaussian", s) for s in (0.3, 1, 3)),
    )
    weights: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.8)
    timed: tuple[tuple[str, float], ...] = (("polynomial", 3), ("exponential", 1), ("gaussian", 1))
    trials: int = 4
    graph_n: int = 10_000
    graph_p: int = 177
    seed: int = 0


QUICK = Grid(
    n=(100, 300, 1000),
    d=(3, 5),
    p=(30,),
    kernels=(("polynomial", 4), ("exponential", 10), ("gaussian", 1)),
    weights=(0.2, 0.4),
    trials=2,
    graph_n=300,
)
MINUTE = Grid(
    n=(100, 316, 1000, 3162, 10_000),
    d=(3, 5, 9),
    p=(30, 100),
    kernels=(("polynomial", 3), ("polynomial", 4), ("exponential", 1), ("exponential", 10), ("gaussian", 1)),
    weights=(0.2, 0.4),
    trials=1,
    graph_n=1000,
    graph_p=30,
)
PAPER = Grid(
    n=(100, 167, 278, 464, 774, 1292, 2154, 3594, 5995, 10_000, 100_000),
    d=tuple(range(3, 20, 2)),
    p=(30, 72, 173, 416, 1000),
    kernels=(
        *(("polynomial", s) for s in (2, 3, 4, 5, 6)),
        *(("exponential", s) for s in (0.1, 1, 10, 100, 1000)),
        *(("gaussian", s) for s in (0.01, 0.1, 1, 10, 100)),
    ),
    weights=(0.01, 0.1, 1, 10, 100),
    trials=100,
    graph_p=1000,
)


# -- one sample ------------------------------------------------------------------------------------------------------


def sample(grid: Grid, d: int, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Landmarks (p, d) and points (n, d); fewer of either are the first ones."""
    rng = np.random.default_rng(np.random.SeedSequence(grid.seed, spawn_key=(d, trial)))
    sphere = Sphere(d)
    return sphere.sample(grid.p[-1], rng), sphere.sample(grid.n[-1], rng)


def basis(d: int, kernel: tuple[str, float], landmarks: np.ndarray) -> Concatenated:
    """The constant, and one function for each landmark."""
    family, parameter = kernel
    return Concatenated((ConstantBasis(d), LandmarkBasis(KERNELS[family](parameter), landmarks)))


def error(d: int, values: np.ndarray) -> float:
    """Equation (21) over the 24 eigenvalues after the constant; missing eigenvalues count as infinite."""
    exact = 1 / Sphere(d).eigenvalues(EIGENVALUES)[1:]
    inverse = np.zeros_like(exact)
    with np.errstate(divide="ignore"):
        inverse[: len(values) - 1] = 1 / values[1:EIGENVALUES]
    return float(np.sum(np.abs(exact - inverse)) / np.sum(exact))


def galerkin(grid: Grid, d: int, trial: int) -> dict[str, np.ndarray]:
    """The errors of both forms, (kernels, n, p) each, from one pass over one sample.

    Moments add, so the moments of n points are a step on the way to the moments of more points; the moments of p
    landmarks are the upper left corner of the moments of more landmarks.
    """
    landmarks, points = sample(grid, d, trial)
    operators = {"ambient": Laplacian(), "tangential": Laplacian(Sphere(d))}
    forms = {name: operator.form for name, operator in operators.items()} | {"gram": Laplacian().gram}
    bases = [basis(d, kernel, landmarks) for kernel in grid.kernels]
    measures = [Measure(b, b, forms, {"first": first_moment}, operators["tangential"]) for b in bases]
    errors = {name: np.full((len(grid.kernels), len(grid.n), len(grid.p)), np.nan) for name in operators}
    sums: list[dict[str, Any]] = [dict.fromkeys((*forms, "first"), 0) for _ in measures]
    for i, (start, n) in enumerate(itertools.pairwise((0, *grid.n))):
        for total, measure in zip(sums, measures, strict=True):
            total |= {name: total[name] + part for name, part in measure([{"x": points[start:n]}]).items()}
        for k, (j, p) in itertools.product(range(len(grid.kernels)), enumerate(grid.p)):
            if p > n:
                continue
            corner, small = slice(p + 1), basis(d, grid.kernels[k], landmarks[:p])
            for name, operator in operators.items():
                arrays = {"form": sums[k][name][corner, corner], "gram": sums[k]["gram"][corner, corner]}
                arrays["first"] = sums[k]["first"][corner]
                preparation = {"columns": None, "mean": None, "scale": None, "n_features_in": d}
                moments = Moments(arrays, float(n), n, small, operator, preparation=preparation)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RankWarning)  # kernels that do not suit n: their error shows it
                    solved = SpectralDecomposition(operator, n_components=EIGENVALUES).fit_moments(moments)
                errors[name][k, i, j] = error(d, solved.eigenvalues_)
    return errors


def graph(grid: Grid, d: int, trial: int, scale: float) -> dict[str, np.ndarray]:
    """The errors of the graph Laplacian with Gaussian weights of one scale, (kernels, n, p); all kernels share them."""
    landmarks, points = sample(grid, d, trial)
    bases = [basis(d, kernel, landmarks[: grid.graph_p]) for kernel in grid.kernels]
    true = Sphere(d).eigenvalues(EIGENVALUES)
    errors = np.full((len(grid.kernels), len(grid.n), len(grid.p)), np.nan)
    for i, n in enumerate(grid.n):
        if n > grid.graph_n:
            continue
        for k, (form, gram) in enumerate(forms(points[:n], Gaussian(scale), bases)):
            for j, p in enumerate(grid.p):
                if p <= min(n, grid.graph_p):
                    corner = np.s_[: p + 1, : p + 1]
                    errors[k, i, j] = error(d, eigenvalues(form[corner], gram[corner], EIGENVALUES, true))
    return {"graph": errors}


def seconds(grid: Grid, d: int) -> dict[str, np.ndarray]:
    """Seconds of whole fits on one core, (timed kernels, n, p), by estimator."""
    landmarks, points = sample(grid, d, 0)
    result = {name: np.full((len(grid.timed), len(grid.n), len(grid.p)), np.nan) for name in ESTIMATORS}
    places = itertools.product(enumerate(grid.timed), enumerate(grid.n), enumerate(grid.p))
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        for name in ESTIMATORS:  # the first fit of a process loads libraries
            time_fit(grid, name, grid.timed[0], landmarks[: grid.p[0]], points[: grid.n[0]])
        for ((k, kernel), (i, n), (j, p)), name in itertools.product(places, ESTIMATORS):
            if p <= n and (name != "graph" or (n <= grid.graph_n and p <= grid.graph_p)):
                result[name][k, i, j] = time_fit(grid, name, kernel, landmarks[:p], points[:n])
    return {f"{name}_seconds": values for name, values in result.items()}


def time_fit(grid: Grid, name: str, kernel: tuple[str, float], landmarks: np.ndarray, points: np.ndarray) -> float:
    """Seconds of one fit."""
    d, start = points.shape[1], time.perf_counter()
    if name == "graph":
        weights = Gaussian(grid.weights[len(grid.weights) // 2])
        ((form, gram),) = forms(points, weights, [basis(d, kernel, landmarks)])
        eigenvalues(form, gram, EIGENVALUES, Sphere(d).eigenvalues(EIGENVALUES))
    else:
        family, parameter = kernel
        chosen = Landmarks(KERNELS[family](parameter), points=landmarks)
        operator = Laplacian(Sphere(d) if name == "tangential" else None)
        SpectralDecomposition(operator, chosen, n_components=EIGENVALUES).fit(points, progress=False)
    return time.perf_counter() - start


# -- the table -------------------------------------------------------------------------------------------------------


def open_table(path: Path, grid: Grid) -> zarr.Group:
    """Open or create the table at a path. Raises ValueError for a table of another grid."""
    description = json.dumps(dataclasses.asdict(grid))
    if not path.exists():
        kernel, errors = ("kernel",), ("d", "n", "p", "trial")
        axes = {"ambient": kernel + errors, "tangential": kernel + errors, "graph": ("weights", *kernel, *errors)}
        axes |= {f"{name}_seconds": ("timed", "d", "n", "p") for name in ESTIMATORS}
        sizes = {"kernel": len(grid.kernels), "timed": len(grid.timed), "trial": grid.trials}
        coordinates = {name: np.array(getattr(grid, name)) for name in ("n", "d", "p", "weights")}
        coordinates |= {name: np.arange(size) for name, size in sizes.items()}
        variables = {
            name: (dims, np.full([len(coordinates[dim]) for dim in dims], np.nan)) for name, dims in axes.items()
        }
        table = xr.Dataset(variables, coordinates, attrs={"grid": description})
        one = {"d", "trial", "weights"}  # a chunk is the result of one job
        chunks = {
            name: tuple(1 if dim in one else len(coordinates[dim]) for dim in dims) for name, dims in axes.items()
        }
        staging = path.with_name(f".{path.name}.partial")
        encoding = {name: {"chunks": chunk} for name, chunk in chunks.items()}
        table.to_zarr(staging, mode="w", encoding=encoding, consolidated=False)
        staging.rename(path)
    group = zarr.open_group(path, mode="r+")
    if group.attrs.get("grid") != description:
        raise ValueError(f"{path} is not a table of this grid; name another by --table, or remove it")
    return group


@dataclass(frozen=True)
class Job:
    """A function of the grid and arguments whose results belong at one place of the table."""

    function: Callable[..., dict[str, np.ndarray]]
    arguments: tuple[Any, ...]
    variable: str
    place: Indices

    def pending(self, table: zarr.Group) -> bool:
        """Whether its place is empty."""
        return bool(np.isnan(np.asarray(table[self.variable][self.place])).all())

    def write(self, table: zarr.Group, results: Mapping[str, np.ndarray]) -> None:
        """Fill its place, the variable by which it is known last."""
        for name in sorted(results, key=lambda name: name == self.variable):
            table[name][self.place] = results[name]


def jobs(grid: Grid) -> Iterator[Job]:
    """Everything that can run side by side, the longest first."""
    every = slice(None)
    for trial, (i, d) in itertools.product(range(grid.trials), reversed([*enumerate(grid.d)])):
        yield Job(galerkin, (d, trial), "tangential", (every, i, every, every, trial))
    for trial, (i, d), (w, scale) in itertools.product(range(grid.trials), enumerate(grid.d), enumerate(grid.weights)):
        yield Job(graph, (d, trial, scale), "graph", (w, every, i, every, every, trial))


def timings(grid: Grid) -> Iterator[Job]:
    """The work that has to run alone, because it is timed."""
    for i, d in enumerate(grid.d):
        yield Job(seconds, (d,), "tangential_seconds", (slice(None), i))


def run(grid: Grid, path: Path, client: Client, progress: bool = True) -> None:
    """Compute the results that the table lacks, and write each as it comes."""
    table = open_table(path, grid)
    pending = [job for job in jobs(grid) if job.pending(table)]
    futures = {client.submit(job.function, grid, *job.arguments, pure=False): job for job in pending}
    alone = [job for job in timings(grid) if job.pending(table)]
    with tqdm(total=len(pending) + len(alone), disable=None if progress else True, desc="jobs", unit="") as bar:
        for future, results in as_completed(list(futures), with_results=True):
            futures.pop(future).write(table, results)
            bar.update()
        for job in alone:
            job.write(table, client.submit(job.function, grid, *job.arguments, pure=False).result())
            bar.update()


# -- the command -----------------------------------------------------------------------------------------------------


@click.command(help=__doc__.split("\n\n")[1])
@click.option("--quick", "grid", flag_value="quick", help="a few small points of the grid: does it work?")
@click.option("--whole", "grid", flag_value="whole", help="up to 100 000 points and 430 functions, for half an hour")
@click.option("--paper", "grid", flag_value="paper", help="the grid of the paper, for a cluster")
@click.option("--trials", type=click.IntRange(1), help="samples a point of the grid")
@click.option("--scheduler", help="address of a dask scheduler; else this machine's cores")
@click.option("--table", type=click.Path(file_okay=False, path_type=Path), default="spherical_harmonics.zarr")
@click.option("--out", type=click.Path(path_type=Path), default=".", help="folder for the pictures; made if missing")
def main(grid: str | None, trials: int | None, scheduler: str | None, table: Path, out: Path) -> None:
    """Run, draw and report."""
    chosen = {"quick": QUICK, "whole": Grid(), "paper": PAPER}.get(grid or "", MINUTE)
    if trials is not None:
        chosen = dataclasses.replace(chosen, trials=trials)
    out.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        plot.refuse_picture(out / picture, overwrite=True)
    open_table(table, chosen)
    options: dict[str, Any] = {"address": scheduler}
    if scheduler is None:  # processes: the solvers hold Python's lock
        options = {"n_workers": len(os.sched_getaffinity(0)), "threads_per_worker": 1, "processes": grid != "quick"}
        options |= {"dashboard_address": ":0"}
    start = time.perf_counter()
    with Client(**options) as client:
        run(chosen, table, client)
    click.echo(f"{time.perf_counter() - start:.0f} s of this run\n", err=True)
    with xr.open_zarr(table, consolidated=False) as results:
        draw(results, out)
        click.echo(report(results))


if __name__ == "__main__":
    main()
