"""Scorers made from their definitions, and what is common to all of them.

A scorer is a class (see `scorer`) or a plain function; both become an object with `score`. Whether `score` answers at once or
returns an awaitable is up to the scorer, and its caller has to check.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from assay.errors import PlanError
from assay.model import Answer, Case, Score, ScorerUse
from assay.plugin import lookup
from assay.plugin.scorer import Judged, Judgement, Scorer

if TYPE_CHECKING:
    from assay.plugin.agent_pool import AgentPool


def make_scorer(use: ScorerUse, pool: AgentPool | None = None) -> Scorer:
    """A scorer with its options; a plain function of the output and the expected one is taken, too."""
    member = lookup.find("scorers", use.name)
    options = dict(use.options)
    if not inspect.isclass(member):
        return FunctionScorer(member, options)
    if "agent_pool" in inspect.signature(member).parameters:
        options["agent_pool"] = pool
    try:
        return cast(Scorer, member(**options))
    except TypeError as error:
        raise PlanError(f"Scorer '{use.name}' does not take these options: {error}") from None


class FunctionScorer:
    """Your own function: of `output` and `expected`, and of `case` if it has such a parameter."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._function, self._options = function, options
        self._names = set(inspect.signature(function).parameters)

    def score(self, judged: Judged) -> Any:
        """Call the function with output, expected, and those of the other parameters that it has."""
        offered = {"case": judged.case, "tool_calls": judged.tool_calls, "judged": judged}
        extra = {name: value for name, value in offered.items() if name in self._names}
        result = self._function(judged.output, judged.expected, **extra, **self._options)
        if not inspect.isawaitable(result):
            return _judgement(result)

        async def await_judgement() -> Judgement:
            return _judgement(await result)

        return await_judgement()


def _judgement(value: Any) -> Judgement:
    """What a function returned as a judgement: a number from 0 to 1, True or False, a judgement, or None for unscored."""
    if isinstance(value, Judgement):
        return value
    if value is None:
        return Judgement(None, "the function could not judge it")
    number = float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"a score must be between 0 and 1, not {number:g}")
    return Judgement(number)


def compute_weighted_score(scores: Sequence[Score]) -> float | None:
    """The weighted mean; None if any score with a weight is missing, because a mean of the others is another measure."""
    values = [(score.value, score.weight) for score in scores if score.weight > 0]
    known = [(value, weight) for value, weight in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)


def example_of(scorer: Scorer, expected: Any, case: Case) -> Answer | None:
    """What the scorer says it would accept; of one that does not say, the expected output."""
    if not hasattr(scorer, "example"):
        is_list = isinstance(expected, list | tuple) and bool(expected)
        # The first of several texts, of which any is correct; everything else as it is.
        is_any_of = is_list and all(isinstance(text, str) for text in expected)
        return Answer(expected[0] if is_any_of else expected)
    try:
        example = scorer.example(expected, case)
    except (Exception, SystemExit):
        return None  # a plug-in that cannot say what it accepts is no mistake of the suite
    return example if example is None or isinstance(example, Answer) else Answer(example)
