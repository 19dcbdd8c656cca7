"""The charts of an HTML page: each gets a number and a place, and the script of the page draws it there."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.report.charts.vega import Chart, Spec


@dataclass(frozen=True, slots=True)
class ChartPlace:
    """Where a chart will be drawn; its height is kept free so that nothing jumps when it is."""

    id: str
    name: str
    height: int
    text: str


@dataclass(slots=True)
class Gallery:
    """Hands out places and keeps the specifications for them."""

    specs: dict[str, Spec] = field(default_factory=dict)

    def hang(self, chart: Chart) -> ChartPlace:
        identity = f"c{len(self.specs)}"
        self.specs[identity] = chart.spec
        return ChartPlace(identity, chart.name, chart.spec.get("height", 200) + 96, chart.spec["description"])
