"""An agent whose answers were made earlier, by anyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from assay.builtin.agents.protocol import answer_of, decoded, parsed
from assay.builtin.agents.version import version_of
from assay.model import Answer, Request
from assay.plugin.agent import AgentError, BadAgent, InvalidAnswer

_TOLD = 20


class Recorded:
    """Answers that were made earlier, by any program.

    Each line of the file is {"id", "output", "seconds"?, "usage"?, "error"?, "usd"?, "model"?, "tool_calls"?}. The recorded
    time is kept as a duration called `recorded`; the time measured now is that of reading the answer.

    Args:
        answers: File of JSON lines, each with the id of a case and its output.

    Example:
        - {name: past, type: recorded, answers: answers.jsonl}
    """

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = False

    def __init__(self, answers: str, folder: str = "") -> None:
        self._file = Path(folder) / answers
        self._answers = _read(self._file, answers)

    def open(self) -> None:
        return None

    def close(self) -> None:
        return None

    def found_version(self) -> str:
        return version_of([self._file])

    def answer(self, request: Request) -> Answer:
        found = self._answers.get(request.id)
        if found is None:
            raise AgentError("no recorded answer")
        if isinstance(found, str):
            raise AgentError(found)
        return found


def _read(file: Path, name: str) -> dict[str, Answer | str]:
    """Answers by id, errors as their text; every bad line is told at once."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise BadAgent(f"the answers '{name}' cannot be read: {error.strerror}.") from None
    answers: dict[str, Answer | str] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                _take(parsed(decoded(line)), answers)
            except InvalidAnswer as fault:
                faults.append(f"line {number}: {fault}")
    if faults:
        more = [f"and {len(faults) - _TOLD} more"] if len(faults) > _TOLD else []
        raise BadAgent("\n  ".join([f"'{name}' has lines that are no answers:", *faults[:_TOLD], *more]))
    return answers


def _take(document: Any, answers: dict[str, Answer | str]) -> None:
    if not isinstance(document, dict) or not isinstance(document.get("id"), (str, int)):
        raise InvalidAnswer("needs an 'id'")
    key = str(document["id"])
    if key in answers:
        raise InvalidAnswer(f"the id '{key}' was there before")
    if document.get("error") is not None:
        answers[key] = str(document["error"])
        return
    if not document.keys() & {"output", "tool_calls"}:
        raise InvalidAnswer(f"the answer to '{key}' has neither 'output' nor 'error'")
    seconds = document.get("seconds")
    answers[key] = answer_of(
        document if seconds is None else {**document, "durations": {"recorded": seconds}}
    )
