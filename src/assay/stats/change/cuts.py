"""From a series to the cuts that stand: proposed by the kernel, put in place by levels, sifted by ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.stats.change.evidence import WINDOW, Evidence, evidence, inflation, likeness, residuals
from assay.stats.change.kernel import SHORTEST, Partition, bandwidth
from assay.stats.sample import Array

PENALTY = 0.8
"""Of a cut, times ln n."""
LIKE = 0.3
"""Lag-1 correlation above which a cut must cost more."""
LEAST_Z = 3.35
LEAST_SHARE = 0.005
"""Smallest change of a level that is worth a word."""
LEAST_SIGMAS = 1.25
"""Of noise; quiet histories stray by one."""

_LEAST_GAIN = 3.3
"""Times ln n, and at least a sixth of n: what autoregression alone rarely gains at its best cut."""
_POINTS_PER_GAIN = 6.0
_FAR_SIGMAS = 2.5
_FAR_DEMAND = 2 / 3
"""Autoregression seldom strays by so many sigma, so a shift as large that lasts needs only that share of the gain."""
_EXCURSION_DEMAND = 1.3
_LOOSE_DEMAND = 1.5
"""A shift that comes back, and one that the kernel finds only while cuts are cheap, need more."""
_LASTING_SHARE = 0.5
_NARROWER = 0.8
_SHARPEST = 100.0
_REACH = 5
_FEW_POINTS = 8
_KNOWN_POINTS = 20
_FAR_DISTANCE = 12.0
"""Asked of a change so near to an end that only four points speak for it: about six sigma."""


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


def propose(series: Array) -> Proposal:
    price = PENALTY * math.log(max(2, series.size))
    partition = _sharpened(series, price)
    cuts = partition.cuts(price)
    alike = likeness(residuals(series, cuts))
    if not cuts or alike <= LIKE:
        return Proposal(tuple(cuts), frozenset(cuts), inflation(alike))
    firm = partition.cuts(price * inflation(alike))
    loose = [cut for cut in cuts if all(abs(cut - other) >= SHORTEST for other in firm)]
    alike = likeness(residuals(series, firm))
    return Proposal(tuple(sorted([*firm, *loose])), frozenset(firm), inflation(alike))


def _sharpened(series: Array, price: float) -> Partition:
    """With the bandwidth of the noise within segments: large steps widen that of the whole series, and hide small ones."""
    width = bandwidth(series)
    partition = Partition(series, width)
    narrower = max(bandwidth(residuals(series, partition.cuts(price))), width / _SHARPEST)
    return Partition(series, narrower) if narrower < _NARROWER * width else partition


def refined(series: Array, proposal: Proposal) -> Proposal:
    """Each cut moved to where the points around it lie nearest, in absolute distance, to the level of their side."""
    moved: list[int] = []
    for cut, stop in pairwise([*proposal.cuts, series.size]):
        moved.append(_refined(series, moved[-1] if moved else 0, cut, stop))
    firm = {place for place, cut in zip(moved, proposal.cuts, strict=True) if cut in proposal.firm}
    return Proposal(tuple(moved), frozenset(firm), proposal.inflation)


def _refined(series: Array, start: int, cut: int, stop: int) -> int:
    low, high = max(start + SHORTEST, cut - _REACH), min(stop - SHORTEST, cut + _REACH)
    if low >= high:
        return cut
    before = np.median(series[max(start, cut - WINDOW) : cut])
    after = np.median(series[cut : min(stop, cut + WINDOW)])
    near = series[low:high]
    gains = np.concatenate(([0.0], np.cumsum(np.abs(near - after) - np.abs(near - before))))
    return low + int(np.argmax(gains)) if gains.max() > gains[cut - low] else cut


class Sieve:
    """Backward elimination: the weakest cut that does not stand goes, and its neighbours are judged anew."""

    def __init__(self, series: Array, proposal: Proposal, *, is_log: bool) -> None:
        self._series = series
        self._proposal = proposal
        self._is_log = is_log
        self._seen: dict[tuple[int, int, int], Evidence] = {}

    def sift(self) -> list[Cut]:
        places = list(self._proposal.cuts)
        while True:
            edges = [0, *places, self._series.size]
            found = [self._evidence(*edges[i : i + 3]) for i in range(len(places))]
            weights = [self._weight(place, one) for place, one in zip(places, found, strict=True)]
            fallen = [i for i, weight in enumerate(weights) if weight == 0]
            if not fallen:
                return [Cut(*kept) for kept in zip(places, found, weights, strict=True)]
            del places[min(fallen, key=lambda i: abs(found[i].z))]

    def _evidence(self, start: int, cut: int, stop: int) -> Evidence:
        key = max(start, cut - WINDOW), cut, min(stop, cut + WINDOW)
        if key not in self._seen:
            self._seen[key] = evidence(self._series, *key)
        return self._seen[key]

    def _weight(self, place: int, found: Evidence) -> float:
        """|z| of a cut that stands, 0 of one that falls."""
        share = LEAST_SHARE if self._is_log else LEAST_SHARE * found.level
        if found.shift == 0 or abs(found.shift) < max(share, LEAST_SIGMAS * found.sigma):
            return 0.0
        if min(place, self._series.size - place) < _FEW_POINTS:
            return abs(found.z) if self._is_far_beyond_noise(found) else 0.0
        z, points = abs(found.z), found.before + found.after
        demand = max(_LEAST_GAIN * math.log(points), points / _POINTS_PER_GAIN)
        lasts = self._lasts(place, found)
        if lasts and abs(found.shift) >= _FAR_SIGMAS * found.sigma:
            demand *= _FAR_DEMAND
        elif place not in self._proposal.firm:
            demand *= _LOOSE_DEMAND
        elif not lasts:
            demand *= _EXCURSION_DEMAND
        return min(z, math.sqrt(found.gain)) if z >= LEAST_Z and found.gain >= demand else 0.0

    def _lasts(self, place: int, found: Evidence) -> bool:
        """Whether most of the shift remains when other cuts are disregarded, so that it is no excursion."""
        wide = self._evidence(0, place, self._series.size)
        return wide.shift / found.shift >= _LASTING_SHARE and abs(wide.z) >= LEAST_Z

    def _is_far_beyond_noise(self, found: Evidence) -> bool:
        """Whether a change near an end, with too few points for ranks, is so large that it needs no other proof."""
        distance = found.distance / math.sqrt(self._proposal.inflation)
        return (
            max(found.before, found.after) >= _KNOWN_POINTS and distance >= _FAR_DISTANCE and found.is_apart
        )
