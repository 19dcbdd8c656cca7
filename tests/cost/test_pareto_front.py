"""The front of cost and quality: a point is off it only where somebody is certainly ahead of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.cost.subjects import analysis, drawn, found, planted

from assay.analysis.comparison.policy import Tolerances
from assay.analysis.cost.front import Relations, find_places, relate
from assay.model.cost import FrontStatus

Points = list[tuple[int, int]]
POINTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=8)


def relations(points: Points, margin: int) -> Relations:
    """Differences of more than `margin` are certain; no interval reaches beyond `margin`."""
    cost, quality = (np.array(values) for values in zip(*points, strict=True))
    less = cost[:, None] - cost[None, :]
    more = quality[None, :] - quality[:, None]
    return Relations(less > margin, more > margin, less >= margin, more >= margin, {}, {})


def places(points: Points, margin: int) -> list[FrontStatus]:
    costs, qualities = zip(*points, strict=True)
    names = [str(n) for n in range(len(points))]
    return [place.status for place in find_places(costs, qualities, relations(points, margin), names)]


def is_dominated(point: tuple[int, int], others: Points) -> bool:
    return any(
        cost <= point[0] and quality >= point[1] and (cost, quality) != point for cost, quality in others
    )


@given(POINTS)
def test_where_every_difference_is_certain_the_front_is_that_of_the_figures(points: Points) -> None:
    expected = [
        FrontStatus.DOMINATED if is_dominated(point, points) else FrontStatus.FRONT for point in points
    ]
    assert places(points, 0) == expected


@given(POINTS, st.integers(0, 9))
def test_uncertainty_takes_nobody_off_the_front(points: Points, margin: int) -> None:
    for certain, uncertain in zip(places(points, 0), places(points, margin), strict=True):
        assert (certain is FrontStatus.FRONT) == (uncertain is FrontStatus.FRONT)
        assert uncertain is not FrontStatus.DOMINATED or certain is FrontStatus.DOMINATED


@given(POINTS, st.integers(0, 9), st.randoms())
def test_places_do_not_depend_on_the_order(points: Points, margin: int, chance: object) -> None:
    order = sorted(range(len(points)), key=lambda n: hash((n, str(chance))))
    moved = places([points[n] for n in order], margin)
    assert moved == [places(points, margin)[n] for n in order]


@given(POINTS)
def test_where_nothing_is_certain_nobody_is_off_the_front(points: Points) -> None:
    assert FrontStatus.DOMINATED not in places(points, 9)


def test_a_dearer_configuration_of_the_same_answers_is_off_the_front() -> None:
    made = analysis(planted("cheap", 0.001), planted("dear", 0.004))
    cheap, dear = found(made, "cheap").place, found(made, "dear").place
    assert cheap is not None
    assert dear is not None
    assert (cheap.status, dear.status) == (FrontStatus.FRONT, FrontStatus.DOMINATED)
    assert dear.dominated_by == ("cheap",)


def test_a_difference_that_may_be_chance_is_called_a_tie() -> None:
    made = analysis(
        planted("a", lambda case: 0.0010 + 0.0005 * (case % 5), lambda case: case % 3 > 0),
        planted(
            "b",
            lambda case: 0.0010 + 0.0005 * ((case + 2) % 5) + 1e-5 * (case % 2),
            lambda case: case % 3 != 1,
        ),
    )
    b = found(made, "b").place
    assert b is not None
    assert b.ties == ("a",)
    assert FrontStatus.DOMINATED not in {one.place.status for one in made.configurations if one.place}


def test_certainly_cheaper_but_of_open_quality_is_not_enough_to_dominate() -> None:
    made = analysis(
        planted("cheap", 0.001, lambda case: case % 4 > 0), planted("dear", 0.004, lambda case: case % 4 != 1)
    )
    dear = found(made, "dear").place
    assert dear is not None
    assert (dear.status, dear.dominated_by) == (FrontStatus.TIED, ())


def test_cheap_and_bad_stands_beside_dear_and_good() -> None:
    made = analysis(planted("cheap", 0.001, lambda case: case < 10), planted("good", 0.004))
    assert {one.place.status for one in made.configurations if one.place} == {FrontStatus.FRONT}
    assert [place.ties for one in made.configurations if (place := one.place)] == [(), ()]


def test_equal_configurations_are_hardly_ever_told_apart() -> None:
    chance = np.random.default_rng(11)
    claims = []
    for _ in range(100):
        hard = chance.random(40)
        equal = [
            drawn(
                str(n), chance.lognormal(-6, 0.5, 40) * (1 + hard), (chance.random(40) > hard).astype(float)
            )
            for n in range(4)
        ]
        certain = relate(equal, Tolerances())
        claims.append(certain.cheaper.any() or certain.better.any())
    assert np.mean(claims) <= 0.08


def test_a_real_difference_in_cost_is_found() -> None:
    chance = np.random.default_rng(12)
    found_it = []
    for _ in range(40):
        score = (chance.random(300) < 0.8).astype(float)
        dear, cheap = (
            drawn(name, scale * chance.lognormal(-6, 0.5, 300), score)
            for name, scale in (("a", 1), ("b", 0.8))
        )
        found_it.append(relate([dear, cheap], Tolerances()).cheaper[0, 1])
    assert np.mean(found_it) >= 0.95


def test_configurations_without_a_common_case_are_not_compared() -> None:
    first = planted("a", 0.001)
    other = type(first)("b", "b", "1", {("b", "another"): planted("b", 0.01).trials[("b", "hash")]})
    made = analysis(first, other)
    assert FrontStatus.DOMINATED not in {one.place.status for one in made.configurations if one.place}
