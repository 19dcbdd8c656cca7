"""Definitions of suites and agents as plain data, and back exactly as they were."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from assay.model import (
    AgentUse,
    Benchmark,
    Case,
    Cleanup,
    InstrumentUse,
    Iterations,
    Limits,
    Rubric,
    ScorerUse,
    Suite,
    Turn,
    Until,
)
from assay.store import plain

Plain = dict[str, Any]


def digest(definition: Plain) -> str:
    """The same for the same definition, whatever the machine."""
    return hashlib.sha256(plain.to_json(definition).encode()).hexdigest()[:16]


def agent_use_to_plain(use: AgentUse) -> Plain:
    return _shallow(use)


def agent_use_from(written: Mapping[str, Any]) -> AgentUse:
    return AgentUse(**written)


def suite_to_plain(suite: Suite) -> Plain:
    fields = _shallow(suite)
    # Left out where there is none, so that suites stored before there were any keep their digest.
    require = fields.pop("require")
    return {
        **fields,
        **({"require": list(require)} if require else {}),
        "benchmarks": [_benchmark_to_plain(one) for one in suite.benchmarks],
    }


def suite_from(written: Mapping[str, Any]) -> Suite:
    rebuilt = {
        "benchmarks": tuple(map(_benchmark_from, written["benchmarks"])),
        "require": tuple(written.get("require", ())),
    }
    return Suite(**{**written, **rebuilt})


def iterations_from(written: Mapping[str, Any]) -> Iterations:
    until = written["until"]
    return Iterations(**{**written, "until": until and Until(**until)})


def cleanup_from(written: Mapping[str, Any] | None) -> Cleanup | None:
    return Cleanup(tuple(written["command"]), written["folder"]) if written else None


def _benchmark_to_plain(benchmark: Benchmark) -> Plain:
    fields = _shallow(benchmark)
    # Left out where there is none, so that suites stored before there were any keep their digest.
    cleanup = fields.pop("cleanup")
    return {
        **fields,
        **({"cleanup": asdict(cleanup)} if cleanup else {}),
        "cases": [_case_to_plain(case) for case in benchmark.cases],
        "scorers": [_shallow(use) for use in benchmark.scorers],
        "instruments": [_shallow(use) for use in benchmark.instruments],
        "iterations": asdict(benchmark.iterations),
        "limits": asdict(benchmark.limits),
        "rubric": _shallow(benchmark.rubric),
    }


def _benchmark_from(written: Mapping[str, Any]) -> Benchmark:
    rebuilt = {
        "cases": tuple(map(_case_from, written["cases"])),
        "scorers": _scorers_from(written["scorers"]),
        "iterations": iterations_from(written["iterations"]),
        "limits": Limits(**written["limits"]),
        "rubric": Rubric(**written["rubric"]),
        "metrics_measured": tuple(written["metrics_measured"]),
        # Suites that were stored before benchmarks had instruments or cleanup commands have none.
        "instruments": tuple(InstrumentUse(**use) for use in written.get("instruments", ())),
        "cleanup": cleanup_from(written.get("cleanup")),
    }
    return Benchmark(**{**written, **rebuilt})


def _case_to_plain(case: Case) -> Plain:
    return {**_shallow(case), "turns": [_turn_to_plain(turn) for turn in case.turns]}


def _turn_to_plain(turn: Turn) -> Plain:
    return {**_shallow(turn), "scorers": [_shallow(use) for use in turn.scorers]}


def _case_from(written: Mapping[str, Any]) -> Case:
    rebuilt = {
        "turns": tuple(map(_turn_from, written["turns"])),
        "tools": tuple(written["tools"]),
        "tags": tuple(written["tags"]),
    }
    return Case(**{**written, **rebuilt})


def _turn_from(written: Mapping[str, Any]) -> Turn:
    return Turn(**{**written, "scorers": _scorers_from(written["scorers"])})


def _scorers_from(written: list[Plain]) -> tuple[ScorerUse, ...]:
    return tuple(ScorerUse(**use) for use in written)


def _shallow(noun: Any) -> Plain:
    """Its fields by name, which are the slots; a suite has thousands of cases, and asdict copies every leaf of them."""
    return {name: getattr(noun, name) for name in noun.__slots__}
