"""One client agent on a runtime of your choice: the same requests by asyncio, uvloop, threads or a compiled program."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from assay.builtin.agents.command import Command
from assay.plugin import BadAgent

RUNTIMES = ("asyncio", "uvloop", "threads", "compiled")
_PROGRAMS = Path(__file__).parent / "runtimes"


class Client(Command):
    """A built-in client program that sends the prompts of a case at the same time to an OpenAI-compatible server.

    The program keeps running and speaks JSON lines.

    Args:
        model: Name of the model, as the server knows it.
        runtime: What the program runs on; compiled builds a C program with the compiler of this machine.
        base_url: Base URL, without /chat/completions; http only.
        params: Parameters of the request, sent as they are.

    Example:
        - {name: threaded, type: client, model: "gemma3:latest", runtime: threads}
    """

    def __init__(
        self,
        model: str,
        runtime: Literal["asyncio", "uvloop", "threads", "compiled"] = "asyncio",
        base_url: str = "http://127.0.0.1:11434/v1",
        params: Mapping[str, object] | None = None,
        concurrency: int = 1,
        folder: str = "",
    ) -> None:
        if runtime not in RUNTIMES:
            raise BadAgent(f"there is no runtime '{runtime}' ({', '.join(RUNTIMES)}).")
        url = urlsplit(base_url)
        if url.scheme != "http" or not url.hostname:
            raise BadAgent(f"the base_url '{base_url}' must begin with http:// and name a host.")
        place = [url.hostname, str(url.port or 80), f"{url.path.rstrip('/')}/chat/completions"]
        super().__init__(
            [*_program(runtime), *place], params={"model": model, **(params or {})}, concurrency=concurrency
        )
        self._runtime = runtime

    def found_version(self) -> str:
        return f"{self._runtime}-{_digest(_source(self._runtime))}"


def _source(runtime: str) -> Path:
    return _PROGRAMS / ("client.c" if runtime == "compiled" else "client.py")


def _program(runtime: str) -> list[str]:
    if runtime == "compiled":
        return [str(compile_program(_source(runtime)))]
    if runtime == "uvloop":
        try:
            import uvloop  # noqa: F401
        except ImportError:
            raise BadAgent(
                "the runtime 'uvloop' needs the package uvloop. Install it: pip install uvloop"
            ) from None
    return [sys.executable, "-P", str(_source(runtime)), runtime]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def compile_program(source: Path) -> Path:
    """The program made from a C file, from the user's cache where it has been made before."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "assay"
    program = cache / f"{source.stem}-{_digest(source)}"
    if program.is_file():
        return program
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BadAgent("the runtime 'compiled' needs a C compiler. On Debian: apt-get install gcc libc6-dev")
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadAgent(
            f"the runtime 'compiled' keeps its program in '{cache}', which cannot be created: {error.strerror}. "
            "Name another folder: XDG_CACHE_HOME=/tmp/cache"
        ) from None
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        binary = Path(folder) / program.name
        compiler_process = subprocess.run(
            [compiler, "-O2", "-o", str(binary), str(source)], capture_output=True, text=True, check=False
        )
        if compiler_process.returncode:
            raise BadAgent(f"'{source.name}' could not be compiled: {compiler_process.stderr.strip()[:500]}")
        binary.replace(program)  # in one step: two that compile at a time do not disturb each other
    return program
