"""How long documents of a large run take, and how large they get."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from arms import ASSAY, ended, fresh_folder, interleaved, tell
from record import Bound, Promise, Result, figure

from assay.units import count

SECONDS = Promise("report-seconds", "HTML report of a run with 100,000 executions", Bound.BELOW, 5.0, "s")
SIZE = Promise("report-size", "Size of that HTML report", Bound.BELOW, 5e6, "bytes")
FORMATS = ("html", "md", "json", "csv")


@dataclass(frozen=True, slots=True)
class Written:
    seconds: float
    size: int


def measure(quick: bool) -> list[Result]:
    executions = 10_000 if quick else 100_000
    with fresh_folder() as folder:
        tell(f"  a run of {count(executions)} executions")
        ended((ASSAY, "run", "noop", "--repetitions", str(executions), "--json", "-q"), folder)
        arms = {name: partial(_written, name, folder) for name in FORMATS}
        found = interleaved(arms, 2 if quick else 6)
    times = {name: [one.seconds for one in written] for name, written in found.items()}
    sizes = {name: [float(one.size) for one in written] for name, written in found.items()}
    return [_result(SECONDS, "s", times), _result(SIZE, "bytes", sizes)]


def _written(format_: str, folder: Path) -> Written:
    with fresh_folder() as out:
        words = (ASSAY, "report", "last", "--format", format_, "--out", str(out), "--json", "-q")
        seconds = ended(words, folder).seconds
        return Written(seconds, sum(file.stat().st_size for file in out.rglob("*") if file.is_file()))


def _result(promise: Promise, unit: str, found: dict[str, list[float]]) -> Result:
    ours = figure(found["html"])
    others = ", ".join(f"{name} {figure(found[name]).shown(unit)}" for name in FORMATS[1:])
    return Result(promise, unit, ours, ours, detail=f"The other formats: {others}.", values=found)
