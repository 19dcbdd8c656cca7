from __future__ import annotations

import gc
import io
import json
import marshal
import pstats
import sys
import tracemalloc
from pathlib import Path

import pytest

from assay.builtin.instruments.cprofile import CProfile
from assay.builtin.instruments.memory import Memory
from assay.builtin.instruments.source_names import short_path
from assay.errors import PlanError
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import Instrument, Reading


def hot() -> int:
    return sum(i * i for i in range(100_000))


def caller() -> int:
    return sum(hot() for _ in range(3)) + len(sorted([3, 1, 2]))


def profiled(context: ExperimentContext, **options: int) -> Reading:
    instrument = CProfile(**options)
    state = instrument.start(context)
    caller()
    return instrument.stop(state)


def summary_of(reading: Reading) -> dict[str, list[dict[str, object]]]:
    (content,) = [file.content for file in reading.files if file.type == "cprofile-summary"]
    summary: dict[str, list[dict[str, object]]] = json.loads(content)
    return summary


@pytest.mark.parametrize("kind", [CProfile, Memory])
def test_they_fit_the_protocol_and_get_executions_of_their_own(kind: type, context: ExperimentContext):
    instrument = kind()
    assert isinstance(instrument, Instrument)
    assert instrument.slows
    assert set(instrument.stop(instrument.start(context)).measurements) == set(instrument.metrics)


def test_the_hot_function_leads_by_internal_time(context: ExperimentContext):
    # A pause of the machine is charged to whatever function it hit, but not every time.
    leaders = [summary_of(profiled(context))["top_internal"][0] for _ in range(5)]
    calls = {one["function"]: one["calls"] for one in leaders}
    assert calls["<genexpr>"] == 3 * 100_001


def test_the_caller_leads_by_cumulative_time_and_calls_are_counted(context: ExperimentContext):
    summary = summary_of(profiled(context))
    entries = {entry["function"]: entry for entry in summary["top_cumulative"]}
    assert summary["top_cumulative"][0]["function"] == "caller"
    assert entries["hot"]["calls"] == entries["hot"]["primitive_calls"] == 3
    assert set(entries["hot"]) == {
        "function", "file", "line", "calls", "primitive_calls", "internal_time", "cumulative_time",
    }  # fmt: skip


def test_the_same_work_makes_the_same_number_of_calls(context: ExperimentContext):
    gc.disable()  # A collection may call what other tests have hooked to it, and the profile would count that.
    try:
        calls = {profiled(context).measurements["function_calls"] for _ in range(2)}
    finally:
        gc.enable()
    assert len(calls) == 1
    assert min(calls) > 300_000


def test_the_lists_are_no_longer_than_asked(context: ExperimentContext):
    assert {len(entries) for entries in summary_of(profiled(context, top_n=2)).values()} == {2}


def test_the_prof_file_opens_in_pstats(context: ExperimentContext):
    (file,) = [file for file in profiled(context).files if file.type == "prof"]
    path = context.run_dir / file.name
    path.write_bytes(file.content)
    out = io.StringIO()
    pstats.Stats(str(path), stream=out).print_callers("hot")
    assert "<genexpr>" in out.getvalue()


def test_no_file_of_a_profile_names_a_folder_outside_the_import_path(context: ExperimentContext):
    reading = profiled(context)
    (prof,) = [file.content for file in reading.files if file.type == "prof"]
    files = {file for file, _, _ in marshal.loads(prof)}
    assert not [file for file in files if Path(file).is_absolute()]
    assert str(Path.home()).encode() not in prof


def test_files_of_different_executions_have_different_names(context: ExperimentContext):
    first = {file.name for file in profiled(context).files}
    context.iteration_index = 4
    assert first.isdisjoint({file.name for file in profiled(context).files})


def test_a_path_is_shortened_to_what_is_imported():
    assert short_path(json.__file__) == "json/__init__.py"
    assert short_path("<frozen importlib._bootstrap>") == "<frozen importlib._bootstrap>"
    assert short_path("/home/someone/private/thing.py") == "private/thing.py"


def test_the_peak_of_a_bytearray_is_seen_after_it_is_gone(context: ExperimentContext):
    instrument = Memory()
    state = instrument.start(context)
    block = bytearray(10 * 2**20)
    del block
    found = instrument.stop(state).measurements
    assert 10 * 2**20 <= found["traced_peak_bytes"] < 11 * 2**20
    assert found["traced_left_bytes"] < 2**20


def test_the_line_that_keeps_memory_leads(context: ExperimentContext):
    instrument = Memory(top_n=1)
    state = instrument.start(context)
    kept = bytearray(10 * 2**20)
    line = sys._getframe().f_lineno - 1
    reading = instrument.stop(state)
    (top,) = json.loads(reading.files[0].content)["top_left"]
    assert (Path(top["file"]).name, top["line"]) == (Path(__file__).name, line)
    assert top["bytes"] >= len(kept)
    assert reading.measurements["traced_left_bytes"] >= len(kept)


def test_tracing_ends_with_the_execution(context: ExperimentContext):
    instrument = Memory()
    instrument.stop(instrument.start(context))
    assert not tracemalloc.is_tracing()


def test_tracing_that_somebody_else_began_goes_on_and_is_subtracted(context: ExperimentContext):
    tracemalloc.start()
    try:
        before = bytearray(20 * 2**20)
        instrument = Memory()
        state = instrument.start(context)
        block = bytearray(5 * 2**20)
        found = instrument.stop(state).measurements
        assert tracemalloc.is_tracing()
        assert len(block) <= found["traced_peak_bytes"] < len(before)
    finally:
        tracemalloc.stop()


def test_a_subject_that_ends_the_tracing_leaves_nothing_to_tell(context: ExperimentContext):
    instrument = Memory()
    state = instrument.start(context)
    tracemalloc.stop()
    assert not instrument.stop(state).measurements


@pytest.mark.parametrize(("kind", "name"), [(CProfile, "cprofile"), (Memory, "memory")])
def test_a_wrong_number_of_lines_is_refused(kind: type, name: str):
    with pytest.raises(PlanError, match=f"Instrument '{name}': top_n must be at least 1, not 0."):
        kind(top_n=0)
