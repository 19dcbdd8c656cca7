"""One question being answered, each token on time."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

from assay.testing.sim_llm.dialects.dialect import Dialect
from assay.testing.sim_llm.protocol import Guest
from assay.testing.sim_llm.turn import SimTurn

if TYPE_CHECKING:
    from assay.testing.sim_llm.simulation import Simulation


class Service:
    __slots__ = (
        "_cut_after",
        "_delays",
        "_dialect",
        "_due",
        "_guest",
        "_sent",
        "_simulation",
        "_steps",
        "_turn",
        "_unsent",
        "arrived",
        "is_over",
    )

    def __init__(
        self, simulation: Simulation, guest: Guest, dialect: Dialect, turn: SimTurn, arrived: float
    ) -> None:
        self._simulation = simulation
        self._guest = guest
        self._dialect = dialect
        self._turn = turn
        self._steps: Iterator[bytes] = iter(())
        self._delays: list[float] = []
        self._due = 0.0
        self._sent = 0
        self._unsent = b""
        self._cut_after: int | None = None
        self.arrived = arrived
        self.is_over = False

    def begin(self, at: float) -> None:
        """Every delay counts from `at`, the time when a slot was free for this."""
        turn = self._turn
        delays = self._delays = self._planned()
        turn.queued = at - self.arrived
        turn.reading, turn.writing = sum(delays[:1]), sum(delays[1:])
        turn.loading = self._loaded(at)
        self._cut_after = self._planned_cut()
        if turn.ask.is_streamed:
            self._unsent = self._guest.begin(self._dialect.stream_type)
            self._unsent += self._guest.chunk(self._dialect.opening(turn))
            self._steps = self._dialect.steps(turn)
            self._due = at + turn.loading + turn.reading
            self._stream()
        else:
            self._due = at + turn.loading + turn.reading + turn.writing
            self._answer()

    def _planned(self) -> list[float]:
        options, steps = self._simulation.options, self._turn.reply.steps
        if not steps and not self._turn.ask.is_embedding:
            return []
        delays = [options.ttft + self._read_prompt()] + [options.itl] * (steps - 1)
        if not options.jitter:
            return delays
        return [delay * self._stretch(step) for step, delay in enumerate(delays)]

    def _read_prompt(self) -> float:
        """Seconds that the input tokens take which are not in the prompt cache."""
        simulation, turn = self._simulation, self._turn
        if simulation.prompt_cache is not None:
            turn.cached = simulation.prompt_cache.read(turn.ask.texts)
        simulation.counts["input_tokens"] += turn.ask.input_tokens
        simulation.counts["cached_tokens"] += turn.cached
        return simulation.options.prefill * (turn.ask.input_tokens - turn.cached)

    def _stretch(self, step: int) -> float:
        luck = self._simulation.luck("delay", self._turn.number, step)
        return 1 + self._simulation.options.jitter * (2 * luck - 1)

    def _planned_cut(self) -> int | None:
        """After how many steps to hang up, if at all."""
        simulation, number = self._simulation, self._turn.number
        if not simulation.happens("disconnect", simulation.options.disconnect_rate, number):
            return None
        return 1 + int(simulation.luck("cut", number) * max(1, self._turn.reply.steps - 1))

    def _loaded(self, at: float) -> float:
        """The seconds that loading the model takes now."""
        ask, turn, memory = self._turn.ask, self._turn, self._simulation.memory
        if ask.keep_alive is None:
            return 0.0
        if ask.is_empty and ask.keep_alive == 0:
            memory.unload(ask.model)
            return 0.0
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
        while self._due <= now:
            if self._sent < total:
                parts.append(self._guest.chunk(next(self._steps)))
                self._sent += 1
            if self._sent == self._cut_after:
                self._hang_up(b"".join(parts))
                return
            if self._sent >= total:
                parts += [self._guest.chunk(self._dialect.closing(self._turn)), self._guest.last_chunk]
                self._finish(b"".join(parts))
                return
            self._due += self._delays[self._sent]
        if message := b"".join(parts):
            self._guest.send(message)
        self._simulation.deadlines.at(self._due, self._stream)

    def _answer(self) -> None:
        if self.is_over:
            return
        if self._due > monotonic():
            self._simulation.deadlines.at(self._due, self._answer)
            return
        message = self._guest.whole(200, self._dialect.whole(self._turn))
        if self._cut_after is None:
            self._finish(message)
        else:
            self._hang_up(message[: -len(message) // 4])

    def _finish(self, message: bytes) -> None:
        self.is_over = True
        self._guest.send(message)
        self._simulation.done(self._guest, self._due, "completed", self._turn.reply.output_tokens)
        self._guest.finish()

    def _hang_up(self, message: bytes) -> None:
        self.is_over = True
        self._guest.send(message)
        self._guest.close()
        self._simulation.done(self._guest, self._due, "disconnects")
