"""Whether a suite can tell agents apart: a right answer must pass, an empty one must not, and cases must differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.model import Benchmark, CaseTable, Suite
from assay.model.rating import is_pass


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a case, or worth a look."""

    code: str
    benchmark: str
    cases: tuple[str, ...]
    message: str
    is_severe: bool = False


@dataclass(frozen=True, slots=True)
class SuiteHealth:
    suite: str
    cases: int
    faults: tuple[Fault, ...]

    @property
    def is_sound(self) -> bool:
        return not any(fault.is_severe for fault in self.faults)


Tables = Mapping[str, CaseTable]
"""Benchmark to what an agent made of it."""


def suite_health(suite: Suite, oracle: Tables, nop: Tables, history: Sequence[Tables]) -> SuiteHealth:
    """`oracle` and `nop` were put through the suite just now; `history` has the latest results of real agents."""
    faults = [
        fault
        for benchmark in suite.benchmarks
        for fault in (
            *_judged(benchmark, oracle.get(benchmark.id), nop.get(benchmark.id)),
            *_duplicates(benchmark),
            *_uninformative(
                benchmark, [tables[benchmark.id] for tables in history if benchmark.id in tables]
            ),
        )
    ]
    return SuiteHealth(suite.name, sum(len(one.cases) for one in suite.benchmarks), tuple(faults))


def _judged(benchmark: Benchmark, oracle: CaseTable | None, nop: CaseTable | None) -> Iterator[Fault]:
    if oracle is not None and (low := _where(oracle, lambda score: score is not None and score < 1)):
        yield Fault(
            "oracle", benchmark.id, low, "the right answer does not get the full score", is_severe=True
        )
    if oracle is not None and (unscored := _where(oracle, lambda score: score is None)):
        yield Fault("unscored", benchmark.id, unscored, "the right answer cannot be judged", is_severe=True)
    if nop is not None and (high := _where(nop, lambda score: score is not None and score > 0)):
        yield Fault("nop", benchmark.id, high, "an empty answer gets points", is_severe=True)


def _where(table: CaseTable, is_wrong: Callable[[float | None], bool]) -> tuple[str, ...]:
    scores = table.metrics.get("score") or [None] * len(table.cases)
    pairs = zip(table.cases, table.statuses, scores, strict=True)
    return tuple(
        dict.fromkeys(case for case, status, score in pairs if is_wrong(score if status == "ok" else 0.0))
    )


def _duplicates(benchmark: Benchmark) -> Iterator[Fault]:
    seen: dict[str, list[str]] = {}
    for case in benchmark.cases:
        seen.setdefault(
            repr((case.input, [turn.input for turn in case.turns], sorted(case.files))), []
        ).append(case.id)
    for ids in seen.values():
        if len(ids) > 1:
            yield Fault("duplicate", benchmark.id, tuple(ids), "these cases ask the same")


def _uninformative(benchmark: Benchmark, tables: Sequence[CaseTable]) -> Iterator[Fault]:
    """What only the results of several agents can show."""
    if len(tables) < 2:
        return
    verdicts = [_verdicts(table, benchmark.rubric.pass_mark) for table in tables]
    shared = set.intersection(*(set(one) for one in verdicts))
    passed = [case for case in shared if all(all(one[case]) for one in verdicts)]
    failed = [case for case in shared if not any(any(one[case]) for one in verdicts)]
    flaky = [case for case in shared if any(len(set(one[case])) > 1 for one in verdicts)]
    number = len(tables)
    if passed:
        yield Fault(
            "all-pass",
            benchmark.id,
            _in_order(benchmark, passed),
            f"all {number} agents pass these: they tell nothing",
        )
    if failed:
        yield Fault(
            "all-fail",
            benchmark.id,
            _in_order(benchmark, failed),
            f"all {number} agents fail these: they tell nothing",
        )
    if flaky:
        yield Fault(
            "flaky", benchmark.id, _in_order(benchmark, flaky), "an agent both passes and fails these"
        )


def _in_order(benchmark: Benchmark, cases: Sequence[str]) -> tuple[str, ...]:
    chosen = set(cases)
    return tuple(case.id for case in benchmark.cases if case.id in chosen)


def _verdicts(table: CaseTable, pass_mark: float) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = {}
    scores = table.metrics.get("score") or [None] * len(table.cases)
    for case, status, score in zip(table.cases, table.statuses, scores, strict=True):
        if status not in ("harness_error", "cancelled") and not (status == "ok" and score is None):
            found.setdefault(case, []).append(status == "ok" and is_pass(score or 0.0, pass_mark))
    return found
