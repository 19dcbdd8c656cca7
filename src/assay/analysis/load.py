"""What to make of a load: may it be believed, did the server keep up, and was the objective met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assay.model.figure import Figure
from assay.model.load import Held, Load, LoadResult, Objective
from assay.units import count, percent, seconds, significant

LAG_OF_A_BOTTLENECK = 0.005
CPU_OF_A_BOTTLENECK = 0.9
_RATE_OFF = 0.01 + 1e-9
_CONCURRENCY_OFF = 0.02
_SATURATED_BELOW = 0.98
_FEW = 30
_OWN = ("no_descriptors", "no_ports")
_UNFINISHED = ("cut_off", "worker_lost")


def judged(result: LoadResult, load: Load) -> LoadResult:
    """The same figures with what follows from them."""
    doubts = [doubt for judge in _DOUBTS if (doubt := judge(result, load))]
    remarks = [remark for judge in _REMARKS if (remark := judge(result, load))]
    return replace(
        result,
        held=tuple(held(objective, result) for objective in load.objectives),
        goodput=result.goodput if load.objectives else None,
        is_valid=not doubts,
        is_saturated=is_saturated(result, load),
        warnings=(*doubts, *remarks),
    )


def generator_is_limit(result: LoadResult) -> bool:
    """Whether it was us that could not keep up: then nothing is said about the server."""
    return result.lag_p99 > LAG_OF_A_BOTTLENECK or result.cpu_share > CPU_OF_A_BOTTLENECK


def is_saturated(result: LoadResult, load: Load) -> bool:
    """Offered more than came back, while we ourselves had time to spare."""
    offered = result.offered_rate
    if not load.is_open or offered is None or generator_is_limit(result) or result.error_rate.value >= 1:
        return False
    ended = result.throughput.value / max(1e-9, 1 - result.error_rate.value)
    top = result.throughput.high
    if top is None:
        # Of a few answers some more might have come by chance.
        top = ended * (1 + 2 / max(1, result.requests_completed) ** 0.5)
    return ended < _SATURATED_BELOW * offered and top < offered


def held(objective: Objective, result: LoadResult) -> Held:
    figure = _figure(objective, result)
    if figure is None:
        return Held(objective, None, None)
    return Held(objective, figure, objective.is_met_by(figure.value))


def _figure(objective: Objective, result: LoadResult) -> Figure | None:
    rates = {
        "error_rate": result.error_rate,
        "throughput": result.throughput,
        "tokens": result.output_tokens,
        "goodput": result.goodput,
    }
    if objective.metric in rates:
        return rates[objective.metric] if result.requests_sent else None
    times = result.times.get(objective.metric)
    if times is None or objective.statistic is None:
        return None
    low, high = times.intervals.get(objective.statistic, (None, None))
    return Figure(times.at(objective.statistic), low, high)


def _late(result: LoadResult, load: Load) -> str | None:
    if result.lag_p99 <= LAG_OF_A_BOTTLENECK:
        return None
    return (
        f"The load generator was too slow: answers lay {seconds(result.lag_p99)} (P99) unread on this machine "
        f"(too slow above {seconds(LAG_OF_A_BOTTLENECK)}). The server is not to blame for these times. "
        "Use --workers, a lower rate or another machine."
    )


def _busy(result: LoadResult, load: Load) -> str | None:
    if result.cpu_share <= CPU_OF_A_BOTTLENECK:
        return None
    return (
        f"A worker of the load generator used {percent(result.cpu_share)} of its core (too much above "
        f"{percent(CPU_OF_A_BOTTLENECK)}), so the rate may be its limit and not the server's. Use --workers."
    )


def _is_within_one(result: LoadResult) -> bool:
    """Of a few requests one more or less is many percent."""
    if not result.offered_rate or not result.achieved_rate:
        return False
    return abs(result.requests_sent * (1 - result.offered_rate / result.achieved_rate)) <= 1.5


def _rate_off(result: LoadResult, load: Load) -> str | None:
    offered = result.offered_rate
    if _is_within_one(result):
        return None
    if not load.is_open or not offered or abs(result.achieved_rate / offered - 1) <= _RATE_OFF:
        return None
    if (
        load.arrivals == "poisson"
        and abs(result.achieved_rate - offered) * result.duration < 3 * (offered * result.duration) ** 0.5
    ):
        return None
    return (
        f"{significant(result.achieved_rate)} of {significant(offered)} requests/s were sent, "
        f"{percent(abs(result.achieved_rate / offered - 1))} off (more than {percent(_RATE_OFF)}): "
        "this is not the load that was asked for."
    )


def _concurrency_off(result: LoadResult, load: Load) -> str | None:
    asked = load.concurrency
    if load.is_open or asked is None or load.think_seconds or not result.requests_completed:
        return None
    if result.error_rate.value > 0 or abs(result.concurrency / asked - 1) <= _CONCURRENCY_OFF:
        return None
    if load.count is not None and load.count < 20 * asked:
        return None
    return (
        f"{significant(result.concurrency)} of {asked} requests were in flight on average (by Little's law), "
        f"{percent(abs(result.concurrency / asked - 1))} off (more than {percent(_CONCURRENCY_OFF)}): "
        "this is not the load that was asked for."
    )


def _own_limits(result: LoadResult, load: Load) -> str | None:
    failed = sum(result.errors.get(kind, 0) for kind in _OWN)
    if not failed:
        return None
    return (
        f"{count(failed)} requests could not be sent, as this machine had no more descriptors or ports. "
        "Raise its limit (ulimit -n), or bound the load: --concurrency."
    )


def _lost(result: LoadResult, load: Load) -> str | None:
    if not result.workers_lost:
        return None
    lost = result.errors.get("worker_lost", 0)
    return (
        f"{count(result.workers_lost)} of {count(load.workers)} workers of the load generator ended before their time: "
        f"what they had told is counted, {count(lost)} requests that they had under way are lost."
    )


def _not_steady(result: LoadResult, load: Load) -> str | None:
    if result.is_steady:
        return None
    return "The rate of answers changed in the measured part: one figure for all of it hides that. Look at it over time."


def _no_warmup(result: LoadResult, load: Load) -> str | None:
    if load.warmup is None or result.measured_from >= load.warmup:
        return None
    return f"The load was over before its warm-up of {seconds(load.warmup)}: all of it was measured."


def _few(result: LoadResult, load: Load) -> str | None:
    if result.requests_completed >= _FEW or not result.requests_completed:
        return None
    return f"Only {result.requests_completed} answers: percentiles of so few say little. Use a longer --duration."


def _errors(result: LoadResult, load: Load) -> str | None:
    failed = {kind: number for kind, number in result.errors.items() if kind not in _UNFINISHED}
    if not failed:
        return None
    kinds = ", ".join(f"{kind} {count(n)}" for kind, n in sorted(failed.items(), key=lambda one: -one[1]))
    hint = "" if result.requests_completed or "refused" not in failed else " Is the server running?"
    return f"{count(sum(failed.values()))} of {count(result.requests_sent)} requests failed: {kinds}.{hint}"


def _pieces(result: LoadResult, load: Load) -> str | None:
    if not result.counts_pieces:
        return None
    return "The server told no number of tokens: pieces of the stream were counted instead, and one may hold several tokens."


def _too_long(result: LoadResult, load: Load) -> str | None:
    if not result.too_long:
        return None
    told = "1 answer was" if result.too_long == 1 else f"{result.too_long} answers were"
    return f"{told} too long to be judged, and not scored. Shorter ones: --max-tokens."


def _saturation(result: LoadResult, load: Load) -> str | None:
    if not is_saturated(result, load) or result.offered_rate is None:
        return None
    return (
        f"The server is saturated: {significant(result.throughput.value)} answers/s of {significant(result.offered_rate)} "
        "requests/s offered. Times from when requests were due grow as long as this goes on."
    )


Judge = Callable[[LoadResult, Load], str | None]
_DOUBTS: tuple[Judge, ...] = (_lost, _late, _busy, _rate_off, _concurrency_off, _own_limits)
_REMARKS: tuple[Judge, ...] = (_saturation, _errors, _no_warmup, _not_steady, _few, _pieces, _too_long)
