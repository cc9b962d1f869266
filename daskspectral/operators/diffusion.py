"""Schroedinger operators, anisotropic diffusions and generators of Ito processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskspectral.errors import ParameterError
from daskspectral.forms import Field, Form, along, along_each, dirichlet, form, grad, inner, second
from daskspectral.operators.base import Array, DerivedField, Operator, check_names
from daskspectral.solve import NonNormal, Problem, SymmetricPencil
from daskspectral.validation import is_number

ROUNDING = 1e-8  # relative asymmetry by rounding of an inverse or a product


@dataclass(frozen=True)
class Schroedinger(Operator):
    """Schroedinger operator with the form <∇f, ∇g> + f V g for a potential V(x).

    Parameters
    ----------
    potential : str, default="potential"
        Name of the field (n,) of the potential.

    See Also
    --------
    Laplacian : The operator without a potential.
    SymmetricForm : Operator of a user-defined symmetric form.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(-6, 6, (5000, 1))
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 60)
    >>> model = dsp.SpectralDecomposition(Schroedinger("V"), basis, n_components=3, random_state=0)
    >>> model.fit(dsp.Rows(x, fields={"V": x[:, 0] ** 2})).eigenvalues_.round()
    array([1., 3., 5.])
    """

    potential: str = "potential"
    name = "schroedinger"

    def __post_init__(self) -> None:
        check_names(("x",), self.potential)

    @property
    def form(self) -> Form:
        @form
        def schroedinger(f: Any, g: Any, x: Any) -> Any:
            return inner(grad(f), grad(g)) + inner(f, g, weight=Field(self.potential))

        return schroedinger

    def slopes_squared(self, dimension: int) -> float:
        return float(dimension)  # the potential has no derivatives


@dataclass(frozen=True)
class AnisotropicDiffusion(Operator):
    """Anisotropic diffusion <∇f, D(x) ∇g> with a matrix D(x) at each row; asymmetry of D up to 1e-8 is removed.

    Parameters
    ----------
    field : str, default="diffusion"
        Name of the field of matrices D (n, d, d), symmetric and positive semidefinite.
    factored : bool, default=False
        Whether the field contains the factors σ (n, d, m) instead of D.

    See Also
    --------
    Laplacian : Isotropic diffusion.
    Generator : Diffusion with a drift.

    Examples
    --------
    >>> AnisotropicDiffusion("conductivity").data_fields
    frozenset({'conductivity'})
    """

    field: str = "diffusion"
    factored: bool = False
    name = "anisotropic diffusion"

    def __post_init__(self) -> None:
        check_names(("x",), self.field)

    @property
    def form(self) -> Form:
        return diffusion_form(self._columns)

    @property
    def _columns(self) -> Field:
        return Field(f"columns of {self.field}")

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        return {self._columns.name: DerivedField((self.field,), self._factors)}

    def _factors(self, fields: Mapping[str, Array]) -> Array:
        given = fields[self.field]
        return (given if self.factored else matrix_root(given, self.field)).swapaxes(1, 2)

    def check(self, shapes: Mapping[str, tuple[int, ...]], dimension: int, right_dimension: int | None = None) -> None:
        super().check(shapes, dimension, right_dimension)
        shape = shapes.get(self.field, (dimension, dimension))
        if self.factored:
            check_sigma(self.field, shape, dimension)
        elif shape != (dimension, dimension):
            raise ParameterError(self.field, f"a field whose rows have the shape ({dimension}, {dimension})", shape)


@dataclass(frozen=True)
class Generator(Operator):
    """Generator L g = b · ∇g + (σσᵀ) : Hess g / 2 of the diffusion process dX = b dt + σ dW (gEDMD).

    Eigenvalues are complex. With `reversible=True` the form is the symmetric -1/2 <∇f, σσᵀ ∇g>, without b and second
    derivatives, and eigenvalues descend from 0. Klus, Nueske, Peitz, Niemann, Clementi and Schuette 2020.

    Parameters
    ----------
    drift : str, default="drift"
        Name of the field of the drift b (n, d).
    diffusion : str or float, default="diffusion"
        Name of the field of the noise σ (n, d, m), or a number for a multiple of the identity.
    reversible : bool, default=False
        Whether the points are an equilibrium sample of a reversible process.

    See Also
    --------
    Transfer : Operator of trajectories at a lag.
    AnisotropicDiffusion : Diffusion without a drift.

    Examples
    --------
    >>> Generator("force", 0.5).solver, Generator("force", 0.5, reversible=True).solver
    ('eigen', 'symmetric')
    """

    drift: str = "drift"
    diffusion: str | float = "diffusion"
    reversible: bool = False
    name = "generator"

    def __post_init__(self) -> None:
        check_names(("x",), self.drift)
        sigma: Any = self.diffusion
        if isinstance(sigma, str):
            check_names(("x", self.drift), sigma)
            return
        if not is_number(sigma) or sigma <= 0:
            expected = "the name of a field (n, d, m), or a positive number for a multiple of the identity"
            raise ParameterError("diffusion", expected, sigma)
        object.__setattr__(self, "diffusion", float(sigma))

    @property
    def number(self) -> float | None:
        """Noise σ if it is a multiple of the identity, else None."""
        return self.diffusion if isinstance(self.diffusion, float) else None

    @property
    def form(self) -> Form:
        sigma = self.number
        if self.reversible:
            return Form("reversible_generator", -self._energy.expression)

        @form
        def generator(f: Any, g: Any, x: Any) -> Any:
            curvature = 0.5 * second(g, self._square) if sigma is None else 0.5 * sigma**2 * second(g)
            return inner(f, along(g, Field(self.drift)) + curvature)

        return generator

    @property
    def _columns(self) -> Field:
        return Field(f"columns of {self.diffusion}")

    @property
    def _square(self) -> Field:
        return Field(f"square of {self.diffusion}")

    @property
    def solver(self) -> Problem:
        return SymmetricPencil(descending=True) if self.reversible else NonNormal()

    @property
    def forms(self) -> dict[str, Form]:
        return super().forms if self.reversible else super().forms | {"energy": self._energy}

    @property
    def _energy(self) -> Form:
        sigma = self.number
        base = diffusion_form(self._columns) if sigma is None else dirichlet
        half = 0.5 if sigma is None else 0.5 * sigma**2
        return Form("energy", half * base.expression)

    def slopes_squared(self, dimension: int) -> float | None:
        return None if self.number is None else 0.5 * self.number**2 * dimension

    @property
    def validation_operator(self) -> Operator:
        return replace(self, reversible=True)

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        given = str(self.diffusion)
        if self.number is not None:
            return {}

        def square(fields: Mapping[str, Array]) -> Array:
            sigma = np.asarray(fields[given], dtype=float)
            return np.asarray(sigma @ sigma.swapaxes(1, 2))

        columns = {self._columns.name: DerivedField((given,), lambda fields: fields[given].swapaxes(1, 2))}
        return columns if self.reversible else {**columns, self._square.name: DerivedField((given,), square)}

    def check(self, shapes: Mapping[str, tuple[int, ...]], dimension: int, right_dimension: int | None = None) -> None:
        super().check(shapes, dimension, right_dimension)
        if self.number is None:
            check_sigma(str(self.diffusion), shapes.get(str(self.diffusion), (dimension, 1)), dimension)


def diffusion_form(sigma: Field) -> Form:
    """Return the form <σᵀ ∇f, σᵀ ∇g> for the columns of σ, a field (c, m, d)."""

    @form
    def diffusion(f: Any, g: Any, x: Any) -> Any:
        return inner(along_each(f, sigma), along_each(g, sigma))

    return diffusion


def check_sigma(name: str, shape: tuple[int, ...], dimension: int) -> None:
    """Raise ParameterError if the rows of a field are not matrices (d, m)."""
    if len(shape) != 2 or shape[0] != dimension or not shape[1]:
        raise ParameterError(name, f"a field whose rows have the shape ({dimension}, m)", shape)


def matrix_root(matrices: Array, name: str) -> Array:
    """Return σ (c, d, d) with σσᵀ = D, the symmetric part of D if rounding left it asymmetric.

    Raises ValueError if D is not symmetric positive semidefinite, up to `ROUNDING` or its precision.
    """
    given = np.asarray(matrices)
    eps = float(np.finfo(given.dtype).eps) if given.dtype.kind == "f" else 0.0
    d = given.astype(float)
    size = np.abs(d).max(axis=(1, 2), initial=0)
    skew = np.abs(d - d.swapaxes(1, 2)).max(axis=(1, 2), initial=0)
    tolerance = max(ROUNDING, 16 * eps)
    if not (skew <= tolerance * size).all():
        worst = float((skew / np.where(size > 0, size, 1)).max())
        raise ValueError(f"{name} must be symmetric at every row, got a relative asymmetry of {worst:.2g}")
    d = 0.5 * (d + d.swapaxes(1, 2))
    try:
        return np.linalg.cholesky(d)
    except np.linalg.LinAlgError:  # some matrix is not positive definite
        values, vectors = np.linalg.eigh(d)
    negative = values[:, 0] < -d.shape[1] * tolerance * size
    if negative.any():
        row = int(np.argmax(negative))
        raise ValueError(f"{name} must have no negative eigenvalues at any row, got {values[row, 0]:.3g}")
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[:, None, :])
