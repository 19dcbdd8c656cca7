"""The reporter `html`: one self-contained page that makes no request and works without a network.

Everything that comes from what was measured is untrusted. Templates escape it, data for scripts is packed as compressed JSON,
and the security policy of the page allows only our own scripts, by their hashes. The page also holds every execution, up to a
limit, so that its buttons can save CSV and JSON.
"""

from __future__ import annotations

import gzip
import math
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from assay.model import AxisEffect, Estimate, Kind, Report, TrialReport
from assay.model.page import PageSection
from assay.plugin.json_data import format_strict_json
from assay.plugin.private_files import write_private
from assay.report import figures, leads, run_tables, side_by_side
from assay.report import profiles as profiling
from assay.report.charts.run import POINTS, labels, run_charts, trial_charts
from assay.report.charts.theme import config
from assay.report.documents.result import run_document
from assay.report.findings import finding_sections, headlines, is_listed_on_pages, outcome_of, select_axes
from assay.report.pages import suite as suites
from assay.report.pages.html_side_by_side import ChartPlace, ContestView, Gallery, contest_views, details
from assay.report.pages.tiles import tiles
from assay.report.side_by_side import Contest
from assay.report.warnings import run_warnings, split_warnings
from assay.text import make_visible
from assay.units import count, format_count, seconds, show, significant, size

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
_OPEN = 3
"""Sections of trials that are open at first."""
_PAGE_POINTS = 24_000
"""Points that all plots by repetition share, so that a page of 200 trials stays small."""
_CELLS = 2_000_000
_PACKED = 4_000_000
"""Beyond these the raw data are left to the CSV and JSON reports, so that a page stays below 5 MB."""


class Html:
    """Writes `report.html`."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "report.html"
        write_private(path, page(report))
        return [path]


def page(report: Report) -> str:
    """The whole page as text."""
    return environment().get_template("report.html.j2").render(_context(report))


def environment() -> Environment:
    """Templates of every page. All values are untrusted: names, errors and logs come from whatever was measured."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    jinja = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Names may hold control characters, and marks that reverse the text after them. This runs for every value that a
        # template prints, which no template can forget.
        finalize=lambda value: make_visible(value) if type(value) is str else value,
    )
    jinja.filters.update(
        seconds=seconds,
        size=size,
        count=count,
        fact=fact,
        show=show,
        type_name=lambda block: type(block).__name__,
    )
    jinja.globals.update(
        figures=figures,
        words=side_by_side,
        leading=leads,
        suites=suites,
        profiling=profiling,
        tables=run_tables,
        # A file has no pages to link to; the server has, and says where.
        find_url=None,
    )
    return jinja


def script_and_style() -> dict[str, Any]:
    """What every page has in it, and the hashes of the scripts that its security policy lets run."""
    script = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.js", "report.js"))
    return {
        "configs": {"light": config(dark=False), "dark": config(dark=True)},
        "css": (_TEMPLATES / "report.css").read_text(encoding="utf-8"),
        "script": script,
        "script_hashes": [_hash(script.encode())],
    }


def chart_parts(gallery: Gallery) -> tuple[dict[str, str], list[str]]:
    """What a page needs to draw its charts, compressed, and the hash of the script among it."""
    parts = {"specs": pack_json(gallery.specs), "runtime": b64encode(chart_library()).decode()}
    return parts, [_hash(gzip.decompress(chart_library()))]


def _context(report: Report) -> dict[str, Any]:
    """Everything that the template of a report needs."""
    gallery = Gallery()
    body = describe_report(report, gallery)
    parts, hashes = chart_parts(gallery)
    if body["contests"]:
        parts["details"] = pack_json(details(report, body["contests"]))
    common = script_and_style()
    return {
        **common,
        **body,
        "parts": parts,
        "raw": raw_data(report, _PACKED - sum(map(len, parts.values()))),
        "script_hashes": [*common["script_hashes"], *hashes],
    }


def describe_report(report: Report, gallery: Gallery) -> dict[str, Any]:
    """What `report_body.html.j2` needs; the charts hang in the gallery."""
    # The gallery numbers charts in the order in which they hang, and templates refer to these numbers: contests come first,
    # then what findings add, then the charts of the run and of each trial.
    held = side_by_side.build_contests(report)
    views = contest_views(report, held, gallery)
    sections = finding_sections(report, with_charts=True)
    verdicts = headlines(report)
    places = {id(chart): gallery.hang(chart) for part in (*verdicts, *sections) for chart in part.charts()}
    axes = select_axes(report)
    of_run = [gallery.hang(chart) for chart in run_charts(replace(report, axes=axes))]
    trials = _sections(report, held, gallery)
    unrated = [section for section in trials if section.trial.ratings is None and section.is_listed]
    return {
        "report": report,
        "run": report.run,
        "outcome": outcome_of(report),
        "tiles": tiles(report, held),
        "lead": leads.main_lead(report),
        "contents": _contents(views, sections, unrated, trials, axes),
        "warnings": split_warnings(run_warnings(report)),
        "benchmark_titles": {contest.benchmark: contest.title for contest in held},
        "contests": views,
        "headlines": verdicts,
        "sections": sections,
        "hang": lambda chart: places[id(chart)],
        "trials": trials,
        "unrated": unrated,
        "open": 0 if views or not unrated else _OPEN,
        "overview": [place for place in of_run if not place.name.startswith("axis-") and unrated],
        "best": report.best if axes else (),
        "axes": _axes(axes, [place for place in of_run if place.name.startswith("axis-")]),
        "simulated": _find_simulated(report),
        "is_simulated": _is_simulated(report, held, sections),
    }


def _contents(
    views: Sequence[ContestView],
    sections: Sequence[PageSection],
    unrated: Sequence[_Section],
    trials: Sequence[_Section],
    axes: Sequence[AxisEffect],
) -> list[tuple[str, str, str]]:
    """Anchor, title and what it says in short, of every section of the page."""
    found = [
        (
            f"contest-{number}",
            side_by_side.heading(view.contest),
            leads.verdict_text(view.lead) if view.lead else "",
        )
        for number, view in enumerate(views, 1)
    ]
    found += [(section.anchor, section.title, "") for section in sections]
    found += [("trials", "Trials", count(len(unrated)))] if unrated or not (views or sections) else []
    found += [("sweep", "Sweep", format_count(len(axes), "axis effect"))] if axes else []
    return [*found, ("each", "Each trial", count(len(trials))), ("environment", "Environment", "")]


@dataclass(frozen=True, slots=True)
class _Section:
    """A trial with what the page says about it."""

    label: str
    trial: TrialReport
    is_simulated: bool
    charts: list[ChartPlace]
    is_listed: bool

    @property
    def leading(self) -> Estimate | None:
        return figures.leading(self.trial)


def _sections(report: Report, held: Sequence[Contest], gallery: Gallery) -> list[_Section]:
    """The trials with their charts. All plots share a number of points, so that a page of many trials stays small."""
    points = max(150, min(POINTS, _PAGE_POINTS // max(1, len(report.trials))))
    made_up = {entry.trial.stored.id for contest in held if contest.is_simulated for entry in contest.entries}
    return [
        _Section(
            label,
            trial,
            trial.stored.id in made_up,
            [gallery.hang(chart) for chart in trial_charts(trial, points)],
            is_listed_on_pages(report, trial),
        )
        for label, trial in zip(labels(report), report.trials, strict=True)
    ]


def _axes(axes: Sequence[AxisEffect], places: Sequence[ChartPlace]) -> list[dict[str, Any]]:
    return [{"effect": effect, "figure": place} for effect, place in zip(axes, places, strict=True)]


def _find_simulated(report: Report) -> list[str]:
    """What was made up: metrics, or where it is only some agents, all that is told of these."""
    made_up = [trial for trial in report.trials if trial.is_simulated]
    measured = [trial for trial in report.trials if not trial.is_simulated]
    agents = dict.fromkeys(trial.stored.trial.agent.name for trial in made_up) if measured else {}
    figures = [f"all figures of {', '.join(agents)}"] if agents else []
    metrics = dict.fromkeys(
        estimate.metric.name
        for trial in measured or made_up
        for estimate in trial.estimates
        if estimate.metric.kind is Kind.SIMULATED
    )
    return [*figures, *metrics]


def _is_simulated(report: Report, held: Sequence[Contest], sections: Sequence[PageSection]) -> bool:
    """Whether anything on the page is; sections and contests tell it of themselves."""
    return bool(
        _find_simulated(report)
        or any(contest.is_simulated for contest in held)
        or any(section.is_simulated for section in sections)
    )


def fact(value: object, key: str = "") -> str:
    """A fact of the environment for people."""
    if value is None or value == []:
        return figures.NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(fact(item) for item in value)
    if isinstance(value, Mapping):
        facts = []
        for key, item in ((str(name), item) for name, item in value.items() if item is not None):
            # The key without its unit, which the value shows.
            label = key.removesuffix("_bytes").removesuffix("_seconds").replace("_", " ")
            facts.append(f"{label} {fact(item, key)}")
        return ", ".join(facts)
    if isinstance(value, int | float) and key.endswith("bytes"):
        return size(value)
    if isinstance(value, float):
        return seconds(value) if key.endswith(("seconds", "resolution")) else significant(value)
    return str(value)


def _hash(script: bytes) -> str:
    """Hash a script for the page's security policy, which allows these scripts and no other."""
    return b64encode(sha256(script).digest()).decode()


def pack_json(value: object) -> str:
    """Compressed JSON as text without any character that HTML gives a meaning to."""
    return b64encode(gzip.compress(format_strict_json(value).encode(), 6, mtime=0)).decode()


def raw_data(report: Report, room: int) -> str | None:
    """Every execution by columns, and the document without them; None when there is no room for them.

    Columns compress to a fraction of what rows take, because the values of a column resemble each other. The limit on cells is
    checked on the way, so that a run of a million executions is given up early and not after all of it is in memory.
    """
    tables: list[dict[str, Sequence[Any]]] = []
    cells = 0
    for trial in report.trials:
        columns = _columns(trial, _CELLS - cells)
        if columns is None:
            return None
        cells += sum(len(column) for column in columns.values())
        tables.append(columns)
    text = pack_json({"document": run_document(report, with_executions=False), "columns": tables})
    return text if len(text) <= room else None


_COLUMNS = ("case", "process", "phase", "repetition", "status", "started", "loops", "error")


def _columns(trial: TrialReport, limit: int) -> dict[str, Sequence[Any]] | None:
    """The executions of a trial by columns; None once there are more cells than `limit`."""
    rows, measured, cells = [], [], 0
    for e in trial.executions:
        error = figures.first_lines(e.error, 300) if e.error else None
        rows.append((e.case, e.process, e.phase, e.repetition, e.status, round(e.started, 3), e.loops, error))
        measured.append(e.measurements)
        cells += len(_COLUMNS) + len(e.measurements)
        if cells > limit:
            return None
    names = dict.fromkeys(name for measurements in measured for name in measurements)
    # Nine digits, a nanosecond in a second, are finer than any clock, and a third smaller than all digits.
    metrics = {
        f"metrics.{name}": [
            float(f"{value:.9g}") if (value := m.get(name)) is not None and math.isfinite(value) else None
            for m in measured
        ]
        for name in names
    }
    columns = zip(*rows, strict=True) if rows else ((),) * len(_COLUMNS)
    return {**dict(zip(_COLUMNS, columns, strict=True)), **metrics}


@cache
def chart_library() -> bytes:
    """The chart library, compressed. Bundling takes two seconds, so it is kept in the user's cache folder."""
    from vl_convert import javascript_bundle

    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    cached = cache_home / "assay" / f"vega-{version('vl-convert-python')}.js.gz"
    with suppress(OSError):
        return cached.read_bytes()
    bundle = gzip.compress(javascript_bundle("window.vegaEmbed = vegaEmbed;").encode(), 9, mtime=0)
    # A cache that cannot be written costs time, nothing else.
    with suppress(OSError):
        cached.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=cached.parent, delete=False) as file:
            file.write(bundle)
        # In one step, so that a report made at the same time never reads half of it.
        Path(file.name).replace(cached)
    return bundle
