"""Commands in odd surroundings: closed streams, a full disk, other encodings, a folder that is gone, tight limits, odd settings."""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path

from faults.campaign import Fault, Outcome, Part, Size
from faults.project import COMMAND, Project, finish

_SECONDS = 60.0
_SUITE = """\
suite: "Prüfung ✓"
version: "1"
agents: [{name: "große 代理", type: stub, answer: "é✓"}]
benchmarks:
  - {id: b, name: "Fragen ✓", cases: [{id: "ä", input: "1", expected: "é✓"}], scorer: exact, iterations: {warmup: 0, measured: 1}}
"""
COMMANDS = (
    ("list", "agents"),
    ("validate", "suite.yaml"),
    ("run", "suite.yaml"),
    ("show", "last"),
    ("report", "last", "--format", "md,json,html", "--out", "out"),
    ("leaderboard",),
    ("runs", "list", "--json"),
    ("compare", "last", "last"),
)
SHELLS = {
    "closed standard output": "{command} >&-",
    "closed standard error": "{command} 2>&-",
    "closed standard input": "{command} <&-",
    "all standard streams closed": "{command} <&- >&- 2>&-",
    "a full disk behind standard output": "{command} >/dev/full",
    "a full disk behind standard error": "{command} 2>/dev/full",
    "a reader that goes away": "{command} | head -c 1 >/dev/null",
    "a folder that is gone": "mkdir gone && cd gone && rmdir ../gone && {command}",
    "standard output in ASCII": "PYTHONIOENCODING=ascii {command}",
    "standard output in Latin 1": "PYTHONIOENCODING=latin-1 {command}",
    "the locale C": "LC_ALL=C LANG=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {command}",
    "an unknown locale": "LC_ALL=xx_YY.nothing {command}",
    "no home": "HOME=/nowhere {command}",
    "no environment": "env -i {command}",
    "no temporary folder": "TMPDIR=/nowhere {command}",
    "20 descriptors": "ulimit -n 20; {command}",
    "files of at most 1 kB": "ulimit -f 1; {command}",
    "a window of one column": "COLUMNS=1 LINES=1 {command}",
    "a window of no column": "COLUMNS=0 {command}",
    "a terminal of an unknown kind": "TERM=unheard-of FORCE_COLOR=1 {command}",
    "an unknown time zone": "TZ=No/Where {command}",
    "an unknown level of logging": "LOG_LEVEL=shout {command}",
    "a database URL without a file": "ASSAY_DB=sqlite:/// {command}",
    "a database URL that is none": "ASSAY_DB=nonsense {command}",
    "a database of an unknown kind": "ASSAY_DB=oracle://x/y {command}",
    "a folder as the database": "ASSAY_DB=sqlite:///. {command}",
    "/dev/null as the database": "ASSAY_DB=sqlite:////dev/null {command}",
    "a text file as the database": "ASSAY_DB=sqlite:///suite.yaml {command}",
    "a database server that is not there": "ASSAY_DB=postgresql://nobody@127.0.0.1:9/x {command}",
    "a database name of 5,000 characters": "ASSAY_DB=sqlite:///$(printf 'x%.0s' $(seq 5000)) {command}",
    "SIGPIPE ignored": "trap '' PIPE; {command} | head -c 1 >/dev/null",
    "signals ignored": "trap '' INT TERM HUP; {command}",
}  # fmt: skip


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    chance = random.Random(f"{seed} surroundings")
    with tempfile.TemporaryDirectory(prefix="faults-surroundings-") as place:
        sample = Path(place).resolve() / "sample"
        sample.mkdir()
        project = Project(sample)
        project.write("suite.yaml", _SUITE)
        if problem := project("run", "suite.yaml").problem(0):
            raise RuntimeError(f"the sample could not be made: {problem}")
        pairs = list(product(SHELLS, COMMANDS))
        if size is Size.QUICK:
            pairs = [(name, words) for name in SHELLS for words in chance.sample(COMMANDS, 1)]
        elif size is Size.SMALLEST:
            pairs = [(name, chance.choice(COMMANDS)) for name in list(SHELLS)[:9]]
        yield [
            Fault(f"{name}, {' '.join(words)}", partial(_check, name, words, sample)) for name, words in pairs
        ]


def _check(name: str, words: Sequence[str], sample: Path, folder: Path) -> Outcome:
    place = folder / "project"
    shutil.copytree(sample, place)
    # The shell's own code is the last command's of a pipe, so the code that counts is written to a file.
    inner = f"{{ {shlex.join([str(COMMAND), *words])}; echo $? >&9; }}"
    line = SHELLS[name].format(command=inner if "|" in SHELLS[name] else shlex.join([str(COMMAND), *words]))
    if name == "no environment":
        line = f"env -i {shlex.join([str(COMMAND), *words])}"
    project = Project(place)
    process = subprocess.Popen(
        ["bash", "-c", f"exec 9>code; {line}"], cwd=place, env=project.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    kind = f"{name}, assay {' '.join(words)}"
    done = finish(process, _SECONDS)
    written = (place / "code").read_text().strip()
    code = int(written) if written else done.code
    if "Traceback" in done.err or "Exception ignored" in done.err:
        return Outcome(wrongs=((kind, f"traceback: {done.err.strip()[-300:]}"),))
    if code not in (0, 1, 2, 141):
        return Outcome(wrongs=((kind, f"exit code {code}: {done.err.strip()[-300:]}"),))
    return Outcome()


PART = Part(
    "surroundings",
    "In an unusual environment (full disk, closed streams, …) a command works or prints one clear message; never a traceback.",
    prepare,
)
