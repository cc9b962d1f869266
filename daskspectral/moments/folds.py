"""The sums of moments by group of rows: folds, from which error bars and held-out scores follow, and landmark rows."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]

WEIGHT, COUNT = "weight of groups", "rows of groups"
ALL = "all"
"""In place of a group's number, for sums over all groups that the groups' sums do not add up to."""


def name_in(group: int | str, name: str) -> str:
    """The name of a sum over the rows of one group, as tasks send it."""
    return f"{group}/{name}"


@dataclass(frozen=True, eq=False)
class Folds(Registered):
    """The sums of moments by group of rows; the groups add up to the whole.

    `arrays` has the sums (G, ...) of each group for every name in `Moments.arrays` but those of products with columns;
    `weight` and `count` (G,) are the total weight and the number of rows of each group. With `landmarks`, the last
    group holds the rows that coincide with landmarks, which are in no fold.

    Of more modes on a Fourier lattice than 5000 functions need, the groups have those of the lower frequencies alone.

    The `rule` says how rows came to their folds: whole "tasks" dealt in turn (`dealt` of them so far), a "hash" of
    the row's values, or of its number where these are rounded, contiguous "blocks", `block` = (rows, rows of a block)
    of the first fit, or "labels", whose values are in `labels`, a fold each. Of functions that were trained on some of
    the rows, the folds `reserved` have none of them: held-out values are those of these folds alone.

    Examples
    --------
    >>> ones = np.ones((3, 2, 2))
    >>> folds = Folds({"gram": ones}, weight=np.full(3, 5.0), count=np.full(3, 5), landmarks=True)
    >>> folds.number, (folds + folds).count.tolist()
    (2, [10, 10, 10])
    """

    arrays: Mapping[str, Array]
    weight: Array
    count: NDArray[np.int64]
    landmarks: bool = False
    rule: str = "hash"
    labels: tuple[Any, ...] = ()
    dealt: int = 0
    block: tuple[int, int] | None = None
    reserved: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        """The number K of folds."""
        return len(self.count) - self.landmarks

    @property
    def judges(self) -> tuple[int, ...]:
        """The folds on which functions are judged: all of them, or those that are reserved."""
        return self.reserved or tuple(range(self.number))

    def __add__(self, other: Folds) -> Folds:
        """Group by group; where one side has no group of landmark rows, it counts as zero.

        Raises ValueError for other numbers of folds, for other labels, and where no fold is reserved on both sides.
        """
        if not isinstance(other, Folds):
            return NotImplemented
        if self.number != other.number:
            raise ValueError(
                f"moments of {self.number} and of {other.number} folds do not add; measure both with the same number "
                "of folds, or one of them with folds=None, which leaves the sum without folds"
            )
        if self.labels != other.labels:
            raise ValueError(
                f"moments with folds of the labels {_shown(self.labels)} and {_shown(other.labels)} do not add; "
                "measure both with the same labels, or one of them with folds=None"
            )
        groups = max(len(self.count), len(other.count))
        reserved = tuple(k for k in self.judges if k in other.judges)
        if not reserved:
            raise ValueError(
                f"networks were trained on rows of all folds of one side or the other, which reserve {self.reserved} "
                f"and {other.reserved}: none is left to judge functions on; measure one of them with folds=None"
            )
        return replace(
            self,
            reserved=reserved if self.reserved or other.reserved else (),
            arrays={k: _widened(v, groups) + _widened(other.arrays[k], groups) for k, v in self.arrays.items()},
            weight=_widened(self.weight, groups) + _widened(other.weight, groups),
            count=_widened(self.count, groups) + _widened(other.count, groups),
            landmarks=self.landmarks or other.landmarks,
            dealt=self.dealt + other.dealt,
        )

    def total(self) -> dict[str, Array]:
        """The sums over all groups, in their order."""
        return {name: _added(values) for name, values in self.arrays.items()}


def gathered(sums: MutableMapping[str, Any], groups: int, **rule: Any) -> tuple[Folds, dict[str, Array]]:
    """Folds of the sums that tasks sent under the names `name_in(group, name)`, and the sums over all of them.

    A group without rows has zeros. The sums are taken out of the mapping one by one, so that no more than one name is
    held twice.
    """
    weight, count = sums.pop(WEIGHT), sums.pop(COUNT)
    whole = {key.partition("/")[2]: sums.pop(key) for key in list(sums) if key.startswith(name_in(ALL, ""))}
    names = dict.fromkeys(key.partition("/")[2] for key in sums)
    arrays: dict[str, Array] = {}
    for name in names:
        parts = {g: sums.pop(name_in(g, name)) for g in range(groups) if name_in(g, name) in sums}
        found = next(iter(parts.values()))
        arrays[name] = np.zeros((groups, *found.shape), found.dtype)
        for g in list(parts):
            arrays[name][g] = parts.pop(g)
    folds = Folds(arrays, weight, count.astype(np.int64), **rule)
    return folds, folds.total() | whole


def _widened(values: Any, groups: int) -> Any:
    """The sums by group with groups of zeros behind."""
    missing = groups - len(values)
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)]) if missing else values


@np.errstate(over="ignore", invalid="ignore")  # what overflows is told when it is solved
def _added(values: Array) -> Array:
    total = values[0].copy()
    for part in values[1:]:
        total += part
    return np.asarray(total)


def _shown(labels: tuple[Any, ...]) -> str:
    return f"{', '.join(map(str, labels[:5]))}{', ...' if len(labels) > 5 else ''}" if labels else "none"
