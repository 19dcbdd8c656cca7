"""Requests over HTTP as agents make them: tried again within bounds, and throttled.

`Caller` belongs to one agent and sends all its requests. A request goes through a loop: enter the throttle, send, read the
answer; on a refusal that is worth another try (429, 5xx, no connection) back off and start over. `retries` has the rules
of waiting, `throttle` the limit that all requests of an agent share. `_Course` keeps what happened to one request, so that
an answer comes with its earlier attempts and an error says how far it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, ClassVar, Protocol, TypeVar
from urllib.parse import urlsplit

from assay.builtin.agents.retries import LONGEST_WAIT, Backoff, Refusal, retry_after
from assay.builtin.agents.throttle import Throttle
from assay.dialects.reading import decode_utf8, excerpt
from assay.http.client import HttpClient, Stream
from assay.http.errors import (
    BadRequest,
    BadResponse,
    ConnectFailed,
    Disconnected,
    HttpError,
    ResponseTooLarge,
)
from assay.http.events import Parser
from assay.http.request import is_loopback, prepare
from assay.model import Answer, Span
from assay.model.redaction import known_secrets, redact
from assay.plugin import AgentError, BadAgent, InvalidAnswer, is_judging, report_judge_retry, seconds_left

Read = Callable[[Stream], Awaitable[Answer]]
MAX_BYTES = 32 * 2**20
_SIMULATED = "x-assay-simulated"
_FEWEST_CONNECTIONS = 100
_EXCERPT = 500
_NOTICEABLE = 0.001


class AgentOverHttp:
    """What agents behind a URL have in common: a caller that is opened, closed, or replaced by a cassette."""

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = False
    _caller: Caller

    @property
    def is_remote(self) -> bool:
        return self._caller.is_remote

    def answer_from(self, cassette: object, folder: Path) -> None:
        self._caller.answer_from(cassette, folder)

    def open(self) -> None:
        self._caller.open()

    async def close(self) -> None:
        await self._caller.close()


class Caller:
    """One agent's way to its server: every request goes to the same URL with the same headers.

    A request that was refused with 429 or 5xx, or that found no connection, is sent again after a
    backoff, at most `retries` times. All requests of the agent share a throttle: after the first 429 it
    limits how many are under way, ever fewer with each refusal and more again with successes. Secrets in
    headers and URL are made known to redaction before anything is sent.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, object],
        retries: int = 3,
        backoff: float = 0.5,
        concurrency: int = 1,
        max_bytes: int = MAX_BYTES,
        kind: str = "llm",
    ) -> None:
        given = {str(name): str(value) for name, value in headers.items()}
        self._url = url
        self._headers = {"content-type": "application/json", **given}
        known_secrets().learn_headers(given)
        known_secrets().learn_url(url)
        self._retries = retries
        self._backoff = Backoff(backoff)
        self._throttle = Throttle()
        self._connections = max(_FEWEST_CONNECTIONS, concurrency)
        self._max_bytes = max_bytes
        self._kind = kind
        self._is_given_up = False
        self._client: HttpClient | None = None
        self._replaying_client: HttpClient | None = None
        try:
            prepare("POST", url, self._headers)
        except BadRequest as problem:
            raise BadAgent(str(problem)) from None
        if not isinstance(retries, int) or retries < 0:
            raise BadAgent(f"'retries' must be a whole number of at least 0, not {retries!r}.")

    @property
    def is_remote(self) -> bool:
        """Whether the server is on another machine, as far as its name tells."""
        return not is_loopback(urlsplit(self._url).hostname or "")

    def answer_from(self, cassette: object, folder: Path) -> None:
        """Take the answers from a cassette in the place of the network."""
        from assay.cassette.client import replaying

        self._replaying_client = replaying(cassette, folder)

    def open(self) -> None:
        self._client = self._replaying_client or HttpClient(
            max_connections=self._connections, max_response_bytes=self._max_bytes
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def ask(self, body: bytes, read: Read, span: str) -> Answer:
        """What `read` makes of a response that is no error, with every earlier try; AgentError when all have failed."""
        course = _Course(span, self._kind)
        with course:
            while True:
                outcome = await self._try(body, read, course)
                if isinstance(outcome, Answer):
                    return course.complete_answer(outcome)
                if len(course.attempts) > self._max_retries(outcome) or not outcome.is_worth_another_try:
                    self._is_given_up = outcome.is_unreachable
                    raise AgentError(course.format_refusal(outcome))
                report_judge_retry()
                await course.pause(self._backoff.seconds(len(course.attempts), outcome.retry_after))

    def _max_retries(self, refusal: Refusal) -> int:
        """A judge that cannot be reached is tried twice, then once an output until it answers again.

        Its outputs are kept and can be scored later, so a run need not wait for it. An agent under test gets all retries.
        """
        if refusal.is_unreachable and is_judging():
            return 0 if self._is_given_up else min(1, self._retries)
        return self._retries

    async def _try(self, body: bytes, read: Read, course: _Course) -> Answer | Refusal:
        """One attempt: wait for the throttle, send, and record the outcome in the course."""
        # What an earlier case was told to wait may take half of this one's time, but not all of it.
        await course.wait(self._throttle.enter(seconds_left() / 2))
        sent, started = monotonic(), perf_counter()
        try:
            outcome = await self._send(body, read, course)
            self._take_note(outcome, sent)
        except AgentError as error:
            raise type(error)(course.format_failure(str(error))) from None
        finally:
            self._throttle.leave()
            course.record_call(started)
        if isinstance(outcome, Refusal):
            course.add(outcome, perf_counter() - started)
        return outcome

    def _take_note(self, outcome: Answer | Refusal, sent: float) -> None:
        """Let the throttle learn from the outcome of a request that was sent at that time (monotonic)."""
        if isinstance(outcome, Answer):
            self._throttle.record_success()
            self._is_given_up = False
        elif outcome.status == 429:
            wait = outcome.retry_after or 0.0
            # A longer wait is not about the pace of requests, as with a quota of the day: other cases ask for themselves.
            self._throttle.record_refusal(sent, wait if wait <= LONGEST_WAIT else 0.0)

    async def _send(self, body: bytes, read: Read, course: _Course) -> Answer | Refusal:
        """Send once. A Refusal may be tried again; an AgentError may not, because the server had begun to answer."""
        if self._client is None:
            raise AgentError("the agent was asked before it was opened")
        try:
            async with self._client.stream("POST", self._url, body, self._headers) as stream:
                if stream.status >= 300:
                    try:
                        refused = await stream.read()
                    except Disconnected as error:
                        refused = error.received
                    wait = retry_after(stream.headers.get("retry-after"))
                    return Refusal(stream.status, _beginning(refused), wait)
                course.is_simulated = _SIMULATED in stream.headers
                answer = await _read_all(stream, read)
                course.answered_in = stream.ended - stream.sent
                return answer
        except ConnectFailed as error:
            return Refusal(None, str(error), is_unreachable=True)
        except Disconnected as error:
            return Refusal(None, str(error))
        except (BadResponse, ResponseTooLarge) as error:
            raise InvalidAnswer(str(error)) from None
        except HttpError as error:
            raise AgentError(str(error)) from None

    async def look_up(self, path: str, body: bytes | None = None) -> Any:
        """The JSON at another path of the same server, by POST where there is a body; AgentError where there is none."""
        if self._client is None:
            raise AgentError("the server was asked before the agent was opened")
        place = urlsplit(self._url)._replace(path=path, query="").geturl()
        method = "GET" if body is None else "POST"
        try:
            response = await self._client.request(method, place, body or b"", self._headers)
            if response.status < 300:
                return response.json()
        except HttpError as error:
            raise AgentError(f"{path}: {error}") from None
        raise AgentError(f"{path}: HTTP {response.status}: {_beginning(response.body)}")


def _beginning(body: bytes) -> str:
    """Redact first, then cut: half of a secret would not be recognised."""
    text: str = redact(body.decode(errors="replace").strip())
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


async def _read_all(stream: Stream, read: Read) -> Answer:
    """Read an answer to its end. It is not requested again once it has begun: it may have been paid for, and a cut-off is a fault to count."""
    try:
        return await read(stream)
    except Disconnected as error:
        raise AgentError(f"the answer was cut off: {error}") from None
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        # A list where an object should be, text where a number should be: there are more of these than can be foreseen.
        raise InvalidAnswer(
            f"the answer does not follow its protocol: {type(error).__name__}: {error}"
        ) from None


class _Course:
    """How a request went until now: its tries, and where the time was spent.

    It is used as a context: a request that is given up, by an error or because its time is up, leaves a
    call record with all earlier tries, so that a report can show how far it had come.
    """

    def __init__(self, span: str, kind: str) -> None:
        self._span, self._kind = span, kind
        self._began = perf_counter()
        self._is_waiting = False
        self._spans: list[Span] = []
        self.attempts: list[dict[str, object]] = []
        self.is_simulated = False
        self.answered_in: float | None = None

    async def wait(self, waiting: Awaitable[None]) -> None:
        """Await something before a try, and record it as a span where anybody would notice it."""
        started = perf_counter()
        self._is_waiting = True
        await waiting
        self._is_waiting = False
        seconds = perf_counter() - started
        if seconds >= _NOTICEABLE:
            self._spans.append(Span("waiting", "queue", started - self._began, seconds))

    async def pause(self, seconds: float) -> None:
        """Wait before the next try, and note with the last try how long that was.

        The wait is noted also if it was cut short because the time of the case was up.
        """
        started = perf_counter()
        try:
            await self.wait(asyncio.sleep(seconds))
        finally:
            self.attempts[-1]["waited"] = perf_counter() - started

    def record_call(self, started: float) -> None:
        self._spans.append(Span(self._span, self._kind, started - self._began, perf_counter() - started))

    def add(self, refusal: Refusal, seconds: float) -> None:
        attempt: dict[str, object] = {"error": refusal.text, "seconds": seconds, "status": refusal.status}
        if refusal.retry_after is not None:
            attempt["retry_after"] = refusal.retry_after
        self.attempts.append(attempt)

    def complete_answer(self, answer: Answer) -> Answer:
        spans, attempts = (*self._spans, *answer.spans), tuple(self.attempts)
        return replace(
            answer, spans=spans, attempts=attempts, is_simulated=self.is_simulated, seconds=self.answered_in
        )

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Say in the error how far the request got, for callers that give up on it."""
        if not isinstance(error, asyncio.CancelledError):
            return
        tries = _format_attempts(self.attempts)
        if self._is_waiting:
            error.add_note(
                "waiting for the server to accept more requests" if not tries else "waiting to retry"
            )
        if tries:
            error.add_note(f"earlier attempts: {tries}")

    def format_refusal(self, last: Refusal) -> str:
        """Describe a refusal of the last try, which is among the attempts."""
        hint = "" if last.retry_after is None else f" (Retry-After {last.retry_after:,.0f} s)"
        return _with_earlier(str(last) + hint, self.attempts[:-1])

    def format_failure(self, text: str) -> str:
        """Describe a failure of the last try that is not among the attempts."""
        return _with_earlier(text, self.attempts)


def _with_earlier(text: str, earlier: Sequence[Mapping[str, object]]) -> str:
    return (
        f"{text} (attempt {len(earlier) + 1}; earlier attempts: {_format_attempts(earlier)})"
        if earlier
        else text
    )


def _format_attempts(attempts: Sequence[Mapping[str, object]]) -> str:
    texts = []
    for attempt in attempts:
        status, retry_after, waited = (attempt.get(key) for key in ("status", "retry_after", "waited"))
        wait = "" if waited is None else f", waited {waited:.1f} s"
        texts.append(
            str(status or "no answer")
            if retry_after is None
            else f"{status} (Retry-After {retry_after:,.0f} s{wait})"
        )
    return ", ".join(texts)


T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Assembly(Protocol[T_contra]):
    """An answer put together from what is streamed.

    `take` gets every event or line of the stream in order, and `answer` is called once after the last. `is_complete` says
    whether the protocol's own sign of the end has come: a stream that breaks off before it is an error, never an answer.
    """

    is_complete: bool

    def take(self, part: T_contra) -> None: ...

    def answer(self) -> Answer: ...


async def assemble_answer(stream: Stream, parser: Parser[T], assembly: Assembly[T]) -> Answer:
    """Feed a whole stream through the parser into the assembly; each part keeps the time at which its bytes arrived."""
    has_parts = False
    async for data, at in stream.pieces():
        for part in parser.feed(data, at):
            assembly.take(part)
            has_parts = True
    for part in parser.finish():
        assembly.take(part)
        has_parts = True
    if assembly.is_complete:
        return assembly.answer()
    if has_parts or not stream.arrived:
        raise AgentError("the stream ended before the answer did")
    begins = excerpt(stream.arrived[0].data.decode(errors="replace"))
    raise InvalidAnswer(f"the answer is not a stream; it begins: {begins}")


async def whole_text(stream: Stream) -> str:
    return decode_utf8(await stream.read())


def is_json(stream: Stream) -> bool:
    """Whether the server answered with one JSON document although a stream was requested."""
    return stream.headers.get("content-type", "").startswith("application/json")
