"""Counts how often the same JSON document is parsed, and by whom.

Samples show how long parsing takes, but one large document looks like many small ones. While an execution is profiled, calls of
`json` are therefore counted by caller, and their documents told apart by their hash; nothing of them is kept.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from assay.builtin.instruments.source_names import short_path

_MOST_DOCUMENTS = 100_000


class ParsingWatch:
    """Counts while it is started; profiled executions follow each other, so one is started at a time."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, int, str, int, int]] = Counter()
        self._original: Callable[..., Any] = json.JSONDecoder.decode

    def start(self) -> None:
        original, seen = self._original, self._seen

        def decode(self: json.JSONDecoder, text: str, *args: Any, **options: Any) -> Any:
            if len(seen) < _MOST_DOCUMENTS:
                frame = sys._getframe(1)
                while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("json"):
                    frame = frame.f_back
                code = frame.f_code
                seen[code.co_filename, frame.f_lineno, code.co_qualname, hash(text), len(text)] += 1
            return original(self, text, *args, **options)

        json.JSONDecoder.decode = decode  # type: ignore[method-assign,assignment]

    def stop(self) -> None:
        json.JSONDecoder.decode = self._original  # type: ignore[method-assign]

    def counts(self) -> list[dict[str, Any]]:
        """Callers with their calls and distinct documents, those first that parse most characters again."""
        callers: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
        for (file, line, name, _, size), calls in self._seen.items():
            callers.setdefault((file, line, name), []).append((calls, size))
        found: list[dict[str, Any]] = [
            {
                "function": name,
                "file": short_path(file),
                "line": line,
                "calls": sum(calls for calls, _ in documents),
                "documents": len(documents),
                "characters": sum(calls * size for calls, size in documents),
                "repeated_characters": sum((calls - 1) * size for calls, size in documents),
            }
            for (file, line, name), documents in callers.items()
        ]
        return sorted(found, key=lambda caller: -caller["repeated_characters"])[:50]
