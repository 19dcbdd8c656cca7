"""Builds the `Report` of a run: its trials, the findings of its experiments, and every reason to doubt them.

This is the last step of analysis. Doubts are listed from the general to the particular: about settings that had no effect, the
run and its budget, the findings, and single trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from assay.analysis.estimates.nodes import count_by_node
from assay.analysis.estimates.scorer_failures import scorer_doubts
from assay.analysis.estimates.treatment import (
    alike_but_for,
    find_identical_arms,
    find_ignored_settings,
    find_twin,
    find_unreported_settings,
)
from assay.model import (
    AxisEffect,
    BestPoint,
    Doubt,
    Isolation,
    Question,
    Report,
    Run,
    RunState,
    Status,
    Suite,
    TrialReport,
)
from assay.model.metric import JUDGING
from assay.plugin.experiment import find_trait
from assay.plugin.finding import Finding, finding_class
from assay.units import count, format_count, show

if TYPE_CHECKING:
    from assay.model.standing import Lead

SEVERE = frozenset({"setting-not-taken", "identical-arms"})
"""Codes of doubts that void the comparison they are about: the arms are not what they were to be."""

_NAMED = 4


def build_report(run: Run, trials: Sequence[TrialReport], suite: Suite | None = None) -> Report:
    """The report of a run from the reports of its trials.

    The order of the doubts is the order in which every format shows them, unless it ranks them by weight.
    """
    trials, found = read_findings(trials)
    unswept = {experiment for experiment, finding in found.items() if not finding.is_swept}
    swept = [trial for trial in trials if trial.stored.trial.experiment not in unswept]
    doubts = (
        *(doubt for trial in trials for doubt in scorer_doubts(trial, run.id)),
        *_check_treatment(trials),
        *_check_run(run),
        *budget_doubts(run, trials),
        *(doubt for finding in found.values() for doubt in finding.doubts()),
        *_remarks(trials),
        *(doubt for trial in trials for doubt in _check_trial(trial)),
        *_check_missing_executions(run, trials),
    )
    axes, best = _analyse_sweep(run, swept)
    leads: tuple[Lead, ...] = ()
    if sum(trial.ratings is not None for trial in trials) > 1:
        from assay.analysis.ranking.leaders import find_leads

        leads = find_leads(trials)
    nodes = count_by_node(run.environment, trials)
    return Report(run, tuple(trials), axes, doubts, suite, best, findings=found, leads=leads, nodes=nodes)


def read_findings(trials: Sequence[TrialReport]) -> tuple[list[TrialReport], dict[str, Finding]]:
    """Trials as the findings of their experiments want them reported, and the findings by experiment, instrument or shared name."""
    shown = list(trials)
    found: dict[str, Finding] = {}
    for name, places in _group_by_finding(trials):
        member = finding_class(name)
        if member is None or name in found:
            continue
        for place in places:
            shown[place] = member.adjust(shown[place])
        finding = member.read([shown[place] for place in places])
        if finding is not None:
            found[name] = finding
    return shown, found


def _group_by_finding(trials: Sequence[TrialReport]) -> Iterator[tuple[str, list[int]]]:
    """The names that findings may have, each with the places of its trials: experiments, instruments, and shared names."""
    planned = [trial.stored.trial for trial in trials]
    of_trials: list[list[Sequence[str]]] = [
        [(trial.experiment,) for trial in planned],
        [[use.name for use in trial.instruments] for trial in planned],
        [find_trait(trial.experiment, "findings", ()) for trial in planned],
    ]
    for names in of_trials:
        for name in dict.fromkeys(chain.from_iterable(names)):
            yield name, [place for place, own in enumerate(names) if name in own]


def _analyse_sweep(
    run: Run, trials: Sequence[TrialReport]
) -> tuple[tuple[AxisEffect, ...], tuple[BestPoint, ...]]:
    """What each axis did, and the best points; one trial alone has neither, and need not load what finds them."""
    if len(trials) < 2:
        return (), ()
    from assay.analysis.estimates.axes import axis_effects, best_points

    return axis_effects(trials), best_points(run, trials)


def _check_run(run: Run) -> Iterator[Doubt]:
    """Warnings about the whole run: its machine, executions that shared it, a question that ended it, instruments that
    failed."""
    nodes = run.environment.nodes
    for message in run.environment.doubts:
        yield Doubt("environment", f"Where the run was started: {message}" if nodes else message)
    for name, node in sorted(nodes.items()):
        yield from (Doubt("node", f"Node '{name}': {message}") for message in node.doubts)
    if run.parallelism > 1:
        shared = format_count(len(nodes), "node") if nodes else "the machine"
        yield Doubt(
            "parallelism",
            f"{run.parallelism} concurrent executions shared {shared}, so they slowed each other down.",
            "Run with parallelism: 1 where times matter.",
        )
    if run.question is not None and run.question.is_decided:
        yield early_end(run.question)
    for instrument, reason in run.unmeasured.items():
        yield Doubt("unmeasured", f"The instrument '{instrument}' measured nothing: {reason}")


def early_end(question: Question) -> Doubt:
    return Doubt(
        "ended-when-decided",
        f"The run ended as soon as '{question.metric}' was decided. That verdict accounts for it; other intervals of "
        f"'{question.metric}' assume a fixed number of pairs, so they are a little too narrow.",
    )


def _check_treatment(trials: Sequence[TrialReport]) -> Iterator[Doubt]:
    """Warnings that a trial did not get the settings that its name says: told by what was read back, or by arms that are
    identical."""
    for trial in trials:
        for message in find_ignored_settings(trial):
            yield Doubt(
                "setting-not-taken",
                message,
                "The trial did not run with the settings in its name.",
                trial.name,
            )
    yield from _check_unreported_settings(trials)
    for arms in find_identical_arms(trials):
        names = ", ".join(f"'{arm.name}'" for arm in arms[:_NAMED]) + (", …" if len(arms) > _NAMED else "")
        yield Doubt(
            "identical-arms",
            f"The arms {names} are identical: {alike_but_for(arms[0], find_twin(arms))}",
            "Check that the setting reaches the system under test, and read it back under its own name.",
        )


def _check_unreported_settings(trials: Sequence[TrialReport]) -> Iterator[Doubt]:
    """Warn once for all trials about settings that the server does not report, as that depends on the server alone."""
    names = dict.fromkeys(name for trial in trials for name in find_unreported_settings(trial))
    if names:
        settings = ", ".join(f"'{name}'" for name in names)
        yield Doubt(
            "setting-not-told",
            f"The system under test does not report {settings}, so it is unknown whether the setting was applied.",
        )


def _check_trial(trial: TrialReport) -> Iterator[Doubt]:
    """Warnings about one trial: failures, wrong results, recorded times, an early end, and processes that were none."""
    yield from _failures(trial)
    yield from _wrong_results(trial)
    yield from _check_recorded_times(trial)
    planned = trial.stored.trial
    yield from _check_early_end(trial)
    if planned.isolation is Isolation.INLINE and planned.processes > 1:
        yield Doubt(
            "inline",
            f"The {planned.processes} processes ran as one, because isolation is inline: the interval is too narrow.",
            "Run with isolation: process.",
            trial.name,
        )


def _check_early_end(trial: TrialReport) -> Iterator[Doubt]:
    """A trial that failed over and over up to its last planned execution lacks nothing, and its failures have a warning."""
    from assay.analysis.estimates.completion import count_without_result

    missing, plan = count_without_result(trial).missing, trial.stored.trial
    if (reason := trial.stored.cut_short) and (missing or not plan.is_plan_known):
        planned = plan.number_of_planned_executions
        remainder = f"; {missing:,} of {count(planned)} never ran" if missing else ""
        yield Doubt("stopped", f"The trial stopped early: {reason}{remainder}", trial=trial.name)


def _check_missing_executions(run: Run, trials: Sequence[TrialReport]) -> Iterator[Doubt]:
    if run.state is not RunState.INCOMPLETE:
        return
    from assay.analysis.estimates.completion import count_without_result

    for trial in trials:
        lacking = count_without_result(trial)
        if lacking.total:
            parts = [(lacking.missing, "missing"), (lacking.harness_errors, "harness errors")]
            reasons = ", ".join(f"{count(number)} {what}" for number, what in parts if number)
            yield Doubt(
                "incomplete",
                f"{count(lacking.total)} of {count(lacking.planned)} planned executions have no result ({reasons}).",
                f"Run them: assay run --resume {run.id}",
                trial.name,
            )


def _check_recorded_times(trial: TrialReport) -> Iterator[Doubt]:
    if not trial.is_recorded or not trial.ok:
        return
    timed = len(trial.series["seconds"].values) if "seconds" in trial.series else 0
    hint = "Add 'seconds' to the lines of the answers file."
    if not timed:
        yield Doubt(
            "recorded", "The recorded answers have no seconds, so speed is unrated.", hint, trial.name
        )
    elif timed < trial.ok:
        message = f"{timed} of {trial.ok} recorded answers have seconds: times and speed cover only those."
        yield Doubt("recorded", message, hint, trial.name)


def _remarks(trials: Sequence[TrialReport]) -> Iterator[Doubt]:
    """What was noted beside the figures, each once: by itself where it holds for several trials."""
    places: dict[tuple[str, str], dict[str, None]] = {}
    for trial in trials:
        for artifact in trial.artifacts:
            if artifact.type in ("remark", "mixed-versions"):
                text = artifact.content.decode("utf-8", "replace")
                places.setdefault((artifact.type, text), {})[trial.name] = None
    for (code, text), names in places.items():
        yield Doubt(code, text, trial=next(iter(names)) if len(names) == 1 else None)


def _failures(trial: TrialReport) -> Iterator[Doubt]:
    """A warning about executions that were not ok, with their number by status and the first error."""
    total = sum(trial.counts.values())
    missing = {status: number for status, number in trial.counts.items() if status != "ok" and number}
    if not missing:
        return
    statuses = ", ".join(f"{count(number)} {status}" for status, number in missing.items())
    message = f"{count(total - trial.ok)} of {count(total)} measured executions were not ok ({statuses}).{_first_error(trial)}"
    if trial.ok:
        yield Doubt("failures", message, "", trial.name)
    else:
        ended = message if message.endswith((".", "!", "?")) else f"{message}."
        yield Doubt("failures", ended, "There is nothing to estimate.", trial.name)


def _wrong_results(trial: TrialReport) -> Iterator[Doubt]:
    """Counted over all executions: a median hides what is wrong in fewer than half of them."""
    right: Mapping[str, float] = find_trait(trial.stored.trial.experiment, "right", {})
    for estimate in trial.estimates:
        name, unit = estimate.metric.name, estimate.metric.unit
        if name not in right or estimate.mean == right[name]:
            continue
        wrong = sum(value != right[name] for value in trial.series[name].values)
        yield Doubt(
            "wrong-results",
            f"'{name}' is {show(estimate.mean, unit)} on average, not {show(right[name], unit)}: {count(wrong)} of "
            f"{count(estimate.n)} executions had wrong results.",
            "The times are those of wrong results.",
            trial.name,
        )


def _first_error(trial: TrialReport) -> str:
    error = next((failure.error for failure in trial.failures if failure.error), None)
    if not error:
        return ""
    # The last line of a traceback is the one that says what happened.
    return f" The first error: {error.strip().splitlines()[-1]}"


# An unknown cost counts as nothing against the budget, so more may have been spent than it allowed.
_CALLS, _TOKENS, _USD = JUDGING
_PRICE = "Give its price (price: {input: X, output: Y}), or declare that it costs nothing (price: free)."


def budget_doubts(run: Run, trials: Sequence[TrialReport]) -> Iterator[Doubt]:
    """Warnings about unknown costs and tokens of agents and judges; none without a budget."""
    if run.budget.usd is None and run.budget.tokens is None:
        return
    for trial in (candidate for candidate in trials if candidate.stored.trial.agent_use is not None):
        executions = [
            (e.status is Status.OK, e.measurements) for e in trial.executions if e.status.is_settled
        ]
        judged = [measured for _, measured in executions if _CALLS in measured]
        if run.budget.usd is not None:
            # If the agent is free, its failures cost nothing either.
            is_free = _is_free(executions)
            unpriced = sum("usd" not in measured and (is_ok or not is_free) for is_ok, measured in executions)
            yield from _doubt(trial, "the agent's cost", unpriced, len(executions), _PRICE)
            yield from _doubt(trial, "the judge's cost", _lacking(_USD, judged), len(judged), _PRICE)
        if run.budget.tokens is not None:
            uncounted = (
                0 if _is_free(executions) else _lacking("tokens", [measured for _, measured in executions])
            )
            yield from _doubt(trial, "the agent's use of tokens", uncounted, len(executions))
            yield from _doubt(trial, "the judge's use of tokens", _lacking(_TOKENS, judged), len(judged))


_Executions = Sequence[tuple[bool, Mapping[str, float]]]
"""For each settled execution, whether it was ok, and its measurements."""


def _is_free(executions: _Executions) -> bool:
    """Whether all costs that are known are 0."""
    costs = [measured["usd"] for _, measured in executions if "usd" in measured]
    return bool(costs) and not any(costs)


def _lacking(metric: str, measured: Sequence[Mapping[str, float]]) -> int:
    return sum(metric not in metrics for metrics in measured)


def _doubt(trial: TrialReport, what: str, missing: int, total: int, hint: str = "") -> Iterator[Doubt]:
    if missing:
        yield Doubt(
            "budget",
            f"In {count(missing)} of {count(total)} executions {what} is unknown and not counted: the "
            "run may have exceeded its budget.",
            hint,
            trial.name,
        )
