"""The running load's own metrics, served for Prometheus on this machine.

`assay load --metrics-port` serves them at /metrics. They are counted from what workers report, apart from the figures of
the report and in a thread of low priority, so that a scrape takes no time from the load.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from assay.errors import PlanError
from assay.http.loop import LoopThread
from assay.http.server import HttpRequest, HttpServer, ServerConnection
from assay.load.priorities import lower_priority
from assay.load.tally import NOT_COUNTED, Values, times_of
from assay.load.worker_report import OK, Chunk

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper edges in seconds."""
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_HISTOGRAMS = {
    "ttft": "Time to first token, from when a request was due.",
    "latency": "Latency, from when a request was due.",
}


class LoadCounters:
    """Adds up every load of a run. The main thread calls `add`, the server's thread `text`; a lock keeps them apart.

    Counters never go down, as Prometheus requires: what each worker sent is kept per load and worker and summed when read.
    """

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
        """Add one worker's chunk; arrays are made before the lock is taken, so that a scrape hardly waits."""
        facts = chunk.facts
        load = facts.get("load", 0)
        of = (load, facts.get("worker", 0))
        columns = {name: np.frombuffer(values) for name, values in chunk.columns.items()}
        with self._lock:
            self._sent[of] = int(str(facts["sent"]))
            # A worker's last chunk may still count what it gave up; nothing of it is under way any more.
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
            # "left", because a bucket of Prometheus includes its upper edge (le: less or equal).
            places = np.searchsorted(np.asarray(BUCKETS), values, side="left")
            buckets += np.bincount(places, minlength=len(buckets))
            self._sums[name] += float(values.sum())

    def text(self) -> str:
        """All metrics in Prometheus' text format, version 0.0.4."""
        with self._lock:
            failures = [(f'{{kind="{kind}"}}', number) for kind, number in sorted(self._failed.items())]
            lines = [
                *_metric("requests_sent_total", "counter", "Requests sent.", [("", sum(self._sent.values()))]),
                *_metric("requests_completed_total", "counter", "Requests answered.", [("", self._completed)]),
                *_metric("requests_failed_total", "counter", "Requests that failed, by kind.", failures),
                *_metric("output_tokens_total", "counter", "Tokens of the answers.", [("", self._tokens)]),
                *_metric(
                    "requests_in_flight", "gauge", "Requests under way.", [("", sum(self._in_flight.values()))]
                ),
                *_metric(
                    "elapsed_seconds", "gauge", "Time under load.", [("", sum(self._seconds.values()))]
                ),
            ]  # fmt: skip
            for name, help_text in _HISTOGRAMS.items():
                lines += self._histogram(name, help_text)
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str, help_text: str) -> list[str]:
        """Buckets are cumulative in Prometheus: each counts all values up to its edge."""
        counts = np.cumsum(self._buckets[name])
        edges = [*(f"{edge:g}" for edge in BUCKETS), "+Inf"]
        full = f"assay_load_{name}_seconds"
        return [
            f"# HELP {full} {help_text}",
            f"# TYPE {full} histogram",
            *(f'{full}_bucket{{le="{edge}"}} {count}' for edge, count in zip(edges, counts, strict=True)),
            f"{full}_sum {self._sums[name]!r}",
            f"{full}_count {counts[-1]}",
        ]


def _metric(name: str, kind: str, help_text: str, samples: Sequence[tuple[str, float]]) -> list[str]:
    full = f"assay_load_{name}"
    return [
        f"# HELP {full} {help_text}",
        f"# TYPE {full} {kind}",
        *(f"{full}{labels} {value}" for labels, value in samples),
    ]


@contextlib.contextmanager
def serve_metrics(counters: LoadCounters, port: int) -> Iterator[int]:
    """Serve the counters on this machine only, in a thread, while the context lasts; yields the port (0 lets the system choose)."""

    def show(client: ServerConnection, request: HttpRequest) -> None:
        is_known = request.path in ("/metrics", "/")
        body = counters.text().encode() if is_known else b"There is only /metrics here.\n"
        client.send(client.whole(200 if is_known else 404, body, content_type=_TEXT))
        client.finish()

    async def close() -> None:
        # In the thread of the loop: transports may not be closed from another.
        server.close()

    server = HttpServer(show)
    with LoopThread("load-metrics", prepare=lower_priority) as thread:
        try:
            taken = thread.run(server.listen(port=port))
        except OSError as error:
            raise PlanError(f"--metrics-port: port {port} cannot be used: {error.strerror}.") from None
        try:
            yield taken
        finally:
            thread.run(close())
