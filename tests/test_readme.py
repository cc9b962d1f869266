"""The README runs from top to bottom as written: every shell and Python block, in order, in one empty folder."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from daskspectral.cli import command

ROOT = Path(__file__).parents[1]
LANGUAGES = ("sh", "python", "text")  # a block of `text` cannot run here: it needs a cluster, say
INSTALL = 'python3.11 -m venv .venv && . .venv/bin/activate && pip install ".[plot]" &&\n'
TESTS = 'python3.11 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/python -m pytest -n 2\n'


class Block(NamedTuple):
    line: int
    language: str
    code: str


def blocks() -> list[Block]:
    """The fenced blocks of the README, in order, each with the number of its first line of code."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    fences = re.finditer(r"^```(\S*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [Block(text.count("\n", 0, m.start(2)) + 1, m[1], m[2]) for m in fences]


def runnable(code: str) -> str:
    """A shell block without its installation, since the package that is tested is installed already, and without the
    command that runs the tests, since that would run this test in itself."""
    return code.replace(INSTALL, "").replace(TESTS, "")


def run_shell(block: Block, folder: Path) -> None:
    """Run a shell block by bash; what it prints is shown where it fails, or warns."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{folder.parent / 'bin'}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail", "-c", runnable(block.code)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,  # on a busy machine
    )
    said = f"README.md:{block.line} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, said
    warned = [line for line in done.stderr.splitlines() if "OPENBLAS_CORETYPE" not in line]  # of some processors
    assert "warning" not in "".join(warned).lower(), said


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


@pytest.mark.slow
def test_the_readme_runs_from_top_to_bottom(folder: Path) -> None:
    reader: dict[str, object] = {"__name__": "__main__"}
    for block in blocks():
        if block.language == "sh":
            run_shell(block, folder)
        elif block.language == "python":
            code = "\n" * (block.line - 1) + block.code
            exec(compile(code, str(ROOT / "README.md"), "exec"), reader)
    assert (folder / "eigenfunctions.png").stat().st_size > 10_000
    values = reader["est"].eigenvalues_  # type: ignore[attr-defined]
    assert values.shape == (16,)
    assert abs(values[0]) < 1e-6
    assert values[1] < 0.03  # two moons: two clusters
    np.testing.assert_allclose(values[2:], [k * k for k in range(1, 8) for _ in range(2)], rtol=0.06)


def test_every_block_of_the_readme_is_of_a_known_language() -> None:
    assert {b.language for b in blocks()} <= set(LANGUAGES)
    assert [b.language for b in blocks()][:2] == ["sh", "sh"]


def test_installation_and_tests_are_one_command_each() -> None:
    first, second = blocks()[:2]
    assert first.code.startswith(INSTALL)
    assert second.code == TESTS
    left = "".join(runnable(b.code) for b in blocks() if b.language == "sh")
    assert "pip" not in left, "an installation that the test does not know"
    assert "pytest" not in left


def test_extras_of_the_readme_are_the_extras_of_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    line = re.search(r"^Extras: (.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert line is not None
    assert set(re.findall(r"`(\w+)`", line[1])) == set(extras)


def test_every_command_is_in_the_readme() -> None:
    named = set(re.findall(r"\bdaskspectral ([a-z]+)\b", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert set(command.commands) <= named, set(command.commands) - named


def test_links_and_pictures_of_the_readmes_exist() -> None:
    readmes = [ROOT / "README.md", *ROOT.glob("examples/**/README.md"), *ROOT.glob("deploy/**/README.md")]
    links = [(f, t) for f in readmes for t in re.findall(r"\]\(([^)]+)\)", f.read_text(encoding="utf-8"))]
    inside = [f.parent / target.partition("#")[0] for f, target in links if "://" not in target]
    assert len(inside) > 20
    assert [path for path in inside if not path.exists()] == []
