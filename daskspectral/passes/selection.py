"""What an automatic choice found: the candidates with their scores, and the parameters that give the same fit again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import Rank, ReliabilityWarning, warn_user
from daskspectral.passes.folds import saved_folds
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]
SHOWN = 5  # candidates that `print` shows
ROUNDING = 1e-9  # of the largest value, below which one is a constant's 0


@dataclass(frozen=True, eq=False)
class Candidate(Registered):
    """One way to discretise, and how it did on rows of the pilot that it was not fitted to.

    `kernel` is written as for a reader, `factor` is its scale in units of the median distance (on a lattice, of the
    longest period, of cells of their distance), `penalty` c of the penalised solution (None for a solution by rank
    cut). `values` (k,) are the means over `splits` half splits of the held-out values, raised by half of the overfit
    (`Trial.judged`), or the signed roots of what singular functions explain; larger scores are better. `why` says what
    became of the candidate.
    """

    kernel: str
    factor: float
    penalty: float | None
    score: float
    values: Array
    splits: int
    why: str = ""

    dimension_names: ClassVar = {"values": ("component",)}

    @classmethod
    def of(cls, kernel: str, factor: float, penalty: float | None, score: float, values: Array, why: str) -> Candidate:
        """A candidate of held-out values (splits, k); a mean is NaN where one of them is not finite."""
        finite = np.isfinite(values).all(axis=0)
        means = np.where(finite, np.where(finite, values, 0).mean(axis=0), np.nan)
        return cls(kernel, factor, penalty, score, means, len(values), why)


def _kept(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as files keep them."""
    return {k: saved_folds(v) if k == "folds" else v for k, v in parameters.items()}


@dataclass(frozen=True, eq=False)
class Selection(Registered):
    """The table of an automatic choice, empty where nothing was left to choose.

    The best comes first. On landmarks the finalists follow, then the others: these were compared on fewer rows and
    splits, and their scores are not those of finalists.

    `best_params` are all arguments of the estimator with what was chosen in their place: an estimator made with them
    fits the same rows to the same values and functions, to the bit; it knows of no others that undercut a value, so
    that intervals may be narrower. `rows` is the size of the pilot, `median` the median distance of its points,
    `edge` is "smallest" or "largest" where the best scale is the last that was tried, `reason` says why none was.
    `undercut` (k,) is by what factor other finalists have lower values than the chosen one in every split, 1 where none
    has. Labels of folds are data: a file does not keep them, and has None in `best_params` for them.
    """

    expects: ClassVar = {"candidates": Candidate}
    dimension_names: ClassVar = {"undercut": ("component",)}

    candidates: tuple[Candidate, ...]
    best_params: Mapping[str, Any]
    rows: int = 0
    median: float | None = None
    edge: str = ""
    reason: str = ""
    undercut: Array | None = None

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that was taken."""
        return self.candidates[0] if self.candidates else None

    def with_parameters(self, given: Mapping[str, Any]) -> Selection:
        """The same with all arguments of an estimator, of which the chosen ones are replaced."""
        return replace(self, best_params={**given, **self.best_params})

    def state(self) -> dict[str, Any]:
        return {**super().state(), "best_params": _kept(self.best_params)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(**{**state, "best_params": _kept(state["best_params"])})

    def advise(self, *, certain: bool) -> None:
        """Warn where the best candidate is at the edge of what was tried, unless the values are `certain` anyway."""
        best = self.chosen
        if not certain and self.edge and best is not None:
            kernel = shortened(best.kernel)
            text = f"the best scale of the kernel is the {self.edge} that was tried ({kernel}): give a kernel beyond it"
            warn_user(text, ReliabilityWarning, Rank.UNCERTAINTY)

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def table(self) -> list[list[str]]:
        """The candidates as rows of text, the titles of the columns first."""
        head = ["candidate", "penalty", "score", "held-out values", "why"]
        rows = [
            [
                shortened(c.kernel),
                "-" if c.penalty is None else f"{c.penalty:g}",
                f"{c.score:.5g}",
                " ".join(
                    f"{v:.4g}" for v in np.where(np.abs(c.values) < ROUNDING * _largest(c.values), 0, c.values)[:4]
                ),
                c.why,
            ]
            for c in self.candidates
        ]
        return [head, *rows]

    def text(self, most: int | None = None) -> str:
        """The table, or its first rows, aligned."""
        if not self.candidates:
            return f"nothing was compared: {self.reason or 'every parameter was given'}"
        rows = self.table[: None if most is None else most + 1]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(c.ljust(width) for c, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if more := len(self.table) - len(rows):
            lines.append(f"and {more} more, in search_results_.table")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text(SHOWN)


def _largest(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))


def shortened(text: str) -> str:
    """The text with four digits of numbers that have more decimals."""
    return re.sub(r"\d+\.\d{4,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)
