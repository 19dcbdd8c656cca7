"""Any program, run with its LLM traffic led through a local proxy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

from assay.errors import AssayError
from assay.execute.cassette.proxy import UPSTREAMS, Proxy, Serve

_ADDRESSES = {
    "OPENAI_BASE_URL": "/v1",
    "OPENAI_API_BASE": "/v1",
    "ANTHROPIC_BASE_URL": "",
    "OLLAMA_HOST": "",
}


def upstreams(environment: Mapping[str, str], given: str | None) -> dict[str, str]:
    """Where each provider's calls are meant to go: as given, as the environment says, or to the public address."""
    if given is not None:
        return dict.fromkeys(UPSTREAMS, given.rstrip("/").removesuffix("/v1"))
    ollama = environment.get("OLLAMA_HOST", "")
    named = {
        "openai": environment.get("OPENAI_BASE_URL", environment.get("OPENAI_API_BASE", ""))
        .rstrip("/")
        .removesuffix("/v1"),
        "anthropic": environment.get("ANTHROPIC_BASE_URL", "").rstrip("/"),
        "ollama": ollama if not ollama or "://" in ollama else f"http://{ollama}",
    }
    return {name: named[name] or default for name, default in UPSTREAMS.items()}


async def run_program(command: Sequence[str], serve: Serve, placeholder_keys: bool = False) -> int:
    """The program's exit code; its LLM addresses point to the proxy while it runs."""
    async with Proxy(serve) as url:
        environment = {**os.environ, **{name: url + path for name, path in _ADDRESSES.items()}}
        if placeholder_keys:
            for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
                environment.setdefault(name, "replayed")
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment)
        except FileNotFoundError:
            raise AssayError(f"There is no program '{command[0]}'.") from None
        except PermissionError:
            raise AssayError(f"'{command[0]}' may not be executed.") from None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _passed_on, process, number)
        return await process.wait()


def _passed_on(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
