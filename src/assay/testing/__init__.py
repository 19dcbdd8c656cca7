"""For authors of plug-ins: what stands in for the real thing, and the tests that a plug-in of each kind must pass.

Subclass the contract of a kind in a test module and name the plug-in:

    from assay.testing import InstrumentContract

    class TestMyInstrument(InstrumentContract):
        instrument = "my_package.my_module:MyInstrument"
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.testing.agent import AgentContract
    from assay.testing.bench import SampleBench
    from assay.testing.executor import ExecutorContract
    from assay.testing.experiment import ExperimentContract
    from assay.testing.experiments import Failing, Steady
    from assay.testing.finding import FindingContract
    from assay.testing.instrument import InstrumentContract
    from assay.testing.reporter import ReporterContract
    from assay.testing.samples import sample_job, sample_report
    from assay.testing.sandbox import SandboxContract
    from assay.testing.scenario import ScenarioContract
    from assay.testing.scorer import ScorerContract

_PLACES = {
    "AgentContract": "assay.testing.agent",
    "ExecutorContract": "assay.testing.executor",
    "ExperimentContract": "assay.testing.experiment",
    "Failing": "assay.testing.experiments",
    "FindingContract": "assay.testing.finding",
    "InstrumentContract": "assay.testing.instrument",
    "ReporterContract": "assay.testing.reporter",
    "SampleBench": "assay.testing.bench",
    "SandboxContract": "assay.testing.sandbox",
    "ScenarioContract": "assay.testing.scenario",
    "ScorerContract": "assay.testing.scorer",
    "Steady": "assay.testing.experiments",
    "sample_job": "assay.testing.samples",
    "sample_report": "assay.testing.samples",
}

__all__ = [
    "AgentContract",
    "ExecutorContract",
    "ExperimentContract",
    "Failing",
    "FindingContract",
    "InstrumentContract",
    "ReporterContract",
    "SampleBench",
    "SandboxContract",
    "ScenarioContract",
    "ScorerContract",
    "Steady",
    "sample_job",
    "sample_report",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'assay.testing' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)
