from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from assay.builtin.scorers.options import refused
from assay.builtin.scorers.texts import (
    NO_OUTPUT,
    NOTHING_EXPECTED,
    RIGHT,
    alternatives,
    is_missing,
    normalised,
    text_of,
)
from assay.model import Case
from assay.plugin.scorer import Judged, Judgement

_END = 20_000
_USUAL = tuple("ABCDE")
_SPACES = re.compile(r"\s+")


class Choice:
    """The letter that the output chooses is the expected one, however it is phrased; an unclear choice is wrong.

    The expected output is a letter, the number of a choice counted from 0, or the text of a choice.

    Args:
        choices: The choices, as a list or a mapping from letter to text. Default: the key `choices` of the case, else A to E.

    Example:
        scorer: {name: choice, choices: [A, B, C, D]}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)
    reads: ClassVar[tuple[str, ...]] = ("choices",)

    def __init__(self, *, choices: Sequence[object] | Mapping[str, object] | str | None = None) -> None:
        self._choices = None
        if choices is not None:
            self._choices = _choices(choices)
            if self._choices is None:
                raise refused("choice", "choices", f"must be a list of two or more, not {choices!r}.")

    def score(self, judged: Judged) -> Judgement:
        if is_missing(judged.expected):
            return NOTHING_EXPECTED
        choices, wanted = self._wanted(judged.expected, judged.case)
        if not wanted:
            return Judgement(None, f"the expected output is none of the choices {', '.join(choices.labels)}")
        if judged.output is None:
            return NO_OUTPUT
        chosen = choices.chosen(text_of(judged.output))
        if len(chosen) == 1 and chosen <= wanted:
            return RIGHT
        return Judgement(0.0, _told(sorted(chosen)))

    def example(self, expected: object, case: Case) -> str | None:
        return None if is_missing(expected) else min(self._wanted(expected, case)[1], default=None)

    def _wanted(self, expected: object, case: Case) -> tuple[_Choices, set[str]]:
        choices = self._choices or _choices(case.metadata.get("choices")) or _usual(expected)
        return choices, {label for one in alternatives(expected) if (label := choices.meant(one))}


def _told(chosen: Sequence[str]) -> str:
    if not chosen:
        return "no choice is to be found in the output"
    return f"chose {chosen[0]}" if len(chosen) == 1 else f"ambiguous: {', '.join(chosen)}"


@dataclass(frozen=True)
class _Choices:
    labels: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def meant(self, expected: object) -> str | None:
        """The label that an expected output stands for."""
        if isinstance(expected, int) and not isinstance(expected, bool):
            named = str(expected)
            within = 0 <= expected < len(self.labels)
            return named if named in self.labels else self.labels[expected] if within else None
        text = text_of(expected).strip()
        return self._by_label.get(text.strip("().").upper()) or self._by_text(text)

    def _by_text(self, text: str) -> str | None:
        wanted = normalised(text, True)
        found = [
            label
            for label, one in zip(self.labels, self.texts, strict=False)
            if normalised(one, True) == wanted
        ]
        return found[0] if len(found) == 1 else None

    def chosen(self, output: str) -> set[str]:
        """What the output chooses, by the clearest sign that it gives; several when it wavers."""
        text = _tidied(output)
        signs = (self._whole, self._named, self._leading, self._set_apart, self._spelt_out, self._mentioned)
        return next((found for sign in signs if (found := sign(text))), set())

    def _whole(self, text: str) -> set[str]:
        return self._labels(self._patterns.whole.fullmatch(text))

    def _named(self, text: str) -> set[str]:
        """“The answer is B”: the last such sentence counts, and both letters of “A or B”."""
        matches = list(self._patterns.named.finditer(text))
        return self._labels(matches[-1]) if matches else set()

    def _leading(self, text: str) -> set[str]:
        """“B) Paris”, unless other lines begin like that: then the choices are being listed."""
        matches = list(self._patterns.leading.finditer(text))
        found = set().union(*map(self._labels, matches))
        return found if len(found) == 1 and matches[0].start() == 0 else set()

    def _set_apart(self, text: str) -> set[str]:
        return set().union(*map(self._labels, self._patterns.set_apart.finditer(text)))

    def _spelt_out(self, text: str) -> set[str]:
        there = f" {normalised(text, True)} "
        known = [(label, normalised(one, True)) for label, one in zip(self.labels, self.texts, strict=False)]
        found = [(label, one) for label, one in known if one and f" {one} " in there]
        # “York” within “New York” is not a second choice.
        return {label for label, one in found if not any(one != other and one in other for _, other in found)}

    def _mentioned(self, text: str) -> set[str]:
        return set().union(*map(self._labels, self._patterns.mentioned.finditer(text)))

    def _labels(self, match: re.Match[str] | None) -> set[str]:
        if match is None:
            return set()
        return {self._by_label[label.upper()] for label in match.groups() if label}

    @cached_property
    def _by_label(self) -> dict[str, str]:
        return {label.upper(): label for label in self.labels}

    @cached_property
    def _patterns(self) -> _Patterns:
        return _patterns(self.labels)


@dataclass(frozen=True, slots=True)
class _Patterns:
    whole: re.Pattern[str]
    named: re.Pattern[str]
    leading: re.Pattern[str]
    set_apart: re.Pattern[str]
    mentioned: re.Pattern[str]


def _tidied(output: str) -> str:
    """Both ends of it, each run of white space as one: no pattern has to walk through long ones."""
    text = output.strip()
    if len(text) > 2 * _END:
        text = text[:_END] + "\n" + text[-_END:]
    return _SPACES.sub(lambda run: "\n" if "\n" in run[0] else " ", text)


@lru_cache(maxsize=64)
def _patterns(labels: tuple[str, ...]) -> _Patterns:
    one = "(" + "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True)) + ")"
    capital = f"(?-i:{one})"
    opened, closed = r"[\s*_`\"'“(\[{$]{0,6}", r"[\s*_`\"'”)\]}$.:,!]{0,6}"
    # A small “a” is an article unless it stands in brackets or at the end.
    sure = rf"(?:{capital}(?![\w'’])|{one}(?=[*_`\"')\]}}.:]+(?:\s|$)|\n|$))"
    also = rf"(?:{closed}(?:\b(?:or|and)\s|/\s?){opened}{capital}(?!\w))?"
    subject = r"\b(?:answer|choice|option|correct\s(?:one|letter)|solution)(?:\s(?:here|to\sthis\squestion))?"
    link = r"[*_]{0,2}\s?(?::|=|->|→|\bis\b:?|\b(?:would|should|must)\sbe\b)[*_]{0,2}"
    adverb = r"(?:\s?\b(?:clearly|definitely|most\slikely|probably|therefore|thus|indeed)\b)?"
    kind = r"(?:\s?\b(?:option|choice|letter|answer)\b)?"
    stated = rf"{subject}{link}{adverb}{kind}{opened}{sure}{also}"
    picked = (
        rf"\b(?:choose|pick|select|go\swith|answer)\s(?:option\s|choice\s)?[(*\[]{{0,3}}{capital}(?!\w){also}"
    )
    praised = rf"(?<!\w){capital}[)\]*.]{{0,3}}\sis\s(?:the\s)?(?:correct|right|best)"
    boxed = rf"\\boxed\{{(?:\\text\w{{0,4}}\{{)?\s?\(?{one}"
    articles = r"(?!(?<=A)\s(?!is\b|because\b|since\b|seems\b|looks\b|or\b|and\b)[a-z])"
    return _Patterns(
        whole=re.compile(f"{opened}{one}{closed}", re.IGNORECASE),
        named=re.compile(f"{stated}|{picked}|{praised}|{boxed}", re.IGNORECASE),
        leading=re.compile(
            rf"^[*_(\[]{{0,3}}{one}(?:[*_]{{0,2}}[)\].:]|[*_]{{1,2}}|\s[-–—]\s|$)",
            re.IGNORECASE | re.MULTILINE,
        ),
        set_apart=re.compile(rf"\({one}\)|\*\*\(?{one}[).:]?\*\*|\boption\s{capital}(?!\w)", re.IGNORECASE),
        mentioned=re.compile(rf"(?<![\w'’]){one}(?![\w'’])(?<!I){articles}"),
    )


def _usual(expected: object) -> _Choices:
    """Where nobody lists the choices, five letters, and those up to an expected one that is beyond."""
    letters = [one.strip().upper() for one in alternatives(expected) if isinstance(one, str)]
    beyond = [one for one in letters if len(one) == 1 and one in string.ascii_uppercase and one > "E"]
    return _Choices(tuple(string.ascii_uppercase[: ord(max(beyond)) - 64]) if beyond else _USUAL)


def _choices(listed: object) -> _Choices | None:
    """Choices as data sets write them: letters, texts, letter to text, or {label: […], text: […]}."""
    if isinstance(listed, str) and len(listed.split()) > 1:
        listed = listed.split()
    if isinstance(listed, Mapping):
        labels, texts = listed.get("label"), listed.get("text")
        if isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts):
            return _known(labels, texts)
        return _known(list(listed), list(listed.values()))
    if not isinstance(listed, list | tuple):
        return None
    if all(isinstance(one, str) and len(one.strip()) == 1 for one in listed):
        return _known(listed, ())
    return _known(string.ascii_uppercase[: len(listed)], listed) if len(listed) <= 26 else None


def _known(labels: Sequence[object], texts: Sequence[object]) -> _Choices | None:
    named = tuple(text_of(label).strip() for label in labels)
    if len(named) < 2 or not all(named) or len({label.upper() for label in named}) < len(named):
        return None
    return _Choices(named, tuple(text_of(text) for text in texts))
