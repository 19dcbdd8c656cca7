"""An agent behind a URL of its own: a request is POSTed as JSON, and the answer is JSON, JSON lines or plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.builtin.agents.http_calls import MAX_BYTES, AgentOverHttp, Caller, assemble_answer, whole_text
from assay.dialects.plain import answer_of, request_line
from assay.dialects.reading import Pieces, excerpt, parse_json
from assay.http.client import Stream
from assay.http.events import JSON_LINES, NdjsonLine, NdjsonParser
from assay.model import Answer, Request
from assay.plugin import InvalidAnswer, value_at


class Http(AgentOverHttp):
    """An HTTP endpoint of your own: each case is sent by POST as JSON, and the answer is JSON, JSON lines or plain text.

    Args:
        url: Where requests are sent.
        headers: HTTP headers, such as Authorization; write secrets as ${NAME}.
        output: Where the output is in a JSON answer, such as choices.0.text. Default: the answer has the key `output`.
        params: Sent with every request as `params`.
        retries: How often a request is sent again after a refusal, a server error or a lost connection.
        backoff: Seconds before the first retry; each further one waits twice as long.
        max_bytes: Maximum size of an answer, in bytes.

    Example:
        - {name: web, type: http, url: "http://127.0.0.1:9000/ask", headers: {Authorization: "Bearer ${WEB_TOKEN}"}}
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, object] | None = None,
        output: str | None = None,
        params: Mapping[str, object] | None = None,
        retries: int = 3,
        backoff: float = 0.5,
        max_bytes: int = MAX_BYTES,
        concurrency: int = 1,
    ) -> None:
        self._caller = Caller(url, headers or {}, retries, backoff, concurrency, max_bytes, kind="agent")
        self._place = output or None
        self._params = dict(params or {})
        self._request_count = 0

    def found_version(self) -> str:
        return ""

    async def answer(self, request: Request) -> Answer:
        self._request_count += 1
        serial = str(self._request_count)

        async def read(stream: Stream) -> Answer:
            return await self._read(stream, serial)

        return await self._caller.ask(request_line(request, serial, self._params), read, "answer")

    async def _read(self, stream: Stream, serial: str) -> Answer:
        kind = stream.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in JSON_LINES:
            return await assemble_answer(stream, NdjsonParser(), _Lines(stream.sent, serial))
        text = await whole_text(stream)
        if self._place is not None:
            document = parse_json(text)
            try:
                return Answer(value_at(document, self._place))
            except LookupError:
                quoted = excerpt(repr(document))
                raise InvalidAnswer(f"the answer has nothing at '{self._place}': {quoted}") from None
        if kind.startswith("text/"):
            return Answer(text)
        return _answer(parse_json(text), serial, Pieces(stream.sent))


class _Lines:
    """An answer in JSON lines: {"delta": …} for each piece of the output, then one object with the rest."""

    def __init__(self, sent: float, serial: str) -> None:
        self.is_complete = False
        self._serial = serial
        self._pieces = Pieces(sent)
        self._last: Any = None

    def take(self, line: NdjsonLine) -> None:
        document = parse_json(line.text)
        if isinstance(document, Mapping) and "delta" in document:
            self._pieces.add(document["delta"], line.at)
        else:
            self.is_complete, self._last = True, document

    def answer(self) -> Answer:
        return _answer(self._last, self._serial, self._pieces)


def _answer(document: Any, serial: str, pieces: Pieces) -> Answer:
    is_answer = isinstance(document, Mapping) and document.keys() & {"output", "error", "tool_calls", "usage"}
    if not is_answer:
        raise InvalidAnswer(
            f"the answer has no 'output': {excerpt(repr(document))}. Say where it is: output: path.in.json"
        )
    if document.get("id", serial) != serial:
        raise InvalidAnswer(f"response id is {document['id']!r}, expected '{serial}'")
    return answer_of(document, pieces)
