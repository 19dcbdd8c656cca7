"""Which node carried out what, in the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.store.examples import NOON, begin, execution, plan_of, simple_trial

from assay.model import Batch, Environment, Placement, ResourceRequest, RunState
from assay.store import spill
from assay.store.store import Store

NODES = {"n1": {"facts": {"load": [0.5]}, "vcs": {}, "doubts": ["noisy"]}}
PLACED = Batch(
    (execution(0), execution(0, trial=1)),
    placements=(Placement(0, 0, "n1"), Placement(0, 1, "n1"), Placement(1, 0, "n2")),
    nodes=NODES,
)


def _begin(store: Store, run_id: str = "r1") -> list[int]:
    run = begin(store, run_id, plan_of(simple_trial(0), simple_trial(1)))
    return [stored.id for stored in run.trials]


def test_the_node_of_each_process_is_kept_and_the_last_one_counts(store: Store) -> None:
    first, second = _begin(store)
    store.add("r1", PLACED)
    store.add("r1", Batch(placements=(Placement(0, 1, "n3"), Placement(0, 2, "n1"), Placement(0, 2, "n2"))))

    assert store.placements(first) == {0: "n1", 1: "n3", 2: "n2"}
    assert store.placements(second) == {0: "n2"}


def test_a_run_on_one_machine_has_no_nodes(store: Store) -> None:
    first, _ = _begin(store)
    store.add("r1", Batch((execution(0),)))

    assert store.placements(first) == {}
    assert "nodes" not in store.run("r1").environment.facts


def test_facts_of_a_node_are_those_of_when_it_joined(store: Store) -> None:
    _begin(store)
    store.add("r1", PLACED)
    before = store.run("r1").environment
    store.add("r1", Batch(nodes={"n1": {"facts": {}}, "n2": {"facts": {"load": [2.0]}}}))

    after = store.run("r1").environment
    assert before.facts["nodes"] == NODES
    assert after.facts["nodes"] == {**NODES, "n2": {"facts": {"load": [2.0]}}}
    assert replace(after, facts={**after.facts, "nodes": NODES}) == before


def test_a_doubt_about_a_node_that_comes_later_is_added(store: Store) -> None:
    _begin(store)
    store.add("r1", PLACED)
    for doubts in (["noisy", "shared"], ["shared"]):
        store.add("r1", Batch(nodes={"n1": {"facts": {}, "doubts": doubts}}))

    nodes = store.run("r1").environment.facts["nodes"]
    assert nodes == {"n1": {**NODES["n1"], "doubts": ["noisy", "shared"]}}


def test_placements_go_with_an_export_and_with_a_copy(store: Store, tmp_path: Path) -> None:
    from assay.store.copying import copy_database

    ids = _begin(store)
    store.add("r1", PLACED)
    store.finish("r1", RunState.COMPLETED, NOON)
    exported = f"sqlite:///{store.export(tmp_path / 'run.db', 'r1')}"
    copied = f"sqlite:///{tmp_path / 'copy.db'}"
    progress = copy_database(exported, copied, lambda _: None)

    assert progress.rows["placements"] == 3
    for url in (exported, copied):
        with Store.open(url) as other:
            assert [other.placements(trial) for trial in ids] == [store.placements(trial) for trial in ids]
            assert other.run("r1").environment.facts["nodes"] == NODES


def test_placements_go_with_their_run(store: Store) -> None:
    _begin(store)
    store.add("r1", PLACED)
    store.finish("r1", RunState.COMPLETED, NOON)
    store.delete("r1")

    rows = store.info()["rows"]
    assert isinstance(rows, dict)
    assert rows["placements"] == 0


def test_placements_that_wait_in_a_file_arrive_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "unsaved.jsonl"
    spill.append(file, [spill.header("r1", "token"), spill.encode(1, PLACED)])

    found = spill.read(file, "r1")
    assert found is not None
    assert found.batches == ((1, PLACED),)


def test_resources_of_a_trial_are_kept(store: Store) -> None:
    asked = ResourceRequest(cpu=2.0, gpu=0.5, custom={"tpu": 1.0})
    store.begin(plan_of(replace(simple_trial(), resources=asked)), Environment({}), "r1", NOON, "me")

    assert store.run("r1").trials[0].trial.resources == asked
