"""The manifests for the dask operator, against the schemas of its custom resources; nothing runs."""

import functools
import importlib.util
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from daskspectral.cli import command
from tests.deploy.common import DEPLOY

FOLDER = DEPLOY / "kubernetes"
CRDS = Path("operator", "deployment", "helm", "dask-kubernetes-operator", "crds")


@functools.cache
def schemas() -> dict[str, dict[str, Any]]:
    """The openAPIV3Schema of each kind of resource in the wheel of dask-kubernetes, which is not imported."""
    found = importlib.util.find_spec("dask_kubernetes")
    assert found is not None, "pip install dask-kubernetes"
    assert found.submodule_search_locations
    resources = {}
    for path in (Path(found.submodule_search_locations[0]) / CRDS).glob("*.yaml"):
        definition = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]
        (version,) = (v for v in definition["versions"] if v["served"])
        schema = version["schema"]["openAPIV3Schema"]
        schema["properties"] |= {"apiVersion": {"const": f"{definition['group']}/{version['name']}"}}
        schema["properties"] |= {"kind": {"type": "string"}, "metadata": {"type": "object", "required": ["name"]}}
        resources[definition["names"]["kind"]] = schema
    return resources


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return found


def test_a_manifest_fits_the_schema_of_its_kind_and_a_wrong_one_does_not() -> None:
    for path in FOLDER.glob("*.yaml"):
        document = manifest(path.name)
        jsonschema.Draft7Validator(schemas()[document["kind"]]).validate(document)
    document = manifest("fit.yaml")
    document["spec"]["cluster"]["spec"]["worker"]["replicas"] = "ten"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schemas()["DaskJob"]).validate(document)


def test_the_driver_calls_the_command_as_it_is() -> None:
    (container,) = manifest("fit.yaml")["spec"]["job"]["spec"]["containers"]
    words = shlex.split(container["args"][0])
    assert words[:3] == ["exec", "daskspectral", "fit"]
    fit = command.get_command(None, "fit")
    assert fit is not None
    with fit.make_context("fit", words[3:], resilient_parsing=True) as context:
        assert context.params["points"] == "s3://bucket/points.zarr"
        assert context.params["scheduler"] == "$DASK_SCHEDULER_ADDRESS"
