"""The scorer that combines others: each criterion has a scorer and a weight, and may have an expected output of its own.

A criterion may be judged by an agent, so its scorer may return an awaitable. The rubric then returns one, too; without
such a criterion it answers at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.builtin.scorers.options import number, option_error
from assay.builtin.scorers.text_normalization import text_of
from assay.model import AgentUse, Answer, Case, Score, ScorerUse
from assay.plugin import (
    Judged,
    Judgement,
    Scorer,
    add_judge_usage,
    compute_weighted_score,
    example_of,
    make_scorer,
)

if TYPE_CHECKING:
    from assay.plugin import AgentPool

_OWN = ("name", "weight", "scorer", "expected")
_MAIN_OPTION = {"contains": "texts", "regex": "pattern", "json_schema": "schema"}


@dataclass(frozen=True, slots=True)
class _Criterion:
    name: str
    weight: float
    scorer: Scorer
    expected: Any = None
    """In place of the case's own; None leaves that."""

    def judge(self, judged: Judged) -> Awaitable[Judgement] | Judgement:
        material = judged if self.expected is None else replace(judged, expected=self.expected)
        try:
            return self.scorer.score(material)
        except Exception as error:
            return _failure_judgement(error)


class RubricScorer:
    """A weighted mean of criteria, each scored by a scorer of its own and shown under its own name.

    If a criterion with a weight cannot be scored, the output is unscored; its other criteria stay visible.

    Args:
        criteria: A list of {name, weight, scorer: {name, …options}}, or shorter {name, weight, contains: […]} with the scorer as key.

    Example:
        scorer: {name: rubric, criteria: [{name: polite, weight: 1, contains: [please]}, {name: right, weight: 3, scorer: numeric}]}
    """

    def __init__(self, *, criteria: Sequence[object], agent_pool: AgentPool | None = None) -> None:
        if not isinstance(criteria, list | tuple) or not criteria:
            raise _criteria_error(f"must be a list of criteria, not {criteria!r}.")
        self._criteria = [_criterion(written, agent_pool) for written in criteria]
        names = [criterion.name for criterion in self._criteria]
        for name in names:
            if names.count(name) > 1:
                raise _criteria_error(f"names '{name}' twice.")
        if not any(criterion.weight for criterion in self._criteria):
            raise _criteria_error("have no weight: at least one weight must be above 0.")

    @property
    def asks(self) -> tuple[AgentUse, ...]:
        return tuple(use for criterion in self._criteria for use in getattr(criterion.scorer, "asks", ()))

    def score(self, judged: Judged) -> Awaitable[Judgement] | Judgement:
        results = [criterion.judge(judged) for criterion in self._criteria]
        settled = [result for result in results if isinstance(result, Judgement)]
        return (
            self._combine_judgements(settled)
            if len(settled) == len(results)
            else self._await_judgements(results)
        )

    def example(self, expected: Any, case: Case) -> Any:
        """What each criterion would accept, one after the other, where all of them accept that together."""
        if self.asks:
            return None
        examples = [
            example_of(criterion.scorer, expected if criterion.expected is None else criterion.expected, case)
            for criterion in self._criteria
            if criterion.weight
        ]
        known = [example for example in examples if example is not None]
        texts = dict.fromkeys(text_of(example.output) for example in known)
        calls = next((example.tool_calls for example in known if example.tool_calls), ())
        for output in (*(example.output for example in known), "\n".join(texts)):
            judgement = self.score(Judged(output, expected, case, calls))
            if isinstance(judgement, Judgement) and judgement.value == 1:
                return Answer(output, calls)
        return None

    async def _await_judgements(self, results: Sequence[Awaitable[Judgement] | Judgement]) -> Judgement:
        settled = []
        for result in results:
            try:
                settled.append(await result if inspect.isawaitable(result) else result)
            except Exception as error:
                settled.append(_failure_judgement(error))
        return self._combine_judgements(settled)

    def _combine_judgements(self, judgements: Sequence[Judgement]) -> Judgement:
        pairs = list(zip(self._criteria, judgements, strict=True))
        value = compute_weighted_score(
            [Score(criterion.name, result.value, criterion.weight) for criterion, result in pairs]
        )
        parts: dict[str, float | None] = {}
        for criterion, result in pairs:
            parts[criterion.name] = result.value
            parts |= {f"{criterion.name}.{name}": value for name, value in result.parts.items()}
        reasons = [f"{criterion.name}: {result.reason}" for criterion, result in pairs if result.reason]
        return Judgement(
            value, "; ".join(reasons), parts, add_judge_usage(result.spent for result in judgements)
        )


def _criterion(written: object, pool: AgentPool | None) -> _Criterion:
    if not isinstance(written, Mapping):
        raise _criteria_error(f"holds {written!r}, which is not a mapping.")
    use, expected = _use(written)
    weight = number("rubric", "weight", written.get("weight", 1.0))
    expected = written.get("expected", expected)
    return _Criterion(str(written.get("name", use.name)), weight, make_scorer(use, pool), expected)


def _use(written: Mapping[str, Any]) -> tuple[ScorerUse, Any]:
    """The scorer of a criterion and, where the short form gives one, its expected output."""
    if "scorer" in written:
        scorer = written["scorer"]
        if isinstance(scorer, str):
            return ScorerUse(scorer), None
        if not isinstance(scorer, Mapping) or not isinstance(scorer.get("name"), str):
            raise _criteria_error(f"holds the scorer {scorer!r}, which has no name.")
        options = {key: value for key, value in scorer.items() if key != "name"}
        return ScorerUse(scorer["name"], options=options), None
    names = [key for key in written if key not in _OWN]
    if len(names) != 1:
        raise _criteria_error(
            f"needs one scorer in {dict(written)!r}: `scorer: …`, or a scorer's name as the key."
        )
    name, value = names[0], written[names[0]]
    if isinstance(value, Mapping) and name not in ("json", "json_schema"):
        return ScorerUse(name, options=dict(value)), None
    if name in _MAIN_OPTION:
        return ScorerUse(name, options={_MAIN_OPTION[name]: value}), None
    return ScorerUse(name), value


def _criteria_error(problem: str) -> Exception:
    return option_error("rubric", "criteria", problem)


def _failure_judgement(error: Exception) -> Judgement:
    return Judgement(None, f"the scorer failed: {type(error).__name__}: {error}")
