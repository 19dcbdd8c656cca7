"""What a search for the capacity found, before the loads that it tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.builtin.findings.load import LoadResults
from assay.model import TrialReport
from assay.model.page import ListItem, PageSection, RunOutcome, Tile
from assay.report.capacity import capacity_notes, capacity_text, interval_text
from assay.units import significant


@dataclass(frozen=True)
class CapacityResults(LoadResults):
    """The steps of a search break the objective on purpose and are short by design, so they have no verdict and no remarks."""

    is_listed_in_terminal: ClassVar[bool] = False
    """Steps of a search are no repetitions: a median of them would mean nothing."""
    has_verdicts: ClassVar[bool] = False

    capacity: Mapping[str, Any]
    """The document that the search stored."""

    def headline(self) -> PageSection | None:
        return None

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        found = PageSection(
            "Capacity",
            finding=capacity_text(self.capacity),
            notes=[*capacity_notes(self.capacity), *self.capacity["warnings"]],
            is_simulated=self.capacity["simulated"],
            anchor="capacity",
        )
        return [found, *super().sections(with_charts=with_charts)]

    def tiles(self) -> Sequence[Tile]:
        return list(_tiles(self.capacity))

    def outcome(self) -> RunOutcome | None:
        return None

    def failure(self, trial: TrialReport) -> ListItem | None:
        return None


def _tiles(found: Mapping[str, Any]) -> Iterator[Tile]:
    mark = " (simulated)" if found["simulated"] else ""
    sustained, broken = found["sustained_rate"], found["breaking_rate"]
    value = "none" if sustained is None else f"{significant(sustained)}{interval_text(found)}"
    yield Tile(
        "sustained requests per second",
        value,
        f"{'confirmed' if found['confirmed'] else 'not confirmed'}{mark}",
    )
    if broken is not None:
        yield Tile("broke at", f"{significant(broken)}/s", f"{found['cause']}{mark}")
