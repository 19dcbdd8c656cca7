"""A distribution that somebody else could have published extends Assay at every point it offers."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sim_llm.asking import quick

from assay.cli.plugin import KINDS, group_of

COMMAND = Path(sys.executable).with_name("assay")
SPEC = """\
experiment: sample_experiment
params: {size: 200}
sweep: {presorted: [true, false]}
iterations: {warmup: 1, measured: 3}
instrumentation: [timing, {name: sample_instrument, generation: 0}]
executor: sample_executor
"""
CASES = [{"id": f"c{n}", "input": f"What is {n} + 7?", "expected": str(n + 7)} for n in range(5)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of each kind, as `assay plugin new` writes it."""
    folder = tmp_path_factory.mktemp("source")
    for kind in KINDS:
        subprocess.run(
            [COMMAND, "plugin", "new", f"sample-{kind}", "--kind", kind, "-q"], cwd=folder, check=True
        )
    return folder


@pytest.fixture(scope="module")
def site(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the packages were installed into, away from this environment."""
    folder = tmp_path_factory.mktemp("site")
    installer = ["uv", "pip"] if importlib.util.find_spec("uv") else ["pip"]
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    cache = str(tmp_path_factory.mktemp("cache"))  # not everybody has a home that may be written to
    packages = [str(source / f"sample-{kind}") for kind in KINDS]
    subprocess.run(
        [sys.executable, "-m", *installer, "install", *options, *packages],
        env={**os.environ, "UV_CACHE_DIR": cache, "PIP_CACHE_DIR": cache},
        check=True,
    )
    return folder


def assay(site: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments, "--json"],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(site), "ASSAY_DB": f"sqlite:///{cwd / 'assay.db'}"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    """What a command that went well printed as JSON."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_installed_plug_ins_are_listed_with_their_distributions(site: Path, tmp_path: Path) -> None:
    listed = answer(assay(site, tmp_path, "list"))

    for kind in KINDS:
        assert {"name": f"sample_{kind}", "source": f"sample-{kind}"} in listed[group_of(kind)]


def run_tests(site: Path, folder: Path, *options: str) -> str:
    """What pytest prints in a folder. One start for the tests of many packages saves most of their time."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "pythonpath=", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_tests_of_an_installed_plug_in_pass_in_its_folder(source: Path, site: Path) -> None:
    assert "passed" in run_tests(site, source / "sample-scorer")


def test_the_tests_of_all_installed_plug_ins_pass(source: Path, site: Path) -> None:
    told = run_tests(site, source, "--import-mode=importlib", "-rp")

    assert {kind for kind in KINDS if f"PASSED sample-{kind}/" in told} == set(KINDS)


def test_a_suite_uses_an_agent_and_a_scorer_from_outside(site: Path, tmp_path: Path) -> None:
    agents = [{"name": "loud", "type": "sample_agent", "suffix": " indeed"}]
    cases = [
        {"id": "a", "input": "yes", "expected": "Yes indeed"},
        {"id": "b", "input": "no", "expected": "no maybe"},
    ]
    benchmark = {"id": "b", "cases": cases, "scorer": "sample_scorer"}
    (tmp_path / "s.yaml").write_text(json.dumps({"suite": "s", "agents": agents, "benchmarks": [benchmark]}))

    answer(assay(site, tmp_path, "run", "s.yaml", "--repetitions", "1"))

    shown = {case: answer(assay(site, tmp_path, "show", "last", "--case", case)) for case in "ab"}
    scores = {case: json.dumps(document) for case, document in shown.items()}
    assert "YES indeed" in scores["a"]
    assert "missing: maybe" in scores["b"]


def test_a_run_uses_an_experiment_an_instrument_an_executor_and_a_reporter_from_outside(
    site: Path, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)

    result = answer(assay(site, tmp_path, "run", str(spec), "--report", "sample_reporter", "--out", "out"))

    summary = next((tmp_path / "out").rglob("summary.txt")).read_text()
    assert result["status"] == "completed"
    assert len(result["trials"]) == 2
    assert summary.count(": 3 ok") == 2
    assert "sorted_numbers: 200" in summary
    assert "gc_collections: " in summary


def test_a_finding_from_outside_is_reported_with_the_experiment_of_its_name(
    site: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "from assay.plugin import Experiment, register_experiment\n"
        "@register_experiment('sample_finding')\n"
        "class Mine(Experiment):\n"
        "    def __init__(self, size: int = 1):\n"
        "        self.size = size\n"
        "    def execute_once(self, context):\n"
        "        return {'total': sum(range(self.size))}\n"
    )

    result = answer(
        assay(site, tmp_path, "run", "sample_finding", "--load", "mine.py", "--sweep", "size=1,100000")
    )

    ratios = result["sample_finding"]["times_fastest"]
    assert ratios.keys() == {trial["name"] for trial in result["trials"]}
    assert min(ratios.values()) == 1.0


def test_a_scenario_from_outside_is_carried_out_judged_and_stored_like_our_own(
    site: Path, tmp_path: Path
) -> None:
    suite = {"suite": "s", "benchmarks": [{"id": "b", "cases": CASES, "scorer": "exact"}]}
    (tmp_path / "s.yaml").write_text(json.dumps(suite))
    asked = ("--scenario", "sample_scenario", "--quick", "--base", "10", "--slo", "latency_p95<60s")

    with quick(skill=1.0) as server:
        done = answer(assay(site, tmp_path, "stress", f"{server.url}/v1", *asked, "--dataset", "s.yaml"))

    [found] = done["scenarios"]
    # Two bursts of a second at ten a second, and nothing while it is silent
    assert (found["requests_offered"], found["requests_good"], found["duration_s"]) == (20, 20, 4.0)
    assert found["quality"]["score"] == 1.0
    assert found["judgements"]["wakes_in"]["unit"] == "s"
    assert found["parameters"] == {"bursts": 2, "seconds": 1.0}
    stored = answer(assay(site, tmp_path, "show", "last"))
    assert stored["stress"]["scenarios"] == done["scenarios"]


def test_params_of_a_plug_in_are_checked_before_anything_runs(site: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.replace("size: 200", "size: many"))

    done = assay(site, tmp_path, "run", str(spec))

    assert done.returncode == 2
    assert "size" in done.stderr
