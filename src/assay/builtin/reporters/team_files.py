"""The files that seed 002 wrote of a multi-agent benchmark, with true figures; its own are there under names that say so.

`run_N/metrics.json`, `run_N/AGENT_report.md`, `run_N/combined_report.md`, `summary.json`, `summary.md`; in a folder of its
own for each team where there are several.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.builtin.findings.team import TeamResults, team_section
from assay.builtin.findings.team_text import team_document
from assay.builtin.reporters.finding_files import find_finding, write_json, write_text
from assay.model import Report, Verdict
from assay.model.team import Round, Stint, TeamFinding, Teammate
from assay.plugin import distinct_names, safe_name, to_json_data
from assay.report.pages.markdown_escape import table, text
from assay.report.pages.page import section_markdown
from assay.units import seconds, significant

_SIGN = "first agent − second agent, in the concurrent leg"
_TAKEN = ("run_number", "scenario", "simulated", "summary", "combined")
"""Names that the files have other uses for."""
_SEED = "naive speedup and efficiency: sum of the concurrent durations ÷ concurrent wall time"


class TeamFiles:
    """Writes a folder of JSON and Markdown files for each run of a team; ReportError for a run without a team."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        found = find_finding(report, TeamResults, "has no team: the format 'team' is for assay team.")
        teams = found.teams
        files: list[Path] = []
        for team, name in zip(teams, distinct_names([team.label for team in teams]), strict=True):
            files += _team(team, folder / name if len(teams) > 1 else folder)
        return files


def _team(team: TeamFinding, folder: Path) -> list[Path]:
    files: list[Path] = []
    for number, team_round in enumerate(team.rounds, 1):
        own = folder / f"run_{number}"
        reports = {agent.name: _agent_report(team, team_round, agent.name) for agent in team.agents}
        files.append(write_json(own / "metrics.json", _metrics(team, team_round, number)))
        files += [
            write_text(own / f"{safe_name(_key(name))}_report.md", page) for name, page in reports.items()
        ]
        files.append(write_text(own / "combined_report.md", "\n\n".join(reports.values())))
    files.append(write_json(folder / "summary.json", _summary(team)))
    files.append(write_text(folder / "summary.md", _summary_page(team)))
    return files


def _metrics(team: TeamFinding, team_round: Round, number: int) -> dict[str, Any]:
    return {
        **{_key(agent.name): _agent(team, team_round, agent) for agent in team.agents},
        "run_number": number,
        "scenario": team.name,
        "simulated": team.is_simulated,
        "summary": _round_summary(team, team_round),
    }


def _key(name: str) -> str:
    return f"{name}_agent" if name in _TAKEN else name


def _agent(team: TeamFinding, team_round: Round, agent: Teammate) -> dict[str, Any]:
    name, prompts = agent.name, list(team.prompts.get(agent.name, {}).values())
    definition = dict(team.options.get(name, {}))
    options = definition.get("options", {})
    options = options if isinstance(options, dict) else {}
    work = _select_stints(team_round.concurrent, name)
    return {
        "config": {
            "id": name,
            "label": name,
            "model": agent.model or options.get("model"),
            "base_url": options.get("base_url"),
            "options": to_json_data(options.get("params", {})),
            "prompt": to_json_data(prompts[0] if len(prompts) == 1 else prompts),
            "cases": [stint.case for stint in work],
        },
        "execution_time_s": _find_end(work),
        "sequential_execution_time_s": sum(
            s.end - s.start for s in _select_stints(team_round.sequential, name)
        ),
        "result": {
            "requests": len(work),
            "tokens_generated": _tokens(work),
            "throughput_tokens_per_sec": _throughput(work),
            "ttft_ms": _ttft_ms(work),
            "sequential_throughput_tokens_per_sec": _throughput(_select_stints(team_round.sequential, name)),
            "sequential_ttft_ms": _ttft_ms(_select_stints(team_round.sequential, name)),
            "answers": to_json_data(team_round.answers.get(name, {})),
        },
    }


def _round_summary(team: TeamFinding, team_round: Round) -> dict[str, Any]:
    names = [agent.name for agent in team.agents]
    durations = [_find_end(_select_stints(team_round.concurrent, name)) for name in names]
    is_found = team.contention is not None and team.contention.verdict is Verdict.WORSE
    rates = [_throughput(_select_stints(team_round.concurrent, name)) for name in names]
    firsts = [_ttft_ms(_select_stints(team_round.concurrent, name)) for name in names]
    seed = sum(durations) / team_round.concurrent_seconds
    return {
        "concurrency_speedup": team_round.speedup,
        "efficiency_percent": 100 * team_round.speedup / team.at_once,
        "concurrent_wall_time_s": team_round.concurrent_seconds,
        "sequential_wall_time_s": team_round.sequential_seconds,
        "sequential_estimated_s": team_round.sequential_seconds,
        "sequential_is": "measured, not estimated",
        "throughput_delta": _first_less_second(rates),
        "ttft_delta_ms": _first_less_second(firsts),
        "delta_sign": _SIGN,
        "resource_contention_detected": is_found and team_round.slower > 0,
        "contention_events": team_round.slower,
        "start_skew_ms": 1e3 * team_round.skew_seconds,
        "balance_ratio": statistics.fmean(durations) / max(durations),
        "as_seed_002_computed_it": {
            "concurrency_speedup": seed,
            "efficiency_percent": 100 * seed / len(names),
            "sequential_estimated_s": sum(durations),
            "note": _SEED,
        },
        **{f"{name}_throughput": rate for name, rate in zip(names, rates, strict=True)},
        **{f"{name}_ttft_ms": first for name, first in zip(names, firsts, strict=True)},
    }


def _first_less_second(values: Sequence[float | None]) -> float | None:
    if len(values) < 2 or values[0] is None or values[1] is None:
        return None
    return values[0] - values[1]


def _select_stints(stints: Sequence[Stint], name: str) -> list[Stint]:
    return [stint for stint in stints if stint.agent == name]


def _find_end(work: Sequence[Stint]) -> float:
    return max((stint.end for stint in work), default=0.0)


def _tokens(work: Sequence[Stint]) -> float | None:
    known = [stint.tokens for stint in work if stint.tokens is not None]
    return sum(known) if work and len(known) == len(work) else None


def _throughput(work: Sequence[Stint]) -> float | None:
    tokens, busy = _tokens(work), sum(stint.end - stint.start for stint in work)
    return tokens / busy if tokens is not None and busy > 0 else None


def _ttft_ms(work: Sequence[Stint]) -> float | None:
    known = [stint.ttft for stint in work if stint.ttft is not None]
    return 1e3 * statistics.fmean(known) if known else None


def _summary(team: TeamFinding) -> dict[str, Any]:
    rounds = [_round_summary(team, team_round) for team_round in team.rounds]

    def average(*path: str) -> float | None:
        values: list[Any] = rounds
        for key in path:
            values = [value[key] for value in values]
        known = [value for value in values if value is not None]
        return statistics.fmean(known) if known else None

    return {
        "scenario": team.name,
        "simulated": team.is_simulated,
        "runs": [{"run_number": number, **summary} for number, summary in enumerate(rounds, 1)],
        "aggregate": {
            "average_concurrency_speedup": average("concurrency_speedup"),
            "average_efficiency": average("efficiency_percent"),
            "average_throughput_delta": average("throughput_delta"),
            "average_ttft_delta_ms": average("ttft_delta_ms"),
            "delta_sign": _SIGN,
            "as_seed_002_computed_it": {
                "average_concurrency_speedup": average("as_seed_002_computed_it", "concurrency_speedup"),
                "average_efficiency": average("as_seed_002_computed_it", "efficiency_percent"),
                "note": _SEED,
            },
        },
        "findings": to_json_data(team_document(team)),
    }


def _summary_page(team: TeamFinding) -> str:
    names = ("Run", "Speedup", "Efficiency", "Sequential", "Concurrent", "Skew", "Naive speedup")
    rows = []
    for number, team_round in enumerate(team.rounds, 1):
        found = _round_summary(team, team_round)
        rows.append(
            (
                str(number),
                f"{significant(team_round.speedup)} ×",
                f"{significant(found['efficiency_percent'])} %",
                seconds(team_round.sequential_seconds),
                seconds(team_round.concurrent_seconds),
                seconds(team_round.skew_seconds),
                f"{significant(found['as_seed_002_computed_it']['concurrency_speedup'])} ×",
            )
        )
    note = (
        "Speedup is the measured sequential wall time ÷ the concurrent one. The last column is the naive speedup: "
        "it uses no sequential run, and only shows how similar the agents' durations are."
    )
    parts = [section_markdown(team_section(team)), table(names, rows, right=range(7)), note]
    return "\n\n".join(part for part in parts if part) + "\n"


def _agent_report(team: TeamFinding, team_round: Round, name: str) -> str:
    work, answers = _select_stints(team_round.concurrent, name), team_round.answers.get(name, {})
    figures = [
        f"- {len(work)} requests in {seconds(_find_end(work))} while {len(team.agents) - 1} other agents worked",
        f"- throughput {_format_measure(_throughput(work), 'tok/s')}, time to first token {_format_measure(_ttft_ms(work), 'ms')}",
    ]
    parts = [f"# {text(name)}{' (simulated)' if team.is_simulated else ''}", "\n".join(figures)]
    parts += [f"## {text(case)}\n\n{answer}" for case, answer in answers.items()]
    return "\n\n".join(parts) + "\n"


def _format_measure(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{significant(value)} {unit}"
