"""Missing credentials, wrong ones, a missing bucket, a forbidden key, a dead endpoint: a sentence, before any task."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.data import stores
from tests.stores.conftest import NOWHERE, Server, estimator, forget, put

X = np.random.default_rng(0).standard_normal((60, 2))
SWIFT = {"config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 2}}
Calls = list[Callable[[], Any]]


@pytest.fixture(scope="module")
def model() -> dsp.SpectralDecomposition:
    return estimator().fit(X)


def reading(url: str, options: dict[str, Any], model: dsp.SpectralDecomposition, folder: Path) -> Calls:
    """All that reads what is at a URL."""
    return [
        lambda: estimator().fit(dsp.Rows(f"{url}.zarr", storage_options=options)),
        lambda: estimator().fit(dsp.Rows(X, storage_options=options), sample_weight=f"{url}.zarr"),
        lambda: model.transform(dsp.Rows(f"{url}.zarr", storage_options=options)),
        lambda: model.score(dsp.Rows(f"{url}.zarr", storage_options=options)),
        lambda: dsp.load(f"{url}.zarr", storage_options=options),
        lambda: estimator().fit(dsp.Rows(f"{url}.csv", storage_options=options)),
    ]


def writing(url: str, options: dict[str, Any], model: dsp.SpectralDecomposition, folder: Path) -> Calls:
    """All that writes to a URL."""
    return [
        lambda: model.save(f"{url}.zarr", storage_options=options),
        lambda: estimator().fit(dsp.Rows(X, storage_options=options), checkpoint=url),
        lambda: model.transform(dsp.Rows(X, storage_options=options), out=f"{url}.zarr"),
    ]


def assert_told(calls: Calls, kind: type[Exception], message: str, server: Server) -> None:
    for call in calls:
        with pytest.raises(kind, match=message) as told:
            call()
        assert "\n" not in str(told.value)
        assert server.secret not in str(told.value)


@pytest.mark.usefixtures("no_tasks")
def test_what_is_missing_wrong_or_forbidden_is_told(
    server: Server, model: dsp.SpectralDecomposition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(place: str, options: dict[str, Any] | None = None) -> Calls:
        given = options or server.options, model, tmp_path
        return [*reading(f"s3://{place}/x", *given), *writing(f"s3://{place}/y", *given)]

    assert_told(at("none-such"), FileNotFoundError, r"^there is no bucket s3://none-such: make it, or mend", server)
    missing = r"^there is no (zarr array|saved model|file) at s3://data/x\."
    assert_told(reading("s3://data/x", server.options, model, tmp_path), FileNotFoundError, missing, server)
    dead = r"^s3://data cannot be reached at http://127\.0\.0\.1:9: .*\. Look at the network, and at the endpoint_url"
    assert_told(at("data", {"endpoint_url": NOWHERE, **SWIFT})[::3], ConnectionError, dead, server)
    for name, value, code in (
        ("AWS_SECRET_ACCESS_KEY", "wrong" * 8, "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE", "InvalidAccessKeyId"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            forget()
            wrong = rf"^s3://data does not accept the credentials in the environment \({code}\): mend them"
            assert_told(at("data"), PermissionError, wrong, server)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    forget()
    none = r"^there are no credentials for s3://data: give them in the environment \(AWS_ACCESS_KEY_ID .* anon=true"
    assert_told(at("data"), PermissionError, none, server)


def test_forbidden_keys(
    server: Server, model: dsp.SpectralDecomposition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(server, "s3://data/half.zarr", X)  # its metadata may be read, its chunks may not
    for name in ("closed/x.zarr/zarr.json", "closed/x.csv"):
        server.client.put_object(Bucket="data", Key=name, Body=b"1")
    given = server.options, model, tmp_path
    calls = reading("s3://data/closed/x", *given) + reading("s3://data/half", *given)[:4]
    read = r"^s3://data/(closed|half).* may not be read with the credentials in the environment.*: ask the owner"
    assert_told(calls, PermissionError, read, server)
    calls = writing("s3://data/readonly/y", *given)
    assert_told(calls, PermissionError, r"^s3://data/readonly.* may not be written with the credentials", server)
    monkeypatch.setattr(stores, "_refuse_unreadable", lambda *a: None)  # as if the driver might, and a worker not
    with pytest.raises(PermissionError, match=r"s3://data/half\.zarr may not be read with the credentials"):
        estimator().fit(dsp.Rows("s3://data/half.zarr", allow_missing=True, storage_options=server.options))


def test_other_objects_are_kept(server: Server, model: dsp.SpectralDecomposition) -> None:
    server.client.put_object(Bucket="data", Key="thesis/one.tex", Body=b"1")
    for place in ("s3://data/thesis", "s3://data"):
        with pytest.raises((FileExistsError, ValueError), match=r"other objects, not a zarr store|is a whole bucket"):
            model.save(place, overwrite=True, storage_options=server.options)
        with pytest.raises(ValueError, match=r"exists and is not a checkpoint|is a whole bucket"):
            estimator().fit(dsp.Rows(X, storage_options=server.options), checkpoint=place)
