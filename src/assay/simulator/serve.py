"""Runs the simulated server: until a signal, for `assay sim-llm`, or as long as a `with` block lasts, for tests."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Self

from assay.errors import AssayError
from assay.http.loop import LoopThread, fast_loop
from assay.simulator.options import SimOptions
from assay.simulator.simulation import Simulation

_BACKLOG = 4096


def run_until_signal(options: SimOptions, on_ready: Callable[[str], None]) -> dict[str, object]:
    """Serve until SIGINT or SIGTERM; returns the final figures."""
    # Each client is an open file; shells often allow only 1,024.
    _, ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, ceiling))
    # A collection that walks over all imported code takes milliseconds, which the tokens would feel.
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=fast_loop) as runner:
        return runner.run(_serve_until_signal(options, on_ready))


async def _serve_until_signal(options: SimOptions, on_ready: Callable[[str], None]) -> dict[str, object]:
    # Handlers first: a signal that comes while the server starts must end it in order as well.
    signalled = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    simulation, url = await start(options)
    try:
        on_ready(url)
        await signalled.wait()
    finally:
        await stop(simulation)
    return simulation.stats()


async def start(options: SimOptions) -> tuple[Simulation, str]:
    """A simulation that listens, and its address."""
    simulation = Simulation(options, asyncio.get_running_loop())
    try:
        port = await simulation.server.listen(options.host, options.port, backlog=_BACKLOG)
    # OverflowError: a port above 65535 never reaches the system.
    except (OSError, OverflowError) as error:
        simulation.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise AssayError(
            f"sim-llm cannot listen on '{options.host}' port {options.port}: {reason}. "
            "Choose another --port; 0 takes a free one."
        ) from error
    host = f"[{options.host}]" if ":" in options.host else options.host
    return simulation, f"http://{host}:{port}"


async def stop(simulation: Simulation) -> None:
    simulation.close()
    # Let the connections notice that they are closed.
    await asyncio.sleep(0)


class SimServer:
    """A simulated LLM server for tests: `with SimServer(SimOptions(ttft=0.01)) as server: ask(server.url)`.

    It runs in a process of its own, where its timing is exact, or with `in_thread` in a thread of this one, which starts
    faster.
    """

    def __init__(self, options: SimOptions | None = None, *, in_thread: bool = False) -> None:
        self._running = _Thread() if in_thread else _Process()
        self.options = options or SimOptions()
        self.url = ""

    def __enter__(self) -> Self:
        self.url = self._running.start(self.options)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.stop()


class _Process:
    """Started as users start it, so that the command line is tested as well; its first line of JSON has the address."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str]

    def start(self, options: SimOptions) -> str:
        command = [sys.executable, "-m", "assay", "sim-llm", "--json", *arguments(options)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        # It blocks until the server listens. One that cannot start says so on standard error and ends.
        line = self._process.stdout.readline()
        if not line:
            _, complaint = self._process.communicate()
            raise AssayError(complaint.strip() or "sim-llm did not start.")
        return str(json.loads(line)["url"])

    def stop(self) -> None:
        # It prints its figures at the end, so its pipes are read until it has; one that hangs must not hang the tests.
        self._process.terminate()
        try:
            self._process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def arguments(options: SimOptions) -> list[str]:
    """These options as the command takes them.

    >>> arguments(SimOptions(ttft=0.02))[4:6]
    ['--ttft', '0.02s']
    """
    given = {name: value for name, value in asdict(options).items() if value is not None}
    for name in ("ttft", "itl", "load_time", "prefill"):
        given[name] = f"{given[name]}s"
    flags = ["--prompt-cache"] if given.pop("prompt_cache") else []
    valued = [text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return valued + flags


class _Thread:
    """An event loop beside the caller's code: it answers late whenever that holds the interpreter."""

    def start(self, options: SimOptions) -> str:
        self._thread = LoopThread("sim-llm")
        self._thread.start()
        # A server that cannot listen must not leave its thread behind.
        try:
            self._simulation, url = self._thread.run(start(options))
        except BaseException:
            self._thread.stop()
            raise
        return url

    def stop(self) -> None:
        self._thread.run(stop(self._simulation))
        self._thread.stop()
