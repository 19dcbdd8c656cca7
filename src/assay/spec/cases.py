"""Files of cases, and cases written in a suite, become `Case`.

There are two steps. First a file (.jsonl, .csv, .json or .yaml) or the list in a suite becomes rows, each a `WrittenCase` that knows
its file and line. Then each row becomes a `Case`, or a mistake with the row's line. Files may hold many thousand cases, so
rows are produced one by one and checked by plain Python instead of pydantic.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from assay.errors import Mistake, SpecError
from assay.model import Case, Turn
from assay.model.tool import read_tools
from assay.plugin.model_fields import names_of
from assay.spec import scorers
from assay.spec.case_keys import CaseSection, TurnSection
from assay.spec.document import Document, Place, read_document, read_text
from assay.spec.schema import keys_of
from assay.spec.scorers import ScorerSection, as_list, as_scorer, scorer_use

_INPUT = names_of(CaseSection, "input")
_EXPECTED = names_of(CaseSection, "expected")
_INPUT_OF_TURN = names_of(TurnSection, "input")
_OWN = keys_of(CaseSection)
_LARGEST_CELL = 2**31 - 1

Origin = tuple[str, int | None, str]
"""File, line and key."""


_NOTHING: dict[str, Any] = {}
"""Shared by all cases without files or metadata, which may be very many."""


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """One case as written, before it is checked, and where: the file, the line if known, and the key within the document."""

    file: str
    line: int | None
    key: str
    value: Any

    def mistake(self, problem: str, key: str = "") -> Mistake:
        return Mistake(self.file, self.line, ".".join(part for part in (self.key, key) if part), problem)


def rows_in_file(path: Path, mistakes: list[Mistake]) -> Iterator[WrittenCase]:
    """The rows one after the other, so that a file of many cases is not held beside what is made of it."""
    try:
        if path.suffix in (".jsonl", ".ndjson"):
            yield from _jsonl(path, mistakes)
        elif path.suffix == ".csv":
            yield from _csv(path, mistakes)
        elif path.suffix == ".json":
            yield from _json(path)
        elif path.suffix in (".yaml", ".yml"):
            document = read_document(path)
            if document.mistakes:
                raise SpecError(document.mistakes)
            yield from _read_case_list(document.value, document)
        else:
            problem = "is not a file of cases: .jsonl, .csv, .yaml or .json."
            mistakes.append(Mistake(str(path), None, "", problem))
    except SpecError as error:
        mistakes += error.mistakes


def rows_written(values: Iterable[Any], document: Document, place: Place) -> list[WrittenCase]:
    """Cases that stand in the suite itself."""
    return [
        WrittenCase(
            document.file, document.line((*place, index)), ".".join(map(str, (*place, str(index)))), value
        )
        for index, value in enumerate(values)
    ]


def _jsonl(path: Path, mistakes: list[Mistake]) -> Iterator[WrittenCase]:
    """A case for each line.

    Empty lines are skipped; a line that cannot be read is a mistake, and the others are read all the same.
    """
    # Not splitlines(): JSON may hold characters that count as line ends there.
    for number, line in enumerate(read_text(path, None, "surrogateescape").split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield WrittenCase(str(path), number, "", _parse_line(line))
        except (ValueError, RecursionError) as error:
            mistakes.append(Mistake(str(path), number, "", f"is not {error}"))


def _parse_line(line: str) -> Any:
    """The JSON of a line; the error says what it is not.

    Bytes that are no UTF-8 are read as lone surrogates, so that one bad line is a mistake with its number and not the end of
    the whole file.
    """
    if _ESCAPED.search(line):
        raise ValueError("UTF-8 text.")
    try:
        return json.loads(line, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON: {error.msg} (column {error.colno}).") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"JSON: {error}") from None


_ESCAPED = re.compile("[\udc80-\udcff]")
"""Bytes that are no text."""


def _no_number(word: str) -> NoReturn:
    """NaN and Infinity, which Python's parser would accept although JSON has no such numbers."""
    raise ValueError(f"{word} is not a number in JSON.")


def _csv(path: Path, mistakes: list[Mistake]) -> Iterator[WrittenCase]:
    """A case for each row. A cell may span several lines, so the line of a row is where it begins."""
    # Python's own limit is 128 KiB, less than a document that an agent is asked about.
    csv.field_size_limit(_LARGEST_CELL)
    reader = csv.DictReader(io.StringIO(read_text(path, limit=None), newline=""), strict=True)
    first = 2
    try:
        for row in reader:
            if None in row or None in row.values():
                problem = "has a different number of cells than the header."
                mistakes.append(Mistake(str(path), first, "", problem))
            else:
                # An empty cell says nothing; a case whose input is empty can be written in JSON.
                yield WrittenCase(str(path), first, "", {k: v for k, v in row.items() if v != ""})
            first = reader.line_num + 1
    except csv.Error as error:
        mistakes.append(Mistake(str(path), first, "", f"is not CSV: {error}."))


def _json(path: Path) -> Iterator[WrittenCase]:
    """The cases of a JSON file.

    The standard parser keeps no lines, so mistakes in single cases name their place in the list.
    """
    try:
        value = json.loads(read_text(path, limit=None), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise SpecError([Mistake(str(path), line, "", f"is not JSON: {error}")]) from None
    yield from _read_case_list(value, Document(str(path), value))


def _read_case_list(value: Any, document: Document) -> list[WrittenCase]:
    """A list of cases, or a mapping that has one under `cases`."""
    place: Place = ()
    if isinstance(value, dict) and isinstance(value.get("cases"), list):
        value, place = value["cases"], ("cases",)
    if not isinstance(value, list):
        raise SpecError([document.mistake((), "is not a list of cases.")])
    return rows_written(value, document, place)


def cases_of(
    rows: Iterable[WrittenCase],
    expected_outputs: list[Any] | None,
    root: Path,
    mistakes: list[Mistake],
    seen: dict[str, Origin] | None = None,
) -> list[Case]:
    """Every row that is a case; `expected_outputs` are for those that have no correct output of their own.

    `seen` receives the places of the rows by the ids of their cases.
    """
    # A case with an id that is taken is kept all the same, so that counts of cases in later messages are right.
    cases: list[Case] = []
    seen = {} if seen is None else seen
    for number, row in enumerate(rows):
        expected = expected_outputs[number] if expected_outputs and number < len(expected_outputs) else None
        try:
            case = _case(row.value, number, expected, root)
        except ValueError as problem:
            mistakes.append(row.mistake(str(problem)))
            continue
        if (before := seen.get(case.id)) is not None:
            _, line, key = before
            where = key if line is None else f"line {line}"
            mistakes.append(row.mistake(f"'{case.id}' is already the id of the case on {where}.", "id"))
        seen.setdefault(case.id, (row.file, row.line, row.key))
        cases.append(case)
    return cases


def _case(row: Any, number: int, expected: Any, root: Path) -> Case:
    """A case; ValueError says what is wrong with the row. `root` is the folder that relative paths count from."""
    if not isinstance(row, dict):
        raise ValueError("is not a case: a mapping with 'input' is needed.")
    turns = row.get("turns")
    if turns is not None and not (isinstance(turns, list) and turns):
        raise ValueError("'turns' must be a list of at least one turn.")
    question = _first(row, _INPUT)
    if question is None and not turns:
        near = next((hint for key in row if (hint := _near_input(key))), "")
        raise ValueError(f"has no 'input'. {near}".strip())
    own_expected = _first(row, _EXPECTED)
    return Case(
        id=_id(row.get("id"), number),
        input=question,
        expected=expected if own_expected is None else own_expected,
        turns=tuple(_turn(turn, place, root) for place, turn in enumerate(turns, 1)) if turns else (),
        tools=read_tools(row["tools"]) if row.get("tools") else (),
        files=_files(row["files"], root) if row.get("files") else _NOTHING,
        tags=_tags(row["tags"]) if row.get("tags") else (),
        metadata={key: value for key, value in row.items() if key not in _OWN} or _NOTHING,
    )


def _first(row: dict[str, Any], keys: Iterable[str]) -> Any:
    """The value of the first of the keys that has one."""
    for key in keys:
        if (value := row.get(key)) is not None:
            return value
    return None


def _near_input(key: str) -> str:
    """
    >>> _near_input("inptu")
    "Did you mean 'input' instead of 'inptu'?"
    """
    near = difflib.get_close_matches(key, _INPUT, n=1, cutoff=0.75)
    return f"Did you mean '{near[0]}' instead of '{key}'?" if near else ""


def _id(value: Any, number: int) -> str:
    """The id as text; the number of the row, from 1, where there is none. A NUL character cannot be stored in a database."""
    if value is None:
        return str(number + 1)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise ValueError(f"'id' must be text or a number, not {value!r}.")
    if "\0" in str(value):
        raise ValueError("'id' contains a NUL character.")
    return str(value)


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(tag) for tag in value)
    return tuple(tag for tag in re.split(r"[\s,;]+", str(value)) if tag)


def _files(value: Any, root: Path) -> dict[str, str]:
    """Name to absolute path; files that are written as a plain path or a list are named after the file."""
    if not isinstance(value, Mapping):
        value = {Path(str(path)).name: path for path in (value if isinstance(value, list) else [value])}
    files = {str(name): str((root / str(path)).resolve()) for name, path in value.items()}
    # Checked now: an agent that is asked about a file that does not exist would be blamed for it.
    missing = [name for name, path in files.items() if not Path(path).is_file()]
    if missing:
        raise ValueError(f"names files that do not exist: {', '.join(missing)}.")
    return files


def _turn(turn: Any, number: int, root: Path) -> Turn:
    """One turn of a conversation: what is said and, if it is judged on its own, what is expected of the answer."""
    if not isinstance(turn, dict):
        return Turn(turn)
    question = _first(turn, _INPUT_OF_TURN)
    if question is None:
        raise ValueError(f"turn {number} has no 'input'.")
    try:
        uses = [ScorerSection.model_validate(as_scorer(use)) for use in as_list(turn.get("scorer"))]
    except ValidationError:
        raise ValueError(f"turn {number} has a scorer without a name, or with a wrong weight.") from None
    return Turn(question, _first(turn, _EXPECTED), tuple(scorer_use(use, root) for use in uses))


def identity_of(case: Case) -> list[Any]:
    """What makes a case what it is, as plain data for a hash: two cases with the same identity are the same question.

    Files count by their content, not by their path, so that a suite may be moved. The order of the list is part of stored hashes and
    must not change.
    """
    turns = [[turn.input, turn.expected, list(map(scorers.identity_of, turn.scorers))] for turn in case.turns]
    files = {name: _digest(Path(path)) for name, path in case.files.items()}
    return [
        case.id, case.input, case.expected, turns, list(case.tools), files, list(case.tags), dict(case.metadata),
    ]  # fmt: skip


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SpecError([Mistake(str(path), None, "", f"cannot be read: {error.strerror}.")]) from None
