"""Colours and type of the charts, light and dark.

Specifications name styles and carry no colours. `apply_theme` in `vega` merges this configuration into them, and the HTML page
takes its own colours from the same two palettes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif'


@dataclass(frozen=True, slots=True)
class Palette:
    """Series colours follow Okabe and Ito's order, which stays apart for colour-blind readers."""

    surface: str
    ink: str
    muted: str
    grid: str
    accent: str
    median: str
    bad: str
    series: tuple[str, ...]
    ramp: tuple[str, ...]
    scores: tuple[str, ...]
    """From 0 to 1."""
    outcomes: tuple[str, ...]
    """pass, fail, agent error, limit, harness error, unscored."""


LIGHT = Palette(
    surface="#ffffff",
    ink="#1c2230",
    muted="#5d6675",
    grid="#e9ecf1",
    accent="#4a7fb5",
    median="#c2571a",
    bad="#b3402e",
    series=("#2f6fa7", "#d08a1d", "#1f8f70", "#b35f92", "#5aa9d6", "#c2571a", "#8a8f2a", "#5d6675"),
    ramp=("#2b4a7f", "#2c7a8c", "#3fa37c", "#9cba4f"),
    scores=("#c2571a", "#eab988", "#f1ede6", "#9dc3df", "#2f6fa7"),
    outcomes=("#2f6fa7", "#e3a94a", "#b3402e", "#b35f92", "#8b93a1", "#d5dae2"),
)

DARK = Palette(
    surface="#161a22",
    ink="#e8ebf1",
    muted="#98a2b3",
    grid="#272d39",
    accent="#6ea6dc",
    median="#f0955a",
    bad="#ee8272",
    series=("#6ea6dc", "#e3a94a", "#4fc3a1", "#d68fb8", "#9fd2ee", "#f0955a", "#c4c95e", "#98a2b3"),
    ramp=("#6f8fd0", "#4fb3c4", "#6fce9f", "#d3e27a"),
    scores=("#e07a3c", "#8a5333", "#2c3240", "#3f6f9d", "#7fb8ec"),
    outcomes=("#6ea6dc", "#d79a3c", "#e06a57", "#c77fac", "#7b8597", "#3a4252"),
)


def config(dark: bool) -> dict[str, Any]:
    """The Vega-Lite configuration that gives every chart its looks.

    Colours live here and nowhere in the specifications, so one specification serves the light page, the dark page and PNG
    files, and a page can switch between them without being written twice.
    """
    palette = DARK if dark else LIGHT
    return {
        "background": palette.surface,
        "font": FONT,
        "padding": 12,
        "view": {"stroke": None},
        "title": _title(palette),
        "axis": _axis(palette),
        "axisY": {"ticks": False},
        "axisX": {"grid": False, "domain": True},
        "legend": _legend(palette),
        "range": {
            "category": list(palette.series),
            "ordinal": list(palette.ramp),
            "ramp": list(palette.ramp),
            # Vega-Lite names its ranges; this one is ours for what became of failed executions.
            "outcomes": list(palette.outcomes),
            "heatmap": list(palette.scores),
            # Colours of a change: worse, then better.
            "changes": [palette.bad, palette.series[2]],
            "diverging": [palette.bad, *palette.series[1:2], *palette.series[3:4], *palette.series[6:]],
        },
        "style": _styles(palette),
    }


def _title(palette: Palette) -> dict[str, Any]:
    return {
        "anchor": "start",
        "frame": "bounds",
        "offset": 12,
        "color": palette.ink,
        "fontSize": 14,
        "fontWeight": 600,
        "subtitleColor": palette.muted,
        "subtitleFontSize": 12,
        "subtitlePadding": 5,
    }


def _axis(palette: Palette) -> dict[str, Any]:
    return {
        "domain": False,
        "domainColor": palette.muted,
        "domainOpacity": 0.5,
        "grid": True,
        "gridColor": palette.grid,
        "labelColor": palette.muted,
        "labelFontSize": 11,
        "labelPadding": 6,
        "labelLimit": 240,
        "tickColor": palette.muted,
        "tickOpacity": 0.5,
        "tickSize": 4,
        "titleColor": palette.muted,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    }


def _legend(palette: Palette) -> dict[str, Any]:
    return {
        "labelColor": palette.muted,
        "labelFontSize": 11,
        "titleColor": palette.muted,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "orient": "bottom",
        "direction": "horizontal",
        "symbolType": "circle",
        "columns": 8,
        "offset": 8,
    }


def _styles(palette: Palette) -> dict[str, Any]:
    """Marks are named for what they show, so that a specification carries no colour."""
    return {
        "bin": {"color": palette.accent, "opacity": 0.8, "stroke": palette.surface, "strokeWidth": 0.7},
        "sample": {"color": palette.accent, "opacity": 0.6, "size": 38},
        "dot": {
            "color": palette.accent,
            "opacity": 1,
            "stroke": palette.surface,
            "strokeWidth": 1.2,
            "size": 90,
        },
        "error": {"color": palette.bad, "opacity": 0.35, "strokeWidth": 1.4},
        "broken": {"color": palette.bad, "strokeWidth": 2, "opacity": 1},
        "interval": {"color": palette.median, "opacity": 0.18},
        "edge": {"color": palette.muted, "strokeDash": [4, 4], "opacity": 0.8},
        "outage": {"color": palette.bad, "opacity": 0.1},
        "knee": {"stroke": palette.median, "strokeWidth": 2, "filled": False},
        "median": {"color": palette.median, "strokeWidth": 2},
        "whisker": {"color": palette.accent, "strokeWidth": 2.4, "strokeCap": "round", "opacity": 0.7},
        "thread": {"color": palette.accent, "strokeWidth": 1.4, "opacity": 0.5},
        "trace": {"color": palette.accent, "strokeWidth": 1.6},
        "band": {"color": palette.accent, "opacity": 0.28},
        "web": {"color": palette.muted, "strokeWidth": 1, "opacity": 0.28},
        "note": {"color": palette.muted, "fontSize": 12},
        "fill": {"fillOpacity": 0.1, "strokeWidth": 0},
        "outline": {"strokeWidth": 2, "strokeJoin": "round"},
        "corner": {"size": 46, "opacity": 1},
        "place": {"opacity": 0.9, "stroke": palette.surface, "strokeWidth": 1.2},
        "reach": {"strokeWidth": 1.6, "opacity": 0.5},
        "share": {"stroke": palette.surface, "strokeWidth": 0.8},
        "cell": {"stroke": palette.surface, "strokeWidth": 0.6},
        "on_strong": {"color": palette.surface, "fontSize": 11},
        "on_pale": {"color": palette.ink, "fontSize": 11},
        "unjudged": {"color": palette.grid, "stroke": palette.surface, "strokeWidth": 0.6},
    }
