"""The cluster files in examples/cluster name what Ray, Assay and the pages have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.metadata import metadata, version
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from assay.cli.main import assay

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "cluster"
FILES = sorted(FOLDER.glob("*.yaml"))
GCS_PORT = 6379


def _read(name: str) -> dict[str, Any]:
    found = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str():
            yield value


def _ray() -> click.Group:
    return pytest.importorskip("ray.scripts.scripts").cli  # type: ignore[no-any-return]


def _check_call(group: click.Command, words: list[str]) -> None:
    """That every word is a command of the group, or an option of it."""
    while isinstance(group, click.Group):
        name = words.pop(0)
        found = group.get_command(click.Context(group), name)
        assert found is not None, name
        group = found
    known = {option for param in group.params for option in (*param.opts, *param.secondary_opts)}
    given = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert given <= known


def _list_containers() -> list[dict[str, Any]]:
    spec = _read("ray-kubernetes.yaml")["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    return [one for group in groups for one in group["template"]["spec"]["containers"]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_cluster_file_is_named_in_the_table_with_a_command(file: Path) -> None:
    assert _read(file.name)
    assert file.name in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_pods_have_one_version_of_ray_and_as_many_processors_as_slots() -> None:
    spec = _read("ray-kubernetes.yaml")["spec"]
    containers = _list_containers()
    assert {one["image"].rpartition(":")[2] for one in containers} == {spec["rayVersion"]}
    assert spec["rayVersion"] == version("ray")
    assert [port["containerPort"] for one in containers for port in one.get("ports", ())] == [GCS_PORT]
    for one in containers:
        assert one["resources"]["requests"] == one["resources"]["limits"]
    for group in spec["workerGroupSpecs"]:
        (own,) = group["template"]["spec"]["containers"]
        assert group["rayStartParams"]["num-cpus"] == own["resources"]["limits"]["cpu"]
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_ray_knows_the_options_that_pods_start_it_with() -> None:
    spec = _read("ray-kubernetes.yaml")["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        _check_call(_ray(), ["start", *(f"--{name}" for name in group["rayStartParams"])])


def test_ray_knows_the_commands_that_machines_start_it_with() -> None:
    found = _read("ray-vms.yaml")
    assert len(found["provider"]["worker_ips"]) == found["min_workers"] == found["max_workers"]
    calls = [call for text in _texts(found) for call in re.findall(r"/bin/ray ([^;]*)", text)]
    assert len(calls) == 4
    for call in calls:
        _check_call(_ray(), shlex.split(call))
    assert {int(port) for call in calls for port in re.findall(r"(?:--port=|:)(\d+)", call)} == {GCS_PORT}
    assert f"ray=={version('ray')}" in " ".join(_texts(found))


def test_extras_of_the_package_are_those_that_it_has() -> None:
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.iterdir()]
    extras = {
        name
        for text in texts
        for some in re.findall(r"assay-bench\[([\w,]+)\]", text)
        for name in some.split(",")
    }
    assert extras == {"ray", "postgres"} <= set(metadata("assay-bench").get_all("Provides-Extra") or ())
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"ray=={_read('ray-kubernetes.yaml')['spec']['rayVersion']}" in pins


def test_commands_of_the_page_exist() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    calls = [shlex.split(line) for line in page.splitlines() if line.startswith("assay ")]
    calls += [shlex.split(call) for call in re.findall(r"`(ray [^`]*)`", page)]
    assert len(calls) == 3
    for program, *words in calls:
        _check_call(assay if program == "assay" else _ray(), words)
    addresses = re.findall(r"executor\.address=\w+:(\d+)", page)
    assert {int(port) for port in addresses} == {GCS_PORT}
