"""Forecasts held against comparisons of the forecast size, of agents whose true difference is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.analysis.test_precision import by_case

from assay.analysis.comparison.compare import compare_reports
from assay.analysis.comparison.policy import KnownNoise
from assay.analysis.comparison.sample_size import needs
from assay.model import AgentUse, TrialReport, Verdict
from assay.stats.random_effects import ErrorPart

Tables = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
Draw = Callable[[np.random.Generator, int, int], Tables]
RUNS = 60
"""Comparisons of the forecast size."""
JUDGED = ["score", "seconds", "usd"]
"""What `assay compare` judges unasked. Forecasts are made one by one in this order, and most tests read the first only."""


def _trials(lab, tables: Tables, benchmark: str = "asked") -> list[TrialReport]:
    """Of two agents of a suite, which took turns."""
    made = [
        lab.trial(agent, more={name: by_case(table) for name, table in side.items()}, agent=agent, benchmark=benchmark, is_brief=True)
        for agent, side in zip("ab", tables, strict=True)
    ]  # fmt: skip
    return [_as_agent(trial) for trial in made]


def _as_agent(trial: TrialReport) -> TrialReport:
    planned = trial.stored.trial
    use = AgentUse(planned.agent.name, "python")
    return replace(trial, stored=replace(trial.stored, trial=replace(planned, agent_use=use)))


def _share_found(lab, draw: Draw, metric: str, cases: int, repetitions: int, runs: int = RUNS) -> float:
    found = 0
    for _ in range(runs):
        a, b = (lab.report(trial) for trial in _trials(lab, draw(lab.chance, cases, repetitions)))
        verdicts = {one.metric.name: one.verdict for one in compare_reports(a, b)}
        found += verdicts[metric] in (Verdict.BETTER, Verdict.WORSE)
    return found / runs


def _beside(scores: tuple[np.ndarray, np.ndarray], chance: np.random.Generator) -> Tables:
    """With times and costs that do not differ."""
    cases, repetitions = scores[0].shape
    level = chance.lognormal(0, 0.5, (cases, 1))
    first, second = (
        {
            "score": score,
            "seconds": level * chance.lognormal(0, 0.1, (cases, repetitions)),
            "usd": level * chance.lognormal(0, 0.1, (cases, repetitions)),
        }
        for score in scores
    )
    return first, second


def _seventy_and_eighty(chance: np.random.Generator, cases: int, repetitions: int) -> Tables:
    hard = chance.normal(0, 0.1, cases)
    a, b = (
        (chance.random((cases, repetitions)) < np.clip(mean + hard, 0, 1)[:, None]).astype(float)
        for mean in (0.7, 0.8)
    )
    return _beside((a, b), chance)


def _all_pass(chance: np.random.Generator, cases: int, repetitions: int) -> Tables:
    return _beside((np.ones((cases, repetitions)), np.ones((cases, repetitions))), chance)


def _tenth_lost(chance: np.random.Generator, cases: int, repetitions: int) -> Tables:
    lost = np.repeat(chance.random((cases, 1)) >= 0.1, repetitions, axis=1).astype(float)
    return _beside((np.ones((cases, repetitions)), lost), chance)


def _need(lab, tables: Tables, effect: float, metric: str = "score"):
    return next(need for need in needs(_trials(lab, tables), effect, JUDGED) if need.metric.name == metric)


def test_accuracies_of_70_and_80_percent_are_told_apart_at_the_forecast_size(lab):
    need = _need(lab, _seventy_and_eighty(lab.chance, 80, 3), 0.1)
    a, b = (lab.report(trial) for trial in _trials(lab, _seventy_and_eighty(lab.chance, 80, 3)))
    assert {one.metric.name for one in compare_reports(a, b)} == set(JUDGED)
    assert need.family == len(JUDGED)
    assert need.power_units.low <= 0.82
    assert 0.7 <= _share_found(lab, _seventy_and_eighty, "score", need.units, 3) <= 0.95
    assert 0.7 <= _share_found(lab, _seventy_and_eighty, "score", 80, need.more_repetitions) <= 0.97


class _EnoughError(Exception):
    """Ends a forecast before it is made."""


def test_without_metrics_each_metric_that_compare_judges_gets_a_forecast(lab):
    planned = []

    def stop(done: int, total: int, name: str) -> None:
        planned.append(total)
        raise _EnoughError

    with pytest.raises(_EnoughError):
        next(needs(_trials(lab, _seventy_and_eighty(lab.chance, 80, 3)), 0.1, progress=stop))
    assert planned == [len(JUDGED)]


def test_agents_that_both_pass_everything_still_need_about_eighty_cases(lab):
    need = _need(lab, _all_pass(lab.chance, 40, 3), 0.1)
    assert 65 <= need.units <= 100
    assert 0.7 <= _share_found(lab, _tenth_lost, "score", need.units, 3) <= 0.95
    # Whole cases are lost, which repetitions of the others do not show.
    assert need.more_repetitions is None
    assert "100 repetitions" in need.why_not_repetitions


def test_scores_between_0_and_1_are_told_apart_at_the_forecast_size(lab):
    def draw(chance: np.random.Generator, cases: int, repetitions: int) -> Tables:
        level = chance.normal(0.5, 0.1, (cases, 1))
        a, b = (
            level + more + chance.normal(0, 0.05, (cases, 1)) + chance.normal(0, 0.1, (cases, repetitions))
            for more in (0.0, 0.05)
        )
        return _beside((a, b), chance)

    need = _need(lab, draw(lab.chance, 60, 3), 0.05)
    assert 0.7 <= _share_found(lab, draw, "score", need.units, 3) <= 0.95


def test_slower_agents_are_told_apart_with_the_forecast_repetitions(lab):
    def draw(chance: np.random.Generator, cases: int, repetitions: int) -> Tables:
        level = chance.normal(0, 0.5, (cases, 1))
        a, b = (
            np.exp(
                level
                + more
                + chance.normal(0, 0.3, (cases, repetitions))
                + chance.normal(0, 0.02, repetitions)
            )
            for more in (0.0, np.log(1.2))
        )
        return {"seconds": a}, {"seconds": b}

    (need,) = needs(_trials(lab, draw(lab.chance, 20, 12)), 0.2)
    assert need.more_repetitions is not None
    assert 0.65 <= _share_found(lab, draw, "seconds", 20, need.more_repetitions) <= 0.98


def _cases_needed(trials: list[TrialReport], metrics: list[str]) -> int:
    need = next(one for one in needs(trials, 0.1, metrics) if one.metric.name == "score")
    assert need.units is not None
    return need.units


@pytest.fixture
def cases_only(monkeypatch) -> None:
    """Search no number of repetitions, which takes most of the time and which the test does not read."""
    monkeypatch.setattr("assay.analysis.comparison.sample_size.MOST_REPETITIONS", 3)


@pytest.mark.usefixtures("cases_only")
def test_more_metrics_and_more_benchmarks_in_one_comparison_need_more_cases_each(lab):
    tables = _seventy_and_eighty(lab.chance, 60, 3)
    few = _trials(lab, tables)
    many = [*few, *(trial for name in "xyz" for trial in _trials(lab, tables, name))]
    alone = next(needs(few, 0.1, ["score"]))
    assert alone.family == 1
    assert alone.units is not None
    usual = _cases_needed(few, JUDGED)
    assert alone.units < usual
    assert 1.2 < _cases_needed(many, JUDGED) / usual < 2


def test_one_stored_repetition_does_not_tell_what_repetitions_do(lab):
    (need,) = needs(_trials(lab, _seventy_and_eighty(lab.chance, 60, 1)), 0.1, ["score"])
    assert need.units is not None
    assert need.units > 60
    assert need.more_repetitions is None
    assert "--repetitions" in need.why_not_repetitions


def test_a_difference_within_the_tolerance_is_never_claimed(lab):
    tables = _seventy_and_eighty(lab.chance, 30, 2)
    (need,) = needs(_trials(lab, tables), 0.005, ["score"])
    assert need.units is None
    assert need.executions is None
    assert "1 %" in need.why_not_units


@pytest.mark.parametrize("effect", [0.05, 0.1])
def test_two_versions_of_code_are_told_apart_with_the_forecast_processes(lab, effect):
    (need,) = needs([lab.trial("parse", lab.times(processes=30, each=1, spread=0.03))], effect)
    assert need.unit == "process"
    found = 0
    for _ in range(RUNS):
        sides = (
            lab.trial("parse", lab.times(median, processes=need.units, each=1, spread=0.03), is_brief=True)
            for median in (1.0, 1 + effect)
        )
        a, b = (lab.report(side, run_id=name) for side, name in zip(sides, "ab", strict=True))
        found += compare_reports(a, b)[0].verdict is Verdict.WORSE
    assert 0.65 <= found / RUNS <= 0.97


def test_a_forecast_for_code_on_cases_needs_known_run_to_run_noise(lab, monkeypatch, wording) -> None:
    """Two versions of code are compared in two runs, so compare claims a time only beyond what runs differ by."""
    monkeypatch.setattr("assay.analysis.comparison.sample_size.MOST_CASES", 25)
    monkeypatch.setattr("assay.analysis.comparison.sample_size.MOST_REPETITIONS", 6)
    level = lab.chance.lognormal(0, 0.5, (20, 1))
    trial = lab.trial("code", more={"seconds": by_case(level * lab.chance.lognormal(0, 0.02, (20, 5)))})
    key = trial.name, "seconds"
    unknown, known = (
        next(iter(needs([trial], 1.0, ["seconds"], noise=KnownNoise(sessions=sessions))))
        for sessions in ({}, {key: ErrorPart(0.05, 9)})
    )
    assert unknown.units is None
    wording(unknown.why_not_units)
    assert known.units is not None
