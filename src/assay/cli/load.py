"""`assay load`: load-test a server or an agent."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common

if TYPE_CHECKING:
    from assay.execute.load.asking import LoadOptions, PreparedLoad
    from assay.execute.load.engine import Watch, WatchChunk
    from assay.execute.load.record import Chunk
    from assay.model.load import Arrivals


def load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a load and a stress test have in common."""
    options = (
        click.option("--model", metavar="M", help="Model to ask for."),
        click.option("--prompt", metavar="TEXT", help="Prompt to send with every request."),
        click.option(
            "--dataset",
            metavar="FILE",
            help="Prompts to send in turn: a suite (its answers are scored), .jsonl, .csv or lines of text.",
        ),
        click.option(
            "--max-tokens", type=click.IntRange(min=1), metavar="N", help="Maximum output tokens per request."
        ),
        click.option(
            "--stream/--no-stream", default=True, help="Whether answers are streamed; default: yes."
        ),
        click.option(
            "--timeout", metavar="S", help="Count a request that takes longer as failed; default: 60s."
        ),
        click.option("--slo", metavar="TEXT", help='Objective, as in "ttft_p95<200ms,error_rate<1%".'),
        click.option(
            "--allow-host",
            metavar="H",
            multiple=True,
            help="Allow requests to this host; required for any host but this machine; may be repeated.",
        ),
        click.option(
            "--header",
            metavar="'NAME: VALUE'",
            multiple=True,
            help="Header to send; ${NAME} is read from the environment.",
        ),
        click.option("--insecure", is_flag=True, help="Accept any TLS certificate."),
        click.option(
            "--ca-file",
            metavar="FILE",
            help="Certificates (PEM) to trust instead of the system's, with https.",
        ),
        click.option(
            "--workers", type=int, default=1, metavar="N", help="Processes that send requests; default: 1."
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**32 - 1),
            default=1,
            metavar="N",
            help="Seed of random arrivals and lengths; when given, also of what makes prompts unique.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What the requests of a load say."""
    options = (
        click.option(
            "--prompt-cache",
            type=click.Choice(["unique", "keep"]),
            help="unique (default): each prompt has a prefix of its own, so that no prompt cache matches; keep: as written.",
        ),
        click.option(
            "--shared-prefix",
            type=click.IntRange(min=1),
            metavar="TOKENS",
            help="Begin all prompts with the same text of this many tokens, followed by a unique rest.",
        ),
        click.option(
            "--input-tokens",
            metavar="N",
            help="Send synthetic prompts of about this many tokens: 500, 500±100, 500..700 or exp:500.",
        ),
        click.option(
            "--output-tokens", metavar="N", help="Maximum output tokens, written like --input-tokens."
        ),
        click.option(
            "--min-tokens",
            type=click.IntRange(min=1),
            metavar="N",
            help="Send min_tokens (vLLM, SGLang): minimum output tokens.",
        ),
        click.option(
            "--ignore-eos",
            is_flag=True,
            help="Send ignore_eos (vLLM, SGLang, llama.cpp): answers run to the maximum length.",
        ),
        click.option(
            "--tokenizer",
            metavar="FILE",
            help="The model's tokenizer.json, for synthetic prompts of the exact length.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("targets", metavar="TARGET…", nargs=-1, required=True)
@click.option(
    "--concurrency",
    metavar="N[,N…]",
    help="Concurrent requests (closed loop); with --rate, the maximum in flight.",
)
@click.option(
    "--rate", metavar="R", help="Requests per second (open loop), no matter how fast answers come back."
)
@click.option(
    "--arrivals", metavar="HOW", help="constant (default), poisson, or trace:FILE (.csv or .jsonl, also .gz)."
)
@click.option("--speed", type=float, metavar="X", help="Replay a trace X times as fast.")
@click.option("--window", metavar="FROM..TO", help="Replay this part of a trace: 10m..20m")
@click.option(
    "--stages", metavar="TEXT", help='Times and rates: "10s@50,20s@200,10s@50"; a ramp: 10s@50..200'
)
@click.option("--duration", metavar="S", help="How long to send requests; default: 10s.")
@click.option("--requests", type=int, metavar="N", help="How many requests to send.")
@click.option(
    "--warmup", metavar="S", help="Time at the start that does not count; default: detected automatically."
)
@click.option(
    "--think",
    metavar="S",
    help="With --concurrency or sessions: pause between an answer and the next request: 1s, 1s±300ms, 0.5s..2s or exp:1s.",
)
@click.option("--cancel-after", metavar="S", help="Close the connection when an answer takes longer.")
@click.option("--cancel-share", metavar="P", help="Share of requests that --cancel-after applies to: 10%")
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Repeat the whole load test N times.",
)
@click.option(
    "--find-capacity",
    is_flag=True,
    help="Find the highest rate that is sustained (and meets --slo), and what limits it.",
)
@click.option(
    "--abort-on",
    metavar="TEXT",
    help='End the load early when a condition holds, as in "error_rate>50%,ttft_p95>5s".',
)
@click.option(
    "--raw",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write every request to FILE: .csv, .jsonl, .jsonl.gz or .parquet.",
)
@click.option(
    "--server-metrics",
    metavar="URL",
    help="Prometheus endpoint of the server, read once a second and shown with the load.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve the running load's own metrics for Prometheus on 127.0.0.1:N; 0 takes a free port.",
)
@click.option("--group", "tags", metavar="TAG", multiple=True, help="Tag the run.")
@input_options
@load_options
@sandbox_option
@common
def load(
    session: Session,
    targets: tuple[str, ...],
    repetitions: int,
    find_capacity: bool,
    raw: Path | None,
    metrics_port: int | None,
    tags: tuple[str, ...],
    **given: Any,
) -> int:
    """Load-test TARGET: a base URL ending in /v1, an Ollama or HTTP URL, or an agent's name.

    With several URLs, requests are sent to them in turn.

    \b
    assay load http://127.0.0.1:9000/v1 --model m --concurrency 32
    assay load http://127.0.0.1:9000/v1 --rate 200 --arrivals poisson --duration 30
    assay load http://127.0.0.1:9000/v1 --find-capacity --slo "ttft_p95<200ms,error_rate<1%"
    """
    given["prompt_seed"] = given["seed"] if _is_given("seed") else None
    levels = _levels(given.pop("concurrency"))
    if len(levels) > 1 and (find_capacity or given["rate"] or given["stages"] or given["arrivals"]):
        what = "--find-capacity" if find_capacity else "a rate"
        raise click.UsageError(f"Several values of --concurrency cannot be combined with {what}.")
    if find_capacity:
        _refuse_what_it_finds_itself(given, raw, repetitions, metrics_port)
        arrivals = _arrivals_of_search(given.pop("arrivals"))
    if len(targets) > 1 and not all("://" in target for target in targets):
        raise click.UsageError("Several targets have to be URLs, to which requests go in turn.")
    given["more_targets"] = targets[1:]
    options = _options(targets[0], {**given, "concurrency": levels[0] if levels else None})
    with _started_early(options) as ready, session.store_when_needed() as open_store:
        from assay.pipeline import loading

        asked = ready or loading.prepare_load(options, session.settings, open_store())
        if find_capacity:
            if asked.load.has_sessions:
                raise click.UsageError("--find-capacity sends single requests: leave sessions out.")
            from assay.cli.capacity import find

            return find(session, open_store(), options, asked, tags, arrivals)
        with (
            _raw_records(raw) as keep,
            _serve_own_metrics(session, metrics_port) as count,
            looking_on(session, asked.load) as watch,
        ):
            done = loading.run_load(
                options,
                asked,
                open_store,
                session.settings,
                watch,
                levels=levels if len(levels) > 1 else (),
                repetitions=repetitions,
                tags=tags,
                watch_chunk=_both(keep, count),
            )
        return _finish(session, done, asked, options, levels)


@contextlib.contextmanager
def _started_early(options: LoadOptions) -> Iterator[PreparedLoad | None]:
    """The load of a URL, once its options are found to be right, while its workers start beside all that is still to be loaded.

    None for agents and data sets, which are looked up first.
    """
    from assay.execute.load.asking import prepared
    from assay.execute.load.engine import workers_of
    from assay.execute.load.standby import start_ahead

    if not options.target.startswith(("http://", "https://")) or options.dataset is not None:
        yield None
        return
    asked = prepared(options)
    with start_ahead(workers_of(asked.load)):
        yield asked


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is not None and source is not click.core.ParameterSource.DEFAULT


def _refuse_what_it_finds_itself(
    given: dict[str, Any], raw: Path | None, repetitions: int, metrics_port: int | None
) -> None:
    names = ("rate", "stages", "requests", "think", "abort_on", "server_metrics", "speed", "window")
    found = [f"--{name.replace('_', '-')}" for name in names if given[name] is not None]
    found += ["--arrivals trace:FILE"] if (given["arrivals"] or "").startswith("trace:") else []
    found += ["--raw"] if raw else []
    found += ["--repetitions"] if repetitions > 1 else []
    found += ["--metrics-port"] if metrics_port is not None else []
    if found:
        raise click.UsageError(f"--find-capacity chooses the loads itself: leave {', '.join(found)} out.")


def _arrivals_of_search(text: str | None) -> Arrivals:
    """Of the rates that a capacity search tries; a load needs --rate for them, a search does not."""
    from assay.model.load import Arrivals

    if text not in (None, "constant", "poisson"):
        raise click.BadParameter(f"'{text}' is not constant or poisson.", param_hint="--arrivals")
    return Arrivals(text or "constant")


def _levels(text: str | None) -> tuple[int, ...]:
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
    from assay.execute.load.asking import LoadOptions
    from assay.spec.loading import rate_of

    if given.get("rate") is not None:
        given["rate"] = rate_of(given["rate"], "--rate")
    return LoadOptions(target, **given)


def _finish(session: Session, done: Any, asked: Any, options: LoadOptions, levels: tuple[int, ...]) -> int:
    from assay.execute.signals import interrupted_exit_code
    from assay.report.load import load_document, print_load, print_loads
    from assay.report.load_findings import FAILURES, verdicts_of

    last = done.results[-1]
    documents = [load_document(result) for result in done.results]
    if session.is_json:
        flags = {"interrupted": done.is_interrupted and not last.aborted}
        more = {"loads": documents} if len(documents) > 1 else {}
        session.emit({"run": done.run_id, **documents[-1], **flags, **more})
    elif len(done.results) == 1:
        print_load(last, asked.load, session.console())
    else:
        print_loads(done.results, session.console(), levels)
    if done.is_interrupted:
        session.say("Interrupted. The figures cover the load up to that point, and are stored.")
    session.next(
        f"assay report {done.run_id} --format html",
        f"assay show {done.run_id}",
        _capacity_of(options),
    )
    if done.is_interrupted:
        return interrupted_exit_code()
    if any(result.workers_lost for result in done.results):
        return 2
    return 1 if any(verdict in FAILURES for one in documents for verdict in verdicts_of(one)) else 0


def _capacity_of(options: LoadOptions) -> str:
    """The command that finds the highest sustained rate of the same target."""
    words = ["assay", "load", options.target, *(["--model", options.model] if options.model else [])]
    words += [word for host in options.allow_host for word in ("--allow-host", host)]
    words += [] if options.stream else ["--no-stream"]
    return shlex.join([*words, "--find-capacity", "--slo", "error_rate<1%"])


@contextlib.contextmanager
def _raw_records(path: Path | None) -> Iterator[Any]:
    if path is None:
        yield None
        return
    from assay.report.load_records import recording

    with recording(path) as keep:
        yield keep


@contextlib.contextmanager
def _serve_own_metrics(session: Session, port: int | None) -> Iterator[WatchChunk | None]:
    """The metrics of the running load, for Prometheus."""
    if port is None:
        yield None
        return
    from assay.execute.load.exposition import LoadCounters, serve_metrics

    counters = LoadCounters()
    with serve_metrics(counters, port) as address:
        session.say(f"Metrics of this load: http://127.0.0.1:{address}/metrics")
        yield counters.add


def _both(first: WatchChunk | None, second: WatchChunk | None) -> WatchChunk | None:
    watchers = [watch for watch in (first, second) if watch is not None]
    if len(watchers) < 2:
        return watchers[0] if watchers else None

    def watch(chunk: Chunk) -> None:
        for each in watchers:
            each(chunk)

    return watch


@contextlib.contextmanager
def looking_on(session: Session, load: Any) -> Iterator[Watch]:
    """The live view on a terminal; elsewhere a line now and then."""
    import sys

    from assay.cli.load_view import live_view, plain_view

    if session.is_quiet:
        yield lambda pulse, tally: None
    elif sys.stderr.isatty():
        with live_view(session.error_console, load) as watch:
            yield watch
    else:
        yield plain_view(session.say)
