"""Running the simulated server: until a signal, or for as long as a `with` block lasts."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import Self

from assay.errors import AssayError
from assay.execute.http.loop import fast_loop
from assay.testing.sim_llm.options import SimOptions
from assay.testing.sim_llm.simulation import Simulation

_BACKLOG = 4096


def run_until_signal(options: SimOptions, on_ready: Callable[[str], None]) -> dict[str, object]:
    """Serve until SIGINT or SIGTERM; gives the final figures."""
    _allow_many_files()
    # A collection that walks over all imported code takes milliseconds, which the tokens would feel.
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=fast_loop) as runner:
        return runner.run(_serve_until_signal(options, on_ready))


async def _serve_until_signal(options: SimOptions, on_ready: Callable[[str], None]) -> dict[str, object]:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await serve(options, on_ready, stop)


async def serve(
    options: SimOptions, on_ready: Callable[[str], None], stop: asyncio.Event
) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    simulation = Simulation(options, loop)
    try:
        server = await loop.create_server(simulation.guest, options.host, options.port, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        simulation.close()
        raise AssayError(
            f"sim-llm cannot listen on '{options.host}' port {options.port}: {_reason(error)}. "
            "Choose another --port; 0 takes a free one."
        ) from error
    try:
        on_ready(_url(options.host, server.sockets[0].getsockname()[1]))
        await stop.wait()
    finally:
        server.close()
        simulation.close()
    # Let the connections notice that they are closed.
    await asyncio.sleep(0)
    return simulation.stats()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _allow_many_files() -> None:
    """Each client is an open file; shells often allow only 1,024."""
    _, ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, ceiling))


class SimServer:
    """A simulated LLM server for tests: `with SimServer(SimOptions(ttft=0.01)) as server: ask(server.url)`.

    It runs in a process of its own, where its timing is right; or, sooner there, in a thread of this one.
    """

    def __init__(self, options: SimOptions | None = None, *, in_thread: bool = False) -> None:
        self._running = _Thread() if in_thread else _Process()
        self.options = options or SimOptions()
        self.url = ""

    def __enter__(self) -> Self:
        self.url = self._running.start(self.options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.stop()


class _Process:
    def __init__(self) -> None:
        self._process: subprocess.Popen[str]

    def start(self, options: SimOptions) -> str:
        command = [sys.executable, "-m", "assay", "sim-llm", "--json", *arguments(options)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, complaint = self._process.communicate()
            raise AssayError(complaint.strip() or "sim-llm did not start.")
        return str(json.loads(line)["url"])

    def stop(self) -> None:
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
    def __init__(self) -> None:
        self._ready = threading.Event()
        self._url = ""
        self._error: Exception | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._thread: threading.Thread

    def start(self, options: SimOptions) -> str:
        self._thread = threading.Thread(target=self._run, args=[options], name="sim-llm", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._url

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self, options: SimOptions) -> None:
        try:
            asyncio.run(self._serve(options))
        except AssayError as error:
            self._error = error
            self._ready.set()

    async def _serve(self, options: SimOptions) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await serve(options, self._announce, self._stop)

    def _announce(self, url: str) -> None:
        self._url = url
        self._ready.set()
