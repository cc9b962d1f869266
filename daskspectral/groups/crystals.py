"""Space groups of crystals and plane groups of patterns: finite groups on the cell of a lattice."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from daskspectral.groups.base import Group
from daskspectral.groups.elements import Elements, affine
from daskspectral.manifolds import Isometry, Manifold, PeriodicBox, PeriodicCell

Operation = tuple[NDArray[np.int64], NDArray[np.float64]]

_HALLS, _NUMBERS = 530, 230
_MOST = 2000  # elements that are counted; 192 is the most of a conventional cell
_SAME, _NEAR = 1e-9, 1e-3  # of a lattice vector: one translation, and what is meant to be one
_METRIC = 1e-9  # relative: lengths and angles that are the same


@final
@dataclass(frozen=True, eq=False, repr=False)
class SpaceGroup(Group):
    """The space group of a crystal, or the plane group of a pattern, by operations in fractional coordinates.

    Parameters
    ----------
    cell : PeriodicCell or PeriodicBox
        The cell to which the operations refer, of m vectors.
    operations : sequence of pairs (W, w)
        Integer matrices W (m, m) and translations w (m,): a point with the coordinates f along the cell's vectors goes
        to W f + w, as in the International Tables for Crystallography. Any that generate the group, which is then
        closed; translations by lattice vectors belong to it in any case. In Cartesian coordinates, give
        `Isometry(A, b)` to `Generated` instead.
    name : str, optional
        What it is called in messages.

    `SpaceGroup.by_number` takes the operations of the 230 space groups from spglib. Functions that it leaves alone
    have the crystal's symmetry; systematic absences follow from the phases. The group acts on the points of any cell of
    the crystal, too: with centred lattices the primitive cell gives the same functions from fewer frequencies.

    Raises ValueError for matrices that are not of integers or do not invert, for operations that change lengths or
    angles of the cell, for translations that nearly coincide: 0.333 where 1 / 3 is meant would leave hardly a function.

    Examples
    --------
    >>> from daskspectral.manifolds import PeriodicCell
    >>> cell = PeriodicCell.hexagonal(1.0)
    >>> p6m = SpaceGroup(cell, [([[1, -1], [1, 0]], [0, 0]), ([[0, 1], [1, 0]], [0, 0])])
    >>> p6m.order, len(p6m.generators)
    (12, 2)
    >>> p6m.check(cell)
    """

    expects: ClassVar = {"cell": Manifold}

    cell: PeriodicCell | PeriodicBox
    operations: tuple[Operation, ...]
    """Operations that generate the group, each of which the ones before it do not."""
    name: str | None
    _order: int | None

    def __init__(
        self,
        cell: PeriodicCell | PeriodicBox,
        operations: Sequence[tuple[ArrayLike, ArrayLike]],
        name: str | None = None,
    ):
        given: Any = cell
        if not isinstance(given, (PeriodicCell, PeriodicBox)):
            raise TypeError(f"SpaceGroup takes a cell, such as PeriodicCell.hexagonal(1.0), first; received {given!r}")
        checked = [_checked(cell, number, pair) for number, pair in enumerate(operations)]
        generating, order = _generating(cell.ambient, checked)
        self._set(cell=cell, operations=tuple(generating), name=name, _order=order)

    @classmethod
    def by_number(cls, cell: PeriodicCell | PeriodicBox, number: int | None = None, *, hall: int | None = None) -> Self:
        """The space group of a number in the International Tables, 1 to 230, in the conventional cell of its setting.

        The setting is the first of the number in Hall's list; `hall`, 1 to 530, chooses another: unique axes, choices
        of the origin, rhombohedral axes. Centring translations are elements: Fm-3m has 192, on the cube or on
        PeriodicCell.fcc. Needs spglib: pip install "daskspectral[crystals]".

        Raises ValueError for a number that does not exist, a setting of another group, and a cell without the
        metric of the group (a cubic group takes three orthogonal vectors of one length).

        Examples
        --------
        >>> from daskspectral.manifolds import PeriodicCell
        >>> cube = PeriodicCell.from_parameters(5.43, 5.43, 5.43)
        >>> diamond = SpaceGroup.by_number(cube, 227)
        >>> diamond.order
        192
        >>> diamond.check(PeriodicCell.fcc(5.43))
        >>> SpaceGroup.by_number(cube, hall=526)
        SpaceGroup(Fd-3m (227, hall=526), PeriodicCell(vectors=((5.43, 0.0, 0.0), (0.0, 5.43, 0.0), (0.0, 0.0, 5.43))))
        """
        for what, value, most in (("number", number, _NUMBERS), ("hall", hall, _HALLS)):
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if value is not None and not (whole and 1 <= value <= most):
                raise ValueError(f"expected {what} to be a whole number from 1 to {most}, received {value!r}")
        if number is None and hall is None:
            raise ValueError("expected the number of a space group, 1 to 230, or hall, 1 to 530; received neither")
        if isinstance(cell, Manifold) and cell.ambient != 3:
            raise ValueError(
                f"space groups by number are of three dimensions, and the cell has {cell.ambient}; give the "
                "operations of a plane group as pairs (W, w)"
            )
        symbol, found, setting, operations = _tabulated(number, hall)
        if number is not None and number != found:
            raise ValueError(f"hall={hall} is a setting of {symbol}, number {found}, not of number {number}")
        name = f"{symbol} ({found}, hall={setting})"
        try:
            return cls(cell, operations, name)
        except ValueError as error:
            raise ValueError(
                f"{name} does not fit the cell: {error}; give the conventional cell of this setting, as by "
                "PeriodicCell.from_parameters, or choose another by hall="
            ) from None

    def __repr__(self) -> str:
        what = f"{len(self.operations)} operations" if self.name is None else self.name
        return f"SpaceGroup({what}, {self.cell!r})"

    @property
    def dimension(self) -> int:
        return self.cell.ambient

    @property
    def generators(self) -> tuple[Isometry, ...]:
        """The operations in Cartesian coordinates."""
        return tuple(_cartesian(self.cell.lattice, operation) for operation in self.operations)

    @property
    def order(self) -> int | None:
        """The number of elements that differ by more than translations of the cell, or None above 2000."""
        return self._order


def _checked(cell: PeriodicCell | PeriodicBox, number: int, pair: tuple[ArrayLike, ArrayLike]) -> Operation:
    """W and w as arrays. Raises ValueError where they are none of an isometry of the cell's lattice."""
    m, vectors = cell.ambient, cell.lattice
    try:
        matrix, translation = (np.array(part, dtype=np.float64) for part in pair)
    except (TypeError, ValueError):
        raise ValueError(f"expected pairs (W, w) of numbers, received operation {number}: {pair!r}") from None
    if matrix.shape != (m, m) or translation.shape != (m,):
        raise ValueError(
            f"expected a matrix ({m}, {m}) and a translation ({m},) for a cell of {m} vectors, received the shapes "
            f"{matrix.shape} and {translation.shape} in operation {number}"
        )
    if not np.isfinite(translation).all():
        raise ValueError(f"expected finite translations, received {translation.tolist()} in operation {number}")
    whole = np.rint(matrix)
    if (matrix != whole).any() or round(abs(np.linalg.det(matrix))) != 1:
        raise ValueError(
            f"expected matrices of integers with determinant 1 or -1, in coordinates along the cell's vectors, "
            f"received {matrix.tolist()} in operation {number}; Cartesian ones are Isometry(A, b), for Generated"
        )
    images = whole.T @ vectors
    lengths, angles = (np.stack(found) for found in zip(_shape(vectors), _shape(images), strict=True))
    longer, wider = np.abs(np.diff(np.log(lengths), axis=0)[0]), np.abs(np.diff(angles, axis=0)[0])
    fault = ""
    if longer.max() > _METRIC:
        k = int(longer.argmax())
        fault = f"vector {k}, of length {lengths[0, k]:.6g}, to one of length {lengths[1, k]:.6g}"
    elif wider.max() > _METRIC:
        i, j = sorted(int(k) for k in np.unravel_index(wider.argmax(), wider.shape))
        before, after = np.degrees(angles[:, i, j])
        fault = f"vectors {i} and {j}, at {before:.6g} degrees, to ones at {after:.6g}"
    if fault:
        raise ValueError(
            f"operation {number}, {whole.astype(int).tolist()}, does not take the lattice of {cell!r} to itself: it "
            f"takes {fault}"
        )
    return whole.astype(np.int64), translation


def _shape(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lengths (m,) of vectors (m, m) and the angles (m, m) between them, by the arcsine of half their chords."""
    lengths = np.linalg.norm(vectors, axis=1)
    unit = vectors / lengths[:, None]
    chord = np.linalg.norm(unit[:, None] - unit, axis=2), np.linalg.norm(unit[:, None] + unit, axis=2)
    return lengths, 2 * np.arctan2(*chord)


def _cartesian(vectors: NDArray[np.float64], operation: Operation) -> Isometry:
    """x -> A x + b with A = V^T W V^-T, orthogonal to rounding, and b = V^T w, for vectors in the rows of V."""
    matrix, translation = operation
    a = np.linalg.solve(vectors, matrix.T @ vectors).T
    return Isometry(scipy.linalg.polar(a)[0], translation @ vectors)


def _generating(m: int, operations: Sequence[Operation]) -> tuple[list[Operation], int | None]:
    """The operations that the ones before do not generate, and how many elements all generate, None above `_MOST`."""
    found, closed = Elements(np.eye(m), _MOST, 2 * np.pi * _SAME), True
    chosen = []
    for operation in operations:
        before = len(found.generators)
        closed = closed and found.add(affine(*operation))
        if len(found.generators) > before or not closed:
            chosen.append(operation)
    _check_translations(found.maps)
    return chosen, found.count if closed else None


def _check_translations(maps: NDArray[np.float64]) -> None:
    """Raise ValueError where two elements (n, m + 1, m + 1) differ by nearly no translation."""
    kinds = np.unique(maps[:, :-1, :-1].reshape(len(maps), -1), axis=0, return_inverse=True)[1].ravel()
    for kind in range(kinds.max() + 1):
        shifts = maps[kinds == kind, :-1, -1]
        off = shifts[:, None] - shifts
        off = np.abs(off - np.rint(off)).max(axis=2) + np.eye(len(shifts))
        if off.min() < _NEAR:
            raise ValueError(
                f"the operations generate a translation of {off.min():.2g} of the cell's vectors, which leaves hardly "
                "a function; give translations with all their digits, such as 1 / 3 in place of 0.3333"
            )


def _tabulated(number: int | None, hall: int | None) -> tuple[str, int, int, list[Operation]]:
    """The symbol, number and Hall number of a space group, and all its operations in the conventional cell."""
    try:
        import spglib
    except ImportError as error:
        raise ImportError(
            'space groups by number need spglib: pip install "daskspectral[crystals]"; or give the operations as pairs '
            "(W, w)"
        ) from error
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*OLD_ERROR_HANDLING", DeprecationWarning)  # about how spglib tells errors

        def number_of(setting: int) -> int:
            found: Any = spglib.get_spacegroup_type(setting)
            return int(found.number)

        settings = range(1, _HALLS + 1)  # in the order of the numbers
        first = 0 if number is None else settings[bisect_left(settings, number, key=number_of)]
        setting = first if hall is None else int(hall)
        kind: Any = spglib.get_spacegroup_type(setting)
        symmetry: Any = spglib.get_symmetry_from_database(setting)
    operations = zip(symmetry["rotations"], symmetry["translations"], strict=True)
    return kind.international_short, int(kind.number), setting, list(operations)
