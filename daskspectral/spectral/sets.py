"""Metastable sets of a process, with memberships at any rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.engine.memory import chosen_device
from daskspectral.estimators.evaluator import ModelFunctions
from daskspectral.passes.apply import Extrapolated, Result
from daskspectral.passes.functions import SpanFunction, SpanValues
from daskspectral.spectral.metastable import SetStatistics, as_probabilities

Array = NDArray[np.floating[Any]]
SHOWN = 5  # number of sets in the repr


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MetastableSets(ModelFunctions, SetStatistics):
    """Metastable sets of a process by PCCA+, between which jumps are rare.

    Rates and times are in rows of trajectories, or in the time unit of a generator.

    Parameters
    ----------
    functions, weights : ndarray of shape (m - 1,) and (m, m)
        Indices of the functions f of the model, and A, with memberships (1, f) A.
    probabilities : ndarray of shape (m,)
        Equilibrium probabilities of the sets.
    transitions : ndarray of shape (m, m)
        Transition probabilities between sets within the `lag`.
    rates : ndarray of shape (m, m)
        Jump rates, with a row for each initial set. For trajectories from visits to cores (`spectral.cores`);
        otherwise the generator of the transitions, or the nearest valid one.
    rate_errors : ndarray of shape (m, m, 2)
        Ends of 95 % intervals, clipped at 0: by Poisson statistics of numbers of jumps, or else by a jackknife over
        folds.
    passage_times : ndarray of shape (m, m)
        Mean first passage times for these rates; infinite if a set is not reached.
    passage_time_errors : ndarray of shape (m, m, 2)
        Ends of 95 % intervals, by sampling rates given these numbers, or else by a jackknife.
    gap : float
        Ratio of the timescale of the fastest process between sets to that of the slowest within them. Timescales
        below the lag are set to the lag.
    suggested : int
        The m of the widest gap.
    negative : float
        Share of sampled rows with a negative membership before the projection on probabilities.
    moved : float
        Largest amount by which an entry of the transitions was negative or above 1.
    supported : int
        Number of sets that the data support: m - 1 if `moved` exceeds its error or 0.1, or if the interval of a
        transition is longer than 1.
    lag : float
        Lag of the fit; for a generator the timescale of its fastest function.
    basis, n_features_in_, preparation_, layout_, columns_, device, model, unit : object
        Basis, preparation of rows, names of columns, device, parameters and unit of time of the fitted model.
    coefficients, means : ndarray of shape (p, m) and (m,)
        Memberships in the basis, minus these means.

    See Also
    --------
    Koopman : Transfer operator of trajectories.
    FirstPassage : Committors and mean first passage times.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.langevin(20_000, seed=1)
    >>> basis = dsp.basis.Landmarks("gaussian:0.5", 15)
    >>> model = dsp.Koopman(5, reversible=True, n_components=2, basis=basis, random_state=0).fit(x)
    >>> model.metastable_sets(2, x).memberships(x).shape
    (20000, 2)
    """

    dimension_names: ClassVar = {
        **dict.fromkeys(("probabilities", "means"), ("set",)),
        **dict.fromkeys(("transitions", "rates", "passage_times"), ("set", "to_set")),
        **dict.fromkeys(("rate_errors", "passage_time_errors"), ("set", "to_set", "bound")),
        **{"weights": ("term", "set"), "functions": ("process",), "coefficients": ("function", "set")},
    }

    coefficients: Array
    means: Array | None
    _summary_attributes = (
        "lag",
        "unit",
        "probabilities",
        "transitions",
        "rates",
        "passage_times",
        "gap",
        "suggested",
        "negative",
        "supported",
    )

    def _summary_parts(self) -> dict[str, Any]:
        shown = range(self.count if self.count <= SHOWN else SHOWN - 1)
        columns = [
            ["set", *map(str, shown)],
            ["probability", *(f"{self.probabilities[i]:.3g}" for i in shown)],
            ["stays", *(f"{self.transitions[i, i]:.3g}" for i in shown)],
            *([f"time to {j}", *(f"{self.passage_times[i, j]:.3g}" for i in shown)] for j in shown),
        ]
        more = [f"{self.count - len(shown)} more"] if len(shown) < self.count else []
        known = "needs one more function" if np.isnan(self.gap) else f"is {self.gap:.3g}"
        gap = f"by the largest gap of timescales; that of {self.count} sets {known}"
        return {
            "of": f" of {self.model['estimator']}",
            "verdict": f"{self.count} sets, of which the data support {self.supported}",
            "facts": {
                "lag": f"{self.lag:.4g} ({self.unit}, as all times)",
                "suggested": f"{self.suggested} sets, {gap}",
            },
            "columns": [[*column, *(more if column is columns[0] else ["..."] * len(more))] for column in columns],
        }

    @property
    def function(self) -> SpanValues:
        """Memberships as a function of rows, before the projection on probabilities."""
        device = chosen_device(self.device)
        return SpanValues(self.basis, self.coefficients, self.means, device=device, preparation=self.preparation_)

    def is_of(self, span: SpanValues) -> bool:
        return np.array_equal(span.coefficients, self.coefficients)

    def memberships(self, X: Any, **options: Any) -> Any:
        """Return the memberships (n, m) of the rows of X, which are probabilities.

        Options as in `transform`.
        """
        output = replace(Result.of_components("membership", self.count), finish=as_probabilities)
        return self._rows(self.function, X, output=output, **options)

    def predict(self, X: Any, **options: Any) -> Any:
        """Return the set (n,) of largest membership of each row of X, -1 for invalid rows.

        Options are those of `transform`.
        """
        sets = LargestMembership(self.basis, self.function, device=self.function.device, preparation=self.preparation_)
        return self._rows(sets, X, output=Result("set", (), ()), **options)


@final
@dataclass(frozen=True, eq=False)
class LargestMembership(SpanFunction):
    """Index (c, 1) of the largest membership, -1 for invalid rows."""

    memberships: SpanValues
    columns = 1
    dtype = np.dtype(np.int64)
    missing: ClassVar[Any] = -1

    def block(self, x: Array, out: Array) -> Extrapolated | None:
        found = np.empty((len(x), self.memberships.columns))
        extrapolated = replace(self.memberships, extrapolate=self.extrapolate).block(x, found)
        out[:, 0] = np.where(np.isnan(found).any(axis=1), self.missing, found.argmax(axis=1))
        return extrapolated
