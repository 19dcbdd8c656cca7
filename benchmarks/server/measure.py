"""Puts `assay serve` on a database under load and reads what it costs: latencies, rate, CPU time and memory."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter, sleep
from urllib.parse import urlsplit

import psutil
from arms import ASSAY, CommandFailed, ended, tell

from server.pages import Route

SERVER_CORE, CLIENT_CORE = "0", "1"
_PAINT_MILLISECONDS = 300
"""For the browser to write down when it painted."""
_START_SECONDS, _FIRST_BOARD_SECONDS = 60, 1200
_COMPUTING = b"data-computing"
"""In pages whose figures are not all there yet."""
_GZIP = "Accept-Encoding: gzip"
"""As browsers and HTTP libraries send it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Latencies of one kind of request, in seconds, and the CPU time of the server for each of them."""

    first: float
    latencies: Sequence[float]
    cpu: float
    waited: float = 0.0
    """Seconds after the first request until its figures were worked out beside the server."""

    @property
    def p95(self) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Rate:
    """Of a closed loop: answers a second, and the CPU time of the server for each."""

    per_second: float
    cpu: float


class Server:
    """A server that runs on a core of its own."""

    def __init__(self, url: str, pid: int, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._process = psutil.Process(pid)

    @property
    def rss(self) -> int:
        return int(self._process.memory_info().rss)

    @property
    def cpu(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def ask(self, route: Route) -> tuple[float, bool]:
        """The latency of one request, which has a connection of its own, and whether all figures were in the answer."""
        place = urlsplit(self.url)
        assert place.hostname
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=_START_SECONDS)
        body = json.dumps(route.body).encode() if route.body else None
        headers = {"Content-Type": "application/json"} if body else {}
        began = perf_counter()
        try:
            connection.request("POST" if body else "GET", route.path, body, headers)
            answer = connection.getresponse()
            told = answer.read()
        finally:
            connection.close()
        took = perf_counter() - began
        is_computing = answer.status == 503 or _COMPUTING in told
        if answer.status != 200 and not is_computing:
            raise CommandFailed(f"{route.name}: {answer.status}")
        return took, not is_computing

    def wait_for_boards(self, path: str, seconds: float = _FIRST_BOARD_SECONDS) -> float:
        """Seconds until the leaderboard has every result: with a new database, all boards are computed."""
        began = monotonic()
        place = urlsplit(self.url)
        while monotonic() - began < seconds:
            connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_START_SECONDS)
            connection.request("GET", path)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            connection.close()
            if found.get("is_current"):
                return monotonic() - began
            sleep(2)
        raise CommandFailed("the leaderboard was not computed in time")

    def measure(self, route: Route, number: int) -> Measured:
        """The first request, which may find nothing kept, then so many more."""
        first, is_ready = self.ask(route)
        began = monotonic()
        while not is_ready:
            sleep(0.5)
            _, is_ready = self.ask(route)
        waited, before = monotonic() - began, self.cpu
        latencies = [self.ask(route)[0] for _ in range(number)]
        return Measured(first, latencies, (self.cpu - before) / number, waited)

    def press(self, path: str, seconds: int) -> Rate:
        """A closed loop of `assay load`, eight at a time."""
        before = self.cpu
        words = ("load", f"{self.url}{path}", "--concurrency", "8", "--duration", str(seconds))
        done = ended(
            (
                *_pin(CLIENT_CORE),
                ASSAY,
                *words,
                "--header",
                _GZIP,
                "--json",
                "-q",
                "--db",
                "sqlite:///load.db",
            ),
            self._folder,
        )
        told = json.loads(done.stdout)
        if told["errors"]:
            raise CommandFailed(f"{path}: {told['errors']}")
        return Rate(told["throughput_rps"], (self.cpu - before) / told["requests_completed"])


@contextmanager
def serving(db: str) -> Iterator[Server]:
    """`assay serve` on a database, until the block is left."""
    folder = Path(tempfile.mkdtemp(prefix="assay-bench-server-"))
    process = subprocess.Popen(
        [*_pin(SERVER_CORE), ASSAY, "serve", "--port", "0", "--json"],
        cwd=folder,
        env={**os.environ, "ASSAY_DB": db},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        told = process.stdout.readline()
        if not told:
            raise CommandFailed(f"assay serve ended with {process.wait()}")
        yield Server(json.loads(told)["url"], process.pid, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_START_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _pin(core: str) -> tuple[str, ...]:
    """Server and generator get a core each, where there are two."""
    if shutil.which("taskset") is None or (os.cpu_count() or 1) < 2:
        tell("  taskset is missing, or there is one core: server and generator share what there is")
        return ()
    return ("taskset", "-c", core)


def measure_page(url: str) -> tuple[float, int]:
    """Seconds to first paint, and bytes that were transferred without Vega, in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            page = browser.new_page()
            page.goto(url, wait_until="load")
            page.wait_for_timeout(_PAINT_MILLISECONDS)
            paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
            sizes = page.evaluate(
                "[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]"
                ".filter(one => !one.name.includes('vega')).map(one => one.transferSize)"
            )
            return float(paint or 0) / 1000, int(sum(sizes))
        finally:
            browser.close()
