"""The instrument that counts what an execution does again: JSON documents that it parses and SQL queries that it sends.

Samples show how long parsing takes, but one large document looks like many small ones; likewise one query and many. Calls are therefore
counted by caller, and their texts told apart by their hash; nothing of them is kept.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar

from assay.builtin.instruments.source_names import artifact_name, short_path
from assay.model import Metric
from assay.plugin import ExperimentContext, File, Reading

Counts = Counter[tuple[str, int, str, int, int]]
"""By file, line and function of the caller, hash and length of the text."""
_MOST_TEXTS = 100_000
_MOST_CALLERS = 50
_LITERALS = re.compile(r"'[^']*'|\b\d+(?:\.\d+)?\b")


class Repeats:
    """How many JSON documents the execution parsed with `json`, how many of them again, and how many queries it sent to SQLite.

    Connections to SQLite count that are opened during the execution.

    Example:
        instrumentation: [timing, repeats]
    """

    slows: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, Metric]] = {
        "json_parsed": Metric("json_parsed", "documents"),
        "json_parsed_again": Metric("json_parsed_again", "documents"),
        "sql_queries": Metric("sql_queries", "queries"),
    }

    def start(self, context: ExperimentContext) -> _Counting:
        state = _Counting(context, json.JSONDecoder.decode, sqlite3.connect)

        def decode(self: json.JSONDecoder, text: str, *args: Any, **options: Any) -> Any:
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("json"):
                frame = frame.f_back
            _count(state.documents, frame, text)
            return state.decode(self, text, *args, **options)

        def connect(*args: Any, **options: Any) -> sqlite3.Connection:
            connection = state.connect(*args, **options)
            connection.set_trace_callback(trace)
            return connection  # type: ignore[no-any-return]

        def trace(statement: str) -> None:
            # Rows of one executemany come one by one, too, but are no queries.
            if statement.lstrip()[:6].lower() == "select":
                _count(state.queries, sys._getframe(1), _LITERALS.sub("?", statement))

        json.JSONDecoder.decode = decode  # type: ignore[method-assign,assignment]
        sqlite3.connect = connect  # type: ignore[assignment]
        return state

    def stop(self, state: _Counting) -> Reading:
        json.JSONDecoder.decode = state.decode  # type: ignore[method-assign]
        sqlite3.connect = state.connect
        calls, documents = sum(state.documents.values()), len({key[3:] for key in state.documents})
        content = {"json": count_by_caller(state.documents), "sql": count_by_caller(state.queries)}
        name = artifact_name("repeats", ".json", state.context)
        measurements = {
            "json_parsed": float(calls),
            "json_parsed_again": float(calls - documents),
            "sql_queries": float(sum(state.queries.values())),
        }
        return Reading(measurements, (File(name, "repeats", json.dumps(content).encode()),))


@dataclass(frozen=True, slots=True)
class _Counting:
    context: ExperimentContext
    decode: Callable[..., Any]
    connect: Callable[..., Any]
    documents: Counts = field(default_factory=Counter)
    queries: Counts = field(default_factory=Counter)


def _count(counts: Counts, caller: FrameType, text: str) -> None:
    if len(counts) < _MOST_TEXTS:
        code = caller.f_code
        counts[code.co_filename, caller.f_lineno, code.co_qualname, hash(text), len(text)] += 1


def count_by_caller(seen: Counts) -> list[dict[str, Any]]:
    """Callers with their calls and distinct texts, those first that repeat most characters."""
    callers: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
    for (file, line, name, _, size), calls in seen.items():
        callers.setdefault((file, line, name), []).append((calls, size))
    found: list[dict[str, Any]] = [
        {
            "function": name,
            "file": short_path(file),
            "line": line,
            "calls": sum(calls for calls, _ in texts),
            "documents": len(texts),
            "characters": sum(calls * size for calls, size in texts),
            "repeated_characters": sum((calls - 1) * size for calls, size in texts),
        }
        for (file, line, name), texts in callers.items()
    ]
    return sorted(found, key=lambda caller: -caller["repeated_characters"])[:_MOST_CALLERS]
