"""An S3-compatible server on loopback, which knows users, keys and rights, and an environment with one user's key."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import fsspec.asyn
import numpy as np
import pytest
import requests
import s3fs
import zarr
from moto.server import ThreadedMotoServer

from daskspectral.data.remote import using
from daskspectral.data.writing import create_array

NOWHERE = "http://127.0.0.1:9"  # nothing answers there: where storage_options are lost, a test fails
RIGHTS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "s3:*", "Resource": "*"},
        {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/closed/*"},
        {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/half.zarr/c/*"},
        {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::data/readonly/*"},
    ],
}


@dataclass(frozen=True)
class Server:
    """Where the server listens, and the key of a user who may do all in the bucket `data` but what RIGHTS forbid."""

    url: str
    key: str
    secret: str

    @property
    def options(self) -> dict[str, Any]:
        """The storage options with which it is found."""
        return {"endpoint_url": self.url}

    @property
    def client(self) -> Any:
        """A client that looks past what is tested."""
        keys = {"aws_access_key_id": self.key, "aws_secret_access_key": self.secret}
        return boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", **keys)

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """The objects of the bucket that may be read."""
        client = self.client
        found = client.list_objects_v2(Bucket="data", Prefix=prefix).get("Contents", [])
        return {o["Key"]: client.get_object(Bucket="data", Key=o["Key"])["Body"].read() for o in found}

    def empty(self) -> None:
        """Delete all objects."""
        client = self.client
        found = [{"Key": o["Key"]} for o in client.list_objects_v2(Bucket="data").get("Contents", [])]
        if found:
            client.delete_objects(Bucket="data", Delete={"Objects": found})


@pytest.fixture(scope="session")
def running_server() -> Iterator[Server]:
    """The server, for all tests."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    started = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    started.start()
    try:
        host, port = started.get_host_and_port()
        url = f"http://{host}:{port}"
        nobody = {"region_name": "us-east-1", "aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}
        boto3.client("s3", endpoint_url=url, **nobody).create_bucket(Bucket="data")
        users = boto3.client("iam", endpoint_url=url, **nobody)
        users.create_user(UserName="tester")
        users.put_user_policy(UserName="tester", PolicyName="rights", PolicyDocument=json.dumps(RIGHTS))
        key = users.create_access_key(UserName="tester")["AccessKey"]
        requests.post(f"{url}/moto-api/reset-auth", data=b"0", timeout=10).raise_for_status()
        yield Server(url, key["AccessKeyId"], key["SecretAccessKey"])
    finally:
        started.stop()


@pytest.fixture
def server(running_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Server:
    """The server with an empty bucket, and credentials in the environment alone."""
    none = str(tmp_path / "none")
    for name, value in {
        "AWS_ACCESS_KEY_ID": running_server.key,
        "AWS_SECRET_ACCESS_KEY": running_server.secret,
        "AWS_ENDPOINT_URL_S3": NOWHERE,
        "AWS_CONFIG_FILE": none,
        "AWS_SHARED_CREDENTIALS_FILE": none,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    forget()
    running_server.empty()
    return running_server


def forget() -> None:
    """Close the connections that fsspec keeps, so that the next are opened with the environment as it is then."""
    for files in list(s3fs.S3FileSystem._cache.values()):
        if files._s3 is not None and files.asynchronous:
            zarr.core.sync.sync(files._s3.close())
        elif files._s3 is not None:
            fsspec.asyn.sync(files.loop, files._s3.close)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(7).standard_normal((900, 2))


@pytest.fixture
def points(server: Server, x: np.ndarray) -> str:
    """The rows as a zarr array in the bucket, in three chunks."""
    return put(server, "s3://data/x.zarr", x)


def put(server: Server, url: str, values: np.ndarray, **options: Any) -> str:
    """Write values as a zarr array at a URL, and return it."""
    with using(server.options), create_array(url, values.shape, values.dtype, chunk_rows=300, **options) as array:
        array[:] = values
    return url
