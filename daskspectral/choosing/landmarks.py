"""Samples of rows for landmarks, directions of linear kernels, copies of rows, periodic columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from daskspectral.basis import Basis, BasisRecipe, FourierBasis, FourierLattice, LandmarkBasis, Landmarks, NeuralBasis
from daskspectral.basis.recipe import Periods, Sample
from daskspectral.choosing.lattice import boxed
from daskspectral.data.containers import in_memory
from daskspectral.data.source import Preparation, Source, label_of
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import Rank, ReliabilityWarning, renumbered, warn_user
from daskspectral.kernels import Kernel, Linear, Periodic
from daskspectral.moments.folds import FoldRule, copies_words
from daskspectral.passes.scale import added
from daskspectral.passes.wide import RowScores, leading_components
from daskspectral.solve.problems import NORM_CUT

Array = NDArray[np.floating[Any]]
COARSE = 32  # powers of two between units of columns, within the range of squares in float32
MOST_SPANNING = 2000  # columns, or rows, up to which a linear kernel uses all
SKETCHES, POWERS, OVERSAMPLED = 10, 2, 10  # groups of folds, power iterations, additional directions


@dataclass(frozen=True, eq=False)
class FitSample:
    """Rows of a source for recipes (`basis.recipe.Sample`): points of one `view`, with these `periods`.

    If `checked`, the `operator` must be defined at the points. `units` (d,) are the magnitudes of columns whose unit is
    arbitrary, `fold_rule` is that of the pass, and `train` returns the trained functions of a network.
    """

    source: Source
    view: str = "x"
    periods: Periods | None = None
    operator: Any = None
    checked: bool = False
    at_most: bool = False
    units: Array | None = None
    fold_rule: FoldRule | None = None
    train: Callable[[NeuralBasis, np.random.Generator], Basis] | None = None

    @property
    def n_rows(self) -> int:
        return self.source.n

    @property
    def dimension(self) -> int:
        return self.source.dimension_at(self.view)

    @property
    def preparation(self) -> Preparation:
        return self.source.preparations[self.view]

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return the numbers of up to `size` rows drawn uniformly, their raw and prepared points.

        Raises InvalidRowError for an invalid row (on_invalid="raise"), and ValueError if no row is valid.
        """
        rows, raw = draw_rows(self.source, size, rng, view=self.view, description="landmarks", raw=True)
        if not len(raw):
            raise ValueError(f"every row is invalid. {self.source.remedy(1.0)}")
        if self.view == "x":
            advise_copies(raw, self.source)
        return rows, raw, self.preparation(raw)

    def given(self, points: Any) -> Array:
        """Return a copy of raw points; raise ValueError unless finite, in the columns of the data."""
        width, columns = self.source.width(self.view), self.preparation.columns
        try:
            array = np.asarray(in_memory(points, "the array"))
            if array.dtype.kind not in "fiub":
                raise ValueError(f"the dtype {array.dtype}")
            if array.ndim != 2 or array.shape[1] != width or not len(array):
                raise ValueError(f"the shape {array.shape}")
        except ValueError as error:
            raise ValueError(
                f"points must be landmarks (p, {width}) in the columns of {label_of(self.view)}, got {error}"
            ) from None
        finite = np.isfinite(array if columns is None else array[:, list(columns)]).all(axis=1)
        if not finite.all():
            bad = int(np.argmin(finite))
            raise ValueError(f"landmarks must be finite, got {array[bad]} in row {bad}")
        return np.array(array, dtype=float)

    def prepared(self, raw: Array, *, directions: bool = False) -> Array:
        """Return the prepared points of raw ones; `directions` have no origin."""
        return (self.preparation.of_directions if directions else self.preparation)(raw)

    def directions(self, points: Array) -> Array:
        """Return directions in prepared columns as directions in the raw columns of X."""
        return self.preparation.of_directions.inverse(points, self.source.width(self.view))

    def periodic(self, kernel: Kernel) -> Kernel:
        """Return the kernel with the periods of these data; raise ValueError if it has other periods."""
        if self.periods is None:
            return kernel
        if kernel.flat is kernel:
            return Periodic(kernel, self.periods)
        if (found := tuple(cast(Periodic, kernel).periods)) != self.periods:
            raise ValueError(
                f"the kernel must have the periods {self.periods} of operator or periods=, got {found}: pass them once."
            )
        return kernel

    def check(self, rows: Array, points: Array) -> None:
        """Raise an error with the number of the row if the operator is not defined at a point."""
        if self.checked:
            with renumbered(lambda k: rows[k]):
                self.operator.check_points(points)

    def boxed(self, recipe: FourierBasis, rng: np.random.Generator) -> FourierLattice:
        """Return a Fourier lattice on the box of the recipe, or of the rows, with its method of summing."""
        return boxed(recipe, self.source, self.operator, rng)

    def trained(self, recipe: NeuralBasis, rng: np.random.Generator) -> Basis:
        assert self.train is not None
        return self.train(recipe, rng)

    def centered(self, basis: Basis) -> Basis:
        """Return a basis of the prepared points with the span of one for uncentered points."""
        prepared = self.preparation
        if prepared.mean is not None and not prepared.standardized:
            found = basis.translated(-prepared.mean if prepared.scale is None else -prepared.mean / prepared.scale)
            assert found is not None
            basis = found.basis
        return basis if self.units is None else basis.in_units(self.units)


def of_kernel(landmarks: Any, kernel: Kernel, *, count: int | str) -> Landmarks:
    """Return the landmarks of an embedding with its kernel, by default of the method "cholesky".

    Raises TypeError if they are not Landmarks, and ValueError for parameters that the embedding determines.
    """
    found = Landmarks(n_landmarks=count, method="cholesky") if landmarks is None else landmarks
    if not isinstance(found, Landmarks):
        raise TypeError(f"landmarks must be daskspectral.basis.Landmarks(n_landmarks=...) or None, got {landmarks!r}")
    given = {"kernel": "auto", "jitter": "auto", "periods": None, "constant": None, "drop_landmark_rows": None}
    for name in (name for name, free in given.items() if getattr(found, name) != free):
        raise ValueError(f"{name} of landmarks is determined by the embedding: omit it")
    if found.n_landmarks == "auto" and count != "auto":
        found = replace(found, n_landmarks=min(int(count), found.n_candidates or int(count)))
    return replace(found, kernel=kernel)


@dataclass(frozen=True, eq=False)
class LinearDirections(BasisRecipe):
    """Landmarks of the linear kernel that span all linear functions on the data, or the leading ones.

    `asked` are the landmarks of the user, `size` is the number of functions. With `components` the span includes this
    number of principal components, otherwise all linear functions; `centered` if a constant is added. For fewer rows
    than columns, components are those of the Gram matrix `of_rows` (`passes.wide`).
    """

    asked: Landmarks
    size: int
    components: int
    centered: bool
    of_rows: bool = False

    @property
    def landmark_recipe(self) -> Landmarks:
        return self.asked

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        return self.size

    def probe(self, sample: Sample) -> Basis:
        return self.asked.probe(sample)

    def scored(self, source: Source) -> tuple[Source, LandmarkBasis, RowScores]:
        """Return the centered source, the leading components `of_rows`, and the scores of the rows."""
        source, directions, scores = leading_components(source, self.size, centered=self.centered)
        return source, LandmarkBasis(Linear(), directions), scores

    def build(self, sample: Any, rng: np.random.Generator) -> LandmarkBasis:
        if self.components:
            points = leading_directions(sample.source, rng, self.components, sample.fold_rule, view=sample.view)
        else:
            units = None if sample.operator.solver.by_norm else sample.units
            points = spanning_directions(sample.source, view=sample.view, centered=self.centered, units=units)
        return LandmarkBasis(Linear(), points)


def spanning_directions(source: Source, *, view: str, centered: bool, units: Array | None = None) -> Array:
    """Return orthonormal directions (r, d) that span all linear functions on the data.

    They are unit vectors, or combinations of all rows if these are fewer. If `centered`, the mean of the rows is
    subtracted, so that it does not dominate their differences. Unit vectors are divided by the `units` (d,) of columns
    whose squares exceed the range of float32.
    """
    d = source.dimension_at(view)
    if source.n < d and source.on_invalid != "pairwise":
        _, raw = take_rows(source, np.arange(source.n), view=view, raw=True, description="landmarks")
        if not len(raw):
            raise ValueError(f"every row is invalid. {source.remedy(1.0)}")
        rows = np.asarray(source.preparations[view](raw), dtype=float)
        return _orthonormal(rows - rows.mean(axis=0) if centered else rows)
    if units is None or source.on_invalid == "pairwise":
        return np.eye(d)
    steps = np.log2(np.where(units > 0, units, 1.0))
    return np.diag(np.exp2(-COARSE * np.trunc(steps / COARSE).clip(-30, 30)))


def _orthonormal(rows: Array) -> Array:
    """Return an orthonormal basis (r, d) of the span of rows (n, d), at least one vector.

    By Cholesky factors of Gram matrices: with pivots, which determine the rank, and once more, to machine precision
    (CholeskyQR2, Yamamoto et al. 2015).
    """
    gram = rows @ rows.T
    factor, order, rank, _ = dpstrf(gram, tol=NORM_CUT * gram.diagonal().max(), lower=1)
    if not rank:
        return np.eye(1, rows.shape[1])
    columns = dtrsm(1.0, factor[:rank, :rank], rows[order[:rank] - 1].T, side=1, lower=1, trans_a=1, overwrite_b=1)
    factor = cholesky(columns.T @ columns, lower=True)
    return np.asarray(dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1).T)


def sketched(components: int) -> int:
    """Return the maximum number of directions of `leading_directions`."""
    return (SKETCHES + 1) * (components + OVERSAMPLED)


def leading_directions(
    source: Source, rng: np.random.Generator, components: int, fold_rule: FoldRule | None, *, view: str
) -> Array:
    """Return orthonormal directions (r, d) that nearly span the leading ones of the centered rows.

    By randomized power iterations (Halko, Martinsson and Tropp 2011), one pass each. The span contains the leading
    directions of all rows, and of all rows without each group of folds: functions fitted without a fold would otherwise
    depend on its rows, and validation values would be too good.
    """
    directions = rng.standard_normal((source.dimension_at(view), components + OVERSAMPLED))
    plan, groups = plan_rows(source, 4.0 * directions.size), 1
    for power in range(POWERS + 1):
        rule = fold_rule if power == POWERS else None
        groups = SKETCHES if rule is not None else 1
        run = Run(source, plan, description="directions")
        sums = run.reduce(partial(added, partial(_products, view, directions, rule))).sums
        parts = [sums[str(group)] for group in range(groups) if str(group) in sums]
        whole = np.sum(parts, axis=0)
        sides = [whole, *(whole - part for part in parts if len(parts) > 1)]
        directions = np.linalg.qr(np.hstack([_centered(side, directions) for side in sides]))[0]
    return np.ascontiguousarray(directions.T)


def _products(view: str, directions: Array, rule: FoldRule | None, batch: Mapping[str, Array]) -> dict[str, Array]:
    """Return for each group of folds sums of w x (x q), w x and w over rows x of weight w, (d, r + 2)."""
    x = batch[view]
    w = np.asarray(batch.get("weight", np.ones(len(x))), dtype=x.dtype)[:, None]
    products = np.hstack([w * (x @ directions.astype(x.dtype, copy=False)), w])
    group = np.zeros(len(x), np.int64) if rule is None else rule.of(batch) % SKETCHES
    found = {}
    numbers = np.unique(group).tolist()
    for number in numbers:
        rows = group == number if len(numbers) > 1 else slice(None)
        sums = x[rows].T @ products[rows]
        found[str(number)] = np.column_stack([sums, np.full(len(sums), w[rows].sum())]).astype(float)
    return found


def _centered(sums: Array, directions: Array) -> Array:
    """Return the covariance times the directions, (d, r), times the number of rows, from sums of rows."""
    first, weight = sums[:, -2], max(sums[0, -1], 1e-300)
    return np.asarray(sums[:, :-2] - np.outer(first, first @ directions) / weight)


# -- copies of rows ----------------------------------------------------------------------------------------------------


def advise_copies(x: NDArray[Any], source: Source) -> None:
    """Warn if folds are by number of rows, and some of the raw rows x (m, n_features_in) are copies."""
    if source.by_number and (text := copies_words(source.preparation.selected(x), source.n)):
        warn_user(text, ReliabilityWarning, Rank.DATA)


# -- periodic columns --------------------------------------------------------------------------------------------------


def periods_of(periods: Mapping[Any, Any], source: Source, view: str = "x") -> Periods:
    """Return the period of each prepared column, None for aperiodic ones.

    Keys of `periods` number the columns of X before selection by `columns`, negative ones from the end. Raises
    ValueError for columns that do not exist.
    """
    return by_column(periods, source.width(view), source.preparations[view].columns, label_of(view))


def by_column(periods: Mapping[Any, Any], width: int, chosen: tuple[int, ...] | None, what: str = "X") -> Periods:
    """Return the period of each of the chosen columns, out of `width` columns of `what`."""
    columns = range(width) if chosen is None else chosen
    found: dict[int, float] = {}
    for column, period in periods.items():
        if not -width <= column < width:
            raise ValueError(f"periods must be for columns from 0 to {width - 1} of {what}, got {column}")
        if column % width not in columns:
            raise ValueError(f"periods must be for the selected columns={list(columns)}, got {column}")
        if column % width in found:
            raise ValueError(f"periods has the column {column % width} twice, counted from both ends: omit one")
        found[column % width] = float(period)
    return tuple(found.get(column) for column in columns)
