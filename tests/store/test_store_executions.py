from __future__ import annotations

import tracemalloc
from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.examples import NOON, batch, begin, execution, plan_of, simple_trial

from assay.errors import StoreError
from assay.model import Artifact, Batch, Phase, Run, Status
from assay.store.store import Store


def _trial(run: Run, index: int = 0) -> int:
    return run.trials[index].id


def test_executions_come_back_as_they_were(store: Store) -> None:
    run = begin(store)
    made = [
        execution(0, phase=Phase.WARMUP),
        execution(0, process=3, case="c1", loops=1000, output={"text": "ä", "list": [1, None]}),
        execution(1, measurements={}, status=Status.FAILED, error="ValueError: no", log="a\nb"),
        execution(2, measurements={"seconds": 1e-9, "tokens": 12.0}, applied={"model": "m", "depth": 2}),
    ]
    assert store.add("run-1", batch(made)) == 4
    assert list(store.executions(_trial(run))) == made


def test_executions_can_be_iterated_again(store: Store) -> None:
    run = begin(store)
    store.add("run-1", batch(map(execution, range(3))))
    stored = store.executions(_trial(run))
    assert list(stored) == list(stored)


def test_many_executions_are_read_in_the_order_of_storing(store: Store) -> None:
    run = begin(store)
    order = [*range(1500, 2300), *range(1500)]
    store.add("run-1", batch(map(execution, order)))
    assert [one.repetition for one in store.executions(_trial(run))] == order


def test_each_trial_has_its_own_executions(store: Store) -> None:
    run = begin(store, plan=plan_of(simple_trial(0), simple_trial(1)))
    store.add("run-1", batch([execution(0), execution(0, trial=1), execution(1, trial=1)]))
    assert [one.trial for one in store.executions(_trial(run, 1))] == [1, 1]
    assert store.counts(_trial(run, 0)) == {"ok": 1}


def test_an_execution_that_is_there_already_is_left_alone(store: Store) -> None:
    run = begin(store)
    store.add("run-1", batch([execution(0), execution(1)]))
    again = [execution(1, measurements={"seconds": 99.0, "other": 1.0}), execution(2)]
    assert store.add("run-1", batch(again)) == 1
    series = store.series(_trial(run))
    assert list(series["seconds"].values) == [0.5, 1.5, 2.5]
    assert "other" not in series


def test_an_execution_twice_in_a_batch_is_stored_once(store: Store) -> None:
    run = begin(store)
    twice = [execution(0), execution(0, measurements={"seconds": 99.0})]
    assert store.add("run-1", batch(twice)) == 1
    assert list(store.series(_trial(run))["seconds"].values) == [0.5]


def test_a_whole_batch_again_changes_nothing(store: Store) -> None:
    run = begin(store)
    made = batch(map(execution, range(10)))
    store.add("run-1", made)
    assert store.add("run-1", made) == 0
    assert list(store.executions(_trial(run))) == list(made.executions)


def test_processes_phases_and_cases_tell_executions_apart(store: Store) -> None:
    begin(store)
    made = [execution(0), execution(0, process=1), execution(0, phase=Phase.PROFILED), execution(0, case="a")]
    assert store.add("run-1", batch(made)) == 4


def test_another_writer_of_the_same_run_does_not_disturb_the_numbering(store: Store, url: str) -> None:
    run = begin(store)
    store.add("run-1", batch([execution(0)]))
    with Store.open(url) as other:
        other.add("run-1", batch([execution(1)]))
    assert store.add("run-1", batch([execution(2)])) == 1
    assert [one.repetition for one in store.executions(_trial(run))] == [0, 1, 2]


def test_a_run_deleted_while_it_is_written_is_a_clear_error(store: Store, url: str) -> None:
    begin(store)
    store.add("run-1", batch([execution(0)]))
    with Store.open(url) as other:
        other.delete("run-1")
    with pytest.raises(Exception, match="'run-1'") as caught:
        store.add("run-1", batch([execution(1)]))
    assert not isinstance(caught.value, StoreError)


def test_series_hold_ok_measured_executions_only(store: Store) -> None:
    run = begin(store)
    made = [
        execution(0, phase=Phase.WARMUP),
        execution(0, phase=Phase.PROFILED),
        execution(0, process=4),
        execution(1, status=Status.FAILED),
        execution(2, measurements={"seconds": 2.0, "tokens": 7}),
    ]
    store.add("run-1", batch(made))
    series = store.series(_trial(run))
    assert series["seconds"].processes == array("q", [4, 0])
    assert series["seconds"].repetitions == array("q", [0, 2])
    assert series["seconds"].values == array("d", [0.5, 2.0])
    assert series["tokens"].values == array("d", [7.0])


def test_a_trial_without_executions_has_no_series(store: Store) -> None:
    run = begin(store)
    assert store.series(_trial(run)) == {}
    assert store.counts(_trial(run)) == {}
    assert store.read_applied_settings(_trial(run)) == {}
    assert list(store.executions(_trial(run))) == []


def test_counts_are_of_measured_executions_by_status(store: Store) -> None:
    run = begin(store)
    statuses = [Status.OK, Status.OK, Status.TIMEOUT, Status.CRASHED]
    store.add("run-1", batch(execution(n, status=status) for n, status in enumerate(statuses)))
    store.add("run-1", batch([execution(0, phase=Phase.WARMUP, status=Status.FAILED)]))
    assert store.counts(_trial(run)) == {"ok": 2, "timeout": 1, "crashed": 1}


def test_failures_are_the_first_ones_of_any_phase(store: Store) -> None:
    run = begin(store)
    warmup = execution(0, phase=Phase.WARMUP, status=Status.FAILED, error="cold")
    later = [execution(n, status=Status.TIMEOUT) for n in range(1, 4)]
    store.add("run-1", batch([warmup, execution(0), *later]))
    assert store.failures(_trial(run), limit=2) == (warmup, later[0])


def test_applied_is_what_was_read_back_last(store: Store) -> None:
    run = begin(store)
    store.add("run-1", batch([execution(0, applied={"a": 1}), execution(1, applied={"a": 2}), execution(2)]))
    assert store.read_applied_settings(_trial(run)) == {"a": 2}


def test_artifacts_come_back_byte_for_byte(store: Store) -> None:
    run = begin(store, plan=plan_of(simple_trial(0), simple_trial(1)))
    kept = (Artifact(1, "a.prof", "cprofile", bytes(range(256)) * 50), Artifact(1, "empty", "remark", b""))
    store.add("run-1", Batch(artifacts=kept))
    assert store.artifacts(_trial(run, 1)) == kept
    assert store.artifacts(_trial(run, 0)) == ()


def test_why_a_trial_stopped_is_kept(store: Store) -> None:
    begin(store, plan=plan_of(simple_trial(0), simple_trial(1)))
    reason = "five failures in a row"
    store.add("run-1", Batch(stopped={1: reason}))
    assert [stored.stopped for stored in store.run("run-1").trials] == [None, reason]


def test_what_instruments_cost_and_could_not_measure_adds_up(store: Store) -> None:
    begin(store)
    store.add("run-1", Batch(costs={"timing": 1e-7}, unmeasured={"gpu": "no such device"}))
    store.add("run-1", Batch(costs={"psutil": 0.001}))
    run = store.run("run-1")
    assert run.instrument_costs == {"timing": 1e-7, "psutil": 0.001}
    assert run.unmeasured == {"gpu": "no such device"}


def test_progress_counts_each_trial_process_and_phase(store: Store) -> None:
    begin(store, plan=plan_of(simple_trial(0), simple_trial(1)))
    made = [execution(0, phase=Phase.WARMUP), execution(0), execution(1), execution(0, trial=1, process=2)]
    store.add("run-1", batch(made))
    assert store.progress("run-1") == {(0, 0, "warmup"): 1, (0, 0, "measured"): 2, (1, 2, "measured"): 1}


def test_unsettled_executions_go_when_the_run_is_reopened(store: Store) -> None:
    run = begin(store)
    made = [execution(0), execution(1, status=Status.FAILED), execution(2, status=Status.CANCELLED)]
    store.add("run-1", batch(made))
    store.reopen("run-1", "me")
    assert list(store.executions(_trial(run))) == made[:2]
    assert store.progress("run-1") == {(0, 0, "measured"): 2}


def test_a_reopened_run_can_store_anew_what_was_not_settled(store: Store) -> None:
    run = begin(store)
    store.add("run-1", batch([execution(0), execution(1, status=Status.HARNESS_ERROR)]))
    store.reopen("run-1", "me")
    assert store.add("run-1", batch([execution(1)])) == 1
    assert store.counts(_trial(run)) == {"ok": 2}


def test_progress_ends_before_a_gap_so_that_resuming_fills_it(store: Store) -> None:
    run = begin(store)
    statuses = [Status.OK, Status.HARNESS_ERROR, Status.OK, Status.OK]
    store.add("run-1", batch(execution(n, status=status) for n, status in enumerate(statuses)))
    store.reopen("run-1", "me")
    done = store.progress("run-1")[0, 0, "measured"]
    assert done == 1
    assert store.add("run-1", batch(map(execution, range(done, 4)))) == 1
    assert sorted(one.repetition for one in store.executions(_trial(run))) == [0, 1, 2, 3]


def test_what_a_database_would_refuse_is_kept_in_a_readable_form(store: Store) -> None:
    run = begin(store)
    odd = execution(
        0,
        status=Status.CRASHED,
        error="nul \x00 \udc80",
        log="\x00",
        output={"nan": float("nan"), "s\x00": ["\udfff", "\x00"], "when": NOON},
    )
    store.add("run-1", batch([odd]))
    (kept,) = store.executions(_trial(run))
    assert (kept.error, kept.log) == ("nul � ?", "�")
    assert kept.output == {"nan": "nan", "s�": ["?", "�"], "when": str(NOON)}


def test_counts_larger_than_sixty_four_bits_are_stored_as_floats(store: Store) -> None:
    run = begin(store)
    store.add("run-1", batch([execution(0, measurements={"ops": 2**70})]))
    assert list(store.series(_trial(run))["ops"].values) == [2.0**70]


_finite = st.floats(allow_nan=False, allow_infinity=False)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=_finite, output=_json)
def test_any_finite_value_and_any_json_survives(store: Store, value: float, output: object) -> None:
    run_id = f"run-{len(store.runs(limit=None))}"
    trial = _trial(begin(store, run_id))
    made = execution(0, measurements={"m": value}, output=output)
    store.add(run_id, batch([made]))
    assert list(store.executions(trial)) == [made]


def test_reading_a_long_series_needs_little_more_memory_than_its_columns(store: Store) -> None:
    run = begin(store)
    for start in range(0, 30_000, 5000):
        store.add("run-1", batch(map(execution, range(start, start + 5000))))
    store.series(_trial(run))
    tracemalloc.start()
    try:
        series = store.series(_trial(run))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    columns = 3 * 8 * len(series["seconds"].values)
    assert columns == 720_000
    assert peak < 2 * columns + 2_500_000
