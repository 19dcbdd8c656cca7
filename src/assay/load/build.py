"""Turns options, as people write them, into a load that is ready to start.

`build_prepared_load_for` chooses: `build_prepared_load` is for servers and `build_prepared_agent_load` for agents that run
their own code. Both check everything before the first byte is sent. What they return, a `PreparedLoad`, is run by its method `measured`: once
by `assay load`, once per step by a search for capacity, and once per stretch by a stress test.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.errors import PlanError
from assay.load.answer_text import TOO_LONG
from assay.load.engine import (
    AGENT_WORKER,
    SERVER_WORKER,
    Watch,
    WatchChunk,
    generate_load,
    order_for,
    order_for_agent,
)
from assay.load.histogram_bounds import Bounds
from assay.load.load_shape import load_for
from assay.load.options import LoadOptions as LoadOptions
from assay.load.options import load_options, wrong_option
from assay.load.prompts import read_inputs, requests_order, salt_of, sessions_order, with_output_rules
from assay.load.request import LoadPrompt, Target, check_address, check_allowed
from assay.load.targets import KINDS, more_targets, target_for, target_of_agent, with_options
from assay.load.worker_report import Chunk
from assay.model import AgentUse, Benchmark, Case
from assay.model.conversation import SessionTurn, UserSession, are_conversations
from assay.model.load import Load, LoadResult, Objective
from assay.plugin.agent_pool import make_agent
from assay.spec.load_settings import check_prompt

if TYPE_CHECKING:
    from assay.load.abort import AbortMonitor
    from assay.load.distributed import DistributedLoad
    from assay.load.quality import Checker
    from assay.load.server_metrics import MetricsReader, MetricsSource
    from assay.load.tally import Tally
    from assay.plugin.executor import GeneratorSite
    from assay.spec.settings import Settings

PROMPT = "Say in one sentence what a benchmark is."


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load with all that is needed to begin at once.

    Everything was checked and read before: prompts, target, certificates and objectives. The first
    request so leaves as soon as the workers are up, and a mistake never ends a load that has begun.
    """

    load: Load
    order: dict[str, object]
    """What a worker needs to know besides the schedule. Headers in it may hold secrets: it is never stored."""
    module: str = SERVER_WORKER
    check: Checker | None = None
    """Scores answers, where the data set is a suite."""
    metrics: MetricsSource | None = None
    """Where the server's own metrics are read while the load runs."""
    prompt_seed: int = 0
    is_unique: bool = False
    """Whether prompts are made to differ."""
    loads: Iterator[int] = field(default_factory=count)
    """Numbers of the loads that are run with this."""
    targets: tuple[str, ...] = ()
    """URLs, where there are several."""
    sites: tuple[GeneratorSite, ...] = ()
    """Where load generators run, if it is not this process that starts the workers."""

    def measure(
        self,
        watch: Watch = lambda progress, tally: None,
        is_stopped: Callable[[], bool] = lambda: False,
        watch_chunk: WatchChunk | None = None,
        once_begun: Callable[[], object] = lambda: None,
    ) -> LoadResult:
        """Carry the load out and return its figures, not judged yet.

        It ends early when `is_stopped` returns True or a condition of `abort_on` holds. `watch` and `watch_chunk` see what
        workers report while the load runs, and `once_begun` is called when requests are under way (see `engine.generate_load`).
        """
        # They import numpy or `ssl`, so only where they are asked for: the first request waits for every import.
        spread: DistributedLoad | None = None
        if self.sites:
            from assay.load.distributed import DistributedLoad

            spread = DistributedLoad(self.sites, self.load)
        monitor: AbortMonitor | None = None
        if self.load.abort_on:
            from assay.load.abort import AbortMonitor

            monitor = AbortMonitor(self.load.abort_on)
        metrics: contextlib.AbstractContextManager[MetricsReader | None] = contextlib.nullcontext()
        if self.metrics is not None:
            from assay.load.server_metrics import MetricsReader

            metrics = MetricsReader(self.metrics)

        def watch_both(chunk: Chunk) -> None:
            if monitor is not None:
                monitor.watch(chunk)
            if watch_chunk is not None:
                watch_chunk(chunk)

        with metrics as reader:
            run = (
                partial(generate_load, self.load, module=self.module)
                if spread is None
                else spread.generate_load
            )
            tally = run(
                # Another salt for each load: the server's prompt cache still holds the prompts of the one before.
                {**self.order, "salt": salt_of(self.prompt_seed, next(self.loads))},
                watch,
                bounds=bounds_of(self.load.objectives),
                is_stopped=lambda: (monitor is not None and monitor.is_triggered()) or is_stopped(),
                watch_chunk=watch_both,
                once_begun=once_begun,
            )
        result = self._summarise(tally)
        if spread is not None:
            result = spread.add_results(result, tally)
        if reader is not None and tally.began is not None:
            result = replace(result, server=reader.summarize(tally.began))
        # A condition that holds only when all is over has ended nothing.
        if monitor is not None and monitor.reason is not None and result.is_cut:
            result = replace(result, aborted=monitor.reason)
        return result

    def _summarise(self, tally: Tally) -> LoadResult:
        """The figures of what was sent and answered, and the scores of the answers where they are judged."""
        # What reads numpy, or scores answers, is not needed before the first request.
        from assay.load.summary import outcomes_of, summarise_load

        result = replace(
            summarise_load(tally, self.load),
            prompt_seed=self.prompt_seed if self.is_unique else None,
            targets=dict(zip(self.targets, outcomes_of(tally), strict=False)),
        )
        if self.check is None:
            return result
        too_long = sum(payload == TOO_LONG for _, payload in tally.answers)
        return replace(result, quality=self.check(tally.answers), too_long=too_long)

    def at(self, load: Load) -> PreparedLoad:
        """Return the same requests with other arrivals, such as another rate or concurrency."""
        return replace(self, load=load)


def spread_load(
    options: LoadOptions, prepared: PreparedLoad, settings: Settings
) -> contextlib.AbstractContextManager[PreparedLoad]:
    """The load as its options divide it among load generators; without them, the same load, sent from here."""
    if options.generators in (None, 1) and options.executor in (None, "local"):
        return contextlib.nullcontext(prepared)
    from assay.load.distributed import spread_generators
    from assay.plugin import lookup

    name = options.executor or "local"
    executor = lookup.find("executors", name)
    return spread_generators(prepared, executor, name, options.generators, settings.executors.get(name, {}))


def check_division(loads: Sequence[Load], generators: int) -> None:
    """Refuse more generators than the load can be divided among."""
    fewest = min((load.concurrency for load in loads if load.concurrency is not None), default=generators)
    if fewest < generators:
        raise wrong_option(
            "--concurrency", f"{fewest} in flight cannot be divided among {generators} generators."
        )


def build_prepared_load_for(
    options: LoadOptions, use: AgentUse | None, files: Sequence[str], data: Data | None
) -> PreparedLoad:
    """A load of a URL (`use` is None), of an agent behind a server, or of one that is asked through its own code."""
    if use is None:
        return build_prepared_load(options, data=data)
    if use.type in KINDS:
        return build_prepared_load(options, target_of_agent(use, options, os.environ), data)
    # Made once here, so that mistakes in its definition show before workers start.
    make_agent(use)
    return build_prepared_agent_load(options, use, files, data)


def build_prepared_load(
    options: LoadOptions, target: Target | None = None, data: Data | None = None
) -> PreparedLoad:
    """Prepare the load of a server: that of the options, or `target`.

    Everything is checked here, before the first byte is sent. Prompts of a suite are sent as they are
    written: with a mark in each, their scores would not be those of `assay run`.
    """
    server = target_for(options) if target is None else with_options(target, options)
    server = with_output_rules(server, options)
    check_allowed(server.url, options.allow_host)
    others = more_targets(options, server)
    load = load_for(options, has_sessions=_has_sessions(data))
    metrics = metrics_source(options, server)
    check = data.check if data is not None else None
    # Prompts of a suite are sent as written: its scores would not be those of `assay run` otherwise.
    inputs = read_inputs(options, is_unique=server.dialect != "http" and check is None)
    has_rows = load.trace is not None and check is None
    if load.has_sessions:
        requests = sessions_order(server, sessions_of(load, data, options), options, inputs)
    else:
        # Without prompts there is one request, a GET: that is what a plain page without anything to send to it gets.
        asks: list[LoadPrompt] = []
        is_page = server.dialect == "http" and options.prompt is None and data is None
        if not is_page or has_rows or inputs.lengths:
            asks = asks_of(options, data)
        requests = requests_order(server, asks, options, inputs, has_rows=has_rows)
    # A trace of sessions and a count of them are sent whole; others begin no turn after the load has ended.
    ends_turns = not load.has_sessions or (
        options.duration is not None or (load.trace is None and load.count is None)
    )
    order = {
        **order_for(server, keeps_answers=check is not None, more_targets=others, **requests),
        **inputs.extras(),
        "ends_turns": ends_turns,
    }
    is_synthetic = requests.get("template") is not None and "input" in inputs.lengths
    return PreparedLoad(
        load,
        order,
        check=replace(check, output=server.output) if check is not None else None,
        metrics=metrics,
        prompt_seed=inputs.seed,
        is_unique=inputs.is_synthetic_unique if is_synthetic else inputs.prefix.is_unique,
        targets=(server.url, *(other.url for other in others)) if others else (),
    )


def _has_sessions(data: Data | None) -> bool:
    return data is not None and are_conversations(data.sessions)


def sessions_of(load: Load, data: Data | None, options: LoadOptions) -> tuple[UserSession, ...]:
    """Return the sessions of the trace or of the data set.

    Turns of a trace that give no length all send the same prompt.
    """
    if load.trace is None or not load.trace.sessions:
        assert data is not None
        return data.sessions
    [prompt, *_] = prompts_of(options, None)

    def fill_in_prompt(turn: SessionTurn) -> SessionTurn:
        return turn if turn.tokens else replace(turn, prompt=prompt)

    return tuple(UserSession(tuple(map(fill_in_prompt, session.turns))) for session in load.trace.sessions)


def metrics_source(options: LoadOptions, target: Target | None) -> MetricsSource | None:
    """Find where to read the server's own metrics.

    The headers of the load may hold secrets, so they are sent only to the server under load itself.
    """
    url = options.server_metrics
    if url is None:
        return None
    parts = check_address(url)
    check_allowed(url, options.allow_host)
    from assay.load.server_metrics import MetricsSource
    from assay.load.tls import trusting

    is_checked = not options.insecure if target is None else target.is_checked
    ca_file = options.ca_file if target is None else target.ca_file
    tls = trusting(ca_file, is_checked) if parts.scheme == "https" else None
    # Scheme and host with port: another port of the same machine may be another service.
    is_same = target is not None and urlsplit(target.url)[:2] == parts[:2]
    return MetricsSource(url, target.headers if target is not None and is_same else {}, tls)


def build_prepared_agent_load(
    options: LoadOptions, use: AgentUse, files: Sequence[str], data: Data | None = None
) -> PreparedLoad:
    """A load of an agent without a server: workers call its own code."""
    # Options that would be ignored are refused: a user who gives --header expects it to be sent.
    needing_server = (option for option in load_options() if option.written.needs_server)
    if ignored := [option.flag for option in needing_server if getattr(options, option.name)]:
        raise wrong_option(
            ignored[0],
            f"does not apply to '{use.name}', which runs its own code instead of calling a server.",
        )
    load = load_for(options)
    if load.has_sessions or _has_sessions(data):
        raise PlanError(
            f"Sessions of several turns need a server; '{use.name}' runs its own code, which answers one prompt at a time."
        )
    check = data.check if data is not None else None
    inputs = read_inputs(options, is_unique=False)
    replays = bool(inputs.lengths) or (load.trace is not None and check is None)
    prompts = prompts_of(options, data)
    most = [ask.max_tokens or options.max_tokens for ask in asks_of(options, data)]
    order = order_for_agent(use, prompts, most, files, check is not None, replays)
    order["params"] = [dict(params) for params in data.params] if data is not None else []
    return PreparedLoad(
        load,
        {**order, **inputs.extras()},
        AGENT_WORKER,
        check,
        metrics_source(options, None),
        prompt_seed=inputs.seed,
        is_unique="input" in inputs.lengths,
    )


@dataclass(frozen=True, slots=True)
class Data:
    """A data set: what is asked in turn and, where it is a suite, how answers are scored."""

    prompts: Sequence[object]
    check: Checker | None = None
    sessions: tuple[UserSession, ...] = ()
    """Where a file says more than prompts: the turns of each row, and how long answers may be."""
    params: tuple[Mapping[str, object], ...] = ()
    """Where it is a suite: what an agent is told with each prompt, as in `assay run`."""

    @classmethod
    def of(
        cls,
        prompts: Sequence[object],
        scored: Sequence[tuple[Benchmark, Case]],
        sessions: tuple[UserSession, ...] = (),
    ) -> Data:
        """Request n asks prompt n modulo their number, and is scored by the case of that number if there is one."""
        if not scored:
            return cls(prompts, None, sessions)
        from assay.load.quality import Checker

        return cls(prompts, Checker(scored), sessions, tuple(case.shown_metadata for _, case in scored))


def prompts_of(options: LoadOptions, data: Data | None) -> Sequence[object]:
    """Return the prompts of the data set, or the one prompt that every request sends."""
    if data is not None:
        return data.prompts
    assert options.dataset is None, "the caller reads the data set before it prepares a load"
    return [PROMPT if options.prompt is None else check_prompt(options.prompt)]


def asks_of(options: LoadOptions, data: Data | None) -> list[LoadPrompt]:
    """Return the prompts with the maximum answer length of their row in the data set, if it has one."""
    if data is None or not data.sessions:
        return [LoadPrompt(prompt) for prompt in prompts_of(options, data)]
    return [
        LoadPrompt(turn.prompt, max_tokens=turn.max_tokens)
        for turn in (session.turns[0] for session in data.sessions)
    ]


def bounds_of(objectives: Sequence[Objective]) -> Bounds:
    """The limits that each single request has to keep to count towards goodput, from the objectives of the whole load."""
    limits: dict[str, float] = {}
    for objective in objectives:
        # A single answer has many gaps and one TPOT, which is their mean: that is what it is held against.
        name = "tpot" if objective.metric == "itl" else objective.metric
        if objective.is_upper and name in ("ttft", "tpot", "latency"):
            limits[name] = min(objective.limit, limits.get(name, objective.limit))
    return Bounds(**limits)
