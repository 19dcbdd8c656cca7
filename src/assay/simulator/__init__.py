"""A simulated LLM server whose timing, faults and skill are known, to test clients and load tools against."""

from assay.simulator.options import SimOptions
from assay.simulator.serve import SimServer, run_until_signal

__all__ = ["SimOptions", "SimServer", "run_until_signal"]
