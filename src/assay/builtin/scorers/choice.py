"""Which of the listed choices a free-form output picks.

Models rarely answer a multiple-choice question with the bare letter. The scorer therefore looks for signs of a choice, from
the clearest to the vaguest, and takes the first kind of sign that the output gives. An output that gives two labels by the
same sign has not chosen, which is wrong and not unscored.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from assay.builtin.scorers.options import option_error
from assay.builtin.scorers.text_normalization import (
    NO_OUTPUT,
    NOTHING_EXPECTED,
    RIGHT,
    alternatives,
    is_missing,
    normalise_text,
    text_of,
)
from assay.model import Case
from assay.plugin import Judged, Judgement

_END = 20_000
"""Characters that are read at each end of a long output."""
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
            self._choices = _parse_choices(choices)
            if self._choices is None:
                raise option_error("choice", "choices", f"must be a list of two or more, not {choices!r}.")

    def score(self, judged: Judged) -> Judgement:
        if is_missing(judged.expected):
            return NOTHING_EXPECTED
        choices, wanted = self._resolve_expected(judged.expected, judged.case)
        if not wanted:
            return Judgement(
                None, f"the expected output is not among the choices {', '.join(choices.labels)}"
            )
        if judged.output is None:
            return NO_OUTPUT
        chosen = sorted(choices.find_chosen(text_of(judged.output)))
        if not chosen:
            return Judgement(0.0, "the output contains none of the choices")
        if len(chosen) > 1:
            return Judgement(0.0, f"ambiguous: {', '.join(chosen)}")
        return RIGHT if chosen[0] in wanted else Judgement(0.0, f"chose {chosen[0]}")

    def example(self, expected: object, case: Case) -> str | None:
        return None if is_missing(expected) else min(self._resolve_expected(expected, case)[1], default=None)

    def _resolve_expected(self, expected: object, case: Case) -> tuple[_Choices, set[str]]:
        """The choices of the case, and the labels of which any one is right."""
        accepted = alternatives(expected)
        choices = self._choices or _parse_choices(case.metadata.get("choices"))
        if choices is None:
            # Where the choices are not listed, five letters, and those up to an expected one that is beyond.
            letters = [text.strip().upper() for text in accepted if isinstance(text, str)]
            beyond = [
                text for text in letters if len(text) == 1 and text in string.ascii_uppercase and text > "E"
            ]
            choices = _Choices(tuple(string.ascii_uppercase[: ord(max(beyond)) - 64]) if beyond else _USUAL)
        return choices, {label for item in accepted if (label := choices.find_label(item))}


@dataclass(frozen=True)
class _Choices:
    """The labels of a question, such as A to D, and their texts in the same order.

    Texts are empty if only labels are known. An answer may name the label, spell out the text, or do
    both; an answer that names several choices chooses none.
    """

    labels: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def find_label(self, expected: object) -> str | None:
        """The label that an expected output stands for."""
        if isinstance(expected, int) and not isinstance(expected, bool):
            named = str(expected)
            within = 0 <= expected < len(self.labels)
            return named if named in self.labels else self.labels[expected] if within else None
        text = text_of(expected).strip()
        return self._by_label.get(text.strip("().").upper()) or self._by_text(text)

    def _by_text(self, text: str) -> str | None:
        normal = normalise_text(text, True)
        labels = [
            label
            for label, choice in zip(self.labels, self.texts, strict=False)
            if normalise_text(choice, True) == normal
        ]
        return labels[0] if len(labels) == 1 else None

    def find_chosen(self, output: str) -> set[str]:
        """The labels that the output chooses, by the clearest sign that it gives; several when it wavers."""
        text = output.strip()
        if len(text) > 2 * _END:
            text = text[:_END] + "\n" + text[-_END:]
        # Each run of white space as one character, so that no pattern has to walk through long ones.
        text = _SPACES.sub(lambda run: "\n" if "\n" in run[0] else " ", text)
        patterns = self._patterns
        if label := self._labels(patterns.whole.fullmatch(text)):
            return label
        # “The answer is B”: the last such sentence counts, and both letters of “A or B”.
        stated = list(patterns.named.finditer(text))
        if stated and (labels := self._labels(stated[-1])):
            return labels
        # “B) Paris” at the beginning, unless other lines begin like that: then the choices are being listed.
        leading = self._find_all(patterns.leading, text)
        if len(leading) == 1 and patterns.leading.match(text):
            return leading
        return (
            self._find_all(patterns.set_apart, text)
            or self._spelt_out(text)
            or self._find_all(patterns.mentioned, text)
        )

    def _spelt_out(self, text: str) -> set[str]:
        """The labels of the choices whose texts the output contains as whole words."""
        output = f" {normalise_text(text, True)} "
        choices = [
            (label, normalise_text(choice, True))
            for label, choice in zip(self.labels, self.texts, strict=False)
        ]
        named = [(label, choice) for label, choice in choices if choice and f" {choice} " in output]
        # “York” within “New York” is not a second choice.
        return {
            label
            for label, choice in named
            if not any(choice != other and choice in other for _, other in named)
        }

    def _find_all(self, pattern: re.Pattern[str], text: str) -> set[str]:
        return set().union(*map(self._labels, pattern.finditer(text)))

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
    """The signs of a choice, from the clearest to the vaguest; each group of a match is a label or nothing."""

    whole: re.Pattern[str]
    named: re.Pattern[str]
    leading: re.Pattern[str]
    set_apart: re.Pattern[str]
    mentioned: re.Pattern[str]


@lru_cache(maxsize=64)
def _patterns(labels: tuple[str, ...]) -> _Patterns:
    label_group = "(" + "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True)) + ")"
    capital = f"(?-i:{label_group})"
    opened, closed = r"[\s*_`\"'“(\[{$]{0,6}", r"[\s*_`\"'”)\]}$.:,!]{0,6}"
    # A small “a” is an article unless it stands in brackets or at the end.
    sure = rf"(?:{capital}(?![\w'’])|{label_group}(?=[*_`\"')\]}}.:]+(?:\s|$)|\n|$))"
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
    boxed = rf"\\boxed\{{(?:\\text\w{{0,4}}\{{)?\s?\(?{label_group}"
    articles = r"(?!(?<=A)\s(?!is\b|because\b|since\b|seems\b|looks\b|or\b|and\b)[a-z])"
    return _Patterns(
        whole=re.compile(f"{opened}{label_group}{closed}", re.IGNORECASE),
        named=re.compile(f"{stated}|{picked}|{praised}|{boxed}", re.IGNORECASE),
        leading=re.compile(
            rf"^[*_(\[]{{0,3}}{label_group}(?:[*_]{{0,2}}[)\].:]|[*_]{{1,2}}|\s[-–—]\s|$)",
            re.IGNORECASE | re.MULTILINE,
        ),
        set_apart=re.compile(
            rf"\({label_group}\)|\*\*\(?{label_group}[).:]?\*\*|\boption\s{capital}(?!\w)", re.IGNORECASE
        ),
        mentioned=re.compile(rf"(?<![\w'’]){label_group}(?![\w'’])(?<!I){articles}"),
    )


def _parse_choices(listed: object) -> _Choices | None:
    """Choices as data sets write them: letters, texts, letter to text, or {label: […], text: […]}; None for anything else."""
    if isinstance(listed, str) and len(listed.split()) > 1:
        listed = listed.split()
    if isinstance(listed, Mapping):
        labels, texts = listed.get("label"), listed.get("text")
        if isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts):
            return _build_choices(labels, texts)
        return _build_choices(list(listed), list(listed.values()))
    if not isinstance(listed, list | tuple):
        return None
    if all(isinstance(choice, str) and len(choice.strip()) == 1 for choice in listed):
        return _build_choices(listed, ())
    return _build_choices(string.ascii_uppercase[: len(listed)], listed) if len(listed) <= 26 else None


def _build_choices(labels: Sequence[object], texts: Sequence[object]) -> _Choices | None:
    """Build the choices, or return None if the labels cannot be choices.

    They must be at least two, distinct, and not empty.
    """
    named = tuple(text_of(label).strip() for label in labels)
    if len(named) < 2 or not all(named) or len({label.upper() for label in named}) < len(named):
        return None
    return _Choices(named, tuple(text_of(text) for text in texts))
