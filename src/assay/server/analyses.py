"""The analysis of a run as pages show it, kept while the results of the run stay as they are.

It takes from a tenth of a second to many seconds, because intervals are resampled from all executions. So a page opens without it
and asks for it then, one analysis is made at a time, and the latest ones are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from markupsafe import Markup

from assay.model import Run
from assay.model.page import RunOutcome, Tile
from assay.pipeline.report import report_of
from assay.report.findings import outcome_of
from assay.report.pages.html import describe_report
from assay.report.pages.html_contests import Gallery
from assay.server.html import templates
from assay.store.store import Store

_KEPT = 24
_DIGESTS = 500
_SECONDS = 600
"""Older than this an analysis is made anew, whatever the fingerprint says."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The body of a report, and what the script of the page draws in it."""

    body: Markup
    specs: Mapping[str, Any]
    outcome: RunOutcome
    is_simulated: bool


@dataclass(frozen=True, slots=True)
class RunDigest:
    """What a list shows of a run: what it came to, and its key figures."""

    run: Run
    outcome: RunOutcome
    tiles: tuple[Tile, ...]


Kept = TypeVar("Kept")


class Unchanged(Generic[Kept]):
    """What was derived from the results of runs, the latest ones, each as long as the fingerprint of its run stays the same."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[tuple[object, ...], float, Kept]] = OrderedDict()
        self._lock = Lock()

    def find(self, store: Store, run_id: str) -> Kept | None:
        with self._lock:
            kept = self._kept.get(run_id)
        if kept is None or monotonic() - kept[1] > _SECONDS or kept[0] != store.fingerprint(run_id):
            return None
        return kept[2]

    def get(self, store: Store, run_id: str, derive: Callable[[Store, str], Kept]) -> Kept:
        if (found := self.find(store, run_id)) is not None:
            return found
        # The fingerprint is read before the results: what is stored in between makes what is derived count as old.
        fingerprint = store.fingerprint(run_id)
        made = derive(store, run_id)
        with self._lock:
            self._kept[run_id] = (fingerprint, monotonic(), made)
            self._kept.move_to_end(run_id)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


class Analyses:
    """Makes analyses, one at a time, and keeps the latest."""

    def __init__(self) -> None:
        self._analyses = Unchanged[Analysis](_KEPT)
        self._digests = Unchanged[RunDigest](_DIGESTS)
        self._limiter: CapacityLimiter | None = None

    def find(self, store: Store, run_id: str) -> Analysis | None:
        """The one that is kept, if the results have not changed since."""
        return self._analyses.find(store, run_id)

    def summarise(self, store: Store, run_id: str) -> RunDigest:
        """For lists of load tests, stress tests and the like, whose findings rest on few executions."""
        return self._digests.get(store, run_id, _summarise)

    async def wait_for(self, store: Store, run_id: str) -> Analysis:
        """The analysis, after those that were asked for before; waiting for it keeps no thread from other requests."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(1)
        return await run_sync(self._analyses.get, store, run_id, _analyse, limiter=self._limiter)


def _analyse(store: Store, run_id: str) -> Analysis:
    report = report_of(store, run_id)
    gallery = Gallery(prefix="r")
    context = describe_report(report, gallery)
    body = templates().get_template("report_body.html.j2").render(context)
    return Analysis(
        Markup(body),  # noqa: S704 - the template has escaped it
        gallery.specs,
        outcome_of(report),
        bool(context["is_simulated"]),
    )


def _summarise(store: Store, run_id: str) -> RunDigest:
    report = report_of(store, run_id, is_brief=True)
    found = [tile for finding in report.findings.values() for tile in finding.tiles()]
    return RunDigest(report.run, outcome_of(report), tuple(found))
