"""How often a suite that does not say asks an agent, and what a run says about that before it starts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import numbers, python_agent
from tests.wording import Wording

SIZE = 4
PRICED = {"price": {"request": 0.25}}
OPENAI = {"type": "openai", "model": "my-own-model", "api_key": "${KEY:-none}"}
AGENTS: dict[str, tuple[dict[str, Any], int]] = {
    "local function": ({"type": "python", "target": "agents.py:echo"}, 1),
    "function with a price": ({"type": "python", "target": "agents.py:echo", **PRICED}, 0),
    "function with the price 0": (
        {"type": "python", "target": "agents.py:echo", "price": {"request": 0.0}},
        1,
    ),
    "public openai": (OPENAI, 0),
    "openai server here": ({**OPENAI, "base_url": "http://127.0.0.1:9/v1"}, 1),
    "priced model behind a gateway here": (
        {**OPENAI, "model": "gpt-4o-mini", "base_url": "http://localhost:9/v1"},
        0,
    ),
    "openai server elsewhere": ({**OPENAI, "base_url": "http://gpu.example.com/v1"}, 0),
    "public anthropic": ({"type": "anthropic", "model": "claude", "api_key": "${KEY:-none}"}, 0),
    "ollama here": ({"type": "ollama", "model": "gemma3", "base_url": "http://127.0.0.1:9"}, 1),
    "ollama elsewhere": ({"type": "ollama", "model": "gemma3", "base_url": "http://gpu.example.com"}, 0),
    "web agent here": ({"type": "http", "url": "http://[::1]:9/ask"}, 1),
    "web agent elsewhere": ({"type": "http", "url": "https://example.com/ask"}, 0),
    "plug-in that says it is remote": ({"type": "plugged.py::Faraway"}, 0),
    "plug-in that does not say": ({"type": "plugged.py::Nearby"}, 1),
}
PLUGGED = """
class Nearby:
    is_simulated = is_free = False
    def open(self): ...
    def close(self): ...
    def answer(self, request): ...
    def found_version(self): return ""

class Faraway(Nearby):
    is_remote = True
"""


def _suite(agents: list[dict[str, Any]], **benchmark: Any) -> str:
    return json.dumps(
        {"suite": "s", "benchmarks": [{"id": "b", "cases": numbers(SIZE), **benchmark}], "agents": agents}
    )


@pytest.fixture
def project(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("agents.py", "def echo(text): return text")
    assay_inline.write("plugged.py", PLUGGED)
    return assay_inline


@pytest.mark.parametrize("agent", AGENTS)
def test_warm_ups_are_left_out_for_agents_that_are_remote_or_have_a_price(
    project: AssayInline, agent: str
) -> None:
    definition, warmups = AGENTS[agent]
    project.write("s.yaml", _suite([{"name": "one", **definition}]))
    for options, expected in (((), warmups), (("--warmup", "2"), 2), (("--warmup", "0"), 0)):
        planned = project.run_inline("s.yaml", "--dry-run", "--json", *options).json
        assert planned["executions"] == 3 * SIZE + expected


def test_what_a_suite_says_about_warm_ups_and_repetitions_counts_for_every_agent(
    project: AssayInline,
) -> None:
    agents = [python_agent("echo"), {"name": "paid", "type": "python", "target": "agents.py:echo", **PRICED}]

    def executions(**iterations: int) -> list[int]:
        project.write("s.yaml", _suite(agents, iterations=iterations))
        return [
            trial["executions"]
            for trial in project.run_inline("s.yaml", "--dry-run", "--json").json["trials"]
        ]

    assert executions(warmup=2) == [3 * SIZE + 2, 3 * SIZE + 2]
    assert executions(measured=5) == [5 * SIZE + 1, 5 * SIZE]
    assert executions(warmup=0, measured=1) == [SIZE, SIZE]


def test_a_spec_with_repetitions_alone_keeps_the_default_warm_ups(project: AssayInline) -> None:
    agents = [python_agent("echo"), {"name": "paid", "type": "python", "target": "agents.py:echo", **PRICED}]
    project.write("s.yaml", _suite(agents))
    spec = {"suite": "s.yaml", "agents": ["echo", "paid"], "iterations": {"measured": 2}}
    project.write("spec.yaml", json.dumps(spec))
    trials = project.run_inline("spec.yaml", "--dry-run", "--json").json["trials"]
    assert [trial["executions"] for trial in trials] == [2 * SIZE + 1, 2 * SIZE]


def test_a_run_says_how_many_executions_it_makes_and_what_they_cost_before_it_starts(
    project: AssayInline, wording: Wording
) -> None:
    agents = [python_agent("echo"), {"name": "paid", "type": "python", "target": "agents.py:echo", **PRICED}]
    project.write("s.yaml", _suite(agents, limits={"usd": 0.5}))
    first = project.run_inline("s.yaml", "--agent", "paid").err.splitlines()[0]
    assert "12 " in first
    assert "$6.00" in first
    wording(first)
    second = project.run_inline("s.yaml", "--agent", "paid", "--json").err.splitlines()[0]
    assert "$3.00" in second
    both = project.run_inline("s.yaml").err.splitlines()[0]
    assert re.findall(r"\d+", both)[:3] == ["2", "25", "1"]  # trials, executions, warm-ups
    wording(both)
    assert "executions" not in project.run_inline("s.yaml", "--quiet").err
