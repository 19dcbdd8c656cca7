"""A finding: what the trials of one experiment show together, in every report of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model import TrialReport
from assay.model.page import Cell, PageSection, Table
from assay.plugin import Finding


@dataclass(frozen=True)
class TemplateNameFinding(Finding):
    """How many times as long each trial takes as the fastest one."""

    ratios: Mapping[str, float]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        medians = {
            trial.name: estimate.median
            for trial in trials
            for estimate in trial.estimates
            if estimate.metric.name == "seconds"
        }
        if len(medians) < 2:
            return None
        fastest = min(medians.values())
        return cls({name: median / fastest for name, median in medians.items()})

    def document(self) -> Mapping[str, Any]:
        """Choose keys that no other finding has."""
        return {"template_name": {"times_fastest": dict(self.ratios)}}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        rows = [(Cell(name), Cell(f"{ratio:.2f} ×")) for name, ratio in self.ratios.items()]
        table = Table(("Trial", "Of the fastest"), rows)
        return [PageSection("Against the fastest", [table], anchor="against-the-fastest")]
