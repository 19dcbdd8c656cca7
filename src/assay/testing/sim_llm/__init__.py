"""A simulated LLM server whose timing, faults and skill are known, to test clients and load tools against."""

from assay.testing.sim_llm.options import SimOptions
from assay.testing.sim_llm.running import SimServer, run_until_signal

__all__ = ["SimOptions", "SimServer", "run_until_signal"]
