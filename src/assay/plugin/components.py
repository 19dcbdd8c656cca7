"""The parts of an agent that the component benchmarks measure by themselves, each as small as a benchmark can work with.

`assay run structured_output --set target=mine.py:Parser` measures a part on its own. An agent plug-in that has attributes
named as in `AgentComponents` is measured with them: `assay run agent_components --agent NAME`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from assay.model import ToolCall


@runtime_checkable
class InputValidator(Protocol):
    """Decides what an agent reads at all."""

    def validate(self, text: str) -> str:
        """The text as the agent may read it; ValueError for a text that it must not read. Raises nothing else."""
        ...


@runtime_checkable
class ConfigValidator(Protocol):
    """Checks the configuration of an agent."""

    def check(self, config: Mapping[str, Any]) -> Sequence[str]:
        """Everything that is wrong, one message each; nothing where the configuration is fine."""
        ...


@runtime_checkable
class StructuredParser(Protocol):
    """Reads the structured answer of a model."""

    def parse(self, text: str, schema: Mapping[str, Any]) -> Any:
        """The value in the text, valid under the JSON schema; ValueError where there is none.

        The text may be JSON, JSON in a code block within other text, or JSON whose end is missing.
        """
        ...


@runtime_checkable
class ToolCaller(Protocol):
    """Describes and calls the tools of an agent."""

    def schemas(self) -> Sequence[Mapping[str, Any]]:
        """What a model is told of the tools: {"name", "description", "parameters": JSON schema}. Made anew each time."""
        ...

    def function_of(self, name: str) -> Any:
        """The plain function behind a tool, which the benchmark calls to see what calling through the tool adds."""
        ...

    def call(self, calls: Sequence[ToolCall]) -> Sequence[object]:
        """The result of each call, in their order; calls may run at the same time. ValueError for arguments that do not fit."""
        ...


@runtime_checkable
class ConversationMemory(Protocol):
    """What an agent remembers of a conversation; made without arguments for each conversation."""

    def append(self, role: str, content: str) -> None: ...

    def window(self, count: int) -> Sequence[Mapping[str, str]]:
        """The latest messages, the oldest of them first."""
        ...

    def summarise(self, sentences: int) -> str:
        """What was said, in at most so many sentences."""
        ...

    def search(self, query: str, count: int) -> Sequence[Mapping[str, str]]:
        """The messages that fit best, the best first."""
        ...


@runtime_checkable
class AnswerEvaluator(Protocol):
    """Judges an answer without a model."""

    def evaluate(self, question: str, answer: str) -> Mapping[str, float]:
        """Each between 0 and 1: `relevance`, `coherence`, `helpfulness`."""
        ...


@runtime_checkable
class RewardFunction(Protocol):
    """Rewards whole conversations, as reinforcement learning needs it."""

    def reward(self, turns: Sequence[Mapping[str, str]]) -> float:
        """Higher is better."""
        ...


class AgentComponents(Protocol):
    """Attributes by which an agent plug-in offers its parts; an agent has those that it likes, on its class."""

    validator: InputValidator
    config_validator: ConfigValidator
    parser: StructuredParser
    tools: ToolCaller
    memory: type[ConversationMemory]
    """The class, since each conversation has a memory of its own."""
    evaluator: AnswerEvaluator
    reward_function: RewardFunction
