"""For authors of plug-ins: what stands in for the real thing, and the tests that a plug-in of each kind must pass.

Subclass the contract of a kind in a test module and name the plug-in:

    from assay.testing import InstrumentContract

    class TestMyInstrument(InstrumentContract):
        instrument = "my_package.my_module:MyInstrument"
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `as` tells a type checker that the name is public
    from assay.testing.agent import AgentContract as AgentContract
    from assay.testing.bench import SampleBench as SampleBench
    from assay.testing.executor import ExecutorContract as ExecutorContract
    from assay.testing.experiment import ExperimentContract as ExperimentContract
    from assay.testing.experiments import Failing as Failing
    from assay.testing.experiments import Steady as Steady
    from assay.testing.finding import FindingContract as FindingContract
    from assay.testing.instrument import InstrumentContract as InstrumentContract
    from assay.testing.reporter import ReporterContract as ReporterContract
    from assay.testing.samples import sample_job as sample_job
    from assay.testing.samples import sample_report as sample_report
    from assay.testing.sandbox import SandboxContract as SandboxContract
    from assay.testing.scenario import ScenarioContract as ScenarioContract
    from assay.testing.scorer import ScorerContract as ScorerContract

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

if not TYPE_CHECKING:  # a type checker that saw this would take any misspelt name for known
    __all__ = list(_PLACES)

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'assay.testing' has no attribute '{name}'")
        return getattr(import_module(_PLACES[name]), name)
