"""What a cluster is told of a fit: the names and spans of its tasks, and events with what the bar shows."""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask.utils import key_split
from distributed import Client, Future, LocalCluster, progress, span
from tqdm import tqdm

import daskspectral as dsp
from daskspectral.data.source import open_source
from daskspectral.engine import Plan, Run
from daskspectral.engine import plan as planning
from daskspectral.engine import progress as bars
from daskspectral.engine.progress import Progress
from daskspectral.engine.sampling import Scan
from daskspectral.engine.scheduler import active_report

N = 3000
X = np.random.default_rng(6).standard_normal((N, 2))


@pytest.fixture(autouse=True)
def _many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EPOCH", 2), ("TASK_FLOPS", 1e6), ("LEAST_FLOPS", 1e6)):
        monkeypatch.setattr(planning, name, value)


def model(**changes: Any) -> dsp.SpectralDecomposition:
    settings = {"kernel": dsp.kernels.Gaussian(1.0), "n_landmarks": 15, "n_components": 4, "random_state": 0}
    return dsp.SpectralDecomposition(**(settings | changes))


def spans_within(cluster: LocalCluster, outer: str) -> dict[str, set[str]]:
    """Of each stage within a span: the prefixes of its tasks."""
    found: dict[str, set[str]] = {}
    for one in cluster.scheduler.extensions["spans"].spans.values():
        if one.name[:2] == (outer, "daskspectral") and len(one.name) == 3:
            found.setdefault(one.name[2], set()).update(key_split(group.name) for group in one.groups)
    return {stage: prefixes - {"shared", "state"} for stage, prefixes in found.items()}


def test_tasks_and_stages_have_names(cluster: LocalCluster, client: Client, tmp_path: Path) -> None:
    with span("names"):
        fitted = model(standardize=True).fit(X)
        fitted.transform(X, out=tmp_path / "functions.zarr")
    assert spans_within(cluster, "names") == {
        "standardize": {"standardize", "tree"},
        "landmarks": {"landmarks", "collect"},
        "fit": {"sums", "tree"},
        "transform": {"apply", "collect"},
    }


def test_the_passes_of_one_stage_are_one_span(cluster: LocalCluster, client: Client) -> None:
    source = open_source(X)
    run = Run(source, Plan(((0, 1000), (1000, N))), description="again")
    with span("passes"):
        for _ in range(3):
            run.reduce(Scan())
    scheduler: Any = cluster.scheduler
    spans = [s for s in scheduler.extensions["spans"].spans.values() if s.name == ("passes", "daskspectral", "again")]
    assert len(spans) == 1
    assert len([g for g in spans[0].groups if g.prefix.name == "tree"]) == 3


def test_lazy_functions_are_named_too() -> None:
    functions = model().fit(X).transform(da.from_array(X, chunks=(1000, 2)))
    assert "apply" in {key_split(key) for key in functions.dask}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Of every bar that was closed: what it was of, its total, and how far it came."""
    closed: list[tuple[str, int, int]] = []

    class Recorded(tqdm):
        def close(self) -> None:
            if not self.disable:
                closed.append((self.desc, self.total, self.n))
            super().close()

    monkeypatch.setattr(bars, "tqdm", lambda **options: Recorded(**{**options, "file": io.StringIO()}))
    return closed


def events(client: Client) -> list[dict[str, Any]]:
    return [event for _, event in client.get_events("daskspectral")]


def test_events_tell_what_the_bar_shows(
    client: Client, shown: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars, "REPORTED", 0.0)
    before = len(events(client))
    model(standardize=True).fit(X, progress=True)
    told = events(client)[before:]
    assert [(e["stage"], e["total"], e["done"]) for e in told if e["state"] == "finished"] == shown
    assert [name for name, *_ in shown] == ["standardize", "landmarks", "fit"]
    for number in {e["run"] for e in told}:
        of_one = [e for e in told if e["run"] == number]
        assert [e["state"] for e in of_one[:1] + of_one[-1:]] == ["started", "finished"]
        assert {e["state"] for e in of_one[1:-1]} == {"running"}
        done = [e["done"] for e in of_one]
        assert done == sorted(done)
        assert done[0] == 0
        seconds = [e["seconds"] for e in of_one]
        assert seconds == sorted(seconds)
    fits = [e["done"] for e in told if e["stage"] == "fit"]
    assert len(set(fits)) > 2  # from epoch to epoch
    before = len(events(client))
    model().fit(X, progress=False)  # no bar, and the same events
    assert {e["stage"] for e in events(client)[before:]} == {"landmarks", "fit"}


def test_a_run_that_fails_says_so(client: Client) -> None:
    broken = X.copy()
    broken[2500, 0] = np.inf
    before = len(events(client))
    with pytest.raises(dsp.InvalidRowError, match="row 2500"):
        model(landmarks=X[:15]).fit(broken)
    last = events(client)[before:][-1]
    assert (last["stage"], last["state"], last["error"]) == ("fit", "failed", "InvalidRowError")


def test_work_on_the_driver_is_told_with_what_stands_beside_the_bar(client: Client) -> None:
    before = len(events(client))
    with Progress(40, "training", False, "steps", active_report()) as bar:
        bar.advance(40, loss="0.5")
    told = events(client)[before:]
    assert [(e["state"], e["done"], e["unit"], e.get("loss")) for e in told] == [
        ("started", 0, "steps", None),
        ("finished", 40, "steps", "0.5"),
    ]
    assert active_report() is not None


def test_no_client_no_report() -> None:
    assert active_report() is None


def test_a_scheduler_that_does_not_answer_is_asked_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def unanswered(*args: Any, callback_timeout: float, **kwargs: Any) -> None:
        asked.append(kwargs)
        raise TimeoutError

    report = active_report()
    assert report is not None
    monkeypatch.setattr(client, "sync", unanswered)
    for number in range(3):
        report({"number": number})
    assert asked == [{"topic": "daskspectral", "msg": {"number": 0}}]


class Gated:
    """Waits for a file, then counts the rows of the range."""

    def __init__(self, gate: Path):
        self.gate = gate

    def __call__(self, batches: Any, state: Any) -> dict[str, Any]:
        while not self.gate.exists():
            time.sleep(0.01)
        return {"rows": np.array(float(sum(len(batch["x"]) for batch in batches)))}


def test_the_distributed_bar_sees_a_pass(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ranges = tuple((i, i + 500) for i in range(0, N, 500))
    run = Run(open_source(X), Plan(ranges), description="fit")
    found: list[Any] = []
    fit = threading.Thread(target=lambda: found.append(run.reduce(Gated(tmp_path / "gate"))))
    fit.start()
    while not (wanted := [key for key in client.futures if key_split(key) == "tree"]):
        time.sleep(0.01)
    threading.Timer(0.5, (tmp_path / "gate").touch).start()
    progress([Future(key, client) for key in wanted], notebook=False)
    fit.join()
    assert found[0].sums["rows"] == N
    drawn = capsys.readouterr().out
    assert "0% Completed" in drawn
    assert "100% Completed" in drawn
