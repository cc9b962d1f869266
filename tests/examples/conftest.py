"""Scripts run in this process, and are told to log as they would in one of their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def same_level() -> Iterator[None]:
    """The log is as before after each of them."""
    own = logging.getLogger("daskspectral")
    level = own.level
    yield
    own.setLevel(level)
