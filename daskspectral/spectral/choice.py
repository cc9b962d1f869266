"""Selection of the left and right functions of an operator, and estimation of the sampling density."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import (
    Basis,
    BasisRecipe,
    CentroidBasis,
    FourierBasis,
    Landmarks,
    NearestCentroids,
    NetworkBasis,
    NeuralBasis,
)
from daskspectral.basis.lattice import FourierLattice
from daskspectral.basis.names import basis_by_name
from daskspectral.basis.role import Role
from daskspectral.choosing.lattice import with_method
from daskspectral.choosing.networks import reserved_folds, rounds_of, train
from daskspectral.choosing.search import decide, pilot_bytes
from daskspectral.choosing.spaces import FunctionSpace, SearchSpace
from daskspectral.data.source import Source, label_of
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import DensityWarning, warn_user
from daskspectral.kernels import Linear, of_distances, of_products
from daskspectral.moments.lattice import check_cut_size
from daskspectral.moments.moments import LandmarkRows
from daskspectral.operators import NeighborJumps, Operator
from daskspectral.operators.base import derivative_orders, fields_read, sources_of
from daskspectral.operators.density import estimate_density, estimate_of, exponent_of
from daskspectral.operators.diffusion import Generator
from daskspectral.operators.laplacian import periods_of_space
from daskspectral.passes.parameters import is_share
from daskspectral.passes.scale import centered, standardized
from daskspectral.passes.selection import Selection
from daskspectral.passes.session import FoldRuleOf, TrainingState
from daskspectral.passes.sums import CHANCE, MOST_APART, MOST_DROPPED, Discretization, Outline
from daskspectral.passes.wide import RowScores, wide_bytes
from daskspectral.solvers import Regularized, solver_of

MOST_PAIRED = 4000


@dataclass(frozen=True, eq=False)
class Choice(SearchSpace):
    """Functions and solver of a decomposition, some of whose hyperparameters are open."""

    @property
    def automatic(self) -> bool:
        """Return whether the kernel or its scale is selected from the data, on either side."""
        return any(side.automatic for side in self.sides)

    @property
    def sizes(self) -> tuple[int, int | None]:
        """Numbers of functions (p, q) on the left and right; q=None if both are equal."""
        return self.left.size, None if self.right is None else self.right.size

    def fitted_to(self, source: Source) -> Choice:
        """Return the choice with numbers of functions; raise ValueError for an unsuitable FourierBasis."""
        left, *right = (side.fitted_to(source, self.operator, self.components) for side in self.sides)
        found = replace(self, left=left, right=right[0] if right else None)
        if left.recipe.after_pass and self.solver.cut:
            check_cut_size(left.count)
        return found

    def selection_bytes(self, source: Source) -> int:
        """Return the memory in bytes of the selection of functions."""
        left, right = self.sizes
        if self.automatic:
            return pilot_bytes(source, self.operator, max(left, right or 0))
        return sum(
            wide_bytes(source, side.count)
            if side.directions.of_rows
            else 24 * side.count * source.dimension_at(side.view)
            for side in self.sides
            if side.directions is not None
        )

    def outline(self, source: Source) -> Outline:
        """Return the numbers of functions known from metadata, for planning."""
        apart = self.landmark_rows(source, self.left.size - self.left.constant) == LandmarkRows.APART
        probe, own = self.left.probe(source, self.operator), self.left.directions
        return Outline(self.sizes, apart, probe, None if own is None or not own.of_rows else own.size)

    def lattice(self, source: Source) -> Outline | None:
        """Return the outline with a `FourierBasis` in place of landmarks, None if not applicable."""
        landmarks = self.left.landmarks
        if self.right is not None or landmarks is None or landmarks.linear or self.left.recipe.vanishes:
            return None
        try:
            left = FunctionSpace.of(FourierBasis(), self.left.role, self.left.view, self.operator)
            found = replace(self, left=left).fitted_to(source)
            found.check_against(source)
        except ValueError:
            return None
        outline = found.outline(source)
        return replace(outline, basis=with_method(cast(FourierLattice, outline.basis), self.operator))

    def landmark_rows(self, source: Source, size: int) -> LandmarkRows:
        """Return the treatment of rows that coincide with the `size` left landmarks.

        Forms with derivatives drop them if requested, or if the kernel has a kink, but above a tenth of the rows sum
        them apart. By default they are summed apart below 100 rows per landmark, and kept otherwise.
        """
        landmarks = self.left.landmarks
        if landmarks is None or landmarks.drop_landmark_rows is False:
            return LandmarkRows.KEPT
        if any(derivative_orders(self.operator)) and (landmarks.drop_landmark_rows or _has_kink(landmarks.kernel)):
            return LandmarkRows.DROPPED if size <= MOST_DROPPED * source.n else LandmarkRows.APART
        if landmarks.drop_landmark_rows or of_products(landmarks.kernel):
            return LandmarkRows.KEPT
        return LandmarkRows.APART if size > source.n / 100 else LandmarkRows.KEPT

    def check_against(self, source: Source) -> None:
        """Raise ValueError if functions do not fit the data, by metadata."""
        left, right = derivative_orders(self.operator)
        self.left.check_against(source, left if self.right is not None else max(left, right), self.operator)
        if self.right is not None:
            self.right.check_against(source, right, self.operator)
        if source.standardize or source.factors:
            weighted = any(preparation.weights is not None for preparation in source.preparations.values())
            name = "column_weights=" if weighted else "latitude="
            self._check_units("standardize=True" if source.standardize else name)
        if source.on_invalid == "pairwise":
            self._check_gaps(source)

    def uses_gaps(self, source: Source) -> bool:
        """Return whether functions can be fitted to rows with missing values, by pairs of columns."""
        paired = replace(source, on_invalid="pairwise")
        try:
            self.fitted_to(paired)._check_gaps(paired)
        except ValueError:
            return False
        return self.operator.takes_gaps

    def _check_gaps(self, source: Source) -> None:
        if not all(side.spanning for side in self.sides) or (self.right is not None and self.left.constant):
            expected = "Covariance() without basis, or Cross(center=True) on Landmarks(kernels.Linear())"
            raise ValueError(f"on_invalid='pairwise' requires {expected}")
        width = sum(source.dimension_at(side.view) for side in self.sides)
        if width > MOST_PAIRED:
            raise ValueError(
                f"on_invalid='pairwise' requires at most {MOST_PAIRED} columns, got {width}. Select columns"
            )

    def _check_units(self, option: str) -> None:
        """Raise ValueError if the option changes units on which operator or functions depend."""
        scaled, bound = fields_at_derivatives(self.operator), units_of(self.operator)
        why = ""
        if scaled:
            why = f"not those of the fields {', '.join(scaled)}, which {self.operator.name} multiplies by derivatives"
        elif any(side.recipe.periodic for side in self.sides):
            why = "not those of periods"
        elif any(side.recipe.vanishes for side in self.sides):
            why = "not those of the boundary"
        elif bound:
            why = f"{self.operator.name} {bound}"
        if why:
            name = option.partition("=")[0]
            raise ValueError(
                f"{option} would change the units of X, but {why}. Scale X, and parameters in its units, without {name}"
            )

    def discretize(
        self, source: Source, random_state: Any, fold_rule: FoldRuleOf, kept: TrainingState | None
    ) -> Discretization:
        """Return the scaling of columns and the bases, selected from the data if needed.

        Networks are trained on rows outside the folds reserved by `fold_rule`; `kept` stores their state.
        """
        source, rng, choice = standardized(source), np.random.default_rng(random_state), self
        of_rows = self.left.directions is not None and self.left.directions.of_rows  # centered in any case
        source, units = centered(source, [] if of_rows else self._movable(source))
        if self.operator.solver.by_norm and self.left.spanning:
            self._check_squares(units)
        places = (side.view if side.view in source.apart else "x" for side in self.sides)
        left, *right = (replace(side, units=units.get(view)) for side, view in zip(self.sides, places, strict=True))
        choice = replace(self, left=left, right=right[0] if right else None)
        estimated: dict[str, Any] = {}
        if self.operator.density and estimate_of(self.operator.density) is None:
            periods = self.left.periods_in(source, self.operator)
            estimated = {"operator": with_density(self.operator, source, rng, periods=periods)}
            choice = replace(choice, **estimated)
        selection = decide(source, choice, rng) if choice.automatic else None
        if selection is not None:
            choice = choice._closed(selection.best_params, source)
        found = choice._discretized(source, rng, fold_rule, kept)
        selection = found.selection if selection is None else selection
        if selection is not None:
            own = {} if found.selection is None else found.selection.best_params
            selection = replace(selection, best_params={**selection.best_params, **own, **estimated})
        return replace(found, selection=selection, **estimated)

    def _check_squares(self, units: Mapping[str, NDArray[np.floating[Any]]]) -> None:
        numbers = np.finfo(self.dtype)
        for view, sizes in units.items():
            largest = float(sizes.max(initial=0.0))
            if 0 < largest < np.sqrt(float(numbers.tiny) / float(numbers.eps)):
                what = f"the columns of {label_of(view)} vary by {largest:.1g}"
                raise ValueError(f"{what}, whose square underflows in {self.dtype}. Multiply them by a constant")

    def _movable(self, source: Source) -> list[str]:
        """Return the views that can be centered: spans of their functions are translation invariant."""
        if _is_placed(self.operator):
            return []
        found: dict[str, bool] = {}
        for side in self.sides:
            view = side.view if side.view in source.apart else "x"  # other views share the preparation of x
            found[view] = found.get(view, True) and side.movable(source, self.operator)
        return [view for view, movable in found.items() if movable]

    def _closed(self, chosen: Mapping[str, Any], source: Source) -> Choice:
        closed = replace(self, solver=chosen.get("solver", self.solver))
        for side in self.sides:
            name = side.role.named("basis")
            if name in chosen:
                made = FunctionSpace.of(chosen[name], side.role, side.view, self.operator).fitted_to(
                    source, self.operator
                )
                test = side.role == Role.TEST
                closed = replace(closed, right=made) if test else replace(closed, left=made)
        return closed

    def _discretized(
        self, source: Source, rng: np.random.Generator, fold_rule_of: FoldRuleOf, kept: TrainingState | None
    ) -> Discretization:
        left, right, network = self.left, self.right, self.left.recipe.trained
        fold_rule = fold_rule_of(self.sizes) if network or left.directions is not None else None
        reserved = reserved_folds(fold_rule.number) if network and fold_rule is not None else ()
        networks: list[Any] = []

        def trained(recipe: NeuralBasis, rng: np.random.Generator) -> NetworkBasis:
            if not networks:  # both sides are trained together
                seed, other = int(rng.integers(2**31)), None if right is None else cast(NeuralBasis, right.recipe)
                rounds = rounds_of(source, self.operator, recipe.rows, seed, fold_rule, reserved)
                completed = left.completed, left.completed if right is None else right.completed
                options: dict[str, Any] = {"completed": completed, "seed": seed, "kept": kept}
                options |= {"outputs": recipe.outputs or self.components}
                networks.extend(train(recipe, other, rounds, source, self.operator, **options))
            return cast(NetworkBasis, networks.pop(0))

        scores: RowScores | None = None
        if left.directions is not None and left.directions.of_rows:
            source, directions, scores = left.directions.scored(source)
            basis: Basis = left.completed(directions)
            again: BasisRecipe | None = left.directions.asked
        else:
            basis, again = left.choose(source, rng, self.operator, fold_rule=fold_rule, train=trained)
        if left.recipe.after_pass:
            return Discretization(basis, source.preparation)
        penalty = self.solver.resolved(1.0)
        chosen: dict[str, Any] = {} if penalty is None else {"solver": Regularized(penalty)}
        of_rows = left.of_rows(basis)
        spanning = of_rows or (left.spanning and source.on_invalid == "pairwise")
        found = Discretization(
            basis, source.preparation, penalty=penalty, spanning=spanning, of_rows=of_rows, scores=scores
        )
        if again is not None:
            chosen["basis"] = again
            treatment = self.landmark_rows(source, basis.size - left.constant)
            share = 0.0 if treatment == LandmarkRows.KEPT else found.share_at_landmarks(source)
            if treatment == LandmarkRows.DROPPED and share > MOST_DROPPED + CHANCE:  # rows are repeated
                treatment = LandmarkRows.APART
            if treatment == LandmarkRows.APART and share > MOST_APART:  # too few rows remain for validation
                treatment = LandmarkRows.KEPT
            found = replace(found, landmark_rows=treatment)
        if right is not None:
            other, again = right.choose(source, rng, self.operator, train=trained)
            if again is not None:
                chosen["right_basis"] = again
            own = source.preparations[right.view] if self.operator.own_right_basis else None
            of_rows = of_rows or right.of_rows(other)
            found = replace(found, right_basis=other, right_preparation=own, of_rows=of_rows)
        return replace(found, selection=Selection((), chosen), reserved=reserved)


def choose_functions(estimator: Any, operator: Operator) -> Choice:
    """Return the functions that the parameters of an estimator define, checked."""
    given, other = basis_by_name(estimator.basis, "auto"), basis_by_name(estimator.right_basis, what="right_basis")
    compares = isinstance(given, str)
    if other is not None and not operator.solver.two_sided:
        raise ValueError(
            f"right_basis requires an operator with singular values, got {operator.name}. Omit right_basis"
        )
    if operator.center and not operator.solver.two_sided:
        raise ValueError(f"center=True requires an operator with singular values, got {operator.name}")
    jumps = isinstance(operator, NeighborJumps)
    functions: Any = given
    if compares or given is None:
        functions = NearestCentroids() if jumps else Landmarks()
    components = sys.maxsize if is_share(estimator._components) else estimator._components
    left = FunctionSpace.of(with_outputs(functions, components), Role.TRIAL, "x", operator)
    if jumps and not isinstance(left.recipe, (CentroidBasis, NearestCentroids)):
        raise TypeError(f"the basis of NeighborJumps must be a NearestCentroids or CentroidBasis, got {given!r}.")
    own, network = left.landmarks, left.recipe.trained
    if operator.solver.by_norm and own is not None and own.kernel == "auto" and not left.recipe.vanishes:
        left = replace(left, recipe=replace(own, kernel=Linear()))
    if network and estimator.dtype != "float64":
        raise ValueError("dtype must be 'float64' for the functions of a network. Omit dtype")
    right = None
    if other is not None or operator.own_right_basis:
        if other is None:
            other = functions if network else _right_landmarks(left.landmarks)
        right = FunctionSpace.of(with_outputs(other, components), Role.TEST, operator.right_view, operator)
        _check_networks(left.recipe, right.recipe)
    solver = solver_of(estimator.solver)
    if is_share(estimator._components) and (left.landmarks is None or type(left.landmarks.kernel) is not Linear):
        raise ValueError(
            f"n_components={estimator._components} requires variances of columns. Omit basis, or pass an integer"
        )
    options = isinstance(functions, Landmarks) and repr(functions) != repr(Landmarks())
    return Choice(operator, left, right, components, solver, estimator.dtype, compares, options)


def with_outputs(functions: Any, outputs: int) -> Any:
    """Return the functions; a network without a number of outputs receives `outputs`."""
    open_ = isinstance(functions, NeuralBasis) and functions.outputs is None
    return replace(functions, outputs=outputs) if open_ else functions


def _right_landmarks(left: Landmarks | None) -> Landmarks:
    if left is None:
        return Landmarks()
    method = left.method if left.drawn else "uniform"
    return replace(left, points=None, periods=None, method=method, jitter=0.0)


def _has_kink(kernel: Any) -> bool:
    """Return whether k(., y) is not differentiable at y, as for the exponential kernel."""
    return kernel != "auto" and of_distances(kernel.inner) and kernel.inner.smoothness < 1


def _check_networks(left: BasisRecipe, right: BasisRecipe) -> None:
    if left.trained != right.trained:
        raise ValueError("networks are trained in pairs. Pass a NeuralBasis as basis and as right_basis")
    outputs = [getattr(side, "outputs", None) for side in (left, right)]
    if outputs[0] != outputs[1]:
        raise ValueError(f"both networks must have the same number of outputs, got {outputs[0]} and {outputs[1]}")


# -- the density of the rows -------------------------------------------------------------------------------------------


SAMPLE = 50_000
MOST_REMOVED = 0.02


def with_density(
    operator: Any, source: Source, rng: np.random.Generator, *, periods: tuple[float | None, ...] | None
) -> Operator:
    """Return the operator with a density estimate from up to 50 000 weighted rows.

    `periods` has an entry (or None) per prepared column. Raises InvalidRowError for an invalid row
    (on_invalid="raise"), and ValueError if all rows coincide.
    """
    rows, x = draw_rows(source, SAMPLE, rng)
    weights = None
    if "weight" in source.readers:
        weights = take_rows(source, rows, view="weight")[1][:, 0]
    density = estimate_density(
        x, exponent_of(operator.density), rng, weights=weights, periods=periods, clip=operator.clip
    )
    if density.removed > MOST_REMOVED:
        warn_user(
            f"the sampling density is clipped at its quantile {100 * density.clipped:.2g} %, which removes "
            f"{100 * density.removed:.2g} % of the weight of rows: the relative error of eigenvalues is at least as "
            "large. Lower clip, or the density exponent",
            DensityWarning,
        )
    found: Operator = replace(operator, density=density)
    return found


# -- requirements of forms: derivatives, fields, units -----------------------------------------------------------------


def fields_at_derivatives(operator: Operator) -> list[str]:
    """Return the sorted user fields that multiply derivatives, and so depend on the units of the data."""
    found: set[str] = set()
    for form in operator.forms.values():
        for product in form.products:
            if max(product.left.order, product.right.order) > 0:
                found |= sources_of(operator, product.fields)
    return sorted(found & operator.data_fields)


def _is_placed(operator: Operator) -> bool:
    read = {field.name for field, _ in fields_read(operator, 1)}
    placed = exponent_of(operator.density) or any(made.placed for made in operator.derived.values())
    return bool(placed) or not read.isdisjoint(operator.views)


def units_of(operator: Operator) -> str:
    """Return why an operator, except by fields, depends on the units of the data; "" if it does not.

    A gradient or a Laplacian is meaningful in standardized columns; a derivative along one column, or a sum of
    derivatives of different orders, is not.
    """
    if isinstance(operator, Generator) and operator.number is not None:
        return f"depends on them by diffusion={operator.number:g}"
    if periods_of_space(operator) is not None:
        return "depends on them by periods"
    for form in operator.forms.values():
        parts = [part for product in form.products for _, part, _ in product.expanded]
        orders = sorted({part.left.order + part.right.order for part in parts})
        if len(orders) > 1:
            return f"adds products of {' and '.join(map(str, orders))} derivatives, which scale differently"
        if not orders[0]:
            continue
        made = {name for product in form.products for name in product.fields & operator.derived.keys()}
        if any(atom.kind == "partial" for part in parts for atom in (part.left, part.right)) or any(
            "x" in operator.derived[name].sources for name in made
        ):
            return "depends on them by directions of derivatives"
    return ""
