"""The largest and the smallest of numbers, as values that add like sums."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Largest:
    """The largest of numbers."""

    value: float = 0.0

    def __add__(self, other: Largest) -> Largest:
        return self if self.value >= other.value else other


@dataclass(frozen=True)
class Smallest:
    """The smallest of numbers."""

    value: float

    def __add__(self, other: Smallest) -> Smallest:
        return self if self.value <= other.value else other
