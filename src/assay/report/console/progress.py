"""Progress of a run: a live line on a terminal, plain lines elsewhere.

The pipeline calls the function that `show_progress` returns with each batch of executions. On a terminal one line is redrawn;
in a log file a new line is written now and then, so that logs stay short.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from assay.model import Batch, Phase, Plan, Status
from assay.model.redaction import make_showable
from assay.units import count, format_count, seconds, significant

if TYPE_CHECKING:
    from rich.progress import Progress

Watch = Callable[[Batch], None]
PLAIN_EVERY_SECONDS = 5.0
PLAIN_AT_LEAST_EVERY = 60.0
"""Plain lines come after 5 s, 10 s, 20 s and so on up to this, so that the log of a long run stays short."""


@contextlib.contextmanager
def show_progress(plan: Plan, done: int = 0) -> Iterator[Watch]:
    """A function to be called with each batch; shows how far the run has come."""
    if sys.stderr.isatty():
        with _live(plan, done) as watch:
            yield watch
    else:
        yield _Plain(plan, done).watch


@contextlib.contextmanager
def show_all_progress(plan: Plan, done: int = 0) -> Iterator[Watch]:
    """The same for somebody who asked for it: even the shortest run has a first and a last line."""
    executed, started = done, monotonic()
    _say(f"{plan.name}: {format_count(len(plan.trials), 'trial')}, {count(plan.most_executions)} executions")
    with show_progress(plan, done) as watch:

        def watch_and_count(batch: Batch) -> None:
            nonlocal executed
            executed += len(batch.executions)
            watch(batch)

        yield watch_and_count
    _say(f"{plan.name}: {format_count(executed, 'execution')} made in {seconds(monotonic() - started)}")


class _ScorerWatch:
    """Notices in the first seconds of a run that its scorers fail."""

    def __init__(self, plan: Plan) -> None:
        self._names = {trial.index: trial.name for trial in plan.trials}
        benchmarks = plan.suite.benchmarks if plan.suite is not None else ()
        self._unscorable = {benchmark.id for benchmark in benchmarks if not benchmark.expects_scores}
        self._benchmarks = {trial.index: trial.benchmark for trial in plan.trials}
        self._warned_scorers: set[str] = set()
        self._is_retrying: set[int] = set()
        self._retries = 0
        self._unscored = 0

    def warnings(self, batch: Batch) -> Iterator[str]:
        """Each scorer's first failure, and that a judge is asked again, once."""
        for execution in batch.executions:
            reasons = (execution.detail or {}).get("reasons")
            failed = (execution.detail or {}).get("unscored")
            is_expected = self._benchmarks[execution.trial] not in self._unscorable
            if (
                "score" in execution.measurements
                or not isinstance(failed, list)
                or not (failed and is_expected)
            ):
                continue
            self._unscored += execution.phase is Phase.MEASURED
            name = str(failed[0])
            if name not in self._warned_scorers:
                self._warned_scorers.add(name)
                why = str(reasons.get(name, "")) if isinstance(reasons, Mapping) else ""
                line = (why.strip().splitlines() or ["no reason given"])[0]
                yield f"{self._names[execution.trial]}: scorer '{name}' failed ({line}); such executions are unscored"
        for index, retries in batch.judge_retries.items():
            self._retries += retries
            if index not in self._is_retrying:
                self._is_retrying.add(index)
                yield f"{self._names[index]}: the judge is not responding; retrying"

    @property
    def state(self) -> str:
        """For the progress line: `3 unscored, judge retried 5 times`."""
        parts = [f"{count(self._unscored)} unscored"] if self._unscored else []
        parts += [f"judge retried {format_count(self._retries, 'time')}"] if self._retries else []
        return ", ".join(parts)


class _NodeWatch:
    """Counts the nodes of a cluster, their slots, and the processes at work on them."""

    def __init__(self) -> None:
        self.started = monotonic()
        """When executions could begin: a cluster takes seconds to start, which say nothing about its rate."""
        self._slots: dict[str, int] = {}
        """The slots of each node; 0 where the executor does not say."""
        self._at_work: set[tuple[int, int]] = set()

    def see(self, batch: Batch) -> None:
        if batch.nodes and not self._slots:
            self.started = monotonic()
        for name in batch.lost_nodes:
            self._slots.pop(name, None)
        for name, environment in batch.nodes.items():
            facts = environment.get("facts")
            self._slots[name] = int(facts.get("slots", 0)) if isinstance(facts, Mapping) else 0
        for placement in batch.placements:
            self._slots.setdefault(placement.node, 0)
        self._at_work.update((placement.trial, placement.process) for placement in batch.placements)
        self._at_work.difference_update(batch.settled)

    @property
    def state(self) -> str:
        """For the progress line: `4 nodes, 64 slots`, or `4 nodes, 12 at work` where the slots are unknown; empty on one machine."""
        if not self._slots:
            return ""
        # Workers share a round where there are more slots than rounds: how many rounds are at work says little then.
        slots = sum(self._slots.values())
        busy = format_count(slots, "slot") if slots else f"{count(len(self._at_work))} at work"
        return f"{format_count(len(self._slots), 'node')}, {busy}"


def _count_planned(batch: Batch) -> int:
    """Executions that the total counts: profiled ones come on top."""
    return sum(execution.phase is not Phase.PROFILED for execution in batch.executions)


class _Plain:
    """A line now and then, and nothing at all for a run that is over in a moment."""

    def __init__(self, plan: Plan, done: int) -> None:
        self._names = {trial.index: trial.name for trial in plan.trials}
        self._total, self._done, self._first = plan.most_executions, done, done
        self._printed_at = monotonic()
        self._wait = PLAIN_EVERY_SECONDS
        self._scorers = _ScorerWatch(plan)
        self._nodes = _NodeWatch()

    def watch(self, batch: Batch) -> None:
        """Count a batch. Warnings are written at once, progress only when its time has come."""
        self._done += _count_planned(batch)
        self._nodes.see(batch)
        for index, reason in batch.stopped.items():
            _say(f"{self._names[index]} stopped: {reason.splitlines()[0]}")
        for warning in self._scorers.warnings(batch):
            _say(f"Warning: {warning}")
        now = monotonic()
        if now - self._printed_at >= self._wait and batch.notes and not batch.executions:
            self._printed_at, self._wait = now, min(2 * self._wait, PLAIN_AT_LEAST_EVERY)
            index, note = list(batch.notes.items())[-1]
            _say(f"{count(self._done)} of {count(self._total)} executions, now {self._names[index]}: {note}")
        elif now - self._printed_at >= self._wait and batch.executions:
            self._printed_at, self._wait = now, min(2 * self._wait, PLAIN_AT_LEAST_EVERY)
            # What a resumed run had done before is no part of the rate.
            rate = (self._done - self._first) / max(1e-3, now - self._nodes.started)
            left = seconds((self._total - self._done) / rate) if rate else "?"
            name = self._names[batch.executions[-1].trial]
            parts = [part for part in (self._nodes.state, self._scorers.state) if part]
            if self._nodes.state:
                parts.insert(1, f"{significant(rate)}/s")
            state = f" ({', '.join(parts)})" if parts else ""
            _say(f"{count(self._done)} of {count(self._total)} executions, {left} left, now {name}{state}")


def _say(text: str) -> None:
    sys.stderr.write(f"{make_showable(text)}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def _live(plan: Plan, done: int) -> Iterator[Watch]:
    """The line on a terminal. It disappears when the run ends, so that only results stay on the screen."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from assay.report.console.safe_console import SafeConsole

    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", style="dim"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[failed]}", style="red"),
    )
    with Progress(*columns, console=SafeConsole(stderr=True, highlight=False), transient=True) as progress:
        yield _ProgressLine(progress, plan, done).watch


class _ProgressLine:
    """One line: the trial that is under way, how much is done, how fast it goes, and what has failed."""

    def __init__(self, progress: Progress, plan: Plan, done: int) -> None:
        self._names = {trial.index: trial.name for trial in plan.trials}
        self._progress, self._done, self._failed = progress, 0, 0
        total = plan.most_executions
        self._scorers, self._nodes = _ScorerWatch(plan), _NodeWatch()
        self._task = progress.add_task(plan.name, total=total, completed=done, rate="", failed="")

    def watch(self, batch: Batch) -> None:
        """Count a batch and redraw. Warnings are printed above the line and stay."""
        self._nodes.see(batch)
        for index, reason in batch.stopped.items():
            text = f"{self._names[index]} stopped: {reason.splitlines()[0]}"
            self._progress.console.print(text, style="yellow", markup=False)
        for warning in self._scorers.warnings(batch):
            self._progress.console.print(f"Warning: {warning}", style="yellow", markup=False)
        if not batch.executions:
            for index, note in batch.notes.items():
                self._progress.update(self._task, description=f"{self._names[index]}: {note}")
            self._progress.update(self._task, failed=self._troubles())
            return
        self._done += _count_planned(batch)
        self._failed += sum(execution.status is not Status.OK for execution in batch.executions)
        self._progress.update(
            self._task,
            description=self._names[batch.executions[-1].trial],
            advance=_count_planned(batch),
            rate=self._pace(),
            failed=self._troubles(),
        )

    def _pace(self) -> str:
        rate = f"{count(self._done / max(1e-3, monotonic() - self._nodes.started))}/s"
        return f"{rate}, {self._nodes.state}" if self._nodes.state else rate

    def _troubles(self) -> str:
        failed = f"{count(self._failed)} not ok" if self._failed else ""
        return ", ".join(part for part in (failed, self._scorers.state) if part)
