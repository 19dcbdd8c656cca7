"""How good answers are that were given under load."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from assay.execute.agents import Stable
from assay.execute.judging import Panel, weighted_score
from assay.execute.load.answer_text import TOO_LONG, text_of
from assay.model import Answer, Benchmark, Case, Score
from assay.model.figure import Figure
from assay.model.load import Quality
from assay.model.rating import is_pass
from assay.stats.means import mean_half_width


@dataclass(frozen=True, slots=True)
class Checker:
    """Holds answers against the cases of a suite, which are asked in turn: request n asks case n modulo their number."""

    pairs: Sequence[tuple[Benchmark, Case]]
    output: str | None = None
    """Where in a JSON answer the output is; None where its dialect tells."""

    def __call__(self, answers: Sequence[tuple[int, str]]) -> Quality | None:
        """None where nothing could be scored."""
        values = self.values(answers)
        cases = [self.case_of(number) for number, _ in answers]
        by_case = case_means(zip(cases, values, strict=True))
        if not by_case:
            return None
        scored = sum(value is not None for value in values)
        return Quality(figure_of(list(by_case.values())), scored, len(values) - scored, by_case)

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
        with contextlib.closing(Stable()) as stable:
            panels = {
                id(benchmark): Panel(benchmark.scorers, benchmark.cases, stable)
                for benchmark, _ in (self.pairs if answers else ())
            }
            for place, text in dict.fromkeys(keys):
                benchmark, case = self.pairs[place]
                if text == TOO_LONG:
                    known[place, text] = None
                    continue
                scores: list[Score] = []
                stable.settled(panels[id(benchmark)].judge(case, [Answer(text)], scores))
                known[place, text] = weighted_score(scores)
        return [known[key] for key in keys]


def case_means(scores: Iterable[tuple[int, float | None]]) -> dict[int, float]:
    """Of each case that has a score: one that was asked more often counts no more."""
    by_case: dict[int, list[float]] = defaultdict(list)
    for case, value in scores:
        if value is not None:
            by_case[case].append(value)
    return {case: float(np.mean(values)) for case, values in by_case.items()}


def figure_of(means: Sequence[float]) -> Figure:
    """The mean over cases with Student's interval, which one case alone does not have."""
    value = float(np.mean(means))
    if len(means) < 2:
        return Figure(value)
    half = mean_half_width(means)
    return Figure(value, max(0.0, value - half), min(1.0, value + half))
