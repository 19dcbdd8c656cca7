"""Several load generators: one timetable divided among them, one start by their own clocks, and one result."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.command import AssayInline
from tests.load.faulty import ANSWER, Guest, always, faulty
from tests.load.loading import started
from tests.load.results import result
from tests.wording import Wording

from assay.analysis.load.judgement import is_saturated, judge_load
from assay.builtin.executors.local import LocalSite
from assay.errors import AssayError
from assay.load import distributed
from assay.load.build import LoadOptions, PreparedLoad, build_prepared_load, spread_load
from assay.load.clock_offset import ClockTimes, measure_clock_offset
from assay.load.engine import order_of_worker, timetable_of
from assay.load.generator import LoadGenerator
from assay.load.request_lengths import read_order
from assay.load.schedule import timetable
from assay.load.summary import summarise_load
from assay.load.tally import Tally
from assay.load.worker_report import OK, Chunk, columns_of
from assay.model.load import Arrivals, Load, LoadResult
from assay.model.load_generator import GeneratorResult
from assay.plugin.executor import GeneratorSite, SiteLost
from assay.spec.settings import find_settings


class PlantedSite(LocalSite):
    """A site on this machine that answers some requests otherwise: `answers` by the name of the method."""

    def __init__(self, node: str, **answers: Any) -> None:
        super().__init__(node, LoadGenerator())
        self._answers = answers

    def request(self, method: str, *arguments: object) -> Future[Any]:
        if method not in self._answers:
            return super().request(method, *arguments)
        future: Future[Any] = Future()
        try:
            future.set_result(self._answers[method](*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    @property
    def pids(self) -> list[int]:
        assert isinstance(self._generator, LoadGenerator)
        return [process.pid for process in self._generator._workers.values()]


class Sites:
    """An executor whose sites a test has planted."""

    def __init__(self, *sites: GeneratorSite) -> None:
        self.sites = sites

    @contextlib.contextmanager
    def spread_generators(
        self, generators: int | None, factory: object, options: object
    ) -> Iterator[Sequence[GeneratorSite]]:
        yield self.sites


def prepare(url: str, **given: Any) -> PreparedLoad:
    given.setdefault("timeout", "30s")
    return build_prepared_load(LoadOptions(url, **given))


def measure(asked: PreparedLoad, *sites: GeneratorSite, **watching: Any) -> LoadResult:
    asked = replace(asked, sites=sites)
    return judge_load(asked.measure(**watching), asked.load)


loads = st.one_of(
    st.builds(
        Load,
        st.sampled_from([Arrivals.CONSTANT, Arrivals.POISSON]),
        stages=st.tuples(st.tuples(st.floats(0.1, 5), st.floats(1, 60), st.floats(1, 60))),
        count=st.none() | st.integers(1, 100),
        seed=st.integers(0, 99),
    ),
    st.builds(Load, st.just(Arrivals.CLOSED), st.integers(8, 40), count=st.none() | st.integers(1, 100)),
)


@given(loads, st.integers(1, 4), st.integers(1, 2))
def test_all_shares_together_are_the_timetable_of_one_generator(load: Load, sites: int, workers: int) -> None:
    def share(worker: int, of: int) -> list[tuple[int, float]]:
        order = {**timetable_of(load), "sessions": []}
        stream = io.BytesIO(b"".join(order_of_worker(order, None, worker, of)))
        return list(timetable(read_order(stream) or {}))

    divided = [share(worker, sites * workers) for worker in range(sites * workers)]
    assert sorted(turn for turns in divided for turn in turns) == share(0, 1)
    parts = [sum(len(turns) for turns in divided[site::sites]) for site in range(sites)]
    assert max(parts) - min(parts) <= workers


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_reports_of_several_generators_add_up_to_what_one_would_have_reported(seed: int, parts: int) -> None:
    """Requests of one load, reported by one worker, or dealt out at random to several that report at other times."""
    draw = random.Random(seed)
    kinds = ["ok", "refused", "cut_off"]

    def row(number: int, slice_: int) -> tuple[float, ...]:
        end = (slice_ + draw.random()) * 0.25
        sent = max(0.0, end - draw.expovariate(5))
        kind = draw.choices((OK, 1, 2), (8, 1, 1))[0]
        first = float("nan") if kind else sent + (end - sent) * draw.random()
        due = max(0.0, sent - draw.expovariate(100))
        return (number, due, sent, sent, first, end, draw.randint(1, 9), 7.0, kind, draw.expovariate(1000), 1)

    slices = [[row(place * 100 + n, place) for n in range(draw.randint(0, 30))] for place in range(16)]

    def add(tally: Tally, worker: int, rows: list[tuple[float, ...]], at: float, sent: int) -> None:
        chunk = Chunk(columns_of(rows), columns_of(())["end"])
        chunk.gaps.extend(row[5] / 100 for row in rows)
        chunk.facts = {
            "at": at, "in_flight": 0, "sent": sent, "cpu": at / 10, "kinds": kinds, "reconnects": 0,
            "coalesced": 0, "counted": False, "simulated": False, "usage": [sent, 7 * sent, sent],
            "outcomes": [], "answers": [], "is_last": at >= 4.0,
        }  # fmt: skip
        tally.add(worker, chunk)

    whole, divided = Tally(), Tally()
    sent = [0] * (parts + 1)
    for place, rows in enumerate(slices):
        at = (place + 1) * 0.25
        sent[parts] += len(rows)
        add(whole, 0, rows, at, sent[parts])
        shares = [draw.randrange(parts) for _ in rows]
        for worker in range(parts):
            own = [row for row, share in zip(rows, shares, strict=True) if share == worker]
            sent[worker] += len(own)
            add(divided, worker, own, at, sent[worker])
    whole.end(1, is_stopped=False)
    divided.end(parts, is_stopped=False)
    load = Load(Arrivals.CONSTANT, stages=((4.0, 60, 60),), seconds=4.0)
    one, several = (plain(asdict(summarise_load(tally, load))) for tally in (whole, divided))
    assert one.keys() == several.keys()
    for name, value in one.items():
        is_number = isinstance(value, int | float)
        expected = pytest.approx(value, rel=1e-9, abs=1e-12) if is_number else value
        assert several[name] == expected, name


def plain(value: Any, name: str = "") -> dict[str, Any]:
    """Every figure of a result by its path."""
    if isinstance(value, dict):
        return {k: v for key, one in value.items() for k, v in plain(one, f"{name}.{key}").items()}
    if isinstance(value, tuple | list):
        return {k: v for key, one in enumerate(value) for k, v in plain(one, f"{name}.{key}").items()}
    return {name: value}


@pytest.mark.parametrize("given", [{"concurrency": 5}, {"rate": 300.0, "arrivals": "poisson"}])
def test_several_generators_send_every_request_once_and_their_shares_add_up(given: dict[str, Any]) -> None:
    chunks: list[Chunk] = []
    with faulty(always(ANSWER)) as server:
        options = LoadOptions(server.url, requests=101, workers=2, timeout="30s", generators=2, **given)
        with spread_load(options, build_prepared_load(options), find_settings(Path.cwd())) as asked:
            found = judge_load(asked.measure(watch_chunk=chunks.append), asked.load)
        assert len(server.requests) == 101
    assert sorted(number for chunk in chunks for number in chunk.columns["number"]) == list(range(101))
    assert [(one.node, one.workers, one.lost) for one in found.generators] == [
        ("local-1", 2, None),
        ("local-2", 2, None),
    ]
    assert found.requests_sent == sum(one.requests_sent for one in found.generators) == 101
    assert found.requests_completed == sum(one.requests_completed for one in found.generators) == 101
    assert not found.is_cut
    assert found.aborted is None


def test_the_offset_of_a_clock_is_that_of_the_shortest_round_trip() -> None:
    """Eight round trips on a line with delays of its own each way; the fifth is the quickest, 1 ms there and 3 ms back."""
    now = 0.0
    delays = iter([(0.05, 0.01), (0.1, 0.2), (0.02, 0.04), (0.3, 0.01), (0.001, 0.003), *[(0.1, 0.1)] * 3])
    back = 0.0

    def read() -> ClockTimes:
        nonlocal now, back
        now, back = now + back, 0.0
        return ClockTimes(now, now + 1e9)

    def ask() -> ClockTimes:
        nonlocal now, back
        there, back = next(delays)
        now += there
        return ClockTimes(now + 7200.0, now + 1e9 - 2.5)

    found = measure_clock_offset(ask, read, round_trips=8)
    assert found.uncertainty == pytest.approx(0.002)
    assert found.monotonic == pytest.approx(7200.0 - 0.001)
    assert found.wall == pytest.approx(-2.501)


def test_a_generator_whose_clock_is_hours_ahead_begins_with_the_others() -> None:
    ahead = 7200.0
    generator = PlantedSite("b")
    far = PlantedSite(
        "b",
        read_clocks=lambda: (time.monotonic() + ahead, time.time() - 3.0),
        begin=lambda at: LocalSite.request(generator, "begin", at - ahead).result(),
    )
    far._generator = generator._generator
    chunks: list[Chunk] = []
    with faulty(always(ANSWER)) as server:
        asked = prepare(server.url, rate=100.0, requests=60)
        found = measure(asked, PlantedSite("a"), far, watch_chunk=chunks.append)
    begun = {
        worker: min(v for chunk in chunks if chunk.facts["worker"] == worker for v in chunk.columns["begun"])
        for worker in (0, 1)
    }
    # The first request of the second is due 10 ms after that of the first.
    assert begun[1] - begun[0] == pytest.approx(0.01, abs=0.1)
    here, there = found.generators
    assert there.clock_offset == pytest.approx(-3.0, abs=0.1)
    assert abs(here.clock_offset) <= 0.1
    assert 0 < there.clock_uncertainty < 0.1
    assert found.requests_completed == 60
    assert found.duration < 5


@pytest.mark.real_starts
def test_the_generator_that_was_too_slow_is_named_and_not_the_server() -> None:
    slow = PlantedSite("slow")
    is_over = threading.Event()

    def hold_back() -> None:
        while not is_over.wait(0.01):
            with contextlib.suppress(ProcessLookupError):
                for pid in slow.pids:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(0.06)
                    os.kill(pid, signal.SIGCONT)

    holding = threading.Thread(target=hold_back)
    holding.start()
    try:
        with faulty(always(ANSWER)) as server:
            found = measure(prepare(server.url, rate=200.0, duration="1.5s"), PlantedSite("quick"), slow)
    finally:
        is_over.set()
        holding.join()
    quick, late = found.generators
    assert late.is_limit
    assert (late.schedule_delay_p99 or 0.0) > max(0.03, quick.schedule_delay_p99 or 0.0)
    assert not found.is_valid
    assert any("'slow'" in doubt for doubt in found.doubts)


def test_a_slow_generator_is_found_although_most_answers_came_in_time() -> None:
    """One of two hundred nodes: its late answers are 0.5 % of all, which no P99 of the whole shows."""
    fine = [GeneratorResult(f"n{n}", 1, 50, 50, 0.0002, 0.1, 1e-5) for n in range(199)]
    slow = GeneratorResult("n199", 1, 50, 50, 0.2, 0.1, 0.3)
    plain = result(latency_growth=0.5, throughput=result().throughput, offered_rate=200.0)
    load = Load(Arrivals.CONSTANT, stages=((10, 200, 200),))
    found = judge_load(replace(plain, generators=(*fine, slow)), load)
    assert [one.node for one in found.generators if one.is_limit] == ["n199"]
    assert not found.is_valid
    assert is_saturated(plain, load)
    assert not found.is_saturated


def test_what_is_wrong_with_single_generators_is_reported(wording: Wording) -> None:
    fine = GeneratorResult("a", 1, 500, 500, 0.0002, 0.1, 1e-5)
    planted = {
        "unreachable": GeneratorResult("b", 1, 500, 0, 0.0, 0.1, None, errors={"refused": 500}),
        "late start": replace(fine, node="b", late_start=0.8),
        "sent late": replace(fine, node="b", schedule_delay_p99=0.4),
        "unread": replace(fine, node="b", lag_p99=0.3),
        "busy": replace(fine, node="b", cpu_share=0.97),
    }
    for name, generator in planted.items():
        load = Load(Arrivals.CONSTANT, stages=((10, 100, 100),))
        cpu = generator.cpu_share
        found = judge_load(result(generators=(fine, generator), cpu_share=cpu), load)
        assert not found.is_valid, name
        wording(*found.doubts)


@pytest.mark.real_starts
def test_a_load_that_loses_a_generator_ends_and_counts_what_came_before() -> None:
    doomed = PlantedSite("doomed")

    def watch(pulse: Any, tally: Tally) -> None:
        if tally.completed >= 60:
            for pid in doomed.pids:
                os.kill(pid, signal.SIGKILL)

    with faulty(always(ANSWER)) as server:
        asked = prepare(server.url, rate=200.0, duration="600s")
        found = measure(asked, PlantedSite("a"), doomed, watch=watch)
    assert found.duration < 60
    assert found.workers_lost == 1
    assert [bool(one.lost) for one in found.generators] == [False, True]
    assert found.aborted is not None
    assert "'doomed'" in found.aborted
    assert not found.is_valid
    # Only what was measured while both were there counts.
    assert found.throughput.value == pytest.approx(200, rel=0.1)


def raise_lost() -> None:
    raise SiteLost("the node has left the cluster")


def test_a_site_that_is_gone_or_silent_ends_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "_SITE_SILENCE", 0.3)
    monkeypatch.setattr(distributed, "_GRACE", 0.5)
    for is_gone in (True, False):
        reply: Future[Any] = Future()
        if is_gone:
            reply.set_exception(SiteLost("the node has left the cluster"))
        site = PlantedSite("b")
        calls: list[str] = []

        def request(
            method: str, *arguments: object, site: Any = site, calls: Any = calls, reply: Any = reply
        ) -> Any:
            calls.append(method)
            is_late = "begin" in calls and calls[calls.index("begin") :].count("poll") > 8
            return reply if method == "poll" and is_late else PlantedSite.request(site, method, *arguments)

        monkeypatch.setattr(site, "request", request)
        with faulty(always(ANSWER)) as server:
            found = measure(prepare(server.url, rate=50.0, duration="600s"), PlantedSite("a"), site)
        assert found.aborted is not None
        assert ("left the cluster" in found.aborted) is is_gone
        assert found.workers_lost == 1
        assert found.requests_completed > 0


@pytest.mark.parametrize(
    "answers",
    [
        {"find_unreachable": lambda addresses: "refused"},
        {"identify_loopback": lambda: "another machine"},
        {"start": raise_lost},
        {"poll": lambda: {"reports": [], "ended": [1], "is_ready": False}},
    ],
    ids=["unreachable", "loopback", "lost", "dead worker"],
)
def test_a_site_that_cannot_take_part_ends_the_load_before_the_first_request(
    answers: dict[str, Any], wording: Wording
) -> None:
    with faulty(always(ANSWER)) as server:
        asked = prepare(server.url, rate=50.0, duration="600s")
        sites = Sites(PlantedSite("a"), PlantedSite("b", **answers))
        with (
            pytest.raises(AssayError) as caught,
            distributed.spread_generators(asked, sites, "planted", None, {}) as spread,
        ):
            spread.measure()
        assert not server.requests
        wording(str(caught.value).replace(server.url, "URL"))


def test_a_load_that_is_stopped_while_generators_get_ready_sends_nothing() -> None:
    with faulty(always(ANSWER)) as server:
        found = measure(prepare(server.url, rate=50.0), PlantedSite("a"), is_stopped=lambda: True)
        assert not server.requests
    assert found.requests_sent == 0


def test_an_executor_without_sites_cannot_run_generators(wording: Wording) -> None:
    with faulty(always(ANSWER)) as server:
        asked = prepare(server.url)
    with (
        pytest.raises(AssayError) as caught,
        distributed.spread_generators(asked, object(), "planted", 2, {}),
    ):
        pass
    wording(str(caught.value))


def test_the_command_shows_and_stores_the_share_of_each_generator(
    assay_inline: AssayInline, tmp_path: Path
) -> None:
    with faulty(always(ANSWER)) as server:
        base = ("load", server.url, "--generators", "2", "--requests", "40")
        found = assay_inline(*base, "--rate", "100", "--json").json
        shown = assay_inline(*base, "--concurrency", "2").out
        refused = assay_inline(*base, "--concurrency", "1")
    generators = found["generators"]
    assert [one["node"] for one in generators] == ["local-1", "local-2"]
    assert [one["requests_sent"] for one in generators] == [20, 20]
    assert "local-2" in shown
    assert refused.code == 2
    assert "2 generators" in refused.err
    assay_inline("report", found["run"], "--format", "html", "--out", "r")
    text = next((tmp_path / "r").rglob("*.html")).read_text()
    assert "local-2" in text


@pytest.mark.real_starts
def test_a_lost_generator_fails_the_run_and_keeps_its_figures(tmp_path: Path) -> None:
    def talk(guest: Guest) -> None:
        guest.say(ANSWER)

    with faulty(talk) as server, started(
        tmp_path, server.url, "--generators", "2", "--rate", "100", "--duration", "600", "--json"
    ) as command:  # fmt: skip
        while len(server.requests) < 30:
            time.sleep(0.01)
        os.kill(workers_of(command.pid)[0], signal.SIGKILL)
        out, _ = command.communicate(timeout=30)
    assert command.returncode == 2
    document = json.loads(out)
    assert document["verdict"] == "aborted"
    assert [bool(one["lost"]) for one in document["generators"]].count(True) == 1
    shown = AssayInline(tmp_path)("show", document["run"], "--json").json
    assert shown["status"] == "failed"


def workers_of(pid: int) -> list[int]:
    """The processes that a command has started and that send requests."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


@pytest.mark.real_starts
def test_ctrl_c_reaches_all_generators(tmp_path: Path) -> None:
    with faulty(always(ANSWER)) as server, started(
        tmp_path, server.url, "--generators", "3", "--rate", "100", "--duration", "600", "--json"
    ) as command:  # fmt: skip
        while len(server.requests) < 30:
            time.sleep(0.01)
        children = workers_of(command.pid)
        command.send_signal(signal.SIGINT)
        out, _ = command.communicate(timeout=30)
    assert command.returncode == 130
    assert '"interrupted": true' in out
    assert len(children) >= 3
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("executor.cpus=2", "The executor 'local' has no settings"),
        ("cpus=2", "'cpus=2' is not executor.KEY=VALUE"),
    ],
)
def test_settings_of_no_executor_are_refused_before_the_load(
    assay_inline: AssayInline, word: str, named: str
) -> None:
    assert named in assay_inline("load", "http://127.0.0.1:1/v1", "--set", word).refusal


def test_an_experiment_divides_its_load_too(assay_inline: AssayInline) -> None:
    with faulty(always(ANSWER)) as server:
        arguments = ("--set", f"target={server.url}", "--set", "requests=20", "--set", "concurrency=2")
        run = assay_inline(
            "run", "load", *arguments, "--set", "generators=2", "--isolation", "inline", "--json"
        )
    assert run.json["status"] == "completed"
    assert len(server.requests) == 20


@pytest.mark.real_starts
def test_a_search_that_loses_a_generator_ends_and_says_how_to_go_on(tmp_path: Path) -> None:
    with faulty(always(ANSWER)) as server, started(
        tmp_path, server.url, "--generators", "2", "--find-capacity", "--duration", "20"
    ) as command:  # fmt: skip
        while len(server.requests) < 30:
            time.sleep(0.01)
        os.kill(workers_of(command.pid)[0], signal.SIGKILL)
        _, told = command.communicate(timeout=30)
    assert command.returncode == 2
    assert "assay run --resume" in told
