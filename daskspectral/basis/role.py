"""Roles of function spaces in a form."""

from enum import Enum


class Role(Enum):
    """The role of a function space in a form: trial (left) or test (right)."""

    TRIAL = "trial"
    TEST = "test"

    def named(self, name: str) -> str:
        """Return the name of what is of this space by that of the trial space: "gram" and "right_gram"."""
        return f"right_{name}" if self is Role.TEST else name
