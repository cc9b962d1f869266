"""Passes of multinomial logistic regression over rows with labels: sums of gradients, for all folds at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Arena, Basis
from daskspectral.basis.base import VALUE
from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.memory import on_cluster
from daskspectral.engine.threads import one_blas_thread
from daskspectral.errors import FitWarning, warn_user
from daskspectral.moments import block_rows
from daskspectral.moments.dealing import Dealing
from daskspectral.moments.measure import block_of, numbered
from daskspectral.operators.weights import banded_squares, effective_rows
from daskspectral.passes.embedding import Passes, keeps
from daskspectral.passes.sums import flops_of
from daskspectral.registry import Registered
from daskspectral.solve.multinomial import ClassMeans, Descent

Array = NDArray[np.floating[Any]]
Batch = Mapping[str, Array]
STEP, STEPS = 0.1, 14  # of the ladder of penalties
LOOSE = 1e-6  # nats by which models that are compared may be above their minimum
PATIENCE = 2  # penalties in a row that do worse on held-out rows
logger = logging.getLogger("daskspectral")


@dataclass(frozen=True)
class HeldOut(Registered):
    """What a classifier loses on rows that it was not fitted to: means over folds, and their standard errors.

    `log_loss` is the mean of -ln p of the rows' own classes, in nats; `accuracy` the share of rows that are predicted
    right.
    """

    log_loss: float
    log_loss_error: float
    accuracy: float
    accuracy_error: float

    @classmethod
    def of(cls, losses: Array, hits: Array, weights: Array) -> HeldOut:
        """From the means (F,) over the folds and their weights (F,); folds without weight do not count."""
        losses, hits, weights = losses[weights > 0], hits[weights > 0], weights[weights > 0]
        loss, hit = (float(weights @ each / weights.sum()) for each in (losses, hits))
        folds = len(weights)
        errors = [
            float(np.sqrt(np.sum((x - m) ** 2) / (folds * (folds - 1)))) for x, m in ((losses, loss), (hits, hit))
        ]
        return cls(loss, errors[0], hit, errors[1])


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The functions u (r, c), numbers of the classes, weights and folds of rows, block by block.

    The field y has the numbers of the classes. With `kept`, the rows x (c, r) are values of the functions, and a field
    `fold` has the folds.
    """

    basis: Basis
    dealing: Dealing | None
    kept: bool = False

    def blocks(self, batches: Iterable[Batch]) -> Iterator[tuple[Array, NDArray[np.int64], Array, Array]]:
        """Block by block u (r, c), classes (c,), weights (c,) and folds (c,)."""
        arena, step = Arena(), block_rows(self.basis.size)
        for batch in batches:
            folds = self._folds(batch)
            for start in range(0, len(batch["x"]), step):
                part = slice(start, start + step)
                fields = {name: values[part] for name, values in batch.items()}
                y = fields["y"].astype(np.int64)
                w = fields["weight"].astype(float) if "weight" in fields else np.ones(len(y))
                yield self._values(fields, arena), y, w, folds[part]

    def _folds(self, batch: Batch) -> Array:
        if self.kept:
            return batch["fold"]
        return np.zeros(len(batch["x"])) if self.dealing is None else self.dealing.each(batch)

    def _values(self, fields: Batch, arena: Arena) -> Array:
        if self.kept:
            return fields["x"].T
        with numbered(fields):
            block = block_of({"x": fields["x"]}, "float64", arena)
            return self.basis.at(block, [VALUE]).feature(VALUE)


@dataclass(frozen=True, eq=False)
class KeepRows:
    """The task that evaluates the functions of each row: (c, r + 3), with its class, weight and fold."""

    rows: LabelledRows

    def __call__(self, batch: Batch, state: Any = None) -> Array:
        return np.concatenate([np.column_stack([u.T, y, w, fold]) for u, y, w, fold in self.rows.blocks([batch])])


@dataclass(frozen=True, eq=False)
class MeansTask:
    """Sums over rows: w u u^T (r, r), w u of the first function, `banded_squares`, the weight of each class by fold."""

    rows: LabelledRows
    classes: int
    folds: int

    def __call__(self, batches: Iterable[Batch], state: Any = None) -> dict[str, Array]:
        r = self.rows.basis.size
        gram, weight = np.zeros((r, r)), np.zeros((self.folds, self.classes))
        first, squares = np.zeros(1), np.zeros(3)
        for u, y, w, fold in self.rows.blocks(batches):
            gram += (u * w) @ u.T
            first += w @ u[0]
            squares += banded_squares(w)
            np.add.at(weight, (np.asarray(fold, dtype=int), y), w)
        return {"gram": gram, "first": first, "weight": weight, "weight_squares": squares}


@dataclass(frozen=True, eq=False)
class GradientTask:
    """Sums over rows for M models, coefficients (M, r, K): of the log loss and its gradient sum w u (p - e_y)^T.

    Of several models, each leaves out the rows of the fold with its number. The sums (M, 3 + K r) are the loss; over
    the rows left out, the loss and the weight of the rows that are predicted right; the gradient (K, r).
    """

    rows: LabelledRows

    def __call__(self, batches: Iterable[Batch], state: Array) -> dict[str, Array]:
        models, r, classes = state.shape
        stacked = np.ascontiguousarray(state.transpose(0, 2, 1)).reshape(models * classes, r)
        loss, held, hits = (np.zeros(models) for _ in range(3))
        gradient = np.zeros((models * classes, r))
        for u, y, w, fold in self.rows.blocks(batches):
            scores = (stacked @ u).reshape(models, classes, -1)
            at = np.arange(len(y))
            own, best = scores[:, y, at], scores.max(axis=1)
            right = scores.argmax(axis=1) == y
            scores -= best[:, None]
            np.exp(scores, out=scores)
            total = scores.sum(axis=1)
            missed = np.log(total) + best - own
            inside = (
                np.asarray(fold, dtype=int) == np.arange(models)[:, None]
                if models > 1
                else np.zeros((1, len(y)), dtype=bool)
            )
            counted, aside = np.where(inside, 0.0, w), np.where(inside, w, 0.0)
            loss += np.sum(counted * missed, axis=1)
            held += np.sum(aside * missed, axis=1)
            hits += np.sum(aside * right, axis=1)
            scores *= (counted / total)[:, None]
            scores[:, y, at] -= counted
            gradient += scores.reshape(models * classes, -1) @ u.T
        return {"sums": np.column_stack([loss, held, hits, gradient.reshape(models, -1)])}


@dataclass(frozen=True, eq=False)
class ClassFit:
    """Coefficients (r, K) at the penalty `alpha`, with half the squared gradient there (`gap`), and held-out values.

    `done` says whether the descent ended by itself.
    `gram` (r, r) is the mean of u u^T, over as many `rows` as the weights count for.
    `curve` (g, 3) has the penalties that were compared, with the held-out log loss and its standard error.
    """

    coefficients: Array
    alpha: float
    gap: float
    done: bool
    passes: int
    shares: Array
    gram: Array
    rows: float
    held_out: HeldOut | None
    curve: Array | None


@dataclass(eq=False)
class InMemory:
    """Passes over few rows with their functions, which need no plan: `batch` has all of them."""

    batch: Batch
    count: int

    def __call__(self, task: Any, state: Any = None) -> dict[str, Array]:
        """The sums of a task over all rows."""
        self.count += 1
        with one_blas_thread():
            found: dict[str, Array] = task([self.batch], state)
        return found


@dataclass(eq=False)
class Classification:
    """The passes of one fit; rows with labels from 0 to `classes` - 1, dealt to `folds` folds (1: none)."""

    passes: Passes | InMemory
    rows: LabelledRows
    classes: int
    folds: int
    most: int

    def kept(self, cache: bool) -> Classification:
        """The same with the values of the functions in memory, where they fit and this process reads all rows."""
        assert isinstance(self.passes, Passes)
        run, r = self.passes.run, self.rows.basis.size
        if not cache or on_cluster() or not keeps(2 * 8 * run.source.n * (r + 3)):  # twice while they are joined
            return self
        values = run.map(KeepRows(self.rows))
        if values is None:
            raise ValueError("no rows are left: every row is invalid")
        fields = dict(zip(("y", "weight", "fold"), values[:, r:].T, strict=True))
        source = open_source(values[:, :r], fields=fields)
        rows, plan = replace(self.rows, kept=True), plan_rows(source, flops_of(source, r))
        if len(plan.ranges) == 1 and self.passes.checkpoint is None:
            return replace(self, rows=rows, passes=InMemory({"x": values[:, :r], **fields}, self.passes.count))
        passes = replace(self.passes, run=Run(source, plan, None, "keep", False, "fit"))
        return replace(self, rows=rows, passes=passes)

    def fit(self, weights: Array, alpha: float | None, tolerance: float) -> ClassFit:
        """Minimise the mean log loss + alpha / 2 sum_k c_k^T diag(weights) c_k; without alpha, of least held-out loss.

        Raises ValueError for a class without rows of positive weight, and without alpha where fewer than two folds have
        such rows.
        """
        sums = self.passes(MeansTask(self.rows, self.classes, self.folds))
        by_fold = sums["weight"]
        total, shares = float(by_fold.sum()), by_fold.sum(axis=0)
        if not np.isfinite(total) or not total > 0:
            raise ValueError(f"the total sample weight is {total:g}; it must be finite and above zero")
        if not shares.all():
            raise EmptyClassError(int(np.argmin(shares)))
        means = ClassMeans(sums["gram"] / total, shares / total, float(sums["first"][0]) / total, weights)
        start, held, curve = means.intercept, None, None
        aside = by_fold.sum(axis=1)
        judged = int(np.count_nonzero(aside > 0))
        if judged > 1:
            if judged < self.folds:
                empty = ", ".join(map(str, np.flatnonzero(~(aside > 0))))
                warn_user(f"no row of positive weight is in fold {empty}: {judged} folds are left", FitWarning)
            ladder = [alpha] if alpha is not None else [means.largest * STEP**i for i in range(STEPS)]
            alpha, starts, held, curve = self._compared(means, ladder, aside)
            start = starts.mean(axis=0)
        if alpha is None:
            raise ValueError(
                f"the penalty is chosen by held-out log loss, and {judged} of {self.folds} folds has a row of positive "
                "weight: give other folds, fewer of them, or alpha"
            )
        descent = Descent(means.bound(alpha), start, tolerance)
        self._descend([descent], np.array([total]), None)
        assert descent.best is not None
        rows = max(total, effective_rows(total, sums["weight_squares"]))
        done, count = descent.done, self.passes.count
        return ClassFit(descent.best, alpha, descent.gap, done, count, shares / total, means.gram, rows, held, curve)

    def _compared(
        self, means: ClassMeans, ladder: Sequence[float], aside: Array
    ) -> tuple[float, Array, HeldOut, Array]:
        """The penalty of least held-out log loss, from the largest on, and the models (F, r, K) of the folds."""
        rest = aside.sum() - aside
        excess = float(aside.sum() / rest.min())
        points = np.repeat(means.intercept[None], self.folds, axis=0)
        found: list[tuple[float, Array, HeldOut]] = []
        for alpha in ladder:
            descents = [Descent(means.bound(alpha, excess), point, LOOSE) for point in points]
            held = self._descend(descents, rest, aside)
            points = np.array([d.best for d in descents])
            found.append((alpha, points, HeldOut.of(*held, aside)))
            losses = [h.log_loss for _, _, h in found]
            logger.info("penalty %.3g: held-out log loss %.6g", alpha, losses[-1])
            least = int(np.argmin(losses))
            if len(losses) - 1 - least >= PATIENCE or losses[-1] > losses[least] + found[least][2].log_loss_error:
                break
        return *found[least], np.array([(a, h.log_loss, h.log_loss_error) for a, _, h in found])

    def _descend(self, descents: Sequence[Descent], weights: Array, aside: Array | None) -> tuple[Array, Array]:
        """Descend until all are done; the held-out log loss and accuracy (F,) of each at its best point."""
        losses, hits = np.zeros(len(descents)), np.zeros(len(descents))
        task = GradientTask(self.rows)
        for _ in range(self.most):
            points = np.array([d.best if d.done else d.point for d in descents])
            sums = self.passes(task, points)["sums"]
            for j, descent in enumerate(descents):
                loss, held, hit = sums[j, :3]
                gradient = sums[j, 3:].reshape(self.classes, -1).T
                descent.receive(float(loss / weights[j]), gradient / weights[j])
                if aside is not None and descent.best is not None and np.array_equal(descent.best, points[j]):
                    losses[j], hits[j] = np.array([held, hit]) / (aside[j] or 1.0)
            if all(d.done for d in descents):
                break
        return losses, hits


class EmptyClassError(ValueError):
    """A class has no rows of positive weight; `number` is its number."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number
