"""Warnings and errors with a meaning of their own; everything else raises the standard ones."""

from __future__ import annotations

__all__ = ["InvalidRowError", "RankWarning", "SmoothnessError"]


class RankWarning(UserWarning):
    """The Gram matrix has fewer numerically independent directions than were asked for."""


class SmoothnessError(ValueError):
    """A kernel has fewer derivatives than the operator takes."""


class InvalidRowError(ValueError):
    """A row of the data holds NaN or infinity; `row` is its global number (the lowest such row)."""

    def __init__(self, message: str, row: int):
        super().__init__(message, row)
        self.row = row

    def __str__(self) -> str:
        return str(self.args[0])
