"""How good answers are that were given under load."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from assay.execute.agents import Stable
from assay.execute.judging import Panel
from assay.execute.load.answer import text_of
from assay.model import Answer, Benchmark, Case, Score
from assay.model.figure import Figure
from assay.model.load import Quality
from assay.stats.means import t_quantile


def quality_of(pairs: Sequence[tuple[Benchmark, Case]], answers: Sequence[tuple[int, str]]) -> Quality | None:
    """The mean over cases, each by its own mean: a case that was asked more often counts no more."""
    if not answers:
        return None
    by_case: dict[int, list[float]] = defaultdict(list)
    unscored = 0
    with contextlib.closing(Stable()) as stable:
        panels = {id(benchmark): Panel(benchmark.scorers, benchmark.cases, stable) for benchmark, _ in pairs}
        for number, payload in answers:
            place = number % len(pairs)
            benchmark, case = pairs[place]
            scores: list[Score] = []
            stable.settled(panels[id(benchmark)].judge(case, [Answer(text_of(payload))], scores))
            value = _weighed(scores)
            if value is None:
                unscored += 1
            else:
                by_case[place].append(value)
    means = [float(np.mean(values)) for values in by_case.values()]
    if not means:
        return None
    return Quality(_interval(means), sum(map(len, by_case.values())), unscored)


def _weighed(scores: Sequence[Score]) -> float | None:
    known = [(score.value, score.weight) for score in scores if score.value is not None]
    weight = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / weight if weight else None


def _interval(means: Sequence[float]) -> Figure:
    value = float(np.mean(means))
    if len(means) < 2:
        return Figure(value)
    half = t_quantile(0.975, len(means) - 1) * float(np.std(means, ddof=1)) / math.sqrt(len(means))
    return Figure(value, max(0.0, value - half), min(1.0, value + half))
