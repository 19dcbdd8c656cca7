"""OpenAI's protocol; JSON is put together by hand where every answer passes, because that is three times as fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.dialects.openai import STREAM_TYPE
from assay.dialects.usage import OPENAI as USAGE
from assay.simulator.dialects.dialect import Dialect, json_text, quoted
from assay.simulator.turn import (
    BadAsk,
    SimQuestion,
    SimTurn,
    flag,
    last_from_user,
    messages_in,
    seed_in,
    text_of,
    whole_number,
)

MODEL = "sim-llm"
_DONE = "data: [DONE]\n\n"
_KINDS = {429: "rate_limit_error", 500: "server_error"}


class OpenAIDialect(Dialect):
    """What all of OpenAI's endpoints have in common."""

    stream_type = STREAM_TYPE

    def error(self, status: int, message: str) -> object:
        return error(status, message)


class OpenAIChat(OpenAIDialect):
    """The endpoint /v1/chat/completions; a stream begins with a chunk that has a role and no content, as OpenAI's does."""

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        messages = messages_in(document)
        texts = tuple(text_of(message.get("content")) for message in messages)
        return SimQuestion(
            prompt=last_from_user(messages),
            texts=texts,
            max_tokens=whole_number(document, "max_completion_tokens", "max_tokens"),
            may_call=bool(document.get("tools")) and messages[-1]["role"] != "tool",
            **_common(document),
        )

    def whole(self, turn: SimTurn) -> bytes:
        content, calls = quoted(turn.reply.text), ""
        if turn.reply.calls:
            content, calls = "null", f',"tool_calls":{json_text(list(_calls(turn)))}'
        message = f'{{"role":"assistant","content":{content},"refusal":null{calls}}}'
        choice = _choice("message", message, _finish(turn))
        return _with_usage(turn, _frame(turn, "chat.completion"), choice).encode(errors="replace")

    def opening(self, turn: SimTurn) -> bytes:
        return self._chunk(turn, '{"role":"assistant","content":""}', "null").encode(errors="replace")

    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        if turn.reply.calls:
            for index, call in enumerate(_calls(turn)):
                yield self._call(turn, index, call)
            return
        # All chunks are the same but for their token: one is written with a hole, at a character that JSON text cannot hold.
        before, after = self._chunk(turn, '{"content":\0}', "null").split("\0")
        for token in turn.reply.tokens:
            yield f"{before}{quoted(token)}{after}".encode(errors="replace")

    def _call(self, turn: SimTurn, index: int, call: dict[str, Any]) -> bytes:
        """First the name, then the arguments, as real servers do."""
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begun = {"index": index, **call, "function": {"name": name, "arguments": ""}}
        rest = {"index": index, "function": {"arguments": arguments}}
        deltas = (json_text({"tool_calls": [part]}) for part in (begun, rest))
        return "".join(self._chunk(turn, delta, "null") for delta in deltas).encode(errors="replace")

    def closing(self, turn: SimTurn) -> bytes:
        end = self._chunk(turn, "{}", _finish(turn))
        return (end + _usage_chunk(turn, _frame(turn, "chat.completion.chunk")) + _DONE).encode(
            errors="replace"
        )

    def _chunk(self, turn: SimTurn, delta: str, finish: str) -> str:
        return _event(turn, _frame(turn, "chat.completion.chunk"), _choice("delta", delta, finish))


class Completions(OpenAIDialect):
    """The older endpoint /v1/completions: text in, text out, no tools."""

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        prompt = document.get("prompt")
        if not isinstance(prompt, str):
            raise BadAsk("'prompt' is not text.")
        return SimQuestion(
            prompt=prompt,
            texts=(prompt,),
            max_tokens=whole_number(document, "max_tokens"),
            **_common(document),
        )

    def whole(self, turn: SimTurn) -> bytes:
        choice = _choice("text", quoted(turn.reply.text), _finish(turn))
        return _with_usage(turn, _frame(turn, "text_completion"), choice).encode(errors="replace")

    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        for token in turn.reply.tokens:
            yield self._chunk(turn, quoted(token), "null").encode(errors="replace")

    def closing(self, turn: SimTurn) -> bytes:
        end = self._chunk(turn, '""', _finish(turn))
        return (end + _usage_chunk(turn, _frame(turn, "text_completion")) + _DONE).encode(errors="replace")

    def _chunk(self, turn: SimTurn, text: str, finish: str) -> str:
        return _event(turn, _frame(turn, "text_completion"), _choice("text", text, finish))


def _common(document: Mapping[str, object]) -> dict[str, Any]:
    """What both endpoints read alike; usage comes with a stream only where the client asks for it, as at OpenAI."""
    if document.get("n") not in (None, 1):
        raise BadAsk("Only one choice is simulated: 'n' is 1.")
    options = document.get("stream_options")
    return {
        "model": str(document.get("model") or MODEL),
        "is_streamed": flag(document, "stream"),
        "includes_usage": isinstance(options, dict) and flag(options, "include_usage"),
        "seed": seed_in(document),
    }


def _frame(turn: SimTurn, kind: str) -> str:
    """How every answer begins; the brace is still open."""
    return (
        f'{{"id":"chatcmpl-sim-{turn.number}","object":"{kind}","created":{int(turn.created)},'
        f'"model":{quoted(turn.ask.model)},"system_fingerprint":"simulated"'
    )


def _choice(key: str, value: str, finish: str) -> str:
    return f'"choices":[{{"index":0,"{key}":{value},"logprobs":null,"finish_reason":{finish}}}]'


def _event(turn: SimTurn, frame: str, choice: str) -> str:
    """One chunk of a stream; with usage to come at its end, every chunk before says that it has none."""
    usage = ',"usage":null' if turn.ask.includes_usage else ""
    return f"data: {frame},{choice}{usage}}}\n\n"


def _with_usage(turn: SimTurn, frame: str, choice: str) -> str:
    return f'{frame},{choice},"usage":{_usage(turn)}}}'


def _usage_chunk(turn: SimTurn, frame: str) -> str:
    """The chunk after the last one with a choice: it has no choice, and clients that expect one stumble over it."""
    if not turn.ask.includes_usage:
        return ""
    last = _with_usage(turn, frame, '"choices":[]')
    return f"data: {last}\n\n"


def _finish(turn: SimTurn) -> str:
    if turn.reply.calls:
        return '"tool_calls"'
    return '"length"' if turn.reply.is_cut else '"stop"'


def _calls(turn: SimTurn) -> Iterator[dict[str, Any]]:
    """Arguments are JSON within JSON in this API: text that a client has to parse once more."""
    for index, call in enumerate(turn.reply.calls):
        yield {
            "id": f"call_sim_{turn.number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_text},
        }


def _usage(turn: SimTurn) -> str:
    input_tokens, output_tokens = turn.ask.input_tokens, turn.reply.output_tokens
    return (
        f'{{"{USAGE.input}":{input_tokens},"{USAGE.output}":{output_tokens},"total_tokens":{input_tokens + output_tokens},'
        f'"prompt_tokens_details":{{"{USAGE.cached}":{turn.cached}}},"completion_tokens_details":{{"reasoning_tokens":0}}}}'
    )


def models(created: float) -> object:
    """/v1/models: some clients ask for it before they ask anything else."""
    return {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "created": int(created), "owned_by": "assay"}],
    }


def error(status: int, message: str) -> object:
    kind = _KINDS.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
