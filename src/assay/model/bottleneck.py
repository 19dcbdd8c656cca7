"""Whether a load was too much, and for whom: the server, or the machine that put it on.

The limits stand here once. How much late reading matters beside what was measured is up to the question that is asked: whether
times can be believed, why a step of a search broke, or why an agent broke under stress.
"""

from __future__ import annotations

from assay.model.load import LoadResult

BUSY = 0.9
"""Of a core: a worker that uses more may be the limit itself."""
UNREAD_SECONDS = 0.005
"""Answers that lie unread for less count as read in time, however fast the server is."""
KEPT_UP = 0.98
"""Of the offered rate: a server that answers less falls behind."""
MOST_ERRORS = 0.05
"""Share of failed requests above which a load is too much, where no objective says another."""
OWN_LIMITS = ("no_descriptors", "no_ports")
"""Kinds of errors that say something of this machine, and nothing of the server."""


def is_busy(result: LoadResult) -> bool:
    return result.cpu_share > BUSY


def allowed_lag(measured: float, share: float) -> float:
    """Seconds that answers may lie unread on this machine: a share of the time that is measured, but not less than 5 ms."""
    return max(UNREAD_SECONDS, share * measured)


def falls_behind(result: LoadResult, offered: float) -> bool:
    """Whether fewer requests ended than were offered, by more than the interval of the throughput explains."""
    ended = result.throughput.value / max(1e-9, 1 - result.error_rate.value)
    high = result.throughput.high
    return ended < KEPT_UP * offered and (high is None or high < offered)
