"""What the two arms of a question do next to each other, in the order in which it is looked at."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from assay.model import Plan, Trial

CASES = 5
"""Of a suite, as many at a time: an agent is not made anew for each case, and few are asked in vain once it is decided."""


@dataclass(frozen=True, slots=True)
class Block:
    """One pair of processes; or some cases of a benchmark, each with all of its repetitions, a pair each."""

    first: int
    second: int
    """Trials."""
    process: int
    cases: tuple[str, ...] = ("",)


def blocks(plan: Plan) -> tuple[Block, ...]:
    """Cases are drawn, so that those asked before the end stand for all; the same each time for a plan and its seed."""
    assert plan.question is not None
    if plan.suite is None:
        first, second = plan.trials
        return tuple(Block(first.index, second.index, process) for process in range(plan.question.max))
    chance = random.Random(plan.seed)
    drawn = [_drawn(trials, chance) for trials in _by_benchmark(plan)]
    left = plan.question.max
    chosen: list[Block] = []
    for block in _mixed(drawn, chance):
        if left > 0:
            cases = block.cases[:left]
            left -= len(cases)
            chosen.append(Block(block.first, block.second, block.process, cases))
    return tuple(chosen)


def _by_benchmark(plan: Plan) -> list[list[Trial]]:
    sides: dict[str, list[Trial]] = defaultdict(list)
    for trial in plan.trials:
        sides[trial.benchmark].append(trial)
    return list(sides.values())


def _drawn(trials: Sequence[Trial], chance: random.Random) -> list[Block]:
    first, second = trials
    cases = list(first.cases)
    chance.shuffle(cases)
    starts = range(0, len(cases), CASES)
    return [
        Block(first.index, second.index, number, tuple(cases[start : start + CASES]))
        for number, start in enumerate(starts)
    ]


def _mixed(drawn: Sequence[list[Block]], chance: random.Random) -> list[Block]:
    """All benchmarks at random, each in its own order: the first block is the one that warms up."""
    turns = [place for place, some in enumerate(drawn) for _ in some]
    chance.shuffle(turns)
    waiting = [iter(some) for some in drawn]
    return [next(waiting[place]) for place in turns]
