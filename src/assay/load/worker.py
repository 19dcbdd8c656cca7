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
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from assay.dialects.usage import usage_in, usage_of_document
from assay.load.answer import Reply, Trust, check_document
from assay.load.cancellation import CANCELLED, Cancellations
from assay.load.channel import Channel, KernelClock, State, TlsError, kind_of
from assay.load.conversations import Conversations
from assay.load.payload import Payloads, alternate_targets, payloads_of
from assay.load.poller import Alarm, poller
from assay.load.request_lengths import read_order
from assay.load.response_head import BadReply
from assay.load.schedule import is_closed, pause_after, timetable
from assay.load.token_gaps import FirstReads, TokenGaps
from assay.load.worker_report import OK, Chunk, ChunkWriter, columns_of

_TICK = 0.1
WATCHFUL = 0.001
"""Seconds before a request is due in which a worker does not sleep."""
_WHILE = 0.004
"""Seconds without a request that is due, in which there is time for other things."""
_MOST_IN_A_ROW = 64
"""Requests started before a look at what came back; a worker that is always late would otherwise never read."""
_FEW = 16
_OFTEN = 16
"""When a worker of a closed loop found more than a few answers so often, and never none, it is no burst: it cannot keep up. From
then on a few answers are read and then as many requests sent, which takes less than to do both by turns; before, and as soon as
it has caught up, each answer is followed by the next request at once.
"""
_NOT_KNOWN = float("nan")
_NEVER = float("inf")
_IN, _OUT, _GONE = 1, 4, 8 | 16


class LoadWorker:
    """One loop over one poller: start what is due, report now and then, wait, and handle what came back.

    `order` is plain data: see `engine.order_for`. A request takes this way through the methods:

    - `_start` takes an idle connection to its target, or opens one, and `_carry` hands the request over to it.
    - `_read` feeds what arrives to the connection's `Reply`. When that is whole, `_whole` makes the connection idle again.
    - `_finish` looks at the reply and writes a row for the report, whether there was an answer or an error.
    - `_end_request` plans what follows it: the next request of the same virtual user, or the next turn of its session.

    A connection that breaks takes the way of `_broken` instead. Everything happens in one thread and nothing blocks, so the
    order of the calls is the order of the events. What is on the path of every request avoids attribute look-ups, objects and
    function calls where it can: 10,000 requests a second leave 100 µs for each, system calls included.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._conversations = Conversations(order) if order["sessions"] else None
        self._targets = len(order["places"])
        # Asked once for each request in place of two questions that nearly all loads answer with no.
        self._is_complex = self._targets > 1 or self._conversations is not None
        payloads: Payloads = self._conversations or payloads_of(order)
        self._payload_of = (
            payloads if self._targets == 1 else alternate_targets(payloads, order["heads"], self._target_of)
        )
        self._streams: bool = order["stream"]
        self._keeps_answers: bool = order["keeps_answers"]
        self._keeps_text = self._keeps_answers or self._conversations is not None
        self._limit: float = order["seconds_each"]
        self._most: int = order["in_flight"]
        self._thinks: list[float] = order["think_times"]
        self._think = self._thinks[0] if len(self._thinks) == 1 else None
        """Where all think times are the same."""
        self._kernel = KernelClock() if sys.platform == "linux" else None
        self._open_channel = [self._channels_maker(place) for place in order["places"]]
        self._poll = poller()
        self._alarm = Alarm()
        self._channels: dict[int, Channel] = {}
        self._idle: list[list[Channel]] = [[] for _ in range(self._targets)]
        """By target; the connection that was used last is taken first."""
        self._later: list[tuple[float, int]] = []
        """For a closed loop and sessions: when the next request of a place is due, and its number."""
        self._cancellations = Cancellations(order["cancel_after"], order["cancel_share"], order["seed"])
        self._cancels = self._cancellations.after is not None
        self._outcomes: list[dict[str, int]] = [{} for _ in range(self._targets)]
        """With several targets: how often each outcome occurred at each."""
        self._failures: dict[int, int] = {}
        self._kinds: dict[str, int] = {"ok": OK}
        self._tls_failures: dict[str, int] = {}
        """Requests that failed in TLS, by the reason."""
        self._rows: list[tuple[float, ...]] = []
        self._gaps = TokenGaps()
        self._answers: list[list[object]] = []
        self._in_flight = 0
        self._sent = 0
        self._reconnects = 0
        self._begin = 0.0
        self._is_stopping = False
        self._crowds = 0
        """For a closed loop: how often in a row more than a few answers were waiting."""
        self._first_reads = FirstReads()
        self._places: int | None = order["concurrency"] if is_closed(order) else None
        """For a closed loop: how many requests are always in flight, in all workers together."""
        self._count: int | None = order["count"]
        self._turns_until: float = order["seconds"] if order.get("ends_turns", True) else _NEVER
        """For a closed loop and sessions: until when requests follow others, in seconds from the start."""
        self._spent_awake = 0.0
        self._trust = Trust()
        self._counts_pieces = False
        """Whether any answer reported no token count, so that its chunks were counted instead."""
        self._usage_reports = 0
        self._input_tokens = 0
        self._cached_tokens = 0
        """For answers whose server reported its input tokens: how many answers, tokens, and tokens in its cache."""
        self._is_simulated = False

    def _target_of(self, number: int) -> int:
        """Choose the target of a request: in turn, but all requests of a session go to the same one.

        A server caches the conversation of a session; spreading its turns over servers would measure
        something else.
        """
        if self._conversations is not None:
            number = self._conversations.position_of(number).session
        return number % self._targets

    def _channels_maker(self, place: dict[str, Any]) -> Callable[[], Channel]:
        family, target = place["address"]
        # JSON has no tuples, and an address of the internet has to be one; that of a Unix socket is a path.
        address = (socket.AddressFamily(family), tuple(target) if isinstance(target, list) else target)
        if place["tls"] is None:
            return lambda: Channel(address, self._kernel)
        # Only here: a worker that needs no TLS starts sooner without it.
        from assay.load.tls import TlsChannel, trusting

        tls = place["tls"]
        context = trusting(None, tls["is_checked"], tls["trusted"])
        return lambda: TlsChannel(address, self._kernel, context, tls["name"])

    def run(self, begin: float, send: Callable[[Chunk, bool], None]) -> None:
        """`begin` on the monotonic clock; `send` is given what was found, and whether that is the last of it."""
        self._begin, self._send = begin, send
        # A request that cannot be sent until then, as all places in flight are taken, would be too late to mean anything.
        self._give_up_at = begin + self._order["seconds"] + self._limit
        self._due = self._timetable()
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
            # Reporting waits for a pause in the schedule, but for no longer than one more tick: the engine takes a worker
            # that says nothing for long to be stuck.
            if now >= tick and (self._sent > before or self._has_time(now) or now >= tick + _TICK):
                tick = now + _TICK
                self._tick(now)
            self._handle_all(self._wait_for_events(now))
        self._tick(time.monotonic(), is_last=True)

    def _timetable(self) -> Iterator[tuple[int, float]]:
        if self._conversations is None:
            return timetable(self._order)
        # The schedule gives the starts of sessions; requests are counted across them, so the limit is applied afterwards.
        number_of, most = self._conversations.number_of, self._count
        turns = ((number_of(session), due) for session, due in timetable({**self._order, "count": None}))
        return turns if most is None else takewhile(lambda turn: turn[0] < most, turns)

    def _has_time(self, now: float) -> bool:
        """Whether there is time to report now: reporting costs CPU on both sides and would delay a request that is due soon."""
        return self._next is None or self._begin + self._next[1] - now > _WHILE

    def _open_ahead(self) -> None:
        """Connections are made before the first request is due, so that it does not pay for its own."""
        for number in range(self._order["ahead"]):
            target = number % self._targets
            try:
                self._idle[target].append(self._add_channel(target))
            except OSError:
                # The request that needs the connection later tries again, and reports why there is none.
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
        # The clock is read again after each request: sending a burst takes time, in which more may have become due.
        while self._next is not None and self._next[1] <= since and self._in_flight < self._most and left:
            left -= 1
            number, due = self._next
            self._next = next(self._due, None)
            self._start(number, self._begin + due)
            now = time.monotonic()
            since = now - self._begin
        # These are bounded by themselves: each follows an answer, so there are no more of them than virtual users.
        while self._later and self._later[0][0] <= now and self._in_flight < self._most:
            at, number = heapq.heappop(self._later)
            self._start(number, at)
        if self._cancels:
            for channel in self._cancellations.due(now):
                self._finish(channel, CANCELLED, 0.0)
                self._drop(channel)

    def _wait_for_events(self, now: float) -> list[tuple[int, int]]:
        """What happens next, asleep or, in the last moment before a request is due, awake."""
        if self._crowds:
            # Under pressure a wait costs a system call more than it is worth: something is nearly always there.
            waiting: list[tuple[int, int]] = self._poll.poll(0)
            if waiting:
                return waiting
            self._crowds = 0
        # With all places in flight taken nothing can be sent however due it is: the next event is an answer.
        due = _NEVER
        if self._next is not None and self._in_flight < self._most and not self._is_stopping:
            due = self._begin + self._next[1]
        if due - WATCHFUL <= now:
            return self._awake(due)
        wake = due - WATCHFUL
        if self._later and self._later[0][0] < wake and self._in_flight < self._most:
            wake = self._later[0][0]
        if self._cancels and self._cancellations.pending:
            wake = min(wake, self._cancellations.pending[0][0])
        self._alarm.set(wake)
        found: list[tuple[int, int]] = self._poll.poll(self._alarm.compute_timeout(_TICK))
        return found

    def _awake(self, due: float) -> list[tuple[int, int]]:
        """Busy-wait before a request is due: waking a sleeping CPU can take a millisecond on some machines.

        The CPU time that this takes is not reported as work.
        """
        begun = time.process_time()
        found: list[tuple[int, int]] = self._poll.poll(0)
        while not found and time.monotonic() < due:
            found = self._poll.poll(0)
        self._spent_awake += time.process_time() - begun
        return found

    def _start(self, number: int, due: float) -> None:
        # Made before the clock is read: the work of the load generator is no part of a request's time.
        payload = self._payload_of(number)
        self._in_flight += 1
        self._sent += 1
        begun = time.monotonic()
        target = 0
        if self._is_complex:
            target = self._target_of(number)
            if self._conversations is not None:
                self._conversations.begin(number, begun)
        idle = self._idle[target]
        if idle:
            channel = idle.pop()
        else:
            try:
                channel = self._add_channel(target)
            except OSError as error:
                self._record_connect_failure(number, due, begun, kind_of(error))
                return
        self._carry(channel, number, payload, due, begun)

    def _carry(self, channel: Channel, number: int, payload: bytes, due: float, begun: float) -> None:
        """Send a request on a connection, now or when that stands. Answers that are kept are all looked at closely."""
        try:
            keeps = self._keeps_text
            channel.begin(number, payload, due, begun, keeps or self._trust.wants_a_close_look(), keeps)
        except OSError as error:
            self._broken(channel, kind_of(error))
            return
        if channel.wants_to_write:
            self._poll.modify(channel.fd, _IN | _OUT)
        if self._cancels:
            self._cancellations.plan(channel, number, begun)

    def _add_channel(self, target: int) -> Channel:
        channel = self._open_channel[target]()
        channel.target = target
        self._channels[channel.fd] = channel
        self._poll.register(channel.fd, _IN | _OUT)
        return channel

    def _handle_all(self, happened: list[tuple[int, int]]) -> None:
        """Handle events, and in a closed loop that cannot keep up, send requests after every few answers (see `_OFTEN`)."""
        self._crowds = self._crowds + 1 if self._places is not None and len(happened) > _FEW else 0
        for number, (fd, events) in enumerate(happened, 1):
            self._handle(fd, events)
            if self._crowds > _OFTEN and not number % _FEW:
                self._start_what_is_due(time.monotonic())

    def _handle(self, fd: int, events: int) -> None:
        """Write before reading, as a connection that has just been made is reported as both. Errors end only this channel."""
        channel = self._channels.get(fd)
        if channel is None:
            # Ours, or of a channel that an earlier event of the same poll has dropped.
            self._handle_own(fd)
            return
        try:
            if events != _IN and events & (_OUT | _GONE) and channel.wants_to_write:
                self._write(channel)
            if events & (_IN | _GONE):
                self._read(channel)
        except TlsError as error:
            if channel.number >= 0:
                reason = str(error)
                self._tls_failures[reason] = self._tls_failures.get(reason, 0) + 1
            self._broken(channel, "tls")
        except OSError as error:
            self._broken(channel, kind_of(error))
        except BadReply as bad:
            self._finish(channel, str(bad), 0.0)
            self._drop(channel)

    def _handle_own(self, fd: int) -> None:
        """The timer has rung, or the engine has closed our standard input, which tells us to stop."""
        if fd == self._alarm.fd:
            self._alarm.stop_ringing()
        elif fd == 0 and not os.read(0, 4096):
            self._poll.unregister(0)
            self._stop()

    def _stop(self) -> None:
        """The engine closed our input or died: requests in flight count as unfinished."""
        self._is_stopping = True
        self._later.clear()
        for channel in list(self._channels.values()):
            if channel.number >= 0:
                self._finish(channel, "cut_off", 0.0)
            self._drop(channel)

    def _write(self, channel: Channel) -> None:
        if channel.state is State.CONNECTING:
            channel.finish_connecting()
        else:
            channel.send_rest()
        # A socket can nearly always be written to: who keeps asking would be woken without end.
        if not channel.wants_to_write:
            self._poll.modify(channel.fd, _IN)

    def _read(self, channel: Channel) -> None:
        """One read for each event. epoll is level-triggered: what is left over is reported again, after the other channels."""
        arrived = channel.read()
        if arrived is None:
            # A TLS handshake answers what it reads.
            if channel.wants_to_write:
                self._poll.modify(channel.fd, _IN | _OUT)
            return
        data, at = arrived
        if not data:
            # The other side has closed: the end of an answer that has no other, or a failure.
            if channel.number >= 0 and channel.reply.is_whole_at_close():
                self._whole(channel, time.monotonic())
            else:
                self._broken(channel, "disconnected")
        elif channel.number < 0:
            # Bytes that were not requested would be mistaken for the beginning of the next answer.
            self._drop(channel)
        elif channel.reply.feed(data, at):
            self._whole(channel, at)

    def _broken(self, channel: Channel, kind: str) -> None:
        """The connection is gone. A request on one that had been used before is sent anew if no answer had begun.

        Servers close idle connections at any time, also at the moment in which we send on one: that is no failure of the
        request, and every HTTP client tries again. Its time still counts from when it was first due.
        """
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
            fresh = self._add_channel(channel.target)
        except OSError as error:
            self._record_connect_failure(number, due, begun, kind_of(error))
            return
        self._carry(fresh, number, self._payload_of(number), due, begun)

    def _drop(self, channel: Channel) -> None:
        """Close a connection and forget it; it does no harm to do so twice."""
        if self._channels.pop(channel.fd, None) is None:
            return
        if channel in self._idle[channel.target]:
            self._idle[channel.target].remove(channel)
        self._poll.unregister(channel.fd)
        channel.close()
        channel.number = -1

    def _whole(self, channel: Channel, at: float) -> None:
        head = channel.reply.head
        assert head is not None
        self._finish(channel, None, at)
        if head.closes or head.ends_at_close or channel.wants_to_write:
            # Whatever follows on a connection whose request is not all sent would be taken for the rest of it.
            self._drop(channel)
        elif channel.fd in self._channels:
            channel.rest()
            self._idle[channel.target].append(channel)
        # At once, before other answers of the same poll are read: a virtual user sends its next request without delay.
        if self._in_flight < self._most and self._crowds <= _OFTEN:
            self._start_what_is_due(time.monotonic())

    def _finish(self, channel: Channel, kind: str | None, at: float) -> None:
        """Write down what became of a request; without a kind of error its reply is whole and is looked at.

        `at` is when the last bytes arrived, by the kernel, or 0 for what ended without an answer. The time since then, in which
        they waited to be read, is the row's `lag`: it shows whether this process was the bottleneck.
        """
        reply = channel.reply
        first = output = given = _NOT_KNOWN
        reads = 0
        if kind is None:
            try:
                first, output, given, reads = self._parse_reply(reply)
            except BadReply as bad:
                kind = str(bad)
                self._trust.lose()
        now = time.monotonic()
        if kind is None and self._keeps_answers:
            self._answers.append([channel.number, reply.to_be_judged()])
        if kind is None and self._conversations is not None:
            self._conversations.hear(channel.number, reply)
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
        self._end_request(number, kind)

    def _parse_reply(self, reply: Reply) -> tuple[float, float, float, int]:
        """When the first token came, output and input tokens, and in how many reads; raises BadReply with the kind of error.

        Short answers mostly arrive in one read and are counted without being parsed. The others are taken apart, and
        if counting alone would have found something else, counting is not trusted any more (see `Trust`).
        """
        head = reply.head
        assert head is not None
        self._is_simulated = self._is_simulated or head.is_simulated
        if head.status != 200:
            raise BadReply(f"http_{head.status}")
        if not self._streams:
            return self._parse_whole_reply(reply)
        if not head.is_streamed:
            raise BadReply("wrong_type")
        plain = reply.plain_counts()
        if plain is not None:
            pieces, (output, given, cached) = plain
            reads, first = 1, reply.reads[0]
            self._gaps.zeros += pieces - 1
        else:
            tokens = reply.tokens()
            if not tokens.is_plain:
                self._trust.lose()
            stamps, output, given, cached = tokens.stamps, tokens.output, tokens.input, tokens.cached
            pieces, reads = len(stamps), self._gaps.add(stamps)
            first = stamps[0] if reads == 1 or self._first_reads.is_exact(stamps, reads) else _NOT_KNOWN
        if output is None:
            self._counts_pieces = True
            output = pieces
        return first, output, self._count_input(given, cached), reads

    def _count_input(self, given: int | None, cached: int | None) -> float:
        if given is None:
            return _NOT_KNOWN
        self._usage_reports += 1
        self._input_tokens += given
        if cached:
            self._cached_tokens += min(cached, given)
        return given

    def _parse_whole_reply(self, reply: Reply) -> tuple[float, float, float, int]:
        text = reply.payload
        if self._order["is_json"]:
            check_document(text)
            output, given, cached = usage_in(text)
        else:
            output, given, cached = usage_of_document(text)
        return (
            _NOT_KNOWN,
            _NOT_KNOWN if output is None else output,
            self._count_input(given, cached),
            len(reply.reads),
        )

    def _record_connect_failure(self, number: int, due: float, begun: float, kind: str) -> None:
        """Record a request whose connection could not be attempted."""
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
        self._end_request(number, kind)

    def _number_of(self, kind: str) -> int:
        return self._kinds.setdefault(kind, len(self._kinds))

    def _end_request(self, number: int, kind: str | None) -> None:
        """Free the place of a request that has ended, and plan what follows it; in an open loop the schedule does that."""
        self._in_flight -= 1
        if self._targets > 1:
            outcomes, outcome = self._outcomes[self._target_of(number)], kind or "ok"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if self._is_stopping:
            return
        if self._conversations is not None:
            self._go_on(self._conversations, number, kind)
        elif self._places is not None:
            pause = self._think
            # The usual case costs one comparison: the same think time for all, and no virtual user has failed.
            if pause is None or kind is not None or self._failures:
                pause = self._pause(number, number, kind)
            self._plan(number + self._places, time.monotonic() + pause)

    def _pause(self, number: int, user: int, kind: str | None) -> float:
        """Seconds that a virtual user waits before the next request."""
        assert self._places is not None
        think, place = self._thinks[number % len(self._thinks)], user % self._places
        if kind is None or kind == CANCELLED:
            if self._failures:
                self._failures.pop(place, None)
            return think
        # A server that fails is not asked again at once, and the less the longer it does.
        self._failures[place] = self._failures.get(place, 0) + 1
        return max(think, pause_after(self._failures[place]))

    def _plan(self, number: int, due: float) -> bool:
        """Whether there is still time for it, and so many are wanted."""
        if (self._count is not None and number >= self._count) or due - self._begin >= self._turns_until:
            return False
        heapq.heappush(self._later, (due, number))
        return True

    def _go_on(self, conversations: Conversations, number: int, kind: str | None) -> None:
        """Continue after an answer.

        The next turn of the session follows, if the request was answered and there is one. Otherwise a
        closed loop begins another session.
        """
        now, think = time.monotonic(), self._thinks[number % len(self._thinks)]
        following = conversations.next_turn(number, now, think) if kind is None else None
        if following is not None and self._plan(*following):
            return
        session = conversations.end(number)
        if following is None and self._places is not None:
            pause = self._pause(number, session, kind)
            self._plan(conversations.number_of(session + self._places), now + pause)

    def _tick(self, now: float, is_last: bool = False) -> None:
        """Ten times a second: follow the wall clock, end requests that take too long, and report.

        Time limits are therefore exact to a tenth of a second, which spares a timer for every request.
        """
        if self._kernel is not None:
            self._kernel.follow()
        for channel in list(self._channels.values()):
            if channel.number >= 0 and now - channel.begun > self._limit:
                waits = channel.state is State.CONNECTING
                self._finish(channel, "connect_timeout" if waits else "timeout", 0.0)
                self._drop(channel)
        self._tell(now, is_last)

    def _tell(self, now: float, is_last: bool) -> None:
        gaps, zero_gaps = self._gaps.take()
        chunk = Chunk(columns_of(self._rows), gaps, zero_gaps=zero_gaps)
        self._rows = []
        chunk.facts = {
            "at": now - self._begin,
            "in_flight": self._in_flight,
            "sent": self._sent,
            "cpu": time.process_time() - self._spent_awake,
            "kinds": list(self._kinds),
            "reconnects": self._reconnects,
            "coalesced": self._gaps.coalesced,
            "censored": self._first_reads.censored,
            "counted": self._counts_pieces,
            "simulated": self._is_simulated,
            "usage": [self._usage_reports, self._input_tokens, self._cached_tokens],
            "outcomes": self._outcomes if self._targets > 1 else [],
            "answers": self._answers,
            "is_last": is_last,
            "tls_failures": self._tls_failures,
        }
        self._answers = []
        self._send(chunk, is_last)


def raise_limit_of_files() -> None:
    """Raise the limit of open files as far as the system allows: each request under way needs a descriptor."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    # Ctrl-C goes to every process of the terminal; the engine ends its workers itself, after they have reported.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = read_order(sys.stdin.buffer) or sys.exit()
    raise_limit_of_files()
    worker = LoadWorker(order)
    os.write(1, b"ready\n")
    begin = sys.stdin.buffer.readline()
    if not begin:
        return
    # A collection stops everything for milliseconds. Nothing here makes cycles, so none is needed before the process ends.
    gc.collect()
    gc.disable()
    worker.run(float(begin), ChunkWriter(1).send)


if __name__ == "__main__":
    main()
