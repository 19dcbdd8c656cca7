"""Calls over HTTP that fail: tried again within bounds, told without secrets."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.asking import answer, answers, outcomes
from tests.agents.scripted import Heard, ScriptedServer, broken_off, events, lines, response
from tests.wording import Wording

from assay.builtin.agents.anthropic import Anthropic
from assay.builtin.agents.http import Http
from assay.builtin.agents.ollama import Ollama
from assay.builtin.agents.openai import OpenAI
from assay.builtin.agents.retries import Backoff, retry_after
from assay.builtin.agents.throttle import Throttle
from assay.model import Request
from assay.model.redaction import redact
from assay.plugin.agent import AgentError, BadAgent, InvalidAnswer
from assay.plugin.case_limit import limit_case
from assay.simulator import SimOptions, SimServer

KEY = "sk-abcdefghijklmnop"
GOOD = response({"choices": [{"message": {"content": "ok"}}], "model": "m"})


def openai(url: str, **options: Any) -> OpenAI:
    return OpenAI("m", base_url=url, **{"stream": False, "api_key": KEY, "backoff": 0.01, **options})


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_what_may_pass_is_tried_again_and_every_try_is_kept(status: int) -> None:
    with ScriptedServer(response({"error": "busy"}, status), response(b"again", status), GOOD) as server:
        found = answer(openai(server.url))
    assert found.output == "ok"
    assert [attempt["status"] for attempt in found.attempts] == [status, status]
    assert [attempt["error"] for attempt in found.attempts] == ['{"error": "busy"}', "again"]
    assert all(isinstance(attempt["seconds"], float) for attempt in found.attempts)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    with ScriptedServer(response({"error": "no"}, status), GOOD) as server:
        with pytest.raises(AgentError, match=f"HTTP {status}: .*no"):
            answer(openai(server.url))
        assert len(server.requests) == 1


def test_retries_are_bounded() -> None:
    with ScriptedServer(response(b"down", 500)) as server:
        with pytest.raises(AgentError, match=r"HTTP 500: down \(attempt 3; earlier attempts: 500, 500\)"):
            answer(openai(server.url, retries=2))
        assert len(server.requests) == 3


def test_tries_before_an_answer_that_cannot_be_used_are_reported() -> None:
    with ScriptedServer(response(b"down", 503), response(b"[1]")) as server:
        with pytest.raises(InvalidAnswer, match=r"\(attempt 2; earlier attempts: 503\)$"):
            answer(openai(server.url))
        assert len(server.requests) == 2


def test_retries_can_be_switched_off() -> None:
    with ScriptedServer(response(b"down", 500)) as server:
        with pytest.raises(AgentError):
            answer(openai(server.url, retries=0))
        assert len(server.requests) == 1


def test_a_connection_that_is_cut_before_an_answer_is_tried_again() -> None:
    with ScriptedServer(b"", GOOD) as server:
        found = answer(openai(server.url))
    assert found.output == "ok"
    assert [attempt["status"] for attempt in found.attempts] == [None]


def test_a_server_that_is_not_there_is_reported_after_the_last_try() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(AgentError, match=r"No connection to 127.*\(attempt 4"):
            answer(openai(url))


def test_retry_after_is_obeyed() -> None:
    with ScriptedServer(response(b"", 429, retry_after="0.3"), GOOD) as server:
        started = time.perf_counter()
        found = answer(openai(server.url))
    assert time.perf_counter() - started >= 0.3
    assert found.spans[0].kind == "llm"
    assert sum(span.seconds for span in found.spans if span.kind == "queue") >= 0.29


def test_retry_after_may_be_a_date() -> None:
    now = datetime(2025, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert retry_after(format_datetime(now + timedelta(seconds=90), usegmt=True), now) == 90
    assert retry_after(format_datetime(now - timedelta(seconds=90), usegmt=True), now) == 0
    assert retry_after(None) is None


@pytest.mark.parametrize(
    "text", ["-5", "nan", "inf", "soon", "", "5, 10", "1e3", "Fri, 31 Dec 99999999999 00:00:00 GMT"]
)
def test_a_retry_after_that_makes_no_sense_is_as_good_as_none(text: str) -> None:
    assert retry_after(text) is None


@pytest.mark.parametrize("text", ["100000", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "5"])
def test_a_retry_after_is_waited_for_within_the_limit_of_its_own_case_only(text: str) -> None:
    """The first case waits until its time is up; the second is asked at once although its predecessor was refused."""

    async def scene(url: str) -> tuple[list[str], float, str]:
        agent = openai(url)
        agent.open()
        with pytest.raises(TimeoutError) as first:
            async with asyncio.timeout(0.4):
                await limit_case(_keep(agent, []), 0.4)
        outputs: list[str] = []
        started = time.perf_counter()
        await limit_case(_keep(agent, outputs), 0.4)
        seconds = time.perf_counter() - started
        await agent.close()
        return outputs, seconds, "; ".join(getattr(first.value.__context__, "__notes__", []))

    with ScriptedServer(response(b"slow down", 429, retry_after=text), GOOD) as server:
        outputs, seconds, told = asyncio.run(scene(server.url))
    assert outputs == ["ok"]
    assert seconds < 0.3
    assert f"Retry-After {min(float(text), 1e9) if text.isdigit() else 1e9:,.0f} s, " in told
    assert " 0.4 s" in told


async def _keep(agent: OpenAI, outputs: list[str]) -> None:
    outputs.append(str((await agent.answer(Request("1", "hi"))).output))


def test_what_a_server_asked_for_and_what_was_waited_is_kept() -> None:
    with ScriptedServer(response(b"", 429, retry_after="0.2"), GOOD) as server:
        [attempt] = answer(openai(server.url)).attempts
    assert attempt["retry_after"] == 0.2
    assert 0.2 <= attempt["waited"] < 10
    with (
        ScriptedServer(response(b"", 429, retry_after="90")) as server,
        pytest.raises(AgentError, match="Retry-After 90 s"),
    ):
        answer(openai(server.url, retries=0))


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_backoff_grows_to_a_ceiling_with_full_jitter(tries: int, seed: int) -> None:
    seconds = Backoff(0.5, Random(seed)).seconds(tries, None)
    assert 0 <= seconds <= min(8.0, 0.5 * 2**tries)


@given(st.floats(0, 1e6), st.integers(0, 2**32))
def test_no_server_can_make_us_wait_for_ever(asked: float, seed: int) -> None:
    seconds = Backoff(0.5, Random(seed)).seconds(1, asked)
    assert min(asked, 60.0) <= seconds <= 60.5


def test_under_a_rate_limit_all_are_answered_without_a_storm() -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, rate_limit=60.0, skill=1.0), in_thread=True) as server:
        agent = OpenAI("m", base_url=server.url + "/v1", backoff=0.1)
        found = answers(agent, *(f"What is {n} + 1?" for n in range(60)), at_once=True)
    assert [one.output for one in found] == [str(n + 1) for n in range(60)]
    # All but a few are refused once, in the first rush; later only those that test the limit.
    assert sum(len(one.attempts) for one in found) < 90


def test_the_throttle_halves_at_a_refusal_and_grows_by_one_a_round() -> None:
    async def go() -> list[float]:
        throttle = Throttle()
        for _ in range(16):
            await throttle.enter()
        throttle.record_refusal(time.monotonic(), 0.0)
        limits = [throttle.limit, throttle.gap]
        throttle.record_refusal(0.0, 0.0)
        limits.append(throttle.limit)
        for _ in range(8):
            throttle.record_success()
        limits.append(throttle.limit)
        return limits

    halved, gap, unchanged, grown = asyncio.run(go())
    assert (halved, unchanged) == (8, 8)
    assert gap > 0
    assert grown == pytest.approx(9, abs=0.1)


@pytest.mark.parametrize(("pause", "longest"), [(0.0, 1.0), (0.25, 0.25), (30.0, 30.0)])
def test_however_often_it_is_refused_requests_are_no_further_apart_than_the_server_asks(
    pause: float, longest: float
) -> None:
    throttle = Throttle()
    for _ in range(40):
        throttle.record_refusal(math.inf, pause)
    assert throttle.gap == longest


def test_the_throttle_lets_no_more_through_than_its_limit() -> None:
    async def go() -> int:
        throttle, under_way, most = Throttle(), 0, 0
        await throttle.enter()
        throttle.record_refusal(time.monotonic(), 0.0)
        throttle.leave()

        async def one() -> None:
            nonlocal under_way, most
            await throttle.enter()
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            throttle.leave()

        await asyncio.gather(*(one() for _ in range(20)))
        return most

    assert asyncio.run(go()) == 1


def test_one_that_gives_up_waiting_does_not_block_the_others() -> None:
    async def go() -> bool:
        throttle = Throttle()
        await throttle.enter()
        throttle.record_refusal(time.monotonic(), 0.0)
        first, second = (asyncio.ensure_future(throttle.enter()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        throttle.leave()
        await asyncio.wait_for(second, 60)
        return second.done()

    assert asyncio.run(go())


def _echo(heard: Heard) -> bytes:
    return response({"error": {"message": f"bad request: {json.dumps(heard.raw_headers)}"}}, 401)


def _echo_again(heard: Heard) -> bytes:
    return response(json.dumps(heard.raw_headers).encode(), 500)


def _echo_line(heard: Heard) -> bytes:
    return response(heard.line.encode(), 403)


@pytest.mark.parametrize("kind", ["openai", "anthropic", "http"])
def test_a_key_that_a_server_echoes_is_in_no_error(kind: str) -> None:
    with ScriptedServer(_echo) as server:
        headers = {"X-Org-Token": "org-secret-77"}
        agents: dict[str, Any] = {
            "openai": openai(server.url, headers=headers),
            "anthropic": Anthropic("m", base_url=server.url, api_key=KEY, headers=headers),
            "http": Http(server.url, headers={"Authorization": f"Bearer {KEY}", **headers}),
        }
        with pytest.raises(AgentError) as caught:
            answer(agents[kind])
    assert KEY in json.dumps(server.requests[0].raw_headers)
    assert "HTTP 401" in str(caught.value)
    assert KEY not in str(caught.value)
    assert "org-secret-77" not in str(caught.value)


def test_a_key_that_a_server_echoes_is_in_no_attempt() -> None:
    with ScriptedServer(_echo_again, GOOD) as server:
        found = answer(openai(server.url))
    assert "[redacted]" in str(found.attempts)
    assert KEY not in str(found.attempts)


def test_a_key_in_a_broken_stream_is_in_no_error() -> None:
    script = events({"error": {"message": f"key {KEY} is bad"}})
    with ScriptedServer(script) as server, pytest.raises(AgentError, match="is bad") as caught:
        answer(openai(server.url, stream=True))
    assert KEY not in redact(str(caught.value))


def test_a_key_that_an_excerpt_cuts_in_two_is_not_shown_in_part() -> None:
    with (
        ScriptedServer(response(b"x" * 195 + KEY.encode() + b"y" * 500)) as server,
        pytest.raises(InvalidAnswer) as caught,
    ):
        answer(openai(server.url))
    assert KEY[:5] not in redact(str(caught.value))


def test_a_key_in_an_output_is_scored_as_it_is_and_redacted_when_it_is_kept() -> None:
    with ScriptedServer(response({"choices": [{"message": {"content": f"your key is {KEY}"}}]})) as server:
        output = answer(openai(server.url)).output
    assert output == f"your key is {KEY}"
    assert redact(output) == output.replace(KEY, "[redacted]")


def test_a_key_in_the_url_is_in_no_error() -> None:
    with ScriptedServer(_echo_line) as server, pytest.raises(AgentError, match="HTTP 403") as caught:
        answer(Http(f"{server.url}/ask?key={KEY}"))
    assert KEY not in str(caught.value)


BROKEN: dict[str, tuple[str, bytes, type[AgentError], str]] = {
    "no json": ("openai", response(b"<html>oops</html>"), InvalidAnswer, "not JSON: '<html>oops"),
    "no object": ("openai", response([1]), InvalidAnswer, "not a chat completion"),
    "no message": ("openai", response({"choices": []}), InvalidAnswer, "no message"),
    "an error with status 200": ("openai", response({"error": {"message": "quota"}}), AgentError, "says: 'quota'"),
    "invalid sse": ("openai", events(ends="data: {broken\n\n"), InvalidAnswer, "not JSON"),
    "no choice in sse": ("openai", events({"choices": []}), InvalidAnswer, "without any choice"),
    "a list in sse": ("openai", events([1]), InvalidAnswer, "not a chat completion"),
    "an error in sse": ("openai", events({"error": {"message": "overloaded"}}), AgentError, "overloaded"),
    "an end too early": ("openai", events({"choices": [{"delta": {"content": "h"}}]}, ends=""), AgentError, "ended before"),
    "a stream cut off": ("openai", broken_off(b"data: {}\n\n"), AgentError, "was cut off"),
    "invalid utf-8": ("openai", events(ends="") + b"data: \xff\xfe\n\n", InvalidAnswer, "not UTF-8"),
    "bad arguments": (
        "openai",
        response({"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}}]}),
        InvalidAnswer,
        "arguments for tool 'f'",
    ),
    "no http": ("openai", b"hello\r\n\r\n", InvalidAnswer, "HTTP"),
    "a page instead of a stream": ("openai", response(b"<html>", kind="text/html"), InvalidAnswer, "not a stream.*<html>"),
    "text for a delta": ("openai", events({"choices": [{"delta": "x"}]}), InvalidAnswer, "follow its protocol"),
    "a number for calls": (
        "openai", response({"choices": [{"message": {"content": "x", "tool_calls": 7}}]}), InvalidAnswer, "follow its protocol",
    ),
    "a number for a model": (
        "openai", response({"model": 7, "choices": [{"message": {"content": "x"}}]}), InvalidAnswer, "model .* must be text",
    ),
    "anthropic's number for content": ("anthropic", response({"content": [7]}), InvalidAnswer, "follow its protocol"),
    "ollama's number for calls": (
        "ollama", lines({"message": {"content": "", "tool_calls": 7}, "done": True}), InvalidAnswer, "follow its protocol",
    ),
    "anthropic's error": ("anthropic", events({"type": "error", "error": {"message": "overloaded"}}), AgentError, "overloaded"),
    "anthropic's end": ("anthropic", events({"type": "message_start", "message": {}}, ends=""), AgentError, "ended before"),
    "anthropic's nonsense": ("anthropic", events(3, ends=""), InvalidAnswer, "not a message"),
    "anthropic's emptiness": ("anthropic", response({}), InvalidAnswer, "no content"),
    "ollama's error": ("ollama", lines({"error": "no such model"}), AgentError, "no such model"),
    "ollama's end": ("ollama", lines({"message": {"content": "a"}, "done": False}), AgentError, "ended before"),
    "ollama's nonsense": ("ollama", lines("x"), InvalidAnswer, "not an Ollama answer"),
    "ollama's clock": ("ollama", lines({"done": True, "eval_duration": "long"}), InvalidAnswer, "must be a number"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_answer_is_reported_as_what_it_is_and_not_asked_for_again(fault: str) -> None:
    protocol, script, kind, problem = BROKEN[fault]
    with ScriptedServer(script, GOOD) as server:
        agent = {"openai": OpenAI, "anthropic": Anthropic, "ollama": Ollama}[protocol](
            "m", base_url=server.url
        )
        (found,) = outcomes(agent, "x")
        assert isinstance(found, AgentError)
        assert isinstance(found, InvalidAnswer) == (kind is InvalidAnswer)
        with pytest.raises(kind, match=problem):
            raise found
        assert len(server.requests) == 1


def test_what_comes_after_the_end_of_a_stream_is_ignored_with_a_remark(wording: Wording) -> None:
    piece = {"choices": [{"delta": {"content": "yes"}}]}
    again = f"data: [DONE]\n\ndata: {json.dumps(piece)}\n\ndata: [DONE]\n\n"
    with ScriptedServer(events(piece, ends=again)) as server:
        found = answer(openai(server.url, stream=True))
    assert found.output == "yes"
    assert (found.log or "").startswith("[2 events ")
    wording(found.log)


def test_a_cost_that_a_broker_tells_is_taken() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "cost": 0.0021}
    with ScriptedServer(response({"choices": [{"message": {"content": ""}}], "usage": usage})) as server:
        assert answer(openai(server.url)).usd == 0.0021


def test_a_timeout_says_how_far_the_request_had_come(wording: Wording) -> None:
    async def go(url: str) -> list[str]:
        agent = openai(url)
        agent.open()
        try:
            async with asyncio.timeout(2):
                await agent.answer(Request("1", "x"))
        except TimeoutError as error:
            return list(getattr(error.__context__, "__notes__", []))
        finally:
            await agent.close()
        return []

    with ScriptedServer(response({}, 429, retry_after="60")) as server:
        told = asyncio.run(go(server.url))
    assert len(told) == 2
    assert "429 (Retry-After 60" in told[1]
    wording("\n".join(told), numbers=False)


def test_disconnects_in_mid_stream_are_failures_and_the_rest_is_answered(wording: Wording) -> None:
    options = SimOptions(ttft=0.0, itl=0.0, tokens=10, disconnect_rate=0.5, seed=3)
    with SimServer(options, in_thread=True) as server:
        found = outcomes(OpenAI("m", base_url=server.url + "/v1"), *(f"Tell me {n}." for n in range(20)))
    failed = [one for one in found if isinstance(one, AgentError)]
    assert 0 < len(failed) < 20
    (message,) = {str(one).partition(":")[0] for one in failed}
    wording(message)


def test_an_answer_that_is_too_large_is_refused() -> None:
    with (
        ScriptedServer(response({"output": "x" * 200_000})) as server,
        pytest.raises(InvalidAnswer, match="100,000"),
    ):
        answer(Http(server.url, max_bytes=100_000))


def test_lies_about_usage_are_passed_on_for_the_runner_to_judge() -> None:
    usage = {"prompt_tokens": -1, "completion_tokens": "many"}
    with ScriptedServer(response({"choices": [{"message": {"content": ""}}], "usage": usage})) as server:
        assert answer(openai(server.url)).usage.input_tokens == -1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"url": "ftp://host/x"}, "not a URL"),
        ({"url": "http://127.0.0.1:1", "headers": {"X": "a\nb"}}, "cannot be sent"),
        ({"url": "http://127.0.0.1:1", "retries": -1}, "'retries' must be"),
    ],
)
def test_a_definition_that_cannot_work_is_reported(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadAgent, match=problem):
        Http(**options)


def test_an_agent_that_was_not_opened_says_so() -> None:
    with pytest.raises(AgentError, match="opened"):
        asyncio.run(openai("http://127.0.0.1:1").answer(Request("1", "x")))
