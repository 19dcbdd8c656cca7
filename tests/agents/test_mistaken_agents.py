"""Agents that cannot work are refused with the file, line and key of the mistake, before anything runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.command import AssayInline

HTTP = {"name": "web", "type": "http", "url": "http://127.0.0.1:9/"}
CHAT = {
    "name": "gpt",
    "type": "openai",
    "model": "m",
    "base_url": "http://127.0.0.1:9/v1",
    "api_key": "${NONE:-test}",
}


@pytest.mark.parametrize(
    ("definition", "key"),
    [
        (HTTP | {"headers": ["${NONE:-x}"]}, "headers"),
        (HTTP | {"headers": "x"}, "headers"),
        (HTTP | {"retries": "many"}, "retries"),
        (HTTP | {"backoff": [1]}, "backoff"),
        (HTTP | {"max_bytes": {}}, "max_bytes"),
        (HTTP | {"url": 3}, "url"),
        (CHAT | {"base_url": ["http://127.0.0.1:9/v1"]}, "base_url"),
        (CHAT | {"params": [1]}, "params"),
        (CHAT | {"model": None}, "model"),
        (CHAT | {"stream": "perhaps"}, "stream"),
        ({"name": "c", "type": "command", "command": 5}, "command"),
        ({"name": "c", "type": "command", "command": ["cat"], "mode": "twice"}, "mode"),
        ({"name": "c", "type": "command", "command": ["cat"], "env": ["A=b"]}, "env"),
        ({"name": "s", "type": "simulated", "quality": "good"}, "quality"),
        ({"name": "s", "type": "simulated", "tokens": [3]}, "tokens"),
        ({"name": "p", "type": "python", "target": ["a.py:f"]}, "target"),
        ({"name": "r", "type": "recorded", "answers": {"a": 1}}, "answers"),
        ({"name": "n\0m", "type": "stub"}, "name"),
    ],
)  # fmt: skip
def test_an_option_of_a_wrong_type_is_named_with_its_line(
    assay_inline: AssayInline, definition: dict[str, Any], key: str
) -> None:
    assay_inline.write("agents.json", json.dumps({"agents": [definition]}, indent=1))

    for command in ("validate", "agent add"):
        said = assay_inline(*command.split(), "agents.json").refusal
        assert "agents.json:" in said
        assert f"agents.0.{key}: " in said


@pytest.mark.parametrize(
    "url",
    [
        "http://a..b/",
        f"http://{'a' * 70}.com/",
        "http://.",
        "http://é..é/",
        "http://a b/",
        "http://\x01/",
        "http://[::1",
    ],
)
def test_a_url_without_a_possible_host_is_refused(assay_inline: AssayInline, url: str) -> None:
    agents = [
        HTTP | {"url": url},
        CHAT | {"base_url": url},
        {"name": "l", "type": "ollama", "model": "m", "base_url": url},
    ]
    for agent in agents:
        assay_inline.write("agents.json", json.dumps({"agents": [agent]}))
        refusal = assay_inline("validate", "agents.json").refusal
        assert " URL" in refusal
    assert "Traceback" not in assay_inline("load", url, "--requests", "1").refusal


def test_a_class_of_ones_own_that_raises_is_named(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "mine.py", "class Mine:\n    def __init__(self, size=1):\n        raise ValueError('no such size')\n"
    )
    assay_inline.write("agents.yaml", "agents: [{name: own, type: 'mine.py::Mine'}]\n")

    said = assay_inline("validate", "agents.yaml").refusal

    assert "'own'" in said
    assert "no such size" in said


@pytest.mark.parametrize("place", ["suite", "benchmark", "agent", "tag"])
def test_a_name_with_a_nul_is_refused_with_its_place(assay_inline: AssayInline, place: str) -> None:
    names = dict.fromkeys(("suite", "benchmark", "agent", "tag"), "fine") | {place: "a\0b"}
    suite = {
        "suite": names["suite"],
        "tags": [names["tag"]],
        "agents": [{"name": names["agent"], "type": "stub", "answer": "4"}],
        "benchmarks": [{"id": names["benchmark"], "scorer": "exact", "cases": [{"input": "2\0+2", "expected": "4"}]}],
    }  # fmt: skip
    assay_inline.write("suite.json", json.dumps(suite))

    assert "NUL" in assay_inline("validate", "suite.json").refusal
