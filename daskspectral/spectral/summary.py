"""What a summary says of a spectral decomposition: the verdict, the facts, and the table of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskspectral.estimators.summary import chosen_facts, measured_facts, operator_words, rounded, values_columns
from daskspectral.moments import Moments
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.folds import FoldKind
from daskspectral.moments.intervals import beyond_constants, reliable_words
from daskspectral.spectral.components import modes_of

DEALT = {
    FoldKind.HASH: "rows dealt at random",
    FoldKind.RANDOM: "rows dealt at random",
    FoldKind.BLOCKS: "contiguous blocks",
    FoldKind.LABELS: "rows by their labels",
}
LOPSIDED = 0.2  # (up - down) / (up + down) of an interval, from which both ends are shown
SLOWEST = 3  # processes whose timescales are told
NAMED = 8  # runs of doubted values that a verdict names


def told(what: Any) -> dict[str, Any]:
    """The parts of a `Summary` of a fitted decomposition."""
    moments: Moments = what.moments_
    details: dict[str, Any] = {}
    if moments.folds is not None:
        details["folds"] = f"{moments.folds.number}, {DEALT[moments.folds.rule]}"
    if (baseline := getattr(getattr(what, "layout_", None), "baseline", None)) is not None:
        details["anomalies"] = str(baseline)
    if moments.pairs is not None:
        told = f"{100 * moments.missing:.3g} % of the entries"
        details["missing"] = f"{told}; {100 * moments.clipped:.2g} % of the eigenvalues were negative, and clipped"
    details |= {"rank": " and ".join(map(str, np.atleast_1d(what.rank_))), "status": what.message_}
    for name in ("support_", "right_support_"):
        support = getattr(what, name, None)
        if support is not None:
            least, middle = np.min(support), np.median(support)
            title = name.removesuffix("_").replace("_", " ")
            details[title] = f"{least:.4g} effective points under a function at least, {middle:.4g} in the median"
    return {
        "verdict": verdict_of(what),
        "facts": measured_facts(moments) | chosen_facts(what),
        "details": details,
        "figures": {"reliable": "{} of {}".format(*beyond_constants(what.reliable_, what.n_constants_))},
        "of": operator_words(moments),
        "columns": [*table_of(what), ["residual", *(f"{r:.1e}" for r in what.residuals_)]],
    }


def verdict_of(what: Any) -> str:
    """How many values are reliable, and which are not; or why nothing is known of it."""
    reliable, constants, value = what.reliable_, what.n_constants_, what.solver_.value
    if intervals_of(what) is None:
        which = (
            f"which of the {len(reliable)} {value}s are reliable"
            if len(reliable) > 1
            else "whether the value is reliable"
        )
        return f"no error bars{what.message_.partition('no error bars')[2]}; nothing tells {which}"
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
    """Such as "values 1 to 3 and 5 are"."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    parts = [part for run in runs for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    parts = parts if len(parts) <= NAMED else [*parts[:NAMED], "others"]
    if len(numbers) == 1:
        return f"value {parts[0]} is"
    return f"values {' and '.join([', '.join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)} are"


def intervals_of(model: Any) -> Any:
    """The 95 % intervals (k, 2) of the values; None without error bars."""
    found = getattr(model, Attributes(model.solver_).errors, None)
    return None if found is None or np.isnan(found).all() else found


def table_of(model: Any) -> list[list[str]]:
    """The values of a model, with half the width of their intervals, held-out values, groups and trust.

    Where the intervals are lopsided, `+-` has the distances of both ends. A group names the first and the last of
    values that the data cannot tell apart. Without error bars there are the values alone.
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
    """Return the timescales of the slowest processes at each lag; nothing for a single lag."""
    lags = model.lags_
    if len(lags) < 2:
        return {}
    times, ends = model.timescales_[:, :SLOWEST], model.timescale_errors_[:, :SLOWEST]
    told = [
        f"{', '.join(map(_interval, row, around))} at a lag of {lag}"
        for lag, row, around in zip(lags, times, ends, strict=True)
    ]
    return {"timescales": f"in rows, {'; '.join(told)}"}


def _interval(time: float, ends: Any) -> str:
    return f"{time:.3g} ({ends[0]:.3g} to {ends[1]:.3g})"


def _halves(value: float, ends: Any, values: Any) -> str:
    """Half of the interval, or how far down and up it reaches from the value."""
    down, up = (rounded(distance, values) for distance in (value - ends[0], ends[1] - value))
    if np.isnan(down) or np.isnan(up):
        return "-"
    return f"{(up + down) / 2:.2g}" if abs(up - down) <= LOPSIDED * (up + down) else f"-{down:.2g} +{up:.2g}"
