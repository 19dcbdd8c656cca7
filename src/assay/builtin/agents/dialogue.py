"""One request put to a program and its answer, without a word about how waiting is done.

A dialogue yields what it waits for and is resumed when that may have come, or after a second at the latest. So the same
steps serve a plain caller, who polls, and an event loop.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Any

from assay.builtin.agents.child import Child
from assay.builtin.agents.protocol import Pieces, answer_of, decoded, excerpt, parsed
from assay.model import Answer
from assay.plugin.agent import AgentError, InvalidAnswer

LONGEST_WAIT = 1.0
_GRACE_SECONDS = 1.0


class Wait(Enum):
    """What must happen before a dialogue can go on."""

    READABLE = 1
    READABLE_OR_WRITABLE = 2
    MOMENT = 3


Dialogue = Generator[Wait, None, Answer]


@dataclass(slots=True)
class Talk:
    """A dialogue's place: who with, how much was said, and what is odd about it."""

    child: Child
    serial: str
    max_bytes: int
    started: float
    received: int = 0
    remarks: str = ""

    def counted(self, data: bytes) -> bytes:
        self.received += len(data)
        if self.received > self.max_bytes:
            raise InvalidAnswer(f"the answer has more than {self.max_bytes:,} bytes")
        return data

    def remark(self, text: str) -> None:
        self.remarks += f"[{text}]\n"

    def log(self) -> str | None:
        return self.remarks + (self.child.log.take() or "") or None


def in_lines(talk: Talk, line: bytes) -> Dialogue:
    """The program stays up: it reads one line and answers with one, after as many pieces as it likes."""
    left_over = _passed_over(talk)
    yield from _written(talk, line + b"\n")
    pieces, late_until = Pieces(talk.started), 0.0
    unread = left_over
    while True:
        yield Wait.READABLE
        data = talk.child.read()
        if data is None:
            talk.child.log.drain_flood()
            if late_until and perf_counter() > late_until:
                raise InvalidAnswer(f"it answered request {int(talk.serial) - 1} again, and not request {talk.serial}")
            continue
        if not data:
            raise AgentError((yield from _how_it_ended(talk, bool(unread) or bool(pieces))))
        unread.append(talk.counted(data))
        if b"\n" not in data:
            continue
        *lines, rest = b"".join(unread).split(b"\n")
        unread = [rest] if rest else []
        for number, text in enumerate(lines, 1):
            document = _object(text, talk)
            if _is_late(document, talk):
                late_until = perf_counter() + _GRACE_SECONDS
            elif "delta" in document:
                pieces.add(document["delta"], perf_counter())
            else:
                _note_excess(talk, lines[number:], unread)
                return answer_of(document, pieces, talk.log())


def _note_excess(talk: Talk, lines: list[bytes], unread: list[bytes]) -> None:
    if lines or unread:
        talk.remark(f"{sum(map(len, lines + unread)):,} bytes came after the answer and were passed over")


def _passed_over(talk: Talk) -> list[bytes]:
    """What came since the last answer belongs to no request; an end is left for the reader to find."""
    late = b""
    while data := talk.child.read():
        late += talk.counted(data)
    *_, rest = late.split(b"\n")
    if late:
        talk.remark(f"{len(late):,} bytes came after the answer to request {int(talk.serial) - 1} and were passed over")
    talk.received = 0
    return [rest] if rest else []


def _object(line: bytes, talk: Talk) -> dict[str, Any]:
    document = parsed(decoded(line))
    if not isinstance(document, dict):
        raise InvalidAnswer(f"a line must be a JSON object: {excerpt(decoded(line))}")
    return document


def _is_late(document: dict[str, Any], talk: Talk) -> bool:
    """Whether this is a second answer to the request before; any other number is no answer."""
    given = document.get("id")
    if given == talk.serial:
        return False
    if given is None:
        raise InvalidAnswer(f"the answer has no 'id': {excerpt(repr(document))}")
    if given == str(int(talk.serial) - 1) and talk.serial != "1":
        talk.remark(f"a second answer to request {given} was passed over")
        return True
    raise InvalidAnswer(f"it answered request {given!r}, but was asked {talk.serial!r}")


def _written(talk: Talk, data: bytes) -> Iterator[Wait]:
    """All of it, also to a program that says much before it has read all; what it says meanwhile waits in the pipe."""
    view = memoryview(data)
    while view := view[talk.child.write(view) :]:
        talk.child.log.drain_flood()
        yield Wait.READABLE_OR_WRITABLE
