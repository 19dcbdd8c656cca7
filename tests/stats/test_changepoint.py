from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.stats.changepoint import History, detect, relative_change

anything = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60)
few_levels = st.lists(st.sampled_from([0.0, 1.0, 2.0, -3.0]), max_size=80)
plateaus = st.lists(
    st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 40)), max_size=6
).map(lambda levels: [level for level, length in levels for _ in range(length)])


def noise(n: int, seed: int = 1, sigma: float = 0.015) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, sigma, n)


def steps(*levels: float, length: int = 50, seed: int = 1) -> list[float]:
    series = np.repeat(levels, length)
    return [float(value) for value in series * np.exp(noise(series.size, seed))]


def indexes(values: list[float]) -> list[int]:
    return [point.index for point in detect(values).change_points]


def numbers(found: History) -> list[float]:
    """Every number that a caller may write down."""
    parts = [*map(astuple, found.change_points), *([astuple(found.drift)] if found.drift else [])]
    return [number for part in parts for number in part if number is not None]


def test_a_step_is_found_where_it_is_with_both_levels() -> None:
    (point,) = detect(steps(100, 110)).change_points

    assert point.index == 50
    assert point.before == pytest.approx(100, rel=0.01)
    assert point.after == pytest.approx(110, rel=0.01)
    assert point.change == pytest.approx(0.1, abs=0.01)
    assert point.p_value < 1e-6
    assert not point.is_pending


def test_there_and_back_are_two_changes() -> None:
    assert indexes(steps(100, 120, 100)) == [50, 100]


def test_noise_alone_has_no_change() -> None:
    assert indexes(steps(100, 100, 100, 100)) == []


def test_one_wild_value_is_no_change() -> None:
    values = steps(100, 100)
    values[40] = 1e9

    assert indexes(values) == []


def test_a_change_of_four_points_is_pending_and_later_settled() -> None:
    values = steps(100, 130)

    assert [(p.index, p.is_pending) for p in detect(values[:54]).change_points] == [(50, True)]
    assert [(p.index, p.is_pending) for p in detect(values[:55]).change_points] == [(50, False)]


def test_three_points_are_not_yet_a_change() -> None:
    assert indexes(steps(100, 130)[:53]) == []


@pytest.mark.parametrize("seed", range(6))
def test_points_that_are_appended_do_not_move_a_settled_change(seed: int) -> None:
    values = steps(100, 115, seed=seed)
    found = {tuple(indexes(values[:n])) for n in range(60, 101, 4)}

    assert len(found) == 1
    assert abs(next(iter(found))[0] - 50) <= 1


def test_a_small_step_far_from_a_large_one_is_found_as_well() -> None:
    assert indexes(steps(100, 106, 106, 160, 160)) == [50, 150]


def test_a_change_of_less_than_half_a_percent_is_not_worth_a_word() -> None:
    quiet = np.exp(noise(200, sigma=0.0002))
    quiet[100:] *= 1.003

    assert indexes(quiet.tolist()) == []


def test_a_shift_smaller_than_the_noise_is_left_alone() -> None:
    wide = np.exp(noise(400, sigma=0.2))
    wide[200:] *= 1.1

    assert indexes(wide.tolist()) == []


def test_a_slow_drift_is_a_drift_and_not_a_staircase() -> None:
    found = detect((100 * np.exp(noise(300) + np.linspace(0, math.log(1.1), 300))).tolist())

    assert found.change_points == ()
    assert found.drift is not None
    assert found.drift.change == pytest.approx(0.1, abs=0.02)
    assert found.drift.low == pytest.approx(0.09, abs=0.02)
    assert found.drift.high == pytest.approx(0.11, abs=0.02)
    assert found.drift.start < 60
    assert found.drift.end > 240
    assert found.drift.p_value < 1e-6


def test_a_clean_rise_over_thirty_points_is_a_drift() -> None:
    found = detect([100 * 1.014**i for i in range(30)])

    assert found.change_points == ()
    assert found.drift is not None
    assert (found.drift.start, found.drift.end) == (0, 29)
    assert found.drift.change == pytest.approx(1.014**29 - 1, abs=0.005)


def test_a_straight_line_through_zero_is_a_drift() -> None:
    found = detect([float(i - 10) for i in range(24)])

    assert found.change_points == ()
    assert found.drift is not None
    assert found.drift.before == pytest.approx(-10)
    assert found.drift.after == pytest.approx(13)


@pytest.mark.parametrize("n", [16, 20, 30, 60])
def test_a_drift_of_twenty_percent_in_a_short_history_is_a_drift_and_not_steps(n: int) -> None:
    way = np.linspace(0, math.log(1.2), n)
    found = [detect(np.exp(noise(n, seed, 0.02) + way).tolist()) for seed in range(40)]

    assert sum(one.drift is not None and not one.change_points for one in found) >= 37
    assert sum(len(one.change_points) >= 2 for one in found) == 0


@pytest.mark.parametrize("n", [16, 20, 30, 60])
def test_a_step_in_a_short_history_is_not_called_a_drift(n: int) -> None:
    way = math.log(1.2) * (np.arange(n) >= n // 2)
    found = [detect(np.exp(noise(n, seed, 0.02) + way).tolist()) for seed in range(40)]

    assert sum(one.drift is None and len(one.change_points) == 1 for one in found) >= 39


@pytest.mark.parametrize("cut", [3, 5, 11, 13])
def test_a_step_too_near_to_the_end_of_a_short_history_is_not_called_a_drift(cut: int) -> None:
    way = math.log(1.2) * (np.arange(16) >= cut)

    assert all(detect(np.exp(noise(16, seed, 0.02) + way).tolist()).drift is None for seed in range(20))


def test_a_drift_that_begins_late_is_reported_with_its_beginning() -> None:
    way = np.clip((np.arange(400) - 200) / 200, 0, 1)

    found = detect((100 * np.exp(noise(400) - 0.15 * way)).tolist())

    assert found.change_points == ()
    assert found.drift is not None
    assert 120 <= found.drift.start <= 280
    assert found.drift.change == pytest.approx(math.exp(-0.15) - 1, abs=0.03)


def test_a_sharp_step_after_a_drift_stays_a_step() -> None:
    way = np.clip(np.arange(400) / 300, 0, 1) * 0.1 + 0.3 * (np.arange(400) >= 300)

    found = detect((100 * np.exp(noise(400) + way)).tolist())

    assert [point.index for point in found.change_points] == [300]
    assert found.drift is not None
    assert found.drift.end <= 300


@pytest.mark.parametrize("n", range(16))
def test_fewer_than_sixteen_points_tell_nothing_and_say_why(n: int) -> None:
    found = detect([*[1.0] * 8, *[9.0] * 8][:n])

    assert found == History((), None, n, found.reason)
    assert (found.reason.split()[0], " 16 " in found.reason) == (str(n), True)


@pytest.mark.parametrize("n", range(8, 18))
def test_a_step_can_be_found_exactly_where_a_history_is_not_short(n: int) -> None:
    places = {
        point.index
        for cut in range(1, n)
        for point in detect([1.0 + 1e-4 * (i % 3) + 9.0 * (i >= cut) for i in range(n)]).change_points
    }

    assert bool(places) is (n >= 16)


@pytest.mark.parametrize("level", [0.0, 5.0, -5.0, 1e300, -1e300, 5e-324])
def test_a_constant_has_no_change(level: float) -> None:
    found = detect([level] * 40)

    assert (found.change_points, found.drift, found.reason) == ((), None, "")


@pytest.mark.parametrize("factor", [1e-300, 1e-12, 1e12, 1e300])
def test_a_step_is_found_whatever_the_unit(factor: float) -> None:
    assert indexes([value / 100 * factor for value in steps(100, 120)]) == [50]


@pytest.mark.parametrize("offset", [-100.0, -110.0, -300.0])
def test_a_step_is_found_among_zeros_and_negative_values(offset: float) -> None:
    values = [round(value) + offset for value in steps(100, 130)]

    (point,) = detect(values).change_points

    assert point.index == 50
    assert point.change is not None
    assert point.change > 0


def test_coarse_clocks_make_no_changes_of_their_ties() -> None:
    ticks = np.random.default_rng(5).choice([10.0, 11.0], 200, p=[0.7, 0.3])

    assert indexes(ticks.tolist()) == []


def test_a_step_between_two_constants_is_found() -> None:
    (point,) = detect([10.0] * 30 + [11.0] * 30).change_points

    assert (point.index, point.before, point.after) == (30, 10.0, 11.0)


def test_a_step_from_zero_has_a_change_that_can_be_written_down() -> None:
    (point,) = detect([0.0] * 30 + [4.0] * 30).change_points

    assert (point.index, point.change) == (30, 1.0)


def test_a_ratio_beyond_all_numbers_is_no_number() -> None:
    assert relative_change(1e-300, 1e300) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_refused_with_its_position(bad: float) -> None:
    with pytest.raises(ValueError, match="position 3 is"):
        detect([1.0, 2.0, 3.0, bad, 5.0, bad])


def test_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="flat list"):
        detect([[1.0, 2.0], [3.0, 4.0]])  # type: ignore[list-item]


def test_the_same_values_give_the_same_answer() -> None:
    values = steps(100, 105, 100, 120)

    assert detect(values) == detect(list(values))


@example([0.0] * 4 + [1.0] * 3 + [1.3e308])
@example([0.0] * 60 + [0.0, 1.0] * 30)
@given(st.one_of(anything, few_levels, plateaus))
def test_any_finite_numbers_are_answered_with_finite_numbers(values: list[float]) -> None:
    found = detect(values)

    assert all(math.isfinite(number) for number in numbers(found))
    assert found.n == len(values)
    assert [point.index for point in found.change_points] == sorted(
        {point.index for point in found.change_points}
    )
    assert all(
        4 <= point.index <= len(values) - 4 and 0 <= point.p_value <= 1 for point in found.change_points
    )


@given(st.integers(0, 10**6), st.integers(-40, 40))
def test_another_unit_moves_no_change(seed: int, exponent: int) -> None:
    values = steps(100, 112, 100, length=25, seed=seed)

    assert indexes([value * 2.0**exponent for value in values]) == indexes(values)


def test_a_step_of_three_sigma_is_found_beside_one_of_thirty() -> None:
    assert indexes(steps(100, 105, 150, 158, 225, 236, length=28)) == [28, 56, 84, 112, 140]


def test_noise_that_strays_slowly_is_seldom_taken_for_changes() -> None:
    flagged = 0
    for seed in range(40):
        chance = np.random.default_rng(seed)
        strayed = np.zeros(200)
        for place in range(1, 200):
            strayed[place] = 0.97 * strayed[place - 1] + 0.0017 * chance.standard_normal()
        flagged += bool(indexes((100 * np.exp(strayed + 0.015 * chance.standard_normal(200))).tolist()))

    assert flagged <= 5


def test_a_burst_at_the_beginning_is_no_change() -> None:
    values = steps(100, 100)
    values[:5] = [value * 1.05 for value in values[:5]]

    assert indexes(values) == []


@pytest.mark.parametrize("shift", [0, 60, 120])
def test_steps_of_a_long_history_are_found_once_wherever_blocks_meet(shift: int) -> None:
    places = [640 + shift, 896 + shift, 1664 + shift, 3000 + shift, 4990 + shift]
    level = sum(0.1 * (-1) ** i * (np.arange(6000) >= place) for i, place in enumerate(places))
    shares: list[float] = []

    found = detect((100 * np.exp(noise(6000) + level)).tolist(), shares.append)

    assert [point.index for point in found.change_points] == pytest.approx(places, abs=3)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_long_history_without_change_has_none() -> None:
    assert indexes((100 * np.exp(noise(20_000))).tolist()) == []


def test_a_long_constant_has_no_change() -> None:
    assert indexes([3.0] * 10_000) == []


def test_points_appended_to_a_long_history_do_not_move_settled_changes() -> None:
    level = 0.1 * (np.arange(7000) >= 900) - 0.1 * (np.arange(7000) >= 4200)
    values = (100 * np.exp(noise(7000) + level)).tolist()

    assert {tuple(indexes(values[:n])) for n in (5000, 5001, 5700, 6400, 7000)} == {(900, 4200)}


def test_a_drift_over_a_long_history_is_a_drift() -> None:
    found = detect((100 * np.exp(noise(10_000) + np.linspace(0, math.log(1.3), 10_000))).tolist())

    assert found.change_points == ()
    assert found.drift is not None
    assert found.drift.change == pytest.approx(0.3, abs=0.02)
