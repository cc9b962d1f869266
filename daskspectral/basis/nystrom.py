"""Recipe of kernel functions at landmarks (Nystrom), chosen among the rows."""

from __future__ import annotations

import copy
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.landmark import LandmarkBasis
from daskspectral.basis.recipe import BasisRecipe, OpenKernel, Sample
from daskspectral.errors import RankWarning, warn_user
from daskspectral.kernels import Gaussian, Kernel, Linear, Periodic
from daskspectral.kernels.base import LEAST_SCALE
from daskspectral.landmarks import BY_KERNEL, METHODS, choose, median_distance
from daskspectral.validation import (
    NOT_NEGATIVE,
    check_integer,
    check_number,
    check_option,
    check_type,
    is_number,
    is_word,
)

logger = logging.getLogger("daskspectral")
MEDIAN_SAMPLE = 1000
MOST_LANDMARKS, FEW_LANDMARKS = 500, 50  # by default


@dataclass(frozen=True, eq=False)
class Landmarks(OpenKernel, BasisRecipe):
    """Kernel functions k(., y_i) at landmarks y_i among the rows: the default basis.

    In a search, `basis__kernel__scale` sets the scale, of a Gaussian if the kernel is "auto".

    Parameters
    ----------
    kernel : Kernel, its name or "auto"
        Kernel k, such as Gaussian(0.5) or "gaussian:0.5". "auto" compares a rough and a smooth kernel at several
        scales and, if functions have gradients, in a metric in which slow functions vary evenly
        (`kernels.Mahalanobis`). A scale "auto", as in Gaussian("auto"), is chosen.
    n_landmarks : int or "auto"
        Number p of landmarks. "auto": a quarter of the rows, at most 500 (of fewer than 200 rows half, at most 50);
        for a regression 500.
    method : {"uniform", "kmeans++", "cholesky", "farthest"}
        Selection of landmarks among the rows (`help(daskspectral.landmarks)`).
    points : array (p, n_features), optional
        Landmarks y_i in the units of X; `n_landmarks` and `method` are then ignored.
    n_candidates : int, optional
        Number of candidate rows of methods other than "uniform", drawn uniformly; by default max(10 p, 10 000).
    jitter : float or "auto"
        Distance by which landmarks are moved off the data in random directions, in scales of the kernel; it helps on
        submanifolds. "auto": .3 for operators with derivatives if the kernel is chosen; else 0.
    periods : mapping of int to float, optional
        Periods by column index of X, in which the kernel is made periodic (`kernels.Periodic`); for angles in the
        first column, {0: 2 * numpy.pi}.
    constant : bool, optional
        True to add the constant function; by default if the operator annihilates it, and to linear functions, whose
        span would otherwise depend on the origin unless means are subtracted. Concatenated((ConstantBasis(d), basis))
        adds it to other functions.
    drop_landmark_rows : bool, optional
        True to exclude rows that coincide with landmarks if the form has derivatives: a radial kernel has a zero
        gradient at its landmark, which can make spurious small eigenvalues. By default if the kernel has a kink
        (Exponential) and nine tenths of the rows remain. With other radial kernels such rows are in the sums, and in
        no fold while there are fewer than 100 rows per landmark.

    See Also
    --------
    LandmarkBasis : The basis.
    FourierBasis : A lattice of frequencies, for one to three variables.
    NearestCentroids : Weights of centroids, for random walks.

    Examples
    --------
    >>> from daskspectral.basis import Landmarks
    >>> basis = Landmarks(Gaussian(1.0), 50)
    >>> basis.set_params(kernel__scale=0.5).kernel
    Gaussian(scale=0.5)
    """

    kernel: Kernel | str = "auto"
    n_landmarks: int | str = "auto"
    _: KW_ONLY
    method: str = "kmeans++"
    points: Any = None
    n_candidates: int | None = None
    jitter: float | str = "auto"
    periods: Mapping[int, float] | None = None
    constant: bool | None = None
    drop_landmark_rows: bool | None = None

    expects: ClassVar = {"kernel": Kernel}
    dimension_names: ClassVar = {"points": ("landmark", "column")}

    def __post_init__(self) -> None:
        self._name_kernel()
        if not is_word(self.n_landmarks, "auto"):
            check_integer("n_landmarks", self.n_landmarks)
        check_option("method", self.method, METHODS)
        if self.n_candidates is not None:
            least = 1 if self.n_landmarks == "auto" else int(self.n_landmarks)
            check_integer("n_candidates", self.n_candidates, least)
        if self.jitter != "auto":
            check_number("jitter", self.jitter, NOT_NEGATIVE)
        for name in ("constant", "drop_landmark_rows"):
            check_option(name, getattr(self, name), (None, True, False))
        check_periods(self.periods)

    @property
    def landmark_recipe(self) -> Landmarks:
        return self

    def with_landmarks(self, landmarks: Landmarks) -> Landmarks:
        return landmarks

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        """Return the number of landmarks, by default as `n_landmarks` describes.

        More would make most summed rows landmarks, at which their functions are flat.
        """
        if self.points is not None:
            return len(self.points)
        if self.n_landmarks != "auto":
            return int(self.n_landmarks)
        targets = operator.functionals.keys() - {"first", "right_first"}
        most = n_rows if targets else max(n_rows // 4, min(n_rows // 2, FEW_LANDMARKS), 1)
        return min(MOST_LANDMARKS, most, self.n_candidates or most)

    @property
    def open_kernel(self) -> Kernel:
        """Kernel; a Gaussian if it is "auto"."""
        return self.kernel if isinstance(self.kernel, Kernel) else Gaussian("auto")

    def probe(self, sample: Sample) -> Basis:
        return LandmarkBasis(sample.periodic(self.open_kernel), np.ones((1, sample.dimension)))

    def resolved(self, sample: Sample, rng: np.random.Generator) -> Landmarks:
        """Return the recipe with landmarks as points of the data, and the scale of their kernel, from one sample.

        Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError if no row is valid. Warns
        (RankWarning) if fewer distinct landmarks than requested are found, unless the number is `at_most`.
        """
        kernel, method = sample.periodic(self.open_kernel), self.method
        p = self.cost(sample.operator, sample.dimension, sample.n_rows) if self.drawn else 0
        candidates = p if method == "uniform" or not p else self.n_candidates or max(10 * p, 10_000)
        size = max(candidates, MEDIAN_SAMPLE if kernel.needs_median else 0)
        rows, raw, points = sample.draw(size, rng) if size else (np.empty(0),) * 3
        if kernel.needs_median:
            distance = median_distance(kernel.embedded_about(points), rng, size=MEDIAN_SAMPLE)
            logger.info("median distance %.6g used as the kernel's scale", distance)
            kernel = kernel.resolve(distance)
        if self.points is not None:
            return self.closed(kernel, sample.given(self.points))
        subset = np.sort(rng.choice(len(rows), min(candidates, len(rows)), replace=False))
        rows, raw, points = rows[subset], raw[subset], points[subset]
        chosen = select_landmarks(method, points, min(p, len(points)), kernel, rng)
        if type(kernel) is Linear:
            raw = sample.directions(points)
        if len(chosen) < p and not sample.at_most:
            warn_user(
                f"only {len(chosen)} of {p} landmarks could be chosen by {method!r}: the kernel distinguishes "
                f"no more of {len(points)} sampled rows. Lower n_landmarks, or raise n_candidates.",
                RankWarning,
            )
        sample.check(rows[chosen], points[chosen])
        return self.closed(kernel, raw[chosen])

    def closed(self, kernel: Kernel, raw: Array, jitter: float | None = None) -> Landmarks:
        """Return the recipe with this kernel at these raw landmarks."""
        if not isinstance(self.kernel, Periodic):
            kernel = kernel.flat  # the periods follow from the data
        if jitter is None:
            jitter = 0.0 if self.jitter == "auto" else float(self.jitter)
        kernel = copy.deepcopy(kernel)  # later changes in place do not affect fitted models
        return replace(self, kernel=kernel, points=raw, n_landmarks=len(raw), jitter=jitter)

    def build(self, sample: Sample, rng: np.random.Generator) -> LandmarkBasis:
        recipe = self.resolved(sample, rng)
        kernel = sample.periodic(recipe.open_kernel)
        points = sample.prepared(recipe.points, directions=type(kernel) is Linear)
        return LandmarkBasis(kernel, jittered(points, kernel, float(recipe.jitter)), centered=kernel.mixes_origin)

    @property
    def linear(self) -> bool:
        """True if the kernel is linear, without periods."""
        return type(self.kernel) is Linear and self.periods is None

    @property
    def automatic(self) -> bool:
        """True if the kernel or its scale is chosen from the data."""
        return self.open_kernel.automatic

    @property
    def drawn(self) -> bool:
        """True if landmarks are chosen among the rows."""
        return self.points is None

    def state(self) -> dict[str, Any]:
        periods = None if self.periods is None else {str(column): float(p) for column, p in self.periods.items()}
        points = None if self.points is None else np.asarray(self.points)
        return {**super().state(), "periods": periods, "points": points}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        periods = state["periods"]  # keys in files are strings
        return cls(**{**state, "periods": None if periods is None else {int(c): p for c, p in periods.items()}})


def check_periods(periods: Any) -> None:
    """Raise ValueError or TypeError unless periods map column indices to positive lengths."""
    if periods is not None:
        check_type("periods", periods, Mapping, "a mapping of column indices to lengths")
        for column, period in periods.items():
            check_integer("periods", column, -(1 << 31))
            check_number(f"periods[{column}]", period, f"({LEAST_SCALE:g}, {1 / LEAST_SCALE:g})")


def select_landmarks(
    method: str, points: Array, count: int, kernel: Kernel, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the indices of the points that a method selects as landmarks."""
    seen = points if method in BY_KERNEL else kernel.embedded_about(points)
    return choose(method, seen, count, rng, gram=kernel, diagonal=kernel.diagonal)


def jittered(points: Array, kernel: Kernel, jitter: float, noise: Array | None = None) -> Array:
    """Return the landmarks (p, d) moved off the data by `jitter` scales of the kernel.

    y_i + J l g_i / sqrt(d) with standard normal g_i (`noise`, (p, d)), J = `jitter`. The directions depend on the
    order of the landmarks in each column alone, which is invariant under changes of units and origin.
    """
    if not jitter:
        return points
    noise = jitter_noise(points) if noise is None else noise
    return kernel.moved(points, jitter * kernel_length(kernel) / np.sqrt(points.shape[1]) * noise)


def jitter_noise(points: Array) -> Array:
    """Return the standard normal g (p, d) by which landmarks are moved."""
    digest = hashlib.sha256(np.argsort(points, axis=0, kind="stable").astype("<i8").tobytes()).digest()
    return np.random.default_rng(list(digest)).standard_normal(points.shape)


def kernel_length(kernel: Kernel) -> float:
    """Return the scale of a kernel, the largest one of a combination, or 0."""
    scale: Any = kernel.get_params(deep=False).get("scale")
    return max([*map(kernel_length, kernel.kernels.values()), float(scale) if is_number(scale) else 0.0])
