"""Training of networks as bases, by losses from the forms of an operator (extra `neural`).

With the Gram matrix G and the energy E, the loss of k functions f_j is equation (18) of Cabannes and Bach (2024),

    2 sum_j E(f_j, f_j) / mu_j + |G - 1|^2,

minimized by f_i = sqrt(1 - l_i / mu_i)+ e_i with the eigenfunctions e_i; for equal mu they are rotated. For operators
between two spaces it is -2 tr E[f L g^T] + tr E[f f^T] E[g g^T].
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import NetworkBasis, NeuralBasis
from daskspectral.errors import FitWarning, warn_user
from daskspectral.forms.differentiable import (
    Fields,
    Function,
    Values,
    Weights,
    form_diagonal,
    form_matrices,
    functional_vectors,
    jax,
)
from daskspectral.operators import Operator


def orthogonality(first: Values, second: Values) -> Values:
    """Return R of equation (17), the inner product of G - 1 for two Gram matrices (k, k)."""
    eye = jax().numpy.eye(len(first), dtype=first.dtype)
    return ((first - eye) * (second - eye)).sum()


@dataclass(frozen=True, eq=False)
class Loss:
    """Loss of functions for an operator: (18), or the low-rank loss between two spaces.

    Calls accept k trial and k test functions, centered with `center`, and the `fields` of a batch with an even number
    of rows; `weights` (c,) have the mean 1.
    """

    operator: Operator
    center: bool = False

    @classmethod
    def of(cls, operator: Operator) -> Loss:
        """Return the loss of an operator, or raise ValueError."""
        if operator.validation_operator is None:
            raise ValueError(
                f"training requires an operator that is symmetric or between two spaces, got {operator.name}. "
                "Train a NeuralBasis for another operator, and pass its basis_ as basis."
            )
        return cls(operator.validation_operator, operator.center)

    @property
    def two_sided(self) -> bool:
        return self.operator.solver.sides[0] == "left"

    def __call__(
        self, left: Function, right: Function, fields: Fields, mu: Values = 1.0, weights: Weights = None
    ) -> Values:
        if self.two_sided:
            form, grams, right_grams = self._two_sided(left, right, fields, weights)
            return (grams * right_grams[::-1]).sum() / 2 - form.trace(axis1=1, axis2=2).sum()
        grams = form_matrices(self.operator.gram.expression, left, left, fields, weights, parts=2)
        energy = form_diagonal(self.operator.form.expression, left, fields, weights)
        return 2 * (self.operator.solver.signed(energy) / mu).sum() + orthogonality(*grams)

    def _two_sided(self, left: Function, right: Function, fields: Fields, weights: Weights) -> tuple[Values, ...]:
        """Return the form and both Gram matrices of functions, (2, k, k)."""
        of, means, sides = self.operator.forms, self.operator.functionals, (left, right)
        pairs = {"form": (0, 1), "gram": (0, 0), "right_gram": (1, 1)}
        found = {
            name: form_matrices(of.get(name, of["gram"]).expression, sides[a], sides[b], fields, weights, parts=2)
            for name, (a, b) in pairs.items()
        }
        if self.center:
            firsts = means["first"], means.get("right_first", means["first"])
            mean = [
                functional_vectors(first.expression, side, fields, weights, parts=2)
                for first, side in zip(firsts, sides, strict=True)
            ]
            for name, (a, b) in pairs.items():
                found[name] = found[name] - mean[a][:, :, None] * mean[b][:, None, :]
        return found["form"], found["gram"], found["right_gram"]


# -- training ----------------------------------------------------------------------------------------------------------


Array = NDArray[Any]
Rows = Mapping[str, Array]
logger = logging.getLogger("daskspectral")
ABOVE = 2.0  # mu relative to the last requested value
SHOWN = 8  # values in log messages
FAR = 10.0  # largest loss relative to the first: beyond it the training diverges
EPOCHS = 2  # epochs of rows in memory before others are drawn


def optax() -> Any:
    """Return the package. Raises ImportError with installation instructions."""
    jax()
    try:
        import optax as package
    except ImportError as error:
        raise ImportError("networks are trained with optax: pip install optax") from error
    return package


@dataclass(frozen=True, eq=False)
class Networks:
    """Networks of both spaces: `left`, and `right` if the test functions have other variables.

    The outputs of a `halved` network are trial functions, then test functions, with the same hidden layers.
    """

    left: NetworkBasis
    right: NetworkBasis | None = None
    halved: bool = False

    @property
    def parameters(self) -> Any:
        return [basis.variables for basis in (self.left, self.right) if basis is not None]

    def with_parameters(self, parameters: Any) -> Networks:
        right = None if self.right is None else self.right.with_variables(parameters[1])
        return replace(self, left=self.left.with_variables(parameters[0]), right=right)

    def functions(self, parameters: Any) -> tuple[Function, Function]:
        """Return the trial and the test functions."""

        def left(x: Any) -> Any:
            return self.left.apply(parameters[0], x)

        if self.right is not None:
            other = self.right
            return left, lambda x: other.apply(parameters[1], x)
        if not self.halved:
            return left, left
        return lambda x: _halves(left(x))[0], lambda x: _halves(left(x))[1]


def _halves(outputs: Any) -> tuple[Any, Any]:
    half = outputs.shape[1] // 2
    return outputs[:, :half], outputs[:, half:]


@dataclass(frozen=True, eq=False)
class TrainerState:
    """State of a training: parameters, optimizer, and the best networks so far with their values."""

    step: int
    parameters: list[Array]
    optimizer: list[Array]
    best: list[Array]
    values: Array
    mu: Array
    losses: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Trainer:
    """Training of networks, reproducible for the same seed and processor.

    `draw` returns the rows of round 0, 1, ...: fields (m, ...), and `weight` (m,). `judge` returns held-out values of
    networks: ascending ones of a symmetric form, otherwise singular values. `watch` is called at every check with the
    state, from which a training resumes with identical results.
    """

    networks: Networks
    recipe: NeuralBasis
    loss: Loss
    outputs: int
    draw: Callable[[int], Rows]
    judge: Callable[[Networks], Array]
    seed: int
    origins: Mapping[str, Array] = field(default_factory=dict)
    watch: Callable[[TrainerState], None] = field(default=lambda state: None)
    tell: Callable[[int, float], None] = field(default=lambda step, loss: None)

    def run(self, state: TrainerState | None = None) -> Networks:
        """Return the best networks, from a `state` if given."""
        numpy, recipe = jax().numpy, self.recipe
        if recipe.mu is not None and self.loss.two_sided:
            raise ValueError("mu requires a symmetric operator; the low-rank loss has no mu.")
        if np.ndim(recipe.mu) and len(recipe.mu) != self.outputs:
            raise ValueError(f"mu must be a number or {self.outputs} values, one per output, got {len(recipe.mu)}.")
        optimizer = optax().adam(optax().cosine_decay_schedule(recipe.rate, recipe.steps))
        if state is None:
            values = self.judge(self.networks)
            leaves = [v.astype(np.float32) for v in _leaves(self.networks.parameters)]
            moments = _leaves(optimizer.init(_tree(self.networks.parameters, leaves)))
            state = TrainerState(0, leaves, moments, leaves, values, self._mu(values, None))
        parameters = _tree(self.networks.parameters, [numpy.asarray(v, "float32") for v in state.parameters])
        moving = _tree(optimizer.init(parameters), [numpy.asarray(v) for v in state.optimizer])
        step = self._step(optimizer)
        every = max(1, math.ceil(recipe.steps / recipe.checks))
        pool, current = self._pool(0), 0
        length = max(1, EPOCHS * len(pool["x"]) // recipe.batch)
        losses, recent = list(state.losses), []
        for number in range(state.step, recipe.steps):
            if number // length != current:
                pool, current = self._pool(number // length), number // length
            rng = np.random.default_rng([self.seed, 1, number])
            chosen = rng.integers(0, len(pool["x"]), recipe.batch - recipe.batch % 2)
            batch = {name: values[chosen] for name, values in pool.items()}
            parameters, moving, found = step(parameters, moving, batch, numpy.asarray(state.mu, "float32"))
            recent.append(found)
            if not number:
                losses.append(float(found))
            if (number + 1) % every and number + 1 < recipe.steps:
                continue
            losses.append(float(np.mean([float(value) for value in recent])))
            recent = []
            self.tell(number + 1, losses[-1])
            state = self._checked(state, number + 1, parameters, moving, losses)
            self.watch(state)
            if state.step == recipe.steps:
                break
        if len(losses) > 1 and math.isfinite(losses[-1]) and not self._is_bounded(losses):
            warn_user(
                f"the loss of the network grew from {losses[0]:.3g} to {losses[-1]:.3g} during training, and "
                "earlier functions are used: lower the learning rate (rate)",
                FitWarning,
            )
        return self._at(state.best)

    def _at(self, leaves: list[Array]) -> Networks:
        return self.networks.with_parameters(_tree(self.networks.parameters, leaves))

    def _pool(self, number: int) -> dict[str, Array]:
        """Return the rows of a round in float32, centered, with weights of mean 1."""
        pool = dict(self.draw(number))
        if "weight" in pool:
            counted = np.flatnonzero(pool["weight"] > 0)
            pool = {name: values[counted] for name, values in pool.items()}
            pool["weight"] = pool["weight"] / pool["weight"].mean()
        pool |= {view: pool[view] - origin for view, origin in self.origins.items()}
        return {name: np.asarray(values, dtype=np.float32) for name, values in pool.items()}

    def _step(self, optimizer: Any) -> Any:
        package, update = jax(), optax().apply_updates

        def loss(parameters: Any, batch: Any, mu: Any) -> Any:
            left, right = self.networks.functions(parameters)
            weights = batch.get("weight")
            fields = {name: values for name, values in batch.items() if name != "weight"}
            return self.loss(left, right, fields, mu, weights)

        def step(parameters: Any, moving: Any, batch: Any, mu: Any) -> Any:
            value, slopes = package.value_and_grad(loss)(parameters, batch, mu)
            updates, moving = optimizer.update(slopes, moving)
            return update(parameters, updates), moving, value

        return package.jit(step)

    def _checked(
        self, state: TrainerState, number: int, parameters: Any, moving: Any, losses: list[float]
    ) -> TrainerState:
        """Return the next state, with the best networks so far."""
        arrays = _leaves(parameters)
        state = replace(state, step=number, parameters=arrays, optimizer=_leaves(moving), losses=tuple(losses))
        if not all(np.isfinite(v).all() for v in arrays):
            warn_user(
                f"the training of the network diverged before step {number}, and an earlier network is used: lower the "
                "learning rate (rate)",
                FitWarning,
            )
            return replace(state, step=self.recipe.steps)
        values = self.judge(self._at(arrays))
        better = self._is_bounded(losses) and self._improves(values, state.values)
        logger.info(
            "training: step %d, loss %.4g, held-out values %s%s",
            number,
            losses[-1],
            " ".join(f"{v:.4g}" for v in values[: min(self.outputs, SHOWN)]),
            "" if better else " (no better)",
        )
        state = replace(state, mu=self._mu(values, state.mu))
        return replace(state, best=arrays, values=values) if better else state

    def _is_bounded(self, losses: list[float]) -> bool:
        """Return whether the loss has not grown too far; beyond, functions may be steps of zero energy."""
        return losses[-1] < FAR * max(losses[0], self.outputs)

    def _improves(self, values: Array, before: Array) -> bool:
        if self.loss.two_sided:
            new, old = (float(np.sum(v[: self.outputs] * np.abs(v[: self.outputs]))) for v in (values, before))
            return new > old
        found = {0: before[None, : self.outputs], 1: values[None, : self.outputs]}
        scores = self.loss.operator.solver.scores(found, self.outputs)
        return scores[1] > scores[0]

    def _mu(self, values: Array, before: Array | None) -> Array:
        """Return mu: the recipe's, or a multiple of the last held-out value."""
        mu = self.recipe.mu
        if mu is not None or self.loss.two_sided:
            return np.asarray(1.0 if mu is None else mu)
        wanted = values[: self.outputs]
        found = wanted[np.isfinite(wanted) & (wanted > 0)]
        if not len(found):
            return np.asarray(1.0) if before is None else before
        return np.asarray(ABOVE * float(found.max()))


def _leaves(tree: Any) -> list[Array]:
    return [np.asarray(v) for v in jax().tree_util.tree_leaves(tree)]


def _tree(like: Any, leaves: list[Any]) -> Any:
    return jax().tree_util.tree_unflatten(jax().tree_util.tree_structure(like), leaves)
