"""Operators by name, as they are written in the shell: `laplacian`, `transfer:10`, `generator:reversible`."""

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
    """An operator with a name: its `usage`, the options that it reads, and how it is made of words and options."""

    usage: str
    make: Callable[..., Operator]
    options: tuple[str, ...] = ()


def parse(text: str, **options: Any) -> Operator:
    """The operator of a name, `name[:word...]` as in `transfer:10:eigen`, and of the options that it reads.

    Options that are None count as not given: `manifold` (a Manifold) and `density` of laplacian, `lag` of transfer,
    `diffusion` (a number) of generator, `coefficients` of differential (texts for `parse_coefficients`), `views` (how
    many) of augmentation. Arrays that the operator reads have the names of its `data_fields`.

    Raises ValueError for a name that is none, with the nearest and the valid ones, for words and options that
    the operator does not read, and where one is missing.

    Parameters
    ----------
    text : str
        What is decomposed: laplacian, covariance, schroedinger, anisotropic[:factored], tangent, differential[:solver],
        partial:axis[:solver], generator[:reversible], transfer[:lag[:solver]], cross[:center],
        crosscovariance, augmentation.

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
        raise ValueError(f"there is no operator {text!r}{nearest(head, NAMES)}; the operators are {usages}")
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in named.options:
            readers = " or ".join(other for other, known in NAMES.items() if name in known.options)
            raise ValueError(f"{name} is for the operator {readers or 'of another kind'}; {head} does not read it")
    return named.make(*words, **given)


def parse_coefficients(texts: Iterable[str]) -> dict[Any, float | str]:
    """Coefficients of a DifferentialOperator from texts `ALPHA:BETA=C`, C a number or the name of a field.

    Raises ValueError for other texts, and for a pair given twice.

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
                "a coefficient is written ALPHA:BETA=C, orders of derivatives of f and g by column, and a number "
                f"or the name of a field, as in 1,0:1,0=2.0; got {text!r}"
            )
        if (alpha, beta) in found:
            raise ValueError(f"the coefficient of {pair} is given twice; add them")
        found[alpha, beta] = _number(value)
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _flagged(name: str, make: Callable[..., Operator], flag: str) -> Callable[..., Operator]:
    """An operator that takes one word, the name of an argument that it sets to True."""

    def made(word: str | None = None, **options: Any) -> Operator:
        if word not in (None, flag):
            raise ValueError(f"{name} takes the word {flag} or none, as in {name}:{flag}; got {name}:{word}")
        return make(**{flag: word is not None}, **options)

    return made


def _transfer(word: str | None = None, solver: str = "singular", *, lag: Any = None) -> Operator:
    reversible = solver == "reversible"
    options: Any = {"solver": None if reversible else solver, "reversible": reversible}
    if word is not None and lag is not None:
        raise ValueError(f"the lag is given twice: transfer:{word} and lag={lag}")
    given = lag if word is None else tuple(word.split(",")) if "," in word else word
    return Transfer(1 if given is None else given, **options)


def _partial(axis: str = "", solver: str = "singular") -> Operator:
    if not axis.isdecimal():
        raise ValueError(f"partial takes the number of a column, as in partial:0; got {axis!r}")
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
"""The operators that have a name. `SymmetricForm` and `BilinearForm`, of a user's own functions, have none."""
