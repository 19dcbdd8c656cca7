from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ratings.tables import Row, failed, ok, rated, table

from assay.analysis.ranking.ratings import rate
from assay.model import Limits, Rubric

REFERENCE = {"seconds": 1.0, "usd": 0.01, "tokens": 100.0, "cpu_seconds": 0.5}

_row = st.builds(
    lambda case, score, seconds, usd, status: (
        (f"c{case}", status, {"seconds": seconds, "usd": usd})
        if status != "ok"
        else (f"c{case}", "ok", {"score": score, "seconds": seconds, "usd": usd, "tokens": 50.0})
    ),
    st.integers(0, 8),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.floats(0.01, 100),
    st.floats(0.001, 0.1),
    st.sampled_from(["ok", "ok", "ok", "failed", "timeout", "harness_error"]),
)


@given(rows=st.lists(_row, min_size=1, max_size=40))
def test_marks_of_cases_average_to_the_rating(rows: list[Row]) -> None:
    found = rate(table(rows), Rubric({}, REFERENCE), Limits())
    for name in ("accuracy", "efficiency", "cost", "reliability"):
        value = found.dimensions[name].value
        assert (name in found.marks) == (value is not None)
        if value is not None:
            assert np.mean(found.marks[name]) == pytest.approx(value, abs=1e-4)


def _many(seed: int, cases: int = 80) -> Sequence[Row]:
    chance = np.random.default_rng(seed)
    return [
        ok(f"c{case}", float(chance.random() < 0.7), usd=float(chance.lognormal(-5, 0.5)), seconds=1.0)
        if chance.random() < 0.9
        else failed(f"c{case}", usd=0.001)
        for case in range(cases)
        for _ in range(3)
    ]


def test_marks_spread_as_the_rating_does_over_draws_of_cases() -> None:
    """So that a paired difference of marks has the error of a difference of ratings."""
    whole = _many(1)
    by_case: dict[str, list[Row]] = {}
    for row in whole:
        by_case.setdefault(row[0], []).append(row)
    chance = np.random.default_rng(2)
    drawn_ratings = []
    for _ in range(200):
        drawn = chance.integers(0, len(by_case), len(by_case))
        rows = [(f"d{n}", *row[1:]) for n, case in enumerate(drawn) for row in by_case[f"c{case}"]]
        drawn_ratings.append(rated(rows, REFERENCE).dimensions)
    for name in ("accuracy", "cost", "reliability"):
        values = [dimensions[name].value or 0.0 for dimensions in drawn_ratings]
        marks = np.asarray(rated(whole, REFERENCE).marks[name])
        assert float(marks.std(ddof=1)) / np.sqrt(marks.size) == pytest.approx(float(np.std(values)), rel=0.2)


def test_the_speed_of_a_case_is_the_rating_that_it_would_get_alone() -> None:
    found = rated([ok("a", seconds=1.0), ok("b", seconds=3.0), failed("c")], REFERENCE)
    assert list(found.marks["speed"]) == pytest.approx([0.5, 0.25, 0.375])


def test_what_is_free_has_full_marks_and_what_is_unrated_has_none() -> None:
    found = rated([ok("a", usd=0.0), ok("b", usd=0.0)])
    assert list(found.marks["cost"]) == [1.0, 1.0]
    assert "speed" not in found.marks


def test_an_agent_that_solves_nothing_has_no_marks_but_zeros_for_cost() -> None:
    found = rated([ok("a", 0.0, usd=1.0), ok("b", 0.0, usd=2.0)], REFERENCE)
    assert list(found.marks["cost"]) == [0.0, 0.0]


def test_attempted_cases_include_those_that_the_harness_failed_on_but_not_cancelled_ones() -> None:
    rows = [ok("a"), failed("b", "harness_error"), failed("c", "cancelled")]
    found = rated(rows)
    assert (found.attempted, found.cases, list(found.names)) == (2, 1, ["a"])


def test_ratings_by_different_references_have_different_yardsticks() -> None:
    rows = [ok("a", seconds=1.0)]
    assert rated(rows, {"seconds": 1.0}).yardstick == rated(rows, {"seconds": 1.0}).yardstick
    assert rated(rows, {"seconds": 1.0}).yardstick != rated(rows, {"seconds": 2.0}).yardstick
    assert rated(rows, pass_mark=0.4).yardstick != rated(rows).yardstick


def test_quantities_next_to_nothing_leave_marks_that_are_numbers() -> None:
    rows = [ok("a", 0.0, tokens=0.0), failed("b", tokens=1.1e-308)]
    assert np.isfinite(rated(rows, {"tokens": 100.0}).marks["efficiency"]).all()
