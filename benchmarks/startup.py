"""How long a command takes that measures nothing, or next to nothing, and what an import brings along."""

from __future__ import annotations

from functools import partial

from arms import ASSAY, PYTHON, Ended, elsewhere, interleaved
from record import Bound, Figure, Promise, Result, figure, ratio

HELP = Promise("startup-help", "`assay --help`", Bound.AT_MOST, 5, "times", "`python -c pass`")
LIST = Promise("startup-list", "`assay list --json`", Bound.AT_MOST, 9, "times", "`python -c pass`")
RUN = Promise(
    "startup-run",
    "`assay run noop --json`: a run of one execution, from the shell and back",
    Bound.AT_MOST,
    45,
    "times",
    "`python -c pass`",
)
LIGHT = Promise(
    "import", "Heavy packages (numpy, sqlalchemy, rich) that `import assay` loads", Bound.AT_MOST, 0, ""
)
HEAVY = ("numpy", "sqlalchemy", "rich")

Ends = dict[str, list[Ended]]


def measure(quick: bool) -> list[Result]:
    arms = {
        "python -c pass": partial(elsewhere, PYTHON, "-c", "pass"),
        "assay --help": partial(elsewhere, ASSAY, "--help"),
        "assay list --json": partial(elsewhere, ASSAY, "list", "--json"),
        "assay run noop --json": partial(elsewhere, ASSAY, "run", "noop", "--json"),
        "pytest --version": partial(elsewhere, PYTHON, "-m", "pytest", "--version"),
        "pyperf --help": partial(elsewhere, PYTHON, "-m", "pyperf", "--help"),
    }
    found = interleaved(arms, 3 if quick else 21)
    return [
        _start(HELP, found, "assay --help"),
        _start(LIST, found, "assay list --json"),
        _start(RUN, found, "assay run noop --json"),
        _light(),
    ]


def _start(promise: Promise, found: Ends, command: str) -> Result:
    ours, bare = _seconds(found, command), _seconds(found, "python -c pass")
    return Result(
        promise,
        "s",
        figure(ours),
        ratio(ours, bare),
        {name: _figure(found, name) for name in ("python -c pass", "pytest --version", "pyperf --help")},
        values={command: ours, "python -c pass": bare},
    )


def _seconds(found: Ends, command: str) -> list[float]:
    return [end.seconds for end in found[command]]


def _figure(found: Ends, command: str) -> Figure:
    return figure(_seconds(found, command))


def _light() -> Result:
    by_import = _loaded(PYTHON, "-c", "import assay")
    by_help = _loaded(PYTHON, "-m", "assay", "--help")
    count = figure([float(len(by_import))])
    detail = f"`assay --help` loads {' and '.join(by_help) or 'none'} of them."
    return Result(LIGHT, "", count, count, detail=detail)


def _loaded(python: str, *words: str) -> list[str]:
    told = elsewhere(python, "-X", "importtime", *words).stderr
    modules = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    return [name for name in HEAVY if name in modules]
