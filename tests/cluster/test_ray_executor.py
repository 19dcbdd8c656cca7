"""The executor `ray` on real processes of Ray: the same results as on one machine, whatever happens to the nodes."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from pathlib import Path
from time import time

import pytest
from tests.cluster.conftest import SimulatedCluster
from tests.cluster.suites import read_executions, wait_until, write_suite
from tests.command import Assay, AssayInline

from assay import __version__ as assay_version
from assay.builtin.executors.ray import node_check
from assay.builtin.executors.ray.cluster import connect
from assay.builtin.executors.ray.package import _outside
from assay.builtin.executors.ray.software import describe_software
from assay.model import Status
from assay.store.store import Store
from assay.testing import ExecutorContract

pytestmark = [pytest.mark.usefixtures("ray_cluster")]


class TestRay(ExecutorContract):
    executor = "ray"


def test_a_suite_has_the_same_results_as_on_one_machine(assay_inline: AssayInline) -> None:
    write_suite(assay_inline)
    arguments = ("run", "suite.yaml", "--seed", "7", "--json")
    here = assay_inline(*arguments).json
    local = read_executions(assay_inline)
    there = assay_inline(*arguments, "--executor", "ray").json

    assert read_executions(assay_inline) == local
    assert {e[4] for name in local for e in local[name]} == {Status.OK, Status.FAILED, Status.CRASHED}
    assert (here["seed"], here["executor"], here["parallelism"]) == (7, "local", 1)
    assert (there["seed"], there["executor"], there["parallelism"]) == (7, "ray", 2)


def test_a_job_is_cut_where_slots_would_be_idle_and_no_result_tells_it(assay_inline: AssayInline) -> None:
    write_suite(assay_inline, 40, 'agents: [{name: right, type: python, target: "agents.py:right"}]\n')
    arguments = ("run", "suite.yaml", "--seed", "7", "--json")
    assay_inline(*arguments, "--repetitions", "1")
    local = read_executions(assay_inline)
    assay_inline(*arguments, "--repetitions", "1", "--executor", "ray")

    assert read_executions(assay_inline) == local


def test_a_variable_that_an_agent_names_reaches_the_workers_and_no_file(
    assay_inline: AssayInline, ray_cluster: SimulatedCluster
) -> None:
    secret = "planted-" + "".join(random.choices("abcdefghij", k=20))
    agent = '{name: keen, type: python, target: "agents.py:keen", params: {key: "${KEEN_TOKEN}"}}'
    write_suite(assay_inline, 4, f"agents: [{agent}]\n")
    words = ("run", "suite.yaml", "--executor", "ray", "--report", "html,md,json,csv", "--out", "reports")
    done = assay_inline(*words, KEEN_TOKEN=secret, OTHER_TOKEN="never-handed-over")

    (executions,) = read_executions(assay_inline).values()
    assert done.code == 0, done.err
    assert {output for *_, output, _ in executions} == {"planted-, 28 characters, no other"}
    for folder in (Path(ray_cluster.folder), assay_inline.folder):
        for file in folder.rglob("*"):
            if file.is_file():
                assert secret.encode() not in file.read_bytes(), file


def test_files_outside_of_the_folders_of_a_plan_are_refused_before_the_run(assay_inline: AssayInline) -> None:
    elsewhere = assay_inline.write("data/table.csv", "1,2")
    write_suite(assay_inline, 4, "agents: [nobody]\n")
    suite = (assay_inline.folder / "suite.yaml").read_text()
    agent = f'{{name: reader, type: python, target: "agents.py:slow", params: {{flag: "{elsewhere}"}}}}'
    inner = assay_inline.write("inner/suite.yaml", suite.replace("nobody", agent))
    for name in ("agents.py", "cases.jsonl"):
        (assay_inline.folder / name).rename(inner.parent / name)

    refusal = assay_inline("run", "inner/suite.yaml", "--executor", "ray").refusal

    assert str(elsewhere) in refusal
    assert "Agent 'reader'" in refusal


def test_workers_find_the_files_of_a_plan_wherever_the_node_works(assay_inline: AssayInline) -> None:
    agent = '{name: reader, type: python, target: "agents.py:reader"}'
    write_suite(assay_inline, 4, f"agents: [{agent}]\n")
    assay_inline.write("notes/answer.txt", "17")

    assay_inline("run", "suite.yaml", "--executor", "ray", "--json")

    (executions,) = read_executions(assay_inline).values()
    outputs = {output for *_, output, _ in executions}
    assert outputs == {"17, not in the folder of the user, cannot write"}


def test_an_agent_has_the_priority_and_the_threads_that_it_has_on_one_machine(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray lowers the priority of its processes and sets OMP_NUM_THREADS, and workers inherit both."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    agent = '{name: surroundings, type: python, target: "agents.py:surroundings"}'
    write_suite(assay_inline, 1, f"agents: [{agent}]\n")
    assay_inline("run", "suite.yaml", "--json", "--repetitions", "1")
    local = read_executions(assay_inline)
    assay_inline("run", "suite.yaml", "--json", "--repetitions", "1", "--executor", "ray")

    assert read_executions(assay_inline) == local
    (executions,) = local.values()
    assert {output for *_, output, _ in executions} == {f"None {os.getpriority(os.PRIO_PROCESS, 0)}"}


READER = """
import json, sys
from pathlib import Path
for line in sys.stdin:
    request = json.loads(line)
    place = Path(request["files"]["doc"])
    output = [place.read_text(), str(place), Path("linked/number.txt").read_text()]
    print(json.dumps({"id": request["id"], "output": json.dumps(output)}), flush=True)
"""


def test_files_of_cases_and_linked_folders_are_read_from_the_copy_of_the_node(
    assay_inline: AssayInline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All nodes are on this machine, where a path of the user would work as well: so the agent tells which one it was given."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "number.txt").write_text("42")
    (elsewhere / "back").symlink_to(elsewhere)
    (assay_inline.folder / "linked").symlink_to(elsewhere)
    agent = f'{{name: reader, type: command, command: ["{sys.executable}", "reader.py"], mode: lines}}'
    write_suite(assay_inline, 1, f"agents: [{agent}]\n")
    assay_inline.write("reader.py", READER)
    assay_inline.write("documents/doc.txt", "some text")
    assay_inline.write("cases.jsonl", '{"id": "c", "input": "?", "files": {"doc": "documents/doc.txt"}}')

    assay_inline("run", "suite.yaml", "--executor", "ray", "--json")

    (executions,) = read_executions(assay_inline).values()
    (answer,) = {output for *_, output, _ in executions}
    content, place, number = json.loads(answer)
    assert (content, number) == ("some text", "42")
    assert not place.startswith(str(assay_inline.folder))


def test_a_module_of_the_python_path_is_sent(
    assay: Assay, ray_cluster: SimulatedCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = tmp_path_factory.mktemp("library")
    (library / "helper.py").write_text("def where(question):\n    return __file__\n")
    write_suite(assay, 1, 'agents: [{name: helper, type: python, target: "helper:where"}]\n')
    address = ("--set", f"executor.address={ray_cluster.address}")
    done = assay("run", "suite.yaml", "--executor", "ray", *address, PYTHONPATH=str(library))

    (executions,) = read_executions(assay).values()
    (place,) = {output for *_, output, _ in executions}
    assert done.code in (0, 1), done.err
    assert place.endswith("helper.py")
    assert not place.startswith(str(library))


def test_a_database_that_an_agent_names_is_refused_as_it_is_not_sent(assay_inline: AssayInline) -> None:
    agent = '{name: reader, type: python, target: "agents.py:slow", params: {flag: "table.db"}}'
    write_suite(assay_inline, 1, f"agents: [{agent}]\n")
    assay_inline.write("table.db", "rows")

    assert "Agent 'reader' needs 'table.db'" in assay_inline("run", "suite.yaml", "--executor", "ray").refusal


def test_a_file_of_the_working_folder_that_a_param_names_is_refused_unless_that_folder_is_sent(
    assay_inline: AssayInline,
) -> None:
    assay_inline.write("table.csv", "1,2")
    assay_inline.write(
        "code/bench.py",
        "import assay\n\n@assay.benchmark\ndef read(file='table.csv'):\n    return open(file).read()\n",
    )
    words = ("run", "code/bench.py", "--executor", "ray", "--set", "file=table.csv")

    assert "'read' needs 'table.csv'" in assay_inline(*words).refusal


def test_a_param_that_is_too_long_for_the_name_of_a_file_is_no_file(tmp_path: Path) -> None:
    assert list(_outside({"prompt": "a" * 300, "other": f"b/{'c' * 300}"}, tmp_path, ())) == []


def test_a_run_that_needs_no_file_of_the_working_folder_sends_none(assay_inline: AssayInline) -> None:
    with (assay_inline.folder / "large").open("wb") as large:
        large.truncate(300 * 2**20)

    assert assay_inline("run", "noop", "--executor", "ray").code == 0


def test_an_experiment_of_a_python_file_runs_on_the_nodes(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "bench.py", "import assay\n\n@assay.benchmark(iterations=3)\ndef add():\n    return sum(range(100))\n"
    )

    document = assay_inline("run", "bench.py", "--executor", "ray", "--processes", "3", "--json").json

    (executions,) = read_executions(assay_inline).values()
    assert document["status"] == "completed"
    assert {(e[0], e[3]) for e in executions if e[1] == "measured"} == {
        (p, r) for p in range(3) for r in range(3)
    }


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--set", "executor.adress=x:1"), "'address'"),
        (("--set", "executor.cpus=none"), "'cpus'"),
        (("--executor", "local", "--set", "executor.cpus=2"), "'local'"),
    ],
)
def test_settings_that_the_executor_does_not_have_are_refused(
    assay_inline: AssayInline, words: tuple[str, ...], named: str
) -> None:
    assert named in assay_inline("run", "noop", "--executor", "ray", *words).refusal


def test_the_settings_file_has_a_section_for_the_executor(assay_inline: AssayInline) -> None:
    assay_inline.write("assay.toml", '[ray]\nadress = "127.0.0.1:1"\n')

    assert "'adress'" in assay_inline("run", "noop", "--executor", "ray").refusal


def test_the_doctor_names_versions_and_clocks_of_every_node(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = assay_inline("doctor", "--executor", "ray", "--json").json["nodes"]
    there = describe_software()
    monkeypatch.setattr(node_check, "describe_software", lambda: {**there, "assay": "0.0.1"})
    monkeypatch.setattr(node_check, "time", lambda: time() - 30.0)
    other = assay_inline("doctor", "--executor", "ray", "--json")

    assert [(node["ok"], node["assay"], node["slots"]) for node in fine] == [(True, assay_version, 2)]
    assert abs(fine[0]["clock_offset_s"]) <= 0.01 + fine[0]["clock_error_s"]
    assert other.code == 2
    version, clock = json.loads(other.out)["nodes"][0]["problems"]
    assert "0.0.1" in version
    assert re.match(r"its clock is \+(29\.9|30\.)", clock)


def test_the_doctor_refuses_an_executor_without_nodes(assay_inline: AssayInline) -> None:
    assert "'local'" in assay_inline("doctor", "--executor", "local").refusal


def test_an_agent_runs_only_where_its_resources_are_and_has_a_gpu_to_itself(
    assay_inline: AssayInline, ray_cluster: SimulatedCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agents = """agents:
  - {name: picky, type: python, target: "agents.py:right", resources: {cpu: 1, custom: {antenna: 1}}}
  - {name: easy, type: python, target: "agents.py:right"}
  - {name: large, type: python, target: "agents.py:on_gpu", params: {folder: "file://MEETING"}, resources: {gpu: 1}}
"""
    meeting = tmp_path_factory.mktemp("meeting")
    write_suite(assay_inline, 4, agents.replace("MEETING", str(meeting)))
    words = ("run", "suite.yaml", "--executor", "ray", "--json")
    refusal = assay_inline(*words).refusal
    node = ray_cluster.add_node(3, resources={"antenna": 1}, num_gpus=2)
    wait_until(lambda: len(connect(None).nodes()) == 2, 30)
    try:
        done = assay_inline(*words)
    finally:
        ray_cluster.kill_node(node)
        wait_until(lambda: len(connect(None).nodes()) == 1, 60)

    assert "antenna" in refusal
    assert done.code == 0, done.err
    outputs = {name: {e[5] for e in made} for name, made in read_executions(assay_inline).items()}
    assert next(found for name, found in outputs.items() if "large" in name) == {"0", "1"}
    with Store.open(f"sqlite:///{assay_inline.folder}/.assay/assay.db") as store:
        run = store.run("last")
        placed = {stored.trial.agent.name: store.placements(stored.id) for stored in run.trials}
    assert {name.endswith("-2") for name in placed["picky"].values()} == {True}
    assert set(run.environment.nodes) >= {name for nodes in placed.values() for name in nodes.values()}
