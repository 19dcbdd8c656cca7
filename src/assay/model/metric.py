"""Metrics: names of measured quantities, with their unit, and whether lower or higher is better.

Experiments may return any number under any name. A metric that is declared nowhere is understood by its name: well-known names first,
then suffixes such as `_seconds` or `_per_sec`. A metric whose direction stays unknown is shown but gets no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Better(StrEnum):
    """Which way is good; unknown if it is not declared and the name does not tell."""

    LOWER = "lower"
    HIGHER = "higher"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    """How a number came about; a ranking refuses to mix them."""

    MEASURED = "measured"
    DERIVED = "derived"
    SIMULATED = "simulated"
    RECORDED = "recorded"
    """Measured earlier, by somebody else: neither the machine nor the moment is known."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity with unit, direction and kind."""

    name: str
    unit: str = ""
    better: Better = Better.UNKNOWN
    kind: Kind = Kind.MEASURED


def describe_metrics(*metrics: Metric, **shares: str) -> dict[str, Metric]:
    """Metrics by name, as plug-ins declare them; shares by their name and whether higher or lower is better."""
    found = {metric.name: metric for metric in metrics}
    return found | {name: Metric(name, "share", Better(better)) for name, better in shares.items()}


RECORDED_SECONDS = "recorded_seconds"
"""The time of a recorded answer, also stored as its `seconds`, which in older runs are those of looking the answer up."""

JUDGING = ("judge_calls", "judge_tokens", "judge_usd")
"""What the judges of an execution used up: spending of the harness, apart from the agent's."""


SCORE_TOLERANCE = 0.01
"""Tolerance of scores, which are compared by their difference: one percentage point."""


def metric_named(name: str) -> Metric:
    """What a metric's name alone tells: units and directions of the trade, by suffix.

    >>> metric_named("observes_per_sec").better.value, metric_named("load_seconds").unit
    ('higher', 's')
    """
    return KNOWN_METRICS.get(name) or _by_suffix(name)


def is_score(metric: Metric) -> bool:
    """Whether it is a judgement between 0 and 1: such are compared by their means."""
    return metric.name == "score" or metric.name.startswith("score.")


KNOWN_METRICS = {
    metric.name: metric
    for metric in (
        Metric("seconds", "s", Better.LOWER),
        Metric("usd", "usd", Better.LOWER, Kind.DERIVED),
        Metric("tokens", "tokens", Better.LOWER),
        Metric("throughput", "1/s", Better.HIGHER),
        Metric("duration", "s", Better.LOWER),
        Metric("score", "", Better.HIGHER, Kind.DERIVED),
        Metric("quality", "", Better.HIGHER, Kind.DERIVED),
        Metric("ttft", "s", Better.LOWER),
        Metric("cpu_seconds", "s", Better.LOWER),
        Metric("input_tokens", "tokens", Better.UNKNOWN),
        Metric("output_tokens", "tokens", Better.LOWER),
        Metric("cached_tokens", "tokens", Better.UNKNOWN),
        Metric("reasoning_tokens", "tokens", Better.LOWER),
        Metric("api_calls", "calls", Better.LOWER),
        Metric("judge_calls", "calls", Better.LOWER),
        Metric("judge_tokens", "tokens", Better.LOWER),
        Metric("judge_usd", "usd", Better.LOWER, Kind.DERIVED),
    )
}

_SUFFIXES = (
    (("_per_sec", "_per_second", "_per_s", "_rps"), "1/s", Better.HIGHER),
    (("_rate",), "", Better.UNKNOWN),
    (("_seconds", "_time_s", "duration_s", "_time", "_duration"), "s", Better.LOWER),
    (("_ms",), "ms", Better.LOWER),
    (("_us", "_µs"), "µs", Better.LOWER),
    (("_ns",), "ns", Better.LOWER),
    (("_bytes",), "bytes", Better.LOWER),
    (("_mb",), "MB", Better.LOWER),
    (("_usd",), "usd", Better.LOWER),
    (("_percent",), "%", Better.UNKNOWN),
    (("_speedup",), "", Better.HIGHER),
)


def _by_suffix(name: str) -> Metric:
    if name.startswith("score."):
        return Metric(name, "", Better.HIGHER, Kind.DERIVED)
    last = name.rsplit(".", 1)[-1]
    for suffixes, unit, better in _SUFFIXES:
        if last.endswith(suffixes):
            return Metric(name, unit, better)
    return Metric(name)
