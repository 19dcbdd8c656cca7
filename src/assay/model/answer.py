"""What an agent is asked and what it answers: the two sides of the agent protocol.

The case runner makes a `Request` for each case or turn and hands it to an agent, which returns an `Answer`. These types are public:
authors of agents import them from `assay`, and the reference pages document each field by the text below it. What an answer does
not say stays None, which means unknown and is never counted as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the agent called, or asked to have called."""

    name: str
    """Name of the tool."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Its arguments by name."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer used up; None where the agent did not report it."""

    input_tokens: int | None = None
    """Tokens of the prompt."""
    output_tokens: int | None = None
    """Tokens of the answer, reasoning included."""
    cached_tokens: int | None = None
    """The part of the input that came from a cache."""
    reasoning_tokens: int | None = None
    """The part of the output that was reasoning."""
    api_calls: int | None = None
    """Calls of a model."""

    @property
    def tokens(self) -> int | None:
        """Unknown where one half of it is: that is not 0."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Span:
    """One part of where an execution's time went; kind is llm, tool, agent, queue or harness."""

    name: str
    """What is shown in the profile."""
    kind: str
    """llm, tool, agent, queue or harness."""
    start: float
    """Seconds after the execution began."""
    seconds: float
    """How long it took."""
    parent: int | None = None
    """Place of the span that it is a part of, among the spans of the answer; None where that is not known."""
    attributes: Mapping[str, object] = field(default_factory=dict)
    """For a call: `input_tokens`, `output_tokens`, `cached_tokens`, `input_hash`, and whatever else `assay.span` records."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent is asked: one case, or one turn of it."""

    id: str
    """Id of the case."""
    input: object
    """Text, or whatever structure the case holds."""
    params: Mapping[str, object] = field(default_factory=dict)
    """The agent's `params`, and the metadata of the case."""
    history: Sequence[Mapping[str, object]] = ()
    """Earlier turns as {"role": …, "content": …}, oldest first."""
    tools: Sequence[Mapping[str, object]] = ()
    """Tools on offer, each {"name", "description", "parameters": JSON schema}."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name to absolute path of files that belong to the case."""
    expected: object = None
    """The correct output; only the agent `oracle` may look at it."""
    max_tokens: int | None = None
    """From the limits, for agents that can pass it on."""
    repetition: int = 0
    """How often the case was asked before in this run; use it with `seed` for random numbers."""
    seed: int = 0
    """Seed of the run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from an agent."""

    output: object
    """Text, or any structure."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Tools that it called, in order."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and calls."""
    usd: float | None = None
    """Cost as the provider reported it; otherwise the price list decides."""
    first_token_seconds: float | None = None
    """From sending the request to the first content; None where the answer was not streamed."""
    spans: tuple[Span, ...] = ()
    """Parts of its time, for the profile."""
    model: str | None = None
    """The model that really answered."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds as the server reports them, e.g. load, prompt_eval, eval."""
    attempts: tuple[Mapping[str, object], ...] = ()
    """Earlier tries of the same request: {"error": …, "seconds": …}."""
    is_simulated: bool = False
    """Whether its figures are made up; then they are marked, and ranked apart."""
    log: str | None = None
    """What it wrote beside the answer, kept with the execution."""
    content_seconds: tuple[float, ...] = ()
    """When each piece of content came, after sending; empty where the answer was not streamed."""
    seconds: float | None = None
    """From sending the request to the last byte of its answer; None where no request went over a wire."""
