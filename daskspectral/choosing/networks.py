"""Training of networks as functions of an estimator: training rows, validation rows, trained basis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, NetworkBasis, NeuralBasis
from daskspectral.basis.evaluation import NUMBER
from daskspectral.choosing.pilot import Pilot
from daskspectral.data.source import Source
from daskspectral.data.writing import progress_bar
from daskspectral.engine.sampling import draw_fields
from daskspectral.moments.folds import FOLD, FoldRule, mixed
from daskspectral.moments.measure import block_of
from daskspectral.neural import Loss, Networks, Trainer, optax
from daskspectral.operators import Operator
from daskspectral.operators.base import derivative_orders
from daskspectral.passes.session import TrainingState
from daskspectral.workspace import Workspace

Array = NDArray[Any]
Completed = Callable[[Basis], Basis]
JUDGED = 4000  # validation rows, and as many training rows, on which functions are evaluated and fitted
HELD_OUT = 10  # one row of this many is a validation row
RESERVED = 2  # folds that are not used for training
LEAST_ROWS = 100


def reserved_folds(number: int) -> tuple[int, ...]:
    """Return the folds without training rows: two, or one of two or three."""
    return tuple(range(number))[-min(RESERVED, number // 2) :] if number > 1 else ()


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows for training: `fields` with prepared points, and the validation rows `held` (m,)."""

    fields: Mapping[str, Array]
    held: NDArray[np.bool_]

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> dict[str, Array]:
        return {name: values[chosen] for name, values in self.fields.items()}


def rounds_of(
    source: Source, operator: Operator, size: int, seed: int, fold_rule: FoldRule | None, reserved: tuple[int, ...]
) -> Callable[[int], TrainingRows]:
    """Return a function that draws the training rows of round 0, 1, ..., without the `reserved` folds.

    Rows are drawn again in each round if the source has more than `size`. The function raises ValueError if there are
    too few.
    """
    known: dict[int, TrainingRows] = {}

    def drawn(number: int) -> TrainingRows:
        numbers, fields = draw_fields(replace(source, progress=False), size, np.random.default_rng([seed, 0, number]))
        if fold_rule is not None:
            kept = ~np.isin(fold_rule.of({**fields, NUMBER: numbers}), reserved)
            numbers, fields = numbers[kept], {name: values[kept] for name, values in fields.items()}
        fields.pop(FOLD, None)
        if len(numbers) < LEAST_ROWS:
            raise ValueError(
                f"a network requires at least {LEAST_ROWS} training rows, got {len(numbers)} of "
                f"{min(size, source.n)}: pass more data, or increase rows="
            )
        fields |= {view: np.asarray(prepare(fields[view])) for view, prepare in source.preparations.items()}
        operator.check_points(fields["x"])
        return TrainingRows(fields, mixed(numbers + 1) % HELD_OUT == 0)

    def rows(number: int) -> TrainingRows:
        number = number if source.n > size else 0
        if number not in known:
            known.clear()  # before the next ones are drawn
            known[number] = drawn(number)
        return known[number]

    return rows


def differentiable_fields(sample: TrainingRows, source: Source, operator: Operator) -> dict[str, Array]:
    """Return the fields of the training rows as forms read them, with `weight` if rows have weights."""
    preparation = source.preparation
    fields = operator.prepared(sample.only(~sample.held), preparation.scale, preparation.columns)
    block = block_of(fields, operator, "float64", Workspace())
    found = dict(block.fields)
    return found if block.scale is None else {**found, "weight": block.scale**2}


def validation_function(
    source: Source,
    operator: Operator,
    sample: TrainingRows,
    count: int,
    completed: tuple[Completed, Completed],
    seed: int,
) -> Callable[[Networks], Array]:
    """Return a function that computes the validation values (k,) of networks.

    They are solved on some of the training rows, and evaluated on validation rows.
    """
    rng = np.random.default_rng([seed, 2])
    parts = [np.flatnonzero(sample.held == held) for held in (False, True)]
    chosen = np.sort(np.concatenate([rng.permutation(part)[:JUDGED] for part in parts]))
    pilot = Pilot(source, operator, sample.only(chosen), {}, sample.held[chosen].astype(np.int64), 2)

    def values(networks: Networks) -> Array:
        right = None if networks.right is None else completed[1](networks.right)
        trial = pilot.trial(completed[0](networks.left), right, np.zeros(len(chosen), dtype=bool), "float64")
        return np.asarray(trial.judged([(np.array([0]), np.array([1]))], count, [1.0])[0][0])

    return values


def train(
    left: NeuralBasis,
    right: NeuralBasis | None,
    draw: Callable[[int], TrainingRows],
    source: Source,
    operator: Operator,
    *,
    outputs: int,
    completed: tuple[Completed, Completed],
    seed: int,
    kept: TrainingState | None = None,
) -> tuple[NetworkBasis, NetworkBasis | None]:
    """Return the bases of both sides, trained by the loss of an operator on the rows of each round.

    `draw` returns the rows of round 0, 1, ... Validation values are those of solutions for the networks; `completed`
    adds the constant to the functions of a side if required. Without `right` the right functions have the same
    variables, and are outputs of the same network. Raises ImportError without jax and optax, and ValueError for an
    operator without a loss, and for too few rows.
    """
    optax()
    judge, loss = operator.validation_operator, Loss.of(operator)
    assert judge is not None
    first, shared = draw(0), loss.two_sided and right is None

    def started(recipe: NeuralBasis, view: str, number: int, seed: int) -> NetworkBasis:
        points, metric = first.only(~first.held)[view], any(derivative_orders(judge))
        return recipe.initialized(points, number, seed, metric=metric)

    networks = Networks(
        started(left, "x", outputs * (1 + shared), seed),
        None if right is None else started(right, judge.right_view, outputs, seed + 1),
        shared,
    )
    bar, done = progress_bar(left.steps, "training", source.progress, unit="steps", leave=False), [0]

    def report(step: int, loss: float) -> None:
        bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
        bar.update(step - done[0])
        done[0] = step

    trainer = Trainer(
        networks,
        left,
        loss,
        outputs,
        lambda number: differentiable_fields(draw(number), source, judge),
        validation_function(source, judge, first, outputs, completed, seed),
        seed,
        {
            view: networks.left.center if networks.right is None or view != judge.right_view else networks.right.center
            for view in judge.views
        },
        tell=report,
        **({} if kept is None else {"watch": kept.write}),
    )
    with bar:
        found = trainer.run(None if kept is None else kept.read())
    return found.left, found.right
