"""From what was asked for, as text and numbers, to a load that can be carried out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from assay.errors import Mistake, PlanError, SpecError
from assay.execute.agents import filled_in
from assay.execute.load.answer import TOO_LONG
from assay.execute.load.engine import (
    AGENT_WORKER,
    MOST_IN_FLIGHT,
    SERVER_WORKER,
    Watch,
    WatchChunk,
    carry_out,
    order_for,
    order_for_agent,
)
from assay.execute.load.quality import Checker
from assay.execute.load.request import (
    Ask,
    Target,
    check_allowed,
    is_loopback,
    mould_for,
    requests_for,
    target_of,
)
from assay.execute.load.summary import summarised
from assay.execute.load.tally import Bounds
from assay.model import AgentUse, Benchmark, Case
from assay.model.load import Arrivals, Load, LoadResult, Objective
from assay.model.secret import NAMED, is_secret
from assay.spec.loading import (
    checked_prompt,
    objectives_of,
    rate_of,
    read_trace,
    seconds_of,
    stages_of,
)
from assay.units import seconds as seconds_text

PROMPT = "Say in one sentence what a benchmark is."
_LONGEST = 7 * 24 * 3600.0
_MOST_WORKERS = 256


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """As written on the command line or in a spec; what is None was not given."""

    target: str
    model: str | None = None
    prompt: str | None = None
    dataset: str | None = None
    concurrency: int | None = None
    rate: float | None = None
    arrivals: str | None = None
    stages: str | None = None
    duration: str | None = None
    requests: int | None = None
    warmup: str | None = None
    max_tokens: int | None = None
    stream: bool = True
    think: str | None = None
    timeout: str | None = None
    workers: int = 1
    slo: str | None = None
    allow_host: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    insecure: bool = False
    ca_file: str | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.prompt is not None and self.dataset is not None:
            raise _wrong("--dataset", "Give either --prompt or --dataset.")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A load with all that is needed to begin at once."""

    load: Load
    order: dict[str, object]
    """What a worker is told beside the timetable. Headers in it may hold secrets: it is never stored."""
    module: str = SERVER_WORKER
    check: Checker | None = None
    """Scores answers, where there is something to hold them against."""

    def measured(
        self,
        watch: Watch = lambda pulse, tally: None,
        is_stopped: Callable[[], bool] = lambda: False,
        watch_chunk: WatchChunk | None = None,
    ) -> LoadResult:
        tally = carry_out(
            self.load,
            self.order,
            watch,
            module=self.module,
            bounds=bounds_of(self.load.objectives),
            is_stopped=is_stopped,
            watch_chunk=watch_chunk,
        )
        found = summarised(tally, self.load)
        if self.check is None:
            return found
        answers = tally.answers
        too_long = sum(payload == TOO_LONG for _, payload in answers)
        return replace(found, quality=self.check(answers), too_long=too_long)

    def at(self, load: Load) -> Prepared:
        """The same requests, put in another way."""
        return replace(self, load=load)


def prepared(options: LoadOptions, target: Target | None = None, data: Data | None = None) -> Prepared:
    """Everything is checked here, before the first byte is sent."""
    found = target_for(options) if target is None else with_options(target, options)
    check_allowed(found.url, options.allow_host)
    load = load_for(options)
    check = data.check if data is not None else None
    if check is None and load.trace is not None:
        mould = mould_for(found, [str(prompt) for prompt in prompts_of(options, data)], options.max_tokens)
        return Prepared(load, order_for(found, (), mould=mould))
    asks: list[Ask] = []
    if found.dialect != "http" or options.prompt is not None or data is not None:
        asks = [Ask(prompt) for prompt in prompts_of(options, data)]
    requests = requests_for(found, asks, options.max_tokens)
    order = order_for(found, requests, keeps_answers=check is not None)
    return Prepared(load, order, check=replace(check, output=found.output) if check is not None else None)


def prepared_agent(
    options: LoadOptions, use: AgentUse, files: Sequence[str], data: Data | None = None
) -> Prepared:
    """Of an agent without a server: it is asked through its own code."""
    given = {
        "--model": options.model,
        "--header": options.header,
        "--insecure": options.insecure,
        "--ca-file": options.ca_file,
    }
    if ignored := [option for option, value in given.items() if value]:
        raise _wrong(
            ignored[0],
            f"does not apply to '{use.name}', which runs its own code instead of calling a server.",
        )
    load = load_for(options)
    check = data.check if data is not None else None
    replays = load.trace is not None and check is None
    prompts = prompts_of(options, data)
    order = order_for_agent(use, prompts, options.max_tokens, files, check is not None, replays)
    return Prepared(load, order, AGENT_WORKER, check)


@dataclass(frozen=True, slots=True)
class Data:
    """A data set: what is asked in turn and, where it is a suite, how answers are scored."""

    prompts: Sequence[object]
    check: Checker | None = None

    @classmethod
    def of(cls, prompts: Sequence[object], scored: Sequence[tuple[Benchmark, Case]]) -> Data:
        """Request n asks prompt n modulo their number, and is scored by the case of that number if there is one."""
        return cls(prompts, Checker(scored) if scored else None)


def target_for(options: LoadOptions, environment: Mapping[str, str] = os.environ) -> Target:
    target = with_options(target_of(options.target, options.model, options.stream), options, environment)
    key = environment.get("OPENAI_API_KEY")
    names = {name.lower() for name in target.headers}
    if target.dialect == "openai" and key and "authorization" not in names and not _is_here(target.url):
        return replace(target, headers={**target.headers, "authorization": f"Bearer {key}"})
    return target


def with_options(target: Target, options: LoadOptions, environment: Mapping[str, str] = os.environ) -> Target:
    given = dict(_header(text, environment) for text in options.header)
    names = {name.lower() for name in given}
    kept = {name: value for name, value in target.headers.items() if name.lower() not in names}
    if options.ca_file is not None:
        _check_tls(options.ca_file, target, options)
    return replace(
        target,
        headers={**kept, **given},
        is_checked=target.is_checked and not options.insecure,
        ca_file=options.ca_file or target.ca_file,
    )


def _check_tls(file: str, target: Target, options: LoadOptions) -> None:
    if options.insecure:
        raise _wrong("--ca-file", "Give either --ca-file or --insecure, which takes any certificate.")
    if urlsplit(target.url).scheme != "https":
        raise _wrong(
            "--ca-file", f"There is no TLS at '{target.url}': an address with TLS begins with https://"
        )
    check_ca_file(file)


def check_ca_file(file: str) -> None:
    """Now, and not in each worker: a file that is no use would look like a server that cannot be trusted."""
    import ssl

    from assay.execute.load.tls import trusting

    try:
        trusting(file)
    except ssl.SSLError:
        raise _wrong("--ca-file", f"'{file}' holds no certificate in PEM format.") from None
    except OSError as error:
        raise _wrong("--ca-file", f"'{file}' cannot be read: {error.strerror}.") from None


def _is_here(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")


def check_header(text: str) -> tuple[str, str]:
    """Name and value as written, if they may be kept."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not name:
        # What was meant to be a value is not repeated: it may be a secret.
        raise _wrong("--header", "is not a header. Write 'Name: value'; ${NAME} stands for a variable.")
    if is_secret(name, is_sent=True) and not NAMED.search(value):
        raise _wrong(
            "--header",
            f"'{name}' looks like a secret, and what is written here is kept with the run. Put it in a variable "
            f"and write '{name}: ${{NAME}}'.",
        )
    return name, value


def _header(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    name, value = check_header(text)
    try:
        return name, str(filled_in(value, environment, "--header"))
    except PlanError:
        raise _wrong("--header", f"'{name}' needs a variable that is not set: {value}") from None


def prompts_of(options: LoadOptions, data: Data | None) -> Sequence[object]:
    """Those of the data set, or the one prompt that is asked every time."""
    if data is not None:
        return data.prompts
    assert options.dataset is None, "whoever prepares a load reads its data set"
    return [PROMPT if options.prompt is None else checked_prompt(options.prompt)]


def load_for(options: LoadOptions) -> Load:
    """How the requests are put."""
    return _with_time_to_measure(_load(options))


def _load(options: LoadOptions) -> Load:
    if options.rate is not None and options.stages is not None:
        raise _wrong("--stages", "Give either --rate or --stages.")
    seconds = _duration(options)
    common = Load(
        Arrivals.CLOSED,
        concurrency=_positive(options.concurrency, "--concurrency", MOST_IN_FLIGHT),
        seconds=seconds,
        count=_positive(options.requests, "--requests"),
        warmup=None if options.warmup is None else seconds_of(options.warmup, "--warmup"),
        think_seconds=seconds_of(options.think, "--think") if options.think else 0.0,
        seconds_each=_timeout(options),
        workers=_positive(options.workers, "--workers", _MOST_WORKERS) or 1,
        seed=options.seed,
        objectives=objectives_of(options.slo) if options.slo else (),
    )
    arrivals, _, trace = (options.arrivals or "").partition(":")
    if arrivals == "trace":
        return _traced(common, Path(trace), options)
    if arrivals not in ("", "constant", "poisson"):
        raise _wrong(
            "--arrivals", f"'{options.arrivals}' is not known. There are constant, poisson and trace:FILE."
        )
    if options.rate is None and options.stages is None:
        if arrivals:
            raise _wrong("--arrivals", "Arrivals need a --rate or --stages.")
        return replace(common, concurrency=common.concurrency or 1)
    return _open(common, options, Arrivals(arrivals or "constant"), seconds)


def _open(common: Load, options: LoadOptions, arrivals: Arrivals, seconds: float) -> Load:
    if common.think_seconds:
        raise _wrong("--think", "Think time belongs to a closed loop; with a rate the timetable decides.")
    if options.stages is not None:
        stages = stages_of(options.stages)
        if sum(stage[0] for stage in stages) > _LONGEST:
            raise _wrong("--stages", "All stages together may last a week at most.")
        if options.duration is not None:
            raise _wrong("--duration", "The stages say how long it takes.")
        return replace(common, arrivals=arrivals, stages=stages, seconds=sum(stage[0] for stage in stages))
    rate = rate_of(options.rate if options.rate is not None else 0, "--rate")
    if options.requests is not None and options.duration is None:
        # By chance they may take longer: six standard deviations.
        more = 6 * math.sqrt(options.requests) + 10 if arrivals is Arrivals.POISSON else 0
        seconds = (options.requests + more) / rate
    return replace(common, arrivals=arrivals, stages=((seconds, rate, rate),), seconds=seconds)


def _traced(common: Load, path: Path, options: LoadOptions) -> Load:
    if common.think_seconds:
        raise _wrong("--think", "Think time belongs to a closed loop; a trace decides by itself.")
    if options.rate is not None or options.stages is not None:
        raise _wrong(
            "--arrivals", "A trace says itself when requests are due: leave --rate and --stages out."
        )
    trace = read_trace(path)
    if options.requests is not None:
        trace = trace.part(slice(options.requests))
    if options.duration is not None:
        trace = trace.before(common.seconds)
    seconds = max(trace.due[-1] + _mean_gap(trace.due), 1e-3)
    return replace(common, arrivals=Arrivals.TRACE, trace=trace, seconds=seconds)


def _mean_gap(due: Sequence[float]) -> float:
    return (due[-1] - due[0]) / (len(due) - 1) if len(due) > 1 else 0.0


def _duration(options: LoadOptions) -> float:
    if options.duration is None:
        return _LONGEST if options.requests is not None else 10.0
    seconds = seconds_of(options.duration, "--duration")
    if not 0 < seconds <= _LONGEST:
        raise _wrong("--duration", f"'{options.duration}' must be more than 0 and at most a week.")
    return seconds


def _with_time_to_measure(load: Load) -> Load:
    if load.warmup is not None and load.warmup >= load.seconds:
        took = f"the load lasts {seconds_text(load.seconds)}"
        raise _wrong("--warmup", f"{seconds_text(load.warmup)} leaves nothing to measure: {took}.")
    return load


def _timeout(options: LoadOptions) -> float:
    limit = 60.0 if options.timeout is None else seconds_of(options.timeout, "--timeout")
    if not 0 < limit <= _LONGEST:
        raise _wrong("--timeout", f"'{options.timeout}' must be more than 0 and at most a week.")
    return limit


def _positive(number: int | None, option: str, most: int = 10**12) -> int | None:
    if number is not None and number < 1:
        raise _wrong(option, f"must be at least 1, not {number}")
    if number is not None and number > most:
        raise _wrong(option, f"must be at most {most}, not {number}")
    return number


def bounds_of(objectives: Sequence[Objective]) -> Bounds:
    """What each single request has to keep to, to count as good."""
    limits: dict[str, float] = {}
    for objective in objectives:
        name = "tpot" if objective.metric == "itl" else objective.metric
        if objective.is_upper and name in ("ttft", "tpot", "latency"):
            limits[name] = min(objective.limit, limits.get(name, objective.limit))
    return Bounds(**limits)


def _wrong(option: str, text: str) -> SpecError:
    return SpecError([Mistake(option, None, "", text)])
