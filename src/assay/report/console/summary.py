"""What the terminal shows when a run ends: a verdict for each benchmark in one table, then the most important warnings.

It is short on purpose. `assay show` prints the full report that `assay.report.console.run` makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.model import Report
from assay.model.standing import Lead
from assay.report.console.screen import RowGroup, bullet, join_texts, literal, print_groups
from assay.report.figures import NOTHING, compute_run_seconds, question_text, total
from assay.report.findings import COLOURS, outcome_of
from assay.report.leads import lead_of, lead_sentence, main_lead, reason_text, verdict_text
from assay.report.side_by_side import (
    Contest,
    ContestRow,
    build_contests,
    format_marked_label,
    rating_text,
    title_with_id,
    usd_text,
)
from assay.report.warnings import run_warnings, split_warnings
from assay.units import count, format_count, seconds, show

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from assay.model import Doubt

_AGENTS = 8
"""Rows of a benchmark; the leaderboard has the others."""
_HEADLINES = 4
_ROWS = 40
"""Rows of all benchmarks; where there would be more, each shows its first two agents."""
_TITLES = ("Agent", "Overall", "Accuracy [interval]", "Time", "Cost", "Failed")


def print_summary(report: Report, console: Console) -> None:
    """What a run found, short enough to be read at once; `assay show` prints everything."""
    _print_head(report, console)
    held = build_contests(report)
    if held:
        print_groups(_TITLES, _groups(report, held), console)
        legend = "Time: median of an execution. Cost: of a solved case. Failed: executions."
        console.print(literal(legend, "dim"))
        if (lead := main_lead(report)) is not None:
            console.print(bullet("=", f"{lead_sentence(lead)} {reason_text(lead)}", "cyan"))
        console.print()
    rest = tuple(trial for trial in report.trials if trial.ratings is None)
    if rest or not held:
        from assay.report.console.run import print_unrated

        print_unrated(replace(report, trials=rest), console, is_brief=True)
    print_warnings(run_warnings(report), console, more=f"assay show {report.run.id}")


def headline(report: Report) -> str:
    """A run in one line for scripts: its id, its state, how many executions, and what it found."""
    run = report.run
    executed, ok = sum(map(total, report.trials)), sum(trial.ok for trial in report.trials)
    failed = f", {count(executed - ok)} not ok" if executed > ok else ""
    parts = [
        f"{run.id} {outcome_of(report).text}",
        format_count(executed, "execution") + failed,
        _finding(report),
    ]
    return " · ".join(filter(None, parts))


def _finding(report: Report) -> str:
    """Who leads; of a single agent its accuracy, of code the median of each trial."""
    if (lead := main_lead(report)) is not None:
        return lead_sentence(lead)
    found = []
    for trial in report.trials[:_HEADLINES]:
        name = "score" if trial.ratings is not None else "seconds"
        estimate = next((candidate for candidate in trial.estimates if candidate.metric.name == name), None)
        if estimate is not None and estimate.n:
            value = estimate.mean if name == "score" else estimate.median
            found.append(f"{trial.name} {name} {show(value, estimate.metric.unit)}")
    more = len(report.trials) - _HEADLINES
    return ", ".join([*found, *([f"{count(more)} more trials"] if more > 0 else [])])


def print_warnings(doubts: Iterable[Doubt], console: Console, more: str) -> None:
    """The few that matter most, and how to see the others."""
    major, others = split_warnings(doubts)
    for doubt in major:
        console.print(bullet("!", str(doubt), "yellow"))
    if others:
        amount = f"and {count(len(others))} more" if major else format_count(len(others), "minor warning")
        console.print(join_texts(literal("! ", "dim"), literal(f"{amount}: {more}", "dim")))


def _print_head(report: Report, console: Console) -> None:
    """The first line of a summary, which is what people copy into a chat."""
    run, duration = report.run, compute_run_seconds(report)
    executions = format_count(sum(total(trial) for trial in report.trials), "execution")
    duration_text = "" if duration is None else f" in {seconds(duration)}"
    found = outcome_of(report)
    console.print(
        join_texts(
            literal(run.name, "bold"),
            literal(f" {found.text}", COLOURS[found.tone]),
            literal(
                f" · {executions}{duration_text} · run {run.id}{f' · {run.label}' if run.label else ''}",
                "dim",
            ),
        )
    )
    if question := question_text(report):
        console.print(bullet("=", question, "cyan"))
    console.print()


def _groups(report: Report, held: Sequence[Contest]) -> list[RowGroup]:
    """Benchmarks with their verdicts in the order of the plan; real agents before simulated ones."""
    benchmarks: dict[str, list[Contest]] = {}
    for contest in held:
        benchmarks.setdefault(contest.benchmark, []).append(contest)
    many = sum(len(contest.entries) for contest in held) + len(benchmarks) > _ROWS
    groups = []
    for name, contests_of_name in benchmarks.items():
        leads = [lead_of(report, name, is_simulated=contest.is_simulated) for contest in contests_of_name]
        rows = [
            _cells(contest, entry, lead)
            for contest, lead in zip(contests_of_name, leads, strict=True)
            for entry in _in_order(contest, lead)
        ]
        listed = rows[: 2 if many else _AGENTS]
        note = (
            f"  … and {format_count(len(rows) - len(listed), 'more agent')}"
            if len(rows) > len(listed)
            else ""
        )
        lead = next(filter(None, leads), None)
        verdict = (
            literal(f"  {verdict_text(lead)}", "yellow" if lead.is_tie else "green") if lead else literal("")
        )
        heading = join_texts(literal(title_with_id(contests_of_name[0]), "bold"), verdict)
        groups.append(RowGroup(heading, listed, note))
    return groups


def _in_order(contest: Contest, lead: Lead | None) -> list[ContestRow]:
    places = {name: place for place, name in enumerate(lead.scores)} if lead else {}
    return sorted(contest.entries, key=lambda entry: places.get(entry.label, len(places)))


def _cells(contest: Contest, entry: ContestRow, lead: Lead | None) -> list[Text]:
    score = lead.scores.get(entry.label) if lead else entry.rating("overall").value
    is_leader = lead is not None and entry.label in lead.leaders
    value, bracket, ends = rating_text(entry.rating("accuracy")).partition(" [")
    time = entry.estimate("seconds")
    failed = total(entry.trial) - entry.trial.ok
    return [
        literal(f"  {format_marked_label(entry, contest)}", "" if not contest.is_simulated else "yellow"),
        literal(NOTHING if score is None else f"{score:.3f}", "bold green" if is_leader else ""),
        join_texts(literal(value, "bold"), literal(bracket + ends, "dim")),
        literal(NOTHING if time is None else show(time.median, time.metric.unit)),
        literal(usd_text(entry.ratings)),
        literal(count(failed), "red" if failed else "dim"),
    ]
