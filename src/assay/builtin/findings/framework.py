"""The finding of `framework`: speed, memory, start and code of frameworks on one task, and what probes found in them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from assay.analysis.comparison.compare import compare_trials
from assay.model import Comparison, Execution, Phase, Status, TrialReport
from assay.model.page import Cell, PageSection, Table, Tile
from assay.plugin import Column, Finding, build_table, to_json_data
from assay.plugin.figures import format_known
from assay.units import and_list, count, seconds, size

NOT_MEASURED = "not measured"
_FOUND = {True: Cell("yes", tone="good"), False: Cell("no", tone="quiet")}


@dataclass(frozen=True)
class FrameworkSummary:
    """One framework over its processes.

    A framework that is not installed is listed with how to install it and has no figures.
    """

    name: str
    trial: TrialReport
    executions: tuple[Execution, ...]

    @property
    def about(self) -> Mapping[str, Any]:
        found = ((e.detail or {}).get("framework") for e in self.executions)
        return next((detail for detail in found if isinstance(detail, Mapping)), {})

    @property
    def missing(self) -> str:
        return str(self.about.get("missing") or "")

    @property
    def is_measured(self) -> bool:
        return bool(self.values("final_reward"))

    def values(self, metric: str) -> list[float]:
        ok = (e for e in self.executions if e.status is Status.OK)
        return [e.measurements[metric] for e in ok if metric in e.measurements]

    def median(self, metric: str) -> float | None:
        values = self.values(metric)
        return statistics.median(values) if values else None

    @property
    def why_not(self) -> str:
        """Why there are no figures: a package that is missing, or an error."""
        if self.missing:
            return f"{self.missing} is not installed"
        errors = [e.error for e in self.executions if e.error]
        return errors[0].strip().splitlines()[-1] if errors else "no result"

    def document(self) -> dict[str, Any]:
        """Seed 000's fields, without its scores: `features` are the facts in their place."""
        start, peak = self.median("first_step_seconds"), self.median("peak_bytes")
        return {
            "framework": self.name,
            "measured": self.is_measured,
            "reason": "" if self.is_measured else self.why_not,
            "training_speed": self.median("samples_per_sec"),
            "memory_usage": None if peak is None else peak / 1e9,
            "setup_time": None if start is None else start / 60,
            "setup_complexity": self.about.get("lines_of_code"),
            "final_reward": self.median("final_reward"),
            "parameters": self.median("parameters"),
            "processes": len(self.values("final_reward")),
            "features": [dict(fact) for fact in self.about.get("features") or ()],
        }


@dataclass(frozen=True, slots=True)
class FrameworkResults(Finding):
    """The frameworks of a run, those that are not installed included.

    Every process imports the framework anew, so the processes are the units of replication.
    """

    is_swept: ClassVar[bool] = False
    is_listed_in_terminal: ClassVar[bool] = False
    is_listed_on_pages: ClassVar[bool] = False

    frameworks: tuple[FrameworkSummary, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        found = []
        for trial in trials:
            measured = (e for e in trial.executions if e.phase is Phase.MEASURED and e.status.is_settled)
            name = str(trial.stored.trial.params.get("framework", "native"))
            found.append(FrameworkSummary(name, trial, tuple(measured)))
        return cls(tuple(found)) if any(framework.executions for framework in found) else None

    @classmethod
    def adjust(cls, trial: TrialReport) -> TrialReport:
        """A framework that is not installed has no figures, not even the time in which that was found out."""
        outputs = [e.output for e in trial.executions if isinstance(e.output, Mapping)]
        if outputs and not any(output.get("measured") for output in outputs):
            return replace(trial, estimates=())
        return trial

    @property
    def measured(self) -> list[FrameworkSummary]:
        """The fastest first."""
        known = [framework for framework in self.frameworks if framework.is_measured]
        return sorted(known, key=lambda framework: -(framework.median("samples_per_sec") or 0.0))

    def comparisons(self) -> list[tuple[FrameworkSummary, Comparison]]:
        """Samples per second of the others against the fastest."""
        if len(self.measured) < 2:
            return []
        first, *others = self.measured
        return [
            (other, comparison)
            for other in others
            for comparison in compare_trials(first.trial, other.trial, metrics=["samples_per_sec"])
        ]

    def document(self) -> Mapping[str, Any]:
        compared = [
            {"framework": other.name, "against": self.measured[0].name, "verdict": found.verdict, "ratio": found.ratio}
            for other, found in self.comparisons()
        ]  # fmt: skip
        results = [framework.document() for framework in self.frameworks]
        return {"frameworks": to_json_data({"results": results, "comparisons": compared})}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        left_out = [f for f in self.frameworks if not f.is_measured]
        notes = [f"{framework.name}: {NOT_MEASURED}, because {framework.why_not}." for framework in left_out]
        notes += [
            f"{other.name} against {self.measured[0].name}, samples per second: {found.verdict}{f' ({found.reason})' if found.reason else ''}"
            for other, found in self.comparisons()
        ]
        main = PageSection(
            "Frameworks", [_overview(self)], finding=self._sentence(), notes=notes, anchor="frameworks"
        )
        facts = _facts(self.frameworks)
        checklist = PageSection("Results of the probes", [facts], anchor="framework-features")
        return [main, *([checklist] if facts.rows else ())]

    def tiles(self) -> Sequence[Tile]:
        if not self.measured:
            return []
        first = self.measured[0]
        return [Tile("samples per second", count(first.median("samples_per_sec") or 0.0), first.name)]

    def _sentence(self) -> str:
        names = [framework.name for framework in self.frameworks if not framework.is_measured]
        rest = f" Not measured: {and_list(names)}." if names else ""
        if not self.measured:
            return f"No framework was measured.{rest}"
        verdicts = [found.verdict for _, found in self.comparisons()]
        first = self.measured[0]
        rate = count(first.median("samples_per_sec") or 0.0)
        is_proved = bool(verdicts) and all(
            verdict is not None and verdict.value == "worse" for verdict in verdicts
        )
        word = "is fastest" if is_proved else "has the highest speed"
        return f"{first.name} {word}: {rate} samples per second.{rest}"


def _overview(found: FrameworkResults) -> Table:
    unmeasured = [framework for framework in found.frameworks if not framework.is_measured]
    return build_table(
        [*found.measured, *unmeasured],
        Column("Framework", lambda f: Cell(f.name, note="" if f.is_measured else NOT_MEASURED)),
        Column(
            "Samples", lambda f: format_known(f.median("samples_per_sec"), lambda rate: f"{count(rate)}/s")
        ),
        Column("Peak memory", lambda f: format_known(f.median("peak_bytes"), size)),
        Column("To first step", lambda f: format_known(f.median("first_step_seconds"), seconds)),
        Column("Final reward", lambda f: format_known(f.median("final_reward"), "{:.2f}".format)),
        Column("Lines of code", lambda f: format_known(f.about.get("lines_of_code"), str)),
        caption=Cell(
            "Medians over processes. To first step: from the import to the first rewarded group; that and memory are of the first "
            "execution of a process. Lines: of its script in examples/frameworks, without blank lines, comments and docstrings."
        ),
    )


def _facts(frameworks: Sequence[FrameworkSummary]) -> Table:
    facts = [
        (framework.name, fact) for framework in frameworks for fact in framework.about.get("features") or ()
    ]
    return build_table(
        facts,
        Column("Framework", lambda row: row[0]),
        Column("Feature", lambda row: str(row[1]["feature"]).replace("_", " "), is_words=True),
        Column("Found", lambda row: _FOUND[bool(row[1]["found"])], is_words=True),
        Column("Probe", lambda row: Cell(str(row[1]["probe"]), tone="quiet"), is_words=True),
    )
