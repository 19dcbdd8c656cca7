"""Traces of requests: when each was sent, and how many tokens went in and came out.

`assay load --trace FILE` replays them. The formats are those that are published: CSV with a column for the time (Azure's LLM inference
traces, for example) and Mooncake's JSON lines, whose `hash_ids` say which prompts share a prefix. Columns go by any of the names
below. Rows with a session make one session: its first row is a request at its time, the others follow it as turns.
A trace may have millions of rows, so they are kept in arrays of numbers rather than objects.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.errors import Mistake, SpecError
from assay.model.conversation import SessionTurn, UserSession
from assay.model.load import Trace
from assay.spec.load_settings import MOST_TOKENS
from assay.spec.rows import FileMistakes, csv_rows, first_of, is_json_lines, json_rows

_MOMENT = ("timestamp", "time", "arrived_at", "arrival_time", "offset", "seconds")
_INPUT = (
    "contexttokens",
    "context_tokens",
    "input_tokens",
    "prompt_tokens",
    "input_length",
    "num_prefill_tokens",
)
_OUTPUT = (
    "generatedtokens",
    "generated_tokens",
    "output_tokens",
    "completion_tokens",
    "output_length",
    "num_decode_tokens",
)
SESSION = ("session_id", "session")
DELAY = ("delay", "delay_ms")
"""Milliseconds between the last answer and this turn."""
_NO_TIME = f"has no time column. Name it one of: {', '.join(_MOMENT)}"


@dataclass(slots=True)
class _Row:
    due: float | None
    """None for a turn that follows the one before it."""
    input_tokens: int
    output_tokens: int
    blocks: list[int] = field(default_factory=list)
    session: str | None = None
    delay: float | None = None


def read_trace(path: Path) -> Trace:
    """The trace in a CSV file or in JSON lines (Mooncake's format), either of them optionally compressed with gzip.

    In CSV, times are seconds, or dates; in JSON lines, a `timestamp` is milliseconds, as Mooncake has it. In the result, times
    count from the first request. Every wrong row is reported with its line. The file is read row by row, as it may be larger than
    what fits into memory as text.
    """
    wrong = FileMistakes(path)
    collected = _Collected()
    rows = _json_trace(path, wrong) if is_json_lines(path) else _csv_trace(path, wrong)
    for line, row in rows:
        try:
            collected.add(row)
        except ValueError as error:
            wrong.add(line, str(error))
    wrong.refuse()
    trace = collected.trace()
    if not trace:
        raise SpecError([Mistake(str(path), None, "", "the trace has no requests")])
    begin = trace.due[0]
    for place, due in enumerate(trace.due):
        trace.due[place] = due - begin
    return trace


class _Collected:
    """Rows as columns; rows of one session as its turns, with a row for its start.

    The list of turns has an entry for each row only from the first session on: a trace without sessions needs none.
    """

    def __init__(self) -> None:
        self._trace = Trace(array("d"), array("i"), array("i"))
        self._sessions: dict[str, list[_Row]] = {}
        self._turns: list[list[_Row]] = []
        """For each row: itself, and if it begins a session, all that follow it there."""
        self._before = -math.inf

    def add(self, row: _Row) -> None:
        known = self._sessions.get(row.session) if row.session is not None else None
        if row.due is None and known is None:
            raise ValueError("has no time, and no row of the same session comes before it")
        # A trace is replayed in its order. A time that goes back is a mistake in the file, which sorting would hide.
        if row.due is not None and row.due < self._before:
            raise ValueError(f"{row.due:g} is earlier than the row before")
        self._before = self._before if row.due is None else row.due
        if known is not None:
            known.append(row)
            return
        if row.session is not None:
            turns = self._sessions[row.session] = [row]
            self._turns += [[]] * (len(self._trace) - len(self._turns))
            self._turns.append(turns)
        self._append(row)

    def _append(self, row: _Row) -> None:
        trace = self._trace
        trace.due.append(row.due or 0.0)
        trace.input_tokens.append(row.input_tokens)
        trace.output_tokens.append(row.output_tokens)
        if row.blocks and not trace.block_ends:
            trace.block_ends.extend([0] * (len(trace) - 1))
        if row.blocks or trace.block_ends:
            trace.blocks.extend(row.blocks)
            trace.block_ends.append(len(trace.blocks))

    def trace(self) -> Trace:
        if not any(len(turns) > 1 for turns in self._turns):
            return self._trace
        all_turns = [*self._turns, *([[]] * (len(self._trace) - len(self._turns)))]
        trace = self._trace
        sessions = tuple(
            _session(turns or [_Row(trace.due[place], trace.input_tokens[place], trace.output_tokens[place])])
            for place, turns in enumerate(all_turns)
        )
        return replace(self._trace, sessions=sessions)


def _session(rows: list[_Row]) -> UserSession:
    """The turns of one session, timed from its own start."""
    begin = rows[0].due or 0.0
    return UserSession(
        tuple(
            SessionTurn(
                tokens=row.input_tokens if row.input_tokens > 0 else None,
                max_tokens=row.output_tokens if row.output_tokens > 0 else None,
                delay=row.delay,
                at=0.0 if row.due is None else row.due - begin,
            )
            for row in rows
        )
    )


def _csv_trace(path: Path, wrong: FileMistakes) -> Iterator[tuple[int, _Row]]:
    for line, cells in csv_rows(path, _MOMENT, _NO_TIME, wrong):
        try:
            yield line, _row(cells, _moment(first_of(cells, _MOMENT) or ""))
        except ValueError as error:
            wrong.add(line, str(error))


def _json_trace(path: Path, wrong: FileMistakes) -> Iterator[tuple[int, _Row]]:
    for line, parsed in json_rows(path, wrong):
        if not isinstance(parsed, Mapping):
            wrong.add(line, "is not a JSON object")
            continue
        row = {str(name).lower(): value for name, value in parsed.items()}
        try:
            yield line, _row(row, _moment_of_json(row))
        except ValueError as error:
            wrong.add(line, str(error))


def _moment_of_json(row: Mapping[str, Any]) -> float | None:
    """When a row of JSON lines is due; None for a later turn of a session, which follows the answer before it."""
    stamp = row.get("timestamp")
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        return _moment(str(stamp)) / 1000
    written = first_of(row, _MOMENT)
    if written is None and first_of(row, DELAY) is None and first_of(row, SESSION) is None:
        raise ValueError(_NO_TIME.replace("column", "field"))
    return None if written is None else _moment(str(written))


def _row(row: Mapping[str, Any], due: float | None) -> _Row:
    """One request of a trace.

    `hash_ids` name blocks of the prompt that requests share, as in traces of prompt caches; they are cut to 63 bits because
    they travel in arrays of signed numbers.
    """
    blocks = row.get("hash_ids") or []
    if not isinstance(blocks, list) or not all(isinstance(block, int) for block in blocks):
        raise ValueError("'hash_ids' is not a list of whole numbers")
    session = first_of(row, SESSION)
    return _Row(
        due,
        _tokens(first_of(row, _INPUT)),
        _tokens(first_of(row, _OUTPUT)),
        [block & 0x7FFF_FFFF_FFFF_FFFF for block in blocks],
        None if session is None else str(session),
        delay_of(row),
    )


def delay_of(row: Mapping[str, Any]) -> float | None:
    """Seconds; None where the row does not say."""
    written = first_of(row, DELAY)
    if written is None:
        return None
    try:
        delay = float(written) / 1000
    except (TypeError, ValueError):
        raise ValueError(f"the delay '{written}' is not a number of milliseconds") from None
    if not 0 <= delay < math.inf:
        raise ValueError(f"the delay '{written}' is not a number of milliseconds")
    return delay


def _moment(written: str) -> float:
    """Seconds, or a date and time as seconds since 1970."""
    try:
        moment = float(written)
    except ValueError:
        # Traces are written with seven digits after the point; Python reads six.
        shortened = re.sub(r"(\.\d{6})\d+", r"\1", written)
        try:
            date = datetime.fromisoformat(shortened)
            # Without a zone it is taken for UTC: a clock that is put forward would tear a hole into the trace.
            moment = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise ValueError(f"'{written}' is neither seconds nor a date and time") from None
    if not math.isfinite(moment):
        raise ValueError(f"'{written}' is not a time")
    return moment


def _tokens(written: object) -> int:
    """A number of tokens; -1 where the row does not have one."""
    if written is None:
        return -1
    try:
        number = int(float(str(written)))
    except (ValueError, OverflowError):
        raise ValueError(f"'{written}' is not a number of tokens") from None
    if not 0 <= number <= MOST_TOKENS:
        raise ValueError(f"'{written}' is not a number of tokens from 0 to {MOST_TOKENS}")
    return number
