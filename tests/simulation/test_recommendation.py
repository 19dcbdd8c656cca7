from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wording import Wording

from assay.errors import AssayError
from assay.simulation import SimulationConfig, get_recommended_config, recommend
from assay.simulation import recommendation as module
from assay.simulation.config import MODES
from assay.simulation.run import SimulationResult, simulate

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "assay" / "simulation.json"


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Simulations that take as long as a test says, though they are real otherwise; each round is slower than the one before."""
    wanted = {"disk": 1.0, "memory_persist": 1.0}

    def timed(config: SimulationConfig, database: Path) -> SimulationResult:
        result = simulate(config, database)
        pace = 1 + 0.1 * config.seed
        return SimulationResult(
            config,
            result.history,
            pace * wanted[config.mode],
            result.digest,
            result.database,
            result.settings,
        )

    monkeypatch.setattr(module, "simulate", timed)
    return wanted


@pytest.mark.parametrize(
    ("memory", "verdict", "mode"),
    [(0.8, "better", "memory_persist"), (1.2, "worse", "disk"), (1.0, "same", "disk")],
)
def test_the_recommendation_follows_from_the_measurement(
    tmp_path: Path, times: dict[str, float], memory: float, verdict: str, mode: str, wording: Wording
) -> None:
    times["memory_persist"] = memory
    found = recommend(6, 2, tmp_path)
    assert (found.verdict, found.mode, found.rounds) == (verdict, mode, 12)
    assert found.ratio == pytest.approx(memory)
    assert found.low == pytest.approx(memory) == found.high
    assert found.config.model_dump().items() >= dict(MODES[found.mode]).items()
    wording(str(found).partition("; measured")[0])


def test_a_measurement_is_kept_with_its_date_and_machine(
    tmp_path: Path, cache: Path, times: dict[str, float]
) -> None:
    first = recommend(6, 2, tmp_path)
    times["memory_persist"] = 0.5
    again = recommend(6, 2, tmp_path)
    assert again.is_cached
    assert not first.is_cached
    assert (again.verdict, again.date, again.machine) == (first.verdict, first.date, first.machine)
    assert first.date in str(again)
    assert recommend(6, 2, tmp_path, is_fresh=True).verdict == "better"
    assert recommend(6, 2, tmp_path).verdict == "better"
    assert recommend(7, 2, tmp_path).is_cached is False
    assert len(json.loads(cache.read_text())) == 2


@pytest.mark.parametrize("damage", ["{", "[]", '{"x": 1}'])
def test_a_damaged_cache_is_measured_again(
    tmp_path: Path, cache: Path, times: dict[str, float], damage: str
) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(damage)
    assert not recommend(6, 2, tmp_path).is_cached
    assert recommend(6, 2, tmp_path).is_cached


def test_modes_that_are_not_in_effect_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_disk(config: SimulationConfig, database: Path) -> SimulationResult:
        return simulate(config.model_copy(update=dict(MODES["disk"])), database)

    monkeypatch.setattr(module, "simulate", on_disk)
    with pytest.raises(module.ModeIgnored, match="'memory_persist'"):
        recommend(6, 2, tmp_path)


def test_the_recommended_config_is_for_the_size_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: dict[str, float]
) -> None:
    monkeypatch.chdir(tmp_path)
    config = get_recommended_config(num_agents=12, num_steps=3)
    assert (config.num_agents, config.simulation_steps, config.mode) == (12, 3, "disk")


def test_the_example_says_why_and_keeps_the_log(tmp_path: Path) -> None:
    script = ROOT / "examples" / "run_with_recommended_config.py"
    words = ["--steps", "3", "--agents", "9", "--output", str(tmp_path / "out")]
    command = [sys.executable, str(script), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Recommended: ")
    assert (tmp_path / "out" / "simulation.db").stat().st_size > 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["simulation.db"]
    again = subprocess.run(command, capture_output=True, text=True)
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("agents", "steps", "folder"),
    [(-3, 2, "."), ("30", 2, "."), (5, 0, "."), (5, 2, "a-file/within"), (5, 2, "/proc")],
)
def test_a_recommendation_that_cannot_be_measured_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: int, steps: int, folder: str, wording: Wording
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    with pytest.raises(AssayError) as refused:
        recommend(agents, steps, folder)
    wording(str(refused.value))
