"""One case of a suite for the terminal (`assay show --case`): the input, and what every agent made of it.

Every execution gets a headline with its outcome, score, time and cost, and beneath it whatever it has of outputs, errors,
scores, tool calls, attempts, spans and logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from assay.model import Case, Execution, Report, Status
from assay.model.metric import RECORDED_SECONDS
from assay.report.cases import answers_to, expectation_text, input_text, outcome_of
from assay.report.console.screen import join_texts, literal
from assay.report.execution_texts import ShownSpan, describe_execution, read_spans
from assay.report.side_by_side import OUTCOMES, heading
from assay.units import count, seconds, usd

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_TEXT = 2000
_LOG = 1200
_BAR = 32
"""Columns of a waterfall's bars."""
_STYLES = {"pass": "green", "fail": "yellow", "unscored": "yellow", "harness_error": "magenta"}
_SPANS = {"llm": "cyan", "tool": "magenta", "queue": "yellow", "harness": "dim"}


def print_case(report: Report, case: str, console: Console) -> None:
    """The case of this id in every benchmark that has it; LookupFailed when none has."""
    for answered in answers_to(report, case):
        title = literal(heading(answered.contest), "dim")
        console.print(join_texts(literal(case, "bold"), literal("  "), title))
        console.print(_sheet(_question(answered.definition)))
        for entry, executions in answered.answers:
            for execution in executions:
                console.print()
                mark = " (simulated)" if answered.contest.is_simulated else ""
                outcome = outcome_of(execution, answered.contest.pass_mark)
                console.print(_headline(entry.label + mark, execution, outcome))
                console.print(_sheet(_answer(execution)))
        console.print()


def _question(case: Case | None) -> Iterator[tuple[str, str | Text]]:
    if case is None:
        return
    yield "input", input_text(case, _TEXT)
    yield "expected", expectation_text(case, _TEXT)
    yield "tools", ", ".join(str(tool.get("name", tool)) for tool in case.tools)
    yield "files", ", ".join(case.files)
    yield "tags", ", ".join(case.tags)


def _headline(label: str, execution: Execution, outcome: str) -> Text:
    """One execution in a line.

    The time of a recorded answer is marked as recorded, and an unknown cost is never shown as $0.
    """
    measured = execution.measurements
    if RECORDED_SECONDS in measured:
        times = [f"{seconds(measured[RECORDED_SECONDS])} recorded"]
    else:
        times = [seconds(measured["seconds"])] if "seconds" in measured else []
    if "usd" in measured:
        costs = [usd(measured["usd"]) if measured["usd"] else "free"]
    else:
        costs = ["cost unknown"] if execution.status is Status.OK else []
    facts = [
        f"repetition {execution.repetition}" if execution.phase == "measured" else execution.phase.value,
        *([f"score {measured['score']:.2f}"] if "score" in measured else []),
        *times,
        *([f"first token {seconds(measured['ttft'])}"] if "ttft" in measured else []),
        *([f"{count(measured['tokens'])} tokens"] if "tokens" in measured else []),
        *costs,
    ]
    style = _STYLES.get(outcome, "red")
    outcome_text = OUTCOMES.get(outcome, outcome)
    return join_texts(
        literal(label, "bold"), literal(f"  {outcome_text}", style), literal(f"  {' · '.join(facts)}", "dim")
    )


def _answer(execution: Execution) -> Iterator[tuple[str, str | Text]]:
    """Everything that is stored of an execution, under names; what is empty is left out by `_sheet`."""
    *texts, log = describe_execution(execution, _TEXT, _LOG)
    yield from texts
    if spans := read_spans(execution):
        yield "spans", _waterfall(spans)
    yield log


def _waterfall(spans: Sequence[ShownSpan]) -> Text:
    """A line a span: its name, a bar where it lay, how long it took."""
    timed = [(span.name[:20], span.kind, span.start, span.seconds) for span in spans]
    whole = max(start + duration for _, _, start, duration in timed) or 1.0
    width = max(len(name) for name, *_ in timed)
    lines = []
    for name, kind, start, duration in timed:
        before = min(_BAR - 1, max(0, round(start / whole * _BAR)))
        bar = "━" * max(1, min(_BAR - before, round(duration / whole * _BAR)))
        lines.append(
            join_texts(
                literal(f"{name:<{width}}  {kind:<8}"),
                literal(f"{' ' * before}{bar:<{_BAR - before}}", _SPANS.get(kind, "blue")),
                literal(f"  {seconds(duration)}", "dim"),
            )
        )
    from rich.text import Text

    return Text("\n").join(lines)


def _sheet(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """Names at the left, values beside them; empty ones are left out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=8)
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value:
            grid.add_row(name, literal(value) if isinstance(value, str) else value)
    return grid
