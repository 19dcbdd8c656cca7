"""Long answers are judged whole; what is stored of an agent's texts has limits, and says what was left out."""

from __future__ import annotations

import json
import re

from tests.command import AssayInline
from tests.suites.project import Stored, python_agent, suite
from tests.wording import Wording

AGENTS = """
from assay.model import Answer, Span, ToolCall

def talkative(what):
    match what:
        case "long": return "x" * 300_000 + "right"
        case "list": return list(range(5_000))
        case "endless": return "x" * 20_000_000
        case "error": raise ValueError("e" * 10_000_000)
        case "spans": return Answer("ok", spans=tuple(Span("s" * 9999, "llm", 0.0, 0.1) for _ in range(5_000)))
        case "tools": return Answer("ok", tuple(ToolCall("t", {"a": "x" * 50_000}) for _ in range(20)))
        case "model": return {"output": "ok", "model": "m" * 1_000_000, "log": "l" * 1_000_000}
        case "surrogate": return {"output": "\\ud800", "model": "\\ud800", "log": "\\ud800"}
"""
EXPECTED = {
    "long": "x" * 300_000 + "right",
    "list": list(range(5_000)),
    **dict.fromkeys(("endless", "error", "spans", "tools", "model"), "ok"),
    "surrogate": "?",
}


def test_long_answers_are_judged_whole_and_everything_stored_has_a_limit(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("agents.py", AGENTS)
    cases = [{"id": name, "input": name, "expected": right} for name, right in EXPECTED.items()]
    assay_inline.write("cases.json", json.dumps(cases))
    benchmark = {"scorer": "exact"}
    assay_inline.write("s.yaml", suite("cases.json", [python_agent("talkative")], benchmark=benchmark))
    assert assay_inline("run", "s.yaml", "-q").code == 0
    stored = Stored(assay_inline.folder)
    found = {one.case: one for one in stored.measured}
    assert stored.status() == {
        **dict.fromkeys(EXPECTED, "ok"),
        "endless": "invalid_output",
        "error": "failed",
    }
    scores = stored.metric("score")
    assert {name: scores[name] for name in ("long", "list", "spans", "tools", "model")} == dict.fromkeys(
        ("long", "list", "spans", "tools", "model"), 1.0
    )
    assert "10,000,000" in (found["endless"].error or "")
    assert all(
        len(json.dumps([one.output, one.detail, one.error, one.log])) < 800_000 for one in found.values()
    )
    assert found["long"].detail == {"shortened": {"output": 300_005}}
    note = str(found["long"].output).lstrip("x")
    assert re.findall(r"[\d,]+\d", note) == ["100,000", "300,005"]
    wording(note)
    assert len((found["spans"].detail or {})["spans"]) == 1_000  # type: ignore[arg-type]
    assert (found["spans"].detail or {})["shortened"] == {"spans": 5_000}
    assert len(str((found["model"].applied or {})["model"])) < 1_000

    shown = assay_inline("show", "last", "--case", "long")
    assert "300,005" in shown.out
    assert "assay run s.yaml --case long" in shown.err
    rescored = assay_inline("rescore", "--json").json
    assert (rescored["scores_kept"], rescored["scores_changed"]) == (2, 0)
    assert Stored(assay_inline.folder).metric("score") == scores
