"""The left or the right functions of an operator: a basis that is given, or a kernel at landmarks."""

from __future__ import annotations

from collections.abc import Mapping
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
    NeuralBasis,
    Trainable,
    Vanishing,
)
from daskspectral.data.source import Source, label_of
from daskspectral.errors import renumbered
from daskspectral.kernels import Kernel, Linear, Periodic, RadialKernel
from daskspectral.landmarks import METHODS
from daskspectral.operators import Operator
from daskspectral.passes.edges import check_edges
from daskspectral.passes.landmarks import MOST_SPANNING, choose_landmarks, moved, spanning_landmarks
from daskspectral.passes.lattice import boxed, check_lattice, check_lattice_choice
from daskspectral.passes.parameters import (
    check_one_of,
    check_whole,
    checked_kernel,
    given_landmarks,
)
from daskspectral.passes.periods import Periods, check_periods, periodic, periods_of


@dataclass(frozen=True, eq=False)
class Side:
    """An estimator's parameters for the left or the right functions; `prefix` begins their names, "" or "right_".

    The functions are a `basis`, or a `kernel` at `landmarks`: an array, or the method that chooses `count` of
    `sample` rows. `view` is the field of points on which they are evaluated; `constant` adds the constant function.
    `vanishing` is a Vanishing("landmarks", ...) into which the kernel at landmarks goes. `periods` are the periods of
    columns of X by their numbers. The landmarks of a linear kernel that are `spanning` give all its functions.
    """

    prefix: str
    view: str
    basis: Basis | None
    kernel: Kernel | str | None
    landmarks: Any
    count: int
    sample: int | None
    constant: bool
    spread: float = 0.0
    vanishing: Vanishing | None = None
    periods: Mapping[Any, Any] | None = None
    spanning: bool = False

    @property
    def automatic(self) -> bool:
        """Whether the data decide the kernel or its scale."""
        return self.basis is None and is_automatic(self.kernel)

    @property
    def open_network(self) -> bool:
        """Whether the functions are of a network that has to be trained."""
        return isinstance(self.basis, Trainable) and not self.basis.frozen

    @property
    def drawn(self) -> bool:
        """Whether rows of the data become landmarks."""
        return self.basis is None and isinstance(self.landmarks, str)

    @property
    def vanishes(self) -> bool:
        """Whether its functions vanish at the ends of the data."""
        return self.vanishing is not None or (isinstance(self.basis, Basis) and self.basis.vanishes)

    @property
    def size(self) -> int:
        """The number of functions wanted, known before landmarks are drawn."""
        if self.basis is not None:
            return self.basis.size + self._adds_constant(self.basis)
        return (self.count if self.drawn else len(self.landmarks)) + self.constant

    def check(self) -> None:
        """Raise ValueError or TypeError for parameters that cannot work with any data."""
        basis = f"{self.prefix}basis"
        if self.basis is not None:
            if not isinstance(self.basis, Basis):
                raise TypeError(f"{basis} must be one of daskspectral.basis, such as MonomialBasis; got {self.basis!r}")
            if isinstance(self.basis, FourierLattice):
                self._check_prior()
                return
            named = {f"{self.prefix}kernel": self.kernel is not None and not isinstance(self.kernel, str)}
            named[f"{self.prefix}landmarks"] = not isinstance(self.landmarks, str)
            for name, given in named.items():
                if given:
                    raise ValueError(f"{basis} takes the place of a kernel at landmarks; give it or {name}, not both")
            if self.periods is not None:
                raise ValueError(
                    f"periods are for kernels at landmarks, and {basis} has functions of its own: they have to be "
                    "periodic themselves, as LandmarkBasis(Periodic(kernel, periods), points) is"
                )
        else:
            checked_kernel(self.kernel)
        check_periods(self.periods)
        if self.vanishes and self.constant:
            raise ValueError(
                f"constant=True would add a function that does not vanish to {basis}, whose functions vanish at the "
                "ends of the data; leave constant out"
            )
        if isinstance(self.landmarks, str):
            check_one_of(f"{self.prefix}landmarks", self.landmarks, METHODS)
            if self.landmarks != "uniform" and self.sample is not None:
                check_whole("landmark_sample", self.sample, self.count)

    def _check_prior(self) -> None:
        """Raise ValueError or TypeError for parameters that do not go with a lattice."""
        check_periods(self.periods)
        check_lattice_choice(self.basis, self.kernel, self.landmarks)
        if self.prefix:
            raise ValueError(
                "products of the functions of two sides are no modes of the data: a Fourier lattice is for operators "
                "whose functions are the same on both sides; leave right_basis out"
            )

    def fitted_to(self, count: int, source: Source) -> Side:
        """The same with `count` landmarks, or with as many as span all functions of a linear kernel."""
        if self.drawn and type(self.kernel) is Linear and self.periods is None and self.vanishing is None:
            least = min(source.n, source.dimension_at(self.view))
            if least <= MOST_SPANNING:
                return replace(self, count=least, spanning=True)
        return replace(self, count=count)

    def in_dimension(self, source: Source, operator: Operator) -> Side:
        """The same for these data: a lattice of so many variables. Raises ValueError for more than four."""
        if not isinstance(self.basis, FourierLattice):
            return self
        check_lattice(self.basis, operator, source.dimension_at(self.view))
        periods = self.periods_in(source, operator)
        return replace(self, basis=self.basis.laid(source.dimension_at(self.view), None, periods, source.n))

    def check_against(self, source: Source, order: int, operator: Operator) -> None:
        """Raise ValueError where the functions do not fit the data, or the operator with derivatives of this order."""
        dimension = source.dimension_at(self.view)
        if self.basis is not None:
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
        kernel = self._kernel(operator, source)
        self.laid(LandmarkBasis(kernel, np.zeros((1, dimension)))).check_order(order, operator.title)
        if not self.drawn:
            columns = source.preparations[self.view].columns
            given_landmarks(self.landmarks, source.width(self.view), label_of(self.view), columns)

    def choose(
        self, source: Source, rng: np.random.Generator, operator: Operator, *, on_invalid: str, progress: bool | None
    ) -> tuple[Basis, NDArray[np.floating[Any]] | None]:
        """The basis, and its landmarks in the raw columns of the data, None for a basis that is given."""
        basis, raw = self._chosen(source, rng, operator, on_invalid=on_invalid, progress=progress)
        if basis.edges:
            check_edges(basis.edges, source, rng, view=self.view, on_invalid=on_invalid, progress=progress)
        return self.completed(basis), raw

    def _chosen(
        self, source: Source, rng: np.random.Generator, operator: Operator, **options: Any
    ) -> tuple[Basis, NDArray[np.floating[Any]] | None]:
        if isinstance(self.basis, FourierLattice):
            return boxed(self.basis, source, operator, rng, periods=self.periods_in(source, operator), **options), None
        if self.basis is not None:
            return self.basis, None
        if self.spanning:
            found = spanning_landmarks(source, rng, view=self.view, **options)
        else:
            found = choose_landmarks(
                source,
                self._kernel(operator, source),
                self.landmarks,
                self.count,
                rng,
                view=self.view,
                sample_size=self.sample,
                **options,
            )
        rows = found.rows
        if rows is not None and not self.prefix:
            with renumbered(lambda k: rows[k]):
                operator.check_points(found.points)
        return self.laid(LandmarkBasis(found.kernel, moved(found.points, found.kernel, self.spread))), found.raw

    def kernel_of(self, basis: Basis) -> Kernel:
        """The kernel of a basis that this side chose, as an estimator takes it: without periods that are added."""
        core = basis.parts[-1].core
        assert isinstance(core, LandmarkBasis)
        kernel = core.kernel
        given = isinstance(self.kernel, Periodic)
        return kernel.kernel if isinstance(kernel, Periodic) and not given else kernel

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
        given = None if self.periods is None else periods_of(self.periods, source, self.view)
        if given is not None and operator.periods is not None and operator.periods != given:
            raise ValueError(
                f"{operator} has the periods {operator.periods}, and periods= asks for {given}; give them once"
            )
        return operator.periods if given is None else given

    def _kernel(self, operator: Operator, source: Source) -> Kernel:
        """A copy of the kernel, periodic where the columns or the operator's manifold are."""
        periods = self.periods_in(source, operator)
        return periodic(
            checked_kernel(self.kernel), periods, f"{operator} has" if self.periods is None else "periods= asks for"
        )

    @property
    def given(self) -> Basis | None:
        """The basis that is given, with the constant where it is added; None for a kernel at landmarks."""
        return None if self.basis is None else self.completed(self.basis)

    def completed(self, basis: Basis) -> Basis:
        """The basis with the constant function, where it is added."""
        return with_constant(basis) if self._adds_constant(basis) else basis

    def _adds_constant(self, basis: Basis) -> bool:
        return self.constant and not basis.holds_constant


def has_kink(kernel: Kernel) -> bool:
    """Whether k(., y) is not differentiable at y, as for the exponential kernel."""
    inner = kernel.inner
    return isinstance(inner, RadialKernel) and inner.smoothness < 1


def is_automatic(kernel: Any) -> bool:
    """Whether a parameter leaves the kernel or its scale to the data."""
    return (isinstance(kernel, str) and kernel == "auto") or (isinstance(kernel, Kernel) and kernel.automatic)


def with_constant(basis: Basis) -> Basis:
    """The constant function, then the functions of the basis."""
    return Concatenated((ConstantBasis(basis.dimension), *basis.parts))
