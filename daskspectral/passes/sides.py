"""How the left and right functions of an operator are chosen, and what of it is left to the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskspectral.basis import Basis, FourierLattice, Trainable, Vanishing
from daskspectral.data.source import Source
from daskspectral.kernels import DotKernel
from daskspectral.moments.lattice import check_cut_size
from daskspectral.operators import Operator
from daskspectral.operators.facts import derivatives, fields_at_derivatives, units_of
from daskspectral.passes.deciding import Open, decide, pilot_bytes
from daskspectral.passes.density import with_density
from daskspectral.passes.landmarks import MOST_LANDMARKS
from daskspectral.passes.network_trial import suits_network
from daskspectral.passes.networks import Rounds, Training, reserved_folds, train
from daskspectral.passes.parameters import checked_kernel
from daskspectral.passes.scale import standardized
from daskspectral.passes.selection import Selection
from daskspectral.passes.side import Side, has_kink
from daskspectral.passes.sums import MOST_DROPPED, Discretisation

FEW_LANDMARKS = 50


@dataclass(frozen=True, eq=False)
class Choice:
    """The left and right functions for an operator, as the parameters of an estimator choose them."""

    operator: Operator
    left: Side
    right: Side | None
    components: int
    standardize: bool
    exclude_landmarks: bool | None
    spread: float | str = 0.0
    penalty: float | str | None = None
    dtype: str = "float64"
    compares_bases: bool = False

    @property
    def automatic(self) -> bool:
        """Whether the data decide the kernel or its scale, on the left or on the right."""
        return self.left.automatic or (self.right is not None and self.right.automatic)

    @property
    def sizes(self) -> tuple[int, int | None]:
        """The numbers of functions wanted: p left, and q right ones where they differ, else None."""
        return self.left.size, None if self.right is None else self.right.size

    def fitted_to(self, source: Source) -> Choice:
        """The same with the number of landmarks that n rows bear: a quarter of them, and no more than by default.

        Of few rows half become landmarks, up to `FEW_LANDMARKS`: more would be most of the rows at which functions are
        measured, and functions are flat at their own landmarks. A linear kernel takes as many as span its functions.
        """
        n = source.n
        count = min(MOST_LANDMARKS, max(n // 4, min(n // 2, FEW_LANDMARKS), 1))
        right = None if self.right is None else self.right.fitted_to(count, source)
        return replace(self, left=self.left.fitted_to(count, source), right=right)

    def in_dimension(self, source: Source) -> Choice:
        """The same for these data: a lattice of so many variables. Raises ValueError where it has no such lattice."""
        found = replace(self, left=self.left.in_dimension(source, self.operator))
        if found.lattice is not None and self.penalty is None:
            check_cut_size(found.lattice.size)
        return found

    @property
    def lattice(self) -> FourierLattice | None:
        """The lattice on which modes are summed; None for other functions."""
        return self.left.basis if isinstance(self.left.basis, FourierLattice) else None

    def choosing(self, source: Source) -> int:
        """The bytes that the automatic choice takes, if there is one."""
        left, right = self.sizes
        return pilot_bytes(source, self.operator, max(left, right or 0)) if self.automatic else 0

    def apart(self, source: Source) -> bool:
        """Whether rows that coincide with landmarks will be summed apart, as far as metadata tell."""
        side = self.left
        size = side.count if side.drawn else 0 if side.basis is not None else len(side.landmarks)
        return self.landmark_rows(source, size) == "apart"

    def landmark_rows(self, source: Source, size: int) -> str:
        """What is done with rows that coincide with the `size` left landmarks, as far as their number tells.

        They are "dropped" where it is asked for, or where the kernel has a kink, and the form has derivatives; never
        more than a tenth of the rows: of more landmarks they are summed "apart". By default they are "apart" too while
        there are fewer than 100 rows to a landmark, else "kept".
        """
        if self.left.basis is not None or self.exclude_landmarks is False:
            return "kept"
        kernel = checked_kernel(self.left.kernel)
        if self.operator.derivative_order > 0 and (self.exclude_landmarks or has_kink(kernel)):
            return "dropped" if size <= MOST_DROPPED * source.n else "apart"
        if self.exclude_landmarks or isinstance(kernel, DotKernel):
            return "kept"
        return "apart" if size > source.n / 100 else "kept"

    def check_against(self, source: Source) -> None:
        """Raise ValueError where data and functions do not fit, as far as metadata tell, before any task is sent."""
        left, right = derivatives(self.operator)
        self.left.check_against(source, left if self.right is not None else max(left, right), self.operator)
        if self.right is not None:
            self.right.check_against(source, right, self.operator)
        scaled = fields_at_derivatives(self.operator)
        if self.standardize and scaled:
            raise ValueError(
                f"standardize=True would change the units of X and not the units of {', '.join(scaled)}, which the "
                f"operator {self.operator.name} multiplies with derivatives; scale both before, without standardize"
            )
        sides = [side for side in (self.left, self.right) if side is not None]
        for what, given in {
            "periods": any(side.periods is not None for side in sides)
            or (self.lattice is not None and self.lattice.periods is not None),
            "a function that vanishes at the ends of the data": any(side.vanishes for side in sides),
        }.items():
            if self.standardize and given:
                raise ValueError(
                    f"standardize=True would change the units of X, and {what} is in them; scale the columns of X "
                    "before, without standardize"
                )
        bound = units_of(self.operator)
        if self.standardize and bound:
            raise ValueError(
                f"standardize=True would change the units of X, and {self.operator.title} {bound}; scale the "
                "columns of X before, and what depends on their units, without standardize"
            )
        rows = source.rows
        for side in (self.left, self.right):
            if side is not None and side.drawn and source.n < side.count:
                raise ValueError(f"X has {rows}, fewer than n_landmarks={side.count}; lower n_landmarks")

    def discretise(
        self,
        source: Source,
        random_state: Any,
        *,
        on_invalid: str,
        progress: bool | None,
        training: Training | None = None,
    ) -> Discretisation:
        """Choose the scaling of columns, the landmarks and the bases, by a pass and draws of rows where needed.

        A network is trained on rows of folds that are not reserved, as the `training` tells.
        """
        if self.standardize:
            source = standardized(source, on_invalid=on_invalid, progress=progress)
        rng = np.random.default_rng(random_state)
        options: dict[str, Any] = {"on_invalid": on_invalid, "progress": progress}
        operator = None
        if self.operator.exponent and self.operator.estimate is None:
            periods = self.left.periods_in(source, self.operator)
            operator = with_density(self.operator, source, rng, periods=periods, **options)
        choice = self if operator is None else replace(self, operator=operator)
        reserved: tuple[int, ...] = ()
        if self.left.open_network or (self.right is not None and self.right.open_network):
            seed = int(rng.integers(2**31))
            choice, reserved = choice._trained(source, seed, training or Training(), **options)
        found = choice._discretised(source, rng, training or Training(), **options)
        found = replace(found, reserved=reserved or found.reserved)
        if operator is None:
            return found
        if found.selection is None:
            return replace(found, operator=operator)
        return replace(found, operator=operator, selection=found.selection.with_parameters({"operator": operator}))

    def _trained(
        self,
        source: Source,
        seed: int,
        training: Training,
        *,
        on_invalid: str,
        progress: bool | None,
    ) -> tuple[Choice, tuple[int, ...]]:
        """The same choice with trained networks, and the folds that they did not see."""
        left, right = self.left, self.right
        assert isinstance(left.basis, Trainable)
        other = None if right is None else right.basis
        assert other is None or isinstance(other, Trainable)
        dealing = training.dealing(self.sizes)
        reserved = () if dealing is None else reserved_folds(dealing.number)
        rounds = Rounds(source, self.operator, left.basis.rows, seed, dealing, reserved, on_invalid)
        bases = train(
            left.basis,
            other,
            rounds,
            outputs=left.basis.outputs or self.components,
            completed=(left.completed, left.completed if right is None else right.completed),
            progress=progress,
            kept=training.kept,
        )
        closed = replace(self, left=replace(left, basis=bases[0]))
        if right is not None:
            closed = replace(closed, right=replace(right, basis=bases[1]))
        return closed, reserved

    def _discretised(
        self, source: Source, rng: np.random.Generator, training: Training, **options: Any
    ) -> Discretisation:
        """The bases for columns that are scaled; what is left to the data is chosen first."""
        if not self.automatic:
            return self._laid_out(source, rng, **options)
        selection = decide(source, self.operator, self._open(source), rng, **options)
        better = selection.parameters.get("basis")
        if isinstance(better, Basis):
            closed = replace(self, left=replace(self.left, basis=better, kernel=None))
            reserved: tuple[int, ...] = ()
            if isinstance(better, Trainable):
                closed, reserved = closed._trained(source, int(rng.integers(2**31)), training, **options)
            return replace(closed._laid_out(source, rng, **options), selection=selection, reserved=reserved)
        found = self._closed(selection.parameters)._laid_out(source, rng, **options)
        assert found.selection is not None
        return replace(found, selection=replace(selection, parameters=found.selection.parameters))

    def _laid_out(self, source: Source, rng: np.random.Generator, **options: Any) -> Discretisation:
        """The landmarks and the bases, nothing being left open but landmarks."""
        basis, raw = self.left.choose(source, rng, self.operator, **options)
        penalty = None if self.penalty is None else 1.0 if isinstance(self.penalty, str) else float(self.penalty)
        chosen: dict[str, Any] = {"spread": self.left.spread, **({} if penalty is None else {"penalty": penalty})}
        if isinstance(basis, FourierLattice):  # what is left open is chosen after the pass
            return Discretisation(basis, source.preparation)
        if raw is not None:
            chosen |= {"kernel": self.left.kernel_of(basis), "landmarks": raw, "n_landmarks": len(raw)}
        found = Discretisation(
            basis, source.preparation, raw_landmarks=raw, penalty=penalty, selection=Selection((), chosen)
        )
        if raw is not None:
            treatment = self.landmark_rows(source, len(raw))
            if treatment == "dropped" and not found.leaves_most(source, **options):
                treatment = "apart"
            found = replace(found, landmark_rows=treatment)
        if self.right is None:
            return found
        right, raw = self.right.choose(source, rng, self.operator, **options)
        if raw is not None:
            chosen |= {"right_kernel": self.right.kernel_of(right), "right_landmarks": raw}
            found = replace(found, selection=Selection((), chosen))
        own = source.preparations[self.right.view] if self.operator.own_right_basis else None
        return replace(found, right_basis=right, right_preparation=own)

    def _open(self, source: Source) -> Open:
        """What is left to the data."""
        own = self.left.kernel is None or isinstance(self.left.kernel, str)
        own = own and self.left.vanishing is None and self.right is None
        lattice = own and self.compares_bases
        flat = own and self.dtype == "float64" and self.left.periods_in(source, self.operator) is None
        network = flat and self.compares_bases and suits_network(self.operator)
        cells = flat and isinstance(self.left.landmarks, str) and self.operator.solver.two_sided
        sides = self.left, self.right, self.components, self.spread, self.penalty, self.dtype
        return Open(*sides, lattice=lattice, network=network, cells=cells)

    def _closed(self, parameters: Mapping[str, Any]) -> Choice:
        """The same choice with nothing left open."""

        def closed(side: Side) -> Side:
            if side.basis is not None:
                return side
            kernel, landmarks = (parameters[f"{side.prefix}{name}"] for name in ("kernel", "landmarks"))
            return replace(side, kernel=kernel, landmarks=landmarks)

        left = replace(closed(self.left), spread=parameters.get("spread", self.left.spread))
        right = None if self.right is None else closed(self.right)
        return replace(self, left=left, right=right, penalty=parameters.get("penalty"))


def choose_functions(estimator: Any, operator: Operator) -> Choice:
    """The functions that an estimator's parameters choose. Raises ValueError or TypeError where they cannot work."""
    count = MOST_LANDMARKS if estimator.n_landmarks == "auto" else estimator.n_landmarks
    shared = {"count": count, "sample": estimator.landmark_sample}
    own = _functions(estimator, operator, estimator.basis)
    kernel = "auto" if estimator.kernel is None and own["basis"] is None else estimator.kernel
    if isinstance(kernel, str) and kernel == "auto" and own["basis"] is None and operator.default_kernel is not None:
        kernel = operator.default_kernel
    spread = 0.0 if estimator.spread == "auto" else float(estimator.spread)
    left = Side(
        "",
        "x",
        kernel=kernel,
        landmarks=estimator.landmarks,
        periods=estimator.periods,
        spread=spread,
        **own,
        **shared,
    )
    left.check()
    if left.open_network and estimator.dtype != "float64":
        raise ValueError(
            "the functions of a network are too much alike for dtype='float32', whose rounding hides some of them: "
            "leave dtype out"
        )
    right = None
    given = [
        name for name in ("right_basis", "right_kernel", "right_landmarks") if getattr(estimator, name) is not None
    ]
    if given and not operator.solver.two_sided:
        raise ValueError(
            f"{given[0]} is for operators with singular values, and {operator.name} is solved by {operator.solver!r}: "
            "its functions are the same on both sides"
        )
    if operator.center and not operator.solver.two_sided:
        raise ValueError(f"center is for operators with singular values, and {operator.name} is not")
    if given and isinstance(estimator.basis, FourierLattice):
        raise ValueError(
            f"basis is a lattice, whose functions are those of both sides: products of other functions with them are "
            f"no modes of the data; leave {given[0]} out"
        )
    if given or operator.own_right_basis:
        same = left.open_network and not given
        own = _functions(estimator, operator, estimator.basis if same else estimator.right_basis)
        kernel = estimator.right_kernel
        if own["basis"] is None and kernel is None:
            kernel = estimator.kernel
        landmarks = estimator.right_landmarks
        if landmarks is None:
            landmarks = estimator.landmarks if isinstance(estimator.landmarks, str) else "uniform"
        periods = None if operator.own_right_basis or own["basis"] is not None else estimator.periods
        view = operator.right_view
        right = Side("right_", view, kernel=kernel, landmarks=landmarks, periods=periods, **own, **shared)
        right.check()
        _check_networks(left, right)
    return Choice(
        operator,
        left,
        right,
        estimator.n_components,
        estimator.standardize,
        estimator.exclude_landmarks,
        estimator.spread,
        estimator.penalty if estimator.solver == "penalised" else None,
        estimator.dtype,
        estimator.basis == "auto" if isinstance(estimator.basis, str) else False,
    )


def _functions(estimator: Any, operator: Operator, basis: Any) -> dict[str, Any]:
    """The fields of a Side that a basis decides: what the kernel at landmarks goes into, or itself; the constant."""
    vanishes = isinstance(basis, Basis) and basis.vanishes
    constant = (operator.kills_constants and not vanishes) if estimator.constant is None else estimator.constant
    if isinstance(basis, Trainable):
        basis = basis.asking(estimator.n_components)
    if isinstance(basis, Vanishing) and basis.at_landmarks:
        return {"basis": None, "vanishing": basis, "constant": constant}
    return {"basis": None if isinstance(basis, str) else basis, "constant": constant}


def _check_networks(left: Side, right: Side) -> None:
    """Raise ValueError where the functions of one side are of a network that is not trained, and those of the other
    are not: both are trained together."""
    if left.open_network != right.open_network:
        raise ValueError(
            "the networks of both sides are trained together: give basis and right_basis as a NeuralBasis each, or "
            "as functions that are known"
        )
    if left.open_network and isinstance(left.basis, Trainable) and isinstance(right.basis, Trainable):
        both = left.basis.outputs, right.basis.outputs
        if both[0] != both[1]:
            raise ValueError(f"basis and right_basis have {both[0]} and {both[1]} outputs, which are trained in pairs")
