"""What `help` teaches: each package's docstring names all that it offers and shows examples; pytest runs these."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

from daskspectral.basis import Basis
from daskspectral.groups import Group
from daskspectral.kernels import Kernel
from daskspectral.manifolds import Manifold
from daskspectral.operators import Operator

OFFERED = {"kernels": Kernel, "manifolds": Manifold, "groups": Group, "basis": Basis, "operators": Operator}
MODULES = [
    *OFFERED,
    "forms",
    "landmarks",
    "moments.moments",
    "testing",
    *(f"testing.{k}" for k in ("basis", "form", "kernel")),
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_examples(name: str) -> None:
    module = importlib.import_module(f"daskspectral.{name}")
    assert any(test.examples for test in doctest.DocTestFinder().find(module)), f"daskspectral.{name} has no example"


@pytest.mark.parametrize("name", OFFERED)
def test_the_table_of_a_package_names_every_class_that_it_offers(name: str) -> None:
    module = importlib.import_module(f"daskspectral.{name}")
    classes = [getattr(module, k) for k in module.__all__]
    offered = {c.__name__ for c in classes if inspect.isclass(c) and issubclass(c, OFFERED[name])}
    missing = {k for k in offered if not inspect.isabstract(getattr(module, k)) and k not in (module.__doc__ or "")}
    assert not missing
