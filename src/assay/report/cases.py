"""The results of each case of a suite.

A run can have millions of executions, so one pass over them keeps a few numbers and texts for each case: how often each
outcome occurred, the sum of the scores, and the execution that says most about the case. Contests, the matrix of cases, JUnit
and `assay show --case` are built from these tallies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.errors import LookupFailed, format_unknown_name
from assay.model import Case, CaseTable, Execution, Phase, Report, Status, TrialReport
from assay.model.rating import is_pass
from assay.report.side_by_side import Contest, ContestRow, as_text, build_contests

SHOWN = 600
"""Characters of an output that are kept."""
ANSWERS = 20
"""Different answers of one agent to one case that are kept."""
_TITLE = 72

_BY_STATUS = {
    Status.FAILED: "agent_error",
    Status.CRASHED: "agent_error",
    Status.INVALID_OUTPUT: "agent_error",
    Status.TIMEOUT: "limit",
    Status.OVER_LIMIT: "limit",
    Status.HARNESS_ERROR: "harness_error",
    Status.CANCELLED: "cancelled",
}
_COUNTED = ("pass", "fail", "agent_error", "limit")
_MISSED = ("fail", "agent_error", "limit")


def outcome_of(execution: Execution, pass_mark: float) -> str:
    """The class that an execution falls in; `unscored` and `cancelled` count nowhere."""
    by_status = _BY_STATUS.get(execution.status)
    if by_status is not None:
        return by_status
    score = execution.measurements.get("score")
    if score is None:
        return "unscored"
    return "pass" if is_pass(score, pass_mark) else "fail"


@dataclass(frozen=True, slots=True)
class AnswerExcerpt:
    """What one execution of a case shows, cut to what a reader takes in."""

    repetition: int = field(compare=False)
    outcome: str
    output: str
    why: str
    """Reasons of the scorers, or the error."""


@dataclass(slots=True)
class CaseTally:
    """A case over its repetitions; what failed scores 0."""

    outcomes: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    """Executions that say something about the agent."""
    score: float = 0.0
    seconds: float = 0.0
    timed: int = 0
    excerpt: AnswerExcerpt | None = None
    """Excerpt of the first execution that did not pass, else of the first that did, else of the first."""
    answers: dict[AnswerExcerpt, list[int]] = field(default_factory=dict)
    """What the repetitions showed, alike ones once, each with the repetitions that showed it."""
    unkept: int = 0
    """Repetitions that showed something else once there was no more room for it."""

    @property
    def mean(self) -> float | None:
        """Mean score; None when nothing was judged."""
        return self.score / self.counted if self.counted else None

    @property
    def mean_seconds(self) -> float:
        return self.seconds / self.timed if self.timed else 0.0

    def is_passed(self, pass_mark: float) -> bool:
        return self.mean is not None and is_pass(self.mean, pass_mark)

    def take(self, execution: Execution, pass_mark: float) -> None:
        """Count one execution.

        Texts are cut before they are compared, so that a thousand long answers take little memory, and answers that agree in
        what is shown count as one.
        """
        outcome = outcome_of(execution, pass_mark)
        self.outcomes[outcome] += 1
        self.counted += outcome in _COUNTED
        if outcome in ("pass", "fail"):
            self.score += execution.measurements["score"]
        if (time := execution.measurements.get("seconds")) is not None:
            self.seconds += time
            self.timed += 1
        excerpt = AnswerExcerpt(
            execution.repetition, outcome, as_text(execution.output, SHOWN), explain_execution(execution)
        )
        excerpt_outcome = self.excerpt.outcome if self.excerpt else None
        # A miss says more than a pass, and a pass more than what could not be judged.
        if excerpt_outcome is None or (
            excerpt_outcome not in _MISSED and (outcome in _MISSED or (outcome == "pass" != excerpt_outcome))
        ):
            self.excerpt = excerpt
        if excerpt in self.answers or len(self.answers) < ANSWERS:
            self.answers.setdefault(excerpt, []).append(execution.repetition)
        else:
            self.unkept += 1


def explain_execution(execution: Execution) -> str:
    """Say in a few lines why: the error, or what the scorers said."""
    if execution.error:
        return as_text(execution.error.strip().splitlines()[-1], SHOWN)
    return describe_reasons(execution.detail)


def describe_reasons(detail: Mapping[str, object] | None) -> str:
    """What the scorers said of an answer."""
    given = detail.get("reasons") if detail else None
    reasons = given if isinstance(given, Mapping) else {}
    texts = reasons.values() if len(reasons) == 1 else (f"{name}: {text}" for name, text in reasons.items())
    return as_text("; ".join(map(str, texts)), SHOWN)


def tallies(trial: TrialReport, pass_mark: float) -> dict[str, CaseTally]:
    """Case to its tally, in the order in which the cases were first done."""
    found: dict[str, CaseTally] = {}
    for execution in trial.executions:
        if execution.phase is Phase.MEASURED and execution.case:
            found.setdefault(execution.case, CaseTally()).take(execution, pass_mark)
    return found


def case_table(executions: Iterable[Execution]) -> CaseTable:
    """The measured executions column by column, to be rated or compared anew."""
    measured = [execution for execution in executions if execution.phase is Phase.MEASURED]
    names = dict.fromkeys(name for execution in measured for name in execution.measurements)
    return CaseTable(
        cases=[execution.case for execution in measured],
        repetitions=[execution.repetition for execution in measured],
        statuses=[execution.status.value for execution in measured],
        metrics={name: [execution.measurements.get(name) for execution in measured] for name in names},
        processes=[execution.process for execution in measured],
    )


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case, with its tally for each agent of a contest in the contest's order; None where it was not done."""

    case: str
    tallies: tuple[CaseTally | None, ...]

    @property
    def mean(self) -> float | None:
        means = [tally.score / tally.counted for tally in self.tallies if tally and tally.counted]
        return sum(means) / len(means) if means else None

    def find_misses(self, contest: Contest) -> Iterator[tuple[ContestRow, CaseTally]]:
        """The agents that did not pass it, though something was judged."""
        for entry, tally in zip(contest.entries, self.tallies, strict=True):
            if tally is not None and tally.counted and not tally.is_passed(contest.pass_mark):
                yield entry, tally


def case_rows(contest: Contest) -> list[CaseRow]:
    """Every case of a contest, hardest first; those that were not judged come last."""
    # One pass over the executions of each agent; everything about cases, in every format, comes from these tallies.
    columns = [tallies(entry.trial, contest.pass_mark) for entry in contest.entries]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [CaseRow(name, tuple(column.get(name) for column in columns)) for name in names]
    return sorted(rows, key=lambda row: 2.0 if row.mean is None else row.mean)


def cases_of(report: Report, contest: Contest) -> Mapping[str, Case]:
    """The definitions of a contest's cases by id, where they are known."""
    defined = report.benchmark(contest.benchmark)
    return {case.id: case for case in defined.cases} if defined else {}


@dataclass(frozen=True, slots=True)
class AskedCase:
    """A case that was put to the agents of a contest, with all that they did."""

    contest: Contest
    definition: Case | None
    answers: tuple[tuple[ContestRow, tuple[Execution, ...]], ...]


def answers_to(report: Report, case: str) -> list[AskedCase]:
    """Every contest in which a case was asked; LookupFailed when there is none."""
    found: list[AskedCase] = []
    others: dict[str, None] = {}
    for contest in build_contests(report):
        answers = [(entry, _select_executions(entry.trial, case, others)) for entry in contest.entries]
        if any(done for _, done in answers):
            found.append(AskedCase(contest, cases_of(report, contest).get(case), tuple(answers)))
    if not found:
        raise LookupFailed(format_unknown_name(case, "cases of this run", others))
    return found


def _select_executions(trial: TrialReport, case: str, others: dict[str, None]) -> tuple[Execution, ...]:
    """What was done of one case; the ids of the other cases are noted."""
    kept = []
    for execution in trial.executions:
        if execution.case == case and execution.phase is Phase.MEASURED:
            kept.append(execution)
        elif execution.case:
            others[execution.case] = None
    return tuple(kept)


def input_text(case: Case | None, limit: int = SHOWN) -> str:
    """What was asked; of a conversation its turns, one a line."""
    if case is None:
        return ""
    if case.turns:
        return as_text("\n".join(f"› {as_text(turn.input, limit)}" for turn in case.turns), limit)
    return as_text(case.input, limit)


def expectation_text(case: Case | None, limit: int = SHOWN) -> str:
    if case is None:
        return ""
    if case.turns:
        wanted = [as_text(turn.expected, limit) for turn in case.turns if turn.expected is not None]
        lines = wanted if len(wanted) == 1 else [f"› {text}" for text in wanted]
        return as_text("\n".join(lines) or case.expected, limit)
    return as_text(case.expected, limit)


def case_title(case: Case | None) -> str:
    """What a reader knows a case by, beside its id: its name or title, else the beginning of what was asked."""
    if case is None:
        return ""
    named = case.metadata.get("title") or case.metadata.get("name")
    line = " ".join((str(named) if named else input_text(case, 4 * _TITLE)).split())
    return line if len(line) <= _TITLE else f"{line[:_TITLE].rstrip()} …"
