"""How good answers are that were given under load.

The scorers are those of `assay run` and judge in this process, after the load: a judge that calls a model, or code that is
executed, would compete with the workers. The same answer to the same case is judged once, as a load repeats its cases.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from assay.execute.scoring import Panel
from assay.load.answer_text import TOO_LONG, text_of
from assay.model import Answer, Benchmark, Case, Score
from assay.model.figure import Figure
from assay.model.load import Quality
from assay.model.rating import is_pass
from assay.plugin.agent_pool import AgentPool
from assay.plugin.scorers import compute_weighted_score
from assay.stats.means import average_by_case, compute_mean_score


@dataclass(frozen=True, slots=True)
class Checker:
    """Holds answers of a load against the cases of a suite.

    Cases are asked in turn: request n asks case n modulo their number, so the number of a request tells
    what was expected.
    """

    pairs: Sequence[tuple[Benchmark, Case]]
    output: str | None = None
    """Where in a JSON answer the output is; None where its dialect tells."""

    def __call__(self, answers: Sequence[tuple[int, str]]) -> Quality | None:
        """Score the answers; None if none could be scored."""
        values = self.values(answers)
        cases = [self.case_of(number) for number, _ in answers]
        by_case = average_by_case(zip(cases, values, strict=True))
        if not by_case:
            return None
        scored = sum(value is not None for value in values)
        return Quality(
            Figure(*compute_mean_score(list(by_case.values()))), scored, len(values) - scored, by_case
        )

    def case_of(self, number: int) -> int:
        return number % len(self.pairs)

    def is_right(self, number: int, value: float | None) -> bool:
        """Whether that score passes, as the benchmark of the case has it."""
        benchmark, _ = self.pairs[self.case_of(number)]
        return value is not None and is_pass(value, benchmark.rubric.pass_mark)

    def values(self, answers: Sequence[tuple[int, str]]) -> list[float | None]:
        """The score of each answer, none where it is too long; the same answer to the same case is judged once."""
        known: dict[tuple[int, str], float | None] = {}
        keys = [
            (self.case_of(number), payload if payload == TOO_LONG else text_of(payload, self.output))
            for number, payload in answers
        ]
        # Judges are agents, and the pool closes them. Scorers are made once for each benchmark, however often it is asked.
        with contextlib.closing(AgentPool()) as pool:
            panels = {
                id(benchmark): Panel(benchmark.scorers, benchmark.cases, pool)
                for benchmark, _ in (self.pairs if answers else ())
            }
            for place, text in dict.fromkeys(keys):
                benchmark, case = self.pairs[place]
                if text == TOO_LONG:
                    known[place, text] = None
                    continue
                scores: list[Score] = []
                pool.wait(panels[id(benchmark)].judge(case, [Answer(text)], scores))
                known[place, text] = compute_weighted_score(scores)
        return [known[key] for key in keys]
