"""A stress test that is cut short is resumed: scenarios that are stored stay, the others are run."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from tests.execute.carrying import eventually
from tests.execute.running import LONG, Running
from tests.sim_llm.asking import quick
from tests.wording import Wording

from assay.analysis.load.stress import stress_findings
from assay.builtin.scenarios.high_load import HighLoad
from assay.builtin.scenarios.large_inputs import LargeInputs
from assay.errors import PlanError
from assay.load.build import LoadOptions
from assay.model import RunState
from assay.model.stress import ScenarioFinding, StressFinding
from assay.pipeline import stress_resumption
from assay.pipeline.report import report_of
from assay.pipeline.run import resume
from assay.pipeline.stress import Sizes, StressObserver, StressOptions, run_stress
from assay.pipeline.stress_resumption import resume_stress
from assay.spec.settings import find_settings
from assay.store.store import Store

pytestmark = pytest.mark.real_starts
"""What is below the command is measured and killed."""

SMALL = Sizes(search=0.5, calm=0.5, sustain=0.5)
SCENARIOS = (
    HighLoad(seconds=0.5, times=2.0, recovery_seconds=0.5),
    LargeInputs(sizes=(1_000, 10_000), each=2, recovery_seconds=0.5),
)


def run_first_scenario(store: Store, url: str, slo: str | None = "latency_p95<30s") -> str:
    """Two scenarios, of which Ctrl-C leaves one; the id of the run."""

    def break_off(finding: ScenarioFinding) -> None:
        raise KeyboardInterrupt

    told = StressObserver(lambda text: None, break_off, lambda pulse, load: None)
    options = StressOptions(
        LoadOptions(url, model="m", slo=slo, workers=1, header=("X-Team: blue",)), base=20.0
    )
    with pytest.raises(KeyboardInterrupt):
        run_stress(options, store, find_settings(Path.cwd()), told, SCENARIOS, SMALL)
    run = store.run("last")
    assert run.state is RunState.INTERRUPTED
    return run.id


def finish_run(store: Store, run_id: str) -> StressFinding:
    resume_stress(store.run(run_id), store, find_settings(Path.cwd()), sizes=SMALL)
    assert store.run(run_id).state is RunState.COMPLETED
    return read_finding(store, run_id)


def read_finding(store: Store, run_id: str) -> StressFinding:
    finding = stress_findings(report_of(store, run_id).trials)
    assert finding is not None
    return finding


@pytest.mark.slow
def test_a_stress_test_that_is_killed_runs_only_the_scenarios_that_it_lacks(tmp_path: Path) -> None:
    running = Running(tmp_path)
    words = ("--quick", "--base", "20", "--slo", "latency_p95<60s", "--max-tokens", "3")
    with quick() as server:
        scenarios = ("--scenario", "large_inputs", "--scenario", "concurrent_requests")
        process = running.start("stress", f"{server.url}/v1", *scenarios, *words)
        assert eventually(lambda: len(running.executions) >= 1 or process.poll() is not None, LONG)
        process.kill()
        process.communicate()
        assert [row[0] for row in running.executions] == [0]
        before = running.rows("SELECT started FROM executions")

        done = running("run", "--resume", "last")

    assert done.returncode == 0, done.stderr
    assert running.state == "completed"
    assert [row[0] for row in running.executions] == [0, 1]
    assert running.rows("SELECT started FROM executions ORDER BY started")[:1] == before
    document = json.loads(running("show", "last").stdout)
    assert [one["scenario"] for one in document["stress"]["scenarios"]] == [
        "large_inputs",
        "concurrent_requests",
    ]


def test_a_resumed_stress_test_keeps_loads_sizes_and_objective(tmp_path: Path) -> None:
    # Beside answers that take this long, what others do on the machine does not look like another baseline.
    with quick(ttft=0.2) as server, Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        run_id = run_first_scenario(store, f"{server.url}/v1", slo=None)
        first = read_finding(store, run_id)
        finding = finish_run(store, run_id)

    assert [one.scenario for one in finding.scenarios] == ["high_load", "large_inputs"]
    assert finding.scenarios[0] == first.scenarios[0]
    assert (finding.base, finding.objective) == (20.0, first.objective)
    assert [point.load for point in finding.scenarios[1].points if not point.is_probe] == [1_000, 10_000]
    # On a busy machine the agent may really differ from before; one that does not is not said to.
    alike = SimpleNamespace(calm=first.calm_latency, calm_errors=first.calm_errors, calm_quality=None)
    assert stress_resumption._describe_difference(first, cast(Any, SimpleNamespace(bench=alike))) == ()


def test_a_baseline_that_has_changed_is_reported_beside_what_was_measured_after_it(
    tmp_path: Path, wording: Wording
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        with quick(ttft=0.02) as server:
            url = f"{server.url}/v1"
            run_id = run_first_scenario(store, url)
        # Far more than what a busy machine adds to the 0.02 s of before
        with quick(port=urlsplit(url).port, ttft=0.6):
            finding = finish_run(store, run_id)

    before, after = finding.scenarios
    assert not any("resumed" in warning for warning in before.warnings)
    (told,) = (warning for warning in after.warnings if "resumed" in warning)
    wording(re.sub(r"(\d) (s|ms|µs)\b", r"\1 TIME", told), numbers=False)


def test_a_resumed_stress_test_whose_agent_is_away_can_be_resumed_again(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        with quick() as server:
            url = f"{server.url}/v1"
            run_id = run_first_scenario(store, url)
        with pytest.raises(PlanError):
            resume(run_id, store)
        assert report_of(store, run_id).run.state is RunState.INTERRUPTED
        with quick(port=urlsplit(url).port):
            assert len(finish_run(store, run_id).scenarios) == 2


def test_a_stress_test_that_did_not_store_its_options_is_refused(tmp_path: Path, wording: Wording) -> None:
    with quick() as server, Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        run_id = run_first_scenario(store, f"{server.url}/v1")
        with sqlite3.connect(tmp_path / "x.db") as connection:
            connection.execute("UPDATE runs SET source = '{}'")
        with pytest.raises(PlanError) as refused:
            resume(run_id, store)
        assert report_of(store, run_id).run.state is RunState.INTERRUPTED
    assert "--scenario large_inputs" in str(refused.value)
    assert "high_load" not in str(refused.value)
    wording(str(refused.value).replace(run_id, "RUN").replace(server.url, "URL"))
