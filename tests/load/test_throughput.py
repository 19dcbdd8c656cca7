"""Throughput of servers whose truth is known, also where an answer takes as long as the load lasts."""

from __future__ import annotations

import time
from array import array

import numpy as np
import pytest
from tests.load.faulty import ANSWER, Guest, Talk, faulty
from tests.load.loading import load as put_under_load
from tests.load.queueing import TOKENS, Server, constantly, exponentially

from assay.analysis.load.judgement import judge_load
from assay.load.histogram_bounds import Bounds
from assay.load.summary import distribution
from assay.load.tally import in_time, spread
from assay.load.worker_report import COLUMNS, Chunk
from assay.model.load import Arrivals, Load, LoadResult
from assay.simulator import SimOptions, SimServer
from assay.stats.histogram import histogram


def closed(concurrency: int, seconds: float, **more: object) -> Load:
    return Load(Arrivals.CLOSED, concurrency=concurrency, seconds=seconds, **more)  # type: ignore[arg-type]


def timetable(rate: float, seconds: float, arrivals: Arrivals = Arrivals.CONSTANT, **more: object) -> Load:
    return Load(arrivals, stages=((seconds, rate, rate),), seconds=seconds, **more)  # type: ignore[arg-type]


def covers(found: LoadResult, truth: float) -> bool:
    low, high = found.throughput.low, found.throughput.high
    return low is not None and high is not None and low <= truth <= high


@pytest.mark.parametrize(
    ("latency", "seconds"),
    [(0.05, 10.0), (0.5, 10.0), (1.7, 9.0), (2.0, 10.0), (3.3, 10.0), (5.0, 10.0), (6.0, 5.0)],
)
def test_a_closed_loop_counts_answers_that_take_seconds_rightly(latency: float, seconds: float) -> None:
    found = Server(constantly(latency)).put_under(closed(4, seconds))
    truth = 4 / latency
    assert found.throughput.value == pytest.approx(truth, rel=0.001)
    assert found.output_tokens.value == pytest.approx(truth * TOKENS, rel=0.001)
    assert covers(found, truth)
    assert found.concurrency == pytest.approx(4, rel=0.001)


def test_a_closed_loop_with_think_time_counts_its_pauses() -> None:
    found = Server(constantly(2.0)).put_under(closed(4, 10.0, think_seconds=1.0))
    assert found.throughput.value == pytest.approx(4 / 3, rel=0.001)


def test_requests_that_queue_for_slots_are_counted_by_what_the_slots_can_do() -> None:
    found = Server(constantly(0.5), slots=2).put_under(closed(8, 10.0))
    assert found.throughput.value == pytest.approx(4.0, rel=0.001)


@pytest.mark.parametrize("seconds", [3.0, 10.0, 25.0, 40.0, 100.0])
def test_a_queue_that_outlasts_the_load_is_counted_by_what_the_slots_can_do(seconds: float) -> None:
    """64 virtual users at four slots wait 32 s for an answer that takes 2 s."""
    found = Server(constantly(2.0), slots=4).put_under(closed(64, seconds))
    assert found.throughput.value == pytest.approx(2.0, rel=0.03)
    assert covers(found, 2.0)


def test_random_answers_that_outlast_the_load_are_not_taken_for_a_queue() -> None:
    found = [Server(exponentially(8.0)).put_under(closed(32, 6.0), seed) for seed in range(20)]
    mean = sum(one.throughput.value for one in found) / len(found)
    assert mean == pytest.approx(4.0, rel=0.15)
    assert sum(covers(one, 4.0) for one in found) >= 16


def test_a_counted_closed_loop_leaves_out_its_end_in_which_fewer_are_in_flight() -> None:
    week = 7 * 24 * 3600.0
    found = Server(constantly(2.0)).put_under(closed(32, week, count=100))
    assert found.throughput.value == pytest.approx(16.0, rel=0.001)
    assert found.requests_completed == 100


@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("warmup", [None, 1.0])
def test_a_closed_loop_of_one_wave_counts_from_its_first_request(count: int, warmup: float | None) -> None:
    """Requests that are all sent at once: as many as there are, in the time of one."""
    found = Server(constantly(2.15)).put_under(closed(4, 600.0, count=count, warmup=warmup))
    assert found.throughput.value == pytest.approx(count / 2.15, rel=0.02)
    assert found.output_tokens.value == pytest.approx(TOKENS * count / 2.15, rel=0.02)


@pytest.mark.parametrize("stopped_at", [6.39, 7.1, 9.99])
def test_a_timetable_that_was_cut_short_was_sent_at_its_rate(stopped_at: float) -> None:
    load = timetable(10.0, 20.0)
    found = judge_load(Server(constantly(1.3)).put_under(load, stopped_at=stopped_at), load)
    assert abs(found.achieved_rate - 10.0) * found.measured_seconds < 1
    assert found.is_valid


@pytest.mark.parametrize(("latency", "stopped_at"), [(0.05, 7.0), (2.0, 7.0), (5.0, 7.0)])
def test_a_load_that_was_cut_short_leaves_out_the_time_of_what_was_in_flight(
    latency: float, stopped_at: float
) -> None:
    server = Server(constantly(latency))
    truth = 4 / latency
    assert server.put_under(closed(4, 60.0), stopped_at=stopped_at).throughput.value == pytest.approx(
        truth, rel=0.01
    )
    cut = server.put_under(timetable(5.0, 60.0), stopped_at=stopped_at)
    assert cut.is_cut
    assert cut.throughput.value == pytest.approx(5.0, rel=0.03)


@pytest.mark.parametrize("latency", [0.05, 2.0, 3.3, 6.0, 12.0])
def test_a_timetable_that_the_server_keeps_up_with_is_not_saturated(latency: float) -> None:
    load = timetable(5.0, 10.0)
    found = judge_load(Server(constantly(latency)).put_under(load), load)
    assert found.throughput.value == pytest.approx(5.0, rel=0.001)
    assert found.output_tokens.value == pytest.approx(5.0 * TOKENS, rel=0.001)
    assert covers(found, 5.0)
    assert found.throughput.high == pytest.approx(5.0, rel=0.03)
    assert not found.is_saturated


@pytest.mark.parametrize("overload", [1.05, 1.1, 1.5, 3.0])
def test_a_timetable_beyond_the_capacity_gives_the_capacity(overload: float) -> None:
    load = timetable(40.0 * overload, 10.0)
    found = judge_load(Server(constantly(0.1), slots=4).put_under(load), load)
    assert found.throughput.value == pytest.approx(40.0, rel=0.005)
    assert found.latency_growth == pytest.approx(overload - 1, rel=0.05)
    assert found.is_saturated


def test_a_timetable_of_a_moment_gives_the_capacity_of_a_slow_server() -> None:
    found = Server(constantly(0.1), slots=1).put_under(timetable(100.0, 0.2, count=20))
    assert found.throughput.value == pytest.approx(10.0, rel=0.01)


@pytest.mark.parametrize(
    ("load", "server", "truth"),
    [
        (closed(4, 10.0), Server(exponentially(0.5)), 8.0),
        (closed(32, 10.0), Server(exponentially(2.0)), 16.0),
        (closed(8, 10.0), Server(exponentially(0.125), slots=2), 16.0),
        (timetable(20.0, 10.0), Server(exponentially(3.3)), 20.0),
        (timetable(20.0, 10.0, Arrivals.POISSON), Server(exponentially(0.1), slots=4), 20.0),
        (timetable(60.0, 10.0, Arrivals.POISSON), Server(exponentially(0.1), slots=4), 40.0),
    ],
)  # fmt: skip
def test_intervals_of_random_service_times_cover_the_truth(load: Load, server: Server, truth: float) -> None:
    found = [server.put_under(load, seed) for seed in range(20)]
    assert sum(covers(one, truth) for one in found) >= 16
    mean = sum(one.throughput.value for one in found) / len(found)
    assert mean == pytest.approx(truth, rel=0.07)


def test_random_times_below_the_capacity_are_no_saturation() -> None:
    load = timetable(36.0, 10.0, Arrivals.POISSON)
    server = Server(exponentially(0.1), slots=4)
    found = [judge_load(server.put_under(load, seed), load).is_saturated for seed in range(20)]
    assert sum(found) <= 1


def test_amounts_are_spread_by_the_time_spent_in_each_slice() -> None:
    begin, end = np.array([0.1, 0.0, 2.25]), np.array([0.2, 4.0, 2.75])
    first, shares = spread(begin, end, np.array([1.0, 8.0, 3.0]), 1.0)
    assert first == 0
    assert shares.tolist() == pytest.approx([3.0, 2.0, 5.0, 2.0, 0.0])


def test_a_real_server_whose_answers_take_seconds_is_counted_rightly() -> None:
    options = SimOptions(ttft=0.3, itl=0.1, tokens=13)
    with SimServer(options) as server:
        found = put_under_load(f"{server.url}/v1", concurrency=4, duration="5s")
    # By Little's law: an answer takes 1.5 s, or longer where other programs held the server up.
    truth = 4 / found.times["latency"].mean
    assert truth <= 1.01 * 4 / 1.5
    assert found.throughput.value == pytest.approx(truth, rel=0.05)
    assert found.output_tokens.value == pytest.approx(13 * truth, rel=0.05)
    if truth > 0.99 * 4 / 1.5:
        assert found.requests_completed == 16
        assert found.throughput.value == pytest.approx(truth, rel=0.01)
        assert covers(found, truth)


def last_is_different(number: int, is_slow: bool) -> Talk:
    """Answers after 20 ms, except the request of that number: it takes a second, or fails."""

    def talk(guest: Guest) -> None:
        is_last = guest.number == number
        time.sleep(1.0 if is_last and is_slow else 0.02)
        guest.say(b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n" if is_last and not is_slow else ANSWER)

    return talk


@pytest.mark.parametrize("is_slow", [True, False])
def test_the_last_requests_of_a_counted_load_count_in_times_and_errors(is_slow: bool) -> None:
    requests = 60
    with faulty(last_is_different(requests, is_slow)) as server:
        found = put_under_load(server.url, concurrency=1, requests=requests, warmup="0s")
    assert found.requests_sent == requests
    if is_slow:
        assert found.times["latency"].max >= 1.0
    else:
        assert found.error_rate.value > 0
    assert found.times["latency"].n + sum(found.errors.values()) == requests


def test_a_few_requests_of_which_the_last_is_slow_are_counted_over_the_whole_time() -> None:
    with faulty(last_is_different(5, is_slow=True)) as server:
        found = put_under_load(server.url, concurrency=1, requests=5)
    assert found.throughput.value == pytest.approx(5 / found.duration, rel=0.02)


def test_an_answer_whose_first_token_was_not_timed_is_not_known_to_be_good() -> None:
    columns = {name: array("d", [0.0] * 3) for name in COLUMNS}
    columns["first"] = array("d", [0.05, float("nan"), 0.2])
    columns["end"] = array("d", [0.3] * 3)
    chunk = Chunk(columns, array("d"))
    assert in_time(chunk, Bounds(ttft=0.1)).tolist() == [True, False, False]
    assert in_time(chunk, Bounds(latency=1.0)).tolist() == [True] * 3
    columns["first"] = array("d", [float("nan")] * 3)
    assert in_time(chunk, Bounds(ttft=0.1)).tolist() == [True] * 3


@pytest.mark.parametrize(
    ("answers", "known"),
    [(3, []), (50, ["p50", "p90"]), (80, ["p50", "p90", "p95"]), (400, ["p50", "p90", "p95", "p99"])],
)
def test_a_percentile_has_an_interval_only_where_there_are_answers_beyond_it(
    answers: int, known: list[str]
) -> None:
    """Of 50 answers nobody knows how much longer one in a hundred takes; an interval from the longest to itself would claim it."""
    found = distribution(histogram(np.random.default_rng(3).exponential(0.1, answers)))
    assert list(found.intervals) == known
    assert all(low < high for low, high in found.intervals.values())
