from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.wording import Wording

from assay.analysis.estimates.treatment import describe_incomparable_arms
from assay.analysis.estimates.trial import add_estimates
from assay.analysis.findings import SEVERE
from assay.model import Better, Execution, Isolation, Metric, Phase, Report, Status
from assay.plugin.experiment import Experiment


def codes(report: Report) -> list[str]:
    return [doubt.code for doubt in report.doubts]


def test_time_comes_first_then_the_experiments_own_metrics_then_those_of_instruments(lab) -> None:
    made = lab.trial(seconds=lab.times())
    series = {name: lab.times() for name in ("rss_bytes", "rows_per_sec", "seconds")}
    report = add_estimates(replace(made, series=series, watched=frozenset(["rss_bytes"])), {})
    assert [estimate.metric.name for estimate in report.estimates] == ["seconds", "rows_per_sec", "rss_bytes"]


def test_what_is_declared_of_a_metric_goes_before_what_its_name_tells(lab) -> None:
    declared = Metric("hits", "rows", Better.HIGHER)
    trial = lab.trial(more={"hits": lab.times(), "load_seconds": lab.times()}, metrics={"hits": declared})
    assert [estimate.metric.unit for estimate in trial.estimates] == ["rows", "s"]


def test_a_metric_without_values_has_no_estimate(lab) -> None:
    assert lab.trial(seconds=lab.series([])).estimates == ()


def test_a_clean_run_has_no_doubts(lab) -> None:
    assert lab.report(lab.trial(seconds=lab.times())).doubts == ()


def test_doubts_of_the_machine_and_of_instruments_are_passed_on(lab, wording: Wording) -> None:
    report = lab.report(doubts=("The machine was noisy.",), parallelism=4, unmeasured={"gpu": "no driver"})
    assert codes(report) == ["environment", "parallelism", "unmeasured"]
    assert "4" in report.doubts[1].message
    wording(report.doubts[1])


def test_failures_are_counted_by_status_with_the_first_error(lab, wording: Wording) -> None:
    error = "Traceback (most recent call last):\n  File 'x.py', line 1\nValueError: bad invoice"
    failure = Execution(1, 0, Phase.MEASURED, 3, Status.FAILED, 0.0, {}, error=error)
    trial = lab.trial(seconds=lab.times(), counts={"ok": 47, "failed": 2, "timeout": 1}, failures=(failure,))
    (doubt,) = lab.report(trial).doubts
    assert (doubt.code, doubt.trial) == ("failures", "parse")
    assert re.findall(r"\d+", doubt.message) == ["3", "50", "2", "1"]
    assert error.splitlines()[-1] in doubt.message
    assert "Traceback" not in doubt.message
    wording(doubt.message)


def test_a_trial_without_one_ok_execution_says_that_there_is_nothing_to_estimate(
    lab, wording: Wording
) -> None:
    (doubt,) = lab.report(lab.trial(counts={"ok": 0, "crashed": 5})).doubts
    assert doubt.code == "failures"
    assert re.findall(r"\d+", doubt.message)[:2] == ["5", "5"]
    assert doubt.hint
    wording(doubt)


def test_a_trial_that_was_stopped_says_why(lab) -> None:
    why = "three failures in a row"
    early = lab.trial(seconds=lab.times(), stopped=why, counts={"ok": 30})
    (doubt,) = lab.report(early).doubts
    assert (doubt.code, why in doubt.message) == ("stopped", True)
    assert re.findall(r"\d+", doubt.message)[-2:] == ["20", "50"]
    # Its last planned executions failed: nothing is missing.
    assert codes(lab.report(lab.trial(seconds=lab.times(), stopped=why))) == []


def test_inline_processes_are_no_processes(lab) -> None:
    assert codes(lab.report(lab.trial(seconds=lab.times(), isolation=Isolation.INLINE))) == ["inline"]


def test_an_ignored_setting_is_severe(lab, wording: Wording) -> None:
    trial = lab.trial(axes={"journal": "wal"}, applied={"journal": "delete"})
    (doubt,) = lab.report(trial).doubts
    assert doubt.code in SEVERE
    assert re.findall(r"'(\w+)'", doubt.message) == ["journal", "wal", "delete"]
    wording(doubt.message)


@pytest.mark.parametrize(
    ("asked", "read"),
    [("WAL", "wal"), (1, 1.0), ("64", 64), (True, "on"), (False, 0), ([1, 2], [1, 2]), (None, None)],
)
def test_the_same_setting_in_another_writing_did_take(lab, asked: object, read: object) -> None:
    assert lab.report(lab.trial(params={"x": asked}, applied={"x": read})).doubts == ()


def test_arms_that_read_back_the_same_are_identical(lab, wording: Wording) -> None:
    arms = [lab.trial(f"p={p}", axes={"profile": p}, applied={"sync": 2}) for p in ("safe", "fast")]
    (doubt,) = lab.report(*arms).doubts
    assert doubt.code in SEVERE
    assert re.findall(r"'([^']+)'", doubt.message) == ["p=safe", "p=fast", "profile"]
    assert "sync = 2" in doubt.message
    wording(doubt.message)


def test_two_of_three_arms_that_read_back_the_same_are_identical(lab) -> None:
    traces = {"safe": 2, "fast": 0, "balanced": 2}
    arms = [lab.trial(f"p={p}", axes={"profile": p}, applied={"sync": s}) for p, s in traces.items()]
    (doubt,) = lab.report(*arms).doubts
    assert "'p=safe', 'p=balanced'" in doubt.message


def test_an_axis_that_leaves_no_trace_beside_one_that_does_is_not_suspected(lab) -> None:
    arms = [
        lab.trial(f"{profile} {rows}", axes={"profile": profile, "rows": rows}, applied={"sync": sync})
        for profile, sync in (("safe", 2), ("fast", 0))
        for rows in (10, 1000)
    ]
    assert lab.report(*arms).doubts == ()


def test_an_axis_read_back_under_its_own_name_does_not_hide_one_that_did_nothing(lab) -> None:
    arms = [
        lab.trial(
            f"{profile} {rows}", axes={"profile": profile, "rows": rows}, applied={"sync": 2, "rows": rows}
        )
        for profile in ("safe", "fast")
        for rows in (10, 1000)
    ]
    assert codes(lab.report(*arms)) == ["identical-arms"]


def test_settings_that_were_asked_for_by_name_tell_nothing_of_an_axis_beside_them(lab) -> None:
    arms = [
        lab.trial(f"batch={n}", params={"ttl": 60}, axes={"batch": n}, applied={"ttl": 60}) for n in (1, 9)
    ]
    assert lab.report(*arms).doubts == ()


def test_a_setting_that_nobody_asked_for_does_tell(lab) -> None:
    arms = [
        lab.trial(p, params={"num_ctx": None}, axes={"preset": p}, applied={"num_ctx": 512})
        for p in ("small", "large")
    ]
    assert codes(lab.report(*arms)) == ["identical-arms"]


def test_an_axis_that_some_arm_reads_back_is_judged_by_that(lab) -> None:
    arms = [
        lab.trial(
            f"copy={copy}", axes={"copy": copy}, applied={"sync": 2, **({"copy": True} if copy else {})}
        )
        for copy in (True, False)
    ]
    assert lab.report(*arms).doubts == ()


class Bulk(Experiment):
    """Has work, facts and an agent, beside a treatment."""

    workload_params: ClassVar[Sequence[str]] = ("rows",)
    facts: ClassVar[Sequence[str]] = ("server_version",)
    params_of: ClassVar[Any] = dict


BULK = f"{__name__}:Bulk"


@pytest.mark.parametrize("axis", ["rows", "agent"])
def test_less_work_and_another_agent_are_no_treatments(lab, axis: str) -> None:
    a, b = (
        lab.trial(f"{n}", axes={axis: n}, applied={"sync": 2, "workers": 1}, benchmark=BULK)
        for n in ("x", "y")
    )
    assert lab.report(a, b).doubts == ()
    assert describe_incomparable_arms(a, b) == ""


def test_facts_make_no_arms_identical(lab) -> None:
    a, b = (
        lab.trial(f"{n}", axes={"batch": n}, applied={"server_version": "7"}, benchmark=BULK) for n in (1, 2)
    )
    assert lab.report(a, b).doubts == ()
    assert describe_incomparable_arms(a, b) == ""


def test_an_ineffective_treatment_is_found_beside_an_axis_of_work(lab) -> None:
    arms = [
        lab.trial(name, axes={"rows": rows, "profile": name}, applied={"sync": 2}, benchmark=BULK)
        for rows in (10, 1000)
        for name in ("safe", "fast")
    ]
    (doubt,) = lab.report(*arms).doubts
    assert doubt.code == "identical-arms"
    assert re.findall(r"should differ in (.*?),", doubt.message) == ["'profile'"]
    assert "'profile'" in describe_incomparable_arms(arms[0], arms[1])


def test_arms_that_read_nothing_back_are_not_judged(lab) -> None:
    assert lab.report(*(lab.trial(f"n={n}", axes={"n": n}) for n in (1, 2))).doubts == ()


def test_each_value_of_an_axis_has_the_median_of_its_trials_and_best_and_worst_are_named(lab) -> None:
    points = {("a", 1): 1.0, ("a", 2): 3.0, ("b", 1): 2.0, ("b", 2): 6.0}
    trials = [
        lab.trial(f"{mode}{n}", lab.series([value] * 7), axes={"mode": mode, "n": n})
        for (mode, n), value in points.items()
    ]
    mode, n = lab.report(*trials).axes
    assert (mode.axis, mode.values, mode.medians) == ("mode", ("a", "b"), (2.0, 4.0))
    assert (mode.best, mode.worst, mode.lows) == ("a", "b", (None, None))
    assert (n.axis, n.medians) == ("n", (1.5, 4.5))


def test_an_axis_of_single_trials_keeps_their_intervals(lab) -> None:
    trials = [lab.trial(f"n={n}", lab.series([n + i / 10 for i in range(6)]), axes={"n": n}) for n in (1, 2)]
    (effect,) = lab.report(*trials).axes
    assert (effect.lows, effect.highs) == ((1.0, 2.0), (1.5, 2.5))


def test_more_is_better_for_a_throughput_and_metrics_without_direction_are_left_out(lab) -> None:
    trials = [
        lab.trial(
            f"n={n}",
            axes={"n": n},
            more={"rows_per_sec": lab.series([n * 10.0]), "oddness": lab.series([1.0])},
        )
        for n in (1, 2)
    ]
    (effect,) = lab.report(*trials).axes
    assert (effect.metric.name, effect.best, effect.worst) == ("rows_per_sec", 2, 1)


def test_values_of_an_axis_may_be_lists_and_a_value_whose_trials_all_failed_is_left_out(lab) -> None:
    trials = [lab.trial(f"{n}", lab.series([float(n)]), axes={"layers": [n]}) for n in (1, 2)]
    (effect,) = lab.report(*trials, lab.trial("3", axes={"layers": [3]})).axes
    assert effect.values == ([1], [2])


def test_axes_of_different_benchmarks_are_not_mixed(lab) -> None:
    trials = [
        lab.trial(f"{benchmark} {n}", lab.series([n * scale]), axes={"n": n}, benchmark=benchmark)
        for benchmark, scale in (("sort", 1.0), ("parse", 100.0))
        for n in (1, 2)
    ]
    assert [(effect.axis, effect.medians) for effect in lab.report(*trials).axes] == [
        ("sort: n", (1.0, 2.0)),
        ("parse: n", (100.0, 200.0)),
    ]
