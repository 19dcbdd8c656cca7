from __future__ import annotations

from datetime import timedelta

import pytest
from tests.past import NOON, Past, suite_of

from assay.store.results import ResultFilter
from assay.store.store import Store


@pytest.fixture
def past(store: Store) -> Store:
    """Three runs of one agent on two benchmarks, an hour apart, then one of another agent on another suite."""
    of_desk = Past(store, suite=suite_of("refunds", "orders"))
    for version in ("1", "1", "2"):
        of_desk.run(version)
    Past(store, "other", suite_of("sums", name="maths"), made=3).run("9")
    return store


def _found(store: Store, chosen: ResultFilter, **page: int) -> list[tuple[str, str]]:
    return [(row["run_id"], row["benchmark_id"]) for row in store.results(chosen, **page)]


def test_results_are_chosen_by_what_they_are_of(past: Store) -> None:
    assert _found(past, ResultFilter("other")) == [("run004", "sums")]
    assert _found(past, ResultFilter(suite="maths")) == [("run004", "sums")]
    assert _found(past, ResultFilter(benchmark="orders", run="run002")) == [("run002", "orders")]
    assert len(_found(past, ResultFilter("desk-agent", "desk"))) == 6
    assert _found(past, ResultFilter("nobody")) == []


def test_the_latest_result_of_each_benchmark(past: Store) -> None:
    latest = [("run004", "sums"), ("run003", "orders"), ("run003", "refunds")]
    assert _found(past, ResultFilter(is_latest=True)) == latest


def test_results_since_a_moment(past: Store) -> None:
    since = ResultFilter("desk-agent", since=NOON + timedelta(hours=2))
    assert {run for run, _ in _found(past, since)} == {"run002", "run003"}


def test_pages_have_every_result_once(past: Store) -> None:
    whole = past.results(ResultFilter())
    first = past.results(ResultFilter(), limit=3)
    rest = past.results(ResultFilter(), before=first[-1]["id"], limit=30)
    assert [row["id"] for row in (*first, *rest)] == [row["id"] for row in whole]
    assert len(whole) == 7


def test_results_of_an_agent_that_was_known_first_come_in_their_turn(past: Store) -> None:
    Past(past, suite=suite_of("refunds", "orders"), made=4).run("3")
    runs = [run for run, _ in _found(past, ResultFilter(), limit=4)]
    assert runs == ["run005", "run005", "run004", "run003"]


def test_a_result_has_values_of_the_right_types(past: Store) -> None:
    [row] = past.results(ResultFilter("other"))
    assert row["execution_environment"]["os"] == {"system": "Linux"}
    assert row["model_configuration"]["type"] == "python"
    assert row["created_at"] == NOON + timedelta(hours=4)
    assert (row["agent_version"], row["workspace_id"], row["status"]) == ("9", "default", "success")
    assert row["simulated"] in (False, None)
