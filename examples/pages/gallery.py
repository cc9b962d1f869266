"""The gallery: which scripts it shows, their pictures and numbers, and the pages made of them.

`gallery.yaml` says what is shown, `numbers.json` what the scripts gave at their default size (`record.py` writes it).
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import pdoc.doc
import yaml
from markupsafe import Markup
from pdoc.render_helpers import to_html

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PICTURES = ROOT / "examples" / "pictures"
LINES = 360
GUIDES = (
    ("Fitting", "daskspectral/guides/fitting.html"),
    ("In a shell", "daskspectral/guides/shell.html"),
    ("At scale", "daskspectral/guides/scale.html"),
    ("Installing on a cluster", "clusters.html"),
    ("Choosing an operator", "daskspectral/operators.html#choosing-an-operator"),
    ("Writing a kernel", "daskspectral/kernels.html#writing-a-kernel"),
    ("Writing a form", "daskspectral/forms.html"),
    ("Reading the report", "daskspectral/report.html#reading-the-report"),
    ("Drawing pictures", "daskspectral/plot.html"),
    ("How the code is built", "daskspectral.html#how-to-work-on-it"),
    ("Changing it", "daskspectral.html#how-to-add-to-it"),
    ("Testing it", "daskspectral.html#how-to-test-it"),
)
READMES = {"README.md": "index.html", "examples/README.md": "gallery.html", "deploy/README.md": "clusters.html"}


@dataclass
class Entry:
    """A script of the gallery with its arguments, and what it gave."""

    name: str
    script: str
    picture: str
    arguments: str = ""
    function: str = ""  # whose docstring is shown, where a script draws several figures
    title: str = ""
    data: str = ""  # what is taken without data that the package does not bring
    whole: str = ""  # the options and the time of the committed picture, where it takes longer than the run
    numbers: dict[str, Any] = field(default_factory=dict)
    table: str = ""  # Markdown, of scripts that print one
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.title = self.title or self.paragraphs[0].rstrip(".").partition(":")[0]

    @property
    def command(self) -> str:
        return f"python {self.script} {self.arguments}".strip()

    @cached_property
    def source(self) -> str:
        return (ROOT / self.script).read_text(encoding="utf-8")

    @cached_property
    def docstring(self) -> str:
        """Of the script, or of its function, read and not run; without the lines that tell the command."""
        tree = ast.parse(self.source)
        own = ast.get_docstring(tree) or ""
        if self.function:
            (found,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == self.function)
            own = f"{ast.get_docstring(found)}\n\n{own}"
        return own

    @property
    def paragraphs(self) -> list[str]:
        return [" ".join(one.split()) for one in self.docstring.split("\n\n")]

    @property
    def caption(self) -> str:
        return self.paragraphs[0].replace('"', "'")

    @property
    def about(self) -> str:
        """The first lines of the docstring: what it is, and whole sentences after it, up to `LINES` characters."""
        if self.function:
            return self.paragraphs[0]
        said, *sentences = [self.paragraphs[0], *re.split(r"(?<=[.]) (?=[A-Z])", self.paragraphs[1])]
        for sentence in sentences:
            if len(said) + len(sentence) > LINES:
                break
            said += f" {sentence}"
        return said

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture in pixels, from the header of the PNG file."""
        with open(PICTURES / self.picture, "rb") as file:
            width, height = struct.unpack(">II", file.read(24)[16:])
        return width, height


@dataclass
class Section:
    """Examples that belong together."""

    title: str
    entries: list[Entry]
    about: str = ""

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


def read() -> list[Section]:
    """The sections of the gallery, with the numbers that were recorded."""
    recorded = json.loads((HERE / "numbers.json").read_text(encoding="utf-8"))
    sections = yaml.safe_load((HERE / "gallery.yaml").read_text(encoding="utf-8"))
    return [
        Section(
            one["title"],
            [Entry(**{**entry, **recorded.get(entry["name"], {})}) for entry in one["entries"]],
            one.get("about", ""),
        )
        for one in sections
    ]


def render(
    environment: jinja2.Environment, modules: Mapping[str, pdoc.doc.Module], sections: list[Section]
) -> dict[str, str]:
    """The pages of the gallery and of the readmes, by their paths."""
    shared: dict[str, Any] = {"sections": sections, "all_modules": modules}
    pages = {"gallery.html": environment.get_template("gallery.html.jinja2").render(**shared, here="gallery")}
    for entry in (entry for section in sections for entry in section.entries):
        template = environment.get_template("example.html.jinja2")
        pages[f"gallery/{entry.name}.html"] = template.render(**shared, entry=entry, root="../", here="gallery")
    for readme, page in READMES.items():
        if page in pages:
            continue
        text = readme_html(ROOT / readme)
        titles = re.findall(r'<h2 id="([^"]*)">(.*?)</h2>', text)
        pages[page] = environment.get_template("text.html.jinja2").render(
            **shared,
            title="Start" if page == "index.html" else "Clusters",
            here=page.removesuffix(".html"),
            text=Markup(text),
            contents=[(Markup(title), anchor) for anchor, title in titles],
        )
    return pages


def readme_html(path: Path) -> str:
    """A readme as HTML, with links to pages, pictures of the gallery, and no link to what the pages do not have."""
    text = to_html(path.read_text(encoding="utf-8"))

    def linked(match: re.Match[str]) -> str:
        target, anchor = match[1].partition("#")[::2]
        if "://" in target:
            return match[0]
        if not target:
            return match[0]
        place = (path.parent / target).resolve().relative_to(ROOT)
        if place.is_relative_to("examples/pictures"):
            return f'<a href="pictures/{place.name}">{match[2]}</a>'
        if place.is_dir() or (ROOT / place).is_dir():
            place /= "README.md"
        page = READMES.get(place.as_posix())
        if place.suffix == ".py" and place.parts[0] == "daskspectral":
            module = place.with_suffix("").as_posix().removesuffix("/__init__")
            page = f"{module}.html" if module.count("/") < 2 or "/guides/" in module else None
        return f'<a href="{page}{"#" * bool(anchor)}{anchor}">{match[2]}</a>' if page else match[2]

    text = re.sub(r'<a href="([^"]*)">(.*?)</a>', linked, text, flags=re.DOTALL)
    return re.sub(r'<img src="(?:[^"]*/)?pictures/([^"/]*)"', r'<img src="pictures/\1"', text)


def copy_pictures(out: Path, sections: list[Section]) -> None:
    """Copy the pictures that pages show."""
    folder = out / "pictures"
    folder.mkdir(parents=True)
    shown = {entry.picture for section in sections for entry in section.entries}
    for page in READMES.values():
        if (out / page).exists():
            shown |= set(re.findall(r'(?:src|href)="pictures/([^"]*)"', (out / page).read_text(encoding="utf-8")))
    for name in sorted(shown):
        shutil.copyfile(PICTURES / name, folder / name)
