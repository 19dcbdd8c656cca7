"""Judges a load that was measured: is it valid, did the server keep up, and were the objectives met.

`judge_load` runs two lists of judges over a `LoadResult`. The judges in `_DOUBTS` find reasons why the figures must not be
used, such as a load generator that was too slow; any of them makes the load invalid. Those in `_REMARKS` find what a reader
should know besides. Each judge returns a sentence, or None if it has nothing to say.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from assay.model.bottleneck import (
    BUSY,
    FOR_TIMES,
    OWN_LIMITS,
    falls_behind,
    is_behind,
    is_busy,
    is_generator_limit,
    sends_late,
)
from assay.model.figure import Figure
from assay.model.load import UNFINISHED, Load, LoadResult, Moment, Objective, ObjectiveResult, Outage
from assay.model.load_generator import GeneratorResult
from assay.units import count, format_count, percent, seconds, significant

_RATE_OFF = 0.01 + 1e-9
_CONCURRENCY_OFF = 0.02
_FEW = 30
_MOSTLY = 0.5
"""Share of cached input tokens above which times are those of a server's prompt cache."""
_TEMPLATE = 64
"""Cached tokens per request that a server's chat template, the same for every prompt, may account for."""
_CENSORED = 0.01
_LATENCIES = 10
"""A window should last this many latencies, or rates depend on where it begins and ends."""


def judge_load(result: LoadResult, load: Load) -> LoadResult:
    """Add the verdicts on objectives, warnings and validity to the figures of a load."""
    lasted = min(load.seconds, result.duration)
    outages = find_outages(result.moments, lasted)
    generators = (
        replace(generator, is_limit=is_behind(generator, result, FOR_TIMES))
        for generator in result.generators
    )
    result = replace(result, outages=outages, generators=tuple(generators))
    skipped = _OF_WHOLE_LOADS if result.aborted else frozenset()
    doubts = [doubt for judge in _DOUBTS if judge not in skipped and (doubt := judge(result, load))]
    remarks = [remark for judge in _REMARKS if judge not in skipped and (remark := judge(result, load))]
    return replace(
        result,
        held=tuple(evaluate_objective(objective, result) for objective in load.objectives),
        goodput=result.goodput if load.objectives else None,
        is_valid=not doubts,
        is_saturated=is_saturated(result, load),
        warnings=(*doubts, *remarks),
        doubts=tuple(doubts),
        is_unavailable=_is_unavailable(result, load, lasted),
    )


def _is_unavailable(result: LoadResult, load: Load, lasted: float) -> bool:
    """An objective on the error rate says itself how many errors are too many; our own limits are not the server's."""
    if any(objective.metric == "error_rate" for objective in load.objectives):
        return False
    own = sum(result.errors.get(kind, 0) for kind in (*OWN_LIMITS, *UNFINISHED))
    return 2 * own <= sum(result.errors.values()) and is_unavailable(result, result.outages, lasted)


def is_saturated(result: LoadResult, load: Load) -> bool:
    """Latency kept growing, so that fewer came back than were offered, while the generator had time to spare.

    That fewer came back is not enough: before the first answers are there, none come back of any server.
    """
    offered = result.offered_rate
    if (
        not load.is_open
        or offered is None
        or is_generator_limit(result, FOR_TIMES)
        or result.error_rate.value >= 1
    ):
        return False
    return result.latency_growth > 0 and falls_behind(result, offered)


def evaluate_objective(objective: Objective, result: LoadResult) -> ObjectiveResult:
    figure = _figure(objective, result)
    if figure is None:
        return ObjectiveResult(objective, None, None)
    return ObjectiveResult(objective, figure, objective.is_met_by(figure.value))


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


def _check_lag(result: LoadResult, load: Load) -> str | None:
    limit = FOR_TIMES.limit(result)
    late = sorted(
        (generator for generator in result.generators if generator.lag_p99 > limit),
        key=lambda generator: -generator.lag_p99,
    )
    if result.lag_p99 <= limit and not late:
        return None
    lag = late[0].lag_p99 if late else result.lag_p99
    return (
        f"The load generator{_name_nodes(late)} was too slow: answers waited {seconds(lag)} (P99) {'there' if late else 'on this machine'} "
        f"before they were read (limit: {seconds(limit)}). The server is not to blame for these times. "
        "Use --workers, a lower rate or another machine."
    )


def _check_late_sends(result: LoadResult, load: Load) -> str | None:
    limit = FOR_TIMES.limit(result)
    late = sorted(
        (generator for generator in result.generators if sends_late(generator, limit)),
        key=lambda generator: -(generator.schedule_delay_p99 or 0.0),
    )
    if not late:
        return None
    longest = late[0].schedule_delay_p99 or 0.0
    return (
        f"The load generator{_name_nodes(late)} sent requests {seconds(longest)} (P99) later than they were due (limit: "
        f"{seconds(limit)}). The server is not to blame for that time. Use more generators or nodes with less other work."
    )


def _check_cpu(result: LoadResult, load: Load) -> str | None:
    if not is_busy(result):
        return None
    busy = [generator for generator in result.generators if generator.cpu_share > BUSY]
    return (
        f"A worker of the load generator{_name_nodes(busy)} used {percent(result.cpu_share)} of its core (limit: "
        f"{percent(BUSY)}), so it, and not the server, may have limited the rate. Use --workers."
    )


def _name_nodes(generators: Sequence[GeneratorResult]) -> str:
    """Name the nodes of these load generators for a message.

    The text is empty without nodes: a message about a single generator needs no name.
    """
    more = f" (and {count(len(generators) - 1)} more)" if len(generators) > 1 else ""
    return f" on '{generators[0].node}'{more}" if generators else ""


def _check_late_start(result: LoadResult, load: Load) -> str | None:
    late = [generator for generator in result.generators if generator.late_start > 0]
    if not late:
        return None
    longest = max(generator.late_start for generator in late)
    return (
        f"The load generator{_name_nodes(late)} began {seconds(longest)} after the others, because the start message came late: "
        "until then the actual load differed from the requested one. Is the network between the nodes slow?"
    )


def _check_unanswered_generators(result: LoadResult, load: Load) -> str | None:
    """While others are answered, it is the way from there that is broken, and not the server."""
    mute = [
        generator
        for generator in result.generators
        if generator.requests_sent and not generator.requests_completed
    ]
    if not mute or not result.requests_completed:
        return None
    errors = sum((Counter(generator.errors) for generator in mute), start=Counter[str]())
    kinds = ", ".join(f"{kind} {count(number)}" for kind, number in errors.most_common(_MOST_REASONS))
    return (
        f"The load generator{_name_nodes(mute)} got no answers ({kinds}), but the others did: "
        "the target cannot be reached from there."
    )


def _check_rate(result: LoadResult, load: Load) -> str | None:
    offered = result.offered_rate
    # With few requests one more or less is many percent.
    if (
        offered
        and result.achieved_rate
        and abs(result.requests_sent * (1 - offered / result.achieved_rate)) <= 1.5
    ):
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
        f"{percent(abs(result.achieved_rate / offered - 1))} off (limit: {percent(_RATE_OFF)}): "
        "the actual load differs from the requested one."
    )


def _check_concurrency(result: LoadResult, load: Load) -> str | None:
    concurrency = load.concurrency
    if load.is_open or concurrency is None or load.think_seconds or not result.requests_completed:
        return None
    if result.error_rate.value > 0 or abs(result.concurrency / concurrency - 1) <= _CONCURRENCY_OFF:
        return None
    if load.count is not None and load.count < 20 * concurrency:
        return None
    return (
        f"{significant(result.concurrency)} of {concurrency} requests were in flight on average (by Little's law), "
        f"{percent(abs(result.concurrency / concurrency - 1))} off (limit: {percent(_CONCURRENCY_OFF)}): "
        "the actual load differs from the requested one."
    )


def _check_own_limits(result: LoadResult, load: Load) -> str | None:
    failed = sum(result.errors.get(kind, 0) for kind in OWN_LIMITS)
    if not failed:
        return None
    return (
        f"{format_count(failed, 'request')} could not be sent, because this machine ran out of descriptors or ports. "
        "Raise the limit (ulimit -n), or limit the load: --concurrency N."
    )


def _check_lost_workers(result: LoadResult, load: Load) -> str | None:
    if not result.workers_lost:
        return None
    lost = result.errors.get("worker_lost", 0)
    generators = [generator for generator in result.generators if generator.lost]
    workers = sum(generator.workers for generator in generators) or load.workers
    where = _name_nodes(generators)
    return (
        f"{count(result.workers_lost)} of {count(workers)} workers of the load generator{where} died: "
        f"what they had reported is counted, but {count(lost)} requests in flight are lost."
    )


def _check_steadiness(result: LoadResult, load: Load) -> str | None:
    if result.is_steady:
        return None
    return "The answer rate changed while it was measured, which a single figure hides. See the charts over time."


def _check_warmup(result: LoadResult, load: Load) -> str | None:
    if load.warmup is None or result.measured_from >= load.warmup:
        return None
    return f"The load ended before its warm-up of {seconds(load.warmup)} was over, so all of it was measured."


def _check_number_of_answers(result: LoadResult, load: Load) -> str | None:
    if result.requests_completed >= _FEW or not result.requests_completed:
        return None
    longer = "more --requests" if load.count is not None else "a longer --duration"
    advice = f" Use {longer}." if load.is_level else ""
    return f"Only {format_count(result.requests_completed, 'answer')}: too few for percentiles.{advice}"


def _check_errors(result: LoadResult, load: Load) -> str | None:
    failed = {kind: number for kind, number in result.errors.items() if kind not in UNFINISHED}
    if not failed:
        return None
    kinds = []
    for kind, number in sorted(failed.items(), key=lambda item: -item[1]):
        reasons = result.error_reasons.get(kind, {})
        frequent = sorted(reasons, key=lambda reason: (-reasons[reason], reason))[:_MOST_REASONS]
        kinds.append(f"{kind} {count(number)}" + (f" ({'; '.join(frequent)})" if frequent else ""))
    hint = "" if result.requests_completed or "refused" not in failed else " Is the server running?"
    tls_reasons = " ".join(result.error_reasons.get("tls", {})).lower()
    hint += next((hint for words, hint in _TLS_HINTS if words.lower() in tls_reasons), "")
    return f"{count(sum(failed.values()))} of {count(result.requests_sent)} requests failed: {', '.join(kinds)}.{hint}"


_MOST_REASONS = 3


_TLS_HINTS = (
    ("self-signed", " Trust it with --ca-file FILE, or accept any certificate with --insecure."),
    ("issuer", " Name the authority's certificate with --ca-file FILE, or use --insecure."),
    ("expired", " Renew the certificate, or measure anyway with --insecure."),
    ("mismatch", " Use the host name that the certificate is for, or --insecure."),
    ("does not speak TLS", " Try the address with http:// instead of https://."),
)


def _check_outages(result: LoadResult, load: Load) -> str | None:
    if not result.outages or not result.requests_completed:
        return None
    longest = max(result.outages, key=lambda outage: outage.seconds)
    more = len(result.outages) - 1
    others = f" (and {count(more)} more such stretch{'es' if more > 1 else ''})" if more else ""
    return (
        f"The server stopped answering: all {count(longest.failed)} requests that were due from {seconds(longest.begin)} to "
        f"{seconds(longest.begin + longest.seconds)} failed{others}."
    )


def _check_token_counts(result: LoadResult, load: Load) -> str | None:
    if not result.counts_pieces:
        return None
    return "The server reported no token counts: chunks of the stream were counted instead, and a chunk may hold several tokens."


def _check_window(result: LoadResult, load: Load) -> str | None:
    times = result.times.get("latency")
    if times is None or not result.measured_seconds or result.measured_seconds >= _LATENCIES * times.mean:
        return None
    longer = math.ceil((result.measured_from + _LATENCIES * times.mean) * 1.1)
    return (
        f"The measured part lasts {seconds(result.measured_seconds)}, only {significant(result.measured_seconds / times.mean)} times "
        f"the mean latency of {seconds(times.mean)}: rates are uncertain.{_how_to_lengthen(load, longer)}"
    )


def _how_to_lengthen(load: Load, enough: int) -> str:
    """The option that would make a load last so many seconds; a trace and stages last as long as they do."""
    if not load.is_level:
        return ""
    if load.count is None:
        return f" Use --duration {enough} or longer."
    return f" Use more --requests, or --duration {enough}."


def _check_censored_times(result: LoadResult, load: Load) -> str | None:
    if result.ttft_censored <= _CENSORED * result.requests_completed:
        return None
    return (
        f"The time to first token of {count(result.ttft_censored)} of {count(result.requests_completed)} answers is left out: their first "
        "tokens were read together with the next ones, so their arrival time is unknown. Either this machine read them late, or the server sent "
        "them together. Use a lower rate or a machine with less other work."
    )


def _check_answer_lengths(result: LoadResult, load: Load) -> str | None:
    if not result.too_long:
        return None
    subject = "1 answer was" if result.too_long == 1 else f"{result.too_long} answers were"
    return f"{subject} too long to be scored. Use --max-tokens for shorter answers."


def _check_server_metrics(result: LoadResult, load: Load) -> str | None:
    server = result.server
    if server is None:
        return None
    if server.failed == server.scrapes:
        return f"The metrics of the server at {server.url} could not be read: {server.error}."
    if not server.series:
        return f"{server.url} has no metrics that Assay knows (those of vLLM, llama.cpp, SGLang or TGI)."
    if server.failed:
        return f"{count(server.failed)} of {count(server.scrapes)} readings of the server's metrics failed: {server.error}."
    return None


def _check_saturation(result: LoadResult, load: Load) -> str | None:
    if not is_saturated(result, load) or result.offered_rate is None:
        return None
    return (
        f"The server is saturated: {significant(result.throughput.value)} answers/s of {significant(result.offered_rate)} "
        "requests/s offered. Latency, counted from when requests were due, keeps growing for as long as the load lasts."
    )


def _check_cached_tokens(result: LoadResult, load: Load) -> str | None:
    given, cached = result.input_tokens or 0, result.cached_tokens or 0
    is_unique = result.prompt_seed is not None
    if cached <= _MOSTLY * given or (is_unique and cached <= _TEMPLATE * result.counted_requests):
        return None
    hint = "" if is_unique else " Without --prompt-cache keep, prompts are unique."
    return (
        f"The server took {percent(cached / given)} of the input tokens from its prompt cache: "
        f"the time to first token does not include processing whole prompts.{hint}"
    )


Judge = Callable[[LoadResult, Load], str | None]
_OF_WHOLE_LOADS = frozenset(
    {_check_rate, _check_concurrency, _check_warmup, _check_window, _check_number_of_answers}
)
"""They ask whether the load was as long and as heavy as planned, which one that --abort-on ended never is."""
_DOUBTS: tuple[Judge, ...] = (
    _check_lost_workers,
    _check_unanswered_generators,
    _check_late_start,
    _check_lag,
    _check_late_sends,
    _check_cpu,
    _check_rate,
    _check_concurrency,
    _check_own_limits,
)
_REMARKS: tuple[Judge, ...] = (
    _check_saturation,
    _check_outages,
    _check_errors,
    _check_warmup,
    _check_steadiness,
    _check_window,
    _check_number_of_answers,
    _check_token_counts,
    _check_censored_times,
    _check_answer_lengths,
    _check_server_metrics,
    _check_cached_tokens,
)


# Outages: stretches of a load in which the server answered nothing. An error rate over the whole load hides them, because a
# server that is dead for six seconds of a minute and one that drops every tenth request have the same rate.
SUSTAINED_SECONDS = 3.0
"""A breaking point lasts at least as long."""
_SHARE_OF_A_SHORT_LOAD = 0.25
UNAVAILABLE_SHARE = 0.1
UNAVAILABLE_ERROR_RATE = 0.5
_FEWEST = 3
_CHANCE = 0.001


def find_outages(moments: Sequence[Moment], seconds: float) -> tuple[Outage, ...]:
    """Stretches of at least 3 s, or a quarter of a load shorter than 12 s, in which every request that was due failed.

    Judged by when requests were due, so that answers that take long do not look like a pause. Where errors are frequent all the
    time, some follow each other by chance: a stretch counts if that has a probability below 0.1 %.
    """
    shortest = min(SUSTAINED_SECONDS, _SHARE_OF_A_SHORT_LOAD * seconds)
    due = sum(moment.answered + moment.unanswered for moment in moments)
    failed = sum(moment.unanswered for moment in moments)
    # Neighbouring moments whose requests all failed; moments without any request belong to what is around them.
    busy = [moment for moment in moments if moment.answered or moment.unanswered]
    found = []
    for is_dead, stretch in groupby(busy, key=lambda moment: not moment.answered):
        if not is_dead:
            continue
        outage = _measure_outage(list(stretch), moments, seconds)
        elsewhere = (failed - outage.failed + 1) / (due - outage.failed + 2)
        is_chance = due * elsewhere**outage.failed > _CHANCE
        if outage.failed >= _FEWEST and outage.seconds >= shortest and not is_chance:
            found.append(outage)
    return tuple(found)


def _measure_outage(stretch: Sequence[Moment], moments: Sequence[Moment], seconds: float) -> Outage:
    """Measure an outage: it lasts until its last request failed or the next answered request was due, within the load."""
    begin, last = stretch[0].begin, stretch[-1]
    after = next(
        (moment.begin for moment in moments if moment.begin > last.begin and moment.answered), math.inf
    )
    ends = [
        moment.begin + moment.seconds
        for moment in moments
        if last.begin <= moment.begin < after and moment.failed
    ]
    end = min(max([last.begin + last.seconds, *ends]), after, max(seconds, last.begin + last.seconds))
    return Outage(begin, end - begin, sum(moment.unanswered for moment in stretch))


def is_unavailable(result: LoadResult, outages: Sequence[Outage], seconds: float) -> bool:
    """Whether more than half of the requests failed, or none was answered for a tenth of the load."""
    if result.error_rate.value > UNAVAILABLE_ERROR_RATE:
        return True
    return seconds > 0 and sum(outage.seconds for outage in outages) >= UNAVAILABLE_SHARE * seconds
