"""Two samples in blocks are compared within blocks."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.blocks import Blocked, compare_within_blocks, mean_difference_within_blocks
from assay.stats.effect import compare_unpaired, twice_above

chance = np.random.default_rng(7)


def _sample(sizes: dict[str, int], paces: dict[str, float], factor: float = 1.0) -> Blocked:
    blocks = [name for name, size in sizes.items() for _ in range(size)]
    values = np.array([paces[name] for name in blocks]) * factor * np.exp(chance.normal(0, 0.03, len(blocks)))
    return Blocked(values, blocks)


def test_one_block_is_the_mann_whitney_test() -> None:
    a, b = (_sample({"n1": size}, {"n1": 1.0}, by) for size, by in ((9, 1.0), (11, 1.02)))
    within, plain = compare_within_blocks(a, b), compare_unpaired(a.values, b.values)

    assert within is not None
    assert plain is not None
    assert (within.value, within.low, within.high, within.p, within.dominance) == pytest.approx(
        (plain.value, plain.low, plain.high, plain.p, plain.dominance)
    )


def test_the_p_value_is_that_of_dealing_each_block_anew() -> None:
    """Against every way to deal the values of each block to both sides."""
    a, b = (
        Blocked(np.array([1.0, 3.0, 20.0]), ["x", "x", "y"]),
        Blocked(np.array([2.0, 4.0, 50.0, 30.0]), ["x", "x", "y", "y"]),
    )
    found = compare_within_blocks(a, b)
    sums = []
    for first, second in product(combinations(range(4), 2), combinations(range(3), 1)):
        x, y = np.array([1.0, 3.0, 2.0, 4.0]), np.array([20.0, 50.0, 30.0])
        sums.append(
            sum(
                twice_above(v[list(mine)], np.delete(v, list(mine))) // 2
                for v, mine in ((x, first), (y, second))
            )
        )
    observed = 3 + 2
    tails = np.mean(np.array(sums) >= observed), np.mean(np.array(sums) <= observed)

    assert found is not None
    assert found.p == pytest.approx(min(1.0, 2 * min(tails)))


@given(st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.floats(0.01, 100.0), min_size=3))
def test_what_blocks_differ_by_does_not_matter(paces: dict[str, float]) -> None:
    local = np.random.default_rng(3)
    a, b = (Blocked(local.lognormal(0, 0.1, 9), ["n1", "n2", "n3"] * 3) for _ in range(2))
    moved_a, moved_b = (
        Blocked(side.values * [paces[name] for name in side.blocks], side.blocks) for side in (a, b)
    )
    before, after = compare_within_blocks(a, b), compare_within_blocks(moved_a, moved_b)

    assert before is not None
    assert after is not None
    assert (after.value, after.low, after.high, after.p) == pytest.approx(
        (before.value, before.low, before.high, before.p)
    )


def test_sides_without_a_common_block_have_no_effect() -> None:
    a, b = _sample({"n1": 5}, {"n1": 1.0}), _sample({"n2": 5}, {"n2": 1.0})

    assert compare_within_blocks(a, b) is None
    assert mean_difference_within_blocks(a, b) is None


def test_unequal_shares_of_a_slow_node_claim_nothing_and_a_true_difference_is_found() -> None:
    """`make bench-stats` has the rates: 4 % of identical arms, where the test without blocks claims 98 %."""
    paces, shares = {"n1": 1.0, "n2": 1.5}, ({"n1": 16, "n2": 4}, {"n1": 4, "n2": 16})
    claims = {
        factor: sum(
            bool(effect and effect.excludes_neutral)
            for effect in (
                compare_within_blocks(_sample(shares[0], paces), _sample(shares[1], paces, factor))
                for _ in range(60)
            )
        )
        for factor in (1.0, 1.1)
    }
    naive = compare_unpaired(_sample(shares[0], paces).values, _sample(shares[1], paces).values)

    assert claims[1.0] <= 7
    assert claims[1.1] >= 55
    assert naive is not None
    assert naive.excludes_neutral


def test_the_mean_difference_is_that_of_least_squares() -> None:
    a, b = (
        _sample({"n1": 5, "n2": 2}, {"n1": 1.0, "n2": 1.5}),
        _sample({"n1": 1, "n2": 6}, {"n1": 1.0, "n2": 1.5}, 1.2),
    )
    found = mean_difference_within_blocks(a, b)
    names = [*a.blocks, *b.blocks]
    design = np.array(
        [
            [float(name == "n1"), float(name == "n2"), float(n >= len(a.blocks))]
            for n, name in enumerate(names)
        ]
    )
    values = np.concatenate((a.values, b.values))
    solved, rest, *_ = np.linalg.lstsq(design, values)
    error = np.sqrt(rest[0] / (values.size - 3) * np.linalg.inv(design.T @ design)[2, 2])

    assert found is not None
    assert (found.value, found.part.error, found.part.freedom) == pytest.approx(
        (solved[2], error, values.size - 3)
    )
