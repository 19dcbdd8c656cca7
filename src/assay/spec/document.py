"""Text files as plain data that remembers on which line each key stands.

Every reader of specs, suites and team files starts from a `Document`, and names a mistake by a *place*: the keys and list positions that
lead to it, such as `("benchmarks", 0, "cases")`. The document translates the place to a line. PyYAML is imported only when a
file is actually read, because a run of an experiment named on the command line reads none.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import Mistake, SpecError
from assay.files import UnreadableFile, read_bytes

_log = logging.getLogger(__name__)
MAX_BYTES = 8 * 2**20
_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

Place = tuple[str | int, ...]


@dataclass(slots=True)
class Document:
    """A file's content and the line of every key in it.

    `file` is also what messages call a document that is not a file, such as `request` for what was given on the command line.
    """

    file: str
    value: Any
    lines: dict[Place, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    """Faults that left the rest readable, such as a key that stands twice."""
    cases: dict[tuple[str, str], tuple[str, int | None, str]] = field(default_factory=dict)
    """File, line and key of each case that the document holds or names, by the ids of benchmark and case."""

    def line(self, place: Place) -> int | None:
        """The line of the nearest enclosing key that the file really has.

        A mistake may be about a key that is missing, or about a default: the best that can be shown then is where it belongs.
        """
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)

    def mistake(self, place: Place, problem: str, hint: str = "") -> Mistake:
        return Mistake(self.file, self.line(place), ".".join(map(str, place)), problem, hint)


def read_document(path: Path) -> Document:
    """The content of a YAML or JSON file. Everything but `.json` is read as YAML, of which JSON is nearly a subset."""
    from assay.spec.yaml_text import parse, parse_json

    text = read_text(path)
    _log.debug("read %s (%d characters)", path, len(text))
    return (parse_json if path.suffix == ".json" else parse)(text, str(path))


def read_text(path: Path, limit: int | None = MAX_BYTES, errors: str = "strict") -> str:
    """The text of a file, or a SpecError that says why it cannot be read; `errors` is that of `bytes.decode()`."""
    try:
        content = read_bytes(path, limit)
        text = content.decode("utf-8-sig", errors)
    except UnreadableFile as error:
        is_large = error.problem.startswith("is larger")
        hint = "Put data in separate files." if is_large and limit == MAX_BYTES else ""
        raise SpecError([Mistake(str(path), None, "", error.problem, hint)]) from None
    except UnicodeDecodeError as error:
        if (encoding := _BYTE_ORDER_MARKS.get(content[:2])) is not None:
            mistake = Mistake(str(path), 1, "", f"is {encoding} text, not UTF-8.", "Save it as UTF-8.")
        else:
            line = content[: error.start].count(b"\n") + 1
            mistake = Mistake(str(path), line, "", f"is not UTF-8 text (byte {error.start}).")
        raise SpecError([mistake]) from None
    # As Python reads text files: a lone carriage return ends a line, too.
    return text.replace("\r\n", "\n").replace("\r", "\n")
