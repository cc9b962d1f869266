"""Parameters of the wrong value or type: one error that names the parameter, before anything is done."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from daskspectral import basis, kernels, operators, solvers, validation
from daskspectral.errors import ParameterError

WRONG: dict[str, Callable[[], Any]] = {
    "alpha": lambda: validation.check_option("alpha", "best", ("gcv", None)),
    "constant": lambda: basis.Landmarks(constant=1),  # type: ignore[arg-type]
    "n_landmarks": lambda: basis.Landmarks(n_landmarks=0),
    "operator": lambda: validation.check_type("operator", 3, operators.Operator, "an operator"),
    "penalty": lambda: solvers.Regularized(-1.0),
    "random_state": lambda: validation.check_random_state("seed"),
    "scale": lambda: kernels.Gaussian(0.0),
    "flag": lambda: validation.check_flag("flag", 1),
}


@pytest.mark.parametrize("parameter", WRONG)
def test_the_error_names_the_parameter(parameter: str) -> None:
    with pytest.raises(ParameterError) as raised:
        WRONG[parameter]()
    assert raised.value.parameter == parameter
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, TypeError)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_values_come_back_in_plain_types() -> None:
    assert type(validation.check_integer("n", np.int32(7), 0, 7)) is int
    assert type(validation.check_number("share", np.float32(1), "(0, 1]")) is float
    assert validation.check_number("share", 0, "[0, 1)") == 0
    assert validation.check_option("symmetric", True, (True, False)) is True
    for check, values in (
        (lambda value: validation.check_integer("n", value, 1, 7), (0, 2.0, np.True_, np.nan, "3", 8)),
        (lambda value: validation.check_number("share", value, "(0, 1]"), (0, 1.01, True, np.nan, "0.5")),
        (lambda value: validation.check_option("symmetric", value, (True, False)), (1,)),
    ):
        for value in values:
            with pytest.raises(ParameterError):
                check(value)
