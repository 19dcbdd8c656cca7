"""What a worker reports: columns of numbers about finished requests, in chunks about ten times a second.

On the pipe a chunk is two little-endian 32-bit integers, the bytes of its head and of all that follows; then the head, a
JSON object with the facts and the number of rows; then each of COLUMNS as doubles; then the gaps between tokens as doubles.
"""

from __future__ import annotations

import json
import os
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

COLUMNS = ("number", "due", "begun", "sent", "first", "end", "output", "input", "kind", "lag", "reads")
"""Seconds are counted from the start of the load; what is not known is nan.

`kind` is 0 for an answer and otherwise the place of the error's kind in `kinds`; `lag` is the time from the arrival of the
last bytes in the kernel until they were read; `reads` the number of reads that brought content.
"""
OK = 0


@dataclass(slots=True)
class Chunk:
    """The requests that ended since the last chunk, and facts about the worker: its clock, its totals and its answers."""

    columns: dict[str, array[float]]
    gaps: array[float]
    """Times between one piece of content and the next."""
    facts: dict[str, object] = field(default_factory=dict)
    zero_gaps: int = 0
    """How many more gaps there were, of no time: both pieces came in one read."""

    def __len__(self) -> int:
        return len(self.columns["number"])


def columns_of(rows: Sequence[tuple[float, ...]]) -> dict[str, array[float]]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in COLUMNS)
    return {name: array("d", column) for name, column in zip(COLUMNS, columns, strict=True)}


def pack_chunk(chunk: Chunk) -> bytes:
    """Columns as raw doubles: to write a number as text and to parse it again would take longer than all else that is done
    with it, and the doubles that the engine reads are exactly those that were measured."""
    head = json.dumps({"n": len(chunk), "zero_gaps": chunk.zero_gaps, **chunk.facts}).encode()
    body = [head, *(chunk.columns[name].tobytes() for name in COLUMNS), chunk.gaps.tobytes()]
    return struct.pack("<II", len(head), sum(map(len, body))) + b"".join(body)


class ChunkWriter:
    """Sends chunks to the engine, and never waits for it in the middle of a load: what the pipe does not accept is sent with
    the next chunk. A worker whose engine is gone ends at once.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unsent = bytearray()
        os.set_blocking(fd, False)

    def send(self, chunk: Chunk, is_last: bool) -> None:
        self._unsent += pack_chunk(chunk)
        if is_last:
            # Nothing is being measured any more, and whatever is unsent when this process ends would be lost.
            os.set_blocking(self._fd, True)
        try:
            while self._unsent:
                del self._unsent[: os.write(self._fd, self._unsent)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            # Not an exception, which would have to pass through the code of an agent that may catch it.
            os._exit(0)


class Unpacker:
    """Reads chunks from the bytes of a pipe, which come in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Chunk]:
        self._buffer += data
        while len(self._buffer) >= 8:
            head, whole = struct.unpack_from("<II", self._buffer)
            if len(self._buffer) < 8 + whole:
                return
            body = bytes(self._buffer[8 : 8 + whole])
            del self._buffer[: 8 + whole]
            yield _unpack_chunk(json.loads(body[:head]), body[head:])


def _unpack_chunk(facts: Mapping[str, object], body: bytes) -> Chunk:
    size = int(str(facts["n"])) * 8
    chunk = Chunk(columns_of(()), array("d"))
    for place, name in enumerate(COLUMNS):
        chunk.columns[name].frombytes(body[place * size : (place + 1) * size])
    chunk.gaps.frombytes(body[len(COLUMNS) * size :])
    chunk.zero_gaps = int(str(facts["zero_gaps"]))
    chunk.facts = {name: value for name, value in facts.items() if name not in ("n", "zero_gaps")}
    return chunk
