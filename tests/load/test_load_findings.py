"""What the console says of a load is in every document afterwards: objectives, validity, errors, and how it ended."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.command import AssayInline
from tests.load.faulty import ANSWER, Guest, Talk, always, faulty, with_length
from tests.load.results import result
from tests.wording import Wording

from assay.analysis.load.judgement import judge_load
from assay.model.figure import Figure
from assay.model.load import Arrivals, Load
from assay.model.load_document import load_document
from assay.model.load_verdict import LoadVerdict, verdict_of, worst_verdict
from assay.report.load_findings import findings_of
from assay.spec.load_settings import objectives_of


def document(slo: str = "", **changes: Any) -> Mapping[str, Any]:
    load = Load(Arrivals.CONSTANT, stages=((10.0, 100.0, 100.0),), seconds=10.0)
    objectives = objectives_of(slo) if slo else ()
    return load_document(judge_load(result(**changes), Load(**{**_fields(load), "objectives": objectives})))


def _fields(load: Load) -> dict[str, Any]:
    return {name: getattr(load, name) for name in load.__slots__}


FAILED = {"errors": {"http_500": 100}, "requests_completed": 900, "error_rate": Figure(0.1, 0.08, 0.12)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "ok"),
        ({"slo": "ttft_p95<60ms"}, "slo_kept"),
        ({"slo": "ttft_p95<40ms"}, "slo_broken"),
        ({"slo": "tpot_p95<40ms"}, "slo_not_measured"),
        (FAILED, "errors"),
        ({"lag_p99": 1.0, **FAILED}, "invalid"),
        ({"lag_p99": 1.0, "slo": "ttft_p95<40ms"}, "slo_broken"),
        ({"errors": {"http_500": 600}, "error_rate": Figure(0.6)}, "unavailable"),
        ({"is_cut": True}, "interrupted"),
        ({"is_cut": True, "aborted": "error_rate>50%: 80 %"}, "aborted"),
        ({"requests_completed": 0, "errors": {"refused": 1000}, "error_rate": Figure(1.0)}, "no_answers"),
        ({"errors": {"cut_off": 3}}, "ok"),
        ({"requests_completed": 0, "errors": {"cut_off": 4}, "is_cut": True, "times": {}}, "interrupted"),
        (
            {
                "requests_completed": 0,
                "errors": {"cut_off": 4},
                "is_cut": True,
                "times": {},
                "slo": "ttft_p95<40ms",
            },
            "interrupted",
        ),
        (
            {"requests_completed": 0, "errors": {"refused": 4}, "is_cut": True, "error_rate": Figure(1.0)},
            "no_answers",
        ),
    ],
)
def test_the_worst_that_is_to_be_said_is_the_verdict(given: dict[str, Any], expected: str) -> None:
    found = document(**given)
    assert found["verdict"] == expected
    assert verdict_of(found) == expected


def test_the_worst_of_several_loads_is_that_of_the_run() -> None:
    assert worst_verdict(["ok", "errors", "slo_broken"]) is LoadVerdict.SLO_BROKEN
    assert worst_verdict([]) is None
    assert worst_verdict(["from_a_later_version"]) is None


def test_findings_tell_each_objective_validity_and_errors(wording: Wording) -> None:
    found = findings_of(document(slo="ttft_p95<40ms,error_rate<50%", lag_p99=1.0, **FAILED))
    assert [(one.tone, one.is_objective) for one in found] == [
        ("bad", True),
        ("good", True),
        ("warn", False),
        ("bad", False),
    ]
    assert re.findall(r"\d+ ms", found[0].detail) == ["50 ms", "45 ms", "55 ms"]
    assert "http_500 100" in found[3].detail
    wording("\n".join(map(str, found)))


def dead_after(answers: int) -> Talk:
    """Answers so many requests, and says 503 to all others."""

    def talk(guest: Guest) -> None:
        time.sleep(0.02)
        guest.say(ANSWER if guest.number <= answers else with_length(b"", status=b"503 Away"))

    return talk


def test_a_server_that_dies_halfway_ends_with_1_and_is_reported_everywhere(assay_inline: AssayInline) -> None:
    with faulty(dead_after(40)) as server:
        done = assay_inline("load", server.url, "--rate", "20", "--duration", "4", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert found["verdict"] == "unavailable"
    (outage,) = found["outages"]
    assert outage["at_s"] == pytest.approx(2.0, abs=0.26)
    assert outage["at_s"] + outage["seconds"] == pytest.approx(4.0, abs=0.26)
    assert outage["failed"] == pytest.approx(40, abs=6)
    (row,) = assay_inline("runs", "list", "--json").json
    assert (row["state"], row["verdict"]) == ("completed", "unavailable")
    listed = assay_inline("runs", "list").out
    assert "unavailable" in listed
    assert "completed" not in listed
    shown = assay_inline("show", "last").out
    assert "http_503" in shown
    assert "unavailable" in shown


def test_an_objective_is_in_every_document_with_its_figure(
    assay_inline: AssayInline, wording: Wording
) -> None:
    with faulty(always(ANSWER)) as server:
        done = assay_inline(
            "load", server.url, "--requests", "30", "--slo", "latency_p95<1us,error_rate<1%", "--json"
        )
    assert done.code == 1
    run = assay_inline("show", "last", "--json").json
    (load,) = run["loads"]
    assert load["verdict"] == "slo_broken"
    assert [(one["objective"], one["met"]) for one in load["slo"]] == [
        ("latency_p95<1us", False),
        ("error_rate<1%", True),
    ]
    assert load["slo"][0]["value"] == json.loads(done.out)["slo"][0]["value"]
    assert "over_time" not in load
    assert "✗ latency_p95<1us " in assay_inline("show", "last").out
    pages = {}
    for kind in ("md", "html", "junit", "json"):
        (file,) = assay_inline("report", "last", "--format", kind, "--out", "page", "--json").json["files"]
        pages[kind] = Path(assay_inline.folder, file).read_text(encoding="utf-8")
    assert "✗ " in pages["md"]
    assert "✓ " in pages["md"]
    chips = re.findall('<span class="chip bad">(.*?)</span>', pages["html"])
    assert "latency_p95&lt;1us" in pages["html"]
    (failure,) = ElementTree.fromstring(pages["junit"]).iter("failure")
    assert failure.get("message") in chips
    wording(failure.get("message"))
    assert '"verdict": "slo_broken"' in pages["json"]


def test_a_swept_load_has_a_verdict_in_the_list_of_runs(assay_inline: AssayInline) -> None:
    with faulty(always(ANSWER)) as server:
        done = assay_inline(
            "run", "load", "--set", f"target={server.url}", "--set", "requests=5", "--set", "slo=latency_p95<1us",
        )  # fmt: skip
    assert done.code == 0
    (row,) = assay_inline("runs", "list", "--json").json
    assert row["verdict"] == "slo_broken"


def test_runs_that_are_no_loads_have_no_verdict(assay_inline: AssayInline) -> None:
    assert assay_inline("run", "noop").code == 0
    (row,) = assay_inline("runs", "list", "--json").json
    assert row["verdict"] is None
    assert "completed" in assay_inline("runs", "list").out
