"""Checks whether the cases of a benchmark can be passed at all, for `assay suite check`.

For each case, answers that must be correct are constructed (its solution, its expected output, what each scorer says it would
accept) and put to the scorers. A case whose correct answers are all refused is wrong itself. Where no such answer can be
constructed, as for a regular expression, nothing is claimed about the case. An empty answer is judged as well: a scorer
that rewards it would reward an agent that does nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from assay.execute.scoring import build_failed_judgement, check_judgement
from assay.model import Answer, Benchmark, Case, ScorerUse
from assay.model.suite import CheckedCase
from assay.plugin.agent_pool import AgentPool
from assay.plugin.scorer import Judged, Judgement, Scorer
from assay.plugin.scorers import example_of, make_scorer

SOLUTION = "solution"
"""The key of a case that holds a correct answer, where `expected` is something else, such as tests or a pattern."""
_FULL = 1 - 1e-6
"""The score from which an answer counts as right: two embeddings of one text differ by rounding."""
SCORER_SECONDS = 30.0
"""The most time that a scorer may take for one answer, on top of what its option `seconds` allows."""


def check_benchmark(benchmark: Benchmark) -> list[CheckedCase]:
    """Check every case, in order. Scorers that ask agents, such as judges, do ask them."""
    pool = AgentPool()
    scorers_by_use: dict[str, TimedScorer] = {}

    def scorers(uses: Sequence[ScorerUse]) -> list[tuple[str, TimedScorer]]:
        for use in uses:
            if repr(use) not in scorers_by_use:
                own = use.options.get("seconds")
                seconds = SCORER_SECONDS + (own if isinstance(own, int | float) else 0.0)
                scorers_by_use[repr(use)] = TimedScorer(make_scorer(use, pool), pool.wait, seconds)
        return [(use.score_name, scorers_by_use[repr(use)]) for use in uses if use.weight > 0]

    checked: list[CheckedCase] = []
    try:
        for case in benchmark.cases:
            answers = _select_scored_answers(benchmark, case)
            checks = [_Check(case, expected, scorers(uses)) for expected, uses in answers]
            problems = [check.problem() for check in checks]
            worst = min(problems, key=lambda problem: _WORST_FIRST.index(problem[0]))
            checked.append(CheckedCase(case.id, *worst, any(check.rewards_nothing() for check in checks)))
    finally:
        pool.close()
    return checked


def _select_scored_answers(benchmark: Benchmark, case: Case) -> Iterator[tuple[Any, Sequence[ScorerUse]]]:
    """For each answer of the case that is judged: what is expected of it, and the scorers that judge it.

    A case without turns has one answer. In a conversation, the turns that say what is right are judged and the last one;
    where no turn says so, the case says it of the last. `Panel` in scoring.py follows the same rule.
    """
    *_, last = case.turns or (None,)
    if last is None or not any(turn.scorers or turn.expected is not None for turn in case.turns):
        yield case.expected, benchmark.scorers
        return
    for turn in case.turns:
        if turn.expected is not None or turn.scorers or turn is last:
            yield turn.expected, turn.scorers or benchmark.scorers


_WORST_FIRST = ("oracle", "unscored", "unchecked", "")
"""The kinds of problems: a correct answer is refused, no answer can be judged, no correct answer is known, none."""


@dataclass(frozen=True, slots=True)
class _Check:
    """One made-up answer to a case, and the scorers that judge it.

    A sound suite gives full marks to the expected answer and none to an empty one; what no answer can be
    made up for is not checked.
    """

    case: Case
    expected: Any
    scorers: Sequence[tuple[str, TimedScorer]]

    def problem(self) -> tuple[str, str]:
        """The kind of problem and the scorer that has it, with its reason; both empty where an answer passes.

        The order matters: one answer that all scorers accept settles it. Otherwise a scorer that can judge none of them
        is named, then one that refuses what it said itself it would accept.
        """
        examples = {name: scorer.example(self.expected, self.case) for name, scorer in self.scorers}
        answers = self._answers(list(examples.values()))
        judged = [{name: self._judge(scorer, answer) for name, scorer in self.scorers} for answer in answers]
        if any(all(map(_is_full, judgements.values())) for judgements in judged):
            return "", ""
        for name in examples:
            if all(judgements[name].value is None for judgements in judged):
                return "unscored", f"{name}: {judged[0][name].reason}"
        for name, scorer in self.scorers:
            example = examples[name]
            if example is not None and not _is_full(refusal := self._judge(scorer, example)):
                return "oracle", f"{name}: {refusal.reason}" if refusal.reason else name
        unknown = [name for name, example in examples.items() if example is None]
        return "unchecked", ", ".join(unknown or examples)

    def rewards_nothing(self) -> bool:
        """Whether a scorer gives points for an empty answer."""
        values = [self._judge(scorer, Answer("")).value for _, scorer in self.scorers]
        return any(value is not None and value > 0 for value in values)

    def _answers(self, examples: Sequence[Answer | None]) -> list[Answer]:
        """What may be right: the case's own solution, what each scorer would accept, all of that together.

        The tool calls of the first example that has any go with every output.
        """
        known = [example for example in examples if example is not None]
        calls = next((example.tool_calls for example in known if example.tool_calls), ())
        outputs = [example.output for example in known]
        own = self.case.metadata.get(SOLUTION)
        texts = dict.fromkeys(output for output in outputs if isinstance(output, str) and output)
        outputs_to_try = [*([] if own is None else [own]), *outputs, "\n".join(texts), self.expected]
        return [Answer(output, calls) for output in outputs_to_try]

    def _judge(self, scorer: TimedScorer, answer: Answer) -> Judgement:
        return scorer.judge(Judged(answer.output, self.expected, self.case, answer.tool_calls))


class ScorerTimeout(BaseException):
    """The scorer took too long. Not an Exception, so that a scorer that catches those does not continue."""


@dataclass(slots=True)
class TimedScorer:
    """A scorer with a time limit; once it has taken too long, it is not asked again, as every other case would take so, too."""

    scorer: Scorer
    wait: Callable[[Any], Any]
    """Waits for what an async scorer returns."""
    seconds: float
    is_too_slow: bool = field(default=False, init=False)

    def judge(self, judged: Judged) -> Judgement:
        if not self.is_too_slow:
            try:
                with _time_limit(self.seconds):
                    result = self.scorer.score(judged)
                if inspect.isawaitable(result):
                    result = self.wait(_await_in_time(result, self.seconds))
                return check_judgement(result)
            except ScorerTimeout:
                self.is_too_slow = True
            except (Exception, SystemExit) as error:
                return build_failed_judgement(error)
        return Judgement(None, f"the scorer took longer than {self.seconds:g} s")

    def example(self, expected: Any, case: Case) -> Answer | None:
        if not self.is_too_slow:
            try:
                with _time_limit(self.seconds):
                    return example_of(self.scorer, expected, case)
            except ScorerTimeout:
                self.is_too_slow = True
        return None


async def _await_in_time(result: Awaitable[Any], seconds: float) -> Any:
    import asyncio

    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await result
    except TimeoutError:
        if deadline.expired():
            raise ScorerTimeout from None
        raise


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what runs within after so many seconds. Signals reach only the main thread: others are not limited."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise ScorerTimeout

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_full(judgement: Judgement) -> bool:
    return judgement.value is not None and judgement.value >= _FULL
