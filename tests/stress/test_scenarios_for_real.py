"""Scenarios against a real server, a real agent and a real program, in small. Nothing here is about speed."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path

import psutil
import pytest
from tests.http.tls_provider import make_certificate
from tests.load.faulty import DONE, FINISH, delta, faulty, streamed
from tests.sim_llm.asking import quick
from tests.stress.benches import real_bench

from assay.analysis.load.stress import score_of
from assay.builtin.scenarios import memory_pressure
from assay.builtin.scenarios.concurrent_requests import ConcurrentRequests
from assay.builtin.scenarios.failure_recovery import FailureRecovery
from assay.builtin.scenarios.high_load import HighLoad
from assay.builtin.scenarios.large_inputs import LargeInputs
from assay.builtin.scenarios.memory_pressure import MemoryPressure
from assay.builtin.scenarios.rate_limiting import RateLimiting
from assay.errors import PlanError
from assay.load.stress.bench import Interrupted
from assay.load.stress.resources import Gauge, listening_on, with_children
from assay.model import AgentUse
from assay.model.load import Arrivals, Load
from assay.model.stress import ScenarioFinding

pytestmark = pytest.mark.real_starts
"""Scenarios kill, suspend and measure what is below this process."""

ECHO = """import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "output": request["input"]}), flush=True)
"""


def judged(found: ScenarioFinding) -> dict[str, tuple[float | None, bool | None]]:
    return {one.name: (one.value, one.is_fine) for one in found.judgements}


def openai(url: str, **options: object) -> AgentUse:
    return AgentUse("served", "openai", {"base_url": f"{url}/v1", "model": "m", **options})


def program(folder: Path, text: str = ECHO) -> AgentUse:
    (folder / "program.py").write_text(text)
    command = [sys.executable, "-S", "-E", "program.py"]
    return AgentUse("program", "command", {"command": command}, folder=str(folder))


def test_errors_under_high_load_break_it_and_are_counted_by_kind():
    with quick(error_rate=0.5) as server:
        found = HighLoad(seconds=2.0, recovery_seconds=0.5).run(real_bench(f"{server.url}/v1"))
    assert found.breach is not None
    assert found.breach.cause == "errors"
    assert "http_500" in found.breach.why
    assert set(found.errors) == {"http_500"}
    assert found.offered == 400
    assert found.good <= found.completed < found.offered
    assert found.is_simulated


def test_all_of_a_small_load_is_sustained():
    with quick() as server:
        found = HighLoad(seconds=1.0, times=2.0, recovery_seconds=0.5).run(real_bench(f"{server.url}/v1"))
    assert (found.offered, found.completed, found.errors, found.breach) == (40, 40, {}, None)
    assert found.good == 40


def test_each_level_of_concurrency_is_put_and_answered():
    with quick(ttft=0.01) as server:
        scenario = ConcurrentRequests(levels=(1, 2, 4), seconds=0.5, recovery_seconds=0.5)
        found = scenario.run(real_bench(f"{server.url}/v1"))
    assert not found.is_broken
    assert (found.load_asked, found.load_borne) == (4.0, 4.0)
    assert found.completed == found.offered


def test_inputs_of_every_size_reach_the_server():
    with quick() as server:
        scenario = LargeInputs(sizes=(1_000, 10_000, 100_000), each=2, recovery_seconds=0.5)
        found = scenario.run(real_bench(f"{server.url}/v1"))
    assert (found.offered, found.completed) == (6, 6)
    assert judged(found)["largest_accepted"][0] == 100_000


def test_an_agent_that_waits_as_told_finishes_its_work_without_a_storm():
    with quick() as server:
        bench = real_bench("", use=openai(server.url, retries=20))
        found = RateLimiting(seconds=1.0, retry_after=0.2, most_per_second=8.0, patience=60.0).run(bench)
    told = judged(found)
    assert told["obeys_retry_after"] == (0.0, True)
    assert told["all_finished"] == (1.0, True)
    assert told["storm"][1] is True
    assert (found.offered, found.completed, found.breach) == (8, 8, None)


IMPATIENT = """import json, os, sys, urllib.error, urllib.request
for line in sys.stdin:
    request = json.loads(line)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": request["input"]}]}).encode()
    for _ in range(200):
        call = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"content-type": "application/json"})
        try:
            urllib.request.urlopen(call).read()
            break
        except urllib.error.HTTPError:
            continue
    print(json.dumps({"id": request["id"], "output": "done"}), flush=True)
"""


def test_a_program_that_does_not_wait_is_found_out_at_the_proxy(tmp_path: Path):
    use = program(tmp_path, IMPATIENT)
    with quick() as server:
        options = {**use.options, "env": {"OPENAI_BASE_URL": f"{server.url}/v1"}}
        bench = real_bench("", use=AgentUse("program", "command", options, folder=str(tmp_path)))
        found = RateLimiting(seconds=1.0, retry_after=30.0, most_per_second=8.0, patience=60.0).run(bench)
    told = judged(found)
    assert told["obeys_retry_after"][1] is False
    assert told["all_finished"] == (1.0, True)
    # All work was done, and one fault stays: that is what the score loses.
    score = score_of(found)
    assert (score.criteria_met, score.criteria_judged, score.faults) == (1, 2, 1)
    assert score.recovering <= 0.5


def test_an_agent_without_retries_loses_its_work():
    with quick() as server:
        bench = real_bench("", use=openai(server.url, retries=0))
        found = RateLimiting(share=1.0, seconds=1.0, most_per_second=8.0, patience=30.0).run(bench)
    told = judged(found)
    assert told["all_finished"][1] is False
    assert found.is_broken
    assert found.completed < found.offered


def test_a_server_is_there_again_after_every_kind_of_fault():
    with quick() as server:
        found = FailureRecovery(seconds=1.0, rounds=1).run(real_bench(f"{server.url}/v1"))
    assert (found.load_asked, found.load_borne, found.breach) == (5.0, 5.0, None)
    assert found.recovery is not None
    assert {"http_503", "refused"} <= set(found.errors)
    # What our own faults ended does not count against the server.
    assert found.good == found.completed
    assert found.offered >= found.good
    assert any("our own faults" in text for text in found.warnings)


def test_a_server_with_its_own_certificate_is_cut_off_like_any_other(tmp_path: Path):
    certificate = make_certificate(tmp_path)
    answer = streamed([delta(content="hello"), FINISH, DONE])
    with faulty(lambda guest: guest.say(answer), certificate.server_context()) as server:
        trusted = FailureRecovery(seconds=1.0, rounds=1).run(
            real_bench(server.url, ca_file=str(certificate.file))
        )
        anybody = FailureRecovery(seconds=1.0, rounds=1).run(real_bench(server.url, insecure=True))
    for found in (trusted, anybody):
        assert (found.load_borne, found.breach) == (5.0, None)
        assert found.completed > 0
        assert "http_502" not in found.errors


def test_what_only_the_engine_can_send_leaves_scenarios_out_that_an_agent_asks_itself():
    bench = real_bench("", use=openai("https://127.0.0.1:9"), insecure=True)
    for scenario in (RateLimiting(), FailureRecovery()):
        assert "--insecure" in scenario.not_for(bench)
    assert FailureRecovery().not_for(real_bench("https://127.0.0.1:9/v1", insecure=True)) == ""


def test_an_agent_that_retries_hides_faults_from_its_user():
    with quick() as server:
        bench = real_bench("", base=5.0, use=openai(server.url, retries=30, backoff=0.05))
        found = FailureRecovery(seconds=1.0, rounds=1).run(bench)
    told = judged(found)
    assert told["first_success"][1] is True
    assert "lost" in told
    assert "doubled" in told


def test_a_program_that_is_killed_is_there_again(tmp_path: Path):
    found = FailureRecovery(seconds=1.5, rounds=1).run(real_bench("", base=10.0, use=program(tmp_path)))
    assert (found.load_asked, found.load_borne, found.unit) == (1.0, 1.0, "kills")
    assert found.breach is None
    assert found.recovery is not None
    assert found.recovery > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces it")
def test_a_program_works_with_the_memory_that_it_needs_and_not_with_next_to_none(tmp_path: Path):
    scenario = MemoryPressure(steps=(8.0, 0.05), seconds=1.0, recovery_seconds=0.5)
    found = scenario.run(real_bench("", use=program(tmp_path)))
    assert found.is_broken
    # With next to none it does not even start, with eight times as much it does: the rest of the way is halved.
    assert 1 / 8 <= found.load_borne < 20
    assert found.load_asked == pytest.approx(20.0)
    assert sum(one.is_probe for one in found.points) == scenario.halvings
    assert judged(found)["graceful"][1] is False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces it")
def test_a_program_that_nobody_saw_at_work_is_not_said_to_need_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(memory_pressure, "find_agent_processes", list)
    found = MemoryPressure(steps=(8.0,), seconds=0.1).run(real_bench("", use=program(tmp_path)))
    assert "memory" in found.skipped


def test_a_test_that_is_cut_short_says_so_at_once():
    with quick() as server:
        bench = real_bench(f"{server.url}/v1")
        bench.is_stopped = lambda: True
        with pytest.raises(Interrupted):
            HighLoad(seconds=600.0).run(bench)


def test_a_worker_that_this_machine_holds_up_is_not_blamed_on_the_server():
    held: list[psutil.Process] = []

    def hold_up(seconds: float) -> None:
        if seconds > 0.5 and not held:
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.ZombieProcess):  # left by an earlier test
                    held.extend([child] if "assay.load.worker" in child.cmdline() else [])
            held[0].suspend()
            threading.Timer(5.0, held[0].resume).start()

    with quick() as server:
        load = Load(Arrivals.CONSTANT, stages=((7.0, 20.0, 20.0),), seconds=7.0)
        found = real_bench(f"{server.url}/v1", limit=2.5).put(load, during=hold_up, grace=30.0)
    assert len(held) == 1
    assert found.held_up > 4
    assert found.breach is not None
    assert not found.breach.is_theirs


def test_only_this_machine_is_put_under_stress_unless_another_is_named():
    bench = real_bench("http://192.0.2.1:9/v1")
    for scenario in (HighLoad(seconds=0.5), FailureRecovery(seconds=0.5, rounds=1)):
        with pytest.raises(PlanError, match=r"--allow-host 192\.0\.2\.1"):
            scenario.run(bench)


def test_an_upstream_elsewhere_is_not_put_under_stress_either(tmp_path: Path):
    use = program(tmp_path)
    elsewhere = {**use.options, "env": {"OPENAI_BASE_URL": "http://192.0.2.1:9/v1"}}
    bench = real_bench("", use=AgentUse("program", "command", elsewhere, folder=str(tmp_path)))
    with pytest.raises(PlanError, match=r"--allow-host 192\.0\.2\.1"):
        RateLimiting(seconds=0.5).run(bench)


def test_the_process_behind_a_port_is_found_and_its_memory_seen():
    from urllib.parse import urlsplit

    from assay.simulator import SimOptions, SimServer

    with SimServer(SimOptions(ttft=0.0, itl=0.0)) as server:
        process = listening_on(urlsplit(server.url).port or 0)
        assert process is not None
        with Gauge("server", lambda: with_children(process), every=0.05).watching() as gauge:
            pass
        found = gauge.summarize()
    assert found is not None
    assert found.peak_memory_bytes > 2**20
    assert all(sample.cpu >= 0 for sample in found.samples)


def test_nobody_behind_a_port_is_nothing_to_see():
    assert listening_on(1) is None
    with Gauge("", list).watching() as gauge:
        pass
    assert gauge.summarize() is None
