"""The reporter `md`: the report as Markdown, for pull requests and wikis.

It has the same sections as the HTML page, without charts. `trial_page` and `sweep_summary` are the README files in the folders
that `write_output_dir` makes for each trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from assay.model import AxisEffect, Doubt, Estimate, Execution, Report, TrialReport
from assay.plugin.private_files import write_private
from assay.report.figures import (
    agents_text,
    best_text,
    budget_text,
    compute_run_seconds,
    cv_text,
    environment_line,
    estimate_doubts,
    failure_text,
    first_lines,
    format_moment,
    general_doubts,
    last_lines,
    mean_text,
    nodes_line,
    ok_text,
    params_text,
    question_text,
    size_text,
    suite_text,
    tail_text,
    trial_doubts,
    with_interval,
)
from assay.report.findings import finding_sections, headlines, is_listed_on_pages, outcome_of, select_axes
from assay.report.leads import figures_text, lead_of, main_lead, reason_text, verdict_text
from assay.report.pages.markdown_escape import format_code_block, table, text
from assay.report.pages.markdown_side_by_side import basis, contest_section
from assay.report.pages.page import format_table, section_markdown
from assay.report.pages.suite import suite_section
from assay.report.profiles import profile_sections
from assay.report.run_tables import axis_table, leading_cells, machines_table, trials_table
from assay.report.side_by_side import build_contests, title_with_id
from assay.report.warnings import run_warnings
from assay.units import seconds, show

_WARNINGS = 8
"""At the head of the report; each trial has its own below."""


class Markdown:
    """Writes `report.md`."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "report.md"
        write_private(path, report_page(report))
        return [path]


def report_page(report: Report) -> str:
    """The whole run."""
    axes = select_axes(report)
    sections = [
        _head(report),
        _leads(report),
        _warnings(run_warnings(report)[:_WARNINGS], names_trials=True),
        *map(section_markdown, headlines(report)),
        *(contest_section(report, contest) for contest in build_contests(report)),
        *map(section_markdown, finding_sections(report, with_charts=False)),
        _summary(report),
        *(_best(report) if axes else []),
        *(_axis(effect) for effect in axes),
        *(_trial(report, trial) for trial in report.trials),
        suite_section(report.suite, report.run.started) if report.suite is not None else "",
        _foot(report),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _leads(report: Report) -> str:
    """Who leads and why; where there are several benchmarks, also on each of them."""
    lead = main_lead(report)
    if lead is None:
        return ""
    held = [contest for contest in build_contests(report) if contest.is_simulated == lead.is_simulated]
    leads = [
        (contest, lead_of(report, contest.benchmark, is_simulated=lead.is_simulated)) for contest in held
    ]
    lines = [f"- {text(title_with_id(contest))}: {text(verdict_text(own))}" for contest, own in leads if own]
    whole = f"**{text(verdict_text(lead))}.** {text(figures_text(lead))} {text(reason_text(lead))}"
    return "\n".join([whole, "", *lines]) if len(lines) > 1 else whole


def trial_page(report: Report, trial: TrialReport) -> str:
    """One trial on a page of its own."""
    sections = [_head(report), _warnings(general_doubts(report)), _trial(report, trial), _foot(report)]
    return "\n\n".join(section for section in sections if section) + "\n"


def sweep_summary(report: Report, folders: Sequence[str]) -> str:
    """A table of all trials with the folder that each was written to."""
    names = ("Trial", "Parameters", "Median", "Mean", "P95", "ok", "Folder")
    rows = [
        (
            text(trial.name),
            text(params_text(trial.stored.trial.axes or trial.stored.trial.params)),
            *(text(f"{cell.text} {cell.note}".strip()) for cell in leading_cells(trial)),
            ok_text(trial),
            f"[{text(folder)}]({folder}/README.md)",
        )
        for trial, folder in zip(report.trials, folders, strict=True)
    ]
    sections = [
        f"# Sweep: {text(report.run.name)}",
        _run_line(report),
        table(names, rows, right=(2, 3, 4, 5)),
    ]
    return "\n\n".join([*sections, *_best(report), *(_axis(effect) for effect in report.axes)]) + "\n"


def _head(report: Report) -> str:
    run = report.run
    lines = [f"# {text(run.name)}", _run_line(report)]
    if question := question_text(report):
        lines.append(f"**{text(question)}**")
    if run.notes:
        lines.append("> " + text(run.notes))
    return "\n\n".join(lines)


def _run_line(report: Report) -> str:
    """The run in one line: what a reader of a pull request needs in order to find it again."""
    run, duration = report.run, compute_run_seconds(report)
    parts = [
        f"Run `{run.id}`",
        text(run.label),
        f"**{outcome_of(report).text}**",
        text(suite_text(run)),
        format_moment(run.started),
        *([seconds(duration)] if duration is not None else []),
        "" if run.suite else text(agents_text(report)),
        text(budget_text(run)),
        f"seed {run.seed}",
        *([f"tags {text(', '.join(run.tags))}"] if run.tags else []),
    ]
    return " · ".join(part for part in parts if part)


def _warnings(doubts: Sequence[Doubt], *, names_trials: bool = False) -> str:
    """Below the heading of a trial its name would only be repeated."""
    listed = doubts if names_trials else [replace(doubt, trial=None) for doubt in doubts]
    return "\n".join(f"> ⚠ {text(str(doubt))}  " for doubt in listed)


def _summary(report: Report) -> str:
    """Summarise the trials that no table of agents and no finding shows already."""
    trials = [trial for trial in report.trials if trial.ratings is None and is_listed_on_pages(report, trial)]
    if report.trials and not trials:
        return ""
    return "## Trials\n\n" + format_table(trials_table(trials))


def _mark(estimate: Estimate) -> str:
    return "" if estimate.metric.kind == "measured" else f" ({estimate.metric.kind.value})"


def _axis(effect: AxisEffect) -> str:
    """One axis of a sweep as a table, with the sentence that says what it does."""
    return f"## {text(effect.metric.name)} by {text(effect.axis)}\n\n{format_table(axis_table(effect))}"


def _best(report: Report) -> list[str]:
    lines = [f"- {text(best_text(point))}" for point in report.best]
    return ["\n".join(["## Best points", "", *lines])] if lines else []


def _trial(report: Report, trial: TrialReport) -> str:
    """One trial in full: warnings first, since they decide how the figures below them are to be read."""
    point = trial.stored.trial
    parts = [
        f"## {text(trial.name)}",
        _warnings(trial_doubts(report, trial)),
        f"Parameters: {_settings(point.params)}" if point.params else "",
        f"Read back: {_settings(trial.applied)}" if trial.applied else "",
        f"Stopped early: {text(trial.stored.cut_short)}" if trial.stored.cut_short else "",
        basis(trial),
        _estimates(trial),
        profile_sections(trial),
        "### Failures" if trial.failures else "",
        *(_failure(failure) for failure in trial.failures),
    ]
    return "\n\n".join(part for part in parts if part)


def _settings(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{text(name)} = {text(value)}" for name, value in settings.items())


def _estimates(trial: TrialReport) -> str:
    if not trial.estimates:
        return f"No measured execution was ok ({ok_text(trial)})."
    names = ("Metric", "Median [interval]", "Mean", "P90", "P95", "P99", "Min", "Max", "CV", "n / units")
    rows = [_estimate_row(estimate) for estimate in trial.estimates]
    doubts = [f"- {text(doubt)}" for doubt in estimate_doubts(trial)]
    return "\n".join([table(names, rows, right=range(1, 10)), *([""] if doubts else []), *doubts])


def _estimate_row(estimate: Estimate) -> tuple[str, ...]:
    """One metric with everything that is known of it; tails have intervals where there are enough executions beyond them."""
    unit = estimate.metric.unit
    return (
        text(estimate.metric.name) + _mark(estimate),
        with_interval(estimate),
        mean_text(estimate),
        *(tail_text(estimate, name) for name in ("p90", "p95", "p99")),
        show(estimate.min, unit),
        show(estimate.max, unit),
        cv_text(estimate),
        size_text(estimate),
    )


def _failure(failure: Execution) -> str:
    parts = [text(failure_text(failure)).capitalize()]
    if failure.error:
        parts.append(format_code_block(first_lines(failure.error)))
    if failure.log:
        parts.append("Log:\n\n" + format_code_block(last_lines(failure.log)))
    return "\n\n".join(parts)


def _foot(report: Report) -> str:
    run = report.run
    lines = [f"- {text(environment_line(run.environment))}"]
    if run.instrument_costs:
        costs = ", ".join(f"{text(name)} {seconds(cost)}" for name, cost in run.instrument_costs.items())
        lines.append(f"- Cost of one start and stop: {costs}")
    lines += [f"- Not measured: {text(name)} ({text(why)})" for name, why in run.unmeasured.items()]
    return "## Environment\n\n" + "\n".join(lines) + _machines(report)


def _machines(report: Report) -> str:
    """The nodes that executed the run, where there were several."""
    if not nodes_line(report):
        return ""
    return "\n\n### Machines\n\n" + format_table(machines_table(report))
