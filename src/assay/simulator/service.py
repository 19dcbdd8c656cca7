"""Answers one question, each token on time.

A service is made when a question has arrived and begins when it has a slot. From then on it schedules itself with
`Deadlines`: the moment of each token is computed from the moment of the one before, never from when it was really sent, so that
lateness of this process does not add up. `Simulation` owns all services and is told when one is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

from assay.http.server import ServerConnection
from assay.simulator.dialects.dialect import Dialect
from assay.simulator.turn import SimTurn

if TYPE_CHECKING:
    from assay.simulator.simulation import Simulation

_NOT_CACHED = {"cache-control": "no-cache"}


class Service:
    """One answer of the simulated server on its way to the client.

    All delays and faults are decided in `begin`, before the first byte, and each token is sent at a
    planned time counted from when a slot was free. A late timer so delays one token and not all that
    follow it. `is_over` says that the answer is done, that it hung up as a simulated fault, or that the
    client has gone.
    """

    __slots__ = (
        "_client", "_cut_after", "_delays", "_dialect", "_due", "_sent", "_simulation", "_steps", "_turn",
        "_unsent", "arrived", "is_over",
    )  # fmt: skip

    def __init__(
        self,
        simulation: Simulation,
        client: ServerConnection,
        dialect: Dialect,
        turn: SimTurn,
        arrived: float,
    ) -> None:
        self._simulation = simulation
        self._client = client
        self._dialect = dialect
        self._turn = turn
        self._steps: Iterator[bytes] = iter(())
        self._delays: list[float] = []
        self._due = 0.0
        self._sent = 0
        self._unsent = b""
        self._cut_after: int | None = None
        """After how many steps to hang up, if at all."""
        self.arrived = arrived
        self.is_over = False

    def begin(self, at: float) -> None:
        """Every delay counts from `at`, the time when a slot was free for this."""
        # Everything is decided before the first byte: the figures that a dialect reports at the end are these plans.
        turn = self._turn
        delays = self._delays = self._plan_delays()
        turn.queued = at - self.arrived
        turn.reading, turn.writing = sum(delays[:1]), sum(delays[1:])
        turn.loading = self._load_model(at)
        simulation = self._simulation
        # Somewhere within the answer, but never before its first step: that would be a refused connection.
        if simulation.happens("disconnect", simulation.options.disconnect_rate, turn.number):
            luck = simulation.luck("cut", turn.number)
            self._cut_after = 1 + int(luck * max(1, turn.reply.steps - 1))
        if turn.ask.is_streamed:
            self._unsent = self._client.begin(self._dialect.stream_type, headers=_NOT_CACHED)
            self._unsent += self._client.chunk(self._dialect.opening(turn))
            self._steps = self._dialect.steps(turn)
            self._due = at + turn.loading + turn.reading
            self._stream()
        else:
            self._due = at + turn.loading + turn.reading + turn.writing
            self._answer()

    def _plan_delays(self) -> list[float]:
        """Seconds before each token, each counted from the one before; jitter stretches them by even chance."""
        # An embedding sends nothing but takes the time of reading; a question that only loads a model takes none.
        options, steps = self._simulation.options, self._turn.reply.steps
        if not steps and not self._turn.ask.is_embedding:
            return []
        delays = [options.ttft + self._read_prompt()] + [options.itl] * (steps - 1)
        if not options.jitter:
            return delays
        lucks = (self._simulation.luck("delay", self._turn.number, step) for step in range(len(delays)))
        return [
            delay * (1 + options.jitter * (2 * luck - 1)) for delay, luck in zip(delays, lucks, strict=True)
        ]

    def _read_prompt(self) -> float:
        """Seconds that the input tokens take which are not in the prompt cache."""
        simulation, turn = self._simulation, self._turn
        if simulation.prompt_cache is not None:
            turn.cached = simulation.prompt_cache.read(turn.ask.texts)
        simulation.counts["input_tokens"] += turn.ask.input_tokens
        simulation.counts["cached_tokens"] += turn.cached
        return simulation.options.prefill * (turn.ask.input_tokens - turn.cached)

    def _load_model(self, at: float) -> float:
        """The seconds that loading the model takes now."""
        ask, turn, memory = self._turn.ask, self._turn, self._simulation.memory
        if ask.keep_alive is None:
            return 0.0
        if ask.is_empty and ask.keep_alive == 0:
            memory.unload(ask.model)
            return 0.0
        # Kept from the end of the answer on, not from its beginning: a model does not expire while it answers.
        loading = memory.load(ask.model, at, ask.num_ctx, ask.num_gpu)
        memory.keep(ask.model, at + loading + turn.reading + turn.writing + ask.keep_alive)
        return loading

    def _stream(self) -> None:
        """Send everything that is due in one write; then wait for the next."""
        if self.is_over:
            return
        parts = [self._unsent]
        self._unsent = b""
        now, total = monotonic(), self._turn.reply.steps
        # A process that wakes late sends all that is due by then, and the next moment follows from the plan, so that one
        # late token does not delay those after it.
        while self._due <= now:
            if self._sent < total:
                parts.append(self._client.chunk(next(self._steps)))
                self._sent += 1
            if self._sent == self._cut_after:
                self._hang_up(b"".join(parts))
                return
            if self._sent >= total:
                parts += [self._client.chunk(self._dialect.closing(self._turn)), self._client.last_chunk]
                self._finish(b"".join(parts))
                return
            self._due += self._delays[self._sent]
        if message := b"".join(parts):
            self._client.send(message)
        self._simulation.deadlines.at(self._due, self._stream)

    def _answer(self) -> None:
        """A whole answer at its time; as a simulated fault, three quarters of its bytes and then nothing."""
        if self.is_over:
            return
        if self._due > monotonic():
            self._simulation.deadlines.at(self._due, self._answer)
            return
        message = self._client.whole(200, self._dialect.whole(self._turn))
        if self._cut_after is None:
            self._finish(message)
        else:
            self._hang_up(message[: -len(message) // 4])

    def _finish(self, message: bytes) -> None:
        """Send the end. The slot is given back before the connection continues, which may bring the client's next question."""
        self.is_over = True
        self._client.send(message)
        self._simulation.finish_service(self._client, self._due, "completed", self._turn.reply.output_tokens)
        self._client.finish()

    def _hang_up(self, message: bytes) -> None:
        """A simulated fault: what was to be sent by now is sent, and then the connection is closed."""
        self.is_over = True
        self._client.send(message)
        self._client.close()
        self._simulation.finish_service(self._client, self._due, "disconnects")
