"""The JSON document of `assay regressions`.

Scripts rely on these keys: they may be added to, but not renamed or removed.
"""

from __future__ import annotations

import math
from typing import Any

from assay.model.codec import to_plain
from assay.model.regression import MetricHistory, Pattern, Regression, RegressionReport, Shift
from assay.report.documents.comparison import flips_document


def regressions_document(found: RegressionReport) -> dict[str, Any]:
    """Under the names that the JSON document promises."""
    return {
        "schema": "assay.regressions/1",
        "agent_id": found.agent,
        "version": found.version,
        "suite": found.suite,
        "baseline": found.baseline or None,
        "has_regressions": found.has_regressions,
        "regressions": [regression_document(regression) for regression in found.regressions],
        "improvements": [_shift(shift) for shift in found.improvements],
        "flips": [flips_document(flips) for flips in found.flips],
        "patterns": [_pattern(pattern) for pattern in found.patterns],
        "overall_health": found.advice.health,
        "recommended_action": found.advice.action,
        "reason": found.advice.reason,
        "unsure": [
            {"trial": comparison.trial_b, "metric": comparison.metric.name, "reason": comparison.reason}
            for comparison in found.comparisons
            if comparison.verdict == "unsure"
        ],
        "history": [_history(history) for history in found.histories],
        "unsearched": dict(found.unsearched),
        "warnings": [{"code": d.code, "message": d.message, "hint": d.hint} for d in found.doubts],
    }


def _pattern(one: Pattern) -> dict[str, Any]:
    return {
        "metric": one.metric.name,
        "factor": one.factor,
        "machine": one.pace,
        "benchmarks": list(one.benchmarks),
        "message": one.message,
    }


def _history(one: MetricHistory) -> dict[str, Any]:
    return {
        "benchmark_id": one.benchmark,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "points": [
            {"run_id": point.run_id, "version": point.version, "value": point.value} for point in one.points
        ],
    }


def regression_document(one: Regression) -> dict[str, Any]:
    return {
        "id": one.id,
        "benchmark_id": one.benchmark,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "better": one.metric.better,
        "versions": [one.before, one.after],
        "baseline_value": _finite(one.baseline_value),
        "current_value": _finite(one.current_value),
        "regression_percentage": one.percentage,
        "interval": [_percent(one.loss.low), _percent(one.loss.high)],
        "threshold": one.tolerance,
        "p_corrected": one.p,
        "severity": one.severity,
        "found_by": list(one.found_by),
        "is_pending": one.is_pending,
        "is_suspect": one.is_suspect,
        "impact_analysis": to_plain(one.impact),
        "state": one.state,
        "note": one.note,
        "detected": one.detected,
        "changed": one.changed,
    }


def _shift(one: Shift) -> dict[str, Any]:
    return {
        "benchmark_id": one.benchmark,
        "metric": one.metric.name,
        "kind": one.kind,
        "versions": [one.before.version, one.after.version],
        "before": _finite(one.level_before),
        "after": _finite(one.level_after),
        "p_value": one.p,
        "is_pending": one.is_pending,
    }


def _percent(share: float) -> float | None:
    return _finite(share * 100)


def _finite(value: float) -> float | None:
    """JSON has no word for what is unbounded."""
    return value if math.isfinite(value) else None
