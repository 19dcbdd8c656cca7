"""The instrument that runs Python's profiler around an execution and keeps its figures and a summary.

Paths are shortened before anything is written, because a result may be shown to others and must not tell where it was made.
"""

from __future__ import annotations

import cProfile
import json
import marshal
from collections.abc import Mapping
from typing import Any, ClassVar

from assay.builtin.instruments.options import whole
from assay.builtin.instruments.source_names import artifact_name, short_path
from assay.model import Better, Metric
from assay.plugin import ExperimentContext, File, Reading

Function = tuple[str, int, str]
"""File, line and name, as the profiler keys its figures."""
Figures = tuple[int, int, float, float, Mapping[Function, Any]]
"""Primitive calls, calls, internal seconds, cumulative seconds, callers."""
Stats = dict[Function, Figures]

_ORDERS = {"top_cumulative": "cumulative_time", "top_internal": "internal_time", "top_calls": "calls"}
_NOTHING: Figures = (0, 0, 0.0, 0.0, {})
_OWN = "_lsprof.Profiler"


class CProfile:
    """Where the time of the executing thread went, function by function.

    The .prof file opens in pstats, snakeviz and similar programs.

    Args:
        top_n: How many functions are listed.

    Example:
        instrumentation: [timing, {name: cprofile, top_n: 20}]
    """

    slows: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, Metric]] = {
        "function_calls": Metric("function_calls", "calls", Better.LOWER)
    }

    def __init__(self, *, top_n: int = 30) -> None:
        self._top_n = whole("cprofile", "top_n", top_n, 1)

    def start(self, context: ExperimentContext) -> tuple[cProfile.Profile, ExperimentContext]:
        profile = cProfile.Profile()
        profile.enable()
        return profile, context

    def stop(self, state: tuple[cProfile.Profile, ExperimentContext]) -> Reading:
        profile, context = state
        profile.create_stats()
        stats = _shorten_file_names(profile.stats)
        entries = [_entry(function, figures) for function, figures in stats.items()]
        lists = {
            title: sorted(entries, key=lambda entry: entry[order], reverse=True)[: self._top_n]
            for title, order in _ORDERS.items()
        }
        summary = json.dumps(lists, indent=1).encode()
        files = (
            File(artifact_name("cprofile", ".prof", context), "prof", marshal.dumps(stats)),
            File(artifact_name("cprofile_summary", ".json", context), "cprofile-summary", summary),
        )
        return Reading({"function_calls": sum(figures[1] for figures in stats.values())}, files)


def _shorten_file_names(stats: Mapping[Function, Figures]) -> Stats:
    """Shorten the file names, and leave out Assay's own calls.

    Functions that have the same name after that are added up.
    """
    short: Stats = {}
    for (file, line, name), (primitive, calls, internal, cumulative, callers) in stats.items():
        if _OWN in name:
            continue
        key = (short_path(file), line, name)
        before = short.get(key, _NOTHING)
        by = {(short_path(f), n, caller): figures for (f, n, caller), figures in callers.items()}
        short[key] = (
            before[0] + primitive, before[1] + calls, before[2] + internal, before[3] + cumulative, {**before[4], **by},
        )  # fmt: skip
    return short


def _entry(function: Function, figures: Figures) -> dict[str, Any]:
    file, line, name = function
    primitive, calls, internal, cumulative, _ = figures
    return {
        "function": name,
        "file": file,
        "line": line,
        "calls": calls,
        "primitive_calls": primitive,
        "internal_time": internal,
        "cumulative_time": cumulative,
    }
