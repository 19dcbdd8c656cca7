"""What one more stored execution costs, and whether memory grows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from arms import ASSAY, PYTHON, SUBJECTS, Ended, elsewhere, interleaved
from record import Bound, Promise, Result, figure

from assay.units import count, seconds

RATE = Promise(
    "throughput", "Marginal rate of no-op executions stored in SQLite", Bound.AT_LEAST, 20_000, "1/s"
)
MEMORY = Promise(
    "memory", "Growth of the peak memory over ten times the executions", Bound.WITHIN, 30e6, "bytes"
)


@dataclass(frozen=True, slots=True)
class Sizes:
    small: int
    large: int

    @property
    def more(self) -> int:
        return self.large - self.small


def measure(quick: bool) -> list[Result]:
    executions = Sizes(2_000, 20_000) if quick else Sizes(20_000, 200_000)
    tests = Sizes(100, 600) if quick else Sizes(200, 2_200)
    arms = {
        f"assay, {count(executions.small)} executions": partial(_assay, executions.small),
        f"assay, {count(executions.large)} executions": partial(_assay, executions.large),
        f"bare loop, {count(executions.small)} rows": partial(_bare_loop, executions.small),
        f"bare loop, {count(executions.large)} rows": partial(_bare_loop, executions.large),
        f"pytest, {count(tests.small)} tests": partial(_pytest, tests.small),
        f"pytest, {count(tests.large)} tests": partial(_pytest, tests.large),
    }
    small, large, *peers = interleaved(arms, 2 if quick else 6).values()
    return [
        _rate(executions, small, large, _per_second(executions, *peers[:2]), _per_second(tests, *peers[2:])),
        _memory(executions, small, large),
    ]


def _assay(repetitions: int) -> Ended:
    return elsewhere(ASSAY, "run", "noop", "--repetitions", str(repetitions), "--json", "-q")


def _bare_loop(rows: int) -> Ended:
    return elsewhere(PYTHON, str(SUBJECTS / "with_sqlite.py"), str(rows))


def _pytest(tests: int) -> Ended:
    options = ("-q", "-c", "/dev/null", "-p", "no:cacheprovider")
    return elsewhere(PYTHON, "-m", "pytest", *options, str(SUBJECTS / "test_noop.py"), NOOP_TESTS=str(tests))


def _per_second(sizes: Sizes, small: list[Ended], large: list[Ended]) -> list[float]:
    """Round by round: what the additional ones took, without what every start costs."""
    return [sizes.more / max(b.seconds - a.seconds, 1e-9) for a, b in zip(small, large, strict=True)]


def _rate(
    sizes: Sizes, small: list[Ended], large: list[Ended], bare: list[float], tests: list[float]
) -> Result:
    rates = _per_second(sizes, small, large)
    ours, floor, pytest = figure(rates), figure(bare), figure(tests)
    detail = (
        f"One stored execution costs {seconds(1 / ours.value)}; a bare loop that times nothing but a call and writes "
        f"one SQLite row takes {seconds(1 / floor.value)}, a no-op test of pytest, which stores nothing, "
        f"{seconds(1 / pytest.value)}."
    )
    return Result(
        RATE,
        "1/s",
        ours,
        ours,
        {"bare SQLite loop": floor, "pytest": pytest},
        detail,
        {
            f"seconds of {sizes.small}": [one.seconds for one in small],
            f"seconds of {sizes.large}": [one.seconds for one in large],
        },
    )


def _memory(sizes: Sizes, small: list[Ended], large: list[Ended]) -> Result:
    growth = [float(b.peak_rss - a.peak_rss) for a, b in zip(small, large, strict=True)]
    ours, before = (
        figure([float(end.peak_rss) for end in large]),
        figure([float(end.peak_rss) for end in small]),
    )
    detail = (
        f"Peak of the runner or its worker, whichever is larger: {before.shown('bytes')} with "
        f"{count(sizes.small)} executions, {ours.shown('bytes')} with {count(sizes.large)}."
    )
    return Result(MEMORY, "bytes", ours, figure(growth), detail=detail, values={"growth": growth})
