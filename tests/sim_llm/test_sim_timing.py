from __future__ import annotations

import asyncio
import json
import statistics
from time import perf_counter

import pytest
from tests.sim_llm.asking import OLLAMA, OPENAI, post, posts, quick, said

from assay.execute.http import HttpClient
from assay.testing.sim_llm import SimOptions, SimServer
from assay.testing.sim_llm.gauge import answers_per_second, punctuality, served_per_second

BODY = json.dumps(said("hello")).encode()


def test_tokens_are_on_time() -> None:
    with SimServer(SimOptions(ttft=0.03, itl=0.004, tokens=10)) as server:
        # The best of three: a busy machine delays some, a server that is wrong delays all.
        seen = [
            asyncio.run(punctuality(server.url, ttft=0.03, itl=0.004, rate=30, seconds=0.7)) for _ in range(3)
        ]

    assert min(one.ttft_p50 for one in seen) >= 0
    assert min(one.ttft_p50 for one in seen) < 0.002
    assert min(abs(one.itl_p50) for one in seen) < 0.002


def test_an_answer_at_once_takes_as_long_as_its_tokens() -> None:
    with quick(ttft=0.03, itl=0.01, tokens=4) as server:
        response = post(server, OPENAI, said("hello"))

    assert 0.06 <= response.ended - response.sent < 0.3


def test_the_role_comes_at_once_and_is_no_token() -> None:
    async def scene(url: str) -> tuple[float, float]:
        async with HttpClient() as client:
            body = json.dumps(said("hello", stream=True)).encode()
            async with client.stream("POST", url + OPENAI, body) as stream:
                pieces = await stream.end()
            return pieces[0].at - stream.sent, pieces[1].at - stream.sent

    with quick(ttft=0.08, tokens=2) as server:
        role, token = asyncio.run(scene(server.url))

    assert role < token
    assert token >= 0.08


def test_jitter_spreads_delays_around_their_mean_and_repeats_with_the_seed() -> None:
    def one_server() -> list[int]:
        """The time to the first token of each answer, in ns as planned."""
        with quick(ttft=0.001, tokens=1, jitter=0.5) as server:
            found = posts(server, OLLAMA, [said("hello", stream=False)] * 100)
        return [response.json()["prompt_eval_duration"] for response in found]

    first = one_server()

    assert one_server() == first
    assert 500_000 <= min(first) < 600_000
    assert 1_400_000 < max(first) <= 1_500_000
    assert statistics.mean(first) == pytest.approx(1_000_000, rel=0.1)


def test_slots_bound_what_is_served_at_a_time_and_throughput_saturates() -> None:
    async def scene(url: str) -> tuple[float, dict[str, int], list[int]]:
        order: list[int] = []
        async with HttpClient() as client:

            async def ask(number: int) -> None:
                await client.post(url + OPENAI, BODY)
                order.append(number)

            started = perf_counter()
            tasks = []
            for number in range(10):
                tasks.append(asyncio.create_task(ask(number)))
                await asyncio.sleep(0.001)
            stats = (await client.get(url + "/stats")).json()
            await asyncio.gather(*tasks)
            return perf_counter() - started, stats, order

    with quick(ttft=0.06, slots=2, tokens=1) as server:
        taken, stats, order = asyncio.run(scene(server.url))

    assert (stats["in_flight"], stats["queued"]) == (2, 8)
    assert 0.3 <= taken < 0.6
    assert sum(abs(place - number) for place, number in enumerate(order)) <= 10


def test_many_questions_without_delays_queue_for_one_slot_without_harm() -> None:
    async def scene(url: str) -> int:
        async with HttpClient() as client:
            found = await asyncio.gather(*(client.post(url + OPENAI, BODY) for _ in range(300)))
        return sum(response.status == 200 for response in found)

    with quick(slots=1) as server:
        assert asyncio.run(scene(server.url)) == 300


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_gauges_count_what_is_answered(is_streamed: bool) -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=4)) as server:
        assert (
            asyncio.run(answers_per_second(server.url, is_streamed=is_streamed, concurrency=8, seconds=0.2))
            > 200
        )
        assert served_per_second(server.url, connections=8, seconds=0.1) > 200
