"""An agent whose quality, speed, price and failures are known, to see whether a measurement finds them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import ClassVar

from assay.builtin.agents.fixed import InstantAgent, right_output
from assay.model import Answer, Request, Usage
from assay.plugin import AgentError, BadAgent

WRONG = "I do not know."


class Simulated(InstantAgent):
    """An agent of known quality, speed, price and reliability, to see whether a measurement finds them.

    What it does follows from its seed, the seed of the run, the case and the repetition: a run with the same seed repeats
    exactly, while the repetitions of a case differ.

    Args:
        quality: Probability of a correct answer.
        seconds: Mean time of an answer.
        jitter: How far times vary around the mean, as a share of it.
        tokens: Output tokens of an answer.
        usd: Cost of an answer.
        failure_rate: Probability that a request fails.
        seed: Seed of its random numbers.

    Example:
        - {name: good, type: simulated, quality: 0.9, seconds: 0.02, usd: 0.001}
    """

    is_simulated: ClassVar[bool] = True
    sees_answers: ClassVar[bool] = True
    is_free: ClassVar[bool] = False
    tells_cost: ClassVar[bool] = True

    def __init__(
        self,
        quality: float = 0.8,
        seconds: float = 0.01,
        jitter: float = 0.0,
        tokens: int = 20,
        usd: float = 0.0,
        failure_rate: float = 0.0,
        seed: int = 1,
    ) -> None:
        for name, value in (("quality", quality), ("jitter", jitter), ("failure_rate", failure_rate)):
            if not 0 <= value <= 1:
                raise BadAgent(f"'{name}' must be between 0 and 1, not {value:g}.")
        for name, value in (("seconds", seconds), ("tokens", tokens), ("usd", usd)):
            if value < 0:
                raise BadAgent(f"'{name}' must not be below 0, as {value:g} is.")
        self._quality, self._seconds, self._jitter = quality, seconds, jitter
        self._tokens, self._usd = tokens, usd
        self._failure_rate, self._seed = failure_rate, seed

    async def answer(self, request: Request) -> Answer:
        turn = len(request.history)
        chance = Random(f"{self._seed}/{request.seed}/{request.id}/{request.repetition}/{turn}")
        fails, is_right = chance.random() < self._failure_rate, chance.random() < self._quality
        await asyncio.sleep(self._seconds * (1 + self._jitter * chance.uniform(-1, 1)))
        if fails:
            raise AgentError("simulated failure")
        usage = Usage(len(str(request.input).split()), self._tokens, api_calls=1)
        output = right_output(request.expected)
        if not is_right:
            is_number = isinstance(output, (int, float)) and not isinstance(output, bool)
            output = output + 1 if is_number else WRONG
        return Answer(output, usage=usage, usd=self._usd)
