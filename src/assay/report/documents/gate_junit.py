"""The result of `assay gate` as JUnit test cases, for CI servers.

There is one test case for each benchmark and metric. It fails only where the metric got worse; unsure is reported as skipped.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from assay.model import Comparison, Verdict
from assay.model.regression import Gate
from assay.model.requirement import CheckedRequirement
from assay.report.change import change_text, sides_name, tolerance_text
from assay.report.console.gate import (
    broken_text,
    case_lines,
    headline,
    incomplete_text,
    requirement_text,
    scoring_failure_text,
)
from assay.units import format_count, show

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def gate_junit(gate: Gate) -> str:
    cases = [
        *(_failure(name, "executions", broken_text(name), "broken") for name in gate.broken),
        *(_failure(name, "scoring", scoring_failure_text(name), "unscored") for name in gate.unscored),
        *(_failure(name, "completeness", incomplete_text(name), "incomplete") for name in gate.incomplete),
        *(_requirement(one) for one in gate.requirements),
        *_lost_cases(gate),
        *(_case(one) for one in gate.verdicts),
    ]
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
        "errors": 0,
    }
    suite = _element("testsuite", "", name=f"gate {gate.baseline}".strip(), **_texts(counts))
    facts = {"run_id": gate.b.run.id, "verdict": headline(gate)}
    if gate.has_baseline:
        facts["baseline_run_id"] = gate.a.run.id
    facts |= {f"warning.{n}": str(doubt) for n, doubt in enumerate(gate.doubts, 1)}
    properties = _element("properties", "")
    properties.extend(_element("property", "", name=name, value=value) for name, value in facts.items())
    suite.append(properties)
    suite.extend(cases)
    root = _element("testsuites", "", name="assay gate", **_texts(counts))
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _texts(counts: dict[str, int]) -> dict[str, str]:
    return {name: str(number) for name, number in counts.items()}


def _failure(trial: str, name: str, message: str, kind: str) -> ElementTree.Element:
    case = _element("testcase", "", classname=trial, name=name, time="0")
    case.append(_element("failure", "", message=message, type=kind))
    return case


def _requirement(one: CheckedRequirement) -> ElementTree.Element:
    case = _element("testcase", "", classname=one.trial, name=f"require {one.requirement}", time="0")
    if not one.is_met:
        case.append(_element("failure", "", message=requirement_text(one), type="requirement"))
    case.append(_element("system-out", requirement_text(one)))
    return case


def _lost_cases(gate: Gate) -> list[ElementTree.Element]:
    """One for all trials, as `--max-lost` counts them together; it fails only where that was asked for."""
    lines = "\n".join(line for _, line in case_lines(gate))
    if not lines and gate.max_lost is None:
        return []
    case = _element("testcase", "", classname=f"gate {gate.baseline}", name="lost cases", time="0")
    if gate.has_lost_too_many:
        message = f"{format_count(gate.lost, 'case')} lost (at most {gate.max_lost} allowed)"
        case.append(_element("failure", lines, message=message, type="lost"))
    case.append(_element("system-out", lines))
    return [case]


def _case(one: Comparison) -> ElementTree.Element:
    time = one.value_b if one.metric.unit == "s" else 0.0
    case = _element("testcase", "", classname=sides_name(one), name=one.metric.name, time=f"{time:.9f}")
    figures = (
        f"{show(one.value_a, one.metric.unit)} in the baseline, {show(one.value_b, one.metric.unit)} now: "
        f"{change_text(one)}, tolerance {tolerance_text(one)}"
    )
    if one.verdict is Verdict.WORSE:
        case.append(
            _element("failure", one.method, message=f"{one.metric.name} got worse: {figures}", type="worse")
        )
    elif one.verdict is Verdict.UNSURE:
        case.append(_element("skipped", "", message=f"unsure: {one.reason}"))
    case.append(_element("system-out", f"{one.verdict}: {figures}"))
    return case


def _element(tag: str, content: str, **attributes: str) -> ElementTree.Element:
    made = ElementTree.Element(tag, {name: _FORBIDDEN.sub("�", value) for name, value in attributes.items()})
    made.text = _FORBIDDEN.sub("�", content) or None
    return made
