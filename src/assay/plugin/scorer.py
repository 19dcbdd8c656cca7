"""A scorer judges an output."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from assay.model import Case, ToolCall


@dataclass(frozen=True, slots=True)
class Judged:
    """What a scorer is shown: an output, and the case it is the answer to."""

    output: Any
    expected: Any
    case: Case
    tool_calls: tuple[ToolCall, ...] = ()
    history: tuple[Mapping[str, Any], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Judgement:
    """0 to 1, or None when it cannot be judged, with the reason in a few words."""

    value: float | None
    reason: str = ""
    parts: Mapping[str, float | None] = field(default_factory=dict)
    """Named scores beside the main one, such as correctness, completeness, relevance."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """What judging used up: judge_calls, judge_tokens, judge_usd; the last two only where they are known of every call."""


@runtime_checkable
class Scorer(Protocol):
    """Made once with the options of the suite as keywords; PlanError for options that make no sense.

    Judges without side effects on what it is shown. An exception is the scorer's fault, not the agent's.
    One that puts questions to agents has an attribute `asks`: their definitions, so that their cost can be foreseen.

    Two more attributes are optional tuples of names. `needs_one_of`: keys of the case or options of the scorer, without
    all of which it cannot score, such as ("expected", "pattern"); cases that have none are warned about before a run.
    `reads`: further keys of the case that it reads, so that a misspelt one is noticed.
    A method `example(expected, case)` gives an output that it would give the full score (or an Answer, where tool calls
    matter), and None where it cannot construct one: `assay suite check` tries it. Without that method the expected output
    itself must get the full score.
    """

    def score(self, judged: Judged) -> Awaitable[Judgement] | Judgement: ...
