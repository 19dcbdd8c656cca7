"""One case of a suite for the terminal (`assay show --case`): the input, and what every agent made of it.

Every execution gets a headline with its outcome, score, time and cost, and beneath it whatever it has of outputs, errors,
scores, tool calls, attempts, spans and logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.model import Case, Execution, Report, Status
from assay.model.metric import JUDGING, RECORDED_SECONDS
from assay.model.rating import Judging
from assay.report.cases import answers_to, expectation_text, input_text, outcome_of
from assay.report.console.screen import join_texts, literal
from assay.report.contests import OUTCOMES, as_text, heading, judging_text, source_text, sources_in
from assay.report.figures import first_lines, last_lines
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
    for asked in answers_to(report, case):
        title = literal(heading(asked.contest), "dim")
        console.print(join_texts(literal(case, "bold"), literal("  "), title))
        console.print(_sheet(_question(asked.definition)))
        for entry, executions in asked.answers:
            for execution in executions:
                console.print()
                mark = " (simulated)" if asked.contest.is_simulated else ""
                outcome = outcome_of(execution, asked.contest.pass_mark)
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
    detail = execution.detail or {}
    for number, output in enumerate(_list(detail.get("turns")), 1):
        yield f"turn {number}", as_text(output, _TEXT)
    yield "output", as_text(execution.output, _TEXT)
    yield "stored", "\n".join(_describe_shortened(detail.get("shortened")))
    yield "error", first_lines(execution.error, _TEXT)
    yield "scores", "\n".join(_scores(execution))
    yield "cost", "\n".join(_spending(execution))
    yield "tools", "\n".join(_call(call) for call in _list(detail.get("tool_calls")))
    yield "attempts", "\n".join(_attempt(one) for one in _list(detail.get("attempts")))
    if spans := [
        span for span in _list(detail.get("spans")) if isinstance(span, Sequence) and len(span) >= 4
    ]:
        yield "spans", _waterfall(spans)
    yield "log", last_lines(execution.log, _LOG)


def _describe_shortened(noted: object) -> Iterator[str]:
    """What was judged whole and stored in part."""
    for name, size in noted.items() if isinstance(noted, Mapping) else ():
        of = "characters" if name == "output" else "entries or characters"
        yield f"only the beginning of {name}, which had {size:,} {of}; assay rescore keeps its scores"


def _spending(execution: Execution) -> Iterator[str]:
    """How the cost is known, and what judging took beside it."""
    measured = execution.measurements
    if "usd" in measured:
        yield from (source_text(source) for source in sources_in(execution))
    if JUDGING[0] in measured:
        calls, tokens, usd = (measured.get(name) for name in JUDGING)
        yield f"judging took {judging_text(Judging(int(calls or 0), tokens, usd))}"


def _scores(execution: Execution) -> Iterator[str]:
    """Each named score with its reason; what could not be judged says so."""
    detail = execution.detail or {}
    given = detail.get("reasons")
    reasons = given if isinstance(given, Mapping) else {}
    values = {name[6:]: v for name, v in execution.measurements.items() if name.startswith("score.")}
    for name in dict.fromkeys((*values, *map(str, _list(detail.get("unscored"))))):
        value = f"{values[name]:.2f}" if name in values else "unscored"
        reason = f"  {as_text(reasons[name])}" if name in reasons else ""
        yield f"{value}  {name}{reason}"


def _call(call: Any) -> str:
    if not isinstance(call, Mapping):
        return as_text(call)
    return f"{call.get('name')} {as_text(call.get('arguments') or {})}"


def _attempt(attempt: Any) -> str:
    if not isinstance(attempt, Mapping):
        return as_text(attempt)
    took = attempt.get("seconds")
    after = f" after {seconds(took)}" if isinstance(took, int | float) else ""
    asked, waited = attempt.get("retry_after"), attempt.get("waited")
    told = f"; asked to wait {seconds(asked)}" if isinstance(asked, int | float) else ""
    told += f"; waited {seconds(waited)}" if isinstance(waited, int | float) else ""
    return f"{as_text(attempt.get('error'))}{after}{told}"


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _waterfall(spans: Sequence[Sequence[Any]]) -> Text:
    """A line a span: its name, a bar where it lay, how long it took."""
    timed = [(str(name)[:20], str(kind), float(start), float(took)) for name, kind, start, took, *_ in spans]
    whole = max(start + took for _, _, start, took in timed) or 1.0
    width = max(len(name) for name, *_ in timed)
    lines = []
    for name, kind, start, took in timed:
        before = min(_BAR - 1, max(0, round(start / whole * _BAR)))
        bar = "━" * max(1, min(_BAR - before, round(took / whole * _BAR)))
        lines.append(
            join_texts(
                literal(f"{name:<{width}}  {kind:<8}"),
                literal(f"{' ' * before}{bar:<{_BAR - before}}", _SPANS.get(kind, "blue")),
                literal(f"  {seconds(took)}", "dim"),
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
