"""The agent types `openai`, `anthropic` and `ollama` against a server whose behaviour is known."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.asking import answer, answers, answers_to
from tests.agents.scripted import ScriptedServer, events, lines, response

from assay.builtin.agents.anthropic import Anthropic
from assay.builtin.agents.messages import chat_messages
from assay.builtin.agents.ollama import Ollama
from assay.builtin.agents.openai import OpenAI
from assay.model import AgentUse, Request
from assay.plugin.agent import AgentError, BadAgent
from assay.plugin.agent_pool import make_agent
from assay.simulator import SimOptions, SimServer

PROTOCOLS = {"openai": (OpenAI, "/v1"), "anthropic": (Anthropic, ""), "ollama": (Ollama, "")}
STORY = "Say [[expected: one two three four five six]]."
SUM = "What is 17 + 25?"
TOOL = {
    "name": "look_up",
    "description": "Looks a word up.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "OLLAMA_HOST",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def sim() -> Iterator[SimServer]:
    with SimServer(SimOptions(ttft=0.05, itl=0.002, skill=1.0, tokens=6), in_thread=True) as server:
        yield server


def made(protocol: str, url: str, **options: Any) -> Any:
    kind, path = PROTOCOLS[protocol]
    return kind(model="sim-llm", base_url=url + path, **options)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_answer_comes_with_usage_and_the_model_that_gave_it(
    sim: SimServer, protocol: str, stream: bool
) -> None:
    found = answer(made(protocol, sim.url, stream=stream), SUM)
    assert found.output == "42"
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.api_calls) == (5, 1, 1)
    assert found.model == "sim-llm"
    assert found.attempts == ()
    assert [span.kind for span in found.spans] == ["llm"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_first_token_is_timed_only_where_it_is_streamed(sim: SimServer, protocol: str) -> None:
    streamed = answer(made(protocol, sim.url), STORY)
    whole = answer(made(protocol, sim.url, stream=False), STORY)
    assert streamed.first_token_seconds is not None
    assert 0.045 <= streamed.first_token_seconds < streamed.spans[0].seconds
    assert whole.first_token_seconds is None
    assert streamed.output == whole.output


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tool_calls_are_put_together(sim: SimServer, protocol: str, stream: bool) -> None:
    found = answers_to(
        made(protocol, sim.url, stream=stream),
        [Request("1", '[[call: look_up {"word": "tea"}]]', tools=(TOOL,))],
    )[0]
    assert [(call.name, dict(call.arguments)) for call in found.tool_calls] == [("look_up", {"word": "tea"})]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_of_a_simulated_server_are_marked_so(sim: SimServer, protocol: str) -> None:
    agent = made(protocol, sim.url)
    assert answer(agent, SUM).is_simulated
    assert not agent.is_simulated


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_are_asked_at_once(sim: SimServer, protocol: str) -> None:
    found = answers(made(protocol, sim.url), *(f"What is {n} + 1?" for n in range(40)), at_once=True)
    assert [one.output for one in found] == [str(n + 1) for n in range(40)]


def test_ollamas_durations_are_in_seconds(sim: SimServer) -> None:
    found = answer(made("ollama", sim.url), STORY)
    assert found.durations["prompt_eval"] == pytest.approx(0.05)
    assert found.durations["eval"] == pytest.approx(0.002 * 5)
    assert {"load", "total"} < found.durations.keys()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_said_before_is_sent_with_the_instructions(protocol: str) -> None:
    with ScriptedServer(_reply(protocol)) as server:
        said = ({"role": "user", "content": "hi"}, {"role": "assistant", "content": ["a", 1]})
        answers_to(
            made(protocol, server.url, system="Be short.", stream=False),
            [Request("1", "go on", history=said)],
        )
    body = server.requests[0].json
    spoken = [message for message in body["messages"] if message["role"] != "system"]
    assert [message["content"] for message in spoken] == ["hi", '["a", 1]', "go on"]
    assert body.get("system", body["messages"][0]["content"]) == "Be short."


def _reply(protocol: str) -> bytes:
    return {
        "openai": response({"choices": [{"message": {"content": "ok"}}]}),
        "anthropic": response({"content": [{"type": "text", "text": "ok"}]}),
        "ollama": response({"message": {"content": "ok"}, "done": True}),
    }[protocol]


def test_an_input_may_be_a_conversation_of_its_own() -> None:
    with ScriptedServer(_reply("openai")) as server:
        answer(made("openai", server.url, stream=False), [{"role": "user", "content": "a"}])
    assert server.requests[0].json["messages"] == [{"role": "user", "content": "a"}]


def test_text_files_of_the_case_go_into_the_message(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("buy tea")
    with ScriptedServer(_reply("openai")) as server:
        request = Request("1", "Read.", files={"note.txt": str(tmp_path / "note.txt")})
        answers_to(made("openai", server.url, stream=False), [request])
    message = "Read.\n\nFile note.txt:\nbuy tea"
    assert server.requests[0].json["messages"][0]["content"] == message


def test_a_file_that_is_no_text_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with ScriptedServer(_reply("openai")) as server, pytest.raises(AgentError, match="'picture' is not text"):
        answers_to(
            made("openai", server.url), [Request("1", "x", files={"picture": str(tmp_path / "picture")})]
        )


def test_a_file_too_large_for_a_message_or_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    with large.open("wb") as file:
        file.truncate(2**40)  # sparse: reading it would take all memory
    os.mkfifo(pipe)
    for path, problem in ((large, "larger than 1 MiB"), (pipe, "without a writer")):
        with pytest.raises(AgentError, match=problem):
            chat_messages(Request("1", "Read.", files={"data": str(path)}), None)


@pytest.mark.parametrize(
    ("protocol", "key"), [("openai", "max_tokens"), ("anthropic", "max_tokens"), ("ollama", "num_predict")]
)
def test_the_limit_of_tokens_is_passed_on(protocol: str, key: str) -> None:
    with ScriptedServer(_reply(protocol)) as server:
        answers_to(made(protocol, server.url, stream=False), [Request("1", "x", max_tokens=77)])
    body = server.requests[0].json
    assert body.get("options", body)[key] == 77


def test_params_are_sent_as_they_are() -> None:
    with ScriptedServer(_reply("openai")) as server:
        answer(made("openai", server.url, stream=False, params={"temperature": 0, "top_p": 0.5}))
    assert {"temperature": 0, "top_p": 0.5}.items() <= server.requests[0].json.items()


def test_params_of_a_case_are_none_of_the_models_business() -> None:
    with ScriptedServer(_reply("openai")) as server:
        answers_to(made("openai", server.url, stream=False), [Request("1", "x", {"topic": "sums"})])
    assert "topic" not in server.requests[0].json


def test_ollama_gets_options_and_keep_alive() -> None:
    with ScriptedServer(_reply("ollama")) as server:
        answer(made("ollama", server.url, stream=False, params={"num_ctx": 512}, keep_alive="10m"))
    assert server.requests[0].json["options"] == {"num_ctx": 512}
    assert server.requests[0].json["keep_alive"] == "10m"


def test_cached_and_reasoning_tokens_are_counted() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 80},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    with ScriptedServer(response({"choices": [{"message": {"content": "ok"}}], "usage": usage})) as server:
        found = answer(made("openai", server.url, stream=False)).usage
    assert (found.input_tokens, found.output_tokens, found.cached_tokens, found.reasoning_tokens) == (
        100,
        50,
        80,
        30,
    )


def test_anthropics_cache_is_part_of_the_input() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": 7,
    }
    with ScriptedServer(response({"content": [{"type": "text", "text": "ok"}], "usage": usage})) as server:
        found = answer(made("anthropic", server.url, stream=False)).usage
    assert (found.input_tokens, found.cached_tokens, found.output_tokens) == (97, 80, 5)


def test_the_role_chunk_is_not_the_first_token() -> None:
    chunks = [
        {"choices": [{"delta": delta}]} for delta in ({"role": "assistant", "content": ""}, {"content": None})
    ]
    with ScriptedServer(events(*chunks, {"choices": [{"delta": {}, "finish_reason": "stop"}]})) as server:
        found = answer(made("openai", server.url))
    assert (found.output, found.first_token_seconds) == ("", None)


def test_calls_of_two_tools_are_told_apart_by_their_index() -> None:
    def part(index: int, **function: str) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": [{"index": index, "function": function}]}}]}

    script = events(
        part(0, name="a", arguments=""), part(1, name="b", arguments='{"y"'), part(0, arguments='{"x": 1}'),
        part(1, arguments=": 2}"),
    )  # fmt: skip
    with ScriptedServer(script) as server:
        found = answer(made("openai", server.url)).tool_calls
    assert [(call.name, dict(call.arguments)) for call in found] == [("a", {"x": 1}), ("b", {"y": 2})]


def test_a_server_that_does_not_stream_although_asked_to_is_understood() -> None:
    with ScriptedServer(_reply("openai")) as server:
        found = answer(made("openai", server.url))
    assert (found.output, found.first_token_seconds) == ("ok", None)


def test_the_key_and_headers_of_ones_own_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234")
    with ScriptedServer(_reply("openai")) as server:
        answer(made("openai", server.url, stream=False, headers={"X-Team": "blue"}))
    assert server.requests[0].headers["authorization"] == "bearer sk-1234"
    assert server.requests[0].headers["x-team"] == "blue"


def test_anthropic_gets_its_key_and_version() -> None:
    with ScriptedServer(_reply("anthropic")) as server:
        answer(made("anthropic", server.url, stream=False, api_key="ant-1234"))
    assert server.requests[0].headers["x-api-key"] == "ant-1234"
    assert server.requests[0].headers["anthropic-version"]


@pytest.mark.parametrize(("kind", "variable"), [(OpenAI, "OPENAI_API_KEY"), (Anthropic, "ANTHROPIC_API_KEY")])
def test_the_public_server_without_a_key_is_refused_before_anything_runs(kind: Any, variable: str) -> None:
    with pytest.raises(BadAgent, match=variable):
        kind(model="any")


def test_only_the_public_server_has_the_providers_prices() -> None:
    assert OpenAI(model="any", api_key="sk-1234").provider == "openai"
    assert OpenAI(model="any", base_url="http://127.0.0.1:1/v1").provider is None
    assert (
        Anthropic(model="any", api_key="sk-1234", base_url="https://api.anthropic.com/v1").provider
        == "anthropic"
    )


def test_only_ollama_is_free() -> None:
    assert (OpenAI.is_free, Anthropic.is_free, Ollama.is_free) == (False, False, True)


@pytest.mark.parametrize(
    ("kind", "variable"), [("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")]
)
def test_the_server_may_be_named_in_the_environment(
    sim: SimServer, monkeypatch: pytest.MonkeyPatch, kind: str, variable: str
) -> None:
    monkeypatch.setenv(variable, sim.url + PROTOCOLS[kind][1])
    assert answer(make_agent(AgentUse("a", kind, {"model": "sim-llm"})), SUM).output == "42"


def test_ollamas_host_may_be_named_as_ollama_does(sim: SimServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", sim.url.removeprefix("http://"))
    assert answer(make_agent(AgentUse("a", "ollama", {"model": "sim-llm"})), SUM).output == "42"


def test_the_version_is_the_model_that_answered() -> None:
    with ScriptedServer(response({"model": "m-2025", "choices": [{"message": {"content": "ok"}}]})) as server:
        agent = made("openai", server.url, stream=False)
        before = agent.found_version()
        answer(agent)
    assert (before, agent.found_version()) == ("sim-llm", "m-2025")


def test_a_request_that_is_given_up_leaves_the_agent_usable(sim: SimServer) -> None:
    agent = made("openai", sim.url)

    async def ask() -> str:
        agent.open()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await agent.answer(Request("1", SUM))
        found = await agent.answer(Request("2", SUM))
        await agent.close()
        return str(found.output)

    assert asyncio.run(ask()) == "42"


def test_a_stream_of_ollama_with_thinking_and_odd_lines_is_read() -> None:
    script = lines(
        {"message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
        {"message": {"content": "4"}, "done": False},
        {"done": True, "eval_count": 2},
    )
    with ScriptedServer(script) as server:
        found = answer(made("ollama", server.url))
    assert (found.output, found.usage.output_tokens) == ("4", 2)
