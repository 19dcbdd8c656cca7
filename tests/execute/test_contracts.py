"""The built-in plug-ins keep the contracts that are published for those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.rl.test_algorithm_comparison import make_trials
from tests.teams.teams import Legs
from tests.workflow.plans import build_workflow_trials

from assay.analysis.findings import read_findings
from assay.model import Artifact, Report, TrialReport
from assay.plugin import lookup
from assay.testing import (
    AgentContract,
    ExecutorContract,
    ExperimentContract,
    FindingContract,
    InstrumentContract,
    ReporterContract,
    ScenarioContract,
    ScorerContract,
)


class TestStub(AgentContract):
    agent = "stub"
    options = {"answer": "yes"}  # noqa: RUF012


class TestNop(AgentContract):
    agent = "nop"


class TestExact(ScorerContract):
    scorer = "exact"


class TestF1(ScorerContract):
    scorer = "f1"


class TestHighLoad(ScenarioContract):
    scenario = "high_load"


class TestSustainedLoad(ScenarioContract):
    scenario = "sustained_load"


class TestNoop(ExperimentContract):
    experiment = "noop"


class TestPragmaProfile(ExperimentContract):
    experiment = "pragma_profile"
    params = {"num_records": 20}  # noqa: RUF012


class TestSteady(ExperimentContract):
    experiment = "assay.testing:Steady"


class TestTiming(InstrumentContract):
    instrument = "timing"


class TestPsutil(InstrumentContract):
    instrument = "psutil"
    options = {"interval_ms": 10}  # noqa: RUF012


class TestCProfile(InstrumentContract):
    instrument = "cprofile"


class TestMemory(InstrumentContract):
    instrument = "memory"


class TestRusage(InstrumentContract):
    instrument = "rusage"


class TestProfile(InstrumentContract):
    instrument = "profile"


class TestRepeats(InstrumentContract):
    instrument = "repeats"


class TestMemray(InstrumentContract):
    instrument = "memray"


class TestGpu(InstrumentContract):
    instrument = "gpu"


class TestLocal(ExecutorContract):
    executor = "local"


class TestHtml(ReporterContract):
    reporter = "html"


class TestMarkdown(ReporterContract):
    reporter = "md"


class TestJson(ReporterContract):
    reporter = "json"


class TestCsv(ReporterContract):
    reporter = "csv"


class TestPng(ReporterContract):
    reporter = "png"


class TestJUnit(ReporterContract):
    reporter = "junit"


class TestServing(ReporterContract):
    reporter = "serving"

    def sample(self) -> Report:
        report = super().sample()
        stored = [
            replace(one.stored, trial=replace(one.stored.trial, experiment="serving"))
            for one in report.trials
        ]
        trials = [
            replace(one, stored=as_serving) for one, as_serving in zip(report.trials, stored, strict=True)
        ]
        return replace(report, trials=tuple(trials))


class TestTeam(ReporterContract):
    reporter = "team"

    def sample(self) -> Report:
        _, findings = read_findings(build_team_trials())
        return replace(super().sample(), findings=findings)


class TestSpeedscope(ReporterContract):
    reporter = "speedscope"

    def sample(self) -> Report:
        report = super().sample()
        samples = Artifact(1, "profile-000.speedscope.json", "speedscope", b"{}")
        return replace(report, trials=tuple(replace(one, artifacts=(samples,)) for one in report.trials))


class TestWorkflow(ReporterContract):
    reporter = "workflow"

    def sample(self) -> Report:
        trials, findings = read_findings(build_workflow_trials())
        return replace(super().sample(), trials=tuple(trials), findings=findings)


class TestComponents(ReporterContract):
    reporter = "components"


class TestAlgorithmFiles(ReporterContract):
    reporter = "algorithm_comparison"

    def sample(self) -> Report:
        trials, findings = read_findings(make_trials(grpo=[[0.1, 0.9] * 30] * 3, ppo=[[0.1, 0.5] * 30] * 3))
        return replace(super().sample(), trials=tuple(trials), findings=findings)


class TestFrameworkFiles(ReporterContract):
    reporter = "framework_comparison"

    def sample(self) -> Report:
        trials = [
            replace(one, stored=replace(one.stored, trial=replace(one.stored.trial, experiment="framework")))
            for one in super().sample().trials
        ]
        read, findings = read_findings(trials)
        return replace(super().sample(), trials=tuple(read), findings=findings)


class TestGrades(FindingContract):
    finding = "grades"

    def trials(self) -> list[TrialReport]:
        return [
            replace(
                one, stored=replace(one.stored, trial=replace(one.stored.trial, experiment="agent_latency"))
            )
            for one in super().trials()
        ]


class TestWorkflowFinding(FindingContract):
    finding = "workflow"

    def trials(self) -> Sequence[TrialReport]:
        return build_workflow_trials()


class TestReference(AgentContract):
    agent = "reference"


class TestTeamFinding(FindingContract):
    finding = "team"

    def trials(self) -> Sequence[TrialReport]:
        return build_team_trials()


def build_team_trials() -> Sequence[TrialReport]:
    sequential = [("first", "a", 0.0, 1.0, 0.1), ("second", "a", 1.0, 2.0, 0.1)]
    concurrent = [("first", "a", 0.0, 1.0, 0.1), ("second", "a", 0.0, 1.0, 0.1)]
    return Legs().add(sequential, concurrent).add(sequential, concurrent).reports()


@pytest.mark.parametrize(
    ("kind", "contract", "attribute"),
    [
        ("instruments", InstrumentContract, "instrument"),
        ("executors", ExecutorContract, "executor"),
        ("reporters", ReporterContract, "reporter"),
    ],
)
def test_no_built_in_plug_in_is_left_out(kind: str, contract: type[Any], attribute: str) -> None:
    ours = {source.name for source in lookup.sources(kind) if source.origin == "assay"}
    # tests/cluster holds `ray` to the contract; whether that is loaded here depends on which tests run.
    assert ours - {"ray"} == {getattr(held, attribute) for held in contract.__subclasses__()} - {"ray"}
