"""What a benchmark of Assay itself found: a promise, the figures of both sides, and whether it holds."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any

from assay.stats.order import median_interval
from assay.units import percent, show

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """A median; low and high are its 95 % interval where there are values enough for one, else the extremes."""

    value: float
    low: float
    high: float
    n: int

    def shown(self, unit: str) -> str:
        if self.n == 1 or self.low == self.high:
            return in_unit(self.value, unit)
        return f"{in_unit(self.value, unit)} ({in_unit(self.low, unit)} to {in_unit(self.high, unit)})"


def figure(values: Sequence[float]) -> Figure:
    """
    >>> figure([3.0, 1.0, 2.0])
    Figure(value=2.0, low=1.0, high=3.0, n=3)
    """
    ordered = sorted(values)
    low, high = median_interval(ordered) or (ordered[0], ordered[-1])
    return Figure(statistics.median(ordered), low, high, len(ordered))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """Ours ÷ theirs over the rounds: the Walsh average of the log ratios with its interval, as in `assay compare`."""
    # Here, not above: a parent that holds numpy would lend its size to the peak memory of what it starts.
    from assay.stats.effect import compare_paired

    effect = compare_paired(theirs, ours)
    if effect is None or not math.isfinite(effect.high):
        return figure([mine / other for mine, other in zip(ours, theirs, strict=True)])
    return Figure(effect.value, effect.low, effect.high, len(ours))


def in_unit(value: float, unit: str) -> str:
    """
    >>> in_unit(0.031, "share"), in_unit(4.25, "times"), in_unit(2.5e6, "bytes")
    ('3.1 %', '4.25×', '2.5 MB')
    """
    match unit:
        case "share":
            return percent(value)
        case "times":
            return f"{show(value, '')}×"
        case "bytes":
            return f"{show(value / 1e6, '')} MB"
        case _:
            return show(value, unit)


class Bound(StrEnum):
    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"
    WITHIN = "within"
    """Of zero, on either side."""

    def is_kept(self, value: float, threshold: float) -> bool:
        match self:
            case Bound.AT_LEAST:
                return value >= threshold
            case Bound.AT_MOST:
                return value <= threshold
            case Bound.BELOW:
                return value < threshold
            case Bound.WITHIN:
                return abs(value) <= threshold


@dataclass(frozen=True, slots=True)
class Promise:
    """A bound on the judged figure, which is ours, or what lies between ours and a peer's."""

    name: str
    claim: str
    bound: Bound
    threshold: float
    unit: str
    of: str = ""
    """What the bound is relative to, as in `within 3 % of pyperf`."""

    def shown(self) -> str:
        return f"{self.bound} {in_unit(self.threshold, self.unit)} {self.of}".strip()


@dataclass(frozen=True, slots=True)
class Result:
    """One promise, measured. Everything on the page comes from these."""

    promise: Promise
    unit: str
    ours: Figure
    judged: Figure
    peers: Mapping[str, Figure] = field(default_factory=dict)
    detail: str = ""
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """What was observed, round by round; unlike the judgement it never depends on how we summarise."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    date: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours ÷ that of the first peer."""
        first = next(iter(self.peers.values()), None)
        return self.ours.value / first.value if first and first.value else None

    @property
    def holds(self) -> bool:
        return self.promise.bound.is_kept(self.judged.value, self.promise.threshold)

    @property
    def is_settled(self) -> bool:
        """Whether both ends of the interval agree with the verdict."""
        ends = (self.judged.low, self.judged.high)
        return all(self.promise.bound.is_kept(end, self.promise.threshold) == self.holds for end in ends)


def machine() -> dict[str, Any]:
    """Where and in what state the machine is; it goes to a public page, so no host name is in it."""
    from assay.execute.environment import environment

    found = environment(Path(__file__).parent, packages=False)
    return {
        "class": found.machine_class,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": round(os.getloadavg()[0], 2),
        "doubts": list(found.doubts),
    }


def save(result: Result, folder: Path = RESULTS) -> None:
    flat = {
        "name": result.promise.name,
        "claim": result.promise.claim,
        "bound": result.promise.bound,
        "threshold": result.promise.threshold,
        "threshold_unit": result.promise.unit,
        "threshold_of": result.promise.of,
        "judged": asdict(result.judged),
        "holds": result.holds,
        "unit": result.unit,
        "ours": asdict(result.ours),
        "peers": {name: asdict(peer) for name, peer in result.peers.items()},
        "ratio": result.ratio,
        "detail": result.detail,
        "values": {name: list(values) for name, values in result.values.items()},
        "machine": dict(result.machine),
        "date": result.date or date.today().isoformat(),
    }
    folder.mkdir(exist_ok=True)
    text = json.dumps(flat, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{result.promise.name}.json").write_text(text, encoding="utf-8")


def stored(folder: Path = RESULTS) -> list[Result]:
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Result:
    flat = json.loads(path.read_text(encoding="utf-8"))
    promise = Promise(
        flat["name"], flat["claim"], Bound(flat["bound"]),
        flat["threshold"], flat["threshold_unit"], flat["threshold_of"],
    )  # fmt: skip
    return Result(
        promise,
        flat["unit"],
        Figure(**flat["ours"]),
        Figure(**flat["judged"]),
        {name: Figure(**peer) for name, peer in flat["peers"].items()},
        flat["detail"],
        flat["values"],
        flat["machine"],
        flat["date"],
    )
