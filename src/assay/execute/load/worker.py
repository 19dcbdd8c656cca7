"""One process of the load engine: sends requests when they are due and takes the time of what comes back.

It is told everything at the start (an order, as JSON on standard input), says `ready`, is given the moment to begin, and
from then on only tells: chunks of columns on standard output. Closing its standard input ends it; what was finished is told.
It imports next to nothing, so that it is there in a moment and small.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import os
import select
import signal
import socket
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from itertools import count, takewhile
from typing import Any

from assay.execute.load.alarm import Alarm
from assay.execute.load.answer import BadReply, Reply, Trust, check_document, usage_in
from assay.execute.load.channel import Channel, KernelClock, State, kind_of
from assay.execute.load.record import OK, Chunk, columns_of, packed
from assay.execute.load.replay import Replayed, read_order
from assay.execute.load.schedule import Stage, arrivals, share

_TICK = 0.1
WATCHFUL = 0.001
"""Seconds before a request is due in which a worker does not sleep."""
_WHILE = 0.004
"""Seconds without a request that is due, in which there is time for other things."""
_MOST_IN_A_ROW = 64
"""Requests started before a look at what came back; whoever is late all the time would otherwise look at nothing else."""
_FEW = 16
_OFTEN = 16
"""When a worker of a closed loop found more than a few answers so often, and never none, it is no burst: it cannot keep up. From
then on a few answers are read and then as many requests sent, which takes less than to do both by turns; before, and as soon as
it has caught up, each answer is followed by the next request at once.
"""
_NOT_KNOWN = float("nan")
_NEVER = float("inf")
_IN, _OUT, _GONE = 1, 4, 8 | 16


class Worker:
    """`order` is plain data: see `engine.order_for`."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._requests = requests_of(order)
        self._streams: bool = order["stream"]
        self._keeps_answers: bool = order["keeps_answers"]
        self._limit: float = order["seconds_each"]
        self._most: int = order["in_flight"]
        self._think: float = order["think_seconds"]
        self._address = (socket.AddressFamily(order["address"][0]), _socket_address(order["address"][1]))
        self._kernel = KernelClock() if sys.platform == "linux" else None
        self._open_channel = self._channels_maker()
        self._poll = poller()
        self._alarm = Alarm()
        self._channels: dict[int, Channel] = {}
        self._idle: list[Channel] = []
        self._later: list[tuple[float, int]] = []
        """Of a closed loop: when the next request of a place is due, and its number."""
        self._failures: dict[int, int] = {}
        self._kinds: dict[str, int] = {"ok": OK}
        self._rows: list[tuple[float, ...]] = []
        self._gaps = array("d")
        self._answers: list[list[object]] = []
        self._in_flight = 0
        self._sent = 0
        self._reconnects = 0
        self._begin = 0.0
        self._is_stopping = False
        self._crowds = 0
        """Of a closed loop: how often in a row more than a few answers were waiting."""
        self._coalesced = 0
        self._places: int | None = order["concurrency"] if _is_closed(order) else None
        """Of a closed loop: how many requests are always under way, of all workers together."""
        self._count: int | None = order["count"]
        self._seconds: float = order["seconds"]
        self._spent_awake = 0.0
        self._trust = Trust()
        self._counts_pieces = False
        """Whether any answer told no number of tokens, so that its pieces were counted instead."""
        self._is_simulated = False

    def _channels_maker(self) -> Callable[[], Channel]:
        if self._order["tls"] is None:
            return lambda: Channel(self._address, self._kernel)
        from assay.execute.load.tls import TlsChannel, trusting

        tls = self._order["tls"]
        context = trusting(tls["ca_file"], tls["is_checked"])
        return lambda: TlsChannel(self._address, self._kernel, context, tls["name"])

    def run(self, begin: float) -> None:
        """`begin` on the monotonic clock."""
        self._begin = begin
        self._give_up_at = begin + self._order["seconds"] + self._limit
        self._due = timetable(self._order)
        self._next = next(self._due, None)
        self._poll.register(0, _IN)
        if self._alarm.fd >= 0:
            self._poll.register(self._alarm.fd, _IN)
        self._open_ahead()
        tick = begin
        while not self._is_over():
            now = time.monotonic()
            before = self._sent
            self._start_what_is_due(now)
            if now >= tick and (self._sent > before or self._has_time(now) or now >= tick + _TICK):
                tick = now + _TICK
                self._tick(now)
            self._handle_all(self._happened(now))
        self._tick(time.monotonic(), is_last=True)

    def _has_time(self, now: float) -> bool:
        """Whether no request is due for a while. To tell takes time, here and of whoever listens, who may share the processor;
        what is told just before a request is due makes that one late.
        """
        return self._next is None or self._begin + self._next[1] - now > _WHILE

    def _open_ahead(self) -> None:
        """Connections are made before the first request is due, so that it does not pay for its own."""
        for _ in range(self._order["ahead"]):
            try:
                self._idle.append(self._opened())
            except OSError:
                return

    def _is_over(self) -> bool:
        if self._in_flight:
            return False
        return self._is_stopping or (self._next is None and not self._later)

    def _start_what_is_due(self, now: float) -> None:
        if self._is_stopping:
            return
        if now > self._give_up_at:
            self._next = None
        since = now - self._begin
        left = _MOST_IN_A_ROW
        while self._next is not None and self._next[1] <= since and self._in_flight < self._most and left:
            left -= 1
            number, due = self._next
            self._next = next(self._due, None)
            self._start(number, self._begin + due)
            now = time.monotonic()
            since = now - self._begin
        while self._later and self._later[0][0] <= now:
            at, number = heapq.heappop(self._later)
            self._start(number, at)

    def _happened(self, now: float) -> list[tuple[int, int]]:
        """What happens next, asleep or, in the last moment before a request is due, awake."""
        if self._crowds:
            waiting: list[tuple[int, int]] = self._poll.poll(0)
            if waiting:
                return waiting
            self._crowds = 0
        due = _NEVER
        if self._next is not None and self._in_flight < self._most and not self._is_stopping:
            due = self._begin + self._next[1]
        if due - WATCHFUL <= now:
            return self._awake(due)
        wake = due - WATCHFUL
        if self._later and self._later[0][0] < wake:
            wake = self._later[0][0]
        self._alarm.set(wake)
        found: list[tuple[int, int]] = self._poll.poll(self._alarm.patience(_TICK))
        return found

    def _awake(self, due: float) -> list[tuple[int, int]]:
        """A processor that sleeps takes its time to wake, on some machines a millisecond; one that looks again and again
        does not. What is spent on that is no work, and not told as such.
        """
        begun = time.process_time()
        found: list[tuple[int, int]] = self._poll.poll(0)
        while not found and time.monotonic() < due:
            found = self._poll.poll(0)
        self._spent_awake += time.process_time() - begun
        return found

    def _start(self, number: int, due: float) -> None:
        payload = self._requests[number % len(self._requests)]
        self._in_flight += 1
        self._sent += 1
        begun = time.monotonic()
        if self._idle:
            channel = self._idle.pop()
        else:
            try:
                channel = self._opened()
            except OSError as error:
                self._failed(number, due, begun, kind_of(error))
                return
        self._carry(channel, number, payload, due, begun)

    def _carry(self, channel: Channel, number: int, payload: bytes, due: float, begun: float) -> None:
        try:
            keeps = self._keeps_answers
            channel.begin(number, payload, due, begun, keeps or self._trust.wants_a_close_look(), keeps)
        except OSError as error:
            self._broken(channel, kind_of(error))
            return
        if channel.wants_to_write:
            self._poll.modify(channel.fd, _IN | _OUT)

    def _opened(self) -> Channel:
        channel = self._open_channel()
        self._channels[channel.fd] = channel
        self._poll.register(channel.fd, _IN | _OUT)
        return channel

    def _handle_all(self, happened: list[tuple[int, int]]) -> None:
        self._crowds = self._crowds + 1 if self._places is not None and len(happened) > _FEW else 0
        for number, (fd, events) in enumerate(happened, 1):
            self._handle(fd, events)
            if self._crowds > _OFTEN and not number % _FEW:
                self._start_what_is_due(time.monotonic())

    def _handle(self, fd: int, events: int) -> None:
        channel = self._channels.get(fd)
        if channel is None:
            self._handle_own(fd)
            return
        try:
            if events & (_OUT | _GONE) and channel.wants_to_write:
                self._write(channel)
            if events & (_IN | _GONE):
                self._read(channel)
        except OSError as error:
            self._broken(channel, kind_of(error))
        except BadReply as bad:
            self._finish(channel, str(bad), 0.0)
            self._drop(channel)

    def _handle_own(self, fd: int) -> None:
        if fd == self._alarm.fd:
            self._alarm.stop_ringing()
        elif fd == 0 and not os.read(0, 4096):
            self._poll.unregister(0)
            self._stop()

    def _stop(self) -> None:
        """Whoever gave the order has had enough, or is gone: what is under way counts as not finished."""
        self._is_stopping = True
        self._later.clear()
        for channel in list(self._channels.values()):
            if channel.number >= 0:
                self._finish(channel, "cut_off", 0.0)
            self._drop(channel)

    def _write(self, channel: Channel) -> None:
        if channel.state is State.CONNECTING:
            channel.connected()
        else:
            channel.send_rest()
        if not channel.wants_to_write:
            self._poll.modify(channel.fd, _IN)

    def _read(self, channel: Channel) -> None:
        arrived = channel.read()
        if arrived is None:
            if channel.wants_to_write:
                self._poll.modify(channel.fd, _IN | _OUT)
            return
        data, at = arrived
        if not data:
            self._closed(channel)
        elif channel.number < 0:
            self._drop(channel)
        elif channel.reply.feed(data, at):
            self._whole(channel, at)

    def _closed(self, channel: Channel) -> None:
        """The other side has closed the connection."""
        if channel.number >= 0 and channel.reply.is_whole_at_close():
            self._whole(channel, time.monotonic())
        else:
            self._broken(channel, "disconnected")

    def _broken(self, channel: Channel, kind: str) -> None:
        """The connection is gone. A request on one that had been used before is sent anew if no answer had begun."""
        number, due, begun = channel.number, channel.due, channel.begun
        may_retry = (
            channel.is_reused and number >= 0 and not channel.reply.has_begun and not self._is_stopping
        )
        if not may_retry and number >= 0:
            self._finish(channel, kind, 0.0)
        self._drop(channel)
        if not may_retry:
            return
        self._reconnects += 1
        try:
            fresh = self._opened()
        except OSError as error:
            self._failed(number, due, begun, kind_of(error))
            return
        self._carry(fresh, number, self._requests[number % len(self._requests)], due, begun)

    def _drop(self, channel: Channel) -> None:
        if self._channels.pop(channel.fd, None) is None:
            return
        if channel in self._idle:
            self._idle.remove(channel)
        self._poll.unregister(channel.fd)
        channel.close()
        channel.number = -1

    def _whole(self, channel: Channel, at: float) -> None:
        head = channel.reply.head
        assert head is not None
        self._finish(channel, None, at)
        if head.closes or channel.wants_to_write or channel.reply.is_whole_at_close():
            # Whatever follows on a connection whose request is not all sent would be taken for the rest of it.
            self._drop(channel)
        elif channel.fd in self._channels:
            channel.rest()
            self._idle.append(channel)
        if self._in_flight < self._most and self._crowds <= _OFTEN:
            self._start_what_is_due(time.monotonic())

    def _finish(self, channel: Channel, kind: str | None, at: float) -> None:
        """Write down what became of a request; without a kind of error its reply is whole and is looked at."""
        reply = channel.reply
        first = output = given = _NOT_KNOWN
        reads = 0
        if kind is None:
            try:
                first, output, given, reads = self._looked_at(reply)
            except BadReply as bad:
                kind = str(bad)
                self._trust.lose()
        now = time.monotonic()
        if kind is None and self._keeps_answers:
            self._answers.append([channel.number, reply.to_be_judged()])
        begin, number = self._begin, channel.number
        channel.number = -1
        self._rows.append(
            (
                number,
                channel.due - begin,
                channel.begun - begin,
                (channel.sent or channel.begun) - begin,
                first - begin,
                (at or now) - begin,
                output,
                given,
                OK if kind is None else self._number_of(kind),
                now - at if at else 0.0,
                reads,
            )
        )
        self._ended(number, kind)

    def _looked_at(self, reply: Reply) -> tuple[float, float, float, int]:
        head = reply.head
        assert head is not None
        self._is_simulated = self._is_simulated or head.is_simulated
        if head.status != 200:
            raise BadReply(f"http_{head.status}")
        if not self._streams:
            return self._looked_at_whole(reply)
        if not head.is_streamed:
            raise BadReply("wrong_type")
        tokens = reply.tokens()
        stamps = tokens.stamps
        reads = self._add_gaps(stamps)
        output = len(stamps) if tokens.output is None else tokens.output
        if tokens.output is None:
            self._counts_pieces = True
        return stamps[0], output, _NOT_KNOWN if tokens.input is None else tokens.input, reads

    def _looked_at_whole(self, reply: Reply) -> tuple[float, float, float, int]:
        text = reply.payload
        if self._order["is_json"]:
            check_document(text)
        output, given = usage_in(text)
        return (
            _NOT_KNOWN,
            _NOT_KNOWN if output is None else output,
            _NOT_KNOWN if given is None else given,
            len(reply.reads),
        )

    def _add_gaps(self, stamps: list[float]) -> int:
        """Pieces that came in one read share the time since the read before: when each was sent cannot be known."""
        gaps = self._gaps
        before = stamps[0]
        if before == stamps[-1]:
            gaps.frombytes(bytes(8 * (len(stamps) - 1)))
            self._coalesced += len(stamps) - 1
            return 1
        reads, together = 1, 0
        for stamp in stamps[1:]:
            together += 1
            if stamp == before:
                continue
            reads += 1
            if together == 1:
                gaps.append(stamp - before)
            else:
                gaps.extend([(stamp - before) / together] * together)
                self._coalesced += together - 1
            before, together = stamp, 0
        if together:
            gaps.extend([0.0] * together)
            self._coalesced += together
        return reads

    def _failed(self, number: int, due: float, begun: float, kind: str) -> None:
        """No connection could even be tried."""
        begin, now = self._begin, time.monotonic()
        row = (
            number,
            due - begin,
            begun - begin,
            begun - begin,
            _NOT_KNOWN,
            now - begin,
            _NOT_KNOWN,
            _NOT_KNOWN,
        )
        self._rows.append((*row, self._number_of(kind), 0.0, 0))
        self._ended(number, kind)

    def _number_of(self, kind: str) -> int:
        return self._kinds.setdefault(kind, len(self._kinds))

    def _ended(self, number: int, kind: str | None) -> None:
        self._in_flight -= 1
        places = self._places
        if places is None or self._is_stopping:
            return
        pause = self._think if kind is None else max(self._think, self._pause_of(number % places))
        if kind is None and self._failures:
            self._failures.pop(number % places, None)
        following, due = number + places, time.monotonic() + pause
        if (self._count is not None and following >= self._count) or due - self._begin >= self._seconds:
            return
        heapq.heappush(self._later, (due, following))

    def _pause_of(self, place: int) -> float:
        """A server that fails is not asked again at once, and the less the longer it does."""
        self._failures[place] = self._failures.get(place, 0) + 1
        return pause_after(self._failures[place])

    def _tick(self, now: float, is_last: bool = False) -> None:
        if self._kernel is not None:
            self._kernel.follow()
        for channel in list(self._channels.values()):
            if channel.number >= 0 and now - channel.begun > self._limit:
                waits = channel.state is State.CONNECTING
                self._finish(channel, "connect_timeout" if waits else "timeout", 0.0)
                self._drop(channel)
        self._tell(now, is_last)

    def _tell(self, now: float, is_last: bool) -> None:
        chunk = Chunk(columns_of(self._rows), self._gaps)
        self._rows, self._gaps = [], array("d")
        chunk.facts = {
            "at": now - self._begin,
            "in_flight": self._in_flight,
            "sent": self._sent,
            "cpu": time.process_time() - self._spent_awake,
            "kinds": list(self._kinds),
            "reconnects": self._reconnects,
            "coalesced": self._coalesced,
            "counted": self._counts_pieces,
            "simulated": self._is_simulated,
            "answers": self._answers,
            "is_last": is_last,
        }
        self._answers = []
        _say(chunk)


def pause_after(failures: int) -> float:
    """Seconds that a place of a closed loop waits after so many failures in a row: a server that is away is not hammered.

    >>> [pause_after(n) for n in (1, 2, 20)]
    [0.02, 0.04, 1.0]
    """
    return float(min(1.0, 0.01 * 2 ** min(failures, 10)))


def requests_of(order: dict[str, Any]) -> list[bytes] | Replayed:
    if order["mould"] is not None:
        return Replayed(order)
    return [text.encode("latin-1") for text in order["requests"]]


def _is_closed(order: dict[str, Any]) -> bool:
    return order["concurrency"] is not None and order["stages"] is None and order["rows"] is None


def timetable(order: dict[str, Any]) -> Iterator[tuple[int, float]]:
    """Numbers of requests and when they are due, in seconds from the start; of a closed loop the first of each place."""
    if order["rows"] is not None:
        # A worker is given no rows but its own.
        turns: Iterator[tuple[int, float]] = zip(count(order["worker"], order["workers"]), order["due"])
    elif order["stages"] is not None:
        moments = arrivals([Stage(*one) for one in order["stages"]], order["is_poisson"], order["seed"])
        turns = share(moments, order["worker"], order["workers"])
    else:
        turns = share([0.0] * order["concurrency"], order["worker"], order["workers"])
    most = order["count"]
    return turns if most is None else takewhile(lambda turn: turn[0] < most, turns)


def _say(chunk: Chunk) -> None:
    data = memoryview(packed(chunk))
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        os._exit(0)


def _socket_address(address: Any) -> Any:
    return tuple(address) if isinstance(address, list) else address


def poller() -> Any:
    """epoll, or what comes nearest to it."""
    if hasattr(select, "epoll"):
        return select.epoll()
    from assay.execute.load.polling import Poll

    return Poll()


def raise_limit_of_files() -> None:
    """As far as the system lets everybody: each request under way needs a descriptor."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = read_order(sys.stdin.buffer) or sys.exit()
    raise_limit_of_files()
    worker = Worker(order)
    os.write(1, b"ready\n")
    begin = sys.stdin.buffer.readline()
    if not begin:
        return
    gc.collect()
    gc.disable()
    worker.run(float(begin))


if __name__ == "__main__":
    main()
