"""What a suite states as its baseline and its leading metrics reaches the view and every report."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import numbers, python_agent, suite
from tests.wording import Wording

AGENTS = """
import time

def right(text):
    return text

def napping(text):
    time.sleep(0.05)
    return text

def busy(text):
    until = time.process_time() + 0.05
    while time.process_time() < until: pass
    held = bytearray(80_000_000)
    return text
"""
TWICE = {"iterations": {"warmup": 0, "measured": 2}}


@pytest.fixture
def assay(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("agents.py", AGENTS)
    return assay_inline


def view(assay: AssayInline, *columns: str) -> dict[str, tuple[Any, ...]]:
    """Agent to what the view says of it."""
    with sqlite3.connect(assay.folder / ".assay" / "assay.db") as connection:
        rows = connection.execute(f"SELECT agent_id, {', '.join(columns)} FROM benchmark_executions")
        return {row[0]: row[1:] for row in rows}


def ran(assay: AssayInline, agents: list[Any], **keys: Any) -> list[Any]:
    benchmark = {**TWICE, **keys.pop("benchmark", {})}
    assay.write("s.yaml", suite(numbers(2), agents, benchmark=benchmark, **keys))
    trials: list[Any] = assay("run", "s.yaml", "--json").json["trials"]
    return trials


def test_baseline_scores_give_the_deviation_of_each_agent_from_its_own_else_the_first(
    assay: AssayInline, wording: Wording
) -> None:
    scores = [{"agent_id": "known", "scores": {"b": 0.5}}, {"agent_id": "right", "scores": {"b": 0.8}}]
    only_accuracy = {
        "rubric": {"weights": {"speed": 0, "efficiency": 0, "cost": 0, "reliability": 0, "accuracy": 1}}
    }
    trials = ran(
        assay,
        [python_agent("right"), python_agent("napping"), {"name": "empty", "type": "nop"}],
        baseline_scores=scores,
        benchmark=only_accuracy,
    )
    found = {trial["agent"]["name"]: trial["deviation_from_baseline"] for trial in trials}
    # Overall is 1.0, 1.0 and 0.0; of `napping` and `empty` nothing is known, so the first entry counts.
    assert found == pytest.approx({"right": 1 / 0.8 - 1, "napping": 1 / 0.5 - 1, "empty": -1.0})
    assert {agent: row[0] for agent, row in view(assay, "deviation_from_baseline").items()} == pytest.approx(
        found
    )
    shown = assay("show", "last", COLUMNS="200").out
    assert "+25.0 %" in shown
    wording(shown, near="+25.0 %")


def test_without_a_baseline_there_is_no_deviation(assay: AssayInline) -> None:
    assert "deviation_from_baseline" not in ran(assay, [python_agent("right")])[0]
    assert view(assay, "deviation_from_baseline")["right"] == (None,)


def test_cpu_memory_and_correctness_are_in_the_view_without_any_instrument(assay: AssayInline) -> None:
    agents = [python_agent("napping"), python_agent("busy"), {"name": "empty", "type": "nop"}]
    ran(assay, agents, benchmark={"scorer": ["exact"]})
    found = view(assay, "cpu_usage_percent", "memory_peak_mb", "output_correctness")
    assert found["napping"][0] < found["busy"][0] <= 110
    assert 5 < found["napping"][1] < found["busy"][1]
    assert found["busy"][1] - found["napping"][1] == pytest.approx(80e6 / 2**20, abs=15)
    assert (found["busy"][2], found["empty"][2]) == (100.0, 0.0)


def test_code_experiments_fill_the_view_too(assay: AssayInline) -> None:
    assay.write(
        "work.py",
        "import time\nfrom assay import Experiment, register_experiment\n"
        "@register_experiment('nap')\nclass Nap(Experiment):\n"
        "    def execute_once(self, context): time.sleep(0.02)\n"
        "@register_experiment('burn')\nclass Burn(Experiment):\n"
        "    def execute_once(self, context):\n"
        "        until = time.process_time() + 0.02\n"
        "        while time.process_time() < until: pass\n",
    )
    assert assay("run", "work.py", "--repetitions", "5", "-q").code == 0
    with sqlite3.connect(assay.folder / ".assay" / "assay.db") as connection:
        query = "SELECT benchmark_id, cpu_usage_percent, memory_peak_mb FROM benchmark_executions"
        found = {name: (cpu, memory) for name, cpu, memory in connection.execute(query)}
    assert found["nap"][0] < found["burn"][0] <= 105
    assert all(memory > 5 for _, memory in found.values())


def test_reports_lead_with_the_metrics_that_the_benchmark_measures(
    assay: AssayInline, wording: Wording
) -> None:
    leads = {"metrics_measured": ["cpu_seconds", "score", "ttft"]}
    trial = ran(assay, [python_agent("right")], benchmark=leads)[0]
    assert list(trial["metrics"])[:2] == ["cpu_seconds", "score"]
    shown = assay("show", "last", COLUMNS="200").out
    [heading] = [
        line.split() for line in shown.splitlines() if line.startswith("Agent") and "cpu_seconds" in line
    ]
    assert heading[1:3] == ["cpu_seconds", "score"]
    [unmeasured] = [line for line in shown.splitlines() if "'ttft'" in line]
    assert "metrics_measured" in unmeasured
    wording(unmeasured)
    assay("report", "last", "--format", "md,html", "--out", "out")
    page = (assay.folder / "out" / "report.md").read_text()
    row = r"^\| \w+ \| cpu\\_seconds \| score \|"
    assert re.search(row, page, re.MULTILINE)
    page = (assay.folder / "out" / "report.html").read_text()
    columns = re.findall(r'<th[^>]*><button type="button">([^<]*)</button>', page)
    assert columns[columns.index("pass@2") + 1 :][:2] == ["cpu_seconds", "score"]
