"""Puts cases to an agent: asks, times and judges them, one at a time or many at once.

`suite_job.py` opens an `CaseRunner` for each job and drives it; a member of a team (`team/member.py`) has one of its own. There
are three ways to call an agent. A sync agent is called directly (`_converse`). An async agent runs on the event loop of the
agent pool (`_converse_async`), many cases at a time if the trial allows. A sync agent that says it is thread-safe is called
in threads for the same purpose (`_converse_in_thread`). All of them fill a `Talk`, from which `_execution` builds what is
stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, thread_time
from time import time as now
from typing import Any

from assay.execute.answer_limits import (
    SHORTENED,
    STORED_CHARACTERS,
    TooLong,
    copy_whole,
    limit_execution,
    limit_name,
    shorten,
    shorten_list,
    store_span,
)
from assay.execute.budget import known_tokens
from assay.execute.early_stop import DEFAULT_SECONDS
from assay.execute.error_text import format_error, message_of
from assay.execute.instruments import Files, InstrumentFailed, Instruments
from assay.execute.output_capture import OutputBuffer, capture_prints
from assay.execute.resource_usage import Peak, UsageMeter
from assay.execute.scoring import Panel, score_detail, score_measurements
from assay.execute.subject import INTERRUPTED
from assay.execute.threads import CallingThread, describe_contention
from assay.execute.worker_channel import StatusBlock, WorkerStage
from assay.model import (
    Answer,
    Batch,
    Case,
    Execution,
    Isolation,
    Job,
    Limits,
    Phase,
    Request,
    Score,
    Span,
    Status,
    ToolCall,
    Usage,
)
from assay.model.execution import JobUsage
from assay.model.metric import RECORDED_SECONDS
from assay.model.settings import RECORDED
from assay.plugin.agent import Agent, AgentError, InvalidAnswer
from assay.plugin.agent_pool import AgentPool
from assay.plugin.case_limit import limit_case
from assay.plugin.experiment import ExperimentContext
from assay.plugin.interruption import BY_USER, run_coroutine
from assay.plugin.judge_retries import report_retries_of
from assay.plugin.outcome import format_value, type_name
from assay.plugin.prices import Cost, Price
from assay.plugin.process_memory import peak_memory

LogReader = Callable[[], str | None]
Ending = tuple[Status, str | None]
"""How an execution ended, and what went wrong."""
WELL: Ending = (Status.OK, None)
_UNWATCHED = contextlib.nullcontext()
MOST_TOKENS = 10**9
MOST_USD = 1e6
MOST_SECONDS = 1e9
"""Upper limits for one answer's usage. Larger values are reporting errors and would distort all totals."""
GRACE_SECONDS = 1.0
"""How long an async agent may continue after its time is up, to clean up, before the supervisor ends the worker."""
BREATH_SECONDS = 0.01
"""How long agents that never wait may keep the event loop to themselves."""


class _TimeIsUp(Exception):
    """The limit of seconds; an agent may raise TimeoutError for reasons of its own."""


@dataclass(slots=True)
class Talk:
    """The outcome of asking an agent one case: one answer per turn, and the measured times.

    It is filled during the conversation, so that what is there counts when the agent fails or runs out of time.
    """

    answers: list[Answer] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float | None = None
    peak_bytes: int | None = None
    repetition: int = 0
    measurements: dict[str, float] = field(default_factory=dict)
    """Measurements of instruments."""
    raised: BaseException | None = None
    """What the agent's own code raised, whatever its type."""
    turn_starts: list[float] = field(default_factory=list)
    """Seconds of the agent before each turn, to which the spans of its answer are added."""
    harness_seconds: float = 0.0
    """For a profiled execution: what Assay itself took, for the call and for scoring."""


class CaseRunner:
    """One trial in one process: holds its open agent and its scorers, and turns cases into executions.

    The caller opens it, calls `create_scorers`, and then either iterates over `run_cases` or runs several `run_cases_async` on the
    event loop, which share one iterator of case numbers. Numbers count all repetitions of all cases, see `Job.case_at`.
    """

    def __init__(self, job: Job, pool: AgentPool) -> None:
        assert job.agent is not None
        self._job = job
        self._pool = pool
        self.agent: Agent = pool.open(job.agent, job.concurrency)
        self._price = Price(job.agent, self.agent)
        self._seconds_allowed = job.limits.seconds or DEFAULT_SECONDS
        self._most_tokens = int(job.limits.tokens) if job.limits.tokens is not None else None
        self.is_async = inspect.iscoroutinefunction(self.agent.answer)
        is_thread_safe = not self.is_async and getattr(self.agent, "is_thread_safe", False)
        self.uses_threads = is_thread_safe and job.concurrency > 1
        self.needs_new_process = False
        """Whether a thread hangs, so that the rest of the job should run in a new process."""
        self._cpu_seconds = 0.0
        self._cpu_clock, self._peak = self._gauges()
        self._meter = UsageMeter(self._peak_of_job())
        self._instruments = Instruments(job.instruments)
        self._context = ExperimentContext(
            job.run_id,
            Path(job.run_dir),
            job.seed,
            process=job.process,
            instruments=tuple(use.name for use in job.instruments),
        )
        self.files = Files(job)
        self._is_recorded = job.agent.type == RECORDED
        self._sees_answers = bool(getattr(self.agent, "sees_answers", False))
        self._seed = (job.seed - job.process) % 2**32
        self._under_way: dict[int, float] = {}
        """When each execution began, the oldest first, by the identity of its talk."""
        self.is_closing = False
        """Whether the harness itself cancels what is under way; any other cancellation is the agent's doing."""
        self._last_breath = perf_counter()

    def _gauges(self) -> tuple[Callable[[], float] | None, Callable[[], int | None] | None]:
        """CPU clock and peak memory, of the agent's own processes or of this one.

        Executions at a time share them, so that both are unknown; but each thread has a CPU clock of its own.
        """
        if self.uses_threads:
            return thread_time, None
        if self.is_async and self._job.concurrency > 1:
            return None, None
        is_local = getattr(self.agent, "is_local", False)
        cpu = getattr(self.agent, "cpu_seconds", process_time if is_local else None)
        if not self._job.wants_memory:
            return cpu, None
        return cpu, getattr(self.agent, "peak_bytes", Peak(os.getpid()).read if is_local else None)

    def _peak_of_job(self) -> Callable[[], int | None] | None:
        """Choose what reads the peak memory: of the agent's own processes, or of this one.

        This process counts only if the agent lives in it and it is not the runner's.
        """
        if own := getattr(self.agent, "peak_bytes", None):
            peak: Callable[[], int | None] = own
            return peak
        is_here = getattr(self.agent, "is_local", False) and self._job.isolation is not Isolation.INLINE
        return peak_memory if is_here else None

    def usage(self) -> JobUsage:
        """What the measured executions of the job took; asked before the agent is closed."""
        return self._meter.usage()

    def about_instruments(self) -> Batch:
        """What each instrument costs, and which ones have nothing to measure here."""
        return Batch(costs=self._instruments.costs(self._context), unmeasured=self._instruments.unmeasured)

    def create_scorers(self) -> None:
        """Create the scorers after the agent, so that their errors are not attributed to the agent."""
        self._panel = Panel(self._job.scorers, self._job.cases, self._pool)

    @property
    def version(self) -> str:
        assert self._job.agent is not None
        return self._job.agent.version or self.agent.found_version()

    @property
    def is_held_up(self) -> bool:
        """Whether an agent takes no notice of its time being up; a while is granted for it to clean up."""
        oldest = next(iter(self._under_way.values()), None)
        return oldest is not None and perf_counter() - oldest > self._seconds_allowed + GRACE_SECONDS

    def run_cases(
        self, numbers: Iterator[tuple[Phase, int]], status_block: StatusBlock, read_log: LogReader
    ) -> Iterator[Execution]:
        """Sequential: a plain call for a sync agent, no thread and no event loop between it and the clock."""
        converse = self._converse_on_loop if self.is_async else self._converse
        for phase, number in numbers:
            case, repetition = self._job.case_at(phase, number)
            started, talk = now(), Talk(repetition=repetition)
            # From here on the supervisor counts the execution's time, and blames it if the process dies.
            status_block.begin(phase, number)
            try:
                with self._watch_execution(phase, repetition, talk) if self._instruments.any else _UNWATCHED:
                    called = perf_counter()
                    self._converse_and_measure(converse, case, talk)
                    talk.harness_seconds = perf_counter() - called - talk.seconds
                ending = WELL
            except BaseException as error:
                ending = _ending(error, talk)
            # Metered before it is judged: what scorers compute is no work of the agent.
            if phase is Phase.MEASURED:
                self._meter_talk(talk)
            if ending is WELL:
                status_block.enter(WorkerStage.JUDGING)
                judged = perf_counter()
                waiting = self._panel.judge(case, talk.answers, talk.scores)
                if waiting is not None:
                    self._pool.wait(report_retries_of(waiting, status_block.count_judge_retry))
                talk.harness_seconds += perf_counter() - judged
            status_block.end()
            execution = self._execution(phase, case, repetition, started, talk, ending)
            log = read_log()
            yield replace(execution, log=log) if log else execution

    async def run_cases_async(
        self, numbers: Iterator[tuple[Phase, int]], ended: list[Execution], status_block: StatusBlock
    ) -> None:
        """Ask one case after the other; as many of these tasks as the trial allows run at a time and share the numbers.

        Executions are appended to `ended`, from where the caller takes them. It returns when the numbers are used up, when
        the harness closes it, or when a thread that does not end makes a new process necessary.
        """
        thread = CallingThread() if self.uses_threads else None
        for phase, number in numbers:
            case, repetition = self._job.case_at(phase, number)
            started, talk, printed = now(), Talk(repetition=repetition), OutputBuffer()
            capture_prints(printed)
            try:
                await self._converse_in_time(case, talk, thread)
                ending = WELL
            except BaseException as error:
                if self.is_closing or isinstance(error, BY_USER):
                    raise
                # An agent that cancels its own task would otherwise end the next case, too.
                task = asyncio.current_task()
                while task is not None and task.cancelling():
                    task.uncancel()
                ending = _ending(error, talk)
            if phase is Phase.MEASURED:
                self._meter_talk(talk)
            if ending is WELL:
                judging = self._panel.judge_async(case, talk.answers, talk.scores)
                await report_retries_of(judging, status_block.count_judge_retry)
                if self.is_closing:
                    return
            execution = self._execution(phase, case, repetition, started, talk, ending)
            log = printed.text()
            ended.append(replace(execution, log=log) if log else execution)
            status_block.again()
            if self.needs_new_process and self._job.isolation is not Isolation.INLINE:
                return
            if self.needs_new_process:
                thread, self.needs_new_process = CallingThread(), False
            if perf_counter() - self._last_breath > BREATH_SECONDS:
                # An agent that never waits for anything would keep the loop from everything else.
                await asyncio.sleep(0)
                self._last_breath = perf_counter()
        if thread is not None:
            thread.close()

    def doubt_about_threads(self, elapsed: float) -> str | None:
        if not self.uses_threads:
            return None
        return describe_contention(self._job.concurrency, self._cpu_seconds, elapsed)

    @contextlib.contextmanager
    def _watch_execution(self, phase: Phase, repetition: int, talk: Talk) -> Iterator[None]:
        """The instruments around one execution: in measured ones those that do not slow it, in a profiled one its own."""
        watching = self._instruments.watching(phase, repetition)
        if watching is None:
            yield
            return
        self._context.phase = phase
        self._context.iteration_index = repetition if phase is Phase.MEASURED else None
        self._context.execution = repetition
        states = watching.start(self._context)
        try:
            yield
        finally:
            talk.measurements.update(watching.stop(states, self.files))

    def _meter_talk(self, talk: Talk) -> None:
        if self._is_recorded:
            return
        if talk.cpu_seconds is not None:
            self._meter.add(talk.cpu_seconds, talk.seconds)
        self._meter.see_peak(talk.peak_bytes)

    def _converse_and_measure(self, converse: Callable[[Case, Talk], None], case: Case, talk: Talk) -> None:
        # Reading the peak sets it back, so that what is read afterwards is the peak of this case alone.
        if self._peak:
            self._peak()
        cpu = self._cpu_clock() if self._cpu_clock else 0.0
        converse(case, talk)
        if self._cpu_clock:
            talk.cpu_seconds = self._cpu_clock() - cpu
        if self._peak:
            talk.peak_bytes = self._peak()

    def _converse(self, case: Case, talk: Talk) -> None:
        for request in self._requests(case, talk):
            talk.turn_starts.append(talk.seconds)
            start = perf_counter()
            try:
                answer = self.agent.answer(request)
            except BaseException as error:
                talk.raised = error
                if isinstance(error, AgentError) and error.answer is not None:
                    talk.answers.append(error.answer)
                raise
            finally:
                talk.seconds += perf_counter() - start
            talk.answers.append(valid(answer))

    def _requests(self, case: Case, talk: Talk) -> Iterator[Request]:
        """One request for a plain case; for a conversation one a turn, each with what was said before."""
        history: list[Mapping[str, object]] = []
        params = case.metadata if self._sees_answers else case.shown_metadata
        for turn in case.turns or (case,):
            expected = turn.expected if self._sees_answers else None
            yield Request(
                case.id,
                turn.input,
                params,
                tuple(history),
                case.tools,
                case.files,
                expected,
                self._most_tokens,
                talk.repetition,
                self._seed,
            )
            history.append({"role": "user", "content": turn.input})
            history.append({"role": "assistant", "content": talk.answers[-1].output})

    def _converse_on_loop(self, case: Case, talk: Talk) -> None:
        run_coroutine(self._pool.runner, self._converse_in_time(case, talk))

    async def _converse_in_time(self, case: Case, talk: Talk, thread: CallingThread | None = None) -> None:
        """Have the conversation on the event loop, in the thread if there is one; it is cancelled when its time is up."""
        self._under_way[id(talk)] = perf_counter()
        try:
            async with asyncio.timeout(self._seconds_allowed) as deadline:
                if thread is not None:
                    await self._converse_in_thread(case, talk, thread)
                else:
                    await limit_case(self._converse_async(case, talk), self._seconds_allowed)
            if deadline.expired():
                raise _TimeIsUp(f"took longer than {self._seconds_allowed:g} s, although it answered")
        except TimeoutError as error:
            if deadline.expired():
                # Early releases of Python 3.11 set no cause, but always the context.
                how_far = getattr(error.__context__, "__notes__", [])
                parts = [f"took longer than {self._seconds_allowed:g} s", *how_far]
                raise _TimeIsUp("; ".join(parts)) from None
            raise
        finally:
            del self._under_way[id(talk)]

    async def _converse_in_thread(self, case: Case, talk: Talk, thread: CallingThread) -> None:
        """Have the conversation in a thread, where its clocks run, too.

        The thread fills a talk of its own: after the time is up it may continue, and what it still does must not count.
        """
        own, start = Talk(repetition=talk.repetition), perf_counter()
        try:
            await thread.call(partial(self._converse_and_measure, self._converse, case, own))
        except asyncio.CancelledError as error:
            if error is not own.raised:
                talk.seconds = perf_counter() - start
                self.needs_new_process = True
            raise
        finally:
            if not talk.seconds:
                talk.raised = own.raised
                talk.answers, talk.seconds, talk.cpu_seconds = own.answers, own.seconds, own.cpu_seconds
                talk.turn_starts = own.turn_starts
                self._cpu_seconds += own.cpu_seconds or 0.0

    async def _converse_async(self, case: Case, talk: Talk) -> None:
        for request in self._requests(case, talk):
            talk.turn_starts.append(talk.seconds)
            start = perf_counter()
            try:
                answer = await self.agent.answer(request)  # type: ignore[misc]
            except BaseException as error:
                talk.raised = error
                raise
            finally:
                talk.seconds += perf_counter() - start
            talk.answers.append(valid(answer))

    def _execution(
        self, phase: Phase, case: Case, repetition: int, started: float, talk: Talk, ending: Ending
    ) -> Execution:
        """What is stored of a talk. Limits that only show afterwards, of tokens, cost and recorded time, decide here."""
        status, error = ending
        costs = [self._price.of(answer) for answer in talk.answers]
        measurements = _measurements(talk, costs, is_recorded=self._is_recorded)
        allowed = self._job.limits.seconds
        if (
            self._is_recorded
            and status is Status.OK
            and allowed
            and measurements.get("seconds", 0.0) > allowed
        ):
            status, error = (
                Status.TIMEOUT,
                f"took {measurements['seconds']:g} s as recorded, longer than {allowed:g} s",
            )
        if status is Status.OK and (broken := broken_limit(measurements, self._job.limits)):
            status, error = Status.OVER_LIMIT, broken
        last = talk.answers[-1] if talk.answers else None
        shortened: dict[str, int] = {}
        output = shorten(last.output, shortened, "output") if last is not None else None
        detail = _detail(talk, costs, self.agent, shortened)
        if phase is Phase.PROFILED:
            harness = Span("harness", "harness", talk.seconds, talk.harness_seconds)
            detail.setdefault("spans", []).append(store_span(harness))
        execution = Execution(
            self._job.trial,
            self._job.process,
            phase,
            repetition,
            status,
            started,
            measurements,
            case=case.id,
            output=output,
            applied={"model": last.model} if last is not None and last.model else None,
            error=error,
            log=last.log if last is not None else None,
            detail=detail or None,
        )
        return limit_execution(execution)


def _ending(error: BaseException, talk: Talk) -> Ending:
    """The status and the text for what ended a talk.

    Whatever the agent raised is its own failure, even an error type of the harness; only the user cancels, and only an
    instrument that failed outside of the agent's code is an error of the harness.
    """
    if isinstance(error, BY_USER):
        return Status.CANCELLED, INTERRUPTED
    if isinstance(error, InvalidAnswer):
        return Status.INVALID_OUTPUT, message_of(error)
    if isinstance(error, _TimeIsUp):
        return Status.TIMEOUT, str(error)
    if isinstance(error, AgentError):
        return Status.FAILED, message_of(error)
    if isinstance(error, InstrumentFailed) and error is not talk.raised:
        return Status.HARNESS_ERROR, str(error)
    return Status.FAILED, format_error(error)


_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "api_calls")
_NOBODY_SAID = Usage()


def valid(answer: Any) -> Answer:
    """The answer, with its output as JSON can hold it; raises InvalidAnswer if it is none or has impossible figures.

    Most answers are short ASCII texts without anything else: they pass without being copied.
    """
    if not isinstance(answer, Answer):
        raise InvalidAnswer(f"the agent returned {type_name(answer)}, not an answer")
    if answer.usage != _NOBODY_SAID:
        check_usage(answer.usage)
    if answer.usd is not None and not 0 <= answer.usd <= MOST_USD:
        raise InvalidAnswer(f"usage.usd must be a cost from 0 to {MOST_USD:,.0f} USD, not {answer.usd!r}")
    for name, seconds in answer.durations.items() if answer.durations else ():
        if not 0 <= seconds <= MOST_SECONDS:
            raise InvalidAnswer(
                f"the duration '{name}' must be from 0 to {MOST_SECONDS:,.0f} seconds, not {seconds!r}"
            )
    if answer.spans or answer.tool_calls or answer.model or answer.log:
        _check_parts(answer)
    text = answer.output
    is_plain = text.__class__ is str and len(text) < 10_000 and text.isascii() and "\0" not in text
    return answer if is_plain else _plain_answer(answer)


def check_usage(usage: Any) -> None:
    """InvalidAnswer for counts of tokens and calls that cannot be."""
    if not isinstance(usage, Usage):
        raise InvalidAnswer(f"usage is {format_value(usage)}, not a Usage")
    for name in _TOKENS:
        value = getattr(usage, name)
        if value is not None and not (type(value) is int and 0 <= value <= MOST_TOKENS):
            raise InvalidAnswer(
                f"usage.{name} must be a whole number from 0 to {MOST_TOKENS:,}, not {value!r}"
            )


def _check_parts(answer: Answer) -> None:
    """An agent may fill an Answer with anything; what cannot be stored is its mistake."""
    for name, text in (("model", answer.model), ("log", answer.log)):
        if text is not None and type(text) is not str:
            raise InvalidAnswer(f"the {name} must be text, not {type_name(text)}")
    for span in answer.spans:
        if not isinstance(span, Span) or not _is_time(span.start) or not _is_time(span.seconds):
            raise InvalidAnswer(f"a span needs a name, a kind, start and seconds: {format_value(span)}")
    for call in answer.tool_calls:
        if not isinstance(call, ToolCall) or not isinstance(call.arguments, Mapping):
            raise InvalidAnswer(f"a tool call needs a name and arguments by name: {format_value(call)}")


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= MOST_SECONDS


def _plain_answer(answer: Answer) -> Answer:
    """The output as JSON can hold it: what is judged now and what is judged again later is the same."""
    try:
        return replace(answer, output=copy_whole(answer.output))
    except TooLong as error:
        raise InvalidAnswer(str(error)) from None


def _measurements(talk: Talk, costs: Sequence[Cost | None], *, is_recorded: bool = False) -> dict[str, float]:
    """The figures of an execution: time, tokens, cost and scores, summed over the turns of a conversation.

    A recorded answer has the seconds that were recorded: what it takes to look it up says nothing about the agent.
    """
    measurements: dict[str, float] = {}
    if is_recorded:
        for name in ("seconds", RECORDED_SECONDS):
            _add(measurements, name, [answer.seconds for answer in talk.answers])
    else:
        measurements = _collect_own_measurements(talk)
    if talk.answers and (first := talk.answers[0].first_token_seconds) is not None:
        measurements["ttft"] = first
    if any(answer.usage != _NOBODY_SAID for answer in talk.answers):
        for name in (*_TOKENS, "tokens"):
            _add(measurements, name, [getattr(answer.usage, name) for answer in talk.answers])
    _add(measurements, "usd", [None if cost is None else cost.usd for cost in costs])
    for answer in talk.answers:
        for name, seconds in answer.durations.items():
            measurements[f"{name}_seconds"] = measurements.get(f"{name}_seconds", 0.0) + seconds
    measurements.update(score_measurements(talk.scores))
    return measurements


def _collect_own_measurements(talk: Talk) -> dict[str, float]:
    measurements: dict[str, float] = {**talk.measurements, "seconds": talk.seconds}
    if talk.cpu_seconds is not None:
        measurements["cpu_seconds"] = talk.cpu_seconds
    if talk.peak_bytes is not None:
        # Peak of the agent's own process; what an instrument saw is the sum over the tree of the worker.
        measurements["rss_max_bytes"] = float(talk.peak_bytes)
    return measurements


def _add(measurements: dict[str, float], name: str, values: list[float | None]) -> None:
    """The sum over the turns, where every turn has a value: a sum with gaps would be too low."""
    known = [value for value in values if value is not None]
    if known and len(known) == len(values):
        measurements[name] = float(sum(known))


def _detail(
    talk: Talk, costs: Sequence[Cost | None], agent: Agent, shortened: dict[str, int]
) -> dict[str, Any]:
    """What the figures rest on, for people who ask why: reasons of scorers, prices, tool calls, spans, retries, turns.

    `shortened` says what of the output was shortened; what is shortened here is added to it, and it is stored as well.
    """
    answers, detail = talk.answers, score_detail(talk.scores)
    if sources := [cost.source for cost in costs if cost is not None and cost.source]:
        detail["cost"] = [dict(source) for n, source in enumerate(sources) if source not in sources[:n]]
    if any(answer.tool_calls for answer in answers):
        calls = [(call, n) for n, answer in enumerate(answers, 1) for call in answer.tool_calls]
        detail["tool_calls"] = _tool_calls(shorten_list(calls, shortened, "tool_calls"), shortened)
    if any(answer.spans for answer in answers):
        spans = shorten_list(list(_all_spans(talk)), shortened, "spans")
        detail["spans"] = [store_span(span) for span in spans]
    if any(answer.attempts for answer in answers):
        tries = [attempt for answer in answers for attempt in answer.attempts]
        detail["attempts"] = [
            {name: limit_name(value) if isinstance(value, str) else value for name, value in attempt.items()}
            for attempt in shorten_list(tries, shortened, "attempts")
        ]
    if len(answers) > 1:
        turns = shorten_list([answer.output for answer in answers[:-1]], shortened, "turns")
        detail["turns"] = [shorten(output, shortened, "turns") for output in turns]
    if agent.is_simulated or any(answer.is_simulated for answer in answers):
        detail["simulated"] = True
    if shortened:
        detail[SHORTENED] = shortened
    return detail


def _all_spans(talk: Talk) -> Iterator[Span]:
    """The spans of all turns, from the beginning of the execution."""
    earlier = 0
    for start, answer in zip(talk.turn_starts, talk.answers, strict=False):
        for span in answer.spans:
            parent = None if span.parent is None else span.parent + earlier
            yield replace(span, start=span.start + start, parent=parent) if start or earlier else span
        earlier += len(answer.spans)


def _tool_calls(calls: Sequence[tuple[ToolCall, int]], shortened: dict[str, int]) -> list[dict[str, Any]]:
    """The tool calls as they are stored. Their arguments share one limit, as there may be many calls that are each long."""
    left, documents = STORED_CHARACTERS, []
    for call, turn in calls:
        noted: dict[str, int] = {}
        arguments = shorten(dict(call.arguments), noted, "tool_calls", max(left, 0))
        left -= len(arguments) if isinstance(arguments, str) else len(str(arguments))
        if noted:
            shortened.setdefault("tool_calls", len(calls))
            arguments = {SHORTENED: arguments}
        documents.append({"name": limit_name(call.name), "arguments": arguments, "turn": turn})
    return documents


def broken_limit(measurements: Mapping[str, float], limits: Limits) -> str | None:
    used = {"tokens": known_tokens(measurements), "usd": measurements.get("usd", 0.0)}
    for name, ceiling in (("tokens", limits.tokens), ("usd", limits.usd)):
        if ceiling is not None and used[name] > ceiling:
            return f"used {used[name]:g} {name}, more than the limit of {ceiling:g}"
    return None
