"""The JSON documents of what a server keeps beside results: labels, coverage, schedules, alerts, success and searches.

Scripts rely on these keys: they may be added to, but not renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.model.alert import Alert
from assay.model.codec import to_plain
from assay.model.coverage import STALE_DAYS, Coverage
from assay.model.figure import Share
from assay.model.label import Agreement, Label
from assay.model.regression import Regression, RegressionChange
from assay.model.schedule import ScheduledRun, ScheduleStatus
from assay.model.search import SearchResult
from assay.model.success import (
    BENCHMARKED_GOAL,
    DETECTION_GOAL,
    SuccessFigures,
    SuccessReport,
)
from assay.report.documents.regressions import regression_document

_SHOWN = 200
"""Characters of the input of a case that a search shows."""
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""What Slack reads as a link or a mention; no name may notify a whole channel."""


def share_document(share: Share) -> dict[str, Any]:
    """A share in percent with its interval; all three are null where there is nothing to count."""
    low, high = share.low, share.high
    return {
        "count": share.count,
        "of": share.of,
        "percent": None if share.value is None else 100 * share.value,
        "interval": None if low is None or high is None else [100 * low, 100 * high],
    }


def tracked_regression_document(
    regression: Regression, changes: Sequence[RegressionChange]
) -> dict[str, Any]:
    """A regression with the agent it is about, and with who gave it its states."""
    return {
        "agent_id": regression.agent,
        "suite_id": regression.suite,
        **regression_document(regression),
        "changed_by": changes[-1].author if changes and regression.is_marked else None,
        "history": [
            {"at": change.at, "by": change.author, "state": change.state, "note": change.note}
            for change in changes
        ],
    }


def label_document(label: Label) -> dict[str, Any]:
    return {
        "id": label.id,
        "trial_id": label.trial_id,
        "seq": label.seq,
        "case": label.case,
        "label": label.verdict,
        "note": label.note,
        "by": label.author,
        "at": label.created,
    }


def labels_document(given: Iterable[Label], agreements: Iterable[Agreement]) -> dict[str, Any]:
    """The document of `assay label`: the labels that it gave, and how well the scorers of the suite agree with all labels now."""
    return {
        "labels": [label_document(label) for label in given],
        "agreements": [agreement_document(agreement) for agreement in agreements],
    }


def agreement_document(agreement: Agreement) -> dict[str, Any]:
    """`scorer` is null for the score of all scorers together."""
    return {
        "suite_id": agreement.suite,
        "benchmark_id": agreement.benchmark,
        "scorer": agreement.scorer or None,
        "labels": agreement.labels,
        "cases": agreement.cases,
        "both_pass": agreement.both_pass,
        "both_fail": agreement.both_fail,
        "only_person_passes": agreement.only_person_passes,
        "only_scorer_passes": agreement.only_scorer_passes,
        "agreement": share_document(agreement.share),
        "kappa": agreement.kappa,
    }


def coverage_document(coverage: Coverage) -> dict[str, Any]:
    return {
        "agents": list(coverage.agents),
        "suites": list(coverage.suites),
        "stale_days": STALE_DAYS,
        "counts": dict(coverage.counts),
        "cells": [
            {
                "agent_id": cell.agent,
                "suite_id": cell.suite,
                "state": cell.state,
                "runs": cell.runs,
                "latest": cell.latest,
                "age_days": cell.age_days,
            }
            for cell in coverage.cells
        ],
        "next_cursor": coverage.next_agent,
    }


def schedule_document(schedule: ScheduleStatus) -> dict[str, Any]:
    return {
        "suite_id": schedule.suite,
        "schedule": schedule.expression,
        "timezone": schedule.zone,
        "next_due": schedule.next_due,
        "agent_ids": list(schedule.agents),
        "last_due": schedule.latest[0].due if schedule.latest else None,
        "last_outcome": schedule.outcome,
        "last_runs": [_build_scheduled_run(run) for run in schedule.latest],
    }


def _build_scheduled_run(run: ScheduledRun) -> dict[str, Any]:
    return {
        "agent_id": run.agent or None,
        "run_id": run.run_id or None,
        "outcome": run.outcome or "running",
        "error": run.error,
    }


def alert_document(alert: Alert) -> dict[str, Any]:
    return {
        "id": alert.id,
        "kind": alert.kind,
        "severity": alert.severity,
        "text": alert.text,
        "facts": dict(alert.facts),
        "created": alert.created,
        "state": alert.state,
        "attempts": alert.attempts,
        "next_attempt": alert.due if alert.state == "pending" else None,
        "sent": alert.sent,
        "error": alert.error,
    }


def webhook_document(alert: Alert) -> dict[str, Any]:
    """What a webhook is sent: `text` and `blocks` as Slack reads them, and the alert for programs."""
    message = alert.text.translate(_SLACK)
    return {
        "text": message,
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": message}}],
        "alert": {
            "id": alert.id,
            "kind": alert.kind,
            "severity": alert.severity,
            "created": alert.created.isoformat(),
            **alert.facts,
        },
    }


def success_document(report: SuccessReport) -> dict[str, Any]:
    return {
        "goals": {
            "benchmarked_percent": 100 * BENCHMARKED_GOAL,
            "detection_percent": 100 * DETECTION_GOAL,
        },
        "last_30_days": _figures(report.last_30_days),
        "months": [{"month": f"{month.begins:%Y-%m}", **_figures(month)} for month in report.months],
        "changes": _changes(report.months),
        "never_benchmarked": list(report.never_benchmarked),
        "not_benchmarked": list(report.not_benchmarked),
    }


def _figures(figures: SuccessFigures) -> dict[str, Any]:
    return {
        "begins": figures.begins,
        "ends": figures.ends,
        "agents_benchmarked": share_document(figures.benchmarked),
        "regressions_found": figures.regressions,
        "regressions_confirmed": share_document(figures.detection),
        "caught_by_gate": share_document(figures.caught),
        "gates_failed": share_document(figures.gates),
        "opportunities_found": figures.opportunities,
        "opportunities_resolved": share_document(figures.resolved),
    }


def _changes(months: Sequence[SuccessFigures]) -> Mapping[str, float | None]:
    """The last month that is over against the one before, in percent; null where there was nothing then."""
    if len(months) < 3:
        return {}
    last, before = months[1], months[2]
    found_later = [month.caught.of - month.caught.count for month in (last, before)]
    return {
        "opportunities_found_percent": _change(last.opportunities, before.opportunities),
        "regressions_found_percent": _change(last.regressions, before.regressions),
        "regressions_found_later_percent": _change(*found_later),
    }


def _change(now: float, before: float) -> float | None:
    return None if not before else 100 * (now - before) / before


def search_document(text: str, found: SearchResult) -> dict[str, Any]:
    return {
        "query": text,
        "agents": list(found.agents),
        "suites": list(found.suites),
        "runs": [to_plain(run) for run in found.runs],
        "cases": [
            {
                "suite_id": case.suite,
                "benchmark_id": case.benchmark,
                "case": case.case,
                "input": case.input[:_SHOWN],
            }
            for case in found.cases
        ],
    }
