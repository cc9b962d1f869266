"""The head of a report: what was fitted, how far it can be trusted, what the fit warned of. A notebook shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from daskspectral.estimators.doubts import WARNINGS

MEANINGS = {
    "TrustWarning": "The answer may be less than it seems",
    "RankWarning": "Fewer independent directions than asked for",
    "DensityWarning": "Thin places decide",
    "ManifoldWarning": "Rows lie off the manifold",
    "FitWarning": "Little is explained",
    "WeightWarning": "Weights count rows otherwise than meant",
}


_UNTOLD = re.compile(r"\b\w+=None, |(?:, )?\b\w+=None")  # parameters that say nothing


@dataclass(frozen=True)
class Head:
    """The first things to know of a model: its name, a sentence, numbers with their names, and doubts in words."""

    title: str
    verdict: str
    figures: Sequence[tuple[str, str]]
    doubts: Sequence[tuple[str, str]]
    table: Sequence[Sequence[str]]
    told: bool
    """Whether it is known what the fit warned of; a model of an earlier version does not say."""


@cache
def environment() -> Any:
    """The templates of pages, a jinja2 Environment; every text that goes into one is escaped."""
    import jinja2  # only where a page is made

    loader = jinja2.PackageLoader("daskspectral", "templates")
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    return jinja2.Environment(loader=loader, autoescape=True, **options)


def head_html(estimator: Any) -> str:
    """The head of a fitted estimator as HTML that stands alone in a notebook's cell; empty before `fit`."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return ""
    found: str = environment().get_template("notebook.html").render(head=head_of(estimator))
    return found


def head_of(model: Any) -> Head:
    """The head of a fitted estimator or moments."""
    from daskspectral.estimators.summary import columns
    from daskspectral.estimators.verdicts import verdict_of

    table = columns(model)
    rows = [list(row) for row in zip(*table, strict=True)] if table else []
    return Head(title_of(model), verdict_of(model), figures_of(model), doubts_of(model), rows, hasattr(model, WARNINGS))


def title_of(model: Any) -> str:
    """The kind of the model, and of what operator it is."""
    moments = getattr(model, "moments_", None)
    kind = type(model).__name__
    operator = getattr(model, "operator", None) if moments is None else moments.operator
    named = operator is not None and kind in ("SpectralDecomposition", "Moments")
    return f"{kind} of {_UNTOLD.sub('', str(operator))}" if named else kind


def doubts_of(model: Any) -> list[tuple[str, str]]:
    """What the fit warned of: the meaning of each warning's category, and its text."""
    told = [str(text).partition(": ") for text in getattr(model, WARNINGS, ())]
    return [(MEANINGS.get(category, category), text[:1].upper() + text[1:]) for category, _, text in told]


def figures_of(model: Any) -> list[tuple[str, str]]:
    """Numbers by their names: rows, columns, functions, rank."""
    from daskspectral.moments import Moments
    from daskspectral.moments.intervals import beyond_constants

    moments = model if isinstance(model, Moments) else getattr(model, "moments_", None)
    found: list[tuple[str, str]] = []
    if isinstance(moments, Moments):
        found += [("rows", grouped(moments.count)), ("columns", grouped(moments.basis.dimension))]
        found.append(("functions", grouped(moments.basis.size)))
    elif hasattr(model, "n_features_in_"):
        found.append(("columns", grouped(model.n_features_in_)))
    rank = getattr(model, "rank_", None)
    if rank is not None:
        found.append(("rank", " and ".join(map(grouped, rank if isinstance(rank, (tuple, list)) else [rank]))))
    if hasattr(model, "trusted_"):
        found.append(("trusted", "{} of {}".format(*beyond_constants(model.trusted_, model.constants_))))
    return found


def grouped(number: Any) -> str:
    """A whole number in groups of three digits."""
    return f"{int(number):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
