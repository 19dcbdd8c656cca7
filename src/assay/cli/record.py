"""`assay record` and `assay replay`: record the LLM calls of any program in a cassette, and answer them from it.

Both start a local proxy and run the program with environment variables that point to it. Recording forwards each call to
the real server and stores it without secrets; replaying needs no network. The exit code is that of the program.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

import click

from assay.cli.output import echo
from assay.cli.session import Session, common
from assay.text import quote_word
from assay.units import format_count

_COMMAND = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(context_settings=_COMMAND)
@click.option(
    "--cassette",
    type=click.Path(path_type=Path),
    default=Path("cassette.jsonl"),
    show_default=True,
    help="File to record to.",
)
@click.option("--upstream", metavar="URL", help="Server to forward calls to; default: from the environment.")
@click.option("--append", is_flag=True, help="Append to the cassette instead of overwriting it.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD…")
@common
def record(
    session: Session, cassette: Path, upstream: str | None, append: bool, command: tuple[str, ...]
) -> int:
    """Run CMD and store every call that it makes to OpenAI, Anthropic or Ollama in a cassette, without secrets.

    Assay sets OPENAI_BASE_URL, ANTHROPIC_BASE_URL and OLLAMA_HOST for CMD to a local recording proxy.
    """
    from assay.cassette.program import find_program, run_program, upstreams
    from assay.cassette.proxy import Recorder
    from assay.cassette.writer import CassetteWriter
    from assay.errors import AssayError
    from assay.model.redaction import known_secrets

    # In this order, a program that does not exist leaves no empty cassette behind. Keys among its arguments are secrets too.
    find_program(command)
    destinations = upstreams(os.environ, upstream)
    known_secrets().learn_command(command)
    try:
        writer = CassetteWriter(cassette, known_secrets(), appends=append)
    except OSError as error:
        raise AssayError(f"The cassette '{cassette}' cannot be written: {error.strerror}.") from None

    # The recorder is closed inside the event loop that it was made in, so that connections to the real servers end cleanly.
    async def record_program() -> tuple[int, Recorder]:
        recorder = Recorder(writer, destinations)
        code = await run_program(command, recorder.serve, quiet_output=session.is_json)
        await recorder.close()
        return code, recorder

    with writer:
        code, recording = asyncio.run(record_program())
    if session.is_json:
        calls = {"calls": recording.recorded, "unreachable": len(recording.unreachable)}
        session.emit({"cassette": str(cassette), **calls, "exit_code": code})
        return code
    if recording.unreachable:
        hint = "" if upstream else " Say where they go: --upstream URL"
        if "certificate" in recording.unreachable[0]:
            hint = " To trust its certificate, name the file that holds it: SSL_CERT_FILE=FILE assay record …"
        session.say(
            f"{format_count(len(recording.unreachable), 'call')} could not be passed on: {recording.unreachable[0]}{hint}"
        )
    if recording.recorded:
        session.say(f"{format_count(recording.recorded, 'call')} recorded in {cassette}.")
        session.next(f"assay replay --cassette {quote_word(str(cassette))} -- {shlex.join(command)}")
    else:
        session.say(f"0 calls recorded; {cassette} was not changed.")
        session.next(f"assay record --upstream URL -- {shlex.join(command)}")
    return code


@click.command(context_settings=_COMMAND)
@click.option(
    "--cassette",
    type=click.Path(path_type=Path),
    default=Path("cassette.jsonl"),
    show_default=True,
    help="File to answer from.",
)
@click.option("--match", type=click.Choice(["strict", "lenient"]), default="strict", show_default=True,
              help="strict: match the whole request; lenient: match only its words.")  # fmt: skip
@click.option(
    "--delays",
    metavar="original|none|X",
    default="none",
    show_default=True,
    help="Delays of answers: as recorded, none, or as recorded times X.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD…")
@common
def replay(session: Session, cassette: Path, match: str, delays: str, command: tuple[str, ...]) -> int:
    """Run CMD and answer its LLM calls from a cassette: no network, no key, no cost. Exits with 1 if a call is not in it."""
    from assay.cassette.player import Player
    from assay.cassette.program import find_program, run_program
    from assay.cassette.proxy import Replayer
    from assay.cassette.tape import read_tape

    player = Player(read_tape(cassette), is_lenient=match == "lenient")
    replayer = Replayer(player, pace_of(delays))
    find_program(command)
    code = asyncio.run(
        run_program(command, replayer.serve, placeholder_keys=True, quiet_output=session.is_json)
    )
    for miss in player.misses:
        echo(f"Not in the cassette: {miss}", err=True)
    if session.is_json:
        calls = {"calls": replayer.replayed, "misses": player.misses}
        session.emit({"cassette": str(cassette), **calls, "exit_code": code})
    else:
        session.say(f"{format_count(replayer.replayed, 'call')} answered from {cassette}.")
        again = f"--cassette {quote_word(str(cassette))} -- {shlex.join(command)}"
        session.next(
            f"assay record --append {again}" if player.misses else f"assay replay --delays original {again}"
        )
    # A program may swallow the error of a missed call and exit with 0; the replay was incomplete all the same.
    return code or (1 if player.misses else 0)


def pace_of(delays: str) -> float:
    """Parse the factor by which recorded delays are stretched.

    A mistake is reported as one of the command line and not of the cassette.
    """
    from assay.cassette.tape import CassetteError, read_pace

    try:
        return read_pace(delays)
    except CassetteError as problem:
        raise click.UsageError(f"--delays: {problem}") from None
