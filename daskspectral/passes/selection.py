"""Results of an automatic selection: candidates with scores, and parameters that reproduce the fit."""

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
SHOWN = 5  # number of printed candidates
ROUNDING = 1e-9  # of the largest value: smaller ones are the 0 of a constant


@dataclass(frozen=True, eq=False)
class Candidate(Registered):
    """Candidate of a selection, with its validation on the pilot.

    Attributes
    ----------
    kernel : str
        Description of the kernel.
    factor : float
        Scale in units of the median distance; of the longest period for a FourierBasis, of the distance of cells for
        NormalizedRBF.
    penalty : float or None
        Strength c of the penalty; None for a solution by truncation.
    score : float
        Score; larger is better.
    values : ndarray of shape (k,)
        Means over splits of validation values, increased by half of the overfit (`Trial.judged`), or signed roots of
        the shares that singular functions explain.
    splits : int
        Number of half splits.
    why : str
        Outcome of the candidate.
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
        """Return a candidate with validation values (splits, k); means of values that are not finite are NaN."""
        finite = np.isfinite(values).all(axis=0)
        means = np.where(finite, np.where(finite, values, 0).mean(axis=0), np.nan)
        return cls(kernel, factor, penalty, score, means, len(values), why)


def _kept(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {k: saved_folds(v) if k == "folds" else v for k, v in parameters.items()}


@dataclass(frozen=True, eq=False)
class Selection(Registered):
    """Table of candidates of an automatic selection; empty if no hyperparameter was open.

    Attributes
    ----------
    candidates : tuple of Candidate
        The best one first. On landmarks finalists follow, and then the others, whose scores are not comparable with
        those of finalists: they are from fewer rows and splits.
    best_params : mapping
        All parameters of the estimator, with the selected ones. An estimator with these parameters has identical values
        and functions on the same rows, but intervals may be narrower, because they do not include `finalist_gap`. Files
        do not contain labels of folds.
    rows : int
        Number of rows of the pilot.
    median : float or None
        Median distance of its points.
    edge : str
        "smallest" or "largest" if the best scale is at that end of the candidates.
    reason : str
        Why there are no candidates.
    finalist_gap : ndarray of shape (k,) or None
        Factors by which another finalist has lower values than the selected one in every split, otherwise 1.
    """

    expects: ClassVar = {"candidates": Candidate}
    dimension_names: ClassVar = {"finalist_gap": ("component",)}

    candidates: tuple[Candidate, ...]
    best_params: Mapping[str, Any]
    rows: int = 0
    median: float | None = None
    edge: str = ""
    reason: str = ""
    finalist_gap: Array | None = None

    @property
    def chosen(self) -> Candidate | None:
        return self.candidates[0] if self.candidates else None

    def with_parameters(self, given: Mapping[str, Any]) -> Selection:
        """Return the selection with all parameters of an estimator, updated by the selected ones."""
        return replace(self, best_params={**given, **self.best_params})

    def state(self) -> dict[str, Any]:
        return {**super().state(), "best_params": _kept(self.best_params)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(**{**state, "best_params": _kept(state["best_params"])})

    def advise(self, *, certain: bool) -> None:
        """Warn if the best scale is at the end of the candidates, unless the values are `certain`."""
        best = self.chosen
        if not certain and self.edge and best is not None:
            kernel = shortened(best.kernel)
            text = f"the best scale of the kernel is the {self.edge} candidate ({kernel}). Pass a kernel beyond it"
            warn_user(text, ReliabilityWarning, Rank.UNCERTAINTY)

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def table(self) -> list[list[str]]:
        """Candidates as rows of text, after the titles of the columns."""
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
        """Return the aligned table, or its first rows."""
        if not self.candidates:
            return f"no candidates were compared: {self.reason or 'every parameter was given'}"
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
    """Return the text with numbers rounded to four digits."""
    return re.sub(r"\d+\.\d{4,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)
