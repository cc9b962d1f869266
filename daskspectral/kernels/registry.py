"""Kernels by name: `exponential:0.5` in the shell, state dictionaries in a saved model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from daskspectral.kernels import algebra, dot, periodic, radial
from daskspectral.kernels.base import Kernel, ParameterKernel

NAMES: dict[str, type[ParameterKernel]] = {
    "gaussian": radial.Gaussian,
    "exponential": radial.Exponential,
    "matern": radial.Matern,
    "polynomial": dot.Polynomial,
    "linear": dot.Linear,
}
_KNOWN: list[type[ParameterKernel]] = [
    *NAMES.values(),
    radial.Radial,
    dot.Dot,
    algebra.RadialSum,
    algebra.RadialProduct,
    algebra.RadialMultiple,
    algebra.DotSum,
    algebra.DotProduct,
    algebra.DotMultiple,
    algebra.Sum,
    algebra.Product,
    algebra.Multiple,
    algebra.FunctionKernel,
    periodic.Periodic,
]
_CLASSES = {cls.__name__: cls for cls in _KNOWN}


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
        raise ValueError(f"there is no kernel {name!r}; the kernels are {usage}")
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
    if text == "median":
        return text
    value = float(text)
    return int(value) if value.is_integer() and "." not in text and "e" not in text else value


def kernel_state(kernel: Kernel) -> dict[str, Any]:
    """A kernel as plain data; functions are kept as `module:name`, which must import where it is loaded."""
    cls = type(kernel)
    name = cls.__name__ if _CLASSES.get(cls.__name__) is cls else function_path(cls)
    params = {k: _value_state(v) for k, v in kernel.get_params(deep=False).items()}
    return {"kernel": name, "parameters": params}


def kernel_from_state(state: dict[str, Any]) -> Kernel:
    """The inverse of `kernel_state`."""
    params = {k: _value_from_state(v) for k, v in state["parameters"].items()}
    name = state["kernel"]
    cls = _CLASSES[name] if name in _CLASSES else load_function(name)
    kernel = cls(**params)
    assert isinstance(kernel, Kernel)
    return kernel


def _value_state(value: Any) -> Any:
    if isinstance(value, Kernel):
        return kernel_state(value)
    if callable(value):
        return {"function": function_path(value)}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_value_state(v) for v in value]
    return value.item() if hasattr(value, "item") else value


def _value_from_state(state: Any) -> Any:
    if isinstance(state, dict):
        if "array" in state:
            return np.array(state["array"])
        return kernel_from_state(state) if "kernel" in state else load_function(state["function"])
    if isinstance(state, list):
        return tuple(_value_from_state(v) for v in state)
    return state


def function_path(function: Callable[..., Any] | type) -> str:
    """`module:name` of a function or class that can be imported; ValueError otherwise."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "")
    path = f"{module}:{name}"
    if not module or module == "__main__" or not name or "<" in name or not _found(path, function):
        raise ValueError(
            f"{function!r} cannot be saved: only functions and classes at the top level of an importable "
            "module can be found again; move it into a module"
        )
    return path


def _found(path: str, function: object) -> bool:
    try:
        return load_function(path) is function
    except (ImportError, AttributeError):
        return False


def load_function(path: str) -> Any:
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target
