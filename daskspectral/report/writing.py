"""The report of a model as a text, and as a file that appears whole or not at all."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from daskspectral.data.remote import Location, stored
from daskspectral.data.writing import write_file
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.summary import environment, summary_of
from daskspectral.moments import Moments
from daskspectral.plot.common import require_matplotlib
from daskspectral.plot.files import refuse_file
from daskspectral.plot.style import figure_of
from daskspectral.report.sections import provenance, sections_of
from daskspectral.report.svg import inlined

ENDINGS = (".html", ".htm")


@stored
def save(
    model: Any,
    path: Location,
    X: Any = None,
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    about: str | None = None,
    settings: str | None = None,
    saved: str | None = None,
) -> None:
    """Write the report of a fitted estimator, or of moments, to a path or URL; it appears whole or not at all.

    `X` are the points of the fit, in any container that `fit` takes: eigenfunctions are then drawn over them. `about`,
    `settings`, `saved` and `storage_options` are as in `render` and `daskspectral.save`. Raises as `render` and
    `refuse_report` do.
    """
    refuse_report(path, overwrite)
    write_file(path, render(model, X, about=about, settings=settings, saved=saved).encode("utf-8"))


@stored
def render(
    model: Any,
    X: Any = None,
    *,
    about: str | None = None,
    settings: str | None = None,
    saved: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """The report of a fitted estimator, or of moments, as one self-contained HTML text.

    `about` names the model below the title, `settings` are those kept beside it, as YAML, and `saved` is the version
    that wrote it. Raises ImportError without matplotlib, TypeError for what is no model of daskspectral, sklearn's
    NotFittedError before `fit`, and ValueError for X with other columns than at the fit.
    """
    require_matplotlib()
    if not isinstance(model, (Estimator, Moments)):
        raise TypeError(f"a report is of a fitted estimator of daskspectral or of moments; got {type(model).__name__}")
    import markupsafe

    head = summary_of(model)
    sections = [*sections_of(model, X, head), provenance(model, head, about=about, settings=settings, saved=saved)]
    drawn = {
        section.name: [
            # the one text that is not escaped again: what is in it is escaped already
            markupsafe.Markup(inlined(figure_of(picture.axes), f"{section.name}-{number}-", picture.alt))
            for number, picture in enumerate(section.pictures)
        ]
        for section in sections
    }
    version = importlib.import_module("daskspectral").__version__
    template = environment().get_template("report.html")
    return str(template.render(head=head, sections=sections, drawn=drawn, about=about or "", version=version))


def refuse_report(path: Location, overwrite: bool) -> None:
    """Raise an error for a report that could not be written, before the work is done that it would show.

    Raises ImportError without matplotlib, ValueError for another ending than .html or .htm, FileExistsError for a path
    that exists (with `overwrite`: and is not a file), and another OSError for a folder that cannot be written.
    """
    require_matplotlib()
    refuse_file(path, ENDINGS, overwrite, what="a report")
