"""Whether the question of a run is decided: executions in, pair by pair."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from assay.execute.blocks import Block, blocks
from assay.model import Batch, Execution, Phase, Plan, Ruling, Status, Trial, metric_named
from assay.model.metric import is_score
from assay.stats.sequence import Decision, Look, PairSequence, ScoreSequence

Unit = tuple[int, int, str]
"""Trial, process and case: one side of a pair."""


@dataclass(slots=True)
class _SideSeen:
    """What has been seen of one side of a pair."""

    seen: int = 0
    values: list[float] = field(default_factory=list)


class Deciding:
    """Takes in what an executor sends, in any order; looks at the pairs in the order of the plan."""

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
            one: other for block, _ in self._pairs for one, other in (_trials(block), _trials(block)[::-1])
        }
        self._next = 0
        self._measured = {trial.index: trial.iterations.measured for trial in plan.trials}
        self._sides: defaultdict[Unit, _SideSeen] = defaultdict(_SideSeen)
        self._settled: set[tuple[int, int]] = set()
        self._look = Look(0, Decision.OPEN, is_over=False)

    @property
    def is_over(self) -> bool:
        return self._look.is_over or self._next == len(self._pairs) or self._is_in_vain

    @property
    def _is_in_vain(self) -> bool:
        """None of the first pairs told anything: the metric may be one that there is not."""
        return not self._look.pairs and self._look.left_out >= self._question.min

    def see(self, batch: Batch, ended: set[int]) -> None:
        """Trials that the question needs no more are put among the `ended` ones."""
        self.take(batch.executions)
        self._settled.update(batch.settled)
        self._go_on(ended)
        ended.update([self._partners[trial] for trial in ended if trial in self._partners])
        if self.is_over:
            ended.update(self._measured)

    def take(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            if execution.phase is not Phase.MEASURED:
                continue
            side = self._sides[execution.trial, execution.process, execution.case]
            side.seen += 1
            if (value := self._value(execution)) is not None:
                side.values.append(value)

    def _value(self, execution: Execution) -> float | None:
        """Of what failed, none; but where it is scored, an agent that failed has the score 0."""
        if execution.status is Status.OK:
            return execution.measurements.get(self._question.metric)
        return 0.0 if self._question.metric == "score" and execution.status.is_settled else None

    def _go_on(self, ended: set[int]) -> None:
        while not self.is_over:
            block, case = self._pairs[self._next]
            if self._is_made(block.first, block, case) and self._is_made(block.second, block, case):
                self._look = self._sequence.add(*(self._figure(t, block, case) for t in _trials(block)))
            elif not ended.intersection(_trials(block)):
                return
            self._next += 1

    def _is_made(self, trial: int, block: Block, case: str) -> bool:
        is_whole = self._sides[trial, block.process, case].seen >= self._measured[trial]
        return is_whole or (trial, block.process) in self._settled

    def _figure(self, trial: int, block: Block, case: str) -> float:
        values = self._sides[trial, block.process, case].values
        if not values:
            return math.nan
        return fmean(values) if self._by_score else median(values)

    def ruling(self) -> Ruling:
        look = self._look
        if not math.isfinite(look.ratio):
            return Ruling(look.decision.value, look.pairs, look.left_out)
        high = look.high if math.isfinite(look.high) else None
        return Ruling(look.decision.value, look.pairs, look.left_out, look.ratio, look.low, high)

    def made(self) -> dict[int, Trial]:
        """Each trial as if it had been planned to go just as far as it went."""
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
