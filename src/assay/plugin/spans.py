"""How Python code says what it is doing: spans, which the profile of an execution is made of.

    from assay import span

    def answer(question):
        with span("search", kind="tool", input=question) as search:
            search.record(output=(pages := find_pages(question)))
        prompt = f"{pages} {question}"
        with span("ask model", kind="llm", input=prompt) as call:
            reply = client.ask(prompt)
            call.record(output=reply.text, input_tokens=reply.tokens_in, output_tokens=reply.tokens_out)
        return reply.text

Inputs and outputs are never stored: a span keeps a hash of its input, how much of it an earlier input began with, and which earlier
outputs it uses. That is enough to find repeated calls, prompts that grow, and calls that need not wait for each other. Outside of an
execution `span` does nothing, so that code with spans runs anywhere.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from contextvars import ContextVar
from hashlib import blake2s
from time import perf_counter
from types import TracebackType
from typing import Any

from assay.model.answer import Span, Usage

KINDS = ("llm", "tool", "agent", "queue")
_TEXT_LIMIT = 200_000
"""Characters of an input or output that are looked at."""
_COMPARED = 20
"""Earlier inputs that a new one is compared with, the latest first."""
_WORDS = re.compile(r"\w{4,}")
_LITERALS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class SpanCollector:
    """The spans of one call of an agent or an experiment, in the order in which they began.

    It is a context manager: within it, `span` in the same thread or task adds to it. Threads that the code starts know nothing of it;
    their spans belong to it as long as no other collector is open in this process.

    Every call of a Python agent has one, within its timed part, so it does as little as possible before the first span.
    """

    __slots__ = ("_seen", "_token", "began", "spans")

    def __init__(self) -> None:
        self.spans: list[SpanRecorder] = []
        self._seen: set[str] | None = None

    @property
    def seen(self) -> set[str]:
        """Words of all inputs so far."""
        if self._seen is None:
            self._seen = set()
        return self._seen

    def __enter__(self) -> SpanCollector:
        self._token = _current.set(self)
        _open.append(self)
        self.began = perf_counter()
        return self

    def __exit__(self, *raised: object) -> None:
        _open.remove(self)
        _current.reset(self._token)

    def take(self) -> tuple[Span, ...]:
        """The spans so far; one that is still open lasts until now."""
        now = perf_counter()
        return tuple(recorder.build(now) for recorder in self.spans)


_current: ContextVar[SpanCollector | None] = ContextVar("assay_spans", default=None)
_parent: ContextVar[int | None] = ContextVar("assay_span", default=None)
_open: list[SpanCollector] = []


class SpanRecorder:
    """A part of an execution that has begun; use it as `with`.

    `record` adds what is known only when the work is done, such as token counts. Spans nest: one that
    begins within another is its child. Outside of an execution nothing is recorded, so instrumented code
    runs anywhere.
    """

    __slots__ = (
        "_attributes", "_collector", "_end", "_input", "_novel", "_outer", "_parent", "_place", "_start", "kind", "name",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, given: object) -> None:
        if kind not in KINDS:
            raise ValueError(f"The kind of span '{name}' is one of {', '.join(KINDS)}, not {kind!r}.")
        self.name, self.kind = name, kind
        self._input = given
        self._attributes: dict[str, Any] = {}
        self._collector: SpanCollector | None = None
        self._end: float | None = None
        self._novel: set[str] = set()
        """Words of its output that no input had before."""

    def __enter__(self) -> SpanRecorder:
        self._collector = _current.get() or (_open[0] if len(_open) == 1 else None)
        self._outer = None
        if self._collector is not None:
            if self._input is not None:
                self._describe_input(self._collector)
            self._parent = _parent.get() if _current.get() is not None else None
            self._place = len(self._collector.spans)
            self._collector.spans.append(self)
            self._outer = _parent.set(self._place)
        self._start = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end = perf_counter()
        if self._outer is not None:
            # A generator may be left in another context than it was entered in.
            with suppress(ValueError):
                _parent.reset(self._outer)
        if kind is not None:
            self._attributes["error"] = kind.__name__

    def record(
        self,
        *,
        output: object = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
    ) -> None:
        """Add the output, by which later spans are known to depend on this one, and the tokens of a model call."""
        counts = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cached_tokens": cached_tokens,
        }
        self._attributes |= {name: count for name, count in counts.items() if count is not None}
        if output is None or self._collector is None:
            return
        text = _text_of(output)
        self._attributes["output_hash"] = _hash(text)
        self._novel = (_words(text) or {text.strip()}) - self._collector.seen

    def _describe_input(self, collector: SpanCollector) -> None:
        text = _text_of(self._input)
        self._input = text
        earlier = [s for s in collector.spans if s.kind == self.kind and isinstance(s._input, str)]
        words = _words(text) | set(re.findall(r"\w+", text[:2000]))
        self._attributes |= {
            "input_hash": _hash(text),
            "input_shape": _hash(_LITERALS.sub("?", text)),
            "input_characters": len(text),
            "prefix_characters": max(
                (_common_prefix(text, str(s._input)) for s in earlier[-_COMPARED:]), default=0
            ),
            "uses": [place for place, s in enumerate(collector.spans) if s._novel & words][-_COMPARED:],
        }
        collector.seen.update(words)

    def build(self, now: float) -> Span:
        """What is kept of it; its texts are not."""
        assert self._collector is not None
        end = now if self._end is None else self._end
        start = self._start - self._collector.began
        attributes = {name: value for name, value in self._attributes.items() if value != []}
        return Span(self.name, self.kind, max(0.0, start), end - self._start, self._parent, attributes)


def span(name: str, kind: str = "agent", *, input: object = None) -> SpanRecorder:
    """Record a part of an execution, as a context manager; works in sync and async code and in threads.

    `kind` is llm for a model call, tool for any other call, queue for waiting, and agent for the code's own work. With `input`,
    Assay can find repeated and independent calls.
    """
    return SpanRecorder(name, kind, input)


def usage_of_spans(spans: tuple[Span, ...]) -> Usage | None:
    """The tokens of all model calls together; None where no call has any, and unknown where one of them has none."""
    calls = [span.attributes for span in spans if span.kind == "llm"]
    if not any("input_tokens" in call or "output_tokens" in call for call in calls):
        return None

    def total(name: str) -> int | None:
        counts = [call.get(name) for call in calls]
        return None if None in counts else sum(int(str(count)) for count in counts)

    return Usage(total("input_tokens"), total("output_tokens"), total("cached_tokens"), api_calls=len(calls))


def _text_of(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text[:_TEXT_LIMIT]


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text))


def _common_prefix(text: str, other: str) -> int:
    """How many characters two texts begin with in common; halving is quicker than comparing one by one."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(other[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def _hash(text: str) -> str:
    return blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
