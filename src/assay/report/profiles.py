"""What profilers found, as tables: the functions that took most time, the lines that hold most memory.

Instruments that profile leave a JSON artifact with the trial. It is read here by its type; an artifact that does not have the
expected layout is skipped, because a plug-in may use the same type for something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.model import Artifact, Phase, TrialReport, metric_named
from assay.report.console.screen import literal, new_table
from assay.report.pages.markdown_escape import table, text
from assay.units import count, seconds, show, size

if TYPE_CHECKING:
    from rich.console import Console

ON_SCREEN = 5
IN_DOCUMENTS = 15
_HARNESS = ("assay/execute/", "assay/plugin/spans", "assay/builtin/instruments/")


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """One profile of a trial, the most expensive rows first; the whole of it is the artifact."""

    title: str
    artifact: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def profiles(trial: TrialReport, most: int = IN_DOCUMENTS) -> list[ProfileTable]:
    """The profiles that instruments left with a trial."""
    return [
        table
        for artifact in trial.artifacts
        if artifact.type in _READERS and (table := _read(artifact, most)) is not None
    ]


def format_profiled_figures(trial: TrialReport) -> str:
    """What the instruments measured in executions of their own, which no estimate rests on; nothing without them."""
    if not any(artifact.type in _READERS for artifact in trial.artifacts):
        return ""
    found: dict[str, float] = {}
    for execution in trial.executions:
        if execution.phase is Phase.PROFILED:
            found.update(
                {name: value for name, value in execution.measurements.items() if name in trial.watched}
            )
    return ", ".join(f"{name} {show(value, metric_named(name).unit)}" for name, value in found.items())


def _read(artifact: Artifact, most: int) -> ProfileTable | None:
    """None for a file that is not what its type says: an instrument of somebody else's may use the same type."""
    try:
        return _READERS[artifact.type](artifact.name, json.loads(artifact.content), most)
    except (ValueError, KeyError, TypeError):
        return None


def _subjects(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without the harness, whose own lines users cannot speed up; the artifact has all of them."""
    return [entry for entry in entries if not str(entry["file"]).startswith(_HARNESS)]


def _functions(name: str, summary: Mapping[str, Any], most: int) -> ProfileTable | None:
    """The functions that took most time themselves, from the summary that the profiler left."""
    rows = tuple(
        (
            f"{entry['function']} ({entry['file']}:{entry['line']})",
            count(entry["calls"]),
            seconds(entry["internal_time"]),
            seconds(entry["cumulative_time"]),
        )
        for entry in _subjects(summary["top_internal"])[:most]
    )
    columns = ("Function", "Calls", "Own time", "With callees")
    return ProfileTable("Functions by their own time (cprofile)", name, columns, rows) if rows else None


def _allocations(name: str, summary: Mapping[str, Any], most: int) -> ProfileTable | None:
    """What lines left allocated for `memory`, and what they held at the peak for `memray`."""
    is_peak = "top_peak" in summary
    rows = tuple(
        (f"{entry['file']}:{entry['line']}", size(entry["bytes"]), count(entry["blocks"]))
        for entry in _subjects(summary["top_peak" if is_peak else "top_left"])[:most]
    )
    what = "held at the peak (memray)" if is_peak else "left allocated (memory)"
    columns = ("Line", "Memory", "Blocks")
    return ProfileTable(f"Lines by memory {what}", name, columns, rows) if rows else None


_READERS: dict[str, Callable[[str, Mapping[str, Any], int], ProfileTable | None]] = {
    "cprofile-summary": _functions,
    "memory": _allocations,
    "memray": _allocations,
}


def print_profiles(trial: TrialReport, console: Console) -> None:
    """Profiles for the terminal. They come from executions of their own, because a profiler slows down what it watches."""
    if figures := format_profiled_figures(trial):
        console.print(literal(f"{trial.name}: profiled in separate executions: {figures}"))
    for profile in profiles(trial, ON_SCREEN):
        console.print(literal(f"{trial.name}: {profile.title}", "bold"))
        table = new_table()
        for number, title in enumerate(profile.columns):
            table.add_column(title, justify="right" if number else "left", overflow="fold")
        for row in profile.rows:
            table.add_row(*map(literal, row))
        console.print(table)
        console.print()


def profile_sections(trial: TrialReport) -> str:
    """The profiles of a trial in Markdown."""
    profiled = format_profiled_figures(trial)
    sections = [f"Profiled in separate executions: {text(profiled)}"] if profiled else []
    for profile in profiles(trial):
        rows = [tuple(map(text, row)) for row in profile.rows]
        table_text = table(profile.columns, rows, right=range(1, len(profile.columns)))
        sections.append(f"### {text(profile.title)}\n\n{table_text}")
    return "\n\n".join(sections)
