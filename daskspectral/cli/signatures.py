"""Types, defaults and first sentences of parameters, from signatures and docstrings of the package.

The source is parsed and not imported, so that the help of a command stays quick and loads no numpy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import daskspectral

SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"^(\S.*?) : (.*)\n((?:    .*\n?)+)", re.MULTILINE)
SENTENCE = re.compile(r"(.*?)\.(?=\s|$)")


@dataclass(frozen=True)
class Parameter:
    """Parameter of a class or function: its documented type, first sentence and default."""

    type: str
    sentence: str
    default: Any = None


@cache
def _module(name: str) -> ast.Module:
    file = Path(daskspectral.__file__).parent.joinpath(*name.split(".")).with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _node(path: str) -> Any:
    module, _, names = path.partition(":")
    node: Any = _module(module)
    for name in names.split("."):
        node = next(child for child in node.body if getattr(child, "name", None) == name)
    return node


def docstring(path: str) -> str:
    """Return the docstring of "module:function", without importing the module."""
    return ast.get_docstring(_node(path)) or ""


@cache
def documented(path: str) -> Mapping[str, Parameter]:
    """Return the parameters of "module:Class" or "module:Class.method" by name, without an import."""
    node = _node(path)
    section = SECTION.search(f"{ast.get_docstring(node)}\n")
    defaults, found = _defaults(node), {}
    for name, kind, text in ENTRY.findall(f"{section[1]}\n" if section else ""):
        sentence = SENTENCE.match(" ".join(text.replace("`", "").split()))
        assert sentence is not None, f"{path} does not document {name} in a sentence"
        found[name] = Parameter(kind, sentence[1], defaults.get(name))
    return found


def _defaults(node: Any) -> dict[str, Any]:
    """Return the defaults that are constants, of the fields of a class, its constructor or a function."""
    pairs = [(ast.unparse(child.target), child.value) for child in node.body if isinstance(child, ast.AnnAssign)]
    for function in [node, *node.body]:
        if isinstance(function, ast.FunctionDef) and (function is node or function.name == "__init__"):
            given = function.args
            names = [*given.args[len(given.args) - len(given.defaults) :], *given.kwonlyargs]
            pairs += zip([name.arg for name in names], [*given.defaults, *given.kw_defaults], strict=True)
    return {name: ast.literal_eval(value) for name, value in pairs if isinstance(value, (ast.Constant, ast.Tuple))}


@dataclass(frozen=True)
class Parameters:
    """Parameters of a class or function that are options of commands.

    Parameters
    ----------
    path : str
        "module:Class" or "module:Class.method" of the package.
    names : str
        The parameters, each with the name of its option if that differs: "dtype count=landmarks"; two names for a pair
        of flags: "progress=progress/--no-progress".
    when : str
        The choice that reads these parameters, "" if all do; only then are defaults passed to the command.
    kept : bool
        Whether results keep these options in their settings.
    defaults : mapping
        Defaults of the shell that differ from those of the signature, by parameter.
    """

    path: str
    names: str
    when: str = ""
    kept: bool = True
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        pairs = (word.partition("=") for word in self.names.split())
        return {name: option or name.replace("_", "-") for name, _, option in pairs}

    @property
    def keys(self) -> dict[str, str]:
        """Return the name of each parameter by the name under which click passes its option."""
        return {option.partition("/")[0].replace("-", "_"): name for name, option in self.options.items()}


def given(options: Mapping[str, Any], *parts: Parameters) -> dict[str, Any]:
    """Return the values by parameter of the options that were given."""
    pairs = [pair for part in parts for pair in part.keys.items()]
    return {name: options[key] for key, name in pairs if options.get(key) is not None}
