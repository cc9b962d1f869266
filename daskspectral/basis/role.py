"""Roles of function spaces in a form."""

from enum import StrEnum


class Role(StrEnum):
    """The role of a function space, trial (left) or test (right): the prefix of names of what is of either."""

    TRIAL = ""
    TEST = "right_"
