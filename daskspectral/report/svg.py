"""A matplotlib figure as SVG inside a page: text as text, ids of its own, colours that follow the page's theme."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from daskspectral.plot import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
NAMED = {
    "paper": style.PAPER,
    "ink": style.INK,
    "muted": style.MUTED,
    "line": style.LINE,
    "faint": style.FAINT,
    "cloud": style.CLOUD,
    **{f"series-{i}": colour for i, colour in enumerate(style.SERIES)},
    **{f"diverging-{i}": colour for i, colour in enumerate(style.DIVERGING)},
    **{f"sequential-{i}": colour for i, colour in enumerate(style.SEQUENTIAL)},
}
"""The page's custom properties, and the colours that they stand for in a figure."""
_VARIABLES = {colour: f"var(--{name})" for name, colour in NAMED.items()}
_OTHERS = {"#000000": "var(--ink)", "#262626": "var(--contour)"}  # matplotlib's own black; lines between bands
MANY = 30  # marks of one kind, from which on they are drawn as one path
_NUMBER = re.compile(r"-?\d+\.\d+")


def inlined(figure: Figure, prefix: str, alt: str) -> str:
    """The figure as an `svg` element with `alt` as its accessible name; `prefix` makes its ids unlike others'."""
    import matplotlib as mpl
    from matplotlib.text import Text

    for label in figure.findobj(Text):
        label.set_parse_math(False)  # a name from the data is no formula
    drawn = io.BytesIO()
    for artist in figure.findobj(lambda artist: bool(artist.get_rasterized())):
        artist.set_rasterized(False)  # an image would keep the colours of a light page
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "daskspectral", "path.simplify_threshold": 0.3}):
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    ElementTree.register_namespace("", SVG[1:-1])
    root = ElementTree.fromstring(drawn.getvalue())
    for parent in list(root.iter()):  # the style sheet would be the whole page's
        for child in [*parent.findall(f"{SVG}metadata"), *parent.findall(f"{SVG}style")]:
            parent.remove(child)
    _merge_points(root)
    _edit(root, prefix)
    for name in ("width", "height", "version", "id"):
        root.attrib.pop(name, None)
    root.set("style", "stroke-linejoin: round")
    root.set("role", "img")
    root.set("aria-label", alt)
    text = ElementTree.tostring(root, encoding="unicode")
    # a page knows SVG without a namespace, and has links without a prefix
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    return re.sub(r"\bns\d+:", "", text).replace("xlink:href", "href")


def _edit(root: Element, prefix: str) -> None:
    """Give ids a prefix, colours the names of the page's, numbers two decimals, and text the page's font."""
    used = {
        found
        for element in root.iter()
        for value in element.attrib.values()
        for found in re.findall(r"#([\w-]+)", value)
    }
    for element in root.iter():
        link = element.attrib.pop(f"{XLINK}href", None)
        if link is not None:
            element.set("href", f"#{prefix}{link.removeprefix('#')}")
        identity = element.get("id")
        if identity is not None:
            if identity in used:
                element.set("id", prefix + identity)
            else:
                del element.attrib["id"]
        for name, value in element.attrib.items():
            edited = re.sub(r"url\(#", f"url(#{prefix}", value)
            if name in ("style", "fill", "stroke"):
                edited = _themed(edited)
            if name in ("d", "transform", "x", "y", "points"):
                edited = _NUMBER.sub(_short, edited)
            if name == "d":
                edited = re.sub(r"\s*([A-Za-z])\s*", r"\1", edited)
            element.set(name, edited)


def _themed(text: str) -> str:
    text = re.sub(r"#[0-9a-f]{6}", lambda found: _VARIABLES.get(found[0], _OTHERS.get(found[0], found[0])), text)
    text = re.sub(r"font: (?:[\w-]+ )*([\d.]+px) [^;]*", r"font-size: \1", text)
    return re.sub(r"font-family: [^;]*; ?", "", text)


def _short(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _merge_points(root: Element) -> None:
    """Put many marks of one kind in one path for each colour: a dot is a line of no length with round ends."""
    for group in list(root.iter(f"{SVG}g")):
        scattered = group.get("id", "").startswith("PathCollection")
        uses = list(group.iter(f"{SVG}use")) if scattered else group.findall(f"{SVG}use")
        if not uses or (len(uses) < MANY and not scattered):
            continue
        clip = next((child.get("clip-path") for child in group.iter() if child.get("clip-path")), None)
        width = f"stroke-width: {2 * _radius(root, uses[0]):.2f}; stroke-linecap: round; fill: none"
        places: dict[str, list[str]] = {}
        for use in uses:
            look = use.get("style", "")
            colour = re.search(r"(?:fill|stroke): (#[0-9a-f]{6})", look)
            opacity = re.search(r"opacity: ([\d.]+)", look)
            if colour is not None:
                drawn = f"stroke: {colour[1]}; {f'stroke-opacity: {opacity[1]}; ' if opacity else ''}{width}"
                places.setdefault(drawn, []).append(f"M{_at(use, 'x')} {_at(use, 'y')}h0")
        for child in [child for child in group if child.tag in (f"{SVG}use", f"{SVG}g")]:
            group.remove(child)
        for drawn, moves in places.items():
            path = ElementTree.SubElement(group, f"{SVG}path", {"d": "".join(moves), "style": drawn})
            if clip is not None and scattered:
                path.set("clip-path", clip)


def _radius(root: Element, use: Element) -> float:
    """The radius of a mark, from its path about 0."""
    name = use.get(f"{XLINK}href", "").removeprefix("#")
    path = next((p for p in root.iter(f"{SVG}path") if p.get("id") == name), None)
    numbers = [] if path is None else [abs(float(n)) for n in re.findall(r"-?\d+(?:\.\d+)?", path.get("d", ""))]
    return max(numbers, default=1.0)


def _at(use: Element, name: str) -> str:
    return _NUMBER.sub(_short, use.get(name, "0"))
