"""Levels of products: sums of the factors' eigenvalues, made once for many levels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from daskspectral.basis import HarmonicBasis
from daskspectral.groups import SignFlips
from daskspectral.manifolds import Interval, Product, Sphere
from daskspectral.manifolds import product as module
from daskspectral.passes.invariant import Levels


def test_levels_are_the_distinct_sums_in_order_with_all_their_terms() -> None:
    first, second, third = Interval([0.0], [1.3]), Sphere(3), Sphere(4)
    made = Product(Product(first, second), third)
    factors = (first, second, third)
    sums = {
        levels: sum(f.eigenvalue(i) for f, i in zip(factors, levels, strict=True))
        for levels in product(range(12), range(30), range(30))
    }
    values = np.unique(np.round(list(sums.values()), 7))
    for level in (3, 60, 0, 59, 17):  # in any order
        assert made.eigenvalue(level) == pytest.approx(values[level], abs=1e-6)
        assert made.terms(level) == tuple(sorted(t for t, s in sums.items() if abs(s - values[level]) < 1e-6))


def test_sums_are_made_once_for_many_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were made and sorted anew for each level: minutes for two atoms."""
    calls = []
    found = module._up_to
    monkeypatch.setattr(module, "_up_to", lambda *args: calls.append(args) or found(*args))
    made = Product(Interval([0.0], [0.77]), Sphere(3))
    for level in range(500):
        made.terms(level)
    assert len(calls) <= 40


def test_eigenspaces_are_built_once_however_often_levels_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    made = Sphere._eigenspace
    monkeypatch.setattr(Sphere, "_eigenspace", lambda self, level: built.append(level) or made(self, level))
    levels = Levels(Sphere(3), SignFlips(3), 1000)
    small, large = levels.within(30), levels.within(60)
    assert len(built) == len(set(built))
    assert isinstance(large.harmonic, HarmonicBasis)
    assert large.functions[: len(small.functions)] == small.functions
