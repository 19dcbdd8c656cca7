from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ratings.tables import Row, rated, table

from assay.analysis.ranking.ratings import rate
from assay.model import CaseTable, Limits, Ratings, Rubric
from assay.stats.resample import MOST_ROWS, Resample
from assay.stats.verdicts import effective_n, wilson

REFERENCE = {"seconds": 1.0, "tokens": 100.0, "usd": 0.01, "cpu_seconds": 0.5, "memory_mb": 64.0}
positive = st.floats(0, 1e6, allow_nan=False)


@st.composite
def executions(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    has = {name: draw(st.booleans()) for name in ("usd", "tokens", "cpu_seconds", "rss_max_bytes")}
    for _ in range(draw(st.integers(0, 25))):
        case = draw(st.sampled_from("abcdefgh"))
        status = draw(st.sampled_from(["ok", "ok", "ok", "failed", "timeout", "over_limit", "harness_error"]))
        measured = {name: draw(positive) for name, there in has.items() if there}
        if status == "ok":
            measured["seconds"] = draw(st.floats(1e-9, 1e6))
            if draw(st.booleans()):
                measured["score"] = draw(st.floats(0, 1))
        rows.append((case, status, measured))
    return rows


def all_ratings(ratings: Ratings) -> list[tuple[float | None, float | None, float | None]]:
    return [(r.value, r.low, r.high) for r in (*ratings.dimensions.values(), ratings.overall)]


@given(executions())
@settings(max_examples=150, deadline=None)
def test_every_rating_is_a_share_within_its_interval(rows: list[Row]) -> None:
    ratings = rated(rows, REFERENCE)
    for value, low, high in all_ratings(ratings):
        if value is None:
            assert (low, high) == (None, None)
        else:
            assert 0 <= value <= 1
            if low is not None and high is not None:
                assert 0 <= low <= value <= high <= 1
    assert all(0 <= share <= 1 for share in (*ratings.pass_at.values(), *ratings.pass_hat.values()))
    assert 0 <= ratings.solved <= ratings.cases


@given(executions(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_the_order_of_executions_does_not_matter(rows: list[Row], chance: random.Random) -> None:
    """Each keeps its repetition, because that says which round it is of."""
    whole, order = table(rows), list(range(len(rows)))
    chance.shuffle(order)
    shuffled = CaseTable(
        [whole.cases[n] for n in order],
        [whole.repetitions[n] for n in order],
        [whole.statuses[n] for n in order],
        {name: [column[n] for n in order] for name, column in whole.metrics.items()},
    )
    before, after = (all_ratings(rate(one, Rubric({}, REFERENCE), Limits())) for one in (whole, shuffled))
    for one, other in zip(before, after, strict=True):
        assert one == pytest.approx(other, nan_ok=True)


def covered(cases: int, repetitions: int, means: Sequence[float], seed: int) -> bool:
    """Whether the accuracy interval of one simulated trial contains the true mean."""
    chance = np.random.default_rng(seed)
    chances = chance.choice(means, size=cases)
    scores = chance.random((cases, repetitions)) < chances[:, None]
    low, high = wilson(float(scores.mean()), effective_n(scores.mean(axis=1), scores.size))
    return bool(low <= np.mean(means) <= high)


@pytest.mark.parametrize(
    ("cases", "repetitions", "means"),
    [
        (40, 1, [0.5]),
        (40, 5, [0.0, 1.0]),
        (40, 5, [0.7]),
        (100, 3, [0.1, 0.5, 0.9]),
        (200, 3, [0.95]),
        (30, 3, [0.2, 1.0]),
    ],
)
def test_the_interval_of_accuracy_covers_what_is_true(
    cases: int, repetitions: int, means: list[float]
) -> None:
    share = np.mean([covered(cases, repetitions, means, seed) for seed in range(2000)])
    assert 0.93 <= share <= 0.985


def reliability(cases: int, completion: float, chance: np.random.Generator) -> tuple[float, float]:
    is_ok = chance.random((cases, 3)) < completion
    rows: list[Row] = [
        (f"c{case}", "ok" if done else "failed", {"score": 1.0} if done else {})
        for case in range(cases)
        for done in is_ok[case]
    ]
    found = rate(table(rows), Rubric(), Limits()).dimensions["reliability"]
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_the_interval_of_reliability_covers_what_is_true() -> None:
    chance, completion = np.random.default_rng(1), 0.95
    true = completion * (completion**2 + (1 - completion) ** 2)
    intervals = [reliability(60, completion, chance) for _ in range(200)]
    assert np.mean([low <= true <= high for low, high in intervals]) >= 0.91


@pytest.mark.parametrize("rows", [60, 8 * MOST_ROWS])
def test_few_and_many_rows_are_resampled_as_widely_as_theory_has_it(rows: int) -> None:
    values = np.random.default_rng(3).exponential(size=rows)
    resample = Resample([f"c{n}" for n in range(rows)], 2000)
    [sums] = resample.sums(values)
    assert sums.std() == pytest.approx(float(values.std()) * np.sqrt(rows), rel=0.12)
    # The median of an exponential variable has the standard error 1 / √n.
    assert resample.medians(values).std() == pytest.approx(1 / np.sqrt(rows), rel=0.4)


def test_two_agents_asked_the_same_are_drawn_alike() -> None:
    names = [f"c{n}" for n in range(30)]
    values = np.random.default_rng(4).random(30)
    one, same, other = (Resample(order, 50) for order in (names, names, names[1:]))
    assert np.array_equal(one.sums(values)[0], same.sums(values)[0])
    assert not np.array_equal(one.medians(values), other.medians(values[1:]))
