"""Outputs are judged by the scorers of a benchmark. If a scorer with weight fails, the execution is unscored as a whole."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from assay.errors import PlanError
from assay.execute.answer_limits import limit_reason
from assay.execute.interruption import BY_USER
from assay.execute.spending import judging_in, together
from assay.execute.told import summary
from assay.model import Answer, Benchmark, Case, Execution, Score, ScorerUse, ToolCall, Turn
from assay.plugin import lookup
from assay.plugin.scorer import Judged, Judgement, Scorer

if TYPE_CHECKING:
    from assay.execute.agents import Stable


def make_scorer(use: ScorerUse, stable: Stable | None = None) -> Scorer:
    """A scorer with its options; a plain function of the output and the expected one is taken, too."""
    member = lookup.find("scorers", use.name)
    options = dict(use.options)
    if not inspect.isclass(member):
        return FunctionScorer(member, options)
    if "stable" in inspect.signature(member).parameters:
        options["stable"] = stable
    try:
        return cast(Scorer, member(**options))
    except TypeError as error:
        raise PlanError(f"Scorer '{use.name}' does not take these options: {error}") from None


class FunctionScorer:
    """Your own function: of `output` and `expected`, and of `case` if it has such a parameter."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._function, self._options = function, options
        self._names = set(inspect.signature(function).parameters)

    async def _awaited(self, result: Any) -> Judgement:
        return _judgement(await result)

    def score(self, judged: Judged) -> Any:
        offered = {"case": judged.case, "tool_calls": judged.tool_calls, "judged": judged}
        extra = {name: value for name, value in offered.items() if name in self._names}
        result = self._function(judged.output, judged.expected, **extra, **self._options)
        return self._awaited(result) if inspect.isawaitable(result) else _judgement(result)


def _judgement(value: Any) -> Judgement:
    if isinstance(value, Judgement):
        return value
    if value is None:
        return Judgement(None, "the function could not judge it")
    number = float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"a score must be between 0 and 1, not {number:g}")
    return Judgement(number)


class Panel:
    """The scorers of a trial. Turns of a conversation may have their own; the case's score is then their mean."""

    def __init__(self, uses: Sequence[ScorerUse], cases: Iterable[Case], stable: Stable | None) -> None:
        self._uses = tuple(uses)
        # Made before anything is asked: a judge opens its agent, which cannot be done while a loop is running.
        of_turns = (use for case in cases for turn in case.turns for use in turn.scorers)
        needed = {_key(use): use for use in (*self._uses, *of_turns)}
        self._made: dict[str, Scorer] = {key: make_scorer(use, stable) for key, use in needed.items()}
        self._usual = tuple((use, self._made[_key(use)]) for use in self._uses)

    def judge(self, case: Case, answers: Sequence[Answer], scores: list[Score]) -> Any:
        """Judge at once where no scorer waits for anything; otherwise hand back what has to be awaited."""
        waiting = []
        for due in self._due(case, answers):
            result = _ventured(due.scorer, due.judged)
            if isinstance(result, Judgement):
                scores += _scores(due, result)
            else:
                waiting.append((due, result))
        return self._rest(waiting, scores) if waiting else None

    async def judged(self, case: Case, answers: Sequence[Answer], scores: list[Score]) -> None:
        waiting = self.judge(case, answers, scores)
        if waiting is not None:
            await waiting

    async def _rest(self, waiting: list[tuple[_Due, Any]], scores: list[Score]) -> None:
        for due, awaitable in waiting:
            try:
                judgement = check_judgement(await awaitable)
            except BY_USER:
                raise
            except BaseException as error:
                judgement = failed_judgement(error)
            scores += _scores(due, judgement)

    def _due(self, case: Case, answers: Sequence[Answer]) -> Iterator[_Due]:
        if not case.turns:
            judged = Judged(answers[-1].output, case.expected, case, answers[-1].tool_calls)
            yield from (_Due(use, scorer, judged) for use, scorer in self._usual)
            return
        turns = _checks(case)
        has_checks = [turn.expected is not None or bool(turn.scorers) for turn in turns]
        for number, (turn, answer) in enumerate(zip(turns, answers, strict=True), 1):
            if not has_checks[number - 1] and number < len(answers):
                continue
            judged = Judged(answer.output, turn.expected, case, answer.tool_calls)
            is_optional = not has_checks[number - 1] and any(has_checks)
            for use in turn.scorers or self._uses:
                named = _of_turn(use, number, len(answers))
                yield _Due(named, self._made[_key(use)], judged, is_optional)


@dataclass(frozen=True, slots=True)
class _Due:
    """One judgement to make."""

    use: ScorerUse
    scorer: Scorer
    judged: Judged
    is_optional: bool = False
    """The last turn of a conversation that says what is right only of earlier turns: scorers that need an expected output
    do not apply to it, and that is no failure."""


def _checks(case: Case) -> tuple[Turn, ...]:
    """The turns; where none of them says what is right, the case says it of the last."""
    *earlier, last = case.turns
    if any(turn.scorers or turn.expected is not None for turn in case.turns):
        return case.turns
    return (*earlier, Turn(last.input, case.expected))


def _ventured(scorer: Scorer, judged: Judged) -> Any:
    """A judgement, or what has to be awaited for one."""
    try:
        result = scorer.score(judged)
        is_there = isinstance(result, Judgement) or not inspect.isawaitable(result)
        return check_judgement(result) if is_there else result
    except BY_USER:
        raise
    except BaseException as error:
        return failed_judgement(error)


def check_judgement(value: Any) -> Judgement:
    """A plug-in's judgement is a judgement: its scores are between 0 and 1, or there are none."""
    if not isinstance(value, Judgement):
        raise TypeError(f"it returned {type(value).__name__}, not a judgement")
    for name, score in (("", value.value), *value.parts.items()):
        if score is not None and not 0 <= score <= 1:
            named = f" (its part '{name}')" if name else ""
            raise ValueError(f"a score{named} must be between 0 and 1, not {score!r}")
    return value


_TURN = re.compile(r"turn\d+\.")


def _key(use: ScorerUse) -> str:
    return repr((use.name, sorted(use.options.items(), key=str)))


def _of_turn(use: ScorerUse, number: int, turns: int) -> ScorerUse:
    return use if turns == 1 else replace(use, label=f"turn{number}.{use.score_name}")


def failed_judgement(error: BaseException) -> Judgement:
    return Judgement(None, f"the scorer failed: {summary(error)}")


def _scores(due: _Due, judgement: Judgement) -> list[Score]:
    """The score and its parts, which are shown but not counted: the score is made of them already."""
    name = due.use.score_name
    weight = 0.0 if due.is_optional and judgement.value is None else due.use.weight
    turn = name[: name.index(".") + 1] if _TURN.match(name) else ""
    parts = [Score(f"{turn}{part}", value, 0.0) for part, value in judgement.parts.items()]
    return [Score(name, judgement.value, weight, judgement.reason, judgement.spent), *parts]


def judged_again(
    benchmark: Benchmark, executions: Iterable[tuple[int, Execution]], spent: list[Mapping[str, float]]
) -> Iterator[tuple[int, Mapping[str, float], Mapping[str, object]]]:
    """Scores of stored outputs, by the number of the execution, with their reasons; `spent` is told what it took.

    What judges used up before is added to: it was paid for.
    """
    from assay.execute.agents import Stable

    stable = Stable()
    panel = Panel(benchmark.scorers, benchmark.cases, stable)
    cases = {case.id: case for case in benchmark.cases}
    try:
        for seq, execution in executions:
            scores: list[Score] = []
            answers = answers_of(execution)
            stable.settled(panel.judge(cases[execution.case], answers, scores))
            found = score_measurements(scores)
            spent.append(judging_in(found))
            judged = {name: value for name, value in found.items() if name not in spent[-1]}
            judged |= together([judging_in(execution.measurements), spent[-1]])
            yield seq, judged, {"reasons": {}, "unscored": [], **score_detail(scores)}
    finally:
        stable.close()


def answers_of(execution: Execution) -> list[Answer]:
    """The answers of each turn, as far as a scorer needs them, from what was stored."""
    detail: Mapping[str, Any] = execution.detail or {}
    outputs = [*detail.get("turns", ()), execution.output]
    calls = detail.get("tool_calls", ())
    return [
        Answer(output, tuple(_called(call) for call in calls if call.get("turn", len(outputs)) == number))
        for number, output in enumerate(outputs, 1)
    ]


def _called(call: Mapping[str, Any]) -> ToolCall:
    return ToolCall(call["name"], call["arguments"])


def score_measurements(scores: Sequence[Score]) -> dict[str, float]:
    """Each named score, `score` as their weighted mean, and what judging used up."""
    found = {f"score.{score.name}": score.value for score in scores if score.value is not None}
    if (mean := weighted_score(scores)) is not None:
        found["score"] = mean
    if spent := [score.spent for score in scores if score.spent]:
        found.update(together(spent))
    return found


def weighted_score(scores: Sequence[Score]) -> float | None:
    """The weighted mean; None if any score with a weight is missing, because a mean of the others is another measure."""
    values = [(score.value, score.weight) for score in scores if score.weight > 0]
    known = [(value, weight) for value, weight in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)


def score_detail(scores: Sequence[Score]) -> dict[str, Any]:
    """Why, and what could not be judged; empty where there is nothing to tell."""
    reasons = {score.name: limit_reason(score.reason) for score in scores if score.reason}
    unscored = [score.name for score in scores if score.value is None]
    return ({"reasons": reasons} if reasons else {}) | ({"unscored": unscored} if unscored else {})
