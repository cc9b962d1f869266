"""Landmarks, the median distance and periodic columns of a fit, and the share of copies, from one draw of rows."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from daskspectral.basis import LandmarkBasis
from daskspectral.basis import Landmarks as Asked
from daskspectral.data.containers import in_memory
from daskspectral.data.source import Source, label_of
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import Rank, RankWarning, TrustWarning, warn_user
from daskspectral.kernels import Kernel, Linear, Periodic
from daskspectral.landmarks import BY_KERNEL, choose, median_distance
from daskspectral.moments.folds import FoldRule, copies_words
from daskspectral.passes.scale import Added
from daskspectral.solve.problems import NORM_CUT

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
MEDIAN_SAMPLE = 1000
MOST_LANDMARKS = 500  # by default
COARSE = 32  # powers of two from one unit of columns to the next, within which float32 holds squares
MOST_SPANNING = 2000  # columns, or rows, of which a linear kernel takes all
SKETCHES, POWERS, OVERSAMPLED = 10, 2, 10  # groups of folds, power iterations, and directions beyond those wanted


@dataclass(frozen=True, eq=False)
class Found:
    """A kernel with its scale, the prepared landmarks (p, d), and the same in the raw columns of X (p, n_features_in).

    `rows` (p,) are the numbers of the rows that became landmarks, None where none did.
    """

    kernel: Kernel
    points: Array
    raw: Array
    rows: NDArray[np.int64] | None

    @property
    def basis(self) -> LandmarkBasis:
        """The functions."""
        return LandmarkBasis(self.kernel, self.points, centered=self.kernel.mixes_origin)


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
    rows, raw = np.empty(0, dtype=np.int64), np.empty((0, source.width(view)))
    if size:
        rows, raw = draw_rows(source, size, rng, view=view, description="landmarks", raw=True)
        if not len(raw):
            raise ValueError(f"no rows are left: every row is invalid. {source.remedy(1.0)}")
        if view == "x":
            advise_copies(raw, source)
    points = preparation(raw)
    if kernel.needs_median:
        distance = median_distance(kernel.embedded_about(points), rng, size=MEDIAN_SAMPLE)
        logger.info("median distance %.6g taken as the kernel's scale", distance)
        kernel = kernel.resolve(distance)
    given = given_points(wanted, source, view)
    if given is not None:
        return Found(kernel, (preparation.of_directions if type(kernel) is Linear else preparation)(given), given, None)
    subset = np.sort(rng.choice(len(rows), min(sample_size, len(rows)), replace=False))
    rows, raw, points = rows[subset], raw[subset], points[subset]
    chosen = rows_by(method, points, min(p, len(points)), kernel, rng)
    if type(kernel) is Linear:
        raw = preparation.of_directions.inverse(points, source.width(view))
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
    for name in (name for name, free in given.items() if getattr(found, name) != free):
        raise ValueError(f"the kernel of an embedding is that of its bandwidth: leave {name} of landmarks out")
    if found.count == "auto" and not isinstance(count, str):
        found = replace(found, count=min(count, found.sample or count))
    return replace(found, kernel=kernel)


def rows_by(method: str, points: Array, count: int, kernel: Kernel, rng: np.random.Generator) -> NDArray[np.intp]:
    """The numbers of the points that a method chooses as landmarks of a kernel."""
    seen = points if method in BY_KERNEL else kernel.embedded_about(points)
    return choose(method, seen, count, rng, gram=kernel, diagonal=kernel.diagonal)


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
        raise ValueError(f"points must be landmarks (p, {width}) in the columns of {label_of(view)}; {error}") from None
    finite = np.isfinite(array if columns is None else array[:, list(columns)]).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ValueError(f"landmarks must be finite; row {bad} is {array[bad]}")
    return np.array(array, dtype=float)


def spanning_landmarks(source: Source, *, view: str, centred: bool, units: Array | None = None) -> Found:
    """Orthonormal landmarks (r, d) of the linear kernel, whose functions are all linear ones on the data.

    They are unit vectors, or combinations of all rows where these are fewer; with `centred` the rows are taken less
    their mean, so that what they have in common does not hide how they differ. Unit vectors are divided by the `units`
    (d,) of columns whose squares leave the range of float32.
    """
    d = source.dimension_at(view)
    if source.n < d and source.on_invalid != "pairwise":
        _, raw = take_rows(source, np.arange(source.n), view=view, raw=True, description="landmarks")
        if not len(raw):
            raise ValueError(f"no rows are left: every row is invalid. {source.remedy(1.0)}")
        rows = np.asarray(source.preparations[view](raw), dtype=float)
        return _linear(source, _orthonormal(rows - rows.mean(axis=0) if centred else rows), view)
    if units is None or source.on_invalid == "pairwise":
        return _linear(source, np.eye(d), view)
    steps = np.log2(np.where(units > 0, units, 1.0))
    return _linear(source, np.diag(np.exp2(-COARSE * np.trunc(steps / COARSE).clip(-30, 30))), view)


def _orthonormal(rows: Array) -> Array:
    """An orthonormal basis (r, d) of the span of rows (n, d), at least one vector.

    By Cholesky factors of Gram matrices: with pivots, which tell the rank, and once more, to rounding (CholeskyQR2,
    Yamamoto and others 2015).
    """
    gram = rows @ rows.T
    factor, order, rank, _ = dpstrf(gram, tol=NORM_CUT * gram.diagonal().max(), lower=1)
    if not rank:
        return np.eye(1, rows.shape[1])
    columns = dtrsm(1.0, factor[:rank, :rank], rows[order[:rank] - 1].T, side=1, lower=1, trans_a=1, overwrite_b=1)
    factor = cholesky(columns.T @ columns, lower=True)
    return np.asarray(dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1).T)


def _linear(source: Source, points: Array, view: str) -> Found:
    preparation = source.preparations[view].of_directions
    return Found(Linear(), points, preparation.inverse(points, source.width(view)), None)


def sketched(components: int) -> int:
    """The number of directions that `leading_landmarks` finds at most."""
    return (SKETCHES + 1) * (components + OVERSAMPLED)


def leading_landmarks(
    source: Source, rng: np.random.Generator, components: int, fold_rule: FoldRule | None, *, view: str
) -> Found:
    """Orthonormal landmarks of the linear kernel that span, nearly, the leading directions of the centred rows.

    By randomised power iterations (Halko, Martinsson and Tropp 2011), a pass each. The span holds the leading
    directions of all rows, and of all rows without each group of folds: in that of all rows alone, functions that are
    fitted without a fold would still know its rows, and held-out values be too good.
    """
    directions = rng.standard_normal((source.dimension_at(view), components + OVERSAMPLED))
    plan, groups = plan_rows(source, 4.0 * directions.size), 1
    for power in range(POWERS + 1):
        rule = fold_rule if power == POWERS else None
        groups = SKETCHES if rule is not None else 1
        run = Run(source, plan, description="directions")
        sums = run.reduce(Added(partial(_products, view, directions, rule))).sums
        parts = [sums[str(group)] for group in range(groups) if str(group) in sums]
        whole = np.sum(parts, axis=0)
        sides = [whole, *(whole - part for part in parts if len(parts) > 1)]
        directions = np.linalg.qr(np.hstack([_centred(side, directions) for side in sides]))[0]
    return _linear(source, np.ascontiguousarray(directions.T), view)


def _products(view: str, directions: Array, rule: FoldRule | None, batch: Mapping[str, Array]) -> dict[str, Array]:
    """By group of folds the sums over rows x of weight w of w x (x q), of w x, and of w: (d, r + 2)."""
    x = batch[view]
    w = np.asarray(batch.get("weight", np.ones(len(x))), dtype=x.dtype)[:, None]
    beside = np.hstack([w * (x @ directions.astype(x.dtype, copy=False)), w])
    group = np.zeros(len(x), np.int64) if rule is None else rule.of(batch) % SKETCHES
    found = {}
    for number in np.unique(group).tolist():
        rows = group == number
        sums = x[rows].T @ beside[rows]
        found[str(number)] = np.column_stack([sums, np.full(len(sums), w[rows].sum())]).astype(float)
    return found


def _centred(sums: Array, directions: Array) -> Array:
    """The covariance about the mean times the directions, (d, r), from the sums of rows; up to their number."""
    first, weight = sums[:, -2], max(sums[0, -1], 1e-300)
    return np.asarray(sums[:, :-2] - np.outer(first, first @ directions) / weight)


def moved(points: Array, kernel: Kernel, spread: float) -> Array:
    """Landmarks (p, d) moved off the data by J = `spread` scales of the kernel, in directions that they decide alone.

    The order of the landmarks in each column decides, which is the same in any units and from any origin.

    y_i + J l g_i / sqrt(d) with standard normal g_i: functions at such landmarks have gradients across a submanifold on
    which the data lie, and extend the functions along it in more ways than functions at landmarks on it.
    """
    if not spread:
        return points
    digest = hashlib.sha256(np.argsort(points, axis=0, kind="stable").astype("<i8").tobytes()).digest()
    noise = np.random.default_rng(list(digest)).standard_normal(points.shape)
    return kernel.moved(points, spread * length_of(kernel) / np.sqrt(points.shape[1]) * noise)


def length_of(kernel: Kernel) -> float:
    """The scale of a kernel; of a combination the largest one, and 0 where no part has a scale."""
    params = kernel.get_params(deep=False)
    inner = [length_of(value) for value in params.values() if isinstance(value, Kernel)]
    scale = params.get("scale")
    return max([*inner, float(scale) if isinstance(scale, (int, float, np.number)) else 0.0])


# -- copies of rows ----------------------------------------------------------------------------------------------------


def advise_copies(x: NDArray[Any], source: Source) -> None:
    """Warn if rows are in folds by their numbers, and some of raw rows x (m, n_features_in), drawn from the source,
    are copies."""
    if source.by_number and (text := copies_words(source.preparation.selected(x), source.n)):
        warn_user(text, TrustWarning, Rank.DATA)


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
        raise ValueError(f"the kernel has the periods {tuple(kernel.periods)}, and {whose} {periods}. Give them once.")
    return kernel
