"""What `fit` and `info` print."""

import re
from typing import Any

import numpy as np

import daskspectral as dsp
from daskspectral.estimators.summary import summary_of

RNG = np.random.default_rng(0)


def fitted(x: Any, n_components: int = 7, scale: float = 0.4, **options: Any) -> dsp.SpectralDecomposition:
    landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(scale), 40)
    return dsp.SpectralDecomposition(basis=landmarks, n_components=n_components, random_state=0, **options).fit(x)


def describe(what: Any, *, details: bool = False) -> str:
    return summary_of(what).text(details=details)


def table(text: str) -> tuple[list[str], list[list[str]]]:
    """The titles of the columns, and the cells of each row by the places of the titles."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if re.match(r" +i  ", line))
    ends = [m.end() for m in re.finditer(r"\S+(?: \S+)*", lines[head])]
    every = [lines[head], *(line for line in lines[head + 1 :] if re.match(r" +\d+  ", line))]
    titles, *rows = [[line[a:b].strip() for a, b in zip([0, *ends], ends, strict=False)] for line in every]
    return titles, rows


def test_the_columns_are_what_the_model_knows() -> None:
    model = fitted(RNG.random((3000, 2)))
    titles, rows = table(describe(model))
    assert titles == ["i", "eigenvalue", "+-", "held-out", "group", "trusted"]
    np.testing.assert_allclose([float(row[1]) for row in rows], model.eigenvalues_, rtol=1e-5)
    np.testing.assert_allclose([float(row[3]) for row in rows], model.held_out_, rtol=1e-5, atol=1e-9)
    for i, row in enumerate(rows):
        value, ends = model.eigenvalues_[i], model.eigenvalue_errors_[i]
        shown = [float(part) for part in row[2].split()]
        halves = ends - value if len(shown) == 2 else [(ends[1] - ends[0]) / 2]
        np.testing.assert_allclose(shown, halves, rtol=0.06, atol=1e-12)
        members = np.flatnonzero(model.groups_ == model.groups_[i])
        assert row[4] == (f"{members[0]}-{members[-1]}" if len(members) > 1 else "")
        assert row[5] == ("constant" if i < model.constants_ else "yes" if model.trusted_[i] else "")
    assert any(row[4] for row in rows)  # pi^2 times 0, 1, 1, 2, 4, 4, 5
