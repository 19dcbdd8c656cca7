"""A gate fails on evidence, and on nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from tests.wording import Wording

from assay.analysis.comparison.default_metrics import judgeable
from assay.analysis.comparison.gate import broken_trials, compare_within, find_common_metrics
from assay.analysis.comparison.policy import Tolerances
from assay.analysis.estimates.completion import COMPLETION, with_completion
from assay.errors import LookupFailed
from assay.model import Better, Execution, Metric, Phase, Report, Series, Status, Verdict

METRICS = [f"part{number}_seconds" for number in range(20)]


def sides(lab, factors: Mapping[str, float]) -> tuple[Report, Report]:
    """Twenty times, of which B takes so many times as long."""
    a = lab.trial(more={name: lab.times() for name in METRICS})
    b = lab.trial(more={name: lab.times(factors.get(name, 1.0)) for name in METRICS})
    return lab.report(a), lab.report(b, run_id="r2")


def verdicts(found) -> dict[str, Verdict]:
    return {one.metric.name: one.verdict for one in found}


def test_with_twenty_metrics_and_no_change_fewer_than_one_gate_in_twenty_fails(lab) -> None:
    gates = 60
    failed = sum(
        any(one.verdict is Verdict.WORSE for one in compare_within(*sides(lab, {}), METRICS, Tolerances()))
        for _ in range(gates)
    )
    assert failed < gates / 20


def test_a_metric_that_became_a_quarter_slower_is_found_among_twenty(lab) -> None:
    found = verdicts(compare_within(*sides(lab, {METRICS[3]: 1.25}), METRICS, Tolerances()))
    assert [name for name, verdict in found.items() if verdict is Verdict.WORSE] == [METRICS[3]]


def test_every_metric_has_its_own_tolerance_within_one_family(lab) -> None:
    a, b = sides(lab, {METRICS[0]: 1.2, METRICS[1]: 1.2})
    strict = compare_within(a, b, METRICS, Tolerances())
    found = compare_within(a, b, METRICS, Tolerances(of_metric={METRICS[0]: 0.5}))

    assert verdicts(strict)[METRICS[0]] is Verdict.WORSE
    assert verdicts(found)[METRICS[0]] is Verdict.SAME
    assert verdicts(found)[METRICS[1]] is Verdict.WORSE
    assert [one.p_corrected for one in found] == [one.p_corrected for one in strict]
    assert {one.metric.name: one.tolerance for one in found}[METRICS[0]] == 0.5


def test_a_tolerance_for_a_metric_that_nobody_has_is_refused(lab, wording: Wording) -> None:
    with pytest.raises(LookupFailed, match="'second'") as refused:
        compare_within(*sides(lab, {}), METRICS, Tolerances(of_metric={"second": 0.1}))
    wording(refused.value)


def test_metrics_without_a_direction_are_not_judged() -> None:
    known, odd = Metric("seconds", "s", Better.LOWER), Metric("oddness")
    assert judgeable([known, odd]) == ["seconds"]


def test_the_only_part_of_a_score_is_left_to_the_score() -> None:
    score, exact, clear = (
        Metric(name, "", Better.HIGHER) for name in ("score", "score.exact", "score.clear")
    )
    assert judgeable([score, exact]) == ["score"]
    assert judgeable([score, exact, clear]) == ["score", "score.exact", "score.clear"]
    assert judgeable([exact]) == ["score.exact"]


def test_what_is_zero_everywhere_is_no_metric_of_the_family(lab) -> None:
    free = lab.series(np.zeros(20), 10)
    a, b = (lab.report(lab.trial(seconds=lab.times(), more={"usd": free})) for _ in range(2))
    assert list(find_common_metrics(a, b)) == ["seconds"]


def test_a_price_where_there_was_none_is_compared(lab) -> None:
    a, b = (
        lab.report(lab.trial(seconds=lab.times(), more={"usd": lab.series(np.full(20, price), 10)}))
        for price in (0.0, 0.01)
    )
    assert list(find_common_metrics(a, b)) == ["seconds", "usd"]
    (usd,) = compare_within(a, b, ["usd"], Tolerances())
    assert usd.verdict is Verdict.WORSE
    assert usd.difference == pytest.approx(0.01)


def test_a_trial_that_no_longer_works_is_broken(lab) -> None:
    a = lab.report(lab.trial(seconds=lab.times()))
    b = lab.report(lab.trial(counts={"failed": 50}), run_id="r2")
    assert broken_trials(a, b) == ("parse",)
    assert broken_trials(b, a) == broken_trials(a, a) == ()


def test_a_harness_that_fails_breaks_no_trial(lab) -> None:
    a = lab.report(lab.trial(seconds=lab.times()))
    b = lab.report(lab.trial(counts={"harness_error": 3, "cancelled": 1}), run_id="r2")
    assert broken_trials(a, b) == ()


def failing(lab, every: int) -> Report:
    """Ten processes of ten executions, of which one in so many fails."""
    made = [
        Execution(
            0,
            n // 10,
            Phase.MEASURED,
            n % 10,
            Status.FAILED if every and n % every == 0 else Status.OK,
            0,
            {},
        )
        for n in range(100)
    ]
    ok = sum(one.status is Status.OK for one in made)
    trial = lab.trial(seconds=lab.times(each=10), counts={"ok": ok, "failed": 100 - ok})
    report: Report = lab.report(replace(trial, executions=made))
    return report


def test_more_failures_are_worse_though_failures_have_no_figures(lab) -> None:
    a, b = with_completion(failing(lab, 0), failing(lab, 3))
    (completed,) = compare_within(a, b, [COMPLETION], Tolerances())
    assert (completed.metric.name, completed.verdict) == ("completed", Verdict.WORSE)
    assert completed.difference == pytest.approx(-0.34)


def test_without_failures_there_is_no_such_metric_unless_it_is_asked_for(lab) -> None:
    a, b = failing(lab, 0), failing(lab, 0)
    assert COMPLETION not in find_common_metrics(*with_completion(a, b))
    assert COMPLETION in find_common_metrics(*with_completion(a, b, always=True))


def test_values_that_are_no_numbers_settle_nothing(lab) -> None:
    a, b = (
        lab.report(lab.trial(more={"odd_seconds": Series(list(range(20)), [0] * 20, [value] * 20)}))
        for value in (float("nan"), 1.0)
    )
    assert compare_within(a, b, judgeable(find_common_metrics(a, b).values()), Tolerances()) == ()
