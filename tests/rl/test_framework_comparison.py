from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.command import AssayInline

from assay.builtin.experiments import framework
from assay.builtin.experiments.framework import FrameworkExperiment, FrameworkParams, count_code_lines
from assay.builtin.experiments.rl.probes import is_found, probe_features
from assay.plugin.experiment import ExperimentContext


def test_a_framework_that_is_not_installed_is_not_measured_and_the_rest_goes_on(
    assay_inline: AssayInline,
) -> None:
    words = ("--sweep", "framework=native,rllib", "--set", "samples=80", "--report", "framework_comparison")
    found = assay_inline(
        "run", "framework_comparison", *words, "--out", "out", "--processes", "1", "--isolation", "inline", "--json"
    ).json  # fmt: skip

    native, rllib = found["frameworks"]["results"]
    assert native["measured"] is True
    assert native["training_speed"] > 0
    assert native["parameters"] > 1000
    assert (rllib["measured"], rllib["training_speed"], rllib["final_reward"]) == (False, None, None)
    assert "not installed" in rllib["reason"]
    assert found["trials"][1]["metrics"] == {}
    written = json.loads((assay_inline.folder / "out" / "framework_comparison.json").read_text())
    fields = {"framework", "training_speed", "memory_usage", "setup_time", "setup_complexity", "final_reward"}
    assert all(fields <= result.keys() for result in written["results"])
    assert (assay_inline.folder / "out" / "framework_comparison.md").is_file()


@pytest.mark.parametrize("setting", ["framework=jax", "samples=1", "group_size=1", "group_size=501"])
def test_what_no_framework_can_do_is_refused(assay_inline: AssayInline, setting: str) -> None:
    assert setting.partition("=")[0] in assay_inline.run_inline("framework", "--set", setting).refusal


def test_start_and_memory_are_those_of_the_first_execution_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FrameworkExperiment, "_is_process_fresh", True)
    monkeypatch.setattr(framework, "peak_memory", lambda: 7)
    subject, context = FrameworkExperiment(), ExperimentContext("run", tmp_path, 42)
    subject.params = FrameworkParams(samples=16)
    runs = [subject.execute_once(context) for _ in range(2)]
    # Probes import more, so that what is read later is no figure of the training.
    monkeypatch.setattr(framework, "peak_memory", lambda: 9)
    first, second = (subject.read(run).measurements for run in runs)
    assert first["peak_bytes"] == 7
    assert first["first_step_seconds"] > 0
    assert not {"peak_bytes", "first_step_seconds"} & second.keys()
    assert "peak_bytes" not in subject.read(replace(runs[0], peak_bytes=None)).measurements
    assert context.applied == {"framework": "native"}


def test_only_lines_with_code_are_counted(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        '"""Docs.\n\nMore."""\n\n# A comment.\nx = [\n    1,\n]\n\n\ndef f():\n    """No."""\n    return x\n'
    )
    assert count_code_lines(script) == 5


def test_a_probe_finds_what_is_there_and_nothing_else() -> None:
    assert is_found("json:dumps(indent)")
    assert not is_found("json:dumps(nothing)")
    assert not is_found("no_such_module:f")
    assert all(fact["found"] for fact in probe_features("native"))
