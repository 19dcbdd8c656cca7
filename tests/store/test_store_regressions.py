"""The store keeps regressions in their states, and knows the past of an agent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.past import FACTS, NOON, Past, suite_of

from assay.errors import LookupFailed, RunNotFound
from assay.model import RunState
from assay.model.metric import Better, Metric
from assay.model.regression import Impact, Loss, Regression, RegressionState, Severity
from assay.store.store import Store

FOUND = Regression(
    id="abcd1234",
    agent="gpt",
    suite="desk",
    benchmark="refunds",
    metric=Metric("seconds", "s", Better.LOWER),
    before="1.3",
    after="1.4",
    baseline_value=1.0,
    current_value=1.25,
    loss=Loss(0.25, 0.12, float("inf")),
    tolerance=0.03,
    severity=Severity.MODERATE,
    found_by=("baseline", "step"),
    p=0.01,
    impact=Impact(("c1", "c2"), 0.05, 250.0, None),
    is_pending=True,
    note="ä ✓",
    detected=NOON,
    changed=NOON,
)


def test_a_regression_comes_back_as_it_was_kept(store: Store) -> None:
    store.keep_regressions([FOUND])
    assert store.regressions("gpt") == [FOUND]
    assert store.regressions("other") == []


def test_what_is_kept_again_takes_the_place_of_what_was(store: Store) -> None:
    store.keep_regressions([FOUND, replace(FOUND, id="ffff0000", detected=NOON + timedelta(1))])
    store.keep_regressions([replace(FOUND, current_value=2.0)])
    assert [(one.id, one.current_value) for one in store.regressions("gpt")] == [
        ("abcd1234", 2.0),
        ("ffff0000", 1.25),
    ]


def test_keeping_nothing_changes_nothing(store: Store) -> None:
    store.keep_regressions([FOUND])
    store.keep_regressions([])
    assert store.regressions("gpt") == [FOUND]


def test_a_person_gives_it_a_state_with_note_and_time(store: Store) -> None:
    store.keep_regressions([FOUND])
    later = NOON + timedelta(hours=3)
    marked = store.mark_regression("gpt", "abc", RegressionState.CONFIRMED, "the new parser", later)
    assert (marked.state, marked.note, marked.changed, marked.is_marked) == (
        RegressionState.CONFIRMED,
        "the new parser",
        later,
        True,
    )
    assert store.regressions("gpt") == [marked]


def test_a_mark_without_a_note_leaves_the_note_that_there_is(store: Store) -> None:
    store.keep_regressions([FOUND])
    assert store.mark_regression("gpt", "abcd1234", RegressionState.INVESTIGATING).note == FOUND.note


def test_an_id_that_nobody_knows_or_several_have_is_refused(store: Store) -> None:
    store.keep_regressions([FOUND, replace(FOUND, id="abcd9999")])
    with pytest.raises(LookupFailed, match=r"'ffff'.* 'gpt': abcd1234, abcd9999"):
        store.mark_regression("gpt", "ffff", RegressionState.CONFIRMED)
    with pytest.raises(LookupFailed, match=" abcd1234, abcd9999"):
        store.mark_regression("gpt", "abcd", RegressionState.CONFIRMED)


def test_an_agents_past_is_in_order_and_only_what_was_carried_out(store: Store) -> None:
    past = Past(store, suite=suite_of("refunds", "greetings"))
    past.run("1")
    past.run("2", state=RunState.INTERRUPTED)
    past.run("3", facts={**FACTS, "machine": "arm64"})
    found = store.agent_trials(past.agent)
    assert [(one.version, one.benchmark) for one in found] == [
        ("1", "refunds"),
        ("1", "greetings"),
        ("3", "refunds"),
        ("3", "greetings"),
    ]
    assert [one.facts["machine"] for one in found] == ["x86_64", "x86_64", "arm64", "arm64"]
    assert found[0].cases[:2] == ("c00", "c01")
    assert store.agents_with_trials() == [past.agent]
    assert store.agent_trials("nobody") == []


def test_profiles_are_no_part_of_an_agents_past(store: Store) -> None:
    past = Past(store, suite=suite_of("refunds"))
    past.run("1")
    past.run("2")
    store.tag(store.run("last").id, ["profile"], [])
    assert [one.version for one in store.agent_trials(past.agent)] == ["1"]


def test_a_baseline_can_be_taken_away_and_its_run_stays(store: Store) -> None:
    run = Past(store).run()
    store.set_baseline("main", run.id)
    assert store.delete_baseline("main") == run.id
    assert store.baselines() == {}
    assert store.run(run.id).id == run.id
    with pytest.raises(RunNotFound, match=r"baseline 'main'"):
        store.delete_baseline("main")
