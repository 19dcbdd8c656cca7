"""Runs any program with its LLM traffic routed through a local proxy, for `assay record` and `assay replay`.

The program is given the addresses of the proxy in the environment variables that the SDKs of the providers read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence

from assay.cassette.proxy import OPENAI_PATH, Proxy, Serve
from assay.dialects.lookup import PROVIDERS
from assay.errors import AssayError
from assay.http.errors import BadRequest
from assay.http.request import prepare

PLACEHOLDER_KEY = "sk-replayed-by-assay"
"""For programs that refuse to start without a key which a replay has no use for."""

_ADDRESSES = {
    "OPENAI_BASE_URL": OPENAI_PATH,
    "OPENAI_API_BASE": OPENAI_PATH,
    "ANTHROPIC_BASE_URL": "",
    "OLLAMA_HOST": "",
}


def upstreams(environment: Mapping[str, str], given: str | None) -> dict[str, str]:
    """Where each provider's calls are meant to go: as given, as the environment says, or to the public address.

    >>> upstreams({}, "http://127.0.0.1:9000")["openai"]
    'http://127.0.0.1:9000/v1'
    """
    if given is not None:
        try:
            prepare("GET", given, {})
        except BadRequest as error:
            raise AssayError(f"--upstream: {error}") from None
        root = given.rstrip("/").removesuffix(OPENAI_PATH)
        return {**dict.fromkeys(PROVIDERS, root), "openai": root + OPENAI_PATH}
    # The second is an older name of the variable, which some programs still read.
    openai = environment.get("OPENAI_BASE_URL", environment.get("OPENAI_API_BASE"))
    return {
        name: provider.base_url(openai if name == "openai" else None, environment)
        for name, provider in PROVIDERS.items()
    }


def find_program(command: Sequence[str]) -> None:
    """Raise AssayError if there is no such program, before anything is written."""
    if shutil.which(command[0]) is None:
        raise AssayError(f"Program '{command[0]}' was not found or is not executable.")


async def run_program(
    command: Sequence[str], serve: Serve, *, placeholder_keys: bool = False, quiet_output: bool = False
) -> int:
    """Run the program with its LLM addresses pointing to the proxy; returns its exit code, 128 + N if signal N ended it.

    With `quiet_output`, what it prints goes to standard error.
    """
    async with Proxy(serve) as url:
        environment = {**os.environ, **{name: url + path for name, path in _ADDRESSES.items()}}
        if placeholder_keys:
            for provider in PROVIDERS.values():
                if provider.key_variable:
                    environment.setdefault(provider.key_variable, PLACEHOLDER_KEY)
        # Before the program is started: a signal in between would otherwise end us and leave the program without a proxy.
        signals = Signals()
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env=environment, stdout=sys.stderr if quiet_output else None
            )
        except OSError as error:
            raise AssayError(f"'{command[0]}' cannot be executed: {error.strerror}.") from None
        signals.pass_on_to(process)
        # As a shell reports it, so that scripts around the command see what they would have seen without it.
        code = await process.wait()
        return code if code >= 0 else 128 - code


class Signals:
    """Passes SIGINT and SIGTERM on to the program; those that come before it has started, as soon as it has."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._early: list[int] = []
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._came, number)

    def pass_on_to(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        for number in self._early:
            self._came(number)

    def _came(self, number: int) -> None:
        """Forward a signal, except SIGINT from the terminal, which the program receives itself."""
        if number == signal.SIGINT:
            with contextlib.suppress(OSError):  # standard input is no terminal
                if os.tcgetpgrp(0) == os.getpgrp():
                    return
        if self._process is None:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
