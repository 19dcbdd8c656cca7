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
    """Decides which texts an agent reads at all.

    The benchmark gives it harmless and hostile texts. A text is refused by raising ValueError; any other
    exception is a fault of the validator.
    """

    def validate(self, text: str) -> str:
        """The text as the agent may read it, with its words; ValueError for a text that it must not read. Raises nothing else."""
        ...


@runtime_checkable
class ConfigValidator(Protocol):
    """Checks the configuration of an agent before the agent is made.

    It returns all mistakes at once, so that a user does not repair them one by one. The benchmark plants
    known mistakes and counts how many are found.
    """

    def check(self, config: Mapping[str, Any]) -> Sequence[str]:
        """Everything that is wrong, one message each; nothing where the configuration is fine."""
        ...


@runtime_checkable
class StructuredParser(Protocol):
    """Reads a value from the answer of a model that was told to answer in JSON.

    Models wrap JSON in prose and code blocks, and answers that hit a token limit lack their end; a parser
    is judged by how many of these it still reads.
    """

    def parse(self, text: str, schema: Mapping[str, Any]) -> Any:
        """The value in the text, valid under the JSON schema; ValueError where there is none.

        The text may be JSON, JSON in a code block within other text, or JSON whose end is missing.
        """
        ...


@runtime_checkable
class ToolCaller(Protocol):
    """Describes the tools of an agent to a model, and calls them.

    The benchmark compares `call` with the plain functions behind the tools, so its figures are what the
    agent adds to them.
    """

    def schemas(self) -> Sequence[Mapping[str, Any]]:
        """What a model is told of the tools: {"name", "description", "parameters": JSON schema}. Made anew each time."""
        ...

    def function_of(self, name: str) -> Any:
        """The plain function behind a tool, which the benchmark calls to see what calling through the tool adds, and what it must give."""
        ...

    def call(self, calls: Sequence[ToolCall]) -> Sequence[object]:
        """The result of each call, in their order; calls may run at the same time. ValueError for arguments that do not fit."""
        ...


@runtime_checkable
class ConversationMemory(Protocol):
    """What an agent remembers of a conversation.

    It is made without arguments for each conversation. The benchmark appends messages and checks what it
    gets back: the latest ones in their order, a summary within its limit, and those that fit a query.
    """

    def append(self, role: str, content: str) -> None: ...

    def window(self, count: int) -> Sequence[Mapping[str, str]]:
        """The latest messages, the oldest of them first."""
        ...

    def summarise(self, sentences: int) -> str:
        """What was said, in at most so many sentences."""
        ...

    def search(self, query: str, count: int) -> Sequence[Mapping[str, str]]:
        """The messages that fit best, at most so many, the best first."""
        ...


@runtime_checkable
class AnswerEvaluator(Protocol):
    """Judges an answer without asking a model, so it is quick and gives the same marks each time.

    The benchmark checks that better answers get higher marks, whatever was judged before.
    """

    def evaluate(self, question: str, answer: str) -> Mapping[str, float]:
        """Return `relevance`, `coherence` and `helpfulness`, each between 0 and 1."""
        ...


@runtime_checkable
class RewardFunction(Protocol):
    """Rewards a whole conversation with one number, as reinforcement learning needs it.

    Only the order of rewards matters to the benchmark: a good conversation must get more than a bad one.
    """

    def reward(self, turns: Sequence[Mapping[str, str]]) -> float:
        """Higher is better."""
        ...


class AgentComponents(Protocol):
    """Attributes by which an agent plug-in offers its parts to the benchmarks of `agent_components`.

    All of them are optional and stand on the class of the agent. A benchmark of a part that an agent does
    not offer is skipped with that reason.
    """

    validator: InputValidator
    config_validator: ConfigValidator
    parser: StructuredParser
    tools: ToolCaller
    memory: type[ConversationMemory]
    """The class, since each conversation has a memory of its own."""
    evaluator: AnswerEvaluator
    reward_function: RewardFunction
