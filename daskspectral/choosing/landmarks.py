"""Landmarks, the median distance and periodic columns of a fit, and the share of copies, from one draw of rows."""

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
COARSE = 32  # powers of two from one unit of columns to the next, within which float32 holds squares
MOST_SPANNING = 2000  # columns, or rows, of which a linear kernel takes all
SKETCHES, POWERS, OVERSAMPLED = 10, 2, 10  # groups of folds, power iterations, and directions beyond those wanted


@dataclass(frozen=True, eq=False)
class FitSample:
    """Rows of a source, as recipes draw them (`basis.recipe.Sample`): points of one `view`, with these `periods`.

    If they are `checked`, points must suit the `operator`. `units` (d,) are the magnitudes of columns whose unit does
    not matter, `fold_rule` is that of the pass, `train` returns the trained functions of a network.
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
        """The number of rows."""
        return self.source.n

    @property
    def dimension(self) -> int:
        """The number of variables d."""
        return self.source.dimension_at(self.view)

    @property
    def preparation(self) -> Preparation:
        """What is done to the columns of the points."""
        return self.source.preparations[self.view]

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return the numbers of up to `size` rows drawn uniformly, their raw points and their prepared ones.

        Raise InvalidRowError for an invalid row (on_invalid="raise"), ValueError if no row is valid.
        """
        rows, raw = draw_rows(self.source, size, rng, view=self.view, description="landmarks", raw=True)
        if not len(raw):
            raise ValueError(f"no rows are left: every row is invalid. {self.source.remedy(1.0)}")
        if self.view == "x":
            advise_copies(raw, self.source)
        return rows, raw, self.preparation(raw)

    def given(self, points: Any) -> Array:
        """Return a copy of raw points. Raise ValueError unless they are finite, in the columns of the data."""
        width, columns = self.source.width(self.view), self.preparation.columns
        try:
            array = np.asarray(in_memory(points, "the array"))
            if array.dtype.kind not in "fiub":
                raise ValueError(f"their dtype is {array.dtype}")
            if array.ndim != 2 or array.shape[1] != width or not len(array):
                raise ValueError(f"they have shape {array.shape}")
        except ValueError as error:
            raise ValueError(
                f"points must be landmarks (p, {width}) in the columns of {label_of(self.view)}; {error}"
            ) from None
        finite = np.isfinite(array if columns is None else array[:, list(columns)]).all(axis=1)
        if not finite.all():
            bad = int(np.argmin(finite))
            raise ValueError(f"landmarks must be finite; row {bad} is {array[bad]}")
        return np.array(array, dtype=float)

    def prepared(self, raw: Array, *, directions: bool = False) -> Array:
        """Return the prepared points of raw ones; `directions` have no origin."""
        return (self.preparation.of_directions if directions else self.preparation)(raw)

    def directions(self, points: Array) -> Array:
        """Return the raw directions whose prepared ones are these."""
        return self.preparation.of_directions.inverse(points, self.source.width(self.view))

    def periodic(self, kernel: Kernel) -> Kernel:
        """Return the kernel on columns with the periods of these data. Raise ValueError for other periods."""
        if self.periods is None:
            return kernel
        if kernel.flat is kernel:
            return Periodic(kernel, self.periods)
        if (own := tuple(cast(Periodic, kernel).periods)) != self.periods:
            both = f"{own}, and the operator or periods= {self.periods}"
            raise ValueError(f"the kernel has the periods {both}. Give them once.")
        return kernel

    def check(self, rows: Array, points: Array) -> None:
        """Raise an error with the number of the row unless the operator is defined at these points."""
        if self.checked:
            with renumbered(lambda k: rows[k]):
                self.operator.check_points(points)

    def boxed(self, recipe: FourierBasis, rng: np.random.Generator) -> FourierLattice:
        """Return a Fourier lattice on the box of the rows, if the recipe has none, with its method of summing."""
        return boxed(recipe, self.source, self.operator, rng)

    def trained(self, recipe: NeuralBasis, rng: np.random.Generator) -> Basis:
        """Return the trained functions of a network."""
        assert self.train is not None
        return self.train(recipe, rng)

    def centered(self, basis: Basis) -> Basis:
        """Return a basis of the same span for the prepared points, of a basis for points without a center."""
        own = self.preparation
        if own.mean is not None and own.scale is None:
            found = basis.translated(-own.mean)
            assert found is not None
            basis = found.basis
        return basis if self.units is None else basis.in_units(self.units)


def of_kernel(asked: Any, kernel: Kernel, *, count: int | str) -> Landmarks:
    """Return the landmarks of an embedding, whose kernel is that of its bandwidth; by "cholesky" if None are given.

    Raise TypeError for anything but Landmarks, ValueError for what an embedding decides itself.
    """
    found = Landmarks(n_landmarks=count, method="cholesky") if asked is None else asked
    if not isinstance(found, Landmarks):
        raise TypeError(f"landmarks must be daskspectral.basis.Landmarks(n_landmarks=...), or None; got {asked!r}")
    given = {"kernel": "auto", "jitter": "auto", "periods": None, "constant": None, "drop_landmark_rows": None}
    for name in (name for name, free in given.items() if getattr(found, name) != free):
        raise ValueError(f"the kernel of an embedding is that of its bandwidth: leave {name} of landmarks out")
    if found.n_landmarks == "auto" and count != "auto":
        found = replace(found, n_landmarks=min(int(count), found.n_candidates or int(count)))
    return replace(found, kernel=kernel)


@dataclass(frozen=True, eq=False)
class LinearDirections(BasisRecipe):
    """Landmarks of the linear kernel, whose functions are all linear ones on the data, or the leading ones.

    `asked` is what a user writes, `size` the number of functions. With `components` the functions include as many
    principal components, without them all linear functions; `centered` says that a constant is added. Components of
    fewer rows than columns are those of the Gram matrix `of_rows` (`passes.wide`).
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
        """Return the source, prepared about its mean, the leading components `of_rows`, and the scores of the rows."""
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

    They are unit vectors, or combinations of all rows if these are fewer; if `centered` the rows are taken minus their
    mean, so that what they have in common does not hide how they differ. Unit vectors are divided by the `units` (d,)
    of columns whose squares leave the range of float32.
    """
    d = source.dimension_at(view)
    if source.n < d and source.on_invalid != "pairwise":
        _, raw = take_rows(source, np.arange(source.n), view=view, raw=True, description="landmarks")
        if not len(raw):
            raise ValueError(f"no rows are left: every row is invalid. {source.remedy(1.0)}")
        rows = np.asarray(source.preparations[view](raw), dtype=float)
        return _orthonormal(rows - rows.mean(axis=0) if centered else rows)
    if units is None or source.on_invalid == "pairwise":
        return np.eye(d)
    steps = np.log2(np.where(units > 0, units, 1.0))
    return np.diag(np.exp2(-COARSE * np.trunc(steps / COARSE).clip(-30, 30)))


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


def sketched(components: int) -> int:
    """Return the number of directions that `leading_directions` finds at most."""
    return (SKETCHES + 1) * (components + OVERSAMPLED)


def leading_directions(
    source: Source, rng: np.random.Generator, components: int, fold_rule: FoldRule | None, *, view: str
) -> Array:
    """Return orthonormal directions (r, d) that span, nearly, the leading ones of the centered rows.

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
        sums = run.reduce(partial(added, partial(_products, view, directions, rule))).sums
        parts = [sums[str(group)] for group in range(groups) if str(group) in sums]
        whole = np.sum(parts, axis=0)
        sides = [whole, *(whole - part for part in parts if len(parts) > 1)]
        directions = np.linalg.qr(np.hstack([_centred(side, directions) for side in sides]))[0]
    return np.ascontiguousarray(directions.T)


def _products(view: str, directions: Array, rule: FoldRule | None, batch: Mapping[str, Array]) -> dict[str, Array]:
    """By group of folds the sums over rows x of weight w of w x (x q), of w x, and of w: (d, r + 2)."""
    x = batch[view]
    w = np.asarray(batch.get("weight", np.ones(len(x))), dtype=x.dtype)[:, None]
    beside = np.hstack([w * (x @ directions.astype(x.dtype, copy=False)), w])
    group = np.zeros(len(x), np.int64) if rule is None else rule.of(batch) % SKETCHES
    found = {}
    numbers = np.unique(group).tolist()
    for number in numbers:
        rows = group == number if len(numbers) > 1 else slice(None)
        sums = x[rows].T @ beside[rows]
        found[str(number)] = np.column_stack([sums, np.full(len(sums), w[rows].sum())]).astype(float)
    return found


def _centred(sums: Array, directions: Array) -> Array:
    """The covariance about the mean times the directions, (d, r), from the sums of rows; up to their number."""
    first, weight = sums[:, -2], max(sums[0, -1], 1e-300)
    return np.asarray(sums[:, :-2] - np.outer(first, first @ directions) / weight)


# -- copies of rows ----------------------------------------------------------------------------------------------------


def advise_copies(x: NDArray[Any], source: Source) -> None:
    """Warn if rows are in folds by their numbers, and some of raw rows x (m, n_features_in), drawn from the source,
    are copies."""
    if source.by_number and (text := copies_words(source.preparation.selected(x), source.n)):
        warn_user(text, ReliabilityWarning, Rank.DATA)


# -- periodic columns --------------------------------------------------------------------------------------------------


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
