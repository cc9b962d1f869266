"""Operators by name, as in the shell: `laplacian`, `transfer:10`, `generator:reversible`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from daskspectral.errors import nearest
from daskspectral.operators.base import Operator
from daskspectral.operators.covariance import Covariance
from daskspectral.operators.differential import DifferentialOperator, PartialDerivative, TangentPropagation
from daskspectral.operators.diffusion import AnisotropicDiffusion, Generator, Schroedinger
from daskspectral.operators.laplacian import Laplacian
from daskspectral.operators.paired import Augmentation, Cross, CrossCovariance, Transfer


@dataclass(frozen=True)
class NamedOperator:
    """Operator in the shell: usage, options, and constructor."""

    usage: str
    make: Callable[..., Operator]
    options: tuple[str, ...] = ()


def parse(text: str, **options: Any) -> Operator:
    """Return the operator of a name `name[:word...]`, such as `transfer:10`, with keyword options.

    Parameters
    ----------
    text : str
        Operator to decompose: laplacian, covariance, schroedinger, anisotropic[:factored], tangent,
        differential[:solver], partial:axis[:solver], generator[:reversible], transfer[:lag[:solver]], cross[:center],
        crosscovariance, augmentation.
    **options
        Options; None is the same as not given. `manifold` (a Manifold) and `density` of laplacian, `lag` of
        transfer, `diffusion` (a number) of generator, `coefficients` of differential (texts for
        `parse_coefficients`), `views` (their number) of augmentation.

    Returns
    -------
    Operator
        The operator.

    Raises
    ------
    ValueError
        If the name is unknown, if words or options do not belong to the operator, or if one is missing.

    See Also
    --------
    daskspectral.kernels.parse : Kernel of a name.

    Examples
    --------
    >>> parse("transfer:10:eigen")
    Transfer(lag=10, solver='eigen')
    >>> parse("generator", diffusion=0.5).data_fields
    frozenset({'drift'})
    """
    head, *words = text.split(":")
    named = NAMES.get(head)
    if named is None or len(words) > named.usage.count(":"):
        usages = ", ".join(known.usage for known in NAMES.values())
        raise ValueError(f"unknown operator {text!r}{nearest(head, NAMES)}; available: {usages}")
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in named.options:
            readers = " or ".join(other for other, known in NAMES.items() if name in known.options)
            raise ValueError(f"{name} requires the operator {readers or '(none has this option)'}, got {head}")
    return named.make(*words, **given)


def parse_coefficients(texts: Iterable[str]) -> dict[Any, float | str]:
    """Return coefficients from texts `ALPHA:BETA=C`, C a number or a field; raise ValueError.

    Examples
    --------
    >>> parse_coefficients(["1,0:1,0=2", "0,0:0,0=potential"])
    {((1, 0), (1, 0)): 2.0, ((0, 0), (0, 0)): 'potential'}
    """
    found: dict[Any, float | str] = {}
    for text in texts:
        pair, equals, value = text.partition("=")
        try:
            alpha, beta = (tuple(int(order) for order in side.split(",")) for side in pair.split(":"))
        except ValueError:
            equals = ""
        if not equals or not value:
            raise ValueError(
                "a coefficient must be ALPHA:BETA=C, the orders of derivatives of f and g by column and a "
                f"number or a field, as in 1,0:1,0=2.0, got {text!r}"
            )
        if (alpha, beta) in found:
            raise ValueError(f"the coefficient of {pair} is repeated: pass their sum")
        found[alpha, beta] = _number(value)
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _flagged(name: str, make: Callable[..., Operator], flag: str) -> Callable[..., Operator]:
    """Return a function that makes an operator with one optional word."""

    def made(word: str | None = None, **options: Any) -> Operator:
        if word not in (None, flag):
            raise ValueError(f"the operator must be {name} or {name}:{flag}, got {name}:{word}")
        return make(**{flag: word is not None}, **options)

    return made


def _transfer(word: str | None = None, solver: str = "singular", *, lag: Any = None) -> Operator:
    reversible = solver == "reversible"
    options: Any = {"solver": None if reversible else solver, "reversible": reversible}
    if word is not None and lag is not None:
        raise ValueError(f"the lag is specified twice, by transfer:{word} and lag={lag}: omit one")
    given = lag if word is None else tuple(word.split(",")) if "," in word else word
    return Transfer(1 if given is None else given, **options)


def _partial(axis: str = "", solver: str = "singular") -> Operator:
    if not axis.isdecimal():
        raise ValueError(f"partial requires the number of a column, as in partial:0, got {axis!r}")
    return PartialDerivative(int(axis), solver)


def _differential(solver: str | None = None, *, coefficients: Iterable[str] = ()) -> Operator:
    return DifferentialOperator(parse_coefficients(coefficients), solver)


NAMES: Mapping[str, NamedOperator] = {
    "laplacian": NamedOperator("laplacian", Laplacian, ("manifold", "density")),
    "covariance": NamedOperator("covariance", Covariance),
    "schroedinger": NamedOperator("schroedinger", Schroedinger),
    "anisotropic": NamedOperator("anisotropic[:factored]", _flagged("anisotropic", AnisotropicDiffusion, "factored")),
    "tangent": NamedOperator("tangent", TangentPropagation),
    "differential": NamedOperator("differential[:solver]", _differential, ("coefficients",)),
    "partial": NamedOperator("partial:axis[:solver]", _partial),
    "generator": NamedOperator(
        "generator[:reversible]", _flagged("generator", Generator, "reversible"), ("diffusion",)
    ),
    "transfer": NamedOperator("transfer[:lag[:solver]]", _transfer, ("lag",)),
    "cross": NamedOperator("cross[:center]", _flagged("cross", Cross, "center")),
    "crosscovariance": NamedOperator("crosscovariance", CrossCovariance),
    "augmentation": NamedOperator("augmentation", Augmentation, ("views",)),
}
"Operators by name, without those of user-defined functions."
