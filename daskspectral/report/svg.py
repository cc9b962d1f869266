"""A matplotlib figure as SVG inside a page: text as text, ids of its own, colours that follow the page's theme."""

from __future__ import annotations

import html
import io
import re
import warnings
from typing import TYPE_CHECKING, Any

from daskspectral.plot import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME = {
    **{getattr(style, name): f"var(--{name.lower()})" for name in ("PAPER", "INK", "MUTED", "LINE", "FAINT", "CLOUD")},
    **{colour: f"var(--series-{i})" for i, colour in enumerate(style.SERIES)},
    **{colour: f"var(--diverging-{i})" for i, colour in enumerate(style.DIVERGING)},
    **{colour: f"var(--sequential-{i})" for i, colour in enumerate(style.SEQUENTIAL)},
    **{"#000000": "var(--ink)", "#262626": "var(--contour)"},  # matplotlib's own black; lines between bands
}
"""The colours of pictures, and the page's custom properties that stand for them."""
MANY = 30  # marks of one kind, from which on they are drawn as one path for each colour
_UNPRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")  # which XML does not hold
_MARKS = re.compile(r'(?:<g clip-path="(?P<clip>[^"]*)">(?:<use [^>]*>)+</g>)+')
_MARK = re.compile(r'<use xlink:href="#(\w+)" x="([^"]*)" y="([^"]*)" style="([^"]*)"')


def inlined(figure: Figure, prefix: str, alt: str) -> str:
    """The figure as an `svg` element with `alt` as its accessible name; `prefix` makes its ids unlike others'."""
    import matplotlib as mpl
    from matplotlib.text import Text

    for label in figure.findobj(Text):
        label.set_parse_math(False)  # a name from the data is no formula
        label.set_text(_UNPRINTED.sub(" ", label.get_text()))
    for artist in figure.findobj(lambda artist: bool(artist.get_rasterized())):
        artist.set_rasterized(False)  # an image would keep the colours of a light page
    drawn = io.StringIO()
    look: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "daskspectral", "path.simplify_threshold": 0.3}
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # text stays text, and the page has other fonts
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    head, _, body = drawn.getvalue().partition("</style>")  # it would be the whole page's
    body = body.partition("</defs>")[2]
    box = re.findall(r'viewBox="[^"]*"', head)[0]
    body = re.sub(r">\s+<", "><", body)
    outlines = dict(re.findall(r'<path id="(\w+)" d="([^"]*z)\s*"', body))  # a tick has an open one, and is no dot
    body = _MARKS.sub(lambda marks: _merged(marks, outlines), body)
    body = re.sub(r"<[^>]*>", lambda tag: _edited(tag[0], prefix), body)
    return f'<svg {box} role="img" aria-label="{html.escape(alt)}" style="stroke-linejoin: round">{body}'


def _merged(marks: re.Match[str], outlines: dict[str, str]) -> str:
    """Many marks of one kind as one path for each look: a dot is a line of no length with round ends."""
    uses = _MARK.findall(marks[0])
    if len(uses) < MANY or uses[0][0] not in outlines:
        return marks[0]
    size = 2 * max(abs(float(number)) for number in re.findall(r"-?\d+(?:\.\d+)?", outlines[uses[0][0]]))
    places: dict[str, str] = {}
    for _, x, y, look in uses:
        places[look] = f"{places.get(look, '')}M{x} {y}h0"
    paths = ""
    for look, moves in places.items():
        colours = dict(re.findall(r"(fill|stroke): (#\w+)", look)) or {"fill": "#000000"}  # what SVG takes for granted
        opacity = "".join(re.findall(r"opacity: [\d.]+", look)[:1])
        for part in ("stroke", "fill"):  # a mark with an edge: one dot on another
            if part in colours:
                width = f"{size + (part == 'stroke'):.2f}"
                line = f"stroke: {colours[part]}; stroke-width: {width}; stroke-linecap: round; fill: none; {opacity}"
                paths += f'<path d="{moves}" style="{line}"/>'
    return f'<g clip-path="{marks["clip"]}">{paths}</g>'


def _edited(tag: str, prefix: str) -> str:
    """A tag whose ids have the prefix, colours the names of the page's, numbers two decimals, and text its font."""
    tag = re.sub(r'^<g id="[^"]*"', "<g", tag.replace("xlink:", ""))
    tag = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", tag)
    tag = re.sub(r"(?<=: )#[0-9a-f]{6}", lambda colour: THEME.get(colour[0], colour[0]), tag)
    tag = re.sub(r"font: (?:[\w-]+ )*([\d.]+px) [^;\"]*", r"font-size: \1", tag)
    tag = re.sub(r"font-family: [^;\"]*; ?", "", tag)
    tag = re.sub(r' d="[^"]*"', lambda path: " d=" + re.sub(r"\s*([A-Za-z])\s*", r"\1", path[0][3:]), tag)
    return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag)
