"""The page of a report: sections of words, pictures and tables, put into one HTML text by a template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from daskspectral.estimators.notebook import Head, environment
from daskspectral.plot.style import figure_of
from daskspectral.report.svg import inlined

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
class Table:
    """Rows of text, the first of them the titles of the columns."""

    caption: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading; what is `more` is folded away under its summary."""

    title: str
    words: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    more: Sequence[Table | tuple[str, str]] = ()
    """Tables, and texts with their titles."""
    reading: str = ""
    """How the section is read, for a newcomer."""

    @property
    def beside(self) -> bool:
        """Whether there is one picture, which stands beside the words where there is room."""
        return len(self.pictures) == 1

    @property
    def name(self) -> str:
        """The section's identity in links."""
        return re.sub(r"[^a-z]+", "-", self.title.lower()).strip("-")


def rendered(head: Head, sections: Sequence[Section], *, about: str, version: str) -> str:
    """The whole page. `about` names the model, `version` is that of daskspectral."""
    import markupsafe

    drawn: dict[str, list[dict[str, Any]]] = {}
    for section in sections:
        drawn[section.name] = []
        for number, picture in enumerate(section.pictures):
            # the one text that is not escaped again: ElementTree has escaped what is in it
            svg = markupsafe.Markup(inlined(figure_of(picture.axes), f"{section.name}-{number}-", picture.alt))
            drawn[section.name].append({"svg": svg, "caption": picture.caption, "size": picture.size})
    template = environment().get_template("report.html")
    found: str = template.render(head=head, sections=sections, drawn=drawn, about=about, version=version)
    return found
