"""Grades of series that lie below, above and across each threshold, and of series that are too short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from assay.analysis.estimates.trial import add_estimates
from assay.builtin.findings.grades import GradedFigure, grade_trial
from assay.model import AgentVersion, Iterations, Series, StoredTrial, Trial, TrialReport
from assay.stats.sample import quantile
from assay.testing.samples import STEADY

GB = 1e9
N = 1200


def grade(experiment: str, series: Mapping[str, Sequence[float]]) -> dict[str, GradedFigure]:
    """The figures of a trial of one process, by label."""
    size = len(next(iter(series.values())))
    trial = Trial(
        index=0,
        name=experiment,
        agent=AgentVersion("agent"),
        benchmark=experiment,
        experiment=experiment,
        params={},
        iterations=Iterations(measured=size),
        axes={},
        processes=1,
    )
    columns = {name: Series([0] * size, range(size), values) for name, values in series.items()}
    report = TrialReport(StoredTrial(1, trial), estimates=(), counts={"ok": size}, series=columns)
    return {figure.scale.label: figure for figure in grade_trial(add_estimates(report, {}))}


def spread(middle: float, cv: float, size: int = N) -> list[float]:
    """Normal values of about this median and CV, in an order that is always the same."""
    places = np.random.default_rng(7).permutation(size)
    return [middle * (1 + cv * quantile((place + 0.5) / size)) for place in places.tolist()]


@pytest.mark.parametrize(
    ("experiment", "label", "metric", "threshold", "below", "above"),
    [
        ("agent_latency", "P95 latency", "seconds", 0.2, "good", "slow"),
        ("agent_latency", "P99 latency", "seconds", 1.0, "fine", "bad"),
        ("multi_turn", "P95 of turns", "turn_seconds", 0.2, "good", "slow"),
        ("multi_turn", "P99 of turns", "turn_seconds", 1.0, "fine", "bad"),
        ("multi_turn", "conversations", "conversations_per_second", 10.0, "low", "good"),
        ("concurrent_conversations", "P95 of turns", "turn_p95_seconds", 0.2, "good", "slow"),
        ("concurrent_conversations", "P99 of turns", "turn_p99_seconds", 1.0, "fine", "bad"),
        ("system_level", "memory", "rss_bytes", 30 * GB, "good", "too much"),
        ("batch_processing", "GPU utilisation", "gpu_percent", 50.0, "poor", "moderate"),
        ("batch_processing", "GPU utilisation", "gpu_percent", 80.0, "moderate", "good"),
        ("serving", "throughput", "tokens_per_second", 100.0, "below target", "good"),
        ("serving", "TTFT", "ttft", 0.45, "good", "slow"),
        ("serving", "memory", "server_memory_bytes", 30 * GB, "good", "too much"),
    ],
)
def test_a_figure_has_the_grade_of_the_side_of_the_threshold_that_it_is_on(
    experiment: str, label: str, metric: str, threshold: float, below: str, above: str
) -> None:
    # The metrics of concurrent conversations are percentiles already, whose median over executions counts.
    percentile = "" if metric.startswith("turn_p") else label[:3]
    reach = {"P95": 1.645, "P99": 2.326}.get(percentile, 0.0)
    at = threshold / (1 + 0.02 * reach)

    def find_grade(factor: float, size: int = N) -> str:
        return grade(experiment, {metric: spread(at * factor, 0.02, size)})[label].grade

    fewest = {"P95": 200, "P99": 1000}.get(percentile, 6)
    assert (find_grade(0.9), find_grade(1.1)) == (below, above)
    assert find_grade(1.0) == "unsure"
    assert find_grade(0.9, fewest - 1) == "not enough data"
    assert find_grade(0.5, fewest) != "not enough data"


@pytest.mark.parametrize(
    ("experiment", "label", "metric", "threshold", "below", "above"),
    [
        ("reward_computation", "CV of time", "seconds", 0.05, "excellent", "good"),
        ("agent_latency", "CV of time", "seconds", 0.05, "excellent", "good"),
        ("agent_latency", "CV of time", "seconds", 0.1, "good", "moderate"),
        ("agent_latency", "CV of time", "seconds", 0.15, "moderate", "poor"),
        ("serving", "CV of throughput", "tokens_per_second", 0.004, "excellent", "typical"),
        ("serving", "CV of throughput", "tokens_per_second", 0.005, "typical", "unsteady"),
    ],
)
def test_a_variation_has_the_grade_of_the_side_of_the_threshold_that_it_is_on(
    experiment: str, label: str, metric: str, threshold: float, below: str, above: str
) -> None:
    def find_grade(cv: float, size: int = N) -> str:
        return grade(experiment, {metric: spread(3.0, cv, size)})[label].grade

    assert (find_grade(threshold * 0.92), find_grade(threshold * 1.08)) == (below, above)
    assert find_grade(threshold) == "unsure"
    assert find_grade(threshold / 2, 19) == "not enough data"
    assert find_grade(threshold / 2, 60) != "not enough data"


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((20.0, 90.0), "no leak"), ((110.0, 4000.0), "leak"), ((80.0, 120.0), "unsure")],
)
def test_a_leak_is_graded_by_the_ends_of_its_interval(ends: tuple[float, float], expected: str) -> None:
    low, high = (spread(end, 0.001, 30) for end in ends)
    series = {"leak_bytes": spread(sum(ends) / 2, 0.001, 30), "leak_low_bytes": low, "leak_high_bytes": high}
    assert grade("memory_growth", series)["memory growth"].grade == expected


def test_an_experiment_without_thresholds_has_no_grades() -> None:
    assert grade(STEADY, {"seconds": spread(1.0, 0.01)}) == {}


QUESTIONS = (0.2, 0.5, 1.0, 1.5, 4.0)
"""The time that a question takes, relative to the others."""


@pytest.mark.parametrize(
    "experiment", ["agent_latency", "agent_streaming", "response_generation", "multi_turn", "system_level"]
)
def test_a_steady_agent_is_graded_steady_though_its_questions_differ(experiment: str) -> None:
    def find_figure(cv: float) -> GradedFigure:
        times = [
            seconds * QUESTIONS[number % len(QUESTIONS)] for number, seconds in enumerate(spread(0.1, cv))
        ]
        return grade(experiment, {"seconds": times})["CV of time"]

    steady, unsteady = find_figure(0.03), find_figure(0.3)
    assert (steady.grade, unsteady.grade) == ("excellent", "poor")
    for found, planted in ((steady.figure, 0.03), (unsteady.figure, 0.3)):
        assert found.value == pytest.approx(planted, rel=0.05)
        assert found.low is not None
        assert found.high is not None
        assert found.low < planted < found.high


def test_a_load_generators_memory_does_not_stand_for_that_of_the_server() -> None:
    series = {"rss_max_bytes": spread(GB, 0.01, 30), "server_memory_bytes": spread(40 * GB, 0.01, 30)}
    memory = grade("serving", series)["memory"]
    assert (memory.metric, memory.grade) == ("server_memory_bytes", "too much")


def test_slow_conversations_of_quick_turns_are_no_slow_responses() -> None:
    found = grade("multi_turn", {"seconds": spread(2.0, 0.01), "turn_seconds": spread(0.1, 0.01)})
    assert found["P95 of turns"].grade == "good"
    assert "P95 latency" not in found
