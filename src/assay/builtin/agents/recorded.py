"""An agent whose answers were made earlier, by anyone.

The whole file is read and checked when the agent is made, that is, before the run: all bad lines are reported together, and
a run never fails half way because of one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from assay.builtin.agents.fixed import InstantAgent
from assay.builtin.agents.version import version_of
from assay.dialects.plain import answer_of, seconds_of
from assay.dialects.reading import decode_utf8, parse_json
from assay.files import UnreadableFile, read_bytes
from assay.model import Answer, Request
from assay.plugin import AgentError, BadAgent, InvalidAnswer

_MOST_FAULTS = 20
"""Bad lines that are listed; the others are counted."""
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "api_calls")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Recorded(InstantAgent):
    """Answers that were made earlier, by any program.

    Each line of the file is {"id", "output", "seconds"?, "usage"?, "error"?, "usd"?, "model"?, "tool_calls"?, "turn"?}. The
    recorded `seconds` are the agent's times, marked as recorded; without them its speed is unrated. Nothing is measured: how
    long it takes to look an answer up says nothing about the agent. Several lines with one id are its repetitions, in their
    order; a case has no more repetitions than answers. In a conversation, `turn` (from 1) says which turn a line answers. A
    file that ends in .csv has these names as columns, with the keys of `usage` (`input_tokens`, `output_tokens`, …) as
    columns of their own.

    Args:
        answers: File of JSON lines, or a .csv file, with the id of a case and its output in each line.

    Example:
        - {name: past, type: recorded, answers: answers.jsonl}
    """

    is_free: ClassVar[bool] = False

    def __init__(self, answers: str, folder: str = "") -> None:
        self._file = Path(folder) / answers
        self._answers = _read(self._file, answers)

    def found_version(self) -> str:
        return version_of([self._file])

    def count_repetitions(self, case: str) -> int:
        """How many repetitions of a case can be answered; 1 where none is recorded, which is a failure to be seen."""
        return max(1, len(self._answers.get((case, 1), ())))

    def answer(self, request: Request) -> Answer:
        turn = len(request.history) // 2 + 1
        recorded = self._answers.get((request.id, turn), [])
        if request.repetition >= len(recorded):
            which = f" to turn {turn}" if turn > 1 else ""
            missing = f" for repetition {request.repetition + 1}" if recorded else ""
            raise AgentError(f"no recorded answer{which}{missing}")
        line = recorded[request.repetition]
        if line.error is not None:
            raise AgentError(line.error, line.answer)
        return line.answer


@dataclass(frozen=True, slots=True)
class _RecordedLine:
    """A line of the file; one with an error keeps what is known of the answer besides, such as its tokens."""

    answer: Answer
    error: str | None = None


Answers = dict[tuple[str, int], list[_RecordedLine]]
"""By id and turn, a line for each repetition."""


def _read(file: Path, name: str) -> Answers:
    """Every bad line is reported at once."""
    try:
        content = read_bytes(file).removeprefix(_BYTE_ORDER_MARK)
    except UnreadableFile as error:
        raise BadAgent(f"the file of answers '{name}' {error.problem}") from None
    answers: Answers = {}
    faults: list[str] = []
    documents = _csv_documents(content) if file.suffix.lower() == ".csv" else _json_documents(content)
    for number, document in documents:
        try:
            if isinstance(document, InvalidAnswer):
                raise document
            _take(document, answers)
        except InvalidAnswer as fault:
            faults.append(f"line {number}: {fault}")
    if faults:
        more = [f"and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
        listed = [f"'{name}' has lines that are not answers:", *faults[:_MOST_FAULTS], *more]
        raise BadAgent("\n  ".join(listed))
    return answers


def _json_documents(content: bytes) -> Iterator[tuple[int, Any]]:
    """Read a JSON document from each line, and yield it with its line number.

    In the place of a line that cannot be read comes the fault that says why, so that all bad lines are
    reported at once.
    """
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            try:
                yield number, parse_json(decode_utf8(line))
            except InvalidAnswer as fault:
                yield number, fault


def _csv_documents(content: bytes) -> Iterator[tuple[int, Any]]:
    """An empty cell is a key that is not there, except for an output, which may be empty."""
    try:
        rows = csv.DictReader(io.StringIO(decode_utf8(content), newline=""), strict=True)
        rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
        names = rows.fieldnames
        if repeated := {name for name in names if names.count(name) > 1}:
            raise InvalidAnswer(f"has the column '{min(repeated)}' twice")
        if names and "id" not in names:
            raise InvalidAnswer("has no column 'id'")
        for row in rows:
            is_whole = None not in row and None not in row.values()
            uneven = InvalidAnswer(f"does not have {len(rows.fieldnames)} columns like the first line")
            yield rows.line_num, _csv_document(row) if is_whole else uneven
    except InvalidAnswer as fault:
        yield 1, fault
    except csv.Error as error:
        yield rows.line_num, InvalidAnswer(f"this is not CSV: {error}")


def _csv_document(cells: Mapping[str, str]) -> Any:
    """Convert a CSV row to the document of a JSON line; return a fault if a cell is not the number that it should be."""
    document: dict[str, Any] = {
        name: cell for name, cell in cells.items() if cell.strip() and name not in _TOKENS
    }
    if "output" in cells and "error" not in document:
        document["output"] = cells["output"]
    usage = {name: cells[name] for name in _TOKENS if cells.get(name, "").strip()}
    try:
        for name in ("seconds", "usd"):
            if name in document:
                document[name] = _csv_number(document[name], name, float)
        if "turn" in document:
            document["turn"] = _csv_number(document["turn"], "turn", int)
        if usage:
            document["usage"] = {name: _csv_number(cell, name, int) for name, cell in usage.items()}
    except InvalidAnswer as fault:
        return fault
    return document


def _csv_number(cell: str, name: str, kind: type[float] | type[int]) -> float:
    try:
        return kind(cell)
    except ValueError:
        raise InvalidAnswer(f"'{name}' must be a {'whole ' * (kind is int)}number, not {cell!r}") from None


def _take(document: Any, answers: Answers) -> None:
    """Add one line to the answers; InvalidAnswer says what is wrong with it."""
    key = document.get("id") if isinstance(document, dict) else None
    if not isinstance(key, (str, int)) or isinstance(key, bool) or key == "":
        raise InvalidAnswer("needs an 'id'")
    turn = document.get("turn", 1)
    if type(turn) is not int or turn < 1:
        raise InvalidAnswer(f"'turn' must be a whole number of at least 1, not {turn!r}")
    error = document.get("error")
    if error is None and not document.keys() & {"output", "tool_calls"}:
        raise InvalidAnswer(f"the answer to '{key}' has neither 'output' nor 'error'")
    answer = _answer(document)
    answers.setdefault((str(key), turn), []).append(
        _RecordedLine(answer, None if error is None else str(error))
    )


def _answer(document: Mapping[str, Any]) -> Answer:
    answer = answer_of({**document, "error": None})
    for name in _TOKENS:
        count = getattr(answer.usage, name)
        if count is not None and (type(count) is not int or count < 0):
            raise InvalidAnswer(
                f"'usage' says {name} is {count!r}, which is not a whole number of at least 0"
            )
    if answer.usd is not None and not 0 <= answer.usd < float("inf"):
        raise InvalidAnswer(f"'usd' is {answer.usd!r}, which cannot be a cost")
    seconds = document.get("seconds")
    return answer if seconds is None else replace(answer, seconds=seconds_of(seconds, "seconds"))
