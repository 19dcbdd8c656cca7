"""A run against a baseline, as a gate sees it: which metrics are judged, how far each may go, and what is broken."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from assay.analysis.compare import compare_reports, matching_trials
from assay.analysis.completion import inner_name, named, outer_name
from assay.analysis.family import default_family
from assay.analysis.losses import is_broken
from assay.analysis.verdict import Sessions
from assay.errors import LookupFailed, no_such
from assay.model import Comparison, Metric, Report


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How much worse still counts as the same; None is the method's own tolerance."""

    general: float | None = None
    of_metric: Mapping[str, float] = field(default_factory=dict)

    def is_asked(self, metric: str) -> bool:
        """Whether somebody said how far this one may go."""
        return self.general is not None or metric in self.of_metric

    @property
    def options(self) -> tuple[str, ...]:
        """As they are written on the command line.

        >>> Tolerances(0.05, {"seconds": 0.2}).options
        ('--tolerance', '5%', '--tolerance', 'seconds=20%')
        """
        general = [] if self.general is None else [f"{100 * self.general:.12g}%"]
        own = [f"{name}={100 * width:.12g}%" for name, width in self.of_metric.items()]
        return tuple(word for width in (*general, *own) for word in ("--tolerance", width))

    def without(self, metrics: Collection[str]) -> Tolerances:
        kept = {name: width for name, width in self.of_metric.items() if inner_name(name) not in metrics}
        return Tolerances(self.general, kept)


def shared_metrics(a: Report, b: Report) -> dict[str, Metric]:
    """Metrics that both sides of some pair of trials have, and that are not zero everywhere."""
    found: dict[str, Metric] = {}
    for first, second in matching_trials(a, b):
        there = {estimate.metric.name: estimate for estimate in second.estimates if estimate.n}
        for mine in first.estimates:
            other = there.get(mine.metric.name)
            if mine.n and other and any((mine.min, mine.max, other.min, other.max)):
                found.setdefault(mine.metric.name, mine.metric)
    return found


def family_of(a: Report, b: Report, shared: Mapping[str, Metric]) -> list[str]:
    """The metrics among the `shared` ones that are judged when nobody asks for particular ones."""
    trials = [trial for pair in matching_trials(a, b) for trial in pair]
    return default_family(shared.values(), {name for trial in trials for name in trial.declared})


def compare_within(
    a: Report,
    b: Report,
    metrics: Sequence[str],
    tolerances: Tolerances,
    shown: Sequence[str] = (),
    sessions: Sessions | None = None,
) -> tuple[Comparison, ...]:
    """One family of tests, in which each metric has its own tolerance; `shown` are those without a verdict."""
    of_metric = {inner_name(name): width for name, width in tolerances.of_metric.items()}
    for name in of_metric:
        if name not in metrics:
            raise LookupFailed(no_such(outer_name(name), "metrics that are judged", map(outer_name, metrics)))
    widths = {name: of_metric.get(name, tolerances.general) for name in (*metrics, *shown)}
    # The correction is over the whole family whatever the tolerance, so each tolerance judges all of it anew.
    judged = {
        width: compare_reports(
            a, b, metrics=metrics, shown=shown, tolerance=width, fixed_cases=True, sessions=sessions
        )
        for width in dict.fromkeys(widths.values())
    }
    return tuple(
        named(dict(zip(judged, alike, strict=True))[widths[alike[0].metric.name]])
        for alike in zip(*judged.values(), strict=True)
    )


def unscored_trials(a: Report, b: Report) -> tuple[str, ...]:
    """Trials that were scored in A and of which scoring failed in B: nobody knows whether those got worse."""
    return tuple(
        second.name
        for first, second in matching_trials(a, b)
        if second.is_scoring_failed and not first.is_scoring_failed
    )


def broken_trials(a: Report, b: Report) -> tuple[str, ...]:
    """Trials that worked in A and of which every execution of B went wrong."""
    return tuple(second.name for first, second in matching_trials(a, b) if is_broken(first, second))
