"""An agent that knows the right plan of the workflow task that ships with Assay, as a yardstick for models."""

from __future__ import annotations

import json
from typing import ClassVar

from assay.builtin.experiments.workflow_task import reference_plan
from assay.model import Answer, Request


class ReferencePlanner:
    """Answers every request with the reference plan of the experiment `workflow`; needs no model and no network.

    Example:
        - {name: reference, type: reference}
    """

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = True

    def open(self) -> None:
        return None

    def close(self) -> None:
        return None

    def found_version(self) -> str:
        return "1"

    def answer(self, request: Request) -> Answer:
        return Answer(json.dumps({"steps": reference_plan().document()}, indent=1), model="reference")
