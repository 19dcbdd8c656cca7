"""Teardown when the process that was to run it is killed, or crashes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.command import AssayInline
from tests.wording import Wording

import assay.execute.supervise as supervise

CODE = """
import os, signal, time
from pathlib import Path
from assay import Experiment, register_experiment

DEEDS = {
    "sleep": lambda: time.sleep(60),
    "kill itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hold memory": lambda: (bytearray(400_000_000), time.sleep(60)),
    "nothing": lambda: None,
}

def act(context, deed):
    name = f"{context.process}-{context.iteration_index}"
    Path(context.params.get("folder", ".")).joinpath(f"begun-{name}").write_text(str(os.getpid()))
    if deed == "crash once" and context.iteration_index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    DEEDS.get(deed, DEEDS["nothing"])()

@register_experiment("static")
class Static(Experiment):
    def __init__(self, deed: str = "nothing", folder: str = ".", teardown: str = "tidy"):
        self.deed = deed

    def execute_once(self, context):
        act(context, self.deed)

    @staticmethod
    def teardown(context):
        Path(context.params["folder"]).joinpath(f"torn-down-{os.getpid()}").write_text(context.phase)
        if context.params["teardown"] == "raise":
            raise RuntimeError("cannot tidy up")
        if context.params["teardown"] == "hang":
            time.sleep(600)

@register_experiment("bound")
class Bound(Experiment):
    def __init__(self, deed: str = "nothing", folder: str = "."):
        self.deed, self.folder = deed, folder

    def execute_once(self, context):
        act(context, self.deed)

    def teardown(self, context):
        Path(self.folder).joinpath(f"torn-down-{os.getpid()}").write_text("")

@register_experiment("without")
class Without(Experiment):
    def __init__(self, deed: str = "nothing", folder: str = "."):
        self.deed = deed

    def execute_once(self, context):
        act(context, self.deed)
"""
DEATHS = {
    "sleep": ({"seconds": 0.5}, "timeout"),
    "hold memory": ({"memory_mb": 200}, "over_limit"),
    "kill itself": ({}, "crashed"),
}


@pytest.fixture
def assay(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("code.py", CODE)
    (assay_inline.folder / "seen").mkdir()
    return assay_inline


def ran(assay: AssayInline, experiment: str, limits: Any = None, measured: int = 1, **params: str) -> Any:
    params = {"folder": str(assay.folder / "seen"), **params}
    keys = {"experiment": experiment, "load": "code.py", "params": params, "limits": limits or {}}
    assay.write("spec.json", json.dumps({**keys, "iterations": {"measured": measured}}))
    return json.loads(assay("run", "spec.json", "--json").out)


def seen(assay: AssayInline, what: str) -> list[str]:
    return sorted(path.name for path in (assay.folder / "seen").glob(f"{what}-*"))


def warnings(document: Any) -> str:
    return "\n".join(warning["message"] for warning in document["warnings"])


@pytest.mark.parametrize("deed", DEATHS)
def test_a_static_teardown_runs_in_a_new_process_when_the_first_was_killed(
    assay: AssayInline, deed: str
) -> None:
    limits, status = DEATHS[deed]
    document = ran(assay, "static", limits, deed=deed)
    assert document["trials"][0]["counts"] == {status: 1}
    (torn_down,) = seen(assay, "torn-down")
    begun = (assay.folder / "seen" / "begun-0-0").read_text()
    assert torn_down != f"torn-down-{begun}"  # not in the process that was killed
    assert "eardown" not in warnings(document)


def test_the_rest_goes_on_after_the_teardown_and_has_a_teardown_of_its_own(assay: AssayInline) -> None:
    document = ran(assay, "static", measured=4, deed="crash once")
    assert document["trials"][0]["counts"] == {"ok": 3, "crashed": 1}
    assert len(seen(assay, "torn-down")) == 2
    begun = [(assay.folder / "seen" / name).read_text() for name in seen(assay, "begun")]
    assert f"torn-down-{begun[-1]}" in seen(assay, "torn-down")
    assert begun[0] == begun[1] != begun[2] == begun[3]


def test_a_teardown_that_fails_in_its_own_process_is_reported(assay: AssayInline) -> None:
    document = ran(assay, "static", deed="kill itself", teardown="raise")
    error = "RuntimeError: cannot tidy up"
    assert error in warnings(document)


def test_a_teardown_that_hangs_is_ended_by_its_own_limit(
    assay: AssayInline, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr(supervise, "SETUP_SECONDS", 1.0)
    document = ran(assay, "static", {"seconds": 0.1}, deed="sleep", teardown="hang")
    (told,) = [text for text in warnings(document).splitlines() if "teardown of process 0" in text]
    assert "1 s" in told
    wording(told)


@pytest.mark.parametrize("deed", DEATHS)
def test_a_teardown_that_needs_its_experiment_is_said_not_to_have_run(
    assay: AssayInline, deed: str, wording: Wording
) -> None:
    limits, _ = DEATHS[deed]
    document = ran(assay, "bound", limits, deed=deed)
    assert seen(assay, "torn-down") == []
    (told,) = [one for one in document["warnings"] if "eardown of process 0" in one["message"]]
    assert told["code"] == "remark"
    assay("report", "last", "--format", "md,html", "--out", "out")
    pages = [assay("show", "last").out, *(path.read_text() for path in (assay.folder / "out").iterdir())]
    for page in pages:
        assert told["message"].partition(",")[0][1:] in " ".join(page.split())
    wording(told["message"], numbers=False)


def test_nothing_is_said_where_there_is_no_teardown_or_it_has_run(assay: AssayInline) -> None:
    assert "eardown" not in warnings(ran(assay, "without", deed="kill itself"))
    assert "eardown" not in warnings(ran(assay, "bound"))
    assert len(seen(assay, "torn-down")) == 1
