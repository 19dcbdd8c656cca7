"""Files with a row for each request: data sets of prompts (`datasets`) and traces (`traces`).

They are CSV, JSON lines or plain text, optionally compressed with gzip, and may be larger than memory: rows are read one by one.
Every wrong row is collected with its line, and all are reported together when the file has been read.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from assay.errors import Mistake, SpecError
from assay.files import UnreadableFile, read_bytes

_MOST_TOLD = 20
"""Mistakes of one file; a file that is wrong throughout would bury them."""


@dataclass(slots=True)
class FileMistakes:
    """Mistakes of one file, of which the first are reported in full and the others counted."""

    path: Path
    mistakes: list[Mistake] = field(default_factory=list)
    more: int = 0

    def add(self, line: int | None, text: str) -> None:
        if len(self.mistakes) < _MOST_TOLD:
            self.mistakes.append(Mistake(str(self.path), line, "", text))
        else:
            self.more += 1

    def refuse(self) -> None:
        """Raise SpecError if there are any mistakes."""
        if self.more:
            wrong = "1 more line has errors" if self.more == 1 else f"{self.more} more lines have errors"
            self.mistakes.append(Mistake(str(self.path), None, "", wrong))
        if self.mistakes:
            raise SpecError(self.mistakes)


def kind_of_file(path: Path) -> str:
    """
    >>> kind_of_file(Path("a/trace.jsonl.gz")), kind_of_file(Path("trace.csv"))
    ('.jsonl', '.csv')
    """
    return Path(path.name.removesuffix(".gz")).suffix


def is_json_lines(path: Path) -> bool:
    return kind_of_file(path) in (".jsonl", ".ndjson")


@contextlib.contextmanager
def readable(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    """The file opened as text. Whatever goes wrong while it is read becomes a SpecError that says why."""
    try:
        with _open(path, newline) as file:
            yield file
    except UnreadableFile as error:
        raise SpecError([Mistake(str(path), None, "", error.problem)]) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise SpecError(
            [Mistake(str(path), None, "", "cannot be read: it is not a whole gzip file")]
        ) from None
    except OSError as error:
        raise SpecError([Mistake(str(path), None, "", f"cannot be read: {error.strerror}.")]) from None
    except UnicodeDecodeError:
        raise SpecError([Mistake(str(path), None, "", "is not UTF-8 text")]) from None


def _open(path: Path, newline: str | None) -> TextIO:
    """A regular file is read row by row; what may never end, such as a pipe or a device, is read first, up to a limit.

    The encoding drops a byte order mark, which spreadsheets write and which would become part of the first column's name.
    """
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline=newline)
    if path.is_file():
        return path.open(encoding="utf-8-sig", newline=newline)
    return io.TextIOWrapper(io.BytesIO(read_bytes(path)), encoding="utf-8-sig", newline=newline)


def csv_rows(
    path: Path, needed: Sequence[str], problem: str, wrong: FileMistakes
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells by the name of their column, in lower case.

    A file that has none of the `needed` columns is refused with `problem`; what is wrong later on is added to `wrong`.
    """
    with readable(path, newline="") as file:
        reader = csv.reader(file)
        try:
            names = [name.strip().lower() for name in next(reader, ())]
            if not set(names) & set(needed):
                raise SpecError([Mistake(str(path), 1, "", problem)])
            for row in reader:
                if any(row):
                    # Rows may be shorter than the one with the names.
                    cells = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
                    yield reader.line_num, cells
        except csv.Error as error:
            wrong.add(reader.line_num, f"cannot be read as CSV: {error}")


def json_rows(path: Path, wrong: FileMistakes) -> Iterator[tuple[int, Any]]:
    """Line and value of each line that is not empty."""
    with readable(path, newline="\n") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                wrong.add(number, f"not JSON: {error}")


def first_of(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the first of these names that the row has; None where it has none."""
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)
