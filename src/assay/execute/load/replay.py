"""Requests of a trace, made when they are due: kept is only how long each of them is, not what it says.

A worker is given the rows that are its own after its order, as columns of numbers, and one request with holes in it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.model.load import Trace

PROMPT, MAX_TOKENS = "prompt", "max_tokens"
_COLUMNS = (("due", "d"), ("input_tokens", "i"), ("output_tokens", "i"))
_KNOWN = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ROUND = " ".join(_KNOWN) + " "


def words(number: int) -> str:
    """A text of about so many tokens.

    >>> words(3)
    'one two three'
    """
    rounds, rest = divmod(max(1, number), len(_KNOWN))
    return (_ROUND * rounds + " ".join(_KNOWN[:rest])).rstrip()


def written(order: dict[str, Any], trace: Trace | None) -> Iterator[bytes | memoryview]:
    """An order as a worker reads it, in parts: a line of JSON, then the columns of its rows."""
    rows = None if trace is None else len(trace)
    yield json.dumps({**order, "rows": rows}).encode() + b"\n"
    if trace is not None:
        yield from (memoryview(getattr(trace, name)) for name, _ in _COLUMNS)


def read_order(stream: IO[bytes]) -> dict[str, Any] | None:
    """None when whoever was to give it is gone."""
    line = stream.readline()
    if not line:
        return None
    order: dict[str, Any] = json.loads(line)
    if order["rows"] is not None:
        for name, kind in _COLUMNS:
            order[name] = column = array(kind)
            column.frombytes(stream.read(order["rows"] * column.itemsize))
    return order


class Replay:
    """What each row of one worker asks; looked up by the number that the request has among those of all workers."""

    __slots__ = ("_input", "_output", "_prompts", "_workers")

    def __init__(self, order: dict[str, Any], prompts: Sequence[str]) -> None:
        self._input: array[int] = order["input_tokens"]
        self._output: array[int] = order["output_tokens"]
        self._workers: int = order["workers"]
        self._prompts = prompts

    def prompt(self, number: int) -> str:
        """Of the length that was recorded, or one of those that were given."""
        given = self._input[number // self._workers]
        return words(given) if given > 0 else self._prompts[number % len(self._prompts)]

    def max_tokens(self, number: int) -> int | None:
        wanted = self._output[number // self._workers]
        return wanted if wanted > 0 else None


class Replayed:
    """The same as bytes to be sent: stands where otherwise a list of requests stands."""

    __slots__ = ("_bounded", "_head", "_replay", "_rows", "_unbounded")

    def __init__(self, order: dict[str, Any]) -> None:
        mould = order["mould"]
        self._replay = Replay(order, mould["prompts"])
        self._rows: int = order["rows"] * order["workers"]
        self._head: bytes = mould["head"].encode("latin-1")
        self._bounded, self._unbounded = (
            [part.encode() for part in mould[name]] for name in ("bounded", "unbounded")
        )

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, number: int) -> bytes:
        most = self._replay.max_tokens(number)
        parts = self._unbounded if most is None else self._bounded
        holes = {
            PROMPT.encode(): self._replay.prompt(number).encode(),
            MAX_TOKENS.encode(): b"%d" % (most or 0),
        }
        body = b"".join([holes[part] if place % 2 else part for place, part in enumerate(parts)])
        return b"%bcontent-length: %d\r\n\r\n%b" % (self._head, len(body), body)
