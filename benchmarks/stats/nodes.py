"""Two arms on nodes of which one is slower, in unequal shares: how often their times are told apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.analysis.comparison.nodes import NodeBlocks
from assay.analysis.comparison.rounds import compare_rounds
from assay.model import Series
from assay.stats.blocks import Blocked, compare_within_blocks
from assay.stats.effect import Effect, compare_unpaired

SEED = 20261118
ALPHA = 0.05
NODES = {"n1": 1.0, "n2": 1.5, "n3": 1.2}
"""Node to what it takes longer than the first: half as long again in the worst case."""
SHARES = ((0.7, 0.1, 0.2), (0.1, 0.7, 0.2))
"""Which part of the jobs of either arm each node gets."""
CASES = 10
WAYS = ("processes", "rounds", "processes, without blocks")


def count_claims(way: str, units: int, factor: float, times: int) -> float:
    """Share of comparisons with p below 5 %; B takes `factor` times as long as A."""
    chance = np.random.default_rng([SEED, WAYS.index(way), units, round(100 * factor)])
    claims = 0
    for _ in range(times):
        places = [chance.choice(list(NODES), units, p=share).tolist() for share in SHARES]
        effect = _compare(way, chance, places, factor)
        claims += effect is not None and effect.p < ALPHA
    return claims / times


def _compare(
    way: str, chance: np.random.Generator, places: Sequence[list[str]], factor: float
) -> Effect | None:
    sides = zip(places, (1.0, factor), strict=True)
    if way == "rounds":
        a, b = (_measure_rounds(chance, nodes, by) for nodes, by in sides)
        blocks = NodeBlocks(dict(enumerate(places[0])), dict(enumerate(places[1])), is_one_run=True)
        return compare_rounds(a, b, are_interleaved=True, nodes=blocks).effect
    x, y = (_measure_processes(chance, nodes, by) for nodes, by in sides)
    if way == "processes":
        return compare_within_blocks(Blocked(x, places[0]), Blocked(y, places[1]))
    return compare_unpaired(x, y)


def _measure_processes(chance: np.random.Generator, nodes: list[str], factor: float) -> np.ndarray:
    """Medians of processes that vary by 5 %, a tenth of them with a spike."""
    spikes = np.where(chance.random(len(nodes)) < 0.1, chance.exponential(0.4, len(nodes)), 0.0)
    pace = np.array([NODES[node] for node in nodes]) * factor
    return np.asarray(pace * np.exp(chance.normal(0, 0.05, len(nodes)) + spikes))


def _measure_rounds(chance: np.random.Generator, nodes: list[str], factor: float) -> Series:
    pace = np.log([NODES[node] * factor for node in nodes]) + chance.normal(0, 0.05, len(nodes))
    logs = np.log(1 + np.arange(CASES))[:, None] + pace[None, :]
    logs = logs + chance.normal(0, 0.02, logs.shape)
    cases, numbers = np.meshgrid(np.arange(CASES), np.arange(len(nodes)), indexing="ij")
    columns = (cases.ravel().tolist(), numbers.ravel().tolist(), np.exp(logs).ravel().tolist())
    return Series(*columns, unit="case")
