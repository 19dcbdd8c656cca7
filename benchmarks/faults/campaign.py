"""What the parts of the campaign share: a fault to try, what came of it, and the count of a whole part."""

from __future__ import annotations

import json
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any

import record

RESULTS = record.RESULTS / "faults"


class Size(StrEnum):
    SMALLEST = "smallest"
    """Some seconds in all, for the tests."""
    QUICK = "quick"
    """Under five minutes on two cores."""
    FULL = "full"
    """Half an hour and more."""

    def choose(self, smallest: int, quick: int, full: int) -> int:
        return {Size.SMALLEST: smallest, Size.QUICK: quick, Size.FULL: full}[self]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one fault. Some faults stand for many of a kind, which are counted one by one."""

    tried: int = 1
    wrongs: tuple[tuple[str, str], ...] = ()
    """The kind that went wrong, and what was seen."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Figures for the page that add up over a part, such as executions lost."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is broken on purpose: its name is unique in a part and follows from the seed."""

    name: str
    check: Callable[[Path], Outcome]
    """Given an empty folder."""


@dataclass(frozen=True, slots=True)
class Part:
    """One question of the campaign. `prepare` starts what the faults share and gives them in their order."""

    name: str
    claim: str
    prepare: Callable[[int, Size], AbstractContextManager[Sequence[Fault]]]
    at_a_time: int = 2


@dataclass(frozen=True, slots=True)
class Wrong:
    kind: str
    problem: str
    reproduce: str


@dataclass(frozen=True, slots=True)
class Tally:
    """What a part found. The page is written from these alone."""

    part: str
    claim: str
    size: Size
    seed: int
    tried: int
    right: int
    wrong: tuple[Wrong, ...]
    counts: Mapping[str, int]
    seconds: float
    machine: Mapping[str, Any]
    date: str


def run_part(
    part: Part, seed: int, size: Size, match: str = "", progress: Callable[[str], None] = lambda _: None
) -> Tally:
    started, state = time.perf_counter(), record.machine()
    tried, wrongs, counts = 0, list[Wrong](), Counter[str]()
    with part.prepare(seed, size) as every:
        faults = [fault for fault in every if match in fault.name]
        for number, (fault, outcome) in enumerate(_try_all(faults, part.at_a_time), 1):
            tried += outcome.tried
            counts.update(outcome.counts)
            for kind, problem in outcome.wrongs:
                wrongs.append(Wrong(kind, problem, _reproduce(part, seed, size, fault)))
                progress(f"{part.name}: WRONG {kind}: {problem}\n    {wrongs[-1].reproduce}")
            progress(f"{part.name}: {number} of {len(faults)}, {tried} tried, {len(wrongs)} wrong")
    right = tried - len({(wrong.kind, wrong.reproduce) for wrong in wrongs})
    seconds = round(time.perf_counter() - started, 1)
    today = date.today().isoformat()
    return Tally(
        part.name, part.claim, size, seed, tried, right, tuple(wrongs), dict(sorted(counts.items())), seconds, state, today
    )  # fmt: skip


def _try_all(faults: Sequence[Fault], at_a_time: int) -> Iterator[tuple[Fault, Outcome]]:
    with ThreadPoolExecutor(at_a_time) as pool:
        yield from zip(faults, pool.map(_try, faults), strict=True)


def _try(fault: Fault) -> Outcome:
    """A check that itself breaks proves nothing, so it counts as wrong."""
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        try:
            return fault.check(Path(folder).resolve())
        except Exception:
            return Outcome(wrongs=((fault.name, f"the check itself broke: {traceback.format_exc()}"),))


def _reproduce(part: Part, seed: int, size: Size, fault: Fault) -> str:
    words = f"--seed {seed} --size {size} --only {part.name} --match '{fault.name}'"
    return f"PYTHONPATH=benchmarks python -m faults.run {words}"


def save(tally: Tally, folder: Path = RESULTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(tally), indent=1, ensure_ascii=False) + "\n"
    (folder / f"{tally.size}-{tally.part}.json").write_text(text, encoding="utf-8")


def stored(folder: Path = RESULTS) -> list[Tally]:
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Tally:
    flat = json.loads(path.read_text(encoding="utf-8"))
    wrongs = tuple(Wrong(**wrong) for wrong in flat.pop("wrong"))
    return Tally(**flat | {"size": Size(flat["size"])}, wrong=wrongs)
