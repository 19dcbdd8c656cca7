"""Decides the question of a run while it is running: feeds pairs of executions to a sequential test until it is sure.

The runner passes every batch to `Deciding.see`. Executions arrive in any order, but the sequential test of
`assay.stats.sequence` is valid only if pairs are looked at in an order that does not depend on their results: the order of
`blocks`. A pair is looked at once both of its sides are complete.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from assay.execute.blocks import Block, blocks
from assay.model import Batch, Execution, Phase, Placement, Plan, Ruling, Status, Trial, metric_named
from assay.model.execution import BETWEEN_NODES
from assay.model.metric import is_score
from assay.stats.sequence import Decision, Look, PairSequence, ScoreSequence

Unit = tuple[int, int, str]
"""Trial, process and case: one side of a pair."""


@dataclass(slots=True)
class _SideSeen:
    """What has been seen of one side of a pair."""

    seen: int = 0
    """Measured executions, those without a value included."""
    values: list[float] = field(default_factory=list)


class Deciding:
    """Takes in what an executor sends, in any order, and looks at the pairs in the order of the plan.

    `_next` is the pair that is looked at next. A pair that will never be complete, because one of its trials has ended, is
    passed over; otherwise the next look waits for it.
    """

    def __init__(self, plan: Plan) -> None:
        assert plan.question is not None
        self._plan, self._question = plan, plan.question
        self._by_score = is_score(metric_named(self._question.metric))
        kind = ScoreSequence if self._by_score else PairSequence
        self._sequence = kind(
            tolerance=self._question.tolerance, burn_in=self._question.min, cap=self._question.max
        )
        self._pairs = [(block, case) for block in blocks(plan) for case in block.cases]
        self._partners = {
            trial: partner
            for block, _ in self._pairs
            for trial, partner in (_trials(block), _trials(block)[::-1])
        }
        self._next = 0
        self._measured = {trial.index: trial.iterations.measured for trial in plan.trials}
        self._sides: defaultdict[Unit, _SideSeen] = defaultdict(_SideSeen)
        self._settled: set[tuple[int, int]] = set()
        self._nodes: dict[tuple[int, int], str] = {}
        self._begun: set[tuple[int, int]] = set()
        """Trial and process of jobs that have made an execution."""
        self._look = Look(0, Decision.OPEN, is_over=False)

    @property
    def is_over(self) -> bool:
        # None of the first pairs had a value: there may be no such metric, and more pairs would not help.
        is_in_vain = not self._look.pairs and self._look.left_out >= self._question.min
        return self._look.is_over or self._next == len(self._pairs) or is_in_vain

    def see(self, batch: Batch, ended: set[int]) -> None:
        """Take in a batch and add the trials that the question does not need any more to `ended`.

        A trial that has ended takes its partner with it, as there is nothing to compare it with.
        """
        self.take(batch.executions)
        self.place(batch.placements)
        self._settled.update(batch.settled)
        self._go_on(ended)
        ended.update([self._partners[trial] for trial in ended if trial in self._partners])
        if self.is_over:
            ended.update(self._measured)

    def take(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            self._begun.add((execution.trial, execution.process))
            if execution.phase is not Phase.MEASURED:
                continue
            side = self._sides[execution.trial, execution.process, execution.case]
            side.seen += 1
            value = None
            if execution.status is Status.OK:
                value = execution.measurements.get(self._question.metric)
            elif self._question.metric == "score" and execution.status.is_settled:
                value = 0.0  # an agent that failed has the score 0
            if value is not None:
                side.values.append(value)

    def place(self, placements: Iterable[Placement]) -> None:
        """Note where jobs run: times of two machines, or of a process that moved, are not comparable as a pair."""
        for placement in placements:
            key = placement.trial, placement.process
            before = self._nodes.get(key, placement.node) if key in self._begun else placement.node
            has_moved = before != placement.node
            self._nodes[key] = f"{before}{BETWEEN_NODES}{placement.node}" if has_moved else before

    def _are_apart(self, block: Block) -> bool:
        nodes = {self._nodes.get((trial, block.process), "") for trial in _trials(block)}
        has_moved = any(BETWEEN_NODES in node for node in nodes)
        return (len(nodes) > 1 or has_moved) and not self._by_score

    def _go_on(self, ended: set[int]) -> None:
        while not self.is_over:
            block, case = self._pairs[self._next]
            if self._is_made(block.first, block, case) and self._is_made(block.second, block, case):
                average = fmean if self._by_score else median
                sides = [self._sides[trial, block.process, case].values for trial in _trials(block)]
                is_left_out = self._are_apart(block)
                first, second = (
                    average(values) if values and not is_left_out else math.nan for values in sides
                )
                self._look = self._sequence.add(first, second)
            elif not ended.intersection(_trials(block)):
                return
            self._next += 1

    def _is_made(self, trial: int, block: Block, case: str) -> bool:
        """Whether no more executions of this side will come: all are there, or its job is settled."""
        is_whole = self._sides[trial, block.process, case].seen >= self._measured[trial]
        return is_whole or (trial, block.process) in self._settled

    def ruling(self) -> Ruling:
        """The decision as it is stored: without numbers where no pair had any, and without an infinite upper bound."""
        look = self._look
        if not math.isfinite(look.ratio):
            return Ruling(look.decision.value, look.pairs, look.left_out)
        high = look.high if math.isfinite(look.high) else None
        return Ruling(look.decision.value, look.pairs, look.left_out, look.ratio, look.low, high)

    def trim_trials(self) -> dict[int, Trial]:
        """Return each trial as if it had been planned to end where it ended."""
        processes: dict[int, int] = defaultdict(int)
        cases: defaultdict[int, set[str]] = defaultdict(set)
        for trial, process, case in (unit for unit, side in self._sides.items() if side.seen):
            processes[trial] = max(processes[trial], process + 1)
            cases[trial].add(case)
        if self._plan.suite is None:
            return {t.index: replace(t, processes=max(1, processes[t.index])) for t in self._plan.trials}
        return {
            t.index: replace(t, cases=tuple(case for case in t.cases if case in cases[t.index]))
            for t in self._plan.trials
        }


def _trials(block: Block) -> tuple[int, int]:
    return block.first, block.second
