"""What the page says of loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.model import Report
from assay.report.capacity import capacity_notes, capacity_text, stored_capacity
from assay.report.gallery import Gallery
from assay.report.load import COLUMNS, row
from assay.report.load_charts import load_charts
from assay.report.load_findings import (
    LoadVerdict,
    error_rows,
    findings_of,
    objective_figure,
    remarks_of,
    verdicts_of,
    worst_verdict,
)
from assay.report.load_time_charts import charts_of
from assay.report.stored_loads import StoredLoad, is_brief, shown, stored_loads

_MET = {True: ("good", "kept"), False: ("bad", "broken"), None: ("warn", "not measured")}
_TITLES = {LoadVerdict.OK: "All requests answered"}


def load_views(report: Report, gallery: Gallery) -> dict[str, Any] | None:
    """Loads of the run, with the charts of all and those of each; None for a run without loads."""
    loads = stored_loads(report)
    if not loads:
        return None
    capacity = stored_capacity(report)
    drawn = shown(loads)
    views = [
        _view(load, gallery, place, is_search=capacity is not None, is_brief=is_brief(place, drawn))
        for place, load in enumerate(drawn)
    ]
    return {
        **_table(loads),
        "capacity": capacity
        and {"text": capacity_text(capacity), "notes": [*capacity_notes(capacity), *capacity["warnings"]]},
        "simulated": any(load.document["simulated"] for load in loads),
        "summary": None if capacity else _summary(views),
        "charts": [gallery.hang(chart) for chart in load_charts(loads)],
        "views": views,
    }


def _table(loads: Sequence[StoredLoad]) -> dict[str, Any]:
    """All loads, a row each; without the score where nothing was scored."""
    places = [
        place
        for place, name in enumerate(COLUMNS)
        if name != "score" or any(load.document.get("quality") for load in loads)
    ]
    rows = [row(load.label, load.document) for load in loads]
    return {
        "columns": [COLUMNS[place] for place in places],
        "rows": [[cells[place] for place in places] for cells in rows],
    }


def _view(
    load: StoredLoad, gallery: Gallery, place: int, *, is_search: bool, is_brief: bool
) -> dict[str, Any]:
    """Steps of a search break the objective on purpose and are short by design, so they have no verdict and no remarks."""
    document = load.document
    return {
        "label": load.label,
        "document": document,
        "verdicts": [] if is_search else verdicts_of(document),
        "objectives": [] if is_search else [_objective(one) for one in document["slo"]],
        "findings": [one for one in findings_of(document) if not one.is_objective],
        "errors": error_rows(document),
        "remarks": [] if is_search else remarks_of(document),
        "server": server_text(document),
        "charts": [gallery.hang(chart) for chart in charts_of(load, place + 1, is_brief=is_brief)],
    }


def _objective(objective: Mapping[str, Any]) -> dict[str, str]:
    tone, word = _MET[objective["met"]]
    return {
        "text": objective["objective"],
        "figure": objective_figure(objective),
        "tone": tone,
        "word": word,
    }


def _summary(views: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The head of the page: the verdict, and of a single load what it rests on."""
    verdict = worst_verdict(one for view in views for one in view["verdicts"]) or LoadVerdict.OK
    title = _TITLES.get(verdict, verdict.text)
    return {
        "title": title[0].upper() + title[1:],
        "tone": verdict.tone,
        "others": [one for one in views[0]["verdicts"] if one is not verdict] if len(views) == 1 else [],
        "view": views[0] if len(views) == 1 else None,
    }


def server_text(document: Mapping[str, Any]) -> str:
    """Where the metrics of the server come from; nothing where none were asked for."""
    told = document.get("server_metrics")
    if not told:
        return ""
    software = f" ({told['software']})" if told.get("software") else ""
    failed = f"; {told['failed']} of {told['scrapes']} could not be read" if told.get("failed") else ""
    return f"Metrics of the server{software} from {told['url']}, read once a second{failed}."
