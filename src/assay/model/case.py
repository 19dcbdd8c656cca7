"""Cases of a benchmark, the scorers that judge what an agent answers to them, and the scores that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ScorerUse:
    """A scorer by name, with its weight and options."""

    name: str
    weight: float = 1.0
    options: Mapping[str, object] = field(default_factory=dict)
    label: str = ""
    """What its score is called: correctness, completeness, relevance, or the scorer's own name."""

    @property
    def score_name(self) -> str:
        return self.label or self.name


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation, with what its answer must be. Without scorers of its own, those of the benchmark judge it."""

    input: object
    expected: object = None
    scorers: tuple[ScorerUse, ...] = ()


ANSWERS = frozenset({"expected_calls", "solution", "tests"})
"""Metadata by which answers are judged."""


@dataclass(frozen=True, slots=True)
class Case:
    """One input and, where there is one, its correct output.

    `input` and `expected` are text or any structure that JSON can hold; a list of texts as `expected` means that each of them is
    right. A case with `turns` is a conversation and needs no input. `files` maps names to absolute paths. `metadata` are
    all other keys of the case: agents receive them as params, except those that give the answer away.
    """

    id: str
    input: object
    expected: object = None
    turns: tuple[Turn, ...] = ()
    tools: tuple[Mapping[str, object], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def shown_metadata(self) -> Mapping[str, object]:
        """Return the metadata without the expected answers, which the agent must not see."""
        if self.metadata.keys().isdisjoint(ANSWERS):
            return self.metadata
        return {key: value for key, value in self.metadata.items() if key not in ANSWERS}


@dataclass(frozen=True, slots=True)
class Score:
    """A judgement of one output, 0 to 1; None is unscored: it could not be judged, and counts nowhere."""

    name: str
    value: float | None
    weight: float = 1.0
    reason: str = ""
    spent: Mapping[str, float] = field(default_factory=dict)
    """What judging used up, by metric: spending of the harness, no part of the agent's."""
