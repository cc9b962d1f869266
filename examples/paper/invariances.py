"""Exact invariances: groups and rates
===================================

Exactly invariant regression: Examples 1 and 2 and Theorem 1 of Soleymani and others (2025).

Groups: invariance under all d! permutations on the sphere Sᵈ⁻¹ (Example 1) and under the rotations by 2π / k of
the circle (Example 2), from the generators; the dimensions of the invariant spaces against Molien's count; and the
time until 100 predictions, against an average of the same projection over the elements of the group.

Rates: the risk of the projection against n, up to 10^7 points read from zarr, for functions at the edge of H^s, in the
theorem n^(-s / (s + dimension / 2)); and the least-squares solver against the projection, without noise.

Usage::

    python examples/paper/invariances.py [--whole] [--most N] [--folder DATA] [--table PATH] [--out FOLDER]

The table is a zarr group that grows as results come; after a stop the same command resumes from it. Its parts open by
`xarray.open_zarr(TABLE, group="rates", consolidated=False)`, also "groups" and "solvers".
"""

# sphinx_gallery_thumbnail_path = '../pictures/invariances_groups.png'

from __future__ import annotations

import dataclasses
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import xarray as xr
import zarr
from invariance_figures import PICTURES, draw, exponents, report
from invariance_rates import CASES, Case, Floats, RateRow, SolverRow, rate, solvers, write_data
from tqdm import tqdm

from daskspectral import InvariantRegressor, plot
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.groups import Group, Permutations, Rotations
from daskspectral.manifolds import Sphere

ROWS, PREDICTIONS = 10_000, 100
PATIENCE = 120.0
"""Limit in seconds of averaging; it stops if the first elements show that it would exceed the limit."""


@dataclass(frozen=True)
class Study:
    """The runs: dimensions of all `permutations`, degrees up to 3; `wide` ones, to `most_functions`; orders k."""

    permutations: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20)
    wide: tuple[int, ...] = (3, 5, 10)
    most_functions: int = 2800
    rotations: tuple[int, ...] = (2, 10, 100, 1000, 10_000, 100_000, 1_000_000)
    waves: int = 2001
    rows: int = 10_000_000
    solver_rows: tuple[int, ...] = (1000, 10_000)

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the rates, as far as the rows go."""
        kept = [tuple(level for level in case.levels if case.rows(level) <= self.rows) for case in CASES]
        return tuple(dataclasses.replace(case, levels=levels) for case, levels in zip(CASES, kept, strict=True))


MINUTE = Study((3, 4, 5, 6, 7, 8, 10), (3, 5), 600, (2, 10, 100, 1000, 10_000), 401, 300_000)
QUICK = Study((3, 4), (3,), 100, (3, 10), 41, 20_000, (10_000,))


# -- groups ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupRow:
    """One group: sizes, seconds of each step, and of averaging over `averaged` of its elements.

    `molien` is the count by Molien of the invariant functions; `difference` the largest difference of the two
    estimators over the largest value, `invariance` the same for |f(g x) - f(x)| with random words g; `evaluation` the
    seconds of the plain projection.
    """

    example: float
    d: float
    order: float
    degree: float
    D: float
    functions: float
    molien: float
    harmonics: float
    subspaces: float
    fit: float
    predict: float
    evaluation: float
    averaged: float
    averaging: float
    difference: float
    invariance: float


def compare(example: int, sphere: Sphere, group: Group, most: int) -> GroupRow:
    """Set up, fit and predict from the generators, and by averaging over the elements where that ends in time."""
    rng = np.random.default_rng(0)
    x, new = sphere.sample(ROWS, rng), sphere.sample(PREDICTIONS, rng)
    y = np.exp(x[:, 0]) + 0.1 * rng.standard_normal(ROWS)  # not invariant: both estimators have to make it so
    basis = HarmonicBasis(sphere, most)
    harmonics, _ = timed(lambda: basis.levels)
    subspaces, invariant = timed(lambda: InvariantBasis(basis, group))
    counts = invariant.dimensions.tolist()
    fit, model = timed(
        lambda: InvariantRegressor(sphere, group, sphere.d, most, "projection").fit(x, y, progress=False)
    )
    predict, prediction = timed(lambda: model.predict(new))
    scale = np.abs(prediction).max()
    words = [group.word(rng)(new) for _ in range(5)]
    evaluation, coefficients = timed(lambda: plain_projection(basis, x, y - y.mean()))
    averaged, averaging, mean = average(basis, coefficients, group, new)
    return GroupRow(
        example=example,
        d=sphere.d,
        order=group.order or np.nan,
        degree=len(counts) - 1,
        D=basis.size,
        functions=sum(counts),
        molien=sum(molien(sphere.d, group, level) for level in range(len(counts))),
        harmonics=harmonics,
        subspaces=subspaces,
        fit=fit,
        predict=predict,
        evaluation=evaluation,
        averaged=averaged,
        averaging=averaging,
        difference=np.nan if mean is None else np.abs(mean + y.mean() - prediction).max() / scale,
        invariance=max(np.abs(model.predict(moved) - prediction).max() for moved in words) / scale,
    )


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def molien(d: int, group: Group, level: int) -> int:
    """The invariant harmonics of a degree l: p(l, <= d) - p(l - 2, <= d) of all permutations (partitions into at most
    d parts); 2 where k divides l > 0, of the rotations by 2π / k."""
    if isinstance(group, Permutations):
        return partitions(level, d) - partitions(level - 2, d)
    return 1 if level == 0 else 2 * (level % (group.order or 1) == 0)


@cache
def partitions(n: int, parts: int) -> int:
    """p(n, <= parts)."""
    if n <= 0 or parts == 0:
        return int(n == 0)
    return partitions(n, parts - 1) + partitions(n - parts, parts)


def plain_projection(basis: HarmonicBasis, x: Floats, y: Floats) -> Floats:
    """The means of y phi, without a group, (p,)."""
    blocks = range(0, len(x), 1000)
    return sum(basis.values(x[i : i + 1000]) @ y[i : i + 1000] for i in blocks) / len(x)


def elements(group: Group) -> Iterator[Floats]:
    """The matrices of all elements: products with one more generator each, until none is new."""
    seen: set[bytes] = set()
    layer: list[Floats] = [np.eye(group.dimension)]
    while layer:
        fresh = []
        for g in layer:
            key = (np.round(g, 7) + 0.0).tobytes()
            if key not in seen:
                seen.add(key)
                fresh.append(g)
                yield g
        layer = [generator.matrix @ g for g in fresh for generator in group.generators]


def average(basis: HarmonicBasis, coefficients: Floats, group: Group, new: Floats) -> tuple[int, float, Floats | None]:
    """1 / |G| Σ_g f(g x) at points x: the elements visited, the seconds, and the mean if all were visited.

    It stops where PATIENCE would not suffice, and never before 2 seconds.
    """
    order = group.order or np.inf
    total, count, block, start = np.zeros(len(new)), 0, [], perf_counter()
    most = max(1, 1_000_000 // (basis.size * len(new)))

    def evaluate() -> Floats:
        moved = np.concatenate([new @ g.T for g in block])
        return (coefficients @ basis.values(moved)).reshape(len(block), -1).sum(axis=0)

    for g in elements(group):
        block.append(g)
        if len(block) == most:
            total, count, block = total + evaluate(), count + len(block), []
            seconds = perf_counter() - start
            if seconds > 2 and seconds * order / count > PATIENCE:
                return count, seconds, None
    if block:
        total, count = total + evaluate(), count + len(block)
    assert count == order, (group, count)
    return count, perf_counter() - start, total / count


# -- the table -------------------------------------------------------------------------------------------------------


Job = tuple[str, Callable[[], Any]]
"""A part of the table, and the function that computes its next row."""
COLUMNS = {"groups": GroupRow, "rates": RateRow, "solvers": SolverRow}


def jobs(study: Study, folder: Path) -> Iterator[Job]:
    """Every row of the table, in its order."""
    for d in study.permutations:
        most = sum(Sphere(d).multiplicity(level) for level in range(4))
        yield "groups", partial(compare, 1, Sphere(d), Permutations(d), most)
    for d in study.wide:
        yield "groups", partial(compare, 1, Sphere(d), Permutations(d), study.most_functions)
    for k in study.rotations:
        yield "groups", partial(compare, 2, Sphere(2), Rotations(k), study.waves)
    for n in study.solver_rows:
        yield "solvers", partial(solvers, n)
    for case in study.cases:
        for levels in case.levels:
            yield "rates", partial(rate, case, levels, folder)


def open_table(path: Path, study: Study) -> zarr.Group:
    """Open or create the table at a path. Raises ValueError for a table of another study."""
    description = json.dumps(dataclasses.asdict(study))
    if not path.exists():
        parts = [part for part, _ in jobs(study, path)]
        staging = path.with_name(f".{path.name}.partial")
        for part, row in COLUMNS.items():
            empty = np.full(parts.count(part), np.nan)
            table = xr.Dataset({field.name: ("row", empty) for field in dataclasses.fields(row)})
            table.to_zarr(staging, group=part, mode="w", consolidated=False)
        zarr.open_group(staging, mode="r+").attrs["study"] = description
        staging.rename(path)
    group = zarr.open_group(path, mode="r+")
    if group.attrs.get("study") != description:
        raise ValueError(f"{path} is not a table of this study; name another by --table, or remove it")
    return group


def run(study: Study, path: Path, folder: Path) -> None:
    """Compute the rows that the table lacks, and write each as it comes."""
    table, places = open_table(path, study), dict.fromkeys(COLUMNS, 0)
    pending = []
    for part, job in jobs(study, folder):
        if math.isnan(table[part][dataclasses.fields(COLUMNS[part])[0].name][places[part]]):
            pending.append((part, places[part], job))
        places[part] += 1
    if any(part == "rates" for part, *_ in pending):
        write_data(study.cases, folder)
    if pending:
        compare(1, Sphere(3), Permutations(3), 4)  # the first fit of a process loads libraries
    for part, place, job in tqdm(pending, disable=None, unit="row"):
        row = dataclasses.asdict(job())
        for name in reversed(row):  # the column by which it is known last
            table[part][name][place] = row[name]


def check(study: Study, groups: xr.Dataset, rates: xr.Dataset, gaps: xr.Dataset) -> None:
    """The bounds: exact dimensions and invariance, slopes within 10 % over three decades, the gap of the solvers."""
    assert (groups.functions == groups.molien).all(), groups.functions
    assert (groups.invariance <= 1e-10).all(), groups.invariance
    assert (groups.difference.dropna("row") <= 1e-9).all(), groups.difference
    ended = groups.averaged == groups.order
    assert ended.where(groups.order <= 6000, True).all()
    assert not ended.where(groups.order > 1e6, False).any()
    assert (gaps.projection >= 100 * gaps.least_squares).all(), gaps
    assert (rates.risk >= rates.floor * 0.999).all()
    assert (np.abs(np.log(rates.risk / rates.expected)) <= np.log(2)).all(), rates.risk / rates.expected
    for case in study.cases:
        found = exponents(rates, case)
        if found.decades >= 3:
            assert abs(found.slope / case.rate - 1) <= 0.1, (case.name, found)


# -- the command -----------------------------------------------------------------------------------------------------


@click.command(help=__doc__.split("\n\n")[1])
@click.option("--quick", "size", flag_value="quick", help="a few small groups and 20 000 points: does it work?")
@click.option("--whole", "size", flag_value="whole", help="larger groups, and up to 10 000 000 points")
@click.option("--most", type=click.IntRange(20_000), help="points of the rates at most")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="for the points; kept if given")
@click.option("--table", type=click.Path(file_okay=False, path_type=Path), default="invariances.zarr")
@click.option("--out", type=click.Path(path_type=Path), default=".", help="folder for the pictures; made if missing")
def main(size: str | None, most: int | None, folder: Path | None, table: Path, out: Path) -> None:
    """Run, check, draw and report."""
    study = {"quick": QUICK, "whole": Study()}.get(size or "", MINUTE)
    if most is not None:
        study = dataclasses.replace(study, rows=most)
    out.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        plot.refuse_picture(out / picture, overwrite=True)
    open_table(table, study)
    start = perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        run(study, table, folder or Path(temporary))
    click.echo(f"{perf_counter() - start:.0f} s of this run\n", err=True)
    groups, rates, gaps = (xr.load_dataset(table, group=part, engine="zarr", consolidated=False) for part in COLUMNS)
    draw(study.cases, groups, rates, out)
    click.echo(report(study.cases, groups, rates, gaps))
    check(study, groups, rates, gaps)


if __name__ == "__main__":
    main()
