"""JacobiCoordinates: positions of atoms as a hyperradius and a direction, with the manifold and the group of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.data.integrity import Snapshot
from daskspectral.data.remote import stored
from daskspectral.data.source import open_source
from daskspectral.estimators.labelled import labelled
from daskspectral.estimators.transformer import Transformer, framed
from daskspectral.groups import MolecularSymmetry
from daskspectral.groups.atoms import jacobi_matrix
from daskspectral.manifolds import Interval, Product, Sphere
from daskspectral.passes.jacobi import JacobiFunction, radii
from daskspectral.passes.parameters import check_one_of

Array = NDArray[np.floating[Any]]
RADIAL = 1.5  # how much longer the interval of the hyperradius counts than it is


class JacobiCoordinates(Transformer):
    """Positions of N atoms as their hyperradius and the direction of their mass-weighted Jacobi vectors.

    Translations leave the N - 1 Jacobi vectors A x unmoved. Their length R, R² = Σ_i m_i |x_i - centre|², lies on
    an interval, and their direction u on the sphere S^(3N-4), on which rotations, reflections and permutations of
    identical atoms act by orthogonal matrices. `InvariantRegressor(c.manifold_, c.group_)` on these coordinates learns
    a potential that is exactly invariant under all of them; its forces are its gradients, by `gradient_of_positions`.

    Parameters
    ----------
    masses : (N,) positive numbers, in any unit, optional
        By default 1 each, of as many atoms as X has columns for.
    species : (N,) labels, optional
        Which atoms are identical; by default those of equal mass.
    sample_dims, latitude : optional
        Rows, and weights by latitude, of data with labels, as in `SpectralDecomposition`.

    Attributes
    ----------
    manifold_ : Product of the Interval of R over its mean, within its range in the data, and the Sphere of u
    group_ : MolecularSymmetry
    scale_ : float, the mean R
    n_features_in_ : int, 3 N
    feature_names_in_ : (n_features_in_,), the names of the columns of a data frame

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).normal(size=(400, 9))  # three atoms
    >>> c = dsp.JacobiCoordinates([1, 1, 1]).fit(x)
    >>> c.transform(x).shape
    (400, 7)
    >>> pairs = [x[:, 3 * i : 3 * i + 3] - x[:, 3 * j : 3 * j + 3] for i, j in [(0, 1), (0, 2), (1, 2)]]
    >>> energy = sum(np.exp(-np.sum(r**2, axis=1)) for r in pairs)
    >>> model = dsp.InvariantRegressor(c.manifold_, c.group_).fit(c.transform(x), energy)
    >>> swapped = np.roll(x, 3, axis=1)  # another order of the atoms
    >>> bool(np.allclose(model.predict(c.transform(swapped)), model.predict(c.transform(x)), atol=1e-9))
    True
    """

    fitted_attributes = ("manifold_", "group_", "scale_", "n_features_in_")

    def __init__(
        self,
        masses: Sequence[float] | None = None,
        *,
        species: Sequence[str] | None = None,
        sample_dims: str | Sequence[str] | None = None,
        latitude: str | None = None,
    ):
        self.masses = masses
        self.species = species
        self.sample_dims = sample_dims
        self.latitude = latitude

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # not any: three columns an atom
        return tags

    @stored
    @labelled
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Find the range of the hyperradius of the rows of X (n, 3 N), x, y, z of one atom after another, in one pass.

        X and the options are as in `SpectralDecomposition.fit`. Raises ValueError for another number of columns, and
        where all rows have one hyperradius.
        """
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        source = open_source(X)
        if self.masses is None and source.n_features_in % 3:
            raise ValueError(
                f"X has {source.n_features_in} columns; x, y, z of one atom after another are three an atom"
            )
        masses = [1.0] * (source.n_features_in // 3) if self.masses is None else self.masses
        group = MolecularSymmetry(masses, self.species)
        if source.n_features_in != 3 * len(group.masses):
            raise ValueError(
                f"X has {source.n_features_in} columns, and {len(group.masses)} atoms have {3 * len(group.masses)} "
                "coordinates: x, y, z of one atom after another"
            )
        self._keep_names(X)
        snapshot = Snapshot(source)
        function = JacobiFunction(jacobi_matrix(group.masses))
        least, most, mean = radii(source, function, on_invalid=on_invalid, progress=progress)
        snapshot.check_unchanged()
        if not most - least > 1e-9 * mean:
            raise ValueError(f"all rows have the hyperradius {mean:g}: a potential of it cannot be learned from them")
        interval = Interval(least / mean, most / mean, lengths=RADIAL * (most - least) / mean)
        self.manifold_ = Product(interval, Sphere(3 * len(function.matrix)))
        self.group_, self.scale_, self.n_features_in_ = group, mean, source.n_features_in
        return self

    @framed
    def transform(self, X: Any, **options: Any) -> Any:
        """R / scale_ and u of the rows of X (n, 3 N), (n, 1 + 3 (N - 1)); containers as in `SpectralDecomposition`."""
        check_is_fitted(self)
        return self._rows(self._function, X, name="coordinates", **options)

    @property
    def _n_features_out(self) -> int:
        return self._function.columns

    def gradient_of_positions(self, X: Any, gradient: Any) -> Array:
        """The gradient (n, 3 N) in the positions X (n, 3 N) of a function with this `gradient` in the coordinates.

        With `predict_gradient` of a potential, forces are minus this. Arrays are numpy's.
        """
        x, g = self._checked(X, gradient, 1)
        radius, u = self._polar(x)
        across = g[:, 1:] - u * np.sum(u * g[:, 1:], axis=1, keepdims=True)
        inner = (g[:, :1] / self.scale_) * u + across / radius
        at = inner.reshape(len(x), -1, 3)
        return np.asarray(np.einsum("kn,ckd->cnd", self._function.matrix, at).reshape(len(x), -1))

    def gradient_of_coordinates(self, X: Any, gradient: Any) -> Array:
        """The gradient (n, 1 + 3 (N - 1)) in the coordinates of a function with this `gradient` in the positions.

        For `InvariantRegressor.fit(..., gradients=)` from forces, which are minus the gradient of the energy; what
        moves the centre of mass is left out.
        """
        x, g = self._checked(X, gradient, 0)
        radius, u = self._polar(x)
        inverse = self._function.matrix / np.asarray(self.group_.masses)
        inner = np.einsum("kn,cnd->ckd", inverse, g.reshape(len(x), -1, 3)).reshape(len(x), -1)
        along = np.sum(u * inner, axis=1, keepdims=True)
        return np.hstack([along * self.scale_, (inner - u * along) * radius])

    @property
    def _function(self) -> JacobiFunction:
        return JacobiFunction(jacobi_matrix(self.group_.masses), self.scale_)

    def _polar(self, x: Array) -> tuple[Array, Array]:
        """R (n, 1) and u (n, 3 (N - 1))."""
        vectors = self._function.vectors(x)
        radius = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not radius.all():
            raise ValueError(f"all atoms coincide in row {int(radius.argmin())}: it has no direction")
        return radius, vectors / radius

    def _checked(self, X: Any, gradient: Any, polar: int) -> tuple[Array, Array]:
        """Positions and a gradient in them, or, with `polar` 1, in the coordinates."""
        check_is_fitted(self)
        width = self._function.columns if polar else self.n_features_in_
        x, g = np.asarray(X, dtype=float), np.asarray(gradient, dtype=float)
        if x.ndim != 2 or x.shape[1] != self.n_features_in_ or g.shape != (len(x), width):
            raise ValueError(
                f"expected positions (n, {self.n_features_in_}) and a gradient (n, {width}), received shapes {x.shape} "
                f"and {g.shape}"
            )
        return x, g
