"""Landmarks and the median distance, from one draw of rows."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral import landmarks as choosing
from daskspectral.data.source import Source, label_of
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import RankWarning, warn_user
from daskspectral.kernels import Kernel, Linear
from daskspectral.passes.copies import advise_copies
from daskspectral.passes.parameters import given_landmarks

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
MEDIAN_SAMPLE = 1000
MOST_LANDMARKS = 500  # by default
MOST_SPANNING = 2000  # columns, or rows, of which a linear kernel takes all


@dataclass(frozen=True, eq=False)
class Landmarks:
    """A kernel with its scale, the prepared landmarks (p, d), and the same in the raw columns of X (p, n_features_in).

    `rows` (p,) are the numbers of the rows that became landmarks, None where the landmarks are given.
    """

    kernel: Kernel
    points: Array
    raw: Array
    rows: NDArray[np.int64] | None


def choose_landmarks(
    source: Source,
    kernel: Kernel,
    landmarks: str | Any,
    p: int,
    random_state: Any,
    *,
    view: str = "x",
    at_most: bool = False,
    sample_size: int | None,
    on_invalid: str,
    progress: bool | None,
) -> Landmarks:
    """The landmarks, and the kernel with its scale resolved.

    `landmarks` is a method, or an array (p, n_features_in) in the raw columns of X. The points are the field `view`,
    and one draw of rows, in one cheap pass at most, serves the landmarks and the median distance; `sample_size` is the
    number of rows among which methods other than "uniform" choose.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError where no row is valid; fewer landmarks
    than p, where the sample holds no more that are distinct to the kernel, give a RankWarning, unless p is `at_most`.
    """
    given = not isinstance(landmarks, str)
    sample_size = 0 if given else p if landmarks == "uniform" else sample_size or default_sample(p)
    wanted = max(sample_size, MEDIAN_SAMPLE if kernel.needs_median else 0)
    rng = np.random.default_rng(random_state)
    preparation = source.preparations[view]
    rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    raw: Array = np.empty((0, source.width(view)))
    if wanted:
        options: dict[str, Any] = {"on_invalid": on_invalid, "progress": progress, "raw": True}
        rows, raw = draw_rows(source, wanted, rng, view=view, description="landmarks", **options)
        if not len(raw):
            raise ValueError("no rows are left: every row is invalid; mend the data")
        if view == "x":
            advise_copies(raw, source)
    points = preparation(raw)
    if kernel.needs_median:
        distance = choosing.median_distance(kernel.embedded(points), rng, size=MEDIAN_SAMPLE)
        logger.info("median distance %.6g taken as the kernel's scale", distance)
        kernel = kernel.resolve(distance)
    if given:
        raw = given_landmarks(landmarks, source.width(view), label_of(view), preparation.columns)
        return Landmarks(kernel, preparation(raw), raw, None)
    subset = np.sort(rng.choice(len(rows), min(sample_size, len(rows)), replace=False))
    rows, raw, points = rows[subset], raw[subset], points[subset]
    by_values = landmarks in choosing.BY_KERNEL
    chosen = choosing.choose(
        landmarks,
        points if by_values else kernel.embedded(points),
        min(p, len(points)),
        rng,
        gram=lambda a, b: kernel.values(b, a),
        diagonal=kernel.diagonal,
    )
    if len(chosen) < p and not at_most:
        warn_user(
            f"only {len(chosen)} of {p} landmarks could be chosen by {landmarks!r}: the sample of {len(points)} rows "
            "holds no more that are distinct to the kernel",
            RankWarning,
        )
    return Landmarks(kernel, points[chosen], raw[chosen], rows[chosen])


def spanning_landmarks(
    source: Source, rng: np.random.Generator, *, view: str, on_invalid: str, progress: bool | None
) -> Landmarks:
    """Landmarks of the linear kernel that span all its functions on the data: unit vectors, or all rows where fewer.

    The rows are taken less their mean, so that what they have in common does not hide how they differ.
    """
    preparation, width, d = source.preparations[view], source.width(view), source.dimension_at(view)
    if d <= source.n:
        points = np.eye(d)
        return Landmarks(Linear(), points, preparation.inverse(points, width), None)
    _, raw = draw_rows(source, source.n, rng, view=view, on_invalid=on_invalid, progress=progress, raw=True)
    if not len(raw):
        raise ValueError("no rows are left: every row is invalid; mend the data")
    points = preparation(raw).astype(float)
    points -= points.mean(axis=0)
    return Landmarks(Linear(), points, preparation.inverse(points, width), None)


def default_sample(p: int) -> int:
    """The default number of rows among which landmark methods other than "uniform" choose p."""
    return max(10 * p, 10_000)


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
