"""An estimator that is written to zarr and read back."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, final


class Saved(ABC):
    """A fitted estimator as plain data and arrays, under the name `kind`."""

    kind: ClassVar[str]

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The fitted estimator as plain data and arrays; raises sklearn's NotFittedError before `fit`."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of `state`; nothing is computed again."""

    @final
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted estimator as a zarr group (`daskspectral.save`)."""
        from daskspectral.estimators.persistence import save

        save(self, path, overwrite=overwrite)

    @final
    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A fitted estimator that was saved. Raises ValueError where the path holds something else."""
        from daskspectral.estimators.persistence import load

        model = load(path)
        if not isinstance(model, cls):
            what = type(model).__name__
            raise ValueError(f"{os.fspath(path)} holds {what}, not {cls.__name__}; use daskspectral.load")
        return model
