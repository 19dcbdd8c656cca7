"""A load as figures for the store, as a document for machines, and as a page for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.model.figure import Figure
from assay.model.load import QUANTILES, Distribution, Load, LoadResult, Moment, Quality, TimeHistogram
from assay.model.server_metrics import ServerMetrics
from assay.report.load_findings import findings_of, remarks_of, verdict_of
from assay.units import count, percent, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console

_STATISTICS = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
_ALWAYS = ("ttft", "itl", "tpot", "latency", "schedule_delay")
_NAMES = {
    "ttft": "Time to first token",
    "itl": "Between tokens (ITL)",
    "tpot": "Per output token (TPOT)",
    "latency": "Latency",
    "schedule_delay": "Schedule delay",
    "ttft_from_send": "First token, from the send",
    "latency_from_send": "Latency, from the send",
}


def load_metrics(result: LoadResult) -> dict[str, float]:
    """What is stored with an execution and can be compared: base units."""
    metrics = {
        "throughput_rps": result.throughput.value,
        "output_tokens_per_s": result.output_tokens.value,
        "error_rate": result.error_rate.value,
    }
    if result.goodput is not None:
        metrics["goodput_rps"] = result.goodput.value
    if result.quality is not None:
        metrics["score"] = result.quality.score.value
    for name in _ALWAYS:
        times = result.times.get(name)
        if times is not None:
            metrics |= {f"{name}_{s}_seconds": times.at(s) for s in ("p50", "p95", "p99")}
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def load_document(result: LoadResult) -> dict[str, Any]:
    """Times in milliseconds, as their names say; null where nothing was measured."""
    document = _figures_document(result)
    return {"verdict": verdict_of(document).value, **document}


def _figures_document(result: LoadResult) -> dict[str, Any]:
    times = {f"{name}_ms": times_document(result.times.get(name)) for name in _NAMES}
    return {
        "requests_sent": result.requests_sent,
        "requests_completed": result.requests_completed,
        "requests_cancelled": result.cancelled,
        "errors": dict(result.errors),
        "error_reasons": {kind: dict(reasons) for kind, reasons in result.error_reasons.items()},
        "duration_s": result.duration,
        "measured_from_s": result.measured_from,
        "measured_s": result.measured_seconds,
        "throughput_rps": result.throughput.value,
        "output_tokens_per_s": result.output_tokens.value,
        "error_rate": result.error_rate.value,
        "goodput_rps": result.goodput.value if result.goodput else None,
        "achieved_rate": result.achieved_rate,
        "offered_rate": result.offered_rate,
        "concurrency": result.concurrency,
        **times,
        "intervals": {
            "throughput_rps": interval_of(result.throughput),
            "output_tokens_per_s": interval_of(result.output_tokens),
            "error_rate": interval_of(result.error_rate),
            "goodput_rps": interval_of(result.goodput),
        },
        **_input_tokens(result),
        "prompt_seed": result.prompt_seed,
        "targets": [_target(url, outcomes) for url, outcomes in result.targets.items()],
        "quality": _quality(result.quality),
        "slo": [
            {
                "objective": held.objective.text,
                "value": held.figure.value if held.figure else None,
                "interval": interval_of(held.figure),
                "met": held.is_met,
            }
            for held in result.held
        ],
        "valid": result.is_valid,
        "invalid_because": list(result.doubts),
        "interrupted": result.is_cut and result.aborted is None,
        "aborted": result.aborted,
        "unavailable": result.is_unavailable,
        "outages": [
            {"at_s": outage.begin, "seconds": outage.seconds, "failed": outage.failed}
            for outage in result.outages
        ],
        "saturated": result.is_saturated,
        "steady": result.is_steady,
        "simulated": result.is_simulated,
        "generator": {"lag_p99_ms": result.lag_p99 * 1e3, "cpu_share": result.cpu_share},
        "warnings": list(result.warnings),
        "over_time": [_moment(moment) for moment in result.moments],
        "latency_curve_ms": [[value * 1e3, share] for value, share in result.curve],
        "histograms_ms": {name: _histogram(shape) for name, shape in result.histograms.items()},
        "server_metrics": _server(result.server),
    }


def _histogram(shape: TimeHistogram) -> dict[str, Any]:
    return {
        "edges": [float(f"{edge * 1e3:.6g}") for edge in shape.edges],
        "counts": list(shape.counts),
        "beyond": shape.beyond,
        "log": shape.is_log,
    }


def _server(server: ServerMetrics | None) -> dict[str, Any] | None:
    if server is None:
        return None
    return {
        "url": server.url,
        "software": server.software,
        "scrapes": server.scrapes,
        "failed": server.failed,
        "error": server.error,
        "series": [
            {
                "name": series.name,
                "title": series.title,
                "unit": series.unit,
                "kind": "counter" if series.is_counter else "gauge",
                "points": [list(point) for point in series.points],
            }
            for series in server.series
        ],
    }


def _target(url: str, outcomes: Mapping[str, int]) -> dict[str, Any]:
    """Of several targets, what became of the requests that went to one of them."""
    return {
        "url": url,
        "requests_sent": sum(outcomes.values()),
        "requests_completed": outcomes.get("ok", 0),
        "requests_cancelled": outcomes.get("cancelled", 0),
        "errors": {kind: number for kind, number in outcomes.items() if kind not in ("ok", "cancelled")},
    }


def _input_tokens(result: LoadResult) -> dict[str, Any]:
    """As the server counted them, of all answered requests; null where it does not tell."""
    given, cached = result.input_tokens, result.cached_tokens
    mean = None if given is None else given / result.counted_requests
    return {
        "input_tokens": given,
        "input_tokens_per_request": mean,
        "input_tokens_per_s": None if mean is None else mean * result.throughput.value,
        "cached_tokens": cached,
        "cached_share": None if cached is None else cached / given if given else 0.0,
    }


def _quality(quality: Quality | None) -> dict[str, Any] | None:
    if quality is None:
        return None
    return {
        "score": quality.score.value,
        "interval": interval_of(quality.score),
        "scored": quality.scored,
        "unscored": quality.unscored,
    }


def _moment(moment: Moment) -> dict[str, Any]:
    def ms(value: float | None) -> float | None:
        return None if value is None else value * 1e3

    return {
        "at_s": moment.begin,
        "seconds": moment.seconds,
        "sent": moment.sent,
        "completed": moment.completed,
        "failed": moment.failed,
        "output_tokens": moment.tokens,
        "in_flight": moment.in_flight,
        "latency_p50_ms": ms(moment.latency_p50),
        "latency_p99_ms": ms(moment.latency_p99),
        "ttft_p50_ms": ms(moment.ttft_p50),
        "ttft_p99_ms": ms(moment.ttft_p99),
        "itl_p50_ms": ms(moment.itl_p50),
        "itl_p99_ms": ms(moment.itl_p99),
        "schedule_delay_p99_ms": ms(moment.schedule_delay_p99),
        "lag_p99_ms": ms(moment.lag_p99),
        "errors": dict(moment.errors),
    }


def times_document(times: Distribution | None) -> dict[str, Any] | None:
    """In milliseconds; an interval is null where there are too few values for one."""
    if times is None:
        return None
    known = {name: [low * 1e3, high * 1e3] for name, (low, high) in times.intervals.items()}
    return {
        **{name: times.at(name) * 1e3 for name in _STATISTICS},
        "n": times.n,
        "intervals": {name: known.get(name) for name in QUANTILES},
    }


def interval_of(span: Figure | None) -> list[float] | None:
    return None if span is None or span.low is None or span.high is None else [span.low, span.high]


def print_load(result: LoadResult, load: Load, console: Console) -> None:
    from assay.report.screen import bullet, new_table

    document = load_document(result)
    console.print(_headline(result))
    print_findings(document, console)
    table = new_table()
    for name, side in (("", "left"), *((s.upper(), "right") for s in ("p50", "p90", "p95", "p99", "max"))):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for name, title in _NAMES.items():
        times = result.times.get(name)
        if times is None or (name.endswith("_from_send") and not load.is_open):
            continue
        table.add_row(title, *(seconds(times.at(s)) for s in ("p50", "p90", "p95", "p99", "max")))
    if table.row_count:
        console.print(table)
    for line in _facts(result, load):
        console.print(line)
    for remark in remarks_of(document):
        console.print(bullet("!", remark, "yellow"))


_MARKS = {"good": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}


def print_findings(document: Mapping[str, Any], console: Console, where: str = "") -> None:
    """Objectives, validity and errors of a load, a line each."""
    from assay.report.screen import bullet

    for finding in findings_of(document):
        mark, colour = _MARKS[finding.tone]
        console.print(bullet(mark, f"{where}{finding}", colour))


def print_loads(results: Sequence[LoadResult], console: Console, levels: Sequence[int] = ()) -> None:
    """Several loads, a row each; `levels` are the values of --concurrency, which repetitions go through again."""
    from assay.report.screen import bullet, new_table

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
    shown: dict[str, list[str]] = {}
    for name, document in zip(names, documents, strict=True):
        for remark in remarks_of(document):
            shown.setdefault(remark, []).append(name)
    for remark, where in shown.items():
        console.print(bullet("!", f"{', '.join(dict.fromkeys(where))} in flight: {remark}", "yellow"))


def _knee_text(names: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> str | None:
    from assay.report.load_charts import knee_of
    from assay.report.stored_loads import StoredLoad

    loads = [
        StoredLoad(name, document, int(name) if name.isdigit() else None)
        for name, document in zip(names, documents, strict=True)
    ]
    knee = knee_of(loads)
    return None if knee is None else f"Knee at {knee:g} in flight: more brings less than 5 % more throughput."


def _headline(result: LoadResult) -> str:
    simulated = " (simulated)" if result.is_simulated else ""
    tokens = f"{_spanned(result.output_tokens)} tokens/s"
    if not result.output_tokens.value and result.input_tokens:
        # As of embeddings: nothing is said in return.
        tokens = f"{significant(_input_tokens(result)['input_tokens_per_s'])} input tokens/s"
    return (
        f"[bold]{_spanned(result.throughput)} requests/s[/bold], {tokens}{simulated} · {count(result.requests_completed)} of {count(result.requests_sent)} answered "
        f"in {seconds(result.duration)}"
    )


def _facts(result: LoadResult, load: Load) -> list[str]:
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
        lines.append(f"Goodput {_spanned(result.goodput)} requests/s keep to every limit of the objective")
    if result.quality is not None:
        lines.append(
            f"Score {_spanned(result.quality.score)} of {count(result.quality.scored)} answers under this load"
        )
    if result.cancelled:
        lines.append(f"Cancelled {count(result.cancelled)} requests, as asked for")
    for url, outcomes in result.targets.items():
        told = _target(url, outcomes)
        failed = sum(told["errors"].values())
        lines.append(
            f"{url}: {count(told['requests_completed'])} of {count(told['requests_sent'])} answered, {count(failed)} failed"
        )
    if result.input_tokens is not None:
        counted = _input_tokens(result)
        lines.append(
            f"Input {significant(counted['input_tokens_per_request'])} tokens per request, "
            f"{significant(counted['input_tokens_per_s'])} tokens/s by the server's count, "
            f"{percent(counted['cached_share'])} from its prompt cache"
        )
    lines.append(
        f"Generator: answers waited {seconds(result.lag_p99)} (P99), {percent(result.cpu_share)} of a core"
    )
    return [f"[dim]{line}[/dim]" for line in lines]


def _spanned(span: Figure) -> str:
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
    return [
        label,
        _give_or_take(throughput) if brief else _spanned(throughput),
        _tokens_cell(document),
        significant(document["concurrency"]),
        ms("ttft_ms", "p50"),
        ms("ttft_ms", "p99"),
        ms("latency_ms", "p50"),
        ms("latency_ms", "p99"),
        percent(document["error_rate"]),
        significant(quality["score"]) if quality else "–",
    ]


def _tokens_cell(document: Mapping[str, Any]) -> str:
    """Of embeddings, which say nothing in return, those that were read."""
    given = document.get("input_tokens_per_s")
    if given and not document["output_tokens_per_s"]:
        return f"{significant(given)} input"
    return significant(document["output_tokens_per_s"])


def time_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Each kind of time of one stored load, with its percentiles."""
    return [
        [title, *(seconds(times[s] / 1e3) for s in ("p50", "p90", "p95", "p99", "p999", "max"))]
        for name, title in _NAMES.items()
        if (times := document.get(f"{name}_ms"))
    ]
