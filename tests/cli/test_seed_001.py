"""Experiments, specs, instruments and reporters written for the framework of seed 001 work with their imports changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command import AssayInline

EXPERIMENT = '''\
import random
import time
from typing import Any, Dict, Optional

from assay import Experiment, ExperimentContext, register_experiment


@register_experiment("example_benchmark")
class ExampleBenchmark(Experiment):
    """Adds up a list of random numbers, several times."""

    def __init__(
        self,
        data_size: int = 1000,
        iterations: int = 100,
        parameters: Optional[Dict[str, Any]] = None,
    ):
        super().__init__(parameters or {})
        self.params.update({"data_size": data_size, "iterations": iterations})
        self.test_data = None

    def setup(self, context: ExperimentContext) -> None:
        self.test_data = [random.random() for _ in range(self.params["data_size"])]

    def execute_once(self, context: ExperimentContext) -> Dict[str, Any]:
        start_time = time.time()
        result = 0
        for _ in range(self.params["iterations"]):
            result += sum(self.test_data)
        return {
            "duration": time.time() - start_time,
            "result_sum": result,
            "data_size": self.params["data_size"],
            "custom_setting": self.params["custom_setting"],
        }

    def teardown(self, context: ExperimentContext) -> None:
        self.test_data = None
'''

BASELINE = """\
experiment: example_benchmark
params:
  data_size: 50
  iterations: 2
  parameters:
    custom_setting: true
    test_mode: "baseline"
iterations:
  warmup: 1
  measured: 3
instrumentation:
  - timing
  - psutil
output_dir: benchmarks/results/example_benchmark
tags: [custom, baseline]
notes: "Baseline test"
seed: 42
"""

SWEEP = """\
experiment: example_benchmark
params:
  data_size: [10, 20]
  iterations: [1, 2, 3]
  parameters:
    custom_setting: true
iterations:
  warmup: 1
  measured: 2
instrumentation:
  - timing
  - psutil
output_dir: benchmarks/results/example_benchmark_sweep
tags: [custom, sweep]
seed: 42
"""

INSTRUMENT = '''\
import time
from contextlib import contextmanager
from typing import Any, Dict


@contextmanager
def my_custom_instrument(context: Dict[str, Any]):
    """Writes what it saw into a dictionary."""
    start_time = time.time()
    try:
        yield
    finally:
        context["my_custom_metric"] = {"duration": time.time() - start_time, "memory_delta": 7}
'''

REPORTER = """\
def generate_custom_report(results, output_dir: str) -> None:
    with open(f"{output_dir}/custom_report.txt", "w") as f:
        for result in results:
            f.write(f"{result.name} {result.metrics.get('duration_s', {}).get('mean', 0):.9f} {result.status}\\n")
"""


@pytest.fixture
def project(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("example_benchmark.py", EXPERIMENT)
    assay_inline.write("specs/baseline.yaml", BASELINE)
    assay_inline.write("specs/sweep.yaml", SWEEP)
    return assay_inline


def test_the_baseline_runs_and_leaves_its_result_in_its_output_folder(project: AssayInline) -> None:
    result = project("run", "specs/baseline.yaml", "--load", "example_benchmark.py", "--json").json

    [trial] = result["trials"]
    [folder] = (project.folder / "specs/benchmarks/results/example_benchmark").iterdir()
    written = json.loads((folder / f"{folder.name}.json").read_text())
    assert (result["status"], result["seed"], sorted(result["tags"])) == (
        "completed",
        42,
        ["baseline", "custom"],
    )
    assert trial["parameters"]["parameters"] == {"custom_setting": True, "test_mode": "baseline"}
    assert folder.name.startswith("example_benchmark_2")
    assert (written["name"], written["iterations"]) == ("example_benchmark", {"warmup": 1, "measured": 3})
    assert set(written["metrics"]["duration_s"]) >= {"mean", "p50", "p95", "p99"}
    assert len(written["iteration_metrics"]) == 3
    assert (folder / "README.md").read_text()


def test_lists_in_params_are_swept_and_summarised(project: AssayInline) -> None:
    result = project("run", "specs/sweep.yaml", "--load", "example_benchmark.py", "--json").json

    points = [
        (trial["parameters"]["data_size"], trial["parameters"]["iterations"]) for trial in result["trials"]
    ]
    out = project.folder / "specs/benchmarks/results/example_benchmark_sweep"
    assert points == [(10, 1), (10, 2), (10, 3), (20, 1), (20, 2), (20, 3)]
    assert "example_benchmark" in (out / "SWEEP_SUMMARY.md").read_text()
    assert len(list(out.glob("*/README.md"))) == 6


def test_the_experiment_is_found_through_the_spec(project: AssayInline) -> None:
    project.write("specs/baseline.yaml", BASELINE + "load: ../example_benchmark.py\n")

    assert project("run", "specs/baseline.yaml", "--json").json["status"] == "completed"


def test_the_experiment_is_found_through_the_settings(project: AssayInline) -> None:
    project.write("assay.toml", '[assay]\nload = ["*_benchmark.py"]\n')

    result = project("run", "baseline.yaml", "--json", cwd=project.folder / "specs").json

    assert result["status"] == "completed"
    assert (project.folder / ".assay" / "assay.db").exists()


def test_a_context_manager_that_takes_a_dictionary_is_an_instrument(project: AssayInline) -> None:
    project.write("instrument.py", INSTRUMENT)
    project.write("specs/baseline.yaml", BASELINE.replace("  - psutil", "  - my_custom_instrument"))

    result = project(
        "run", "specs/baseline.yaml", "--load", "example_benchmark.py", "--load", "instrument.py", "--json"
    ).json

    metrics = result["trials"][0]["metrics"]
    assert [metrics[name]["median"] for name in metrics if "memory_delta" in name] == [7]


def test_a_function_of_results_and_a_folder_is_a_reporter(project: AssayInline, tmp_path: Path) -> None:
    project.write("reporter.py", REPORTER)

    result = project(
        "run", "specs/sweep.yaml", "--load", "example_benchmark.py", "--load", "reporter.py",
        "--report", "generate_custom_report", "--out", "out", "--json",
    ).json  # fmt: skip

    lines = (tmp_path / "out" / "custom_report.txt").read_text().splitlines()
    assert result["files"] == ["out/custom_report.txt"]
    assert len(lines) == 6
    assert all(line.startswith("example_benchmark") and line.endswith(" success") for line in lines)
    assert all(float(line.split()[-2]) > 0 for line in lines)


def test_the_reporter_works_on_a_stored_run_too(project: AssayInline, tmp_path: Path) -> None:
    project.write("reporter.py", REPORTER)
    project("run", "specs/baseline.yaml", "--load", "example_benchmark.py", "--json")

    done = project(
        "report",
        "last",
        "--format",
        "generate_custom_report",
        "--load",
        "reporter.py",
        "--out",
        "later",
        "--json",
    )

    assert done.json["files"] == ["later/custom_report.txt"]
