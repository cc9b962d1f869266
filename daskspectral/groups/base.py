"""What every group offers: generators and a Lie algebra; only averages over small groups list elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from daskspectral.manifolds import Isometry, KillingField, Manifold
from daskspectral.registry import Registered


class Group(Registered, ABC):
    """A group that acts on points x (c, d) by isometries, given by a few generators; nothing enumerates it.

    Continuous groups have generators of their Lie algebra too, the velocities of one-parameter groups. A continuous
    function that is invariant under the generators and along the fields of the algebra is invariant under the whole
    group, and under its closure if it is infinite.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> group = Permutations(10)
    >>> len(group.generators), group.order
    (2, 3628800)
    >>> group.check(Sphere(10))
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of coordinates d that it acts on."""

    @property
    def generators(self) -> tuple[Isometry, ...]:
        """Isometries whose products and inverses, with the flows of `algebra`, are the group."""
        return ()

    @property
    def algebra(self) -> tuple[KillingField, ...]:
        """Fields that generate the Lie algebra; none for groups given by isometries alone."""
        return ()

    @property
    def order(self) -> int | None:
        """The number of its elements, or None where the group is infinite or no closed form is known."""
        return None

    @final
    def check(self, manifold: Manifold) -> None:
        """Raise ValueError, naming the generator and saying why, unless all are isometries of the manifold.

        Elements of the algebra must be Killing fields of it whose flows close at 2π (`Manifold.check_killing`).
        """
        manifold.check_size(self.dimension, f"group {self!r}")
        moves: list[tuple[str, Isometry | KillingField]] = []
        moves += [(f"generator {number}", g) for number, g in enumerate(self.generators)]
        moves += [(f"element {number} of the algebra", field) for number, field in enumerate(self.algebra)]
        for name, move in moves:
            try:
                manifold.check_isometry(move) if isinstance(move, Isometry) else manifold.check_killing(move)
            except ValueError as error:
                raise ValueError(f"{name} of {self!r} does not act: {error}") from None

    @final
    def word(self, rng: np.random.Generator, length: int = 20) -> Isometry:
        """A random product of `length` generators, inverses and flows: an element, uniform only as the length grows."""
        letters: list[Isometry | KillingField] = [*self.generators, *self.algebra]
        result = Isometry(np.eye(self.dimension))
        for _ in range(length if letters else 0):
            letter = letters[rng.integers(len(letters))]
            g = letter.flow(rng.uniform(0, 2 * np.pi)) if isinstance(letter, KillingField) else letter
            result = (g.inverse if rng.random() < 0.5 else g) @ result
        return result


@final
@dataclass(frozen=True, eq=False, repr=False)
class Generated(Group):
    """The group that groups, isometries and flows of the same coordinates generate together; its order is not known.

    Raises ValueError for parts of different dimensions, or none.

    Examples
    --------
    >>> from daskspectral.groups import Permutations, SignFlips
    >>> cube = Generated([Permutations(3), SignFlips(3)])
    >>> len(cube.generators)
    5
    """

    expects: ClassVar = {"parts": (Group, Isometry, KillingField)}

    parts: tuple[Part, ...]
    name: str | None = None

    def __init__(self, parts: Sequence[Part], name: str | None = None):
        if not parts or not all(isinstance(part, (Group, Isometry, KillingField)) for part in parts):
            raise ValueError(f"Generated takes a list of groups and isometries, at least one; received {parts!r}")
        sizes = {part.dimension if isinstance(part, Group) else part.size for part in parts}
        if len(sizes) > 1:
            raise ValueError(f"the parts of a group act on the same coordinates; they act on {sorted(sizes)} of them")
        self._set(parts=tuple(parts), name=name)

    def __repr__(self) -> str:
        if self.name is not None:
            return self.name
        names = [repr(p) if isinstance(p, Group) else f"{type(p).__name__}({p.size} coordinates)" for p in self.parts]
        return f"Generated([{', '.join(names)}])"

    @property
    def dimension(self) -> int:
        part = self.parts[0]
        return part.dimension if isinstance(part, Group) else part.size

    @property
    def generators(self) -> tuple[Isometry, ...]:
        moves = (move for p in self.parts for move in (p.generators if isinstance(p, Group) else (p,)))
        return tuple(move for move in moves if isinstance(move, Isometry))

    @property
    def algebra(self) -> tuple[KillingField, ...]:
        moves = (move for p in self.parts for move in (p.algebra if isinstance(p, Group) else (p,)))
        return tuple(move for move in moves if isinstance(move, KillingField))


Part = Group | Isometry | KillingField
