"""What agents of the type `http` are asked and answer: no vendor's protocol, but Assay's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.dialects.plain import STREAM_TYPE
from assay.simulator.dialects.dialect import Dialect, json_bytes, quoted
from assay.simulator.turn import BadAsk, SimQuestion, SimTurn, flag, seed_in, whole_number


class Plain(Dialect):
    """{"input": …} gives {"output", "usage", "model"}; with "stream": true among the `params`, lines of deltas first."""

    stream_type = STREAM_TYPE

    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        params = document.get("params") or {}
        if not isinstance(params, dict):
            raise BadAsk("'params' is not an object.")
        if "input" not in document:
            raise BadAsk("'input' is missing.")
        # Whatever JSON it is: agents of this type take structures as well as text.
        question = document["input"]
        prompt = question if isinstance(question, str) else json_bytes(question).decode()
        return SimQuestion(
            model="sim-llm",
            prompt=prompt,
            texts=(prompt,),
            max_tokens=whole_number(document, "max_tokens"),
            is_streamed=flag(params, "stream"),
            seed=seed_in(params),
        )

    def whole(self, turn: SimTurn) -> bytes:
        usage = {"input_tokens": turn.ask.input_tokens, "output_tokens": turn.reply.output_tokens}
        return json_bytes({"output": turn.reply.text, "usage": usage, "model": turn.ask.model})

    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        for token in turn.reply.tokens:
            yield f'{{"delta":{quoted(token)}}}\n'.encode(errors="replace")

    def closing(self, turn: SimTurn) -> bytes:
        """The last line of a stream is the whole answer, with its usage: deltas alone would not tell that."""
        return self.whole(turn) + b"\n"
