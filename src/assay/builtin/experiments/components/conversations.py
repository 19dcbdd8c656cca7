"""Whole conversations: `multi_turn`, `concurrent_conversations`, `batch_processing`, `cpu_use`, `memory_growth` and `system_level`."""

from __future__ import annotations

import gc
import inspect
import json
import os
import resource
import tracemalloc
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, ClassVar

from pydantic import Field, model_validator

from assay.builtin.experiments.components.prompts import OPENINGS, SCENARIOS
from assay.builtin.experiments.components.scales import (
    COMMON,
    CONVERSATIONS,
    LEAK,
    ONE_TURN_P95,
    ONE_TURN_P99,
    TURN_P95,
    TURN_P99,
)
from assay.builtin.experiments.components.subject import (
    AgentBenchmark,
    AgentParams,
    Concurrency,
    run_concurrently,
    time_call,
)
from assay.model import Better, Metric, describe_metrics
from assay.plugin.agent_pool import AgentPool
from assay.plugin.experiment import ExperimentContext
from assay.plugin.grades import GradeScale

_SCENARIOS = tuple(SCENARIOS.values())
_RESOLUTION = 512
"""Bytes that Python's own objects may have more at one end of a row of conversations than at the other, whatever an agent does."""


class ConversationParams(AgentParams):
    """How long a conversation is."""

    turns: int = Field(default=3, ge=1, le=1000, description="Turns of a conversation.")


class TalkParams(ConversationParams):
    """How many conversations one execution has."""

    conversations: int = Field(default=20, ge=1, le=1_000_000, description="Conversations of one execution.")


class ConcurrentParams(ConversationParams):
    """Many conversations at the same time."""

    turns: int = Field(default=5, ge=1, le=1000, description="Turns of a conversation.")
    conversations: int = Field(default=200, ge=1, le=1_000_000, description="Conversations of one execution.")
    concurrency: int = Field(default=10, ge=1, le=10_000, description="Conversations at the same time.")


class GrowthParams(ConversationParams):
    """A long row of conversations, watched in blocks."""

    conversations: int = Field(
        default=200, ge=40, le=10_000_000, description="Conversations of one execution."
    )
    blocks: int = Field(default=20, ge=10, le=1000, description="Samples of memory, at equal intervals.")

    @model_validator(mode="after")
    def _fill_blocks(self) -> GrowthParams:
        if self.conversations < self.blocks:
            raise ValueError(
                f"{self.conversations} conversations do not fill {self.blocks} blocks: each needs at least one"
            )
        return self


class BatchParams(AgentParams):
    """A batch of questions."""

    items: int = Field(default=10, ge=1, le=1_000_000, description="Questions of one batch.")
    width: int = Field(default=4, ge=1, le=10_000, description="Questions at the same time.")


class ConversationBenchmark(AgentBenchmark):
    """Holds conversations: each turn is asked with everything that was said before it."""

    Params: ClassVar[Any] = ConversationParams
    workload_params: ClassVar[Sequence[str]] = ("turns", "conversations", "blocks")

    def talk(self, number: int) -> list[float]:
        """The seconds of each turn of one conversation."""
        history: list[Mapping[str, object]] = []
        times = []
        for turn in range(self.params.turns):
            text = _turn(number, turn)
            seconds, answer = time_call(self.ask, text, history)
            times.append(seconds)
            history += _exchange(text, answer.output)
        return times

    async def talk_async(self, number: int) -> list[float]:
        """The same for an agent whose `answer` is async, on the loop that all conversations share."""
        history: list[Mapping[str, object]] = []
        times = []
        for turn in range(self.params.turns):
            text, began = _turn(number, turn), perf_counter()
            answer = self.check(await self.agent.answer(self.build_request(text, history)))  # type: ignore[misc]
            times.append(perf_counter() - began)
            history += _exchange(text, answer.output)
        return times

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.agent.answer)

    def has_own_memory(self, context: ExperimentContext) -> bool:
        """Whether the memory of this process is the agent's; that of asking it goes by other names, which no grade is for."""
        if getattr(self.agent, "is_local", False) or self.agent.is_simulated:
            return True
        context.remark(
            "The agent does not declare that it works in this process (is_local), so its memory is neither measured nor graded. "
            "The figures 'asking.…' are the memory of the process that asks it."
        )
        return False


def _turn(conversation: int, turn: int) -> str:
    scenario = _SCENARIOS[conversation % len(_SCENARIOS)]
    return scenario[turn % len(scenario)]


def _exchange(text: str, output: object) -> list[Mapping[str, object]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": str(output)}]


class MultiTurn(ConversationBenchmark):
    """One conversation; `seconds` is all of its turns, `turn_seconds` one of them: the first, the second and so on in turn.

    As one turn of each conversation counts, the percentiles of `turn_seconds` are those of all turns, and no two of them are of
    the same conversation.
    """

    grades: ClassVar[Sequence[GradeScale]] = (ONE_TURN_P95, ONE_TURN_P99, CONVERSATIONS, *COMMON)
    inputs_in_turn: ClassVar[int] = len(_SCENARIOS)

    def measure(self, context: ExperimentContext) -> tuple[int, list[float]]:
        return context.execution // len(_SCENARIOS), self.talk(context.execution)

    def read_figures(self, result: tuple[int, list[float]]) -> Mapping[str, Any]:
        number, times = result
        return {
            "turn_seconds": times[number % len(times)],
            "conversations_per_second": 1 / sum(times),
            "first_turn_seconds": times[0],
            "last_turn_seconds": times[-1],
        }


class ConcurrentConversations(ConversationBenchmark):
    """Conversations at the same time: how many per second, and how long their turns take."""

    Params: ClassVar[Any] = ConcurrentParams
    grades: ClassVar[Sequence[GradeScale]] = (TURN_P95, TURN_P99, CONVERSATIONS, *COMMON)

    def measure(self, context: ExperimentContext) -> tuple[float, list[float]]:
        job = self.talk_async if self.is_async else self.talk
        params = self.params
        seconds, outcome = time_call(run_concurrently, self, job, params.conversations, params.concurrency)
        context.read_back(concurrency=outcome.width if params.conversations >= params.concurrency else None)
        return seconds, [turn for times in outcome.results for turn in times]

    def read_figures(self, result: tuple[float, list[float]]) -> Mapping[str, Any]:
        from assay.stats.summary import percentile
        from assay.stats.tails import is_enough

        seconds, times = result
        percentiles = [q for q in (50, 95, 99) if is_enough(len(times), q)]
        return {
            "conversations_per_second": self.params.conversations / seconds,
            **{f"turn_p{q}_seconds": percentile(times, q) for q in percentiles},
        }


class BatchProcessing(ConversationBenchmark):
    """A batch of questions, several at the same time."""

    Params: ClassVar[Any] = BatchParams
    workload_params: ClassVar[Sequence[str]] = ("items",)

    def measure(self, context: ExperimentContext) -> Concurrency:
        outcome = run_concurrently(
            self, self._ask_async if self.is_async else self._ask, self.params.items, self.params.width
        )
        context.read_back(width=outcome.width if self.params.items >= self.params.width else None)
        return outcome

    def _ask(self, number: int) -> float:
        return time_call(self.ask, OPENINGS[number % len(OPENINGS)])[0]

    async def _ask_async(self, number: int) -> float:
        began = perf_counter()
        request = self.build_request(OPENINGS[number % len(OPENINGS)])
        self.check(await self.agent.answer(request))  # type: ignore[misc]
        return perf_counter() - began

    def execute_once(self, context: ExperimentContext) -> Any:
        seconds, outcome = time_call(super().execute_once, context)
        if not isinstance(outcome, Concurrency):
            return outcome
        mean = sum(outcome.results) / len(outcome.results)
        return {"items_per_second": self.params.items / seconds, "item_seconds": mean}


class CpuUse(ConversationBenchmark):
    """CPU time of conversations: of this process and its children, and of the agent's own processes where it tells."""

    Params: ClassVar[Any] = TalkParams
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("cpu_percent", "%"), Metric("cpu_seconds_per_conversation", "s", Better.LOWER)
    )

    def measure(self, context: ExperimentContext) -> Mapping[str, Any]:
        before, began = self._cpu_seconds(), perf_counter()
        for number in range(self.params.conversations):
            self.talk(number)
        wall, used = perf_counter() - began, self._cpu_seconds() - before
        if getattr(self.agent, "is_remote", False):
            context.remark(
                "The agent is on another machine: its CPU time is not measured, only that of the process that asks it."
            )
        return {
            "cpu_seconds_per_conversation": used / self.params.conversations,
            "cpu_percent": 100 * used / wall,
            "conversations_per_second": self.params.conversations / wall,
        }

    def _cpu_seconds(self) -> float:
        # Not os.times(), which counts in hundredths of a second: an execution may take less.
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = process_time() + children.ru_utime + children.ru_stime
        tell = getattr(self.agent, "cpu_seconds", None)
        return own + (float(tell()) if tell is not None else 0.0)


class MemoryGrowth(ConversationBenchmark):
    """What each conversation leaves behind in memory: the slope of Python's memory over many, with its 95 % interval.

    The first block is neither traced nor counted: caches fill there, and `seconds` is the time of one of its conversations, as
    tracing slows all others. Memory of libraries that allocate by themselves is in `rss_growth_bytes`, in whole pages.
    """

    Params: ClassVar[Any] = GrowthParams
    grades: ClassVar[Sequence[GradeScale]] = (LEAK, *COMMON)
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("leak_bytes", "bytes", Better.LOWER),
        Metric("leak_low_bytes", "bytes"),
        Metric("leak_high_bytes", "bytes"),
        Metric("rss_growth_bytes", "bytes", Better.LOWER),
        Metric("rss_bytes", "bytes", Better.LOWER),
    )

    def measure(self, context: ExperimentContext) -> Mapping[str, Any]:
        block = self.params.conversations // self.params.blocks
        _resident_bytes()
        seconds, _ = time_call(self._talk_block, 0, block)
        # Filled in place: samples that were made meanwhile would be in the figures.
        samples = array("q", bytes(8 * 3 * self.params.blocks))
        is_ours = not tracemalloc.is_tracing()
        # What exists already need not be searched for garbage after each block.
        gc.freeze()
        if is_ours:
            tracemalloc.start()
        try:
            self._talk_block(0, block)
            for number in range(self.params.blocks):
                self._talk_block(number * block, block)
                gc.collect()
                place = 3 * number
                samples[place] = (number + 1) * block
                samples[place + 1], _ = tracemalloc.get_traced_memory()
                samples[place + 2] = _resident_bytes()
        finally:
            if is_ours:
                tracemalloc.stop()
            gc.unfreeze()
        return {"seconds": seconds / block, "samples": samples, "is_own": self.has_own_memory(context)}

    def _talk_block(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.talk(number)

    def read_figures(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        from assay.stats.line import fit_line

        conversations, traced, resident = (result["samples"][column::3] for column in range(3))
        line, whole = fit_line(conversations, traced), fit_line(conversations, resident)
        assert line is not None
        assert whole is not None
        resolution = _RESOLUTION / (conversations[-1] - conversations[0])
        memory = {
            "leak_bytes": line.slope,
            "leak_low_bytes": line.low - resolution,
            "leak_high_bytes": line.high + resolution,
            "rss_growth_bytes": whole.slope,
            "rss_bytes": resident[-1],
        }
        return {"seconds": result["seconds"], **(memory if result["is_own"] else {"asking": memory})}


def _resident_bytes() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


class SystemLevel(ConversationBenchmark):
    """Everything around a conversation: the agent is opened anew, talks, and each turn is written to disk for good (fsync)."""

    inputs_in_turn: ClassVar[int] = len(_SCENARIOS)
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(Metric("rss_bytes", "bytes", Better.LOWER))

    def measure(self, context: ExperimentContext) -> Mapping[str, Any]:
        kept, pool = (self.pool, self.agent), AgentPool()
        try:
            self.pool = pool
            opening, self.agent = time_call(pool.open, self.use)
            times = self.talk(context.execution)
            memory = {"rss_bytes": _resident_bytes()}
            logging, _ = time_call(_write_transcript, context.run_dir / "transcript.jsonl", times)
        finally:
            closing, _ = time_call(pool.close)
            self.pool, self.agent = kept
        return {
            "open_seconds": opening,
            "first_answer_seconds": times[0],
            "conversation_seconds": sum(times),
            "write_seconds": logging,
            "close_seconds": closing,
            **(memory if self.has_own_memory(context) else {"asking": memory}),
        }


def _write_transcript(path: Path, times: Sequence[float]) -> None:
    with path.open("a", encoding="utf-8") as file:
        for number, seconds in enumerate(times):
            file.write(json.dumps({"turn": number, "seconds": seconds}) + "\n")
            file.flush()
            os.fsync(file.fileno())
