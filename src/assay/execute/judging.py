"""Outputs are judged by the scorers of a benchmark; a scorer that fails leaves the case unscored, and says why."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from assay.errors import PlanError
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

    def __init__(self, uses: Sequence[ScorerUse], stable: Stable | None) -> None:
        self._uses = tuple(uses)
        self._stable = stable
        # Made before anything is asked: a judge opens its agent, which cannot be done while a loop is running.
        self._made: dict[str, Scorer] = {_key(use): make_scorer(use, stable) for use in self._uses}

    def judge(self, case: Case, answers: Sequence[Answer], scores: list[Score]) -> Any:
        """Judge at once where no scorer waits for anything; otherwise hand back what has to be awaited."""
        waiting = []
        for use, judged in self._due(case, answers):
            result = self._ventured(use, judged)
            if inspect.isawaitable(result):
                waiting.append((use, result))
            else:
                scores += _scores(use, result)
        return self._rest(waiting, scores) if waiting else None

    async def judged(self, case: Case, answers: Sequence[Answer], scores: list[Score]) -> None:
        waiting = self.judge(case, answers, scores)
        if waiting is not None:
            await waiting

    async def _rest(self, waiting: list[tuple[ScorerUse, Any]], scores: list[Score]) -> None:
        for use, awaitable in waiting:
            try:
                scores += _scores(use, await awaitable)
            except Exception as error:
                scores += _scores(use, _failed(error))

    def _due(self, case: Case, answers: Sequence[Answer]) -> list[tuple[ScorerUse, Judged]]:
        turns = case.turns or (Turn(case.input, case.expected),)
        if not any(turn.scorers or turn.expected is not None for turn in turns):
            turns = (*turns[:-1], Turn(turns[-1].input, case.expected))
        due = []
        for number, (turn, answer) in enumerate(zip(turns, answers, strict=False), 1):
            if len(turns) > 1 and turn.expected is None and not turn.scorers and number < len(turns):
                continue
            judged = Judged(answer.output, turn.expected, case, answer.tool_calls)
            for use in turn.scorers or self._uses:
                due.append((_of_turn(use, number) if len(turns) > 1 else use, judged))
        return due

    def _ventured(self, use: ScorerUse, judged: Judged) -> Any:
        try:
            key = _key(use)
            if key not in self._made:
                self._made[key] = make_scorer(use, self._stable)
            return self._made[key].score(judged)
        except Exception as error:
            return _failed(error)


def _key(use: ScorerUse) -> str:
    return repr((use.name, sorted(use.options.items(), key=str)))


def _of_turn(use: ScorerUse, number: int) -> ScorerUse:
    return ScorerUse(use.name, use.weight, use.options, f"turn{number}.{use.score_name}")


def _failed(error: Exception) -> Judgement:
    return Judgement(None, f"the scorer failed: {type(error).__name__}: {error}")


def _scores(use: ScorerUse, judgement: Judgement) -> list[Score]:
    parts = [Score(name, value, 0.0) for name, value in judgement.parts.items()]
    return [Score(use.score_name, judgement.value, use.weight, judgement.reason), *parts]


def judged_again(
    benchmark: Benchmark, executions: Iterable[tuple[int, Execution]]
) -> Iterator[tuple[int, Mapping[str, float], Mapping[str, object]]]:
    """Scores of stored outputs, by the number of the execution, with their reasons."""
    from assay.execute.agents import Stable

    stable = Stable()
    panel = Panel(benchmark.scorers, stable)
    cases = {case.id: case for case in benchmark.cases}
    try:
        for seq, execution in executions:
            scores: list[Score] = []
            answers = answers_of(execution)
            stable.settled(panel.judge(cases[execution.case], answers, scores))
            yield seq, score_measurements(scores), score_detail(scores)
    finally:
        stable.close()


def answers_of(execution: Execution) -> list[Answer]:
    """The answers of each turn, as far as a scorer needs them, from what was stored."""
    detail: Mapping[str, Any] = execution.detail or {}
    calls = tuple(ToolCall(call["name"], call["arguments"]) for call in detail.get("tool_calls", ()))
    earlier = [Answer(output) for output in detail.get("turns", ())]
    return [*earlier, Answer(execution.output, calls)]


def score_measurements(scores: Iterable[Score]) -> dict[str, float]:
    """Each named score, and `score`, their weighted mean; what is unscored counts nowhere."""
    judged = [(score, score.value) for score in scores if score.value is not None]
    found = {f"score.{score.name}": value for score, value in judged}
    weight = sum(score.weight for score, _ in judged)
    if weight > 0:
        found["score"] = sum(value * score.weight for score, value in judged) / weight
    return found


def score_detail(scores: Iterable[Score]) -> dict[str, object]:
    told = list(scores)
    return {
        "reasons": {score.name: score.reason for score in told if score.reason},
        "unscored": [score.name for score in told if score.value is None],
    }
