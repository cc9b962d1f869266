"""A matplotlib figure as SVG inside a page: text as text, ids of its own, colours that follow the page's theme."""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING, Any
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
_UNPRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")  # which XML does not hold
_NUMBER = re.compile(r"-?\d+\.\d+")


def inlined(figure: Figure, prefix: str, alt: str) -> str:
    """The figure as an `svg` element with `alt` as its accessible name; `prefix` makes its ids unlike others'."""
    import matplotlib as mpl
    from matplotlib.text import Text

    for label in figure.findobj(Text):
        label.set_parse_math(False)  # a name from the data is no formula
        label.set_text(_UNPRINTED.sub(" ", label.get_text()))
    drawn = io.BytesIO()
    for artist in figure.findobj(lambda artist: bool(artist.get_rasterized())):
        artist.set_rasterized(False)  # an image would keep the colours of a light page
    look: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "daskspectral", "path.simplify_threshold": 0.3}
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # text stays text, and the page has other fonts
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
        if "z" not in _outline(root, uses[0]):
            continue  # a tick is no dot
        clip = next((child.get("clip-path") for child in group.iter() if child.get("clip-path")), None)
        inner = 2 * _radius(root, uses[0])
        outer = inner if scattered else inner + 1.0  # a mark with an edge: one dot on another
        places: dict[str, list[str]] = {}
        for use in uses:
            look = use.get("style", "")
            opacity = re.search(r"opacity: ([\d.]+)", look)
            seen = f"{f'stroke-opacity: {opacity[1]}; ' if opacity else ''}stroke-linecap: round; fill: none"
            inside, edge = (re.search(rf"{part}: (#[0-9a-f]{{6}})", look) for part in ("fill", "stroke"))
            dotted = [(colour[1], wide) for colour, wide in ((edge, outer), (inside, inner)) if colour is not None]
            for colour, wide in dotted[-1:] if scattered else dotted:
                mark = f"stroke: {colour}; stroke-width: {wide:.2f}; {seen}"
                places.setdefault(mark, []).append(f"M{_at(use, 'x')} {_at(use, 'y')}h0")
        for child in [child for child in group if child.tag in (f"{SVG}use", f"{SVG}g")]:
            group.remove(child)
        for drawn, moves in places.items():
            path = ElementTree.SubElement(group, f"{SVG}path", {"d": "".join(moves), "style": drawn})
            if clip is not None and scattered:
                path.set("clip-path", clip)


def _radius(root: Element, use: Element) -> float:
    """The radius of a mark, from its path about 0."""
    return max((abs(float(n)) for n in re.findall(r"-?\d+(?:\.\d+)?", _outline(root, use))), default=1.0)


def _outline(root: Element, use: Element) -> str:
    """The path of a mark."""
    name = use.get(f"{XLINK}href", "").removeprefix("#")
    return next((p.get("d", "") for p in root.iter(f"{SVG}path") if p.get("id") == name), "")


def _at(use: Element, name: str) -> str:
    return _NUMBER.sub(_short, use.get(name, "0"))
