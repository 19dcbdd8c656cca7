"""One worker by itself: in which order it reads answers and sends what follows them."""

from __future__ import annotations

import time
from itertools import count, groupby

import pytest
from tests.load.faulty import ANSWER

from assay.load import worker as working
from assay.load.answer import Reply
from assay.load.build import LoadOptions, build_prepared_load
from assay.load.channel import Channel, State
from assay.load.engine import timetable_of
from assay.load.token_gaps import FirstReads
from assay.load.worker import LoadWorker
from assay.load.worker_report import Chunk

FEW, OFTEN = working._FEW, working._OFTEN


class Exchange:
    """Stands for system and server: answers whatever was sent, all at once, and notes what was done.

    Where it `pauses`, answers are there only when they are waited for.
    """

    def __init__(self, pauses: bool) -> None:
        self.notes: list[str] = []
        self.opened_so_far = 0
        self.unsent = memoryview(b"")
        self._pauses = pauses
        self._answered: list[int] = []
        self._numbers = count(100)

    def opened(self) -> Channel:
        self.opened_so_far += 1
        return Wire(next(self._numbers), self)

    def sent(self, fd: int) -> None:
        self.notes.append("send")
        self._answered.append(fd)

    def register(self, fd: int, events: int) -> None: ...
    def modify(self, fd: int, events: int) -> None: ...
    def unregister(self, fd: int) -> None: ...

    def poll(self, patience: float) -> list[tuple[int, int]]:
        if self._pauses and not patience:
            return []
        self.notes.append("poll")
        answered, self._answered = self._answered, []
        return [(fd, 1) for fd in answered]


class Wire(Channel):
    """A connection that stands."""

    __slots__ = ("_exchange",)

    def __init__(self, fd: int, exchange: Exchange) -> None:
        self.fd, self._exchange, self.state = fd, exchange, State.IDLE
        self.is_reused, self.number, self.payload = False, -1, b""
        self.due = self.begun = self.sent = 0.0
        self.reply, self._unsent = Reply(), memoryview(b"")

    def _send_all(self) -> None:
        self.sent = time.monotonic()
        self._exchange.sent(self.fd)

    def read(self) -> tuple[bytes, float]:
        self._unsent = self._exchange.unsent
        self._exchange.notes.append("read")
        return ANSWER, time.monotonic()

    def close(self) -> None: ...


def turns(
    monkeypatch: pytest.MonkeyPatch, requests: int, pauses: bool = False, **given: object
) -> list[list[tuple[str, int]]]:
    """What was done after each poll, as how often in a row."""
    exchange = worked(monkeypatch, Exchange(pauses), requests, **given)
    polls = " ".join(exchange.notes).split("poll")[1:]
    return [[(name, len(list(some))) for name, some in groupby(poll.split())] for poll in polls]


def worked(monkeypatch: pytest.MonkeyPatch, exchange: Exchange, requests: int, **given: object) -> Exchange:
    told = list[Chunk]()
    monkeypatch.setattr(working, "poller", lambda: exchange)
    asked = build_prepared_load(LoadOptions("http://127.0.0.1:9/v1", requests=requests, **given))  # type: ignore[arg-type]
    order = {**asked.order, **timetable_of(asked.load), "rows": None, "worker": 0, "workers": 1}
    worker = LoadWorker(order)
    worker._open_channel = [exchange.opened]
    worker.run(time.monotonic(), lambda chunk, is_last: told.append(chunk))
    assert sum(map(len, told)) == requests
    assert exchange.notes.count("send") == exchange.notes.count("read") == requests
    return exchange


def by_turns(number: int) -> list[tuple[str, int]]:
    return [("read", 1), ("send", 1)] * number


def test_each_answer_is_followed_by_the_next_request_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = turns(monkeypatch, concurrency=FEW, requests=FEW * 100)
    assert seen[:-1] == [by_turns(FEW)] * 99


def test_many_answers_at_a_time_wait_for_nothing_while_it_may_be_a_burst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = turns(monkeypatch, concurrency=2 * FEW, requests=2 * FEW * 100)
    assert seen[:OFTEN] == [by_turns(2 * FEW)] * OFTEN
    assert seen[OFTEN : OFTEN + 20] == [[("read", FEW), ("send", FEW)] * 2] * 20


def test_bursts_with_pauses_between_them_are_nothing_to_keep_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = turns(monkeypatch, pauses=True, concurrency=2 * FEW, requests=2 * FEW * 100)
    assert seen[:-1] == [by_turns(2 * FEW)] * 99


def test_of_a_timetable_requests_never_wait_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are late here: each answer makes room for one more."""
    seen = turns(monkeypatch, rate=1e6, concurrency=2 * FEW, requests=2 * FEW * 40)
    assert [by_turns(2 * FEW)] * 20 == seen[OFTEN : OFTEN + 20]


def test_a_connection_is_kept_unless_its_request_was_answered_before_it_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = worked(monkeypatch, Exchange(pauses=False), 5, concurrency=1)
    early = Exchange(pauses=False)
    early.unsent = memoryview(b"the rest")
    assert kept.opened_so_far == 1
    assert worked(monkeypatch, early, 5, concurrency=1).opened_so_far >= 5


def test_a_first_token_that_was_read_together_with_later_ones_is_not_timed() -> None:
    reads = FirstReads()
    one_by_one, late = [1.0, 1.1, 1.2, 1.3, 1.4], [1.2, 1.2, 1.2, 1.3, 1.4]
    assert reads.is_exact(one_by_one, 5)
    assert not reads.is_exact(late, 3)
    assert reads.censored == 1


def test_tokens_that_always_come_in_pairs_are_timed_like_any_other() -> None:
    reads = FirstReads()
    assert all(reads.is_exact([1.0, 1.0, 1.1, 1.1, 1.2, 1.2], 3) for _ in range(50))


def test_a_server_that_always_sends_its_first_tokens_together_is_timed_after_a_few_answers() -> None:
    reads = FirstReads()
    exact = [reads.is_exact([1.0, 1.0, 1.1, 1.2], 3) for _ in range(50)]
    assert exact[20:] == [True] * 30
    assert reads.censored < 20
