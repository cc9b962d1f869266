"""What several tests stand on: a cluster, schedulers by their names, plans of many tasks or of none."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dask
import hypothesis
import pytest
from distributed import Client, LocalCluster

from daskspectral import SpectralDecomposition
from daskspectral.engine import Run
from daskspectral.engine import plan as planning
from tests.common import Scheduling, local_cluster
from tests.estimators.common import X, make
from tests.stand_in import gotten, stand_in  # noqa: F401 (fixtures)

# nothing that a test finds depends on how fast the machine is, or on chance
UNHURRIED = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "steady", max_examples=30, deadline=None, derandomize=True, suppress_health_check=UNHURRIED
)
hypothesis.settings.load_profile("steady")


SLOW = {"client", "cluster", "server"}
"""Fixtures that start processes: what asks for one is slow."""


@pytest.hookimpl(tryfirst=True)  # before the marks are looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases: Counter[str] = Counter()
    for item in items:
        if SLOW & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
        if table := item.get_closest_marker("one_in"):
            name = item.nodeid.split("[")[0]
            fast, slow = (*table.args, 1)[:2]
            if cases[name] % slow:
                item.add_marker("nightly")
            elif not fast or cases[name] % fast:
                item.add_marker("slow")
            cases[name] += 1


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Two processes, for tests that leave them alive and as they were."""
    with local_cluster(n_workers=2) as two_processes:
        yield two_processes


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as client:
        yield client


@pytest.fixture
def scheduling(request: pytest.FixtureRequest) -> Scheduling:
    """A scheduler by its name: "synchronous", "threads 3", "own pool", "cluster"."""

    @contextmanager
    def scheduling(name: str) -> Iterator[None]:
        if name == "cluster":
            with Client(request.getfixturevalue("cluster")):
                yield
        elif name == "own pool":
            with ThreadPoolExecutor(3) as pool, dask.config.set(pool=pool):
                yield
        else:
            scheduler, _, workers = name.partition(" ")
            with dask.config.set({"scheduler": scheduler, **({"num_workers": int(workers)} if workers else {})}):
                yield

    return scheduling


@pytest.fixture(scope="module")
def fitted() -> SpectralDecomposition:
    return make().fit(X)


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of several tasks for small data too."""
    monkeypatch.setattr(planning, "LEAST_FLOPS", 1e5)


@pytest.fixture
def no_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No task may be sent."""

    def sent(*args: Any, **kwargs: Any) -> None:
        pytest.fail("a task was sent")

    monkeypatch.setattr(Run, "reduce", sent)
    monkeypatch.setattr(Run, "map", sent)
