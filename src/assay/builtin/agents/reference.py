"""An agent that knows the right plan of the workflow task that ships with Assay, as a yardstick for models."""

from __future__ import annotations

import json

from assay.builtin.agents.fixed import InstantAgent
from assay.builtin.experiments.workflow_task import reference_plan
from assay.model import Answer, Request


class ReferencePlanner(InstantAgent):
    """Answers every request with the reference plan of the experiment `workflow`; needs no model and no network.

    Example:
        - {name: reference, type: reference}
    """

    def found_version(self) -> str:
        return "1"

    def answer(self, request: Request) -> Answer:
        return Answer(json.dumps({"steps": reference_plan().document()}, indent=1), model="reference")
