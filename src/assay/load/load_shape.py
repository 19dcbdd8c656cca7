"""Turns options into the shape of a load: closed or open loop, stages, a trace, think times, and when it ends.

Everything that can be wrong with these options, alone or together, is found here; the messages name the option.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from assay.load.engine import MOST_IN_FLIGHT
from assay.load.options import LoadOptions, wrong_option
from assay.model.load import Arrivals, Load, Trace
from assay.model.variate import Variate
from assay.spec.load_settings import abort_conditions_of, objectives_of, rate_of, seconds_of, stages_of
from assay.spec.traces import read_trace
from assay.spec.variates import share_of, times_of, window_of
from assay.units import seconds as seconds_text

_LONGEST = 7 * 24 * 3600.0
_MOST_WORKERS = 256
"""More processes than any machine has cores: who writes a larger number means something else."""
_FASTEST = 1e6


def load_for(options: LoadOptions, *, has_sessions: bool = False) -> Load:
    """The load that the options describe; with sessions, the schedule is that of their starts."""
    load = _load(options, has_sessions)
    # Only here: how long a load lasts is known once its stages, its rate or its trace have been read.
    if load.warmup is not None and load.warmup >= load.seconds:
        problem = (
            f"must be shorter than the load ({seconds_text(load.seconds)}), not {seconds_text(load.warmup)}."
        )
        raise wrong_option("--warmup", problem)
    return load


def _load(options: LoadOptions, has_sessions: bool) -> Load:
    """A closed loop, an open one by rate or stages, or a trace.

    First everything that all three share is read into `common`, so that a mistake in any option is found whichever it is; then
    the option `--arrivals` and whether there is a rate decide.
    """
    if options.rate is not None and options.stages is not None:
        raise wrong_option("--stages", "Give either --rate or --stages.")
    seconds = _duration(options)
    timeout = 60.0 if options.timeout is None else seconds_of(options.timeout, "--timeout")
    if not 0 < timeout <= _LONGEST:
        raise wrong_option("--timeout", f"'{options.timeout}' must be more than 0 and at most a week.")
    think = times_of(options.think, "--think") if options.think else Variate("constant", 0.0)
    common = Load(
        Arrivals.CLOSED,
        concurrency=_positive(options.concurrency, "--concurrency", MOST_IN_FLIGHT),
        seconds=seconds,
        count=_positive(options.requests, "--requests"),
        warmup=None if options.warmup is None else seconds_of(options.warmup, "--warmup"),
        think_seconds=think.mean,
        think=think if think.kind != "constant" else None,
        has_sessions=has_sessions,
        cancel_after=_cancel_after(options),
        cancel_share=share_of(options.cancel_share or "100%", "--cancel-share"),
        seconds_each=timeout,
        workers=_positive(options.workers, "--workers", _MOST_WORKERS) or 1,
        seed=options.seed,
        objectives=objectives_of(options.slo) if options.slo else (),
        abort_on=abort_conditions_of(options.abort_on) if options.abort_on is not None else (),
    )
    arrivals, _, trace = (options.arrivals or "").partition(":")
    if arrivals == "trace" and not trace:
        raise wrong_option("--arrivals", "Give the trace file: --arrivals trace:FILE")
    if arrivals == "trace":
        return _follow_trace(common, Path(trace), options)
    if options.speed is not None or options.window is not None:
        raise wrong_option(
            "--speed" if options.speed is not None else "--window", "is for --arrivals trace:FILE."
        )
    if arrivals not in ("", "constant", "poisson"):
        raise wrong_option(
            "--arrivals", f"'{options.arrivals}' is unknown. Use constant, poisson or trace:FILE."
        )
    if options.rate is None and options.stages is None:
        if arrivals:
            raise wrong_option("--arrivals", "needs --rate or --stages.")
        return replace(common, concurrency=common.concurrency or 1)
    return _open(common, options, Arrivals(arrivals or "constant"), seconds)


def _open(common: Load, options: LoadOptions, arrivals: Arrivals, seconds: float) -> Load:
    """An open loop by --rate or --stages."""
    if common.think_seconds and not common.has_sessions:
        raise wrong_option(
            "--think",
            "needs a closed loop; with --rate or --stages, the schedule decides when requests are sent.",
        )
    if options.stages is not None:
        stages = stages_of(options.stages)
        if sum(stage[0] for stage in stages) > _LONGEST:
            raise wrong_option("--stages", "All stages together may last at most a week.")
        if options.duration is not None:
            raise wrong_option("--duration", "cannot be combined with --stages, which set the duration.")
        return replace(common, arrivals=arrivals, stages=stages, seconds=sum(stage[0] for stage in stages))
    rate = rate_of(options.rate if options.rate is not None else 0, "--rate")
    if options.requests is not None and options.duration is None:
        # By chance random arrivals take longer: six standard deviations of a Poisson count, which is its square root.
        more = 6 * math.sqrt(options.requests) + 10 if arrivals is Arrivals.POISSON else 0
        seconds = (options.requests + more) / rate
    return replace(common, arrivals=arrivals, stages=((seconds, rate, rate),), seconds=seconds)


def _follow_trace(common: Load, path: Path, options: LoadOptions) -> Load:
    """An open loop whose requests are due when those of a recorded trace were."""
    if options.rate is not None or options.stages is not None:
        raise wrong_option("--arrivals", "A trace sets when requests are due: leave out --rate and --stages.")
    trace = _part_of_trace(read_trace(path), options)
    has_sessions = bool(trace.sessions)
    if common.think_seconds and not has_sessions:
        raise wrong_option("--think", "Think time needs a closed loop; a trace sets its own times.")
    if common.has_sessions:
        raise wrong_option("--dataset", "Give either sessions in the data set, or a trace.")
    if options.requests is not None:
        trace = trace.part(slice(options.requests))
    # After --window and --speed: both limits are of the time that is really replayed.
    if options.duration is not None:
        trace = trace.before(common.seconds)
    # The last request has as long as one takes on average.
    due = trace.due
    mean_gap = (due[-1] - due[0]) / (len(due) - 1) if len(due) > 1 else 0.0
    seconds = max(due[-1] + mean_gap, 1e-3)
    return replace(common, arrivals=Arrivals.TRACE, trace=trace, seconds=seconds, has_sessions=has_sessions)


def _part_of_trace(trace: Trace, options: LoadOptions) -> Trace:
    """What --window and --speed leave of it."""
    if options.window is not None:
        begin, end = window_of(options.window)
        last = trace.due[-1]
        trace = trace.window(begin, end)
        if not trace:
            raise wrong_option(
                "--window", f"No request of the trace is in {options.window}; the last is at {last:g} s."
            )
    if options.speed is None:
        return trace
    if not 0 < options.speed <= _FASTEST:
        raise wrong_option("--speed", f"must be more than 0 and at most {_FASTEST:g}, not {options.speed:g}.")
    return trace.faster(options.speed)


def _cancel_after(options: LoadOptions) -> float | None:
    """When requests are given up on purpose; a share of them without a time would do nothing, and is refused."""
    if options.cancel_after is None:
        if options.cancel_share is not None:
            raise wrong_option("--cancel-share", "Set when they are cancelled: --cancel-after 500ms")
        return None
    after = seconds_of(options.cancel_after, "--cancel-after")
    if after <= 0:
        raise wrong_option("--cancel-after", f"'{options.cancel_after}' must be more than 0.")
    return after


def _duration(options: LoadOptions) -> float:
    if options.duration is None:
        # A number of requests ends the load by itself; without either there has to be some end.
        return _LONGEST if options.requests is not None else 10.0
    seconds = seconds_of(options.duration, "--duration")
    if not 0 < seconds <= _LONGEST:
        raise wrong_option("--duration", f"'{options.duration}' must be more than 0 and at most a week.")
    return seconds


def _positive(number: int | None, option: str, most: int = 10**12) -> int | None:
    if number is not None and number < 1:
        raise wrong_option(option, f"must be at least 1, not {number}")
    if number is not None and number > most:
        raise wrong_option(option, f"must be at most {most}, not {number}")
    return number
