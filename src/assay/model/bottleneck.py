"""Whether a load was too much, and for whom: the server, or the machine that put it on.

The rule and its limits stand here once: this machine was the limit if a worker used nearly all of a core, or if answers lay
unread for too long. What is too long depends on the question, so each question has a `LagTolerance`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.model.load import LoadResult
from assay.model.load_generator import GeneratorResult

BUSY = 0.9
"""Share of a core: a worker that uses more may be the limit itself."""
UNREAD_SECONDS = 0.005
"""Answers that wait for less to be read count as read in time, however fast the server is."""
KEPT_UP = 0.98
"""Share of the offered rate: a server that answers less falls behind."""
MOST_ERRORS = 0.05
"""Share of failed requests above which a load is too much, where no objective says another."""
OUR_SHARE = 0.5
"""Share of a core, or of the allowed requests in flight, that a load may need at the latency of the base rate."""
OWN_LIMITS = ("no_descriptors", "no_ports")
"""Kinds of errors that say something of this machine, and nothing of the server."""


def is_busy(result: LoadResult) -> bool:
    return result.cpu_share > BUSY


@dataclass(frozen=True, slots=True)
class LagTolerance:
    """How long answers may wait to be read on this machine: a share of a time that was measured, but at least 5 ms."""

    share: float
    times: tuple[str, ...]
    """The first of these that was measured counts."""
    statistic: str
    unmeasured: float = math.inf
    """Seconds where none was measured."""

    def limit(self, result: LoadResult) -> float:
        times = next((result.times[name] for name in self.times if name in result.times), None)
        return (
            self.unmeasured if times is None else max(UNREAD_SECONDS, self.share * times.at(self.statistic))
        )


FOR_TIMES = LagTolerance(0.1, ("ttft_from_send", "latency_from_send"), "p50", UNREAD_SECONDS)
"""Whether times can be believed: a tenth of the time to the first token does not matter, however long that is."""
FOR_STEPS = LagTolerance(0.05, ("latency",), "p50")
"""Why a step of a capacity search broke."""
FOR_STRESS = LagTolerance(0.2, ("latency_from_send",), "p95")
"""Why an agent broke under stress."""


def is_generator_limit(result: LoadResult, tolerance: LagTolerance) -> bool:
    """Whether it was this machine that could not keep up: then nothing is said about the server."""
    return (
        is_busy(result)
        or result.lag_p99 > tolerance.limit(result)
        or any(is_behind(generator, result, tolerance) for generator in result.generators)
    )


def is_behind(generator: GeneratorResult, result: LoadResult, tolerance: LagTolerance) -> bool:
    """Whether one of several generators was the limit. Among the answers of the others, its late ones may not show."""
    limit = tolerance.limit(result)
    return generator.cpu_share > BUSY or generator.lag_p99 > limit or sends_late(generator, limit)


def sends_late(generator: GeneratorResult, limit: float) -> bool:
    """Whether requests that had nothing to wait for left later than they were due, as where others use the node's cores."""
    return not generator.may_wait and (generator.schedule_delay_p99 or 0.0) > limit


def falls_behind(result: LoadResult, offered: float) -> bool:
    """Whether fewer requests ended than were offered, by more than the interval of the throughput explains."""
    ended = result.throughput.value / max(1e-9, 1 - result.error_rate.value)
    high = result.throughput.high
    return ended < KEPT_UP * offered and (high is None or high < offered)


def rate_within(most_in_flight: int, latency: float) -> float:
    """By Little's law, with room for answers that take twice as long.

    >>> rate_within(8, 0.05)
    80.0
    """
    return most_in_flight * OUR_SHARE / max(latency, 1e-6)
