"""Tools of a suite, written as OpenAI, Anthropic or we write them, reach every kind of agent in its own form."""

from __future__ import annotations

from typing import Any

import pytest
from tests.agents.scripted import ScriptedServer, response
from tests.command import AssayInline
from tests.suites.project import Stored, suite
from tests.wording import Wording

from assay.simulator import SimOptions, SimServer

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}
OURS = {"name": "look_up", "description": "Looks up.", "parameters": SCHEMA}
STYLES: dict[str, Any] = {
    "ours": OURS,
    "openai": {"type": "function", "function": OURS},
    "anthropic": {"name": "look_up", "description": "Looks up.", "input_schema": SCHEMA},
}
REPLIES = {
    "openai": response({"choices": [{"message": {"content": "ok"}}]}),
    "anthropic": response({"content": [{"type": "text", "text": "ok"}]}),
    "ollama": response({"message": {"content": "ok"}, "done": True}),
}
SENT: dict[str, Any] = {
    "openai": {"type": "function", "function": OURS},
    "anthropic": STYLES["anthropic"],
    "ollama": {"type": "function", "function": OURS},
}


def places(style: str) -> dict[str, dict[str, Any]]:
    """The places of a suite that tools can be written in: keys of the case, the benchmark and the agent."""
    tools = {"tools": [STYLES[style]]}
    return {"case": {"case": tools}, "benchmark": {"benchmark": tools}, "agent": {"agent": tools}}


@pytest.mark.parametrize(
    ("style", "place", "dialect"),
    [
        *(("openai", place, dialect) for place in ("case", "benchmark", "agent") for dialect in SENT),
        ("ours", "case", "openai"),
        ("anthropic", "case", "openai"),
    ],
)
def test_tools_are_sent_in_the_form_of_the_server(
    assay_inline: AssayInline, style: str, place: str, dialect: str
) -> None:
    keys = places(style)[place]
    with ScriptedServer(REPLIES[dialect]) as server:
        base = server.url + ("/v1" if dialect == "openai" else "")
        agent = {"name": "a", "type": dialect, "model": "m", "base_url": base, "stream": False}
        case = {"input": "hi", "expected": "ok", **keys.get("case", {})}
        text = suite([case], [{**agent, **keys.get("agent", {})}], keys.get("benchmark"))
        assay_inline.write("s.yaml", text)
        done = assay_inline.run_inline("s.yaml")

    assert done.code == 0, done.err
    assert server.requests[0].json["tools"] == [SENT[dialect]]


def test_a_model_calls_a_tool_that_was_written_as_openai_writes_it(assay_inline: AssayInline) -> None:
    with SimServer(SimOptions(ttft=0.001, itl=0.0, skill=1.0, tokens=2), in_thread=True) as server:
        agent = {"name": "a", "type": "openai", "model": "m", "base_url": server.url + "/v1"}
        case = {
            "input": '[[call: look_up {"word": "tea"}]]',
            "tools": [STYLES["openai"]],
            "expected_calls": [{"name": "look_up", "arguments": {"word": "tea"}}],
        }
        assay_inline.write("s.yaml", suite([case], [agent], {"scorer": "tool_calls"}))
        done = assay_inline.run_inline("s.yaml")

    assert done.code == 0, done.err
    assert Stored(assay_inline.folder).metric("score") == {"1": 1.0}


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([{"description": "nameless"}], "1 'name'"),
        ([OURS, {"type": "function", "function": {}}], "2 'name'"),
        ([{"type": "web_search", "function": {"name": "x"}}], "'web_search'"),
        ([{"name": "x", "parameters": "none"}], "JSON"),
    ],
)
@pytest.mark.parametrize("place", ["case", "benchmark"])
def test_a_tool_that_cannot_be_read_is_reported_with_its_line(
    assay_inline: AssayInline, wording: Wording, tools: list[Any], names: str, place: str
) -> None:
    case = {"input": "hi", "expected": "ok", **({"tools": tools} if place == "case" else {})}
    assay_inline.write("s.yaml", suite([case], ["nop"], {"tools": tools} if place == "benchmark" else None))

    told = assay_inline.run_inline("s.yaml").refusal
    assert "s.yaml:1: benchmarks.0" in told
    assert [name for name in names.split() if name not in told] == []
    wording(told, near="s.yaml:1: ")
