"""How long each request is, and how an order travels from the engine to a worker.

Of a trace only lengths are kept, as columns of numbers; the text of a prompt is made from them when the request is due. The
order is a line of JSON. After it come, as raw bytes, the columns of those rows of a trace that belong to the worker, whose
sizes are in the order. Lengths that were drawn beforehand are within the order itself.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from assay.model.load import Trace

_COLUMNS = (("due", "d"), ("input_tokens", "i"), ("output_tokens", "i"), ("block_ends", "q"), ("blocks", "q"))


def encode_load_order(order: dict[str, Any], trace: Trace | None) -> Iterator[bytes | memoryview]:
    """An order as a worker reads it, in parts: a line of JSON, then the columns of its rows."""
    if trace is None:
        yield json.dumps({**order, "rows": None}).encode() + b"\n"
        return
    sizes = [len(getattr(trace, name)) for name, _ in _COLUMNS]
    yield json.dumps({**order, "rows": len(trace), "columns": sizes}).encode() + b"\n"
    yield from (memoryview(getattr(trace, name)) for name, _ in _COLUMNS)


def read_order(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read the order from the stream; None if the engine has closed it without an order."""
    line = stream.readline()
    if not line:
        return None
    order: dict[str, Any] = json.loads(line)
    if order["rows"] is not None:
        for (name, kind), size in zip(_COLUMNS, order["columns"], strict=True):
            order[name] = column = array(kind)
            column.frombytes(stream.read(size * column.itemsize))
    return order


class RequestLengths(NamedTuple):
    """The input and output tokens of a request, -1 if not given, and the blocks of its prompt."""

    input_tokens: int
    output_tokens: int
    blocks: Sequence[int] = ()


NO_LENGTHS = RequestLengths(-1, -1)


class Lengths:
    """Looked up by the number that a request has among those of all workers: in a trace, else among what was drawn."""

    __slots__ = ("_blocks", "_ends", "_input", "_output", "_rows_input", "_rows_output", "_workers")

    def __init__(self, order: dict[str, Any]) -> None:
        lengths = order.get("lengths") or {}
        self._input: Sequence[int] = lengths.get("input") or [-1]
        self._output: Sequence[int] = lengths.get("output") or [-1]
        self._workers: int | None = order["workers"] if order["rows"] is not None else None
        """None where there is no trace."""
        if self._workers is not None:
            self._rows_input, self._rows_output = order["input_tokens"], order["output_tokens"]
            self._ends, self._blocks = order["block_ends"], order["blocks"]

    def __call__(self, number: int) -> RequestLengths:
        drawn_input = self._input[number % len(self._input)]
        drawn_output = self._output[number % len(self._output)]
        if self._workers is None:
            return RequestLengths(drawn_input, drawn_output)
        # Rows are dealt out in turn, so of w workers each has every w-th, in order.
        place = number // self._workers
        in_row, out_row = self._rows_input[place], self._rows_output[place]
        blocks: Sequence[int] = ()
        if self._ends:
            blocks = self._blocks[self._ends[place - 1] if place else 0 : self._ends[place]]
        return RequestLengths(
            in_row if in_row > 0 else drawn_input, out_row if out_row > 0 else drawn_output, blocks
        )
