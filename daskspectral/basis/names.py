"""Functions by name, as an estimator's `basis` takes them: "landmarks", "fourier", "network"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daskspectral.basis.lattice import FourierBasis
from daskspectral.basis.network import NeuralBasis
from daskspectral.basis.nystrom import Landmarks
from daskspectral.errors import nearest
from daskspectral.kernels.names import NAMES as KERNELS

NAMES: dict[str, Callable[[], Any]] = {
    "landmarks": Landmarks,
    "fourier": FourierBasis,
    "network": NeuralBasis,
}


def named(functions: Any, *words: str, what: str = "basis") -> Any:
    """The functions of a name, with their defaults; other values, and the `words`, as they are.

    Raises ValueError, which lists the names, for any other text.

    Examples
    --------
    >>> named("landmarks"), named("auto", "auto")
    (Landmarks(), 'auto')
    """
    if not isinstance(functions, str) or functions in words:
        return functions
    if functions not in NAMES:
        if functions.partition(":")[0] in KERNELS:
            raise ValueError(f"{functions!r} is a kernel, and {what} are functions: give Landmarks({functions!r})")
        known = [*words, *NAMES]
        raise ValueError(
            f"{what} must be {' or '.join(map(repr, known))}, or one of daskspectral.basis, such as "
            f"FourierBasis(15); it is {functions!r}{nearest(functions, known)}"
        )
    return NAMES[functions]()
