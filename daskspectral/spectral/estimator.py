"""What all estimators of spectra share: the fit of an operator to data in one pass, and its updates."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import BasisRecipe
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, in_rows, open_data
from daskspectral.engine.memory import chosen_device
from daskspectral.estimators.records import remembered
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.trust import UNCERTAIN, uncertainty
from daskspectral.operators import Operator
from daskspectral.passes.folds import FoldRequest, checked_folds, continued_folds
from daskspectral.passes.parameters import check_components, check_fit, checked_operator
from daskspectral.passes.session import Session, Training
from daskspectral.passes.sums import Discretisation
from daskspectral.solve import SymmetricPencil, resolve_cut
from daskspectral.solvers import Solving, solving
from daskspectral.spectral.choice import choose_functions
from daskspectral.spectral.functions import SpectralFunctions

Array = NDArray[np.inexact[Any]]


class SpectralEstimator(SpectralFunctions):
    """An estimator of the spectrum and the eigenfunctions of an operator, `operator`, on the distribution of the data.

    Classes have the parameters of `SpectralDecomposition` as arguments, or as attributes if they are fixed.
    """

    operator: Operator | None
    basis: BasisRecipe | str | None = None
    right_basis: BasisRecipe | str | None = None
    n_components: float
    solver: Solving | None = None
    folds: Any

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Measure the moments of X (n, d) in one pass on the active dask scheduler, and solve.

        X is a numpy (also memory-mapped), dask, zarr or xarray array, a data frame of numbers, the path or URL of a
        zarr array or of data with labels, or `Rows`, which tell how such data are read; a tuple of them, row by row,
        for an operator between views, fit((x, y)), where fit(x, y) does the same for two; for Transfer one trajectory,
        or a list of several with lists of weights and fields. `y` is ignored otherwise. Sparse matrices of scipy are
        made dense in each task, its own rows only.

        Raises ValueError, TypeError, FileNotFoundError or MemoryError for input that cannot work, before any task of
        the pass is sent; InvalidRowError for the lowest row with NaN or infinity, where these are not to be skipped;
        OSError for data that are damaged or change meanwhile, or a checkpoint in use.

        Parameters
        ----------
        sample_weight : array (n,), optional
            Frequency weights: a row of weight 2 counts as two rows.
        checkpoint : str, optional
            Directory or URL for the sums so far, from which the same call resumes after a stop. One live run at a time
            writes there; on a device of the same kind the result has the same bits.
        checkpoint_every : float
            Seconds between writes of the checkpoint.
        progress : bool, optional
            Show a progress bar; by default on a terminal only.
        """
        context = RunContext(progress, checkpoint, checkpoint_every)
        with open_table(self, X, context, fits=True, y=y, sample_weight=sample_weight) as table:
            session = self._session(table)
            self._check_several(session.source)
            self._fit_session(session, context)
            solver = self.solver_
            values, ends = self._values, vars(self)[Attributes(solver).errors]
            doubt = uncertainty(values, ends, solver, constants=self.constants_)
            self.choice_.advise(certain=doubt <= UNCERTAIN)
        return self

    def _session(self, table: Table) -> Session:
        operator = in_rows(checked_operator(self.operator), table.rows)
        self._check_parameters(operator)
        folds = checked_folds(self.folds)
        labels = None if folds is None else folds.labels
        source = open_data(operator, table.rows, fold=labels, **table.options)
        return self._session_of(source, operator, folds)

    def _session_of(self, source: Source, operator: Operator, folds: FoldRequest | None) -> Session:
        wanted = choose_functions(self, operator)
        choice = wanted.fitted_to(source)
        if wanted.uses_gaps(source):
            source = replace(source, options=("skip", "pairwise"))
        choice.check_against(source)

        def choose(source: Source, training: Training) -> Discretisation:
            return choice.discretise(source, self.random_state, training=training)

        expected, choosing = choice.outline(source), choice.choosing(source)
        return Session(source, operator, choose, self.dtype, chosen_device(self.device), folds, expected, choosing)

    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        folds: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Fold in rows that were appended to X since it was fitted: the functions stay, and the sums are solved anew.

        X holds all rows, old and new; for trajectories rows are appended to the last one, and new trajectories after
        it. Landmarks, scaling and anomalies stay, and functions keep the signs that they had. New rows come to folds as
        the old ones did; where these are labels, `folds` are the labels of all rows. Linear functions of fewer rows
        than columns, such as principal components of wide fields, span only these rows: they are made of all rows, and
        all are summed, as in a fit.

        The new rows alone are summed if all fields are in zarr stores of which no file with rows of the fit was
        written since, by size and time or etag (append whole chunks). Otherwise, and for arrays that are in memory or
        dask's, all rows are summed again, with the functions of the fit.

        Raises ValueError where X has no more rows than before, where the first rows are not those of the fit, where
        the moments were added up from several arrays, and for labels that are missing or new.
        """
        before = self.fitted().moments_
        found = continued_folds(before.folds, folds)
        labels = None if found is None else found.labels
        given = {"y": y, "sample_weight": sample_weight, "folds": folds}
        with open_table(self, X, RunContext(progress), **given) as table, remembered(self):
            source = open_data(before.operator, table.rows, fold=labels, **table.options)
            fitted = copy.copy(self)
            self._update_source(source, found)
            self._turn_like(fitted)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`fit`, then `transform` of the same array. Raises ValueError for views and lists of trajectories."""
        if isinstance(Rows.of(X).data, (tuple, list)) and len(checked_operator(self.operator).views) > 1:
            raise ValueError("fit_transform takes one array: call fit, then transform of the array that is wanted")
        return super().fit_transform(X, y, **options)

    def _check_parameters(self, operator: Operator) -> None:
        check_components(self.n_components, operator)
        check_fit(self)
        solver = solving(self.solver)
        resolve_cut(solver.rtol, self.dtype)
        if solver.ridge and not isinstance(operator.solver, SymmetricPencil):
            raise ValueError(f"ridge is for symmetric operators, and {operator.name} is solved by {operator.solver!r}")
