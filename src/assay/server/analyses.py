"""The analysis of a run as pages show it, kept while the results of the run stay as they are.

It takes from a tenth of a second to many seconds, because intervals are resampled from all executions. So a page opens without it
and asks for it then, one analysis is made at a time, and the latest ones are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from markupsafe import Markup

from assay.model import Run
from assay.model.page import RunOutcome, Tile
from assay.pipeline.report import report_of
from assay.report.findings import outcome_of
from assay.report.pages.html import describe_report
from assay.report.pages.html_side_by_side import Gallery
from assay.server.cache import KeptByState
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


class Analyses:
    """Makes analyses, one at a time, and keeps the latest, each as long as the fingerprint of its run stays the same."""

    def __init__(self) -> None:
        self._analyses = KeptByState[Analysis](_KEPT, seconds=_SECONDS)
        self._digests = KeptByState[RunDigest](_DIGESTS, seconds=_SECONDS)
        self._limiter: CapacityLimiter | None = None

    def find(self, store: Store, run_id: str) -> Analysis | None:
        """The one that is kept, if the results have not changed since."""
        return self._analyses.find((store.workspace, run_id), store.fingerprint(run_id))

    def summarise(self, store: Store, run_id: str) -> RunDigest:
        """Summarise a run for lists of load tests, stress tests and the like, whose findings rest on few
        executions.
        """
        key, state = (store.workspace, run_id), store.fingerprint(run_id)
        return self._digests.get(key, state, lambda: _summarise(store, run_id))

    async def wait_for(self, store: Store, run_id: str) -> Analysis:
        """The analysis, after those that were asked for before; waiting for it keeps no thread from other requests."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(1)
        return await run_sync(self._read, store, run_id, limiter=self._limiter)

    def _read(self, store: Store, run_id: str) -> Analysis:
        key, state = (store.workspace, run_id), store.fingerprint(run_id)
        return self._analyses.get(key, state, lambda: _analyse(store, run_id))


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
