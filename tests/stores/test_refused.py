"""Missing credentials, wrong ones, a missing bucket, a forbidden key, a dead endpoint: an error before any task."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.data.remote import HINT
from tests.common import small_model
from tests.stores.conftest import NOWHERE, Server, forget

X = np.random.default_rng(0).standard_normal((60, 2))
SWIFT = {"config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 2}}
Calls = list[Callable[[], Any]]


@pytest.fixture(scope="module")
def model() -> dsp.SpectralDecomposition:
    return small_model().fit(X)


def reading(url: str, options: dict[str, Any], model: dsp.SpectralDecomposition) -> Calls:
    """All that reads what is at a URL."""
    return [
        lambda: small_model().fit(dsp.Rows(f"{url}.zarr", storage_options=options)),
        lambda: model.transform(dsp.Rows(f"{url}.zarr", storage_options=options)),
        lambda: dsp.load(f"{url}.zarr", storage_options=options),
    ]


def writing(url: str, options: dict[str, Any], model: dsp.SpectralDecomposition) -> Calls:
    """All that writes to a URL."""
    return [
        lambda: model.save(f"{url}.zarr", storage_options=options),
        lambda: small_model().fit(dsp.Rows(X, storage_options=options), checkpoint=url),
        lambda: model.transform(dsp.Rows(X, storage_options=options), out=f"{url}.zarr"),
    ]


def assert_raised(calls: Calls, kind: type[Exception] | tuple[type[Exception], ...], url: str, server: Server) -> None:
    """Each error is that of the store, with the URL and the hint, or names the URL itself."""
    for call in calls:
        with pytest.raises(kind) as raised:
            call()
        shown = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
        assert url in shown
        assert HINT in shown or isinstance(raised.value, FileNotFoundError)
        assert server.secret not in shown


@pytest.mark.usefixtures("no_tasks")
def test_errors_of_a_store_are_shown_with_the_url_and_a_hint(
    server: Server, model: dsp.SpectralDecomposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(place: str, options: dict[str, Any] | None = None) -> Calls:
        given = options or server.options, model
        return [*reading(f"s3://{place}/x", *given), *writing(f"s3://{place}/y", *given)]

    assert_raised(at("none-such"), FileNotFoundError, "s3://none-such", server)
    assert_raised(reading("s3://data/x", server.options, model), FileNotFoundError, "s3://data/x", server)
    assert_raised(at("data", {"endpoint_url": NOWHERE, **SWIFT})[::3], Exception, "s3://data", server)
    server.client.put_object(Bucket="data", Key="closed/x.zarr/zarr.json", Body=b"1")
    assert_raised(reading("s3://data/closed/x", server.options, model), PermissionError, "s3://data/closed", server)
    assert_raised(writing("s3://data/readonly/y", server.options, model), PermissionError, "s3://data/readonly", server)
    for name, value in (("AWS_SECRET_ACCESS_KEY", "wrong" * 8), ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            forget()
            assert_raised(at("data")[::2], PermissionError, "s3://data", server)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    forget()
    assert_raised(at("data")[::2], Exception, "s3://data", server)


def test_other_objects_are_kept(server: Server, model: dsp.SpectralDecomposition) -> None:
    server.client.put_object(Bucket="data", Key="thesis/one.tex", Body=b"1")
    for place in ("s3://data/thesis", "s3://data"):
        with pytest.raises((FileExistsError, ValueError), match=place):
            model.save(place, overwrite=True, storage_options=server.options)
        with pytest.raises(ValueError, match=place):
            small_model().fit(dsp.Rows(X, storage_options=server.options), checkpoint=place)
    assert server.objects() == {"thesis/one.tex": b"1"}
