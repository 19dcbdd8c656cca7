"""Where to keep the log of a simulation that will be analysed later: decided by a measurement on this machine.

Two configurations keep all data: log to a file, or log to memory and copy it to a file at the end. They take turns, each round with a seed of its own for
both, and are compared as `assay compare` does. If they do not differ, the file wins: it survives a simulation that is killed.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.simulation.config import MODES, Mode, SimulationConfig
from assay.simulation.log import LogFailed
from assay.simulation.run import simulate
from assay.units import percent

ROUNDS = 12
_KEEPING: tuple[Mode, Mode] = ("disk", "memory_persist")


class ModeIgnored(AssayError):
    """A simulation did not log in the mode that was asked for."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The quicker of the two configurations that keep all data, with the measurement that says so."""

    mode: Mode
    """`disk` or `memory_persist`."""
    num_agents: int
    """Agents of the simulation that was measured."""
    num_steps: int
    """Its steps."""
    verdict: str
    """Verdict on memory with a copy at the end against the file: better, worse, same or unsure."""
    ratio: float
    """Its time relative to that of the file: 0.9 is 10 % less."""
    low: float
    """Lower end of the 95 % interval of the ratio."""
    high: float
    """Upper end of the interval."""
    rounds: int
    """Pairs of simulations."""
    machine: str
    """The kind of machine that it was measured on."""
    date: str
    """When it was measured."""
    is_cached: bool = False
    """Whether it was measured earlier and read from the cache."""

    @property
    def config(self) -> SimulationConfig:
        """The recommended configuration, for the number of agents and steps that were measured."""
        return SimulationConfig(
            num_agents=self.num_agents,
            simulation_steps=self.num_steps,
            **_size(self.num_agents),
            **MODES[self.mode],
        )

    def __str__(self) -> str:
        measured = f"{self.rounds} pairs, {self.num_agents} agents, {self.num_steps} steps"
        when = f"measured {'on ' + self.date if self.is_cached else 'now'} on {self.machine}"
        change = f"{percent(abs(self.ratio - 1))} {'less' if self.ratio < 1 else 'more'} time"
        interval = f"95 % interval {percent(self.low - 1)} to {percent(self.high - 1)}"
        conclusion = {
            "better": "log to memory and copy at the end",
            "worse": "log to the file",
            "same": "no difference that matters, so log to the file: it survives a crash",
            "unsure": "no difference could be shown, so log to the file: it survives a crash",
        }[self.verdict]
        return f"Recommended: {conclusion}. Memory with a copy at the end took {change} than the file ({interval}; {measured}; {when})."


def get_recommended_config(num_agents: int = 30, num_steps: int = 100) -> SimulationConfig:
    """The configuration that keeps all data in the least time on this machine; see `recommend`, which also tells why.

    Args:
        num_agents: Agents of the simulation.
        num_steps: Its steps.

    Example:
        config = get_recommended_config(num_agents=30, num_steps=100)
    """
    return recommend(num_agents, num_steps).config


def recommend(
    num_agents: int = 30, num_steps: int = 100, folder: str | Path = ".", is_fresh: bool = False
) -> Recommendation:
    """Measure which configuration to use, or read what was measured here before.

    A measurement is kept in the user's cache folder (`XDG_CACHE_HOME` or `~/.cache`, there `assay/simulation.json`), for this machine, the disk of
    the folder and the size of the simulation. It takes a second or two for 30 agents and 100 steps.

    Args:
        num_agents: Agents of the simulation.
        num_steps: Its steps.
        folder: Where the log will be kept; the file is measured there, as disks differ.
        is_fresh: Whether to measure anew.
    """
    from assay.execute.environment import environment

    log_folder = Path(folder)
    try:
        log_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LogFailed(
            f"The folder '{log_folder}' of the log cannot be created: {error.strerror}."
        ) from None
    machine = environment(log_folder, packages=False, probe_seconds=0).machine_class
    key = f"{machine}; disk {log_folder.stat().st_dev}; {num_agents} agents; {num_steps} steps"
    known = {} if is_fresh else _read_cache()
    if key in known:
        try:
            return replace(Recommendation(**known[key]), is_cached=True)
        except TypeError:  # of a different version of Assay
            pass
    found = measure(num_agents, num_steps, log_folder, machine)
    _write_cache({**_read_cache(), key: asdict(found)})
    return found


def measure(
    num_agents: int, num_steps: int, folder: Path, machine: str, rounds: int = ROUNDS
) -> Recommendation:
    """Both configurations in turns, the first one of each round alternating; one more round before is not counted."""
    seconds: dict[Mode, list[float]] = {mode: [] for mode in _KEEPING}
    with _make_scratch_folder(folder) as scratch:
        for number in range(-1, rounds):
            for mode in _KEEPING if number % 2 else reversed(_KEEPING):
                config = SimulationConfig(
                    num_agents=num_agents,
                    simulation_steps=num_steps,
                    seed=max(number, 0),
                    **_size(num_agents),
                    **MODES[mode],
                )
                result = simulate(config, Path(scratch) / f"{mode}-{number}.db")
                if result.settings["mode"] != mode:
                    raise ModeIgnored(
                        f"The log should be '{mode}', but the database reports '{result.settings['mode']}': there is nothing to compare."
                    )
                if number >= 0:
                    seconds[mode].append(result.seconds)
    return _judge(seconds, num_agents, num_steps, machine)


def _make_scratch_folder(folder: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="assay-simulation-", dir=folder)
    except OSError as error:
        raise LogFailed(f"The folder '{folder}' of the log cannot be written: {error.strerror}.") from None


def _judge(
    seconds: Mapping[Mode, list[float]], num_agents: int, num_steps: int, machine: str
) -> Recommendation:
    from assay.analysis.comparison.policy import judge
    from assay.analysis.comparison.verdict import Contrast
    from assay.model import metric_named
    from assay.stats.effect import compare_paired

    disk, memory = (seconds[mode] for mode in _KEEPING)
    effect = compare_paired(disk, memory)
    assert effect is not None
    contrast = Contrast(
        metric_named("seconds"), *_KEEPING, statistics.median(disk), statistics.median(memory),
        len(disk), len(memory), effect, is_paired=True, unit="pair",
    )  # fmt: skip
    (comparison,) = judge([contrast])
    verdict = comparison.verdict.value if comparison.verdict else "unsure"
    return Recommendation(
        "memory_persist" if verdict == "better" else "disk",
        num_agents, num_steps, verdict, effect.value, effect.low, effect.high,
        len(disk), machine, date.today().isoformat(),
    )  # fmt: skip


def _size(num_agents: int) -> Mapping[str, int]:
    """A world with room and food for that many agents; 100 × 100 cells with 20 resources for 30 of them."""
    # A number that is none is left to SimulationConfig, which says so.
    agents = num_agents if isinstance(num_agents, int) else 0
    side = max(100, round((max(agents, 0) * 100) ** 0.5))
    return {"width": side, "height": side, "initial_resources": max(20, agents)}


def _cache_file() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay" / "simulation.json"


def _read_cache() -> dict[str, Any]:
    """Empty where there is none, or where it cannot be read: it is measured again then."""
    try:
        known = json.loads(_cache_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write_cache(known: Mapping[str, Any]) -> None:
    file = _cache_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(known, indent=1), encoding="utf-8")
        part.replace(file)
    except OSError:  # nothing is lost but the time of the next measurement
        return
