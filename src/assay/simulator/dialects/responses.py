"""OpenAI's Responses API and embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.simulator.chance import chance
from assay.simulator.dialects.dialect import build_named_event, json_bytes, quoted
from assay.simulator.dialects.openai import MODEL, OpenAIDialect
from assay.simulator.turn import (
    BadAsk,
    SimQuestion,
    SimTurn,
    flag,
    last_from_user,
    messages_in,
    text_of,
    whole_number,
)

_DIMENSIONS = 8


class Responses(OpenAIDialect):
    """Streams named events, and repeats the whole text at the end, as OpenAI does."""

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        """`input` is text or messages; `instructions` are read before it."""
        given = document.get("input")
        if isinstance(given, str):
            texts, prompt = [given], given
        elif isinstance(given, list):
            messages = messages_in({"messages": given})
            texts, prompt = (
                [text_of(message.get("content")) for message in messages],
                last_from_user(messages),
            )
        else:
            raise BadAsk("'input' is neither text nor a list of messages.")
        read = (text_of(document.get("instructions")), *texts)
        return SimQuestion(
            model=str(document.get("model") or MODEL),
            prompt=prompt,
            texts=read,
            max_tokens=whole_number(document, "max_output_tokens"),
            is_streamed=flag(document, "stream"),
        )

    def whole(self, turn: SimTurn) -> bytes:
        return json_bytes(_response(turn, "completed"))

    def opening(self, turn: SimTurn) -> bytes:
        begun = {"id": _id(turn), "object": "response", "status": "in_progress", "output": []}
        part = {"type": "output_text", "text": "", "annotations": []}
        return (
            build_named_event("response.created", {"response": begun})
            + build_named_event("response.in_progress", {"response": begun})
            + build_named_event(
                "response.output_item.added", {"output_index": 0, "item": {**_item(turn), "content": []}}
            )
            + build_named_event("response.content_part.added", {"item_id": _item(turn)["id"], "part": part})
        )

    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        kind = "response.output_text.delta"
        before = f'event: {kind}\ndata: {{"type":"{kind}","item_id":"{_item(turn)["id"]}","delta":'
        for token in turn.reply.tokens:
            yield f"{before}{quoted(token)}}}\n\n".encode(errors="replace")

    def closing(self, turn: SimTurn) -> bytes:
        """The whole text once more in each of four events: clients that count every text they see count it five times."""
        item = _item(turn)
        name = "incomplete" if turn.reply.is_cut else "completed"
        return (
            build_named_event("response.output_text.done", {"item_id": item["id"], "text": turn.reply.text})
            + build_named_event("response.content_part.done", {"item_id": item["id"], "part": _part(turn)})
            + build_named_event("response.output_item.done", {"item": {**item, "content": [_part(turn)]}})
            + build_named_event(f"response.{name}", {"response": _response(turn, name)})
        )


class Embeddings(OpenAIDialect):
    """A few numbers that follow from the text; nothing is streamed.

    They mean nothing, but the same text always has the same ones, so that a client can check what it got.
    """

    stream_type = "application/json"

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        given = document.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise BadAsk("'input' is neither text nor a list of texts.")
        return SimQuestion(
            model=str(document.get("model") or MODEL),
            prompt=texts[-1],
            texts=tuple(texts),
            is_embedding=True,
        )

    def whole(self, turn: SimTurn) -> bytes:
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": [
                    round(2 * chance(0, "embedding", text, place) - 1, 6) for place in range(_DIMENSIONS)
                ],
            }
            for index, text in enumerate(turn.ask.texts)
        ]
        usage = {"prompt_tokens": turn.ask.input_tokens, "total_tokens": turn.ask.input_tokens}
        return json_bytes({"object": "list", "data": data, "model": turn.ask.model, "usage": usage})

    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        return iter(())

    def closing(self, turn: SimTurn) -> bytes:
        return b""


def _id(turn: SimTurn) -> str:
    return f"resp_sim_{turn.number}"


def _item(turn: SimTurn) -> dict[str, object]:
    return {"id": f"msg_sim_{turn.number}", "type": "message", "role": "assistant", "status": "completed"}


def _part(turn: SimTurn) -> dict[str, object]:
    return {"type": "output_text", "text": turn.reply.text, "annotations": []}


def _response(turn: SimTurn, status: str) -> dict[str, object]:
    """The whole answer, as it stands by itself and at the end of a stream."""
    input_tokens, output_tokens = turn.ask.input_tokens, turn.reply.output_tokens
    return {
        "id": _id(turn),
        "object": "response",
        "created_at": int(turn.created),
        "status": status,
        "error": None,
        "model": turn.ask.model,
        "output": [{**_item(turn), "content": [_part(turn)]}],
        "usage": {
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": turn.cached},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input_tokens + output_tokens,
        },
    }
