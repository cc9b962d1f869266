"""Landmarks, the median distance and periodic columns of a fit, and the share of copies, from one draw of rows."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import LandmarkBasis, RowSpace
from daskspectral.basis import Landmarks as Asked
from daskspectral.data.containers import in_memory
from daskspectral.data.source import Source, label_of
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import RankWarning, TrustWarning, warn_user
from daskspectral.kernels import Kernel, Linear, Periodic
from daskspectral.landmarks import BY_KERNEL, choose, median_distance
from daskspectral.moments.folds import distinct_rows
from daskspectral.solve.solvers import NORM_CUT
from daskspectral.solve.whitening import eigh, fix_signs

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
MEDIAN_SAMPLE = 1000
MOST_LANDMARKS = 500  # by default
MOST_SPANNING = 2000  # columns, or rows, of which a linear kernel takes all


@dataclass(frozen=True, eq=False)
class Found:
    """A kernel with its scale, the prepared landmarks (p, d), and the same in the raw columns of X (p, n_features_in).

    `rows` (p,) are the numbers of the rows that became landmarks, None where the landmarks are given. The functions are
    orthonormal combinations, of the coefficients `directions` (p, r), where there are such.
    """

    kernel: Kernel
    points: Array
    raw: Array
    rows: NDArray[np.int64] | None
    directions: Array | None = None

    @property
    def basis(self) -> LandmarkBasis:
        """The functions."""
        if self.directions is None:
            return LandmarkBasis(self.kernel, self.points)
        return RowSpace(self.kernel, self.points, self.directions)


def choose_landmarks(
    source: Source, wanted: Asked, random_state: Any, *, view: str = "x", at_most: bool = False
) -> Found:
    """The landmarks that are asked for, of a kernel that is given, with its scale resolved.

    The points are the field `view`, and one draw of rows, in one cheap pass at most, serves the landmarks and the
    median distance.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError where no row is valid; fewer landmarks
    than are asked for, where the sample holds no more that are distinct to the kernel, give a RankWarning, unless their
    count is `at_most`.
    """
    kernel, method = wanted.kernel, wanted.method
    assert isinstance(kernel, Kernel)
    p = int(wanted.count) if wanted.drawn else 0
    sample_size = p if method == "uniform" or not p else wanted.sample or max(10 * p, 10_000)
    size = max(sample_size, MEDIAN_SAMPLE if kernel.needs_median else 0)
    rng = np.random.default_rng(random_state)
    preparation = source.preparations[view]
    rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    raw: Array = np.empty((0, source.width(view)))
    if size:
        rows, raw = draw_rows(source, size, rng, view=view, description="landmarks", raw=True)
        if not len(raw):
            raise ValueError("no rows are left: every row is invalid; mend the data")
        if view == "x":
            advise_copies(raw, source)
    points = preparation(raw)
    if kernel.needs_median:
        distance = median_distance(kernel.embedded(points), rng, size=MEDIAN_SAMPLE)
        logger.info("median distance %.6g taken as the kernel's scale", distance)
        kernel = kernel.resolve(distance)
    given = given_points(wanted, source, view)
    if given is not None:
        return Found(kernel, preparation(given), given, None)
    subset = np.sort(rng.choice(len(rows), min(sample_size, len(rows)), replace=False))
    rows, raw, points = rows[subset], raw[subset], points[subset]
    chosen = rows_by(method, points, min(p, len(points)), kernel, rng)
    if len(chosen) < p and not at_most:
        warn_user(
            f"only {len(chosen)} of {p} landmarks could be chosen by {method!r}: the sample of {len(points)} rows "
            "holds no more that are distinct to the kernel",
            RankWarning,
        )
    return Found(kernel, points[chosen], raw[chosen], rows[chosen])


def of_kernel(asked: Any, kernel: Kernel, *, count: int | str) -> Asked:
    """Landmarks of an embedding, whose kernel is that of its bandwidth; where None are asked for, by "cholesky".

    Raises TypeError for anything but Landmarks, ValueError for what an embedding decides itself.
    """
    found = Asked(count=count, method="cholesky") if asked is None else asked
    if not isinstance(found, Asked):
        raise TypeError(f"landmarks must be daskspectral.basis.Landmarks(count=...), or None; got {asked!r}")
    given = {"kernel": "auto", "spread": "auto", "periods": None, "constant": None, "exclude": None}
    for name, free in given.items():
        if getattr(found, name) != free:
            raise ValueError(f"the kernel of an embedding is that of its bandwidth: leave {name} of landmarks out")
    if found.count == "auto" and not isinstance(count, str):
        found = replace(found, count=min(count, found.sample or count))
    return replace(found, kernel=kernel)


def rows_by(method: str, points: Array, count: int, kernel: Kernel, rng: np.random.Generator) -> NDArray[np.intp]:
    """The numbers of the points that a method chooses as landmarks of a kernel."""
    return choose(
        method,
        points if method in BY_KERNEL else kernel.embedded(points),
        count,
        rng,
        gram=kernel,
        diagonal=kernel.diagonal,
    )


def given_points(wanted: Asked, source: Source, view: str = "x") -> Array | None:
    """A copy (p, n_features) of landmarks that are given, in the raw columns of a view; None where they are drawn.

    Raises ValueError for anything but an array of as many columns as the data, finite in those that are used.
    """
    if wanted.points is None:
        return None
    width, columns = source.width(view), source.preparations[view].columns
    try:
        array = np.asarray(in_memory(wanted.points, "the array"))
        if array.dtype.kind not in "fiub":
            raise ValueError(f"their dtype is {array.dtype}")
        if array.ndim != 2 or array.shape[1] != width or not len(array):
            raise ValueError(f"they have shape {array.shape}")
    except ValueError as error:
        raise ValueError(
            f"points must be an array (p, {width}) of landmarks, one column for each of {label_of(view)}; {error}"
        ) from None
    finite = np.isfinite(array if columns is None else array[:, list(columns)]).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ValueError(f"landmarks must be finite; row {bad} is {array[bad]}")
    return np.array(array, dtype=float)


def spanning_landmarks(source: Source, *, view: str, centred: bool) -> Found:
    """Landmarks of the linear kernel that span all its functions on the data: unit vectors, or all rows where fewer.

    The rows are combined to their principal directions; with `centred` they are taken less their mean, so that what
    they have in common does not hide how they differ.
    """
    preparation, width, d = source.preparations[view], source.width(view), source.dimension_at(view)
    if d <= source.n:
        points = np.eye(d)
        return Found(Linear(), points, preparation.inverse(points, width), None)
    _, raw = take_rows(source, np.arange(source.n), view=view, raw=True, description="landmarks")
    if not len(raw):
        raise ValueError("no rows are left: every row is invalid; mend the data")
    points = np.ascontiguousarray(preparation(raw), dtype=float)
    if centred:
        points -= points.mean(axis=0)
    squares, vectors = eigh(points @ points.T, "evd")
    kept = squares > NORM_CUT * squares[-1]
    directions = (vectors[:, kept] / np.sqrt(squares[kept]))[:, ::-1]
    fix_signs(directions)
    return Found(Linear(), points, preparation.inverse(points, width), None, directions)


def moved(points: Array, kernel: Kernel, spread: float) -> Array:
    """Landmarks (p, d) moved off the data by J = `spread` scales of the kernel, in directions that they decide alone.

    y_i + J l g_i / sqrt(d) with standard normal g_i: functions at such landmarks have gradients across a submanifold on
    which the data lie, and extend the functions along it in more ways than functions at landmarks on it.
    """
    if not spread:
        return points
    digest = hashlib.sha256(np.ascontiguousarray(points, dtype=float).tobytes()).digest()
    noise = np.random.default_rng(list(digest)).standard_normal(points.shape)
    return kernel.moved(points, spread * length_of(kernel) / np.sqrt(points.shape[1]) * noise)


def length_of(kernel: Kernel) -> float:
    """The scale of a kernel; of a combination the largest one, and 0 where no part has a scale."""
    params = kernel.get_params(deep=False)
    inner = [length_of(value) for value in params.values() if isinstance(value, Kernel)]
    scale = params.get("scale")
    return max([*inner, float(scale) if isinstance(scale, (int, float, np.number)) else 0.0])


# -- copies of rows ----------------------------------------------------------------------------------------------------


LEAST_COPIES, LEAST_PAIRS = 0.01, 3


def advise_copies(x: NDArray[Any], source: Source) -> None:
    """Warn where whole tasks are dealt to folds, and of raw rows x (m, n_features_in), drawn from the source, some are
    copies: of n rows with c further copies each, m drawn ones hold about c m^2 / (2 n) pairs."""
    if not source.by_tasks or not len(x):
        return
    counts = np.bincount(distinct_rows(source.preparation.selected(x)))
    pairs = int(np.sum(counts * (counts - 1)) // 2)
    copies = 2 * source.n * pairs / len(x) ** 2
    if pairs >= LEAST_PAIRS and copies > LEAST_COPIES:
        warn_user(
            f"rows are copies of others: about {copies:.2g} further ones for each row ({pairs} pairs of {len(x)} rows "
            "that were drawn are equal). Folds of whole tasks hold copies apart, and held-out values and error bars "
            "take them for other rows: they come out too good. Give each row once, with sample_weight, or labels "
            "that copies share, folds=labels",
            TrustWarning,
        )


# -- periodic columns --------------------------------------------------------------------------------------------------


Periods = tuple[float | None, ...]


def periods_of(periods: Mapping[Any, Any], source: Source, view: str = "x") -> Periods:
    """The period of each prepared column, None for a column without. Raises ValueError for columns that do not exist.

    The numbers in `periods` count the columns of X as given, before `columns` selects; negative ones from the end.
    """
    return by_column(periods, source.width(view), source.preparations[view].columns, label_of(view))


def by_column(periods: Mapping[Any, Any], width: int, chosen: tuple[int, ...] | None, what: str = "X") -> Periods:
    """The same for `what` of so many columns, of which some are chosen."""
    columns = range(width) if chosen is None else chosen
    found: dict[int, float] = {}
    for column, period in periods.items():
        if not -width <= column < width:
            raise ValueError(f"periods names the column {column}, and {what} has {width} columns, 0 to {width - 1}")
        if column % width not in columns:
            raise ValueError(f"periods names the column {column}, which columns={list(columns)} leaves out")
        if column % width in found:
            raise ValueError(f"periods names the column {column % width} twice, from both ends")
        found[column % width] = float(period)
    return tuple(found.get(column) for column in columns)


def periodic(kernel: Kernel, periods: Periods | None, whose: str) -> Kernel:
    """The kernel on columns with these periods. Raises ValueError where it has other periods of its own."""
    if periods is None:
        return kernel
    if not isinstance(kernel, Periodic):
        return Periodic(kernel, periods)
    if tuple(kernel.periods) != periods:
        raise ValueError(
            f"the kernel has the periods {tuple(kernel.periods)}, and {whose} {periods}; give the kernel alone, and it "
            "is made periodic"
        )
    return kernel
