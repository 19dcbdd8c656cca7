"""From a series of points to the change points in it, as `changepoint.detect` uses them.

There are three steps. `propose` cuts the series where the kernel of `change.kernel` says so, generously. `refine_cuts` moves
each cut by a few points to where the levels on both sides explain the points best. `Sieve` drops the cuts that the evidence
of `change.evidence` does not support. The constants below say how much evidence a cut needs. They keep series without a change, also
ones whose neighbouring points are alike, from showing one too often; tests/stats/test_changepoint_rates.py measures how often.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.stats.change.evidence import WINDOW, Evidence, evidence, inflation, likeness, residuals
from assay.stats.change.kernel import FINEST, SHORTEST, Partition, bandwidth
from assay.stats.sample import Array

PENALTY = 0.8
"""The penalty of a cut is this times ln n."""
LIKE = 0.3
"""Lag-1 correlation above which a cut must cost more."""
LEAST_Z = 3.35
LEAST_SHARE = 0.005
"""Smallest change of a level that is reported."""
LEAST_SIGMAS = 1.25
"""Minimum change in standard deviations of the noise; quiet histories stray by one."""

_LEAST_GAIN = 3.3
"""Times ln n, and at least a sixth of n: what autoregression alone rarely gains at its best cut."""
_POINTS_PER_GAIN = 6.0
_FAR_SIGMAS = 2.5
_FAR_DEMAND = 2 / 3
"""Sigmas by which autoregression seldom strays, and the share of the gain that a lasting shift of that size needs."""
_EXCURSION_DEMAND = 1.3
_LOOSE_DEMAND = 1.5
"""A shift that comes back, and one that the kernel finds only while cuts are cheap, need more."""
_LASTING_SHARE = 0.5
LONGEST_WHOLE = 4096
"""Points of the longest series that is partitioned as a whole."""
_BLOCK = 1024
_MARGIN = 128
_APART = 7
_NARROWER = 0.8
_SHARPEST = 100.0
_REACH = 5
_FEW_POINTS = 8
_KNOWN_POINTS = 20
_FAR_DISTANCE = 12.0
"""Asked of a change so near to an end that only four points speak for it: about six sigma."""


Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done."""


def ignore_progress(share: float) -> None:
    """For callers that do not wait long enough to show anything."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Where the kernel cuts; `firm` are those it still makes when neighbours that are alike raise the price."""

    cuts: tuple[int, ...]
    firm: frozenset[int]
    inflation: float


@dataclass(frozen=True, slots=True)
class Cut:
    place: int
    evidence: Evidence
    z: float
    """The smaller of what the ranks and the gain in likelihood say."""


def propose(series: Array, report: Progress = ignore_progress) -> Proposal:
    """A long series is cut block by block, so that the time grows with its length and not with the square of it."""
    price = PENALTY * math.log(max(2, series.size))
    if series.size <= LONGEST_WHOLE:
        # Large steps widen the bandwidth of the whole series and hide small ones, so that of the noise within segments is used.
        width = bandwidth(series)
        partition = Partition(series, width)
        narrower = max(bandwidth(residuals(series, partition.cuts(price))), width / _SHARPEST)
        if narrower < _NARROWER * width:
            partition = Partition(series, narrower)
        return _propose(series, partition, price)
    return _propose_by_blocks(series, price, report)


def _propose_by_blocks(series: Array, price: float, report: Progress) -> Proposal:
    """Each block answers for its middle only. What lies beyond its ends matters little for a cut that far inside: a shift
    that 60 points a side do not show is not reported anyway."""
    cuts: list[int] = []
    firm: set[int] = set()
    starts = range(0, series.size - 2 * _MARGIN, _BLOCK - 2 * _MARGIN)
    for number, start in enumerate(starts):
        block = series[start : start + _BLOCK]
        # The bandwidth of the noise without steps, from points a few places apart, which few steps come between.
        width = float(np.median(np.abs(block[_APART:] - block[:-_APART])))
        width = max(width, FINEST * float(np.ptp(block))) if width > 0 else bandwidth(block)
        proposal = _propose(block, Partition(block, width), price)
        low = 0 if start == 0 else start + _MARGIN - _REACH
        high = series.size if start == starts[-1] else start + _BLOCK - _MARGIN + _REACH
        inner = [start + cut for cut in proposal.cuts if low <= start + cut < high]
        # Two blocks see a cut at their border; it counts once.
        inner = [cut for cut in inner if not cuts or cut - cuts[-1] >= SHORTEST]
        cuts += inner
        firm |= {cut for cut in inner if cut - start in proposal.firm}
        report((number + 1) / len(starts))
    return Proposal(tuple(cuts), frozenset(firm), inflation(likeness(residuals(series, cuts))))


def _propose(series: Array, partition: Partition, price: float) -> Proposal:
    """Cuts at the plain price, of which those are firm that also appear at the price for noise whose neighbours are alike."""
    cuts = partition.cuts(price)
    correlation = likeness(residuals(series, cuts))
    if not cuts or correlation <= LIKE:
        return Proposal(tuple(cuts), frozenset(cuts), inflation(correlation))
    firm = partition.cuts(price * inflation(correlation))
    loose = [cut for cut in cuts if all(abs(cut - other) >= SHORTEST for other in firm)]
    correlation = likeness(residuals(series, firm))
    return Proposal(tuple(sorted([*firm, *loose])), frozenset(firm), inflation(correlation))


def refine_cuts(series: Array, proposal: Proposal) -> Proposal:
    """Each cut moved to where the points around it lie nearest, in absolute distance, to the level of their side."""
    moved: list[int] = []
    for cut, stop in pairwise([*proposal.cuts, series.size]):
        moved.append(_refine_cut(series, moved[-1] if moved else 0, cut, stop))
    firm = {place for place, cut in zip(moved, proposal.cuts, strict=True) if cut in proposal.firm}
    return Proposal(tuple(moved), frozenset(firm), proposal.inflation)


def _refine_cut(series: Array, start: int, cut: int, stop: int) -> int:
    low, high = max(start + SHORTEST, cut - _REACH), min(stop - SHORTEST, cut + _REACH)
    if low >= high:
        return cut
    before = np.median(series[max(start, cut - WINDOW) : cut])
    after = np.median(series[cut : min(stop, cut + WINDOW)])
    near = series[low:high]
    gains = np.concatenate(([0.0], np.cumsum(np.abs(near - after) - np.abs(near - before))))
    return low + int(np.argmax(gains)) if gains.max() > gains[cut - low] else cut


class Sieve:
    """Backward elimination: the weakest cut that does not stand goes, and its neighbours are judged anew.

    A cut is judged by the points between its neighbours, so dropping one cut changes the evidence for the two beside it.
    `before` and `after` are linked lists over the positions of the cuts, and `fallen` is a heap of the cuts that fell, weakest
    first. A heap entry is out of date when its cut was dropped or judged again since; it is then skipped.
    """

    def __init__(self, series: Array, proposal: Proposal, *, is_log: bool) -> None:
        self._series = series
        self._proposal = proposal
        self._is_log = is_log
        self._seen: dict[tuple[int, int, int], Evidence] = {}

    def sift(self) -> list[Cut]:
        places = [0, *self._proposal.cuts, self._series.size]
        before, after = list(range(-1, len(places) - 1)), list(range(1, len(places) + 1))
        judged: dict[int, Cut] = {}
        fallen: list[tuple[float, int]] = []

        def judge(i: int) -> None:
            around = self._evidence(places[before[i]], places[i], places[after[i]])
            judged[i] = Cut(places[i], around, self._weight(places[i], around))
            if judged[i].z == 0:
                heapq.heappush(fallen, (abs(around.z), i))

        for i in range(1, len(places) - 1):
            judge(i)
        while fallen:
            z, i = heapq.heappop(fallen)
            if i not in judged or judged[i].z > 0 or abs(judged[i].evidence.z) != z:
                continue
            del judged[i]
            before[after[i]], after[before[i]] = before[i], after[i]
            for neighbour in (before[i], after[i]):
                if neighbour in judged:
                    judge(neighbour)
        return [judged[i] for i in sorted(judged)]

    def _evidence(self, start: int, cut: int, stop: int) -> Evidence:
        key = max(start, cut - WINDOW), cut, min(stop, cut + WINDOW)
        if key not in self._seen:
            self._seen[key] = evidence(self._series, *key)
        return self._seen[key]

    def _weight(self, place: int, around: Evidence) -> float:
        """|z| of a cut that stands, 0 of one that falls."""
        share = LEAST_SHARE if self._is_log else LEAST_SHARE * around.level
        if around.shift == 0 or abs(around.shift) < max(share, LEAST_SIGMAS * around.sigma):
            return 0.0
        if min(place, self._series.size - place) < _FEW_POINTS:
            # Near an end there are too few points for ranks: only a change far beyond the noise stands.
            distance = around.distance / math.sqrt(self._proposal.inflation)
            has_known_side = max(around.before, around.after) >= _KNOWN_POINTS
            return abs(around.z) if has_known_side and distance >= _FAR_DISTANCE and around.is_apart else 0.0
        z, points = abs(around.z), around.before + around.after
        demand = max(_LEAST_GAIN * math.log(points), points / _POINTS_PER_GAIN)
        # A shift lasts if most of it remains when the other cuts are disregarded; otherwise it is an excursion.
        wide = self._evidence(0, place, self._series.size)
        lasts = wide.shift / around.shift >= _LASTING_SHARE and abs(wide.z) >= LEAST_Z
        if lasts and abs(around.shift) >= _FAR_SIGMAS * around.sigma:
            demand *= _FAR_DEMAND
        elif place not in self._proposal.firm:
            demand *= _LOOSE_DEMAND
        elif not lasts:
            demand *= _EXCURSION_DEMAND
        return min(z, math.sqrt(around.gain)) if z >= LEAST_Z and around.gain >= demand else 0.0
