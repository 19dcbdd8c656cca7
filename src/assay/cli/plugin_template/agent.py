"""An agent: Assay asks it the cases of a suite and measures its answers."""

from __future__ import annotations

from typing import ClassVar

from assay.model import Answer, Request
from assay.plugin import AgentError, BadAgent


class TemplateNameAgent:
    """Answers with the input in capital letters. Call your model or service instead.

    Args:
        suffix: Text at the end of every answer.

    Example:
        - {name: mine, type: template_name, suffix: "!"}
    """

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = True

    def __init__(self, *, suffix: str = "") -> None:
        if not isinstance(suffix, str):
            raise BadAgent(f"suffix must be text, not {suffix!r}.")
        self._suffix = suffix

    def open(self) -> None:
        """Connect here. It runs once in each process, before the first request, and is not timed."""

    def answer(self, request: Request) -> Answer:
        if not isinstance(request.input, str):
            raise AgentError("This agent answers text only.")  # recorded as a failed execution
        return Answer(request.input.upper() + self._suffix)

    def close(self) -> None:
        """Disconnect here."""

    def found_version(self) -> str:
        return ""  # the model or commit that answers, if it is known only once the agent is open
