"""The worker jobs that are submitted, as the manuals of SLURM and PBS read their scripts."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from tests.deploy.common import DEPLOY

pytest.importorskip("dask_jobqueue", reason="job scripts are written by dask-jobqueue: extra `hpc`")
NEEDED = ["--cores", "4", "--memory", "8GiB", "--checkpoint", "run.checkpoint", "--logs", "logs", "--no-tls"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def fit_of(system: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fit_{system}", DEPLOY / system / "fit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script(system: str, *words: str) -> tuple[str, str | None]:
    """The script of a worker job, and the network of the scheduler."""
    module = fit_of(system)
    import batch

    with module.main.make_context("fit", [*NEEDED, *words, "points.zarr"]) as context:
        options: dict[str, Any] = context.params
        with batch.jobs(module.SYSTEM, options) as cluster:
            return cluster.job_script(), cluster.scheduler_spec["options"].get("interface")


def directives(text: str, prefix: str) -> list[str]:
    """Both systems read the lines at the beginning, before the first command, that begin with their prefix."""
    head = re.split(r"^[^#\n].*$", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [line.removeprefix(prefix + " ") for line in head.splitlines() if line.startswith(prefix)]


def slurm_seconds(time: str) -> int:
    """sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]."""
    days, dash, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    hours, minutes, seconds = {
        (True, 1): lambda h: (h, 0, 0),
        (True, 2): lambda h, m: (h, m, 0),
        (False, 1): lambda m: (0, m, 0),
        (False, 2): lambda m, s: (0, m, s),
    }.get((bool(dash), len(parts)), lambda h, m, s: (h, m, s))(*parts)
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def pbs_seconds(time: str) -> int:
    """pbs_resources(7B), duration: seconds, or [[hours:]minutes:]seconds[.milliseconds]."""
    assert re.fullmatch(r"((\d+:)?\d+:)?\d+(\.\d+)?", time)
    total = 0
    for part in time.split(":"):
        total = 60 * total + int(part)
    return total


@pytest.mark.parametrize("system", ["slurm", "pbs"])
@pytest.mark.parametrize("walltime", ["20", "5:30", "04:00:00", "90:00:00", "1-00:00:00", "2-12", "1-6:30"])
def test_a_walltime_is_the_same_on_each_system_and_workers_end_before_it(
    system: str, walltime: str, folder: Path
) -> None:
    text, _ = script(system, "--walltime", walltime)
    wanted = slurm_seconds(walltime)
    if system == "slurm":
        (found,) = (line.split()[1] for line in directives(text, "#SBATCH") if line.startswith("-t "))
        assert slurm_seconds(found) == wanted
    else:
        (found,) = (line.split("=")[1] for line in directives(text, "#PBS") if line.startswith("-l walltime="))
        assert pbs_seconds(found) == wanted
    lifetime = re.search(r"--lifetime (\d+)s", text)
    assert (lifetime is None) == (wanted < 1200)
    assert lifetime is None or int(lifetime[1]) == wanted - 300


@pytest.mark.parametrize("walltime", ["0", "", "1:2:3:4", "two", "-5", "1.5", "00:00:00"])
def test_a_walltime_that_is_none_is_refused(walltime: str, folder: Path) -> None:
    with pytest.raises(click.BadParameter, match="walltime"):
        script("slurm", f"--walltime={walltime}")


def test_the_script_of_slurm(folder: Path) -> None:
    """Options of sbatch(1); one that is given replaces that of the same name, short or long."""
    logs = f"{folder}/logs/daskspectral-worker-%J"
    wanted = {
        "-J daskspectral-worker", f"-e {logs}.err", f"-o {logs}.out", "-p cpu", "-A abc", "-n 1", "--cpus-per-task=4",
        "--mem=8G", "-t 01:00:00",
    }  # fmt: skip
    words = ["--partition", "cpu", "--account", "abc"]
    assert set(directives(script("slurm", *words)[0], "#SBATCH")) == wanted
    replaced = ["--mem=0", "--time=30", "-c 8", "--qos=low"]
    text, _ = script("slurm", *words, *(f"--directive={one}" for one in replaced), "--skip-directive=-A")
    gone = {"--mem=8G", "-t 01:00:00", "--cpus-per-task=4", "-A abc"}
    found = directives(text, "#SBATCH")
    assert len(found) == len({*found})
    assert {*found} == (wanted - gone) | {*replaced}
    for given, gres in (([], "--gres=gpu:1"), (["--directive=--gres=gpu:a100:1"], "--gres=gpu:a100:1")):
        found = directives(script("slurm", *words, "--device", "cuda", *given)[0], "#SBATCH")
        assert [line for line in found if "gres" in line] == [gres]


def test_the_script_of_pbs(folder: Path) -> None:
    """Options of qsub(1B), resources of pbs_resources(7B): a script has one select and one walltime."""
    wanted = {
        "-N daskspectral-worker", "-q workq", "-A abc", "-l select=1:ncpus=4:mem=8192MB", "-l walltime=01:00:00",
        f"-e {folder}/logs/", f"-o {folder}/logs/",
    }  # fmt: skip
    words = ["--queue", "workq", "--account", "abc"]
    assert set(directives(script("pbs", *words)[0], "#PBS")) == wanted
    chosen = "select=1:ncpus=4:mem=8gb:ngpus=1"
    for given in (["--resource-spec", chosen], [f"--directive=-l {chosen}"]):
        found = directives(script("pbs", *words, *given, "--directive=-l place=excl")[0], "#PBS")
        assert {*found} == wanted - {"-l select=1:ncpus=4:mem=8192MB"} | {f"-l {chosen}", "-l place=excl"}
        assert len(found) == len({*found})


def test_networks_and_folders_of_workers(folder: Path) -> None:
    text, scheduler = script("slurm", "--interface", "lo", "--local-directory", "/tmp/spill")
    assert "--interface lo" in text
    assert "--local-directory /tmp/spill" in text
    assert scheduler == "lo"
    text, scheduler = script("slurm", "--scheduler-interface", "lo")
    assert "--interface" not in text
    assert scheduler == "lo"
