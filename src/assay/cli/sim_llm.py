"""`assay sim-llm`: run a simulated LLM server with known timing, faults and skill.

It is for trying out and testing load tests and comparisons: since delays and the share of correct answers are known, one can
check whether Assay measures them. The server itself is in `assay.simulator`.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from typing import Any

import click

from assay.cli.output import echo
from assay.cli.session import Session, common

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


SHARE = click.FloatRange(0, 1)


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
@click.option(
    "--ttft",
    type=duration,
    metavar="TIME",
    default="50ms",
    show_default=True,
    help="Time to first token.",
)
@click.option(
    "--itl", type=duration, metavar="TIME", default="5ms", show_default=True, help="Time between tokens."
)
@click.option(
    "--tokens",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    default=20,
    show_default=True,
    help="Tokens of an answer, unless max_tokens or a known answer makes it shorter.",
)
@click.option(
    "--jitter",
    type=SHARE,
    metavar="SHARE",
    default=0.0,
    show_default=True,
    help="How much each delay varies; 0.2 is ±20 %.",
)
@click.option(
    "--slots",
    type=click.IntRange(1),
    metavar="N",
    help="Requests served concurrently; others queue. Default: unlimited.",
)
@click.option(
    "--error-rate",
    type=SHARE,
    metavar="SHARE",
    default=0.0,
    show_default=True,
    help="Share of requests that get a 500.",
)
@click.option(
    "--rate-limit", type=rate, metavar="R/s", help="Requests above this rate get a 429 with Retry-After."
)
@click.option(
    "--disconnect-rate",
    type=SHARE,
    metavar="SHARE",
    default=0.0,
    show_default=True,
    help="Share of requests whose connection is closed halfway.",
)
@click.option(
    "--skill",
    type=SHARE,
    metavar="SHARE",
    default=0.8,
    show_default=True,
    help="Share of correct answers to prompts with a sum such as 12 + 7, or with [[expected: X]].",
)
@click.option(
    "--seed", type=int, metavar="N", default=1, show_default=True, help="Seed for faults and answers."
)
@click.option(
    "--load-time",
    type=duration,
    metavar="TIME",
    default="0",
    show_default=True,
    help="Time that Ollama's endpoints take to load a model.",
)
@click.option(
    "--max-context",
    type=click.IntRange(4),
    metavar="N",
    default=131_072,
    show_default=True,
    help="Largest context in tokens: Ollama's endpoints silently reduce a larger num_ctx to it.",
)
@click.option(
    "--prefill",
    type=duration,
    metavar="TIME",
    default="0",
    show_default=True,
    help="Time that each input token adds to the time to first token, unless it is cached.",
)
@click.option(
    "--prompt-cache",
    is_flag=True,
    help="Cache prompt prefixes: input tokens of a known prefix take no time.",
)
@click.option("--models", metavar="A,B", help="Models to serve. Default: any name is accepted.")
@common
def sim_llm(session: Session, **given: Any) -> None:
    """Run a simulated LLM server: OpenAI at /v1 (chat, completions, responses, embeddings), Anthropic at /v1/messages, Ollama at /api.

    Every answer carries the header x-assay-simulated: 1. If a request offers tools, [[call: NAME {"key": 1}]] in the
    prompt makes the server call one. GET /stats shows what the server has done. Stop it with Ctrl-C.
    """
    from assay.simulator import SimOptions, run_until_signal

    options = SimOptions(**given)

    # Called once the server listens: with port 0 the address is not known before.
    def announce(url: str) -> None:
        if session.is_json:
            from assay.report.documents.answers import server_document

            session.emit(server_document(url, os.getpid(), asdict(options)))
        else:
            echo(f"sim-llm listens on {url} (OpenAI: {url}/v1, Anthropic, Ollama). Ctrl-C ends it.")

    figures = run_until_signal(options, announce)
    session.say(f"sim-llm ends after {figures['completed']} of {figures['requests']} requests answered.")
