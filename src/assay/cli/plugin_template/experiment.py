"""An experiment: code that Assay runs and measures."""

from __future__ import annotations

import random

from pydantic import BaseModel, Field

from assay.plugin import Experiment, ExperimentContext


class TemplateNameExperiment(Experiment):
    """How long does it take to sort random numbers?"""

    class Params(BaseModel):
        size: int = Field(default=1000, gt=0, description="How many numbers to sort")
        presorted: bool = Field(default=False, description="Hand them over in order")

    params: Params

    def setup(self, context: ExperimentContext) -> None:
        chance = random.Random(context.seed)
        self.numbers = [chance.random() for _ in range(self.params.size)]
        if self.params.presorted:
            self.numbers.sort()

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        """Only this call is timed; the numbers that it returns are metrics."""
        return {"sorted_numbers": len(sorted(self.numbers))}
