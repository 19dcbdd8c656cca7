"""`assay load`: how much does it bear?"""

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
    from assay.execute.load.asking import LoadOptions
    from assay.execute.load.engine import Watch


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
            help="Seed of random arrivals.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("target")
@click.option(
    "--concurrency",
    metavar="N[,N…]",
    help="Concurrent requests (closed loop); with --rate, the maximum in flight.",
)
@click.option("--rate", metavar="R", help="Requests per second (open loop), however fast answers come back.")
@click.option("--arrivals", metavar="HOW", help="constant (default), poisson, or trace:FILE.csv")
@click.option(
    "--stages", metavar="TEXT", help='Times and rates: "10s@50,20s@200,10s@50"; a ramp: 10s@50..200'
)
@click.option("--duration", metavar="S", help="How long to send requests; default: 10s.")
@click.option("--requests", type=int, metavar="N", help="How many requests to send.")
@click.option(
    "--warmup", metavar="S", help="Time at the start that does not count; default: detected automatically."
)
@click.option(
    "--think", metavar="S", help="With --concurrency: pause between an answer and the next request."
)
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
    help="Raise the load until the objective (--slo) fails; report where and why.",
)
@click.option(
    "--raw", metavar="FILE", type=click.Path(path_type=Path), help="Every request: .csv or .parquet"
)
@click.option("--group", "tags", metavar="TAG", multiple=True, help="Tag the run.")
@load_options
@sandbox_option
@common
def load(
    session: Session,
    target: str,
    repetitions: int,
    find_capacity: bool,
    raw: Path | None,
    tags: tuple[str, ...],
    **given: Any,
) -> int:
    """Load-test TARGET: a base URL ending in /v1, an Ollama or HTTP URL, or an agent's name.

    \b
    assay load http://127.0.0.1:9000/v1 --model m --concurrency 32
    assay load http://127.0.0.1:9000/v1 --rate 200 --arrivals poisson --duration 30
    assay load http://127.0.0.1:9000/v1 --find-capacity --slo "ttft_p95<200ms,error_rate<1%"
    """
    from assay.pipeline import loading

    levels = _levels(given.pop("concurrency"))
    if len(levels) > 1 and (find_capacity or given["rate"] or given["stages"] or given["arrivals"]):
        raise click.UsageError("Several values of --concurrency are for closed loops: leave the rate out.")
    if find_capacity:
        _refuse_what_it_finds_itself(given, raw, repetitions)
    options = _options(target, {**given, "concurrency": levels[0] if levels else None})
    with session.store() as store:
        asked = loading.prepare_load(options, session.settings, store)
        if find_capacity:
            from assay.cli.capacity import find

            return find(session, store, options, asked, tags)
        with _raw_records(raw) as keep, looking_on(session, asked.load) as watch:
            done = loading.run_load(
                options,
                asked,
                store,
                session.settings,
                watch,
                levels=levels if len(levels) > 1 else (),
                repetitions=repetitions,
                tags=tags,
                watch_chunk=keep,
            )
        return _finish(session, done, asked, options)


def _refuse_what_it_finds_itself(given: dict[str, Any], raw: Path | None, repetitions: int) -> None:
    names = ("rate", "stages", "arrivals", "requests", "think")
    found = [f"--{name}" for name in names if given[name] is not None]
    found += ["--raw"] if raw else []
    found += ["--repetitions"] if repetitions > 1 else []
    if found:
        raise click.UsageError(f"--find-capacity chooses the loads itself: leave {', '.join(found)} out.")


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


def _finish(session: Session, done: Any, asked: Any, options: LoadOptions) -> int:
    from assay.execute.runner import interrupted_exit_code
    from assay.report.load import load_document, print_load, print_loads

    last = done.results[-1]
    if session.is_json:
        document = load_document(last)
        more = [load_document(result) for result in done.results] if len(done.results) > 1 else []
        session.emit({"run": done.run_id, **document, **({"loads": more} if more else {})})
    elif len(done.results) == 1:
        print_load(last, asked.load, session.console())
    else:
        print_loads(done.results, session.console())
    if done.is_interrupted:
        session.say("Interrupted. What was measured until then is shown and kept.")
    session.next(
        f"assay report {done.run_id} --format html",
        f"assay show {done.run_id}",
        _capacity_of(options),
    )
    if done.is_interrupted:
        return interrupted_exit_code()
    if any(result.workers_lost for result in done.results):
        return 2
    is_met = all(held.is_met for result in done.results for held in result.held)
    return 0 if is_met and all(result.requests_completed for result in done.results) else 1


def _capacity_of(options: LoadOptions) -> str:
    """The command that finds out how much of this it bears."""
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
def looking_on(session: Session, load: Any) -> Iterator[Watch]:
    """The live view on a terminal; elsewhere a line now and then."""
    import sys

    from assay.cli.load_view import live_view, plain_view

    if session.is_quiet:
        yield lambda pulse, tally: None
    elif sys.stderr.isatty():
        with live_view(session.error_console(), load) as watch:
            yield watch
    else:
        yield plain_view(session.say)
