"""Experiments that do what experiments should not, and some that only tell what they saw."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay import Experiment, ExperimentContext, benchmark, register_experiment
from assay.plugin.instrument import Reading
from assay.plugin.lookup import register


def _sleep_in_c(context: ExperimentContext) -> None:
    """The lock of the interpreter stays taken, so that no signal handler of Python can run."""
    ctypes.PyDLL(None).sleep(600)


def _ignore_sigterm(context: ExperimentContext) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def _allocate(context: ExperimentContext) -> None:
    held = []
    while True:
        held.append(bytearray(10_000_000))
        time.sleep(0.001)


def _allocate_in_a_child(context: ExperimentContext) -> None:
    code = "import time; held = bytearray(150_000_000); time.sleep(600)"
    subprocess.run([sys.executable, "-c", code], check=True)


def _leave_a_child(context: ExperimentContext) -> None:
    subprocess.Popen(["sleep", "600"])


def _leave_a_detached_child(context: ExperimentContext) -> None:
    subprocess.Popen(["sleep", "600"], start_new_session=True)


def _leave_a_daemon(context: ExperimentContext) -> None:
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.waitpid(child, 0)


def _leave_a_daemon_by_a_library(context: ExperimentContext) -> None:
    """Python does not know of this fork, so the child keeps all that the worker had open."""
    library = ctypes.PyDLL(None)
    if library.fork() == 0:
        library.setsid()
        library.sleep(600)


def _kill_the_parent(context: ExperimentContext) -> None:
    os.kill(os.getppid(), 9)
    time.sleep(600)


def _replace_os_write(context: ExperimentContext) -> None:
    def fail(*_: object) -> int:
        raise ValueError("replaced")

    os.write = fail


def _end_a_child(context: ExperimentContext) -> dict[str, int]:
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    child.terminate()
    child.join()
    return {"exitcode": child.exitcode or 0}


def _fork_and_come_back_twice(context: ExperimentContext) -> dict[str, int]:
    return {"is_child": int(os.fork() == 0)}


def _crash_from_a_thread(context: ExperimentContext) -> None:
    threading.Timer(0.005, os._exit, (5,)).start()


def _segfault(context: ExperimentContext) -> None:
    """Without leaving a core, which some systems hand to a program that takes its time."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(4, 0)
    ctypes.string_at(0)


def _flood(context: ExperimentContext) -> None:
    """As much again once the first part was cut back, or would have been long ago."""
    line, deadline = "x" * 99_999 + "\n", time.monotonic() + 60
    for stream in (sys.stdout, sys.stderr):
        while os.fstat(1).st_size > 50_000_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(1000):
            stream.write(line)
        stream.flush()


def _print_garbage(context: ExperimentContext) -> None:
    os.write(1, bytes(range(256)))
    sys.stdout.buffer.write(b"\x00\xff\xfe and text\n")


def _close_all_and_hang(context: ExperimentContext) -> None:
    os.closerange(1, 65536)
    time.sleep(600)


def _write_into_every_descriptor(context: ExperimentContext) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.write(int(name), b"garbage\n")
            except OSError:
                continue


def _read_standard_input(context: ExperimentContext) -> dict[str, int]:
    return {"read": len(sys.stdin.read())}


class _Unreadable(dict[str, float]):
    def items(self) -> Any:
        raise RuntimeError("no items today")


def _raise(error: BaseException) -> Callable[[ExperimentContext], Any]:
    def raising(context: ExperimentContext) -> None:
        raise error

    return raising


DEEDS: dict[str, Callable[[ExperimentContext], Any]] = {
    "nothing": lambda context: None,
    "raise": _raise(ValueError("boom")),
    "raise a base exception": _raise(asyncio.CancelledError()),
    "sys.exit": lambda context: sys.exit(4),
    "hang": lambda context: time.sleep(600),
    "hang in c": _sleep_in_c,
    "ignore sigterm": _ignore_sigterm,
    "allocate": _allocate,
    "allocate in a child": _allocate_in_a_child,
    "os._exit": lambda context: os._exit(3),
    "segfault": _segfault,
    "kill itself": lambda context: os.kill(os.getpid(), signal.SIGKILL),
    "real-time signal": lambda context: os.kill(os.getpid(), 40),
    "crash from a thread": _crash_from_a_thread,
    "return nan": lambda context: {"x": float("nan")},
    "return inf": lambda context: {"x": float("inf")},
    "return a huge number": lambda context: {"x": 10**5000},
    "return text": lambda context: "hello",
    "return a list": lambda context: [1, 2],
    "return something unreadable": lambda context: _Unreadable(x=1.0),
    "return odd things": lambda context: {
        "n": 1,
        "big": [10**5000],
        "odd \udc80": 2.0,
        "text": "\udcff",
        "deep": _nested(5000),
    },
    "kill the parent": _kill_the_parent,
    "leave a child": _leave_a_child,
    "leave a detached child": _leave_a_detached_child,
    "leave a daemon": _leave_a_daemon,
    "leave a daemon by a library": _leave_a_daemon_by_a_library,
    "end a child": _end_a_child,
    "fork and come back twice": _fork_and_come_back_twice,
    "flood": _flood,
    "print garbage": _print_garbage,
    "print": lambda context: print(f"execution {context.iteration_index}"),
    "read standard input": _read_standard_input,
    "close 1 and 2": lambda context: os.closerange(1, 3),
    "close many descriptors": lambda context: os.closerange(3, 100),
    "close all descriptors": lambda context: os.closerange(1, 65536),
    "close all descriptors and hang": _close_all_and_hang,
    "replace os.write": _replace_os_write,
    "write into every descriptor": _write_into_every_descriptor,
    "take away standard output": lambda context: setattr(sys, "stdout", None),
    "use tokens": lambda context: {"tokens": 900},
    "use money": lambda context: {"usd": 0.25},
    "take 2.5 s": lambda context: time.sleep(2.5),
    "take a millisecond": lambda context: time.sleep(0.001),
}


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


@register_experiment("deeds")
class Deeds(Experiment):
    """Does a deed in setup, in its executions or in one of them, and in teardown; leaves a trace of its teardown."""

    def __init__(
        self,
        setup: str = "nothing",
        deed: str = "nothing",
        only: int | None = None,
        teardown: str = "nothing",
        folder: str = "",
        parameters: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(parameters)
        self.in_setup, self.deed, self.only, self.in_teardown = setup, deed, only, teardown
        self.folder = folder

    def setup(self, context: ExperimentContext) -> None:
        self._note("pid", str(os.getpid()))
        DEEDS[self.in_setup](context)

    def execute_once(self, context: ExperimentContext) -> Any:
        if self.only is None or context.iteration_index == self.only:
            return DEEDS[self.deed](context)
        return {"pid": os.getpid()}

    def teardown(self, context: ExperimentContext) -> None:
        self._note("teardown", str(os.getpid()))
        DEEDS[self.in_teardown](context)

    def _note(self, what: str, text: str) -> None:
        if self.folder:
            with (Path(self.folder) / what).open("a") as file:
                file.write(text + "\n")


@register_experiment("observer")
class Observer(Experiment):
    """Tells about the process it is in."""

    drawn_on_import = random.random()

    def __init__(self, arm: str = "a", folder: str = "", parameters: dict[str, Any] | None = None) -> None:
        super().__init__(parameters)
        self.folder = folder

    def setup(self, context: ExperimentContext) -> None:
        if self.folder:
            with (Path(self.folder) / "order").open("a") as file:
                file.write(f"{context.run_dir}\n")

    def execute_once(self, context: ExperimentContext) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "hash": hash("assay"),
            "random": random.random(),
            "seed": context.seed,
            "iteration_index": str(context.iteration_index),
            "run_dir": str(context.run_dir),
            "run_dir_exists": context.run_dir.is_dir(),
        }


@register_experiment("meeting")
class Meeting(Experiment):
    """Waits for the experiment of another process to be there as well."""

    def __init__(self, name: str = "", folder: str = "", parameters: dict[str, Any] | None = None) -> None:
        super().__init__(parameters)
        self.name, self.folder = name, Path(folder)

    def execute_once(self, context: ExperimentContext) -> dict[str, int]:
        (self.folder / self.name).touch()
        deadline = time.monotonic() + 60
        while len(os.listdir(self.folder)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        return {"present": len(os.listdir(self.folder))}


@register_experiment("waiter")
class Waiter(Experiment):
    """Tells of its process by a file, starts a child that detaches itself, and waits."""

    def __init__(self, folder: str = "", parameters: dict[str, Any] | None = None) -> None:
        super().__init__(parameters)
        self.folder = folder

    def execute_once(self, context: ExperimentContext) -> None:
        if context.iteration_index == 2 and not (Path(self.folder) / "go").exists():
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            grandchild = subprocess.Popen(["sleep", "600"])
            pids = f"{os.getpid()} {child.pid} {grandchild.pid}"
            (Path(self.folder) / "pids.part").write_text(pids)
            (Path(self.folder) / "pids.part").rename(Path(self.folder) / "pids")
            time.sleep(600)

    def teardown(self, context: ExperimentContext) -> None:
        (Path(self.folder) / "teardown").touch()


@register_experiment("stubborn")
class Stubborn(Waiter):
    """Does not listen to being asked to end."""

    def execute_once(self, context: ExperimentContext) -> None:
        for _ in range(60):
            try:
                super().execute_once(context)
                return
            except BaseException:
                (Path(self.folder) / "asked").touch()


@register_experiment("asynchronous")
class Asynchronous(Experiment):
    async def setup(self, context: ExperimentContext) -> None:
        self.loop = asyncio.get_running_loop()
        self.task = asyncio.create_task(self._count())
        self.count = 0

    async def _count(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)

    async def execute_once(self, context: ExperimentContext) -> dict[str, Any]:
        await asyncio.sleep(0.002)
        return {"is_same_loop": asyncio.get_running_loop() is self.loop, "count": self.count}

    async def teardown(self, context: ExperimentContext) -> None:
        (context.run_dir / "teardown").write_text(str(asyncio.get_running_loop() is self.loop))


@benchmark(iterations=3, warmup=0)
def tiny() -> None:
    pass


@benchmark(iterations=3, warmup=0)
def slow() -> None:
    time.sleep(0.05)


@benchmark(iterations=3, warmup=0, loops=7)
def seven() -> None:
    pass


_has_been_called: list[bool] = []


@benchmark(iterations=3, warmup=0)
def slow_at_first() -> None:
    if not _has_been_called:
        _has_been_called.append(True)
        time.sleep(0.05)


@benchmark(iterations=3, warmup=0)
async def tiny_async() -> None:
    pass


@benchmark(iterations=60, warmup=0, loops=1)
def steady() -> None:
    time.sleep(0.01)


_calls: list[bool] = []


@benchmark(iterations=60, warmup=0, loops=1)
def wild() -> None:
    _calls.append(True)
    time.sleep(0.0002 * 3 ** (len(_calls) % 5))


@benchmark(iterations=3, warmup=0, loops=1)
def three_milliseconds() -> None:
    time.sleep(0.003)


class SlowButLight:
    """An instrument that takes its time, outside of the timer."""

    slows = False
    metrics: dict[str, Any] = {}  # noqa: RUF012

    def start(self, context: ExperimentContext) -> str:
        time.sleep(0.02)
        return context.phase

    def stop(self, state: str) -> Reading:
        time.sleep(0.02)
        return Reading({f"watched_{state}": 1.0})


class Slowing(SlowButLight):
    slows = True


class BreaksAtStop(SlowButLight):
    def stop(self, state: str) -> Reading:
        raise RuntimeError("the meter fell off")


class BreaksAtBirth(SlowButLight):
    def __init__(self) -> None:
        raise RuntimeError("no such meter")


class ReadsNonsense(SlowButLight):
    def stop(self, state: str) -> Reading:
        return Reading({"volume": float("nan")})


for _name, _instrument in {
    "slow_but_light": SlowButLight,
    "slowing": Slowing,
    "breaks_at_stop": BreaksAtStop,
    "breaks_at_birth": BreaksAtBirth,
    "reads_nonsense": ReadsNonsense,
}.items():
    register("instruments", _name, _instrument)
