"""The finding `profile`: what every format shows of sampled executions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.builtin.findings.profile import ProfileResults
from assay.model import Artifact, Execution, Phase, Status, TrialReport
from assay.testing import FindingContract
from assay.testing.samples import sample_report

ROOT = Path(__file__).parents[2]


def sampled_trials() -> Sequence[TrialReport]:
    """A trial with one sampled execution of a second, which slept for most of it."""
    trial = sample_report().trials[0]
    frame = {"name": "answer", "file": "agent.py", "line": 7, "library": False}
    samples = {
        "shared": {"frames": [frame, {"name": "[sleep]"}]},
        "profiles": [
            {"name": "MainThread", "startValue": 0.0, "samples": [[0, 1], [0]], "weights": [0.8, 0.2]}
        ],
    }
    rows = [[n / 10, n / 50, 1e6, n, 0] for n in range(11)]
    record = {"repetition": 0, "seconds": 1.0, "problem": "", "cores": 2, "rows": rows, "parsing": []}
    spans = [["wait", "agent", 0.0, 0.9], ["harness", "harness", 1.0, 0.01]]
    execution = Execution(1, 0, Phase.PROFILED, 0, Status.OK, 0.0, {"seconds": 1.0}, detail={"spans": spans})
    artifacts = (
        Artifact(1, "profile-000.json", "profile", json.dumps(record).encode()),
        Artifact(1, "profile-000.speedscope.json", "speedscope", json.dumps(samples).encode()),
    )
    return [replace(trial, executions=[execution], artifacts=artifacts)]


class TestProfileFinding(FindingContract):
    finding = "profile"

    def trials(self) -> Sequence[TrialReport]:
        return sampled_trials()


def test_the_headline_is_the_largest_saving_and_beneath_it_stands_why(wording: Any) -> None:
    finding = ProfileResults.read(sampled_trials())
    assert finding is not None
    headline = finding.headline()
    assert headline is not None
    wording(headline.title)
    (found,) = finding.document()["profiles"][0]["optimization_opportunities"]
    assert (found["category"], found["location"], found["saved_ms"]) == ("sleep", "agent.py:7 answer", 800)


def test_the_flame_graph_has_the_width_of_the_samples() -> None:
    finding = ProfileResults.read(sampled_trials())
    assert isinstance(finding, ProfileResults)
    outer, waiting = finding.profiles[0].flame
    assert (outer.name, outer.seconds, outer.depth) == ("answer (agent.py)", 1.0, 0)
    assert (waiting.kind, waiting.seconds, waiting.depth) == ("waiting", 0.8, 1)
    charts = [chart.name for section in finding.sections(with_charts=True) for chart in section.charts()]
    assert [name.split("-")[1] for name in charts] == ["spans", "flame"]


def test_a_damaged_artifact_is_skipped() -> None:
    (trial,) = sampled_trials()
    broken = replace(trial, artifacts=(Artifact(1, "profile-000.json", "profile", b"{"),))
    assert ProfileResults.read([broken]) is None


def test_the_agent_of_the_guide_runs() -> None:
    page = (ROOT / "docs" / "profile.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)  # the code of our own page
    answer = names["answer"]
    assert callable(answer)
    assert answer("fjords") == "PAGES ABOUT FJORDS\nFJORDS"
