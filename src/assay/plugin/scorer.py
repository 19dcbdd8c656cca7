"""The contract of scorers, which judge outputs.

Scorers run in the worker right after an answer, outside of the timed part, and again in `assay rescore` on stored outputs, where no
agent runs. They see only what `Judged` holds, so that both give the same score.
"""

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
    """A score from 0 to 1, or None if the output cannot be judged, with the reason in a few words."""

    value: float | None
    reason: str = ""
    parts: Mapping[str, float | None] = field(default_factory=dict)
    """Named scores beside the main one, such as correctness, completeness, relevance."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """What judging used: judge_calls, judge_tokens, judge_usd; the last two only if they are known for every call."""


@runtime_checkable
class Scorer(Protocol):
    """Scores outputs. The constructor gets the options of the suite as keywords and raises PlanError if they are wrong.

    One object scores all outputs of a process, so `score` must not keep state from one output to the next or change what it is
    shown. It may be sync or async. If it raises, the scorer is at fault and not the agent: the output counts as unscored, is left
    out of accuracy, and can be scored again later. A score of 0 says that the answer is wrong; only a value of None, or an
    exception, says that it could not be judged.

    A scorer that asks a model takes the keyword `agent_pool`: the AgentPool of its process, from which it opens the agents that
    it asks. It is None while a definition is only checked.
    Optional attributes and methods are in ScorerHooks. A plain function of `output` and `expected` is a scorer, too.
    """

    def score(self, judged: Judged) -> Awaitable[Judgement] | Judgement: ...


class ScorerHooks(Protocol):
    """Optional attributes and methods of a scorer. Assay looks each one up by name, so define only those that you need."""

    needs_one_of: tuple[str, ...]
    """Keys of a case or options of the scorer, without all of which it cannot score, such as ("expected", "pattern").

    Cases that have none of them get a warning before a run.
    """
    reads: tuple[str, ...]
    """Further keys of a case that it reads, so that a misspelt one is noticed."""
    asks: Sequence[AgentUse]
    """The agents that it asks, so that their cost is in the forecast and in the budget."""

    def example(self, expected: Any, case: Case) -> Any:
        """Return an output that gets the full score (an Answer if tool calls matter), or None if none can be constructed.

        `assay suite check` scores it. Without this method, the expected output itself must get the full score.
        """
        ...
