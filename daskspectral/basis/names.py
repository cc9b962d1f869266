"""Names of bases in an estimator's `basis`: "landmarks", "fourier", "network"."""

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


def basis_by_name(functions: Any, *words: str, what: str = "basis") -> Any:
    """Return the basis of a name; other objects and `words` unchanged; raise ValueError for other text.

    Examples
    --------
    >>> basis_by_name("landmarks"), basis_by_name("auto", "auto")
    (Landmarks(), 'auto')
    """
    if not isinstance(functions, str) or functions in words:
        return functions
    if functions not in NAMES:
        if functions.partition(":")[0] in KERNELS:
            raise ValueError(f"{what} must be a basis, got the kernel {functions!r}. Pass Landmarks({functions!r}).")
        known = [*words, *NAMES]
        raise ValueError(
            f"{what} must be {' or '.join(map(repr, known))}, or one of daskspectral.basis, such as "
            f"FourierBasis(15), got {functions!r}{nearest(functions, known)}"
        )
    return NAMES[functions]()
