"""The engine with its worker processes: timetables, workers, what is told while it runs, and what happens when one ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.load.faulty import ANSWER, Guest, always, faulty, head, openai, until
from tests.load.loading import load, told_by_the_system
from tests.wording import Wording

from assay.analysis.load.judgement import judge_load
from assay.load import priorities as background
from assay.load.build import LoadOptions, PreparedLoad, build_prepared_load
from assay.load.priorities import BackgroundPriority, take_usual_priority
from assay.load.summary import find_steady_start, summarise_load
from assay.load.tally import MOST_SLICES, Tally
from assay.load.worker_report import Chunk, Unpacker, columns_of, pack_chunk
from assay.model.load import Arrivals, Load, LoadResult


def slow(seconds: float) -> object:
    def talk(guest: Guest) -> None:
        time.sleep(seconds)
        guest.say(ANSWER)

    return talk


class OneAtATime:
    """A server with one slot: each answer takes so long, others wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.slot = seconds, threading.Lock()
        self.now = self.most = 0

    def __call__(self, guest: Guest) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        with self.slot:
            time.sleep(self.seconds)
        self.now -= 1
        guest.say(ANSWER)


def test_times_from_when_requests_were_due_show_what_times_from_the_send_hide() -> None:
    """100/s are offered, at most 50/s borne, with four in flight: those due later wait for those before them."""
    with faulty(OneAtATime(0.02)) as server:
        found = load(server.url, rate=100.0, requests=200, concurrency=4)
    due, sent = found.times["latency"], found.times["latency_from_send"]
    assert due.max > 4 * sent.p50
    assert due.p95 > 4 * sent.p50
    assert found.times["schedule_delay"].max == pytest.approx(due.max - sent.p50, rel=0.5)
    assert found.requests_completed == 200
    assert found.concurrency <= 4.01
    halves = [moment.latency_p50 for moment in found.moments if moment.latency_p50]
    assert halves[-1] > halves[0]


def test_no_more_than_so_many_are_in_flight_however_many_workers_send() -> None:
    server_side = OneAtATime(0.01)
    with faulty(server_side) as server:
        found = load(server.url, rate=500.0, requests=60, concurrency=3, workers=2)
    assert found.requests_completed == 60
    assert server_side.most <= 3


def test_a_closed_loop_keeps_so_many_in_flight() -> None:
    server_side = OneAtATime(0.005)
    with faulty(server_side) as server:
        found = load(server.url, requests=100, concurrency=5)
    assert server_side.most == 5
    assert found.requests_completed == 100


@pytest.mark.parametrize(
    "given", [{"concurrency": 4}, {"rate": 400.0}, {"rate": 400.0, "arrivals": "poisson"}]
)
def test_several_workers_send_every_request_once_and_lose_none(given: dict[str, Any]) -> None:
    chunks: list[Chunk] = []
    with faulty(always(ANSWER)) as server:
        asked = build_prepared_load(LoadOptions(server.url, requests=101, workers=3, timeout="30s", **given))
        found = judge_load(asked.measure(watch_chunk=chunks.append), asked.load)
        assert len(server.requests) == 101
    assert found.requests_sent == found.requests_completed == 101
    assert sum(moment.completed for moment in found.moments) == 101
    # Not counted by the distributions of the result, which leave out the start on a machine that is busy then.
    assert sorted(number for chunk in chunks for number in chunk.columns["number"]) == list(range(101))
    assert sum(len(chunk.gaps) + chunk.zero_gaps for chunk in chunks) == 2 * 101


def test_more_workers_than_requests_at_a_time_are_not_started() -> None:
    with faulty(always(ANSWER)) as server:
        assert load(server.url, concurrency=1, workers=4, requests=5).requests_completed == 5
        assert load(server.url, concurrency=4, workers=4, requests=1).requests_completed == 1


def test_stages_send_as_many_as_the_area_under_their_rates() -> None:
    with faulty(always(ANSWER)) as server:
        found = load(server.url, stages="0.5s@40,0.5s@40..120,500ms@0,0.5s@20")
    assert found.requests_sent == found.requests_completed == 70
    assert found.offered_rate == pytest.approx(35)


def test_a_trace_asks_what_it_says_when_it_says(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("timestamp,input_tokens,output_tokens\n5,3,7\n5.1,4,\n5.3,,9\n")
    with faulty(always(ANSWER)) as server:
        asked = build_prepared_load(
            LoadOptions(server.url, arrivals=f"trace:{file}", prompt="hi", max_tokens=2)
        )
        rows = rows_of(asked)
        bodies = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]
    assert rows["due"] == pytest.approx([0.0, 0.1, 0.3])
    asked_for = sorted((body["max_tokens"], len(body["messages"][0]["content"].split())) for body in bodies)
    # The row that tells no length sends the given prompt of one word after an opening of four.
    assert asked_for == [(2, 4), (7, 3), (9, 5)]


def rows_of(asked: PreparedLoad) -> dict[str, list[float]]:
    chunks: list[Chunk] = []
    asked.measure(watch_chunk=chunks.append)
    rows = sorted(
        zip(*([v for c in chunks for v in c.columns[name]] for name in columns_of(())), strict=True)
    )
    return dict(zip(columns_of(()), map(list, zip(*rows, strict=True)), strict=True))


def test_each_request_says_when_it_was_due_sent_and_answered_in_this_order() -> None:
    with faulty(always(ANSWER)) as server:
        rows = rows_of(build_prepared_load(LoadOptions(server.url, rate=200.0, requests=50)))
    assert rows["number"] == list(range(50))
    assert rows["due"] == pytest.approx([number / 200 for number in range(50)])
    for due, begun, sent, first, end in zip(
        *(rows[name] for name in ("due", "begun", "sent", "first", "end")), strict=True
    ):
        assert due <= begun <= sent <= first + 1e-3
        assert first <= end
    assert set(rows["output"]) == {3.0}
    assert set(rows["input"]) == {7.0}


def test_prompts_of_a_dataset_take_turns(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("one\ntwo\nthree\n")
    with faulty(always(ANSWER)) as server:
        load(server.url, dataset=str(tmp_path / "p.txt"), requests=7)
        asked = [
            json.loads(one.partition(b"\r\n\r\n")[2])["messages"][0]["content"] for one in server.requests
        ]
    assert [text.split()[-1] for text in asked] == ["one", "two", "three"] * 2 + ["one"]


def test_think_time_lies_between_an_answer_and_the_next_request() -> None:
    with faulty(always(ANSWER)) as server:
        rows = rows_of(build_prepared_load(LoadOptions(server.url, requests=4, think="50ms")))
    assert all(sent - end >= 0.049 for end, sent in zip(rows["end"], rows["sent"][1:], strict=False))


def test_a_rate_beyond_any_generator_is_reported_and_the_load_ends() -> None:
    """Nothing is there to answer, so that every request fails at once; those that are due never run out."""
    with faulty(always(ANSWER)) as server:
        url = server.url
    found = load(url, rate=1_000_000.0, duration="300ms", timeout="500ms")
    assert not found.is_valid
    assert set(found.errors) <= {"refused", "no_ports", "no_descriptors"}
    assert found.requests_sent == sum(found.errors.values())
    assert not found.is_saturated


def test_requests_that_fail_after_the_end_of_the_sending_count_among_the_errors() -> None:
    """One in five is never answered, and is given up when nothing is sent any more."""

    def talk(guest: Guest) -> bool:
        if guest.number % 5:
            guest.say(ANSWER)
            return True
        time.sleep(2.5)
        return False

    with faulty(talk) as server:
        found = load(server.url, rate=50.0, duration="1s", timeout="1s", slo="error_rate<1%")
    # On a busy machine another answer may be late as well.
    assert set(found.errors) == {"timeout"}
    assert 10 <= found.errors["timeout"] <= 13
    assert found.error_rate.value == pytest.approx(0.2, abs=0.08)
    assert [held.is_met for held in found.held] == [False]


def test_what_is_sent_after_the_end_was_not_sent_as_it_was_asked_for() -> None:
    with faulty(OneAtATime(0.02)) as server:
        found = load(server.url, rate=100.0, duration="1s", concurrency=4, timeout="30s")
    assert found.requests_completed == 100
    assert found.achieved_rate < 80
    assert not found.is_valid


def test_so_many_requests_of_which_each_takes_a_while_are_no_saturation() -> None:
    with faulty(slow(0.5)) as server:  # type: ignore[arg-type]
        found = load(server.url, rate=20.0, requests=20)
    assert found.throughput.value == pytest.approx(20.0, rel=0.3)
    assert not found.is_saturated
    assert found.times["latency"].n == 20


def test_a_backlog_is_given_up_after_the_timeout() -> None:
    with faulty(OneAtATime(0.05)) as server:
        found = load(server.url, rate=1000.0, duration="500ms", concurrency=1, timeout="2s")
    assert 0 < found.requests_sent < 500
    assert not found.is_valid
    assert any(" of 1,000 requests/s " in doubt for doubt in found.doubts)


def test_a_given_warmup_does_not_count() -> None:
    with faulty(always(ANSWER)) as server:
        found = load(server.url, rate=100.0, duration="1s", warmup="0.5s")
    assert found.measured_from == 0.5
    assert found.times["latency"].n == 50
    assert found.requests_completed == 100


def test_a_rise_is_found_and_left_out() -> None:
    """For two seconds from the first request on the server answers nothing."""
    is_awake = threading.Event()

    def talk(guest: Guest) -> None:
        if guest.number == 1:
            threading.Timer(2.0, is_awake.set).start()
        is_awake.wait()
        time.sleep(0.005)
        guest.say(ANSWER)

    with faulty(talk) as server:
        found = load(server.url, concurrency=4, duration="8s")
    assert 0.5 <= found.measured_from <= 5
    assert found.times["latency"].p50 < 1


@pytest.mark.parametrize(
    ("counts", "begin", "is_steady"),
    [
        ([50.0] * 40, 0, True),
        ([0, 0, 10, 30, *[50] * 36], 4, True),
        ([50, 49, 51, 50] * 6 + [20, 21, 19, 20] * 4, None, False),
        ([], 0, True),
        ([5.0], 0, True),
        ([0.0] * 20, 0, True),
        ([1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0], 0, True),
    ],
)
def test_where_a_load_settles(counts: list[float], begin: int | None, is_steady: bool) -> None:
    found = find_steady_start(counts)
    assert found[1] is is_steady
    assert begin is None or found[0] == begin


def test_noise_alone_is_steady() -> None:
    draw = np.random.default_rng(1)
    steady = [find_steady_start(draw.poisson(25, 40).astype(float).tolist()) for _ in range(60)]
    assert sum(is_steady for _, is_steady in steady) >= 54
    assert sum(begin for begin, _ in steady) <= 60


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux has a policy for who can wait.")
def test_whoever_adds_up_gives_way_to_the_workers_while_there_is_load() -> None:
    seen: set[int] = set()
    with faulty(always(ANSWER)) as server:
        asked = build_prepared_load(LoadOptions(server.url, requests=20))
        asked.measure(lambda pulse, tally: seen.add(os.sched_getscheduler(0)))
    assert seen <= {os.SCHED_IDLE, os.SCHED_BATCH}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux has a policy for who can wait.")
def test_whoever_adds_up_runs_only_when_idle_unless_that_leaves_it_no_time() -> None:
    policies = []
    with BackgroundPriority() as priority:
        for change in ({}, {"delay": 0.01}, {"delay": 0.5}, *({} for _ in range(9)), {}, {"backlog": 0.5}):
            priority.adapt(**change)
            policies.append(os.sched_getscheduler(0))
    idle, batch = os.SCHED_IDLE, os.SCHED_BATCH
    assert policies == [idle, idle, batch, *[batch] * 9, idle, batch]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux has a policy for who can wait.")
def test_what_is_loaded_beside_a_load_is_idle_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_IDLE_SECONDS", 0.2)
    policies: list[int] = []

    def work() -> None:
        take_usual_priority()
        policies.append(os.sched_getscheduler(0))

    with BackgroundPriority() as priority, priority.idle():
        policies.append(os.sched_getscheduler(0))
        other = threading.Thread(target=work)
        other.start()
        other.join()
        until(lambda: os.sched_getscheduler(0) == os.SCHED_BATCH)
    assert policies == [os.SCHED_IDLE, os.SCHED_OTHER]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def stopped(asked: PreparedLoad, after: int) -> LoadResult:
    answered = 0

    def watch(pulse: object, tally: Tally) -> None:
        nonlocal answered
        answered = tally.completed

    return judge_load(asked.measure(watch, lambda: answered >= after), asked.load)


@pytest.mark.parametrize(
    "given",
    [{"concurrency": 4}, {"rate": 100.0}, {"stages": "10s@50..100,600s@200"}, {"rate": 100.0, "workers": 2}],
)
def test_a_load_that_is_stopped_tells_what_was_measured(given: dict[str, object]) -> None:
    with faulty(slow(0.02)) as server:  # type: ignore[arg-type]
        seconds = {} if "stages" in given else {"duration": "600s"}
        found = stopped(build_prepared_load(LoadOptions(server.url, **given, **seconds)), after=100)  # type: ignore[arg-type]
    assert found.requests_completed >= 100
    assert set(found.errors) <= {"cut_off"}
    assert found.requests_sent == found.requests_completed + sum(found.errors.values())
    assert found.error_rate.value == 0
    assert found.duration < 300
    assert found.throughput.value > 0


def test_waiting_awake_for_the_next_request_is_not_told_as_work() -> None:
    """At 1,500 a second a worker hardly ever sleeps; were waiting counted, it would be at its limit."""
    with faulty(always(ANSWER)) as server:
        asked = build_prepared_load(LoadOptions(server.url, rate=1500.0, duration="1s", requests=150))
        busy = asked.measure()
        idle = build_prepared_load(LoadOptions(server.url, rate=1500.0, duration="1s", requests=1)).measure()
    assert 0 <= busy.cpu_share <= 1
    assert 0 <= idle.cpu_share <= 1


def test_a_load_that_is_stopped_at_once_ends_though_it_was_to_last() -> None:
    with faulty(slow(600.0)) as server:  # type: ignore[arg-type]
        asked = build_prepared_load(LoadOptions(server.url, duration="600s"))
        found = judge_load(asked.measure(is_stopped=lambda: True), asked.load)
    assert found.requests_completed == found.times.get("latency", 0) == 0
    assert set(found.errors) <= {"cut_off"}


def children_of(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()] if file.exists() else []


def workers() -> list[int]:
    children = children_of(os.getpid())
    return [one for one in children if "assay.load.worker" in told_by_the_system(one, "cmdline")]


@pytest.mark.real_starts
@pytest.mark.skipif(sys.platform != "linux", reason="workers are found by /proc")
def test_a_worker_that_is_killed_ends_nothing_but_itself(wording: Wording) -> None:
    killed: list[int] = []

    def watch(pulse: object, tally: Tally) -> None:
        if tally.sent.get(0, 0) - tally.in_flight.get(0, 0) >= 10 and not killed:
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)

    with faulty(slow(0.02)) as server:  # type: ignore[arg-type]
        asked = build_prepared_load(LoadOptions(server.url, rate=100.0, requests=400, workers=2))
        found = judge_load(asked.measure(watch), asked.load)
    assert killed
    assert found.workers_lost == 1
    assert not found.is_valid
    assert found.warnings[0].startswith("1 of 2 ")
    wording(found.warnings[0], numbers=False)
    assert 200 + 10 <= found.requests_completed < 400
    assert found.requests_sent == found.requests_completed + sum(found.errors.values())


@pytest.mark.real_starts
@pytest.mark.skipif(sys.platform != "linux", reason="workers are found by /proc")
def test_workers_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    with faulty(slow(0.02)) as server:  # type: ignore[arg-type]
        script = (
            "from assay.load.build import LoadOptions, build_prepared_load\n"
            f"build_prepared_load(LoadOptions({server.url!r}, concurrency=4, workers=2, duration='600s')).measure()\n"
        )
        parent = subprocess.Popen([sys.executable, "-c", script])
        try:
            until(lambda: len(server.requests) > 20)
            found = children_of(parent.pid)
            assert len(found) == 2
        finally:
            parent.kill()
            parent.wait()
        until(lambda: not any(is_alive(child) for child in found))


def is_alive(pid: int) -> bool:
    """Not a zombie that only waits to be looked at."""
    told = told_by_the_system(pid, "stat").rpartition(")")[2].split()
    return bool(told) and told[0] not in "ZX"


@pytest.mark.real_starts
@pytest.mark.skipif(sys.platform != "linux", reason="sizes are found by /proc")
def test_requests_leave_nothing_behind_in_memory() -> None:
    """A worker that has sent 15,000 is not larger than after 5,000."""
    peaks: list[tuple[int, int]] = []

    def watch(pulse: object, tally: Tally) -> None:
        if children := workers():
            status = told_by_the_system(children[0], "status")
            size = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), 0)
            if size:
                peaks.append((tally.completed, size))

    server = subprocess.Popen(
        [Path(sys.executable).with_name("assay"), "sim-llm", "--port", "0", "--ttft", "0", "--itl", "0", "--tokens", "4", "--json"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        asked = build_prepared_load(LoadOptions(f"{url}/v1", concurrency=32, requests=15_000))
        found = asked.measure(watch)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()  # type: ignore[union-attr]
    assert found.requests_completed == 15_000
    early = max(size for completed, size in peaks if completed < 5_000)
    assert max(size for _, size in peaks) < early + 4_000


def chunk_of(numbers: range) -> Chunk:
    rows = [(n, n / 100, n / 100, n / 100, n / 100 + 0.1, n / 100 + 0.2, 3, 7, 0, 0.0, 2) for n in numbers]
    counts = dict.fromkeys(("in_flight", "reconnects", "coalesced"), 0)
    lists: dict[str, list[str]] = {"kinds": ["ok"], "answers": []}
    flags = dict.fromkeys(("counted", "simulated", "is_last"), False)
    chunk = Chunk(columns_of(rows), columns_of(rows)["end"])
    chunk.facts = {"at": numbers[-1] / 100, "sent": len(numbers), "cpu": 0.0, **counts, **lists, **flags}
    return chunk


def test_a_tally_of_a_week_has_no_more_slices_than_one_of_a_minute() -> None:
    tally = Tally()
    for begin in range(0, 60_000_000, 600_000):
        tally.add(0, chunk_of(range(begin, begin + 1000)))
    assert len(tally.slices) <= MOST_SLICES
    assert tally.completed == sum(one.completed for one in tally.slices.values()) == 100_000
    assert tally.between(0, 1e9).times["latency"].n == 100_000


def test_requests_are_in_flight_where_they_were_and_not_where_they_were_due() -> None:
    tally = Tally()
    rows = [(n, 0.0, 10.0 * n, 10.0 * n, 10.0 * n, 10.0 * n + 10, 3, 7, 0, 0.0, 2) for n in range(5)]
    chunk = chunk_of(range(1, 2))
    chunk.columns = columns_of(rows)
    tally.add(0, chunk)
    assert [tally.between(at, at + 5).busy_seconds for at in (0, 20, 44, 60)] == pytest.approx([5, 5, 5, 0])


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_chunks_are_put_together_from_pieces_of_any_size(size: int) -> None:
    sent = [chunk_of(range(at, at + 10)) for at in (0, 10)]
    unpacker = Unpacker()
    found = [one for piece in pieces(b"".join(map(pack_chunk, sent)), size) for one in unpacker.feed(piece)]
    assert [one.columns for one in found] == [one.columns for one in sent]
    assert [one.facts for one in found] == [one.facts for one in sent]


def test_bodies_that_end_with_the_connection_do_not_stop_an_open_loop() -> None:
    with faulty(
        always(head(b"content-type: text/event-stream\r\n") + b"".join(openai()), close=True)
    ) as server:
        assert load(server.url, rate=300.0, requests=60, concurrency=2).requests_completed == 60


@pytest.mark.parametrize("latency", [0.02, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("rate", [8, 40, 400])
def test_a_server_that_takes_its_time_but_keeps_up_is_not_called_saturated(latency: float, rate: int) -> None:
    """Ten seconds by hand: every answer comes so long after its request."""
    load_ = Load(Arrivals.CONSTANT, stages=((10.0, float(rate), float(rate)),), seconds=10.0)
    tally = Tally()
    chunk = chunk_of(range(1, 2))
    dues = [number / rate for number in range(10 * rate)]
    chunk.columns = columns_of(
        [(n, at, at, at, at + latency / 2, at + latency, 3, 7, 0, 0.0, 2) for n, at in enumerate(dues)]
    )
    chunk.facts["sent"] = len(dues)
    tally.add(0, chunk)
    found = judge_load(summarise_load(tally, load_), load_)
    assert found.throughput.value == pytest.approx(rate, rel=0.02)
    assert not found.is_saturated
    assert found.is_valid
