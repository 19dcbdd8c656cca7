"""Reads a server's own metrics once a second while it is under load, without getting in the way of the load.

With `--server-metrics URL`, queue length, cache usage and the like (`KNOWN`) stand beside the figures of the load.
A reading that fails is counted, and the load continues.
"""

from __future__ import annotations

import contextlib
import http.client
import math
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from assay.load.priorities import lower_priority
from assay.model.server_metrics import MetricSeries, ServerMetrics

EVERY_SECONDS = 1.0
_PATIENCE = 2.0
_LAST_SECONDS = 1.0
"""That the end of a load waits for the last reading; a server that answers at all does so within milliseconds."""
_MOST_BYTES = 8 * 2**20
MOST_POINTS = 600
"""Maximum samples of each metric; of a long load every second, fourth, … sample is kept."""
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^\n]*\})?[ \t]+(\S+)")


@dataclass(frozen=True, slots=True)
class KnownMetric:
    """A metric shown under a common title, such as "waiting at the server", whatever each server calls it."""

    name: str
    software: str
    """Empty for what any server may expose."""
    title: str
    unit: str
    is_counter: bool = False
    is_highest: bool = False
    """Whether the highest of several samples counts (of engines or models) instead of their sum."""


def _known() -> Iterator[KnownMetric]:
    for software, running, waiting, cache, prompt, output in (
        # docs.vllm.ai, "Production Metrics"; up to 0.9 the cache is gpu_cache_usage_perc.
        ("vLLM", "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
         "vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
        # llama.cpp, tools/server/README.md, "GET /metrics".
        ("llama.cpp", "llamacpp:requests_processing", "llamacpp:requests_deferred", "llamacpp:kv_cache_usage_ratio",
         "llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total"),
        # docs.sglang.io, "Production Metrics".
        ("SGLang", "sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage",
         "sglang:prompt_tokens_total", "sglang:generation_tokens_total"),
    ):  # fmt: skip
        yield KnownMetric(running, software, "running at the server", "requests")
        yield KnownMetric(waiting, software, "waiting at the server", "requests")
        yield KnownMetric(cache, software, "KV cache", "share", is_highest=True)
        yield KnownMetric(prompt, software, "prompt tokens", "tokens", is_counter=True)
        yield KnownMetric(output, software, "output tokens", "tokens", is_counter=True)
    yield KnownMetric("vllm:gpu_cache_usage_perc", "vLLM", "KV cache", "share", is_highest=True)
    # huggingface.co/docs/text-generation-inference, "Metrics".
    yield KnownMetric("tgi_batch_current_size", "TGI", "running at the server", "requests")
    yield KnownMetric("tgi_queue_size", "TGI", "waiting at the server", "requests")
    # What Prometheus' own client libraries expose of the process.
    yield KnownMetric("process_resident_memory_bytes", "", "resident memory", "bytes")
    yield KnownMetric("process_cpu_seconds_total", "", "processor time", "cores", is_counter=True)


KNOWN = {metric.name: metric for metric in _known()}
_PREFIXES = tuple({re.split("[:_]", name)[0] for name in KNOWN})


def read_samples(text: str) -> dict[str, float]:
    """The known metrics in a server's answer; of several samples their sum or, of shares, the highest.

    >>> read_samples('vllm:num_requests_running{engine="0"} 3.0\\nvllm:num_requests_running{engine="1"} 2.0')
    {'vllm:num_requests_running': 5.0}
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        # A server may expose thousands of lines: most are passed over by their beginning, without a regular expression.
        if not line.startswith(_PREFIXES) or (sample := _SAMPLE.match(line)) is None:
            continue
        name = sample[1]
        metric = KNOWN.get(name)
        try:
            value = float(sample[2])
        except ValueError:
            continue
        if metric is None or not math.isfinite(value):
            continue
        if name in found:
            value = max(found[name], value) if metric.is_highest else found[name] + value
        found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class MetricsSource:
    """The address of the metrics. Headers may hold secrets, so a source is never stored."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None


class MetricsReader:
    """Reads the server's own metrics in a thread while the load runs, from `with` on.

    The thread has the lowest priority: a scrape must not delay requests of the load on the same machine.
    A failed reading is counted and the next one is tried. There is one last reading after the load, for
    what it left behind. `summarize` puts the samples on the time axis of the load.
    """

    def __init__(self, source: MetricsSource) -> None:
        self._source = source
        self._samples: list[tuple[float, dict[str, float]]] = []
        self._step = 1
        """One of this many samples is kept."""
        self._scrapes = self._failed = 0
        self._is_abandoned = False
        """Whether the load has ended without the last reading."""
        self._error: str | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read_on, name="server-metrics", daemon=True)

    def __enter__(self) -> MetricsReader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        # The thread is a daemon: one that hangs in a read is left alone, and what it may still find is ignored.
        self._thread.join(_LAST_SECONDS)
        if self._thread.is_alive():
            self._failed += 1
            self._error = self._error or "timed out"
            self._is_abandoned = True

    def _read_on(self) -> None:
        """Read the metrics every second, and once more when the load has ended.

        The times are those of a schedule, so that a slow reading does not delay all that follow it. A
        thread that was abandoned reads no more.
        """
        lower_priority()
        due = time.monotonic()
        while True:
            self._read(time.monotonic())
            due = max(due + EVERY_SECONDS, time.monotonic())
            if self._is_over.wait(due - time.monotonic()):
                if self._is_abandoned:
                    return
                # What the load left behind, such as the last tokens.
                self._read(time.monotonic())
                return

    def _read(self, now: float) -> None:
        """One reading; of a long load every second one kept is dropped when there are too many, and fewer are kept from then on."""
        self._scrapes += 1
        try:
            sample = read_samples(_fetch(self._source))
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not self._is_abandoned:
                self._failed += 1
                self._error = str(error) or type(error).__name__
            return
        if self._is_abandoned:
            return
        if (self._scrapes - 1) % self._step == 0 or self._is_over.is_set():
            self._samples.append((now, sample))
        if len(self._samples) > MOST_POINTS:
            self._samples = self._samples[::2]
            self._step *= 2

    def summarize(self, began: float) -> ServerMetrics:
        """All samples as series over the seconds since the load began; `began` is on the monotonic clock."""
        samples = list(self._samples)
        names = dict.fromkeys(name for _, sample in samples for name in sample)
        series = tuple(
            MetricSeries(
                name,
                KNOWN[name].title,
                KNOWN[name].unit,
                KNOWN[name].is_counter,
                tuple((round(at - began, 3), sample[name]) for at, sample in samples if name in sample),
            )
            for name in KNOWN
            if name in names
        )
        software = next((KNOWN[name].software for name in names if KNOWN[name].software), "")
        return ServerMetrics(self._source.url, software, self._scrapes, self._failed, self._error, series)


def _fetch(source: MetricsSource) -> str:
    """Redirects are not followed: they may lead to a host that is not allowed."""
    parts = urlsplit(source.url)
    host = parts.hostname or ""
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, parts.port, timeout=_PATIENCE, context=source.tls)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=_PATIENCE)
    path = (parts.path or "/metrics") + (f"?{parts.query}" if parts.query else "")
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"accept": "text/plain", **source.headers})
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"HTTP {answer.status}")
        return _body(answer).decode("utf-8", errors="replace")


def _body(answer: http.client.HTTPResponse) -> bytes:
    """Within the time that the whole of it may take: the limit of a connection is one for each piece."""
    deadline, body = time.monotonic() + _PATIENCE, bytearray()
    while piece := answer.read1(2**16):
        body += piece
        if len(body) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES // 2**20} MiB")
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
    return bytes(body)
