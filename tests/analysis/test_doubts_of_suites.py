from __future__ import annotations

import re

import numpy as np
import pytest
from tests.wording import Wording

from assay.analysis.estimates.estimate import estimate
from assay.model import Series, metric_named

SECONDS = metric_named("seconds")


def by_case(values: list[list[float]]) -> Series:
    """Repetitions of each case."""
    places = [(case, place) for case, inner in enumerate(values) for place in range(len(inner))]
    flat = [value for inner in values for value in inner]
    return Series([case for case, _ in places], [place for _, place in places], flat, unit="case")


def test_few_cases_are_called_cases_and_the_advice_is_more_of_them(wording: Wording):
    found = estimate(SECONDS, by_case([[1.0, 1.1]] * 4))
    assert found.low is None
    (doubt,) = found.doubts
    assert re.findall(r"\d+", doubt) == ["4", "6"]
    assert doubt.count("cases") == 2
    wording(doubt)


def test_repetitions_of_one_case_are_one_observation(wording: Wording):
    found = estimate(SECONDS, by_case([[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]]))
    assert found.units == 1
    assert found.low is None
    (doubt,) = found.doubts
    assert re.findall(r"\d+", doubt) == ["6"]
    wording(doubt)


def test_cases_that_take_longer_and_longer_are_no_drift():
    found = estimate(SECONDS, by_case([[1.0 + 0.1 * n] * 3 for n in range(40)]))
    assert found.low is not None
    assert found.doubts == ()


@pytest.mark.parametrize("metric", ["seconds", "score"])
def test_no_doubt_about_cases_speaks_of_processes(metric):
    chance = np.random.default_rng(3)
    for number in (1, 3, 12, 60):
        values = np.exp(chance.normal(0, 1, (number, 3)))
        values[: number // 2] *= 40
        found = estimate(metric_named(metric), by_case(values.tolist()))
        assert not any("process" in doubt for doubt in found.doubts)


def test_one_process_is_still_doubted(wording: Wording):
    found = estimate(SECONDS, Series([0] * 20, list(range(20)), [1.0 + 0.001 * (n % 5) for n in range(20)]))
    assert "20" in re.findall(r"\d+", found.doubts[0])
    wording(found.doubts[0])
