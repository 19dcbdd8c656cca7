from __future__ import annotations

import math
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.load.engine import part_of
from assay.load.schedule import RateStage, arrivals, share

RATES = st.floats(0, 200).map(lambda rate: round(rate, 3))
STAGES = st.lists(st.builds(RateStage, st.floats(0.05, 5), RATES, RATES), min_size=1, max_size=5)


def area(stages: list[RateStage], until: float) -> float:
    """Arrivals that should have happened by then: the area under the curve of the rate."""
    total = 0.0
    for stage in stages:
        part = max(0.0, min(until, stage.seconds))
        last = stage.first + (stage.last - stage.first) * part / stage.seconds
        total += part * (stage.first + last) / 2
        until -= stage.seconds
    return total


@given(STAGES)
def test_even_arrivals_follow_the_area_under_the_rate(stages: list[RateStage]) -> None:
    due = list(arrivals(stages, False, 1))
    assert due == sorted(due)
    assert len(due) == pytest.approx(sum(stage.arrivals for stage in stages), abs=1.001)
    for number, moment in enumerate(due):
        assert area(stages, moment) == pytest.approx(number, abs=1e-3 + number * 1e-6)


@given(STAGES, st.integers(0, 2**32))
def test_arrivals_by_chance_stay_in_time_and_are_the_same_with_the_same_seed(
    stages: list[RateStage], seed: int
) -> None:
    due = list(arrivals(stages, True, seed))
    assert due == sorted(due)
    assert all(0 <= moment <= sum(stage.seconds for stage in stages) + 1e-9 for moment in due)
    assert due == list(arrivals(stages, True, seed))


def test_arrivals_by_chance_are_a_poisson_process() -> None:
    """Mean and variance of counts per second are both the rate: 1,000 s at 50/s, five standard errors."""
    due = list(arrivals([RateStage(1000, 50, 50)], True, 5))
    counts = [0] * 1000
    for moment in due:
        counts[min(999, int(moment))] += 1
    mean = sum(counts) / 1000
    variance = sum((count - mean) ** 2 for count in counts) / 999
    assert abs(mean - 50) < 5 * math.sqrt(50 / 1000)
    assert abs(variance - 50) < 5 * 50 * math.sqrt(2 / 999)


def test_a_ramp_may_begin_and_end_at_nothing() -> None:
    due = list(arrivals([RateStage(2, 0, 10), RateStage(1, 0, 0), RateStage(2, 10, 0)], False, 1))
    assert due[0] == 0.0
    assert len(due) == 20
    assert not [moment for moment in due if 2.001 < moment < 2.999]


@given(STAGES, st.integers(1, 5), st.booleans())
def test_workers_share_a_timetable_without_loss_or_doubles(
    stages: list[RateStage], workers: int, is_poisson: bool
) -> None:
    whole = list(enumerate(arrivals(stages, is_poisson, 3)))
    parts = [list(share(arrivals(stages, is_poisson, 3), worker, workers)) for worker in range(workers)]
    assert sorted(turn for part in parts for turn in part) == whole


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_parts_of_workers_add_up(whole: int, workers: int) -> None:
    parts = [part_of(whole, worker, workers) for worker in range(workers)]
    assert sum(parts) == whole
    assert max(parts) - min(parts) <= 1


def test_a_timetable_of_a_week_is_not_made_before_it_is_needed() -> None:
    week = arrivals([RateStage(7 * 24 * 3600, 1e6, 1e6)], False, 1)
    assert list(islice(week, 3)) == pytest.approx([0, 1e-6, 2e-6])
