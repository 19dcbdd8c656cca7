"""The words, tables and JSON of profiles."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from assay.model.page import Bar, Cell, Lane, ListItem, PageSection, Points, Table, Timeline
from assay.model.profile import Opportunity, Overhead, Profile, SpanUsage, TokenAnalysis
from assay.plugin import Column, build_table
from assay.plugin.figures import format_known
from assay.units import count, format_signed, percent, seconds, size, usd

_TARGET = 0.05
"""Sampling is to cost less than this share of the time."""


def headline_text(profile: Profile) -> str:
    """The answer in a sentence: the largest saving, or that none was found."""
    if not profile.opportunities:
        return "No saving was found"
    best = profile.opportunities[0]
    return f"{best.category.capitalize()}: {best.improvement}"


def opportunity_blocks(profile: Profile) -> list[Table | Points | PageSection]:
    """A table of all savings, the largest first, and beneath it what each rests on."""
    if not profile.opportunities:
        return []
    table = build_table(
        profile.opportunities,
        Column("Opportunity", lambda o: o.category),
        Column("Saves", lambda o: seconds(o.seconds) if o.seconds else f"{count(o.tokens)} tokens"),
        Column("Share", lambda o: percent(o.impact)),
        Column("Effort", lambda o: o.effort, is_words=True),
        Column("Where", lambda o: o.location, is_words=True),
    )
    if len(profile.opportunities) == 1:
        return [table, _reasons(profile.opportunities[0])]
    return [
        table,
        *(
            PageSection(opportunity.category, [_reasons(opportunity)], anchor="")
            for opportunity in profile.opportunities
        ),
    ]


def _reasons(opportunity: Opportunity) -> Points:
    evidence = [ListItem(f"{text[0].upper()}{text[1:]}.") for text in opportunity.evidence]
    saving = ListItem(f"{opportunity.arithmetic}.", title="Saving")
    return Points([*evidence, saving, ListItem(opportunity.suggestion, "good", "Do")])


def phase_table(profile: Profile) -> Table:
    def tone(phase: SpanUsage) -> str:
        return "quiet" if phase.kind == "harness" else ""

    return build_table(
        profile.phases,
        Column("Phase", lambda phase: Cell("  " * phase.depth + phase.name, tone=tone(phase))),
        Column("Kind", lambda phase: Cell(phase.kind, tone="quiet"), is_words=True, is_minor=True),
        Column("Calls", lambda phase: str(phase.calls)),
        Column("Time", lambda phase: Cell(seconds(phase.seconds), tone=tone(phase))),
        Column("Share", lambda phase: Cell(percent(phase.share), tone=tone(phase))),
        Column("CPU", lambda phase: Cell(format_known(phase.cpu_seconds, seconds), tone=tone(phase))),
        Column(
            "Memory",
            lambda phase: Cell(format_known(phase.memory_bytes, size), tone="quiet"),
            is_minor=True,
        ),
        Column(
            "I/O calls",
            lambda phase: Cell(format_known(phase.io_operations, count), tone="quiet"),
            is_minor=True,
        ),
        caption=Cell(
            "CPU, memory and I/O are those of the whole process while the phase lasted; phases that overlap share them.",
            brief="CPU, memory and I/O are of the whole process.",
        ),
    )


def phase_timeline(profile: Profile) -> list[Timeline]:
    """When each phase was open, for the terminal; nothing where there is only one."""
    phases = [phase for phase in profile.phases if phase.starts]
    if len(phases) < 2:
        return []
    lanes = [
        Lane(
            "",
            "  " * phase.depth + phase.name,
            [Bar(start, end) for start, end in phase.starts],
            seconds(phase.seconds),
        )
        for phase in phases
    ]
    return [Timeline(lanes, profile.seconds, "when each phase was open")]


def bottleneck_table(profile: Profile) -> Table:
    return build_table(
        profile.bottlenecks,
        Column("Location", lambda b: b.location),
        Column("Time", lambda b: seconds(b.seconds)),
        Column("Share", lambda b: percent(b.share)),
        Column("Cause", lambda b: b.cause, is_words=True),
        Column("What helps", lambda b: Cell(b.suggestion, tone="quiet"), is_words=True, is_minor=True),
        caption=Cell("Wall time of one execution, at the innermost line of its own code."),
    )


def utilization_table(profile: Profile) -> Table:
    used, tokens = profile.utilization, profile.tokens
    rows = [
        ("CPU efficiency", format_known(used.cpu, percent), "CPU time ÷ (wall time × allowed cores)"),
        ("memory efficiency", format_known(used.memory, percent), "mean ÷ peak memory"),
        ("I/O efficiency", format_known(used.io, percent), "1 − share of the time waiting for input and output"),
        ("parallelization", format_known(used.parallelization, percent), "0 %: all calls in a row; 100 %: as short as the longest chain"),
    ]  # fmt: skip
    if tokens.input is not None or tokens.output is not None:
        rows += [
            ("input tokens", format_known(tokens.input, count), f"of which {format_known(tokens.cache_hits, count)} from a cache"),
            ("output tokens", format_known(tokens.output, count), ""),
            ("wasted tokens", format_known(tokens.wasted, count), f"{format_known(tokens.prefix, count)} of repeated prefixes, {format_known(tokens.repeated, count)} of repeated calls"),
            ("token efficiency", format_known(tokens.efficiency, percent), "1 − wasted ÷ all"),
        ]  # fmt: skip
    return Table(
        ("Figure", "Value", "What it is"),
        [[Cell(name), Cell(value), Cell(note, tone="quiet")] for name, value, note in rows],
        words=(2,),
    )


def token_notes(tokens: TokenAnalysis) -> list[str]:
    """What wasted tokens cost; that it is unknown where no price is."""
    if tokens.input is None or tokens.output is None or tokens.wasted is None:
        return []
    if tokens.usd is None:
        return ["The price of its tokens is unknown, so waste is given in tokens and not in usd."]
    share = tokens.wasted / max(1, tokens.input + tokens.output)
    return [
        f"An execution costs {usd(tokens.usd)}, of which wasted tokens are about {usd(share * tokens.usd)}."
    ]


def overhead_notes(profile: Profile) -> list[str]:
    """What sampling cost in wall time and, where the subject computes, in its CPU time."""
    if profile.overhead is None:
        return ["Sampling overhead is unknown: no sampled execution has an unsampled one to compare with."]
    notes = [f"Sampling overhead: {format_overhead(profile.overhead)}."]
    if profile.cpu_overhead is not None:
        notes.append(f"Sampling overhead in CPU time: {format_overhead(profile.cpu_overhead)}.")
    return notes


def format_overhead(overhead: Overhead) -> str:
    """The overhead with its interval; that it cannot be told where the noise is greater."""
    if overhead.low is None or overhead.high is None:
        return f"{_format_signed_percent(overhead.value)} in one pair; more repetitions give an interval"
    between = f"95 % interval {_format_signed_percent(overhead.low)} to {_format_signed_percent(overhead.high)}, {overhead.pairs} pairs"
    if overhead.is_resolved:
        return f"{_format_signed_percent(overhead.value)} ({between})"
    bound = ", under 5 %" if overhead.high < _TARGET else ""
    return f"too small to measure, below the noise of the machine{bound} ({between})"


def _format_signed_percent(share: float) -> str:
    return f"{format_signed(share * 100)} %"


def profile_document(profile: Profile) -> dict[str, Any]:
    """A profile with the names of the specification; seconds become ms, bytes MB and shares percent where the names say so."""
    return {
        "agent_id": profile.agent,
        "trial": profile.trial,
        "executions": profile.executions,
        "duration_ms": 1000 * profile.seconds,
        "profile_data": {
            "execution_phases": [_phase_document(phase) for phase in profile.phases],
            "bottlenecks": [
                {
                    "location": bottleneck.location,
                    "impact_ms": 1000 * bottleneck.seconds,
                    "percentage_of_total": 100 * bottleneck.share,
                    "cause": bottleneck.cause,
                    "optimization_suggestion": bottleneck.suggestion,
                }
                for bottleneck in profile.bottlenecks
            ],
            "resource_utilization": {
                "cpu_efficiency": profile.utilization.cpu,
                "memory_efficiency": profile.utilization.memory,
                "io_efficiency": profile.utilization.io,
                "parallelization_score": profile.utilization.parallelization,
            },
            "token_analysis": {
                "input_tokens": profile.tokens.input,
                "output_tokens": profile.tokens.output,
                "cache_hits": profile.tokens.cache_hits,
                "wasted_tokens": profile.tokens.wasted,
                "token_efficiency": profile.tokens.efficiency,
            },
        },
        "optimization_opportunities": [
            _opportunity_document(opportunity) for opportunity in profile.opportunities
        ],
        "sampling_overhead": _overhead_document(profile.overhead),
        "sampling_overhead_cpu": _overhead_document(profile.cpu_overhead),
        "problems": list(profile.problems),
        "simulated": profile.is_simulated,
    }


def _overhead_document(overhead: Overhead | None) -> dict[str, Any] | None:
    if overhead is None:
        return None
    return {**asdict(overhead), "resolved": overhead.is_resolved}


def _phase_document(phase: SpanUsage) -> dict[str, Any]:
    cpu, memory = phase.cpu_seconds, phase.memory_bytes
    return {
        "phase_name": phase.name,
        "kind": phase.kind,
        "depth": phase.depth,
        "calls": phase.calls,
        "duration_ms": 1000 * phase.seconds,
        "percentage_of_total": 100 * phase.share,
        "resource_usage": {
            "cpu_percent": None if cpu is None or not phase.seconds else 100 * cpu / phase.seconds,
            "cpu_seconds": cpu,
            "memory_mb": None if memory is None else memory / 1e6,
            "io_operations": phase.io_operations,
        },
    }


def _opportunity_document(opportunity: Opportunity) -> dict[str, Any]:
    return {
        "category": opportunity.category,
        "potential_improvement": opportunity.improvement,
        "estimated_impact": opportunity.impact,
        "implementation_effort": opportunity.effort,
        "optimization_suggestion": opportunity.suggestion,
        "location": opportunity.location,
        "evidence": list(opportunity.evidence),
        "arithmetic": opportunity.arithmetic,
        "saved_ms": 1000 * opportunity.seconds,
        "saved_tokens": opportunity.tokens,
    }
