"""Contention: how many requests of a team had to wait because other agents worked at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from assay.analysis.comparison.verdict import FEWEST_PAIRS
from assay.model import Verdict
from assay.model.figure import Figure
from assay.model.precision import TOLERANCE
from assay.model.team import Contention, Stint
from assay.stats.paired_figures import difference_of_pairs
from assay.stats.verdicts import effective_n, wilson

LEAST_DELAY_SECONDS = 0.005
"""Below this a delay is the scheduler's of a busy machine, whatever share of a short request it is."""
ACCEPTABLE = 0.10
PROBLEMATIC = 0.30

Legs = tuple[Sequence[Stint], Sequence[Stint]]
"""The sequential and the concurrent leg of one pair."""


@dataclass(frozen=True, slots=True)
class Delay:
    """One request of the concurrent leg against the same request of the sequential one."""

    agent: str
    seconds: float
    """Concurrent − sequential."""
    margin: float
    """Differences up to this count as none."""

    @property
    def sign(self) -> int:
        return int(self.seconds > self.margin) - int(self.seconds < -self.margin)


def find_delays(legs: Legs) -> list[Delay]:
    """Compute the delay of every request that both legs of a pair made."""
    return [_delay(before, after) for before, after in _same_requests(legs)]


def _same_requests(legs: Legs) -> Iterator[tuple[Stint, Stint]]:
    waiting: dict[tuple[str, str], list[Stint]] = {}
    for stint in legs[0]:
        waiting.setdefault((stint.agent, stint.case), []).append(stint)
    for stint in legs[1]:
        if before := waiting.get((stint.agent, stint.case)):
            yield before.pop(0), stint


def _delay(before: Stint, after: Stint) -> Delay:
    """Compute how much later one request was answered in the concurrent leg.

    The first token decides, because it does not depend on how long the answer is. If it was not late, or
    it was not seen, the end decides, but only for answers of the same length.
    """
    whole = _difference(before.agent, before.end - before.start, after.end - after.start)
    if before.ttft is None or after.ttft is None:
        return whole
    first = _difference(before.agent, before.ttft, after.ttft)
    return first if first.sign or before.tokens != after.tokens else whole


def _difference(agent: str, before: float, after: float) -> Delay:
    return Delay(agent, after - before, max(LEAST_DELAY_SECONDS, TOLERANCE * before))


def find_contention(
    rounds: Sequence[Sequence[Delay]], slowdown: Figure | None, agent: str | None = None
) -> Contention | None:
    """Over pairs of legs, of one agent or of all; None where no request can be compared.

    Times vary by themselves, so requests that were faster by as much are taken from those that were slower: without
    contention both legs are alike, and the difference is 0 on average.
    """
    own = [[delay for delay in row if agent in (None, delay.agent)] for row in rounds]
    rows = [row for row in own if row]
    if not rows:
        return None
    delays = [delay for row in rows for delay in row]
    slower = [delay for delay in delays if delay.sign > 0]
    faster = sum(delay.sign < 0 for delay in delays)
    rate = _rate([sum(delay.sign for delay in row) / len(row) for row in rows], len(delays))
    return Contention(
        events=len(slower),
        requests=len(delays),
        rate=rate,
        limit_seconds=min(delay.margin for delay in delays),
        by_chance=faster / len(delays),
        verdict=_verdict(rate, slowdown),
        delay_seconds=median(delay.seconds for delay in slower) if slower else None,
    )


def _rate(nets: Sequence[float], requests: int) -> Figure:
    """Requests of one round are alike, so rounds are the unit.

    Signed ranks (Student's t of few rounds) tell what the rounds vary by, Wilson what so few of them may not have shown.
    """
    values = np.asarray(nets)
    share = max(0.0, float(values.mean()))
    low, high = wilson(share, effective_n(values, requests))
    seen = difference_of_pairs(np.zeros(values.size), values)
    assert seen is not None
    ends = max(0.0, min(low, seen.low)), min(1.0, max(high, seen.high))
    return Figure(share, *ends, "", values.size, f"{seen.method}; Wilson over rounds")


def _verdict(rate: Figure, slowdown: Figure | None) -> Verdict:
    """Worse: requests did wait. Same: they took as long as alone, or hardly any can have waited."""
    assert rate.low is not None
    assert rate.high is not None
    if rate.low > 0:
        return Verdict.WORSE if rate.pairs >= FEWEST_PAIRS else Verdict.UNSURE
    return Verdict.SAME if rate.high < ACCEPTABLE or _is_none(slowdown) else Verdict.UNSURE


def _is_none(slowdown: Figure | None) -> bool:
    if slowdown is None or slowdown.low is None or slowdown.high is None:
        return False
    return slowdown.low >= 1 / (1 + TOLERANCE) and slowdown.high <= 1 + TOLERANCE


def contention_grade(contention: Contention) -> str:
    """Against seed 002's limits; nothing is missed that is not established."""
    low, high = contention.rate.low or 0.0, contention.rate.high or 0.0
    if high < ACCEPTABLE:
        return "met"
    if contention.verdict is not Verdict.WORSE or low < ACCEPTABLE:
        return "unsure"
    return "problematic" if low > PROBLEMATIC else "missed"
