"""Agents with a server are asked by the engine as `assay run` asks them, and judged by the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.load.faulty import Guest, faulty, with_length

from assay.load.build import Data, LoadOptions, build_prepared_load
from assay.load.quality import Checker
from assay.load.request import LoadPrompt, Target, body_for
from assay.load.targets import target_of_agent
from assay.model import AgentUse, Benchmark, Case, ScorerUse


def target(kind: str, environment: dict[str, str] | None = None, **options: Any) -> Target:
    return target_of_agent(AgentUse("a", kind, options), LoadOptions("a"), environment or {})


@pytest.mark.parametrize(
    ("kind", "options", "environment", "url"),
    [
        ("anthropic", {"base_url": "http://h:1"}, {}, "http://h:1/v1/messages"),
        ("anthropic", {"base_url": "http://h:1/v1/"}, {}, "http://h:1/v1/messages"),
        ("anthropic", {}, {"ANTHROPIC_BASE_URL": "http://h:2"}, "http://h:2/v1/messages"),
        ("anthropic", {}, {}, "https://api.anthropic.com/v1/messages"),
        ("ollama", {}, {"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/api/chat"),
        ("ollama", {}, {"OLLAMA_HOST": "127.0.0.1:9"}, "http://127.0.0.1:9/api/chat"),
        ("openai", {}, {"OPENAI_BASE_URL": ""}, "https://api.openai.com/v1/chat/completions"),
    ],
)
def test_the_address_is_the_agents_own(
    kind: str, options: dict[str, str], environment: dict[str, str], url: str
) -> None:
    assert target(kind, environment, **options).url == url


def test_an_http_agent_is_asked_by_its_protocol_and_a_page_by_the_input_alone() -> None:
    asked = target("http", url="http://h:1/ask", params={"top": 1})
    assert body_for(asked, LoadPrompt({"a": 1}, 7), 5) == {
        "id": "7",
        "input": {"a": 1},
        "params": {"top": 1},
        "max_tokens": 5,
    }
    assert body_for(Target("http://h:1/ask", "http"), LoadPrompt("x"), None) == {"input": "x"}


@pytest.mark.parametrize("kind", ["openai", "ollama", "anthropic"])
def test_messages_are_sent_as_messages_and_other_inputs_as_json(kind: str) -> None:
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    asked = target(kind, base_url="http://h:1", model="m")
    assert body_for(asked, LoadPrompt(chat), None)["messages"] == chat
    assert body_for(asked, LoadPrompt({"q": "é"}), None)["messages"] == [
        {"role": "user", "content": '{"q": "é"}'}
    ]


def test_instructions_within_a_conversation_are_sent_to_anthropic_as_system() -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    body = body_for(target("anthropic", base_url="http://h:1", model="m"), LoadPrompt(chat), None)
    assert (body["system"], body["messages"]) == ("Be brief.", chat[1:])


def test_anthropics_limit_is_the_agents_unless_the_load_has_one() -> None:
    asked = target("anthropic", base_url="http://h:1", model="m", params={"max_tokens": 7})
    assert [body_for(asked, LoadPrompt("x"), most)["max_tokens"] for most in (None, 3)] == [7, 3]


@pytest.mark.parametrize(
    ("kind", "body", "output"),
    [
        (b"text/plain", b"Paris\n", None),
        (b"application/json", b'{"output": "Paris"}', None),
        (b"application/json", b'{"found": [{"city": "Paris"}]}', "found.0.city"),
    ],
)
def test_what_an_http_agent_says_is_judged(kind: bytes, body: bytes, output: str | None) -> None:
    case = Case("c", "Capital of France?", expected="Paris")
    benchmark = Benchmark("b", "b", (case,), scorers=(ScorerUse("exact"),))
    data = Data([case.input], Checker([(benchmark, case)]))

    def talk(guest: Guest) -> None:
        assert json.loads(guest.request.partition(b"\r\n\r\n")[2])["input"] == case.input
        guest.say(with_length(body, b"content-type: %b\r\n" % kind))

    with faulty(talk, path="/ask") as server:
        options: dict[str, Any] = {"url": server.url, **({"output": output} if output else {})}
        asked = build_prepared_load(LoadOptions("a", requests=3), target("http", **options), data)
        found = asked.measure()
    assert found.quality is not None
    assert (found.quality.score.value, found.quality.scored) == (1.0, 3)
