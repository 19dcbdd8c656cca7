"""Load tests for the terminal, and stored loads as rows of tables.

`print_load` and `print_loads` show results that were just measured. `row` and `time_rows` read the stored document of a load,
whose times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.model.figure import Figure
from assay.model.load import Load, LoadResult
from assay.model.load_document import TIME_TITLES, input_tokens_document, load_document, target_document
from assay.report.load_findings import findings_of, remarks_of
from assay.units import count, percent, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console


def print_load(result: LoadResult, load: Load, console: Console) -> None:
    """One load: what it came to, what is wrong with it, its times, and the facts that qualify them."""
    from assay.report.console.screen import bullet, new_table

    document = load_document(result)
    console.print(_headline(result))
    print_findings(document, console)
    table = new_table()
    for name, side in (("", "left"), *((s.upper(), "right") for s in ("p50", "p90", "p95", "p99", "max"))):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for name, title in TIME_TITLES.items():
        times = result.times.get(name)
        if times is None or (name.endswith("_from_send") and not load.is_open):
            continue
        table.add_row(title, *(seconds(times.at(s)) for s in ("p50", "p90", "p95", "p99", "max")))
    if table.row_count:
        console.print(table)
    if result.generators:
        table = new_table()
        for title in GENERATOR_COLUMNS:
            table.add_column(title, justify="left" if title == GENERATOR_COLUMNS[0] else "right")
        for cells in generator_rows(document):
            table.add_row(*cells)
        console.print(table)
    for line in _facts(result, load):
        console.print(line)
    for remark in remarks_of(document):
        console.print(bullet("!", remark, "yellow"))


_MARKS = {"good": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}


def print_findings(document: Mapping[str, Any], console: Console, where: str = "") -> None:
    """Objectives, validity and errors of a load, a line each."""
    from assay.report.console.screen import bullet

    for finding in findings_of(document):
        mark, colour = _MARKS[finding.tone]
        console.print(bullet(mark, f"{where}{finding}", colour))


def print_loads(results: Sequence[LoadResult], console: Console, levels: Sequence[int] = ()) -> None:
    """Several loads, a row each; `levels` are the values of --concurrency, which repetitions go through again."""
    from assay.report.console.screen import bullet, new_table

    names = [
        str(levels[place % len(levels)]) if levels else significant(result.concurrency)
        for place, result in enumerate(results)
    ]
    has_score = any(result.quality for result in results)
    table = new_table()
    for name in (
        "in flight",
        "requests/s",
        "tokens/s",
        "TTFT P50",
        "TTFT P99",
        "latency P50",
        "P99",
        "failed",
    ):
        table.add_column(name, justify="right")
    if has_score:
        table.add_column("score", justify="right")
    for name, result in zip(names, results, strict=True):
        ttft, latency = result.times.get("ttft"), result.times.get("latency")
        score = [_give_or_take(result.quality.score) if result.quality else "–"] if has_score else []
        table.add_row(
            name,
            _give_or_take(result.throughput),
            significant(result.output_tokens.value),
            *(seconds(times.at(s)) if times else "–" for times in (ttft, latency) for s in ("p50", "p99")),
            percent(result.error_rate.value),
            *score,
        )
    console.print(table)
    documents = [load_document(result) for result in results]
    if (knee := _knee_text(names, documents)) is not None:
        console.print(knee)
    for name, document in zip(names, documents, strict=True):
        print_findings(document, console, f"{name} in flight: ")
    names_by_remark: dict[str, list[str]] = {}
    for name, document in zip(names, documents, strict=True):
        for remark in remarks_of(document):
            names_by_remark.setdefault(remark, []).append(name)
    for remark, load_names in names_by_remark.items():
        console.print(bullet("!", f"{', '.join(dict.fromkeys(load_names))} in flight: {remark}", "yellow"))


def _knee_text(names: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> str | None:
    """Say where more virtual users stop adding throughput; the chart marks the same place."""
    from assay.report.charts.loads import knee_of
    from assay.report.stored_loads import StoredLoad

    loads = [
        StoredLoad(name, document, int(name) if name.isdigit() else None)
        for name, document in zip(names, documents, strict=True)
    ]
    knee = knee_of(loads)
    return None if knee is None else f"Knee at {knee:g} in flight: more adds less than 5 % throughput."


def _headline(result: LoadResult) -> str:
    """Throughput with its interval, and how many of the requests were answered."""
    simulated = " (simulated)" if result.is_simulated else ""
    tokens = f"{_format_span(result.output_tokens)} tokens/s"
    if not result.output_tokens.value and result.input_tokens:
        # As of embeddings: nothing is said in return.
        tokens = f"{significant(input_tokens_document(result)['input_tokens_per_s'])} input tokens/s"
    return (
        f"[bold]{_format_span(result.throughput)} requests/s[/bold], {tokens}{simulated} · {count(result.requests_completed)} of {count(result.requests_sent)} answered "
        f"in {seconds(result.duration)}"
    )


def _facts(result: LoadResult, load: Load) -> list[str]:
    """What the figures depend on: the rate that was offered, the part that was measured, and how busy the load generator
    was."""
    lines = []
    if result.offered_rate is not None:
        lines.append(
            f"Offered {significant(result.offered_rate)}/s, sent {significant(result.achieved_rate)}/s"
        )
    lines.append(
        f"In flight {significant(result.concurrency)} on average · measured from "
        f"{seconds(result.measured_from)} on, for {seconds(result.measured_seconds)}"
    )
    if result.goodput is not None:
        lines.append(f"Goodput {_format_span(result.goodput)} requests/s meet every limit of the objective")
    if result.quality is not None:
        lines.append(
            f"Score {_format_span(result.quality.score)} of {count(result.quality.scored)} answers under this load"
        )
    if result.cancelled:
        lines.append(f"Cancelled {count(result.cancelled)} requests, as asked for")
    for url, outcomes in result.targets.items():
        document = target_document(url, outcomes)
        failed = sum(document["errors"].values())
        lines.append(
            f"{url}: {count(document['requests_completed'])} of {count(document['requests_sent'])} answered, {count(failed)} failed"
        )
    if result.input_tokens is not None:
        counted = input_tokens_document(result)
        lines.append(
            f"Input {significant(counted['input_tokens_per_request'])} tokens per request, "
            f"{significant(counted['input_tokens_per_s'])} tokens/s by the server's count, "
            f"{percent(counted['cached_share'])} from its prompt cache"
        )
    lines.append(
        f"Generator: answers waited {seconds(result.lag_p99)} (P99), {percent(result.cpu_share)} of a core"
    )
    return [f"[dim]{line}[/dim]" for line in lines]


def _format_span(span: Figure) -> str:
    if span.low is None or span.high is None:
        return significant(span.value)
    return f"{significant(span.value)} ({significant(span.low)} to {significant(span.high)})"


def _give_or_take(span: Figure) -> str:
    if span.low is None or span.high is None:
        return significant(span.value)
    return f"{significant(span.value)} ±{significant((span.high - span.low) / 2, 2)}"


def document_of(output: object) -> Mapping[str, Any] | None:
    """The load that a stored execution tells of, if it does; an experiment keeps it in a list among its output."""
    if not isinstance(output, Mapping):
        return None
    found = output.get("load", output)
    if isinstance(found, list) and found:
        found = found[0]
    return found if isinstance(found, Mapping) and "latency_curve_ms" in found else None


COLUMNS = (
    "Load",
    "requests/s",
    "tokens/s",
    "in flight",
    "TTFT P50",
    "TTFT P99",
    "latency P50",
    "latency P99",
    "failed",
    "score",
)


def row(label: str, document: Mapping[str, Any], *, brief: bool = False) -> list[str]:
    """One stored load for a table."""
    quality = document.get("quality")

    def ms(name: str, statistic: str) -> str:
        times = document[name]
        return seconds(times[statistic] / 1e3) if times else "–"

    ends = document["intervals"]["throughput_rps"]
    throughput = Figure(document["throughput_rps"], *(ends or (None, None)))
    tokens = significant(document["output_tokens_per_s"])
    # Embeddings return no tokens, so the input tokens are what counts.
    if (input_tokens := document.get("input_tokens_per_s")) and not document["output_tokens_per_s"]:
        tokens = f"{significant(input_tokens)} input"
    return [
        label,
        _give_or_take(throughput) if brief else _format_span(throughput),
        tokens,
        significant(document["concurrency"]),
        ms("ttft_ms", "p50"),
        ms("ttft_ms", "p99"),
        ms("latency_ms", "p50"),
        ms("latency_ms", "p99"),
        percent(document["error_rate"]),
        significant(quality["score"]) if quality else "–",
    ]


GENERATOR_COLUMNS = ("Generator", "sent", "answered", "late P99", "unread P99", "CPU", "clock", "state")


def generator_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Each load generator of one stored load: its share, whether it kept up, and how far its clock is ahead."""
    return [
        [
            generator["node"],
            count(generator["requests_sent"]),
            count(generator["requests_completed"]),
            "–"
            if generator["schedule_delay_p99_ms"] is None
            else seconds(generator["schedule_delay_p99_ms"] / 1e3),
            seconds(generator["lag_p99_ms"] / 1e3),
            percent(generator["cpu_share"]),
            _format_clock(generator),
            generator_state(generator),
        ]
        for generator in document.get("generators") or ()
    ]


def _format_clock(generator: Mapping[str, Any]) -> str:
    """The offset, or that there is none beyond what is uncertain."""
    offset, uncertainty = generator["clock_offset_ms"] / 1e3, generator["clock_uncertainty_ms"] / 1e3
    if abs(offset) <= uncertainty:
        return f"±{seconds(uncertainty)}"
    return f"{'+' if offset > 0 else '−'}{seconds(abs(offset))} ±{seconds(uncertainty)}"


def generator_state(generator: Mapping[str, Any]) -> str:
    if generator["lost"]:
        return "lost"
    return "bottleneck" if generator["bottleneck"] else "ok"


def time_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Each kind of time of one stored load, with its percentiles."""
    return [
        [title, *(seconds(times[s] / 1e3) for s in ("p50", "p90", "p95", "p99", "p999", "max"))]
        for name, title in TIME_TITLES.items()
        if (times := document.get(f"{name}_ms"))
    ]
