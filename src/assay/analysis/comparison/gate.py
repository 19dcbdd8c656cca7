"""Compares a run with a baseline as a gate does: which metrics are judged, how far each may go, and what is broken.

Unlike `assay compare`, a gate asks about these very cases (`fixed_cases`), skips metrics that are zero everywhere, and has a
tolerance for each metric. `pipeline/gate.py` puts the parts together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.analysis.comparison.compare import compare_reports, matching_trials
from assay.analysis.comparison.default_metrics import default_family
from assay.analysis.comparison.policy import KnownNoise, Tolerances
from assay.analysis.comparison.severity import is_broken
from assay.analysis.estimates.completion import inner_name, outer_name, restore_name
from assay.errors import LookupFailed, format_unknown_name
from assay.model import Comparison, Metric, Report


def find_common_metrics(a: Report, b: Report) -> dict[str, Metric]:
    """Metrics that both sides of some pair of trials have, and that are not zero everywhere."""
    found: dict[str, Metric] = {}
    for first, second in matching_trials(a, b):
        estimates_b = {estimate.metric.name: estimate for estimate in second.estimates if estimate.n}
        for estimate_a in first.estimates:
            estimate_b = estimates_b.get(estimate_a.metric.name)
            if (
                estimate_a.n
                and estimate_b
                and any((estimate_a.min, estimate_a.max, estimate_b.min, estimate_b.max))
            ):
                found.setdefault(estimate_a.metric.name, estimate_a.metric)
    return found


def family_of(a: Report, b: Report, shared: Mapping[str, Metric]) -> list[str]:
    """The metrics among the `shared` ones that are judged by default."""
    trials = [trial for pair in matching_trials(a, b) for trial in pair]
    return default_family(shared.values(), {name for trial in trials for name in trial.declared})


def compare_within(
    a: Report,
    b: Report,
    metrics: Sequence[str],
    tolerances: Tolerances,
    unjudged: Sequence[str] = (),
    noise: KnownNoise | None = None,
) -> tuple[Comparison, ...]:
    """Compare both sides as one family of tests in which each metric has its own tolerance.

    `metrics` are judged and `unjudged` come without a verdict. A tolerance for a metric that is not judged is a mistake.
    """
    for name in tolerances.of_metric:
        if inner_name(name) not in metrics:
            raise LookupFailed(format_unknown_name(name, "metrics that are judged", map(outer_name, metrics)))
    compared = compare_reports(
        a, b, metrics=metrics, unjudged=unjudged, fixed_cases=True, tolerances=tolerances, noise=noise
    )
    return tuple(restore_name(comparison) for comparison in compared)


def find_unscored_trials(a: Report, b: Report) -> tuple[str, ...]:
    """Trials that were scored in A and whose scoring failed in B, so that it is unknown whether they got worse."""
    return tuple(
        second.name
        for first, second in matching_trials(a, b)
        if second.is_scoring_failed and not first.is_scoring_failed
    )


def broken_trials(a: Report, b: Report) -> tuple[str, ...]:
    """Trials that worked in A and of which every execution failed in B."""
    return tuple(second.name for first, second in matching_trials(a, b) if is_broken(first, second))
