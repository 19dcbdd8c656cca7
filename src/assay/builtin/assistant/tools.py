"""The tools of the reference agent: plain functions, whose schemas and argument checks come from their signatures."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from assay.model import ToolCall

_THREADS = 8
_ORDERS = {f"{number}": ("shipped", "delivered", "open")[number % 3] for number in range(10_000, 20_000)}


def find_order(order: str) -> str:
    """The state of an order."""
    return _ORDERS.get(order, "unknown")


def compute_refund(price: float, days_used: int) -> float:
    """What a customer gets back: all within 14 days, then less by the day."""
    return round(price * min(1.0, max(0.0, 1 - (days_used - 14) / 90)), 2)


def check_receipt(content: str) -> str:
    """The checksum of a receipt."""
    return hashlib.sha256(content.encode()).hexdigest()


class ToolRegistry:
    """Functions by name; each call checks its arguments with a pydantic model of the function's signature.

    Several calls run in threads, which helps where tools wait or leave Python, as hashing does. The threads start with the first
    such calls and end with `close`.
    """

    def __init__(
        self, functions: Sequence[Callable[..., object]] = (find_order, compute_refund, check_receipt)
    ) -> None:
        self._functions = {function.__name__: function for function in functions}
        self._models = {name: _build_model(function) for name, function in self._functions.items()}
        self._threads: ThreadPoolExecutor | None = None
        self._lock = Lock()

    def schemas(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "name": name,
                "description": inspect.getdoc(function) or "",
                "parameters": self._models[name].model_json_schema(),
            }
            for name, function in self._functions.items()
        ]

    def function_of(self, name: str) -> Callable[..., object]:
        return self._functions[name]

    def call(self, calls: Sequence[ToolCall]) -> Sequence[object]:
        if len(calls) == 1:
            return [self._call(calls[0])]
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS)
            running = self._threads.map(self._call, calls)
        return list(running)

    def close(self) -> None:
        """End the threads after the calls that they have; a later call starts new ones."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()

    def _call(self, call: ToolCall) -> object:
        if call.name not in self._functions:
            raise ValueError(f"there is no tool '{call.name}'")
        arguments = self._models[call.name].model_validate(dict(call.arguments))
        return self._functions[call.name](**dict(arguments))


@cache
def _build_model(function: Callable[..., object]) -> type[BaseModel]:
    hints = get_type_hints(function)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
