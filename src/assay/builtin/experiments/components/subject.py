"""What a component benchmark measures: an agent, or one part of it.

`AgentBenchmark` opens the agent that `--agent` or `--set agent=…` names, and asks it. `PartBenchmark` measures a part that follows
one of the Protocols in `assay.plugin.components`: that of the agent, or the one that `--set target=mine.py:Name` names. Where
nothing is named, it is the agent `assistant` and its parts.

Subclasses write `measure`, which is timed, and `read_figures` for what is computed from its result afterwards.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count as count_up
from pathlib import Path
from threading import Barrier, Lock
from time import perf_counter
from typing import Any, ClassVar

from pydantic import BaseModel, Field, field_validator

from assay.builtin.experiments.agent_definition import check_definition, read_definition
from assay.builtin.experiments.components.scales import COMMON
from assay.errors import AssayError
from assay.execute.case_runner import check_usage
from assay.model import AgentUse, AgentVersion, Answer, Request
from assay.model.codec import to_plain
from assay.plugin import find, find_file_of_function, is_known, load_file
from assay.plugin.agent import Agent, BadAgent, InvalidAnswer
from assay.plugin.agent_pool import AgentPool
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.grades import GradeScale
from assay.plugin.options import option_problems
from assay.plugin.outcome import Outcome, split_result

_POOL = "component agents"
_REFERENCE = "assistant"
_SPECIAL_TOKENS = 8
"""Tokens that an answer may have beyond the bytes of its text, as those that begin and end it."""


class AgentParams(BaseModel):
    """The agent under test."""

    agent: dict[str, Any] | str | None = Field(
        default=None,
        description="Agent under test: a type that needs no options, a function of an imported file, or a definition; --agent sets it. "
        "Default: assistant.",
    )

    @field_validator("agent")
    @classmethod
    def _check_agent(cls, agent: dict[str, Any] | str | None) -> dict[str, Any] | str | None:
        if isinstance(agent, dict):
            return check_definition(agent)
        use = read_use(agent)
        if problems := option_problems("agents", use.type, use.options):
            hint = f" For an agent that is defined elsewhere: --agent {agent}"
            raise ValueError(" ".join(problem.text for problem in problems) + hint)
        return agent


class PartParams(AgentParams):
    """The part under test."""

    target: str | None = Field(
        default=None,
        description="A class or object of your own instead of the agent's part, as file.py:Name or module:Name.",
    )

    @field_validator("target")
    @classmethod
    def _resolve(cls, target: str | None) -> str | None:
        if target is None:
            return None
        place, colon, name = target.rpartition(":")
        if not colon or not place or not name:
            raise ValueError("must be written file.py:Name or module:Name")
        if not place.endswith(".py"):
            return target
        if not Path(place).is_file():
            raise ValueError(f"there is no file '{place}'")
        return f"{Path(place).resolve()}:{name}"

    @field_validator("target")
    @classmethod
    def _load(cls, target: str | None) -> str | None:
        """Refuse what cannot be loaded while the run is planned, and not in its first execution."""
        try:
            if target is not None:
                find_object(target)
        except (AssayError, BadAgent) as error:
            raise ValueError(str(error)) from None
        return target


def read_use(given: Mapping[str, Any] | str | None) -> AgentUse:
    """The agent that a param stands for: by its definition, by name, or the reference."""
    if isinstance(given, Mapping):
        return read_definition(given)
    name = given or _REFERENCE
    file = None if is_known("agents", name) else find_file_of_function(name)
    return AgentUse(name, name) if file is None else AgentUse(name, "python", {"target": f"{file}:{name}"})


class AgentBenchmark(Experiment):
    """Opens the agent once in each process, and distinguishes failures of the agent from invalid answers."""

    Params: ClassVar[Any] = AgentParams
    findings: ClassVar[Sequence[str]] = ("grades",)
    grades: ClassVar[Sequence[GradeScale]] = COMMON
    params: Any
    agent: Agent

    @classmethod
    def params_of(cls, use: AgentUse) -> dict[str, Any] | None:
        return {"agent": to_plain(use)}

    @classmethod
    def agent_of(cls, params: Mapping[str, Any]) -> AgentVersion:
        use = read_use(params.get("agent"))
        return AgentVersion(use.name, use.version)

    @staticmethod
    def agents_in(params: Mapping[str, Any]) -> list[AgentUse]:
        given = params.get("agent")
        return [] if given is None else [read_use(given)]

    def setup(self, context: ExperimentContext) -> None:
        self.use = read_use(self.params.agent)
        context.extras[_POOL] = self.pool = AgentPool()
        self.agent = self.pool.open(self.use)
        # Its `next` cannot be interrupted, so threads never get the same number.
        self._numbers = count_up(1)
        self._read_back = context.read_back
        if self.agent.is_simulated:
            self._read_back(simulated=True)

    def execute_once(self, context: ExperimentContext) -> Any:
        try:
            return self.measure(context)
        except InvalidAnswer as error:
            return Outcome(problem=str(error))

    def measure(self, context: ExperimentContext) -> Any:
        """What is timed; its result goes to `read_figures`."""
        raise NotImplementedError

    def read_figures(self, result: Any) -> Mapping[str, Any]:
        """Metrics of one execution, untimed."""
        return result or {}

    def read(self, result: Any) -> Outcome:
        if isinstance(result, Outcome):
            return result
        outcome = split_result(self.read_figures(result))
        outcome.seconds = outcome.measurements.pop("seconds", None)
        return outcome

    @staticmethod
    def teardown(context: ExperimentContext) -> None:
        """After a kill there is nothing to close: agents end with their process."""
        if (pool := context.extras.pop(_POOL, None)) is not None:
            pool.close()

    def ask(self, text: str, history: Sequence[Mapping[str, object]] = ()) -> Answer:
        answer: Answer = self.pool.wait(self.agent.answer(self.build_request(text, history)))
        return self.check(answer)

    def build_request(self, text: str, history: Sequence[Mapping[str, object]] = ()) -> Request:
        number = next(self._numbers)
        return Request(str(number), text, history=tuple(history), repetition=number)

    def check(self, answer: Any) -> Answer:
        """InvalidAnswer for what cannot be one: nothing, or more tokens than its text has bytes. Agents that simulate may."""
        if not isinstance(answer, Answer):
            raise InvalidAnswer(f"The agent returned a value of type {type(answer).__name__}, not an answer.")
        check_usage(answer.usage)
        if answer.is_simulated:  # only its server knows, as that of `assay sim-llm`
            self._read_back(simulated=True)
        if self.agent.is_simulated or answer.is_simulated:
            return answer
        if not isinstance(answer.output, str | int | float | list | tuple | dict | type(None)):
            raise InvalidAnswer(f"The answer is neither text nor data but a {type(answer.output).__name__}.")
        if answer.output in (None, "") and not answer.tool_calls:
            raise InvalidAnswer("The answer is empty.")
        tokens = (answer.usage.output_tokens or 0) - (answer.usage.reasoning_tokens or 0)
        most = len(str(answer.output).encode("utf-8", "replace")) + _SPECIAL_TOKENS
        if isinstance(answer.output, str) and not answer.tool_calls and tokens > most:
            raise InvalidAnswer(
                f"The agent reports {tokens:,} output tokens for a text that cannot have more than {most:,}."
            )
        return answer


class PartBenchmark(AgentBenchmark):
    """Measures the part that `part` names, an attribute of AgentComponents, which follows `protocol`."""

    Params: ClassVar[Any] = PartParams
    part: ClassVar[str]
    protocol: ClassVar[Any]
    subject: Any

    @classmethod
    def params_of(cls, use: AgentUse) -> dict[str, Any] | None:
        """None for an agent without that part, so that no trial with its name measures somebody else's."""
        return {"agent": to_plain(use)} if hasattr(find("agents", use.type), cls.part) else None

    @classmethod
    def agent_of(cls, params: Mapping[str, Any]) -> AgentVersion:
        target = params.get("target")
        return AgentVersion(str(target).rpartition("/")[2]) if target else super().agent_of(params)

    def setup(self, context: ExperimentContext) -> None:
        super().setup(context)
        self._remark = context.remark
        if self.params.target:
            self.subject = find_object(self.params.target)
        elif hasattr(self.agent, self.part):
            self.subject = getattr(self.agent, self.part)
        else:
            raise BadAgent(
                f"Agent '{self.use.name}' has no '{self.part}'. Name one: --set target=FILE.py:NAME"
            )
        if self.part != "memory" and inspect.isclass(self.subject):
            self.subject = self.subject()
        subject = self.subject() if self.part == "memory" else self.subject
        if not isinstance(subject, self.protocol):
            wanted = [name for name in vars(self.protocol) if not name.startswith("_")]
            missing = ", ".join(name for name in wanted if not hasattr(subject, name))
            raise BadAgent(
                f"'{self.params.target or self.part}' is not a {self.protocol.__name__}: it has no {missing}."
            )

    def is_list(self, value: object, use: str, wanted: str) -> bool:
        """Whether a use of the part returned a list of any kind."""
        is_right = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return is_right or self.refuse_type(value, use, wanted)

    def is_instance(self, value: object, kind: Any, use: str, wanted: str) -> bool:
        return isinstance(value, kind) or self.refuse_type(value, use, wanted)

    def refuse_type(self, value: object, use: str, wanted: str) -> bool:
        return self.refuse(use, f"a value of type {type(value).__name__}, not {wanted}")

    def refuse(self, use: str, returned: str) -> bool:
        """Always false. A remark says what the part returned: what no caller could have used is a wrong result of it, and no fault
        of the benchmark."""
        self._remark(f"'{use}' returned {returned}. This counts as wrong.")
        return False


def find_object(target: str) -> Any:
    """What a `target` names; BadAgent where there is nothing of that name."""
    place, _, name = target.rpartition(":")
    try:
        module = load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except AssayError:
        raise
    except Exception as error:
        raise BadAgent(f"'{place}' cannot be imported: {type(error).__name__}: {error}") from None
    if not hasattr(module, name):
        raise BadAgent(f"'{place}' has no '{name}'.")
    return getattr(module, name)


def time_call(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    began = perf_counter()
    result = function(*arguments)
    return perf_counter() - began, result


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The outcome of concurrent jobs: their results in order, and the maximum in flight."""

    results: list[Any]
    width: int


def run_concurrently(
    benchmark: AgentBenchmark, job: Callable[[int], Any], count: int, width: int
) -> Concurrency:
    """Jobs 0 to count − 1, at most `width` at a time; a job is a coroutine function where the agent is async.

    A sync agent that may be called from several threads gets threads; any other one is asked one thing at a time.
    """
    if inspect.iscoroutinefunction(job):
        return _run_on_loop(benchmark, job, count, width)
    if width == 1 or not getattr(benchmark.agent, "is_thread_safe", False):
        return Concurrency([job(number) for number in range(count)], 1)
    return _run_in_threads(job, count, width)


def _run_on_loop(benchmark: AgentBenchmark, job: Callable[[int], Any], count: int, width: int) -> Concurrency:
    in_flight = most = 0

    async def run_all() -> list[Any]:
        places = asyncio.Semaphore(width)

        async def run_one(number: int) -> Any:
            nonlocal in_flight, most
            async with places:
                in_flight += 1
                most = max(most, in_flight)
                try:
                    return await job(number)
                finally:
                    in_flight -= 1

        return await asyncio.gather(*map(run_one, range(count)))

    return Concurrency(benchmark.pool.wait(run_all()), most)


def _run_in_threads(job: Callable[[int], Any], count: int, width: int) -> Concurrency:
    """The first jobs begin together, as quick ones would otherwise end before the other threads are there."""
    in_flight = most = 0
    lock, first = Lock(), min(width, count)
    together = Barrier(first)

    def run_one(number: int) -> Any:
        nonlocal in_flight, most
        with lock:
            in_flight += 1
            most = max(most, in_flight)
        try:
            if number < first:
                together.wait()
            return job(number)
        finally:
            with lock:
                in_flight -= 1

    with ThreadPoolExecutor(width) as threads:
        results = list(threads.map(run_one, range(count)))
    return Concurrency(results, most)
