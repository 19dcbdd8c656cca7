"""Errors that the user can correct. Each has one message; `cli.main` catches AssayError and exits with 2.

Any other exception is a bug: `cli.main` shows its traceback and how to report it, and exits with 3.

AssayError
├── SpecError        a file that says what to run is wrong; carries every mistake found in it
├── LookupFailed     a name that is not registered
├── MissingExtra     a name that needs an optional package
├── PlanError        the request contradicts itself, or names params that an experiment does not have
│   └── OptionError  a function of the Python API has no such keyword; also a TypeError
├── StoreError       the database cannot be reached, read or written
│   ├── NewerSchema  written by a later Assay
│   ├── StoreAway    the server cannot be reached, or another program has locked the file; a run waits and retries
│   ├── RunInUse     another process is writing the run
│   ├── LeaseLost    another process took over the run, so this one stopped
│   ├── StoreFull    no space left; what was stored before is kept
│   └── SuiteNotFound  there is no suite with this name
├── RunNotFound      no run has this id, or several match it
├── Unlike           two runs that are not comparable
├── SeriesError      a list of numbers that cannot be read
└── ReportError      a document cannot be made from this run
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


class AssayError(Exception):
    """A mistake that the user can correct; the message says how."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One fault in a file: where it is, what is wrong, and what may have been meant."""

    file: str
    line: int | None
    key: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        where = f"{place}: {self.key}: " if self.key else f"{place}: "
        return where + self.problem + (f" {self.hint}" if self.hint else "")


class SpecError(AssayError):
    """A file that says what to run is wrong; `mistakes` has every mistake found in it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class LookupFailed(AssayError):
    """A name that is not registered; the message lists the known ones."""


class MissingExtra(AssayError):
    """Something that needs an optional package; the message says which to install."""


class PlanError(AssayError):
    """The request contradicts itself, or asks for what cannot be done."""


class OptionError(PlanError, TypeError):
    """A function of the Python API has no such keyword; also a TypeError."""


class StoreError(AssayError):
    """The database cannot be reached, read or written."""


class NewerSchema(StoreError):
    """The database was written by a later Assay."""


class StoreAway(StoreError):
    """The database cannot be used at the moment: the server is not reachable, or another program has locked the file."""


class RunInUse(StoreError):
    """Another process is writing the run; the message says which, and until when."""


class LeaseLost(StoreError):
    """Another process took the run over; this one stores nothing more."""


class StoreFull(StoreError):
    """No space is left for the database; what was stored before is kept."""


class SuiteNotFound(StoreError):
    """There is no suite with this name."""


class RunNotFound(AssayError):
    """There is no run with this id, or several match it."""


class Unlike(AssayError):
    """Two sides that cannot be compared."""


class SeriesError(AssayError):
    """A list of numbers that cannot be read."""


class ReportError(AssayError):
    """A document cannot be made from this run."""


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A suggestion sentence, or nothing when no known name is near.

    >>> did_you_mean("stubb", ["stub", "http"])
    "Did you mean 'stub'?"
    """
    import difflib

    near = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f"Did you mean '{near[0]}'?" if near else ""


_MOST_LISTED = 30
"""Names that a message lists; of more, only the nearest ones help."""


def known_names(wrong: str, known: Iterable[str]) -> str:
    """The hint for an unknown key: the nearest known one, then all of them.

    >>> known_names("mesured", ["warmup", "measured"])
    "Did you mean 'measured'? Known: warmup, measured."
    """
    names = list(known)
    if not names:
        return ""
    return f"{did_you_mean(wrong, names)} Known: {', '.join(names)}.".strip()


def format_unknown_name(wrong: str, kind: str, known: Iterable[str]) -> str:
    """The message for an unknown name, with the known names and a suggestion; of many names only the nearest are listed.

    >>> format_unknown_name("stubb", "agents", ["stub", "http"])
    "Unknown agent 'stubb'. Did you mean 'stub'? Agents: http, stub."
    >>> format_unknown_name("x", "experiments, specs and suites", ["noop"])
    "Unknown experiment, spec or suite 'x'. Experiments, specs and suites: noop."
    >>> format_unknown_name("c7", "cases of the suite", [f"c{n}" for n in range(10, 99)])
    "Unknown case 'c7'. Did you mean 'c97'? Cases of the suite: c97, c87, c79, c78, c77 and 84 more."
    """
    names = sorted(known)
    listed = ", ".join(names) or "none"
    if len(names) > _MOST_LISTED:
        import difflib

        near = difflib.get_close_matches(wrong, names, n=5, cutoff=0.0)
        listed = f"{', '.join(near)} and {len(names) - len(near):,} more"
    nouns = re.split(" (?:of|on|that|with) ", kind)[0].replace(" and ", " or ")
    singular = re.sub(r"s\b", "", re.sub(r"ies\b", "y", nouns))
    hint = did_you_mean(wrong, names)
    return f"Unknown {singular} '{wrong}'. {hint}{' ' if hint else ''}{kind[0].upper()}{kind[1:]}: {listed}."
