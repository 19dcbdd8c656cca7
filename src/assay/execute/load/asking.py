"""From what was asked for, as text and numbers, to a load that can be carried out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.errors import PlanError
from assay.execute.load.answer_text import TOO_LONG
from assay.execute.load.bounds import Bounds
from assay.execute.load.engine import (
    AGENT_WORKER,
    SERVER_WORKER,
    Watch,
    WatchChunk,
    carry_out,
    order_for,
    order_for_agent,
)
from assay.execute.load.inputs import (
    Inputs,
    read_inputs,
    requests_order,
    salt_of,
    sessions_order,
    with_output_rules,
)
from assay.execute.load.load_shape import load_for
from assay.execute.load.options import LoadOptions as LoadOptions
from assay.execute.load.options import wrong_option
from assay.execute.load.record import Chunk
from assay.execute.load.request import LoadPrompt, Target, check_address, check_allowed
from assay.execute.load.targets import more_targets, target_for, with_options
from assay.model import AgentUse, Benchmark, Case
from assay.model.load import Load, LoadResult, Objective
from assay.model.user_session import SessionTurn, UserSession, are_conversations
from assay.spec.loading import checked_prompt

if TYPE_CHECKING:
    from assay.execute.load.abort import AbortMonitor
    from assay.execute.load.quality import Checker
    from assay.execute.load.server_metrics import MetricsReader, MetricsSource

PROMPT = "Say in one sentence what a benchmark is."


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load with all that is needed to begin at once."""

    load: Load
    order: dict[str, object]
    """What a worker is told beside the timetable. Headers in it may hold secrets: it is never stored."""
    module: str = SERVER_WORKER
    check: Checker | None = None
    """Scores answers, where there is something to hold them against."""
    metrics: MetricsSource | None = None
    """Where the server's own metrics are read while the load runs."""
    prompt_seed: int = 0
    is_unique: bool = False
    """Whether prompts are made to differ."""
    loads: Iterator[int] = field(default_factory=count)
    """Numbers of the loads that are carried out with this."""
    targets: tuple[str, ...] = ()
    """URLs, where there are several."""

    def measured(
        self,
        watch: Watch = lambda pulse, tally: None,
        is_stopped: Callable[[], bool] = lambda: False,
        watch_chunk: WatchChunk | None = None,
        once_begun: Callable[[], object] = lambda: None,
    ) -> LoadResult:
        monitor = self._monitor()

        def watch_both(chunk: Chunk) -> None:
            if monitor is not None:
                monitor.watch(chunk)
            if watch_chunk is not None:
                watch_chunk(chunk)

        with self._metrics_reader() as reader:
            tally = carry_out(
                self.load,
                {**self.order, "salt": salt_of(self.prompt_seed, next(self.loads))},
                watch,
                module=self.module,
                bounds=bounds_of(self.load.objectives),
                is_stopped=lambda: (monitor is not None and monitor.is_triggered()) or is_stopped(),
                watch_chunk=watch_both,
                once_begun=once_begun,
            )
        # What reads numpy, or scores answers, is not needed before the first request.
        from assay.execute.load.summary import outcomes_of, summarised

        found = replace(
            summarised(tally, self.load),
            prompt_seed=self.prompt_seed if self.is_unique else None,
            targets=dict(zip(self.targets, outcomes_of(tally), strict=False)),
        )
        if reader is not None and tally.began is not None:
            found = replace(found, server=reader.summarize(tally.began))
        if monitor is not None and monitor.reason is not None and found.is_cut:
            found = replace(found, aborted=monitor.reason)
        if self.check is None:
            return found
        answers = tally.answers
        too_long = sum(payload == TOO_LONG for _, payload in answers)
        return replace(found, quality=self.check(answers), too_long=too_long)

    def _monitor(self) -> AbortMonitor | None:
        if not self.load.abort_on:
            return None
        from assay.execute.load.abort import AbortMonitor

        return AbortMonitor(self.load.abort_on)

    def _metrics_reader(self) -> contextlib.AbstractContextManager[MetricsReader | None]:
        if self.metrics is None:
            return contextlib.nullcontext()
        from assay.execute.load.server_metrics import MetricsReader

        return MetricsReader(self.metrics)

    def at(self, load: Load) -> PreparedLoad:
        """The same requests, put in another way."""
        return replace(self, load=load)


def prepared(options: LoadOptions, target: Target | None = None, data: Data | None = None) -> PreparedLoad:
    """Everything is checked here, before the first byte is sent."""
    found = target_for(options) if target is None else with_options(target, options)
    found = with_output_rules(found, options)
    check_allowed(found.url, options.allow_host)
    others = more_targets(options, found)
    load = load_for(options, has_sessions=_has_sessions(data))
    metrics = metrics_source(options, found)
    check = data.check if data is not None else None
    inputs = read_inputs(options, is_unique=found.dialect != "http" and check is None)
    has_rows = load.trace is not None and check is None
    if load.has_sessions:
        requests = sessions_order(found, sessions_of(load, data, options), options, inputs)
    else:
        asks: list[LoadPrompt] = []
        is_page = found.dialect == "http" and options.prompt is None and data is None
        if not is_page or has_rows or inputs.lengths:
            asks = asks_of(options, data)
        requests = requests_order(found, asks, options, inputs, has_rows=has_rows)
    order = {
        **order_for(found, keeps_answers=check is not None, more_targets=others, **requests),
        **inputs.extras(),
        "ends_turns": _ends_turns(load, options),
    }
    return PreparedLoad(
        load,
        order,
        check=replace(check, output=found.output) if check is not None else None,
        metrics=metrics,
        prompt_seed=inputs.seed,
        is_unique=_is_unique(inputs, requests),
        targets=(found.url, *(other.url for other in others)) if others else (),
    )


def _has_sessions(data: Data | None) -> bool:
    return data is not None and are_conversations(data.sessions)


def _ends_turns(load: Load, options: LoadOptions) -> bool:
    """Whether turns of sessions are begun no later than the load ends; a trace and a count are carried out whole."""
    return not load.has_sessions or (
        options.duration is not None or (load.trace is None and load.count is None)
    )


def sessions_of(load: Load, data: Data | None, options: LoadOptions) -> tuple[UserSession, ...]:
    """Those of a trace, or of the data set. Turns of a trace that tell no length say what is asked every time."""
    if load.trace is None or not load.trace.sessions:
        assert data is not None
        return data.sessions
    [prompt, *_] = prompts_of(options, None)

    def said(turn: SessionTurn) -> SessionTurn:
        return turn if turn.tokens else replace(turn, prompt=prompt)

    return tuple(UserSession(tuple(map(said, session.turns))) for session in load.trace.sessions)


def _is_unique(inputs: Inputs, requests: Mapping[str, object]) -> bool:
    if requests.get("template") is not None and "input" in inputs.lengths:
        return inputs.is_synthetic_unique
    return inputs.prefix.is_unique


def metrics_source(options: LoadOptions, target: Target | None) -> MetricsSource | None:
    """Where the server's own metrics are; the headers of the load go along only to where the load goes."""
    url = options.server_metrics
    if url is None:
        return None
    parts = check_address(url)
    check_allowed(url, options.allow_host)
    from assay.execute.load.server_metrics import MetricsSource
    from assay.execute.load.tls import trusting

    is_checked = not options.insecure if target is None else target.is_checked
    ca_file = options.ca_file if target is None else target.ca_file
    tls = trusting(ca_file, is_checked) if parts.scheme == "https" else None
    is_same = target is not None and urlsplit(target.url)[:2] == parts[:2]
    return MetricsSource(url, target.headers if target is not None and is_same else {}, tls)


def prepared_agent(
    options: LoadOptions, use: AgentUse, files: Sequence[str], data: Data | None = None
) -> PreparedLoad:
    """Of an agent without a server: it is asked through its own code."""
    given = {
        "--model": options.model,
        "--header": options.header,
        "--insecure": options.insecure,
        "--ca-file": options.ca_file,
        "--ignore-eos": options.ignore_eos,
        "--min-tokens": options.min_tokens,
        "--shared-prefix": options.shared_prefix,
        "--cancel-after": options.cancel_after,
    }
    if ignored := [option for option, value in given.items() if value]:
        raise wrong_option(
            ignored[0],
            f"does not apply to '{use.name}', which runs its own code instead of calling a server.",
        )
    load = load_for(options)
    if load.has_sessions or _has_sessions(data):
        raise PlanError(
            f"Sessions of several turns need a server; '{use.name}' runs its own code, which is asked one thing at a time."
        )
    check = data.check if data is not None else None
    inputs = read_inputs(options, is_unique=False)
    replays = bool(inputs.lengths) or (load.trace is not None and check is None)
    prompts = prompts_of(options, data)
    most = [ask.max_tokens or options.max_tokens for ask in asks_of(options, data)]
    order = order_for_agent(use, prompts, most, files, check is not None, replays)
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
        from assay.execute.load.quality import Checker

        return cls(prompts, Checker(scored), sessions)


def prompts_of(options: LoadOptions, data: Data | None) -> Sequence[object]:
    """Those of the data set, or the one prompt that is asked every time."""
    if data is not None:
        return data.prompts
    assert options.dataset is None, "whoever prepares a load reads its data set"
    return [PROMPT if options.prompt is None else checked_prompt(options.prompt)]


def asks_of(options: LoadOptions, data: Data | None) -> list[LoadPrompt]:
    """The same, with what rows say about the length of their answers."""
    if data is None or not data.sessions:
        return [LoadPrompt(prompt) for prompt in prompts_of(options, data)]
    return [
        LoadPrompt(turn.prompt, max_tokens=turn.max_tokens)
        for turn in (one.turns[0] for one in data.sessions)
    ]


def bounds_of(objectives: Sequence[Objective]) -> Bounds:
    """What each single request has to keep to, to count as good."""
    limits: dict[str, float] = {}
    for objective in objectives:
        name = "tpot" if objective.metric == "itl" else objective.metric
        if objective.is_upper and name in ("ttft", "tpot", "latency"):
            limits[name] = min(objective.limit, limits.get(name, objective.limit))
    return Bounds(**limits)
