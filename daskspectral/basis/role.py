"""Roles of function spaces in a form."""

from enum import Enum


class Role(Enum):
    """Role of a function space in a form: trial (left) or test (right)."""

    TRIAL = "trial"
    TEST = "test"

    def named(self, name: str) -> str:
        """Return this space's name of a quantity, such as "gram" and "right_gram"."""
        return f"right_{name}" if self is Role.TEST else name
