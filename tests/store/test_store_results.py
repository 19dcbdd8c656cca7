from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa
from tests.past import NOON, Past, suite_of

from assay.model.redaction import known_secrets
from assay.store.results import ResultFilter, _view
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


def test_rows_are_those_of_the_view_also_when_runs_have_gone(past: Store) -> None:
    def read_view() -> dict[int, dict[str, object]]:
        with past._engine.connect() as connection:
            found = connection.execute(sa.select(_view)).mappings()
            return {row["id"]: dict(row) for row in found}

    for gone in ("run003", "run002"):
        rows = {row["id"]: row for row in past.results(ResultFilter())}
        assert rows.keys() == read_view().keys()
        for number, expected in read_view().items():
            assert {name: rows[number][name] for name in expected} == expected
        past.delete(gone)
    assert len(rows) == 5


def test_rows_of_one_machine_share_its_facts_and_others_have_their_own(past: Store) -> None:
    Past(past, made=4).run(facts={"os": {"system": "Plan 9"}})
    first, *others = [row["execution_environment"] for row in past.results(ResultFilter())]
    assert first == {"os": {"system": "Plan 9"}}
    assert all(facts is others[0] for facts in others)


def test_a_secret_that_was_learned_since_is_not_shown_among_the_facts(past: Store) -> None:
    Past(past, made=4).run(facts={"host": "n0de-of-ann-77"})
    known_secrets().learn("n0de-of-ann-77")
    [row] = past.results(ResultFilter(run="run005"))
    assert row["execution_environment"] == {"host": "[redacted]"}
