from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from assay.builtin.scorers.options import flag, number, one_of
from assay.builtin.scorers.text_normalization import RIGHT
from assay.builtin.scorers.values import Likeness, common_in_order, placements
from assay.model import Answer, Case, ToolCall
from assay.plugin import Judged, Judgement


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A call that the case expects."""

    name: str
    arguments: Mapping[str, Any] | None
    """None where any will do."""


class ToolCalls:
    """The agent made the expected calls of tools, all of them and no others.

    Expected calls stand under `expected_calls` of the case, or else under `expected`: a list of {name, arguments}.

    Args:
        order: Whether the calls must come in the expected order.
        arguments: How arguments are compared; subset allows further ones, ignore compares names only.
        partial: Whether the score is the F1 of the calls, instead of 0 or 1.
        tolerance: Maximum difference between two numbers that count as equal.

    Example:
        scorer: {name: tool_calls, arguments: subset}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected", "expected_calls")
    reads: ClassVar[tuple[str, ...]] = ("expected_calls",)

    def __init__(
        self,
        *,
        order: Literal["strict", "any"] = "any",
        arguments: Literal["exact", "subset", "ignore"] = "exact",
        partial: bool = False,
        tolerance: float = 0.0,
    ) -> None:
        self._in_order = one_of("tool_calls", "order", order, ("strict", "any")) == "strict"
        self._arguments = one_of("tool_calls", "arguments", arguments, ("exact", "subset", "ignore"))
        self._partial = flag("tool_calls", "partial", partial)
        self._likeness = Likeness(
            number("tool_calls", "tolerance", tolerance), subset=self._arguments == "subset"
        )

    def score(self, judged: Judged) -> Judgement:
        listed = judged.case.metadata.get("expected_calls", judged.expected)
        try:
            wanted = _parse_expected_calls(listed)
        except ValueError as problem:
            return Judgement(None, str(problem))
        calls = judged.tool_calls
        if self._in_order:
            right = common_in_order(wanted, calls, self._fits)
        else:
            right = sum(placements(wanted, calls, self._fits))
        if right == len(wanted) == len(calls):
            return RIGHT
        reason = f"{right} of {len(wanted)} expected calls among {len(calls)} made"
        return Judgement(2 * right / (len(wanted) + len(calls)) if self._partial else 0.0, reason)

    def example(self, expected: object, case: Case) -> Answer | None:
        try:
            wanted = _parse_expected_calls(case.metadata.get("expected_calls", expected))
        except ValueError:
            return None
        # What stands beside the calls is up to other scorers.
        output = expected if "expected_calls" in case.metadata else ""
        return Answer(output, tuple(ToolCall(call.name, call.arguments or {}) for call in wanted))

    def _fits(self, wanted: _Wanted, call: ToolCall) -> bool:
        if wanted.name != call.name:
            return False
        if self._arguments == "ignore" or wanted.arguments is None:
            return True
        try:
            return self._likeness.same(wanted.arguments, call.arguments)
        except RecursionError:
            return False


def _parse_expected_calls(listed: object) -> list[_Wanted]:
    """Expected calls as written; ValueError when they are none."""
    if isinstance(listed, str):
        listed = _parse_json(listed)
    if isinstance(listed, Mapping):
        listed = [listed]
    if not isinstance(listed, list | tuple):
        raise ValueError("the case has no expected calls: a list of {name, arguments}")
    return [_parse_expected_call(call) for call in listed]


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _parse_expected_call(call: object) -> _Wanted:
    """A name alone, {name, arguments}, or OpenAI's {function: {name, arguments}}; arguments may be the text of JSON."""
    if isinstance(call, str):
        return _Wanted(call, None)
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        call = call["function"]
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise ValueError("an expected call has no name: it is written {name: …, arguments: {…}}")
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        arguments = _parse_json(arguments)
    return _Wanted(call["name"], arguments if isinstance(arguments, Mapping) else None)
