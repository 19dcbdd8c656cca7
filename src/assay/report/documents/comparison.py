"""The JSON documents of `assay compare` and `assay gate`.

Scripts rely on these keys: they may be added to, but not renamed or removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay.model import Verdict
from assay.model.codec import to_plain

if TYPE_CHECKING:
    from assay.model.comparison import Compared
    from assay.model.head_to_head import Course, Flips, Showdown
    from assay.model.regression import Gate
    from assay.model.requirement import CheckedRequirement


def history_document(found: Sequence[Course], sides: Sequence[str]) -> dict[str, Any]:
    """Several sides in the order of time."""
    return {
        "schema": "assay.comparison/1",
        "comparison_type": "time_series",
        "sides": list(sides),
        "courses": [_course(course, sides) for course in found],
    }


def _course(course: Course, sides: Sequence[str]) -> dict[str, Any]:
    """One metric over all sides. Values have the names of the sides as keys unless a name occurs twice."""
    return {
        "trial": course.trial,
        "metric": course.metric.name,
        "unit": course.metric.unit,
        "values": dict(zip(sides, course.values, strict=False))
        if len(set(sides)) == len(sides)
        else list(course.values),
        "verdict": course.verdict,
        "changed_at": [sides[step] for step in course.steps],
    }


def comparison_document(found: Compared) -> dict[str, Any]:
    return {
        "comparison_type": "head_to_head",
        **metrics_document(found),
        "agents": [_showdown(showdown) for showdown in found.showdowns],
    }


def metrics_document(found: Compared | Gate) -> dict[str, Any]:
    """Two sides, metric by metric."""
    return {
        "schema": "assay.comparison/1",
        "a": found.a.run.id,
        "b": found.b.run.id,
        "runs": {"a": [run.id for run in found.a.runs], "b": [run.id for run in found.b.runs]},
        "comparisons": [
            {
                "metric": comparison.metric.name,
                "unit": comparison.metric.unit,
                "better": comparison.metric.better,
                "trial_a": comparison.trial_a,
                "trial_b": comparison.trial_b,
                "a": comparison.value_a,
                "b": comparison.value_b,
                "units_a": comparison.units_a,
                "units_b": comparison.units_b,
                "ratio": comparison.ratio,
                "interval": None if comparison.low is None else [comparison.low, comparison.high],
                "difference": comparison.difference,
                "difference_interval": None
                if comparison.difference_low is None
                else [comparison.difference_low, comparison.difference_high],
                "p": comparison.p,
                "p_corrected": comparison.p_corrected,
                "q": comparison.q,
                "effect_size": comparison.effect_size,
                "tolerance": comparison.tolerance,
                "verdict": comparison.verdict,
                "method": comparison.method,
                "reason": comparison.reason,
            }
            for comparison in found.comparisons
        ],
        "warnings": [to_plain(doubt) for doubt in found.doubts],
    }


def _showdown(showdown: Showdown) -> dict[str, Any]:
    return {
        "a": showdown.a,
        "b": showdown.b,
        "winner": showdown.winner,
        "winners": {name: who for name, who in showdown.winners.items() if name != "overall"},
        "ratings": {
            name: {"a": a, "b": b, "difference": b - a, "p_corrected": showdown.p_corrected.get(name)}
            for name, (a, b) in showdown.ratings.items()
        },
        "overall_of": [name for name in showdown.ratings if name != "overall"]
        if "overall" in showdown.ratings
        else [],
        "left_out": list(showdown.left_out),
        "flips": [flips_document(flips) for flips in showdown.flips],
        "recommendations": list(showdown.advice),
    }


def flips_document(flips: Flips) -> dict[str, Any]:
    """Cases of a trial that changed sides, with the repetitions that passed."""
    return {
        "benchmark": flips.benchmark,
        "trial": flips.trial,
        "won": list(flips.won),
        "lost": list(flips.lost),
        "weaker": list(flips.weaker),
        "stronger": list(flips.stronger),
        "unchanged": flips.unchanged,
        "repetitions": {
            case: {"a": [before.passed, before.judged], "b": [after.passed, after.judged]}
            for case, (before, after) in flips.passes.items()
        },
    }


def _requirement(checked: CheckedRequirement) -> dict[str, Any]:
    return {
        "requirement": str(checked.requirement),
        "trial": checked.trial,
        "name": checked.requirement.name,
        "sign": checked.requirement.sign,
        "limit": checked.requirement.limit,
        "value": checked.value,
        "interval": None if checked.low is None else [checked.low, checked.high],
        "unit": checked.unit,
        "met": checked.is_met,
        "interval_includes_limit": checked.is_close,
        "note": checked.note,
    }


def gate_document(found: Gate) -> dict[str, Any]:
    """Without a baseline there is no side A."""
    # A gate of requirements alone holds the run against itself internally; outside, there is no side A.
    sides = metrics_document(found)
    if not found.has_baseline:
        sides |= {"a": None, "runs": {**sides["runs"], "a": []}}
    return {
        **sides,
        "schema": "assay.gate/1",
        "passed": found.passed,
        "baseline": found.baseline or None,
        "baseline_run_id": found.a.run.id if found.has_baseline else None,
        "run_id": found.b.run.id,
        "counts": {verdict.value: len(found.select_by_verdict(verdict)) for verdict in Verdict},
        "broken": list(found.broken),
        "unscored": list(found.unscored),
        "incomplete": list(found.incomplete),
        "flips": [flips_document(flips) for flips in found.flips],
        "lost": found.lost,
        "max_lost": found.max_lost,
        "requirements": [_requirement(requirement) for requirement in found.requirements],
        "unjudged": list(found.unjudged),
        "missing": {
            "trials": list(found.missing.trials),
            "cases": {trial: list(names) for trial, names in found.missing.cases.items()},
        },
        "rerun": None
        if found.rerun is None
        else {
            "run_id": found.b.run.id,
            "baseline_run_id": found.rerun.baseline,
            "judged_run_id": found.rerun.judged,
            "commits": dict(found.rerun.commits),
        },
    }
