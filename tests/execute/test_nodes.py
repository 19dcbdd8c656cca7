"""A run on several nodes: what is stored, shown and compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command import AssayInline
from tests.execute import fake_cluster
from tests.store.examples import begin, plan_of, simple_trial

from assay.execute.decision import Deciding
from assay.execute.signals import Interrupt
from assay.model import (
    AgentUse,
    Batch,
    Execution,
    Isolation,
    Iterations,
    Job,
    Limits,
    Phase,
    Placement,
    Question,
    ResourceRequest,
    Status,
)
from assay.pipeline.lifecycle import ActiveRun
from assay.pipeline.placements import PlacementLog
from assay.plugin.node_queues import HELD, NodeQueues
from assay.plugin.steady_clock import SteadyClock
from assay.report.documents.result import read_result
from assay.store.store import Store

WORK = """
from assay import Experiment, register_experiment

@register_experiment("work")
class Work(Experiment):
    def __init__(self, parameters=None, size: int = 1):
        super().__init__(parameters or {})

    def execute_once(self, context):
        return {}
"""
SUITE = """
suite: sums
version: "1"
category: accuracy
agents: [{name: one, type: stub, answer: "2"}, {name: two, type: stub, answer: "2"}]
benchmarks:
  - id: add
    scorer: exact
    iterations: {warmup: 0, measured: 12}
    cases: [{id: a, input: 1+1, expected: "2"}, {id: b, input: 2+1, expected: "3"}, {id: c, input: 0+2, expected: "2"}]
"""


def _run_suite(assay: AssayInline, cluster: str = "FakeCluster") -> dict[str, Any]:
    assay.write("sums.yaml", SUITE)
    return _run(assay, cluster)


def _run(assay: AssayInline, cluster: str = "FakeCluster") -> dict[str, Any]:
    executor = f"{fake_cluster.__name__}:{cluster}"
    run: dict[str, Any] = assay.run_inline("sums.yaml", "--executor", executor, "--json").json
    return run


def _compare(assay: AssayInline, metric: str) -> tuple[dict[str, Any], list[str]]:
    """Agent two against agent one, and the codes of the warnings."""
    found = assay("compare", "one", "two", "--suite", "sums", "--metric", metric, "--json").json
    return found["comparisons"][0], [warning["code"] for warning in found["warnings"]]


def test_every_node_carries_out_all_arms_round_by_round(assay_inline: AssayInline) -> None:
    assay_inline.write("work.py", WORK)
    spec = {"experiment": "work", "load": ["work.py"], "sweep": {"size": [1, 2]}, "processes": 12,
            "executor": f"{fake_cluster.__name__}:FakeCluster", "parallelism": 4}  # fmt: skip
    assay_inline.write("spec.json", json.dumps(spec))
    first, second = assay_inline("run", "spec.json", "--json").json["trials"]

    torn = [number for number, node in first["nodes"].items() if second["nodes"][number] != node]
    # When little work is left, a round is torn apart rather than a node left idle.
    assert len(torn) <= 2
    assert set(first["nodes"].values()) == {"fast", "slow"}


def test_a_result_tells_what_each_node_did_and_what_is_doubtful_about_it(assay_inline: AssayInline) -> None:
    run = _run_suite(assay_inline)

    told = [(node["node"], node["kind"].partition(",")[0], node["processes"]) for node in run["nodes"]]
    assert told == [("fast", "EPYC", 12), ("slow", "Xeon", 12)]
    assert [node["executions"] for node in run["nodes"]] == [36, 36]
    assert [len(node["warnings"]) for node in run["nodes"]] == [0, 1]
    assert run["environment"]["nodes"]["slow"]["facts"]["cpu"]["model"] == "Xeon"
    noisy = [w for w in run["warnings"] if w["code"] == "node" and "'slow'" in w["message"]]
    assert len(noisy) == 1
    assert assay_inline("show", "last", "--json").json["nodes"] == run["nodes"]


def test_arms_that_share_every_node_are_compared_in_pairs(assay_inline: AssayInline) -> None:
    _run_suite(assay_inline)
    seconds, codes = _compare(assay_inline, "seconds")

    assert (seconds["verdict"], seconds["units_a"]) == ("same", 12)
    assert "within nodes" in seconds["method"]
    assert "nodes" not in codes


@pytest.mark.parametrize(
    ("cluster", "verdict", "ratio"),
    [("UnfairCluster", "same", 1.0), ("UnfairClusterWithSlowerArm", "worse", 1.1)],
)
def test_a_slow_node_is_not_taken_for_a_slow_arm(
    assay_inline: AssayInline, cluster: str, verdict: str, ratio: float
) -> None:
    """The medians of the arms differ by half, because each has a node that it ran on mostly."""
    _run_suite(assay_inline, cluster)
    seconds, codes = _compare(assay_inline, "seconds")

    assert seconds["b"] > 1.4 * seconds["a"]
    assert (seconds["verdict"], seconds["ratio"]) == (verdict, pytest.approx(ratio, rel=0.03))
    assert "nodes" in codes


def test_arms_without_a_node_in_common_are_not_comparable_in_time(assay_inline: AssayInline) -> None:
    _run_suite(assay_inline, "SplitCluster")
    seconds, codes = _compare(assay_inline, "seconds")
    score, _ = _compare(assay_inline, "score")

    assert (seconds["verdict"], score["verdict"]) == ("unsure", "same")
    assert "'fast'" in seconds["reason"]
    assert "'slow'" in seconds["reason"]
    assert "nodes" in codes


@pytest.mark.parametrize(("cluster", "ahead"), [("UnfairCluster", False), ("FakeClusterWithSlowerArm", True)])
def test_agents_are_ranked_by_speed_only_if_they_shared_the_nodes_alike(
    assay_inline: AssayInline, cluster: str, ahead: bool
) -> None:
    lead = _run_suite(assay_inline, cluster)["leads"][-1]

    assert ("speed" in lead["ahead_in"]) is ahead


def test_a_report_lists_its_machines(assay_inline: AssayInline) -> None:
    _run_suite(assay_inline)
    assay_inline("report", "last", "--format", "md,html", "--out", "out")
    pages = [
        next((assay_inline.folder / "out").rglob(f"*.{suffix}")).read_text() for suffix in ("md", "html")
    ]

    assert all("Machines" in page and "EPYC" in page for page in pages)
    assert "2 nodes" in assay_inline("show", "last").out


def test_a_result_file_knows_its_nodes_again(assay_inline: AssayInline) -> None:
    _run_suite(assay_inline, "UnfairCluster")
    assay_inline("report", "last", "--format", "json", "--out", "out")
    report = read_result(next((assay_inline.folder / "out").rglob("*.json")))
    assert [node.node for node in report.nodes] == ["fast", "slow"]
    assert [Counter(trial.nodes.values()) for trial in report.trials] == [
        {"fast": 9, "slow": 3},
        {"fast": 3, "slow": 9},
    ]


def _jobs(arms: int, rounds: int) -> Iterator[Job]:
    for number in range(rounds):
        for arm in range(arms):
            yield Job(
                arm, number, "work", {}, (), Iterations(), (), Isolation.PROCESS, Limits(), 0, (), "r", ""
            )


@given(st.integers(2, 4), st.integers(1, 30), st.integers(2, 4), st.randoms(use_true_random=False))
def test_each_job_is_dealt_once_and_rounds_stay_together_while_there_is_work(
    arms: int, rounds: int, nodes: int, chance: Random
) -> None:
    """Nodes ask in any order; only the last jobs, which would leave a node idle, may part from their round."""
    queues, dealt = NodeQueues(_jobs(arms, rounds)), []
    while (job := queues.draw(node := f"n{chance.randrange(nodes)}")) is not None:
        dealt.append((job.process, job.trial, node))

    assert sorted((number, arm) for number, arm, _ in dealt) == [
        (n, a) for n in range(rounds) for a in range(arms)
    ]
    homes: dict[int, set[str]] = {}
    for number, _, node in dealt:
        homes.setdefault(number, set()).add(node)
    assert sum(len(places) > 1 for places in homes.values()) <= nodes * (HELD + 1)


def test_what_waits_for_a_lost_node_goes_to_another() -> None:
    queues = NodeQueues(_jobs(arms=3, rounds=2))
    assert queues.draw("n1") is not None
    assert queues.draw("n2") is not None
    queues.drop("n1")

    left = [(job.process, job.trial) for job in iter(lambda: queues.draw("n2"), None)]
    assert sorted(left) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def _placed(*placements: tuple[int, int, str], made: tuple[tuple[int, int], ...] = ()) -> Batch:
    executions = tuple(
        Execution(trial, process, Phase.MEASURED, 0, Status.OK, 0.0, {}) for trial, process in made
    )
    return Batch(executions, placements=tuple(Placement(*one) for one in placements))


@pytest.mark.parametrize(
    ("batches", "nodes", "remarks"),
    [
        ([_placed((0, 0, "n1"))], {(0, 0): "n1"}, 0),
        ([_placed((0, 0, "n1")), _placed((0, 0, "n2"))], {(0, 0): "n2"}, 0),
        ([_placed((0, 0, "n2")), _placed(made=((0, 0),)), _placed((0, 0, "n1"))], {(0, 0): "n1 + n2"}, 1),
        ([_placed((0, 0, "n2"), (0, 0, "n1"), made=((0, 0),))], {(0, 0): "n1 + n2"}, 1),
        ([_placed((1, 0, "n2"), (1, 0, "n1"))], {(1, 0): "n1 + n2"}, 0),
    ],
    ids=[
        "stays",
        "moves before its first execution",
        "moves later",
        "moves within a batch",
        "a round that is spread",
    ],
)
def test_the_node_of_a_process_is_all_nodes_that_its_executions_may_come_from(
    batches: list[Batch], nodes: dict[tuple[int, int], str], remarks: int
) -> None:
    """Trial 0 is code, trial 1 an agent on a suite, whose rounds may be spread over nodes."""
    with Store.open("sqlite:///:memory:") as store:
        agent = replace(simple_trial(1), agent_use=AgentUse("one", "stub"))
        run = begin(store, "r1", plan_of(simple_trial(0), agent))
        log = PlacementLog(ActiveRun(run, store, Interrupt(), SteadyClock()), ())
        resolved = [log.resolve_placements(batch) for batch in batches]

    assert {(one.trial, one.process): one.node for batch in resolved for one in batch.placements} == nodes
    assert sum(len(batch.artifacts) for batch in resolved) == remarks


def test_a_pair_from_two_nodes_does_not_decide_a_question() -> None:
    arms = [replace(simple_trial(n), name=name) for n, name in enumerate("ab")]
    plan = replace(plan_of(*arms), question=Question(("a", "b"), min=3, max=4))
    ended: set[int] = set()
    deciding = Deciding(plan)
    for process, nodes in enumerate([("n1", "n1"), ("n1", "n2"), ("n2", "n2"), ("n2", "n1")]):
        placements = tuple(Placement(trial, process, node) for trial, node in enumerate(nodes))
        made = tuple(
            Execution(trial, process, Phase.MEASURED, repetition, Status.OK, 0.0, {"seconds": 1.0 + trial})
            for trial in (0, 1)
            for repetition in range(5)
        )
        deciding.see(Batch(made, placements=placements), ended)

    ruling = deciding.ruling()
    assert (ruling.pairs, ruling.left_out) == (2, 2)


@pytest.mark.parametrize(("begun", "pairs"), [(True, 0), (False, 1)])
def test_a_pair_of_processes_that_both_moved_counts_only_if_they_had_not_begun(
    begun: bool, pairs: int
) -> None:
    arms = [replace(simple_trial(n), name=name) for n, name in enumerate("ab")]
    deciding = Deciding(replace(plan_of(*arms), question=Question(("a", "b"), min=3, max=4)))
    made = [
        tuple(
            Execution(trial, 0, Phase.MEASURED, repetition, Status.OK, 0.0, {"seconds": 1.0 + trial})
            for trial in (0, 1)
            for repetition in repetitions
        )
        for repetitions in (range(2 * begun), range(2 * begun, 5))
    ]
    for node, executions in zip(("n1", "n2"), made, strict=True):
        placements = tuple(Placement(trial, 0, node) for trial in (0, 1))
        deciding.see(Batch(placements=placements), set())
        deciding.see(Batch(executions), set())

    ruling = deciding.ruling()
    assert (ruling.pairs, ruling.left_out) == (pairs, 1 - pairs)


def _write_suite(assay: AssayInline, resources: object) -> None:
    asked = json.dumps(resources)
    assay.write("sums.yaml", SUITE.replace("{name: two,", f"{{name: two, resources: {asked},"))


@pytest.mark.parametrize(
    ("resources", "key"),
    [
        ({"cpu": 0}, "cpu"),
        ({"gpu": -1}, "gpu"),
        ({"tpu": 1}, "tpu"),
        ({"custom": {"tpu": "one"}}, "custom.tpu"),
        (2, ""),
    ],
)
def test_a_mistake_in_resources_is_reported_with_its_line_and_key(
    assay_inline: AssayInline, resources: object, key: str
) -> None:
    _write_suite(assay_inline, resources)

    assert (
        f"sums.yaml:5: agents.1.resources{key and '.'}{key}" in assay_inline("validate", "sums.yaml").refusal
    )


def test_more_processors_than_there_are_are_refused_before_the_run(assay_inline: AssayInline) -> None:
    _write_suite(assay_inline, {"cpu": 10_000})

    assert "10000" in assay_inline("run", "sums.yaml").refusal
    assert assay_inline("runs", "list", "--json").json == []


def test_jobs_carry_the_resources_of_their_agent(assay_inline: AssayInline) -> None:
    _write_suite(assay_inline, {"cpu": 0.5, "custom": {"tpu": 1}})
    one, two = _run(assay_inline)["trials"]

    assert "resources" not in one
    assert two["resources"] == {"cpu": 0.5, "gpu": 0.0, "custom": {"tpu": 1.0}}


def test_an_experiment_asks_for_resources(assay_inline: AssayInline) -> None:
    assay_inline.write("work.py", WORK)
    spec = {"experiment": "work", "load": ["work.py"], "resources": {"cpu": 1, "custom": {"tpu": 2}}}
    assay_inline.write("spec.json", json.dumps(spec))
    (trial,) = assay_inline("run", "spec.json", "--isolation", "inline", "--json").json["trials"]

    assert trial["resources"]["custom"] == {"tpu": 2.0}
    assert ResourceRequest(1.0, 0.0, {"tpu": 1.0}).together_with(ResourceRequest()) == ResourceRequest(
        2.0, 0.0, {"tpu": 1.0}
    )
