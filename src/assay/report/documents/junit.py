"""JUnit files for CI servers: the reporter `junit`, whose test cases are trials, and the result of `assay gate`.

A trial of code is one test case, with its median as its time. Of a suite, each case of each agent is a test case, and the mean
of its scores decides whether it passed. Of a gate there is a test case for each benchmark and metric, which fails only where
the metric got worse; unsure is reported as skipped, so that a CI server shows it without breaking the build.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from assay.model import Comparison, Report, Status, TrialReport, Verdict
from assay.model.regression import Gate
from assay.model.requirement import CheckedRequirement
from assay.plugin.private_files import open_private
from assay.report.cases import CaseTally, tallies
from assay.report.change import change_text, sides_name, tolerance_text
from assay.report.console.gate import (
    broken_text,
    case_lines,
    headline,
    incomplete_text,
    requirement_text,
    scoring_failure_text,
)
from assay.report.figures import (
    compute_run_seconds,
    cv_text,
    doubts_of,
    environment_line,
    failure_text,
    first_lines,
    last_lines,
    leading,
    ok_text,
    total,
    trial_doubts,
    with_interval,
)
from assay.report.side_by_side import OUTCOMES, pass_mark_of, rating_text
from assay.units import format_count, show

_OURS = (Status.HARNESS_ERROR, Status.CRASHED)
"""What JUnit calls an error: nothing was judged, the test itself broke."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, in any spelling."""


class JUnit:
    """Writes `junit.xml`.

    Of code, a test case is a trial: it fails when no execution was ok, and its time is the median. Of a suite, it is a
    case put to an agent: it fails when its mean score is below the pass mark, and its time is the mean.
    """

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "junit.xml"
        tree = ElementTree.ElementTree(_suites(report))
        ElementTree.indent(tree)
        with open_private(path, "wb") as file:
            tree.write(file, encoding="utf-8", xml_declaration=True)
        return [path]


def _suites(report: Report) -> ElementTree.Element:
    """Code experiments are one suite of trials; an agent on a benchmark is a suite of its own, of cases."""
    plain = [trial for trial in report.trials if trial.ratings is None]
    suites = [_agent_suite(report, trial) for trial in report.trials if trial.ratings is not None]
    if plain or not suites:
        cases = [_case(report, trial) for trial in plain]
        suites.insert(
            0, _suite(report, report.run.name, cases, _run_facts(report), compute_run_seconds(report) or 0)
        )
    cases = [case for suite in suites for case in suite.iter("testcase")]
    root = _element(
        "testsuites", name="assay", **_counts(cases), time=f"{compute_run_seconds(report) or 0:.3f}"
    )
    root.extend(suites)
    return root


def _suite(
    report: Report, name: str, cases: Sequence[ElementTree.Element], facts: dict[str, str], time: float
) -> ElementTree.Element:
    started = f"{report.run.started:%Y-%m-%dT%H:%M:%S}"
    suite = _element("testsuite", name=name, timestamp=started, **_counts(cases), time=f"{time:.3f}")
    suite.append(_properties(facts))
    suite.extend(cases)
    return suite


def _counts(cases: Sequence[ElementTree.Element]) -> dict[str, str]:
    found = {
        kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")
    }
    return {
        "tests": str(len(cases)),
        "failures": str(found["failure"]),
        "errors": str(found["error"]),
        "skipped": str(found["skipped"]),
    }


def _agent_suite(report: Report, trial: TrialReport) -> ElementTree.Element:
    point = trial.stored.trial
    mark = pass_mark_of(report, point.benchmark)
    found = tallies(trial, mark)
    cases = [_suite_case(trial, name, tally, mark) for name, tally in found.items()]
    facts = _run_facts(report) | _rating_facts(trial)
    return _suite(report, trial.name, cases, facts, sum(tally.seconds for tally in found.values()))


def _rating_facts(trial: TrialReport) -> dict[str, str]:
    """Ratings as properties, which CI servers show beside the test cases."""
    ratings = trial.ratings
    assert ratings is not None
    marks = {name: f"{rating_text(rating)} ({rating.basis})" for name, rating in ratings.dimensions.items()}
    outcomes = ", ".join(f"{number} {name}" for name, number in ratings.outcomes.items())
    return {
        "agent": f"{trial.stored.trial.agent.name} {trial.stored.trial.agent.version}".strip(),
        "simulated": str(trial.is_simulated).lower(),
        **marks,
        "overall": f"{rating_text(ratings.overall)} ({ratings.overall.basis})",
        "outcomes": outcomes,
        "unscored": str(ratings.unscored),
    }


def _suite_case(trial: TrialReport, name: str, tally: CaseTally, mark: float) -> ElementTree.Element:
    point = trial.stored.trial
    label = f"{point.suite}.{point.benchmark}.{point.agent.name}"
    case = _element("testcase", name=name, classname=label, time=f"{tally.mean_seconds:.9f}")
    verdict = _verdict(tally, mark)
    if verdict and tally.excerpt:
        details = "\n".join(filter(None, (tally.excerpt.why, f"Output: {tally.excerpt.output}")))
        outcomes = ", ".join(f"{n} {OUTCOMES.get(name, name)}" for name, n in tally.outcomes.items())
        judged = f"mean score {tally.mean:.2f}" if tally.mean is not None else "nothing was judged"
        case.append(_element(verdict, details, message=f"{judged}: {outcomes}"))
    return case


def _verdict(tally: CaseTally, mark: float) -> str:
    """What JUnit calls it; nothing for a case that was passed.

    A failure is an answer that was judged and found wanting, an error is no answer. What could not be judged is skipped: it
    says nothing about the agent.
    """
    if tally.mean is None:
        return "skipped"
    if tally.is_passed(mark):
        return ""
    return "error" if tally.outcomes["agent_error"] else "failure"


def _run_facts(report: Report) -> dict[str, str]:
    facts = {"run_id": report.run.id, "environment": environment_line(report.run.environment)}
    return facts | {f"warning.{n}": str(doubt) for n, doubt in enumerate(doubts_of(report), 1)}


def _case(report: Report, trial: TrialReport) -> ElementTree.Element:
    """One trial of code as a test case. Warnings go to its standard output and failures to its standard error."""
    point, first = trial.stored.trial, leading(trial)
    time = first.median if first is not None and first.metric.unit == "s" else 0.0
    case = _element(
        "testcase", name=trial.name, classname=f"{point.benchmark or point.experiment}", time=f"{time:.9f}"
    )
    figures = {
        e.metric.name: f"{with_interval(e)}, CV {cv_text(e)}, {e.metric.kind.value}" for e in trial.estimates
    }
    case.append(_properties({"executions": ok_text(trial), **figures}))
    _judge(case, trial)
    finding = report.finding_of(trial)
    if finding is not None and (failure := finding.failure(trial)) is not None:
        case.append(_element("failure", failure.text, message=failure.title))
    doubts = [str(doubt) for doubt in trial_doubts(report, trial)]
    if doubts:
        case.append(_element("system-out", "\n".join(doubts)))
    if trial.failures:
        failures = (
            "\n".join(filter(None, (failure_text(e), first_lines(e.error), last_lines(e.log))))
            for e in trial.failures
        )
        case.append(_element("system-err", "\n\n".join(failures)))
    return case


def _judge(case: ElementTree.Element, trial: TrialReport) -> None:
    """Mark a test case as failed if nothing of it was ok, and as an error where the harness or the program itself broke."""
    if trial.ok:
        return
    if not total(trial) and not trial.failures:
        case.append(_element("skipped", message=trial.stored.stopped or "No execution was made."))
        return
    first = next(iter(trial.failures), None)
    kind = "error" if first is not None and first.status in _OURS else "failure"
    message = f"{ok_text(trial)} executions were ok" + (f"; first: {failure_text(first)}" if first else "")
    case.append(_element(kind, first_lines(first.error) if first else "", message=message))


def _properties(facts: dict[str, str]) -> ElementTree.Element:
    element = _element("properties")
    element.extend(_element("property", name=name, value=value) for name, value in facts.items())
    return element


def _element(tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    element = ElementTree.Element(
        tag, {name: _FORBIDDEN.sub("�", value) for name, value in attributes.items()}
    )
    element.text = _FORBIDDEN.sub("�", text) or None
    return element


def gate_junit(gate: Gate) -> str:
    """The result of a gate. Everything that can fail it is a test case of its own, so that a CI server names the reason."""
    cases = [
        *(_gate_failure(name, "executions", broken_text(name), "broken") for name in gate.broken),
        *(_gate_failure(name, "scoring", scoring_failure_text(name), "unscored") for name in gate.unscored),
        *(
            _gate_failure(name, "completeness", incomplete_text(name), "incomplete")
            for name in gate.incomplete
        ),
        *(_requirement(requirement) for requirement in gate.requirements),
        *_lost_cases(gate),
        *(_comparison(comparison) for comparison in gate.verdicts),
    ]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "errors": "0",
    }
    suite = _element("testsuite", name=f"gate {gate.baseline}".strip(), **counts)
    facts = {"run_id": gate.b.run.id, "verdict": headline(gate)}
    if gate.has_baseline:
        facts["baseline_run_id"] = gate.a.run.id
    facts |= {f"warning.{n}": str(doubt) for n, doubt in enumerate(gate.doubts, 1)}
    suite.append(_properties(facts))
    suite.extend(cases)
    root = _element("testsuites", name="assay gate", **counts)
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _gate_failure(trial: str, name: str, message: str, kind: str) -> ElementTree.Element:
    case = _element("testcase", classname=trial, name=name, time="0")
    case.append(_element("failure", message=message, type=kind))
    return case


def _requirement(checked: CheckedRequirement) -> ElementTree.Element:
    case = _element("testcase", classname=checked.trial, name=f"require {checked.requirement}", time="0")
    if not checked.is_met:
        case.append(_element("failure", message=requirement_text(checked), type="requirement"))
    case.append(_element("system-out", requirement_text(checked)))
    return case


def _lost_cases(gate: Gate) -> list[ElementTree.Element]:
    """One for all trials, as `--max-lost` counts them together; it fails only where that was asked for."""
    lines = "\n".join(line for _, line in case_lines(gate))
    if not lines and gate.max_lost is None:
        return []
    case = _element("testcase", classname=f"gate {gate.baseline}", name="lost cases", time="0")
    if gate.has_lost_too_many:
        message = f"{format_count(gate.lost, 'case')} lost (at most {gate.max_lost} allowed)"
        case.append(_element("failure", lines, message=message, type="lost"))
    case.append(_element("system-out", lines))
    return [case]


def _comparison(comparison: Comparison) -> ElementTree.Element:
    time = comparison.value_b if comparison.metric.unit == "s" else 0.0
    case = _element(
        "testcase", classname=sides_name(comparison), name=comparison.metric.name, time=f"{time:.9f}"
    )
    figures = (
        f"{show(comparison.value_a, comparison.metric.unit)} in the baseline, {show(comparison.value_b, comparison.metric.unit)} now: "
        f"{change_text(comparison)}, tolerance {tolerance_text(comparison)}"
    )
    if comparison.verdict is Verdict.WORSE:
        case.append(
            _element(
                "failure",
                comparison.method,
                message=f"{comparison.metric.name} got worse: {figures}",
                type="worse",
            )
        )
    elif comparison.verdict is Verdict.UNSURE:
        case.append(_element("skipped", message=f"unsure: {comparison.reason}"))
    case.append(_element("system-out", f"{comparison.verdict}: {figures}"))
    return case
