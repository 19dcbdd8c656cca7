from __future__ import annotations

import asyncio
import inspect
import statistics
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING

from assay.builtin.scorers.judge_answer import Unreadable, marks_in, reason_in
from assay.builtin.scorers.judge_prompt import USUAL_INSTRUCTIONS, Criterion, Prompt
from assay.builtin.scorers.options import number, refused, whole
from assay.builtin.scorers.texts import NO_OUTPUT, text_of
from assay.execute.agents import make_agent
from assay.execute.asking import valid
from assay.execute.price import Price
from assay.execute.spending import spent_on
from assay.model import AgentUse, Answer, Case, Request
from assay.plugin.agent import Agent, AgentError
from assay.plugin.scorer import Judged, Judgement

if TYPE_CHECKING:
    from assay.execute.agents import Stable

_OWN_KEYS = ("name", "type", "version", "price", "folder", "options")


@dataclass(frozen=True, slots=True)
class _Opinion:
    value: float
    parts: Mapping[str, float]
    reason: str


class _Hearing:
    """What a judge has answered until now; entered for each question, so that one that fails spoils no other."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.problem = ""

    def take(self, answer: object) -> None:
        self.answers.append(valid(answer))

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        told = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
        self.problem = f"the judge failed: {told}"
        return True


class Judge:
    """An agent as the judge: it is shown task, expected output, output and rubric, and gives marks on a scale.

    A share of the outputs, chosen by hash, is judged twice, so that the judge's disagreement with itself is known
    (`judge_disagreement`). What judging costs is reported apart and is no part of the cost of the agent under test.

    Args:
        agent: Name or definition of the agent that judges.
        rubric: What a good answer is, in words.
        criteria: Criteria that are marked one by one: a list of names, or of {name, description, weight}.
        scale: Lowest and highest mark.
        instructions: The prompt, with {input}, {expected}, {output} and {rubric} in it. Default: a prompt of ours.
        repeat: How often each output is judged; the score is the mean.
        disagreement_sample: Share of the outputs that are judged twice.

    Example:
        scorer: {name: judge, agent: gpt, rubric: "Correct, and no longer than needed.", scale: [1, 5]}
    """

    def __init__(
        self,
        *,
        agent: str | Mapping[str, object],
        rubric: str = "",
        criteria: Sequence[object] | None = None,
        scale: Sequence[float] = (1, 5),
        instructions: str = USUAL_INSTRUCTIONS,
        repeat: int = 1,
        disagreement_sample: float = 0.1,
        stable: Stable | None = None,
    ) -> None:
        self._use = _agent_use(agent)
        self._criteria = _criteria(criteria)
        self._low, self._high = _scale(scale)
        self._prompt = Prompt(
            _instructions(instructions), _text("rubric", rubric), self._criteria, self._low, self._high
        )
        self._repeat = whole("judge", "repeat", repeat, 1, 100)
        self._sample = number("judge", "disagreement_sample", disagreement_sample, 0, 1)
        self._stable = stable
        # Without a stable there is nothing to judge yet; that the definition works is seen all the same.
        self._unopened = make_agent(self._use) if stable is None else None
        self._agent: Agent | None = None
        self._opening = asyncio.Lock()
        self._differences: list[float] = []
        self._at_hand()

    @property
    def asks(self) -> tuple[AgentUse, ...]:
        return (self._use,)

    def example(self, expected: object, case: Case) -> None:
        """Nobody knows what a judge gives full marks."""

    def disagreement(self) -> float | None:
        """Mean absolute difference between two judgements of the same output; None before any was judged twice."""
        return statistics.fmean(self._differences) if self._differences else None

    def score(self, judged: Judged) -> Awaitable[Judgement] | Judgement:
        if judged.output is None:
            return NO_OUTPUT
        requests = self._requests(judged)
        agent = self._at_hand()
        if agent is None or inspect.iscoroutinefunction(agent.answer):
            return self._awaited(requests)
        hearing = _Hearing()
        for request in requests:
            with hearing:
                hearing.take(agent.answer(request))
        return self._combined(agent, hearing)

    async def _awaited(self, requests: Sequence[Request]) -> Judgement:
        agent = self._at_hand() or await self._opened()
        hearing = _Hearing()
        for request in requests:
            with hearing:
                answer = agent.answer(request)
                hearing.take(await answer if inspect.isawaitable(answer) else answer)
        return self._combined(agent, hearing)

    def _at_hand(self) -> Agent | None:
        """The agent, if it can be had without waiting: on a running loop an agent cannot be opened by a plain call."""
        if self._agent is None and self._stable is not None and not _is_on_a_loop():
            self._agent = self._stable.opened(self._use)
        return self._agent

    async def _opened(self) -> Agent:
        async with self._opening:
            if self._agent is None:
                agent = self._unopened or make_agent(self._use)
                opening = agent.open()
                if inspect.isawaitable(opening):
                    await opening
                self._agent = agent
        return self._agent

    def _requests(self, judged: Judged) -> list[Request]:
        text = self._prompt.text(judged)
        times = max(self._repeat, 2 if self._is_sampled(judged) else 1)
        ids = [judged.case.id if not turn else f"{judged.case.id}#{turn + 1}" for turn in range(times)]
        return [Request(id=one, input=text) for one in ids]

    def _is_sampled(self, judged: Judged) -> bool:
        key = f"{judged.case.id}\0{text_of(judged.output)}".encode("utf-8", "backslashreplace")
        return int.from_bytes(sha256(key).digest()[:8]) < self._sample * 2**64

    def _combined(self, agent: Agent, hearing: _Hearing) -> Judgement:
        opinions, problem = [], hearing.problem or "the judge gave no answer"
        for answer in hearing.answers:
            try:
                opinions.append(self._opinion(answer.output))
            except Unreadable as unreadable:
                problem = str(unreadable)
        spent = spent_on(hearing.answers, Price(self._use, agent))
        if not opinions:
            return Judgement(None, problem, spent=spent)
        parts = {**self._means(opinions), **self._difference(opinions)}
        if missing := [name for name, mark in self._means(opinions).items() if mark is None]:
            return Judgement(None, f"the judge gave no mark for {', '.join(missing)}", parts, spent)
        value = statistics.fmean(opinion.value for opinion in opinions)
        return Judgement(value, opinions[0].reason, parts, spent)

    def _opinion(self, output: object) -> _Opinion:
        marks = marks_in(output, [one.name for one in self._criteria], self._low, self._high)
        weights = {one.name: one.weight for one in self._criteria} or {"score": 1.0}
        total = sum(weights[name] for name in marks)
        value = sum(weights[name] * mark for name, mark in marks.items()) / total
        return _Opinion(value, marks if self._criteria else {}, reason_in(output))

    def _means(self, opinions: Sequence[_Opinion]) -> dict[str, float | None]:
        given = {
            one.name: [o.parts[one.name] for o in opinions if one.name in o.parts] for one in self._criteria
        }
        return {name: statistics.fmean(marks) if marks else None for name, marks in given.items()}

    def _difference(self, opinions: Sequence[_Opinion]) -> dict[str, float]:
        if len(opinions) < 2:
            return {}
        pairs = combinations([opinion.value for opinion in opinions], 2)
        difference = statistics.fmean(abs(a - b) for a, b in pairs)
        self._differences.append(difference)
        return {"judge_disagreement": difference}


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _agent_use(agent: object) -> AgentUse:
    if isinstance(agent, AgentUse):
        return agent
    if not isinstance(agent, Mapping) or not isinstance(agent.get("type"), str):
        raise refused("judge", "agent", f"must be the definition of an agent, {{type: …}}, not {agent!r}.")
    options = {**(agent.get("options") or {}), **{k: v for k, v in agent.items() if k not in _OWN_KEYS}}
    return AgentUse(
        str(agent.get("name", "judge")),
        agent["type"],
        options,
        str(agent.get("version", "")),
        {} if agent.get("price") == "free" else agent.get("price"),
        str(agent.get("folder", "")),
    )


def _criteria(written: object) -> tuple[Criterion, ...]:
    if written is None:
        return ()
    if not isinstance(written, list | tuple) or not written:
        raise refused(
            "judge",
            "criteria",
            f"must be a list of names or of {{name, description, weight}}, not {written!r}.",
        )
    criteria = tuple(_criterion(one) for one in written)
    if len({one.name.lower() for one in criteria}) < len(criteria):
        raise refused("judge", "criteria", "names one of them twice.")
    return criteria


def _criterion(written: object) -> Criterion:
    if isinstance(written, str) and written:
        return Criterion(written)
    if not isinstance(written, Mapping) or not isinstance(written.get("name"), str):
        raise refused("judge", "criteria", f"holds {written!r}, which has no name.")
    weight = number("judge", "criteria.weight", written.get("weight", 1.0), 1e-9)
    return Criterion(written["name"], str(written.get("description", "")), weight)


def _scale(scale: object) -> tuple[float, float]:
    if not isinstance(scale, list | tuple) or len(scale) != 2:
        raise refused("judge", "scale", f"must be two numbers, the worst and the best mark, not {scale!r}.")
    low, high = (number("judge", "scale", end, -1e6, 1e6) for end in scale)
    if not low < high:
        raise refused("judge", "scale", f"must rise from the worst to the best mark, not {scale!r}.")
    return low, high


def _text(option: str, value: object) -> str:
    if not isinstance(value, str):
        raise refused("judge", option, f"must be a text, not {value!r}.")
    return value


def _instructions(value: object) -> str:
    if "{output}" not in _text("instructions", value):
        raise refused("judge", "instructions", "must say where the output stands: {output}.")
    return str(value)
