"""`assay stress` as a user calls it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests import forking
from tests.command import COMMAND, Assay, AssayInline, environment, heeding_signals
from tests.sim_llm.asking import quick
from tests.wording import Wording

from assay.builtin.scenarios.high_load import HighLoad
from assay.builtin.scenarios.large_inputs import LargeInputs
from assay.builtin.scenarios.rate_limiting import RateLimiting
from assay.load.build import LoadOptions
from assay.model import Report
from assay.pipeline.report import report_of, write_reports
from assay.pipeline.stress import (
    Sizes,
    StressObserver,
    StressOptions,
    StressOutcome,
    run_stress,
    strip_credentials,
)
from assay.report.stress import stress_document
from assay.spec.settings import find_settings
from assay.store.store import Store

pytestmark = pytest.mark.real_starts
"""What is below the command is measured and killed."""

QUIET = StressObserver(lambda text: None, lambda found: None, lambda pulse, load: None)
SMALL = Sizes(search=0.5, calm=0.5, sustain=0.5)


def stressed(
    folder: Path, url: str, base: float | None = 20.0, slo: str | None = "latency_p95<30s"
) -> StressOutcome:
    """Three scenarios in small, one of which does not apply."""
    options = StressOptions(LoadOptions(url, model="m", slo=slo), base=base, tags=("small",))
    scenarios = (
        HighLoad(seconds=0.5, times=2.0, recovery_seconds=0.5),
        LargeInputs(sizes=(1_000, 10_000, 100_000), each=2, recovery_seconds=0.5),
        RateLimiting(),
    )
    with Store.open(f"sqlite:///{folder}/x.db") as store:
        return run_stress(options, store, find_settings(folder), QUIET, scenarios, SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stressed")


@pytest.fixture(scope="module")
def done(folder: Path) -> StressOutcome:
    """One stress test for all that only read it. Its processes are started for real, as in the tests of this file."""
    with pytest.MonkeyPatch.context() as patch, quick() as server:
        patch.setattr(forking, "is_on", False)
        return stressed(folder, f"{server.url}/v1")


@pytest.fixture(scope="module")
def report(done: StressOutcome, folder: Path) -> Report:
    with Store.open(f"sqlite:///{folder}/x.db") as store:
        return report_of(store, done.run_id)


def test_each_scenario_is_stored_as_a_trial_and_read_back_the_same(done: StressOutcome, report: Report):
    assert [trial.name for trial in report.trials] == ["high_load", "large_inputs", "rate_limiting"]
    assert report.run.tags == ("small",)
    assert report.findings["stress"].document()["stress"] == json.loads(
        json.dumps(stress_document(done.finding))
    )
    assert {estimate.metric.kind.value for estimate in report.trials[0].estimates} == {"simulated"}


def test_what_does_not_apply_is_left_out_with_its_reason(done: StressOutcome, wording: Wording):
    finding = done.finding
    assert [score.scenario for score in finding.scores] == ["high_load", "large_inputs"]
    assert [bool(one.skipped) for one in finding.scenarios] == [False, False, True]
    wording(finding.scenarios[2].skipped)
    assert finding.resilience is not None
    assert finding.resilience.value == pytest.approx(sum(score.value for score in finding.scores) / 2)


def test_without_an_objective_one_is_derived_and_without_a_base_one_is_found(
    tmp_path: Path, wording: Wording
):
    with quick(ttft=0.005) as server:
        finding = stressed(tmp_path, f"{server.url}/v1", base=None, slo=None).finding
    assert finding.base is not None
    assert finding.base > 0
    # Half of its capacity, or a tenth of what this machine can deliver, whichever is less
    rate = float(re.findall(r"[\d.,]+", finding.base_text)[0].replace(",", ""))
    assert any(rate == pytest.approx(times * finding.base, rel=0.01) for times in (2, 10))
    assert "--slo" in finding.objective
    wording(finding.objective.partition("(")[2], numbers=False)


@pytest.mark.parametrize(
    ("kind", "file"), [("html", "report.html"), ("md", "report.md"), ("json", "result.json")]
)
def test_reports_tell_of_the_stress_test(
    done: StressOutcome, report: Report, tmp_path: Path, kind: str, file: str
):
    write_reports(report, [kind], tmp_path / "out")
    text = (tmp_path / "out" / file).read_text(encoding="utf-8").replace("\\_", "_")
    assert "high_load" in text
    assert done.finding.scenarios[2].skipped in text
    assert "esilience" in text


def test_the_command_gives_one_document_and_show_repeats_it(assay_inline: AssayInline):
    with quick() as server:
        arguments = ("--scenario", "large_inputs", "--quick", "--base", "20", "--slo", "latency_p95<60s")
        done = assay_inline("stress", f"{server.url}/v1", *arguments, "--json")
    document = json.loads(done.out)
    assert done.code == (1 if document["scenarios"][0]["broke"] else 0), done.err
    (scenario,) = document["scenarios"]
    assert scenario["scenario"] == "large_inputs"
    assert scenario["requests_offered"] == 12
    assert 0 <= document["resilience"] <= 1
    assert document["simulated"]
    shown_again = assay_inline("show", document["run"])
    assert "Resilience" in shown_again.out
    assert "large_inputs" in shown_again.out


def test_something_that_breaks_is_exit_code_one(assay_inline: AssayInline, wording: Wording):
    with quick() as server:
        arguments = ("--scenario", "large_inputs", "--quick", "--base", "20", "--slo", "latency_p95<1us")
        done = assay_inline("stress", f"{server.url}/v1", *arguments)
    assert done.code == 1, done.err
    assert "no more often than at the base rate" in " ".join(done.out.split())
    assert "assay report" in done.err
    # Reports say so, too.
    assert assay_inline("report", "last", "--format", "junit,html", "--out", "out").code == 0
    (suites,) = ElementTree.parse(assay_inline.folder / "out" / "junit.xml").iter("testsuites")
    assert (suites.get("tests"), suites.get("failures")) == ("1", "1")
    page = (assay_inline.folder / "out" / "report.html").read_text(encoding="utf-8")
    (chip,) = re.findall('<span class="chip bad">(.*?)</span>', page.partition("</h1>")[2][:900])
    wording(chip)


def test_ctrl_c_keeps_the_scenarios_that_are_done(assay: Assay):
    with quick() as server:
        command = [str(COMMAND), "stress", f"{server.url}/v1", "--base", "10", "--slo", "latency_p95<60s"]
        process = subprocess.Popen(
            [*command, "--quick", "--scenario", "large_inputs", "--scenario", "sustained_load"],
            cwd=assay.folder,
            env=environment({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heeding_signals,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("sustained_load: running"):
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=120)
        interrupted = assay("show", "last", "--json").json["status"]
        resumed = assay("run", "--resume", "last", "--json")
    assert process.returncode == 130, err
    assert "large_inputs" in out
    assert "sustained_load" not in out
    assert "Interrupted" in err
    assert "assay run --resume" in err
    assert interrupted == "interrupted"
    assert [trial["name"] for trial in resumed.json["trials"]] == ["large_inputs", "sustained_load"]
    assert resumed.json["status"] == "completed"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("http://127.0.0.1:9/v1", "--scenario", "spike"), "spike_load"),
        (("http://127.0.0.1:9/v1", "--base", "0"), "--base"),
        (("http://127.0.0.1:9/v1", "--base", "fast"), "--base"),
        (("http://127.0.0.1:9/v1", "--slo", "soon"), "--slo"),
        (("http://192.0.2.1/v1",), "--allow-host 192.0.2.1"),
        (("nobody",), "'nobody'"),
        (("http://127.0.0.1:9/v1", "--quick"), "127.0.0.1:9"),
        (("http://127.0.0.1:9/v1", "--quick", "--base", "5"), "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_done_is_reported_in_one_message(
    assay_inline: AssayInline, arguments: tuple[str, ...], told: str, wording: Wording
):
    refusal = assay_inline("stress", *arguments).refusal
    assert told in refusal
    wording(refusal, near="Error: ", numbers=False)


def test_scenarios_are_listed(assay_inline: AssayInline):
    listed = assay_inline("list", "scenarios", "--json").json
    assert "failure_recovery" in [one["name"] for one in listed]


def test_a_password_in_a_url_is_not_stored():
    assert strip_credentials("http://me:secret@127.0.0.1:9000/v1") == "http://127.0.0.1:9000/v1"
