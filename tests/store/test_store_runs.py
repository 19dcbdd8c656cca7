from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.store.examples import (
    ENVIRONMENT,
    NOON,
    batch,
    begin,
    elaborate_plan,
    execution,
    plan_of,
    simple_trial,
)

from assay.errors import RunNotFound, StoreError
from assay.model import AgentVersion, Artifact, Batch, Plan, Run, RunState
from assay.store.revisions import REVISIONS
from assay.store.store import Store


def test_a_run_comes_back_as_its_plan_was(store: Store) -> None:
    plan = elaborate_plan()
    store.begin(plan, ENVIRONMENT, "r1", NOON, "host:1")
    run = store.run("r1")
    assert [stored.trial for stored in run.trials] == list(plan.trials)
    assert run == Run(
        id="r1",
        name="elaborate",
        state=RunState.RUNNING,
        started=NOON,
        ended=None,
        seed=2**40,
        tags=("db", "nightly"),
        notes="why",
        environment=ENVIRONMENT,
        trials=run.trials,
        source=plan.source,
        order="sequential",
        parallelism=3,
        executor="elsewhere",
        load=("experiments.py",),
        output_dir="results",
    )


def test_beginning_gives_the_run_as_it_is_stored(store: Store) -> None:
    assert begin(store, "r1", elaborate_plan()) == store.run("r1")


def test_params_and_specs_keep_the_order_of_their_keys(store: Store) -> None:
    run = begin(store, "r1", elaborate_plan())
    assert list(run.trials[0].trial.axes) == ["zeta", "alpha"]
    assert list(run.source) == ["experiment", "zeta", "alpha"]


def test_an_id_is_given_only_once(store: Store) -> None:
    begin(store, "r1")
    with pytest.raises(StoreError, match="'r1'"):
        begin(store, "r1")


def test_a_plan_without_trials_can_be_stored(store: Store) -> None:
    run = store.begin(Plan("empty", (), 1), ENVIRONMENT, "r1", NOON, "me")
    assert run.trials == ()


def test_runs_of_the_same_agent_share_it(store: Store) -> None:
    begin(store, "r1", plan_of(simple_trial(0), simple_trial(1, AgentVersion("parser", "2"))))
    begin(store, "r2")
    rows = store.info()["rows"]
    assert isinstance(rows, dict)
    assert rows["agents"] == 2


def test_finishing_records_state_and_time(store: Store) -> None:
    begin(store, "r1")
    store.finish("r1", RunState.COMPLETED, NOON + timedelta(minutes=2))
    run = store.run("r1")
    assert (run.state, run.ended) == (RunState.COMPLETED, NOON + timedelta(minutes=2))


def test_a_run_that_is_reopened_runs_again_under_its_new_owner(store: Store) -> None:
    begin(store, "r1")
    store.finish("r1", RunState.INTERRUPTED, NOON)
    run = store.reopen("r1", "somebody else")
    assert (run.state, run.ended, store.owner("r1")) == (RunState.RUNNING, None, "somebody else")


def test_a_run_is_found_by_an_unambiguous_prefix(store: Store) -> None:
    begin(store, "abc1")
    begin(store, "abd1")
    assert store.run("abc").id == "abc1"


def test_an_id_that_begins_another_is_not_ambiguous(store: Store) -> None:
    begin(store, "abc")
    begin(store, "abcd")
    assert store.run("abc").id == "abc"


def test_an_ambiguous_prefix_lists_the_candidates(store: Store) -> None:
    begin(store, "abc1")
    begin(store, "abd1")
    with pytest.raises(RunNotFound, match=r"'ab'.*\(abc1, abd1\)"):
        store.run("ab")


@pytest.mark.parametrize("ref", ["zz", "a", "", "%%", "__", "ABC"])
def test_what_begins_no_id_finds_no_run(store: Store, ref: str) -> None:
    begin(store, "abc1")
    with pytest.raises(RunNotFound, match="assay runs list"):
        store.run(ref)


def test_last_is_the_run_that_was_started_last(store: Store) -> None:
    begin(store, "new", hours=1)
    begin(store, "old")
    assert store.run("last").id == "new"


def test_last_of_an_empty_store_says_how_to_make_a_run(store: Store) -> None:
    with pytest.raises(RunNotFound, match="assay run "):
        store.run("last")


def test_a_baseline_names_a_run_until_it_is_given_to_another(store: Store) -> None:
    begin(store, "r1")
    begin(store, "r2")
    store.set_baseline("main", "r1")
    store.set_baseline("other", "r1")
    store.set_baseline("main", "r2")
    assert store.run("@main").id == "r2"
    assert store.baselines() == {"main": "r2", "other": "r1"}


def test_an_unknown_baseline_says_how_to_make_it(store: Store) -> None:
    begin(store, "r1")
    store.set_baseline("main", "r1")
    with pytest.raises(RunNotFound, match=r"'main'.*assay baseline set mian RUN"):
        store.run("@mian")


def test_listings_are_newest_first_with_their_counts(store: Store) -> None:
    begin(store, "r1", plan_of(simple_trial(0), simple_trial(1), tags=("b", "a")))
    begin(store, "r2", hours=1)
    store.add("r1", batch([execution(0), execution(0, trial=1), execution(1, trial=1)]))
    first, second = store.runs()
    assert (first.id, first.trials, first.executions, first.tags) == ("r2", 1, 0, ())
    assert (second.id, second.trials, second.executions, second.tags) == ("r1", 2, 3, ("a", "b"))
    assert (second.state, second.started, second.ended) == (RunState.RUNNING, NOON, None)


def test_listings_can_be_limited_to_a_number_a_tag_or_a_name(store: Store) -> None:
    begin(store, "r1", plan_of(name="one", tags=("t",)))
    begin(store, "r2", plan_of(name="two", tags=("t",)), hours=1)
    begin(store, "r3", plan_of(name="two"), hours=2)
    assert [run.id for run in store.runs(limit=2)] == ["r3", "r2"]
    assert [run.id for run in store.runs(tag="t")] == ["r2", "r1"]
    assert [run.id for run in store.runs(name="two", tag="t")] == ["r2"]
    assert [run.id for run in store.runs(limit=None)] == ["r3", "r2", "r1"]


def test_tags_are_added_and_removed(store: Store) -> None:
    begin(store, "r1", plan_of(tags=("a", "b")))
    assert store.tag("r1", ["c", "b", "c"], ["a", "never there"]) == ("b", "c")
    assert store.run("r1").tags == ("b", "c")


def test_a_deleted_run_leaves_nothing_behind(store: Store) -> None:
    begin(store, "r1", plan_of(tags=("a",)))
    store.add("r1", batch([execution(0)]))
    store.delete("r1")
    rows = store.info()["rows"]
    assert isinstance(rows, dict)
    # That something changed is still counted.
    left = {"workspaces": 1, "agents": 1, "suite_changes": 1}
    assert {name: number for name, number in rows.items() if number} == left


def test_deleting_a_run_leaves_the_others_whole(store: Store) -> None:
    begin(store, "r1")
    kept = begin(store, "r2")
    store.add("r2", batch([execution(0)]))
    store.delete("r1")
    assert store.run("r2") == kept
    assert store.counts(kept.trials[0].id) == {"ok": 1}


def test_a_baseline_is_not_deleted(store: Store) -> None:
    begin(store, "r1")
    store.set_baseline("main", "r1")
    with pytest.raises(StoreError, match=r"'r1'.*'main'"):
        store.delete("r1")
    assert store.run("r1").id == "r1"


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.delete("r9"),
        lambda store: store.tag("r9", ["a"], []),
        lambda store: store.set_baseline("main", "r9"),
        lambda store: store.finish("r9", RunState.COMPLETED, NOON),
        lambda store: store.reopen("r9", "me"),
        lambda store: store.owner("r9"),
        lambda store: store.progress("r9"),
        lambda store: store.add("r9", Batch()),
    ],
)
def test_a_run_that_is_not_there_is_said_so(store: Store, ask) -> None:
    with pytest.raises(RunNotFound, match="'r9'"):
        ask(store)


def _finished(store: Store, run_id: str, days_ago: int) -> None:
    begin(store, run_id, hours=-24 * days_ago)
    store.finish(run_id, RunState.COMPLETED, NOON)


def test_pruning_by_age_keeps_what_is_young(store: Store) -> None:
    _finished(store, "old", 31)
    _finished(store, "young", 29)
    assert store.prune(older_than_days=30, keep=None, now=NOON) == ["old"]
    assert [run.id for run in store.runs()] == ["young"]


def test_pruning_by_number_keeps_the_newest(store: Store) -> None:
    for days in (1, 2, 3):
        _finished(store, f"r{days}", days)
    assert store.prune(older_than_days=None, keep=1, now=NOON) == ["r2", "r3"]


def test_pruning_by_both_deletes_only_what_both_allow(store: Store) -> None:
    for days in (1, 10, 20):
        _finished(store, f"r{days}", days)
    assert store.prune(older_than_days=5, keep=2, now=NOON) == ["r20"]


def test_pruning_without_a_rule_deletes_nothing(store: Store) -> None:
    _finished(store, "r1", 1)
    assert store.prune(older_than_days=None, keep=None) == []
    assert len(store.runs()) == 1


def test_a_dry_run_of_pruning_only_tells(store: Store) -> None:
    _finished(store, "r1", 1)
    assert store.prune(older_than_days=None, keep=0, dry_run=True, now=NOON) == ["r1"]
    assert len(store.runs()) == 1


def test_pruning_spares_baselines_and_what_is_running(store: Store) -> None:
    _finished(store, "baseline", 3)
    store.set_baseline("main", "baseline")
    begin(store, "running", hours=-100)
    _finished(store, "gone", 9)
    assert store.prune(older_than_days=0, keep=None, now=NOON) == ["gone"]


def test_the_store_tells_about_itself(store: Store, url: str) -> None:
    begin(store, "r1")
    told = store.info()
    assert told["dialect"] == url.partition(":")[0]
    assert told["revision"] == REVISIONS[-1]
    assert isinstance(told["size_bytes"], int)
    assert told["size_bytes"] > 4096
    assert isinstance(told["rows"], dict)
    assert (told["rows"]["runs"], told["rows"]["trials"]) == (1, 1)


def test_a_list_of_runs_tells_what_loads_came_to(store: Store) -> None:
    loads = [replace(simple_trial(index), experiment="load") for index in range(3)]
    begin(store, "r1", plan_of(*loads, simple_trial(3)))
    documents: list[dict[str, object]] = [
        {"verdict": "ok"},
        {"throughput_rps": 3.0, "load": [{"verdict": "slo_broken"}]},
        {"from": "an earlier version"},
        {"verdict": "of something that is no load"},
    ]
    made = [replace(execution(index), trial=index, output=output) for index, output in enumerate(documents)]
    store.add("r1", Batch(tuple(made)))
    (found,) = store.runs()
    assert sorted(found.verdicts) == ["ok", "slo_broken"]


def test_a_list_of_runs_tells_that_a_target_broke_under_stress(store: Store) -> None:
    begin(store, "r1", plan_of(*(replace(simple_trial(index), experiment="stress") for index in range(4))))
    causes: list[str | None] = [None, "latency", "generator", "errors"]
    breaches = [None if cause is None else {"cause": cause} for cause in causes]
    made = [
        replace(execution(index), trial=index, output={"scenario": {"breach": breach}})
        for index, breach in enumerate(breaches)
    ]
    store.add("r1", Batch(tuple(made)))
    (found,) = store.runs()
    # Where our own generator was the limit, nothing broke.
    assert found.verdicts == ("broke", "broke")


def test_a_search_for_the_capacity_has_no_verdict(store: Store) -> None:
    """Its steps break the objective on purpose."""
    begin(store, "r1", plan_of(replace(simple_trial(), experiment="load")))
    artifact = Artifact(0, "capacity.json", "application/json", b"{}")
    store.add("r1", Batch((replace(execution(0), output={"verdict": "slo_broken"}),), artifacts=(artifact,)))
    (found,) = store.runs()
    assert found.verdicts == ()
