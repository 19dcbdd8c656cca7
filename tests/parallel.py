"""Runs test files in several processes, which are forks of the one that collected the tests: `pytest --processes 6`.

Collecting takes nine seconds. A process that is forked afterwards has every test, and what the tests import, from the start.
A file is the smallest unit, because its tests share what they prepare. A process asks for its next file when it begins the last
test of the one it has, since the fixtures that both files use can only stay if the next test is known.

Many tests wait: for a load of ten seconds, a timeout, a server that restarts. Run one after the other they leave processors
idle, and several tests that compute at the same time hold each other up. So each processor gets one test process that prefers
files that compute, and the other processes prefer files that wait. The longest files come first, so that all processes end at
about the same time. When a process finds nothing of its own kind it takes the longest file of the other. The costs are those
that `make test-costs` wrote to `tests/file_costs.txt`; a file that was never measured counts as quick.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import pytest
from tests import forking
from tests.costs import FAST, FileCost, file_of, read_file_costs

PROCESSES = "--processes"
_COMPUTING_SHARE = 0.45
"""A file whose tests use more CPU time than this share of their seconds computes."""

Places = list[int]
"""Which of the collected tests, by their numbers."""


class FileQueue:
    """The files that no process has begun yet."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self._files: dict[str, Places] = {}
        for place, item in enumerate(items):
            self._files.setdefault(file_of(item.nodeid), []).append(place)
        self._costs = read_file_costs()

    def __len__(self) -> int:
        return len(self._files)

    def take(self, *, prefers_computing: bool) -> Places:
        """The tests of the file that suits a process best; none if all files are taken."""

        def rank(file: str) -> tuple[bool, float]:
            cost = self._costs.get(file, FileCost())
            return (computes(cost) == prefers_computing), cost.seconds

        return self._files.pop(max(self._files, key=rank)) if self._files else []

    def put_back(self, file: str, places: Places) -> None:
        if places:
            self._files[file] = places


def computes(cost: FileCost) -> bool:
    return cost.cpu_seconds >= _COMPUTING_SHARE * cost.seconds


@dataclass
class _TestProcess:
    """A test process, as the process that started it knows it."""

    pid: int
    connection: Connection
    number: int
    places: Places = field(default_factory=list)
    """What it has been given and has not finished."""
    running: int | None = None


class ParallelLoop:
    """Takes the place of pytest's loop over all tests. Reports of the processes go to the plug-ins of this one."""

    def __init__(self, processes: int) -> None:
        self._number = processes
        self._running: dict[Connection, _TestProcess] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        has_errors = session.testsfailed and not session.config.option.continue_on_collection_errors
        if session.config.option.collectonly or has_errors:
            return None
        self._session = session
        self._queue = FileQueue(session.items)
        if not session.config.getoption(FAST):
            forking.start_servers()
        try:
            for number in range(min(self._number, len(self._queue))):
                self._start(number)
            while self._running and not self._is_stopped():
                for connection in wait(list(self._running)):
                    assert isinstance(connection, Connection)
                    self._listen(self._running[connection])
        finally:
            for connection in self._running:
                connection.close()  # upon which the processes end after the tests that they are in
            for process in self._running.values():
                os.waitpid(process.pid, 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _is_stopped(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    def _start(self, number: int) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for connection in [ours, *self._running]:
                connection.close()
            _run_tests(self._session, theirs, number)
        theirs.close()
        self._running[ours] = _TestProcess(pid, ours, number)

    def _listen(self, process: _TestProcess) -> None:
        kind, content = "ended", None
        with suppress(EOFError, ConnectionResetError):
            kind, content = process.connection.recv()
        if kind == "ended":
            self._replace(process)
        elif kind == "file":
            places = self._choose_file(process)
            process.places += places
            with suppress(OSError):
                process.connection.send(places)
        elif kind == "begins":
            process.running = content
        else:
            config = self._session.config
            report = config.hook.pytest_report_from_serializable(config=config, data=content)
            self._report(process, report)

    def _choose_file(self, process: _TestProcess) -> Places:
        computing = min(os.cpu_count() or 1, max(1, self._number - 1))
        return self._queue.take(prefers_computing=process.number < computing)

    def _report(self, process: _TestProcess, report: pytest.TestReport) -> None:
        hook = self._session.config.hook
        hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown" and process.running is not None:
            process.places.remove(process.running)
            process.running = None
            hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    def _replace(self, process: _TestProcess) -> None:
        """A process has ended. If it was in a test, that one failed; another process runs what is left of the file."""
        del self._running[process.connection]
        process.connection.close()
        _, status = os.waitpid(process.pid, 0)
        if process.running is None and not process.places:
            return
        code = os.waitstatus_to_exitcode(status)
        place = process.places[0] if process.running is None else process.running
        item = self._session.items[place]
        for when in ("call", "teardown"):
            problem = f"the test process ended with {code}" if when == "call" else None
            report = pytest.TestReport(
                item.nodeid, item.location, {}, "failed" if problem else "passed", problem, when
            )
            process.running = place
            self._report(process, report)
        for file, places in _by_file(self._session.items, process.places):
            self._queue.put_back(file, places)
        self._start(process.number)


def _by_file(items: Sequence[pytest.Item], places: Places) -> Iterator[tuple[str, Places]]:
    files = dict.fromkeys(file_of(items[place].nodeid) for place in places)
    for file in files:
        yield file, [place for place in places if file_of(items[place].nodeid) == file]


def _run_tests(session: pytest.Session, connection: Connection, number: int) -> NoReturn:
    """In the fork: run what the first process gives, and tell it of every report."""
    code = 1
    try:
        _become_test_process(session.config, number)
        session.config.pluginmanager.register(_Messenger(session.config, connection))
        _run_files(session, connection)
        code = 0
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # the first process has ended, or wants no more reports
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BaseException):
            session._setupstate.teardown_exact(None)  # servers that fixtures started, after an interrupt
        with suppress(BaseException):
            atexit._run_exitfuncs()
        os._exit(code)


def _become_test_process(config: pytest.Config, number: int) -> None:
    """What a process must not share with its siblings: the terminal, the file of captured output, temporary folders."""
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    capture: Any = plugins.getplugin("capturemanager")
    capture.suspend_global_capture()
    capture.stop_global_capturing()
    capture.start_global_capturing()
    folders: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / f"process{number}-{os.getpid()}"
    folders._basetemp.mkdir()


class _Messenger:
    """Sends the reports of a test process to the first one."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))


def _run_files(session: pytest.Session, connection: Connection) -> None:
    def ask() -> Places:
        connection.send(("file", None))
        return connection.recv()  # type: ignore[no-any-return]

    places = ask()
    while places:
        place = places.pop(0)
        places = places or ask()
        connection.send(("begins", place))
        following = session.items[places[0]] if places else None
        item = session.items[place]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
