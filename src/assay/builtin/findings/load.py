"""The finding of `load`: objectives, validity and errors first, then the figures.

It reads the load documents that the executions stored, and describes them as sections, tiles, warnings and an outcome that all
formats show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

from assay.model import TrialReport
from assay.model.load_verdict import FAILURES, LoadVerdict, verdict_of, verdicts_of, worst_verdict
from assay.model.page import Cell, Charts, ListItem, PageSection, Points, RunOutcome, Table, Tile
from assay.plugin import Column, Finding, build_table
from assay.report.capacity import read_stored_capacity
from assay.report.load import COLUMNS, GENERATOR_COLUMNS, generator_rows, row, time_rows
from assay.report.load_findings import brief_document, error_rows, findings_of, objective_figure, remarks_of
from assay.report.stored_loads import (
    StoredLoad,
    is_brief,
    read_stored_loads,
    select_last_loads,
    trial_documents,
)
from assay.units import seconds, significant

_MET = {
    True: Cell("✓ kept", tone="good"),
    False: Cell("✗ broken", tone="bad"),
    None: Cell("not measured", tone="warn"),
}
_TITLES = {LoadVerdict.OK: "All requests answered"}
_MINOR = frozenset({"tokens/s", "in flight", "TTFT P50", "verdict"})
"""Columns that a narrow terminal has no room for."""


@dataclass(frozen=True)
class LoadResults(Finding):
    """The loads of a run.

    Their documents are read from the outputs of executions when they are first asked for, since a list of
    runs needs only their verdicts.
    """

    is_listed_on_pages: ClassVar[bool] = False
    can_rerun: ClassVar[bool] = False
    has_own_intervals: ClassVar[bool] = True
    """Its figures are means over thousands of requests."""
    hidden_axes: ClassVar[frozenset[str]] = frozenset({"concurrency", "rate"})
    """The chart of throughput against latency shows them better."""
    independent_unit: ClassVar[str] = "load"
    """Each load starts processes of its own and is independent of the others."""
    has_verdicts: ClassVar[bool] = True
    """Whether loads are held against their objectives."""

    trials: tuple[TrialReport, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        """A search for the capacity is a run of loads too, and has a finding of its own."""
        if (capacity := read_stored_capacity(trials)) is not None:
            from assay.builtin.findings.capacity import CapacityResults

            return CapacityResults(tuple(trials), capacity)
        return cls(tuple(trials))

    @classmethod
    def compared_params(cls, params: Mapping[str, object]) -> Mapping[str, object]:
        """Leave out the address: it says nothing about the requests, and a server may get another port."""
        target = params.get("target")
        if isinstance(target, str) and "://" in target:
            params = {**params, "target": urlsplit(target).path}
        if isinstance(more := params.get("more_targets"), Sequence):
            params = {**params, "more_targets": [urlsplit(str(url)).path for url in more]}
        # An agent's name is the target; how it is defined, with its address, is what its versions differ in.
        # Where it was sent from makes no other load of it either.
        apart = ("agent", "allow_host", "executor", "generators")
        return {name: value for name, value in params.items() if name not in apart}

    @cached_property
    def loads(self) -> list[StoredLoad]:
        return read_stored_loads(self.trials)

    def document(self) -> Mapping[str, Any]:
        return {"loads": [{"label": load.label, **brief_document(load.document)} for load in self.loads]}

    def headline(self) -> PageSection | None:
        """The verdict, with what it rests on: of a single load its findings, of several the verdict of each."""
        if not self.loads:
            return None
        loads = select_last_loads(self.loads)
        found = [verdicts_of(load.document) for load in loads]
        verdict = (
            worst_verdict(found_verdict for verdicts in found for found_verdict in verdicts) or LoadVerdict.OK
        )
        title = _TITLES.get(verdict, verdict.text)
        is_single = len(loads) == 1
        return PageSection(
            title[0].upper() + title[1:],
            self._blocks(loads[0]) if is_single else [_verdict_table(loads, self.loads)],
            tone=verdict.tone,
            chips=[ListItem(other.text, other.tone) for other in found[0] if other is not verdict]
            if is_single
            else (),
        )

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        """A row for each load, then each of the last ones with its times and charts."""
        if not self.loads:
            return []
        loads = select_last_loads(self.loads)
        charts = []
        if with_charts:
            from assay.report.charts.loads import load_charts

            charts = [Charts(load_charts(self.loads))]
        parts = [
            self._one_load(load, place, is_brief=is_brief(place, loads), with_charts=with_charts)
            for place, load in enumerate(loads)
        ]
        return [
            PageSection(
                "Load",
                [self._table(), *charts, *(parts if with_charts or self.has_verdicts else [])],
                is_simulated=any(load.document["simulated"] for load in self.loads),
                anchor="loads",
            )
        ]

    def _table(self) -> Table:
        """All loads; without the score where nothing was scored."""
        has_score = any(load.document.get("quality") for load in self.loads)
        titles = [*(COLUMNS if has_score else COLUMNS[:-1]), *(["verdict"] if self.has_verdicts else [])]
        return Table(
            titles,
            [_row(load, len(COLUMNS) - (not has_score))[: len(titles)] for load in self.loads],
            words=(titles.index("verdict"),) if self.has_verdicts else (),
            minor=[place for place, title in enumerate(titles) if title in _MINOR],
        )

    def _one_load(self, load: StoredLoad, place: int, *, is_brief: bool, with_charts: bool) -> PageSection:
        times = Table(
            ("Time", "P50", "P90", "P95", "P99", "P99.9", "max"),
            [[Cell(text) for text in cells] for cells in time_rows(load.document)],
        )
        charts = []
        if with_charts:
            from assay.builtin.findings.load_times import charts_of

            charts = [Charts(charts_of(load, place + 1, is_brief=is_brief), is_single=False)]
        # The headline has those of a single load.
        blocks = [] if self.has_verdicts and len(self.loads) == 1 else self._blocks(load)
        verdicts = verdicts_of(load.document) if self.has_verdicts else []
        return PageSection(
            load.label,
            [*blocks, times, *charts],
            subtitle=server_text(load.document),
            chips=[ListItem(verdict.text, verdict.tone) for verdict in verdicts],
            anchor=f"load-{place + 1}",
            is_folded=True,
            is_detail=True,
        )

    def _blocks(self, load: StoredLoad) -> list[Table | Points]:
        """Objectives with their figures, whether the load is valid, its errors by kind, and remarks."""
        document = load.document
        found = findings_of(document)
        others = [
            ListItem(remark.detail, remark.tone, remark.title) for remark in found if not remark.is_objective
        ]
        errors = error_rows(document)
        remarks = [ListItem(text, "warn") for text in remarks_of(document)] if self.has_verdicts else []
        return [
            *([_objective_table(document)] if document["slo"] and self.has_verdicts else []),
            *([Points(others)] if others else []),
            *([_error_table(errors)] if errors else []),
            *([_generator_table(document)] if document.get("generators") else []),
            *([Points(remarks)] if remarks else []),
        ]

    def tiles(self) -> Sequence[Tile]:
        return list(_tiles(self.loads)) if self.loads else ()

    def outcome(self) -> RunOutcome | None:
        verdict = worst_verdict(verdict_of(load.document) for load in self.loads)
        return None if verdict is None else RunOutcome(verdict.text, verdict.tone)

    def failure(self, trial: TrialReport) -> ListItem | None:
        """A load fails as `assay load` does: by a broken objective, an abort or a server that was unavailable."""
        documents = trial_documents(trial) if trial.ok else []
        verdict = worst_verdict(verdict_of(document) for document in documents)
        if verdict not in FAILURES:
            return None
        text = "\n".join(str(finding) for document in documents for finding in findings_of(document))
        return ListItem(text, "bad", verdict.text)


def _row(load: StoredLoad, columns: int) -> list[Cell]:
    """The first columns, and the verdict behind them."""
    whole, brief = (row(load.label, load.document, brief=is_brief) for is_brief in (False, True))
    cells = [Cell(text, brief=short) for text, short in zip(whole, brief, strict=True)][:columns]
    verdict = verdict_of(load.document)
    return [*cells, Cell(verdict.text, tone=verdict.tone)]


def _objective_table(document: Mapping[str, Any]) -> Table:
    lines = [
        ListItem(remark.detail, remark.tone, remark.title)
        for remark in findings_of(document)
        if remark.is_objective
    ]
    return build_table(
        document["slo"],
        Column("Objective", lambda objective: objective["objective"]),
        Column("Measured, 95 % interval", objective_figure, is_words=True),
        Column("Verdict", lambda objective: _MET[objective["met"]], is_words=True),
        terminal=lines,
    )


def _error_table(errors: Sequence[Sequence[str]]) -> Table:
    """A terminal names the kinds of errors in one line."""
    return Table(
        ("Error", "Requests", "Share", "Reason"),
        [[Cell(text) for text in cells] for cells in errors],
        words=(3,),
        terminal=(),
    )


def _generator_table(document: Mapping[str, Any]) -> Table:
    tones = {"lost": "bad", "bottleneck": "warn"}
    return Table(
        GENERATOR_COLUMNS,
        [
            [*map(Cell, cells), Cell(state, tone=tones.get(state, ""))]
            for *cells, state in generator_rows(document)
        ],
        words=(len(GENERATOR_COLUMNS) - 1,),
    )


def _verdict_table(listed: Sequence[StoredLoad], loads: Sequence[StoredLoad]) -> Table:
    """A terminal shows what was found of each load instead, and remarks that hold for several once."""
    lines = [
        ListItem(remark.detail, remark.tone, f"{load.label}: {remark.title}")
        for load in loads
        for remark in findings_of(load.document)
    ]
    remarks = dict.fromkeys(text for load in loads for text in remarks_of(load.document))

    def verdict(load: StoredLoad) -> Cell:
        first = verdicts_of(load.document)[0]
        return Cell(first.text, tone=first.tone)

    return build_table(
        listed,
        Column("Load", lambda load: load.label),
        Column("Verdict", verdict, is_words=True),
        Column("Also", lambda load: ", ".join(v.text for v in verdicts_of(load.document)[1:]), is_words=True),
        terminal=[*lines, *(ListItem(text, "warn") for text in remarks)],
    )


def server_text(document: Mapping[str, Any]) -> str:
    """Say where the metrics of the server came from, or nothing if none were asked for."""
    scrape = document.get("server_metrics")
    if not scrape:
        return ""
    software = f" ({scrape['software']})" if scrape.get("software") else ""
    failed = f"; {scrape['failed']} of {scrape['scrapes']} could not be read" if scrape.get("failed") else ""
    return f"Metrics of the server{software} from {scrape['url']}, read once a second{failed}."


def _tiles(loads: Sequence[StoredLoad]) -> Iterator[Tile]:
    """Show the key figures of the load with the most answers per second."""
    best = max(loads, key=lambda load: float(load.document["throughput_rps"])).document
    mark = " (simulated)" if best["simulated"] else ""
    most = "highest " if len(loads) > 1 else ""
    ends = best["intervals"]["throughput_rps"]
    interval = f" [{significant(ends[0])}, {significant(ends[1])}]" if ends else ""
    note = f"{significant(best['concurrency'])} in flight{mark}"
    yield Tile(f"{most}answers per second", f"{significant(best['throughput_rps'])}{interval}", note)
    if best["latency_ms"]:
        ends = best["latency_ms"]["intervals"]["p95"]
        interval = (
            f"{seconds(ends[0] / 1e3)} to {seconds(ends[1] / 1e3)}"
            if ends
            else "too few answers for an interval"
        )
        yield Tile(
            "latency P95" if len(loads) == 1 else "latency P95 at that load",
            seconds(best["latency_ms"]["p95"] / 1e3),
            f"{interval}{mark}",
        )
