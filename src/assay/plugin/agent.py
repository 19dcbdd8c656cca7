"""An agent is the thing under test."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, Protocol, runtime_checkable

from assay.model import Answer, Request

LOG_ENDS = "\nIts log ends: "
"""Between the text of an error and the last words of the program."""


class AgentError(Exception):
    """The agent, or the way to it, failed: recorded as a failed execution with this text.

    `answer` is what is known of the failed answer all the same, such as its tokens and cost.
    """

    def __init__(self, message: str = "", answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer
        self.exit_code: int | None = None
        """Of a program that ended; negative for a signal."""
        self.log = ""
        """The last words of a program on standard error; they are in the message as well."""


class InvalidAnswer(AgentError):
    """Something came back that is not an answer: broken JSON, another id, nonsense for usage."""


class BadAgent(Exception):
    """The agent's definition cannot work; told to the user before anything runs."""


@runtime_checkable
class Agent(Protocol):
    """Made with the keys of its definition as keywords; raises BadAgent when they make no sense.

    `open` and `close` run once in each process, `answer` once a request; each may be sync or async. An agent whose
    `answer` is async may be asked many things at a time, on one event loop.

    Further attributes, each False where it is missing: `is_local` (it computes in this process, so CPU time is its own),
    `is_remote` (it asks another machine, so a suite that does not say otherwise does without warm-ups; it may be a property),
    `is_thread_safe` (a sync `answer` may be called from several threads at a time), `sees_answers` (requests carry the
    right output: for an oracle), `may_call_models` (an answer that names a model and tokens is
    priced), `tells_cost` (every answer says what it cost). A method `cpu_seconds` gives the CPU time of processes of its
    own; a method `peak_bytes` the most memory that they held at a time since it was called last, or None where that is
    not known. A method `prepare` is told before a load how many requests it may get at a time, and may start what it needs
    for them. A method `source_files` lists the files that hold its code, for agents whose code is on this machine: then
    `assay gate --rerun-baseline` runs an earlier version from the commit that it was measured with. A static method
    `model_name` with the parameters `model` and `folder` tells how answers call the model that is asked for by that name,
    where that is another one.
    """

    is_simulated: ClassVar[bool]
    """Whether its figures are made up rather than measured."""
    is_free: ClassVar[bool]
    """Whether asking it costs nothing: then cost is 0, not unknown."""

    def open(self) -> Awaitable[None] | None: ...

    def answer(self, request: Request) -> Awaitable[Answer] | Answer: ...

    def close(self) -> Awaitable[None] | None: ...

    def found_version(self) -> str:
        """A version found rather than given, once opened: a commit, or the model id that answers; "" if none."""
        ...
