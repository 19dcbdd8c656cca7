"""Where a load broke something: from what the workers told, added up by hand."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.load.results import result, times
from tests.wording import Wording

from assay.load.stress.bench import _LoadWatch
from assay.load.stress.breaking_point import breach_of, first_breach
from assay.load.tally import Slice, Tally
from assay.load.worker_report import OK, Chunk, columns_of
from assay.model.load import Arrivals, Load
from assay.model.stress import Breach
from assay.spec.load_settings import objectives_of
from assay.stats.histogram import histogram
from assay.stats.line import fairness, fit_line, growth_exponent

RATE = Load(Arrivals.CONSTANT, stages=((4.0, 40.0, 40.0),), seconds=4.0)
SLO = objectives_of("latency_p95<200ms")


def tally(slices: list[tuple[int, int, float]]) -> Tally:
    """Of each quarter of a second: answers, failures, and the latency of the answers."""
    whole = Tally()
    for place, (completed, failed, latency) in enumerate(slices):
        slice_ = Slice(completed=completed, sent=completed + failed)
        slice_.errors.update({"http_503": failed} if failed else {})
        slice_.times["latency"] = histogram(np.full(completed, latency))
        whole.slices[place] = slice_
    whole.last_end = len(slices) * whole.width
    return whole


FINE, LATE, FAILING, SILENT = (10, 0, 0.1), (10, 0, 0.3), (9, 1, 0.1), (2, 0, 0.1)


def test_nothing_breaks_where_all_is_well():
    assert first_breach(tally([FINE] * 16), RATE, SLO, 0.5) is None


def test_the_first_breach_that_lasts_is_found_with_its_load_and_cause():
    breach = first_breach(tally([FINE, LATE, FINE, FINE, LATE, LATE, LATE] + [FINE] * 9), RATE, SLO, 0.5)
    assert breach is not None
    assert (breach.at, breach.load, breach.unit, breach.cause) == (1.0, 40.0, "requests/s", "latency")
    assert "latency_p95<200ms" in breach.why


def test_in_a_long_load_a_hiccup_is_no_breach_that_lasts():
    load = Load(Arrivals.CONSTANT, stages=((1800.0, 10.0, 10.0),), seconds=1800.0)
    watch = _LoadWatch(load, lambda seconds: None, lambda pulse, load: None, 1800.0, lambda: False)
    for second in range(1800):
        watch.take(told(second, latency=1.0 if second == 900 else 0.1))
    assert first_breach(watch.closely, load, SLO, 3.0) is None
    watch = _LoadWatch(load, lambda seconds: None, lambda pulse, load: None, 1800.0, lambda: False)
    for second in range(1800):
        watch.take(told(second, latency=1.0 if 900 <= second < 904 else 0.1))
    breach = first_breach(watch.closely, load, SLO, 3.0)
    assert breach is not None
    assert breach.at == 900.0


def test_what_follows_a_pause_of_our_own_is_our_doing_until_all_is_well_again():
    # Nothing is asked for a second, then all at once: late by us, then because of the burst.
    course = [FINE] * 4 + [LATE] * 8 + [FINE] * 4
    burst = first_breach(tally(course), RATE, SLO, 0.5, [(1.0, 2.0)])
    assert burst is not None
    assert (burst.is_theirs, burst.at) == (False, 1.0)
    later = [FINE] * 2 + [LATE] * 4 + [FINE] * 4 + [LATE] * 6
    theirs = first_breach(tally(later), RATE, SLO, 0.5, [(0.5, 1.0)])
    assert theirs is not None
    assert (theirs.is_theirs, theirs.at) == (True, 2.5)
    failing = first_breach(tally([FAILING] * 16), RATE, SLO, 0.5, [(0.0, 4.0)])
    assert failing is not None
    assert failing.cause == "errors"


def test_a_worker_that_is_not_heard_was_held_up():
    watch = _LoadWatch(RATE, lambda seconds: None, lambda pulse, load: None, 10.0, lambda: False)
    for second in (0, 1, 2, 6, 7):
        watch.take(told(second, latency=0.1))
    assert watch.pauses(3.0) == [(3.0, 7.0)]
    assert watch.pauses(0.5) == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 7.0), (7.0, 8.0)]


def test_only_times_that_an_objective_is_about_are_kept_that_closely():
    load = Load(Arrivals.CONSTANT, stages=((8.0, 10.0, 10.0),), seconds=8.0)
    kept = {}
    for slo in ("latency_p95<200ms", "ttft_p95<200ms"):
        meant = replace(load, objectives=objectives_of(slo))
        watch = _LoadWatch(meant, lambda seconds: None, lambda pulse, load: None, 8.0, lambda: False)
        for second in range(8):
            watch.take(told(second, latency=0.3))
        assert first_breach(watch.closely, load, meant.objectives, 3.0) is not None
        slices = watch.closely.slices.values()
        kept[slo] = {name for one in slices for name, times in one.times.items() if times.n}
    assert kept["latency_p95<200ms"] == {"latency"}
    assert kept["ttft_p95<200ms"] == {"latency", "ttft"}


def told(second: int, latency: float) -> Chunk:
    """What a worker tells of ten requests in a second."""
    dues = [second + n / 10 for n in range(10)]
    rows = [
        (10 * second + n, due, due, due, due + latency, due + latency, 1, 1, OK, 0.0, 1)
        for n, due in enumerate(dues)
    ]
    facts: dict[str, object] = dict.fromkeys(("in_flight", "reconnects", "coalesced", "cpu"), 0)
    facts |= dict.fromkeys(("counted", "simulated", "is_last"), False)
    facts |= {"at": second + 1.0, "sent": 10 * second + 10, "kinds": ["ok"], "answers": [], "worker": 0}
    return Chunk(columns_of(rows), array("d"), facts)


def test_callers_that_get_nothing_because_they_fail_break_a_level_though_few_requests_fail(wording: Wording):
    load = Load(Arrivals.CLOSED, concurrency=8, seconds=4.0)

    def course(*failing: int) -> _LoadWatch:
        """Eight callers in turn, ten times each; those who fail do so once, and try no more."""
        watch = _LoadWatch(load, lambda seconds: None, lambda pulse, load: None, 4.0, lambda: False)
        for turn in range(10):
            chunk = told(turn, latency=0.1)
            rows = [
                (8 * turn + place, turn, turn, turn, turn, turn + 0.1, 1, 1, place in failing, 0.0, 1)
                for place in range(8)
                if turn == 0 or place not in failing
            ]
            watch.take(Chunk(columns_of(rows), array("d"), {**chunk.facts, "kinds": ["ok", "failed"]}))
        return watch

    breach = course(5, 6, 7).find_starved_callers()
    assert breach is not None
    assert (breach.cause, breach.load, breach.unit) == ("errors", 8.0, "at a time")
    assert "3 of 8 " in breach.why
    wording(breach.why)
    assert course().find_starved_callers() is None


def test_a_longer_time_to_last_lets_short_breaches_pass():
    course = [FINE] * 4 + [LATE] * 4 + [FINE] * 8
    assert first_breach(tally(course), RATE, SLO, 1.0) is not None
    assert first_breach(tally(course), RATE, SLO, 3.0) is None


def test_a_load_that_is_shorter_than_a_breach_must_be_breaks_when_all_of_it_is_bad():
    short = Load(Arrivals.CLOSED, concurrency=1, seconds=60.0, count=20)
    assert first_breach(tally([LATE, LATE]), short, SLO, 3.0) is not None
    assert first_breach(tally([FINE] * 8 + [LATE]), short, SLO, 3.0) is None


def test_more_than_five_percent_of_errors_break_it_without_any_objective():
    breach = first_breach(tally([FINE, FAILING, FAILING, FINE]), RATE, (), 0.5)
    assert breach is not None
    assert breach.cause == "errors"
    assert "10 %" in breach.why
    assert "http_503" in breach.why
    nineteen_of_twenty = (19, 1, 0.1)
    steady = Load(Arrivals.CONSTANT, stages=((4.0, 80.0, 80.0),), seconds=4.0)
    assert first_breach(tally([nineteen_of_twenty] * 16), steady, (), 0.5) is None


def test_requests_that_were_due_and_never_answered_are_saturation():
    breach = first_breach(tally([FINE, FINE, SILENT, SILENT] + [SILENT] * 12), RATE, SLO, 0.5)
    assert breach is not None
    assert (breach.at, breach.cause) == (0.5, "saturation")
    assert "80 %" in breach.why


def test_of_a_closed_loop_the_load_is_how_many_at_a_time():
    closed = Load(Arrivals.CLOSED, concurrency=32, seconds=4.0)
    breach = first_breach(tally([LATE] * 16), closed, SLO, 0.5)
    assert breach is not None
    assert (breach.load, breach.unit) == (32.0, "at a time")


def test_in_a_spike_the_load_is_that_of_the_moment():
    spike = Load(
        Arrivals.CONSTANT, stages=((1.0, 40.0, 40.0), (1.0, 400.0, 400.0), (2.0, 40.0, 40.0)), seconds=4.0
    )
    course = [FINE] * 4 + [(100, 0, 0.5)] * 4 + [FINE] * 8
    breach = first_breach(tally(course), spike, SLO, 0.5)
    assert breach is not None
    assert (breach.at, breach.load) == (1.0, 400.0)


def blamed(course: list[tuple[int, int, float]], load: Load = RATE, **found: Any) -> Breach | None:
    """SLO is 200 ms; times and all that is said of us as given."""
    return breach_of(tally(course), load, SLO, 0.5, result(**found))


def test_what_we_could_not_read_in_time_is_not_blamed_on_the_agent():
    lag: dict[str, Any] = {"lag_p99": 0.1, "times": {"latency_from_send": times(0.2)}}
    ours = blamed([LATE] * 16, **lag)
    assert ours is not None
    assert not ours.is_theirs
    busy = blamed([LATE] * 16, cpu_share=0.97)
    assert busy is not None
    assert not busy.is_theirs
    fine = blamed([LATE] * 16, times={"latency_from_send": times(0.2)})
    assert fine is not None
    assert fine.is_theirs


def test_what_our_own_lateness_does_not_explain_is_the_agents():
    # 300 ms may be 200 ms that were sent and read 50 ms late each; 3 s may not.
    lag: dict[str, Any] = {"lag_p99": 0.1, "times": {"latency_from_send": times(0.2)}}
    breach = blamed([LATE] * 4 + [(10, 0, 3.0)] * 12, **lag)
    assert breach is not None
    assert (breach.is_theirs, breach.at, breach.cause) == (True, 1.0, "latency")


def test_requests_that_found_no_place_free_are_the_agents_and_others_ours_where_we_were_late():
    lag: dict[str, Any] = {"lag_p99": 0.1, "times": {"latency_from_send": times(0.2)}}
    full = blamed([SILENT] * 16, replace(RATE, concurrency=8), concurrency=7.9, **lag)
    idle = blamed([SILENT] * 16, replace(RATE, concurrency=8), concurrency=2.0, **lag)
    assert full is not None
    assert (full.is_theirs, full.cause) == (True, "saturation")
    assert idle is not None
    assert not idle.is_theirs


def test_errors_stay_the_agents_own_however_busy_we_are():
    breach = blamed([FAILING] * 16, cpu_share=0.97)
    assert breach is not None
    assert breach.cause == "errors"


def test_the_slope_of_a_line_has_students_interval():
    # y = x + 0.04 leaves squares of 0.072 with 3 degrees of freedom; √(0.024 / 10) × t(0.975, 3) = 0.04899 × 3.1824 = 0.1559.
    # What it leaves alternates in sign, so nothing is added for likeness.
    line = fit_line([1, 2, 3, 4, 5], [1.1, 1.9, 3.2, 3.9, 5.1])
    assert line is not None
    assert line.slope == pytest.approx(1.0)
    assert [line.low, line.high] == pytest.approx([0.8441, 1.1559], abs=1e-4)


def test_neighbours_that_are_alike_widen_the_interval():
    chance = np.random.default_rng(7)
    noise = chance.normal(size=400)
    walk = np.convolve(noise, np.ones(20), "valid")
    alike, apart = (
        fit_line(np.arange(walk.size), walk),
        fit_line(np.arange(walk.size), chance.permutation(walk)),
    )
    assert alike is not None
    assert apart is not None
    assert alike.high - alike.low > 2 * (apart.high - apart.low)


def test_constant_and_too_few_values_have_no_slope():
    flat = fit_line([1, 2, 3], [5.0, 5.0, 5.0])
    assert flat is not None
    assert (flat.slope, flat.low, flat.high) == (0.0, 0.0, 0.0)
    assert fit_line([1, 2], [1.0, 2.0]) is None
    assert fit_line([1, 1, 1], [1.0, 2.0, 3.0]) is None


@pytest.mark.parametrize(
    ("fixed", "rate", "power"),
    [(0.01, 1e-6, 1.0), (0.01, 2e-12, 2.0), (0.0001, 2e-12, 2.0), (0.0, 3e-7, 1.0), (0.02, 1e-4, 0.5)],
)
def test_a_fixed_cost_does_not_hide_how_latency_grows(fixed: float, rate: float, power: float) -> None:
    draw = np.random.default_rng(7)
    sizes = np.repeat([1e3, 1e4, 1e5, 1e6], 3)
    found = [
        growth_exponent(sizes, (fixed + rate * sizes**power) * np.exp(draw.normal(0, 0.02, sizes.size)))
        for _ in range(40)
    ]
    lines = [line for line in found if line is not None]
    assert np.mean([line.slope for line in lines]) == pytest.approx(power, abs=0.04)
    assert sum(line.low <= power <= line.high for line in lines) >= 34


def test_quadratic_work_has_an_exponent_of_two():
    sizes = [10, 100, 1000, 10, 100, 1000]
    line = growth_exponent(sizes, [3e-6 * size**2 for size in sizes])
    assert line is not None
    assert line.slope == pytest.approx(2.0)
    assert line.low == pytest.approx(2.0, abs=1e-6)


def test_nobody_gets_anything_is_neither_fair_nor_unfair():
    assert fairness([0, 0]) is None
    assert fairness([3, 1]) == pytest.approx(16 / 20)
