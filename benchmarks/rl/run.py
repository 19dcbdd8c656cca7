"""Holds the native training against its promises, beside TRL in an environment of its own, and writes the page anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import page
from arms import tell
from record import Bound, Promise, Result, figure, machine, ratio, save

from rl.page import RESULTS

ROUNDS = 3
BESIDE_TRL = Path(__file__).parents[2] / ".venv-rl" / "bin" / "assay"
SECONDS = Promise(
    "rl-comparison-seconds",
    "four algorithms, three seeds, 300 episodes, on one core",
    Bound.BELOW,
    120.0,
    "s",
)
TIMES = Promise(
    "rl-samples-times",
    "answers per second in training, against TRL",
    Bound.AT_LEAST,
    20.0,
    "times",
    "those of TRL",
)


def main() -> int:
    state = machine()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ["OMP_NUM_THREADS"] = "1"
    results = [
        replace(one, machine=state, date=date.today().isoformat()) for one in (_compare(), _against_trl())
    ]
    for one in results:
        verdict = "holds " if one.holds else "MISSED"
        print(
            f"{verdict}  {one.promise.name}: {page.measured(one)}, promised {one.promise.shown()}", flush=True
        )
        save(one, RESULTS)
    page.main([])
    return 0 if all(one.holds for one in results) else 1


def _compare() -> Result:
    tell("the comparison on one core")
    began = perf_counter()
    _run(Path(sys.executable).with_name("assay"), "algorithm_comparison", "--processes", "3")
    took = [perf_counter() - began]
    return Result(SECONDS, "s", figure(took), figure(took), values={"assay": took})


def _against_trl() -> Result:
    rates: dict[str, list[float]] = {"native": [], "trl": []}
    for number in range(ROUNDS):
        for backend in sorted(rates, reverse=bool(number % 2)):
            tell(f"round {number + 1}: {backend}")
            words = ("task=arithmetic", f"backend={backend}", "episodes=50")
            found = _run(
                BESIDE_TRL, "algorithm", "--seed", str(number), *(w for s in words for w in ("--set", s))
            )
            rates[backend].append(found["algorithms"][0]["results"][0]["samples_per_sec"])
    ours, theirs = rates["native"], rates["trl"]
    return Result(TIMES, "1/s", figure(ours), ratio(ours, theirs), {"TRL": figure(theirs)}, values=rates)


def _run(command: Path, *words: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [command, "run", *words, "--json"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
