"""The running load's own metrics, served for Prometheus on this machine.

They are counted from what workers tell, apart from the figures of the report, so that whoever reads them takes no time from those.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from assay.errors import PlanError
from assay.execute.load.background import lower_priority
from assay.execute.load.record import OK, Chunk
from assay.execute.load.tally import NOT_COUNTED, Values, times_of

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper edges in seconds."""
_HISTOGRAMS = {
    "ttft": "Time to first token, from when a request was due.",
    "latency": "Latency, from when a request was due.",
}


class LoadCounters:
    """Adds up every load of a run; read by another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._completed = 0
        self._failed: Counter[str] = Counter()
        self._tokens = 0.0
        self._sent: dict[tuple[object, object], int] = {}
        self._in_flight: dict[tuple[object, object], int] = {}
        self._seconds: dict[object, float] = {}
        self._buckets = {name: np.zeros(len(BUCKETS) + 1, dtype=np.int64) for name in _HISTOGRAMS}
        self._sums = dict.fromkeys(_HISTOGRAMS, 0.0)

    def add(self, chunk: Chunk) -> None:
        facts = chunk.facts
        load = facts.get("load", 0)
        of = (load, facts.get("worker", 0))
        columns = {name: np.frombuffer(values) for name, values in chunk.columns.items()}
        with self._lock:
            self._sent[of] = int(str(facts["sent"]))
            self._in_flight[of] = 0 if facts["is_last"] else int(str(facts["in_flight"]))
            self._seconds[load] = max(self._seconds.get(load, 0.0), float(str(facts["at"])))
            if len(chunk):
                self._add_requests(columns, facts["kinds"])

    def _add_requests(self, columns: dict[str, Values], kinds: object) -> None:
        assert isinstance(kinds, list)
        is_ok = columns["kind"] == OK
        self._completed += int(is_ok.sum())
        self._tokens += float(np.nansum(columns["output"][is_ok]))
        for number, count in zip(*np.unique(columns["kind"][~is_ok], return_counts=True), strict=True):
            if kinds[int(number)] not in NOT_COUNTED:
                self._failed[kinds[int(number)]] += int(count)
        times = times_of(columns)
        for name, buckets in self._buckets.items():
            values = times[name][is_ok]
            values = values[np.isfinite(values)]
            places = np.searchsorted(np.asarray(BUCKETS), values, side="left")
            buckets += np.bincount(places, minlength=len(buckets))
            self._sums[name] += float(values.sum())

    def text(self) -> str:
        """In Prometheus' text format."""
        with self._lock:
            lines = [
                *_metric("requests_sent_total", "counter", "Requests sent.", [("", sum(self._sent.values()))]),
                *_metric("requests_completed_total", "counter", "Requests answered.", [("", self._completed)]),
                *_metric("requests_failed_total", "counter", "Requests that failed, by kind.", self._kinds()),
                *_metric("output_tokens_total", "counter", "Tokens of the answers.", [("", self._tokens)]),
                *_metric(
                    "requests_in_flight", "gauge", "Requests under way.", [("", sum(self._in_flight.values()))]
                ),
                *_metric(
                    "elapsed_seconds", "gauge", "Time under load.", [("", sum(self._seconds.values()))]
                ),
            ]  # fmt: skip
            for name, told in _HISTOGRAMS.items():
                lines += self._histogram(name, told)
        return "\n".join(lines) + "\n"

    def _kinds(self) -> list[tuple[str, float]]:
        return [(f'{{kind="{kind}"}}', number) for kind, number in sorted(self._failed.items())]

    def _histogram(self, name: str, told: str) -> list[str]:
        counts = np.cumsum(self._buckets[name])
        edges = [*(f"{edge:g}" for edge in BUCKETS), "+Inf"]
        full = f"assay_load_{name}_seconds"
        return [
            f"# HELP {full} {told}",
            f"# TYPE {full} histogram",
            *(f'{full}_bucket{{le="{edge}"}} {count}' for edge, count in zip(edges, counts, strict=True)),
            f"{full}_sum {self._sums[name]!r}",
            f"{full}_count {counts[-1]}",
        ]


def _metric(name: str, kind: str, told: str, samples: Sequence[tuple[str, float]]) -> list[str]:
    full = f"assay_load_{name}"
    return [
        f"# HELP {full} {told}",
        f"# TYPE {full} {kind}",
        *(f"{full}{labels} {value}" for labels, value in samples),
    ]


@contextlib.contextmanager
def serve_metrics(counters: LoadCounters, port: int) -> Iterator[int]:
    """On this machine only, in a thread; yields the port that was taken."""

    class MetricsPage(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.partition("?")[0] in ("/metrics", "/")
            body = counters.text().encode() if is_known else b"There is only /metrics here.\n"
            self.send_response(200 if is_known else 404)
            self.send_header("content-type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the terminal belongs to the load."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), MetricsPage)
    except OSError as error:
        raise PlanError(f"--metrics-port: port {port} cannot be used: {error.strerror}.") from None
    server.daemon_threads = True

    def run_server() -> None:
        lower_priority()
        server.serve_forever(0.5)

    thread = threading.Thread(target=run_server, name="load-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(2.0)
