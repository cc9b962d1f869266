"""Kernels by name, as they are written in the shell and in Python: `exponential:0.5`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from daskspectral.errors import ParameterError, nearest
from daskspectral.kernels import dot, radial
from daskspectral.kernels.base import SCALE_WORDS, Kernel

NAMES: dict[str, type[Kernel]] = {
    "gaussian": radial.Gaussian,
    "exponential": radial.Exponential,
    "matern": radial.Matern,
    "polynomial": dot.Polynomial,
    "linear": dot.Linear,
}


def named(kernel: Any) -> Kernel:
    """A kernel as it is, or of its name. Raises TypeError for anything else, and as `parse`."""
    if isinstance(kernel, str):
        return parse(kernel)
    if not isinstance(kernel, Kernel):
        raise ParameterError("kernel", f"one of daskspectral.kernels or a name: {', '.join(NAMES)} or 'auto'", kernel)
    return kernel


def parse(text: str) -> Kernel:
    """A kernel from `name[:parameter[:parameter]]`; terms join with + (gaussian:median, matern:1.5:0.3).

    Parameters come in the order of the constructor. Raises ValueError with the valid names.
    """
    terms = [_parse_term(term) for term in text.split("+")]
    kernel: Kernel = terms[0]
    for term in terms[1:]:
        kernel = kernel + term
    return kernel


def _parse_term(text: str) -> Kernel:
    name, *values = text.strip().split(":")
    if name not in NAMES:
        usage = ", ".join(":".join([n, *(f.name for f in fields(c))]) for n, c in NAMES.items())
        raise ValueError(
            f"there is no kernel {name!r}{nearest(name, [*NAMES, 'auto'])}; the kernels are {usage}, or auto"
        )
    cls = NAMES[name]
    names = [f.name for f in fields(cls)]
    if len(values) > len(names):
        raise ValueError(f"kernel {name} takes at most {len(names)} parameters ({', '.join(names)}): {text!r}")
    try:
        params = {n: _number(v) for n, v in zip(names, values, strict=False)}
    except ValueError:
        raise ValueError(f"the parameters of kernel {name} ({', '.join(names)}) are numbers: {text!r}") from None
    return cls(**params)


def _number(text: str) -> float | int | str:
    if text in SCALE_WORDS:
        return text
    value = float(text)
    return int(value) if value.is_integer() and "." not in text and "e" not in text else value
