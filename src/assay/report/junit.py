"""Trials as test cases, for CI servers that draw them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from assay.model import Report, Status, TrialReport
from assay.report.figures import (
    cv_text,
    doubts_of,
    environment_line,
    failure_text,
    first_lines,
    last_lines,
    lasted,
    leading,
    ok_text,
    total,
    trial_doubts,
    with_interval,
)

_OURS = (Status.HARNESS_ERROR, Status.CRASHED)
"""What JUnit calls an error: nothing was judged, the test itself broke."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, in any spelling."""


class JUnit:
    """Writes `junit.xml`. A test case fails when none of its executions was ok; its time is the median."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "junit.xml"
        tree = ElementTree.ElementTree(_suites(report))
        ElementTree.indent(tree)
        tree.write(path, encoding="utf-8", xml_declaration=True)
        return [path]


def _suites(report: Report) -> ElementTree.Element:
    cases = [_case(report, trial) for trial in report.trials]
    counts = {
        "tests": str(len(cases)),
        **{
            f"{kind}s": str(sum(case.find(kind) is not None for case in cases))
            for kind in ("failure", "error")
        },
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": f"{lasted(report) or 0:.3f}",
    }
    root = _element("testsuites", name="assay", **counts)
    suite = _element(
        "testsuite", name=report.run.name, timestamp=f"{report.run.started:%Y-%m-%dT%H:%M:%S}", **counts
    )
    root.append(suite)
    suite.append(_properties(_run_facts(report)))
    suite.extend(cases)
    return root


def _run_facts(report: Report) -> dict[str, str]:
    facts = {"run_id": report.run.id, "environment": environment_line(report.run.environment)}
    return facts | {f"warning.{n}": str(doubt) for n, doubt in enumerate(doubts_of(report), 1)}


def _case(report: Report, trial: TrialReport) -> ElementTree.Element:
    point, first = trial.stored.trial, leading(trial)
    time = first.median if first is not None and first.metric.unit == "s" else 0.0
    case = _element(
        "testcase", name=trial.name, classname=f"{point.benchmark or point.experiment}", time=f"{time:.9f}"
    )
    case.append(_properties(_figures(trial)))
    _judge(case, trial)
    doubts = [str(doubt) for doubt in trial_doubts(report, trial)]
    if doubts:
        case.append(_element("system-out", "\n".join(doubts)))
    if trial.failures:
        case.append(_element("system-err", _failures(trial)))
    return case


def _judge(case: ElementTree.Element, trial: TrialReport) -> None:
    if trial.ok:
        return
    if not total(trial) and not trial.failures:
        case.append(_element("skipped", message=trial.stored.stopped or "No execution was made."))
        return
    first = next(iter(trial.failures), None)
    kind = "error" if first is not None and first.status in _OURS else "failure"
    message = f"{ok_text(trial)} executions were ok" + (f"; first: {failure_text(first)}" if first else "")
    case.append(_element(kind, first_lines(first.error) if first else "", message=message))


def _figures(trial: TrialReport) -> dict[str, str]:
    figures = {
        e.metric.name: f"{with_interval(e)}, CV {cv_text(e)}, {e.metric.kind.value}" for e in trial.estimates
    }
    return {"executions": ok_text(trial), **figures}


def _failures(trial: TrialReport) -> str:
    return "\n\n".join(
        "\n".join(filter(None, (failure_text(failure), first_lines(failure.error), last_lines(failure.log))))
        for failure in trial.failures
    )


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
