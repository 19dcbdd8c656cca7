"""A scorer found by its name, made with options, and asked for one judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.model import Case, ScorerUse, ToolCall
from assay.plugin.scorer import Judged, Judgement, Scorer
from assay.plugin.scorers import make_scorer


def made(name: str, **options: Any) -> Scorer:
    return make_scorer(ScorerUse(name, options=options))


def shown(
    output: Any,
    expected: Any = None,
    metadata: Mapping[str, Any] | None = None,
    calls: Sequence[ToolCall] = (),
    id: str = "1",
) -> Judged:
    return Judged(output, expected, Case(id, "the question", expected, metadata=metadata or {}), tuple(calls))


def judgement(
    name: str, output: Any, expected: Any = None, metadata: Any = None, **options: Any
) -> Judgement:
    result = made(name, **options).score(shown(output, expected, metadata))
    assert isinstance(result, Judgement)
    return result


def value(name: str, output: Any, expected: Any = None, metadata: Any = None, **options: Any) -> float | None:
    return judgement(name, output, expected, metadata, **options).value
