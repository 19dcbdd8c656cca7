"""References of ratings in the store, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from tests.store.examples import NOON, NOP, batch, begin, execution, small_suite, suite_plan
from tests.store.test_store_schema import SCHEMAS, _engine, _restore

from assay.model import RunState
from assay.model.rating import RatingScope, Reference, ReferenceOrigin
from assay.pipeline.references import rate_after_upgrade
from assay.store.store import Store, upgrade

SCOPE = RatingScope("small", "sums", "sums-hash", simulated=False)


def reference(
    value: float, origin: str = "first", run_id: str = "r1", scope: RatingScope = SCOPE
) -> Reference:
    return Reference(scope, "seconds", value, run_id, NOON, ReferenceOrigin(origin))


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("first", "first", 1.0),
        ("first", "partial", 1.0),
        ("first", "chosen", 2.0),
        ("partial", "partial", 1.0),
        ("partial", "first", 2.0),
        ("chosen", "first", 1.0),
        ("chosen", "chosen", 2.0),
    ],
)
def test_of_two_runs_that_end_at_once_the_first_is_kept_and_a_choice_always(
    store: Store, first: str, second: str, kept: float
) -> None:
    store.keep_references([reference(1.0, first)])
    store.keep_references([reference(2.0, second)])
    assert [one.value for one in store.references("small")] == [kept]


def test_a_reference_is_read_as_it_was_written_and_belongs_to_one_definition(store: Store) -> None:
    run = begin(store, "r1", suite_plan(small_suite(), NOP))
    other = replace(SCOPE, hash="older")
    store.keep_references(
        [reference(1.0), reference(2.0, scope=other), reference(3.0, scope=replace(SCOPE, simulated=True))]
    )
    assert store.trial_references(run.trials[0].id) == {"seconds": reference(1.0)}
    store.add("r1", batch([execution(0, case="c1", detail={"simulated": True})]))
    assert store.trial_references(run.trials[0].id)["seconds"].value == 3.0


def test_trials_of_completed_runs_come_with_the_whole_ones_first(store: Store) -> None:
    plan = suite_plan(small_suite(), NOP)
    some = replace(plan, trials=tuple(replace(trial, cases=("c1",)) for trial in plan.trials))
    ends = [
        ("some", some, RunState.COMPLETED),
        ("failed", plan, RunState.FAILED),
        ("late", plan, RunState.COMPLETED),
    ]
    for hour, (run_id, made, state) in enumerate(ends):
        begin(store, run_id, made, hours=hour)
        store.finish(run_id, state, NOON + timedelta(hours=hour))
    found = store.read_completed_trials(SCOPE)
    assert [(one.run_id, one.is_whole) for one in found] == [("late", True), ("some", False)]


def test_a_reference_goes_with_the_last_definition_that_it_is_of(store: Store) -> None:
    plan = suite_plan(small_suite(), NOP)
    for run_id in ("r1", "r2"):
        begin(store, run_id, plan)
    store.keep_references([reference(1.0)])
    store.delete("r1")
    assert store.references("small") == [reference(1.0)]
    store.delete("r2")
    assert store.references("small") == []


def test_ratings_that_came_from_a_baseline_are_relative_to_the_first_run_after_an_upgrade(url: str) -> None:
    """A solved case cost the two agents that solved any 0.001 usd; by the baseline, which held the third too, it was 0.0017."""
    _restore(url, SCHEMAS / "0006.sql")
    cost = sa.text("SELECT id, cost FROM trials WHERE suite = 'kept' ORDER BY id")
    with _engine(url).connect() as connection:
        assert [value for _, value in connection.execute(cost)] == pytest.approx([0.625, 0.0, 0.625])
    upgrade(url)
    with Store.open(url) as store:
        assert rate_after_upgrade(store) == 3
        found = {one.quantity: (one.value, one.run_id, one.origin) for one in store.references("kept")}
        assert found == {
            "seconds": (0.5, "0ld-suite", "first"),
            "usd": (pytest.approx(0.001), "0ld-suite", "first"),
        }
        assert rate_after_upgrade(store) == 0
    with _engine(url).connect() as connection:
        assert [value for _, value in connection.execute(cost)] == pytest.approx([0.5, 0.0, 0.5])
