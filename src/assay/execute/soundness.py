"""Whether the cases of a benchmark can be passed: answers that must be right are constructed and put to its scorers.

Where no such answer can be constructed, as for a regular expression, nothing is claimed about the case.
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

from assay.execute.agents import Stable
from assay.execute.judging import check_judgement, failed_judgement, make_scorer
from assay.model import Answer, Benchmark, Case, ScorerUse
from assay.model.suite import CheckedCase
from assay.plugin.scorer import Judged, Judgement, Scorer

SOLUTION = "solution"
"""The key of a case under which an answer that is right stands, where `expected` is something else: tests, a pattern."""
_FULL = 1 - 1e-6
"""Two embeddings of one text differ by rounding."""
SCORER_SECONDS = 30.0
"""The most time that a scorer may take for one answer, on top of what its option `seconds` allows."""


def check_benchmark(benchmark: Benchmark) -> list[CheckedCase]:
    """Every case, in order; scorers that ask agents ask them."""
    stable = Stable()
    made: dict[str, TimedScorer] = {}

    def scorers(uses: Sequence[ScorerUse]) -> list[tuple[str, TimedScorer]]:
        for use in uses:
            if repr(use) not in made:
                made[repr(use)] = TimedScorer(make_scorer(use, stable), stable.settled, _seconds_allowed(use))
        return [(use.score_name, made[repr(use)]) for use in uses if use.weight > 0]

    try:
        return [
            _checked([_Check(case, expected, scorers(uses)) for expected, uses in _asked(benchmark, case)])
            for case in benchmark.cases
        ]
    finally:
        stable.close()


def _asked(benchmark: Benchmark, case: Case) -> Iterator[tuple[Any, Sequence[ScorerUse]]]:
    """Each answer of the case that is judged: what is expected of it, and by which scorers."""
    *_, last = case.turns or (None,)
    if last is None or not any(turn.scorers or turn.expected is not None for turn in case.turns):
        yield case.expected, benchmark.scorers
        return
    for turn in case.turns:
        if turn.expected is not None or turn.scorers or turn is last:
            yield turn.expected, turn.scorers or benchmark.scorers


def _checked(checks: Sequence[_Check]) -> CheckedCase:
    found = [check.problem() for check in checks]
    worst = min(found, key=lambda one: ("oracle", "unscored", "unchecked", "").index(one[0]))
    return CheckedCase(checks[0].case.id, *worst, any(check.rewards_nothing() for check in checks))


@dataclass(frozen=True, slots=True)
class _Check:
    case: Case
    expected: Any
    scorers: Sequence[tuple[str, TimedScorer]]

    def problem(self) -> tuple[str, str]:
        """The first that holds of: an answer that all scorers accept, one that nobody can judge, one wrongly refused."""
        examples = {name: scorer.example(self.expected, self.case) for name, scorer in self.scorers}
        answers = self._answers(list(examples.values()))
        judged = [{name: self._judge(scorer, answer) for name, scorer in self.scorers} for answer in answers]
        if any(all(_is_full(one) for one in judgements.values()) for judgements in judged):
            return "", ""
        for name in examples:
            if all(judgements[name].value is None for judgements in judged):
                return "unscored", f"{name}: {judged[0][name].reason}"
        for name, scorer in self.scorers:
            example = examples[name]
            if example is not None and not _is_full(one := self._judge(scorer, example)):
                return "oracle", f"{name}: {one.reason}" if one.reason else name
        unknown = [name for name, example in examples.items() if example is None]
        return "unchecked", ", ".join(unknown or examples)

    def rewards_nothing(self) -> bool:
        values = [self._judge(scorer, Answer("")).value for _, scorer in self.scorers]
        return any(value is not None and value > 0 for value in values)

    def _answers(self, examples: Sequence[Answer | None]) -> list[Answer]:
        """What may be right: the case's own solution, what each scorer would accept, all of that together."""
        known = [example for example in examples if example is not None]
        calls = next((example.tool_calls for example in known if example.tool_calls), ())
        outputs = [example.output for example in known]
        own = self.case.metadata.get(SOLUTION)
        texts = dict.fromkeys(output for output in outputs if isinstance(output, str) and output)
        tried = [*([] if own is None else [own]), *outputs, "\n".join(texts), self.expected]
        return [Answer(output, calls) for output in tried]

    def _judge(self, scorer: TimedScorer, answer: Answer) -> Judgement:
        return scorer.judge(Judged(answer.output, self.expected, self.case, answer.tool_calls))


class ScorerTimeout(BaseException):
    """Not an Exception, so that a scorer that catches those does not go on."""


@dataclass(slots=True)
class TimedScorer:
    """A scorer that is not asked again once it took too long: it would for every other case, too."""

    scorer: Scorer
    settled: Callable[[Any], Any]
    seconds: float
    is_too_slow: bool = field(default=False, init=False)

    def judge(self, judged: Judged) -> Judgement:
        if not self.is_too_slow:
            try:
                return check_judgement(self._score(judged))
            except ScorerTimeout:
                self.is_too_slow = True
            except (Exception, SystemExit) as error:
                return failed_judgement(error)
        return Judgement(None, f"the scorer took longer than {self.seconds:g} s")

    def example(self, expected: Any, case: Case) -> Answer | None:
        if not self.is_too_slow:
            try:
                with _time_limit(self.seconds):
                    return example_of(self.scorer, expected, case)
            except ScorerTimeout:
                self.is_too_slow = True
        return None

    def _score(self, judged: Judged) -> Any:
        with _time_limit(self.seconds):
            result = self.scorer.score(judged)
        return self.settled(_awaited_in_time(result, self.seconds)) if inspect.isawaitable(result) else result


async def _awaited_in_time(result: Awaitable[Any], seconds: float) -> Any:
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
    """Only the main thread can be interrupted; calls in another one are not limited."""
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


def _seconds_allowed(use: ScorerUse) -> float:
    own = use.options.get("seconds")
    return SCORER_SECONDS + (own if isinstance(own, int | float) else 0.0)


def _is_full(judgement: Judgement) -> bool:
    return judgement.value is not None and judgement.value >= _FULL


def example_of(scorer: Scorer, expected: Any, case: Case) -> Answer | None:
    """What the scorer says it would accept; of one that does not say, the expected output."""
    if not hasattr(scorer, "example"):
        return Answer(_first_text(expected))
    try:
        found = scorer.example(expected, case)
    except (Exception, SystemExit):
        return None  # a plug-in that cannot say what it accepts is no mistake of the suite
    return found if found is None or isinstance(found, Answer) else Answer(found)


def _first_text(expected: Any) -> Any:
    """Of several texts, of which any is right, the first; everything else as it is."""
    is_any_of = (
        isinstance(expected, list | tuple) and expected and all(isinstance(one, str) for one in expected)
    )
    return expected[0] if is_any_of else expected
