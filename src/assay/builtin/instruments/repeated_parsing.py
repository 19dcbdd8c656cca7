"""The instrument that counts how often the same JSON document is parsed, and by whom.

Samples show how long parsing takes, but one large document looks like many small ones. Calls of `json` are therefore counted by caller,
and their documents told apart by their hash; nothing of them is kept.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assay.builtin.instruments.source_names import artifact_name, short_path
from assay.model import Metric
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import File, Reading

_MOST_DOCUMENTS = 100_000
_MOST_CALLERS = 50


class Parsing:
    """How many JSON documents the execution parsed with the module `json`, and how many of them it had parsed before.

    Example:
        instrumentation: [timing, parsing]
    """

    slows: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, Metric]] = {
        "json_parsed": Metric("json_parsed", "documents"),
        "json_parsed_again": Metric("json_parsed_again", "documents"),
    }

    def start(self, context: ExperimentContext) -> _Counting:
        state = _Counting(context, json.JSONDecoder.decode)
        original, seen = state.original, state.seen

        def decode(self: json.JSONDecoder, text: str, *args: Any, **options: Any) -> Any:
            if len(seen) < _MOST_DOCUMENTS:
                frame = sys._getframe(1)
                while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("json"):
                    frame = frame.f_back
                code = frame.f_code
                seen[code.co_filename, frame.f_lineno, code.co_qualname, hash(text), len(text)] += 1
            return original(self, text, *args, **options)

        json.JSONDecoder.decode = decode  # type: ignore[method-assign,assignment]
        return state

    def stop(self, state: _Counting) -> Reading:
        json.JSONDecoder.decode = state.original  # type: ignore[method-assign]
        calls, documents = sum(state.seen.values()), len({key[3:] for key in state.seen})
        content = json.dumps(count_by_caller(state.seen)).encode()
        name = artifact_name("parsing", ".json", state.context)
        return Reading(
            {"json_parsed": float(calls), "json_parsed_again": float(calls - documents)},
            (File(name, "parsing", content),),
        )


@dataclass(frozen=True, slots=True)
class _Counting:
    context: ExperimentContext
    original: Callable[..., Any]
    seen: Counter[tuple[str, int, str, int, int]] = field(default_factory=Counter)
    """File, line and function of the caller, hash and length of the document."""


def count_by_caller(seen: Mapping[tuple[str, int, str, int, int], int]) -> list[dict[str, Any]]:
    """Callers with their calls and distinct documents, those first that parse most characters again."""
    callers: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
    for (file, line, name, _, size), calls in seen.items():
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
    return sorted(found, key=lambda caller: -caller["repeated_characters"])[:_MOST_CALLERS]
