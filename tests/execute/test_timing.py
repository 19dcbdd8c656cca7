"""What is timed is the experiment and nothing else, as often as it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.execute.carrying import Carried, trial
from tests.execute.conftest import Carry

from assay.model import Isolation, Status, Until


def loops(carried: Carried) -> set[int]:
    assert set(carried.statuses) == {Status.OK}
    return {execution.loops for execution in carried.executions}


def test_a_tiny_function_gets_many_calls_in_one_execution(carry: Carry) -> None:
    (number,) = loops(carry(trial("tiny", loops=None)))

    assert number >= 1000


def test_a_slow_function_is_called_once_in_one_execution(carry: Carry) -> None:
    assert loops(carry(trial("slow", loops=None))) == {1}


def test_a_first_call_that_is_slow_does_not_decide(carry: Carry) -> None:
    (number,) = loops(carry(trial("slow_at_first", loops=None)))

    assert number >= 1000


def test_a_number_of_calls_that_is_given_is_kept_to(carry: Carry) -> None:
    assert loops(carry(trial("seven", loops=7))) == {7}


def test_async_functions_are_called_many_times_too(carry: Carry) -> None:
    (number,) = loops(carry(trial("tiny_async", loops=None)))

    assert number >= 100


def test_an_async_experiment_keeps_its_loop_from_setup_to_teardown(carry: Carry, tmp_path: Path) -> None:
    carried = carry(trial("asynchronous", measured=3))

    counts = carried.values("count")
    assert carried.values("is_same_loop") == [1.0] * 3
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert (tmp_path / "trial-0" / "teardown").read_text() == "True"


def test_auto_stops_early_when_the_times_are_steady(carry: Carry) -> None:
    carried = carry(trial("steady", measured=60, until=Until(interval=0.5, max=60)))

    assert 6 <= len(carried.executions) < 60


def test_auto_goes_on_to_the_maximum_when_the_times_are_wild(carry: Carry) -> None:
    carried = carry(trial("wild", measured=30, until=Until(interval=0.02, max=30)))

    assert len(carried.executions) == 30


def test_an_instrument_that_takes_its_time_does_not_change_the_seconds(carry: Carry) -> None:
    carried = carry(trial("three_milliseconds", measured=20, instruments=("timing", "slow_but_light")))

    assert carried.values("watched_measured") == [1.0] * 20
    # A busy machine makes some of them late; the 40 ms of the instrument would make all of them so.
    assert 0.003 <= min(carried.values("seconds")) < 0.02


@pytest.mark.parametrize("isolation", list(Isolation))
def test_an_instrument_that_slows_its_subject_watches_an_execution_of_its_own(
    carry: Carry, isolation: Isolation
) -> None:
    instruments = ("timing", "slowing", "slow_but_light")
    carried = carry(
        trial("three_milliseconds", warmup=1, measured=2, instruments=instruments, isolation=isolation)
    )

    phases = [(e.phase, "watched_profiled" in e.measurements, "watched_measured" in e.measurements)
              for e in carried.executions]  # fmt: skip
    assert sorted(phases) == [
        ("measured", False, True),
        ("measured", False, True),
        ("profiled", True, False),
        ("warmup", False, False),
    ]


def test_what_an_instrument_costs_is_reported_once(carry: Carry) -> None:
    carried = carry(trial(processes=2, instruments=("timing", "slow_but_light")))

    (costs,) = [batch.costs for batch in carried.batches if batch.costs]
    assert 0.04 <= costs["slow_but_light"] < 5
