"""The blocks of a run that answers a question: what both arms do next to each other, and in which order.

A run with a question (is A faster than B?) ends as soon as the data decide it. `jobs.py` turns each block into one job of
either arm, and `decision.py` looks at the pairs in the order of the blocks, whatever the order in which they end. The
blocks follow from the plan and its seed alone, so both modules and a resumed run see the same ones.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from assay.model import Plan, Trial

CASES = 5
"""Cases in a block of a suite. More of them open the agent less often; fewer of them waste fewer cases once the question is
decided."""


@dataclass(frozen=True, slots=True)
class Block:
    """One pair of processes of an experiment, or up to `CASES` cases of a suite: each case is a pair with all repetitions."""

    first: int
    second: int
    """The indices of the two trials that are compared."""
    process: int
    cases: tuple[str, ...] = ("",)


def blocks(plan: Plan) -> tuple[Block, ...]:
    """All blocks of a plan with a question, at most as many pairs as the question allows.

    The cases of a suite come in random order, so that those asked before the end are a sample of all of them.
    """
    assert plan.question is not None
    if plan.suite is None:
        first, second = plan.trials
        return tuple(Block(first.index, second.index, process) for process in range(plan.question.max))
    chance = random.Random(plan.seed)
    sides: dict[str, list[Trial]] = defaultdict(list)
    for trial in plan.trials:
        sides[trial.benchmark].append(trial)
    blocks_by_side = [_shuffle_into_blocks(trials, chance) for trials in sides.values()]
    # Benchmarks are mixed at random, but the blocks of each stay in order: its first block is the one that warms up.
    turns = [number for number, of_benchmark in enumerate(blocks_by_side) for _ in of_benchmark]
    chance.shuffle(turns)
    waiting = [iter(of_benchmark) for of_benchmark in blocks_by_side]
    left = plan.question.max
    chosen: list[Block] = []
    for number in turns:
        block = next(waiting[number])
        if left > 0:
            cases = block.cases[:left]
            left -= len(cases)
            chosen.append(Block(block.first, block.second, block.process, cases))
    return tuple(chosen)


def _shuffle_into_blocks(trials: Sequence[Trial], chance: random.Random) -> list[Block]:
    first, second = trials
    cases = list(first.cases)
    chance.shuffle(cases)
    starts = range(0, len(cases), CASES)
    return [
        Block(first.index, second.index, number, tuple(cases[start : start + CASES]))
        for number, start in enumerate(starts)
    ]
