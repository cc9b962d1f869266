"""A user's own functions: how they are called, and what is said of wrong ones. Their sums are in test_contraction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskspectral.basis import CallableBasis, Concatenated, ConstantBasis, MonomialBasis
from daskspectral.errors import SmoothnessError
from daskspectral.forms import gram
from daskspectral.moments import Measure
from daskspectral.registry import encode
from tests.basis.common import FORMS
from tests.basis.test_contraction import BATCH, OWN, features, slopes
from tests.common import copied


def test_each_function_is_called_once_a_block_with_float64_points() -> None:
    calls: list[tuple[str, tuple[int, ...], Any]] = []

    def counted(x: Any) -> Any:
        calls.append(("value", x.shape, x.dtype))
        return features(x)

    def counted_slopes(x: Any) -> Any:
        calls.append(("gradient", x.shape, x.dtype))
        return slopes(x)

    basis = CallableBasis(counted, counted_slopes, d=3)
    calls.clear()
    forms = {name: FORMS[name][0] for name in ("gram", "dirichlet", "drifting")}
    Measure(basis, basis, forms, dtype="float32", rows=8)([{**BATCH, "x": BATCH["x"].astype(np.float32)}])
    assert sorted(calls) == sorted((k, (c, 3), np.dtype(float)) for k in ("value", "gradient") for c in (8, 5))


# what a wrong one is told

PLAIN = CallableBasis(features, d=3)


def test_derivatives_that_are_not_known() -> None:
    message = (
        r"a form takes derivatives of order 1, and the constant with the functions of features has them up to order 0; "
        r"give CallableBasis their gradient, a function x \(c, d\) -> \(p, c, d\)"
    )
    with pytest.raises(SmoothnessError, match=message):
        Concatenated((ConstantBasis(3), PLAIN)).check_order(1, "a form")
    nested = Concatenated((MonomialBasis(3, 2), Concatenated((ConstantBasis(3), OWN))))
    with pytest.raises(SmoothnessError, match="order 1; CallableBasis has first derivatives at most; use functions"):
        nested.check_order(2, "a form")
    with pytest.raises(SmoothnessError, match="of the functions of features"):
        Measure(PLAIN, PLAIN, {"form": FORMS["dirichlet"][0]})([BATCH])


def test_wrong_shapes() -> None:
    told = r"points \(3, 3\) and returned shape \(3, 4\); .*\(p, c\), here \(p, 3\)"
    with pytest.raises(ValueError, match=told):
        CallableBasis(lambda x: features(x).T, d=3)
    with pytest.raises(ValueError, match=r"the gradient .* here \(4, 2, 3\): functions first"):
        CallableBasis(features, lambda x: slopes(x).transpose(1, 0, 2), d=3)
    later = CallableBasis(lambda x: features(x)[: 4 if len(x) < 5 else 3], slopes, d=3)
    with pytest.raises(ValueError, match=r"given points \(13, 3\) and returned shape \(3, 13\); .* here \(4, 13\)"):
        Measure(later, later, {"gram": gram})([BATCH])
    with pytest.raises(TypeError, match=r"CallableBasis takes a function x \(c, d\) -> \(p, c\) and .*; it got 'sin'"):
        CallableBasis("sin", d=2)  # type: ignore[arg-type]


def test_saved_by_import_path() -> None:
    again = copied(Concatenated((ConstantBasis(3), PLAIN))).parts[1]
    assert isinstance(again, CallableBasis)
    assert again.function is features
    assert (again.gradient, again.order) == (None, 0)
    for basis in (CallableBasis(lambda x: x.T, d=2), CallableBasis(features, lambda x: slopes(x), d=3)):
        with pytest.raises(ValueError, match="cannot be saved: only functions and classes at the top level"):
            encode(basis)
