"""What a worker sends: the bytes of each request by its number, put together when it is due.

This is on the path of every request, so all that can be prepared is prepared once when the worker reads its order. A request
depends on its number alone: one that is sent again after a lost connection is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.load.request_lengths import Lengths, RequestLengths
from assay.load.synthetic import OPENING_BYTES, WORDS, Openings, SyntheticText

OPENING, PROMPT, MAX_TOKENS, MESSAGES = "opening", "prompt", "max_tokens", "messages"
"""Names of holes in a template."""
Payloads = Callable[[int], bytes]
_MOST_ENDS = 256


def payloads_of(order: dict[str, Any]) -> Payloads:
    """The requests of an order that do not depend on answers; for others there is `conversations`."""
    if order["template"] is not None:
        return TemplateRequests(order)
    requests = [text.encode("latin-1") for text in order["requests"]]
    if order.get("openings"):
        return build_payloads_with_openings(requests, order["openings"], openings_of(order))
    if len(requests) == 1:
        return lambda number: requests[0]
    return lambda number: requests[number % len(requests)]


def alternate_targets(
    payload_of: Payloads, heads: Sequence[str], target_of: Callable[[int], int]
) -> Payloads:
    """Send the same requests to several targets in turn; only the bytes before the content length differ."""
    encoded = [head.encode("latin-1") for head in heads]
    size = len(encoded[0])
    return lambda number: encoded[target_of(number)] + payload_of(number)[size:]


def openings_of(order: dict[str, Any]) -> Openings:
    return Openings(order.get("salt", 0), order.get("words") or WORDS)


def text_of_order(order: dict[str, Any]) -> SyntheticText:
    words = order.get("words") or WORDS
    return SyntheticText(order.get("salt", 0), words, is_unique=order.get("is_unique", True))


def build_payloads_with_openings(
    requests: Sequence[bytes], places: Sequence[int], openings: Openings
) -> Payloads:
    """Requests as written, but each with an opening of its own. Openings are of one length, so nothing else changes.

    This is on the way of every request: functions in the place of methods, and as little to put together as can be.
    """
    parts = [
        (request[:place], request[place + OPENING_BYTES :])
        for request, place in zip(requests, places, strict=True)
    ]
    # The opening of request n is a word for n modulo 256 and more words for n // 256, which 256 requests in a row share: both
    # halves are made once and looked up for each request.
    first, rest, rest_of, size = openings.first, openings.rest, openings.rest_of, len(parts)

    def one_of_several(number: int) -> bytes:
        before, after = parts[number % size]
        return before + first[number & 255] + (rest.get(number >> 8) or rest_of(number >> 8)) + after

    if size > 1:
        return one_of_several
    [(before, after)] = parts
    begins = [before + word for word in first]
    ends: dict[int, bytes] = {}

    def the_only_one(number: int) -> bytes:
        end = ends.get(number >> 8)
        if end is None:
            if len(ends) >= _MOST_ENDS:
                ends.clear()
            end = ends[number >> 8] = rest_of(number >> 8) + after
        return begins[number & 255] + end

    return the_only_one


class TemplateRequests:
    """Requests of which the order says how long they are: rows of a trace, or lengths drawn beforehand."""

    __slots__ = ("_given", "_head", "_lengths", "_openings", "_synthetic", "_text")

    def __init__(self, order: dict[str, Any]) -> None:
        template = order["template"]
        self._lengths = Lengths(order)
        self._head: bytes = template["head"].encode("latin-1")
        self._synthetic = [pair_holes(body) for body in template["synthetic"]]
        self._given = [[pair_holes(body) for body in bodies] for bodies in template["given"]]
        self._openings = openings_of(order)
        self._text = text_of_order(order)

    def __call__(self, number: int) -> bytes:
        row = self._lengths(number)
        bodies = self._synthetic if row.input_tokens > 0 else self._given[number % len(self._given)]
        parts = []
        for text, hole in bodies[0 if row.output_tokens > 0 else 1]:
            parts.append(text)
            if hole == PROMPT:
                parts.append(prompt_of(self._text, number, row))
            elif hole == MAX_TOKENS:
                parts.append(b"%d" % row.output_tokens)
            elif hole == OPENING:
                parts.append(self._openings(number))
        body = b"".join(parts)
        return b"%bcontent-length: %d\r\n\r\n%b" % (self._head, len(body), body)


def pair_holes(body: Sequence[str]) -> list[tuple[bytes, str]]:
    """Pair each text with the name of the hole after it, which is empty after the last."""
    return [(text.encode(), hole) for text, hole in zip(body[::2], (*body[1::2], ""), strict=True)]


def prompt_of(text: SyntheticText, number: int, row: RequestLengths) -> bytes:
    if row.blocks:
        return text.prompt_of_blocks(number, row.blocks, row.input_tokens)
    return text.prompt(number, row.input_tokens)
