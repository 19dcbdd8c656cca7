"""Executes a workflow plan in a sandbox, step by step, with checkpoints from which it can resume.

Everything that happens is an event: a small mapping with the time, what happened and to which step. Figures are computed from
events, never from logs. Checkpoints are kept outside of the working folder, where no step can reach them.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from assay.builtin.experiments.shell_commands import CommandLine, parse_command
from assay.builtin.experiments.workflow_plan import WorkflowPlan, WorkflowStep
from assay.execute.confined_run import ConfinedRun, run_confined
from assay.plugin.sandbox import Ceilings, Program, Sandbox

Event = dict[str, Any]
ResumeRule = Literal["checkpoint", "outputs"]
_MOST_MESSAGE = 300


class StepStatus(StrEnum):
    """`skipped` is a step that was not begun: one that it depends on failed, or it was already complete."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


_SIGNS = (
    ("outside", re.compile(r"read-only file system|permission denied", re.IGNORECASE)),
    (
        "network",
        re.compile(
            r"could not resolve|name resolution|network is unreachable|/dev/(tcp|udp)/|socket", re.IGNORECASE
        ),
    ),
)
"""What a step wrote to standard error, and what that says about it."""
_ENDED = {
    "seconds": "was still running after {seconds:g} s and was ended",
    "memory": "used more memory than allowed and was ended",
    "processes": "started more processes than allowed and was ended",
}
ERROR_TEXT = re.compile(
    r"\b(error|cannot|can't|failed|not found|no such file|invalid|denied|not permitted|traceback)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The outcome of one step. `code` says why it failed or was skipped, for counting; `message` says it for people."""

    name: str
    status: StepStatus
    code: str = ""
    message: str = ""
    seconds: float = 0.0
    run: ConfinedRun | None = None
    line: CommandLine = field(default_factory=CommandLine)

    @property
    def tried(self) -> str:
        """`outside` or `network`: what it tried and the sandbox refused, whatever its exit code was."""
        return "" if self.run is None else _find_sign(self.run.errors)

    @property
    def has_error_text(self) -> bool:
        """Whether it failed, or reported an error though it ended with 0, as the first part of a pipe may."""
        has_text = self.run is not None and ERROR_TEXT.search(self.run.errors) is not None
        return has_text or (self.status is StepStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Interruption:
    """The moment at which a run is interrupted: a step and the seconds after its start."""

    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunRules:
    """How steps are executed."""

    sandbox: Sandbox
    step_seconds: float
    ceilings: Ceilings
    forbidden: frozenset[str] = frozenset()
    has_network: bool = False
    resume: ResumeRule = "checkpoint"


@dataclass(slots=True)
class WorkflowRun:
    """One attempt at a plan in a working folder. A second attempt in the same folder resumes the first."""

    plan: WorkflowPlan
    folder: Path
    checkpoint: Path
    rules: RunRules
    protected: Sequence[str] = ()
    """Files of the task, which no step may delete."""
    events: list[Event] = field(default_factory=list)
    results: dict[str, StepResult] = field(default_factory=dict)
    _began: float = field(default_factory=perf_counter)

    def run(self, interruption: Interruption | None = None) -> None:
        """Execute what is not complete yet; a step that fails ends only those that depend on it."""
        complete = self._detect_complete()
        for step in self.plan.steps:
            if step.name in complete:
                self._settle(StepResult(step.name, StepStatus.SKIPPED, "complete"))
            elif unmet := self._find_unmet(step):
                self._settle(
                    StepResult(step.name, StepStatus.SKIPPED, "dependency", f"'{unmet}' is not done")
                )
            elif interruption is not None and step.name == interruption.step:
                self._log("step_started", step.name)
                self._execute(step, interruption.seconds)
                self._log("interrupted", step.name)
                return
            else:
                self._log("step_started", step.name)
                self._settle(self._attempt(step))

    @property
    def seconds(self) -> float:
        return float(self.events[-1]["at"]) if self.events else 0.0

    def count(self, status: StepStatus, code: str | None = None) -> int:
        return sum(r.status is status and code in (None, r.code) for r in self.results.values())

    def _attempt(self, step: WorkflowStep) -> StepResult:
        line = parse_command(step.command)
        if taboo := sorted(line.tools & self.rules.forbidden):
            return StepResult(
                step.name, StepStatus.FAILED, "forbidden", f"uses the forbidden tool '{taboo[0]}'", line=line
            )
        given = [name for name in {*step.inputs, *self.protected} if self._find_file(name)]
        if missing := [
            name for name in step.inputs if name not in given and not (self.folder / name).is_dir()
        ]:
            message = f"its input '{missing[0]}' does not exist"
            return StepResult(step.name, StepStatus.FAILED, "missing_input", message, line=line)
        began = perf_counter()
        run = self._execute(step, self.rules.step_seconds)
        code, message = self._judge(step, run, given)
        status = StepStatus.FAILED if code else StepStatus.DONE
        return StepResult(step.name, status, code, message, perf_counter() - began, run, line)

    def _judge(self, step: WorkflowStep, run: ConfinedRun, given: Iterable[str]) -> tuple[str, str]:
        """Why a step failed, as a code and as a sentence without its subject; empty where it did not."""
        if run.ended_for:
            return run.ended_for, _ENDED[run.ended_for].format(seconds=self.rules.step_seconds)
        if deleted := [name for name in given if self._find_file(name) is None]:
            return "deleted_input", f"deleted '{deleted[0]}', which was given to it"
        if run.code != 0:
            errors = " ".join(run.errors.split())[-_MOST_MESSAGE:] or "it printed no error"
            code = "unknown_tool" if run.code == 127 else _find_sign(run.errors) or "exit"
            return code, f"exited with code {run.code}: {errors}"
        if missing := [
            name for name in step.outputs if not (self.folder / name).is_dir() and not self._find_file(name)
        ]:
            return "missing_output", f"succeeded, but did not create '{missing[0]}'"
        return "", ""

    def _execute(self, step: WorkflowStep, seconds: float) -> ConfinedRun:
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        program = Program(
            [shell, "-c", step.command],
            folder=str(self.folder),
            is_writable=True,
            has_network=self.rules.has_network,
            may_start_processes=True,
            ceilings=self.rules.ceilings,
        )
        return run_confined(self.rules.sandbox, program, seconds)

    def _settle(self, result: StepResult) -> None:
        """Record how a step ended; one that is done gets its checkpoint."""
        self.results[result.name] = result
        about: Event = {"code": result.code, "message": result.message, "tried": result.tried}
        about["seconds"] = round(result.seconds, 6)
        self._log(
            f"step_{result.status}", result.name, **{key: value for key, value in about.items() if value}
        )
        if result.status is StepStatus.DONE:
            step = next(step for step in self.plan.steps if step.name == result.name)
            record = {
                "step": step.name,
                "command": _digest(step.command.encode()),
                "outputs": self._fingerprint(step),
            }
            with self.checkpoint.open("a") as file:
                file.write(json.dumps(record) + "\n")

    def _detect_complete(self) -> set[str]:
        """Steps that need not be done again.

        By `checkpoint`: those with a checkpoint of the same command whose outputs are as they were, and whose dependencies are
        complete, too. By `outputs`: those whose outputs exist, which is how FlowAgent decides.
        """
        records = self._read_checkpoints()
        complete: set[str] = set()
        for step in self.plan.steps:
            fingerprint = self._fingerprint(step)
            if self.rules.resume == "outputs":
                is_complete = bool(fingerprint) and len(fingerprint) == len(step.outputs)
            else:
                record = records.get(step.name, {})
                is_complete = (
                    bool(step.outputs)
                    and record.get("command") == _digest(step.command.encode())
                    and record.get("outputs") == fingerprint
                    and complete.issuperset(step.depends_on)
                )
            if is_complete:
                complete.add(step.name)
                self._log("step_detected", step.name)
        return complete

    def _read_checkpoints(self) -> Mapping[str, Mapping[str, Any]]:
        if not self.checkpoint.exists():
            return {}
        self._log("resumed")
        return {
            record["step"]: record for record in map(json.loads, self.checkpoint.read_text().splitlines())
        }

    def _find_unmet(self, step: WorkflowStep) -> str:
        met = (StepStatus.DONE, StepStatus.SKIPPED)
        for name in step.depends_on:
            result = self.results[name]
            if result.status not in met or result.code == "dependency":
                return name
        return ""

    def _fingerprint(self, step: WorkflowStep) -> dict[str, str]:
        files = {name: self._find_file(name) for name in step.outputs}
        return {name: _digest(path.read_bytes()) for name, path in files.items() if path is not None}

    def _find_file(self, name: str) -> Path | None:
        return find_file(self.folder, name)

    def _log(self, event: str, step: str = "", **about: Any) -> None:
        at = round(perf_counter() - self._began, 6)
        self.events.append({"at": at, "event": event, **({"step": step} if step else {}), **about})


def _find_sign(errors: str) -> str:
    return next((name for name, pattern in _SIGNS if pattern.search(errors)), "")


def find_file(folder: Path, name: str) -> Path | None:
    """A plain file within the folder; None for links that lead out of it, and for pipes, which would block the reader."""
    try:
        path = (folder / name).resolve(strict=True)
        is_plain = stat.S_ISREG(path.lstat().st_mode)
    except (OSError, RuntimeError):
        return None
    return path if is_plain and path.is_relative_to(folder.resolve()) else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ResumeFigures:
    """What an interrupted run that was resumed shows, counted from the events before and after the interruption."""

    completed: int
    """Steps that were done before the interruption."""
    detected: int
    skipped: int
    wasted: int
    """Steps that were done before, and were done again."""
    wrongly_skipped: int
    """Steps that were skipped as complete, though they were not."""
    is_finished: bool
    seconds: float


def compare_resumed(before: Sequence[Event], resumed: WorkflowRun) -> ResumeFigures:
    done_before = {event["step"] for event in before if event["event"] == "step_done"}
    after = resumed.events
    detected = {event["step"] for event in after if event["event"] == "step_detected"}
    skipped = {
        event["step"] for event in after if event["event"] == "step_skipped" and event["code"] == "complete"
    }
    started = {event["step"] for event in after if event["event"] == "step_started"}
    is_finished = not resumed.count(StepStatus.FAILED) and not resumed.count(StepStatus.SKIPPED, "dependency")
    return ResumeFigures(
        len(done_before),
        len(detected),
        len(skipped),
        len(done_before & started),
        len(skipped - done_before),
        is_finished,
        resumed.seconds,
    )
