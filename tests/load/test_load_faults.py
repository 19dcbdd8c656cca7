"""Servers that fail in every way: counted by kind, never mixed with answers, and nothing hangs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from pathlib import Path

import pytest
from tests.http.tls_provider import Certificate, make_certificate
from tests.load.faulty import (
    ANSWER,
    CHUNKED,
    DONE,
    FINISH,
    JSON,
    NDJSON,
    SSE,
    Guest,
    always,
    chunk,
    delta,
    event,
    faulty,
    head,
    openai,
    streamed,
    with_length,
)
from tests.load.loading import kinds, load
from tests.wording import Wording

from assay.errors import PlanError
from assay.load.proxy import FaultProxy
from assay.load.tls import trusting


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_good_server_makes_no_errors() -> None:
    with faulty(always(ANSWER)) as server:
        result = load(server.url, requests=20, concurrency=3, model="m")
        assert result.errors == {}
        assert result.requests_completed == result.times["ttft"].n == 20
        assert server.connections == 3
    asked = json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert asked["model"] == "m"
    assert asked["stream"] is True
    assert asked["stream_options"] == {"include_usage": True}


def test_refused_connections_are_counted_and_not_hammered() -> None:
    """A place that was refused waits longer each time: 0.02, 0.04, … 1 s. Without that there would be thousands."""
    result = load(f"http://127.0.0.1:{free_port()}/v1", duration="1s", concurrency=2)
    assert set(result.errors) == {"refused"}
    assert 2 <= result.errors["refused"] <= 20
    assert result.error_rate.value == 1.0
    assert result.requests_completed == 0
    assert not result.is_saturated


def test_refused_connections_of_a_timetable_are_counted_each() -> None:
    assert kinds(f"http://127.0.0.1:{free_port()}/v1", requests=20, rate=100.0) == {"refused": 20}


def test_a_name_that_nobody_knows_is_refused_before_anything_is_sent(wording: Wording) -> None:
    with pytest.raises(PlanError, match=r"'nowhere\.invalid'") as refused:
        load("http://nowhere.invalid/v1", allow_host=("nowhere.invalid",))
    wording(str(refused.value).rpartition(": ")[0])  # The reason is that of the system.


def test_other_machines_are_only_loaded_when_they_are_named(wording: Wording) -> None:
    for host in ("example.com", "10.0.0.1", "0.0.0.0", "[2001:db8::1]", "127.0.0.1.example.com"):
        with pytest.raises(PlanError, match="--allow-host ") as refused:
            load(f"http://{host}/v1")
        wording(refused.value)
    with faulty(always(ANSWER)) as server:
        assert kinds(server.url.replace("127.0.0.1", "localhost")) == {}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (b"429 Too Many Requests", "http_429"),
        (b"500 Oops", "http_500"),
        (b"503 Busy", "http_503"),
        (b"302 Found", "http_302"),
        (b"404 Not Found", "http_404"),
        (b"204 No Content", "http_204"),
    ],
)
def test_a_status_other_than_200_is_its_own_kind(status: bytes, kind: str) -> None:
    more = b"location: http://127.0.0.1:1/elsewhere\r\nretry-after: 1\r\n"
    with faulty(always(with_length(b"", more, status=status))) as server:
        assert kinds(server.url) == {kind: 4}


def test_errors_never_enter_the_times_of_answers() -> None:
    def talk(guest: Guest) -> None:
        guest.say(ANSWER if guest.number % 2 else with_length(b"{}", status=b"500 Oops"))

    with faulty(talk) as server:
        result = load(server.url, requests=20)
    assert result.errors == {"http_500": 10}
    assert result.times["latency"].n == result.times["ttft"].n == 10
    assert result.error_rate.value == 0.5


def test_a_server_that_dies_in_the_middle_is_disconnected() -> None:
    half = head(SSE, CHUNKED) + chunk(delta(content="4"))
    for said in (half, half + b"ff\r\ndata: {", head(SSE, b"content-length: 100\r\n") + b"data: {"):
        with faulty(always(said, close=True)) as server:
            assert kinds(server.url) == {"disconnected": 4}


def test_a_connection_that_is_reset_is_counted_as_that() -> None:
    def talk(guest: Guest) -> bool:
        guest.say(head(SSE, CHUNKED) + chunk(delta(content="4")))
        guest.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        guest.socket.close()
        return False

    with faulty(talk) as server:
        assert set(kinds(server.url)) <= {"reset", "disconnected"}


@pytest.mark.parametrize(
    "said",
    [
        b"",
        head(SSE, CHUNKED),
        head(SSE, CHUNKED) + chunk(delta(content="4")) + b"5\r\nda",
        head(SSE, CHUNKED) + b"".join(chunk(one) for one in openai()),
        head(status=b"100 Continue"),
    ],
)
def test_a_server_that_hangs_is_given_up_after_the_timeout(said: bytes) -> None:
    with faulty(always(said)) as server:
        assert kinds(server.url, requests=2, concurrency=2, timeout="300ms") == {"timeout": 2}


def test_a_server_that_never_accepts_is_given_up_after_the_timeout() -> None:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = listener.getsockname()
        for _ in range(4):
            # Fill the queue, so that further connections are left unanswered.
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        found = kinds(f"http://127.0.0.1:{address[1]}/v1", requests=2, concurrency=2, timeout="300ms")
    assert sum(found.values()) == 2
    assert set(found) <= {"connect_timeout", "timeout"}


def test_a_stream_without_end_is_given_up_after_the_timeout() -> None:
    def talk(guest: Guest) -> None:
        guest.say(head(SSE, CHUNKED))
        while True:
            guest.say(chunk(delta(content="more ")) * 10)
            server.is_over.wait(0.001)

    with faulty(talk) as server:
        assert kinds(server.url, requests=2, timeout="500ms") == {"timeout": 2}


def test_a_gigabyte_is_not_taken_in() -> None:
    def talk(guest: Guest) -> None:
        guest.say(head(JSON, b"content-length: 1073741824\r\n"))
        for _ in range(1024):
            guest.say(b" " * 2**20)

    with faulty(talk) as server:
        assert kinds(server.url, requests=2, stream=False) == {"too_large": 2}


STREAMS = {
    "malformed_stream": streamed([b"nonsense\n\n"]),
    "wrong_type": with_length(json.dumps({"choices": [{"message": {"content": "4"}}]}).encode(), JSON),
    "error_in_stream": streamed([delta(content="4"), event({"error": {"message": "no"}}), DONE]),
    "empty": streamed([delta(role="assistant", content=""), FINISH, DONE]),
    "incomplete": streamed([delta(content="4")]),
    "malformed_http": head(SSE, CHUNKED) + b"-5\r\nhello\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_that_is_not_what_was_asked_for_has_its_kind(kind: str) -> None:
    with faulty(always(STREAMS[kind])) as server:
        assert kinds(server.url) == {kind: 4}


def test_html_is_no_stream() -> None:
    with faulty(always(with_length(b"<html></html>", b"content-type: text/html\r\n"))) as server:
        assert kinds(server.url) == {"wrong_type": 4}


def test_answers_in_one_piece_are_measured_without_a_first_token() -> None:
    body = {"choices": [{"message": {"content": "4"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}
    with faulty(always(with_length(json.dumps(body).encode(), JSON))) as server:
        result = load(server.url, stream=False)
        assert "stream_options" not in json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert result.requests_completed == 4
    assert "ttft" not in result.times
    assert result.output_tokens.value == pytest.approx(5 * result.throughput.value)


def test_an_answer_in_one_piece_that_is_no_json_is_malformed() -> None:
    for body in (b"", b"oops", b"[" * 100_000):
        with faulty(always(with_length(body, JSON))) as server:
            assert kinds(server.url, stream=False) == {"malformed_json": 4}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[1, 2]", "malformed_json"),
        (b'{"error": {"message": "overloaded"}}', "error_in_answer"),
        (b'{"choices": []}', "empty"),
    ],
)
def test_an_answer_in_one_piece_that_is_no_completion_has_failed(body: bytes, kind: str) -> None:
    with faulty(always(with_length(body, JSON))) as server:
        result = load(server.url, stream=False)
    assert (result.requests_completed, result.errors) == (0, {kind: 4})


def test_ollama_is_spoken_to_and_understood() -> None:
    lines = [{"response": "4", "done": False}, {"response": "2", "done": False},
             {"response": "", "done": True, "context": list(range(2000)), "eval_count": 2, "prompt_eval_count": 5}]  # fmt: skip
    answer = (
        head(NDJSON, CHUNKED)
        + b"".join(chunk(json.dumps(line).encode() + b"\n") for line in lines)
        + b"0\r\n\r\n"
    )
    with faulty(always(answer), path="/api/generate") as server:
        result = load(server.url, model="m", max_tokens=9)
        asked = json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert result.errors == {}
    assert result.times["ttft"].n == 4
    assert not result.counts_pieces
    assert asked["options"] == {"num_predict": 9}
    assert asked["stream"] is True


def test_anthropic_is_spoken_to_and_understood() -> None:
    events = [
        event({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "4"}}),
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        event({"type": "message_stop"}),
    ]  # fmt: skip
    with faulty(always(streamed(events)), path="/v1/messages") as server:
        result = load(server.url, model="m")
        asked = json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert result.errors == {}
    assert result.times["ttft"].n == 4
    assert asked["max_tokens"] == 4096


def test_any_other_address_is_asked_by_get_and_with_a_prompt_by_post() -> None:
    with faulty(always(with_length(b"hello")), path="/health") as server:
        assert kinds(server.url) == {}
        assert server.requests[0].startswith(b"GET /health HTTP/1.1\r\n")
        assert kinds(server.url, prompt="hi") == {}
        assert server.requests[-1].endswith(b'{"input":"hi"}')


def test_connections_that_close_between_requests_lose_none() -> None:
    """A server may close an idle connection at any time: what was sent into that is sent again, once."""

    def talk(guest: Guest) -> bool:
        guest.say(ANSWER)
        return False

    with faulty(talk) as server:
        assert kinds(server.url, requests=50, concurrency=2, think="5ms") == {}
        assert server.connections >= 50


def test_connection_close_is_obeyed() -> None:
    with faulty(always(streamed(openai(), b"connection: close\r\n"))) as server:
        assert kinds(server.url, requests=10) == {}
        assert server.connections >= 10


def test_bodies_that_end_with_the_connection_are_whole() -> None:
    """In a closed loop the next request is due at once, and must not go into the connection that just ended."""
    for version in (b"HTTP/1.1", b"HTTP/1.0"):
        said = head(SSE).replace(b"HTTP/1.1", version) + b"".join(openai())
        with faulty(always(said, close=True)) as server:
            assert kinds(server.url, requests=20, concurrency=4) == {}


def test_continue_extensions_trailers_and_lengths_are_understood() -> None:
    for said in (
        head(status=b"100 Continue") + ANSWER,
        head(SSE, CHUNKED) + b"".join(chunk(one, b";x=1") for one in openai()) + b"0\r\nx-t: 1\r\n\r\n",
        with_length(b"".join(openai()), SSE),
    ):
        with faulty(always(said)) as server:
            assert kinds(server.url) == {}
            assert server.connections == 1


def test_a_server_that_comes_back_is_found_again() -> None:
    def talk(guest: Guest) -> bool:
        is_away = guest.number <= 3
        guest.say(b"" if is_away else ANSWER)
        return not is_away

    with faulty(talk) as server:
        assert kinds(server.url, requests=10) == {"disconnected": 3}


def test_the_first_token_is_not_the_role() -> None:
    """The server sends the role at once and waits with the content until it is told."""

    def talk(guest: Guest) -> None:
        guest.say(head(SSE, CHUNKED), chunk(delta(role="assistant", content="")))
        server.is_over.wait(0.2)
        guest.say(b"".join(chunk(one) for one in openai()[1:]), b"0\r\n\r\n")

    with faulty(talk) as server:
        result = load(server.url, requests=2)
    assert result.times["ttft"].p50 >= 0.19


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_a_certificate_that_nobody_vouches_for_is_an_error_unless_any_is_taken(
    certificate: Certificate,
) -> None:
    with faulty(always(ANSWER), certificate.server_context()) as server:
        assert kinds(server.url) == {"tls": 4}
        result = load(server.url, requests=10, concurrency=2, insecure=True)
    assert result.errors == {}
    assert result.times["ttft"].n == 10


def test_a_certificate_that_is_vouched_for_is_taken(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    with faulty(always(ANSWER), certificate.server_context()) as server:
        assert kinds(server.url, requests=10) == {}
        assert server.connections == 1


def test_a_private_authority_is_taken_when_its_file_is_named(certificate: Certificate) -> None:
    with faulty(always(ANSWER), certificate.server_context()) as server:
        assert kinds(server.url, ca_file=str(certificate.file)) == {}


def test_a_named_authority_stands_in_the_place_of_all_others(
    certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    with faulty(always(ANSWER), certificate.server_context()) as server:
        assert kinds(server.url, ca_file=str(other.file)) == {"tls": 4}


def test_a_fault_proxy_passes_on_to_a_private_authority(certificate: Certificate) -> None:
    tls = trusting(str(certificate.file))
    with (
        faulty(always(ANSWER), certificate.server_context()) as server,
        FaultProxy(server.url, tls=tls) as proxy,
    ):
        assert kinds(proxy.url) == {}


def test_a_certificate_for_another_server_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_certificate(tmp_path, "127.0.0.9")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
    with faulty(always(ANSWER), other.server_context()) as server:
        assert kinds(server.url) == {"tls": 4}


def test_large_requests_and_answers_pass_through_tls(certificate: Certificate) -> None:
    answer = streamed([delta(content="x" * 300_000), *openai()])
    with faulty(always(answer), certificate.server_context()) as server:
        assert kinds(server.url, prompt="word " * 200_000, insecure=True) == {}


@pytest.mark.parametrize(
    ("start", "found"),
    [(b"HTTP/1.0 200 OK\r\n", {}), (b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n", {"disconnected": 4})],
    ids=["whole", "cut off"],
)
def test_an_answer_ends_where_tls_does_although_the_connection_stays_open(
    certificate: Certificate, start: bytes, found: dict[str, int]
) -> None:
    def talk(guest: Guest) -> bool:
        guest.say(start + SSE + b"\r\n" + b"".join(openai()))
        with contextlib.suppress(OSError):
            # Says that nothing follows, and waits until the client says the same.
            guest.socket.unwrap()  # type: ignore[attr-defined]
        return False

    with faulty(talk, certificate.server_context()) as server:
        assert kinds(server.url, insecure=True) == found


def test_what_came_before_a_fault_of_tls_counts(certificate: Certificate) -> None:
    def talk(guest: Guest) -> bool:
        guest.say(ANSWER)
        os.write(guest.socket.fileno(), b"no TLS record" * 20)
        server.is_over.wait(0.2)
        return False

    with faulty(talk, certificate.server_context()) as server:
        assert kinds(server.url, insecure=True) == {}


def test_a_server_without_tls_is_an_error_of_tls() -> None:
    with faulty(always(ANSWER)) as server:
        found = kinds(server.url.replace("http:", "https:"), timeout="2s")
    assert set(found) <= {"tls", "disconnected", "connect_timeout"}
