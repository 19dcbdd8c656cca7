from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.builtin.scorers.options import number, refused
from assay.builtin.scorers.texts import text_of
from assay.execute.judging import make_scorer, weighted_score
from assay.execute.soundness import example_of
from assay.execute.spending import together
from assay.model import AgentUse, Answer, Case, Score, ScorerUse
from assay.plugin.scorer import Judged, Judgement, Scorer

if TYPE_CHECKING:
    from assay.execute.agents import Stable

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
        shown = judged if self.expected is None else replace(judged, expected=self.expected)
        try:
            return self.scorer.score(shown)
        except Exception as error:
            return _failed(error)


class RubricScorer:
    """A weighted mean of criteria, each scored by a scorer of its own and shown under its own name.

    If a criterion with a weight cannot be scored, the output is unscored; its other criteria stay visible.

    Args:
        criteria: A list of {name, weight, scorer: {name, …options}}, or shorter {name, weight, contains: […]} with the scorer as key.

    Example:
        scorer: {name: rubric, criteria: [{name: polite, weight: 1, contains: [please]}, {name: right, weight: 3, scorer: numeric}]}
    """

    def __init__(self, *, criteria: Sequence[object], stable: Stable | None = None) -> None:
        if not isinstance(criteria, list | tuple) or not criteria:
            raise _refused(f"must be a list of criteria, not {criteria!r}.")
        self._criteria = [_criterion(one, stable) for one in criteria]
        names = [one.name for one in self._criteria]
        for name in names:
            if names.count(name) > 1:
                raise _refused(f"names '{name}' twice.")
        if not any(one.weight for one in self._criteria):
            raise _refused("give weight to nothing: at least one weight must be above 0.")

    @property
    def asks(self) -> tuple[AgentUse, ...]:
        return tuple(use for one in self._criteria for use in getattr(one.scorer, "asks", ()))

    def score(self, judged: Judged) -> Awaitable[Judgement] | Judgement:
        results = [one.judge(judged) for one in self._criteria]
        settled = [result for result in results if isinstance(result, Judgement)]
        return self._weighed(settled) if len(settled) == len(results) else self._awaited(results)

    def example(self, expected: Any, case: Case) -> Any:
        """What each criterion would accept, one after the other, where all of them accept that together."""
        if self.asks:
            return None
        examples = [
            example_of(one.scorer, expected if one.expected is None else one.expected, case)
            for one in self._criteria
            if one.weight
        ]
        known = [example for example in examples if example is not None]
        texts = dict.fromkeys(text_of(example.output) for example in known)
        calls = next((example.tool_calls for example in known if example.tool_calls), ())
        for output in (*(example.output for example in known), "\n".join(texts)):
            judgement = self.score(Judged(output, expected, case, calls))
            if isinstance(judgement, Judgement) and judgement.value == 1:
                return Answer(output, calls)
        return None

    async def _awaited(self, results: Sequence[Awaitable[Judgement] | Judgement]) -> Judgement:
        settled = []
        for result in results:
            try:
                settled.append(await result if inspect.isawaitable(result) else result)
            except Exception as error:
                settled.append(_failed(error))
        return self._weighed(settled)

    def _weighed(self, judgements: Sequence[Judgement]) -> Judgement:
        pairs = list(zip(self._criteria, judgements, strict=True))
        value = weighted_score([Score(one.name, result.value, one.weight) for one, result in pairs])
        parts = {name: part for one, result in pairs for name, part in _parts(one, result).items()}
        reasons = [f"{one.name}: {result.reason}" for one, result in pairs if result.reason]
        return Judgement(value, "; ".join(reasons), parts, together(result.spent for result in judgements))


def _parts(criterion: _Criterion, judgement: Judgement) -> dict[str, float | None]:
    inner = {f"{criterion.name}.{name}": value for name, value in judgement.parts.items()}
    return {criterion.name: judgement.value, **inner}


def _criterion(written: object, stable: Stable | None) -> _Criterion:
    if not isinstance(written, Mapping):
        raise _refused(f"holds {written!r}, which is not a mapping.")
    use, expected = _use(written)
    weight = number("rubric", "weight", written.get("weight", 1.0))
    expected = written.get("expected", expected)
    return _Criterion(str(written.get("name", use.name)), weight, make_scorer(use, stable), expected)


def _use(written: Mapping[str, Any]) -> tuple[ScorerUse, Any]:
    """The scorer of a criterion and, where the short form gives one, its expected output."""
    if "scorer" in written:
        return _written_out(written["scorer"]), None
    names = [key for key in written if key not in _OWN]
    if len(names) != 1:
        raise _refused(f"needs one scorer in {dict(written)!r}: `scorer: …`, or a scorer's name as the key.")
    name, value = names[0], written[names[0]]
    if isinstance(value, Mapping) and name not in ("json", "json_schema"):
        return ScorerUse(name, options=dict(value)), None
    if name in _MAIN_OPTION:
        return ScorerUse(name, options={_MAIN_OPTION[name]: value}), None
    return ScorerUse(name), value


def _written_out(scorer: object) -> ScorerUse:
    if isinstance(scorer, str):
        return ScorerUse(scorer)
    if not isinstance(scorer, Mapping) or not isinstance(scorer.get("name"), str):
        raise _refused(f"holds the scorer {scorer!r}, which has no name.")
    return ScorerUse(scorer["name"], options={key: value for key, value in scorer.items() if key != "name"})


def _refused(problem: str) -> Exception:
    return refused("rubric", "criteria", problem)


def _failed(error: Exception) -> Judgement:
    return Judgement(None, f"the scorer failed: {type(error).__name__}: {error}")
