"""The protocol of one request to a program and its answer, independent of how the caller waits.

A dialogue yields what it waits for, and is resumed when that may have come or after a tenth of a second at the latest: a
program whose output is held open by a process that it left behind is seen to have ended. So the same steps serve a plain
caller, who polls, and an event loop.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from enum import Enum
from time import perf_counter
from typing import Any

from assay.builtin.agents.child import Child
from assay.dialects.plain import answer_of
from assay.dialects.reading import Pieces, decode_utf8, excerpt, parse_json
from assay.model import Answer
from assay.plugin import AgentError, InvalidAnswer
from assay.units import format_count

LONGEST_WAIT = 0.1
"""Seconds after which a dialogue is resumed at the latest."""
MOMENT = 0.005
"""Seconds between two looks at whether a program has ended."""
_GRACE_SECONDS = 1.0
_ANSWERING = frozenset(("output", "error", "tool_calls"))
_EXPECTED = (
    'Expected a line such as {"id": "1", "output": "…"}; for plain text, set mode: once and plain: true'
)


class Wait(Enum):
    """What a dialogue waits for before it can continue."""

    READABLE = 1
    READABLE_OR_WRITABLE = 2
    MOMENT = 3


class RequestUnread(AgentError):
    """The program ended or closed a pipe after its last answer, and read nothing of this request."""


Dialogue = Iterator[Wait]
Reading = Generator[Wait, None, bytes]


class DialogueState:
    """The state of one request to a program: with whom, what is still to be sent, and what came back.

    A program may answer late, twice, or before it has read the whole request. The state therefore counts
    what was sent and received, and is settled only when the program has said its last word on this
    request and may be asked the next.
    """

    __slots__ = (
        "_late_until", "_most_bytes", "_received", "_sent", "_unsent", "answer", "child", "is_last",
        "is_settled", "number", "started",
    )  # fmt: skip

    def __init__(self, child: Child, line: bytes, most_bytes: int, is_last: bool) -> None:
        self.child = child
        self.number = child.served
        self.answer: Answer
        self.is_settled = False
        """The program has said its last word on this request, and may be asked the next."""
        self.is_last = is_last
        """No other request follows: the program sees the end of its input."""
        self.started = perf_counter()
        self._unsent = memoryview(line)
        self._sent = 0
        self._most_bytes = most_bytes
        self._received = 0
        self._late_until = 0.0

    def settle(self, document: dict[str, Any], pieces: Pieces) -> None:
        self.is_settled = True
        self.answer = answer_of(document, pieces)

    def expect_soon(self) -> None:
        """A late answer to the request before came in: the right one must follow soon."""
        self.child.remark(f"a second answer to request {self.number - 1} was ignored")
        self._late_until = self._late_until or perf_counter() + _GRACE_SECONDS

    def receive(self) -> Reading:
        """What the program says next; nothing when it has said all. Meanwhile it is told what is still unsent."""
        while True:
            yield self._write()
            data = self.child.read()
            if data is None and self.child.exit_code() is not None:
                # A process that it left behind may hold the pipe open.
                data = self.child.read() or b""
            if data is not None:
                self._received += len(data)
                if self._received > self._most_bytes:
                    raise InvalidAnswer(f"the answer has more than {self._most_bytes:,} bytes")
                return data
            self._check_is_alive()

    def _write(self) -> Wait:
        """Write as much as the pipe takes, and say what to wait for next."""
        if self._unsent:
            try:
                written = self.child.write(self._unsent)
            except BrokenPipeError:
                # The pipe has no reader any more; what is in the pipe may still be an answer.
                self._unsent = self._unsent[:0]
                return Wait.READABLE
            self._sent += written
            self._unsent = self._unsent[written:]
            if self._unsent:
                return Wait.READABLE_OR_WRITABLE
            if self.is_last:
                self.child.finish_writing()
        return Wait.READABLE

    def check_is_read(self) -> None:
        """RequestUnread where the program can no longer read or answer and has read nothing of this request.

        It closed a pipe or ended after its last answer then, which must not cost this request.
        """
        if self._received or self.child.count_unread_bytes() < self._sent:
            return
        if self.number == 1:
            raise AgentError("it closed its standard input without reading the request")
        has_ended = self.child.exit_code() is not None
        self.child.fault = f"it {'ended' if has_ended else 'closed a pipe'} after its last answer"
        raise RequestUnread(self.child.fault)

    def _check_is_alive(self) -> None:
        """Raises where no answer can come any more, although nothing has ended yet."""
        self.child.drain_flood()
        if not self.is_last and self.child.has_closed_input():
            self.check_is_read()
        if self._late_until and perf_counter() > self._late_until:
            raise InvalidAnswer(
                f"the program answered request {self.number - 1} again instead of request {self.number}"
            )


def in_lines(talk: DialogueState) -> Dialogue:
    """The program stays up: it reads a line and answers with one, after as many pieces as it likes."""
    pieces = Pieces(talk.started)
    lines = talk.child.lines
    while data := (yield from talk.receive()):
        found = lines.feed(data, perf_counter())
        for place, (line, at) in enumerate(found, 1):
            try:
                document = _object(decode_utf8(line))
            except InvalidAnswer as problem:
                raise InvalidAnswer(f"{problem}. {_EXPECTED}") from None
            if _is_late(document, talk):
                talk.expect_soon()
            elif "delta" in document:
                pieces.add(document["delta"], at)
            else:
                if excess := len(found) - place:
                    were = "was" if excess == 1 else "were"
                    talk.child.remark(f"{format_count(excess, 'line')} after the answer {were} ignored")
                talk.settle(document, pieces)
                return
    if talk.number > 1:
        talk.check_is_read()
    when = "in the middle of an answer" if pieces or lines.finish() else "instead of answering"
    code = yield from _exit_code(talk, _GRACE_SECONDS)
    if code is None:
        raise AgentError(f"it closed its standard output {when}")
    raise _exit_error(code, when)


def _object(text: str) -> dict[str, Any]:
    document = parse_json(text)
    if not isinstance(document, dict):
        raise InvalidAnswer(f"a line must be a JSON object: {excerpt(text)}")
    return document


def _is_late(document: dict[str, Any], talk: DialogueState) -> bool:
    """Whether it is a second answer to the request before; with any other number it is none at all."""
    given = document.get("id")
    if given == str(talk.number):
        return False
    if given is None:
        raise InvalidAnswer(f"the answer has no 'id': {excerpt(repr(document))}")
    if talk.number > 1 and given == str(talk.number - 1):
        return True
    raise InvalidAnswer(f"response id is {given!r}, expected '{talk.number}'")


def _exit_code(talk: DialogueState, timeout: float) -> Generator[Wait, None, int | None]:
    """The exit code of the program, waited for at most `timeout` seconds; None where it has not ended by then."""
    until = perf_counter() + timeout
    while (code := talk.child.exit_code()) is None and perf_counter() < until:
        yield Wait.MOMENT
    return code


def _exit_error(code: int, when: str = "") -> AgentError:
    from assay.execute.supervise import describe_exit

    error = AgentError(f"{describe_exit(code)} {when}".rstrip())
    error.exit_code = code
    return error


def once(talk: DialogueState, is_plain: bool) -> Dialogue:
    """The program reads one line, answers, and exits; what else it printed before is passed over."""
    pieces = Pieces(talk.started)
    output: list[bytes] = []
    while data := (yield from talk.receive()):
        found = talk.child.lines.feed(data, perf_counter())
        output += [line for line, at in found if not _took_piece(line, at, pieces)]
    output += [line for line, _ in talk.child.lines.finish()]
    code = yield from _exit_code(talk, float("inf"))
    if code:
        raise _exit_error(code)
    _settle_once(talk, output, pieces, is_plain)


def _took_piece(line: bytes, at: float, pieces: Pieces) -> bool:
    """Whether the line was a piece of a streamed answer, which is then added to the pieces."""
    if b'"delta"' not in line:
        return False
    document = _object_or_none(line)
    if document is None or "delta" not in document:
        return False
    pieces.add(document["delta"], at)
    return True


def _settle_once(talk: DialogueState, output: list[bytes], pieces: Pieces, is_plain: bool) -> None:
    """The answer of a program that has ended: the last line that is one, else its pieces, else, with `plain`, all it printed."""
    last = next((line for line in reversed(output) if line.strip()), b"")
    document = _answering(last)
    if document is not None:
        if document.get("id", "1") != "1":
            raise InvalidAnswer(f"response id is {document['id']!r}, expected '1'")
        if earlier := sum(_answering(line) is not None for line in output) - 1:
            were = "was" if earlier == 1 else "were"
            talk.child.remark(f"{format_count(earlier, 'answer')} before the last {were} ignored")
        talk.settle(document, pieces)
    elif pieces and not last:
        talk.settle({}, pieces)
    elif is_plain:
        talk.settle({"output": decode_utf8(b"\n".join(output)).strip("\r\n")}, pieces)
    elif last:
        text = excerpt(decode_utf8(last))
        raise InvalidAnswer(f"its last line is not an answer: {text}. With 'plain: true' any text is one")
    else:
        raise InvalidAnswer("it ended without an answer")


def _answering(line: bytes) -> dict[str, Any] | None:
    """The object of a line, if it is an answer."""
    document = _object_or_none(line) if line.lstrip().startswith(b"{") else None
    return document if document is not None and document.keys() & _ANSWERING else None


def _object_or_none(line: bytes) -> dict[str, Any] | None:
    try:
        return _object(decode_utf8(line))
    except InvalidAnswer:
        return None
