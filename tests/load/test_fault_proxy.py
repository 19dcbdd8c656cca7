"""Every fault that the proxy knows, as a client without any library sees it."""

from __future__ import annotations

import errno
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from tests.execute.carrying import eventually

from assay.http.server import HttpRequest
from assay.load.fault import (
    CUTTING,
    NOTHING,
    REFUSING,
    RESETTING,
    STALLING,
    Change,
    Fault,
    FaultKind,
    Passage,
    Traffic,
)
from assay.load.proxy import FaultProxy
from assay.simulator import SimOptions, SimServer

LONG = 60
PATH = "/v1/chat/completions"


def forwarded(traffic: Traffic) -> int:
    return sum(passage.forwarded is not None for passage in traffic.passages)


def faulted(traffic: Traffic, *kinds: FaultKind) -> int:
    """Requests that a fault was chosen for, of any kind or of these."""
    chosen = [passage.fault for passage in traffic.passages if passage.fault is not FaultKind.NONE]
    return sum(fault in kinds or not kinds for fault in chosen)


def succeeded(traffic: Traffic) -> int:
    return sum(passage.is_success for passage in traffic.passages)


def answered_with(traffic: Traffic, status: int) -> int:
    return sum(passage.status == status for passage in traffic.passages)


def unanswered(traffic: Traffic) -> int:
    """Requests, each counted once however often it was sent, that never got a good answer."""
    good = {passage.key for passage in traffic.passages if passage.is_success}
    return len({passage.key for passage in traffic.passages} - good)


def message(text: str = "hello", *, stream: bool = False, headers: str = "") -> bytes:
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]})
    return f"POST {PATH} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {len(body)}\r\n\r\n{body}".encode()


class Client:
    """One connection."""

    def __init__(self, proxy: FaultProxy) -> None:
        place = urlsplit(proxy.url)
        self._socket = socket.create_connection((str(place.hostname), place.port or 0), timeout=LONG)
        self._heard = b""

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def until(self, mark: bytes) -> bytes:
        """All up to and with the mark."""
        while mark not in self._heard:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError(self._heard)
            self._heard += data
        end = self._heard.index(mark) + len(mark)
        said, self._heard = self._heard[:end], self._heard[end:]
        return said

    def ask(self, data: bytes) -> tuple[int, str, bytes]:
        self.send(data)
        return self.answer()

    def answer(self) -> tuple[int, str, bytes]:
        """Status, head and body of an answer whose length was announced."""
        head = self.until(b"\r\n\r\n").decode()
        [length] = re.findall(r"content-length: (\d+)", head)
        while len(self._heard) < int(length):
            self._heard += self._socket.recv(65536)
        body, self._heard = self._heard[: int(length)], self._heard[int(length) :]
        return int(head.split()[1]), head, body

    def to_the_end(self) -> tuple[bytes, int | None]:
        """What comes until the connection ends, and the number of the error that it ended by."""
        try:
            while data := self._socket.recv(65536):
                self._heard += data
        except OSError as error:
            return self._heard, error.errno
        return self._heard, None

    def hears_nothing_for(self, seconds: float) -> bool:
        self._socket.settimeout(seconds)
        try:
            self._heard += self._socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(LONG)
        return False

    def close(self) -> None:
        self._socket.close()


@contextmanager
def client_of(proxy: FaultProxy) -> Iterator[Client]:
    client = Client(proxy)
    try:
        yield client
    finally:
        client.close()


@pytest.fixture(scope="module")
def sim() -> Iterator[SimServer]:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=4), in_thread=True) as server:
        yield server


@pytest.fixture
def proxy(sim: SimServer) -> Iterator[FaultProxy]:
    with FaultProxy(sim.url, seed=7) as made:
        yield made


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[Client]:
    with client_of(proxy) as made:
        yield made


def status(proxy: FaultProxy, data: bytes | None = None) -> int:
    with client_of(proxy) as client:
        return client.ask(data or message())[0]


def test_without_a_fault_requests_pass_on_kept_connections(proxy: FaultProxy, client: Client) -> None:
    answers = [client.ask(message(f"{number}")) for number in range(3)]

    assert [code for code, _, _ in answers] == [200] * 3
    assert all("x-assay-simulated: 1" in head for _, head, _ in answers)
    assert all(json.loads(body)["choices"] for _, _, body in answers)
    seen = proxy.traffic()
    assert (seen.seen, forwarded(seen), faulted(seen), succeeded(seen), seen.connections) == (
        3,
        3,
        0,
        3,
        1,
    )
    assert seen.doubled == unanswered(seen) == 0


def test_moments_of_a_request_are_in_order(proxy: FaultProxy, client: Client) -> None:
    before = time.monotonic()
    client.ask(message())
    [one] = proxy.traffic().passages
    moments = [before, one.arrived, one.forwarded, one.first_byte, one.ended, time.monotonic()]

    assert None not in moments
    assert moments == sorted(moment for moment in moments if moment is not None)


def test_the_path_of_the_upstream_stays() -> None:
    with SimServer(SimOptions(ttft=0.0), in_thread=True) as sim, FaultProxy(f"{sim.url}/v1") as proxy:
        assert urlsplit(proxy.url).path == "/v1"
        assert status(proxy) == 200


def test_a_streamed_answer_passes_as_it_comes() -> None:
    with (
        SimServer(SimOptions(ttft=0.0, itl=600.0, tokens=4), in_thread=True) as sim,
        FaultProxy(sim.url) as proxy,
        client_of(proxy) as client,
    ):
        client.send(message(stream=True))
        head = client.until(b"\r\n\r\n")
        # The next token comes in ten minutes: whoever waits for the whole answer does not get here.
        client.until(b'"content"')

        assert b"transfer-encoding: chunked" in head
        [one] = proxy.traffic().passages
        assert one.first_byte is not None
        assert one.ended is None


def test_a_connection_is_used_again_after_a_streamed_answer(proxy: FaultProxy, client: Client) -> None:
    client.send(message(stream=True))
    streamed = client.until(b"0\r\n\r\n")
    code, _, _ = client.ask(message())

    assert b"data: [DONE]" in streamed
    assert code == 200
    assert proxy.traffic().connections == 1


def test_requests_in_chunks_ahead_of_their_turn_and_after_a_continue_pass(
    proxy: FaultProxy, client: Client
) -> None:
    plain = message()
    body = plain.partition(b"\r\n\r\n")[2]
    chunked = b"POST %b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
        PATH.encode(), len(body), body,
    )  # fmt: skip
    client.send(chunked + plain)
    assert [client.answer()[0] for _ in range(2)] == [200, 200]
    head, _, body = message(headers="expect: 100-continue\r\n").partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert client.ask(body)[0] == 200
    assert proxy.traffic().doubled == 2


@pytest.mark.parametrize("asks_to_close", [True, False])
def test_an_old_client_is_hung_up_on_when_all_is_said(
    proxy: FaultProxy, client: Client, asks_to_close: bool
) -> None:
    data = message(headers="connection: close\r\n") if asks_to_close else message().replace(b"1.1", b"1.0")
    client.send(data)
    said, error = client.to_the_end()

    assert error is None
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert said.endswith(b"}")


def test_a_share_is_told_to_come_again_later_the_same_for_the_same_seed(sim: SimServer) -> None:
    def statuses(seed: int) -> list[int]:
        with FaultProxy(sim.url, seed) as proxy, client_of(proxy) as client:
            proxy.impose(Fault.rate_limited(0.5, retry_after=2))
            found = [client.ask(message(f"{number}"))[:2] for number in range(100)]
            seen = proxy.traffic()
        assert all(("retry-after: 2\r\n" in head) == (code == 429) for code, head in found)
        assert faulted(seen, FaultKind.ANSWER) == answered_with(seen, 429) == 100 - forwarded(seen)
        return [code for code, _ in found]

    first = statuses(1)
    assert set(first) == {200, 429}
    assert 30 <= first.count(429) <= 70
    assert statuses(1) == first
    assert statuses(2) != first


def test_an_error_status_is_answered_without_asking_the_upstream(proxy: FaultProxy, client: Client) -> None:
    began = proxy.impose(Fault.failing(503))
    failed = client.ask(message())
    ended = proxy.lift()
    passed = client.ask(message())

    assert (failed[0], passed[0]) == (503, 200)
    assert json.loads(failed[2])["error"]["code"] == 503
    assert "retry-after" not in failed[1]
    seen = proxy.traffic()
    assert (seen.seen, forwarded(seen), faulted(seen, FaultKind.ANSWER), seen.connections) == (2, 1, 1, 1)
    assert seen.changes == (Change(began, Fault.failing(503)), Change(ended, NOTHING))
    assert (seen.first_success_after(ended) or 0) > 0


def test_the_answer_to_a_head_request_has_no_body(proxy: FaultProxy, client: Client) -> None:
    proxy.impose(Fault.failing(500))
    client.send(b"HEAD / HTTP/1.1\r\n\r\n")
    client.until(b"\r\n\r\n")
    proxy.lift()

    assert client.ask(message())[0] == 200


def test_connections_are_refused_and_the_port_is_kept_for_reopening(
    proxy: FaultProxy, client: Client
) -> None:
    assert client.ask(message())[0] == 200
    url = proxy.url
    for _ in range(2):
        proxy.impose(REFUSING)
        assert client.to_the_end()[1] in (errno.ECONNRESET, None)
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                Client(proxy)
        ended = proxy.lift()
        assert proxy.url == url
        assert status(proxy) == 200
        assert proxy.traffic().first_success_after(ended) is not None


def test_what_is_under_way_breaks_off_when_the_server_is_gone() -> None:
    with (
        SimServer(SimOptions(ttft=600.0), in_thread=True) as sim,
        FaultProxy(sim.url) as proxy,
        client_of(proxy) as client,
    ):
        client.send(message())
        assert eventually(lambda: forwarded(proxy.traffic()) == 1)
        proxy.impose(REFUSING)

        assert client.to_the_end() == (b"", errno.ECONNRESET)


def test_a_connection_is_reset_at_once(proxy: FaultProxy, client: Client) -> None:
    proxy.impose(RESETTING)
    client.send(message())

    assert client.to_the_end() == (b"", errno.ECONNRESET)
    seen = proxy.traffic()
    assert (seen.seen, forwarded(seen), faulted(seen), unanswered(seen)) == (1, 0, 1, 1)


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_is_reset_in_the_middle_of_the_answer(
    proxy: FaultProxy, client: Client, stream: bool
) -> None:
    proxy.impose(CUTTING)
    client.send(message(stream=stream))
    said, error = client.to_the_end()
    proxy.lift()

    assert error == errno.ECONNRESET
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert said.partition(b"\r\n\r\n")[2] != b""
    [length] = re.findall(rb"content-length: (\d+)", said) or [b"0"]
    assert b"[DONE]" not in said if stream else len(said.partition(b"\r\n\r\n")[2]) < int(length)
    assert status(proxy, message(stream=False)) == 200
    seen = proxy.traffic()
    assert [(one.fault, one.is_success) for one in seen.passages] == [
        (FaultKind.CUT, False),
        (FaultKind.NONE, True),
    ]
    assert seen.doubled == (0 if stream else 1)


def test_a_stalled_request_is_never_answered_and_those_after_it_are(
    proxy: FaultProxy, client: Client
) -> None:
    proxy.impose(STALLING)
    client.send(message("stalled"))
    assert eventually(lambda: proxy.traffic().seen == 1)
    proxy.lift()

    assert status(proxy) == 200
    assert client.hears_nothing_for(0.3)
    seen = proxy.traffic()
    assert [one.status for one in seen.passages] == [None, 200]
    assert (forwarded(seen), unanswered(seen)) == (1, 1)


def test_bytes_pass_slowly(proxy: FaultProxy, client: Client) -> None:
    request = message("x" * 500)
    proxy.impose(Fault.slow(2000))
    started = time.monotonic()
    _, head, body = client.ask(request)
    taken = time.monotonic() - started

    assert taken > 0.9 * (len(request) + len(head) + len(body)) / 2000
    [one] = proxy.traffic().passages
    assert (one.fault, one.is_success) == (FaultKind.SLOW, True)
    assert one.arrived - started > 0.9 * len(request) / 2000


def test_a_request_that_is_read_too_slowly_for_its_sender_is_counted(
    proxy: FaultProxy, client: Client
) -> None:
    assert client.ask(message())[0] == 200
    proxy.impose(Fault.slow(10))
    client.send(message())
    client.close()
    assert eventually(lambda: proxy.traffic().unread == 1)
    assert proxy.traffic().seen == 1
    proxy.lift()
    assert proxy.traffic().unread == 1


def test_a_slow_answer_is_read_while_it_comes_and_quick_again_when_lifted(proxy: FaultProxy) -> None:
    with client_of(proxy) as client:
        proxy.impose(Fault.slow(1_000_000))
        client.send(message())
        assert eventually(lambda: forwarded(proxy.traffic()) == 1)
        proxy.impose(Fault.slow(0.5))
        with client_of(proxy) as other:
            other.send(message())
            proxy.lift()
            # At half a byte a second it would take minutes.
            assert b"200 OK" in other.until(b"\r\n\r\n")


def test_an_upstream_that_is_not_there_is_a_bad_gateway(client: Client, proxy: FaultProxy) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with FaultProxy(f"http://127.0.0.1:{unused.getsockname()[1]}") as lonely:
            assert status(lonely) == 502
            seen = lonely.traffic()
    assert (forwarded(seen), faulted(seen), unanswered(seen)) == (0, 0, 1)


def test_an_upstream_that_comes_back_is_asked_on_a_new_connection() -> None:
    with SimServer(SimOptions(ttft=0.0), in_thread=True) as first:
        port = urlsplit(first.url).port or 0
        proxy = FaultProxy(first.url)
        with proxy, client_of(proxy) as client:
            assert client.ask(message())[0] == 200
            first.__exit__(None, None, None)
            assert client.ask(message())[0] == 502
            with SimServer(SimOptions(ttft=0.0, port=port), in_thread=True):
                assert client.ask(message())[0] == 200
            first.__enter__()


def test_a_client_that_leaves_frees_the_upstream() -> None:
    with SimServer(SimOptions(ttft=600.0), in_thread=True) as sim, FaultProxy(sim.url) as proxy:
        with client_of(proxy) as client:
            client.send(message())
            assert eventually(lambda: _in_flight(sim) == 1)
        assert eventually(lambda: _in_flight(sim) == 0)


def _in_flight(sim: SimServer) -> int:
    with FaultProxy(sim.url) as direct, client_of(direct) as client:
        return int(json.loads(client.ask(b"GET /stats HTTP/1.1\r\n\r\n")[2])["in_flight"])


def test_garbage_costs_its_own_connection(proxy: FaultProxy, client: Client) -> None:
    client.send(b"what is this?\r\n\r\n")
    assert client.to_the_end()[0] == b""
    assert status(proxy) == 200
    assert proxy.traffic().seen == 1


def test_many_clients_at_once_are_all_counted(proxy: FaultProxy) -> None:
    proxy.impose(Fault.rate_limited(0.3))
    codes: list[int] = []

    def work(number: int) -> None:
        with client_of(proxy) as client:
            codes.extend(client.ask(message(f"{number} {turn}"))[0] for turn in range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = proxy.traffic()
    assert (seen.seen, seen.connections, len(codes)) == (200, 10, 200)
    assert answered_with(seen, 429) == codes.count(429)
    assert forwarded(seen) == codes.count(200)


def test_what_is_the_same_request_may_be_told_by_the_client_or_by_the_test(sim: SimServer) -> None:
    def of_the_path(request: HttpRequest) -> str:
        return request.path

    with FaultProxy(sim.url) as proxy, client_of(proxy) as client:
        for name in ("a", "b", "a"):
            client.ask(message(headers=f"X-Request-Id: {name}\r\n"))
        assert proxy.traffic().doubled == 1
    with FaultProxy(sim.url, key=of_the_path) as proxy, client_of(proxy) as client:
        client.ask(message("one"))
        client.ask(message("two"))
        assert proxy.traffic().doubled == 1


def test_nothing_is_left_behind(sim: SimServer) -> None:
    before = set(threading.enumerate())
    with FaultProxy(sim.url) as proxy, client_of(proxy) as client:
        proxy.impose(STALLING)
        client.send(message())
        assert eventually(lambda: proxy.traffic().seen == 1)
    assert not {one for one in set(threading.enumerate()) - before if "fault-proxy" in one.name}
    with pytest.raises(ConnectionRefusedError):
        Client(proxy)
    assert proxy.traffic().seen == 1


def passage(number: int, key: str, arrived: float, **more: object) -> Passage:
    return Passage(number, 1, key, arrived, **more)  # type: ignore[arg-type]


def test_a_storm_and_early_retries_are_counted() -> None:
    told = {"fault": FaultKind.ANSWER, "status": 429, "retry_after": 1.0}
    seen = Traffic(
        (
            passage(0, "a", 0.0, ended=0.1, **told),
            # The answer was there before the proxy found the time to write down that it was.
            passage(1, "b", 0.0, ended=0.4, **told),
            passage(2, "a", 0.5, ended=0.6, **told),
            passage(3, "b", 1.2, ended=1.3, forwarded=1.2, status=200),
            passage(4, "a", 1.7, ended=1.8, forwarded=1.7, status=200),
            passage(5, "a", 1.9, ended=2.0, forwarded=1.9, status=200),
            passage(6, "c", 2.0, forwarded=2.0),
        )
    )
    assert (seen.early_retries, seen.doubled, unanswered(seen)) == (1, 1, 1)
    assert seen.compute_retry_amplification(3) == pytest.approx(7 / 3)
    assert seen.first_success_after(1.5) == pytest.approx(0.3)
    assert seen.first_success_after(3.0) is None


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Fault.rate_limited(1.5), "between 0 and 1"),
        (lambda: Fault(FaultKind.REFUSE, 0.5), "has no share"),
        (lambda: Fault.failing(200), "400 to 599"),
        (lambda: Fault.slow(0), "above 0"),
        (lambda: FaultProxy("ftp://x"), "not a URL"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(make, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make()
