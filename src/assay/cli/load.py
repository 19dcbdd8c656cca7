"""`assay load`: load-test a server or an agent.

The options are declared once, as fields of `LoadOptions` with their help texts; `options_of` makes command-line options of
them, here and for `assay stress`. To start fast, worker processes of a URL are started before the modules that store and
show the results are imported.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import EXECUTOR, label_option, read_executor_settings, shared_option
from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.load.options import Group, LoadOption, LoadOptions, load_options

if TYPE_CHECKING:
    from assay.load.build import LoadOptions, PreparedLoad
    from assay.load.engine import Watch, WatchChunk
    from assay.load.worker_report import Chunk
    from assay.model.load import Arrivals, Step
    from assay.pipeline.capacity import CapacityRequest
    from assay.spec.settings import Settings
    from assay.store.store import Store


def options_of(group: Group) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator with the command-line options of a group, in the order in which they are declared."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(list(load_options(group))):
            command = _build_option(option)(command)
        return command

    return decorate


def _build_option(option: LoadOption) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The click option of a field: a flag for a truth value, repeatable for a tuple, else typed by the field.

    Values with units, such as rates and durations, stay text here and are parsed where all front ends share the code.
    """
    written, default = option.written, option.default
    if isinstance(default, bool):
        name = f"{option.flag}/--no-{option.flag.removeprefix('--')}" if default else option.flag
        return click.option(name, is_flag=True, default=default, help=written.help)
    if isinstance(default, tuple):
        return click.option(option.flag, multiple=True, metavar=written.metavar, help=written.help)
    kind: Any = str
    if written.choices:
        kind = click.Choice(written.choices)
    elif not written.is_text and option.type in (int, int | None):
        is_bounded = written.least is not None or written.most is not None
        kind = click.IntRange(written.least, written.most) if is_bounded else int
    elif not written.is_text and option.type == float | None:
        kind = float
    return click.option(option.flag, type=kind, default=default, metavar=written.metavar, help=written.help)


@click.command()
@click.argument("targets", metavar="TARGET…", nargs=-1, required=True)
@options_of("traffic")
@shared_option("--repetitions", "Repeat the whole load test N times.", default=1)
@click.option(
    "--find-capacity",
    is_flag=True,
    help="Find the highest rate that is sustained (and meets --slo), and what limits it.",
)
@options_of("ending")
@click.option(
    "--raw",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write every request to FILE: .csv, .jsonl, .jsonl.gz or .parquet.",
)
@options_of("server")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve the running load's own metrics for Prometheus on 127.0.0.1:N; 0 picks a free port.",
)
@options_of("generators")
@click.option(
    "--set",
    "executor_options",
    metavar="executor.KEY=VALUE",
    multiple=True,
    help="A setting of the executor; may be repeated.",
)
@label_option
@options_of("inputs")
@options_of("requests")
@sandbox_option
@common
def load(
    session: Session,
    targets: tuple[str, ...],
    repetitions: int,
    find_capacity: bool,
    raw: Path | None,
    metrics_port: int | None,
    executor_options: tuple[str, ...],
    label: tuple[str, ...],
    **given: Any,
) -> int:
    """Load-test TARGET: a base URL ending in /v1, an Ollama or HTTP URL, or an agent's name.

    With several URLs, requests are sent to them in turn.

    \b
    assay load http://127.0.0.1:9000/v1 --model m --concurrency 32
    assay load http://127.0.0.1:9000/v1 --rate 200 --arrivals poisson --duration 30
    assay load http://127.0.0.1:9000/v1 --find-capacity --slo "ttft_p95<200ms,error_rate<1%"
    """
    # Prompts vary from run to run unless the user chose the seed: the default seed must not fix them.
    source = click.get_current_context().get_parameter_source("seed")
    given["prompt_seed"] = None if source in (None, click.core.ParameterSource.DEFAULT) else given["seed"]
    levels = _levels(given.pop("concurrency"))
    _check_combinations(targets, levels, find_capacity, given)
    if find_capacity:
        _refuse_what_it_finds_itself(given, raw, repetitions, metrics_port)
        arrivals = _arrivals_of_search(given.pop("arrivals"))
    given["more_targets"] = targets[1:]
    options = _options(targets[0], {**given, "concurrency": levels[0] if levels else None})
    settings = _add_executor_options(session.settings, options.executor or "local", executor_options)
    # Workers start while this process imports the modules below.
    with _start_workers_early(options) as ready, session.store_when_needed() as open_store:
        from assay.pipeline import load as loading

        prepared = ready or loading.prepare_load(options, settings, open_store())
        if find_capacity:
            from assay.pipeline.capacity import CapacityRequest

            if prepared.load.has_sessions:
                raise click.UsageError("--find-capacity sends single requests: leave out sessions.")
            request = CapacityRequest(options, prepared, arrivals)
            return _find_capacity(session, open_store(), request, settings, label)
        with (
            _raw_records(raw) as keep,
            _serve_own_metrics(session, metrics_port) as count,
            show_load_progress(session, prepared.load) as watch,
        ):
            outcome = loading.run_load(
                options,
                prepared,
                open_store,
                settings,
                watch,
                levels=levels if len(levels) > 1 else (),
                repetitions=repetitions,
                tags=label,
                watch_chunk=_combine_watchers(keep, count),
            )
        return _finish(session, outcome, prepared, options, levels)


def _check_combinations(
    targets: Sequence[str], levels: Sequence[int], find_capacity: bool, given: Mapping[str, Any]
) -> None:
    """Refuse options that contradict each other, before anything is read or started."""
    if len(levels) > 1 and (find_capacity or given["rate"] or given["stages"] or given["arrivals"]):
        what = "--find-capacity" if find_capacity else "a rate"
        raise click.UsageError(f"Several values of --concurrency cannot be combined with {what}.")
    if len(targets) > 1 and not all("://" in target for target in targets):
        raise click.UsageError("With several targets, each must be a URL; requests go to them in turn.")


@contextlib.contextmanager
def _start_workers_early(options: LoadOptions) -> Iterator[PreparedLoad | None]:
    """Check the options of a load of a URL and start its workers, which become ready while other modules are imported.

    Yields None for agents and data sets, which have to be looked up first.
    """
    from assay.load.build import build_prepared_load
    from assay.load.engine import workers_of
    from assay.load.warm_workers import start_workers_ahead

    if not options.target.startswith(("http://", "https://")) or options.dataset is not None:
        yield None
        return
    prepared = build_prepared_load(options)
    with start_workers_ahead(0 if options.executor or options.generators else workers_of(prepared.load)):
        yield prepared


def _refuse_what_it_finds_itself(
    given: dict[str, Any], raw: Path | None, repetitions: int, metrics_port: int | None
) -> None:
    """A usage error for options that a capacity search sets for each step, or that make no sense for it."""
    names = ("rate", "stages", "requests", "think", "abort_on", "server_metrics", "speed", "window")
    found = [f"--{name.replace('_', '-')}" for name in names if given[name] is not None]
    found += ["--arrivals trace:FILE"] if (given["arrivals"] or "").startswith("trace:") else []
    found += ["--raw"] if raw else []
    found += ["--repetitions"] if repetitions > 1 else []
    found += ["--metrics-port"] if metrics_port is not None else []
    if found:
        raise click.UsageError(
            f"{', '.join(found)} cannot be combined with --find-capacity, which chooses the loads itself."
        )


def _arrivals_of_search(text: str | None) -> Arrivals:
    """How requests arrive at the rates that a capacity search tries. A load needs --rate for arrivals, a search does not."""
    from assay.model.load import Arrivals

    if text not in (None, "constant", "poisson"):
        raise click.BadParameter(f"'{text}' is not constant or poisson.", param_hint="--arrivals")
    return Arrivals(text or "constant")


def _levels(text: str | None) -> tuple[int, ...]:
    """The numbers of virtual users in `--concurrency`; several make a sweep."""
    try:
        levels = tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is not a number of requests, as in 8 or 1,8,64.", param_hint="--concurrency"
        ) from None
    if any(level < 1 for level in levels):
        raise click.BadParameter("must be at least 1", param_hint="--concurrency")
    return levels


def _options(target: str, given: dict[str, Any]) -> LoadOptions:
    """The options of a load. A rate may be written per minute, and is per second from here on."""
    from assay.spec.load_settings import rate_of

    if given.get("rate") is not None:
        given["rate"] = rate_of(given["rate"], "--rate")
    return LoadOptions(target, **given)


def _add_executor_options(settings: Settings, executor: str, texts: Sequence[str]) -> Settings:
    """The settings with those of the executor that `--set executor.KEY=VALUE` gives."""
    if not texts:
        return settings
    from assay.pipeline.executor import check_executor_options

    if others := [text for text in texts if not text.startswith(EXECUTOR)]:
        raise click.UsageError(f"'{others[0]}' is not {EXECUTOR}KEY=VALUE.")
    options = {**settings.executors.get(executor, {}), **read_executor_settings(texts)}
    check_executor_options(executor, options)
    return replace(settings, executors={**settings.executors, executor: options})


def _finish(
    session: Session, outcome: Any, prepared: Any, options: LoadOptions, levels: tuple[int, ...]
) -> int:
    """Show the results and return the exit code.

    The code is 2 if worker processes were lost, since the figures are not what was asked for then; 1 if an objective was not
    met or the load was aborted; 128 plus the number of the signal if it was interrupted.
    """
    from assay.execute.signals import interrupt_exit_code
    from assay.model.load_document import load_document
    from assay.model.load_verdict import FAILURES, verdicts_of
    from assay.report.load import print_load, print_loads

    last = outcome.results[-1]
    documents = [load_document(result) for result in outcome.results]
    if session.is_json:
        # The last load, and where there were several all of them.
        is_interrupted = outcome.is_interrupted and not last.aborted
        several = {"loads": documents} if len(documents) > 1 else {}
        session.emit({"run": outcome.run_id, **documents[-1], "interrupted": is_interrupted, **several})
    elif len(outcome.results) == 1:
        print_load(last, prepared.load, session.console())
    else:
        print_loads(outcome.results, session.console(), levels)
    if outcome.is_interrupted:
        session.say("Interrupted. The figures cover the load up to that point, and are stored.")
    session.next(
        f"assay report {outcome.run_id} --format html",
        f"assay show {outcome.run_id}",
        _capacity_of(options),
    )
    if outcome.is_interrupted:
        return interrupt_exit_code()
    # Before the objectives: figures of a load that was smaller than asked for must not pass as a result.
    if any(result.workers_lost for result in outcome.results):
        return 2
    return 1 if any(verdict in FAILURES for document in documents for verdict in verdicts_of(document)) else 0


def _capacity_of(options: LoadOptions) -> str:
    """The command that finds the highest sustained rate of the same target."""
    # Only the options that decide what is asked, and of whom; those that shape the load are what the search chooses.
    words = ["assay", "load", options.target, *(["--model", options.model] if options.model else [])]
    words += [word for host in options.allow_host for word in ("--allow-host", host)]
    words += [] if options.stream else ["--no-stream"]
    return shlex.join([*words, "--find-capacity", "--slo", "error_rate<1%"])


@contextlib.contextmanager
def _raw_records(path: Path | None) -> Iterator[Any]:
    """A function that writes each chunk of requests to the file of `--raw`, or None without one."""
    if path is None:
        yield None
        return
    from assay.report.documents.load_records import recording

    with recording(path) as keep:
        yield keep


@contextlib.contextmanager
def _serve_own_metrics(session: Session, port: int | None) -> Iterator[WatchChunk | None]:
    """The metrics of the running load, for Prometheus."""
    if port is None:
        yield None
        return
    from assay.load.exposition import LoadCounters, serve_metrics

    counters = LoadCounters()
    with serve_metrics(counters, port) as address:
        session.say(f"Metrics of this load: http://127.0.0.1:{address}/metrics")
        yield counters.add


def _combine_watchers(first: WatchChunk | None, second: WatchChunk | None) -> WatchChunk | None:
    """A function that calls those of the two that there are, or None."""
    watchers = [watch for watch in (first, second) if watch is not None]
    if len(watchers) < 2:
        return watchers[0] if watchers else None

    def watch(chunk: Chunk) -> None:
        for watcher in watchers:
            watcher(chunk)

    return watch


@contextlib.contextmanager
def show_load_progress(session: Session, load: Any) -> Iterator[Watch]:
    """The live view on a terminal; elsewhere a line now and then."""
    import sys

    from assay.cli.load_view import live_view, plain_view

    if session.is_quiet:
        yield lambda progress, tally: None
    elif sys.stderr.isatty():
        with live_view(session.error_console, load) as watch:
            yield watch
    else:
        yield plain_view(session.say)


def _find_capacity(
    session: Session, store: Store, request: CapacityRequest, settings: Settings, labels: tuple[str, ...]
) -> int:
    """Run the search and print its answer. The exit code is 0 if a rate was sustained, else 1."""
    from functools import partial

    from assay.execute.signals import interrupt_exit_code
    from assay.model.load_document import capacity_document
    from assay.pipeline.capacity import find_capacity
    from assay.report.capacity import print_capacity, step_text

    # A search takes minutes, so every step is told when it ends; with --json only the answer is printed.
    def tell(step: Step) -> None:
        if not session.is_json:
            session.say(step_text(step))

    found = find_capacity(request, store, settings, tell, partial(show_load_progress, session), labels)
    if session.is_json:
        session.emit({"run": found.run_id, **capacity_document(found.capacity)})
    else:
        print_capacity(capacity_document(found.capacity), session.console())
    resume = [f"assay run --resume {found.run_id}"] if found.is_interrupted else []
    session.next(*resume, f"assay report {found.run_id} --format html", f"assay show {found.run_id}")
    if found.is_interrupted:
        return interrupt_exit_code()
    return 0 if found.capacity.sustained else 1
