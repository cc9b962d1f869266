"""Coordinates from a semidefinite program with a bounded diagonal, with a certificate of optimality."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import LandmarkBasis, Landmarks
from daskspectral.choosing.landmarks import FitSample, of_kernel
from daskspectral.data.containers import as_reader
from daskspectral.data.labeled import stack_rows
from daskspectral.data.rows import Rows
from daskspectral.data.source import Preparation, Source
from daskspectral.embedding.bandwidth import advise_units, check_bandwidth, chosen_bandwidth
from daskspectral.embedding.certificate import Certificate
from daskspectral.embedding.extension import Extension
from daskspectral.embedding.fitting import EXACT_ROWS, FEW, FIRST, FURTHER, EmbeddingProblem, EmbeddingSolution
from daskspectral.embedding.landmark_passes import Passes, plan_embedding
from daskspectral.embedding.stages import SOLVERS
from daskspectral.embedding.summary import certificate_facts, embedding_summary, method_facts
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import chosen_device
from daskspectral.engine.run import checkpoint_signals
from daskspectral.errors import RankWarning, ReliabilityWarning, warn_user
from daskspectral.estimators.records import identity_of
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.estimators.transformer import Transformer
from daskspectral.kernels import Gaussian
from daskspectral.moments.counting import UNITS
from daskspectral.passes.apply import Result, labeled_rows
from daskspectral.passes.scale import standardized
from daskspectral.passes.sums import flops_of
from daskspectral.solvers import BurerMonteiro
from daskspectral.validation import check_integer, check_number, check_option, check_random_state, check_type

Array = NDArray[np.floating[Any]]
METHODS = ("auto", "exact", "lowrank")


class SDPEmbedding(Transformer):
    """Positive semidefinite embedding (SDP and (1.5), Fanuel, Aspeel, Delvenne and Suykens 2022).

    B = E Eᵀ maximizes Tr(Abar B) over positive semidefinite matrices B with diag(B) ≤ d, where Abar is the kernel
    exp(-r² / bandwidth²), normalized by its sums and without its first eigenvector (1.2). Bounded rows of E do not
    localize on a few outliers; the rank of B, typically small, is the dimension.

    Parameters
    ----------
    bandwidth : {"auto", "median"} or float
        Bandwidth in the units of X, or of its standardized columns. "auto": the graph of the kernel is just
        connected; "median": the median distance of two rows; both from 1000 rows, stored as `bandwidth_`.
    n_components : int, optional
        Number of columns; by default the rank of B. Others are computed in stages: each is the optimum for the kernel
        without the previous stages, Abar - Abar E (Eᵀ Abar E)^+ Eᵀ Abar, with a separate certificate.
    method : {"auto", "exact", "lowrank"}
        "exact": the kernel between all n points, at most 3000; "lowrank": the Nystrom approximation at p landmarks,
        O(n p) per pass. "auto": as many landmarks as make E Eᵀ exact to `accuracy`, from 1000 rows on, and all pairs
        of up to 3000 rows if more than n / 5 would be needed.
    accuracy : float
        Relative error of the Gram matrix E E^T up to which landmarks replace all points; a ReliabilityWarning is
        raised if the estimate `certificate_.approximation` is larger.
    landmarks : Landmarks, optional
        Landmarks of "lowrank", with the kernel of the bandwidth; by default `Landmarks(method="cholesky")`, doubled
        from 100 until `accuracy` is reached. Uncovered points are added, up to 1.5 p in all.
    solver : BurerMonteiro, optional
        Quasi-Newton ascent or the power method, with its tolerance (`help(daskspectral.solvers)`).
    device : {"cpu", "cuda", "auto"}
        Device of the kernel at landmarks, for "lowrank" and `transform`: "cuda" is a GPU (extra `gpu`).
    random_state : int, Generator or None
        Seed of the landmarks and the starting point of the ascent.

    Attributes
    ----------
    embedding_ : array of shape (n, rank) or (n, n_components)
        Embedding E, columns by descending eigenvalue of B, by stages; lazy with "lowrank" if X is a dask or zarr
        array, or a path. Of each column, the entry of largest magnitude is positive ("exact"), or the largest
        coordinate in the whitened landmark functions ("lowrank").
    spectrum_ : ndarray of shape (rank,)
        Eigenvalues of B, descending; of each column's stage if there are several.
    rank_ : int
        Rank of B.
    objective_ : float
        Objective Tr(Abar B); with "lowrank" a lower bound of it unless optimal.
    certificate_ : Certificate
        `least_eigenvalue` of diag(y) - Abar, `gap`, `optimal`; with "lowrank", of the low-rank problem, and
        `approximation`, an estimate of the distance of E Eᵀ from that of the full problem.
    certificates_ : tuple of Certificate
        Certificates of all stages.
    stages_ : ndarray of shape (stages,)
        Number of columns of each stage.
    coverage_ : float
        With "lowrank", least |ψ(x)|² of a point, 1 if the landmarks span its kernel function.
    n_passes_ : int
        Number of products with the kernel in the ascent.
    objectives_ : ndarray of shape (n_passes,)
        Objective at each product, also at rejected steps.
    bandwidth_ : float
        Bandwidth.
    method_ : {"exact", "lowrank"}
        Method.
    extension_ : Extension
        Embedding as a function of points.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if they are text.

    See Also
    --------
    DiffusionMap : Eigenvectors of the same kernel.
    KernelEmbedding : The kernelized problem.

    Examples
    --------
    Two clusters of points on a line: the first coordinate has one sign on each.

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.concatenate([np.linspace(0, 1, 30), np.linspace(4, 5, 30)])[:, None]
    >>> sdp = dsp.SDPEmbedding(bandwidth=1.0, random_state=0).fit(x)
    >>> sdp.certificate_.optimal, sdp.rank_
    (True, 1)
    >>> sides = np.sign(sdp.embedding_[:, 0])
    >>> bool(np.all(sides[:30] == -sides[30:]))
    True
    >>> bool(np.allclose(sdp.transform(x), sdp.embedding_))
    True
    """

    certificates_: tuple[Certificate, ...]
    extension_: Extension

    @property
    def _fitted_attributes(self) -> tuple[str, ...]:
        kept = (
            ("embedding_",) if isinstance(getattr(self, "embedding_", None), np.ndarray) else ()
        )  # lazy ones are not saved
        described = ("spectrum_", "rank_", "objective_", "certificates_", "n_passes_", "objectives_", "method_")
        return (*described, "bandwidth_", "extension_", "coverage_", "n_features_in_", *kept)

    _parts: ClassVar = {"landmarks": partial(Landmarks, method="cholesky"), "solver": BurerMonteiro}

    def __init__(
        self,
        bandwidth: str | float = "auto",
        *,
        n_components: int | None = None,
        method: str = "auto",
        accuracy: float = 1e-3,
        landmarks: Landmarks | None = None,
        solver: BurerMonteiro | None = None,
        device: str = "cpu",
        random_state: Any = None,
    ):
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.method = method
        self.accuracy = accuracy
        self.landmarks = landmarks
        self.solver = solver
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        diagonal: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Embed the rows of X on the active Dask scheduler, and certify the result.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows or path
            Data, as in `SpectralDecomposition.fit`.
        y : object
            Ignored.
        diagonal : array of shape (n,), optional
            Bounds d on the diagonal of B; by default alpha(x) = 1/m(x) - m(x) / sum m, m(x) the kernel's sum over
            points.
        checkpoint : str or path, optional
            Directory or URL for the sums of "lowrank"; an interrupted fit resumes from them.
        checkpoint_every : float, default=60.0
            Seconds between writes of the checkpoint.
        progress : bool, optional
            Show a progress bar; None shows it on a terminal only.

        Returns
        -------
        SDPEmbedding
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If the input is invalid, the kernel is the identity or of rank one at the bandwidth, or landmarks do not
            cover points.
        MemoryError
            If a run would exceed the memory.
        OSError
            If the data are damaged or change during the fit.

        Warns
        -----
        ConvergenceWarning
            If the solution is not proved optimal.
        ReliabilityWarning
            If the error of landmarks exceeds `accuracy`.
        RankWarning
            If the kernel has fewer columns than n_components.
        """
        context = RunContext(progress, checkpoint, checkpoint_every)
        with open_table(self, X, context, fits=True, y=y) as table:
            self._fit_table(table, diagonal)
        return self

    def _fit_table(self, table: Table, diagonal: Any) -> None:
        self._check_parameters()
        with self._fitting(table, diagonal=diagonal) as (source, snapshot):
            checkpoint = table.context.checkpoint
            self._check_against(source, checkpoint)
            device, rng = chosen_device(self.device), np.random.default_rng(self.random_state)

            def constants() -> dict[str, Any]:
                stacked = standardized(source)
                seed = int(
                    rng.integers(2**31)
                )  # drawn first: the ascent is equal for a chosen bandwidth and its number
                bandwidth = chosen_bandwidth(stacked, self.bandwidth, rng)
                return {"preparation": stacked.preparation, "bandwidth": bandwidth, "seed": seed}

            saved = None
            if checkpoint is not None:
                params = {k: v for k, v in self._plain_params().items() if k != "solver"} | {"device": device}
                kinds = {"preparation": Preparation, "bandwidth": float, "seed": int}
                identity = identity_of(snapshot, source, params)
                saved = Checkpoint.open(checkpoint, identity, constants, kinds, table.context.checkpoint_every)
            found = self._embedded(source, constants() if saved is None else saved.constants, saved, device)
        self._keep(found)
        embedding = found.embedding
        if embedding is None or table.rows.on_invalid == "skip":
            embedding = self._extended(table.rows, diagonal)
        self.embedding_ = embedding

    def _of_fit(self, X: Any, **options: Any) -> Any:
        """Return `embedding_`, with row labels if there are any."""
        stacked = stack_rows(Rows.of(X).data, layout=vars(self).get("layout_"), wanted=self._columns_wanted())
        if stacked is None:
            return self.embedding_
        output = Result.of_components("embedding", self._n_features_out, {"eigenvalue": self.spectrum_})
        return labeled_rows(self.embedding_, output, stacked.rows)

    def transform(self, X: Any, *, diagonal: Any = None, **options: Any) -> Any:
        """Return the embedding of the rows of X by the extension (1.5); E at the points of the fit.

        Rows far from the fit, with a kernel mass below 1e-3 (2.6 bandwidths from one row), have the direction of the
        nearest row.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows or path
            Rows with the columns of the fit.
        diagonal : array of shape (n,), optional
            Bounds at these points; required if the fit was given bounds.
        **options
            `out`, `extrapolate` and others, as in `SpectralDecomposition.transform`.

        Returns
        -------
        array of shape (n, rank)
            Embedding in float64, in the container of X.
        """
        self._check_frame(X, options.get("out"))
        check_is_fitted(self)
        return self._unlabeled(self._extended(X, diagonal, **options), X)

    def _extended(self, X: Any, diagonal: Any, **options: Any) -> Any:
        if (diagonal is None) == self.extension_.unit:
            needs = "requires diagonal, the bounds at these points" if self.extension_.unit else "requires no diagonal"
            raise ValueError(f"transform {needs}, as {'with' if self.extension_.unit else 'without'} it in the fit.")
        if diagonal is not None and options.get("out") is not None:
            raise ValueError(
                "out does not support diagonal. Write transform(X, diagonal=...), for example with to_zarr."
            )
        function = replace(self.extension_, device=chosen_device(self.device))
        found = self._rows(function, X, name="embedding", coordinates={"eigenvalue": self.spectrum_}, **options)
        if diagonal is None:
            return found
        n, reader = found.shape[0], as_reader(diagonal, "diagonal")
        bounds = np.asarray(reader.read(0, n), dtype=float) if reader.shape == (n,) else np.empty(0)
        missing = np.isnan(bounds) & (Rows.of(X).on_invalid == "skip")
        if bounds.shape != (n,) or not ((bounds > 0) | missing).all():
            raise ValueError(f"diagonal must be {n} positive numbers, one for each row, got shape {reader.shape}.")
        return found * np.sqrt(bounds)[:, None]

    def _restored(self) -> Self:
        self.certificates_ = tuple(self.certificates_)
        self.certificate_ = self.certificates_[0]
        self.preparation_ = self.extension_.preparation
        self.stages_ = np.array(self.extension_.stages)
        return self

    def _embedded(
        self, source: Source, constants: Any, checkpoint: Checkpoint | None, device: str
    ) -> EmbeddingSolution:
        preparation, seed = constants["preparation"], int(constants["seed"])
        source = source.with_preparation(mean=preparation.mean, scale=preparation.scale)
        advise_units(source, UNITS)
        self.bandwidth_ = float(constants["bandwidth"])
        kernel = Gaussian(self.bandwidth_ / 2**0.5)

        asked = of_kernel(self.landmarks, kernel, count="auto")
        given, known = not asked.drawn, asked.n_landmarks != "auto"

        def landmarks(p: int) -> LandmarkBasis:
            wanted = replace(asked, n_landmarks=min(p, source.n, asked.n_candidates or p))
            at_most = asked.method == "cholesky"  # fewer may span the kernel
            return wanted.build(FitSample(source, at_most=at_most), np.random.default_rng([seed, 0]))

        first = len(asked.points) if given else int(asked.n_landmarks) if known else FIRST
        plan = plan_rows(source, flops_of(source, 1))
        if self.method == "lowrank":
            plan = plan_embedding(source, first, device)
        if checkpoint is not None:
            checkpoint.set_plan(plan)
        ascent = self._ascent
        embedding = EmbeddingProblem(
            passes=Passes(Run(source, plan, None, "embed", device), checkpoint),
            bandwidth=self.bandwidth_,
            solve=partial(SOLVERS[ascent.method], tolerance=ascent.tolerance, max_passes=ascent.max_passes),
            landmarks=landmarks,
            accuracy=self.accuracy,
            sizes=(first, 0 if given else int(FURTHER * first)) if given or known else None,
            seed=seed,
            count=self.n_components,
        )
        with checkpoint_signals(checkpoint):
            ways = {"auto": embedding.chosen, "lowrank": embedding.low_rank, "exact": embedding.exact}
            found = ways[self.method]()
        if checkpoint is not None:
            checkpoint.write()
        return found

    @property
    def _ascent(self) -> BurerMonteiro:
        return BurerMonteiro() if self.solver is None else self.solver

    def _check_parameters(self) -> None:
        check_bandwidth(self.bandwidth)
        check_number("accuracy", self.accuracy, "(1e-100, 1e100)")
        if self.n_components is not None:
            check_integer("n_components", self.n_components)
        check_option("method", self.method, METHODS)
        check_type("solver", self._ascent, BurerMonteiro, "daskspectral.solvers.BurerMonteiro(...) or None")
        of_kernel(self.landmarks, Gaussian(1.0), count="auto")
        check_random_state(self.random_state)

    def _check_against(self, source: Source, checkpoint: Any) -> None:
        if "diagonal" in source.readers and len(source.readers["diagonal"].shape) != 1:
            raise ValueError(f"diagonal must have shape ({source.n},), got {source.readers['diagonal'].shape}.")
        asked = of_kernel(self.landmarks, Gaussian(1.0), count="auto")
        if asked.points is not None:
            FitSample(source).given(asked.points)
        pairs = self.method == "exact" or (self.method == "auto" and source.n <= FEW)
        if self.method == "exact" and source.n > EXACT_ROWS:
            raise ValueError(
                f"method='exact' requires at most {EXACT_ROWS} rows, got {source.n}. Use method='lowrank'."
            )
        if pairs and checkpoint is not None:
            raise ValueError(
                "checkpoint requires method='lowrank', which passes over chunks. Omit it, or set the method."
            )
        if self.n_components is not None and self.n_components >= source.n:
            raise ValueError(f"n_components must be less than the number of rows, {source.n}, got {self.n_components}.")

    def _keep(self, found: EmbeddingSolution) -> None:
        solutions = found.stages
        first, *others = [replace(solution.certificate, direction=None) for solution in solutions]
        first = replace(first, approximation=found.approximation)
        self.certificates_ = (first, *others)
        self.method_, self.extension_ = (
            found.method,
            replace(found.extension, device="cpu"),
        )  # transform sets the device
        if found.coverage is not None:
            self.coverage_ = found.coverage
        self.spectrum_ = np.concatenate([solution.eigenvalues for solution in solutions])[: found.extension.kept]
        self.rank_, self.objective_ = solutions[0].rank, solutions[0].objective
        self.n_passes_ = sum(solution.passes for solution in solutions)
        self.objectives_ = np.concatenate([solution.objectives for solution in solutions])
        self._restored()
        self._warn(found)

    def _warn(self, found: EmbeddingSolution) -> None:
        for number, stage in enumerate(found.stages):
            proof = stage.certificate
            if not proof.optimal:
                of = "the embedding is" if len(found.stages) == 1 else f"stage {number + 1} of the embedding is"
                warn_user(
                    f"{of} not proved optimal: the relative duality gap is up to "
                    f"{proof.gap / stage.objective:.1e}, above tolerance={self._ascent.tolerance:g}, after "
                    f"{stage.passes} passes; raise max_passes, or increase the bandwidth",
                    ConvergenceWarning,
                )
        if self.n_components is not None and found.extension.kept < self.n_components:
            warn_user(
                f"only {found.extension.kept} of {self.n_components} columns: the kernel has no more at this "
                "bandwidth; lower n_components or decrease the bandwidth",
                RankWarning,
            )
        if found.approximation is not None and found.approximation > self.accuracy:
            warn_user(
                f"at {len(found.extension.points)} landmarks the relative error of the Gram matrix is about "
                f"{found.approximation:.1%}, more than accuracy={self.accuracy:g}. Use more landmarks, "
                "method='auto' or a larger bandwidth",
                ReliabilityWarning,
            )

    def _summary_parts(self) -> dict[str, Any]:
        extension, certificate, variables = self.extension_, self.certificate_, str(self.n_features_in_)
        if extension.preparation.columns is not None:
            variables = f"columns {', '.join(map(str, extension.preparation.columns))} of {variables}"
        facts: dict[str, Any] = {
            **method_facts(self, len(extension.points)),
            "variables": f"{variables}{', standardized' if extension.preparation.scale is not None else ''}",
        }
        if self.method_ == "lowrank":
            facts["coverage"] = f"{self.coverage_:.6g}, least of a point; 1 if the landmarks span its kernel function"
            facts["error"] = f"{certificate.approximation:.1e} of the Gram matrix E E^T, estimated"
        others = self.certificates_[1:]
        if others:
            all_proved = "all proved optimal" if all(c.optimal for c in others) else "not all proved optimal"
            facts["stages"] = f"{len(others)} more of {', '.join(map(str, self.stages_[1:]))} columns, {all_proved}"
        products = f", and {certificate.products} for the certificate" if certificate.products else ""
        facts |= certificate_facts(self, f" to {(self.solver or BurerMonteiro()).tolerance:g}")
        facts["passes"] = f"{self.n_passes_} products with the kernel{products}"
        return embedding_summary(self, facts)
