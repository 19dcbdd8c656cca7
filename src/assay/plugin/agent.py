"""The contract of agents, the things under test.

An agent type is a class that turns a `Request` into an `Answer`. Assay creates it in several places: once while planning, to find
mistakes in its definition; once in each worker process, where it is opened and asked; and for load tests in the workers of the
load generator. So the constructor must be cheap and must not connect, start or read anything large: that belongs in `open`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from assay.model import Answer, Request

LOG_ENDS = "\nIts log ends: "
"""Between the text of an error and the last words of the program."""


class AgentError(Exception):
    """The agent, or the connection to it, failed: recorded as a failed execution with this text.

    `answer` holds what is known of the failed answer, such as its tokens and cost.
    """

    def __init__(self, message: str = "", answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer
        self.exit_code: int | None = None
        """Exit code of a program that ended; negative for a signal."""
        self.log = ""
        """The last words of a program on standard error; they are in the message as well."""


class InvalidAnswer(AgentError):
    """The response is not an answer: broken JSON, another id, impossible usage."""


class BadAgent(Exception):
    """The agent's definition cannot work. Assay reports this to the user before anything runs."""


@runtime_checkable
class Agent(Protocol):
    """Answers requests. The constructor gets the keys of the agent's definition as keywords and raises BadAgent if they are wrong.

    `open` and `close` run once in each process, `answer` once per request; each may be sync or async. An agent with an async
    `answer` may get many requests at a time, all on one event loop. A sync `answer` is called from one thread at a time unless
    the agent declares `is_thread_safe`.

    Only the call of `answer` is timed. Whatever it raises is a failed execution and never ends the run: AgentError and
    InvalidAnswer say that the agent, or the connection to it, failed in a known way, and any other exception is recorded as
    a failure, too. An agent does not enforce limits of time or memory: the supervisor does, from outside, by ending the process.

    Assay fills in two keywords if the constructor has them and the definition does not set them: `folder`, the folder of the
    defining file, against which relative paths are resolved, and `concurrency`, the maximum number of requests in flight.
    Optional attributes and methods are in AgentHooks.
    """

    is_simulated: ClassVar[bool]
    """Whether its figures are made up rather than measured."""
    is_free: ClassVar[bool]
    """Whether asking it costs nothing: then cost is 0, not unknown."""

    def open(self) -> Awaitable[None] | None: ...

    def answer(self, request: Request) -> Awaitable[Answer] | Answer: ...

    def close(self) -> Awaitable[None] | None: ...

    def found_version(self) -> str:
        """Return the version that is known once the agent is open, such as a commit or the model that answers; "" if there is none."""
        ...


class AgentHooks(Protocol):
    """Optional attributes and methods of an agent. Assay looks each one up by name, so define only those that you need.

    A missing flag counts as False. Flags may be class attributes or properties. This class is never instantiated or subclassed:
    it exists to document the hooks and to let type checkers see them.
    """

    is_local: bool
    """It computes in the worker itself: CPU time and memory of the worker are its own."""
    is_remote: bool
    """It calls another machine: by default, suites run no warm-up."""
    is_thread_safe: bool
    """A sync `answer` may be called from several threads at a time."""
    sees_answers: bool
    """Requests carry the expected output: for oracles and simulated agents."""
    may_call_models: bool
    """An answer that names a model and counts tokens is priced by the public price list, though the agent is free."""
    tells_cost: bool
    """Every answer says what it cost."""
    provider: str | None
    """The provider whose price list has the model; None if no list has it. Agents that call no model omit it."""
    variables: Sequence[str]
    """Environment variables that it reads although no option names them, such as that of a key; a class attribute. They and those that
    options name as ${NAME} are handed to workers on other machines."""

    def prepare(self, places: int) -> None:
        """Called once before a load, after `open`: start what that many requests at a time need."""
        ...

    def cpu_seconds(self) -> float:
        """CPU time until now of processes of its own."""
        ...

    def peak_bytes(self) -> int | None:
        """The most memory that processes of its own held since the last call; None where that is not known."""
        ...

    def source_files(self) -> Sequence[Path]:
        """The files that hold its code, where that is on this machine.

        `assay gate --rerun-baseline` then runs an earlier version from the commit that it was measured with.
        """
        ...

    def answer_from(self, cassette: object, folder: Path) -> None:
        """Take the responses of its model from a cassette, as `cassette` in the agent's definition names it.

        Called before `open`; `folder` is that of the definition. PlanError where the cassette cannot be used. For an agent
        without this hook, `cassette` is refused.
        """
        ...

    @staticmethod
    def model_name(model: str, folder: str) -> str:
        """Return the name that answers report for the model that a definition calls `model`."""
        ...
