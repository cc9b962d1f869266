"""Build the documentation's pages: the public names, from their docstrings by pdoc, and the gallery.

    python examples/pages/build.py [--out build/pages]

Needs the extra `test` (pdoc). Every warning is an error. The pages ask nothing of the network; open `index.html`.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

try:
    import pdoc.doc
    import pdoc.render
except ImportError:
    sys.exit('the pages are made by pdoc, of the extra `test`: pip install -e ".[test]"')
import click
import pygments
from markupsafe import Markup
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))  # its neighbours

import gallery  # noqa: E402
import names  # noqa: E402
import prose  # noqa: E402

MODULES = {  # in the order of the navigation; the package itself lists what the others document
    "daskspectral": "the package",
    "daskspectral.guides": "beyond the first fit",
    "daskspectral.guides.installing": "what extras bring",
    "daskspectral.guides.fitting": "results, data, options",
    "daskspectral.guides.shell": "the commands",
    "daskspectral.guides.scale": "clusters, stores, long runs",
    "daskspectral.guides.guarantees": "what always holds",
    "daskspectral.spectral": "spectra and functions",
    "daskspectral.regression": "values and gradients",
    "daskspectral.embedding": "coordinates of rows",
    "daskspectral.invariance": "exact symmetry",
    "daskspectral.operators": "what is decomposed",
    "daskspectral.kernels": "functions of two points",
    "daskspectral.basis": "the functions of a fit",
    "daskspectral.landmarks": "where functions sit",
    "daskspectral.manifolds": "spheres, tori, boxes",
    "daskspectral.groups": "symmetries",
    "daskspectral.solvers": "how a solution is sought",
    "daskspectral.forms": "your own operators",
    "daskspectral.model_selection": "splits and scores",
    "daskspectral.plot": "pictures",
    "daskspectral.report": "a model on one page",
    "daskspectral.datasets": "test distributions",
    "daskspectral.moments": "the sums of a fit",
    "daskspectral.solve": "dense problems",
    "daskspectral.store": "files",
    "daskspectral.testing": "checks of your own parts",
    "daskspectral.errors": "errors and warnings",
}


class Written:
    """An annotation as the source has it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def as_written(annotation: Any, *_: Any) -> Any:
    """An annotation that is not resolved: `Array`, not what it stands for."""
    return Written(annotation) if isinstance(annotation, str) else annotation


def import_modules() -> dict[str, pdoc.doc.Module]:
    """The public modules; lazy names of the package are looked up, so that pdoc finds them. Errors are all public."""
    package, errors = (importlib.import_module(name) for name in ("daskspectral", "daskspectral.errors"))
    kinds = {name: thing for name, thing in vars(errors).items() if isinstance(thing, type)}
    errors.__all__ = sorted(name for name, kind in kinds.items() if issubclass(kind, BaseException))
    for name in package.__all__:
        setattr(package, name, getattr(package, name))
    return {name: pdoc.doc.Module(importlib.import_module(name)) for name in MODULES}


@contextmanager
def rendering() -> Iterator[Any]:
    """pdoc's templates, with ours before them, for as long as it lasts; warnings are errors."""
    with (
        warnings.catch_warnings(),
        patch("pdoc.doc.safe_eval_type", as_written),
        patch("pdoc.docstrings.convert", prose.convert),
    ):
        warnings.simplefilter("error")
        pdoc.render.configure(docformat="markdown", show_source=False, template_directory=HERE / "templates")
        environment = pdoc.render.env
        environment.filters |= {
            "linkify": names.linkify,
            "prose": prose.convert,
            "inline": lambda text: Markup(prose.inline(text)),
            "first_paragraph": prose.first_paragraph,
            "python": lambda code: Markup(pygments.highlight(code, PythonLexer(), HtmlFormatter(cssclass="pdoc-code"))),
        }
        yield environment


def build(out: Path, sections: list[gallery.Section] | None = None) -> list[Path]:
    """Write all pages into a folder, which is emptied first; the paths of the pages."""
    sections = gallery.read() if sections is None else sections
    with rendering() as environment:
        modules = import_modules()
        known = names.Names(modules)
        environment.globals |= {
            "names": known,
            "module_titles": MODULES,
            "shown_members": names.shown_members,
            "guides": gallery.GUIDES,
            "version": modules["daskspectral"].obj.__version__,
        }
        if out.exists():
            shutil.rmtree(out)
        out.mkdir(parents=True)
        pages = {f"{name.replace('.', '/')}.html": pdoc.render.html_module(m, modules) for name, m in modules.items()}
        pages |= gallery.render(environment, modules, sections)
        del modules["daskspectral"]  # which lists what the others have
        pages["search.js"] = pdoc.render.search_index(modules)
    for name, text in pages.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    gallery.copy_pictures(out, sections)
    return [out / name for name in pages if name.endswith(".html")]


@click.command(help=__doc__)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=ROOT / "build" / "pages")
def main(out: Path) -> None:
    if out.exists() and any(out.iterdir()) and not (out / "index.html").exists():
        raise click.BadParameter(f"{out} holds something else than pages: choose another folder, or empty it")
    pages = build(out)
    click.echo(f"{len(pages)} pages; open {out / 'index.html'}")


if __name__ == "__main__":
    main()
