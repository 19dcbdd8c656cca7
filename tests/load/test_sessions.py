"""Sessions of several turns, think times, requests that are given up, and several targets."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.load.faulty import (
    ANSWER,
    DONE,
    FINISH,
    JSON,
    Guest,
    always,
    delta,
    event,
    faulty,
    streamed,
    with_length,
)
from tests.load.loading import load

from assay.errors import AssayError
from assay.load.build import LoadOptions, build_prepared_load
from assay.load.load_shape import load_for
from assay.model.load_document import load_document
from assay.simulator import SimOptions, SimServer
from assay.spec.datasets import read_sessions
from assay.spec.variates import times_of


def numbered(guest: Guest) -> None:
    """Answers with the number of the request, in two pieces."""
    usage = event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    guest.say(streamed([delta(content="answer "), delta(content=str(guest.number)), FINISH, usage, DONE]))


def messages_of(request: bytes) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(request.partition(b"\r\n\r\n")[2])["messages"]
    return found


def rows(file: Path, *given: object) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in given))
    return str(file)


TURNS = {"turns": ["one", {"text": "two", "max_tokens": 7}, "three"]}
MESSAGES = {
    "messages": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two"},
        {"role": "user", "content": "three"},
    ]
}
BY_ID = [{"session": "s", "prompt": "one"}, {"session": "s", "prompt": "two", "max_tokens": 7}, {"session": "s", "prompt": "three"}]  # fmt: skip


@pytest.mark.parametrize("given", [[TURNS], [MESSAGES], BY_ID], ids=["turns", "messages", "ids"])
def test_each_turn_is_sent_with_what_the_server_really_answered(tmp_path: Path, given: list[object]) -> None:
    with faulty(numbered) as server:
        found = load(
            server.url,
            dataset=rows(tmp_path / "d.jsonl", *given),
            requests=6,
            prompt_cache="keep",
            max_tokens=9,
        )
    sent = [
        [
            (message["role"], message["content"])
            for message in messages_of(request)
            if message["role"] != "system"
        ]
        for request in server.requests
    ]
    assert found.requests_completed == 6
    assert sent[0] == [("user", "one")]
    assert sent[1] == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]
    assert sent[2] == [*sent[1], ("assistant", "answer 2"), ("user", "three")]
    assert sent[3] == [("user", "one")]
    assert sent[5][1] == ("assistant", "answer 4")
    bounds = [json.loads(one.partition(b"\r\n\r\n")[2])["max_tokens"] for one in server.requests[:3]]
    assert bounds == ([9, 9, 9] if given == [MESSAGES] else [9, 7, 9])
    if given == [MESSAGES]:
        assert all(messages_of(request)[0]["content"] == "Be short." for request in server.requests)


def test_a_session_opens_in_its_own_way_and_keeps_to_it(tmp_path: Path) -> None:
    with faulty(numbered) as server:
        load(server.url, dataset=rows(tmp_path / "d.jsonl", TURNS), requests=6)
    first = [messages_of(request)[0]["content"] for request in server.requests]
    assert len(set(first[:3])) == len(set(first[3:])) == 1
    assert first[0] != first[3]
    assert all(text.endswith(" one") and len(text.split()) == 5 for text in first)


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat", "/v1/responses"])
def test_sessions_are_had_in_every_dialect_with_messages(tmp_path: Path, path: str) -> None:
    file = rows(tmp_path / "d.jsonl", {"turns": ["a b", "c d"]})
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=4), in_thread=True) as server:
        found = load(server.url + path, dataset=file, requests=4, prompt_cache="keep")
    assert found.errors == {}
    # Two words at first; then those, four of the answer and two more.
    assert found.input_tokens == 2 * (2 + 8)


def test_sessions_need_a_server_that_takes_messages(tmp_path: Path) -> None:
    file = rows(tmp_path / "d.jsonl", TURNS)
    for url in ("http://127.0.0.1:9/v1/completions", "http://127.0.0.1:9/page"):
        with pytest.raises(AssayError, match="messages"):
            load(url, dataset=file, requests=1)


def test_a_failed_turn_ends_its_session_and_the_user_begins_another(tmp_path: Path) -> None:
    def fails_second(guest: Guest) -> None:
        if messages_of(guest.request)[-1]["content"] == "two":
            guest.say(with_length(b"{}", JSON, status=b"500 No"))
        else:
            numbered(guest)

    with faulty(fails_second) as server:
        found = load(server.url, dataset=rows(tmp_path / "d.jsonl", TURNS), requests=9, prompt_cache="keep")
        said = [messages_of(request)[-1]["content"] for request in server.requests]
    # A request that was not sent leaves its number free: 0, 1, then 3, 4, then 6, 7.
    assert said == ["one", "two"] * 3
    assert dict(found.errors) == {"http_500": 3}


THINK, ANSWERED = 0.3, 0.2


def test_turns_wait_for_the_answer_and_the_think_time(tmp_path: Path) -> None:
    """A virtual user needs 3 turns of 0.2 s and a think time of 0.3 s after each: 3 requests in 1.5 s."""
    file = rows(tmp_path / "d.jsonl", TURNS)
    with SimServer(SimOptions(ttft=ANSWERED, itl=0.0, tokens=2), in_thread=True) as server:
        found = load(server.url + "/v1", dataset=file, concurrency=3, duration="4.5s", think=f"{THINK}s")
    # Nobody is quicker than the server and the think time allow, whatever the machine does meanwhile. By Little's law the
    # three are always either waiting for an answer, which may take longer on a busy machine, or thinking.
    latency = found.times["latency"]
    assert latency.p50 >= ANSWERED * 0.99
    assert found.throughput.value <= 3 / (THINK + ANSWERED) * 1.02
    assert found.throughput.value * (THINK + latency.mean) == pytest.approx(3, rel=0.1)


def test_sessions_of_an_open_loop_begin_by_the_timetable(tmp_path: Path) -> None:
    """A session begins each second, each of 3 turns: 3 requests per second, however long an answer takes."""
    file = rows(tmp_path / "d.jsonl", {"turns": ["a", {"text": "b", "delay": 50}, {"text": "c", "delay": 0}]})
    with SimServer(SimOptions(ttft=0.05, itl=0.0, tokens=2), in_thread=True) as server:
        found = load(server.url + "/v1", dataset=file, rate=1.0, duration="3s")
    # The last session begins at 2 s and its third turn is due at 2.15 s, so a busy machine has time to spare.
    assert found.requests_completed == 9
    assert found.offered_rate is None
    assert not [warning for warning in found.warnings if "asked for" in warning]


def test_workers_share_sessions_and_miss_none(tmp_path: Path) -> None:
    file = rows(tmp_path / "d.jsonl", *({"turns": [f"{n}a", f"{n}b"]} for n in range(5)))
    with faulty(numbered) as server:
        found = load(server.url, dataset=file, concurrency=4, workers=2, requests=10, prompt_cache="keep")
        said = sorted(messages_of(request)[-1]["content"] for request in server.requests)
    assert found.requests_completed == 10
    assert said == sorted(f"{n}{turn}" for n in range(5) for turn in "ab")


def test_a_trace_tells_sessions_by_their_ids(tmp_path: Path) -> None:
    trace = rows(
        tmp_path / "t.jsonl",
        {"timestamp": 0, "session_id": "a", "input_length": 10, "output_length": 4},
        {"timestamp": 100, "session_id": "b", "input_length": 20, "output_length": 5},
        {"session_id": "a", "delay": 200, "input_length": 5, "output_length": 6},
        {"timestamp": 600, "session_id": "b", "input_length": 7, "output_length": 8},
        {"timestamp": 650, "input_length": 3, "output_length": 9},
    )
    began = time.monotonic()
    times: dict[int, float] = {}

    def timed(guest: Guest) -> None:
        times[guest.number] = time.monotonic()
        numbered(guest)

    with faulty(timed) as server:
        found = load(server.url, arrivals=f"trace:{trace}", requests=None)
        asked = {
            json.loads(one.partition(b"\r\n\r\n")[2])["max_tokens"]: (
                times[number],
                [len(message["content"].split()) for message in messages_of(one)],
            )
            for number, one in enumerate(server.requests, 1)
        }
    assert began < min(times.values())
    assert found.requests_completed == 5
    # All turns are measured, not only those that begin a session.
    assert found.times["ttft"].n + found.ttft_censored == 5
    assert 5 / 1.2 < found.throughput.value < 5 / 0.6
    start = asked[4][0]
    assert {most: sizes for most, (_, sizes) in asked.items()} == {
        4: [10], 5: [20], 6: [10, 2, 5], 8: [20, 2, 7], 9: [3],
    }  # fmt: skip
    for most, due in {5: 0.1, 6: 0.2, 8: 0.6, 9: 0.65}.items():
        # The server may have been late to see the first, and any of them.
        assert due - 0.08 <= asked[most][0] - start <= due + 0.5, most


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [("1s", 1.0, 0.0), ("1s±300ms", 1.0, 0.3), ("exp:2s", 2.0, 2.0), ("0.5s..2s", 1.25, 1.5 / 12**0.5)],
)
def test_think_times_are_distributed_as_written(text: str, mean: float, deviation: float) -> None:
    variate = times_of(text, "--think")
    draws = variate.draws(20_000, seed=3)
    assert variate.mean == mean
    assert sum(draws) / len(draws) == pytest.approx(mean, rel=0.03)
    spread = (sum((one - mean) ** 2 for one in draws) / len(draws)) ** 0.5
    assert spread == pytest.approx(deviation, rel=0.05, abs=1e-9)
    assert min(draws) >= 0


def test_users_think_by_the_distribution_that_was_asked_for() -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=1), in_thread=True) as server:
        found = load(server.url + "/v1", concurrency=20, duration="4s", think="0.1s..0.5s")
    # A user thinks for 0.3 s on average, and waits for an answer in between, which takes longer on a busy machine.
    assert found.throughput.value == pytest.approx(20 / (0.3 + found.times["latency"].mean), rel=0.1)


def test_think_times_need_a_closed_loop_or_sessions(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="--think"):
        load_for(LoadOptions("http://127.0.0.1:9/v1", rate=5.0, think="exp:1s"))
    assert (
        load_for(LoadOptions("http://127.0.0.1:9/v1", rate=5.0, think="1s"), has_sessions=True).think_seconds
        == 1
    )


def test_cancelled_requests_are_neither_answered_nor_failed() -> None:
    """Of answers that take 0.6 s, a quarter is given up after 0.2 s; the server sees those connections go."""
    with SimServer(SimOptions(ttft=0.6, itl=0.0, tokens=2), in_thread=True) as server:
        found = load(
            server.url + "/v1",
            rate=40.0,
            duration="3s",
            cancel_after="200ms",
            cancel_share="25%",
            slo="error_rate<1%",
        )
        stats = stats_of(server.url)
    sent = found.requests_sent
    assert sent == 120
    assert found.cancelled == pytest.approx(sent / 4, abs=12)
    assert found.requests_completed == sent - found.cancelled
    assert found.errors == {}
    assert found.error_rate.value == 0.0
    assert all(held.is_met for held in found.held)
    assert stats["errors"]["abandoned"] == found.cancelled
    # Those that were given up have no latency; a busy machine can only add to that of the others.
    assert 0.59 < found.times["latency"].p50 < 0.9
    assert load_document(found)["requests_cancelled"] == found.cancelled


def test_what_is_answered_before_is_not_cancelled() -> None:
    with faulty(always(ANSWER)) as server:
        found = load(server.url, requests=20, concurrency=2, cancel_after="10s")
    assert (found.requests_completed, found.cancelled) == (20, 0)


def test_users_go_on_at_once_after_they_gave_up() -> None:
    """In a closed loop: 0.2 s each, without the pause that failures are followed by."""
    with SimServer(SimOptions(ttft=30.0, itl=0.0), in_thread=True) as server:
        found = load(server.url + "/v1", concurrency=2, requests=20, cancel_after="200ms")
    assert found.cancelled == 20
    assert found.duration == pytest.approx(2.0, abs=0.4)


def stats_of(url: str) -> Any:
    from urllib.request import urlopen

    with urlopen(f"{url}/stats") as answer:
        return json.load(answer)


def test_several_targets_are_asked_in_turn_and_counted_apart(assay_inline: AssayInline) -> None:
    failing = always(with_length(b"{}", JSON, status=b"503 No"))
    with faulty(always(ANSWER)) as good, faulty(failing) as bad, faulty(always(ANSWER)) as other:
        words = ("--requests", "30", "--concurrency", "3", "--header", "x-team: blue", "--json")
        found = json.loads(assay_inline("load", good.url, bad.url, other.url, *words).out)
        sent = [len(server.requests) for server in (good, bad, other)]
        hosts = [
            {one.split(b"host: ")[1].split(b"\r\n")[0] for one in server.requests}
            for server in (good, bad, other)
        ]
        urls = [server.url for server in (good, bad, other)]
    assert sent == [10, 10, 10]
    assert [host.pop().decode() for host in hosts] == [url.split("/")[2] for url in urls]
    assert [target["url"].startswith(url) for target, url in zip(found["targets"], urls, strict=True)] == [
        True
    ] * 3
    assert [target["requests_completed"] for target in found["targets"]] == [10, 0, 10]
    assert [target["errors"] for target in found["targets"]] == [{}, {"http_503": 10}, {}]
    assert found["errors"] == {"http_503": 10}


def test_several_targets_have_to_be_alike_and_allowed() -> None:
    first = "http://127.0.0.1:9/v1"
    for other in (
        "http://127.0.0.1:9/api/chat",
        "http://127.0.0.1:9/v1/embeddings",
        "http://example.com/v1",
        first,
    ):
        with pytest.raises(AssayError):
            build_prepared_load(LoadOptions(first, more_targets=(other,)))


def test_a_session_stays_with_its_target(tmp_path: Path) -> None:
    file = rows(tmp_path / "d.jsonl", TURNS)
    with faulty(numbered) as one, faulty(numbered) as other:
        load(one.url, more_targets=(other.url,), dataset=file, requests=12, prompt_cache="keep")
        lengths = [[len(messages_of(request)) for request in server.requests] for server in (one, other)]
    assert lengths == [[1, 3, 5, 1, 3, 5]] * 2


@pytest.mark.parametrize(
    "row",
    [
        {"turns": []},
        {"turns": [5]},
        {"messages": "hello"},
        {"messages": [{"content": "a"}]},
        {"prompt": "a", "max_tokens": "many"},
        {"prompt": "a", "delay": -4},
        5,
    ],
)
def test_rows_that_say_nothing_are_named_with_their_line(tmp_path: Path, row: object) -> None:
    file = rows(tmp_path / "d.jsonl", {"prompt": "fine"}, row)
    with pytest.raises(AssayError, match=r"d\.jsonl:2: "):
        read_sessions(Path(file))


def test_pages_of_several_targets_are_fetched_in_turn() -> None:
    with (
        faulty(always(with_length(b"hi")), path="/one") as one,
        faulty(always(with_length(b"hi")), path="/two") as other,
    ):
        found = load(one.url, more_targets=(other.url,), requests=6)
        lines = [{request.split(b"\r\n")[0] for request in server.requests} for server in (one, other)]
    assert found.requests_completed == 6
    assert lines == [{b"GET /one HTTP/1.1"}, {b"GET /two HTTP/1.1"}]


def test_a_page_may_be_asked_for_so_many_tokens() -> None:
    with faulty(always(with_length(b"{}", JSON)), path="/page") as server:
        assert load(server.url, requests=3, output_tokens="5").requests_completed == 3
