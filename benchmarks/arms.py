"""Arms of a measurement: commands, each in a process and a folder of its own, taking turns."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import BinaryIO, TypeVar

SUBJECTS = Path(__file__).parent / "subjects"
PEERS = Path(__file__).parent / "peers"
PYTHON = sys.executable
ASSAY = str(Path(sys.executable).with_name("assay"))

# Another database, chatter, and a Python that compiles every module at every start are not what people have.
_UNSET = ("ASSAY_DB", "LOG_LEVEL", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024

T = TypeVar("T")


class CommandFailed(Exception):
    """A command that should have been measured ended with an error."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command went."""

    seconds: float
    peak_rss: int
    """Bytes, of the process itself or the largest of its children."""
    stdout: str
    stderr: str
    cpu: float
    """Seconds, of the process and its children."""


def ended(words: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> Ended:
    """Run a command to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = perf_counter()
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=_environment(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said, complained = _whole(out), _whole(err)
    if process.returncode:
        raise CommandFailed(f"'{' '.join(words)}' ended with {process.returncode}:\n{complained[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return Ended(seconds, usage.ru_maxrss * _RSS_UNIT, said, complained, cpu)


def _whole(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET}
    return {**kept, "PYTHONPATH": str(SUBJECTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}


def elsewhere(*words: str, **variables: str) -> Ended:
    """Run a command in a new folder, which is then thrown away."""
    with fresh_folder() as folder:
        return ended(words, folder, variables)


@contextmanager
def fresh_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        yield Path(folder)


def interleaved(arms: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Each round calls every arm once, in an order of its own, so that drift of the machine hits all alike."""
    answers: dict[str, list[T]] = {name: [] for name in arms}
    for number in range(rounds):
        order = list(arms)
        random.Random(number).shuffle(order)
        for name in order:
            tell(f"  round {number + 1} of {rounds}: {name}")
            answers[name].append(arms[name]())
    return answers


def peer(name: str, folder: Path = PEERS, python: str = PYTHON, is_complete: bool = False) -> Path:
    """The Python of a peer's own virtual environment, made from the folder's NAME.txt where it is not there yet.

    Of a list that is complete nothing is installed but what it names.
    """
    requirements = folder / f"{name}.txt"
    own = Path(__file__).parent.parent / f".venv-{name}" / "bin" / "python"
    made = own.parent / "made"
    if not made.is_file() or made.stat().st_mtime < requirements.stat().st_mtime:
        tell(f"  making the environment of {name}")
        subprocess.run([python, "-m", "venv", "--clear", str(own.parent.parent)], check=True)
        _install(own, "-r", str(requirements), *(["--no-deps"] if is_complete else []))
        made.touch()
    return own


def _install(python: Path, *what: str) -> None:
    """By uv where it is installed, which takes a fraction of the time."""
    wanted = ["-q", *what]
    has_uv = subprocess.run([PYTHON, "-m", "uv", "--version"], capture_output=True).returncode == 0
    if has_uv:
        subprocess.run([PYTHON, "-m", "uv", "pip", "install", "--python", str(python), *wanted], check=True)
    else:
        subprocess.run(
            [str(python), "-m", "pip", "install", "--disable-pip-version-check", *wanted], check=True
        )


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
