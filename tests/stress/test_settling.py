"""A queue that one scenario leaves behind: how long it really takes, and that the next scenario is not blamed for it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.load.faulty import ANSWER, Guest, faulty
from tests.stress.benches import RuleBench, stretch

from assay.builtin.scenarios.concurrent_requests import ConcurrentRequests
from assay.builtin.scenarios.high_load import HighLoad
from assay.load.build import LoadOptions
from assay.load.stress.bench import Interrupted
from assay.model.load import Load
from assay.model.stress import ScenarioFinding, Stretch
from assay.pipeline.recovery import measure_recovery, warn_if_not_recovered
from assay.pipeline.stress import Sizes, StressObserver, StressOptions, run_stress
from assay.spec.settings import find_settings
from assay.store.store import Store

QUIET = StressObserver(lambda text: None, lambda found: None, lambda pulse, load: None)
LATE = ScenarioFinding("high_load", recovery=2.0, is_recovered=False, is_dead=True)


def bench(*latencies: tuple[float, ...]) -> Any:
    """Calm is 0.1 s; of each load in turn, what its requests took; the last for ever."""
    left = list(latencies)

    def rule(load: Load, prompts: object) -> Stretch:
        return stretch(load, latencies=left.pop(0) if len(left) > 1 else left[0])

    return RuleBench(rule)


def test_an_agent_that_answers_as_in_calm_later_has_recovered_and_is_not_dead() -> None:
    found = measure_recovery(LATE, bench((5.0, 5.0, 0.1), (0.1, 0.1, 0.1)), timeout=10.0)
    assert found.is_recovered
    assert not found.is_dead
    assert found.recovery is not None
    assert 2.2 <= found.recovery < 5.0
    assert warn_if_not_recovered(found) == ()


@pytest.mark.parametrize("latencies", [(), (5.0, 5.0, 5.0)])
def test_one_that_does_not_stays_what_it_was_found_to_be(latencies: tuple[float, ...]) -> None:
    found = measure_recovery(LATE, bench(latencies), timeout=0.5)
    assert found == LATE
    assert "high_load" in warn_if_not_recovered(found)[0]


def test_a_finding_is_kept_when_the_wait_is_interrupted() -> None:
    def interrupted(load: Load, prompts: object) -> Stretch:
        raise Interrupted

    stopped: Any = RuleBench(interrupted)
    assert measure_recovery(LATE, stopped, timeout=5.0) == LATE


def test_the_next_scenario_does_not_find_the_queue_of_the_one_before(tmp_path: Path) -> None:
    """Two at a time, 0.1 s each, and nobody notices that a caller has gone: the last 100 keep it busy for 5 s."""
    places = threading.Semaphore(2)

    def serve(guest: Guest) -> None:
        with places:
            time.sleep(0.1)
        guest.say(ANSWER)

    scenarios = (
        HighLoad(seconds=2.0, times=20.0, recovery_seconds=0.5),
        ConcurrentRequests(levels=(1, 2), seconds=1.0, recovery_seconds=0.5, halvings=1),
    )
    with faulty(serve) as server, Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        options = StressOptions(LoadOptions(server.url, model="m"), base=5.0)
        sizes = Sizes(search=0.5, calm=2.0, sustain=0.5, settle=15.0)
        done = run_stress(options, store, find_settings(tmp_path), QUIET, scenarios, sizes)
    high, concurrent = done.finding.scenarios
    assert high.is_broken
    assert high.is_recovered
    assert not high.is_dead
    assert high.recovery is not None
    # On an idle machine about 5 s; on a busy one fewer requests reach the server at once, and its queue is shorter.
    assert high.recovery > 0.3
    assert concurrent.load_borne == 2
    assert not concurrent.is_broken
