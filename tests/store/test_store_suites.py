from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.examples import (
    GPT,
    NOON,
    NOP,
    batch,
    begin,
    elaborate_suite,
    execution,
    plan_of,
    small_suite,
    suite_plan,
)

from assay.errors import RunNotFound, SuiteNotFound
from assay.model import (
    AgentVersion,
    Batch,
    Benchmark,
    Budget,
    Case,
    Phase,
    Rubric,
    RunState,
    ScorerUse,
    Status,
    Suite,
    SuiteRef,
    Turn,
)
from assay.model.codec import from_plain
from assay.store import column_values as plain
from assay.store import registry
from assay.store.store import Store


def _rows(store: Store, table: str) -> int:
    rows = store.info()["rows"]
    assert isinstance(rows, dict)
    return int(rows[table])


def test_a_run_comes_back_with_its_suite_and_its_budget(store: Store) -> None:
    plan = suite_plan(elaborate_suite(), GPT, NOP, budget=Budget(1.5, 1e6))
    begin(store, "r1", plan)
    run = store.run("r1")
    assert run.suite == SuiteRef("elaborate", "2.1", "accuracy", "s1")
    assert run.budget == Budget(1.5, 1e6)
    assert [stored.trial for stored in run.trials] == list(plan.trials)


def test_a_run_of_code_has_no_suite_and_no_ceiling(store: Store) -> None:
    run = begin(store)
    assert (run.suite, run.budget, store.suite_of("run-1")) == (None, Budget(), None)
    assert run.trials[0].trial == plan_of().trials[0]


def test_the_suite_of_a_run_comes_back_whole(store: Store, url: str) -> None:
    begin(store, "r1", suite_plan(elaborate_suite(), GPT))
    with Store.open(url) as another:
        assert another.suite_of("r1") == elaborate_suite()
    assert store.suite_of("r1") == elaborate_suite()


def test_the_suite_of_a_run_that_is_not_there_is_a_clear_error(store: Store) -> None:
    with pytest.raises(RunNotFound, match="'r9'"):
        store.suite_of("r9")


def test_the_example_sets_every_field_of_a_suite_and_of_an_agent() -> None:
    """So that a field that is added to a noun cannot be forgotten by the store."""
    suite = elaborate_suite()
    sums = suite.benchmarks[0]
    case = sums.cases[0]
    turn = case.turns[0]
    nouns: tuple[Any, ...] = (
        suite,
        sums,
        case,
        turn,
        turn.scorers[1],
        sums.rubric,
        sums.limits,
        sums.iterations,
        GPT,
    )
    for noun in nouns:
        assert [field.name for field in fields(noun) if getattr(noun, field.name) == _default(field)] == []


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def test_runs_of_the_same_suite_share_its_definition(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite(), GPT))
    begin(store, "r2", suite_plan(small_suite(), NOP), hours=1)
    assert _rows(store, "suites") == 1
    assert store.suite_of("r1") == store.suite_of("r2") == small_suite()


def test_a_run_keeps_its_own_definition_when_only_the_rubric_was_edited(store: Store, url: str) -> None:
    before = small_suite()
    stricter = replace(before.benchmarks[0], rubric=Rubric(pass_mark=0.9))
    after = replace(before, benchmarks=(stricter,))
    begin(store, "r1", suite_plan(before, GPT))
    begin(store, "r2", suite_plan(after, GPT), hours=1)
    with Store.open(url) as another:
        assert (another.suite_of("r1"), another.suite_of("r2")) == (before, after)
    assert (store.suite_of("r1"), store.suite_of("r2")) == (before, after)


def test_a_definition_is_written_the_same_way_each_time() -> None:
    first, second = (plain.to_json(registry.suite_to_plain(elaborate_suite())) for _ in range(2))
    assert registry.digest(first) == registry.digest(second)
    other = plain.to_json(registry.suite_to_plain(replace(elaborate_suite(), description="another")))
    assert registry.digest(first) != registry.digest(other)


def test_mappings_of_any_kind_are_written_as_objects() -> None:
    frozen = Case(
        "c", MappingProxyType({"a": MappingProxyType({"b": 1})}), metadata=MappingProxyType({"m": 2})
    )
    suite = Suite("s", "1", "speed", (Benchmark("b", "b", (frozen,)),))
    (read,) = _through_json(suite).benchmarks[0].cases
    assert (read.input, read.metadata) == ({"a": {"b": 1}}, {"m": 2})


def _through_json(suite: Suite) -> Suite:
    return from_plain(Suite, json.loads(plain.to_json(registry.suite_to_plain(suite))))


_words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=5,
)
_objects = st.dictionaries(_words, _json, max_size=3)
_scorers = st.tuples() | st.tuples(
    st.builds(ScorerUse, _words, st.floats(0.1, 10), _objects, _words), st.just(ScorerUse("exact"))
)
_turns = st.lists(st.builds(Turn, _json, _json, _scorers), max_size=2).map(tuple)
_cases = st.builds(
    Case,
    _words,
    _json,
    _json,
    _turns,
    st.lists(_objects, max_size=2).map(tuple),
    st.dictionaries(_words, _words, max_size=2),
    st.lists(_words, max_size=2).map(tuple),
    _objects,
)


@given(cases=st.lists(_cases, max_size=3).map(tuple), scorers=_scorers, dataset=_objects)
def test_any_suite_survives_being_written_as_json(
    cases: tuple[Case, ...], scorers: tuple[ScorerUse, ...], dataset: dict[str, object]
) -> None:
    suite = Suite("s", "1", "speed", (Benchmark("b", "b", cases, scorers=scorers, dataset=dataset),))
    assert _through_json(suite) == suite


def test_what_is_done_tells_phase_case_and_repetition_of_each_suite_trial(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite(), GPT, NOP))
    made = [
        execution(0, case="c1", phase=Phase.WARMUP),
        execution(1, case="c2"),
        execution(0, case="c1"),
        execution(0, case="c2", status=Status.FAILED),
    ]
    store.add("r1", batch(made))
    assert store.read_done("r1") == {
        0: {("warmup", "c1", 0), ("measured", "c2", 1), ("measured", "c1", 0), ("measured", "c2", 0)},
        1: set(),
    }


def test_trials_of_code_are_not_told_case_by_case(store: Store) -> None:
    begin(store)
    store.add("run-1", batch([execution(0)]))
    assert store.read_done("run-1") == {}


def test_a_reopened_run_has_yet_to_do_what_was_not_settled(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite(), GPT))
    store.add("r1", batch([execution(0, case="c1"), execution(0, case="c2", status=Status.CANCELLED)]))
    store.reopen("r1", "me")
    assert store.read_done("r1") == {0: {("measured", "c1", 0)}}


def test_a_version_found_late_becomes_that_of_the_trials_agent(store: Store) -> None:
    plan = suite_plan(small_suite(), NOP, replace(NOP, name="other"))
    begin(store, "r1", plan)
    store.add("r1", Batch(versions={0: "model-2026"}))
    first, second = (stored.trial for stored in store.run("r1").trials)
    assert (first.agent, second.agent) == (AgentVersion("nop", "model-2026"), AgentVersion("other"))
    assert first == replace(plan.trials[0], agent=AgentVersion("nop", "model-2026"))


def test_a_version_that_is_known_already_is_shared(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite(), NOP))
    begin(store, "r2", suite_plan(small_suite(), replace(NOP, version="1")))
    store.add("r1", Batch(versions={0: "1"}))
    assert store.run("r1").trials[0].trial.agent == AgentVersion("nop", "1")
    assert _rows(store, "agents") == 2


def test_registered_agents_come_back_as_they_were(store: Store) -> None:
    store.register_agents([NOP, GPT])
    assert store.agents() == {"gpt": GPT, "nop": NOP}
    assert list(store.agents()) == ["gpt", "nop"]


def test_registering_an_agent_again_replaces_it_whatever_its_version(store: Store) -> None:
    store.register_agents([GPT, NOP])
    newer = replace(GPT, version="4", options={"model": "large"})
    store.register_agents([newer])
    assert store.agents() == {"gpt": newer, "nop": NOP}
    store.register_agents([GPT])
    assert store.agents()["gpt"] == GPT


def test_an_agent_that_was_only_run_is_not_registered(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite(), GPT))
    assert store.agents() == {}
    store.register_agents([])
    assert store.agents() == {}


def test_a_registered_suite_comes_back_whole(store: Store) -> None:
    store.register_suite(elaborate_suite())
    store.register_suite(small_suite())
    assert store.suite("elaborate") == elaborate_suite()
    assert store.suites() == [
        SuiteRef("elaborate", "2.1", "accuracy", "s1"),
        SuiteRef("small", "1", "speed", "s1"),
    ]


def test_the_suite_that_was_registered_last_is_the_one_by_its_name(store: Store) -> None:
    first, second = small_suite(), small_suite(hash="s2")
    store.register_suite(first, NOON)
    store.register_suite(second, NOON)
    assert (store.suite("small"), [suite.hash for suite in store.suites()]) == (second, ["s2"])
    store.register_suite(first, NOON)
    assert (store.suite("small"), [suite.hash for suite in store.suites()]) == (first, ["s1"])


def test_a_suite_that_nobody_registered_is_a_clear_error(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite(), GPT))
    store.register_suite(elaborate_suite())
    with pytest.raises(SuiteNotFound, match=r"'elaborat'.*'elaborate'.*: elaborate"):
        store.suite("elaborat")
    with pytest.raises(SuiteNotFound):
        store.suite("small")


def test_a_suite_goes_with_its_last_run(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite(), GPT))
    begin(store, "r2", suite_plan(small_suite(), GPT))
    store.delete("r1")
    assert store.suite_of("r2") == small_suite()
    store.delete("r2")
    assert _rows(store, "suites") == 0


def test_pruning_takes_the_suites_of_pruned_runs_along(store: Store) -> None:
    for number, hash in enumerate(("s1", "s2")):
        begin(store, f"r{number}", suite_plan(small_suite(hash=hash), GPT), hours=number)
        store.finish(f"r{number}", RunState.COMPLETED, NOON)
    assert store.prune(older_than_days=None, keep=1, now=NOON + timedelta(days=1)) == ["r0"]
    assert _rows(store, "suites") == 1
    assert store.suite_of("r1") == small_suite(hash="s2")


def test_a_registered_suite_outlives_its_runs_until_another_takes_its_name(store: Store) -> None:
    store.register_suite(small_suite())
    begin(store, "r1", suite_plan(small_suite(), GPT))
    store.delete("r1")
    assert store.suite("small") == small_suite()
    store.register_suite(small_suite(hash="s2"))
    assert _rows(store, "suites") == 1


def test_a_suite_that_lost_its_name_stays_while_a_run_needs_it(store: Store) -> None:
    store.register_suite(small_suite())
    begin(store, "r1", suite_plan(small_suite(), GPT))
    store.register_suite(small_suite(hash="s2"))
    assert store.suite_of("r1") == small_suite()
