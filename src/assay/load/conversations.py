"""Sessions of several turns in a worker: each turn is sent with all that was said before, by the user and by the server.

Requests are numbered across sessions: those of the first session come first, then those of the second, and so on; after
the last session the first begins again. So every worker knows the number of every request, whichever worker sends it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from assay.load.answer import Reply
from assay.load.answer_text import text_of
from assay.load.payload import MAX_TOKENS, MESSAGES, OPENING, openings_of, pair_holes, text_of_order


class TurnPosition(NamedTuple):
    """The position of a request: its session among all started ones, and its turn."""

    session: int
    turn: int


class Conversations:
    """Makes the requests of sessions, and keeps what was said in those that are under way.

    For each request the worker calls `begin` when it is sent, `hear` with its answer, and `next_turn` to plan the one after
    it; when that returns None or the request failed, `end` forgets the session.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._sessions: list[list[dict[str, Any]]] = order["sessions"]
        ends = list(accumulate(len(turns) for turns in self._sessions))
        self._begins, self._round = [0, *ends[:-1]], ends[-1]
        template = order["template"]
        self._head: bytes = template["head"].encode("latin-1")
        self._bodies = [pair_holes(body) for body in template["chat"]]
        self._opens_first_message: bool = template["opens_first_message"]
        self._shared: str = template["shared"]
        self._openings = openings_of(order)
        self._text = text_of_order(order)
        self._messages: dict[int, list[bytes]] = {}
        self._begun: dict[int, float] = {}

    def number_of(self, session: int) -> int:
        """The number of the first request of a session."""
        rounds, place = divmod(session, len(self._sessions))
        return rounds * self._round + self._begins[place]

    def position_of(self, number: int) -> TurnPosition:
        rounds, rest = divmod(number, self._round)
        place = bisect_right(self._begins, rest) - 1
        return TurnPosition(rounds * len(self._sessions) + place, rest - self._begins[place])

    def __call__(self, number: int) -> bytes:
        """The request; asked again, as after a connection was lost, it is the same."""
        session, place = self.position_of(number)
        turn = self._turns(session)[place]
        messages = self._messages.setdefault(session, [])
        # Two entries for each turn before this one, the question and the answer; a turn that is sent again is written anew.
        del messages[2 * place :]
        messages.append(self._encode(session, number, turn, is_first=not place))
        parts = []
        for text, hole in self._bodies[0 if turn["max_tokens"] else 1]:
            parts.append(text)
            if hole == MESSAGES:
                parts.append(b",".join(messages))
            elif hole == MAX_TOKENS:
                parts.append(b"%d" % turn["max_tokens"])
            elif hole == OPENING:
                parts.append(self._openings(session))
        body = b"".join(parts)
        return b"%bcontent-length: %d\r\n\r\n%b" % (self._head, len(body), body)

    def _encode(self, session: int, number: int, turn: Mapping[str, Any], *, is_first: bool) -> bytes:
        """The messages of a turn, as they stand among those of a body."""
        prompt = turn["prompt"]
        if prompt is None:
            # A synthetic prompt opens in its own way.
            before = self._shared if is_first else ""
            prompt, is_first = before + self._text.prompt(number, turn["tokens"]).decode(), False
        messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
        if is_first:
            opening = self._openings(session).decode() if self._opens_first_message else ""
            messages = [_prepend_text(messages[0], self._shared + opening), *messages[1:]]
        return b",".join(_json(message) for message in messages)

    def begin(self, number: int, at: float) -> None:
        """A request is sent; if it is the first of its session, the session begins."""
        self._begun.setdefault(self.position_of(number).session, at)

    def hear(self, number: int, reply: Reply) -> None:
        """The answer to a request, for the turns that follow."""
        session, place = self.position_of(number)
        if place + 1 < len(self._turns(session)):
            text = text_of(reply.to_be_judged())
            self._messages[session].append(_json({"role": "assistant", "content": text}))

    def next_turn(self, number: int, now: float, think: float) -> tuple[int, float] | None:
        """The next request of the session and when it is due; None after the last."""
        session, place = self.position_of(number)
        turns = self._turns(session)
        if place + 1 >= len(turns):
            return None
        turn = turns[place + 1]
        # A trace may say both how long a user thought and when a turn came: the later of the two is due.
        delay = think if turn["delay"] is None else turn["delay"]
        return number + 1, max(now + delay, self._begun[session] + turn["at"])

    def end(self, number: int) -> int:
        """Forget a session that has ended or was given up, and return its number."""
        session = self.position_of(number).session
        self._messages.pop(session, None)
        self._begun.pop(session, None)
        return session

    def _turns(self, session: int) -> Sequence[dict[str, Any]]:
        return self._sessions[session % len(self._sessions)]


def _prepend_text(message: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    content = message.get("content")
    if not text:
        return message
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": text}, *content]}
    return {**message, "content": text + str(content or "")}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
