"""A scorer judges an output."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from assay.model import AgentUse, Case, ToolCall


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

    Judges without side effects on what it is shown. An exception is the scorer's fault, not the agent's: the output is
    then unscored. A scorer whose constructor has the keyword `agent_pool` gets the AgentPool of its process, from which it
    opens the agents that it asks; it gets None where its definition is only checked.
    What a scorer may have beyond this is in ScorerHooks. A plain function of `output` and `expected` is a scorer as well.
    """

    def score(self, judged: Judged) -> Awaitable[Judgement] | Judgement: ...


class ScorerHooks(Protocol):
    """What a scorer may have beyond Scorer. Each is looked up by its name; define those that you need and no others."""

    needs_one_of: tuple[str, ...]
    """Keys of a case or options of the scorer, without all of which it cannot score, such as ("expected", "pattern").

    Cases that have none of them get a warning before a run.
    """
    reads: tuple[str, ...]
    """Further keys of a case that it reads, so that a misspelt one is noticed."""
    asks: Sequence[AgentUse]
    """The agents that it asks, so that their cost is in the forecast and in the budget."""

    def example(self, expected: Any, case: Case) -> Any:
        """An output that gets the full score (an Answer where tool calls matter); None where it cannot make one up.

        `assay suite check` scores it. Of a scorer without this method the expected output itself must get the full score.
        """
        ...
