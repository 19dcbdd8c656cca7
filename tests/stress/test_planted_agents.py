"""Agents with a planted fault, asked for real: each fault is found, told in the agent's own words, and nothing else is."""

from __future__ import annotations

import json
import sys
from itertools import accumulate
from pathlib import Path

import pytest
from tests.load.results import times
from tests.sim_llm.asking import quick
from tests.stress.benches import real_bench

from assay.analysis.load.stress import score_of
from assay.builtin.scenarios.concurrent_requests import ConcurrentRequests
from assay.builtin.scenarios.high_load import HighLoad
from assay.builtin.scenarios.sustained_load import SustainedLoad
from assay.load.build import LoadOptions
from assay.load.stress.bench import StressBench
from assay.model import AgentUse
from assay.model.load import Objective
from assay.model.stress import ScenarioFinding
from assay.pipeline.report import report_of, write_reports
from assay.pipeline.stress import Sizes, StressObserver, StressOptions, StressOutcome, gauge_of, run_stress
from assay.report.stress import stress_document
from assay.spec.settings import find_settings
from assay.stats.line import fit_line
from assay.store.store import Store

pytestmark = pytest.mark.real_starts
"""What is below this process is measured and killed."""

QUIET = StressObserver(lambda text: None, lambda found: None, lambda pulse, load: None)
MEGABYTE = 1_000_000

CORRUPT = "the index is corrupt at row 17"
EXHAUSTED = "connection pool exhausted: 5 of 5 in use"
AGENTS = """import asyncio, time, itertools

held, number, now = [], itertools.count(), 0
slow_until = 0.0

async def healthy(question):
    await asyncio.sleep(0.1)
    return question

async def leaky(question):
    held.append(bytearray(b"x") * 1_000_000)
    return question

async def flaky(question):
    await asyncio.sleep(0.01)
    if next(number) % 10 == 9:
        raise ValueError("the index is corrupt at row 17, key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")
    return question

async def slows(question):
    global now, slow_until
    now += 1
    if now > 12:
        slow_until = time.monotonic() + 2.0
    try:
        await asyncio.sleep(0.7 if time.monotonic() < slow_until else 0.1)
    finally:
        now -= 1
    return question
"""

CRASHING = """import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["id"] != "1":
        print("connection pool exhausted: 5 of 5 in use", file=sys.stderr, flush=True)
        os._exit(3)
    print(json.dumps({"id": request["id"], "output": "ok"}), flush=True)
"""


def python(folder: Path, name: str) -> AgentUse:
    (folder / "agents.py").write_text(AGENTS)
    return AgentUse(name, "python", {"target": f"agents.py:{name}"}, folder=str(folder))


def program(folder: Path, text: str) -> AgentUse:
    (folder / "program.py").write_text(text)
    command = [sys.executable, "-S", "-E", "program.py"]
    return AgentUse("program", "command", {"command": command}, folder=str(folder))


def sustained(bench: StressBench, seconds: float) -> ScenarioFinding:
    bench.gauge = gauge_of(bench.subject)
    with bench.gauge.watching():
        return SustainedLoad(seconds=seconds).run(bench)


LEAKY_PROGRAM = """import json, sys
held = []
for line in sys.stdin:
    held.append(bytearray(b"x") * 1_000_000)
    print(json.dumps({"id": json.loads(line)["id"], "output": "ok"}), flush=True)
"""


def answers_per_second(found: ScenarioFinding) -> float:
    """The slope of the answers after the warm-up: the agent keeps a megabyte of each, and a busy machine may hold it up."""
    counts = accumulate(moment.completed for moment in found.moments)
    ends = [moment.begin + moment.seconds for moment in found.moments]
    warm = [(end, count) for end, count in zip(ends, counts, strict=True) if end >= 0.2 * found.seconds]
    line = fit_line([end for end, _ in warm], [float(count) for _, count in warm])
    assert line is not None
    return line.slope


@pytest.mark.parametrize("kind", ["python", "command"])
def test_a_leak_is_found_in_the_process_in_which_the_agent_runs(tmp_path: Path, kind: str):
    use = python(tmp_path, "leaky") if kind == "python" else program(tmp_path, LEAKY_PROGRAM)
    found = sustained(real_bench("", base=20.0, use=use), 4.0)
    drift = next(one for one in found.judgements if one.name == "memory_drift")
    assert drift.value == pytest.approx(60 * MEGABYTE * answers_per_second(found), rel=0.25)
    assert drift.is_fine is False
    assert score_of(found).value <= 0.5
    assert found.resources is not None
    assert found.resources.peak_memory_bytes > 60 * MEGABYTE


def test_a_healthy_function_does_not_leak_and_scores_one(tmp_path: Path):
    found = sustained(real_bench("", base=20.0, use=python(tmp_path, "healthy")), 4.0)
    told = {one.name: one.is_fine for one in found.judgements}
    assert told["memory_drift"] is True
    assert found.breach is None
    assert found.resources is not None
    assert found.resources.peak_memory_bytes > 5 * MEGABYTE


def test_a_program_that_ends_itself_is_reported_with_its_exit_code_and_its_last_words(tmp_path: Path):
    bench = real_bench("", base=5.0, use=program(tmp_path, CRASHING))
    found = HighLoad(seconds=1.5, times=4.0, recovery_seconds=0.5).run(bench)
    assert found.is_broken
    assert found.breach is not None
    assert found.breach.cause == "errors"
    detail = found.details[0]
    assert (detail.kind, detail.exit_code) == ("failed", 3)
    assert detail.stderr == EXHAUSTED
    assert sum(one.count for one in found.details) == found.errors["failed"]


def stressed(folder: Path, name: str) -> StressOutcome:
    python(folder, name)
    definition = {"name": name, "type": "python", "target": f"agents.py:{name}"}
    (folder / "agents.yaml").write_text(json.dumps({"agents": [definition]}))
    (folder / "assay.toml").write_text('[assay]\nagents = ["agents.yaml"]\n')
    options = StressOptions(LoadOptions(name, slo="latency_p95<30s"), base=40.0)
    scenarios = [HighLoad(seconds=2.0, times=4.0, recovery_seconds=1.0)]
    sizes = Sizes(search=0.5, calm=2.0, sustain=1.0)
    with Store.open(f"sqlite:///{folder}/x.db") as store:
        done = run_stress(options, store, find_settings(folder), QUIET, scenarios, sizes)
        write_reports(report_of(store, done.run_id), ["html", "md", "json"], folder / "out")
    return done


def test_what_fails_in_calm_is_reported_in_its_own_words_everywhere_and_without_its_secrets(tmp_path: Path):
    done = stressed(tmp_path, "flaky").finding
    assert done.calm_errors.failed == pytest.approx(0.1 * done.calm_errors.ended, abs=2)
    (one,) = done.scenarios
    assert not one.is_broken
    assert one.breach is not None
    assert one.breach.is_in_calm
    assert score_of(one).value == pytest.approx(0.9, abs=0.05)
    assert len(done.recommendations) == 1
    assert CORRUPT in done.recommendations[0]
    document = stress_document(done)
    detail = document["scenarios"][0]["error_details"][0]
    assert detail["message"].startswith(f"ValueError: {CORRUPT}, key ")
    assert detail["place"].startswith("agents.py:")
    assert document["calm"]["error_details"][0]["kind"] == "failed"
    for file in ("report.html", "report.md", "result.json"):
        text = (tmp_path / "out" / file).read_text(encoding="utf-8")
        assert CORRUPT in text
        assert "abcdefghijklmnopqrstuvwxyz0123456789" not in text


def test_answers_that_take_a_second_are_all_offered_and_delivered():
    # 150/s of answers that take a second need 150 in flight: more than the hundred of the scenario
    with quick(ttft=1.0) as server:
        bench = real_bench(f"{server.url}/v1", base=15.0, limit=5.0)
        bench.calm = times(1.0)
        found = HighLoad(seconds=3.0, recovery_seconds=0.5).run(bench)
    assert (found.breach, found.offered, found.completed) == (None, 450, 450)
    assert found.parameters["in_flight"] == 750
    assert score_of(found).value == pytest.approx(1.0, abs=0.05)


def test_an_agent_that_slows_down_beyond_twelve_in_flight_breaks_there(tmp_path: Path):
    bench = real_bench("", base=20.0, use=python(tmp_path, "slows"))
    bench.objectives = (Objective("latency_p95<500ms", "latency", "p95", True, 0.5),)
    found = ConcurrentRequests(levels=(8, 16), seconds=1.2, recovery_seconds=0.5).run(bench)
    assert found.is_broken
    assert found.load_borne == pytest.approx(12, abs=1)
    assert found.breach is not None
    assert found.breach.cause == "latency"
    assert found.breach.load == found.load_borne + 1
