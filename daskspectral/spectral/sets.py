"""MetastableSets: sets between which a process jumps rarely, with their memberships at any rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.engine.memory import chosen_device
from daskspectral.estimators.evaluator import ModelFunctions
from daskspectral.passes.apply import Guessed, Result
from daskspectral.passes.functions import SpanFunction, SpanValues
from daskspectral.spectral.metastable import SetStatistics, as_probabilities

Array = NDArray[np.floating[Any]]
SHOWN = 5  # sets that the `repr` shows


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MetastableSets(ModelFunctions, SetStatistics):
    """m sets between which jumps are rare, found by PCCA+; `memberships` evaluates them at any rows.

    Rates and times are in rows of trajectories, or in the time of a generator.

    Attributes
    ----------
    probabilities : ndarray of shape (m,)
        Probabilities of the sets in equilibrium.
    transitions : ndarray of shape (m, m)
        Probabilities of a transition from set to set within the `lag`.
    rates : ndarray of shape (m, m)
        Rates of jumps, with a row for the set that is left: of trajectories by the cores that they visit
        (`spectral.cores`), or else the generator with these transitions, or the nearest one.
    passage_times : ndarray of shape (m, m)
        Mean first passage times from set to set of jumps with these rates; infinite to a set that is not reached.
    rate_errors, passage_time_errors : ndarray of shape (m, m, 2)
        Ends of 95 % intervals, none beyond 0: of numbers of jumps by Poisson's distribution, or else by a jackknife
        over folds.
    gap, suggested : float, int
        The timescale of the fastest process between sets over that of the slowest within them, and the m for which it
        is widest; what is faster than the lag counts as the lag.
    negative : float
        Share of the sampled rows beyond the vertices, some membership of which is below 0 before it is projected.
    moved : float
        The largest amount by which an entry of the transitions was negative or above 1.
    borne_out : int
        Number of sets that the data bear out: m - 1 if `moved` is more than its error or 0.1, or if the interval of a
        transition is longer than 1.
    lag : float
        The lag of the fit; of a generator the timescale of its fastest function.
    functions, weights : ndarray of shape (m - 1,) and (m, m)
        The numbers of the functions f of the model, and A, with the memberships (1, f) A.
    coefficients, means : ndarray of shape (p, m) and (m,)
        The memberships in the basis, less these means.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.langevin(20_000)
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
        "borne_out",
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
        gap = f"by the gap of timescales; of {self.count} sets it is {self.gap:.3g}"
        return {
            "of": f" of {self.model['estimator']}",
            "verdict": f"{self.count} sets, of which the data bear out {self.borne_out}",
            "facts": {
                "lag": f"{self.lag:.4g} ({self.unit}, as all times)",
                "suggested": f"{self.suggested} sets, {gap}",
            },
            "columns": [[*column, *(more if column is columns[0] else ["..."] * len(more))] for column in columns],
        }

    @property
    def function(self) -> SpanValues:
        """The memberships as a function of rows, not yet projected on probabilities."""
        device = chosen_device(self.device)
        return SpanValues(self.basis, self.coefficients, self.means, device=device, preparation=self.preparation_)

    def is_of(self, span: SpanValues) -> bool:
        """Return whether these functions of rows of a model are the memberships."""
        return np.array_equal(span.coefficients, self.coefficients)

    def memberships(self, X: Any, **options: Any) -> Any:
        """Return the memberships (n, m) of the rows of X, projected on probabilities; options as in `transform`."""
        output = replace(Result.of_components("membership", self.count), finish=as_probabilities)
        return self._rows(self.function, X, output=output, **options)

    def predict(self, X: Any, **options: Any) -> Any:
        """Return the set (n,) with the largest membership of each row of X, -1 for invalid rows that are skipped.

        Options as in `transform`.
        """
        sets = LargestMembership(self.basis, self.function, device=self.function.device, preparation=self.preparation_)
        return self._rows(sets, X, output=Result("set", (), ()), **options)


@final
@dataclass(frozen=True, eq=False)
class LargestMembership(SpanFunction):
    """The number (c, 1) of the largest of the memberships, -1 for rows that have none."""

    memberships: SpanValues
    columns = 1
    dtype = np.dtype(np.int64)
    missing: ClassVar[Any] = -1

    def block(self, x: Array, out: Array) -> Guessed | None:
        found = np.empty((len(x), self.memberships.columns))
        guessed = replace(self.memberships, extrapolate=self.extrapolate).block(x, found)
        out[:, 0] = np.where(np.isnan(found).any(axis=1), self.missing, found.argmax(axis=1))
        return guessed
