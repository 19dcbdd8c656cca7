from __future__ import annotations

import math
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command import AssayInline

from assay.plan.sweep import as_text, points

names = st.text(alphabet="abcdef", min_size=1, max_size=3)
values = st.one_of(
    st.integers(-5, 5), st.booleans(), st.sampled_from(["x", "y", "1"]), st.floats(0, 2, width=16)
)
axes_of = st.dictionaries(
    names, st.lists(values, min_size=1, max_size=4, unique_by=as_text), min_size=1, max_size=4
)
seeds = st.integers(0, 2**32 - 1)


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [as_text(point) for point in found]


@given(axes_of)
def test_a_cartesian_sweep_has_every_combination_once(axes: dict[str, list[Any]]) -> None:
    found = points(axes, "cartesian", None, 0)

    assert len(found) == math.prod(map(len, axes.values()))
    assert len(set(texts(found))) == len(found)


@given(axes_of)
def test_the_order_of_a_cartesian_sweep_depends_on_names_not_on_how_it_was_written(
    axes: dict[str, list[Any]],
) -> None:
    reversed_axes = dict(reversed(axes.items()))

    assert texts(points(axes, "cartesian", None, 0)) == texts(points(reversed_axes, "cartesian", None, 0))


@given(axes_of, st.integers(1, 60), seeds)
def test_a_random_sweep_draws_different_points_up_to_all_there_are(
    axes: dict[str, list[Any]], samples: int, seed: int
) -> None:
    found = points(axes, "random", samples, seed)

    assert len(found) == min(samples, math.prod(map(len, axes.values())))
    assert len(set(texts(found))) == len(found)


@given(axes_of, st.integers(1, 60), seeds)
def test_a_random_sweep_stays_on_the_axes(axes: dict[str, list[Any]], samples: int, seed: int) -> None:
    every = set(texts(points(axes, "cartesian", None, 0)))

    assert set(texts(points(axes, "random", samples, seed))) <= every


@given(axes_of, st.integers(1, 60), seeds)
def test_a_random_sweep_is_the_same_for_the_same_seed(
    axes: dict[str, list[Any]], samples: int, seed: int
) -> None:
    assert texts(points(axes, "random", samples, seed)) == texts(points(axes, "random", samples, seed))


def test_a_random_sweep_is_another_for_another_seed() -> None:
    axes = {"a": list(range(100)), "b": list(range(100))}

    assert points(axes, "random", 10, 1) != points(axes, "random", 10, 2)


def test_a_value_that_is_given_twice_on_a_random_axis_is_drawn_once() -> None:
    assert sorted(point["a"] for point in points({"a": [1, 1, 2, 2]}, "random", 10, 0)) == [1, 2]


def test_a_few_points_are_drawn_from_more_than_anyone_could_list() -> None:
    axes = {f"axis{number}": list(range(1000)) for number in range(30)}

    found = points(axes, "random", 50, 7)

    assert len(set(texts(found))) == 50


def test_random_points_come_from_the_whole_of_an_axis() -> None:
    found = points({"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}, "random", 16, 3)

    assert {point["a"] for point in found} == {point["b"] for point in found} == {0, 1, 2, 3}


@given(st.integers(1, 6), st.lists(names, min_size=1, max_size=4, unique=True))
def test_a_zip_takes_the_axes_side_by_side(length: int, axis_names: list[str]) -> None:
    axes = {name: [f"{name}{number}" for number in range(length)] for name in axis_names}

    found = points(axes, "zip", None, 0)

    assert found == [{name: f"{name}{number}" for name in sorted(axis_names)} for number in range(length)]


@pytest.mark.parametrize("strategy", ["cartesian", "random", "zip"])
def test_without_axes_there_is_one_point(strategy: str) -> None:
    assert points({}, strategy, 5, 0) == [{}]


@pytest.mark.parametrize("strategy", ["cartesian", "random", "zip"])
def test_true_and_one_are_different_values(strategy: str) -> None:
    found = points({"a": [1, True, 1.0]}, strategy, 3, 0)

    assert sorted(repr(point["a"]) for point in found) == ["1", "1.0", "True"]


def test_a_sweep_of_12000_points_is_planned_in_seconds(assay_inline: AssayInline) -> None:
    """Looking up the code base for each point took ten times as long as everything else."""
    assay_inline.write(
        "big.py",
        "from assay import benchmark\n\n@benchmark(iterations=1)\ndef big(a=1, b=1, c=1):\n    pass\n",
    )
    axes = {"a": list(range(30)), "b": list(range(20)), "c": list(range(20))}
    assay_inline.write("sweep.yaml", f"experiment: big\nload: [big.py]\nsweep: {axes}\n")
    started = process_time()

    done = assay_inline("validate", "sweep.yaml")

    assert done.code == 0
    assert "12000 trials" in done.out
    assert process_time() - started < 2
