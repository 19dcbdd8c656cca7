"""Ends a load early when a condition holds: `error_rate>50%,ttft_p95>5s` (option --abort-on).

`PreparedLoad.measure` shows an `AbortMonitor` every chunk that workers send. Twice a second the monitor judges the
conditions by the requests that ended last; once one holds, the engine stops the workers and the report gives the reason.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.load.tally import NOT_COUNTED, Values, times_of
from assay.load.worker_report import OK, Chunk
from assay.model.load import QUANTILES, Objective
from assay.units import count, percent, seconds, significant

WINDOW_SECONDS = 10.0
FEWEST = 20
"""Requests that a condition is judged by: those of the last ten seconds, or the last twenty where fewer ended."""
_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class _Window:
    """The requests that ended last."""

    is_ok: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    columns: dict[str, Values]
    seconds: float
    is_whole: bool
    """Whether requests have ended for as long as it lasts; before that it says nothing about rates."""


class AbortMonitor:
    """Watches the chunks of a running load; `reason` says which condition held, or stays None.

    Memory stays bounded: chunks that are older than the window are dropped as soon as the rest has `FEWEST` requests.
    Times are seconds since the start of the load, as workers report them, so no clock is read here.
    """

    def __init__(self, conditions: Sequence[Objective]) -> None:
        self._conditions = conditions
        self._chunks: deque[dict[str, Values]] = deque()
        self._ended = 0
        self._now = self._judged_at = 0.0
        self._first_end = math.inf
        self.reason: str | None = None

    def watch(self, chunk: Chunk) -> None:
        if not self._conditions or self.reason is not None:
            return
        self._now = max(self._now, float(str(chunk.facts["at"])))
        if len(chunk):
            self._keep(chunk)
        if self._now - self._judged_at >= _EVERY and self._ended >= FEWEST:
            self._judged_at = self._now
            self.reason = self._judge()

    def is_triggered(self) -> bool:
        return self.reason is not None

    def _keep(self, chunk: Chunk) -> None:
        """Add the requests of a chunk that count, and drop the oldest chunks that the window does not reach any more."""
        kinds = chunk.facts["kinds"]
        assert isinstance(kinds, list)
        columns = {name: np.frombuffer(values) for name, values in chunk.columns.items()}
        left_out = [number for number, kind in enumerate(kinds) if kind in NOT_COUNTED]
        is_counted = ~np.isin(columns["kind"], left_out)
        self._chunks.append({name: values[is_counted] for name, values in columns.items()})
        self._ended += int(is_counted.sum())
        self._first_end = min(self._first_end, float(columns["end"].min()))
        while self._chunks:
            ends = self._chunks[0]["end"]
            is_old = not ends.size or float(ends.max()) < self._now - WINDOW_SECONDS
            if not is_old or self._ended - ends.size < FEWEST:
                break
            self._chunks.popleft()
            self._ended -= ends.size

    def _window(self) -> _Window:
        columns = {name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in self._chunks[0]}
        order = np.argsort(columns["end"], kind="stable")
        ends = columns["end"][order]
        recent = int((ends >= self._now - WINDOW_SECONDS).sum())
        chosen = order[-max(recent, FEWEST) :]
        columns = {name: values[chosen] for name, values in columns.items()}
        begin = max(0.0, min(self._now - WINDOW_SECONDS, float(columns["end"].min())))
        lasts = max(self._now - begin, 1e-9)
        is_whole = self._now - self._first_end >= WINDOW_SECONDS
        return _Window(columns["kind"] == OK, columns, lasts, is_whole)

    def _judge(self) -> str | None:
        """The first condition that holds, in words with its number; None while none does."""
        window = self._window()
        for condition in self._conditions:
            value = _value(condition, window)
            if value is not None and condition.is_met_by(value):
                if condition.metric == "error_rate":
                    measured = percent(value)
                else:
                    measured = significant(value) if condition.statistic is None else seconds(value)
                return (
                    f"{condition.text} was reached: {measured} in the last {count(window.is_ok.size)} "
                    f"requests ({seconds(window.seconds)}), {seconds(self._now)} after the start"
                )
        return None


def _value(condition: Objective, window: _Window) -> float | None:
    """What the window has of the condition's metric; None where nothing was measured that it could be compared with."""
    answered = int(window.is_ok.sum())
    if condition.metric == "error_rate":
        return 1 - answered / window.is_ok.size
    if condition.metric in ("throughput", "tokens"):
        tokens = float(np.nansum(window.columns["output"][window.is_ok]))
        whole = answered if condition.metric == "throughput" else tokens
        return whole / window.seconds if window.is_whole else None
    values = times_of(window.columns).get(condition.metric)
    if values is None:
        return None
    values = values[window.is_ok]
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    if condition.statistic == "mean":
        return float(values.mean())
    if condition.statistic == "max":
        return float(values.max())
    # A value that was really seen, and none between two: a condition is about what happened.
    share = QUANTILES[condition.statistic or "p50"]
    return float(np.quantile(values, share, method="inverted_cdf"))
