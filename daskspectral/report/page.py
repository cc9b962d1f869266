"""What a report is made of: sections of words, pictures and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Picture:
    """A drawing by its axes; `alt` says what it shows to those who cannot see it, `caption` stands below it."""

    axes: Axes
    alt: str
    caption: str = ""
    size: str = "half"
    """Of the page's width: "half", "small" (a third), "bar" (a colour bar), or "whole"."""


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading; what is `more` is folded away under its caption."""

    title: str
    words: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str | Sequence[Sequence[str]]] = field(default_factory=dict)
    """Texts, and tables by their rows, the titles of the columns first."""
    reading: str = ""
    """How the section is read, a name of `templates/reading.html`."""

    @property
    def beside(self) -> bool:
        """Whether there is one picture, which stands beside the words where there is room."""
        return len(self.pictures) == 1

    @property
    def name(self) -> str:
        """The section's identity in links."""
        return re.sub(r"[^a-z]+", "-", self.title.lower()).strip("-")
