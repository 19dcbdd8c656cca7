"""The simulated server's side of Ollama's API: chat, generate, and the models in memory, with durations
in nanoseconds.

Both endpoints share their options and figures and differ only in where the text stands.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from assay.dialects.ollama import STREAM_TYPE
from assay.dialects.usage import OLLAMA as USAGE
from assay.simulator.dialects.dialect import Dialect, json_bytes, quoted
from assay.simulator.memory import LoadedModel
from assay.simulator.turn import (
    BadAsk,
    SimQuestion,
    SimTurn,
    flag,
    last_from_user,
    messages_in,
    seed_in,
    text_of,
)

MODEL = "sim-llm:latest"
KEEP_ALIVE = 300.0
_DURATION = re.compile(r"(-?\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DETAILS = {"format": "simulated", "family": "sim", "parameter_size": "0", "quantization_level": "none"}


class OllamaDialect(Dialect):
    """What /api/generate and /api/chat have in common.

    They differ in how a question is asked and in the field that holds the text; `around_token` is the JSON before and after
    that field's value, so that a line for a token is put together without an encoder. The last line has the server's figures.
    """

    stream_type = STREAM_TYPE
    around_token: ClassVar[tuple[str, str]]

    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        if turn.reply.calls:
            for call in self._calls(turn):
                message = {"role": "assistant", "content": "", "tool_calls": [call]}
                yield json_bytes({**_frame(turn), "message": message, "done": False}) + b"\n"
            return
        frame = json_bytes(_frame(turn)).decode()[:-1]
        before, after = self.around_token
        for token in turn.reply.tokens:
            yield f'{frame},{before}{quoted(token)}{after},"done":false}}\n'.encode(errors="replace")

    def closing(self, turn: SimTurn) -> bytes:
        return json_bytes({**_frame(turn), **self._build_text_fields(turn, ""), **_figures(turn)}) + b"\n"

    def whole(self, turn: SimTurn) -> bytes:
        return json_bytes(
            {**_frame(turn), **self._build_text_fields(turn, turn.reply.text), **_figures(turn)}
        )

    @abstractmethod
    def _build_text_fields(self, turn: SimTurn, text: str) -> dict[str, object]: ...

    def _calls(self, turn: SimTurn) -> list[dict[str, object]]:
        return [{"function": {"name": call.name, "arguments": call.arguments}} for call in turn.reply.calls]


class Generate(OllamaDialect):
    """A prompt without a conversation; without a prompt the model is only loaded, or with a keep-alive of 0 unloaded."""

    around_token = ('"response":', "")

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        prompt = document.get("prompt") or ""
        if not isinstance(prompt, str):
            raise BadAsk("'prompt' is not text.")
        texts = (text_of(document.get("system")), prompt)
        return SimQuestion(prompt=prompt, texts=texts, is_empty=not prompt, **_common(document))

    def _build_text_fields(self, turn: SimTurn, text: str) -> dict[str, object]:
        return {"response": text}


class OllamaChat(OllamaDialect):
    """A conversation; an empty one loads or unloads the model, as an empty prompt does."""

    around_token = ('"message":{"role":"assistant","content":', "}")

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        common = _common(document)
        if document.get("messages") == []:
            return SimQuestion(prompt="", is_empty=True, **common)
        messages = messages_in(document)
        texts = tuple(text_of(message.get("content")) for message in messages)
        return SimQuestion(
            prompt=last_from_user(messages),
            texts=texts,
            may_call=bool(document.get("tools")) and messages[-1]["role"] != "tool",
            **common,
        )

    def _build_text_fields(self, turn: SimTurn, text: str) -> dict[str, object]:
        message: dict[str, object] = {"role": "assistant", "content": text}
        # In a stream each call has had a line of its own.
        if turn.reply.calls and not turn.ask.is_streamed:
            message["tool_calls"] = self._calls(turn)
        return {"message": message}


def _common(document: Mapping[str, object]) -> dict[str, Any]:
    """What both endpoints read alike. A limit of tokens of 0 or less means none, and answers are streamed unless refused."""
    options = document.get("options", {})
    if not isinstance(options, dict):
        raise BadAsk("'options' is not a mapping.")
    predict = options.get("num_predict")
    if predict is not None and not isinstance(predict, int):
        raise BadAsk("'num_predict' is not a whole number.")
    model = document.get("model")
    if not isinstance(model, str) or not model:
        raise BadAsk("'model' is missing.")
    return {
        "model": model,
        "max_tokens": predict if predict and predict > 0 else None,
        "is_streamed": flag(document, "stream", default=True),
        "seed": seed_in(options),
        "keep_alive": _keep_alive(document.get("keep_alive")),
        "num_ctx": _whole(options, "num_ctx"),
        "num_gpu": _whole(options, "num_gpu"),
    }


def _whole(options: Mapping[str, object], name: str) -> int | None:
    """A whole number or nothing; in Python True is a number as well, and in JSON it is none."""
    value = options.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise BadAsk(f"option '{name}' must be of type integer.")
    return value


def _keep_alive(value: object) -> float:
    """How many seconds a model stays loaded: a number, or text such as "10m"; anything below zero means forever."""
    if value is None:
        return KEEP_ALIVE
    if isinstance(value, str):
        if duration := _DURATION.fullmatch(value):
            value = float(duration[1]) * _UNITS[duration[2]]
        else:
            with suppress(ValueError):
                value = float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadAsk("'keep_alive' is neither seconds nor a duration such as \"10m\".")
    return float(value) if value >= 0 else float("inf")


def _frame(turn: SimTurn) -> dict[str, object]:
    return {"model": turn.ask.model, "created_at": _time(turn.created)}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _figures(turn: SimTurn) -> dict[str, object]:
    """What the last line says: why the answer ended, and the durations as they were planned, not as they were delivered.

    So a client that measures from outside can be held against the truth. Loading is told as exact 0 where nothing was loaded.
    """
    if turn.ask.is_empty:
        return {"done": True, "done_reason": "unload" if turn.ask.keep_alive == 0 else "load"}
    total = turn.queued + turn.loading + turn.reading + turn.writing
    return {
        "done": True,
        "done_reason": "length" if turn.reply.is_cut else "stop",
        "total_duration": _ns(total),
        "load_duration": round(turn.loading * 1e9),
        USAGE.input: turn.ask.input_tokens,
        "prompt_eval_duration": _ns(turn.reading),
        USAGE.output: turn.reply.output_tokens,
        "eval_duration": _ns(turn.writing),
    }


def _ns(seconds: float) -> int:
    """Convert seconds to nanoseconds, at least 1: clients divide by durations."""
    return max(1, round(seconds * 1e9))


def tags(created: float) -> object:
    """/api/tags: the models that could be loaded. There is one, which stands for all names."""
    model = {"name": MODEL, "model": MODEL, "modified_at": _time(created), "size": 0, "digest": "sim"}
    return {"models": [{**model, "details": _DETAILS}]}


def running(loaded: list[LoadedModel], now: float, created: float) -> object:
    """/api/ps: the models in memory. `now` is on the monotonic clock, `created` the same moment since the epoch."""
    return {"models": [_running(model, now, created) for model in loaded]}


def _running(model: LoadedModel, now: float, created: float) -> dict[str, object]:
    # The year 2318 is how Ollama itself writes "for ever".
    left = min(model.expires - now, 292 * 365.25 * 86400)
    return {
        "name": model.name,
        "model": model.name,
        "size": model.size,
        "digest": "sim",
        "details": _DETAILS,
        "expires_at": _time(created + left),
        "size_vram": model.size_vram,
        "context_length": model.context,
    }
