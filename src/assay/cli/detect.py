"""`assay detect`: find the change points of a series of numbers.

The numbers come from a file or from standard input. With `--lines` each input line is a series of its own and is answered
at once, so that a program can keep one process open and ask many questions. Such an answer is a change point document or
`{"error": …}`; a mistake in one line does not end the others, but the exit code is 2.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from assay.cli.output import echo
from assay.cli.session import Session, common
from assay.errors import SeriesError
from assay.files import UnreadableFile, read_bytes
from assay.text import shell_command

_STDIN = "-"
_PATIENCE = 1.0
"""Seconds that a search may take before a progress bar is shown."""
_LONGEST_LINE = 256 * 2**20
"""Bytes of one line with `--lines`; a file without line breaks must not fill the memory."""
_REMEDY = "Leave out points that were not measured."


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option(
    "--lines",
    is_flag=True,
    help="Many series: one JSON list per input line, one JSON document per output line.",
)
@common
def detect(session: Session, file: str, lines: bool) -> int:
    """Find the change points of a series: a JSON list of numbers, or one number per line, oldest first.

    An index counts from 0 and is the first point of the new level. A change with fewer than five points after it is
    pending: later points may revoke it. At least 16 points are needed.
    """
    from assay.stats import changepoint

    if lines:
        return _detect_lines(file)
    values = read_series(_text(file))
    with _show_progress(session) as report:
        found = changepoint.detect(values, report)
    if session.is_json:
        from assay.report.documents.answers import change_points_document

        session.emit(change_points_document(found))
        return 0
    from assay.report.console.history import print_history

    print_history(values, found, session.console())
    as_json = [] if file == _STDIN else [shell_command("detect", file, options=["--json"])]
    session.next(*as_json, "assay regressions AGENT")
    return 0


@contextlib.contextmanager
def _show_progress(session: Session) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal, once the search has taken a second."""
    if session.is_quiet or not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.progress import Progress

    started = time.monotonic()
    with Progress(console=session.error_console(), transient=True) as bar:

        def report(share: float) -> None:
            if time.monotonic() - started > _PATIENCE and not bar.tasks:
                bar.add_task("Searching for changes", total=1.0)
            for task in bar.task_ids:
                bar.update(task, completed=share)

        yield report


def _detect_lines(file: str) -> int:
    """Answer each line as it arrives, so that another program can send one question after the other."""
    is_whole = True
    for number, line in enumerate(_lines(file), 1):
        if line.strip():
            answer = _answer(line, number)
            is_whole &= "error" not in answer
            echo(json.dumps(answer, allow_nan=False))
    return 0 if is_whole else 2


def _answer(line: bytes, number: int) -> dict[str, Any]:
    """The change points of one line, or what is wrong with it; either way line n of the output answers line n of the input."""
    from assay.report.documents.answers import bad_line_document, change_points_document
    from assay.stats import changepoint

    try:
        return change_points_document(changepoint.detect(_json_list(_decode_utf8(line))))
    except SeriesError as error:
        return bad_line_document(number, error)


def read_series(text: str) -> list[float]:
    """The numbers of a JSON list, or of lines with one number each. SeriesError names the first that is not finite.

    >>> read_series("[1, 2.5]"), read_series("1\\n2.5\\n")
    ([1.0, 2.5], [1.0, 2.5])
    """
    stripped = text.strip()
    if not stripped:
        raise SeriesError("There are no numbers. Give a JSON list, or one number per line.")
    if stripped[0] in '[{"':
        return _json_list(stripped)
    values = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line:
            continue
        try:
            value = float(line)
        except ValueError:
            raise _not_a_number(line, f"line {number}") from None
        values.append(_finite(value, f"line {number}"))
    return values


def _json_list(text: str) -> list[float]:
    """A list of finite numbers from JSON; SeriesError says which value is none, by its position."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise SeriesError(f"This is not JSON: {error}. Give a list of numbers, as in [1.0, 1.2].") from None
    except RecursionError:
        raise SeriesError("The lists are nested too deeply. Give a flat list of numbers.") from None
    if not isinstance(values, list):
        raise SeriesError(f"Expected a list of numbers, as in [1.0, 1.2], not {_format_value(values)}.")
    return [_from_json(value, place) for place, value in enumerate(values)]


def _from_json(value: Any, place: int) -> float:
    """A number of the list. JSON allows integers that are too large for a float; they count as infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _not_a_number(value, f"position {place}")
    try:
        return _finite(float(value), f"position {place}")
    except OverflowError:
        return _finite(math.inf, f"position {place}")


def _finite(number: float, where: str) -> float:
    if not math.isfinite(number):
        raise SeriesError(f"The value at {where} is {number}, not a finite number. {_REMEDY}")
    return number


def _not_a_number(value: Any, where: str) -> SeriesError:
    return SeriesError(f"The value at {where} is {_format_value(value)}, not a number. {_REMEDY}")


def _format_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"


def _text(file: str) -> str:
    if file == _STDIN:
        return _decode_utf8(sys.stdin.buffer.read())
    try:
        return _decode_utf8(read_bytes(Path(file)))
    except UnreadableFile as error:
        raise SeriesError(f"{error} Give a file of numbers, or - for standard input.") from None


def _decode_utf8(line: bytes) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SeriesError("The input is not UTF-8 text. Give a JSON list, or one number per line.") from None


def _lines(file: str) -> Iterator[bytes]:
    """The lines of a file, a pipe or standard input, each as soon as it is there."""
    if file == _STDIN:
        yield from sys.stdin.buffer
        return
    try:
        if Path(file).is_fifo():
            # Opened as a file it would block for ever where nothing writes to it.
            yield from read_bytes(Path(file)).splitlines(keepends=True)
            return
        with Path(file).open("rb") as opened:
            while line := opened.readline(_LONGEST_LINE + 1):
                if len(line) > _LONGEST_LINE:
                    raise SeriesError(f"'{file}' has a line of more than {_LONGEST_LINE:,} bytes.")
                yield line
    except UnreadableFile as error:
        raise SeriesError(f"{error} Give a file of numbers, or - for standard input.") from None
    except OSError as error:
        raise SeriesError(
            f"'{file}' cannot be read: {error.strerror}. Give a file of numbers, or - for standard input."
        ) from None
