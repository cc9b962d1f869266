"""The README runs from top to bottom as written, then the guide to the command, in one empty folder."""

import doctest
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.metrics import adjusted_rand_score

import daskspectral as dsp
from daskspectral.cli import command, main

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "examples/pages/guide"
INSTALL = 'python3.11 -m venv .venv && . .venv/bin/activate && pip install ".[plot]" &&\n'
TESTS = 'python3.11 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/python -m pytest -n 2\n'


def blocks() -> list[tuple[int, str, str]]:
    """The fenced blocks of the README: the number of the first line of code, the language, and the code."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    fences = re.finditer(r"^```(\S*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, m.start(2)) + 1, m[1], m[2]) for m in fences]


def run_shell(line: int, code: str, folder: Path) -> None:
    """Run a shell block by bash; what it prints is shown where it fails, or warns.

    The package is installed already, and the command that runs the tests would run this test in itself.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{folder.parent / 'bin'}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail", "-c", code.replace(INSTALL, "").replace(TESTS, "")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,  # on a busy machine
    )
    said = f"README.md:{line} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, said
    assert "warning" not in done.stderr.lower(), said


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in; the command `daskspectral` is that of this checkout."""
    command = tmp_path / "bin" / "daskspectral"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m daskspectral.cli "$@"\n')
    command.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def reader(folder: Path) -> dict[str, Any]:
    """The names that the Python blocks leave behind, `models` the model of each of them."""
    reader: dict[str, Any] = {"__name__": "__main__", "models": []}
    for line, language, code in blocks():
        if language == "sh":
            run_shell(line, code, folder)
            reader["points"] = zarr.open_array("points.zarr")[:]
        elif language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("error", dsp.FitWarning)  # a recipe gives what can be trusted
                warnings.simplefilter("error", dsp.ReliabilityWarning)
                exec(compile("\n" * (line - 1) + code, str(ROOT / "README.md"), "exec"), reader)
            reader["models"].append(reader["model"])
    return reader


@pytest.mark.slow
def test_the_readme_runs_from_top_to_bottom(
    reader: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    values = dsp.load(folder / "model.zarr").eigenvalues_
    found = [*values[:6], *values[-2:]]
    text = " ".join(text.split())
    stated = re.search(r"\((\S+) separates.*?along them, (\S+), (\S+), (\S+), (\S+), ..., (\S+), (\S+) for", text)
    assert stated is not None
    np.testing.assert_allclose(found[1:], [float(number) for number in stated.groups()], rtol=0.01)
    np.testing.assert_allclose(values[2:], [k * k for k in range(1, 8) for _ in range(2)], rtol=0.06)

    clusters, field, moves, _, moons = reader["models"]
    assert adjusted_rand_score(reader["diagnosis"], clusters.labels_) > 0.75
    np.testing.assert_allclose(field.explained_variance_ratio_, [0.42, 0.07], atol=0.01)
    one = reader["found"].components[0]
    true = 1.5 * np.exp(-((one.lat / 15) ** 2) - ((one.lon - 220) / 40) ** 2)
    assert float(abs(xr.corr(one, true))) > 0.99
    weighed = reader["own"].eigenvalues_  # of a double well with the potential x^2
    assert 0 < weighed[0] < weighed[1] < weighed[2]
    np.testing.assert_allclose(moves.timescales_[:, 0], 84, rtol=0.03)
    np.testing.assert_allclose(reader["sets"].probabilities, 0.5, atol=0.05)
    np.testing.assert_array_equal(
        zarr.open_array(folder / "functions.zarr" / "eigenfunction")[:50], moons.transform(reader["points"])[:50]
    )
    for name in ("eigenfunctions", "clusters", "maps", "timescales"):
        assert (folder / f"{name}.png").stat().st_size > 5_000

    np.save("x.npy", reader["points"][:1000]), np.save("y.npy", np.sin(reader["points"][:1000, :1]))
    zarr.open_array("points.zarr").append(reader["points"][:1000])  # more rows have come
    commands = re.findall(r"^daskspectral (.*)$", (GUIDE / "command.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) > 10
    for one in commands:  # in this process: each of its own would import everything anew
        main(shlex.split(one))
        assert "warning" not in capsys.readouterr().err.lower(), one


def test_documented_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (GUIDE / "installing.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == set(extras)


def test_every_command_is_in_the_guide() -> None:
    named = set(re.findall(r"\bdaskspectral ([a-z]+)\b", (GUIDE / "command.md").read_text(encoding="utf-8")))
    assert set(command.commands) <= named, set(command.commands) - named


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda path: path.stem)
def test_examples_of_the_guide_return_what_is_printed(page: Path) -> None:
    code = "".join(re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    examples = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(optionflags=flags).run(examples).failed == 0


def test_links_and_pictures_of_the_readmes_exist() -> None:
    readmes = [
        ROOT / "README.md",
        *GUIDE.glob("*.md"),
        *ROOT.glob("examples/**/README.md"),
        *ROOT.glob("deploy/**/README.md"),
    ]
    links = [(f, t) for f in readmes for t in re.findall(r"\]\(([^)]+)\)", f.read_text(encoding="utf-8"))]
    inside = [f.parent / target.partition("#")[0] for f, target in links if "://" not in target]
    assert len(inside) > 20
    assert [path for path in inside if not path.exists()] == []
