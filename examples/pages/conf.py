"""Sphinx's settings for the documentation.

python -m sphinx -W --keep-going examples/pages build/pages

Needs the extra `docs`. Names of other packages are links if their inventories can be reached.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import daskspectral

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples"
TEXTS = {
    "README.md": "readme",
    "CHANGELOG.md": "changelog",
    "deploy/README.md": "deploy",
    "examples/README.md": "numbers",
    "examples/benchmarks/README.md": "benchmarks",
    ".github/CONTRIBUTING.md": "contributing",
}
SECTIONS = {
    "": """Gallery
=======

Complete programs, from data to an answer that is compared with an independent one. Their pictures are shown here.
""",
    "paper": """Figures of the papers
---------------------

Figures and tables of the three papers, with the published numbers for comparison.
""",
}

project = "daskspectral"
author = copyright = "the daskspectral developers"
version = release = daskspectral.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["scripts", "texts/readme.md"]
default_role = "autolink"
html_theme = "pydata_sphinx_theme"
html_title = f"daskspectral {release}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "navbar_align": "left"}
html_sidebars = {"index": []}
suppress_warnings = ["config.cache"]  # functions in settings cannot be pickled

autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True


def own_names(module: str) -> list[str]:
    """Return the public names of a module without those that another documented module defines."""
    loaded = importlib.import_module(module)
    others = re.findall(r"(?m)^   ([a-z_]+)$", (HERE / "api" / "index.md").read_text(encoding="utf-8"))
    others = [f"daskspectral.{name}." for name in others if f"daskspectral.{name}" != module]
    homes = {
        name: f"{getattr(getattr(loaded, name), '__module__', module)}." for name in getattr(loaded, "__all__", ())
    }
    return [name for name, home in homes.items() if not home.startswith(tuple(others))]


autosummary_context = {"own_names": own_names}
templates_path = ["templates"]
autodoc_typehints = "none"  # types are in the sections of the docstrings
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3


def collect_scripts() -> None:
    """Copy the scripts whose docstrings have an underlined title to the folder from which the gallery is made."""
    for old in ("scripts", "gallery", "api/generated"):  # pages of names that are gone
        shutil.rmtree(HERE / old, ignore_errors=True)
    for section, header in SECTIONS.items():
        folder = HERE / "scripts" / section
        folder.mkdir(parents=True)
        (folder / "GALLERY_HEADER.rst").write_text(header, encoding="utf-8")
        for path in sorted((EXAMPLES / section).glob("*.py")):
            if re.match(r'"""(.+)\n=+\n', path.read_text(encoding="utf-8")):
                shutil.copyfile(path, folder / path.name)


def collect_texts() -> None:
    """Copy the repository's texts, with links to each other, to their pages or else to no place."""
    (HERE / "texts").mkdir(exist_ok=True)
    for path, name in TEXTS.items():

        def linked(match: re.Match[str], folder: Path = (ROOT / path).parent) -> str:
            mark, text, target, anchor = match.groups()
            if not target or "://" in target:
                return match[0]
            place = Path(os.path.normpath(folder / target)).relative_to(ROOT)
            if mark:
                return f"![{text}](/../../{place.as_posix()})"
            if place.suffix == ".png":
                return text
            if (ROOT / place).is_dir():
                place /= "README.md"
            if place.as_posix() in TEXTS:
                return f"[{text}](/texts/{TEXTS[place.as_posix()]}.md{anchor or ''})"
            script = place.relative_to("examples") if place.is_relative_to("examples") else place
            return f"[{text}](/gallery/{script.with_suffix('')}.rst)" if (HERE / "scripts" / script).is_file() else text

        text = (ROOT / path).read_text(encoding="utf-8")
        text = re.sub(r"(!?)\[([^\]]*)\]\(([^)#]*)(#[^)]*)?\)", linked, text)
        (HERE / "texts" / f"{name}.md").write_text(text, encoding="utf-8")


collect_scripts()
collect_texts()
sphinx_gallery_conf = {
    "examples_dirs": ["scripts"],
    "gallery_dirs": ["gallery"],
    "plot_gallery": False,  # the pictures are those that the scripts drew at full size
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
}


def reachable(url: str) -> bool:
    """Return whether the inventory of a documentation can be read."""
    try:
        with urllib.request.urlopen(f"{url}objects.inv", timeout=3) as answer:
            return bool(answer.read(16))
    except OSError:
        return False


INVENTORIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "sklearn": "https://scikit-learn.org/stable/",
    "xarray": "https://docs.xarray.dev/en/stable/",
    "dask": "https://docs.dask.org/en/stable/",
}
intersphinx_mapping = {name: (url, None) for name, url in INVENTORIES.items() if reachable(url)}


def marked_up(text: str) -> str:
    """Return a piece of plain text in reStructuredText: code as literal, bars and final underscores as characters."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", text)
    for k, piece in enumerate(pieces):
        if k % 2 == 0:
            pieces[k] = re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", piece)
        elif not re.fullmatch(r"``.*``|`[\w.]+`", piece):
            pieces[k] = f"`{piece}`"
    return "".join(pieces)


def written_for_help(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Mark up the text of `help`: blocks of modules as literal, bars and final underscores as characters."""
    runs: list[tuple[bool, list[str]]] = []
    literal = False
    for line in lines:
        indented = not line.strip() or line.startswith("    ")
        literal = indented and (literal or what == "module")
        plain = not (literal or re.search(r"\S {2,}\S", line) or line.lstrip().startswith(">>>"))
        if not runs or runs[-1][0] != plain:
            runs.append((plain, []))
        runs[-1][1].append(line)
        literal = literal or line.endswith("::")
    lines[:] = [line for plain, run in runs for line in (marked_up("\n".join(run)).split("\n") if plain else run)]
    if what != "module":
        return
    for i in range(len(lines) - 2, -1, -1):
        block = next((line for line in lines[i + 1 :] if line.strip()), "")
        if lines[i].strip() and not lines[i + 1].strip() and not lines[i].startswith("    ") and block[:4] == "    ":
            lines[i + 1 : i + 1] = [] if lines[i].endswith("::") or ">>>" in block else ["", "::"]


def without_routing(app: object, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out scikit-learn's methods for metadata routing and outputs."""
    return True if name.endswith(("_request", "_metadata_routing", "set_output")) else None


def with_pictures(app: object, docname: str, source: list[str]) -> None:
    """Show the pictures of a script under the title of its page."""
    script = EXAMPLES / f"{docname.removeprefix('gallery/')}.py"
    if docname.startswith("gallery/") and script.exists():
        names = dict.fromkeys(re.findall(r"\w+\.png", script.read_text(encoding="utf-8")))
        shown = [name for name in names if (EXAMPLES / "pictures" / name).exists()]
        up = "../" * docname.count("/") + "../pictures/"
        images = "".join(f"\n.. image:: {up}{name}\n" for name in shown)
        source[0] = re.sub(r"(?m)^(=+)\n(.+)\n(=+)$|^(.+)\n(==+)$", lambda m: m[0] + "\n" + images, source[0], count=1)


def setup(app: Any) -> None:
    """Connect what is above to Sphinx's events."""
    app.connect("autodoc-process-docstring", written_for_help, priority=100)
    app.connect("autodoc-skip-member", without_routing)
    app.connect("source-read", with_pictures)
