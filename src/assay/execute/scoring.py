"""Judges outputs by the scorers of a benchmark, during a run (`Panel`) or again later (`judge_again`).

A scorer is a plug-in, sync or async. Each gives a score from 0 to 1 or none; the score of an execution is their weighted
mean. If a scorer with weight fails, the execution is unscored as a whole: a mean over the others would mean something else.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.execute.answer_limits import limit_reason
from assay.execute.error_text import summary
from assay.model import Answer, Case, Execution, Score, ScorerUse, ToolCall, Turn
from assay.plugin.interruption import BY_USER
from assay.plugin.judge_usage import add_judge_usage, judging_in
from assay.plugin.scorer import Judged, Judgement, Scorer
from assay.plugin.scorers import compute_weighted_score, make_scorer

if TYPE_CHECKING:
    from assay.model import Benchmark
    from assay.plugin.agent_pool import AgentPool


class Panel:
    """The scorers of a trial. Turns of a conversation may have their own; the case's score is then their mean.

    Scorers with the same name and options are made once and shared, since a judge has an open agent.
    """

    def __init__(self, uses: Sequence[ScorerUse], cases: Iterable[Case], pool: AgentPool | None) -> None:
        self._uses = tuple(uses)
        # Made before anything is asked: a judge opens its agent, which cannot be done while a loop is running.
        of_turns = (use for case in cases for turn in case.turns for use in turn.scorers)
        needed = {_key(use): use for use in (*self._uses, *of_turns)}
        self._scorers: dict[str, Scorer] = {key: make_scorer(use, pool) for key, use in needed.items()}
        self._usual = tuple((use, self._scorers[_key(use)]) for use in self._uses)

    def judge(self, case: Case, answers: Sequence[Answer], scores: list[Score]) -> Any:
        """Judge the answers of a case and append to `scores`.

        Returns None where all scorers are sync, and otherwise a coroutine that appends the remaining scores when awaited:
        sync agents with sync scorers never touch an event loop.
        """
        waiting = []
        for due in self._due(case, answers):
            result = _try_score(due.scorer, due.judged)
            if isinstance(result, Judgement):
                scores += _scores(due, result)
            else:
                waiting.append((due, result))
        return self._rest(waiting, scores) if waiting else None

    async def judge_async(self, case: Case, answers: Sequence[Answer], scores: list[Score]) -> None:
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
                judgement = build_failed_judgement(error)
            scores += _scores(due, judgement)

    def _due(self, case: Case, answers: Sequence[Answer]) -> Iterator[_Due]:
        """The judgements to make: of the turns that say what is right, and always of the last turn."""
        if not case.turns:
            judged = Judged(answers[-1].output, case.expected, case, answers[-1].tool_calls)
            yield from (_Due(use, scorer, judged) for use, scorer in self._usual)
            return
        turns = case.turns
        if not any(turn.scorers or turn.expected is not None for turn in turns):
            # Where no turn says what is right, the case says it of the last.
            turns = (*turns[:-1], Turn(turns[-1].input, case.expected))
        has_checks = [turn.expected is not None or bool(turn.scorers) for turn in turns]
        for number, (turn, answer) in enumerate(zip(turns, answers, strict=True), 1):
            if not has_checks[number - 1] and number < len(answers):
                continue
            judged = Judged(answer.output, turn.expected, case, answer.tool_calls)
            is_optional = not has_checks[number - 1] and any(has_checks)
            for use in turn.scorers or self._uses:
                label = f"turn{number}.{use.score_name}"
                named = use if len(answers) == 1 else replace(use, label=label)
                yield _Due(named, self._scorers[_key(use)], judged, is_optional)


@dataclass(frozen=True, slots=True)
class _Due:
    """One judgement to make."""

    use: ScorerUse
    scorer: Scorer
    judged: Judged
    is_optional: bool = False
    """The last turn of a conversation that says what is right only of earlier turns: scorers that need an expected output
    do not apply to it, and that is no failure."""


def _try_score(scorer: Scorer, judged: Judged) -> Any:
    """A judgement, or what has to be awaited for one."""
    try:
        result = scorer.score(judged)
        is_there = isinstance(result, Judgement) or not inspect.isawaitable(result)
        return check_judgement(result) if is_there else result
    except BY_USER:
        raise
    except BaseException as error:
        return build_failed_judgement(error)


def check_judgement(value: Any) -> Judgement:
    """The judgement of a plug-in, checked; raises TypeError if it is none, ValueError if a score is not between 0 and 1."""
    if not isinstance(value, Judgement):
        raise TypeError(f"it returned {type(value).__name__}, not a Judgement")
    for name, score in (("", value.value), *value.parts.items()):
        if score is not None and not 0 <= score <= 1:
            named = f" (its part '{name}')" if name else ""
            raise ValueError(f"a score{named} must be between 0 and 1, not {score!r}")
    return value


_TURN = re.compile(r"turn\d+\.")


def _key(use: ScorerUse) -> str:
    return repr((use.name, sorted(use.options.items(), key=str)))


def build_failed_judgement(error: BaseException) -> Judgement:
    return Judgement(None, f"the scorer failed: {summary(error)}")


def _scores(due: _Due, judgement: Judgement) -> list[Score]:
    """The score and its parts, which are shown but not counted: the score is made of them already."""
    name = due.use.score_name
    weight = 0.0 if due.is_optional and judgement.value is None else due.use.weight
    turn = name[: name.index(".") + 1] if _TURN.match(name) else ""
    parts = [Score(f"{turn}{part}", value, 0.0) for part, value in judgement.parts.items()]
    return [Score(name, judgement.value, weight, judgement.reason, judgement.spent), *parts]


def judge_again(
    benchmark: Benchmark, executions: Iterable[tuple[int, Execution]], spent: list[Mapping[str, float]]
) -> Iterator[tuple[int, Mapping[str, float], Mapping[str, object]]]:
    """Judge stored outputs again: the number of each execution, its new figures and its new detail.

    What judging used up is appended to `spent`. The figures of an execution also include what judges used up before, as
    that was paid for, too.
    """
    from assay.plugin.agent_pool import AgentPool

    pool = AgentPool()
    panel = Panel(benchmark.scorers, benchmark.cases, pool)
    cases = {case.id: case for case in benchmark.cases}
    try:
        for seq, execution in executions:
            scores: list[Score] = []
            answers = answers_of(execution)
            pool.wait(panel.judge(cases[execution.case], answers, scores))
            measurements = score_measurements(scores)
            spent.append(judging_in(measurements))
            judged = {name: value for name, value in measurements.items() if name not in spent[-1]}
            judged |= add_judge_usage([judging_in(execution.measurements), spent[-1]])
            yield seq, judged, {"reasons": {}, "unscored": [], **score_detail(scores)}
    finally:
        pool.close()


def answers_of(execution: Execution) -> list[Answer]:
    """The answers of each turn, as far as a scorer needs them, from what was stored."""
    detail: Mapping[str, Any] = execution.detail or {}
    outputs = [*detail.get("turns", ()), execution.output]
    calls = detail.get("tool_calls", ())
    return [
        Answer(
            output,
            tuple(
                ToolCall(call["name"], call["arguments"])
                for call in calls
                if call.get("turn", len(outputs)) == number
            ),
        )
        for number, output in enumerate(outputs, 1)
    ]


def score_measurements(scores: Sequence[Score]) -> dict[str, float]:
    """Return each named score, `score` as their weighted mean, and what judging used."""
    measurements = {f"score.{score.name}": score.value for score in scores if score.value is not None}
    if (mean := compute_weighted_score(scores)) is not None:
        measurements["score"] = mean
    if spent := [score.spent for score in scores if score.spent]:
        measurements.update(add_judge_usage(spent))
    return measurements


def score_detail(scores: Sequence[Score]) -> dict[str, Any]:
    """Why, and what could not be judged; empty where there is nothing to tell."""
    reasons = {score.name: limit_reason(score.reason) for score in scores if score.reason}
    unscored = [score.name for score in scores if score.value is None]
    return ({"reasons": reasons} if reasons else {}) | ({"unscored": unscored} if unscored else {})
