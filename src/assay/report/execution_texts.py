"""One execution in words: its output, error, scores with reasons, cost, tool calls, retries and spans.

The terminal and the dashboard show the same texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model import Execution
from assay.model.metric import JUDGING
from assay.model.rating import Judging
from assay.report.figures import first_lines, last_lines
from assay.report.side_by_side import as_text, judging_text, source_text, sources_in
from assay.units import seconds


@dataclass(frozen=True, slots=True)
class ShownSpan:
    """A part of an execution; times are in seconds after it began."""

    name: str
    kind: str
    start: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ShownScore:
    """What a scorer said; None where it could not judge."""

    name: str
    value: float | None
    reason: str = ""


def describe_execution(execution: Execution, limit: int, log_limit: int) -> Iterator[tuple[str, str]]:
    """Everything that is stored of an execution but its spans, under names; texts may be empty. The log comes last."""
    detail = execution.detail or {}
    for number, output in enumerate(_list(detail.get("turns")), 1):
        yield f"turn {number}", as_text(output, limit)
    yield "output", as_text(execution.output, limit)
    yield "stored", "\n".join(_describe_shortened(detail.get("shortened")))
    yield "error", first_lines(execution.error, limit)
    yield "scores", "\n".join(map(_score_text, read_scores(execution)))
    yield "cost", "\n".join(_spending(execution))
    yield "tools", "\n".join(_call(call) for call in _list(detail.get("tool_calls")))
    yield "attempts", "\n".join(_attempt(attempt) for attempt in _list(detail.get("attempts")))
    yield "log", last_lines(execution.log, log_limit)


def read_spans(execution: Execution) -> list[ShownSpan]:
    """Read the complete spans; agents of other authors may report anything."""
    found = _list((execution.detail or {}).get("spans"))
    return [
        ShownSpan(str(span[0]), str(span[1]), float(span[2]), float(span[3]))
        for span in found
        if isinstance(span, Sequence) and len(span) >= 4
    ]


def read_scores(execution: Execution) -> list[ShownScore]:
    """Each named score with its reason; what could not be judged has no value."""
    detail = execution.detail or {}
    given = detail.get("reasons")
    reasons = given if isinstance(given, Mapping) else {}
    values = {name[6:]: v for name, v in execution.measurements.items() if name.startswith("score.")}
    names = dict.fromkeys((*values, *map(str, _list(detail.get("unscored")))))
    return [
        ShownScore(name, values.get(name), as_text(reasons[name]) if name in reasons else "")
        for name in names
    ]


def _score_text(score: ShownScore) -> str:
    value = "unscored" if score.value is None else f"{score.value:.2f}"
    return f"{value}  {score.name}{f'  {score.reason}' if score.reason else ''}"


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


def _call(call: Any) -> str:
    if not isinstance(call, Mapping):
        return as_text(call)
    return f"{call.get('name')} {as_text(call.get('arguments') or {})}"


def _attempt(attempt: Any) -> str:
    if not isinstance(attempt, Mapping):
        return as_text(attempt)
    duration = attempt.get("seconds")
    after = f" after {seconds(duration)}" if isinstance(duration, int | float) else ""
    retry_after, waited = attempt.get("retry_after"), attempt.get("waited")
    waits = f"; asked to wait {seconds(retry_after)}" if isinstance(retry_after, int | float) else ""
    waits += f"; waited {seconds(waited)}" if isinstance(waited, int | float) else ""
    return f"{as_text(attempt.get('error'))}{after}{waits}"


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
