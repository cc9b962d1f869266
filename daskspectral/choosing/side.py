"""The left or the right functions of an operator: a basis, or landmarks that a fit draws."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import (
    Basis,
    Concatenated,
    ConstantBasis,
    FourierLattice,
    LandmarkBasis,
    Landmarks,
    NeuralBasis,
    Trainable,
    Vanishing,
)
from daskspectral.basis.edges import Edge
from daskspectral.choosing.landmarks import (
    MOST_SPANNING,
    Periods,
    choose_landmarks,
    given_points,
    moved,
    periodic,
    periods_of,
    spanning_landmarks,
)
from daskspectral.choosing.lattice import boxed, check_lattice, check_prior
from daskspectral.data.source import Source, label_of
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import TrustWarning, renumbered, warn_user
from daskspectral.kernels import Gaussian, Kernel, Linear, Periodic, RadialKernel
from daskspectral.operators import Operator

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Side:
    """The left or the right functions; `prefix` begins the names of their attributes, "" or "right_".

    They are a `basis`, or `landmarks`, the kernel at which goes into the basis `vanishing` where there is one. `view`
    is the field of points on which they are evaluated; `constant` adds the constant function. The landmarks of a linear
    kernel that are `spanning` give all its functions.
    """

    prefix: str
    view: str
    basis: Basis | None
    landmarks: Landmarks | None
    constant: bool
    vanishing: Vanishing | None = None
    spanning: bool = False

    @classmethod
    def of(cls, functions: Any, prefix: str, view: str, operator: Operator, outputs: int) -> Side:
        """The functions that an estimator is given as its argument `basis`; networks have so many `outputs`.

        Raises TypeError or ValueError for what cannot work with any data.
        """
        name = f"{prefix}basis"
        functions, vanishing = copy.deepcopy(functions), None  # kernels can be changed in place
        if isinstance(functions, Vanishing) and isinstance(functions.basis, Landmarks):
            vanishing, functions = functions, functions.basis
        constant = operator.kills_constants and vanishing is None
        if isinstance(functions, Landmarks):
            asked = functions.constant
            if asked and vanishing is not None:
                raise ValueError(
                    f"constant=True would add a function that does not vanish to {name}, whose functions vanish at the "
                    "ends of the data; leave constant out"
                )
            return cls(prefix, view, None, functions, constant if asked is None else asked, vanishing)
        if not isinstance(functions, Basis):
            raise TypeError(
                f"{name} must be one of daskspectral.basis, such as Landmarks(kernel) or MonomialBasis; got "
                f"{functions!r}"
            )
        if isinstance(functions, FourierLattice):
            check_prior(functions)
            if prefix:
                raise ValueError(
                    "products of the functions of two sides are no modes of the data: a Fourier lattice is for "
                    "operators whose functions are the same on both sides; leave right_basis out"
                )
        basis = functions.asking(outputs) if isinstance(functions, Trainable) else functions
        return cls(prefix, view, basis, None, constant and not functions.vanishes)

    @property
    def lattice(self) -> FourierLattice | None:
        """The lattice on which modes are summed; None for other functions."""
        return self.basis if isinstance(self.basis, FourierLattice) else None

    @property
    def has_periods(self) -> bool:
        """Whether the periods of some columns are given with the functions."""
        own = self.landmarks or self.lattice
        return own is not None and (own.periods is not None or isinstance(own.kernel, Periodic))

    @property
    def automatic(self) -> bool:
        """Whether the data decide the kernel or its scale."""
        return self.landmarks is not None and self.landmarks.automatic

    @property
    def open_network(self) -> bool:
        """Whether the functions are of a network that has to be trained."""
        return isinstance(self.basis, Trainable) and not self.basis.frozen

    @property
    def drawn(self) -> int:
        """The number of rows of the data that become landmarks."""
        return int(self.landmarks.count) if self.landmarks is not None and self.landmarks.drawn else 0

    @property
    def vanishes(self) -> bool:
        """Whether its functions vanish at the ends of the data."""
        return self.vanishing is not None or (self.basis is not None and self.basis.vanishes)

    @property
    def size(self) -> int:
        """The number of functions wanted, known before landmarks are drawn."""
        if self.landmarks is None:
            assert self.basis is not None
            return self.basis.size + (self.constant and not self.basis.holds_constant)
        return (self.drawn or len(self.landmarks.points)) + self.constant

    def fitted_to(self, count: int, source: Source, operator: Operator) -> Side:
        """The same for these data: a lattice of so many variables, `count` landmarks where their number is open.

        Of a linear kernel as many as span all its functions. Raises ValueError for a lattice of more than four columns.
        """
        if isinstance(self.basis, FourierLattice):
            dimension = source.dimension_at(self.view)
            check_lattice(self.basis, operator, dimension)
            return replace(self, basis=self.basis.laid(dimension, None, self.periods_in(source, operator), source.n))
        own = self.landmarks
        if own is None or own.count != "auto":
            return self
        if own.drawn and type(own.kernel) is Linear and own.periods is None and self.vanishing is None:
            least = min(source.n, source.dimension_at(self.view))
            if least <= MOST_SPANNING:
                return replace(self, landmarks=replace(own, count=least), spanning=True)
        return replace(self, landmarks=replace(own, count=min(count, own.sample or count)))

    def check_against(self, source: Source, order: int, operator: Operator) -> None:
        """Raise ValueError where the functions do not fit the data, or the operator with derivatives of this order."""
        dimension = source.dimension_at(self.view)
        if self.landmarks is None:
            assert self.basis is not None
            unknown = self.open_network and isinstance(self.basis, NeuralBasis)
            if not unknown and self.basis.dimension != dimension:
                raise ValueError(
                    f"{self.prefix}basis has functions of {self.basis.dimension} variables, and "
                    f"{label_of(self.view)} has {dimension} columns"
                )
            self.basis.check_order(order, operator.title)
            return
        if self.vanishing is not None:
            self.vanishing.check_dimension(dimension)
        kernel = self.kernel(operator, source)
        self.laid(LandmarkBasis(kernel, np.zeros((1, dimension)))).check_order(order, operator.title)
        given_points(self.landmarks, source, self.view)
        if source.n < self.drawn:
            raise ValueError(f"X has {source.rows}, fewer than {self.drawn} landmarks; lower their count")

    def choose(
        self, source: Source, rng: np.random.Generator, operator: Operator, *, at_most: bool = False
    ) -> tuple[Basis, Array | None]:
        """The basis, and its landmarks in the raw columns of the data, None for a basis that is given.

        Fewer landmarks than their count are no warning where this is `at_most`.
        """
        basis, raw = self._chosen(source, rng, operator, at_most)
        if basis.edges:
            check_edges(basis.edges, source, rng, view=self.view)
        return self.completed(basis), raw

    def _chosen(
        self, source: Source, rng: np.random.Generator, operator: Operator, at_most: bool
    ) -> tuple[Basis, Array | None]:
        if isinstance(self.basis, FourierLattice):
            return boxed(self.basis, source, operator, rng, periods=self.periods_in(source, operator)), None
        if self.basis is not None:
            return self.basis, None
        assert self.landmarks is not None
        if self.spanning:
            found = spanning_landmarks(source, rng, view=self.view)
        else:
            wanted = replace(self.landmarks, kernel=self.kernel(operator, source))
            found = choose_landmarks(source, wanted, rng, view=self.view, at_most=at_most)
        rows = found.rows
        if rows is not None and not self.prefix:
            with renumbered(lambda k: rows[k]):
                operator.check_points(found.points)
        spread = self.landmarks.spread
        points = found.points if isinstance(spread, str) else moved(found.points, found.kernel, float(spread))
        return self.laid(LandmarkBasis(found.kernel, points)), found.raw

    def chosen(self, basis: Basis, raw: Array) -> Basis | Landmarks:
        """The argument of an estimator that gives this basis of the landmarks `raw` again."""
        core = basis.parts[-1].core
        assert isinstance(core, LandmarkBasis)
        assert self.landmarks is not None
        kernel, spread = core.kernel, self.landmarks.spread
        if isinstance(kernel, Periodic) and not isinstance(self.landmarks.kernel, Periodic):
            kernel = kernel.kernel  # without the periods that are added
        kernel = copy.deepcopy(kernel)  # one that is changed in place changes no fitted model
        still = 0.0 if isinstance(spread, str) else spread
        found = replace(self.landmarks, kernel=kernel, points=raw, count=len(raw), spread=still)
        return found if self.vanishing is None else replace(self.vanishing, basis=found)

    def laid(self, basis: Basis) -> Basis:
        """Functions at landmarks as they are used: within a vanishing basis where one is asked for."""
        return basis if self.vanishing is None else self.vanishing.of(basis)

    def periods_in(self, source: Source, operator: Operator) -> Periods | None:
        """The period of each prepared column; None where none has one.

        Raises ValueError for two that differ, and for an operator on an oblique cell.
        """
        if operator.oblique:
            raise ValueError(
                f"{operator} is on an oblique cell, and kernels, lattices and densities are periodic along columns "
                "only; give functions that are periodic, such as basis=HarmonicBasis(manifold, 100)"
            )
        own = None if self.landmarks is None else self.landmarks.periods
        given = None if own is None else periods_of(own, source, self.view)
        if given is not None and operator.periods is not None and operator.periods != given:
            raise ValueError(
                f"{operator} has the periods {operator.periods}, and periods= asks for {given}; give them once"
            )
        return operator.periods if given is None else given

    def kernel(self, operator: Operator, source: Source) -> Kernel:
        """The kernel, periodic where the columns or the operator's manifold are; one that is open stands for others."""
        assert self.landmarks is not None
        own = self.landmarks.kernel
        periods = self.periods_in(source, operator)
        whose = f"{operator} has" if self.landmarks.periods is None else "periods= asks for"
        return periodic(own if isinstance(own, Kernel) else Gaussian("auto"), periods, whose)

    @property
    def given(self) -> Basis | None:
        """The basis that is given, with the constant where it is added; None for a kernel at landmarks."""
        return None if self.basis is None else self.completed(self.basis)

    def completed(self, basis: Basis) -> Basis:
        """The basis with the constant function, where it is added."""
        return with_constant(basis) if self.constant and not basis.holds_constant else basis


def has_kink(kernel: Kernel | str) -> bool:
    """Whether k(., y) is not differentiable at y, as for the exponential kernel."""
    inner = kernel.inner if isinstance(kernel, Kernel) else None
    return isinstance(inner, RadialKernel) and inner.smoothness < 1


def with_constant(basis: Basis) -> Basis:
    """The constant function, then the functions of the basis."""
    return Concatenated((ConstantBasis(basis.dimension), *basis.parts))


# -- whether functions that are to vanish at the ends of the data do so, on a draw of rows before the pass -------------


SAMPLE = 20_000
ROUNDING = 1e-9
MOST_ON_EDGE = 0.05
LARGE = 0.25  # of the largest value: no function that vanishes near the data is nowhere smaller
FEW, GAP = 10, 0.5  # rows that end at the zeros come ten times nearer than the tenth of them
FEWEST = 100  # rows from which the smallest value says something


def check_edges(edges: tuple[Edge, ...], source: Source, rng: np.random.Generator, *, view: str) -> None:
    """Raise ValueError for a function that does not vanish where the data end, on up to 20 000 rows.

    It is negative, or 0 on more than a twentieth of the rows, or nowhere below a quarter of its largest value. A gap
    between the last rows and its zeros, wider than that between the last rows and the next hundredth of all, gives a
    TrustWarning. A function that vanishes at some ends of the data alone cannot be told from one that is meant so.
    """
    numbers, x = draw_rows(source, SAMPLE, rng, view=view)
    for edge in dict.fromkeys(edges):
        values = edge.values(x)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"the vanishing function {edge!r} is {values[row]} at row {numbers[row]} of the data")
        largest = float(np.abs(values).max())
        zero = np.abs(values) <= ROUNDING * largest
        beyond = edge.outside(x) & ~zero
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(
                f"the vanishing function {edge!r} does not vanish where the data end: {np.count_nonzero(beyond)} of "
                f"{len(x)} rows lie outside its domain, row {numbers[row]} at {x[row]} the first of them; widen it, or "
                "leave such rows out"
            )
        if zero.mean() > MOST_ON_EDGE:
            raise ValueError(
                f"the vanishing function {edge!r} is 0 on {np.count_nonzero(zero)} of {len(x)} rows: it is to be "
                "positive where the data lie, and 0 at their ends alone"
            )
        least = float(values.min())
        if len(x) >= FEWEST and least > LARGE * largest:
            raise ValueError(
                f"the vanishing function {edge!r} does not vanish where the data end: over {len(x)} rows it goes from "
                f"{least:.3g} to {largest:.3g}; its zeros belong at the ends of the data"
            )
        few = max(FEW, len(x) // 100)
        if len(x) <= few:
            continue
        for distance in edge.sides(x).T:
            nearest, near = (float(np.partition(distance, k)[k]) for k in (0, few))
            if nearest > GAP * near:
                warn_user(
                    f"the zeros of the vanishing function {edge!r} lie beyond the data: on one side {few} rows come "
                    f"{near - nearest:.3g} nearer to them than the others, and then there is a gap of {nearest:.3g} "
                    "without rows, across which functions need no slope: eigenvalues come out too small. Move the "
                    "zeros to where the data end",
                    TrustWarning,
                )
                break
