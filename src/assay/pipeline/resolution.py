"""Decides which regressions the newest version has fixed, and on what evidence.

There are three kinds of evidence, tried in this order: a comparison with the versions before and after the regression, a
rollback to the version that was well, and a history whose newest points are back at the old level. The reason becomes part
of the note of the resolved regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.analysis.comparison.severity import COMPLETED, loss_of, loss_of_difference, reach_of
from assay.analysis.history.change_points import is_back
from assay.model import Verdict
from assay.model.regression import MetricHistory, Regression
from assay.pipeline.agent_history import Chosen, Record, label_of
from assay.pipeline.version_comparison import Against, GateFindings, Measure, compare_against
from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest version of an agent, with its record and histories."""

    store: Store
    record: Record
    current: Chosen
    histories: Sequence[MetricHistory]
    tolerance: float | None = None
    """The tolerance that the user asked for; the same one decides whether a regression is found and whether it is gone."""

    def history_of(self, regression: Regression) -> MetricHistory | None:
        wanted = regression.benchmark, regression.metric.name
        return next(
            (history for history in self.histories if (history.benchmark, history.metric.name) == wanted),
            None,
        )

    def trials_of(self, name: str) -> Chosen:
        """The latest trials of a version, or of `VERSION run RUN`, but for those that are the newest version's own."""
        own = {trial.trial_id for trial in self.current.values()}
        return {
            label_of(trial): trial
            for trial in self.record.trials
            if name in (trial.version, f"{trial.version} run {trial.run_id}".strip())
            and trial.trial_id not in own
        }


def find_undone(newest: Newest, regressions: Sequence[Regression]) -> dict[str, str]:
    """The id of each regression that is no more, with what the newest data show instead."""
    against = _compare_with_both_ends(newest, regressions)
    undone: dict[str, str] = {}
    for regression in regressions:
        reason = _refute_by_comparison(regression, newest.record.version, against) or _refute_by_rollback(
            regression, newest
        )
        past = newest.history_of(regression)
        if (
            not reason
            and "baseline" not in regression.found_by
            and past
            and is_back(past, regression.baseline_value)
        ):
            reason = "The newest runs are back at the earlier level."
        if reason:
            undone[regression.id] = reason
    return undone


def _compare_with_both_ends(newest: Newest, regressions: Sequence[Regression]) -> Mapping[str, GateFindings]:
    """The newest version against the last that was well and the first that was worse, of every regression."""
    metrics = tuple(dict.fromkeys(regression.metric.name for regression in regressions))
    measure = Measure(newest.tolerance, newest.histories, metrics)
    found: dict[str, GateFindings] = {}
    for name in dict.fromkeys(
        end for regression in regressions for end in (regression.before, regression.after)
    ):
        if trials := newest.trials_of(name):
            other = Against(_version_in(name), f"version {name}", trials)
            found[name] = compare_against(newest.store, newest.record, newest.current, other, measure)
    return found


def _refute_by_comparison(regression: Regression, version: str, against: Mapping[str, GateFindings]) -> str:
    """Whether the newest version is no worse than the last good one, or has left the worse level; the reason in words.

    Few repetitions never prove two scores to be the same. So a version that is significantly better than the one that was
    worse, and has figures no worse than the one that was well, is well again.
    """
    well, worse = against.get(regression.before), against.get(regression.after)
    then = well.of(regression.benchmark, regression.metric.name) if well else None
    if well and then is None and regression.metric.name == COMPLETED and well.has(regression.benchmark):
        return f"Nothing fails in {version}."
    if then is not None and then.verdict in (Verdict.SAME, Verdict.BETTER):
        if regression.before == version:
            return f"{version} runs again, {_format_verdict(then.verdict)} before {regression.after}."
        return f"{version} is {_format_verdict(then.verdict)} {regression.before}."
    since = worse.of(regression.benchmark, regression.metric.name) if worse else None
    if since is None or since.verdict is not Verdict.BETTER:
        return ""
    loss = None if then is None else loss_of(then)
    if then is not None and loss is not None and loss.value > max(regression.tolerance, then.tolerance):
        return ""
    return f"{version} is better than {regression.after}, and its figures are no worse than those of {regression.before}."


def _format_verdict(verdict: Verdict) -> str:
    return "the same as" if verdict is Verdict.SAME else "better than"


def _refute_by_rollback(regression: Regression, newest: Newest) -> str:
    """Whether the newest run is of the version that was well, and nearer to the old level than to the worse one."""
    version, past = newest.record.version, newest.history_of(regression)
    if _version_in(regression.before) != version or _version_in(regression.after) == version or past is None:
        return ""
    latest = max(past.points, key=lambda point: point.started, default=None)
    if latest is None or latest.version != version:
        return ""
    before = regression.baseline_value
    left = loss_of_difference(
        regression.metric, latest.value - before, 0, 0, reach_of(regression.metric, before, latest.value)
    )
    return (
        f"{version} runs again, as before {regression.after}."
        if left.value < regression.loss.value / 2
        else ""
    )


def _version_in(name: str) -> str:
    """The version in `VERSION run RUN`, which is how regressions within one version name their ends."""
    return name.partition(" run ")[0] if not name.startswith("run ") else ""
