"""A basis of a user's own function of parameters and points, written in JAX, by which it is differentiated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from daskspectral.basis.base import Array
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.basis.trainable import Trainable
from daskspectral.forms import Atom
from daskspectral.forms.differentiable import feature, jax
from daskspectral.kernels.base import check_flag, whole
from daskspectral.registry import Function as Saved

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class JaxBasis(Trainable):
    """The p functions that `function` evaluates, (parameters, x (d,)) -> (p,), in JAX (extra `neural`).

    `parameters` are arrays in lists and mappings, those at which the training begins; with trained=True they stay as
    they are. All derivatives follow from the function. It is called on the workers: these need jax, and the module in
    which the function lies; a saved model keeps its import path, and loads with `trusted=`. `holds_constant=True` says
    that the span holds a constant, so that estimators add none. The other parameters are those of `NeuralBasis`.

    Raises ImportError without jax, ValueError where the function does not give a vector.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> waves = JaxBasis(lambda w, x: jnp.sin(w @ x), np.array([[1.0], [2.0]]), d=1, trained=True)
    >>> waves.values(np.array([[np.pi / 2]])).round(9).ravel().tolist()
    [1.0, 0.0]
    """

    expects: ClassVar = {"function": Saved}
    order = math.inf

    function: Function
    parameters: Any
    d: int = field(kw_only=True)
    trained: bool = field(default=False, kw_only=True)
    holds_constant: bool = field(default=False, kw_only=True)
    _size: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise TypeError(f"JaxBasis takes a function (parameters, x (d,)) -> (p,); it got {self.function!r}")
        whole("d of a JaxBasis", self.d)
        for name in ("trained", "holds_constant"):
            check_flag(f"{name} of a JaxBasis", getattr(self, name))
        package = jax()
        arrays = package.tree_util.tree_map(lambda v: np.asarray(v, dtype=float), self.parameters)
        object.__setattr__(self, "parameters", arrays)
        shape = package.eval_shape(self.function, arrays, np.zeros(self.d)).shape
        if len(shape) != 1 or not shape[0]:
            raise ValueError(
                f"the function of a JaxBasis was given a point ({self.d},) and returned shape {shape}; it must return "
                "(p,), a number for each function"
            )
        object.__setattr__(self, "_size", shape[0])

    @property
    def frozen(self) -> bool:
        return self.trained

    @property
    def variables(self) -> Any:
        return self.parameters

    def with_variables(self, variables: Any) -> JaxBasis:
        return replace(self, parameters=variables, trained=True)

    def started(self, points: Array, outputs: int, seed: int, metric: bool = True) -> JaxBasis:
        return self

    def asking(self, outputs: int) -> JaxBasis:
        return self

    @property
    def size(self) -> int:
        return self._size

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def description(self) -> str:
        return f"the functions of {getattr(self.function, '__name__', None) or repr(self.function)}"

    def apply(self, variables: Any, x: Any) -> Any:
        return jax().vmap(self.function, in_axes=(None, 0))(variables, x)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _JaxEvaluation(self, block)


class _JaxEvaluation(Evaluation):
    """One block, each atom computed when it is asked for."""

    def __init__(self, basis: JaxBasis, block: Block):
        self._basis, self._block = basis, block

    def feature(self, atom: Atom) -> Array:
        basis, block = self._basis, self._block
        read = {atom.view: np.asarray(block.x, dtype=float)}
        if atom.direction is not None:
            read[atom.direction.name] = np.asarray(block.fields[atom.direction.name], dtype=float)
        with jax().enable_x64(True):
            fields = {name: jax().numpy.asarray(values) for name, values in read.items()}
            found = feature(lambda x: basis.apply(basis.parameters, x), atom, fields)
            return block.weighted(np.array(found.T, dtype=block.dtype, order="C"))

    def second(self, atom: Atom, block: Block) -> Array:
        return self.feature(atom)
