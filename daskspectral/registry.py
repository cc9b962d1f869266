"""Conversion of objects to plain data and back, by class names: a file never decides what runs.

A class of the package is named `package.Class` (`kernels.Gaussian`), a user's class or function `module.name`. Classes
register themselves by inheriting from `Registered`. `decode` constructs objects of classes of the package, and of
classes that the caller trusts by name: every name in the data is checked before any import, and every class before any
call.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import EnumMeta
from functools import cache
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar, Self

import numpy as np

from daskspectral.errors import UntrustedError

PACKAGES = (
    "basis",
    "data",
    "embedding",
    "forms",
    "groups",
    "invariance",
    "kernels",
    "manifolds",
    "moments",
    "operators",
    "passes",
    "regression",
    "solve",
    "solvers",
    "spectral",
)
"""The parts of daskspectral whose classes a file may name."""

Function = FunctionType | BuiltinFunctionType | np.ufunc
Trusted = str | type | Callable[..., Any]
_CLASSES: dict[str, type[Registered]] = {}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_CLASS, _FUNCTION, _TUPLE, _NUMBER, _STATE = "$class", "$function", "$tuple", "$number", "state"


def arguments_of(thing: Any) -> dict[str, Any]:
    """Return the constructor's arguments from attributes; raise TypeError if one is missing."""
    cls: Any = type(thing)
    wanted = {} if cls.__init__ is object.__init__ else _parameters(cls)
    lost = [name for name, p in wanted.items() if p.kind in _VARIADIC or not hasattr(thing, name)]
    if lost:
        raise TypeError(
            f"{cls.__name__} must have an attribute for each constructor argument, but has no {', '.join(lost)}. Make "
            "it a dataclass, or define state() and the class method from_state(state)"
        )
    return {name: getattr(thing, name) for name in wanted}


@cache
def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


def _package_name(cls: type) -> str:
    """Return the name of a class of the package in a file, empty for the class of a user."""
    root, _, rest = cls.__module__.partition(".")
    return f"{rest.partition('.')[0]}.{cls.__name__}" if root == __package__ and rest else ""


class Registered:
    """An object that can be saved: `state` returns its parts, `from_state` constructs it from them.

    A dataclass, or another class with an attribute for each constructor argument, need not define either. The state may
    contain numbers, text, arrays, lists, tuples, mappings, functions and other registered objects. `expects` maps each
    key of the state whose value is an object or a function to the required class. `dimension_names` maps keys of arrays
    to the names of their dimensions in a file; others are numbered.
    """

    expects: ClassVar[Mapping[str, Any]] = {}
    dimension_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if own := _package_name(cls):
            _CLASSES[own] = cls

    def state(self) -> dict[str, Any]:
        """Return the constructor arguments of an equal object, by name."""
        return arguments_of(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(**state)

    def _set(self, **attributes: Any) -> Self:
        """Set attributes of a frozen object in its constructor."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)
        return self


class Parameterized(Registered):
    """A registered value with scikit-learn's parameters: `basis__kernel__scale` sets one in a search."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments by name; nested ones as `part__name` if `deep`."""
        params = arguments_of(self)
        for name, value in list(params.items()):
            if deep and isinstance(value, Parameterized):
                params.update({f"{name}__{k}": v for k, v in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments, with the constructor's checks; nested parts are copied first."""
        own = self.get_params(deep=False)
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, _, tail = name.partition("__")
            if head not in own:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}. Available: {', '.join(own) or 'none'}"
                )
            if tail:
                nested.setdefault(head, {})[tail] = value
            else:
                own[head] = value
        for head, values in nested.items():
            if not isinstance(own[head], Parameterized):
                raise ValueError(
                    f"{head} of {type(self).__name__} must have parameters to set {head}__..., got {own[head]!r}"
                )
            own[head] = copy.deepcopy(own[head]).set_params(**values)
        made = vars(type(self)(**own))
        vars(self).clear()
        vars(self).update(made)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return a deep copy: scikit-learn's clone rejects constructors that convert arguments."""
        return copy.deepcopy(self)


class CallRepr(Registered):
    """A registered object whose repr is a constructor call, without arguments that equal their defaults."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__repr__ is CallRepr.__repr__:
            cls.__repr__ = CallRepr.__repr__  # type: ignore[method-assign]  # a dataclass keeps an existing one

    def __repr__(self) -> str:
        given = own = arguments_of(self)
        first = type(next(iter(own.values()), None)) in (int, float)
        for name in list(own)[first:]:
            fewer = {other: value for other, value in given.items() if other != name}
            with suppress(TypeError, ValueError):  # without a default, or required by other arguments
                made = arguments_of(type(self)(**fewer))
                alike = (type(made[n]) is type(own[n]) and np.array_equal(made[n], own[n]) for n in own)
                given = fewer if all(alike) else given
        shown = (f"{n}=<array {v.shape}>" if isinstance(v, np.ndarray) else f"{n}={v!r}" for n, v in given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


class Named(Registered):
    """A registered class that is selected by name: `solver="symmetric"` in Python, `--solver` in a shell.

    Subclasses define `name`, and their constructors have no arguments.
    """

    name: ClassVar[str]

    def __repr__(self) -> str:
        return repr(self.name)

    @classmethod
    def from_name(cls, what: Any, parameter: str = "solver") -> Self:
        """Return the object of this family with the name `what`, or `what` if it is an object of it.

        Raises ValueError with the valid names for any other name.
        """
        if isinstance(what, cls):
            return what
        family = cls.family()
        if not isinstance(what, str) or what not in family:
            raise ValueError(f"{parameter} must be {' or '.join(map(repr, family))}, got {what!r}")
        return family[what]()

    @classmethod
    def family(cls) -> dict[str, type[Self]]:
        """Return the classes of this family by name, in the order of their definition."""
        found = {cls.name: cls} if "name" in vars(cls) else {}
        for below in cls.__subclasses__():
            found |= below.family()
        return found


def name_of(thing: type | Callable[..., Any]) -> str:
    """Return the name of a class or function in a file; raise ValueError if it cannot be imported by it."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if isinstance(thing, type) and _CLASSES.get(own := _package_name(thing)) is thing:
        return own
    found = getattr(sys.modules.get(module or ""), name, None)
    if not module or module == "__main__" or not name.isidentifier() or found is not thing:
        raise ValueError(
            f"functions and classes must be at the top level of an importable module to be saved, got {thing!r}. Move "
            "it into a module"
        )
    if module in PACKAGES:
        raise ValueError(
            f"{thing!r} cannot be saved because its module has the name of a part of daskspectral. Rename the module"
        )
    return f"{module}.{name}"


def encode(value: Any) -> Any:
    """Return plain data and arrays, from which `decode` constructs equal objects.

    Raises ValueError or TypeError for values that cannot be restored.
    """
    if isinstance(value, Registered):
        return {_CLASS: name_of(type(value)), _STATE: encode(value.state())}
    if callable(value):
        return {_FUNCTION: name_of(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, complex)):
        return value if isinstance(value, float) and np.isfinite(value) else {_NUMBER: repr(value)}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {f"${key}" if key.startswith("$") else key: encode(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return {_TUPLE: [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    raise TypeError(
        "saved values must be numbers, text, arrays of numbers, lists, mappings, functions of a module or objects of "
        f"classes derived from daskspectral's, got {value!r} of type {type(value).__name__}"
    )


def foreign(data: Any) -> list[str]:
    """Return the sorted names in encoded data that are not daskspectral's classes, without an import.

    Raises ValueError for malformed names, and for data nested too deeply.
    """
    try:
        return sorted({name for name, own in _names(data) if not own})
    except RecursionError:
        raise _altered("the file is nested too deeply") from None


def decode(data: Any, expected: type, trusted: Iterable[Trusted] = ()) -> Any:
    """Return the object of `encode`, an instance of `expected`.

    `trusted` contains further classes and functions that the data may name, or their names (`module.name`); only names
    are compared. Raises UntrustedError, before any import, if the data name any other, and ValueError for data that
    `encode` did not create, or for a class or function of a wrong type.
    """
    known = _by_name(trusted)
    unknown = [name for name in foreign(data) if name not in known]
    if unknown:
        raise UntrustedError(unknown)
    found = _decode(data, expected if isinstance(data, Mapping) and _CLASS in data else Registered, known)
    if not isinstance(found, expected):
        raise _altered(f"expected {_kind(expected)}, got {_kind(type(found))}")
    return found


def _altered(what: str) -> ValueError:
    return ValueError(f"{what}: the file was altered after saving")


def _decode(data: Any, expected: Any, known: Mapping[str, Any], expects: Mapping[str, Any] | None = None) -> Any:
    """Return a decoded part: `expected` is the class of an object, `expects` those of a mapping's values."""
    if isinstance(data, Mapping):
        if _CLASS in data:
            return _decode_object(data, expected, known)
        if _FUNCTION in data:
            return _decode_function(data, expected, known)
        if isinstance(data.get(_TUPLE), list):
            return tuple(_decode(item, expected, known, expects) for item in data[_TUPLE])
        if _NUMBER in data:
            return _number(data[_NUMBER])
        kinds = expects or {}
        return {key.removeprefix("$"): _decode(v, kinds.get(key, expected), known, kinds) for key, v in data.items()}
    if isinstance(data, list):
        return [_decode(item, expected, known, expects) for item in data]
    return expected(data) if isinstance(data, str) and isinstance(expected, EnumMeta) else data


def _decode_object(data: Mapping[str, Any], expected: Any, known: Mapping[str, Any]) -> Registered:
    name, state = data[_CLASS], data.get(_STATE)
    cls = _package_class(name) if _in_package(name) else _resolved(name, known)
    if not (isinstance(cls, type) and issubclass(cls, Registered)):
        raise ValueError(f"{name} cannot be loaded because it is not derived from a class of daskspectral")
    if not issubclass(cls, expected):
        raise _altered(f"expected {_kind(expected)}, got {name}")
    if not isinstance(state, Mapping):
        raise _altered(f"{name} has no state")
    parts = _decode(state, Registered, known, cls.expects)
    try:
        return cls.from_state(parts)
    except ValueError:
        raise
    except Exception as error:  # of any type: the parts come from the file
        raise _altered(f"{name} cannot be constructed from its state ({error!r})") from error


def _decode_function(data: Mapping[str, Any], expected: Any, known: Mapping[str, Any]) -> Any:
    name = data[_FUNCTION]
    function = _resolved(name, known)
    kinds = expected if isinstance(expected, tuple) else (expected,)
    if Function not in kinds and Registered not in kinds:
        raise _altered(f"expected {_kind(expected)}, got the function {name}")
    if not isinstance(function, Function):
        raise ValueError(f"expected a function, got {name}")
    return function


def _names(data: Any) -> Iterator[tuple[str, bool]]:
    """Yield each name in the data, and whether it is a class of daskspectral."""
    if isinstance(data, Mapping):
        for key in (_CLASS, _FUNCTION):
            if key in data:
                name = data[key]
                if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
                    raise _altered(f"expected the name of a class or function, got {name!r}")
                yield name, key == _CLASS and _in_package(name)
    for item in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _names(item)


def _in_package(name: str) -> bool:
    package, _, cls = name.partition(".")
    return package in PACKAGES and cls.isidentifier()


def _package_class(name: str) -> type[Registered]:
    importlib.import_module(f"{__package__}.{name.partition('.')[0]}")
    if name not in _CLASSES:
        raise ValueError(f"{name} does not exist in this version of daskspectral. Upgrade it")
    return _CLASSES[name]


def _by_name(trusted: Iterable[Trusted]) -> dict[str, Any]:
    """Return trusted classes and functions by name; None for those given as names."""
    if isinstance(trusted, str) or not isinstance(trusted, Iterable):
        raise TypeError(f"trusted must be a list of names ('module.name'), classes and functions, got {trusted!r}")
    return {t: None for t in trusted if isinstance(t, str)} | {name_of(t): t for t in trusted if not isinstance(t, str)}


def _resolved(name: str, known: Mapping[str, Any]) -> Any:
    """Return a trusted class or function."""
    if known.get(name) is not None:
        return known[name]
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a user's module may raise anything
        raise ValueError(f"{name} in the file cannot be imported: {error}") from error


def dimension_names(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the `dimension_names` of a class of daskspectral by its name; empty for other classes."""
    return _CLASSES[name].dimension_names if name in _CLASSES else {}


def digest_of(value: Any) -> str:
    """Return a digest of plain data and arrays, as `encode` returns; 1 and 1.0 are the same parameter."""
    plain = json.loads(json.dumps(value, default=_contents), parse_int=float)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _contents(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a digest requires plain data, got {value!r}")
    array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
    return [value.shape, array.dtype.str, hashlib.sha256(array.tobytes()).hexdigest()]


def _number(text: Any) -> float | complex:
    try:
        return float(text)
    except (TypeError, ValueError):
        return complex(str(text))


def _kind(expected: Any) -> str:
    kinds = expected if isinstance(expected, tuple) else (expected,)
    return " or ".join("a function" if kind is Function else f"a {kind.__name__}" for kind in kinds)
