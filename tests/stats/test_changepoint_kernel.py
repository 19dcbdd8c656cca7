"""The raw partition, before cuts are moved or dropped, against an independent implementation and against arithmetic."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from assay.stats.change.evidence import compute_best_cut_p, likeness, rank_sum_z
from assay.stats.change.kernel import Partition, bandwidth
from assay.stats.sample import Array


def jumping(n: int, seed: int, kind: str) -> Array:
    chance = np.random.default_rng(seed)
    level = np.cumsum((chance.random(n) < 0.03) * chance.normal(0, 4, n))
    noise = {"normal": chance.normal(size=n), "t3": chance.standard_t(3, n)}
    return level + (noise[kind] if kind in noise else np.round(noise["normal"] * 2) / 2)


@pytest.mark.parametrize("kind", ["normal", "t3", "coarse"])
@pytest.mark.parametrize(("n", "seed"), [(60, 1), (200, 2), (201, 3), (500, 4)])
def test_the_partition_is_that_of_ruptures(n: int, seed: int, kind: str) -> None:
    import ruptures  # slow to import

    series, penalty = jumping(n, seed, kind), 0.8 * math.log(n)
    width = bandwidth(series)
    other = ruptures.KernelCPD(kernel="rbf", params={"gamma": width**-2}, min_size=4).fit(series)

    assert [*Partition(series).cuts(penalty), n] == other.predict(pen=penalty)


@pytest.mark.parametrize("penalty", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("n", [8, 9, 23, 70])
def test_no_other_partition_costs_less(n: int, penalty: float) -> None:
    series = jumping(n, n, "normal")
    width = bandwidth(series)
    cuts = Partition(series, width).cuts(penalty)

    def cost(start: int, stop: int) -> float:
        part = series[start:stop] / width
        return part.size - float(np.exp(-np.square(np.subtract.outer(part, part))).sum()) / part.size

    least = [0.0, *([math.inf] * n)]
    for stop in range(4, n + 1):
        options = [least[start] + cost(start, stop) + penalty for start in range(stop - 3)]
        least[stop] = min(options)
    edges = [0, *cuts, n]
    ours = sum(cost(start, stop) + penalty for start, stop in pairwise(edges))
    assert ours == pytest.approx(least[n], abs=1e-3)


def test_points_far_from_all_others_do_not_crowd_out_the_rest() -> None:
    chance = np.random.default_rng(2)
    series = np.concatenate((chance.normal(0, 1, 400), chance.normal(3, 1, 400)))
    series[::4] = chance.uniform(-1e6, 1e6, 200)

    (cut,) = Partition(series, width=1.5).cuts(0.8 * math.log(800))

    assert abs(cut - 400) <= 3


def test_the_bandwidth_is_the_median_distance() -> None:
    series = np.random.default_rng(1).normal(size=51)
    distances = np.abs(np.subtract.outer(series, series))[np.triu_indices(51, 1)]

    below, above = np.sort(distances)[[636, 638]]
    assert below <= bandwidth(series) <= above


def test_where_most_values_are_equal_the_bandwidth_is_that_of_the_others() -> None:
    assert bandwidth(np.array([1.0] * 50 + [3.0] * 5)) == 2.0
    assert bandwidth(np.full(9, 7.0)) == 0.0


def test_the_rank_sum_has_its_textbook_value() -> None:
    # U = 23 of 25 pairs; mean 12.5, variance 25 · 11 / 12.
    x, y = np.array([1.0, 2.0, 3.0, 4.0, 6.5]), np.array([5.0, 6.0, 7.0, 8.0, 9.0])

    assert rank_sum_z(x, y) == pytest.approx(10.5 / math.sqrt(25 * 11 / 12))


def test_a_p_value_at_the_best_cut_pays_for_the_search() -> None:
    chance = np.random.default_rng(11)
    n, limit = 80, 2.9
    best = [
        max(abs(rank_sum_z(one[:cut], one[cut:])) for cut in range(4, n - 3, 2))
        for one in chance.normal(size=(400, n))
    ]

    share, unpaid = float(np.mean(np.array(best) >= limit)), math.erfc(limit / math.sqrt(2))
    assert 5 * unpaid < share <= compute_best_cut_p(limit, n, 4) < 50 * unpaid


def test_likeness_is_the_memory_of_the_noise() -> None:
    chance = np.random.default_rng(3)
    noise = chance.normal(size=4000)
    for place in range(1, noise.size):
        noise[place] += 0.6 * noise[place - 1]

    assert likeness(noise) == pytest.approx(0.6, abs=0.05)
    assert likeness(chance.normal(size=4000)) < 0.05
