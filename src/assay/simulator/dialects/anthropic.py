"""The simulated server's side of Anthropic's Messages API, whole or as a stream of named events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.dialects.anthropic import STREAM_TYPE
from assay.dialects.usage import ANTHROPIC as USAGE
from assay.simulator.dialects.dialect import Dialect, build_named_event, json_bytes, quoted
from assay.simulator.turn import (
    BadAsk,
    SimQuestion,
    SimToolCall,
    SimTurn,
    flag,
    last_from_user,
    messages_in,
    text_of,
    whole_number,
)

MODEL = "sim-llm"
_KINDS = {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error"}


class Messages(Dialect):
    """The endpoint /v1/messages.

    A stream tells the usage twice, as the real API does: `message_start` has the input and one token of output, `message_delta` the
    final number. A client that adds both up, or reads only the first, fails a test against this server.
    """

    stream_type = STREAM_TYPE

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        messages = messages_in(document)
        max_tokens = whole_number(document, "max_tokens")
        if max_tokens is None:
            raise BadAsk("'max_tokens' is missing.")
        texts = (text_of(document.get("system")), *(text_of(message.get("content")) for message in messages))
        return SimQuestion(
            model=str(document.get("model") or MODEL),
            # Results of tools come as messages of the user, but the user did not write them.
            prompt=last_from_user([message for message in messages if not _is_result(message)]),
            texts=texts,
            max_tokens=max_tokens,
            is_streamed=flag(document, "stream"),
            may_call=bool(document.get("tools")) and not _is_result(messages[-1]),
        )

    def whole(self, turn: SimTurn) -> bytes:
        content: list[dict[str, object]] = [{"type": "text", "text": turn.reply.text}]
        if turn.reply.calls:
            content = [
                _block(turn, index, call, call.arguments) for index, call in enumerate(turn.reply.calls)
            ]
        return json_bytes({**_message(turn), "content": content, **_stop(turn), "usage": _usage(turn)})

    def opening(self, turn: SimTurn) -> bytes:
        usage = {**_usage(turn), USAGE.output: 1}
        message = {
            **_message(turn),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        start = build_named_event("message_start", {"message": message})
        if turn.reply.calls:
            # Blocks of calls begin with each call.
            return start
        block = {"index": 0, "content_block": {"type": "text", "text": ""}}
        return start + build_named_event("content_block_start", block) + build_named_event("ping", {})

    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        for index, call in enumerate(turn.reply.calls):
            yield _call(turn, index, call)
        # Written by hand but for the token: this is done for every token of every answer.
        before = (
            "event: content_block_delta\n"
            'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
        )
        for token in turn.reply.tokens:
            yield f"{before}{quoted(token)}}}}}\n\n".encode(errors="replace")

    def closing(self, turn: SimTurn) -> bytes:
        ended = b"" if turn.reply.calls else build_named_event("content_block_stop", {"index": 0})
        change = {"delta": _stop(turn), "usage": {USAGE.output: turn.reply.output_tokens}}
        return ended + build_named_event("message_delta", change) + build_named_event("message_stop", {})

    def error(self, status: int, message: str) -> object:
        kind = _KINDS.get(status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


def _message(turn: SimTurn) -> dict[str, object]:
    return {"id": f"msg_sim_{turn.number}", "type": "message", "role": "assistant", "model": turn.ask.model}


def _call(turn: SimTurn, index: int, call: SimToolCall) -> bytes:
    """A call of a tool as three events: its block begins with empty arguments, which then come as text, and it ends."""
    delta = {"type": "input_json_delta", "partial_json": call.arguments_text}
    return (
        build_named_event(
            "content_block_start", {"index": index, "content_block": _block(turn, index, call, {})}
        )
        + build_named_event("content_block_delta", {"index": index, "delta": delta})
        + build_named_event("content_block_stop", {"index": index})
    )


def _block(turn: SimTurn, index: int, call: SimToolCall, given: Mapping[str, object]) -> dict[str, object]:
    return {"type": "tool_use", "id": f"toolu_sim_{turn.number}_{index}", "name": call.name, "input": given}


def _stop(turn: SimTurn) -> dict[str, object]:
    reason = "tool_use" if turn.reply.calls else "max_tokens" if turn.reply.is_cut else "end_turn"
    return {"stop_reason": reason, "stop_sequence": None}


def _usage(turn: SimTurn) -> dict[str, object]:
    """Build the usage; in this API cached tokens are counted beside the input and are not part of it."""
    return {
        USAGE.input: turn.ask.input_tokens - turn.cached,
        USAGE.written: 0,
        USAGE.cached: turn.cached,
        USAGE.output: turn.reply.output_tokens,
    }


def _is_result(message: Mapping[str, object]) -> bool:
    """Whether a message brings what a tool returned: then the model has called it already, and is to answer in words."""
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in content
    )
