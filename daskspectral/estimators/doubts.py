"""What a fit warned of, kept with the model: `warnings_`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from daskspectral.errors import overheard

Call = TypeVar("Call", bound=Callable[..., Any])
WARNINGS = "warnings_"


def remembered(method: Call) -> Call:
    """Make a `fit`, `update` or `fit_moments` keep what it warns of as `warnings_`, "Category: message" each."""

    @wraps(method)
    def remembering(self: Any, *arguments: Any, **options: Any) -> Any:
        with overheard() as heard:
            result = method(self, *arguments, **options)
        self.warnings_ = heard
        return result

    return cast(Call, remembering)
