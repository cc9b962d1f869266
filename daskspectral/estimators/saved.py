"""An estimator that is written to zarr and read back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import ClassVar, Self, final

from daskspectral.basis import Basis
from daskspectral.groups import Group
from daskspectral.kernels import Kernel
from daskspectral.manifolds import Manifold
from daskspectral.operators import Operator
from daskspectral.registry import Function, Registered, Trusted
from daskspectral.store import load, save


class Saved(Registered):
    """A fitted estimator as its parameters and what `fit` found."""

    expects: ClassVar = {
        "operator": Operator,
        "kernel": Kernel,
        "right_kernel": Kernel,
        "weights": Kernel,
        "basis": Basis,
        "right_basis": Basis,
        "manifold": Manifold,
        "group": Group,
        "u": Function,
        "d": Function,
    }

    @final
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted estimator as a zarr group (`daskspectral.save`)."""
        save(self, path, overwrite=overwrite)

    @final
    @classmethod
    def load(cls, path: str | os.PathLike[str], *, trusted: Iterable[Trusted] = ()) -> Self:
        """A fitted estimator that was saved (`daskspectral.load`). Raises ValueError where it is of another class."""
        model = load(path, trusted=trusted)
        if not isinstance(model, cls):
            what = type(model).__name__
            raise ValueError(f"{os.fspath(path)} holds {what}, not {cls.__name__}; use daskspectral.load")
        return model
