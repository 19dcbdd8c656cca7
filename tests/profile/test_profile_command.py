"""`assay profile`: what it takes, what it refuses, and what it stores."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.command import AssayInline, Prepare

from assay.builtin.findings.profile import ProfileResults
from assay.model import Phase
from assay.store.store import Store

AGENTS = """
import time
from assay import span

def quick(question):
    with span("ask model", kind="llm", input=question) as call:
        time.sleep(0.2)
        call.record(output="4", input_tokens=8, output_tokens=1)
    return "4"

def broken(question):
    raise ValueError("no idea")
"""
SUITE = """
suite: sums
agents:
  - {name: quick, type: python, target: "agents.py:quick"}
  - {name: broken, type: python, target: "agents.py:broken"}
  - {name: past, type: recorded, answers: past.jsonl}
benchmarks:
  - {id: one, cases: [{id: a, input: 2 + 2, expected: "4"}, {id: b, input: 1 + 3, expected: "4"}]}
"""


def write_project(assay: AssayInline) -> None:
    assay.write("agents.py", AGENTS)
    assay.write("suite.yaml", SUITE)
    assay.write("past.jsonl", '{"id": "a", "output": "4"}\n{"id": "b", "output": "4"}\n')
    assay.write(
        "bench.py",
        "from assay import benchmark\n\n@benchmark(name='add', iterations=1)\ndef add():\n    return sum(range(1000))\n",
    )


def profile_quick(assay: AssayInline) -> None:
    write_project(assay)
    done = assay("profile", "quick", "--repetitions", "2", "--json")
    assay.write("profile.json", done.out)
    assert done.code == 0, done.err


def test_an_agent_is_put_through_the_only_suite_and_the_document_has_the_names_of_the_specification(
    assay_inline: AssayInline, prepare: Prepare
):
    prepare(assay_inline, profile_quick)
    document = json.loads((assay_inline.folder / "profile.json").read_text())
    assert document["agent_id"] == "quick"
    assert set(document["profile_data"]) == {
        "execution_phases",
        "bottlenecks",
        "resource_utilization",
        "token_analysis",
    }
    ask, other, harness = document["profile_data"]["execution_phases"]
    assert (ask["phase_name"], ask["calls"], harness["phase_name"]) == ("ask model", 1, "harness")
    assert ask["duration_ms"] > 190
    assert {"cpu_percent", "memory_mb", "io_operations"} <= set(ask["resource_usage"])
    assert document["profile_data"]["token_analysis"]["input_tokens"] == 8
    assert document["sampling_overhead"]["pairs"] == 2
    assert document["optimization_opportunities"] == []
    assert other["kind"] == "agent"


def test_sampled_executions_alternate_with_measured_ones_and_memory_comes_last(
    assay_inline: AssayInline, prepare: Prepare
):
    prepare(assay_inline, profile_quick)
    with Store.open(f"sqlite:///{assay_inline.folder}/.assay/assay.db") as store:
        (trial,) = store.run("last").trials
        made = sorted(store.executions(trial.id), key=lambda execution: execution.started)
    phases = [execution.phase.value for execution in made if execution.phase is not Phase.WARMUP]
    assert phases == ["measured", "profiled", "measured", "profiled", "profiled", "profiled"]


def test_the_terminal_shows_phases_bottlenecks_and_what_sampling_cost(
    assay_inline: AssayInline, prepare: Prepare
):
    prepare(assay_inline, profile_quick)
    shown = assay_inline("show", "last")
    assert shown.code == 0
    for part in ("Execution phases", "ask model", "Bottlenecks", "Utilisation", "Sampling overhead"):
        assert part in shown.out


def test_an_experiment_is_profiled_as_well(assay_inline: AssayInline):
    write_project(assay_inline)
    done = assay_inline("profile", "bench.py::add", "--repetitions", "1", "--no-memory", "--json")
    assert done.code == 0, done.err
    assert done.json["profile_data"]["execution_phases"][0]["phase_name"] == "agent"


def test_one_input_needs_no_suite(assay_inline: AssayInline):
    write_project(assay_inline)
    done = assay_inline("profile", "quick", "--input", "9 - 5", "--repetitions", "1", "--no-memory", "--json")
    assert done.json["trial"].endswith("quick")


def test_a_failing_agent_has_no_profile_and_exit_code_1(assay_inline: AssayInline):
    write_project(assay_inline)
    done = assay_inline(
        "profile", "broken", "--suite", "suite.yaml", "--repetitions", "1", "--no-memory", "--json"
    )
    assert done.code == 1
    assert '"profiles": []' in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nobody",),
        ("past", "--suite", "suite.yaml"),
        ("quick", "--suite", "suite.yaml", "--input", "x"),
        ("quick", "--suite", "nowhere"),
        ("quick", "--case", "zzz"),
    ],
)
def test_what_cannot_be_profiled_is_refused(
    assay_inline: AssayInline, arguments: tuple[str, ...], wording: Any
):
    write_project(assay_inline)
    # Without the list of what there is, whole or shortened: tests of the same process may have registered more.
    refusal = re.sub(
        r"( Did you mean '\w+'\?)? Experiments, specs and suites: [^.]*\.",
        "",
        assay_inline("profile", *arguments).refusal,
    )
    wording(refusal)


def test_an_agent_needs_a_suite_or_an_input(assay_inline: AssayInline, wording: Any):
    assay_inline.write("agents.py", AGENTS)
    assay_inline.write("agents.yaml", 'agents: [{name: quick, type: python, target: "agents.py:quick"}]')
    assay_inline.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')
    wording(assay_inline("profile", "quick").refusal)


def test_trials_without_a_sampled_execution_show_nothing_together():
    assert ProfileResults.read([]) is None
