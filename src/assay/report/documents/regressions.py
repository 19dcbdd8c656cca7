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


def _pattern(pattern: Pattern) -> dict[str, Any]:
    return {
        "metric": pattern.metric.name,
        "factor": pattern.factor,
        "machine": pattern.pace,
        "benchmarks": list(pattern.benchmarks),
        "message": pattern.message,
    }


def _history(history: MetricHistory) -> dict[str, Any]:
    return {
        "benchmark_id": history.benchmark,
        "metric": history.metric.name,
        "unit": history.metric.unit,
        "points": [
            {"run_id": point.run_id, "version": point.version, "value": point.value}
            for point in history.points
        ],
    }


def regression_document(regression: Regression) -> dict[str, Any]:
    return {
        "id": regression.id,
        "benchmark_id": regression.benchmark,
        "metric": regression.metric.name,
        "unit": regression.metric.unit,
        "better": regression.metric.better,
        "versions": [regression.before, regression.after],
        "baseline_value": _finite(regression.baseline_value),
        "current_value": _finite(regression.current_value),
        "regression_percentage": regression.percentage,
        "interval": [_percent(regression.loss.low), _percent(regression.loss.high)],
        "threshold": regression.tolerance,
        "p_corrected": regression.p,
        "severity": regression.severity,
        "found_by": list(regression.found_by),
        "is_pending": regression.is_pending,
        "is_suspect": regression.is_suspect,
        "impact_analysis": to_plain(regression.impact),
        "state": regression.state,
        "note": regression.note,
        "detected": regression.detected,
        "changed": regression.changed,
    }


def _shift(shift: Shift) -> dict[str, Any]:
    return {
        "benchmark_id": shift.benchmark,
        "metric": shift.metric.name,
        "kind": shift.kind,
        "versions": [shift.before.version, shift.after.version],
        "before": _finite(shift.level_before),
        "after": _finite(shift.level_after),
        "p_value": shift.p,
        "is_pending": shift.is_pending,
    }


def _percent(share: float) -> float | None:
    return _finite(share * 100)


def _finite(value: float) -> float | None:
    """JSON has no word for what is unbounded."""
    return value if math.isfinite(value) else None
