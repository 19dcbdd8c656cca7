"""A worker process for agents that have no server: it calls their own code, on the same schedule as `worker.py`.

The engine starts it as `python -m`, writes it an order (`request_lengths.read_order`), and reads chunks from its standard
output in the same format as those of the worker for servers (`worker_report`). An agent that computes while it answers
shares this process with the schedule; the schedule delay of the requests then shows it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from assay.load.answer_text import judgeable
from assay.load.failures import Failures
from assay.load.payload import prompt_of, text_of_order
from assay.load.request_lengths import NO_LENGTHS, Lengths, read_order
from assay.load.schedule import pause_after, timetable
from assay.load.worker_report import OK, Chunk, ChunkWriter, columns_of
from assay.model import AgentUse, Answer, Request
from assay.plugin import lookup
from assay.plugin.agent import Agent, InvalidAnswer
from assay.plugin.agent_pool import make_agent

_TICK = 0.1
MOST_AT_ONCE = 1024
"""Requests under way, as each may need a thread or a connection of its own; others wait, and that is their schedule delay."""
_FEW = 64
_NOT_KNOWN = float("nan")


class AgentWorker:
    """Sends one worker's share of a load to an agent, and reports the outcome of each request.

    Each request is an asyncio task; an agent whose `answer` is not a coroutine function runs in a thread pool. In an open
    loop one task follows the schedule and starts a request when it is due. In a closed loop each virtual user is a task
    that sends its next request after the answer to the last. A third task reports ten times a second, and a fourth ends
    everything when the engine closes this process's standard input.
    """

    def __init__(self, order: dict[str, Any], agent: Agent, loop: asyncio.AbstractEventLoop) -> None:
        self._order, self._agent, self._loop = order, agent, loop
        self._rows: list[tuple[float, ...]] = []
        self._gaps = array("d")
        self._kinds: dict[str, int] = {"ok": OK}
        self._answers: list[list[object]] = []
        self._failures = Failures()
        self._sent = 0
        self._in_flight = 0
        self._begin = 0.0
        self._lag = 0.0
        """How late this process last was to wake: what an agent that computes in it does to the others."""
        self._usage = [0, 0, 0]
        """Answers that reported their input tokens, the sum of those tokens, and how many of them came from a cache."""
        self._lengths = Lengths(order)
        self._text = text_of_order(order)
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads: ThreadPoolExecutor | None = None
        if not inspect.iscoroutinefunction(agent.answer):
            self._threads = ThreadPoolExecutor(_most_at_once(order))
        self._room = asyncio.Semaphore(_most_at_once(order))

    async def run(self, begin: float) -> None:
        self._writer = ChunkWriter(self._order["told_to"])
        self._begin = begin
        ticking = asyncio.create_task(self._report_regularly())
        is_closed = self._order["concurrency"] is not None
        sending = asyncio.create_task(self._run_closed_loop() if is_closed else self._follow_timetable())
        watching = asyncio.create_task(self._watch_for_the_end(sending))
        await asyncio.wait([sending])
        # All requests are started by now; what is still under way is waited for, or was cancelled by `_watch_for_the_end`.
        if self._tasks:
            await asyncio.wait(self._tasks)
        if not sending.cancelled():
            sending.result()
        for task in (ticking, watching):
            task.cancel()
        self._tell(is_last=True)

    async def _watch_for_the_end(self, sending: asyncio.Task[None]) -> None:
        """The engine closes our standard input to end the load: requests under way are cancelled and count as cut off."""
        reader = asyncio.StreamReader()
        await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        await reader.read()
        self._stopping.set()
        for task in (sending, *self._tasks):
            task.cancel()

    async def _follow_timetable(self) -> None:
        """The open loop. If no place is free, a request waits for one, but its time still counts from when it was due."""
        give_up_at = self._begin + self._order["seconds"] + self._order["seconds_each"]
        for number, due in timetable(self._order):
            await self._sleep_until(self._begin + due)
            await self._room.acquire()
            if self._stopping.is_set() or time.monotonic() > give_up_at:
                return
            task = asyncio.create_task(self._ask(number, self._begin + due))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _: self._room.release())

    async def _run_closed_loop(self) -> None:
        for number, _ in timetable(self._order):
            task = asyncio.create_task(self._run_virtual_user(number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run_virtual_user(self, number: int) -> None:
        """Requests `number`, `number + concurrency`, and so on, one after the other, until the load is over."""
        order = self._order
        failures = 0
        await self._sleep_until(self._begin)
        due = self._begin
        while not self._stopping.is_set() and time.monotonic() - self._begin < order["seconds"]:
            if order["count"] is not None and number >= order["count"]:
                return
            async with self._room:
                is_answered = await self._ask(number, due)
            number += order["concurrency"]
            failures = 0 if is_answered else failures + 1
            think = order["think_times"][number % len(order["think_times"])]
            # An agent that fails at once would otherwise be asked thousands of times a second.
            pause = max(think, pause_after(failures) if failures else 0.0)
            if pause and not self._stopping.is_set():
                await asyncio.sleep(pause)
            due = time.monotonic()

    async def _sleep_until(self, at: float) -> None:
        if (left := at - time.monotonic()) > 0:
            await asyncio.sleep(left)

    async def _ask(self, number: int, due: float) -> bool:
        """Send one request and record its outcome; returns whether it was answered. Agents may raise anything."""
        self._in_flight += 1
        self._sent += 1
        begun = time.monotonic()
        answer, kind = None, None
        raised: Exception | None = None
        try:
            answer = await asyncio.wait_for(self._answer(self._request(number)), self._order["seconds_each"])
        except TimeoutError:
            kind = "timeout"
        except asyncio.CancelledError:
            kind = "cut_off"
        except InvalidAnswer as error:
            kind, raised = "invalid_answer", error
        except Exception as error:
            kind, raised = "failed", error
        if kind is not None and raised is not None:
            self._failures.add(kind, raised, time.monotonic() - self._begin)
        self._write_down(number, due, begun, answer, kind)
        self._in_flight -= 1
        return kind is None

    def _request(self, number: int) -> Request:
        """Request n asks prompt n modulo their number; a row of a trace, where there is one, says more about its lengths."""
        prompts, bounds = self._order["prompts"], self._order["max_tokens"]
        most = bounds[number % len(bounds)]
        row = self._lengths(number) if self._order["replays"] else NO_LENGTHS
        if row.output_tokens > 0:
            most = row.output_tokens
        if row.input_tokens > 0:
            return Request(str(number), prompt_of(self._text, number, row).decode(), max_tokens=most)
        params = self._order["params"]
        request_params = params[number % len(params)] if params else {}
        return Request(str(number), prompts[number % len(prompts)], request_params, max_tokens=most)

    async def _answer(self, request: Request) -> Answer:
        """Ask the agent; a plain function runs in a thread.

        A thread cannot be stopped: after its time limit the function continues and keeps its thread.
        """
        if self._threads is not None:
            answer: Any = await self._loop.run_in_executor(self._threads, self._agent.answer, request)
        else:
            answer = self._agent.answer(request)
        resolved: Answer = await answer if inspect.isawaitable(answer) else answer
        return resolved

    def _write_down(
        self, number: int, due: float, begun: float, answer: Answer | None, kind: str | None
    ) -> None:
        """Add the row of a request, in the order of `worker_report.COLUMNS`; when it was sent is when it was handed over."""
        now, begin = time.monotonic(), self._begin
        first = output = given = _NOT_KNOWN
        if answer is not None:
            if answer.first_token_seconds is not None:
                first = begun + answer.first_token_seconds - begin
            if answer.usage is not None:
                output = _number(answer.usage.output_tokens)
                given = _number(answer.usage.input_tokens)
                if answer.usage.input_tokens is not None:
                    self._usage[0] += 1
                    self._usage[1] += answer.usage.input_tokens
                    self._usage[2] += min(answer.usage.cached_tokens or 0, answer.usage.input_tokens)
            if self._order["keeps_answers"]:
                self._answers.append([number, judgeable(answer.output)])
        outcome = OK if kind is None else self._kinds.setdefault(kind, len(self._kinds))
        times = (due - begin, begun - begin, begun - begin, first, now - begin)
        self._rows.append((number, *times, output, given, outcome, self._lag, 0))

    async def _report_regularly(self) -> None:
        """Ten times a second; how much later than that this task wakes is the lag of all requests since the last time."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(_TICK)
            self._lag = max(0.0, time.monotonic() - before - _TICK)
            self._tell(is_last=False)

    def _tell(self, is_last: bool) -> None:
        chunk = Chunk(columns_of(self._rows), self._gaps)
        self._rows, self._gaps = [], array("d")
        chunk.facts = {
            "at": time.monotonic() - self._begin,
            "in_flight": self._in_flight,
            "sent": self._sent,
            # CPU time of the thread that sends: what an agent computes in other threads is not work of the load generator.
            "cpu": time.thread_time(),
            "kinds": list(self._kinds),
            "reconnects": 0,
            "coalesced": 0,
            "counted": False,
            "simulated": bool(getattr(self._agent, "is_simulated", False)),
            "usage": list(self._usage),
            "answers": self._answers,
            "failures": self._failures.take(),
            "is_last": is_last,
        }
        self._answers = []
        self._writer.send(chunk, is_last)


def _most_at_once(order: dict[str, Any]) -> int:
    return min(int(order["in_flight"]), MOST_AT_ONCE)


def places_of(order: dict[str, Any]) -> int:
    """Requests that may soon be under way: all of a few, or of many those that the engine would connect ahead for."""
    most = _most_at_once(order)
    return most if most <= _FEW else min(most, _FEW, int(order["ahead"]))


def _number(value: int | None) -> float:
    return _NOT_KNOWN if value is None else float(value)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = read_order(sys.stdin.buffer) or sys.exit()
    order["told_to"] = os.dup(1)
    # What the agent prints must not mix with the chunks.
    os.dup2(2, 1)
    sys.path.append(str(Path.cwd()))
    # Files of the project first: they may define the agent's type, or functions that it calls by name.
    for file in order["load"]:
        lookup.load_file(Path(file))
    use = AgentUse(**order["agent"])
    with asyncio.Runner() as runner:
        # Opened on the loop that will run the load: connections of an agent belong to the loop that made them.
        agent = make_agent(use, _most_at_once(order))
        opening: Any = agent.open()
        if inspect.isawaitable(opening):
            runner.run(_await_result(opening))
        if (prepare := getattr(agent, "prepare", None)) is not None:
            prepare(places_of(order))
        os.write(order["told_to"], b"ready\n")
        begin = sys.stdin.buffer.readline()
        try:
            if begin:
                runner.run(AgentWorker(order, agent, runner.get_loop()).run(float(begin)))
        finally:
            closing: Any = agent.close()
            if inspect.isawaitable(closing):
                runner.run(_await_result(closing))


async def _await_result(awaitable: Any) -> None:
    await awaitable


if __name__ == "__main__":
    main()
