"""`assay sim-llm`: run a simulated LLM server with known timing, faults and skill.

It is for trying out and testing load tests and comparisons: since delays and the share of correct answers are known, one can
check whether Assay measures them. The server itself is in `assay.simulator`, which also declares the options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import Field, asdict, fields
from typing import Any

import click

from assay.cli.output import echo
from assay.cli.session import Command, Session, common
from assay.simulator.options import SimOptions

_DURATION = re.compile(r"(\d*\.?\d+(?:e-?\d+)?)\s*(us|ms|s|m)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/(s|sec|min|m))?")


def duration(text: str) -> float:
    """
    >>> duration("50ms"), duration("0.2s"), duration("0")
    (0.05, 0.2, 0.0)
    """
    if text == "0":
        return 0.0
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"'{text}' is not a duration. Write 50ms, 0.2s or 0.")
    return float(found[1]) * _UNITS[found[2]]


def rate(text: str) -> float:
    """
    >>> rate("50/s"), rate("300/min")
    (50.0, 5.0)
    """
    found = _RATE.fullmatch(text)
    if found is None or not float(found[1]):
        raise click.BadParameter(f"'{text}' is not a rate. Write 50/s or 300/min.")
    return float(found[1]) / (60 if found[2] in ("min", "m") else 1)


def _sim_options(command: Command) -> Command:
    """Add the options that `SimOptions` declares, in its order."""
    for option in reversed(fields(SimOptions)):
        if option.metadata:
            command = _build_option(option)(command)
    return command


def _build_option(option: Field[Any]) -> Callable[[Command], Command]:
    """The click option of a field; its placeholder says how the value is written."""
    flag, written = f"--{option.name.replace('_', '-')}", option.metadata
    default: Any = option.default
    if isinstance(default, bool):
        return click.option(flag, is_flag=True, help=written["help"])
    metavar, limits = written["metavar"], written["limits"]
    kind = {
        "TIME": duration,
        "SHARE": click.FloatRange(0, 1),
        "R/s": rate,
        "N": click.IntRange(*limits) if limits else int,
    }.get(metavar, str)
    if kind is duration:
        default = f"{1000 * default:g}ms" if default else "0"
    return click.option(
        flag, type=kind, metavar=metavar, default=default, show_default=True, help=written["help"]
    )


@click.command("sim-llm")
@click.option(
    "--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=9000,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@_sim_options
@common
def sim_llm(session: Session, **given: Any) -> None:
    """Run a simulated LLM server: OpenAI at /v1 (chat, completions, responses, embeddings), Anthropic at /v1/messages, Ollama at /api.

    Every answer carries the header x-assay-simulated: 1. If a request offers tools, [[call: NAME {"key": 1}]] in the
    prompt makes the server call one. GET /stats shows what the server has done. Stop it with Ctrl-C.
    """
    from assay.simulator import run_until_signal

    options = SimOptions(**given)

    # Called once the server listens: with port 0 the address is not known before.
    def announce(url: str) -> None:
        if session.is_json:
            session.emit({"url": url, "pid": os.getpid(), "options": asdict(options)})
        else:
            echo(f"sim-llm listens on {url} (OpenAI: {url}/v1, Anthropic, Ollama). Ctrl-C ends it.")

    figures = run_until_signal(options, announce)
    session.say(f"sim-llm ends after {figures['completed']} of {figures['requests']} requests answered.")
