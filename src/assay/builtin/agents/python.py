"""An agent that is a Python function.

## What a Python agent receives

The function is called once for each case, or once for each turn of a conversation. Its first parameter decides what it
gets:

| signature | what the function receives |
|---|---|
| `def ask(question)` | the input of the case: text, or whatever structure the case holds |
| `def ask(question, attempts=1, lang="en")` | further parameters get values by name: first from the metadata of the case, then from the agent's `params`, else their defaults |
| `def ask(question, **settings)` | all params and all metadata of the case |
| `def ask(request)` or `def ask(anything: Request)` | the whole request, a `Request` (below) |

A `params` key for which the function has no parameter is a mistake and is reported before the run. The correct output is
never shown: `request.expected` is None, and metadata that holds answers (such as `expected_calls` and `tests`) is left
out. An earlier turn of a conversation is in `request.history`, a list of `{"role": "user" | "assistant", "content": …}`.

## What it may return

| return | meaning |
|---|---|
| `"42"` | the output |
| any other value, such as a list or a dict with keys of its own | the output, as that value |
| `{"output": "42", "usage": {"input_tokens": 8, "output_tokens": 1}}` | output and facts about the answer; the keys are `output`, `usage`, `tool_calls`, `spans`, `usd`, `model`, `durations`, `log`, `simulated` and `error`, and `output` or `tool_calls` is there |
| an `Answer` (below) | the same, typed |
| `yield "4"`, then `yield "2"` | a generator streams its output; the time to the first piece is measured. A last `yield {"usage": {…}}` adds facts |
| `async def` | any of these, awaited; async functions and async generators are asked several cases at the same time |
| `raise` | the execution has failed, with the text of the exception; the run continues |

Wrap what it does in `with assay.span("search", kind="tool"):` to see in `assay profile` where its time and its tokens go.

```python
from assay.model import Answer, Request, Span, ToolCall, Usage


def plain(question):
    return question.upper()


def measured(question, attempts=1):
    return {"output": question.upper(), "usage": {"input_tokens": 8, "output_tokens": attempts}}


def typed(request: Request):
    calls = tuple(ToolCall(str(tool["name"]), {"id": 7}) for tool in request.tools)
    spans = (Span("think", "agent", start=0.0, seconds=0.001),)
    return Answer(f"turn {len(request.history) // 2 + 1}", calls, Usage(8, 2), usd=0.001, spans=spans)


def streamed(question):
    for word in question.split():
        yield word + " "
    yield {"usage": {"input_tokens": 8, "output_tokens": 2}, "model": "small-1"}
```
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import CodeType
from typing import Any, ClassVar

from assay.builtin.agents.version import version_of
from assay.dialects.plain import ANSWER_KEYS, NO_USAGE, answer_of
from assay.dialects.reading import Pieces
from assay.errors import AssayError
from assay.model import Answer, Request
from assay.plugin import (
    SESSION,
    BadAgent,
    ImportEnded,
    InvalidAnswer,
    SpanCollector,
    check_module,
    find_session_function,
    importing,
    load_file,
    usage_of_spans,
)

Call = Callable[[Request], Any]


class Python:
    """A Python function: sync, async, or a generator that streams its answer.

    See *What a Python agent receives* and *What it may return*.

    Args:
        target: The function, as file.py:function (counted from the folder of the file that defines the agent) or module:function.
        params: Values for the function's other parameters, by name.

    Example:
        - {name: fast, type: python, target: "agents.py:fast"}
        - {name: careful, type: python, target: "agents.py:ask", params: {attempts: 3}}
    """

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = False
    may_call_models: ClassVar[bool] = True
    is_local: ClassVar[bool] = True
    is_thread_safe: ClassVar[bool] = True
    """The definition of an agent whose function is not thread-safe says `concurrency: 1`."""

    answer: Callable[[Request], Awaitable[Answer] | Answer]
    """Async only where the function is: a plain function stays a plain call."""

    def __init__(self, target: str, params: Mapping[str, object] | None = None, folder: str = "") -> None:
        self._function = _find_function(target, Path(folder))
        self._call = _choose_call(self._function, params or {})
        # Chosen once and not at each request, so that a plain function costs no more than its own call.
        if _is(inspect.iscoroutinefunction, self._function):
            self.answer = self._answer_async
        elif _is(inspect.isasyncgenfunction, self._function):
            self.answer = self._answer_async_stream
        elif _is(inspect.isgeneratorfunction, self._function):
            self.answer = self._answer_stream
        else:
            self.answer = self._answer

    def open(self) -> None:
        return None

    def close(self) -> None:
        return None

    def found_version(self) -> str:
        """Return the version of the file that holds the function.

        A function of a notebook has no file; its version is a hash of its code.
        """
        code = getattr(inspect.unwrap(self._function), "__code__", None)
        return version_of(self.source_files()) or (_hash_of(code) if code is not None else "")

    def source_files(self) -> list[Path]:
        """The file that holds the function; none for a function of a notebook."""
        try:
            file = Path(inspect.getfile(inspect.unwrap(self._function)))
        except TypeError:
            return []
        return [file] if file.is_file() else []

    def _answer(self, request: Request) -> Answer:
        with SpanCollector() as collector:
            value = self._call(request)
        answer = Answer(value, (), NO_USAGE) if type(value) is str else _read(value)
        return _add_spans(answer, collector) if collector.spans else answer

    async def _answer_async(self, request: Request) -> Answer:
        with SpanCollector() as collector:
            answer = _read(await self._call(request))
        return _add_spans(answer, collector)

    def _answer_stream(self, request: Request) -> Answer:
        stream = _Stream()
        with SpanCollector() as collector:
            parts: Iterator[Any] = self._call(request)
            for part in parts:
                stream.take(part)
        return _add_spans(stream.answer(), collector)

    async def _answer_async_stream(self, request: Request) -> Answer:
        stream = _Stream()
        with SpanCollector() as collector:
            parts: AsyncIterator[Any] = self._call(request)
            async for part in parts:
                stream.take(part)
        return _add_spans(stream.answer(), collector)


def _add_spans(answer: Answer, collector: SpanCollector) -> Answer:
    """The answer with what `assay.span` saw; tokens that the function did not report are those of its model calls."""
    if not collector.spans:
        return answer
    spans = collector.take()
    usage = answer.usage if answer.usage != NO_USAGE else usage_of_spans(spans) or NO_USAGE
    return replace(answer, spans=(*spans, *answer.spans), usage=usage)


class _Stream:
    """Pieces of text, and at the end perhaps an object with usage and the like."""

    def __init__(self) -> None:
        self._pieces = Pieces(perf_counter())
        self._end: Mapping[str, Any] = {}

    def take(self, part: object) -> None:
        if isinstance(part, Mapping):
            self._end = part
        else:
            self._pieces.add(part, perf_counter())

    def answer(self) -> Answer:
        return answer_of({"output": self._pieces.text, **self._end}, self._pieces)


def _read(value: Any) -> Answer:
    if isinstance(value, Answer):
        return value
    if inspect.isawaitable(value) or isinstance(value, (Iterator, AsyncIterator)):
        if inspect.iscoroutine(value):
            value.close()
        raise InvalidAnswer(f"the function returned {type(value).__name__}: declare it async, or a generator")
    if isinstance(value, Mapping) and value.keys() <= ANSWER_KEYS and value.keys() & {"output", "tool_calls"}:
        return answer_of(value)
    return Answer(value, (), NO_USAGE)


def _find_function(target: str, folder: Path) -> Callable[..., Any]:
    if not isinstance(target, str) or not all(target.rpartition(":")):
        raise BadAgent(f'the target {target!r} must be written "file.py:function" or "module:function".')
    place, _, name = target.rpartition(":")
    try:
        if place == SESSION:
            return find_session_function(name)
        module = load_file(folder / place) if place.endswith(".py") else _module(place, folder)
    except AssayError as problem:
        raise BadAgent(str(problem)) from None
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function) or inspect.isclass(function):
        raise BadAgent(f"'{place}' has no function '{name}'.")
    return function  # type: ignore[no-any-return]


def _module(name: str, folder: Path) -> object:
    if (here := str(folder.resolve())) not in sys.path:
        sys.path.insert(0, here)
    try:
        with importing(name):
            check_module(name)
            return importlib.import_module(name)
    except ImportEnded as problem:
        raise BadAgent(str(problem)) from None
    except (Exception, SystemExit) as error:
        raise BadAgent(f"module '{name}' cannot be imported: {type(error).__name__}: {error}") from None


def _hash_of(code: CodeType) -> str:
    """Hash the source of a function with its nested functions, independently of line numbers."""
    digest = hashlib.sha256(code.co_code)
    for constant in code.co_consts:
        digest.update((_hash_of(constant) if isinstance(constant, CodeType) else repr(constant)).encode())
    digest.update(repr((code.co_names, code.co_varnames)).encode())
    return digest.hexdigest()[:10]


def _choose_call(function: Callable[..., Any], params: Mapping[str, object]) -> Call:
    """How the function wants to be called, decided once."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return lambda request: function(request.input)
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise BadAgent(f"the function '{function.__qualname__}' must take the input as its first parameter.")
    if parameters[0].name == "request" or parameters[0].annotation in (Request, "Request"):
        # Without the correct output, which an agent under test must not see.
        return lambda request: function(replace(request, params={**params, **request.params}, expected=None))
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return lambda request: function(request.input, **{**params, **request.params})
    names = [parameter.name for parameter in parameters[1:]]
    if unknown := sorted(set(params) - set(names)):
        raise BadAgent(f"the function '{function.__qualname__}' has no parameters for {', '.join(unknown)}.")
    if not names:
        return lambda request: function(request.input)

    def call_by_name(request: Request) -> Any:
        values = {**params, **request.params}
        return function(request.input, **{name: values[name] for name in names if name in values})

    return call_by_name


def _is(test: Callable[[Any], bool], function: Any) -> bool:
    """Apply the test to the function, and to `__call__` of an object that can be called."""
    return test(function) or test(getattr(function, "__call__", None))  # noqa: B004
