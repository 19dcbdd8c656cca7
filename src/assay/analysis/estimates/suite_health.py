"""Checks whether a suite can tell agents apart.

A correct answer must pass, an empty one must not, and cases must differ. Cases that all agents pass or all agents fail carry
no information; only the results of several agents can show that. `assay suite check` prints the faults, and the severe ones
make it fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.model import Benchmark, CaseTable, Suite
from assay.model.rating import is_pass
from assay.model.suite import CaseFault, CheckedCase, SuiteHealth

_REASONS = 3


Checks = Mapping[str, Sequence[CheckedCase]]
"""Benchmark to its cases."""
Tables = Mapping[str, CaseTable]
"""Benchmark to an agent's results on it."""


def suite_health(suite: Suite, checks: Checks, history: Sequence[Tables]) -> SuiteHealth:
    """All faults of a suite; `history` has the latest results of real agents, one mapping for each."""
    faults = [
        fault
        for benchmark in suite.benchmarks
        for fault in (
            *_find_faults(benchmark, checks.get(benchmark.id, ())),
            *_duplicates(benchmark),
            *_uninformative(
                benchmark, [tables[benchmark.id] for tables in history if benchmark.id in tables]
            ),
        )
    ]
    return SuiteHealth(suite.name, sum(len(benchmark.cases) for benchmark in suite.benchmarks), tuple(faults))


_MESSAGES = {
    "oracle": "the correct answer does not get the full score",
    "unscored": "the correct answer cannot be judged",
    "unchecked": "not checked, because no correct answer can be constructed; give the cases a `solution`",
}


def _find_faults(benchmark: Benchmark, checks: Sequence[CheckedCase]) -> Iterator[CaseFault]:
    """Faults that right and empty answers have shown, grouped by their kind."""
    for code, message in _MESSAGES.items():
        if found := [check for check in checks if check.problem == code]:
            reasons = list(dict.fromkeys(check.reason for check in found if check.reason))
            explained = f"{message} ({'; '.join(reasons[:_REASONS])})" if reasons else message
            cases = tuple(check.case for check in found)
            yield CaseFault(code, benchmark.id, cases, explained, is_severe=code != "unchecked")
    if found := [check for check in checks if check.rewards_nothing]:
        cases = tuple(check.case for check in found)
        yield CaseFault("nop", benchmark.id, cases, "an empty answer gets points", is_severe=True)


def _duplicates(benchmark: Benchmark) -> Iterator[CaseFault]:
    """Cases with the same input, turns and files: they count one question several times."""
    seen: dict[str, list[str]] = {}
    for case in benchmark.cases:
        seen.setdefault(
            repr((case.input, [turn.input for turn in case.turns], sorted(case.files))), []
        ).append(case.id)
    for ids in seen.values():
        if len(ids) > 1:
            yield CaseFault("duplicate", benchmark.id, tuple(ids), "these cases ask the same question")


def _uninformative(benchmark: Benchmark, tables: Sequence[CaseTable]) -> Iterator[CaseFault]:
    """Cases that show no difference between agents, or on which an agent contradicts itself; needs two agents or more."""
    if len(tables) < 2:
        return
    verdicts = [_verdicts(table, benchmark.rubric.pass_mark) for table in tables]
    shared = set.intersection(*(set(passes) for passes in verdicts))
    passed = [case for case in shared if all(all(passes[case]) for passes in verdicts)]
    failed = [case for case in shared if not any(any(passes[case]) for passes in verdicts)]
    flaky = [case for case in shared if any(len(set(passes[case])) > 1 for passes in verdicts)]
    subject = "both agents" if len(tables) == 2 else f"all {len(tables)} agents"
    if passed:
        yield CaseFault(
            "all-pass",
            benchmark.id,
            _in_order(benchmark, passed),
            f"{subject} pass these, so they show no difference between agents",
        )
    if failed:
        yield CaseFault(
            "all-fail",
            benchmark.id,
            _in_order(benchmark, failed),
            f"{subject} fail these, so they show no difference between agents",
        )
    if flaky:
        yield CaseFault(
            "flaky", benchmark.id, _in_order(benchmark, flaky), "an agent both passes and fails these"
        )


def _in_order(benchmark: Benchmark, cases: Sequence[str]) -> tuple[str, ...]:
    chosen = set(cases)
    return tuple(case.id for case in benchmark.cases if case.id in chosen)


def _verdicts(table: CaseTable, pass_mark: float) -> dict[str, list[bool]]:
    """Return, for each case, whether each of its repetitions passed.

    Executions that say nothing about the agent are left out: faults of the harness, cancelled ones, and
    answers without a score.
    """
    found: dict[str, list[bool]] = {}
    scores = table.metrics.get("score") or [None] * len(table.cases)
    for case, status, score in zip(table.cases, table.statuses, scores, strict=True):
        if status not in ("harness_error", "cancelled") and not (status == "ok" and score is None):
            found.setdefault(case, []).append(status == "ok" and is_pass(score or 0.0, pass_mark))
    return found
