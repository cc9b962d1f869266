"""GraphLaplacian: the baseline of finite differences between all pairs of points, in a Galerkin basis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.validation import check_is_fitted

from daskspectral import landmarks as choosing
from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.data.containers import in_memory
from daskspectral.data.integrity import Snapshot
from daskspectral.data.readers import ArrayReader
from daskspectral.data.remote import stored
from daskspectral.data.source import Source, open_source
from daskspectral.engine import Run
from daskspectral.engine.memory import check_memory
from daskspectral.engine.sampling import Scan, draw_rows
from daskspectral.estimators.labelled import labelled
from daskspectral.estimators.transformer import Transformer, framed
from daskspectral.kernels import Kernel
from daskspectral.moments.advice import advise_rank
from daskspectral.operators.weights import exponent_of
from daskspectral.pairs import CloudGram, PairMeasure, SparsePairs, dirichlet_form
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.landmarks import MEDIAN_SAMPLE, MOST_LANDMARKS, choose_landmarks
from daskspectral.passes.pairs import GramTask, NeighbourTask, PairTask, Tiles, tile_memory, tile_plan
from daskspectral.passes.parameters import (
    check_landmark_choice,
    check_landmark_count,
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
    checked_kernel,
    given_landmarks,
)
from daskspectral.solve import Problem, Symmetric, resolve_cut

Array = NDArray[np.floating[Any]]


class GraphLaplacian(Transformer):
    """The graph Laplacian restricted to a Galerkin basis (equation (16) and appendix B.1, Cabannes and Bach 2024).

    The form Σ_ij w_ij (f(x_i) - f(x_j)) (g(x_i) - g(x_j)) / n² takes the place of <∇f, ∇g>. It is a baseline
    for `SpectralDecomposition`: it costs O(n² p) flops (n² kernel values are made block by block and never kept), and
    it gives the Laplacian only up to a constant factor, and only where the weights' scale suits n.

    Parameters
    ----------
    weights : Kernel, default Gaussian("median")
        w~_ij = weights(x_i, x_j).
    kernel : Kernel, default Gaussian("median")
        The functions k(., y_i) that span the solution.
    n_landmarks : int or "auto"
        p, when `landmarks` is a method; "auto" is 500, or n where there are fewer rows.
    n_components, landmarks, landmark_sample, rtol, random_state
        As in `SpectralDecomposition`, with a solution by rank cut.
    n_neighbors : int, optional
        Only pairs in which one point is among so many nearest neighbours of the other have a weight. X must be in
        memory.
    normalized : bool
        w = D^(-1/2) w~ D^(-1/2) with the degrees D_ii = Σ_j w~_ij, in one more pass over the pairs; the sum is then
        divided by n. Without it w = w~, and the sum is divided by n².
    rescale : number or array (k,), optional
        The eigenvalues are multiplied by a factor so that their sum is this number, or the sum of the first k is the
        sum of the array, the true eigenvalues (appendix B.1).
    constant : bool
        Add the constant function to the basis.
    sample_dims, latitude : optional
        Rows, and weights by latitude, of data with labels, as in `SpectralDecomposition`.

    Attributes
    ----------
    eigenvalues_ : (k,) ascending
    coefficients_ : (p, k), the eigenfunctions in the basis, unit L²(ρ) norm
    rank_ : int, independent directions that the data see
    residuals_ : (k,) norms of the whitened eigenproblem's residuals
    factor_ : number, by which `rescale` multiplied the eigenvalues
    form_, gram_ : (p, p), the form (not rescaled) and the Gram matrix, as means over pairs and points
    basis_, kernel_, weights_, n_features_in_, feature_names_in_ (of a data frame)

    Examples
    --------
    The graph Laplacian gives eigenvalues up to a common factor; `rescale` gives it their sum.

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> t = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    >>> x = np.column_stack([np.cos(t), np.sin(t)])
    >>> weights, kernel = dsp.kernels.Gaussian(0.1), dsp.kernels.Polynomial(2)
    >>> graph = dsp.GraphLaplacian(weights, kernel, n_components=5, n_landmarks=20, rescale=10.0, random_state=0)
    >>> graph.fit(x).eigenvalues_.round(1) + 0.0  # 0, 1, 1, 4, 4 on the circle
    array([0., 1., 1., 4., 4.])
    """

    fitted_attributes = (
        "eigenvalues_",
        "coefficients_",
        "rank_",
        "residuals_",
        "factor_",
        "form_",
        "gram_",
        "basis_",
        "kernel_",
        "weights_",
        "n_features_in_",
    )

    def __init__(
        self,
        weights: Kernel | None = None,
        kernel: Kernel | None = None,
        *,
        n_components: int = 16,
        n_landmarks: int | str = "auto",
        landmarks: str | Any = "uniform",
        landmark_sample: int | None = None,
        n_neighbors: int | None = None,
        normalized: bool = True,
        rescale: float | Sequence[float] | Array | None = None,
        constant: bool = True,
        rtol: float | None = None,
        random_state: Any = None,
        sample_dims: str | Sequence[str] | None = None,
        latitude: str | None = None,
    ):
        self.weights = weights
        self.kernel = kernel
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.landmark_sample = landmark_sample
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.rescale = rescale
        self.constant = constant
        self.rtol = rtol
        self.random_state = random_state
        self.sample_dims = sample_dims
        self.latitude = latitude

    @stored
    @labelled
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Sum over all pairs of the rows of X (n, d) on the active dask scheduler, and solve.

        X is a numpy (also memory-mapped) or zarr array, an xarray array in memory, or the path or URL of a zarr array;
        `sample_weight`, `on_invalid`, `allow_missing` and `progress` are as in `SpectralDecomposition.fit`.

        Raises ValueError or TypeError for input that cannot work (also for a dask array, whose blocks other tasks
        cannot read), InvalidRowError for the lowest invalid row (on_invalid="raise"), MemoryError where a
        task would not fit, OSError for data that are damaged or change meanwhile.
        """
        weights, kernel = _checked_weights(self.weights), checked_kernel(self.kernel)
        self._check_parameters(on_invalid)
        source = open_source(X, weight=sample_weight)
        self._check_several(source)
        self._keep_names(X)
        self._check_against(source)
        snapshot = Snapshot(source)
        rows = self._run(source, on_invalid, progress).reduce(Scan())
        if rows.weight <= 0:
            raise ValueError(f"the total sample weight is {rows.weight:g}; some row needs a weight above zero")
        exponent = exponent_of(rows.weight / rows.count) if "weight" in source.readers else 0
        mass = math.ldexp(rows.weight, -exponent)
        chosen = choose_landmarks(
            source,
            kernel,
            self.landmarks,
            self._count(source),
            self.random_state,
            at_most=self.n_landmarks == "auto",
            sample_size=self.landmark_sample,
            on_invalid=on_invalid,
            progress=progress,
        )
        kernel, points = chosen.kernel, chosen.points
        if weights.needs_median:
            rng = np.random.default_rng(self.random_state)
            _, sample = draw_rows(source, MEDIAN_SAMPLE, rng, on_invalid=on_invalid, progress=progress)
            weights = weights.resolve(choosing.median_distance(weights.embedded(sample), rng, size=MEDIAN_SAMPLE))
        basis: Basis = LandmarkBasis(kernel, points)
        if self.constant:
            basis = Concatenated((ConstantBasis(source.dimension), basis))
        check_memory(tile_memory(basis.size, source.n, source.dimension))
        gram = CloudGram.about(basis, points.mean(axis=0))
        if self.n_neighbors is None:
            sums = self._all_pairs(self._run(source, on_invalid, progress), weights, gram, mass, exponent)
        else:
            sums = self._neighbours(source, weights, gram, on_invalid, progress)
        snapshot.check_unchanged()
        self.form_ = dirichlet_form(sums["diagonal"], sums["cross"]) / mass**2
        self.gram_ = sums["gram"] / mass
        self.basis_, self.kernel_, self.weights_ = basis, kernel, weights
        self.n_features_in_ = source.n_features_in
        return self._solve()

    @framed
    def transform(self, X: Any, **options: Any) -> Any:
        """The eigenfunctions at the rows of X, (n, k) float64; options as in `SpectralDecomposition.transform`."""
        check_is_fitted(self)
        function = SpanValues(self.basis_, self.coefficients_)
        return self._rows(function, X, coordinates={"eigenvalue": self.eigenvalues_}, **options)

    @property
    def _n_features_out(self) -> int:
        return int(self.coefficients_.shape[1])

    def _all_pairs(self, run: Run, weights: Kernel, gram: CloudGram, mass: float, exponent: int) -> Mapping[str, Array]:
        tiles = Tiles(run.source.readers, run.plan.ranges, exponent=exponent)
        if self.normalized:
            degrees = run.reduce(PairTask(PairMeasure(weights)), tiles).sums
            tiles = replace(tiles, factors=_inverse_roots(tiles.of(degrees), mass))
        sums = run.reduce(PairTask(PairMeasure(weights, {"cross": gram})), tiles).sums
        linear = run.reduce(GramTask(gram, tiles.of(sums)), replace(tiles, readers={})).sums
        return {**linear, "cross": sums["cross"]}

    def _neighbours(
        self, source: Source, weights: Kernel, gram: CloudGram, on_invalid: str, progress: bool | None
    ) -> Mapping[str, Array]:
        x = np.asarray(source.preparation(source.readers["x"].read(0, source.n)), dtype=float)
        x = x[np.isfinite(x).all(axis=1)]
        assert self.n_neighbors is not None
        if len(x) <= self.n_neighbors:
            raise ValueError(
                f"X has {len(x)} rows, too few for n_neighbors={self.n_neighbors} others of each; lower it"
            )
        graph = neighbour_weights(x, weights, self.n_neighbors)
        degree: Array = np.asarray(graph.sum(axis=1), dtype=float)
        if self.normalized:
            (root,) = _inverse_roots((degree,), len(x))
            scale = scipy.sparse.diags_array(root)
            graph = (scale @ graph @ scale).tocsr()
            degree = np.asarray(graph.sum(axis=1), dtype=float)
        run = self._run(open_source(x), on_invalid, progress)
        tiles = Tiles({}, run.plan.ranges)
        cross = run.reduce(NeighbourTask(), SparsePairs(x, graph, gram)).sums
        linear = run.reduce(GramTask(gram, tuple(degree[a:b] for a, b in tiles.ranges)), tiles).sums
        return {**linear, **cross}

    def _solve(self) -> Self:
        problem = Problem(self.form_, self.gram_, self.n_components, resolve_cut(self.rtol, "float64"))
        solution = Symmetric().solve(problem)
        advise_rank(solution, self.basis_, self.n_components)
        values: Array = np.asarray(solution.values, dtype=float)
        self.factor_ = _factor(values, self.rescale)
        self.eigenvalues_ = self.factor_ * values
        self.coefficients_, self.rank_ = np.asarray(solution.left, dtype=float), solution.rank
        self.residuals_ = self.factor_ * solution.residuals
        return self

    @staticmethod
    def _run(source: Source, on_invalid: str, progress: bool | None) -> Run:
        return Run(source, tile_plan(source.n), None, on_invalid, progress, "pairs")

    def _check_parameters(self, on_invalid: str) -> None:
        check_whole("n_components", self.n_components)
        check_landmark_count(self.n_landmarks)
        if self.n_neighbors is not None:
            check_whole("n_neighbors", self.n_neighbors)
        least = 1 if self.n_landmarks == "auto" else int(self.n_landmarks)
        check_landmark_choice(self.landmarks, self.landmark_sample, least)
        for name in ("normalized", "constant"):
            check_one_of(name, getattr(self, name), (True, False))
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        if self.rtol is not None:
            check_number("rtol", self.rtol)
        resolve_cut(self.rtol, "float64")
        check_random_state(self.random_state)
        _check_rescale(self.rescale, self.n_components)

    def _count(self, source: Source) -> int:
        """The number p of landmarks, where they are chosen."""
        return min(MOST_LANDMARKS, source.n) if self.n_landmarks == "auto" else int(self.n_landmarks)

    def _check_against(self, source: Source) -> None:
        """What metadata can tell before any task is sent."""
        if source.dask_fields:
            raise TypeError(
                "a graph Laplacian takes all pairs of rows, and the tasks of a dask array cannot read one another's "
                "blocks: write X by X.to_zarr(path) and give the path, or give X.compute() where it fits in memory "
                "(sample_weight likewise)"
            )
        if not isinstance(self.landmarks, str):
            given_landmarks(self.landmarks, source.n_features_in, columns=source.preparation.columns)
        elif source.n < self._count(source):
            raise ValueError(f"X has {source.n} rows, fewer than n_landmarks={self.n_landmarks}; lower n_landmarks")
        if self.n_neighbors is not None:
            if not isinstance(source.readers["x"], ArrayReader):
                raise TypeError("n_neighbors looks up neighbours in memory: give X[:] in place of the zarr array X")
            if "weight" in source.readers:
                raise ValueError(
                    "n_neighbors counts rows and cannot weigh them: leave sample_weight out, or repeat the rows"
                )


def neighbour_weights(x: Array, weights: Kernel, n_neighbors: int) -> scipy.sparse.csr_array:
    """w_ij = weights(x_i, x_j) where i is among the nearest neighbours of j, or j among the neighbours of i; else 0."""
    found = kneighbors_graph(x, n_neighbors, mode="connectivity", include_self=False)
    graph = scipy.sparse.csr_array(found.maximum(found.T))
    graph.sort_indices()
    data = np.empty(graph.nnz)
    for i in range(len(x)):
        row = slice(*graph.indptr[i : i + 2])
        data[row] = weights.values(x[graph.indices[row]], x[i : i + 1])[0]
    graph.data = data
    return scipy.sparse.csr_array(0.5 * (graph + graph.T))


def _inverse_roots(degrees: tuple[Array, ...], mass: float) -> tuple[Array, ...]:
    """1 / sqrt(mean weight) of each point; the mean, not the sum, so that the form stays a mean over pairs."""
    least = min(float(d.min(initial=np.inf)) for d in degrees)
    if not least > 0:
        raise ValueError(
            f"the weights of some row sum to {least:g}, and D^(-1/2) needs positive sums: take weights that are "
            "positive, such as Gaussian(scale) with a larger scale, or normalized=False"
        )
    return tuple(1 / np.sqrt(d / mass) for d in degrees)


def _factor(values: Array, rescale: Any) -> float:
    """The number by which the eigenvalues are multiplied."""
    if rescale is None:
        return 1.0
    if np.ndim(rescale):
        true = np.asarray(rescale, dtype=float)[: len(values)]
        total, wanted = float(values[: len(true)].sum()), float(true.sum())
    else:
        total, wanted = float(values.sum()), float(rescale)
    if not total > 0:
        raise ValueError(
            f"the eigenvalues sum to {total:g} and cannot be rescaled: all eigenfunctions are constant, or the "
            "weights join no two points; raise n_components or widen the weights' scale"
        )
    return wanted / total


def _checked_weights(value: Any) -> Kernel:
    if value is not None and not isinstance(value, Kernel):
        raise TypeError(
            "weights must be one of daskspectral.kernels, w_ij = weights(x_i, x_j), such as Gaussian(0.3); "
            f"got {value!r}"
        )
    return checked_kernel(value)


def _check_rescale(rescale: Any, n_components: int) -> None:
    if rescale is None:
        return
    wanted = "rescale must be the sum of the true eigenvalues, a positive number, or an array (k,) of them, 0 or more"
    try:
        values = np.asarray(in_memory(rescale, "the array"), dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}; it is {rescale!r}") from None
    if isinstance(rescale, (bool, str)) or values.ndim > 1 or not np.isfinite(values).all():
        raise ValueError(f"{wanted}; it is {rescale!r}")
    if (values < 0).any() or not values.sum() > 0:
        raise ValueError(f"{wanted}; it is {rescale!r}")
    if values.size > n_components and values.ndim:
        raise ValueError(f"rescale has {values.size} eigenvalues, more than n_components={n_components}; ask for more")
