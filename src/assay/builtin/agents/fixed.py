"""Trivial agents: the correct answer, no answer, or always the same answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from assay.dialects.plain import answer_of
from assay.model import Answer, Request

EXPECTED_CALLS = "expected_calls"
"""The key of a case under which the calls that must be made are written."""


class InstantAgent:
    """An agent that has nothing to open or to close, and no version of its own."""

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = True

    def open(self) -> None:
        return None

    def close(self) -> None:
        return None

    def found_version(self) -> str:
        return ""


class Oracle(InstantAgent):
    """Gives the `solution` of a case or else its expected output, and makes the expected calls.

    Where `expected` is not an answer but tests or a pattern, it has nothing right to give; see: assay suite check.

    Example:
        - {name: ceiling, type: oracle}
    """

    sees_answers: ClassVar[bool] = True

    def answer(self, request: Request) -> Answer:
        listed = request.params.get(EXPECTED_CALLS, request.expected if request.tools else None)
        output = request.params.get("solution", right_output(request.expected))
        calls = [
            call.get("function", call) if isinstance(call, Mapping) else {"name": call}
            for call in _calls(listed)
        ]
        return answer_of({"output": output, "tool_calls": calls})


def right_output(expected: Any) -> Any:
    """The first of several texts, of which any is right; everything else as it is."""
    is_any_of = (
        isinstance(expected, (list, tuple)) and expected and all(isinstance(text, str) for text in expected)
    )
    return expected[0] if is_any_of else expected


def _calls(listed: Any) -> list[Any]:
    """Expected calls: one or several, as values or as the text of such."""
    if isinstance(listed, str):
        try:
            listed = json.loads(listed)
        except ValueError:
            return []
    if isinstance(listed, Mapping):
        return [listed]
    return list(listed) if isinstance(listed, (list, tuple)) else []


class Nop(InstantAgent):
    """Gives an empty answer; a suite on which it scores above 0.0 has a mistake.

    Example:
        - {name: floor, type: nop}
    """

    def answer(self, request: Request) -> Answer:
        return Answer("")


class Stub(InstantAgent):
    """Gives the same answer to everything. Its figures are marked as simulated.

    Args:
        answer: The output.
        usage: Tokens that each answer reports.

    Example:
        - {name: canned, type: stub, answer: "42", usage: {input_tokens: 8, output_tokens: 1}}
    """

    is_simulated: ClassVar[bool] = True
    is_thread_safe: ClassVar[bool] = True

    def __init__(self, answer: object = "", usage: Mapping[str, int] | None = None) -> None:
        self._answer = answer_of({"output": answer, "usage": usage})

    def answer(self, request: Request) -> Answer:
        return self._answer
