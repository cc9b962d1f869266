"""Names of kernels, for the command and for Python: `exponential:0.5`."""

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


def kernel_by_name(kernel: Any) -> Kernel:
    """Return a kernel from a kernel or its name; raise ParameterError for other objects."""
    if isinstance(kernel, str):
        return parse(kernel)
    if not isinstance(kernel, Kernel):
        raise ParameterError("kernel", f"one of daskspectral.kernels or a name: {', '.join(NAMES)} or 'auto'", kernel)
    return kernel


def parse(text: str) -> Kernel:
    """Return the kernel of a name such as gaussian:median or matern:1.5:0.3+linear.

    Parameters
    ----------
    text : str
        ``name[:parameter[:parameter]]``, with the parameters in the order of the constructor; + joins terms.

    Returns
    -------
    Kernel
        The kernel.

    Raises
    ------
    ValueError
        If a name is unknown or a parameter is not a number.

    See Also
    --------
    Gaussian, Exponential, Matern, Polynomial, Linear : The kernels that have names.

    Examples
    --------
    >>> parse("gaussian:0.5+linear")
    Sum(left=Gaussian(scale=0.5), right=Linear())
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
        raise ValueError(f"unknown kernel {name!r}{nearest(name, [*NAMES, 'auto'])}; available: {usage}, or auto")
    cls = NAMES[name]
    names = [f.name for f in fields(cls)]
    if len(values) > len(names):
        raise ValueError(f"kernel {name} has at most {len(names)} parameters ({', '.join(names)}), got {text!r}")
    try:
        params = {n: _number(v) for n, v in zip(names, values, strict=False)}
    except ValueError:
        raise ValueError(
            f"the parameters of kernel {name} ({', '.join(names)}) must be numbers, got {text!r}"
        ) from None
    return cls(**params)


def _number(text: str) -> float | int | str:
    if text in SCALE_WORDS:
        return text
    value = float(text)
    return int(value) if value.is_integer() and "." not in text and "e" not in text else value
