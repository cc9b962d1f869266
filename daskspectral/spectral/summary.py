"""Contents of the summary of a spectral decomposition: verdict, facts, and table of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskspectral.estimators.summary import chosen_facts, measured_facts, operator_words, rounded, values_columns
from daskspectral.moments import Moments
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.folds import FoldKind
from daskspectral.moments.intervals import beyond_constants, reliable_words
from daskspectral.spectral.components import modes_of

FOLD_RULES = {
    FoldKind.HASH: "rows assigned at random",
    FoldKind.RANDOM: "rows assigned at random",
    FoldKind.BLOCKS: "contiguous blocks",
    FoldKind.LABELS: "rows by their labels",
}
ASYMMETRIC = 0.2  # both ends of an interval are shown if (up - down) / (up + down) exceeds this
SLOWEST = 3  # number of processes whose timescales are shown
NAMED = 8  # maximum number of runs of unreliable values in a verdict


def summary_parts(what: Any) -> dict[str, Any]:
    """Return the parts of a `Summary` of a fitted decomposition."""
    moments: Moments = what.moments_
    details: dict[str, Any] = {}
    if moments.folds is not None:
        details["folds"] = f"{moments.folds.number}, {FOLD_RULES[moments.folds.rule]}"
    if (baseline := getattr(getattr(what, "layout_", None), "baseline", None)) is not None:
        details["anomalies"] = str(baseline)
    if moments.pairs is not None:
        missing = f"{100 * moments.missing:.3g} % of the entries"
        details["missing"] = f"{missing}; {100 * moments.clipped:.2g} % of the eigenvalues were negative, and clipped"
    details |= {"rank": " and ".join(map(str, np.atleast_1d(what.rank_))), "status": what.message_}
    for name in ("support_", "right_support_"):
        support = getattr(what, name, None)
        if support is not None:
            least, middle = np.min(support), np.median(support)
            title = name.removesuffix("_").replace("_", " ")
            details[title] = f"at least {least:.4g} effective rows per function, {middle:.4g} in the median"
    return {
        "verdict": verdict_of(what),
        "facts": measured_facts(moments) | chosen_facts(what),
        "details": details,
        "figures": {"reliable": "{} of {}".format(*beyond_constants(what.reliable_, what.n_constants_))},
        "of": operator_words(moments),
        "columns": [*table_of(what), ["residual", *(f"{r:.1e}" for r in what.residuals_)]],
    }


def verdict_of(what: Any) -> str:
    """Return how many values are reliable and which are not, or why this is not known."""
    reliable, constants, value = what.reliable_, what.n_constants_, what.solver_.value
    if intervals_of(what) is None:
        which = (
            f"which of the {len(reliable)} {value}s are reliable"
            if len(reliable) > 1
            else "whether the value is reliable"
        )
        return f"no error bars{what.message_.partition('no error bars')[2]}; it is not known {which}"
    found, count = beyond_constants(reliable, constants)
    if (modes := modes_of(what)) is not None:
        return modes.verdict
    if (beyond := getattr(what, "beyond_chance_", None)) is not None:
        held = ", ".join(
            f"{h:.3g} of {v:.3g}" for v, h in zip(what.singular_values_, what.validation_values_, strict=True)
        )
        return f"{np.count_nonzero(beyond)} of {len(beyond)} pairs beyond chance (19 shifts); held out {held}"
    words = reliable_words(reliable, constants, value)
    return f"{words}; {_named(np.flatnonzero(~reliable))} not" if 0 < found < count else words


def _named(numbers: Any) -> str:
    """Return a phrase such as "values 1 to 3 and 5 are"."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    parts = [part for run in runs for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    parts = parts if len(parts) <= NAMED else [*parts[:NAMED], "others"]
    if len(numbers) == 1:
        return f"value {parts[0]} is"
    return f"values {' and '.join([', '.join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)} are"


def intervals_of(model: Any) -> Any:
    """Return the 95 % intervals (k, 2) of the values; None without error bars."""
    found = getattr(model, Attributes(model.solver_).errors, None)
    return None if found is None or np.isnan(found).all() else found


def table_of(model: Any) -> list[list[str]]:
    """Return the columns of the table of values; the values only without error bars.

    `+-` contains the distances of both ends if an interval is asymmetric. A group is the first and the last of values
    that the data cannot distinguish.
    """
    kind, modes = model.solver_, modes_of(model)
    values = getattr(model, Attributes(kind).values)
    columns = values_columns(kind.value, values)
    if modes is not None:
        columns[0] = ["mode", *(str(i + 1) for i in range(len(values)))]
        columns.append(["share", *(f"{100 * share:.3g} %" for share in modes.explained)])
    intervals = intervals_of(model)
    if intervals is None:
        return columns
    columns.append(["+-", *(_halves(v, ends, values) for v, ends in zip(values.real, intervals, strict=True))])
    if (residuals := getattr(model, "dynamic_residuals_", None)) is not None:
        bound = "" if model.moments_.operator.reversible else " at most"
        columns.append([f"residual of K{bound}", *(f"{low:.2g} to {high:.2g}" for low, high in residuals)])
    if not np.isnan(model.validation_values_).all():
        columns.append(["held-out", *(f"{rounded(h, values):.6g}" for h in model.validation_values_)])
    if modes is not None:
        above = ["yes" if i < modes.count else "" for i in range(len(values))]
        known = [f"{r:.2f}" if yes else "" for r, yes in zip(modes.pattern_correlations, modes.known, strict=True)]
        names = [f"{m[0] + 1}-{m[-1] + 1}" for m in (np.flatnonzero(modes.groups == g) for g in modes.groups)]
        mixed = [name if len(set(name.split("-"))) > 1 else "" for name in names]
        return [*columns, ["above noise", *above], ["mixed", *mixed], ["pattern known to", *known]]
    if len(np.unique(model.multiplets_)) < len(values):
        members = [np.flatnonzero(model.multiplets_ == group) for group in model.multiplets_]
        columns.append(["group", *(f"{m[0]}-{m[-1]}" if len(m) > 1 else "" for m in members)])
    words = ["constant"] * model.n_constants_ + [
        "yes" if reliable else "" for reliable in model.reliable_[model.n_constants_ :]
    ]
    return [*columns, ["reliable", *words]]


def dynamic_facts(model: Any) -> dict[str, str]:
    """Return the timescales of the slowest processes at each lag; empty for a single lag."""
    lags = model.lags_
    if len(lags) < 2:
        return {}
    times, ends = model.timescales_[:, :SLOWEST], model.timescale_errors_[:, :SLOWEST]
    rows = [
        f"{', '.join(map(_interval, row, around))} at a lag of {lag}"
        for lag, row, around in zip(lags, times, ends, strict=True)
    ]
    return {"timescales": f"in rows, {'; '.join(rows)}"}


def _interval(time: float, ends: Any) -> str:
    return f"{time:.3g} ({ends[0]:.3g} to {ends[1]:.3g})"


def _halves(value: float, ends: Any, values: Any) -> str:
    down, up = (rounded(distance, values) for distance in (value - ends[0], ends[1] - value))
    if np.isnan(down) or np.isnan(up):
        return "-"
    return f"{(up + down) / 2:.2g}" if abs(up - down) <= ASYMMETRIC * (up + down) else f"-{down:.2g} +{up:.2g}"
