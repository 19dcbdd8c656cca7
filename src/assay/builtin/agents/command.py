"""An agent that is a program in any language: it reads requests as JSON lines and answers in kind.

The parts: `child` is one process with its pipes; `dialogue` has the steps of one request and its answer, as a generator
that says what it waits for; `Polling` or `ready` does the waiting. This module keeps the processes:
idle ones are used again, one that ended or misbehaved is replaced, and a request that a program never read is sent to a new
one, because that cannot have been the request's fault.
"""

from __future__ import annotations

import asyncio
import os
import resource
import select
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import ClassVar, Literal

from assay.builtin.agents.child import Child
from assay.builtin.agents.dialogue import (
    LONGEST_WAIT,
    MOMENT,
    Dialogue,
    DialogueState,
    RequestUnread,
    Wait,
    in_lines,
    once,
)
from assay.builtin.agents.version import version_of
from assay.dialects.plain import request_line
from assay.errors import PlanError
from assay.execute.process_tree import find_descendants, is_at_work
from assay.model import Answer, Request
from assay.model.redaction import known_secrets, redact
from assay.plugin import LOG_ENDS, UNCONFINED, AgentError, BadAgent, Program, Sandbox, find_sandbox
from assay.units import format_count

MAX_BYTES = 32 * 2**20
_LEAVE_SECONDS = 0.5
"""For all processes together to leave once their input has ended."""
_MOST_SECONDS_TO_START = 20.0
_LOOK_SECONDS = 0.05
_QUIET_LOOKS = 4
_LOG_IN_ERROR = 2000
_HIDDEN = (".assay",)
_MILLISECONDS = int(LONGEST_WAIT * 1000)
_LOOKS = 60 if hasattr(os, "sched_yield") else 0
"""They take about a tenth of a millisecond."""
"""Folders of a project that a program in a sandbox sees empty: the database of results."""


class Command:
    """A program in any language that reads requests as JSON lines and writes its answers as JSON lines.

    No shell is involved. With one request at a time, `answer` is a plain call; otherwise it is async, and there are as
    many processes as requests at the same time.

    Args:
        command: The program and its arguments, as a list.
        mode: lines keeps the program running for all cases; once starts a process for each case.
        plain: With `mode: once`: the program writes plain text instead of JSON, and all of it is the output.
        env: Environment variables of the program, besides those of this process.
        params: Sent with every request as `params`.
        max_bytes: Maximum size of an answer, in bytes.
        sandbox: bubblewrap confines the program: it reads only the system, its own folder without `.assay`, and `readable`; its only variables are those of `env`; and what it starts ends with it.
        network: In a sandbox: host for the network of this machine, none for no network.
        readable: In a sandbox: more files and folders that the program may read.

    Example:
        - {name: rusty, type: command, command: ["./rusty", "--serve"]}
        - {name: script, type: command, command: [python, solve.py], mode: once, plain: true}
        - {name: stranger, type: command, command: [./agent], sandbox: bubblewrap, network: none}
    """

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = False
    may_call_models: ClassVar[bool] = True

    answer: Callable[[Request], Awaitable[Answer] | Answer]

    def __init__(
        self,
        command: Sequence[str],
        mode: Literal["lines", "once"] = "lines",
        plain: bool = False,
        env: Mapping[str, object] | None = None,
        params: Mapping[str, object] | None = None,
        max_bytes: int = MAX_BYTES,
        sandbox: str = UNCONFINED,
        network: Literal["host", "none"] = "host",
        readable: Sequence[str] = (),
        concurrency: int = 1,
        folder: str = "",
    ) -> None:
        self._folder = Path(folder or ".").resolve()
        self._command = _check_command(command, self._folder)
        if mode not in ("lines", "once"):
            raise BadAgent(
                f"the mode '{mode}' must be 'lines' (the program keeps running) or 'once' (one process per case)."
            )
        self._is_once, self._is_plain = mode == "once", plain
        self._env = {name: str(value) for name, value in (env or {}).items()}
        self._params = dict(params or {})
        self._sandbox = _check_sandbox(sandbox, network, readable)
        self._has_network = network == "host"
        self._readable = [str(self._folder / Path(path).expanduser()) for path in readable]
        for path in self._readable:
            if not Path(path).exists():
                raise BadAgent(f"'{path}' under `readable` does not exist.")
        self._max_bytes = max_bytes
        known_secrets().learn_environment(self._env)
        self._idle: list[Polling] = []
        self._all: dict[Child, None] = {}
        self.answer = self._answer if concurrency == 1 else self._answer_async

    def open(self) -> None:
        """The first process is started now, so that no answer has to wait for it."""
        if not self._is_once:
            self._idle.append(self._start_process())

    def prepare(self, places: int) -> None:
        """Processes for so many requests at a time, each started and waiting for its first: what a load measures is how they
        answer, not how they start."""
        if self._is_once:
            return
        while len(self._idle) < places:
            self._idle.append(self._start_process())
        _wait_until_at_rest()

    def close(self) -> None:
        for child in self._all:
            child.finish_writing()
        until = monotonic() + _LEAVE_SECONDS
        for child in list(self._all):
            self._end(child, max(0.0, until - monotonic()))
        self._idle.clear()

    def found_version(self) -> str:
        return version_of(self.source_files())

    def source_files(self) -> list[Path]:
        """The files that the command names, without an interpreter that lives elsewhere."""
        files = [self._folder / word for word in self._command]
        return [file for file in files if file.is_relative_to(self._folder)] or files[:1]

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all its processes until now, those that have ended included."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime + sum(child.cpu_seconds() for child in self._all)

    def peak_bytes(self) -> int | None:
        """Return the largest memory of the processes that still run.

        The kernel forgets the figure of a process that has ended, so it cannot be part of it.
        """
        peaks = [child.peak_bytes() for child in self._all]
        return max((peak for peak in peaks if peak is not None), default=None)

    def _answer(self, request: Request) -> Answer:
        polling = self._take_process()
        while True:
            talk = self._talk(request, polling.child)
            try:
                for wait in self._dialogue(talk):
                    polling.wait(wait)
            except RequestUnread:
                polling = self._restart_process(polling.child)
            except BaseException as error:
                raise self._release_after_error(polling, talk, error) from None
            else:
                return self._finish_answer(polling, talk)

    async def _answer_async(self, request: Request) -> Answer:
        polling = self._take_process()
        while True:
            talk = self._talk(request, polling.child)
            try:
                for wait in self._dialogue(talk):
                    await ready(polling.child, wait)
            except RequestUnread:
                polling = self._restart_process(polling.child)
            except BaseException as error:
                raise self._release_after_error(polling, talk, error) from None
            else:
                return self._finish_answer(polling, talk)

    def _take_process(self) -> Polling:
        """A process that is free, or a new one; what happened since the last answer gets into its log."""
        if not self._idle:
            return self._start_process()
        polling = self._idle.pop()
        child = polling.child
        if late := child.catch_up(self._max_bytes):
            were = "was" if late == 1 else "were"
            lines = format_count(late, "line")
            child.remark(f"{lines} after the answer to request {child.served} {were} ignored")
        return self._restart_process(child) if child.fault else polling

    def _restart_process(self, child: Child) -> Polling:
        """A new process in the place of one that cannot be asked any more; its last words go into the log of the new one."""
        words = child.take_log()
        self._end(child)
        polling = self._start_process()
        polling.child.remark(f"{child.fault}, and was restarted\n{words}")
        return polling

    def _start_process(self) -> Polling:
        if self._sandbox is None:
            child = Child(self._command, self._folder, {**os.environ, **self._env})
        else:
            child = Child(self._command, self._folder, {}, self._sandbox, self._build_sandboxed_program())
        self._all[child] = None
        return Polling(child)

    def _build_sandboxed_program(self) -> Program:
        first = self._command[0]
        path = str(self._folder / first) if os.sep in first else str(shutil.which(first))
        folder = str(self._folder)
        return Program(
            [path, *self._command[1:]],
            _bind_at_same_path([folder, *self._readable, *_files_of_program(path)]),
            folder=folder,
            environment=self._env,
            hidden=[str(self._folder / name) for name in _HIDDEN if (self._folder / name).is_dir()],
            has_network=self._has_network,
            may_open_sockets=True,
            may_start_processes=True,
        )

    def _talk(self, request: Request, child: Child) -> DialogueState:
        child.served += 1
        line = request_line(request, str(child.served), self._params)
        return DialogueState(child, line + b"\n", self._max_bytes, self._is_once)

    def _dialogue(self, talk: DialogueState) -> Dialogue:
        return once(talk, self._is_plain) if self._is_once else in_lines(talk)

    def _finish_answer(self, polling: Polling, talk: DialogueState) -> Answer:
        log = talk.child.take_log()
        self._release(polling, talk)
        return replace(talk.answer, log=log) if log else talk.answer

    def _release_after_error(
        self, polling: Polling, talk: DialogueState, error: BaseException
    ) -> BaseException:
        """What is raised instead: with the last words of the program, if the fault is its own."""
        log = talk.child.take_log()
        self._release(polling, talk)
        if not isinstance(error, AgentError):
            return error
        # Redacted before it is cut: half of a secret would not be recognised.
        words = redact(log)[-_LOG_IN_ERROR:].strip() if log else ""
        with_log = type(error)(f"{error}{LOG_ENDS}{words}" if words else str(error))
        with_log.exit_code, with_log.log = error.exit_code, words
        return with_log

    def _release(self, polling: Polling, talk: DialogueState) -> None:
        """One that has not settled its request might still answer it: it is ended, and a new one started when needed."""
        if talk.is_settled and not self._is_once:
            self._idle.append(polling)
        else:
            self._end(polling.child)

    def _end(self, child: Child, timeout: float = 0.0) -> None:
        self._all.pop(child, None)
        child.end(timeout)


def _wait_until_at_rest() -> None:
    """Until all processes below this one have been at rest for a while, as those that wait for a request are; twenty seconds at
    most. Those below the programs count as well: many an interpreter is started by a script."""
    until, quiet = monotonic() + _MOST_SECONDS_TO_START, 0
    while quiet < _QUIET_LOOKS and monotonic() < until:
        sleep(_LOOK_SECONDS)
        quiet = 0 if any(is_at_work(pid) for pid in find_descendants(os.getpid())) else quiet + 1


def _check_sandbox(sandbox: str, network: str, readable: object) -> Sandbox | None:
    if network not in ("host", "none"):
        raise BadAgent(f"the network '{network}' must be 'host' or 'none'.")
    if isinstance(readable, str) or not isinstance(readable, Sequence):
        raise BadAgent(f"readable must be a list of paths, not {readable!r}.")
    if sandbox == UNCONFINED:
        if network == "none" or readable:
            raise BadAgent("network and readable need 'sandbox: bubblewrap'.")
        return None
    try:
        found = find_sandbox("it", sandbox)
    except PlanError as error:
        raise BadAgent(str(error)) from None
    return found if found.is_confining else None


def _bind_at_same_path(paths: Iterable[str]) -> dict[str, str]:
    """Map each path to where it is on this machine, for `Program.files`.

    A path within another one is left out, because the outer one already makes it visible.
    """
    files: dict[str, str] = {}
    for path in paths:
        if not any(f"{path}/".startswith(f"{known}/") for known in files):
            files[path] = os.path.realpath(path)
    return files


def _files_of_program(path: str) -> Iterator[str]:
    """The virtual environment that it belongs to, and the files that its path leads to link by link."""
    folder = Path(path).parent.parent
    if (folder / "pyvenv.cfg").is_file():
        yield str(folder)
    while Path(path).is_symlink():
        path = os.path.normpath(Path(path).parent / Path(path).readlink())
        yield path
    yield path


def _check_command(command: object, folder: Path) -> list[str]:
    if isinstance(command, str) or not isinstance(command, Sequence) or not command:
        raise BadAgent(f'the command {command!r} must be a list of words, such as ["./agent", "--serve"].')
    words = [str(word) for word in command]
    program = folder / words[0] if os.sep in words[0] else None
    if program is not None and not program.is_file():
        raise BadAgent(f"there is no program '{words[0]}' in '{folder}'.")
    if program is not None and not os.access(program, os.X_OK):
        raise BadAgent(f"the file '{words[0]}' in '{folder}' is not executable. Run: chmod +x {words[0]}")
    if program is None and shutil.which(words[0]) is None:
        raise BadAgent(f"there is no program '{words[0]}' in the PATH.")
    return words


class Polling:
    """Waits for one program at a time, without a thread or an event loop, which would add to the time that is measured.

    Like `ready`, it takes what a dialogue yields and returns when that may have come, at the latest after `LONGEST_WAIT`.
    """

    def __init__(self, child: Child) -> None:
        self.child = child
        self._poll = select.poll()
        self._poll.register(child.stdout, select.POLLIN)

    def wait(self, wait: Wait) -> None:
        if wait is Wait.READABLE:
            self._look_again() or self._poll.poll(_MILLISECONDS)
        elif wait is Wait.READABLE_OR_WRITABLE:
            self._poll.register(self.child.stdin, select.POLLOUT)
            self._poll.poll(_MILLISECONDS)
            self._poll.unregister(self.child.stdin)
        else:
            time.sleep(MOMENT)

    def _look_again(self) -> bool:
        """Look for a moment before going to sleep: waking up from that takes longer than a quick program's answer.

        The core is offered to others at every look, so that a program on the same one is not kept waiting.
        """
        for _ in range(_LOOKS):
            if self._poll.poll(0):
                return True
            os.sched_yield()
        return False


async def ready(child: Child, wait: Wait) -> None:
    """Wait on the running event loop, so that other requests continue meanwhile."""
    if wait is Wait.MOMENT:
        await asyncio.sleep(MOMENT)
        return
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()
    at_latest = loop.call_later(LONGEST_WAIT, _wake, woken)
    loop.add_reader(child.stdout, _wake, woken)
    if wait is Wait.READABLE_OR_WRITABLE:
        loop.add_writer(child.stdin, _wake, woken)
    try:
        await woken
    finally:
        at_latest.cancel()
        loop.remove_reader(child.stdout)
        if wait is Wait.READABLE_OR_WRITABLE:
            loop.remove_writer(child.stdin)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
