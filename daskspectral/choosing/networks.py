"""Networks for the functions of an estimator: the rows that they are trained on, those held out, the trained basis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, NeuralBasis
from daskspectral.basis.evaluation import Arena
from daskspectral.choosing.pilot import Pilot
from daskspectral.data.source import Source
from daskspectral.data.writing import progress_bar
from daskspectral.engine.sampling import draw_fields
from daskspectral.moments.folds import FOLD, FoldRule, mixed
from daskspectral.moments.measure import NUMBER, block_of
from daskspectral.neural import Loss, Networks, Trainer, optax
from daskspectral.operators import Operator
from daskspectral.passes.session import Kept

Array = NDArray[Any]
Completed = Callable[[Basis], Basis]
JUDGED = 4000  # rows held out, and as many of the others, on which functions are fitted and judged
HELD_OUT = 10  # of so many rows one is held out of the training
RESERVED = 2  # folds that no network sees
LEAST_ROWS = 100


def reserved_folds(number: int) -> tuple[int, ...]:
    """The folds whose rows no network is trained on: two, or one of two or three."""
    return tuple(range(number))[-min(RESERVED, number // 2) :] if number > 1 else ()


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows for a training: `fields` with points as they are prepared, and which rows are `held` out of it (m,)."""

    fields: Mapping[str, Array]
    held: NDArray[np.bool_]

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> dict[str, Array]:
        """The fields of some of the rows."""
        return {name: values[chosen] for name, values in self.fields.items()}


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rows of a source, drawn anew in every round where it has more than `size`; none of the folds `reserved`."""

    source: Source
    operator: Operator
    size: int
    seed: int
    fold_rule: FoldRule | None
    reserved: tuple[int, ...]
    known: dict[int, TrainingRows] = field(default_factory=dict)

    def __call__(self, number: int) -> TrainingRows:
        """The rows of a round. Raises ValueError where too few are left to train on."""
        number = number if self.source.n > self.size else 0
        if number not in self.known:
            self.known.clear()
            self.known[number] = self._drawn(number)
        return self.known[number]

    def _drawn(self, number: int) -> TrainingRows:
        source = self.source
        rng = np.random.default_rng([self.seed, 0, number])
        numbers, fields = draw_fields(replace(source, progress=False), self.size, rng)
        if self.fold_rule is not None:
            kept = ~np.isin(self.fold_rule.of({**fields, NUMBER: numbers}), self.reserved)
            numbers, fields = numbers[kept], {name: values[kept] for name, values in fields.items()}
        fields.pop(FOLD, None)
        if len(numbers) < LEAST_ROWS:
            raise ValueError(
                f"{len(numbers)} of {min(self.size, source.n)} rows are left to train a network on; {LEAST_ROWS} at "
                "least are needed: "
                "give more data, or more of it to the training (rows=)"
            )
        fields |= {view: np.asarray(prepare(fields[view])) for view, prepare in source.preparations.items()}
        self.operator.check_points(fields["x"])
        return TrainingRows(fields, mixed(numbers + 1) % HELD_OUT == 0)


def differentiable_fields(sample: TrainingRows, source: Source, operator: Operator) -> dict[str, Array]:
    """The fields of the rows that are not held out, as forms read them; with `weight`, where rows have weights."""
    preparation = source.preparation
    fields = operator.prepared(sample.only(~sample.held), preparation.scale, preparation.columns)
    block = block_of(fields, operator, "float64", Arena())
    found = dict(block.fields)
    return found if block.scale is None else {**found, "weight": block.scale**2}


@dataclass(frozen=True, eq=False)
class Judge:
    """The held-out values of networks: solved on some of the rows that they see, judged on the rows held out."""

    source: Source
    operator: Operator
    sample: TrainingRows
    count: int
    completed: tuple[Completed, Completed]
    seed: int

    def __call__(self, networks: Networks) -> Array:
        """The values (k,)."""
        rng = np.random.default_rng([self.seed, 2])
        parts = [np.flatnonzero(self.sample.held == held) for held in (False, True)]
        chosen = np.sort(np.concatenate([rng.permutation(part)[:JUDGED] for part in parts]))
        fold = self.sample.held[chosen].astype(np.int64)
        pilot = Pilot(self.source, self.operator, self.sample.only(chosen), {}, fold, 2)
        right = None if networks.right is None else self.completed[1](networks.right)
        nothing = np.zeros(len(chosen), dtype=bool)
        trial = pilot.trial(self.completed[0](networks.left), right, nothing, "float64")
        split = (np.array([0]), np.array([1]))
        return np.asarray(trial.judged([split], self.count, [1.0])[0][0])


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
    kept: Kept | None = None,
) -> tuple[NeuralBasis, NeuralBasis | None]:
    """The bases of both sides, trained by the loss of an operator on the rows that `draw` gives for round 0, 1, ...

    By solutions for them they are judged on rows held out; `completed` adds the constant to the functions of each side,
    where it is added. `right` is None where the right functions are of the same variables; they are then of the same
    network. Raises ImportError without jax and optax, ValueError for an operator without a loss, and for rows that are
    too few.
    """
    optax()
    judge, loss = operator.comparable, Loss.of(operator)
    assert judge is not None
    first, shared = draw(0), loss.two_sided and right is None

    def started(basis: NeuralBasis, view: str, number: int, seed: int) -> NeuralBasis:
        return basis.started(first.only(~first.held)[view], number, seed, judge.derivative_order > 0)

    networks = Networks(
        started(left, "x", outputs * (1 + shared), seed),
        None if right is None else started(right, judge.right_view, outputs, seed + 1),
        shared,
    )
    bar, done = progress_bar(left.steps, "training", source.progress, unit="steps", leave=False), [0]

    def tell(step: int, loss: float) -> None:
        bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
        bar.update(step - done[0])
        done[0] = step

    trainer = Trainer(
        networks,
        loss,
        outputs,
        lambda number: differentiable_fields(draw(number), source, judge),
        Judge(source, judge, first, outputs, completed, seed),
        seed,
        {
            view: networks.left.origin if networks.right is None or view != judge.right_view else networks.right.origin
            for view in judge.views
        },
        tell=tell,
        **({} if kept is None else {"watch": kept.write}),
    )
    with bar:
        found = trainer.run(None if kept is None else kept.read())
    return found.left, found.right
