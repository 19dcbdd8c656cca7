"""Keys of cases that look misspelt, and cases that their scorers cannot score.

Cases may carry any metadata, so neither is a mistake; both are warnings, with one line for all cases of a benchmark
that have the same problem.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from assay.errors import AssayError, Mistake
from assay.model import Benchmark, Case, Doubt, ScorerUse, Suite
from assay.plugin import lookup
from assay.plugin.model_fields import names_of
from assay.plugin.options import option_model
from assay.spec.case_keys import CaseSection
from assay.spec.document import Document
from assay.spec.schema import keys_of
from assay.units import format_count

_NEAR = 0.85
"""Share of letters in common: `expectd` is near `expected`; `idx` is an ordinary key that is not near `id`."""


@dataclass(frozen=True, slots=True)
class CaseWarning:
    """What is odd about some cases of a benchmark."""

    benchmark: str
    cases: tuple[str, ...]
    key: str
    message: str
    hint: str

    def doubt(self) -> Doubt:
        return Doubt("case-keys", f"Benchmark '{self.benchmark}': {self.message}", self.hint)

    def to_mistake(self, document: Document) -> Mistake:
        """The warning at the place of the first of the cases."""
        here = (document.file, None, "")
        file, line, place = document.cases.get((self.benchmark, self.cases[0]), here)
        key = ".".join(part for part in (place, self.key) if part)
        return Mistake(file, line, key, self.message, self.hint)


def case_warnings(suite: Suite) -> list[CaseWarning]:
    return [warning for benchmark in suite.benchmarks for warning in _warnings(benchmark)]


def case_doubts(suite: Suite | None) -> tuple[Doubt, ...]:
    """Return the warnings about cases as doubts of a run, for its report."""
    return tuple(warning.doubt() for warning in case_warnings(suite)) if suite is not None else ()


def _warnings(benchmark: Benchmark) -> Iterator[CaseWarning]:
    """Misspelt keys first, then cases that lack what a scorer needs; a misspelt key already explains the lack."""
    scorers = [_Needs.of(use) for use in benchmark.scorers]
    known = {*keys_of(CaseSection), "solution", *(key for needs in scorers for key in needs.reads)}
    keys = {key for case in benchmark.cases for key in case.metadata if key not in known}
    near = {key: match[0] for key in keys if (match := difflib.get_close_matches(key, known, 1, _NEAR))}
    misspelt: dict[str, list[str]] = defaultdict(list)
    unscorable: dict[_Needs, list[str]] = defaultdict(list)
    for case in benchmark.cases:
        odd_keys = [key for key in case.metadata if key in near and not _has(case, near[key])]
        for key in odd_keys:
            misspelt[key].append(case.id)
        if not odd_keys and not case.turns:
            for needs in scorers:
                if needs.keys and not any(_has(case, key) for key in needs.keys):
                    unscorable[needs].append(case.id)
    for key, ids in misspelt.items():
        message = f"the key '{key}' of {_format_cases(ids)} is not used."
        yield CaseWarning(benchmark.id, tuple(ids), key, message, f"Did you mean '{near[key]}'?")
    for needs, ids in unscorable.items():
        lacking = " and no ".join(f"'{key}'" for key in needs.keys)
        message = f"scorer '{needs.scorer}' cannot score {_format_cases(ids)}: there is no {lacking}."
        hint = f"Add {'it' if len(needs.keys) == 1 else 'one of them'} to the case, or choose another scorer."
        yield CaseWarning(benchmark.id, tuple(ids), "", message, hint)


@dataclass(frozen=True, slots=True)
class _Needs:
    """What a scorer takes from a case: one of `keys`, unless an option stands in for them, and anything of `reads`."""

    scorer: str
    keys: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    @staticmethod
    def of(use: ScorerUse) -> _Needs:
        """Return what the scorer declares in `needs_one_of` and `reads`; nothing for a scorer that is not
        installed.
        """
        # A scorer of the user's own file is not imported for this: reports of old runs come by here, too.
        if not lookup.is_known("scorers", use.name):
            return _Needs(use.name)
        try:
            member = lookup.find("scorers", use.name)
        except AssayError:
            return _Needs(use.name)
        keys: tuple[str, ...] = tuple(getattr(member, "needs_one_of", ()))
        if any(use.options.get(key) is not None for key in keys):
            keys = ()
        options = option_model("scorers", member).model_fields
        own = tuple(key for key in keys if key not in options)
        return _Needs(use.name, own, tuple(getattr(member, "reads", ())))


def _has(case: Case, key: str) -> bool:
    """Whether a case has something under a key, or under another name of it."""
    for field in CaseSection.model_fields:
        if key in names_of(CaseSection, field):
            return getattr(case, field) not in (None, (), {})
    return key in case.metadata


def _format_cases(ids: list[str]) -> str:
    return (
        f"case '{ids[0]}'" if len(ids) == 1 else f"{format_count(len(ids), 'case')} (the first is '{ids[0]}')"
    )
