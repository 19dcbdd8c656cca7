"""The command under `cleanup`, which runs after a process was killed or crashed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from shlex import quote
from time import monotonic, sleep
from typing import Any

import pytest
from tests.command import AssayInline
from tests.execute.carrying import eventually
from tests.execute.running import Running
from tests.wording import Wording

import assay.execute.supervise as supervise
from assay.builtin.executors.local import Local
from assay.execute.attempt import attempt
from assay.model import Cleanup
from assay.testing.samples import sample_job

CODE = """
import os, time
from pathlib import Path
from assay import Experiment, register_experiment

def act(deed, context):
    if deed == "sleep":
        time.sleep(60)
    if deed == "hold memory":
        held = bytearray(400_000_000)
        time.sleep(60)
    if deed == "kill itself" or (deed == "kill itself once" and context.iteration_index == 1):
        os.kill(os.getpid(), 9)

class Acting(Experiment):
    def __init__(self, deed: str = "nothing", folder: str = "."):
        self.deed, self.folder = deed, folder

    def execute_once(self, context):
        act(self.deed, context)
        return {"output": "done"}

@register_experiment("plain")
class Plain(Acting):
    pass

@register_experiment("bound")
class Bound(Acting):
    def teardown(self, context):
        if self.deed == "kill itself in teardown":
            os.kill(os.getpid(), 9)

@register_experiment("static")
class Static(Acting):
    @staticmethod
    def teardown(context):
        Path(context.params["folder"], "order").open("a").write("teardown ")
        if context.params["deed"] == "sleep":
            time.sleep(60)

@register_experiment("waiting")
class Waiting(Acting):
    def execute_once(self, context):
        folder = Path(self.folder)
        if context.iteration_index == 0:
            folder.joinpath("begun").touch()
        elif not folder.joinpath("resumed").exists():
            time.sleep(60)
        else:
            os.kill(os.getpid(), 9)
"""
NOTE = "import os; open('order', 'a').write('cleanup '); open('cleaned', 'w').write(f'{os.getpid()} {os.getcwd()}')"
CLEANUP = [sys.executable, "-c", NOTE]
DEATHS = {
    "sleep": ({"seconds": 0.5}, "timeout"),
    "hold memory": ({"memory_mb": 200}, "over_limit"),
    "kill itself": ({}, "crashed"),
}


@pytest.fixture
def assay(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("specs/code.py", CODE)
    return assay_inline


def run(assay: AssayInline, **keys: Any) -> Any:
    assay.write("specs/spec.json", json.dumps({"load": "code.py", **keys}))
    return json.loads(assay("run", "specs/spec.json", "--json").out)


def warnings(document: Any) -> str:
    return "\n".join(warning["message"] for warning in document["warnings"])


def remarks(document: Any, about: str) -> list[str]:
    """What was remarked on the teardown or the cleanup of process 0."""
    told = [warning["message"] for warning in document["warnings"] if warning["code"] == "remark"]
    return [text for text in told if f"{about} of process 0" in text]


@pytest.mark.parametrize("deed", DEATHS)
@pytest.mark.parametrize("experiment", ["plain", "bound"])
def test_the_command_runs_in_the_folder_of_the_spec_when_a_process_was_killed(
    assay: AssayInline, experiment: str, deed: str
) -> None:
    limits, status = DEATHS[deed]
    document = run(assay, experiment=experiment, params={"deed": deed}, limits=limits, cleanup=CLEANUP)
    assert document["trials"][0]["counts"] == {status: 1}
    folder = (assay.folder / "specs").resolve()
    assert (folder / "cleaned").read_text().split(maxsplit=1)[1] == str(folder)
    assert "eardown" not in warnings(document)
    assert "leanup" not in warnings(document)


def test_the_command_does_not_run_after_executions_that_end_by_themselves(assay: AssayInline) -> None:
    document = run(assay, experiment="bound", cleanup=CLEANUP)
    assert document["trials"][0]["counts"] == {"ok": 1}
    assert not (assay.folder / "specs/cleaned").exists()


def test_the_command_gets_its_arguments_as_they_are_written(assay: AssayInline) -> None:
    told = "import sys, json; json.dump(sys.argv[1:], open('arguments', 'w'))"
    words = ["$HOME", "a b", "*", "; touch made", ""]
    run(
        assay,
        experiment="plain",
        params={"deed": "kill itself"},
        cleanup=[sys.executable, "-c", told, *words],
    )
    assert json.loads((assay.folder / "specs/arguments").read_text()) == words
    assert not (assay.folder / "specs/made").exists()


def test_the_command_runs_when_the_teardown_itself_crashes(assay: AssayInline, wording: Wording) -> None:
    document = run(assay, experiment="bound", params={"deed": "kill itself in teardown"}, cleanup=CLEANUP)
    assert (assay.folder / "specs/cleaned").exists()
    (told,) = remarks(document, "teardown")
    wording(told)


@pytest.mark.parametrize("deed", ["kill itself", "sleep"])
def test_a_static_teardown_runs_before_the_command_even_if_it_hangs(
    assay: AssayInline, deed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "SETUP_SECONDS", 3.0)
    params = {"deed": deed, "folder": str(assay.folder / "specs")}
    document = run(assay, experiment="static", params=params, limits={"seconds": 0.3}, cleanup=CLEANUP)
    assert (assay.folder / "specs/order").read_text() == "teardown cleanup "
    told = remarks(document, "teardown")
    assert ["3 s" in text for text in told] == ([True] if deed == "sleep" else [])


def test_the_rest_of_the_executions_go_on_after_the_command(assay: AssayInline) -> None:
    params = {"deed": "kill itself once"}
    document = run(assay, experiment="plain", params=params, iterations={"measured": 4}, cleanup=CLEANUP)
    assert document["trials"][0]["counts"] == {"ok": 3, "crashed": 1}
    assert (assay.folder / "specs/order").read_text() == "cleanup "


def test_a_process_counts_as_finished_only_after_the_executions_that_follow_the_command(
    tmp_path: Path,
) -> None:
    (tmp_path / "code.py").write_text(CODE)
    job = replace(
        sample_job(tmp_path, f"{tmp_path / 'code.py'}::Plain", params={"deed": "kill itself once"}),
        cleanup=Cleanup(tuple(CLEANUP), str(tmp_path)),
    )
    batches = list(Local(1).map(attempt, [job], lambda: False))
    statuses = [execution.status for batch in batches for execution in batch.executions]
    assert statuses == ["ok", "crashed", "ok"]
    (finished,) = (index for index, batch in enumerate(batches) if batch.settled)
    assert not any(batch.executions for batch in batches[finished + 1 :])
    assert (tmp_path / "cleaned").exists()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            [sys.executable, "-c", "print('first'); raise SystemExit('disk is busy.')"],
            " 1: disk is busy.\n",
        ),
        (["./no-such-command"], "FileNotFoundError"),
    ],
    ids=["exit code", "no program"],
)
def test_a_command_that_fails_is_reported_beside_the_trial(
    assay: AssayInline, command: list[str], problem: str, wording: Wording
) -> None:
    document = run(assay, experiment="bound", params={"deed": "kill itself"}, cleanup=command)
    (told,) = remarks(document, "cleanup")
    assert problem in told + "\n"
    assert "eardown" not in warnings(document)
    assert " ".join(told.split()) in " ".join(assay("show", "last").out.split())
    wording(told.replace(quote(sys.executable), "python"))


def test_a_command_that_hangs_is_ended_by_a_limit_of_its_own(
    assay: AssayInline, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr(supervise, "SETUP_SECONDS", 2.0)
    hang = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    document = run(
        assay,
        experiment="plain",
        params={"deed": "sleep"},
        limits={"seconds": 0.2},
        cleanup=[sys.executable, "-c", hang],
    )
    (told,) = remarks(document, "cleanup")
    assert "2 s" in told
    wording(told)
    pid = int((assay.folder / "specs/pid").read_text())
    assert eventually(lambda: not Path(f"/proc/{pid}").exists())


def test_each_experiment_may_have_a_command_of_its_own(assay: AssayInline) -> None:
    def touch(name: str) -> list[str]:
        return [sys.executable, "-c", f"open({name!r}, 'w')"]

    crash = {"deed": "kill itself"}
    run(
        assay,
        cleanup=touch("common"),
        experiments=[
            {"experiment": "plain", "params": crash},
            {"experiment": "bound", "params": crash, "cleanup": touch("own")},
        ],
    )
    assert {path.name for path in (assay.folder / "specs").iterdir()} >= {"common", "own"}


def test_a_benchmark_of_code_in_a_suite_may_have_a_command(assay: AssayInline) -> None:
    cases = [{"id": "c1", "input": {"deed": "kill itself"}, "expected": "done"}]
    benchmark = {"id": "b", "experiment": "bound", "cases": cases, "cleanup": CLEANUP}
    how = {"warmup": 0, "measured": 1}
    suite = {"suite": "s", "load": "code.py", "benchmarks": [{**benchmark, "iterations": how}]}
    assay.write("specs/suite.json", json.dumps(suite))
    document = json.loads(assay("run", "specs/suite.json", "--json").out)
    assert document["trials"][0]["counts"] == {"crashed": 1}
    assert (assay.folder / "specs/cleaned").exists()
    assert "did not run" not in warnings(document)


@pytest.mark.parametrize("written", ["rm -rf scratch", "[]", '[""]', "{}", "[sleep, 5]", "[rm, null]"])
@pytest.mark.parametrize("place", ["spec", "experiments", "suite"])
def test_anything_but_a_list_of_texts_is_refused_with_its_line(
    assay: AssayInline, place: str, written: str
) -> None:
    start = {
        "spec": "load: code.py\nexperiment: plain\n",
        "experiments": "load: code.py\nexperiments:\n- experiment: plain\n  ",
        "suite": "suite: s\nload: code.py\nbenchmarks:\n- {id: b, experiment: plain,\n   ",
    }[place]
    end = "}" if place == "suite" else ""
    file = assay.write(f"specs/{place}.yaml", f"{start}cleanup: {written}{end}\n")
    line = start.count("\n") + 1
    refusal = assay("run", file).refusal
    assert f"{place}.yaml:{line}" in refusal
    assert "cleanup" in refusal


def test_a_command_that_could_never_run_is_refused(assay: AssayInline) -> None:
    inline = assay.write(
        "specs/inline.yaml", "load: code.py\nexperiment: plain\nisolation: inline\ncleanup: [rm, scratch]\n"
    )
    assert "inline.yaml:4" in assay("run", inline).refusal
    asks = "suite: s\nagents: [{name: e, type: echo}]\nbenchmarks:\n- id: b\n  cases: [{input: a, expected: a}]\n"
    suite = assay.write("specs/asks.yaml", f"{asks}  cleanup: [rm, scratch]\n")
    assert "asks.yaml:6" in assay("run", suite).refusal


def test_a_resumed_run_still_has_its_command(tmp_path: Path, own_names: None) -> None:
    running = Running(tmp_path)
    (running.folder / "code.py").write_text(CODE)
    spec = {
        "load": "code.py",
        "experiment": "waiting",
        "params": {"folder": str(running.folder)},
        "iterations": {"measured": 2},
        "cleanup": CLEANUP,
    }
    (running.folder / "spec.json").write_text(json.dumps(spec))
    process = running.start("run", "spec.json")
    deadline = monotonic() + 60
    while not running.executions and monotonic() < deadline:
        sleep(0.05)
    process.kill()
    process.communicate()
    assert not (running.folder / "cleaned").exists()
    (running.folder / "spec.json").unlink()
    (running.folder / "resumed").touch()
    document = json.loads(running.inline("run", "--resume", "last").out)
    assert document["trials"][0]["counts"] == {"ok": 1, "crashed": 1}
    assert (running.folder / "cleaned").exists()
